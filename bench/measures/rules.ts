/**
 * The cost of rules for those who write, and how soon an alert is there. Of two types of the same columns one has the rules; they are written to
 * in turn, in one run of the built server: events of 30 fields under 3,000 Sigma rules, and single rows under 500 rules in SQL.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, type LoadOptions, type LoadResult, post } from '../http-load.ts';
import { quantile, quotient, summary } from '../report.ts';
import { eventNames, eventNumbers, SigmaWorld } from '../sigma-world.ts';
import { orderJson } from '../workload.ts';

const sigmaRules = 3_000;
const sqlRules = 500;
const batchRows = 100;
const batches = 200;
/** While alerts are waited for, writers rest so long between two bodies: some thousand rows come in a second. */
const pacedMs = 50;
const markEveryMs = 25;

export async function rules({ report, directory, repeats, seconds, port }: BenchContext): Promise<void> {
  const rounds = repeats + 2;
  const server = await AnnalsServer.start(directory, 'rules', port());
  const about = { unit: 'ms', better: 'smaller' } as const;
  const found = async (
    [plain, judged]: readonly [string, string],
    { under, measure, at, lines, writing, row }: Compared,
  ): Promise<{ readonly plain: number[]; readonly judged: number[]; readonly alerts: number[] }> => {
    const load: Load = { server, seconds, lines, ...writing };
    const marks = new Marks(server, judged, row);
    const samples = { plain: [] as number[], judged: [] as number[], alerts: [] as number[] };
    for (let round = 0; round <= rounds; round++) {
      const without = await write(plain, load);
      const beside = await write(judged, load);
      // Rules have caught up before others are measured.
      await marks.settle();
      const delays = await marks.delays(write(judged, { ...load, pauseMs: pacedMs }));
      // The first round warms up.
      if (round === 0) continue;
      samples.plain.push(without[at]);
      samples.judged.push(beside[at]);
      samples.alerts.push(quantile(delays, 0.95));
    }
    report.add({ ...about, measure, product: 'annals', samples: samples.plain });
    report.add({ ...about, measure, product: `annals, ${under}`, samples: samples.judged });
    return samples;
  };
  try {
    const world = new SigmaWorld(7);
    for (const name of ['Event', 'PlainEvent']) await registerEvents(server, name);
    const documents = Array.from({ length: sigmaRules }, (_, i) => world.rule(i).yaml);
    const marker = 'title: marker\nlogsource: {}\ndetection:\n  s:\n    RuleName: marker\n  condition: s\n';
    const path = '/rules/sigma?object_type=Event&purpose=analytics';
    await server.request(path, [...documents, marker].join('\n---\n'), 'application/yaml');
    const bodies = Array.from({ length: batches }, () =>
      Array.from({ length: batchRows }, () => JSON.stringify({ ...world.event(), RuleName: '-' })).join('\n'),
    );
    const bySigma = await found(['PlainEvent', 'Event'], {
      under: `${sigmaRules} Sigma rules`,
      measure: `ingest of ${batchRows} events acknowledged, p50`,
      at: 'p50',
      lines: (n) => bodies[n % batches]!,
      writing: { connections: 1, pauseMs: 0 },
      row: (key) => JSON.stringify({ id: key, RuleName: 'marker' }),
    });
    report.figure('rules.acknowledged', quotient(bySigma.judged, bySigma.plain));
    report.figure('rules.sigma-alert', summary(bySigma.alerts));

    for (const name of ['Purchase', 'PlainPurchase']) await server.registerOrders(name);
    for (let i = 0; i < sqlRules; i++) {
      const condition = `category = 'category-${i % 100}' AND amount > ${9_900 + i / 10}`;
      await server.request('/rules', ruleOf(`in SQL ${i}`, 'Purchase', condition));
    }
    await server.request('/rules', ruleOf('marker in SQL', 'Purchase', "region = 'marker'"));
    const bySql = await found(['PlainPurchase', 'Purchase'], {
      under: `${sqlRules} rules in SQL`,
      measure: 'commit of 1 row over HTTP, 8 writers, p99',
      at: 'p99',
      lines: orderJson,
      writing: { connections: 8, pauseMs: 5 },
      row: (key) => JSON.stringify({ id: key, region: 'marker' }),
    });
    report.figure('rules.commit-p99', quotient(bySql.judged, bySql.plain));
    report.figure('rules.alert', summary(bySql.alerts));
  } finally {
    await server.stop();
  }
}

