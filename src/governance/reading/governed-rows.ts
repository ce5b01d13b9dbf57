/**
 * Rows as grants let them out: the security barrier. Every predicate and sum of a reader runs over rows that have passed and
 * cells that are shown; figures about rows count those alone.
 *
 *   governed snapshot   the caller's grant, the scope of its path, branch and instant      governed-snapshot.ts
 *   visible types       tenants whose rows a name stands for, masks of every branch        visible-types.ts
 *   this reader         guards, and whether policies permit the type at all                governed-rows.ts
 *   lane plan           paths, history and prunable columns that storage is asked for      lane-plan.ts
 *   lane blocks         every row checked again; conditions of policies, masked cells      lane-blocks.ts
 *
 * A name may stand for rows of several tenants: each lets its own out under its own grant, and they leave in one order of
 * `system_from`, as if they lay in one table. Columns that an assigner's rows lack, or that mean something else there, read as
 * NULL.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import {
  pathColumn,
  type PathCodes,
  type Near,
  type NearRequest,
  type Preparation,
  type RowBlock,
  type RowProvenance,
  type RowReader,
  type ScanEstimate,
  type ScanRequest,
  shownOf,
  type TimeBounds,
} from '../../projections/access-paths.ts';
import { openGrant } from '../authorization/grants.ts';
import type { GovernedBlock } from '../text-search/visible-texts.ts';
import { LaneBlocks, type Reading } from './lane-blocks.ts';
import { historiesOf, type LaneHistory, lanePlan, visibleZones } from './lane-plan.ts';
import { MergedBlocks, PaddedBlocks } from './merged-blocks.ts';
import type { Scope } from './path-scopes.ts';
import { isAlike, openSources, type RowSource, type VisibleType, type VisibleTypes } from './visible-types.ts';

export interface GovernedRowsDependencies {
  readonly types: VisibleTypes;
  /** Scope of the caller's own path. */
  readonly scope: Scope;
  readonly reading: Reading;
  /** Instant of the snapshot. */
  readonly instant: bigint;
}

/** Rows that EXPLAIN and plans assume where a condition decides about rows: a count would reveal hidden ones. */
const uncountedRows = 10_000;
const segmentRows = 65_536;

export class GovernedRows implements RowReader<GovernedBlock> {
  readonly #governedParts: GovernedRowsDependencies;

  constructor(parts: GovernedRowsDependencies) {
    this.#governedParts = parts;
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    const request: ScanRequest = { type, columns, time: allTimes };
    const { definition, sources } = this.#openVisibleType(request);
    const sourcePreparations = sources.flatMap((source) => {
      const laneScan = requestToSource(source, definition, request);
      checkSourceReads(source, laneScan.columns);
      return source.paths.rows.prepare?.(laneScan.type, laneScan.columns) ?? [];
    });
    if (sourcePreparations.length === 0) return null;
    return {
      ready: Promise.all(sourcePreparations.map(({ ready }) => ready)).then(() => undefined),
      progress: () => {
        const each = sourcePreparations.map((preparation) => preparation.progress());
        return { done: each.reduce((sum, { done }) => sum + done, 0), of: each.reduce((sum, { of }) => sum + of, 0) };
      },
    };
  }

  canBeNear(request: Pick<NearRequest, 'type' | 'column' | 'time'>): boolean {
    return this.#nearRowsIn(request) !== null;
  }

  near(request: NearRequest): Promise<Near> | null {
    assert(request.paths === undefined, 'only the gate says which paths are near');
    return this.#nearRowsIn(request)?.near!({ ...request, paths: this.#governedParts.scope.codes }) ?? null;
  }

