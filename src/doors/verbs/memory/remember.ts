/** remember and remember_batch. Source: specification, "Agent memory (HTTP)" and "Memory types". */
import { z } from 'zod';
import { instant, toInstant } from '../../shared/instants.ts';
import { ServiceError } from '../../../errors.ts';
import type { PutRows } from '../../../projections/command.ts';
import { record } from '../../shared/schema-check.ts';
import { readInput } from '../call-verb.ts';
import { embeddingColumn, vectorOf } from '../embedding.ts';
import { groupBy, putting } from '../verb-rows.ts';
import { carrySubject, readSources } from '../source-subjects.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import { confidence, memoryType, sessionId } from './memory-items.ts';

const rememberedItem = z.object({
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

type RememberedItem = z.output<typeof rememberedItem>;

const rememberedReply = z.object({
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
  input: rememberedItem,
  output: rememberedReply,
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/remember' }],
  tool: { title: 'Remember', readOnly: false },
  contents: ['content', 'fields'],
  example: { content: 'Ada prefers tea', session_id: 's1', confidence: 0.9 },
  run: async (verbCall, memoryInput) => {
    const newMemoryId = verbCall.parts.ids.next();
    const { step: memoryWrite, notices: memoryNotices } = await storing(verbCall, memoryInput, newMemoryId);
    verbCall.note({ sessionId: memoryInput.session_id ?? null, result: { id: newMemoryId } });
    const memoryOutcome = await verbCall.commit([memoryWrite, ...(await sessionSteps(verbCall, [memoryInput]))]);
    const { ids: writtenIds, systemFrom: writtenSystemFrom } = memoryOutcome.steps![0]!;
    return {
      id: verbCall.type(memoryInput.type).primaryKey === null ? newMemoryId : (writtenIds[0] ?? newMemoryId),
      confidence: memoryInput.confidence,
      valid_from: memoryInput.valid_from === undefined ? writtenSystemFrom : toInstant(memoryInput.valid_from),
      ...(memoryNotices.length > 0 && { notices: [...memoryNotices] }),
    };
  },
});

const rememberBatchMax = 1_000;

export const rememberBatch = verb({
  name: 'remember_batch',
  description: 'Store several memories at once. Those that are refused are listed with their reasons; all others are stored.',
  input: z.object({ items: z.array(z.unknown()).min(1).max(rememberBatchMax).describe('each as remember takes it') }),
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
  run: async (verbCall, { items: memoryItems }) => {
    const itemErrors: { index: number; code: string; detail: string }[] = [];
    const readItems: Pick<AcceptedMemory, 'index' | 'item' | 'id'>[] = [];
    const acceptedMemories: AcceptedMemory[] = [];
    for (const [itemIndex, givenItem] of memoryItems.entries()) {
      const newMemoryId = verbCall.parts.ids.next();
      try {
        readItems.push({ index: itemIndex, item: readInput(rememberedItem, givenItem), id: newMemoryId });
      } catch (itemError) {
        itemErrors.push({ index: itemIndex, ...itemRefusal(itemError) });
      }
    }
    await readSources(
      verbCall,
      readItems.flatMap(({ item: { derived_from: derivedSources } }) => derivedSources ?? []),
    );
    for (const readItem of readItems) {
      try {
        const { row: memoryRow, subject: memorySubject } = await memoryRowOf(verbCall, readItem.item, readItem.id, []);
        // Validates each row alone, so that a refused element does not stop the others.
        memoryStep(verbCall, readItem.item, memorySubject, [memoryRow]);
        acceptedMemories.push({ ...readItem, row: memoryRow, subject: memorySubject });
      } catch (itemError) {
        itemErrors.push({ index: readItem.index, ...itemRefusal(itemError) });
      }
    }
    itemErrors.sort((errorA, errorB) => errorA.index - errorB.index);
    const rememberedByIndex = new Map<number, { id: string; confidence: number; valid_from: bigint }>();
    const memoryGroups = [
      ...groupBy(acceptedMemories, ({ item: { type, confidence: itemConfidence }, subject: memorySubject }) =>
        JSON.stringify([type, itemConfidence, memorySubject]),
      ).values(),
    ];
    const groupStep = (memoryGroupOf: readonly AcceptedMemory[]): PutRows =>
      memoryStep(
        verbCall,
        memoryGroupOf[0]!.item,
        memoryGroupOf[0]!.subject,
        memoryGroupOf.map(({ row: memoryRow }) => memoryRow),
      );
    const noteGroupResults = (memoryGroupOf: readonly AcceptedMemory[], groupSystemFrom: bigint): void => {
      for (const [i, { index: resultIndex, id: newMemoryId, item: storedItem }] of memoryGroupOf.entries()) {
        const itemValidFrom =
          storedItem.valid_from === undefined ? groupSystemFrom + BigInt(i) : toInstant(storedItem.valid_from);
        rememberedByIndex.set(resultIndex, { id: newMemoryId, confidence: storedItem.confidence, valid_from: itemValidFrom });
      }
    };
    const noteMemoryIds = (memoryGroupOf: readonly AcceptedMemory[]): void =>
      verbCall.note({
        result: {
          ids: memoryGroupOf.map(({ id: newMemoryId }) => newMemoryId),
          refused: memoryItems.length - memoryGroupOf.length,
        },
      });
    // One append for all; where the store refuses a row of it, each by itself, so that the others are stored.
    noteMemoryIds(acceptedMemories);
    try {
      const sessionWrites = await sessionSteps(
        verbCall,
        acceptedMemories.map((each) => each.item),
      );
      const memoryOutcome = await verbCall.commit([...memoryGroups.map(groupStep), ...sessionWrites]);
      for (const [i, memoryGroup] of memoryGroups.entries()) noteGroupResults(memoryGroup, memoryOutcome.steps![i]!.systemFrom);
    } catch (error) {
      if (!isRowRefusal(error) || acceptedMemories.length === 0) throw error;
      const storedMemories: AcceptedMemory[] = [];
      for (const each of acceptedMemories) {
        try {
          const memoryOutcome = await verbCall.put([groupStep([each]), ...(await sessionSteps(verbCall, [each.item]))]);
          noteGroupResults([each], memoryOutcome.steps![0]!.systemFrom);
          storedMemories.push(each);
        } catch (refusedItem) {
          if (!isRowRefusal(refusedItem)) throw refusedItem;
          itemErrors.push({ index: each.index, ...itemRefusal(refusedItem) });
        }
      }
      noteMemoryIds(storedMemories);
      await verbCall.commit([]);
    }
    itemErrors.sort((errorA, errorB) => errorA.index - errorB.index);
    return {
      remembered: rememberedByIndex.size,
      results: memoryItems.map((_, index) => {
        const rememberedItemReply = rememberedByIndex.get(index);
        if (rememberedItemReply !== undefined) return { index, ...rememberedItemReply };
        const { code: itemErrorCode, detail: itemErrorDetail } = itemErrors.find((each) => each.index === index)!;
        return { index, error: { code: itemErrorCode, detail: itemErrorDetail } };
      }),
      errors: itemErrors,
    };
  },
});

/** The error of a row, and not of the store or of the caller's rights to anything here. */
function isRowRefusal(rememberError: unknown): boolean {
  return (
    rememberError instanceof ServiceError &&
    ['invalid', 'conflict', 'not_found', 'forbidden', 'unprocessable'].includes(rememberError.kind)
  );
}

function itemRefusal(rememberError: unknown): { code: string; detail: string } {
  if (!(rememberError instanceof ServiceError)) throw rememberError;
  return { code: rememberError.code, detail: rememberError.message };
}

/** The command that stores an item under an id. */
export async function storing(
  verbCall: VerbCall,
  newMemory: NewMemoryItem,
  newMemoryId: string,
): Promise<{ readonly step: PutRows; readonly notices: readonly string[] }> {
  const memoryNotices: string[] = [];
  const { row: memoryRow, subject: memorySubject } = await memoryRowOf(verbCall, newMemory, newMemoryId, memoryNotices);
  return { step: memoryStep(verbCall, newMemory, memorySubject, [memoryRow]), notices: memoryNotices };
}

type NewMemoryItem = RememberedItem & { readonly supersedes?: string };

interface AcceptedMemory {
  readonly index: number;
  readonly item: RememberedItem;
  readonly id: string;
  readonly row: Readonly<Record<string, unknown>>;
  readonly subject: string | null;
}

interface MemoryRow {
  readonly row: Record<string, unknown>;
  /** The subject for whom it is sealed. */
  readonly subject: string | null;
}

/** Rows of one type, of one confidence, and of one subject. */
function memoryStep(
  verbCall: VerbCall,
  { type: memoryTypeName, confidence: itemConfidence }: RememberedItem,
  memorySubject: string | null,
  memoryRows: readonly Readonly<Record<string, unknown>>[],
): PutRows {
  const memoryPut = putting({
    definition: verbCall.type(memoryTypeName),
    rows: memoryRows,
    provenance: verbCall.provenance(itemConfidence),
  });
  return memorySubject === null ? memoryPut : { ...memoryPut, subject: memorySubject };
}

async function memoryRowOf(
  verbCall: VerbCall,
  newMemory: NewMemoryItem,
  newMemoryId: string,
  memoryNotices: string[],
): Promise<MemoryRow> {
  const memoryDefinition = verbCall.type(newMemory.type);
  const { fields: furtherFields = {}, content, session_id, memory_class, derived_from, valid_from, supersedes } = newMemory;
  for (const memoryField of Object.keys(furtherFields)) {
    if (memoryField.startsWith('_') || memoryField === 'id')
      throw new ServiceError('REL_INVALID', `fields: ${JSON.stringify(memoryField)} is set by the store`);
    if (Object.hasOwn(argumentFields, memoryField))
      throw new ServiceError('REL_INVALID', `fields: ${JSON.stringify(memoryField)} is an argument of its own`);
  }
  const takesColumn = (columnName: string): boolean =>
    memoryDefinition.open || Object.hasOwn(memoryDefinition.properties, columnName);
  const memoryRow: Record<string, unknown> = { ...furtherFields };
  const statedFields = { content, session_id, memory_class, derived_from, supersedes };
  for (const [name, statedCell] of Object.entries(statedFields)) {
    if (statedCell === undefined) continue;
    if (!takesColumn(name))
      throw new ServiceError(
        'REL_UNKNOWN_COLUMN',
        `the type ${JSON.stringify(memoryDefinition.name)} has no column ${JSON.stringify(name)}`,
      );
    memoryRow[name] = statedCell;
  }
  if (takesColumn('confidence')) memoryRow['confidence'] = newMemory.confidence;
  if (takesColumn('tool_call_id')) memoryRow['tool_call_id'] = verbCall.callId;
  if (valid_from !== undefined) memoryRow['valid_from'] = toInstant(valid_from);
  if (memoryDefinition.primaryKey === null) memoryRow['_pk'] = newMemoryId;
  else if (memoryDefinition.primaryKey === 'id') memoryRow['id'] = newMemoryId;
  if (memoryDefinition.name === 'DecisionRecord') memoryRow['choice'] ??= content;
  if (takesColumn(embeddingColumn)) {
    const contentVector = await vectorOf(verbCall, content, memoryNotices);
    if (contentVector !== null) memoryRow[embeddingColumn] = contentVector;
  }
  const { primaryKey } = memoryDefinition;
  const declaredKey = primaryKey === null ? null : memoryRow[primaryKey];
  const memoryKey = typeof declaredKey === 'string' ? declaredKey : newMemoryId;
  const derivedSources = [...(derived_from ?? []), ...(supersedes === undefined ? [] : [supersedes])];
  return {
    row: memoryRow,
    subject: await carrySubject(verbCall, memoryRow, { definition: memoryDefinition, key: memoryKey, sources: derivedSources }),
  };
}

const argumentFields = {
  content: 1,
  session_id: 1,
  confidence: 1,
  memory_class: 1,
  derived_from: 1,
  supersedes: 1,
  tool_call_id: 1,
};

/** AgentSessions that begin with these items. Source: specification, "Memory types". */
export async function sessionSteps(
  verbCall: VerbCall,
  sessionItems: readonly Pick<RememberedItem, 'session_id'>[],
): Promise<readonly PutRows[]> {
  const agentSessionIds = [...new Set(sessionItems.flatMap(({ session_id: agentSessionId }) => agentSessionId ?? []))];
  if (agentSessionIds.length === 0) return [];
  const { path: callerPath } = verbCall.invocation.caller;
  const sessionMarks = agentSessionIds.map((_, i) => `$${i + 1}`).join(', ');
  const knownSessions = await verbCall.ask(
    `SELECT _pk, namespace_path FROM AgentSession WHERE _pk IN (${sessionMarks})`,
    agentSessionIds,
  );
  const begunSessions = new Set(
    knownSessions.filter((sessionRow) => sessionRow['namespace_path'] === callerPath).map((sessionRow) => sessionRow['_pk']),
  );
  const newSessionRows = agentSessionIds
    .filter((agentSessionId) => !begunSessions.has(agentSessionId))
    .map((agentSessionId) => ({ _pk: agentSessionId, session_id: agentSessionId }));
  if (newSessionRows.length === 0) return [];
  return [putting({ definition: verbCall.type('AgentSession'), rows: newSessionRows, provenance: verbCall.provenance() })];
}
