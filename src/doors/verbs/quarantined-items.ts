/** Items that quarantine hides from searches. Memory verbs read it as of an instant: `memory/recall-candidates.ts`. */
import type { VerbCall } from './verb-call.ts';

/** Quarantined items of all types: no search of an agent shows them. */
export async function hiddenItems(verbCall: VerbCall): Promise<ReadonlySet<string>> {
  const quarantineRows = await verbCall.ask('SELECT item_type, item_id, namespace_path FROM Quarantine');
  return new Set(
    quarantineRows.map((quarantineRow) =>
      quarantinedItemKey(quarantineRow['item_type'], quarantineRow['namespace_path'], quarantineRow['item_id']),
    ),
  );
}

export function hiddenKey(itemType: string, itemRow: Readonly<Record<string, unknown>>): string {
  return quarantinedItemKey(itemType, itemRow['namespace_path'], itemRow['_pk']);
}

/** A row is hidden by a word of its own path alone. */
const quarantinedItemKey = (...itemKeyParts: readonly unknown[]): string => JSON.stringify(itemKeyParts);
