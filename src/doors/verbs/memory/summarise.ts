/**
 * summarise, and episodes: summaries of a session or a topic. A summary is made of sentences of its sources, the ones that share
 * most with all others (TextRank) and are newest, in the order in which they were said; it is a memory that names every source.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { addHashed, cosineOf, hashedDims } from '../../../planner/embedding/hashing.ts';
import { I64_MAX } from '../../../log/values/value.ts';
import type { Literal } from '../../../planner/syntax/statement.ts';
import { groupBy, type VerbRow, textOf } from '../verb-rows.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import type { VerbCall } from '../verb-call.ts';
import { parseExactJson } from '../../shared/read-exact-json.ts';
import { sessionId } from './memory-items.ts';
import { keyOf, quarantinedKeys } from './recall-candidates.ts';
import { rank, recallInput } from './recall-ranking.ts';
import { sessionSteps, storing } from './remember.ts';

/** A change of it gives other summaries. */
const summaryMethod = 'extractive-v1';
const summarySourcesMax = 200;
const summarySentencesMax = 150;
/** The share of a sentence's score that TextRank takes from its neighbours. */
const sentenceRankDamping = 0.85;
const sentenceRankRounds = 20;

const summaryClass = 'summary';

export const summarise = verb({
  name: 'summarise',
  description:
    'Sum up a session, or all that is known of a topic, in a few sentences of the memories themselves. The summary is kept as a memory with its sources.',
  input: z.object({
    session_id: sessionId.optional().describe('the session to sum up'),
    session: sessionId.optional().describe('the same as session_id'),
    topic: z.string().min(1).max(10_000).optional().describe('or what it is to be about'),
    max_sentences: z.int().min(1).max(50).default(5),
  }),
  output: z.object({
    id: z.string().nullable().describe('of the memory that holds it; null where there was nothing to sum up'),
    summary: z.string(),
    source_ids: z.array(z.string()),
    method: z.string(),
  }),
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/summarise' }],
  tool: { title: 'Summarise', readOnly: false },
  contents: [],
  example: { session_id: 's1' },
  run: async (verbCall, summariseInput) => {
    const agentSession = summariseInput.session_id ?? summariseInput.session;
    if (agentSession === undefined && summariseInput.topic === undefined) {
      throw new ServiceError('REL_INVALID', 'session_id: say which session, or give a topic');
    }
    const { snapshot: summarySnapshot } = verbCall;
    const recallRequest = recallInput.parse({ query: summariseInput.topic, session_id: agentSession, top_k: summarySourcesMax });
    const askRecall: Parameters<typeof rank>[2]['ask'] = (recallSql, recallValues, recallTime) =>
      verbCall.ask(recallSql, recallValues, recallTime);
    const { memories: recalledMemories } = await rank(recallRequest, summarySnapshot.instant, {
      snapshot: summarySnapshot,
      ask: askRecall,
      vector: null,
      tokens: null,
    });
    // A summary of summaries would say old things as if they were new.
    const summarySources = recalledMemories.filter(({ row: memoryRow }) => memoryRow['memory_class'] !== summaryClass);
    const sourceSentences = summarySources
      .map(({ row: memoryRow }) => memoryRow)
      .sort(compareMemoryTimes)
      .flatMap((memoryRow, sourceNumber) =>
        memorySentences(memoryRow).map((sentenceText) => ({ text: sentenceText, sourceNumber })),
      )
      .slice(-summarySentencesMax);
    const summaryText = chooseSentences(sourceSentences, summariseInput.max_sentences).join(' ');
    const sourceIds = summarySources.map(({ key: sourceKey }) => sourceKey);
    if (summaryText === '') return { id: null, summary: summaryText, source_ids: sourceIds, method: summaryMethod };
    const episodeId = verbCall.parts.ids.next();
    const leastConfidence = Math.min(
      ...summarySources.map(({ row: memoryRow }) => (typeof memoryRow['confidence'] === 'number' ? memoryRow['confidence'] : 1)),
    );
    const summaryItem = {
      content: summaryText,
      confidence: leastConfidence,
      type: 'MemoryItem',
      memory_class: summaryClass,
      derived_from: sourceIds,
      ...(agentSession !== undefined && { session_id: agentSession }),
    };
    const { step: summaryStep } = await storing(verbCall, summaryItem, episodeId);
    verbCall.note({ sessionId: agentSession ?? null, result: { id: episodeId, source_ids: sourceIds, method: summaryMethod } });
    await verbCall.commit([summaryStep, ...(await sessionSteps(verbCall, [summaryItem]))]);
    return { id: episodeId, summary: summaryText, source_ids: sourceIds, method: summaryMethod };
  },
});

