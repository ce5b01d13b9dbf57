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
const blockRowsBehind = 4_096;
const kernelRowsBehind = 16_384;

export class Executions {
  readonly #options: ExecutionsOptions;
  readonly #limits: ExecutionLimits;
  readonly #backgroundLimits: ExecutionLimits;

  constructor(options: ExecutionsOptions) {
    const { blockRows, scannedRowsMax, vectorRowsMax, vectorExactRows, resultRowsMax } = options.limits;
    this.#options = options;
    this.#limits = {
      blockRows,
      kernelRows: segmentRows,
      scannedRowsMax,
      vectorRowsMax: vectorRowsMax === 0 ? Number.POSITIVE_INFINITY : vectorRowsMax,
      vectorExactRows,
      graphRowsMax: resultRowsMax,
    };
    this.#backgroundLimits = {
      ...this.#limits,
      blockRows: Math.min(blockRows, blockRowsBehind),
      kernelRows: kernelRowsBehind,
    };
  }

  make(
    plan: LogicalPlan,
    query: Query,
    source: StatementSource,
    { time = 'all', basis, typo, consistency = 'strong', inBackground = false }: ExecutionOptions,
    snapshot: GovernedSnapshot,
    catalogue: () => SeenCatalogue,
    surroundings: Pick<Execution, 'watch' | 'longWork' | 'working'> = alone,
  ): Execution {
    const stated = source.parameters.length;
    const literals = plan.viewLiterals.length > 0 ? [...source.parameters, ...plan.viewLiterals] : source.parameters;
    const locationOf = (slot: number): Location => (slot < stated ? source.locationOf(slot) : query.location);
    const cursor: Cursor | null = query.after && readCursor(literals[query.after.slot]!, locationOf(query.after.slot));
    const isBehind = basis !== undefined && isWrittenAfter(basis, plan.objectTypes, snapshot);
    const pinned = cursor?.pinned ?? (isBehind ? basis : null);
    if (pinned !== null && pinned > snapshot.instant)
      throw errorAt(
        'REL_INVALID',
        'the cursor is of a later instant',
        query.after ? locationOf(query.after.slot) : query.location,
      );
    const instant = pinned ?? basis ?? snapshot.instant;
    const typos = typo === 'configured' ? { otherwise: this.#options.searchTypo } : (typo ?? null);
    let believed = instant;
    const rules = (): SearchRules => new SearchRules(snapshot.searchAt(believed), snapshot.textLanguage, typos);
    const kernels = new KernelContext({ literals, locationOf, instant, rules, catalogue, parameters: plan.parameters });
    const axis = (bound: AxisBound): 'all' | bigint =>
      bound === 'all' ? 'all' : bound === 'now' ? instant : asInstant(kernels.constant(bound.instant));
    const isDefault = query.asOf === null && time !== 'all';
    const bounds = isDefault ? defaultBounds(time, instant) : { system: axis(plan.time.system), valid: axis(plan.time.valid) };
    const { system } = bounds;
    if (system !== 'all' && system < instant) believed = system;
    const rowLimit = (count: RowCount): number => {
      const rows = 'value' in count ? kernels.constant(count.value) : literals[count.slot];
      if (typeof rows === 'bigint' && rows >= 0n) return Number(rows);
      const clauseName = 'value' in count ? count.of : 'LIMIT';
      const location = 'value' in count ? count.location : locationOf(count.slot);
      const reason = clauseName === 'LIMIT' ? 'row-count' : 'skip-count';
      throw errorAt('REL_INVALID', `${clauseName} takes a whole number of at least 0`, location, reason);
    };
    const limits = inBackground ? this.#backgroundLimits : this.#limits;
    const pageRows = plan.paged && query.limit && 'slot' in query.limit ? rowLimit(query.limit) : null;
    return {
      snapshot,
      kernels,
      // Beyond the pinned basis nothing was known yet: a later instant means the basis itself.
      time: { system: system !== 'all' && pinned !== null && system > pinned ? pinned : system, valid: bounds.valid },
      after: cursor?.after ?? null,
      pinned,
      literals,
      rowLimit,
      working: surroundings.working,
      virtual: (read) => catalogue().read(read),
      limits: pageRows === null ? limits : { ...limits, blockRows: Math.min(limits.blockRows, Math.max(1_024, 2 * pageRows)) },
      services: this.#options.services,
      consistency,
      unbuilt: new Set(),
      wait: { until: null },
      notices: caveatsOf(plan.caveats, literals, locationOf),
      memory: new MemoryMeter(this.#options.limits.memoryBytesMax),
      counters: { scanned: 0, looks: 0, hits: 0, byGraph: 0, leftOut: 0, warm: 0 },
      longWork: surroundings.longWork,
      watch: surroundings.watch,
    };
  }
}

/** Blocks of rows of others that are looked at before it is taken for granted. */
const blocksLookedAt = 16;

/** Whether a version of one of these types came after the instant: without one, all that there is is what there was then. */
function isWrittenAfter(instant: bigint, types: readonly string[], { rows, catalog }: GovernedSnapshot): boolean {
  const time = { system: 'all', valid: 'all' } as const;
  return types.some((type) => {
    if (catalog.type(type) === undefined) return true;
    const blocks = rows.scan({ type, columns: ['system_from'], time, after: instant, blockRows: 1 });
    try {
      for (let seen = 0; seen < blocksLookedAt; seen++) {
        const step = blocks.next();
        if (step.done === true) return false;
        if (step.value.count > 0) return true;
      }
      return true;
    } finally {
      blocks.return?.();
    }
  });
}

/** Outside of a recursion. */
export const noWorking: Execution['working'] = new Map();

/** A run without measurement, long work or a recursion around it. */
const alone: Pick<Execution, 'watch' | 'longWork' | 'working'> = { watch: null, longWork: null, working: noWorking };

/** The default time of a query without AS OF, as of an instant. */
export function defaultBounds(time: DefaultTime, now: bigint): Execution['time'] {
  if (time === 'all') return { system: 'all', valid: 'all' };
  if (time === 'current') return { system: now, valid: now };
  const { system = 'all', valid = 'all' } = time;
  return { system: system === 'now' ? now : system, valid: valid === 'now' ? now : valid };
}
