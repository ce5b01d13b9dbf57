/**
 * Erasing one subject of many in a large store that serves: seconds from the call until the last answer over HTTP that shows a
 * row of it has come, until each question was answered without one, until the certificate is there, and how `/health` fares
 * meanwhile, and beside the same questions without an erasure. Subjects have 10,000 rows each, scattered over the whole log,
 * among those of 100,000 others; each erasure is of another one. *Just started*: the call is the first thing that the process
 * is asked, and no column of a row is in memory.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { instantText } from '../datasets.ts';
import { type Polled, startPoller } from '../health.ts';
import { summary } from '../report.ts';
import { scramble } from '../workload.ts';

/** Rows of each subject that is erased. */
const subjectRows = 10_000;
const others = 100_000;
/** Between the answer to a question and the same question. */
const pauseMs = 20;
/** Questions go on before the call and after the certificate. */
const aroundMs = 500;

const properties = {
  id: { type: 'string' },
  person: { type: 'string', subject: true },
  city: { type: 'string' },
  amount: { type: 'number' },
  note: { type: 'string' },
};

const keyOf = (i: number): string => `visit-${String(i).padStart(9, '0')}`;
const subjectOf = (number: number): string => `patient-${number}`;

interface Question {
  readonly surface: string;
  readonly sql: string;
  readonly branch?: string;
  /** What its answer has in it while a row of the subject can be read. */
  readonly shows: RegExp;
}

interface Times {
  /** Seconds from the call to the last answer with a row, by surface; 0 where none came after it. */
  readonly shown: Readonly<Record<string, number>>;
  /** Seconds from the call to the first answer without a row, by surface. */
  readonly empty: Readonly<Record<string, number>>;
  /** Seconds from the call to its answer. */
  readonly certificate: number;
  readonly health: Polled;
  readonly before: Polled | null;
}

export async function erasure({ report, directory, largeRows, repeats, port }: BenchContext): Promise<void> {
  // Subject number s has every row that leaves s when divided by this.
  const apart = largeRows / subjectRows;
  const name = 'erasure';
  const found: { readonly served: Times[]; readonly started: Times[] } = { served: [], started: [] };
  const { load, instant } = await loadVisits(directory, name, port(), largeRows, apart);
  console.log(`  loaded ${largeRows.toLocaleString('en')} rows of subjects in ${load.toFixed(1)} s`);
  let subject = 0;
  for (let repeat = 0; repeat < repeats; repeat++) {
    // A store that was only just started: without an erasure, and with one. Then the latter once it has answered everything.
    const asked = questions(subject, instant, apart);
    const before = await healthBeside(directory, name, port(), asked);
    const server = await AnnalsServer.start(directory, name, port());
    try {
      found.started.push({ ...(await erase(server, asked, subjectOf(subject), false)), before });
      subject++;
      found.served.push(await erase(server, questions(subject, instant, apart), subjectOf(subject), true));
      subject++;
    } finally {
      await server.stop();
    }
  }
  const measure = `erasing ${subjectRows.toLocaleString('en')} of ${largeRows.toLocaleString('en')} rows`;
  for (const [kind, times] of Object.entries(found)) {
    const product = kind === 'served' ? 'annals' : 'annals, just started';
    const seconds = { product, unit: 's', better: 'smaller' } as const;
    const slowest = { shown: [] as number[], empty: [] as number[] };
    for (const [until, text] of [
      ['shown', 'to the last answer that shows one'],
      ['empty', 'until every question was answered without one'],
    ] as const) {
      slowest[until] = times.map((each) => Math.max(...Object.values(each[until])));
      const surfaces = Object.keys(times[0]!.empty)
        .map((surface) => `${surface} ${summary(times.map((each) => each[until][surface]!)).median.toFixed(2)}`)
        .join(', ');
      report.add({ ...seconds, measure: `${measure}, ${text}`, samples: slowest[until], note: surfaces });
    }
    report.add({
      ...seconds,
      measure: `${measure}, until the certificate`,
      samples: times.map(({ certificate }) => certificate),
      note: 'keys gone, files replaced, everything looked through',
    });
    for (const quantity of ['p99', 'max'] as const) {
      const before = times.flatMap((each) => (each.before === null ? [] : [each.before[quantity]]));
      report.add({
        measure: `${measure}, /health meanwhile`,
        product: `${product}, ${quantity}`,
        unit: 'ms',
        better: 'smaller',
        samples: times.map(({ health }) => health[quantity]),
        note: before.length > 0 ? `${summary(before).median.toFixed(1)} ms under the same questions without an erasure` : '',
      });
    }
    report.figure(`erasure.${kind as keyof typeof found}`, summary(slowest.shown));
    if (kind !== 'served') continue;
    report.figure('erasure.certificate', summary(times.map(({ certificate }) => certificate)));
    report.figure('erasure.health', summary(times.map(({ health }) => health.max)));
  }
}

async function loadVisits(
  directory: string,
  name: string,
  port: number,
  count: number,
  apart: number,
): Promise<{ load: number; instant: string }> {
  const server = await AnnalsServer.start(directory, name, port, { cores: 'all' });
  try {
    await server.request('/types', JSON.stringify({ name: 'Visit', properties, primary_key: 'id' }));
    const began = performance.now();
    await server.ingest('Visit', visitLines(count, apart), count);
    const load = (performance.now() - began) / 1000;
    const reply = await server.query(`SELECT system_from FROM Visit WHERE id = '${keyOf(count - 1)}'`);
    await server.query('BRANCH before FROM main');
    await server.query(
      'CREATE MATERIALIZED VIEW per_person AS SELECT person, COUNT(*) AS n FROM Visit GROUP BY person REFRESH INCREMENTAL EVERY 3600',
    );
    return { load, instant: instantText(/"system_from":(\d+)/.exec(reply.text)![1]!) };
  } finally {
    await server.stop();
  }
}