function compareMemoryTimes(memoryA: VerbRow, memoryB: VerbRow): number {
  const [validFromA, validFromB] = [memoryA['valid_from'] as bigint, memoryB['valid_from'] as bigint];
  return validFromA < validFromB ? -1 : validFromA > validFromB ? 1 : String(memoryA['_pk']) < String(memoryB['_pk']) ? -1 : 1;
}

const sentenceSegmenter = new Intl.Segmenter('en', { granularity: 'sentence' });

function memorySentences(memoryRow: VerbRow): string[] {
  const memoryText = textOf(memoryRow['content']) ?? '';
  return [...sentenceSegmenter.segment(memoryText)]
    .map(({ segment: sentenceSegment }) => sentenceSegment.trim())
    .filter((sentenceText) => sentenceText !== '');
}

interface MemorySentence {
  readonly text: string;
  readonly sourceNumber: number;
}

function chooseSentences(sourceSentences: readonly MemorySentence[], sentenceCount: number): readonly string[] {
  const sentenceVectors = sourceSentences.map(({ text: sentenceText }) => {
    const sentenceVector = new Float64Array(hashedDims);
    addHashed(sentenceText, sentenceVector);
    return sentenceVector;
  });
  const sentenceSimilarity = sentenceVectors.map((sentenceVector, i) =>
    sentenceVectors.map((otherVector, j) => (i === j ? 0 : Math.max(0, cosineOf(sentenceVector, otherVector)))),
  );
  const similarityWeights = sentenceSimilarity.map((similarityRow) =>
    similarityRow.reduce((scoreSum, similarity) => scoreSum + similarity, 0),
  );
  let sentenceScores = sourceSentences.map(() => 1);
  for (let rankRound = 0; rankRound < sentenceRankRounds; rankRound++) {
    const scoresBefore = sentenceScores;
    sentenceScores = sourceSentences.map((_, i) => {
      let scoreSum = 0;
      for (let j = 0; j < scoresBefore.length; j++)
        if (similarityWeights[j]! > 0) scoreSum += (sentenceSimilarity[j]![i]! / similarityWeights[j]!) * scoresBefore[j]!;
      return 1 - sentenceRankDamping + sentenceRankDamping * scoreSum;
    });
  }
  const newestOrdinal = Math.max(1, ...sourceSentences.map(({ sourceNumber: sourceOrdinal }) => sourceOrdinal));
  const chosenTexts = new Set<string>();
  return sentenceScores
    .map((sentenceScore, i) => ({ i, score: sentenceScore * (0.5 + (0.5 * sourceSentences[i]!.sourceNumber) / newestOrdinal) }))
    .sort((sentenceA, sentenceB) => sentenceB.score - sentenceA.score || sentenceA.i - sentenceB.i)
    .filter(({ i }) => !chosenTexts.has(sourceSentences[i]!.text) && chosenTexts.add(sourceSentences[i]!.text))
    .slice(0, sentenceCount)
    .sort((sentenceA, sentenceB) => sentenceA.i - sentenceB.i)
    .map(({ i }) => sourceSentences[i]!.text);
}

