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
import { float } from '../../shared/exact-numbers.ts';
import { instant } from '../../shared/instants.ts';
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

/** `recallInstant`: instant of both axes. */
export async function rank(rankInput: RecallInput, recallInstant: bigint, rankingInput: RankingInput): Promise<Ranking> {
  const recallCandidates = await candidates({ ...rankInput, query: rankInput.query ?? rankInput.q }, recallInstant, rankingInput);
  const { snapshot: recallSnapshot } = rankingInput;
  const recalledRows: RecalledRow[] = recallCandidates.map(({ row: memoryRow }) => ({
    key: String(memoryRow['_pk']),
    path: textOf(memoryRow['namespace_path']),
  }));
  const recallFigures =
    rankInput.stability_days === undefined ? null : recallSnapshot.recallsOf(rankInput.type, recalledRows, recallInstant);
  const scoredMemories = recallCandidates.map(({ row: memoryRow, rel: relevance }, i): Ranked => {
    const { count: recallCount, last: lastRecall } = recallFigures?.[i] ?? { count: 0, last: null };
    const memoryValidFrom = memoryRow['valid_from'] as bigint;
    const recency =
      rankInput.recency_half_life_secs === undefined
        ? 1
        : Math.exp(-secondsBetween(memoryValidFrom, recallInstant) / rankInput.recency_half_life_secs);
    const retained =
      rankInput.stability_days === undefined
        ? 1
        : memoryRetention(
            rankInput.stability_days,
            recallCount,
            secondsBetween(lastRecall ?? memoryValidFrom, recallInstant) / retentionDaySecs,
          );
    return {
      key: recalledRows[i]!.key,
      row: memoryRow,
      score: relevance * recency * retained,
      components: { rel: relevance, rec: recency, ret: retained, n: recallCount },
    };
  });
  const { seen: memoriesSeen, cancelled: isCancelled } = scanUntilThreshold(scoredMemories, rankInput.cancel_threshold);
  return {
    ...withinTokenBudget(memoriesSeen.sort(compareRecallScores).slice(0, rankInput.top_k), rankInput, rankingInput),
    cancelled: isCancelled,
  };
}

/** Rows in the order of their highest possible score, the match, until one is above the threshold, that one included. */
function scanUntilThreshold(
  scoredMemories: readonly Ranked[],
  cancelThreshold: number | undefined,
): { readonly seen: Ranked[]; readonly cancelled: boolean } {
  if (cancelThreshold === undefined) return { seen: [...scoredMemories], cancelled: false };
  const memoriesByRelevance = [...scoredMemories].sort(
    (memoryA, memoryB) => memoryB.components.rel - memoryA.components.rel || compareRecallScores(memoryA, memoryB),
  );
  const thresholdIndex = memoriesByRelevance.findIndex(({ score: memoryScore }) => memoryScore > cancelThreshold);
  return thresholdIndex < 0
    ? { seen: memoriesByRelevance, cancelled: false }
    : { seen: memoriesByRelevance.slice(0, thresholdIndex + 1), cancelled: true };
}

/** A strict prefix: a larger budget gives these and maybe more, never others. */
function withinTokenBudget(
  rankedMemories: readonly Ranked[],
  rankInput: RecallInput,
  { tokens: countTokens }: RankingInput,
): Omit<Ranking, 'cancelled'> {
  if (countTokens === null) return { memories: rankedMemories, tokens: null };
  const tokenBudget = rankInput.budget_tokens ?? Infinity;
  let tokenSum = 0;
  let memoriesTaken = 0;
  for (const { row: memoryRow } of rankedMemories) {
    const memoryTokens = countTokens(contentOf(memoryRow) ?? '');
    if (tokenSum + memoryTokens > tokenBudget) break;
    tokenSum += memoryTokens;
    memoriesTaken++;
  }
  return { memories: rankedMemories.slice(0, memoriesTaken), tokens: tokenSum };
}

export function contentOf(memoryRow: VerbRow): string | null {
  return textOf(memoryRow['content']);
}

const retentionDaySecs = 86_400;

/** Never below 0: what becomes true later is as fresh as can be. */
function secondsBetween(earlierInstant: bigint, laterInstant: bigint): number {
  return laterInstant <= earlierInstant ? 0 : Number(laterInstant - earlierInstant) / 1e9;
}

/** The power curve of FSRS: 0.9 once `stability` days are over. */
function memoryRetention(stabilityDays: number, recallCount: number, daysSinceRecall: number): number {
  return (1 + (0.2345679 * daysSinceRecall) / (stabilityDays * (1 + Math.log(1 + recallCount)))) ** -0.5;
}

function compareRecallScores(memoryA: Ranked, memoryB: Ranked): number {
  const [validFromA, validFromB] = [memoryA.row['valid_from'] as bigint, memoryB.row['valid_from'] as bigint];
  return (
    memoryB.score - memoryA.score ||
    (validFromB > validFromA ? 1 : validFromB < validFromA ? -1 : compareText(memoryA.key, memoryB.key))
  );
}

export const isMemoryItem = (memoryTypeName: string): boolean => memoryTypeName === memoryItem;