interface Compared {
  readonly under: string;
  readonly measure: string;
  readonly at: 'p50' | 'p99';
  /** Rows of body number n. */
  readonly lines: (n: number) => string;
  readonly writing: Pick<LoadOptions, 'connections' | 'pauseMs'>;
  /** A row that a rule of its own matches. */
  readonly row: (key: string) => string;
}

interface Load extends Pick<LoadOptions, 'connections' | 'seconds' | 'pauseMs'> {
  readonly server: AnnalsServer;
  readonly lines: (n: number) => string;
}

let written = 0;

function write(type: string, { server, lines, ...more }: Load): Promise<LoadResult> {
  const headers = { ...server.headers, 'content-type': 'application/x-ndjson' };
  const request = (): Buffer => post(`/ingest?object_type=${type}`, headers, lines(written++));
  return load({ ...more, port: server.port, request });
}

/** Rows that each raise an alert, which is waited for. */
class Marks {
  readonly #server: AnnalsServer;
  readonly #type: string;
  readonly #row: (key: string) => string;
  readonly #waiting = new Map<string, (at: number) => void>();
  #marked = 0;

  constructor(server: AnnalsServer, type: string, row: (key: string) => string) {
    this.#server = server;
    this.#type = type;
    this.#row = row;
  }

  /** Until all that was written is judged. */
  async settle(): Promise<void> {
    const key = await this.#write();
    for (;;) {
      const asked = this.#server.query(`SELECT id FROM Alert AS OF CURRENT WHERE matched_pk = '${key}'`);
      // There is no type of alerts before the first one.
      const stands = await asked.then(
        ({ text }) => text.includes('"row_count":1'),
        () => false,
      );
      if (stands) return;
      await pause(20);
    }
  }

  /** Milliseconds from an acknowledgement until its alert is on the watch stream, the shortest first, while others write. */
  async delays(writing: Promise<unknown>): Promise<number[]> {
    const closing = new AbortController();
    const following = this.#follow(closing.signal);
    const delays: number[] = [];
    let isOver = false;
    void writing.finally(() => (isOver = true)).catch(() => undefined);
    await following.begun;
    while (!isOver) {
      let alert: (at: number) => void = () => undefined;
      const alerted = new Promise<number>((resolve) => (alert = resolve));
      await this.#write((key) => this.#waiting.set(key, alert));
      const acknowledged = performance.now();
      void alerted.then((at) => delays.push(at - acknowledged));
      await pause(markEveryMs);
    }
    await writing;
    while (this.#waiting.size > 0) await pause(5);
    closing.abort();
    await following.ended;
    return delays.sort((a, b) => a - b);
  }

  #follow(signal: AbortSignal): { readonly begun: Promise<void>; readonly ended: Promise<void> } {
    const sql = encodeURIComponent(`SELECT matched_pk FROM Alert WHERE matched_pk LIKE '${this.#type}-mark-%'`);
    const url = `http://127.0.0.1:${this.#server.port}/watch/stream?purpose=analytics&sql=${sql}`;
    const opened = fetch(url, { headers: this.#server.headers, signal });
    const read = async (): Promise<void> => {
      const reply = await opened;
      let text = '';
      const decoder = new TextDecoder();
      for await (const piece of reply.body!) {
        text += decoder.decode(piece as Uint8Array, { stream: true });
        const end = text.lastIndexOf('\n');
        const at = performance.now();
        for (const [, key] of text.slice(0, end + 1).matchAll(/"matched_pk":"([^"]+)"/g)) {
          this.#waiting.get(key!)?.(at);
          this.#waiting.delete(key!);
        }
        text = text.slice(end + 1);
      }
    };
    const ended = read().catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    return { begun: opened.then(() => undefined), ended };
  }

  async #write(before: (key: string) => void = () => undefined): Promise<string> {
    const key = `${this.#type}-mark-${this.#marked++}`;
    before(key);
    await this.#server.ingest(this.#type, this.#row(key), 1, '/ingest');
    return key;
  }
}

function ruleOf(name: string, type: string, condition: string): string {
  return JSON.stringify({ name, object_type: type, condition_sql: condition, purpose: 'analytics' });
}

async function registerEvents(server: AnnalsServer, name: string): Promise<void> {
  const columns = eventNames.map((column) => [column, { type: eventNumbers.includes(column) ? 'integer' : 'string' }] as const);
  const properties = { id: { type: 'string' }, ...Object.fromEntries(columns) };
  await server.request('/types', JSON.stringify({ name, properties, primary_key: 'id' }));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