function* visitLines(count: number, apart: number): Generator<Buffer> {
  for (let i = 0; i < count; ) {
    let text = '';
    for (const end = Math.min(i + 5_000, count); i < end; i++) {
      const h = scramble(i);
      // The first hundred or so are erased one after the other; what is left of the others is anybody's.
      const person = i % apart < 32 ? subjectOf(i % apart) : `person-${h % others}`;
      text += `{"id":"${keyOf(i)}","person":"${person}","city":"city-${h % 200}","amount":${(h % 100_000) / 100},"note":"seen for the ${h % 9_000_011}th time"}\n`;
    }
    yield Buffer.from(text);
  }
}

function questions(number: number, instant: string, apart: number): Question[] {
  const where = `WHERE person = '${subjectOf(number)}'`;
  const count = new RegExp(`"n":${subjectRows}\\b`);
  return [
    { surface: 'key', sql: `SELECT * FROM Visit WHERE id = '${keyOf(number + 500 * apart)}'`, shows: /"person":"patient-/ },
    { surface: 'filter', sql: `SELECT id, note FROM Visit ${where} LIMIT 20`, shows: /"id":"visit-/ },
    { surface: 'count', sql: `SELECT COUNT(*) AS n FROM Visit ${where}`, shows: count },
    { surface: 'past', sql: `SELECT COUNT(*) AS n FROM Visit AS OF SYSTEM TIME '${instant}' ${where}`, shows: count },
    { surface: 'branch', sql: `SELECT COUNT(*) AS n FROM Visit ${where}`, branch: 'before', shows: count },
    { surface: 'view', sql: `SELECT n FROM per_person ${where}`, shows: count },
  ];
}

/** How `/health` fares in a store just started while the questions are asked, each at once and once more. */
async function healthBeside(directory: string, name: string, port: number, asked: readonly Question[]): Promise<Polled> {
  const server = await AnnalsServer.start(directory, name, port);
  try {
    const polling = await startPoller(server.port);
    const ask = async ({ surface, sql, branch, shows }: Question): Promise<void> => {
      for (let times = 0; times < 2; times++) {
        const text = await server.request('/query', JSON.stringify({ sql, branch }));
        if (!shows.test(text)) throw new Error(`${surface} shows no row: ${text.slice(0, 300)}`);
      }
    };
    await Promise.all(asked.map(ask));
    return await polling.stop();
  } finally {
    await server.stop();
  }
}

async function erase(server: AnnalsServer, asked: readonly Question[], subject: string, isServed: boolean): Promise<Times> {
  const sinceCall = (): number => Math.max(0, (performance.now() - called) / 1000);
  const empty: Record<string, number> = {};
  const shown = Object.fromEntries(asked.map(({ surface }) => [surface, 0]));
  let before: Polled | null = null;
  let called = Infinity;
  let ended = false;
  const ask = async ({ surface, sql, branch, shows }: Question): Promise<void> => {
    while (!ended) {
      const text = await server.request('/query', JSON.stringify({ sql, branch })).catch((error: unknown) => {
        if (called === Infinity || !/socket hang up|ECONNRESET/.test(String(error))) throw error;
        return null;
      });
      // An answer that the erasure overtakes while it is sent is cut off: asked again.
      if (text === null) continue;
      const isShown = shows.test(text);
      if (isShown && surface in empty) throw new Error(`${surface} shows again what was erased: ${text.slice(0, 300)}`);
      if (!isShown && called === Infinity) throw new Error(`${surface} shows no row before it is erased: ${text.slice(0, 300)}`);
      if (isShown) shown[surface] = sinceCall();
      else empty[surface] ??= sinceCall();
      await sleep(pauseMs);
    }
  };
  let asking: Promise<void>[] = [];
  if (isServed) {
    // Once each, so that what is compared is there.
    for (const { sql, branch } of asked) await server.request('/query', JSON.stringify({ sql, branch }));
    const polling = await startPoller(server.port);
    asking = asked.map(ask);
    await sleep(4 * aroundMs);
    before = await polling.stop();
  }
  const polling = await startPoller(server.port);
  called = performance.now();
  const erasing = server.request('/query', JSON.stringify({ sql: `ERASE SUBJECT '${subject}' REASON 'asked for it' CERTIFY` }));
  if (!isServed) asking = asked.map(ask);
  const failed = Promise.all(asking);
  failed.catch(() => undefined);
  const text = await erasing.finally(() => (ended = true));
  const certificate = (performance.now() - called) / 1000;
  if (!text.includes(`"versions":${subjectRows},"certified":true`)) throw new Error(`not erased: ${text.slice(0, 300)}`);
  await failed;
  const health = await polling.stop();
  if (health.failed > 0) throw new Error(`${health.failed} times /health was not 200`);
  const missing = asked.find(({ surface }) => !(surface in empty));
  if (missing) throw new Error(`${missing.surface} showed rows for as long as it was asked`);
  return { shown, empty, certificate, health, before };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
