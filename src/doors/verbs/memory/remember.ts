/** remember and remember_batch. Source: specification, "Agent memory (HTTP)" and "Memory types". */
import { z } from 'zod';
import { instant, toInstant } from '../../schemas/instants.ts';
import { ServiceError } from '../../../errors.ts';
import type { PutRows } from '../../../projections/command.ts';
import { record } from '../../schemas/schema-check.ts';
import { readInput } from '../call-verb.ts';
import { embeddingColumn, vectorOf } from '../embedding.ts';
import { groupBy, putting } from '../verb-rows.ts';
import { carrySubject, readSources } from '../source-subjects.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import { confidence, memoryType, sessionId } from './memory-items.ts';

const item = z.object({
  content: z
    .string()
    .min(1)
    .max(1 << 20)
    .describe('what is to be remembered, as plain text'),
  session_id: sessionId.optional().describe('the session that it belongs to; a new one begins with its first memory'),
  confidence: confidence.default(1).describe('how sure you are, from 0 to 1'),
  memory_class: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe('a kind of your own to filter by, such as fact, preference, episode'),
  type: memoryType,
  fields: record(z.unknown()).optional().describe('further columns of the row'),
  derived_from: z.array(z.string().min(1)).max(1_000).optional().describe('ids of memories that this one follows from'),
  valid_from: instant.optional().describe('when it became true, ISO-8601 in UTC or nanoseconds; now by default'),
});

type Item = z.output<typeof item>;

const remembered = z.object({
  id: z.string(),
  confidence: z.number(),
  valid_from: nanosecondsOut,
  notices: z.array(z.string()).optional(),
});

export const remember = verb({
  name: 'remember',
  description:
    'Store one memory: a fact, a preference, an event, a decision. It is kept with its time and its source, and recall finds it again. ' +
    'To correct an earlier memory use consolidate, so that the old one stays known as superseded.',
  input: item,
  output: remembered,
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/remember' }],
  tool: { title: 'Remember', readOnly: false },
  contents: ['content', 'fields'],
  example: { content: 'Ada prefers tea', session_id: 's1', confidence: 0.9 },
  run: async (verbCall, input) => {
    const id = verbCall.parts.ids.next();
    const { step, notices } = await storing(verbCall, input, id);
    verbCall.note({ sessionId: input.session_id ?? null, result: { id } });
    const outcome = await verbCall.commit([step, ...(await sessionSteps(verbCall, [input]))]);
    const { ids, systemFrom } = outcome.steps![0]!;
    return {
      id: verbCall.type(input.type).primaryKey === null ? id : (ids[0] ?? id),
      confidence: input.confidence,
      valid_from: input.valid_from === undefined ? systemFrom : toInstant(input.valid_from),
      ...(notices.length > 0 && { notices: [...notices] }),
    };
  },
});

const batchMax = 1_000;

