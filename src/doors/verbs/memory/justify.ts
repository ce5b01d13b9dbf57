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

const justifyLink = z.object({
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
  output: z.object({ id: z.string(), kind: z.string(), chain: z.array(justifyLink), derived: z.array(justifyLink) }),
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'GET', url: '/memory/justify/:id' }],
  tool: { title: 'Justify', readOnly: true },
  example: { id: 'a memory' },
  run: async (verbCall, { id: memoryId }) => {
    const itemLink = await findRow(verbCall, memoryId);
    if (itemLink === null) throw unknownItem();
    const justifyingLinks = [...(await upstream(verbCall, itemLink)), itemLink];
    const derivedLinks = await downstream(verbCall, itemLink, true);
    return {
      id: memoryId,
      kind: itemLink.kind,
      chain: justifyingLinks.sort(compareLinkTimes).map(describeJustifyLink),
      derived: [...derivedLinks].sort(compareLinkTimes).map(describeJustifyLink),
    };
  },
});

function compareLinkTimes(linkA: ProvenanceLink, linkB: ProvenanceLink): number {
  const [timeOfA, timeOfB] = [linkA.row['system_from'] as bigint, linkB.row['system_from'] as bigint];
  return timeOfA < timeOfB ? -1 : timeOfA > timeOfB ? 1 : 0;
}

function describeJustifyLink({
  kind: linkKind,
  id: linkId,
  relation: linkRelation,
  of: linkedTo,
  row: linkRow,
}: ProvenanceLink): z.input<typeof justifyLink> {
  return {
    kind: linkKind,
    id: linkId,
    relation: linkRelation,
    of: linkedTo,
    content: textOf(linkRow['content'] ?? linkRow['choice'] ?? linkRow['title'] ?? null),
    name: linkKind === 'ToolCall' ? textOf(linkRow['name']) : null,
    valid_from: linkRow['valid_from'] as bigint,
    system_from: linkRow['system_from'] as bigint,
  };
}

