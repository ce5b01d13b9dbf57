/** The results of a search over the rows of a block: which rows match, and their scores. */
export interface BlockMatches {
  /** By match: a bit per row; null: only the rows of the single match are listed, in `scores`. */
  readonly matches: readonly Int32Array[] | null;
  /** Scores by row; or only of the listed rows. */
  scores: Float64Array | { readonly rows: Int32Array; readonly scores: Float64Array } | null;
}

export const noScores = new Float64Array(0);
export const noMatches = { matches: null, scores: { rows: new Int32Array(0), scores: noScores } } as const satisfies BlockMatches;

/** 1 where a row matches. */
export function matchOf({ matches, scores }: BlockMatches, match: number, blockRow: number): number {
  if (matches !== null) return (matches[match]![blockRow >>> 5]! >>> (blockRow & 31)) & 1;
  return scores !== null && !(scores instanceof Float64Array) && indexOfRow(scores.rows, blockRow) >= 0 ? 1 : 0;
}

export function scoreOf({ scores }: BlockMatches, blockRow: number): number {
  if (scores === null || scores instanceof Float64Array) return scores?.[blockRow] ?? 0;
  const scoreIndex = indexOfRow(scores.rows, blockRow);
  return scoreIndex < 0 ? 0 : scores.scores[scoreIndex]!;
}

/** Place of a row among these, which rise; -1 where it is none of them. */
function indexOfRow(rows: Int32Array, row: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]! < row) low = middle + 1;
    else high = middle;
  }
  return rows[low] === row ? low : -1;
}
