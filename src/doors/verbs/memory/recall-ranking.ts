/**
 * Which memories answer a query, and in which order: a pure function of the rows that a snapshot shows, the query with its
 * vector, and the recalls on record, so that a recall that was recorded comes out again the same.
 *
 *   rel   how well words and meaning match: `recall-candidates.ts`; 1 without a query
 *   rec   exp(-age / recency_half_life)                        1 where none is given
 *   ret   (1 + 0.2345679 * d / S) ^ -0.5                       1 without stability_days
 *         S = stability_days * (1 + ln(1 + n)), n recalls before, d days since the last one, else since valid_from
 *   score = rel * rec * ret; ties by the later valid_from, then by id
 */
import { z } from 'zod';
import { float } from '../../schemas/exact-numbers.ts';
import { instant } from '../../schemas/instants.ts';
import type { RecalledRow } from '../../../governance/gate-contract.ts';
import { compareText } from '../../../log/values/value.ts';
import { type VerbRow, textOf } from '../verb-rows.ts';
import { confidence, memoryItem, memoryType, sessionId } from './memory-items.ts';
import { type CandidateInput, candidates } from './recall-candidates.ts';

/** A change of anything here that changes a list or a score. */
export const scorerName = 'recall/3';

export const recallInput = z.object({
  query: z.string().min(1).max(10_000).optional().describe('what you want to know, in your own words'),
  q: z.string().min(1).max(10_000).optional().describe('the same as query'),
  top_k: z.int().min(1).max(800).default(10).describe('memories at most'),
  as_of: instant.optional().describe('as it was believed, and true, at this instant: ISO-8601 in UTC or nanoseconds'),
  class_filter: z
    .union([z.string(), z.array(z.string()).min(1).max(100)])
    .optional()
    .describe('memory_class, one or several'),
  type: memoryType,
  session_id: sessionId.optional().describe('of this session only'),
  min_confidence: confidence.optional().describe('leave out what is less sure'),
  recency_half_life_secs: float(z.number().positive())
    .optional()
    .describe('newer memories count more: the score falls to 1/e in this time'),
  budget_tokens: z.int().min(0).optional().describe('the contents returned cost at most this many tokens'),
  stability_days: float(z.number().positive())
    .optional()
    .describe('memories fade in this time, less so the more often they are recalled'),
  cancel_threshold: float(z.number()).optional().describe('stop looking at the first memory that scores above this'),
  detailed: z.boolean().default(false).describe('say what the recall cost and how each score came about'),
});

export type RecallInput = z.output<typeof recallInput>;

export interface RankingInput extends CandidateInput {
  /** Tokens of a text; asked for only where there is a budget, or a detailed answer. */
  readonly tokens: ((text: string) => number) | null;
}

export interface Ranked {
  readonly key: string;
  readonly row: VerbRow;
  readonly score: number;
  readonly components: { readonly rel: number; readonly rec: number; readonly ret: number; readonly n: number };
}

export interface Ranking {
  readonly memories: readonly Ranked[];
  /** Tokens of their contents; null where they were not counted. */
  readonly tokens: number | null;
  readonly cancelled: boolean;
}

/** `at`: instant of both axes. */
export async function rank(input: RecallInput, at: bigint, parts: RankingInput): Promise<Ranking> {
  const recallCandidates = await candidates({ ...input, query: input.query ?? input.q }, at, parts);
  const { snapshot } = parts;
  const named: RecalledRow[] = recallCandidates.map(({ row }) => ({
    key: String(row['_pk']),
    path: textOf(row['namespace_path']),
  }));
  const recalled = input.stability_days === undefined ? null : snapshot.recallsOf(input.type, named, at);
  const scored = recallCandidates.map(({ row, rel }, i): Ranked => {
    const { count: n, last } = recalled?.[i] ?? { count: 0, last: null };
    const validFrom = row['valid_from'] as bigint;
    const rec =
      input.recency_half_life_secs === undefined ? 1 : Math.exp(-secondsBetween(validFrom, at) / input.recency_half_life_secs);
    const ret =
      input.stability_days === undefined
        ? 1
        : retention(input.stability_days, n, secondsBetween(last ?? validFrom, at) / daySecs);
    return { key: named[i]!.key, row, score: rel * rec * ret, components: { rel, rec, ret, n } };
  });
  const { seen, cancelled } = scanUntil(scored, input.cancel_threshold);
  return { ...withinBudget(seen.sort(byScore).slice(0, input.top_k), input, parts), cancelled };
}

/** Rows in the order of their highest possible score, the match, until one is above the threshold, that one included. */
function scanUntil(
  rows: readonly Ranked[],
  threshold: number | undefined,
): { readonly seen: Ranked[]; readonly cancelled: boolean } {
  if (threshold === undefined) return { seen: [...rows], cancelled: false };
  const ordered = [...rows].sort((a, b) => b.components.rel - a.components.rel || byScore(a, b));
  const at = ordered.findIndex(({ score }) => score > threshold);
  return at < 0 ? { seen: ordered, cancelled: false } : { seen: ordered.slice(0, at + 1), cancelled: true };
}

/** A strict prefix: a larger budget gives these and maybe more, never others. */
function withinBudget(ranked: readonly Ranked[], input: RecallInput, { tokens }: RankingInput): Omit<Ranking, 'cancelled'> {
  if (tokens === null) return { memories: ranked, tokens: null };
  const most = input.budget_tokens ?? Infinity;
  let sum = 0;
  let taken = 0;
  for (const { row } of ranked) {
    const cost = tokens(contentOf(row) ?? '');
    if (sum + cost > most) break;
    sum += cost;
    taken++;
  }
  return { memories: ranked.slice(0, taken), tokens: sum };
}

export function contentOf(row: VerbRow): string | null {
  return textOf(row['content']);
}

const daySecs = 86_400;

/** Never below 0: what becomes true later is as fresh as can be. */
function secondsBetween(from: bigint, to: bigint): number {
  return to <= from ? 0 : Number(to - from) / 1e9;
}

/** The power curve of FSRS: 0.9 once `stability` days are over. */
function retention(stabilityDays: number, recalls: number, days: number): number {
  return (1 + (0.2345679 * days) / (stabilityDays * (1 + Math.log(1 + recalls)))) ** -0.5;
}

function byScore(a: Ranked, b: Ranked): number {
  const [from, other] = [a.row['valid_from'] as bigint, b.row['valid_from'] as bigint];
  return b.score - a.score || (other > from ? 1 : other < from ? -1 : compareText(a.key, b.key));
}

export const isMemoryItem = (type: string): boolean => type === memoryItem;
