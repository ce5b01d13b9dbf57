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
const method = 'extractive-v1';
const sourcesMax = 200;
const sentencesMax = 150;
/** The share of a sentence's score that TextRank takes from its neighbours. */
const damping = 0.85;
const rounds = 20;

const memoryClass = 'summary';

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
  run: async (verbCall, input) => {
    const named = input.session_id ?? input.session;
    if (named === undefined && input.topic === undefined) {
      throw new ServiceError('REL_INVALID', 'session_id: say which session, or give a topic');
    }
    const { snapshot } = verbCall;
    const asked = recallInput.parse({ query: input.topic, session_id: named, top_k: sourcesMax });
    const ask: Parameters<typeof rank>[2]['ask'] = (sql, values, time) => verbCall.ask(sql, values, time);
    const { memories } = await rank(asked, snapshot.instant, { snapshot, ask, vector: null, tokens: null });
    // A summary of summaries would say old things as if they were new.
    const sources = memories.filter(({ row }) => row['memory_class'] !== memoryClass);
    const sentences = sources
      .map(({ row }) => row)
      .sort(byTime)
      .flatMap((row, sourceNumber) => sentencesOf(row).map((text) => ({ text, sourceNumber })))
      .slice(-sentencesMax);
    const summary = chooseSentences(sentences, input.max_sentences).join(' ');
    const ids = sources.map(({ key }) => key);
    if (summary === '') return { id: null, summary, source_ids: ids, method };
    const id = verbCall.parts.ids.next();
    const least = Math.min(...sources.map(({ row }) => (typeof row['confidence'] === 'number' ? row['confidence'] : 1)));
    const item = {
      content: summary,
      confidence: least,
      type: 'MemoryItem',
      memory_class: memoryClass,
      derived_from: ids,
      ...(named !== undefined && { session_id: named }),
    };
    const { step } = await storing(verbCall, item, id);
    verbCall.note({ sessionId: named ?? null, result: { id, source_ids: ids, method } });
    await verbCall.commit([step, ...(await sessionSteps(verbCall, [item]))]);
    return { id, summary, source_ids: ids, method };
  },
});

function byTime(a: VerbRow, b: VerbRow): number {
  const [one, other] = [a['valid_from'] as bigint, b['valid_from'] as bigint];
  return one < other ? -1 : one > other ? 1 : String(a['_pk']) < String(b['_pk']) ? -1 : 1;
}

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });

function sentencesOf(row: VerbRow): string[] {
  const content = textOf(row['content']) ?? '';
  return [...segmenter.segment(content)].map(({ segment }) => segment.trim()).filter((text) => text !== '');
}

interface Sentence {
  readonly text: string;
  readonly sourceNumber: number;
}

function chooseSentences(sentences: readonly Sentence[], most: number): readonly string[] {
  const vectors = sentences.map(({ text }) => {
    const vector = new Float64Array(hashedDims);
    addHashed(text, vector);
    return vector;
  });
  const alike = vectors.map((vector, i) => vectors.map((other, j) => (i === j ? 0 : Math.max(0, cosineOf(vector, other)))));
  const weights = alike.map((row) => row.reduce((sum, value) => sum + value, 0));
  let scores = sentences.map(() => 1);
  for (let round = 0; round < rounds; round++) {
    const before = scores;
    scores = sentences.map((_, i) => {
      let sum = 0;
      for (let j = 0; j < before.length; j++) if (weights[j]! > 0) sum += (alike[j]![i]! / weights[j]!) * before[j]!;
      return 1 - damping + damping * sum;
    });
  }
  const newest = Math.max(1, ...sentences.map(({ sourceNumber: place }) => place));
  const seen = new Set<string>();
  return scores
    .map((score, i) => ({ i, score: score * (0.5 + (0.5 * sentences[i]!.sourceNumber) / newest) }))
    .sort((a, b) => b.score - a.score || a.i - b.i)
    .filter(({ i }) => !seen.has(sentences[i]!.text) && seen.add(sentences[i]!.text))
    .slice(0, most)
    .sort((a, b) => a.i - b.i)
    .map(({ i }) => sentences[i]!.text);
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
  run: async (verbCall, { session_id: named, limit }) => {
    const where = named === undefined ? 'session_id IS NOT NULL' : 'session_id = $1';
    const values = named === undefined ? [] : [named];
    const sessions = await sessionsOf(verbCall, where, values);
    const stored = await verbCall.ask(
      `SELECT * FROM Episode WHERE ${where} ORDER BY valid_from, _pk LIMIT ${episodesMax}`,
      values,
    );
    const ofStored = new Set(stored.map((row) => String(row['session_id'])));
    const all = [
      ...stored.map((row) => ({
        id: String(row['_pk']),
        session_ids: [String(row['session_id'])],
        valid_from: row['valid_from'] as bigint,
        valid_to: row['valid_to'] as bigint,
        item_count: sessions.get(String(row['session_id']))?.items ?? 0,
        summary: textOf(row['title']),
      })),
      ...[...sessions]
        .filter(([id]) => !ofStored.has(id))
        .map(([id, { items, from, to }]) => ({
          id,
          session_ids: [id],
          valid_from: from,
          valid_to: to,
          item_count: items,
          summary: null as string | null,
        })),
    ].sort((a, b) => (a.valid_from < b.valid_from ? -1 : a.valid_from > b.valid_from ? 1 : a.id < b.id ? -1 : 1));
    const episodes = all.slice(0, limit);
    const summaries = await summariesOf(
      verbCall,
      episodes.filter(({ summary }) => summary === null).map(({ id }) => id),
    );
    return {
      episodes: episodes.map((each) => ({ ...each, summary: each.summary ?? summaries.get(each.id) ?? null })),
      total: all.length,
    };
  },
});

