/** justify, and quarantine with its end: the sources of a memory and its dependents. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { DeleteRows } from '../../../projections/command.ts';
import { putting, quote, type VerbRow, textOf } from '../verb-rows.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import { decisionStep } from './consolidate.ts';
import { itemId, unknownItem } from './memory-items.ts';
import { downstream, findRow, isItem, type ProvenanceLink, upstream } from './provenance.ts';

const link = z.object({
  kind: z.string().describe('MemoryItem, DocumentChunk, DocumentSource, ToolCall, DecisionRecord or AgentSession'),
  id: z.string(),
  relation: z.string().describe('what it has to do with `of`'),
  of: z.string(),
  content: z.string().nullable(),
  name: z.string().nullable().describe('of a ToolCall'),
  valid_from: nanosecondsOut,
  system_from: nanosecondsOut.describe('what /audit/proof proves it by'),
});

export const justify = verb({
  name: 'justify',
  description:
    'Why a memory is believed: the tool calls, memories and decisions that it rests on, oldest first, and all that was derived from it since. ' +
    'Takes the id of a tool call or session too.',
  input: z.object({ id: itemId }),
  output: z.object({ id: z.string(), kind: z.string(), chain: z.array(link), derived: z.array(link) }),
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'GET', url: '/memory/justify/:id' }],
  tool: { title: 'Justify', readOnly: true },
  example: { id: 'a memory' },
  run: async (verbCall, { id }) => {
    const itemLink = await findRow(verbCall, id);
    if (itemLink === null) throw unknownItem();
    const rests = [...(await upstream(verbCall, itemLink)), itemLink];
    const derived = await downstream(verbCall, itemLink, true);
    return {
      id,
      kind: itemLink.kind,
      chain: rests.sort(bySystemTime).map(describeLink),
      derived: [...derived].sort(bySystemTime).map(describeLink),
    };
  },
});

function bySystemTime(a: ProvenanceLink, b: ProvenanceLink): number {
  const [one, other] = [a.row['system_from'] as bigint, b.row['system_from'] as bigint];
  return one < other ? -1 : one > other ? 1 : 0;
}

function describeLink({ kind, id, relation, of, row }: ProvenanceLink): z.input<typeof link> {
  return {
    kind,
    id,
    relation,
    of,
    content: textOf(row['content'] ?? row['choice'] ?? row['title'] ?? null),
    name: kind === 'ToolCall' ? textOf(row['name']) : null,
    valid_from: row['valid_from'] as bigint,
    system_from: row['system_from'] as bigint,
  };
}

const hidden = z.object({
  receipt_id: z.string(),
  id: z.string(),
  items: z.array(z.object({ type: z.string(), id: z.string(), because: z.string() })),
  count: z.int(),
  as_of_system: nanosecondsOut.describe('recall with as_of up to here shows them still'),
});

export const quarantine = verb({
  name: 'quarantine',
  description:
    'Hide a poisoned memory, or all that a tool call or session brought, together with everything derived from it, from every recall. ' +
    'Nothing is lost: lift_quarantine shows it again. Needs the right to delete each of them.',
  input: z.object({ id: itemId.describe('of a memory, a tool call or a session'), reason: z.string().max(10_000).optional() }),
  output: hidden,
  action: 'delete',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/quarantine/:id' }],
  tool: { title: 'Quarantine', readOnly: false, destructive: true, idempotent: true },
  contents: ['reason'],
  example: { id: 'a memory', reason: 'the source was forged' },
  run: async (verbCall, { id, reason }) => {
    const root = await findRow(verbCall, id);
    if (root === null) throw unknownItem();
    const closure = [root, ...(await downstream(verbCall, root, false))].filter(({ kind }) => isItem(verbCall, kind));
    if (closure.length === 0)
      throw new ServiceError('REL_UNPROCESSABLE', 'no memory was derived from it: there is nothing to hide');
    await checkDeletable(verbCall, closure);
    const receiptId = verbCall.parts.ids.next();
    const rows = closure.map(({ kind, id: item }) => ({
      _pk: `${id} ${kind} ${item}`,
      item_type: kind,
      item_id: item,
      root_id: id,
      receipt_id: receiptId,
      reason: reason ?? null,
    }));
    const decision = {
      id: receiptId,
      choice: 'quarantine',
      inputs: closure.map(({ id: item }) => item),
      rationale: reason ?? null,
      session_id: null,
    };
    verbCall.note({ result: { receipt_id: receiptId, ids: decision.inputs } });
    const definition = verbCall.type('Quarantine');
    const put = putting({ definition, rows, provenance: verbCall.provenance() });
    await verbCall.commit([put, await decisionStep(verbCall, decision)]);
    return {
      receipt_id: receiptId,
      id,
      items: closure.map(({ kind, id: item, relation }) => ({ type: kind, id: item, because: relation })),
      count: closure.length,
      as_of_system: verbCall.snapshot.instant,
    };
  },
});

export const liftQuarantine = verb({
  name: 'lift_quarantine',
  description: 'Show again what one quarantine hides.',
  input: z.object({ id: itemId.describe('as quarantine was given it') }),
  output: z.object({
    receipt_id: z.string(),
    id: z.string(),
    items: z.array(z.object({ type: z.string(), id: z.string() })),
    count: z.int(),
  }),
  action: 'delete',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'DELETE', url: '/memory/quarantine/:id' }],
  tool: { title: 'Lift a quarantine', readOnly: false, idempotent: true },
  example: { id: 'a memory' },
  run: async (verbCall, { id }) => {
    const { path } = verbCall.invocation.caller;
    const all = await verbCall.ask('SELECT _pk, item_type, item_id, namespace_path FROM Quarantine WHERE root_id = $1', [id]);
    const rows = all.filter((row) => textOf(row['namespace_path']) === path);
    if (rows.length === 0) throw new ServiceError('REL_NOT_FOUND', 'it is not in quarantine here');
    const items = rows.map((row) => ({ type: String(row['item_type']), id: String(row['item_id']) }));
    await checkRight(
      verbCall,
      items.map((item) => ({ ...item, path })),
    );
    const receiptId = verbCall.parts.ids.next();
    const decision = {
      id: receiptId,
      choice: 'lift_quarantine',
      inputs: items.map((item) => item.id),
      rationale: null,
      session_id: null,
    };
    verbCall.note({ result: { receipt_id: receiptId, ids: decision.inputs } });
    const ends: DeleteRows = { kind: 'delete-rows', type: 'Quarantine', keys: rows.map((row) => String(row['_pk'])) };
    await verbCall.commit([ends, await decisionStep(verbCall, decision)]);
    return { receipt_id: receiptId, id, items, count: items.length };
  },
});

function checkDeletable(verbCall: VerbCall, closure: readonly ProvenanceLink[]): Promise<void> {
  return checkRight(
    verbCall,
    closure.map(({ kind, id, row }) => ({ type: kind, id, path: textOf(row['namespace_path']) })),
  );
}

interface Item {
  readonly type: string;
  readonly id: string;
  readonly path: string | null;
}

/** Checks all of them: a caller may hide only rows that it may delete. Rows are deleted in their own path. */
async function checkRight(verbCall: VerbCall, items: readonly Item[]): Promise<void> {
  const { path } = verbCall.invocation.caller;
  const refusal = (): ServiceError =>
    new ServiceError('REL_ACL', 'delete is denied for one of the memories: nothing was changed');
  if (items.some((item) => item.path !== path)) throw refusal();
  for (const type of new Set(items.map((item) => item.type))) {
    const ids = items.filter((item) => item.type === type).map(({ id }) => id);
    const snapshot = verbCall.invocation.deletable(type);
    const dependentIds = new Set<string>();
    for (let first = 0; first < ids.length; first += 500) {
      const some = ids.slice(first, first + 500);
      const marks = some.map((_, i) => `$${i + 1}`).join(', ');
      const rows: VerbRow[] = await verbCall.askOn(
        snapshot,
        `SELECT _pk FROM ${quote(type)} WHERE _pk IN (${marks})`,
        some,
        'all',
      );
      for (const row of rows) dependentIds.add(String(row['_pk']));
    }
    if (ids.some((id) => !dependentIds.has(id))) throw refusal();
  }
}
