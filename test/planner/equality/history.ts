/**
 * A history of any size, the same for the same number of rows: three organisations, five columns, new keys and old ones,
 * corrections of what was true earlier, deletions, and in its middle the same keys in batch after batch.
 */
import { parseInstant } from '../../../src/log/values/timestamp.ts';

export const paths = ['acme', 'acme/eu', 'globex'] as const;
export const regions = 40;
const SECOND = 1_000_000_000n;
const begin = parseInstant('2024-01-01');

export interface Batch {
  readonly path: (typeof paths)[number];
  /** Of the clock, when it is written. */
  readonly instant: bigint;
  readonly lines: readonly string[];
  /** Keys that are deleted after the rows were written. */
  readonly deleted: readonly string[];
}

export interface History {
  readonly rows: number;
  readonly batchRows: number;
}

const batchesOf = ({ rows, batchRows }: History): number => Math.ceil(rows / batchRows);

/** So far into the history, from 0 to 1; a little later than the write of then. */
export function instantAt(history: History, share: number): bigint {
  return begin + BigInt(Math.floor(batchesOf(history) * share)) * SECOND + SECOND / 2n;
}

export function* batches(history: History): Generator<Batch> {
  const { rows, batchRows } = history;
  const count = batchesOf(history);
  const labels = Math.min(200_000, Math.ceil(rows * 0.9));
  const runs = Math.max(8, Math.floor(count / 24));
  const known = [0, 0, 0];
  const random = generator(rows);
  const below = (limit: number): number => random() % limit;
  for (let number = 0; number < count; number++) {
    // In runs: most segments are then of one organisation, which kernels ask for, and some of two.
    const at = Math.floor(number / runs) % paths.length;
    const instant = begin + BigInt(number) * SECOND;
    const written = new Set<string>();
    const lines: string[] = [];
    const isHot = number > count * 0.4 && number < count * 0.6;
    for (let i = 0; i < Math.min(batchRows, rows - number * batchRows); i++) {
      const again = known[at]! > 0 && below(100) < 15 ? below(known[at]!) : -1;
      let key = isHot ? `h${i}` : `k${String(again < 0 ? known[at]!++ : again).padStart(8, '0')}`;
      if (written.has(key)) key = `k${String(known[at]!++).padStart(8, '0')}`;
      written.add(key);
      const qty = below(9) === 0 ? 'null' : below(500);
      // Sums of such numbers depend on their order.
      const amount = (below(2_000_000) - 400_000) / 7;
      const since = again >= 0 && below(4) === 0 ? `,"valid_from":"${iso(instant - BigInt(below(90)) * SECOND)}"` : '';
      const region = `r${(below(regions) * below(regions)) % regions}`;
      lines.push(
        `{"id":"${key}","region":"${region}","amount":${amount},"qty":${qty},"label":"label ${below(labels)}","at":"${iso(instant + BigInt(i))}"${since}}\n`,
      );
    }
    const deleted = number % 7 === 6 ? [...written].filter(() => below(20) === 0) : [];
    yield { path: paths[at]!, instant, lines, deleted };
  }
}

function iso(instant: bigint): string {
  const fraction = String(((instant % SECOND) + SECOND) % SECOND).padStart(9, '0');
  return `${new Date(Number(instant / 1_000_000n)).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** Xorshift. */
function generator(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