const quarantineReply = z.object({
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
  output: quarantineReply,
  action: 'delete',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/quarantine/:id' }],
  tool: { title: 'Quarantine', readOnly: false, destructive: true, idempotent: true },
  contents: ['reason'],
  example: { id: 'a memory', reason: 'the source was forged' },
  run: async (verbCall, { id: memoryId, reason: quarantineReason }) => {
    const quarantineRoot = await findRow(verbCall, memoryId);
    if (quarantineRoot === null) throw unknownItem();
    const derivedClosure = [quarantineRoot, ...(await downstream(verbCall, quarantineRoot, false))].filter(({ kind: linkKind }) =>
      isItem(verbCall, linkKind),
    );
    if (derivedClosure.length === 0)
      throw new ServiceError('REL_UNPROCESSABLE', 'no memory was derived from it: there is nothing to hide');
    await checkClosureDeletable(verbCall, derivedClosure);
    const quarantineReceipt = verbCall.parts.ids.next();
    const quarantineRows = derivedClosure.map(({ kind: linkKind, id: hiddenItemId }) => ({
      _pk: `${memoryId} ${linkKind} ${hiddenItemId}`,
      item_type: linkKind,
      item_id: hiddenItemId,
      root_id: memoryId,
      receipt_id: quarantineReceipt,
      reason: quarantineReason ?? null,
    }));
    const quarantineDecision = {
      id: quarantineReceipt,
      choice: 'quarantine',
      inputs: derivedClosure.map(({ id: hiddenItemId }) => hiddenItemId),
      rationale: quarantineReason ?? null,
      session_id: null,
    };
    verbCall.note({ result: { receipt_id: quarantineReceipt, ids: quarantineDecision.inputs } });
    const quarantineType = verbCall.type('Quarantine');
    const quarantinePut = putting({ definition: quarantineType, rows: quarantineRows, provenance: verbCall.provenance() });
    await verbCall.commit([quarantinePut, await decisionStep(verbCall, quarantineDecision)]);
    return {
      receipt_id: quarantineReceipt,
      id: memoryId,
      items: derivedClosure.map(({ kind: linkKind, id: hiddenItemId, relation: linkRelation }) => ({
        type: linkKind,
        id: hiddenItemId,
        because: linkRelation,
      })),
      count: derivedClosure.length,
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
  run: async (verbCall, { id: memoryId }) => {
    const { path: callerPath } = verbCall.invocation.caller;
    const quarantinesOfRoot = await verbCall.ask(
      'SELECT _pk, item_type, item_id, namespace_path FROM Quarantine WHERE root_id = $1',
      [memoryId],
    );
    const quarantineRows = quarantinesOfRoot.filter((quarantineRow) => textOf(quarantineRow['namespace_path']) === callerPath);
    if (quarantineRows.length === 0) throw new ServiceError('REL_NOT_FOUND', 'it is not in quarantine here');
    const quarantinedItems = quarantineRows.map((quarantineRow) => ({
      type: String(quarantineRow['item_type']),
      id: String(quarantineRow['item_id']),
    }));
    await checkDeleteRight(
      verbCall,
      quarantinedItems.map((hiddenItemId) => ({ ...hiddenItemId, path: callerPath })),
    );
    const quarantineReceipt = verbCall.parts.ids.next();
    const quarantineDecision = {
      id: quarantineReceipt,
      choice: 'lift_quarantine',
      inputs: quarantinedItems.map((hiddenItemId) => hiddenItemId.id),
      rationale: null,
      session_id: null,
    };
    verbCall.note({ result: { receipt_id: quarantineReceipt, ids: quarantineDecision.inputs } });
    const quarantineDelete: DeleteRows = {
      kind: 'delete-rows',
      type: 'Quarantine',
      keys: quarantineRows.map((quarantineRow) => String(quarantineRow['_pk'])),
    };
    await verbCall.commit([quarantineDelete, await decisionStep(verbCall, quarantineDecision)]);
    return { receipt_id: quarantineReceipt, id: memoryId, items: quarantinedItems, count: quarantinedItems.length };
  },
});

function checkClosureDeletable(verbCall: VerbCall, derivedClosure: readonly ProvenanceLink[]): Promise<void> {
  return checkDeleteRight(
    verbCall,
    derivedClosure.map(({ kind: linkKind, id: linkId, row: linkRow }) => ({
      type: linkKind,
      id: linkId,
      path: textOf(linkRow['namespace_path']),
    })),
  );
}

interface QuarantinedMemory {
  readonly type: string;
  readonly id: string;
  readonly path: string | null;
}

/** Checks all of them: a caller may hide only rows that it may delete. Rows are deleted in their own path. */
async function checkDeleteRight(verbCall: VerbCall, quarantinedItems: readonly QuarantinedMemory[]): Promise<void> {
  const { path: callerPath } = verbCall.invocation.caller;
  const deleteDenied = (): ServiceError =>
    new ServiceError('REL_ACL', 'delete is denied for one of the memories: nothing was changed');
  if (quarantinedItems.some((quarantinedItem) => quarantinedItem.path !== callerPath)) throw deleteDenied();
  for (const itemType of new Set(quarantinedItems.map((quarantinedItem) => quarantinedItem.type))) {
    const itemIds = quarantinedItems
      .filter((quarantinedItem) => quarantinedItem.type === itemType)
      .map(({ id: itemIdOf }) => itemIdOf);
    const deletableSnapshot = verbCall.invocation.deletable(itemType);
    const dependentIds = new Set<string>();
    for (let firstItem = 0; firstItem < itemIds.length; firstItem += 500) {
      const someItemIds = itemIds.slice(firstItem, firstItem + 500);
      const itemMarks = someItemIds.map((_, i) => `$${i + 1}`).join(', ');
      const deletableRows: VerbRow[] = await verbCall.askOn(
        deletableSnapshot,
        `SELECT _pk FROM ${quote(itemType)} WHERE _pk IN (${itemMarks})`,
        someItemIds,
        'all',
      );
      for (const deletableRow of deletableRows) dependentIds.add(String(deletableRow['_pk']));
    }
    if (itemIds.some((itemIdOf) => !dependentIds.has(itemIdOf))) throw deleteDenied();
  }
}
