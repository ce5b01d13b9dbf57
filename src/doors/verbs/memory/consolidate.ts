/** consolidate, resolve and recognize: one memory in place of another. Source: specification, "States and transitions". */
import { z } from 'zod';
import { instant, toInstant } from '../../schemas/instants.ts';
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
  run: async (verbCall, { id, content, type, expected_version: version, ...input }) => {
    const asRead = version === undefined ? null : toInstant(version);
    const itemState = await itemStateOf(verbCall, type, id);
    if (itemState === null) throw unknownItem();
    if (itemState.state === 'superseded') {
      const chain = await chainFrom(verbCall, type, id);
      throw new ServiceError('REL_CONFLICT', `the memory was superseded: the live one is ${chain.at(-1)}`);
    }
    const { row } = itemState;
    const since = asRead ?? (row['system_from'] as bigint);
    const certainty = row['confidence'];
    const sure = input.confidence ?? (typeof certainty === 'number' ? certainty : 1);
    const newId = verbCall.parts.ids.next();
    const { step } = await storing(
      verbCall,
      { content, confidence: sure, type, supersedes: id, ...keptOf(verbCall, type, row) },
      newId,
    );
    const ends: DeleteRows = {
      kind: 'delete-rows',
      type,
      keys: [id],
      when: { unchangedSince: since },
    };
    const decisionId = verbCall.parts.ids.next();
    const decision = await decisionStep(verbCall, {
      id: decisionId,
      choice: 'consolidate',
      inputs: [id, newId],
      rationale: input.rationale ?? null,
      session_id: textOf(row['session_id']),
    });
    verbCall.note({ sessionId: textOf(row['session_id']), result: { superseded: id, new_id: newId } });
    await verbCall.commit([ends, step, decision]);
    return { superseded: id, new_id: newId, confidence: sure, decision_id: decisionId };
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
function keptOf(verbCall: VerbCall, type: string, row: VerbRow): CarriedFields {
  const [named, memoryClass] = [textOf(row['session_id']), textOf(row['memory_class'])];
  const masked = verbCall.snapshot.masksOf(type);
  const { properties, primaryKey } = verbCall.type(type);
  const fields: Record<string, unknown> = {};
  for (const [name, { type: column }] of Object.entries(properties)) {
    const cell = row[name];
    const isOwn = name === primaryKey || name === 'id' || name.startsWith('_') || argumentColumns.has(name);
    if (isOwn || masked.has(name) || cell === null || cell === undefined) continue;
    fields[name] = column === 'json' ? parseExactJson(String(cell)) : cell instanceof Float32Array ? [...cell] : cell;
  }
  return {
    fields,
    ...(named !== null && { session_id: named }),
    ...(memoryClass !== null && { memory_class: memoryClass }),
  };
}

/** Columns that a new memory has by itself. */
const argumentColumns: ReadonlySet<string> = new Set(
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
export async function decisionStep(verbCall: VerbCall, { id, ...decision }: Decision): Promise<PutRows> {
  const definition = verbCall.type('DecisionRecord');
  const row = { _pk: id, ...decision };
  const subject = await carrySubject(verbCall, row, { definition, key: id, sources: decision.inputs });
  const put = putting({ definition, rows: [row], provenance: verbCall.provenance() });
  return subject === null ? put : { ...put, subject };
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
  run: async (verbCall, { id, type }) => {
    if ((await itemStateOf(verbCall, type, id)) === null) throw unknownItem();
    const chain = await chainFrom(verbCall, type, id);
    const last = await itemStateOf(verbCall, type, chain.at(-1)!);
    if (last === null) throw unknownItem();
    const certainty = last.row['confidence'];
    return {
      id: chain.at(-1)!,
      content: textOf(last.row['content']),
      confidence: typeof certainty === 'number' ? certainty : null,
      live: last.state === 'live',
      chain: [...chain],
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
  run: async (verbCall, { id, type }) => {
    const { snapshot } = verbCall;
    const itemState = await itemStateOf(verbCall, type, id);
    if (itemState === null) {
      const erased = snapshot.removals.removedAfter(type, 0n).some(({ keys }) => keys.includes(id));
      const nothing = { valid_from: null, valid_to: null, superseded_by: null, last_recalled: null, recalls: 0, version: null };
      return { known: false, id, state: erased ? ('erased' as const) : null, ...nothing, quarantined: false };
    }
    const { row, state } = itemState;
    const path = textOf(row['namespace_path']);
    const [recalled] = snapshot.recallsOf(type, [{ key: id, path }], snapshot.instant);
    const hidden = await verbCall.ask(`SELECT namespace_path FROM Quarantine WHERE item_type = $1 AND item_id = $2`, [type, id]);
    return {
      known: true,
      id,
      state: state === 'live' && isScheduled(verbCall, type, id) ? ('scheduled' as const) : state,
      valid_from: row['valid_from'] as bigint,
      valid_to: row['valid_to'] as bigint,
      superseded_by: await successorOf(verbCall, type, id),
      last_recalled: recalled?.last ?? null,
      recalls: recalled?.count ?? 0,
      version: row['system_from'] as bigint,
      quarantined: hidden.some((each) => textOf(each['namespace_path']) === path),
    };
  },
});

/** Whether the row is scheduled, as far as the caller may know: only callers who may remove the row see schedules. */
function isScheduled({ invocation }: VerbCall, type: string, id: string): boolean {
  try {
    return invocation.retentionOf(type, id).some(({ scheduled }) => scheduled);
  } catch (error) {
    if (error instanceof ServiceError && (error.kind === 'forbidden' || error.kind === 'not_found')) return false;
    throw error;
  }
}
