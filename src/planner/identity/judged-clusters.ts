/**
 * Rows as judgements join and part them, each pair by its newest one: rows that are one thing are joined in the order in which that
 * was judged, and a judgement that would bring together two rows that were judged to be two joins nothing. Pure.
 */
import type { Judgement } from '../../projections/access-paths.ts';
import type { NamedRow } from './named-rows.ts';

/** No key holds a NUL. */
export function rowId({ type, key }: NamedRow): string {
  return `${type}\u0000${key}`;
}

/** The newest judgement of each pair, in the order in which these were made. */
export function newestOfPairs(judgements: readonly Judgement[]): readonly Judgement[] {
  const newest = new Map<string, Judgement>();
  for (const each of judgements) {
    const pair = [rowId(each.a), rowId(each.b)].sort().join('\u0001');
    newest.delete(pair);
    newest.set(pair, each);
  }
  return [...newest.values()];
}

/** Groups of rows that grow together unless a veto stands between them. Rows go by id. */
export class Clusters {
  readonly #members = new Map<string, Set<string>>();
  /** By row, the rows that it is kept apart from, with what says so. */
  readonly #vetoes = new Map<string, Map<string, Judgement>>();

  constructor(judgements: readonly Judgement[]) {
    for (const each of judgements) {
      if (each.judgement === 'positive') continue;
      const [a, b] = [rowId(each.a), rowId(each.b)];
      for (const [one, other] of [
        [a, b],
        [b, a],
      ] as const) {
        let known = this.#vetoes.get(one);
        if (known === undefined) this.#vetoes.set(one, (known = new Map()));
        known.set(other, each);
      }
    }
    for (const each of judgements) if (each.judgement === 'positive') this.join(rowId(each.a), rowId(each.b));
  }

  /** Ids of the row's group, itself among them. */
  membersOf(id: string): ReadonlySet<string> {
    return this.#members.get(id) ?? new Set([id]);
  }

  /** Joins the groups of two rows; the judgement that forbids it, where one does. */
  join(a: string, b: string): Judgement | null {
    const [left, right] = [this.membersOf(a), this.membersOf(b)];
    if (left.has(b)) return null;
    const veto = this.vetoBetween(left, right);
    if (veto !== null) return veto;
    const joined = new Set([...left, ...right]);
    for (const each of joined) this.#members.set(each, joined);
    return null;
  }

  vetoBetween(left: ReadonlySet<string>, right: ReadonlySet<string>): Judgement | null {
    for (const each of left) {
      for (const [other, judgement] of this.#vetoes.get(each) ?? []) if (right.has(other)) return judgement;
    }
    return null;
  }
}
