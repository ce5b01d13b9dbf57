/** Executions: the rows that one run of a plan reads, at which instants, and within which limits. */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { type TypoTolerance } from '../../governance/text-search/text-query.ts';
import { caveatsOf } from '../expressions/comparison-notices.ts';
import { asInstant } from '../expressions/evaluate.ts';
import { KernelContext } from '../expressions/kernel-context.ts';
import { SearchRules } from '../expressions/search-rules.ts';
import type { AxisBound, LogicalPlan, RowCount } from '../logical-plan.ts';
import { type Execution, type ExecutionLimits, MemoryMeter } from '../operators/operator.ts';
import type { PlannerLimits } from '../planner-options.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { QueryOptions, QueryRequest } from '../planner-contract.ts';
import { type Cursor, readCursor } from '../statements/page-cursor.ts';
import type { StatementSource } from '../statements/statement-source.ts';
import type { Services } from '../run-services.ts';
import type { DefaultTime, Location, Query } from '../syntax/statement.ts';
import type { SeenCatalogue } from '../system-catalogue/seen-catalogue.ts';

export interface ExecutionsOptions {
  readonly limits: Required<PlannerLimits>;
  readonly services: Services;
  /** The tolerance of searches that say nothing of typos. */
  readonly searchTypo: TypoTolerance;
}

type ExecutionOptions = QueryOptions & Pick<QueryRequest, 'inBackground'>;

const segmentRows = 65_536;
/** Rows at once of a question behind others: a step of it is over before its slice is. */
const backgroundBlockRows = 4_096;
const backgroundKernelRows = 16_384;

export class Executions {
  readonly #options: ExecutionsOptions;
  readonly #executionLimits: ExecutionLimits;
  readonly #backgroundLimits: ExecutionLimits;

