/** Computes how much memory rows and their indexes may take, from the settings and the machine. */
import type { Settings } from './config.ts';
import type { RowSettings } from './projections/rows/tables/row-storage.ts';
/** Indexes of texts take at most one part in so many of the memory for rows. */
export const INDEX_SHARE = 4;
/** The same where nothing bounds what rows take. */
export const UNBOUND_INDEX_BYTES = 256 * 2 ** 20;

export function rowBudget(
  settings: Settings,
  derivedMemory: { readonly budgetBytes?: number; readonly machineBytes: number },
): number {
  return derivedMemory.budgetBytes ?? (settings.SERVICE_MEMORY_BUDGET_MB * 2 ** 20 || Math.floor(derivedMemory.machineBytes / 2));
}

export function rowSettings(settings: Settings): Pick<RowSettings, 'bloomColumns' | 'temporalIndexMax'> {
  return {
    bloomColumns: settings.SERVICE_BLOOM_COLUMNS ?? [],
    temporalIndexMax: settings.SERVICE_TEMPORAL_INDEX_MAX_ENTRIES,
  };
}
