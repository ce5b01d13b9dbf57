/** Definitions and versions of rules. Pure vocabulary: every room may name it. */
import { ServiceError } from '../../errors.ts';

/** A version, and the nanosecond of the entry that took its place or ended it; null while it stands. */
export interface RuleVersion {
  readonly record: RuleRecord;
  readonly until: bigint | null;
}

export const severities = ['informational', 'low', 'medium', 'high', 'critical'] as const;
export type Severity = (typeof severities)[number];

/** How `enrich` chooses among the values of several rows of one thing. */
export type Keep = 'newest' | 'longest' | 'most_frequent' | { readonly source: string };

/** Chooses the value of a field where rows are fused. */
export interface EnrichDefinition {
  readonly kind: 'enrich';
  readonly name: string;
  readonly object_type: string;
  readonly field: string;
  /** `newest`, `longest`, `most_frequent` or `source:<x>`. */
  readonly keep: string;
}

/** Raises alerts. */
export interface DetectionDefinition {
  readonly kind: 'detection';
  readonly name: string;
  /** `sql`: a SELECT, or a bare condition on `object_type`; `sigma`: a rule of that language, as JSON. */
  readonly language: 'sql' | 'sigma';
  readonly condition: string;
  readonly object_type: string | null;
  readonly severity: Severity;
  readonly enabled: boolean;
  /** Columns: matches with the same values, within the window, count up one alert. Empty: one alert for each match. */
  readonly dedupe_by: readonly string[];
  readonly window_secs: number;
  /** How often a condition is judged that no single row decides. */
  readonly interval_secs: number;
  /** The purpose that its runs state. */
  readonly purpose: string | null;
}

export type RuleDefinition = EnrichDefinition | DetectionDefinition;

/** The author's credential: `governance/absent-caller.ts` makes a caller of it. */
export interface RuleAuthor {
  readonly principal: string;
  readonly credential: 'token' | 'shared-secret' | 'admin' | 'operator' | 'none';
  /** Id of the token; null for credentials that are none. */
  readonly token: string | null;
}

/** One version of a rule. */
export interface RuleRecord {
  readonly id: string;
  /** From 1. */
  readonly version: number;
  readonly definition: RuleDefinition;
  readonly author: RuleAuthor;
  /** Organisation path of its author. */
  readonly owner: string | null;
  readonly branch: string;
  /** Position of its entry, and that of the entry of version 1: rules are in the order of that. */
  readonly position: number;
  readonly registered: number;
  /** Nanosecond of `position`. */
  readonly time: bigint;
}

/** Null for a text that names no choice. */
export function parseKeep(keepText: string): Keep | null {
  if (keepText === 'newest' || keepText === 'longest' || keepText === 'most_frequent') return keepText;
  const keepSource = /^source:(.+)$/su.exec(keepText)?.[1];
  return keepSource === undefined ? null : { source: keepSource };
}

/** Throws REL_INVALID for a definition that no rule can have. That its condition can be run is seen to elsewhere. */
export function checkDefinition(ruleDefinition: RuleDefinition): void {
  const refuseRule = (why: string): never => {
    throw new ServiceError('REL_INVALID', why);
  };
  if (ruleDefinition.kind === 'enrich') {
    if (parseKeep(ruleDefinition.keep) === null)
      refuseRule('keep is newest, longest, most_frequent or source:<the name of a source>');
    return;
  }
  const conditionCharsMax = ruleDefinition.language === 'sigma' ? sigmaMax : conditionMax;
  if (ruleDefinition.condition.length === 0 || ruleDefinition.condition.length > conditionCharsMax)
    refuseRule(`the condition of a rule has 1 to ${conditionCharsMax} characters`);
  if (ruleDefinition.dedupe_by.length > dedupeMax) refuseRule(`dedupe_by names at most ${dedupeMax} columns`);
  for (const [secondsName, ruleSeconds] of [
    ['window_secs', ruleDefinition.window_secs],
    ['interval_secs', ruleDefinition.interval_secs],
  ] as const) {
    if (!Number.isInteger(ruleSeconds) || ruleSeconds < 1 || ruleSeconds > 31_536_000)
      refuseRule(`${secondsName} is 1 to 31536000`);
  }
}

/** A condition is parsed and bound in one turn. */
const conditionMax = 16_384;
/** Lists of hashes and drivers are long. */
const sigmaMax = 262_144;
const dedupeMax = 16;