  constructor(options: ExecutionsOptions) {
    const { blockRows, scannedRowsMax, vectorRowsMax, vectorExactRows, resultRowsMax } = options.limits;
    this.#options = options;
    this.#executionLimits = {
      blockRows,
      kernelRows: segmentRows,
      scannedRowsMax,
      vectorRowsMax: vectorRowsMax === 0 ? Number.POSITIVE_INFINITY : vectorRowsMax,
      vectorExactRows,
      graphRowsMax: resultRowsMax,
    };
    this.#backgroundLimits = {
      ...this.#executionLimits,
      blockRows: Math.min(blockRows, backgroundBlockRows),
      kernelRows: backgroundKernelRows,
    };
  }

  make(
    plan: LogicalPlan,
    query: Query,
    source: StatementSource,
    { time = 'all', basis, typo, consistency = 'strong', inBackground = false }: ExecutionOptions,
    snapshot: GovernedSnapshot,
    catalogue: () => SeenCatalogue,
    surroundings: Pick<Execution, 'watch' | 'longWork' | 'working'> = unnestedExecution,
  ): Execution {
    const statedParameters = source.parameters.length;
    const allLiterals = plan.viewLiterals.length > 0 ? [...source.parameters, ...plan.viewLiterals] : source.parameters;
    const locationOf = (slot: number): Location => (slot < statedParameters ? source.locationOf(slot) : query.location);
    const pageCursor: Cursor | null = query.after && readCursor(allLiterals[query.after.slot]!, locationOf(query.after.slot));
    const isWrittenSince = basis !== undefined && isWrittenAfter(basis, plan.objectTypes, snapshot);
    const pinnedInstant = pageCursor?.pinned ?? (isWrittenSince ? basis : null);
    if (pinnedInstant !== null && pinnedInstant > snapshot.instant)
      throw errorAt(
        'REL_INVALID',
        'the cursor is of a later instant',
        query.after ? locationOf(query.after.slot) : query.location,
      );
    const instant = pinnedInstant ?? basis ?? snapshot.instant;
    const typoTolerance = typo === 'configured' ? { otherwise: this.#options.searchTypo } : (typo ?? null);
    let searchInstant = instant;
    const rules = (): SearchRules => new SearchRules(snapshot.searchAt(searchInstant), snapshot.textLanguage, typoTolerance);
    const kernelContext = new KernelContext({
      literals: allLiterals,
      locationOf,
      instant,
      rules,
      catalogue,
      parameters: plan.parameters,
    });
    const axisBound = (bound: AxisBound): 'all' | bigint =>
      bound === 'all' ? 'all' : bound === 'now' ? instant : asInstant(kernelContext.constant(bound.instant));
    const isDefault = query.asOf === null && time !== 'all';
    const timeBounds = isDefault
      ? defaultBounds(time, instant)
      : { system: axisBound(plan.time.system), valid: axisBound(plan.time.valid) };
    const { system } = timeBounds;
    if (system !== 'all' && system < instant) searchInstant = system;
    const rowLimit = (count: RowCount): number => {
      const limitCell = 'value' in count ? kernelContext.constant(count.value) : allLiterals[count.slot];
      if (typeof limitCell === 'bigint' && limitCell >= 0n) return Number(limitCell);
      const clauseName = 'value' in count ? count.of : 'LIMIT';
      const location = 'value' in count ? count.location : locationOf(count.slot);
      const countReason = clauseName === 'LIMIT' ? 'row-count' : 'skip-count';
      throw errorAt('REL_INVALID', `${clauseName} takes a whole number of at least 0`, location, countReason);
    };
    const executionLimits = inBackground ? this.#backgroundLimits : this.#executionLimits;
    const pageRows = plan.paged && query.limit && 'slot' in query.limit ? rowLimit(query.limit) : null;
    return {
      snapshot,
      kernels: kernelContext,
      // Beyond the pinned basis nothing was known yet: a later instant means the basis itself.
      time: {
        system: system !== 'all' && pinnedInstant !== null && system > pinnedInstant ? pinnedInstant : system,
        valid: timeBounds.valid,
      },
      after: pageCursor?.after ?? null,
      pinned: pinnedInstant,
      literals: allLiterals,
      rowLimit,
      working: surroundings.working,
      virtual: (read) => catalogue().read(read),
      limits:
        pageRows === null
          ? executionLimits
          : { ...executionLimits, blockRows: Math.min(executionLimits.blockRows, Math.max(1_024, 2 * pageRows)) },
      services: this.#options.services,
      consistency,
      unbuilt: new Set(),
      wait: { until: null },
      notices: caveatsOf(plan.caveats, allLiterals, locationOf),
      memory: new MemoryMeter(this.#options.limits.memoryBytesMax),
      counters: { scanned: 0, looks: 0, hits: 0, byGraph: 0, leftOut: 0, warm: 0 },
      longWork: surroundings.longWork,
      watch: surroundings.watch,
    };
  }
}

/** Blocks of rows of others that are looked at before it is taken for granted. */
const newestBlocksMax = 16;

/** Whether a version of one of these types came after the instant: without one, all that there is is what there was then. */
function isWrittenAfter(instant: bigint, types: readonly string[], { rows, catalog }: GovernedSnapshot): boolean {
  const time = { system: 'all', valid: 'all' } as const;
  return types.some((type) => {
    if (catalog.type(type) === undefined) return true;
    const newestBlocks = rows.scan({ type, columns: ['system_from'], time, after: instant, blockRows: 1 });
    try {
      for (let blocksSeen = 0; blocksSeen < newestBlocksMax; blocksSeen++) {
        const newestStep = newestBlocks.next();
        if (newestStep.done === true) return false;
        if (newestStep.value.count > 0) return true;
      }
      return true;
    } finally {
      newestBlocks.return?.();
    }
  });
}

/** Outside of a recursion. */
export const noWorking: Execution['working'] = new Map();

/** A run without measurement, long work or a recursion around it. */
const unnestedExecution: Pick<Execution, 'watch' | 'longWork' | 'working'> = { watch: null, longWork: null, working: noWorking };

/** The default time of a query without AS OF, as of an instant. */
export function defaultBounds(time: DefaultTime, now: bigint): Execution['time'] {
  if (time === 'all') return { system: 'all', valid: 'all' };
  if (time === 'current') return { system: now, valid: now };
  const { system = 'all', valid = 'all' } = time;
  return { system: system === 'now' ? now : system, valid: valid === 'now' ? now : valid };
}