  /**
   * Storage that knows which rows are near: where they are one tenant's, as they are declared there. Where a condition or a mask
   * hides anything, everything that is shown is looked at.
   */
  #nearRowsIn({ type, column, time }: Pick<NearRequest, 'type' | 'column' | 'time'>): RowReader | null {
    const { definition, sources } = this.#openVisibleType({ type, columns: [column], time });
    const [source] = sources;
    if (sources.length > 1 || type !== source!.declared.name || !isAlike(definition, source!.declared, column)) return null;
    checkSourceReads(source!, [column]);
    const { rows } = source!.paths;
    return source!.grant === openGrant && rows.near !== undefined ? rows : null;
  }

  scan(request: ScanRequest): Iterator<GovernedBlock, void> {
    const { definition, sources } = this.#openVisibleType(request);
    if (sources.length === 1) return this.#scanSource(sources[0]!, definition, request);
    const { unsiftedRows: _, ...rest } = request;
    const withTime = { ...rest, columns: [...request.columns, 'system_from'] };
    return new MergedBlocks(sources.map((source) => this.#scanSource(source, definition, withTime)));
  }

  #scanSource(source: RowSource, definition: TypeDefinition, request: ScanRequest): Iterator<GovernedBlock, void> {
    const laneScan = requestToSource(source, definition, request);
    checkSourceReads(source, laneScan.columns);
    const laneBlocks = this.#scanThroughLanes(source, laneScan);
    if (laneScan === request) return laneBlocks;
    return new PaddedBlocks(
      laneBlocks,
      request.columns.map((column) => laneScan.columns.indexOf(column)),
    );
  }

  #scanThroughLanes(source: RowSource, request: ScanRequest): Iterator<GovernedBlock, void> {
    const { grant, paths, type } = source;
    const { scope, codes, history } = this.#lanesOfSource(source, request.time);
    const lanePlanOfScan = lanePlan(grant, request.columns, type);
    const laneScan = laneRequest(request, lanePlanOfScan.columns, codes);
    laneScan.further = lanePlanOfScan.further;
    // Bits tell what one lane lets through; a row that several may show, or whose past counts, is looked at by itself.
    if (!scope.apart || !lanePlanOfScan.bitwise) laneScan.unsiftedRows = undefined;
    if (grant.masked.size > 0) {
      laneScan.zones = request.zones && visibleZones(request.zones, grant);
      // To look rows up by a masked column would reveal its values.
      if (laneScan.identifiers?.some(({ column }) => grant.masked.has(column))) laneScan.identifiers = undefined;
    }
    const { rows } = paths;
    const byKey = request.keys !== undefined;
    const scan = {
      plan: lanePlanOfScan,
      lanes: grant.lanes,
      scope,
      history,
      byKey,
      reading: this.#governedParts.reading,
      pathCodes: rows.pathCodes(),
    };
    return new LaneBlocks(rows.scan(laneScan), scan);
  }

  estimate(request: ScanRequest): ScanEstimate {
    const { definition, sources } = this.#openVisibleType(request);
    const sourceEstimates = sources.map((source) => {
      const laneScan = requestToSource(source, definition, request);
      checkSourceReads(source, laneScan.columns);
      return this.#estimateSource(source, laneScan);
    });
    return sourceEstimates.reduce((sum, { rows, segments }) => ({
      access: sum.access,
      rows: sum.rows + rows,
      segments: sum.segments + segments,
    }));
  }

  #estimateSource(source: RowSource, request: ScanRequest): ScanEstimate {
    const { grant } = source;
    const { rows } = source.paths;
    const { scope, instant } = this.#governedParts;
    if (grant === openGrant) return rows.estimate(laneRequest(request, request.columns, scope.codes));
    const sourceLanes = this.#lanesOfSource(source, request.time);
    const zones = visibleZones(request.zones ?? [], grant);
    const scanRequest: ScanRequest = { type: request.type, columns: noColumnNames, time: request.time, zones };
    const { access } = rows.estimate({ ...scanRequest, paths: [], ...(request.keys ? { keys: request.keys } : {}) });
    if (request.keys) {
      const laneCount = countRows(this.#scanThroughLanes(source, { ...scanRequest, keys: request.keys }));
      return { access, rows: laneCount, segments: laneCount === 0 ? 0 : 1 };
    }
    const laneHistoryOf = (lane: number): LaneHistory => sourceLanes.history?.[lane] ?? 'all';
    const countedCodes = { all: [] as number[], open: [] as number[] };
    for (const code of sourceLanes.codes) {
      const [firstLane] = sourceLanes.scope.lanes[sourceLanes.scope.groups[code]! - 1]!.filter(
        (lane) => laneHistoryOf(lane) !== 'nothing',
      );
      if (firstLane === undefined || grant.lanes[firstLane]!.rows !== null) continue;
      if (laneHistoryOf(firstLane) === 'all') countedCodes.all.push(code);
      else if (laneHistoryOf(firstLane) === 'open') countedCodes.open.push(code);
    }
    let estimatedRows = rows.estimate({ ...scanRequest, paths: countedCodes.all }).rows;
    const currentTime = { ...scanRequest.time, system: instant };
    if (countedCodes.open.length > 0)
      estimatedRows += rows.estimate({ ...scanRequest, time: currentTime, paths: countedCodes.open }).rows;
    // The count must not reveal whether such rows exist either.
    const isUncounted = grant.lanes.some((lane, i) => lane.rows !== null || typeof laneHistoryOf(i) === 'object');
    if (isUncounted) estimatedRows += uncountedRows;
    return { access, rows: estimatedRows, segments: Math.ceil(estimatedRows / segmentRows) };
  }

  provenanceOf(name: string, systemFrom: bigint): RowProvenance | undefined {
    for (const source of this.#openVisibleType({ type: name, columns: noColumnNames, time: allTimes }).sources) {
      const ownProvenance = this.#provenanceIn(source, systemFrom);
      if (ownProvenance !== undefined) return ownProvenance;
    }
    return undefined;
  }

  #provenanceIn(source: RowSource, systemFrom: bigint): RowProvenance | undefined {
    const { declared, grant, guards } = source;
    const { rows } = source.paths;
    guards.check(declared.name, noColumnNames);
    if (grant === openGrant) return rows.provenanceOf(declared.name, systemFrom, this.#governedParts.scope.codes);
    if (!this.#showsVersion(source, systemFrom)) return undefined;
    const storedProvenance = rows.provenanceOf(declared.name, systemFrom, this.#lanesOfSource(source, allTimes).codes);
    if (
      storedProvenance === undefined ||
      storedProvenance.derivedFrom === null ||
      !versionNamePattern.test(storedProvenance.derivedFrom)
    )
      return storedProvenance;
    // The version that this one superseded may be hidden, and is not named then.
    const isVisible = this.#showsVersion(source, BigInt.asIntN(64, BigInt(`0x${storedProvenance.derivedFrom}`)));
    return isVisible ? storedProvenance : { ...storedProvenance, derivedFrom: null };
  }

  /** Above the gate nothing may learn which organisations exist. */
  pathCodes(): PathCodes {
    return noPathCodes;
  }

  /** The rows that a request is about, and whose they are. Throws for a classified type. */
  #openVisibleType({ type, columns, paths, further }: ScanRequest): VisibleType {
    assert(!columns.includes(pathColumn), 'the path column is the gate’s own');
    assert(paths === undefined, 'only the gate says which paths a scan may show');
    assert(further === undefined, 'further columns are the gate’s own');
    const namedType = this.#governedParts.types.typeNamed(type);
    return namedType.sources.length === 1 ? namedType : { ...namedType, sources: openSources(namedType, columnNamesOf(columns)) };
  }

  /** The paths that the grant's lanes cover, codes ascending. */
  #lanesOfSource({ grant, paths }: RowSource, time: TimeBounds): SourceLanes {
    const { scope: callerScope, reading, instant } = this.#governedParts;
    const laneScope = reading.scopes.lanesOf(grant, callerScope, paths.rows.pathCodes());
    const laneHistories = historiesOf(grant, time, instant);
    if (laneHistories === null || !laneHistories.includes('nothing'))
      return { scope: laneScope, codes: laneScope.codes, history: laneHistories };
    const isShown = (code: number): boolean =>
      laneScope.lanes[laneScope.groups[code]! - 1]!.some((lane) => laneHistories[lane] !== 'nothing');
    return { scope: laneScope, codes: laneScope.codes.filter(isShown), history: laneHistories };
  }

  #showsVersion(source: RowSource, systemFrom: bigint): boolean {
    const request: ScanRequest = {
      type: source.declared.name,
      columns: systemFromOnly,
      time: allTimes,
      after: systemFrom - 1n,
      zones: [{ column: 'system_from', op: '<=', value: systemFrom }],
      blockRows: 1,
    };
    const laneBlocks = this.#scanThroughLanes(source, request);
    try {
      for (let step = laneBlocks.next(); step.done !== true; step = laneBlocks.next()) {
        const { columns, selection, first, count } = step.value;
        if (count === 0) continue;
        const [systemTimes] = columns;
        assert(systemTimes?.kind === 'i64', 'system times are i64');
        return systemTimes.values[selection === null ? first : selection[0]!] === systemFrom;
      }
      return false;
    } finally {
      laneBlocks.return?.();
    }
  }
}

