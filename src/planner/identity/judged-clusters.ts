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
  const newestByPair = new Map<string, Judgement>();
  for (const pairJudgement of judgements) {
    const pairKey = [rowId(pairJudgement.a), rowId(pairJudgement.b)].sort().join('\u0001');
    newestByPair.delete(pairKey);
    newestByPair.set(pairKey, pairJudgement);
  }
  return [...newestByPair.values()];
}

/** Groups of rows that grow together unless a veto stands between them. Rows go by id. */
export class Clusters {
  readonly #clusterMembers = new Map<string, Set<string>>();
  /** By row, the rows that it is kept apart from, with what says so. */
  readonly #vetoesByRow = new Map<string, Map<string, Judgement>>();

  constructor(judgements: readonly Judgement[]) {
    for (const judgedPair of judgements) {
      if (judgedPair.judgement === 'positive') continue;
      const [a, b] = [rowId(judgedPair.a), rowId(judgedPair.b)];
      for (const [vetoedRow, vetoedAgainst] of [
        [a, b],
        [b, a],
      ] as const) {
        let vetoesOfRow = this.#vetoesByRow.get(vetoedRow);
        if (vetoesOfRow === undefined) this.#vetoesByRow.set(vetoedRow, (vetoesOfRow = new Map()));
        vetoesOfRow.set(vetoedAgainst, judgedPair);
      }
    }
    for (const each of judgements) if (each.judgement === 'positive') this.join(rowId(each.a), rowId(each.b));
  }

  /** Ids of the row's group, itself among them. */
  membersOf(id: string): ReadonlySet<string> {
    return this.#clusterMembers.get(id) ?? new Set([id]);
  }

  /** Joins the groups of two rows; the judgement that forbids it, where one does. */
  join(a: string, b: string): Judgement | null {
    const [leftCluster, rightCluster] = [this.membersOf(a), this.membersOf(b)];
    if (leftCluster.has(b)) return null;
    const clusterVeto = this.vetoBetween(leftCluster, rightCluster);
    if (clusterVeto !== null) return clusterVeto;
    const joinedCluster = new Set([...leftCluster, ...rightCluster]);
    for (const memberId of joinedCluster) this.#clusterMembers.set(memberId, joinedCluster);
    return null;
  }

  vetoBetween(left: ReadonlySet<string>, right: ReadonlySet<string>): Judgement | null {
    for (const memberId of left) {
      for (const [vetoedRow, judgement] of this.#vetoesByRow.get(memberId) ?? []) if (right.has(vetoedRow)) return judgement;
    }
    return null;
  }
}
