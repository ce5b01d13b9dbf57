/** A search in any shape and from any door. Source: specification, "Search". */
import type { MatchMode, TypoTolerance } from '../../governance/text-search/text-query.ts';

export interface SearchQuery {
  readonly type: string;
  /** Null: rows in the order of their arrival. */
  readonly ranking: SearchRanking | null;
  readonly where: SearchCondition | null;
  /** Columns of the answer; null: all. */
  readonly attributes: readonly string[] | null;
  /** Labels and rank expressions, as they stand behind COMPUTE. */
  readonly compute: readonly { readonly label: string; readonly expression: string }[];
  readonly facets: readonly string[];
  readonly limit: number;
  /** Null: as the tenant configures, or else the store's preset. */
  readonly typo: TypoTolerance | null;
  /** `strong` where this is absent. */
  readonly consistency?: 'strong' | 'eventual';
  /** Cursor of an earlier page. */
  readonly cursor: string | null;
}

export type SearchRanking =
  | {
      readonly by: 'words';
      readonly text: string;
      readonly mode: MatchMode;
      /** Null: every visible text column. */
      readonly columns: readonly string[] | null;
      /** By column: the weight of its words relative to the other columns'. */
      readonly weights: Readonly<Record<string, number>>;
      /** By column: the factor of the score where it holds one of the words; of several the highest. */
      readonly boosts: Readonly<Record<string, number>>;
    }
  /** Ranks by similarity to a text. */
  | { readonly by: 'meaning'; readonly text: string }
  /** Ranks by the cosine to a vector. */
  | { readonly by: 'vector'; readonly vector: readonly number[] };

export const filterOps = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'in', 'between'] as const;

export type FilterValue = string | number | bigint | boolean | null;

export type SearchCondition =
  | { readonly all: readonly SearchCondition[] }
  | { readonly any: readonly SearchCondition[] }
  | {
      readonly field: string;
      readonly op: (typeof filterOps)[number];
      /** A list with `in`, the two ends with `between`. */
      readonly value: FilterValue | readonly FilterValue[];
    };

/** Questions of one snapshot. */
export interface SearchRequest {
  /** The kind of search in the access record. */
  readonly name: 'search' | 'batch search' | 'multi-search';
  readonly queries: readonly SearchQuery[];
  /** Reciprocal-rank fusion of their answers. */
  readonly fuse: { readonly constant: number; readonly limit: number } | null;
  /** Instants in nanoseconds, of valid time and of system time; null: now. */
  readonly asOf: bigint | null;
  readonly asOfSystem: bigint | null;
}
