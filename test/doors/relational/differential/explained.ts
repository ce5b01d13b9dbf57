/** Differences from PostgreSQL that are meant, each with its reason. What none of them explains is a fault. */
import type { Case } from './cases.ts';

export interface Outcome {
  /** SQLSTATE, or null. */
  readonly error: string | null;
  /** Family of the type of each column. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
}

interface Explanation {
  readonly reason: string;
  holds(asked: Case, ours: Outcome, theirs: Outcome): boolean;
}

const typeOf = ({ parameters: [first] }: Case): string => first!.type;
const isStated = ({ parameters: [first] }: Case): boolean => first!.isStated;
const areRows = (ours: Outcome, theirs: Outcome): boolean => ours.error === null && theirs.error === null;

/** The same rows, where cells are compared by `same`. */
function sameRows(ours: Outcome, theirs: Outcome, same: (a: string, b: string) => boolean): boolean {
  return (
    areRows(ours, theirs) &&
    ours.rows.length === theirs.rows.length &&
    ours.rows.every((row, r) =>
      row.every((cell, c) => {
        const other = theirs.rows[r]![c]!;
        return cell === null || other === null ? cell === other : same(cell, other);
      }),
    )
  );
}

const isClose = (a: string, b: string): boolean => Math.abs(Number(a) - Number(b)) <= 1e-12 * Math.max(1, Math.abs(Number(b)));

export const explanations: readonly Explanation[] = [
  { reason: 'bytea is not there', holds: (asked, ours) => typeOf(asked) === 'bytea' && ours.error === '0A000' },
  {
    reason: 'a value without a type is text beside json in a set operation',
    holds: (asked, ours) => typeOf(asked) === 'json' && !isStated(asked) && asked.sql.includes('UNION') && ours.error === '42804',
  },
  {
    reason: 'json is compared as its text',
    holds: (asked, ours, theirs) => typeOf(asked) === 'json' && theirs.error === '42883' && ours.error === null,
  },
  {
    reason: 'what Postgres can not decide of a value without a type is text here, or of the type of what it stands beside',
    holds: (asked, ours, theirs) =>
      !isStated(asked) && (theirs.error === '42725' || theirs.error === '42P18') && ours.error === null,
  },
  {
    reason: 'a sum of integers is an exact integer, or out of range; it is a numeric there',
    holds: ({ sql }, ours, theirs) =>
      sql.includes('SUM(n') &&
      ours.columns[0] === 'integer' &&
      theirs.columns[0] === 'number' &&
      sameRows(ours, theirs, Object.is),
  },
  {
    reason: 'doubles stand for decimals: their last digit, and minus zero',
    holds: (asked, ours, theirs) =>
      typeOf(asked) === 'numeric' && ours.columns.join() === theirs.columns.join() && sameRows(ours, theirs, isClose),
  },
  {
    reason: 'a day that an aggregate or a query in an expression yields is shown as the instant that begins it',
    holds: ({ sql }, ours, theirs) =>
      /MIN\(|\(SELECT/.test(sql) &&
      ours.columns[0] === 'instant' &&
      theirs.columns[0] === 'date' &&
      sameRows(ours, theirs, (a, b) => a === `${b} 00:00:00`),
  },
  {
    reason: '% takes numbers of both kinds',
    holds: ({ sql }, ours, theirs) => sql.includes('%') && theirs.error === '42883' && ours.error === null,
  },
  {
    reason: 'integers have 64 bits: what stands beside a small one does, too',
    holds: ({ sql }, ours, theirs) => sql.includes('$1 + 1') && theirs.error === '22003' && ours.error === null,
  },
  {
    reason: 'a timestamp is an instant of UTC, and says so as text',
    holds: (asked, ours, theirs) =>
      typeOf(asked) === 'timestamp' && asked.sql.includes('::text') && sameRows(ours, theirs, (a, b) => a === `${b}+00`),
  },
  {
    reason: 'a text with a point is no integer, however large it would be',
    holds: (asked, ours, theirs) =>
      !isStated(asked) &&
      asked.parameters.some(({ text }) => text?.includes('.')) &&
      ours.error === '22P02' &&
      theirs.error === '22003',
  },
];

/** The reason of a difference; null: there is none. */
export function explained(asked: Case, ours: Outcome, theirs: Outcome): string | null {
  return explanations.find(({ holds }) => holds(asked, ours, theirs))?.reason ?? null;
}
