/**
 * Rules and jobs while the process is killed: rows are put, and a job runs each second. After the next start there is one alert for each row
 * that matches, none is lost and none is there twice, and alerts of the job are as many as its runs say.
 */
import type { Copying, Killed } from './copies.ts';

const rule = { name: 'above', object_type: 'Watched', condition_sql: 'n > 50', purpose: 'test' };
const group = {
  name: 'group',
  condition_sql: 'SELECT room, n FROM Watched GROUP BY room, n HAVING COUNT(*) > 1',
  interval_secs: 31_536_000,
  purpose: 'test',
};
const waitedMs = 20_000;

type Row = Readonly<Record<string, unknown>>;

export class Alerts implements Copying {
  readonly figures = { watched: 0, alerts: 0, jobRuns: 0 };
  readonly #killed: Pick<Killed, 'problem'>;
  readonly #send: (method: string, path: string, body?: unknown) => Promise<{ status: number; text: string }>;
  readonly #draw: (below: number) => number;
  #group: string | null = null;
  #round = 0;

  constructor(
    killed: Pick<Killed, 'problem'>,
    send: (method: string, path: string, body?: unknown) => Promise<{ status: number; text: string }>,
    draw: (below: number) => number,
  ) {
    this.#killed = killed;
    this.#send = send;
    this.#draw = draw;
  }

  async work(begun: () => void): Promise<void> {
    const round = this.#round++;
    begun();
    try {
      for (let request = 0; ; request++) {
        const rows = Array.from({ length: 1 + this.#draw(20) }, (_, i) => ({
          id: `${round}-${request}-${i}`,
          room: `r${this.#draw(5)}`,
          n: this.#draw(100),
        }));
        const { status } = await this.#send('POST', '/ingest?object_type=Watched&purpose=test', rows);
        if (status >= 500) return;
      }
    } catch {
      // The process is gone.
    }
  }

  check(): void {}

  /** After a start: makes rules and a job where there are none yet, waits until all is judged, and compares. */
  async started(): Promise<void> {
    if (this.#group === null) return this.#prepare();
    const expected = await this.#rows('SELECT id FROM Watched AS OF CURRENT WHERE n > 50 LIMIT 1000000');
    const until = performance.now() + waitedMs;
    for (;;) {
      const wrong = await this.#difference(expected);
      if (wrong === null) return;
      if (performance.now() > until) return this.#killed.problem(wrong);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async #prepare(): Promise<void> {
    const properties = { id: 'string', room: 'string', n: 'integer' };
    await this.#must('POST', '/types?purpose=test', { name: 'Watched', properties, primary_key: 'id' });
    await this.#must('POST', '/rules', rule);
    this.#group = String((await this.#must('POST', '/rules', group))['id']);
    await this.#must('POST', '/jobs', { name: 'each second', run: { rules: [this.#group] }, interval_secs: 1, purpose: 'test' });
  }

  async #difference(expected: readonly Row[]): Promise<string | null> {
    const alerts = await this.#rows('SELECT title, matched_pk FROM Alert AS OF CURRENT LIMIT 1000000');
    const raised = alerts.filter(({ title }) => title === 'above').map(({ matched_pk: key }) => String(key));
    const known = new Set(raised);
    if (known.size < raised.length) return `${raised.length - known.size} alerts are there twice`;
    const lost = expected.filter(({ id }) => !known.has(String(id)));
    if (lost.length > 0) return `${lost.length} alerts are lost: ${String(lost[0]!['id'])}`;
    if (known.size > expected.length) return `${known.size - expected.length} alerts are of no row`;
    const { jobs } = await this.#must('GET', '/jobs');
    const [job] = jobs as readonly Row[];
    const before = alerts.length - raised.length;
    // A run may have ended between the two questions.
    const grouped = Number((await this.#rows("SELECT COUNT(*) AS n FROM Alert AS OF CURRENT WHERE title = 'group'"))[0]!['n']);
    const told = Number(job!['total_alerts']);
    if (told < before || told > grouped) return `${before} to ${grouped} alerts of a job whose runs say ${told}`;
    this.figures.watched = expected.length;
    this.figures.alerts = alerts.length;
    this.figures.jobRuns = Number(job!['run_count']);
    return null;
  }

  async #rows(sql: string): Promise<readonly Row[]> {
    return (await this.#must('POST', '/query?purpose=test', { sql }))['rows'] as readonly Row[];
  }

  async #must(method: string, path: string, body?: unknown): Promise<Row> {
    const { status, text } = await this.#send(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return JSON.parse(text) as Row;
  }
}
