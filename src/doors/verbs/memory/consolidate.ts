/** consolidate, resolve and recognize: one memory in place of another. Source: specification, "States and transitions". */
import { z } from 'zod';
import { instant, toInstant } from '../../shared/instants.ts';
import { ServiceError } from '../../../errors.ts';
import type { DeleteRows, PutRows } from '../../../projections/command.ts';
import { putting, type VerbRow, textOf } from '../verb-rows.ts';
import { carrySubject } from '../source-subjects.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import { parseExactJson } from '../../shared/read-exact-json.ts';
import { chainFrom, confidence, itemId, memoryType, itemStateOf, successorOf, unknownItem } from './memory-items.ts';
import { storing } from './remember.ts';

export const consolidate = verb({
  name: 'consolidate',
  description:
    'Put a corrected or merged memory in place of an earlier one. The earlier one stops being recalled and stays known as superseded: ' +
    'recall with as_of, and justify, still show it.',
  input: z.object({
    id: itemId.describe('the live memory that is superseded'),
    content: z
      .string()
      .min(1)
      .max(1 << 20)
      .describe('what holds instead'),
    confidence: confidence.optional().describe('how sure you are; as sure as before by default'),
    rationale: z.string().max(10_000).optional().describe('why; kept as a DecisionRecord'),
    expected_version: instant.optional().describe('system_from of the memory as you read it: 409 where it was written since'),
    type: memoryType,
  }),
  output: z.object({ superseded: z.string(), new_id: z.string(), confidence: z.number(), decision_id: z.string() }),
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/consolidate' }],
  tool: { title: 'Consolidate', readOnly: false },
  contents: ['content', 'rationale'],
  example: { id: 'a memory', content: 'Ada prefers coffee now', confidence: 0.8 },
  run: async (
    verbCall,
    { id: memoryId, content: correctedContent, type: memoryTypeName, expected_version: expectedVersion, ...consolidation },
  ) => {
    const versionRead = expectedVersion === undefined ? null : toInstant(expectedVersion);
    const itemState = await itemStateOf(verbCall, memoryTypeName, memoryId);
    if (itemState === null) throw unknownItem();
    if (itemState.state === 'superseded') {
      const supersessionChain = await chainFrom(verbCall, memoryTypeName, memoryId);
      throw new ServiceError('REL_CONFLICT', `the memory was superseded: the live one is ${supersessionChain.at(-1)}`);
    }
    const { row: memoryRow } = itemState;
    const unchangedSince = versionRead ?? (memoryRow['system_from'] as bigint);
    const storedConfidence = memoryRow['confidence'];
    const newConfidence = consolidation.confidence ?? (typeof storedConfidence === 'number' ? storedConfidence : 1);
    const newMemoryId = verbCall.parts.ids.next();
    const { step: newMemoryStep } = await storing(
      verbCall,
      {
        content: correctedContent,
        confidence: newConfidence,
        type: memoryTypeName,
        supersedes: memoryId,
        ...carriedFields(verbCall, memoryTypeName, memoryRow),
      },
      newMemoryId,
    );
    const supersededDelete: DeleteRows = {
      kind: 'delete-rows',
      type: memoryTypeName,
      keys: [memoryId],
      when: { unchangedSince: unchangedSince },
    };
    const decisionId = verbCall.parts.ids.next();
    const decisionWrite = await decisionStep(verbCall, {
      id: decisionId,
      choice: 'consolidate',
      inputs: [memoryId, newMemoryId],
      rationale: consolidation.rationale ?? null,
      session_id: textOf(memoryRow['session_id']),
    });
    verbCall.note({ sessionId: textOf(memoryRow['session_id']), result: { superseded: memoryId, new_id: newMemoryId } });
    await verbCall.commit([supersededDelete, newMemoryStep, decisionWrite]);
    return { superseded: memoryId, new_id: newMemoryId, confidence: newConfidence, decision_id: decisionId };
  },
});