/** Sessions, or stored episodes, that one call looks through. */
const episodesMax = 100_000;
/** Ids that one question names. */
const idsAtOnce = 500;

interface SessionFigures {
  readonly items: number;
  readonly from: bigint;
  readonly to: bigint;
}

/** Sessions with a memory that is shown. Those in which one is hidden are counted one by one. */
async function sessionsOf(
  verbCall: VerbCall,
  where: string,
  values: readonly Literal[],
): Promise<ReadonlyMap<string, SessionFigures>> {
  const columns = 'COUNT(*) AS items, MIN(valid_from) AS first, MAX(valid_to) AS last';
  const counted = await verbCall.ask(
    `SELECT session_id, ${columns} FROM MemoryItem WHERE ${where} GROUP BY session_id LIMIT ${episodesMax}`,
    values,
  );
  const sessions = new Map<string, SessionFigures>(
    counted.map((row) => [
      String(row['session_id']),
      { items: Number(row['items']), from: row['first'] as bigint, to: row['last'] as bigint },
    ]),
  );
  const hidden = await hiddenMemories(verbCall);
  const keys = [...new Set([...hidden].map((key) => (parseExactJson(key) as [unknown, string])[1]))];
  const touched = new Set<string>();
  for (const rows of await inPieces(verbCall, 'SELECT session_id FROM MemoryItem WHERE _pk', keys)) {
    for (const row of rows) touched.add(String(row['session_id']));
  }
  const again = [...touched].filter((id) => sessions.delete(id));
  for (const rows of await inPieces(
    verbCall,
    'SELECT _pk, namespace_path, session_id, valid_from, valid_to FROM MemoryItem WHERE session_id',
    again,
  )) {
    const visibleRows = rows.filter((row) => !hidden.has(keyOf(row['namespace_path'], row['_pk'])));
    for (const [id, of] of groupBy(visibleRows, (row) => String(row['session_id']))) {
      const from = of.reduce(
        (first, row) => ((row['valid_from'] as bigint) < first ? (row['valid_from'] as bigint) : first),
        I64_MAX,
      );
      const to = of.reduce((last, row) => ((row['valid_to'] as bigint) > last ? (row['valid_to'] as bigint) : last), 0n);
      sessions.set(id, { items: of.length, from, to });
    }
  }
  return sessions;
}

/** The last summary of each session. */
async function summariesOf(verbCall: VerbCall, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const hidden = await hiddenMemories(verbCall);
  const lastSummaries = new Map<string, string>();
  const sql = `SELECT _pk, namespace_path, session_id, content FROM MemoryItem WHERE memory_class = '${memoryClass}' AND session_id`;
  for (const rows of await inPieces(verbCall, sql, ids, ' ORDER BY valid_from, _pk')) {
    for (const row of rows) {
      const content = textOf(row['content']);
      if (content !== null && !hidden.has(keyOf(row['namespace_path'], row['_pk'])))
        lastSummaries.set(String(row['session_id']), content);
    }
  }
  return lastSummaries;
}

const hiddenMemories = (verbCall: VerbCall) =>
  quarantinedKeys((sql, given, time) => verbCall.ask(sql, given, time), 'MemoryItem', 'current');

/** Answers to the question for so many ids at a time. */
async function inPieces(verbCall: VerbCall, sql: string, ids: readonly string[], rest = ''): Promise<readonly VerbRow[][]> {
  const answers: VerbRow[][] = [];
  for (let first = 0; first < ids.length; first += idsAtOnce) {
    const some = ids.slice(first, first + idsAtOnce);
    answers.push(await verbCall.ask(`${sql} IN (${some.map((_, i) => `$${i + 1}`).join(', ')})${rest}`, some));
  }
  return answers;
}