interface SourceLanes {
  readonly scope: Scope;
  readonly codes: readonly number[];
  readonly history: readonly LaneHistory[] | null;
}

/** Throws where guards or policies close the rows of one tenant, or some of these columns. */
function checkSourceReads({ declared, grant, guards }: RowSource, columns: readonly string[]): void {
  guards.check(declared.name, columnNamesOf(columns));
  if (grant.allowed) return;
  throw new ServiceError('REL_ACL', `no policy permits reading ${declared.name}, and no agreement shares it`);
}

/** The request to the rows of one tenant: of columns alone that mean the same there. */
function requestToSource({ declared }: RowSource, definition: TypeDefinition, request: ScanRequest): ScanRequest {
  const isNamed = request.type === declared.name;
  if (isNamed && declared === definition) return request;
  const isColumnAlike = (column: string): boolean => isAlike(definition, declared, shownOf(column) ?? column);
  const columns = request.columns.filter(isColumnAlike);
  if (isNamed && columns.length === request.columns.length) return request;
  const zones = request.zones?.filter(({ column }) => isColumnAlike(column));
  const indexed = request.indexed?.filter(isColumnAlike);
  const identifiers = request.identifiers?.every(({ column }) => isColumnAlike(column)) ? request.identifiers : undefined;
  return { ...request, type: declared.name, columns, zones, indexed, identifiers };
}

