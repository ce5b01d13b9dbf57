/**
 * Searching short texts: the ten rows that match two to four words best, and how many match, beside FTS5 and PostgreSQL; the same as of
 * an instant before a tenth changed; and how fast the index is made. Words are as frequent as words are: the n-th as 1/n.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { instantText } from '../datasets.ts';
import { startPoller } from '../health.ts';
import { geometricMean, quotient, summary } from '../report.ts';

const vocabulary = 60_000;
const questions = 24;
const runs = 5;
/** Rounds after which a server has compiled what it runs. */
const warmUp = 20;

export async function text({ report, directory, sqlite, postgres, rows, port }: BenchContext): Promise<void> {
  const texts = new Texts();
  const documents = Array.from({ length: rows }, () => texts.document());
  const asked = Array.from({ length: questions }, (_, i) => texts.question(2 + (i % 3)));
  const server = await AnnalsServer.start(directory, 'text', port());
  const measure = (what: string): string => `${what}, ${rows.toLocaleString('en')} short documents`;
  let firstMs = 0;
  const own: { now: number[][]; before: number[][] } = { now: [], before: [] };
  try {
    await server.request(
      '/types',
      JSON.stringify({ name: 'Doc', properties: { id: 'string', text: 'string' }, primary_key: 'id' }),
    );
    const ingest = async (from: number, to: number, of: (i: number) => string): Promise<void> => {
      for (let at = from; at < to; at += 20_000) {
        const end = Math.min(to, at + 20_000);
        const lines = Array.from({ length: end - at }, (_, k) => `{"id":"d${at + k}","text":"${of(at + k)}"}\n`).join('');
        await server.ingest('Doc', lines, end - at);
      }
    };
    await ingest(0, rows, (i) => documents[i]!);
    const ask = (words: readonly string[], time: string): Promise<{ text: string; insideMs: number }> =>
      server.query(`SELECT id, _score FROM Doc ${time} WHERE MATCH(text, '${words.join(' ')}') ORDER BY _score DESC LIMIT 10`);
    const polling = await startPoller(server.port);
    const first = await ask(asked[0]!, 'AS OF CURRENT');
    firstMs = first.insideMs;
    report.figure('text.health', summary([(await polling.stop()).p99]));
    report.add({
      measure: measure('first search: all texts are indexed'),
      product: 'annals',
      unit: 'docs/s',
      better: 'larger',
      samples: [(rows / first.insideMs) * 1000],
      note: 'the answer included',
    });
    const sample = async (time: string): Promise<number[][]> => {
      const found: number[][] = [];
      for (const words of asked) {
        await ask(words, time);
        const times: number[] = [];
        for (let run = 0; run < runs; run++) times.push((await ask(words, time)).insideMs);
        found.push(times);
      }
      return found;
    };
    for (let round = 0; round < warmUp; round++) for (const words of asked) await ask(words, 'AS OF CURRENT');
    own.now = await sample('AS OF CURRENT');
    const before = instantText(/"as_of_system":(\d+)/.exec((await ask(asked[0]!, 'AS OF CURRENT')).text)![1]!);
    await ingest(0, Math.floor(rows / 10), (i) => documents[rows - 1 - i]!);
    await ask(asked[0]!, 'AS OF CURRENT');
    own.before = await sample(`AS OF SYSTEM TIME '${before}'`);
    const shape = { unit: 'ms', better: 'smaller', note: 'its processing_time_ms, best 10 and how many match' } as const;
    report.add({ ...shape, measure: measure('search'), product: 'annals', samples: own.now.flat() });
    report.add({ ...shape, measure: measure('search before a tenth changed'), product: 'annals', samples: own.before.flat() });
    report.figure('text.then', geometricMean(own.before.map((times, i) => quotient(times, own.now[i]!))));
  } finally {
    await server.stop();
  }
  await besidePostgres(report, postgres, { documents, asked, own: own.now, measure: measure('search') });
  if (sqlite === null) return;
  const script = documents.map((each, i) => `INSERT INTO docs(id, text) VALUES ('d${i}', '${each}');\n`);
  const { ask: search, seconds } = await sqlite.import(
    `CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, text);\nBEGIN;\n${script.join('')}COMMIT;\n`,
  );
  const peer: number[][] = [];
  for (const words of asked) {
    const match = `docs MATCH '${words.join(' OR ')}'`;
    const best = await search(`SELECT id, bm25(docs) AS score FROM docs WHERE ${match} ORDER BY score LIMIT 10`, runs);
    const count = await search(`SELECT COUNT(*) AS n FROM docs WHERE ${match}`, runs);
    peer.push(best.samples.map((ms, run) => ms + (count.samples[run] ?? 0)));
  }
  report.add({
    measure: measure('search'),
    product: 'SQLite FTS5',
    unit: 'ms',
    better: 'smaller',
    samples: peer.flat(),
    note: 'bm25 and COUNT',
  });
  report.figure('text.build', quotient([seconds * 1000], [firstMs]));
  report.figure('text.fts5', geometricMean(peer.map((times, i) => quotient(times, own.now[i]!))));
}

