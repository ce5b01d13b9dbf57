/** Rules and correlations as they are read, before they are compiled. */
import type { Condition } from './sigma-condition.ts';

export const levels = ['informational', 'low', 'medium', 'high', 'critical'] as const;
export type Level = (typeof levels)[number];

/** In lower case. A row that has one of these fields must fit; one without is judged all the same. */
export interface LogSource {
  readonly product: string | null;
  readonly category: string | null;
  readonly service: string | null;
}

/** Fields of all documents. */
export interface SigmaHead {
  readonly id: string | null;
  /** By which correlations refer to it. */
  readonly name: string | null;
  readonly title: string;
  readonly level: Level | null;
}

export interface SigmaRule extends SigmaHead {
  readonly kind: 'rule';
  readonly logSource: LogSource;
  readonly condition: Condition;
}

export const correlationTypes = ['event_count', 'value_count', 'temporal', 'temporal_ordered'] as const;
export type CorrelationType = (typeof correlationTypes)[number];

export type Bound = 'gt' | 'gte' | 'lt' | 'lte' | 'eq' | 'neq';

export interface SigmaCorrelation extends SigmaHead {
  readonly kind: 'correlation';
  readonly type: CorrelationType;
  /** Ids or names of rules and correlations. */
  readonly rules: readonly string[];
  /** Fields or aliases, all of which a row must have. */
  readonly groupBy: readonly string[];
  /** By alias, then by the reference to a rule: the field of its rows. */
  readonly aliases: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly timespanNs: bigint;
  /** All of them must hold. */
  readonly bounds: readonly { readonly bound: Bound; readonly value: number }[];
  /** Whose different values are counted; null except for value_count. */
  readonly field: string | null;
  /** Whether the rules that it refers to raise matches of their own. */
  readonly generate: boolean;
}

export type SigmaDocument = SigmaRule | SigmaCorrelation;