export const episodesIn = verb({
  name: 'episodes_in',
  description: 'The episodes of memory, oldest first: sessions, and groups of sessions that were stored as an Episode.',
  input: z.object({
    session_id: sessionId.optional().describe('of this session only'),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object({
    episodes: z.array(
      z.object({
        id: z.string(),
        session_ids: z.array(z.string()),
        valid_from: nanosecondsOut,
        valid_to: nanosecondsOut,
        item_count: z.int(),
        summary: z.string().nullable(),
      }),
    ),
    total: z.int(),
  }),
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'GET', url: '/memory/episodes' }],
  tool: { title: 'Episodes', readOnly: true },
  example: { session_id: 's1' },
  run: async (verbCall, { session_id: agentSession, limit: episodeLimit }) => {
    const episodeWhere = agentSession === undefined ? 'session_id IS NOT NULL' : 'session_id = $1';
    const episodeValues = agentSession === undefined ? [] : [agentSession];
    const episodeSessionFigures = await episodeSessions(verbCall, episodeWhere, episodeValues);
    const storedEpisodes = await verbCall.ask(
      `SELECT * FROM Episode WHERE ${episodeWhere} ORDER BY valid_from, _pk LIMIT ${episodeRowsMax}`,
      episodeValues,
    );
    const storedSessionIds = new Set(storedEpisodes.map((memoryRow) => String(memoryRow['session_id'])));
    const allEpisodes = [
      ...storedEpisodes.map((memoryRow) => ({
        id: String(memoryRow['_pk']),
        session_ids: [String(memoryRow['session_id'])],
        valid_from: memoryRow['valid_from'] as bigint,
        valid_to: memoryRow['valid_to'] as bigint,
        item_count: episodeSessionFigures.get(String(memoryRow['session_id']))?.items ?? 0,
        summary: textOf(memoryRow['title']),
      })),
      ...[...episodeSessionFigures]
        .filter(([episodeId]) => !storedSessionIds.has(episodeId))
        .map(([episodeId, { items: sessionItems, from: sessionStart, to: sessionEnd }]) => ({
          id: episodeId,
          session_ids: [episodeId],
          valid_from: sessionStart,
          valid_to: sessionEnd,
          item_count: sessionItems,
          summary: null as string | null,
        })),
    ].sort((episodeA, episodeB) =>
      episodeA.valid_from < episodeB.valid_from
        ? -1
        : episodeA.valid_from > episodeB.valid_from
          ? 1
          : episodeA.id < episodeB.id
            ? -1
            : 1,
    );
    const listedEpisodes = allEpisodes.slice(0, episodeLimit);
    const summaryBySession = await sessionSummaries(
      verbCall,
      listedEpisodes.filter(({ summary: summaryText }) => summaryText === null).map(({ id: episodeId }) => episodeId),
    );
    return {
      episodes: listedEpisodes.map((listedEpisode) => ({
        ...listedEpisode,
        summary: listedEpisode.summary ?? summaryBySession.get(listedEpisode.id) ?? null,
      })),
      total: allEpisodes.length,
    };
  },
});

/** Sessions, or stored episodes, that one call looks through. */
const episodeRowsMax = 100_000;
/** Ids that one question names. */
const sessionIdsAtOnce = 500;

interface SessionFigures {
  readonly items: number;
  readonly from: bigint;
  readonly to: bigint;
}

