/** Rows that a command is about to store, as far as its caller may see them. */
import { assert } from '../../errors.ts';
import { type EntryDraft, type MaskKind, positionsOf, type TypeDefinition } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { storedColumn } from '../../projections/rows/checks/row-check.ts';
import type { WrittenRows } from '../gate-contract.ts';

interface WrittenType {
  readonly definition: TypeDefinition | undefined;
  readonly masks: ReadonlyMap<string, MaskKind>;
}

/** `readType`: a type as its writer reads it, before the drafts. */
export function writtenRows(
  drafts: readonly EntryDraft[],
  next: NextPosition,
  path: string | null,
  readType: (type: string) => WrittenType,
): WrittenRows[] {
  const draftedTypes = new Map<string, TypeDefinition>();
  const written: WrittenRows[] = [];
  let { position, time } = next;
  for (const { body } of drafts) {
    if (body.kind === 'type') draftedTypes.set(body.definition.name, body.definition);
    if (body.kind === 'rows') {
      const { definition: stored, masks } = readType(body.type);
      const definition = draftedTypes.get(body.type) ?? stored;
      assert(definition, 'rows are of a type');
      const [keys, validFrom, validTo] = body.keys.columns.map(({ vector }) => vector);
      assert(keys?.kind === 'text' && validFrom && validTo, 'rows have keys and bounds');
      const draftRows = { definition, length: body.ops.length, cells: body.cells.columns, keys, validFrom, validTo };
      const writtenAt = { ...next, position, time };
      written.push({
        definition,
        length: draftRows.length,
        systemFrom: time,
        column: (name) => (masks.has(name) ? { kind: 'null' } : storedColumn(name, draftRows, { path, at: writtenAt })),
      });
    }
    const positionCount = positionsOf(body);
    position += positionCount;
    time += BigInt(positionCount);
  }
  return written;
}