export const rememberBatch = verb({
  name: 'remember_batch',
  description: 'Store several memories at once. Those that are refused are listed with their reasons; all others are stored.',
  input: z.object({ items: z.array(z.unknown()).min(1).max(batchMax).describe('each as remember takes it') }),
  output: z.object({
    remembered: z.int(),
    results: z.array(
      z.union([
        z.object({ index: z.int(), id: z.string(), confidence: z.number(), valid_from: nanosecondsOut }),
        z.object({ index: z.int(), error: z.object({ code: z.string(), detail: z.string() }) }),
      ]),
    ),
    errors: z.array(z.object({ index: z.int(), code: z.string(), detail: z.string() })),
  }),
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/remember/batch' }],
  tool: { title: 'Remember several things', readOnly: false },
  contents: ['items'],
  example: { items: [{ content: 'Ada lives in Oslo' }, { content: 'Ada plays chess', confidence: 0.7 }] },
  run: async (verbCall, { items }) => {
    const errors: { index: number; code: string; detail: string }[] = [];
    const read: Pick<Accepted, 'index' | 'item' | 'id'>[] = [];
    const good: Accepted[] = [];
    for (const [index, given] of items.entries()) {
      const id = verbCall.parts.ids.next();
      try {
        read.push({ index, item: readInput(item, given), id });
      } catch (error) {
        errors.push({ index, ...refusalOf(error) });
      }
    }
    await readSources(
      verbCall,
      read.flatMap(({ item: { derived_from: sources } }) => sources ?? []),
    );
    for (const each of read) {
      try {
        const { row, subject } = await rowOf(verbCall, each.item, each.id, []);
        // Validates each row alone, so that a refused element does not stop the others.
        stepOf(verbCall, each.item, subject, [row]);
        good.push({ ...each, row, subject });
      } catch (error) {
        errors.push({ index: each.index, ...refusalOf(error) });
      }
    }
    errors.sort((a, b) => a.index - b.index);
    const results = new Map<number, { id: string; confidence: number; valid_from: bigint }>();
    const groups = [
      ...groupBy(good, ({ item: { type, confidence: sure }, subject }) => JSON.stringify([type, sure, subject])).values(),
    ];
    const steps = (of: readonly Accepted[]): PutRows =>
      stepOf(
        verbCall,
        of[0]!.item,
        of[0]!.subject,
        of.map(({ row }) => row),
      );
    const noteResults = (of: readonly Accepted[], systemFrom: bigint): void => {
      for (const [i, { index, id, item: stored }] of of.entries()) {
        const validFrom = stored.valid_from === undefined ? systemFrom + BigInt(i) : toInstant(stored.valid_from);
        results.set(index, { id, confidence: stored.confidence, valid_from: validFrom });
      }
    };
    const note = (of: readonly Accepted[]): void =>
      verbCall.note({ result: { ids: of.map(({ id }) => id), refused: items.length - of.length } });
    // One append for all; where the store refuses a row of it, each by itself, so that the others are stored.
    note(good);
    try {
      const begun = await sessionSteps(
        verbCall,
        good.map((each) => each.item),
      );
      const outcome = await verbCall.commit([...groups.map(steps), ...begun]);
      for (const [i, group] of groups.entries()) noteResults(group, outcome.steps![i]!.systemFrom);
    } catch (error) {
      if (!isOfRow(error) || good.length === 0) throw error;
      const stored: Accepted[] = [];
      for (const each of good) {
        try {
          const outcome = await verbCall.put([steps([each]), ...(await sessionSteps(verbCall, [each.item]))]);
          noteResults([each], outcome.steps![0]!.systemFrom);
          stored.push(each);
        } catch (refused) {
          if (!isOfRow(refused)) throw refused;
          errors.push({ index: each.index, ...refusalOf(refused) });
        }
      }
      note(stored);
      await verbCall.commit([]);
    }
    errors.sort((a, b) => a.index - b.index);
    return {
      remembered: results.size,
      results: items.map((_, index) => {
        const done = results.get(index);
        if (done !== undefined) return { index, ...done };
        const { code, detail } = errors.find((each) => each.index === index)!;
        return { index, error: { code, detail } };
      }),
      errors,
    };
  },
});

/** The error of a row, and not of the store or of the caller's rights to anything here. */
function isOfRow(error: unknown): boolean {
  return error instanceof ServiceError && ['invalid', 'conflict', 'not_found', 'forbidden', 'unprocessable'].includes(error.kind);
}

function refusalOf(error: unknown): { code: string; detail: string } {
  if (!(error instanceof ServiceError)) throw error;
  return { code: error.code, detail: error.message };
}

/** The command that stores an item under an id. */
export async function storing(
  verbCall: VerbCall,
  each: NewItem,
  id: string,
): Promise<{ readonly step: PutRows; readonly notices: readonly string[] }> {
  const notices: string[] = [];
  const { row, subject } = await rowOf(verbCall, each, id, notices);
  return { step: stepOf(verbCall, each, subject, [row]), notices };
}

type NewItem = Item & { readonly supersedes?: string };