interface CarriedFields {
  readonly session_id?: string;
  readonly memory_class?: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * The fields that the new memory takes over from the earlier one: all but its text, its origin, and those masked for the caller.
 */
function carriedFields(verbCall: VerbCall, memoryTypeName: string, memoryRow: VerbRow): CarriedFields {
  const [agentSession, storedClass] = [textOf(memoryRow['session_id']), textOf(memoryRow['memory_class'])];
  const maskedColumns = verbCall.snapshot.masksOf(memoryTypeName);
  const { properties: memoryProperties, primaryKey } = verbCall.type(memoryTypeName);
  const carriedCells: Record<string, unknown> = {};
  for (const [memoryColumn, { type: columnType }] of Object.entries(memoryProperties)) {
    const memoryCell = memoryRow[memoryColumn];
    const isConsolidateColumn =
      memoryColumn === primaryKey ||
      memoryColumn === 'id' ||
      memoryColumn.startsWith('_') ||
      consolidatedColumns.has(memoryColumn);
    if (isConsolidateColumn || maskedColumns.has(memoryColumn) || memoryCell === null || memoryCell === undefined) continue;
    carriedCells[memoryColumn] =
      columnType === 'json'
        ? parseExactJson(String(memoryCell))
        : memoryCell instanceof Float32Array
          ? [...memoryCell]
          : memoryCell;
  }
  return {
    fields: carriedCells,
    ...(agentSession !== null && { session_id: agentSession }),
    ...(storedClass !== null && { memory_class: storedClass }),
  };
}

/** Columns that a new memory has by itself. */
const consolidatedColumns: ReadonlySet<string> = new Set(
  'content session_id confidence memory_class tool_call_id supersedes derived_from'.split(' '),
);

export interface Decision {
  readonly id: string;
  readonly choice: string;
  readonly inputs: readonly string[];
  readonly rationale: string | null;
  readonly session_id: string | null;
}

/** A decision as a row, which is erased with any of its subjects. */
export async function decisionStep(verbCall: VerbCall, { id: decisionId, ...decisionFields }: Decision): Promise<PutRows> {
  const decisionType = verbCall.type('DecisionRecord');
  const decisionRow = { _pk: decisionId, ...decisionFields };
  const decisionSubject = await carrySubject(verbCall, decisionRow, {
    definition: decisionType,
    key: decisionId,
    sources: decisionFields.inputs,
  });
  const decisionPut = putting({ definition: decisionType, rows: [decisionRow], provenance: verbCall.provenance() });
  return decisionSubject === null ? decisionPut : { ...decisionPut, subject: decisionSubject };
}

export const resolve = verb({
  name: 'resolve',
  description: 'From any memory, superseded or not, to the live one that stands for it now.',
  input: z.object({ id: itemId, type: memoryType }),
  output: z.object({
    id: z.string(),
    content: z.string().nullable(),
    confidence: z.number().nullable(),
    live: z.boolean(),
    chain: z.array(z.string()).describe('from the id that was asked about to the last one'),
  }),
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'GET', url: '/memory/resolve/:id' }],
  tool: { title: 'Resolve', readOnly: true },
  example: { id: 'a memory' },
  run: async (verbCall, { id: memoryId, type: memoryTypeName }) => {
    if ((await itemStateOf(verbCall, memoryTypeName, memoryId)) === null) throw unknownItem();
    const supersessionChain = await chainFrom(verbCall, memoryTypeName, memoryId);
    const lastStanding = await itemStateOf(verbCall, memoryTypeName, supersessionChain.at(-1)!);
    if (lastStanding === null) throw unknownItem();
    const storedConfidence = lastStanding.row['confidence'];
    return {
      id: supersessionChain.at(-1)!,
      content: textOf(lastStanding.row['content']),
      confidence: typeof storedConfidence === 'number' ? storedConfidence : null,
      live: lastStanding.state === 'live',
      chain: [...supersessionChain],
    };
  },
});

export const recognize = verb({
  name: 'recognize',
  description: 'Whether a memory is known, and how it stands: live, superseded, scheduled to be forgotten, or erased.',
  input: z.object({ id: itemId, type: memoryType }),
  output: z.object({
    known: z.boolean(),
    id: z.string(),
    state: z.enum(['live', 'superseded', 'scheduled', 'erased']).nullable(),
    valid_from: nanosecondsOut.nullable(),
    valid_to: nanosecondsOut.nullable(),
    superseded_by: z.string().nullable(),
    last_recalled: nanosecondsOut.nullable(),
    recalls: z.int(),
    version: nanosecondsOut.nullable().describe('what expected_version of consolidate takes'),
    quarantined: z.boolean(),
  }),
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'GET', url: '/memory/recognize/:id' }],
  tool: { title: 'Recognize', readOnly: true },
  example: { id: 'a memory' },
  run: async (verbCall, { id: memoryId, type: memoryTypeName }) => {
    const { snapshot: memorySnapshot } = verbCall;
    const itemState = await itemStateOf(verbCall, memoryTypeName, memoryId);
    if (itemState === null) {
      const isErased = memorySnapshot.removals
        .removedAfter(memoryTypeName, 0n)
        .some(({ keys: removedKeys }) => removedKeys.includes(memoryId));
      const unknownMemory = {
        valid_from: null,
        valid_to: null,
        superseded_by: null,
        last_recalled: null,
        recalls: 0,
        version: null,
      };
      return { known: false, id: memoryId, state: isErased ? ('erased' as const) : null, ...unknownMemory, quarantined: false };
    }
    const { row: memoryRow, state: memoryState } = itemState;
    const memoryPath = textOf(memoryRow['namespace_path']);
    const [recallFigures] = memorySnapshot.recallsOf(
      memoryTypeName,
      [{ key: memoryId, path: memoryPath }],
      memorySnapshot.instant,
    );
    const quarantineRows = await verbCall.ask(`SELECT namespace_path FROM Quarantine WHERE item_type = $1 AND item_id = $2`, [
      memoryTypeName,
      memoryId,
    ]);
    return {
      known: true,
      id: memoryId,
      state:
        memoryState === 'live' && isForgettingScheduled(verbCall, memoryTypeName, memoryId)
          ? ('scheduled' as const)
          : memoryState,
      valid_from: memoryRow['valid_from'] as bigint,
      valid_to: memoryRow['valid_to'] as bigint,
      superseded_by: await successorOf(verbCall, memoryTypeName, memoryId),
      last_recalled: recallFigures?.last ?? null,
      recalls: recallFigures?.count ?? 0,
      version: memoryRow['system_from'] as bigint,
      quarantined: quarantineRows.some((quarantineRow) => textOf(quarantineRow['namespace_path']) === memoryPath),
    };
  },
});

/** Whether the row is scheduled, as far as the caller may know: only callers who may remove the row see schedules. */
function isForgettingScheduled({ invocation }: VerbCall, memoryTypeName: string, memoryId: string): boolean {
  try {
    return invocation.retentionOf(memoryTypeName, memoryId).some(({ scheduled: isRetentionScheduled }) => isRetentionScheduled);
  } catch (retentionError) {
    if (retentionError instanceof ServiceError && (retentionError.kind === 'forbidden' || retentionError.kind === 'not_found'))
      return false;
    throw retentionError;
  }
}