function countRows(blocks: Iterator<RowBlock, void>): number {
  let rowCount = 0;
  for (let step = blocks.next(); step.done !== true; step = blocks.next()) rowCount += step.value.count;
  return rowCount;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const noColumnNames: readonly string[] = [];
const systemFromOnly: readonly string[] = ['system_from'];
const allTimes: TimeBounds = { system: 'all', valid: 'all' };
/** A `system_from` as provenance names versions by it. */
const versionNamePattern = /^[0-9a-f]{16}$/;

const namesByColumns = new WeakMap<readonly string[], readonly string[]>();

/** Columns of the type, each once. Scans of one plan name the same columns. */
function columnNamesOf(columns: readonly string[]): readonly string[] {
  let columnNames = namesByColumns.get(columns);
  if (columnNames === undefined) {
    columnNames = columns.some((column) => shownOf(column) !== null)
      ? [...new Set(columns.map((column) => shownOf(column) ?? column))]
      : columns;
    namesByColumns.set(columns, columnNames);
  }
  return columnNames;
}

const noPathCodes: PathCodes = { size: 0, path: () => null, codeOf: () => -1 };

/** Written field by field: one is made for every scan, and a spread makes another hidden class each time. */
function laneRequest(request: ScanRequest, columns: readonly string[], paths: readonly number[]): Writable<ScanRequest> {
  const { type, time, keys, after, zones, identifiers, blockRows, unsiftedRows } = request;
  const { distinct, further, placed, candidates, indexed, builtOnly } = request;
  return {
    type,
    columns,
    time,
    keys,
    after,
    zones,
    identifiers,
    blockRows,
    paths,
    unsiftedRows,
    distinct,
    further,
    placed,
    candidates,
    indexed,
    builtOnly,
  };
}
