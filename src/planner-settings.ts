/** The planner's options that come from the settings alone. */
import { rankingRules, type Settings } from './config.ts';
import type { PlannerOptions } from './planner/planner-options.ts';

type PlannerSettings = Pick<PlannerOptions, 'limits' | 'pinnedBranches' | 'sketchColumns' | 'searchPreset' | 'rankings'>;

export function plannerOptions(settings: Settings): PlannerSettings {
  return {
    limits: {
      timeoutMs: settings.SERVICE_QUERY_TIMEOUT_SECS * 1000,
      resultRowsMax: settings.SERVICE_MAX_RESULT_ROWS,
      scannedRowsMax: settings.SERVICE_MAX_SCANNED_ROWS,
      memoryBytesMax: settings.SERVICE_QUERY_MEMORY_MB * 1024 * 1024,
      vectorRowsMax: settings.SERVICE_MAX_VECTOR_K,
      vectorExactRows: settings.SERVICE_VECTOR_EXACT_ROWS,
    },
    pinnedBranches: settings.SERVICE_PINNED_NAMESPACES ?? [],
    sketchColumns: settings.SERVICE_SKETCH_COLUMNS ?? [],
    searchPreset: settings.SERVICE_SEARCH_PRESET,
    rankings: new Map(
      Object.entries(settings.rankings).map(([rankedType, rankingText]) => [rankedType, rankingRules(rankingText)]),
    ),
  };
}