/** Sessions with a memory that is shown. Those in which one is hidden are counted one by one. */
async function episodeSessions(
  verbCall: VerbCall,
  episodeWhere: string,
  episodeValues: readonly Literal[],
): Promise<ReadonlyMap<string, SessionFigures>> {
  const figureColumns = 'COUNT(*) AS items, MIN(valid_from) AS first, MAX(valid_to) AS last';
  const sessionCounts = await verbCall.ask(
    `SELECT session_id, ${figureColumns} FROM MemoryItem WHERE ${episodeWhere} GROUP BY session_id LIMIT ${episodeRowsMax}`,
    episodeValues,
  );
  const figuresBySession = new Map<string, SessionFigures>(
    sessionCounts.map((sessionRow) => [
      String(sessionRow['session_id']),
      { items: Number(sessionRow['items']), from: sessionRow['first'] as bigint, to: sessionRow['last'] as bigint },
    ]),
  );
  const quarantined = await hiddenMemories(verbCall);
  const quarantinedMemoryKeys = [
    ...new Set([...quarantined].map((quarantineKey) => (parseExactJson(quarantineKey) as [unknown, string])[1])),
  ];
  const touchedSessions = new Set<string>();
  for (const memoryRows of await askByIdChunks(verbCall, 'SELECT session_id FROM MemoryItem WHERE _pk', quarantinedMemoryKeys)) {
    for (const sessionRow of memoryRows) touchedSessions.add(String(sessionRow['session_id']));
  }
  const recountedSessions = [...touchedSessions].filter((agentSessionId) => figuresBySession.delete(agentSessionId));
  for (const rows of await askByIdChunks(
    verbCall,
    'SELECT _pk, namespace_path, session_id, valid_from, valid_to FROM MemoryItem WHERE session_id',
    recountedSessions,
  )) {
    const visibleRows = rows.filter((sessionRow) => !quarantined.has(keyOf(sessionRow['namespace_path'], sessionRow['_pk'])));
    for (const [agentSessionId, sessionMemories] of groupBy(visibleRows, (sessionRow) => String(sessionRow['session_id']))) {
      const sessionStart = sessionMemories.reduce(
        (earliestStart, sessionRow) =>
          (sessionRow['valid_from'] as bigint) < earliestStart ? (sessionRow['valid_from'] as bigint) : earliestStart,
        I64_MAX,
      );
      const sessionEnd = sessionMemories.reduce(
        (latestEnd, sessionRow) =>
          (sessionRow['valid_to'] as bigint) > latestEnd ? (sessionRow['valid_to'] as bigint) : latestEnd,
        0n,
      );
      figuresBySession.set(agentSessionId, { items: sessionMemories.length, from: sessionStart, to: sessionEnd });
    }
  }
  return figuresBySession;
}

/** The last summary of each session. */
async function sessionSummaries(verbCall: VerbCall, agentSessionIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const quarantined = await hiddenMemories(verbCall);
  const lastSummaries = new Map<string, string>();
  const summarySql = `SELECT _pk, namespace_path, session_id, content FROM MemoryItem WHERE memory_class = '${summaryClass}' AND session_id`;
  for (const summaryRows of await askByIdChunks(verbCall, summarySql, agentSessionIds, ' ORDER BY valid_from, _pk')) {
    for (const summaryRow of summaryRows) {
      const summaryText = textOf(summaryRow['content']);
      if (summaryText !== null && !quarantined.has(keyOf(summaryRow['namespace_path'], summaryRow['_pk'])))
        lastSummaries.set(String(summaryRow['session_id']), summaryText);
    }
  }
  return lastSummaries;
}

const hiddenMemories = (verbCall: VerbCall) =>
  quarantinedKeys(
    (quarantineSql, quarantineValues, quarantineTime) => verbCall.ask(quarantineSql, quarantineValues, quarantineTime),
    'MemoryItem',
    'current',
  );

/** Answers to the question for so many ids at a time. */
async function askByIdChunks(
  verbCall: VerbCall,
  chunkSql: string,
  soughtIds: readonly string[],
  orderClause = '',
): Promise<readonly VerbRow[][]> {
  const chunkAnswers: VerbRow[][] = [];
  for (let firstId = 0; firstId < soughtIds.length; firstId += sessionIdsAtOnce) {
    const someIds = soughtIds.slice(firstId, firstId + sessionIdsAtOnce);
    chunkAnswers.push(
      await verbCall.ask(`${chunkSql} IN (${someIds.map((_, i) => `$${i + 1}`).join(', ')})${orderClause}`, someIds),
    );
  }
  return chunkAnswers;
}
