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
      if (name === 'MERGE') for (const client of [ours, theirs]) await client.ask(simple('DELETE FROM target'));
      const cases = drawn.map(({ sql }) => ({ sql, parameters: [], isResultBinary: false }));
      const [mine, right] = await Promise.all([outcomes(ours, cases), outcomes(theirs, cases)]);
      // Where one of them wrote what the other refused, their tables are no longer the same.
      let isParted = false;
      drawn.forEach((shape, i) => {
        if (isParted) return;
        if (right[i]!.error === null) answered++;
        const [a, b] = [shownOf(shape, mine[i]!), shownOf(shape, right[i]!)];
        if (a === b) return;
        isParted = shape.sql.startsWith('MERGE') && (a === 'nothing') !== (b === 'nothing');
        if (isExplained(shape, a, b)) return;
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
  // A part of json as a text stays as it was written.
  if (family === 'json' || /^[[{].*[\]}]$/.test(cell)) return JSON.stringify(sorted(JSON.parse(cell)));
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

/**
 * Differences that are meant: a scalar of jsonb has no first element here, a series without a step is none of no rows, of two
 * mistakes of a MERGE another one comes first, and a key that a MERGE deletes is not free for a row that it inserts, whatever the
 * order of its rows.
 */
function isExplained({ sql }: Shape, ours: string, theirs: string): boolean {
  if (sql.startsWith('MERGE'))
    return mistakes.has(ours) && (mistakes.has(theirs) || (ours === '23505' && sql.includes('DELETE')));
  if (/->>? -?\d/.test(sql)) return !ours.startsWith('42');
  return /INTERVAL '0 days'\).* LIMIT 0$/.test(sql) && ours === '22023' && theirs === '';
}

const mistakes: ReadonlySet<string> = new Set(['21000', '23502', '23505']);
