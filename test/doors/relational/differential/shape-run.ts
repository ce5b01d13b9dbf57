/** So many random statements of each shape, put to both servers: whether both answer, and the same rows. */
import { type RawClient, simple } from '../raw-client.ts';
import { outcomes, randomFrom } from './ask.ts';
import type { Outcome } from './explained.ts';
import { type Draw, type Shape, shapeGround, shapes } from './shapes.ts';

const together = 100;

export async function shapeDifferences(
  ours: RawClient,
  theirs: RawClient,
  { count, seed }: { readonly count: number; readonly seed: number },
  faults: Map<string, { count: number; example: string }>,
): Promise<void> {
  if (count === 0) return;
  for (const client of [ours, theirs]) for (const ground of shapeGround) await client.ask(simple(ground));
  for (const [name, make] of Object.entries(shapes)) {
    const draw = drawFrom(randomFrom(seed));
    let answered = 0;
    for (let done = 0; done < count; done += together) {
      const drawn = Array.from({ length: Math.min(together, count - done) }, () => make(draw));
      const cases = drawn.map(({ sql }) => ({ sql, parameters: [], isResultBinary: false }));
      const [mine, right] = await Promise.all([outcomes(ours, cases), outcomes(theirs, cases)]);
      drawn.forEach((shape, i) => {
        if (right[i]!.error === null) answered++;
        const [a, b] = [shownOf(shape, mine[i]!), shownOf(shape, right[i]!)];
        if (a === b || isExplained(shape, a, b)) return;
        const key = `${name}: ${mine[i]!.error ?? 'rows'} for ${right[i]!.error ?? 'rows'}`;
        const known = faults.get(key);
        const example = `${shape.sql}\n      ${a}\n      ${b}`;
        faults.set(key, {
          count: (known?.count ?? 0) + 1,
          example: known === undefined || shape.sql.length < known.example.indexOf('\n') ? example : known.example,
        });
      });
    }
    console.log(`${name}: ${count} statements, ${answered} of them answered by PostgreSQL`);
  }
}

function drawFrom(random: () => number): Draw {
  const below = (count: number): number => Math.floor(random() * count);
  return { below, of: (...values) => values[below(values.length)]!, chance: (percent) => below(100) < percent };
}

/** Doubles stand for decimals, so numbers are compared by fourteen digits. */
function shownOf({ ordered }: Shape, { error, rows, columns }: Outcome): string {
  if (error !== null) return error;
  const lines = rows.map((row) => row.map((cell, c) => (cell === null ? 'NULL' : cellOf(cell, columns[c]!))).join(' | '));
  return (ordered ? lines : lines.toSorted()).join('; ');
}

function cellOf(cell: string, family: string): string {
  if (family === 'json') return JSON.stringify(sorted(JSON.parse(cell)));
  if (family === 'number' || family === 'integer') return String(Number(Number(cell).toPrecision(14)));
  return cell;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

/** Differences that are meant: a scalar of jsonb has no first element here, and a series without a step is none of no rows. */
function isExplained({ sql }: Shape, ours: string, theirs: string): boolean {
  const isState = (answer: string): boolean => /^[0-9A-Z]{5}$/.test(answer);
  if (/->>? -?\d/.test(sql)) return !isState(ours) && !isState(theirs);
  return /INTERVAL '0 days'\).* LIMIT 0$/.test(sql) && ours === '22023' && theirs === '';
}