interface Accepted {
  readonly index: number;
  readonly item: Item;
  readonly id: string;
  readonly row: Readonly<Record<string, unknown>>;
  readonly subject: string | null;
}

interface MadeItem {
  readonly row: Record<string, unknown>;
  /** The subject for whom it is sealed. */
  readonly subject: string | null;
}

/** Rows of one type, of one confidence, and of one subject. */
function stepOf(
  verbCall: VerbCall,
  { type, confidence: sure }: Item,
  subject: string | null,
  rows: readonly Readonly<Record<string, unknown>>[],
): PutRows {
  const put = putting({ definition: verbCall.type(type), rows, provenance: verbCall.provenance(sure) });
  return subject === null ? put : { ...put, subject };
}

async function rowOf(verbCall: VerbCall, each: NewItem, id: string, notices: string[]): Promise<MadeItem> {
  const definition = verbCall.type(each.type);
  const { fields = {}, content, session_id, memory_class, derived_from, valid_from, supersedes } = each;
  for (const name of Object.keys(fields)) {
    if (name.startsWith('_') || name === 'id')
      throw new ServiceError('REL_INVALID', `fields: ${JSON.stringify(name)} is set by the store`);
    if (Object.hasOwn(given, name))
      throw new ServiceError('REL_INVALID', `fields: ${JSON.stringify(name)} is an argument of its own`);
  }
  const takes = (name: string): boolean => definition.open || Object.hasOwn(definition.properties, name);
  const row: Record<string, unknown> = { ...fields };
  const stated = { content, session_id, memory_class, derived_from, supersedes };
  for (const [name, value] of Object.entries(stated)) {
    if (value === undefined) continue;
    if (!takes(name))
      throw new ServiceError(
        'REL_UNKNOWN_COLUMN',
        `the type ${JSON.stringify(definition.name)} has no column ${JSON.stringify(name)}`,
      );
    row[name] = value;
  }
  if (takes('confidence')) row['confidence'] = each.confidence;
  if (takes('tool_call_id')) row['tool_call_id'] = verbCall.callId;
  if (valid_from !== undefined) row['valid_from'] = toInstant(valid_from);
  if (definition.primaryKey === null) row['_pk'] = id;
  else if (definition.primaryKey === 'id') row['id'] = id;
  if (definition.name === 'DecisionRecord') row['choice'] ??= content;
  if (takes(embeddingColumn)) {
    const vector = await vectorOf(verbCall, content, notices);
    if (vector !== null) row[embeddingColumn] = vector;
  }
  const { primaryKey } = definition;
  const declared = primaryKey === null ? null : row[primaryKey];
  const key = typeof declared === 'string' ? declared : id;
  const sources = [...(derived_from ?? []), ...(supersedes === undefined ? [] : [supersedes])];
  return { row, subject: await carrySubject(verbCall, row, { definition, key, sources }) };
}

const given = { content: 1, session_id: 1, confidence: 1, memory_class: 1, derived_from: 1, supersedes: 1, tool_call_id: 1 };

/** AgentSessions that begin with these items. Source: specification, "Memory types". */
export async function sessionSteps(verbCall: VerbCall, items: readonly Pick<Item, 'session_id'>[]): Promise<readonly PutRows[]> {
  const named = [...new Set(items.flatMap(({ session_id: id }) => id ?? []))];
  if (named.length === 0) return [];
  const { path } = verbCall.invocation.caller;
  const marks = named.map((_, i) => `$${i + 1}`).join(', ');
  const known = await verbCall.ask(`SELECT _pk, namespace_path FROM AgentSession WHERE _pk IN (${marks})`, named);
  const begun = new Set(known.filter((row) => row['namespace_path'] === path).map((row) => row['_pk']));
  const rows = named.filter((id) => !begun.has(id)).map((id) => ({ _pk: id, session_id: id }));
  if (rows.length === 0) return [];
  return [putting({ definition: verbCall.type('AgentSession'), rows, provenance: verbCall.provenance() })];
}
