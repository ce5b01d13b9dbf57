/** Nearest vectors in the bench's own process, on one thread: every visible vector looked at, and the answer held against all cosines. */
import { rowsOf } from '../../test/harness.ts';
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { quotient, summary } from '../report.ts';

const dims = 128;
/** Two full segments. */
const fullRows = 131_072;
const clusters = 200;
const rounds = 3;
const questionsPerRound = 60;
const warmUp = 20;
const best = 10;

export async function vectors({ report, rows }: BenchContext): Promise<void> {
  const count = Math.min(fullRows, rows);
  const made = new Vectors();
  const store = await AnnalsStore.open();
  try {
    await store.register('Doc', { id: 'string', half: 'integer' }, 'id');
    const kept: Float32Array[] = [];
    await store.ingest('Doc', lines(made, count, kept));
    await check(store, made, kept);
    const shape = {
      measure: `${best} nearest of ${count.toLocaleString('en')} x ${dims}`,
      unit: 'ms',
      better: 'smaller',
    } as const;
    const all = await p95(store, made, '');
    report.add({ ...shape, product: 'annals', samples: all, note: 'p95 of each round, in process' });
    report.figure('vectors.exact', summary(all));
    const half = await p95(store, made, 'WHERE half = 0');
    report.add({ ...shape, product: 'annals, of half of them', samples: half, note: 'p95 of each round, by a condition' });
    report.figure('vectors.half', quotient(half, all));
    await byGraphs(report, store, made, count);
  } finally {
    await store.close();
  }
}

/** The same with consistency eventual: how fast graphs are made and asked, and how many of the nearest they find. */
async function byGraphs(report: BenchContext['report'], store: AnnalsStore, made: Vectors, count: number): Promise<void> {
  const ask = async (vector: Float32Array, consistency: 'strong' | 'eventual'): Promise<string[]> =>
    rowsOf(await store.query(question(vector, ''), 'all', { consistency })).map((row) => String(row['id']));
  const start = performance.now();
  await ask(made.next(), 'eventual');
  await store.nearGraphs();
  const seconds = (performance.now() - start) / 1000;
  let [found, wanted, ms] = [0, 0, 0];
  for (let i = 0; i < questionsPerRound * rounds; i++) {
    const vector = made.next();
    const exact = await ask(vector, 'strong');
    const began = performance.now();
    const near = await ask(vector, 'eventual');
    if (i >= warmUp) ms += performance.now() - began;
    found += near.filter((id) => exact.includes(id)).length;
    wanted += best;
  }
  report.figure('vectors.build', summary([count / seconds]));
  report.figure('vectors.recall', summary([found / wanted]));
  report.figure('vectors.rate', summary([((questionsPerRound * rounds - warmUp) * 1000) / ms]));
}

class Vectors {
  #state = 12_345;
  readonly #centres = Array.from({ length: clusters }, () => Float32Array.from({ length: dims }, () => this.#number()));

  next(): Float32Array {
    const centre = this.#centres[Math.floor((this.#number() + 0.5) * clusters)]!;
    return centre.map((value) => value + this.#number() / 2);
  }

  /** From -0.5 to 0.5. */
  #number(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) / 2 ** 32 - 0.5;
  }
}

function* lines(made: Vectors, count: number, kept: Float32Array[]): Generator<Buffer> {
  for (let first = 0; first < count; first += 1_000) {
    const piece = Array.from({ length: Math.min(1_000, count - first) }, (_, i) => {
      const vector = made.next();
      kept.push(vector);
      return JSON.stringify({ id: `d${first + i}`, half: (first + i) % 2, _emb_x: [...vector] });
    });
    yield Buffer.from(`${piece.join('\n')}\n`);
  }
}

function question(vector: Float32Array, where: string): string {
  return `SELECT * FROM SIMILAR('Doc', _emb_x, '[${vector.join(',')}]') ${where} LIMIT ${best}`;
}

async function check(store: AnnalsStore, made: Vectors, kept: readonly Float32Array[]): Promise<void> {
  const sought = made.next();
  const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  const scores = kept.map((vector) => dot(sought, vector) / Math.sqrt(dot(sought, sought) * dot(vector, vector)));
  const expected = [...scores.keys()].sort((a, b) => scores[b]! - scores[a]!).slice(0, best);
  const found = rowsOf(await store.query(question(sought, ''))).map((row) => String(row['id']));
  const same = found.length === best && found.every((id, i) => id === `d${expected[i]}`);
  if (!same) throw new Error(`nearest are ${expected.map((row) => `d${row}`).join(' ')}, not ${found.join(' ')}`);
}

async function p95(store: AnnalsStore, made: Vectors, where: string): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const times: number[] = [];
    for (let i = 0; i < questionsPerRound + warmUp; i++) {
      const sql = question(made.next(), where);
      const start = performance.now();
      await store.query(sql);
      if (i >= warmUp) times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    samples.push(times[Math.floor(times.length * 0.95)]!);
  }
  return samples;
}