async function besidePostgres(
  report: BenchContext['report'],
  postgres: BenchContext['postgres'],
  {
    documents,
    asked,
    own,
    measure,
  }: {
    readonly documents: readonly string[];
    readonly asked: readonly (readonly string[])[];
    readonly own: readonly (readonly number[])[];
    readonly measure: string;
  },
): Promise<void> {
  if (postgres === null) return;
  const csv = Buffer.from(documents.map((each, i) => `d${i},${each}\n`).join(''));
  const words = "ALTER TABLE docs ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED";
  const index = `${words}; CREATE INDEX ON docs USING gin (words)`;
  await postgres.prepare('DROP TABLE IF EXISTS docs; CREATE TABLE docs (id text, text text)', 'docs', csv, index);
  const peer: number[][] = [];
  for (const each of asked) {
    const from = `FROM docs, to_tsquery('simple', '${each.join(' | ')}') q WHERE words @@ q`;
    const best = await postgres.timed(`SELECT id, ts_rank(words, q) AS score ${from} ORDER BY score DESC LIMIT 10`, runs);
    const count = await postgres.timed(`SELECT count(*) ${from}`, runs);
    peer.push(best.map((ms, run) => ms + count[run]!));
  }
  const note = 'ts_rank over GIN, and count';
  report.add({ measure, product: 'PostgreSQL', unit: 'ms', better: 'smaller', samples: peer.flat(), note });
  report.figure('text.postgres', geometricMean(peer.map((times, i) => quotient(times, own[i]!))));
}

/** The same documents and questions in every run. */
export class Texts {
  readonly #shares: Float64Array;
  #state = 12_345;

  constructor() {
    this.#shares = new Float64Array(vocabulary);
    let sum = 0;
    for (let i = 0; i < vocabulary; i++) this.#shares[i] = sum += 1 / (i + 1);
  }

  document(): string {
    return Array.from({ length: 8 + Math.floor(this.#next() * 16) }, () => wordOf(this.#drawn())).join(' ');
  }

  /** Words neither so frequent that no one asks for them nor so rare that hardly any text has them. */
  question(words: number): string[] {
    return Array.from({ length: words }, () => wordOf(20 + Math.floor(this.#next() ** 2 * 3_000)));
  }

  #drawn(): number {
    const sought = this.#next() * this.#shares.at(-1)!;
    let [low, high] = [0, vocabulary - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#shares[middle]! < sought) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #next(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 2 ** 32;
  }
}

function wordOf(number: number): string {
  let word = '';
  for (let rest = number + 97; rest > 0; rest = Math.floor(rest / 80))
    word += 'bcdfghklmnprstvz'[rest % 16]! + 'aeiou'[(rest >> 4) % 5]!;
  return word;
}
