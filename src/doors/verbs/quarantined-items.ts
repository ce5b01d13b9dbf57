/** Items that quarantine hides from searches. Memory verbs read it as of an instant: `memory/recall-candidates.ts`. */
import type { VerbCall } from './verb-call.ts';

/** Quarantined items of all types: no search of an agent shows them. */
export async function hiddenItems(verbCall: VerbCall): Promise<ReadonlySet<string>> {
  const rows = await verbCall.ask('SELECT item_type, item_id, namespace_path FROM Quarantine');
  return new Set(rows.map((row) => keyOfItem(row['item_type'], row['namespace_path'], row['item_id'])));
}

export function hiddenKey(type: string, row: Readonly<Record<string, unknown>>): string {
  return keyOfItem(type, row['namespace_path'], row['_pk']);
}

/** A row is hidden by a word of its own path alone. */
const keyOfItem = (...parts: readonly unknown[]): string => JSON.stringify(parts);
