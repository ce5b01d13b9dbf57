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
const uncounted = 10_000;
const segmentRows = 65_536;

export class GovernedRows implements RowReader<GovernedBlock> {
  readonly #parts: GovernedRowsDependencies;

  constructor(parts: GovernedRowsDependencies) {
    this.#parts = parts;
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    const request: ScanRequest = { type, columns, time: everything };
    const { definition, sources } = this.#open(request);
    const begun = sources.flatMap((source) => {
      const asked = requestTo(source, definition, request);
      checkReads(source, asked.columns);
      return source.paths.rows.prepare?.(asked.type, asked.columns) ?? [];
    });
    if (begun.length === 0) return null;
    return {
      ready: Promise.all(begun.map(({ ready }) => ready)).then(() => undefined),
      progress: () => {
        const each = begun.map((preparation) => preparation.progress());
        return { done: each.reduce((sum, { done }) => sum + done, 0), of: each.reduce((sum, { of }) => sum + of, 0) };
      },
    };
  }

  canBeNear(request: Pick<NearRequest, 'type' | 'column' | 'time'>): boolean {
    return this.#nearIn(request) !== null;
  }

  near(request: NearRequest): Promise<Near> | null {
    assert(request.paths === undefined, 'only the gate says which paths are near');
    return this.#nearIn(request)?.near!({ ...request, paths: this.#parts.scope.codes }) ?? null;
  }

  /**
   * Storage that knows which rows are near: where they are one tenant's, as they are declared there. Where a condition or a mask
   * hides anything, everything that is shown is looked at.
   */
  #nearIn({ type, column, time }: Pick<NearRequest, 'type' | 'column' | 'time'>): RowReader | null {
    const { definition, sources } = this.#open({ type, columns: [column], time });
    const [source] = sources;
    if (sources.length > 1 || type !== source!.declared.name || !isAlike(definition, source!.declared, column)) return null;
    checkReads(source!, [column]);
    const { rows } = source!.paths;
    return source!.grant === openGrant && rows.near !== undefined ? rows : null;
  }

  scan(request: ScanRequest): Iterator<GovernedBlock, void> {
    const { definition, sources } = this.#open(request);
    if (sources.length === 1) return this.#scanSource(sources[0]!, definition, request);
    const { unsiftedRows: _, ...asked } = request;
    const withTime = { ...asked, columns: [...request.columns, 'system_from'] };
    return new MergedBlocks(sources.map((source) => this.#scanSource(source, definition, withTime)));
  }

  #scanSource(source: RowSource, definition: TypeDefinition, request: ScanRequest): Iterator<GovernedBlock, void> {
    const asked = requestTo(source, definition, request);
    checkReads(source, asked.columns);
    const blocks = this.#throughLanes(source, asked);
    if (asked === request) return blocks;
    return new PaddedBlocks(
      blocks,
      request.columns.map((column) => asked.columns.indexOf(column)),
    );
  }

  #throughLanes(source: RowSource, request: ScanRequest): Iterator<GovernedBlock, void> {
    const { grant, paths, type } = source;
    const { scope, codes, history } = this.#lanes(source, request.time);
    const plan = lanePlan(grant, request.columns, type);
    const asked = laneRequest(request, plan.columns, codes);
    asked.further = plan.further;
    // Bits tell what one lane lets through; a row that several may show, or whose past counts, is looked at by itself.
    if (!scope.apart || !plan.bitwise) asked.unsiftedRows = undefined;
    if (grant.masked.size > 0) {
      asked.zones = request.zones && visibleZones(request.zones, grant);
      // To look rows up by a masked column would reveal its values.
      if (asked.identifiers?.some(({ column }) => grant.masked.has(column))) asked.identifiers = undefined;
    }
    const { rows } = paths;
    const byKey = request.keys !== undefined;
    const scan = { plan, lanes: grant.lanes, scope, history, byKey, reading: this.#parts.reading, pathCodes: rows.pathCodes() };
    return new LaneBlocks(rows.scan(asked), scan);
  }

  estimate(request: ScanRequest): ScanEstimate {
    const { definition, sources } = this.#open(request);
    const estimates = sources.map((source) => {
      const asked = requestTo(source, definition, request);
      checkReads(source, asked.columns);
      return this.#estimateSource(source, asked);
    });
    return estimates.reduce((sum, { rows, segments }) => ({
      access: sum.access,
      rows: sum.rows + rows,
      segments: sum.segments + segments,
    }));
  }

  #estimateSource(source: RowSource, request: ScanRequest): ScanEstimate {
    const { grant } = source;
    const { rows } = source.paths;
    const { scope, instant } = this.#parts;
    if (grant === openGrant) return rows.estimate(laneRequest(request, request.columns, scope.codes));
    const lanes = this.#lanes(source, request.time);
    const zones = visibleZones(request.zones ?? [], grant);
    const asked: ScanRequest = { type: request.type, columns: noColumns, time: request.time, zones };
    const { access } = rows.estimate({ ...asked, paths: [], ...(request.keys ? { keys: request.keys } : {}) });
    if (request.keys) {
      const laneCount = countRows(this.#throughLanes(source, { ...asked, keys: request.keys }));
      return { access, rows: laneCount, segments: laneCount === 0 ? 0 : 1 };
    }
    const pastOf = (lane: number): LaneHistory => lanes.history?.[lane] ?? 'all';
    const counted = { all: [] as number[], open: [] as number[] };
    for (const code of lanes.codes) {
      const [first] = lanes.scope.lanes[lanes.scope.groups[code]! - 1]!.filter((lane) => pastOf(lane) !== 'nothing');
      if (first === undefined || grant.lanes[first]!.rows !== null) continue;
      if (pastOf(first) === 'all') counted.all.push(code);
      else if (pastOf(first) === 'open') counted.open.push(code);
    }
    let sum = rows.estimate({ ...asked, paths: counted.all }).rows;
    const now = { ...asked.time, system: instant };
    if (counted.open.length > 0) sum += rows.estimate({ ...asked, time: now, paths: counted.open }).rows;
    // The count must not reveal whether such rows exist either.
    const isUncounted = grant.lanes.some((lane, i) => lane.rows !== null || typeof pastOf(i) === 'object');
    if (isUncounted) sum += uncounted;
    return { access, rows: sum, segments: Math.ceil(sum / segmentRows) };
  }

  provenanceOf(name: string, systemFrom: bigint): RowProvenance | undefined {
    for (const source of this.#open({ type: name, columns: noColumns, time: everything }).sources) {
      const ownProvenance = this.#provenanceIn(source, systemFrom);
      if (ownProvenance !== undefined) return ownProvenance;
    }
    return undefined;
  }

  #provenanceIn(source: RowSource, systemFrom: bigint): RowProvenance | undefined {
    const { declared, grant, guards } = source;
    const { rows } = source.paths;
    guards.check(declared.name, noColumns);
    if (grant === openGrant) return rows.provenanceOf(declared.name, systemFrom, this.#parts.scope.codes);
    if (!this.#shows(source, systemFrom)) return undefined;
    const storedProvenance = rows.provenanceOf(declared.name, systemFrom, this.#lanes(source, everything).codes);
    if (
      storedProvenance === undefined ||
      storedProvenance.derivedFrom === null ||
      !versionName.test(storedProvenance.derivedFrom)
    )
      return storedProvenance;
    // The version that this one superseded may be hidden, and is not named then.
    const isVisible = this.#shows(source, BigInt.asIntN(64, BigInt(`0x${storedProvenance.derivedFrom}`)));
    return isVisible ? storedProvenance : { ...storedProvenance, derivedFrom: null };
  }

  /** Above the gate nothing may learn which organisations exist. */
  pathCodes(): PathCodes {
    return noPathCodes;
  }

  /** The rows that a request is about, and whose they are. Throws for a classified type. */
  #open({ type, columns, paths, further }: ScanRequest): VisibleType {
    assert(!columns.includes(pathColumn), 'the path column is the gate’s own');
    assert(paths === undefined, 'only the gate says which paths a scan may show');
    assert(further === undefined, 'further columns are the gate’s own');
    const namedType = this.#parts.types.typeNamed(type);
    return namedType.sources.length === 1 ? namedType : { ...namedType, sources: openSources(namedType, namesOf(columns)) };
  }

  /** The paths that the grant's lanes cover, codes ascending. */
  #lanes({ grant, paths }: RowSource, time: TimeBounds): SourceLanes {
    const { scope: own, reading, instant } = this.#parts;
    const scope = reading.scopes.lanesOf(grant, own, paths.rows.pathCodes());
    const history = historiesOf(grant, time, instant);
    if (history === null || !history.includes('nothing')) return { scope, codes: scope.codes, history };
    const isShown = (code: number): boolean => scope.lanes[scope.groups[code]! - 1]!.some((lane) => history[lane] !== 'nothing');
    return { scope, codes: scope.codes.filter(isShown), history };
  }

  #shows(source: RowSource, systemFrom: bigint): boolean {
    const request: ScanRequest = {
      type: source.declared.name,
      columns: systemFromOnly,
      time: everything,
      after: systemFrom - 1n,
      zones: [{ column: 'system_from', op: '<=', value: systemFrom }],
      blockRows: 1,
    };
    const blocks = this.#throughLanes(source, request);
    try {
      for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
        const { columns, selection, first, count } = step.value;
        if (count === 0) continue;
        const [vector] = columns;
        assert(vector?.kind === 'i64', 'system times are i64');
        return vector.values[selection === null ? first : selection[0]!] === systemFrom;
      }
      return false;
    } finally {
      blocks.return?.();
    }
  }
}

interface SourceLanes {
  readonly scope: Scope;
  readonly codes: readonly number[];
  readonly history: readonly LaneHistory[] | null;
}

/** Throws where guards or policies close the rows of one tenant, or some of these columns. */
function checkReads({ declared, grant, guards }: RowSource, columns: readonly string[]): void {
  guards.check(declared.name, namesOf(columns));
  if (grant.allowed) return;
  throw new ServiceError('REL_ACL', `no policy permits reading ${declared.name}, and no agreement shares it`);
}

/** The request to the rows of one tenant: of columns alone that mean the same there. */
function requestTo({ declared }: RowSource, definition: TypeDefinition, request: ScanRequest): ScanRequest {
  const isNamed = request.type === declared.name;
  if (isNamed && declared === definition) return request;
  const alike = (column: string): boolean => isAlike(definition, declared, shownOf(column) ?? column);
  const columns = request.columns.filter(alike);
  if (isNamed && columns.length === request.columns.length) return request;
  const zones = request.zones?.filter(({ column }) => alike(column));
  const indexed = request.indexed?.filter(alike);
  const identifiers = request.identifiers?.every(({ column }) => alike(column)) ? request.identifiers : undefined;
  return { ...request, type: declared.name, columns, zones, indexed, identifiers };
}

function countRows(blocks: Iterator<RowBlock, void>): number {
  let count = 0;
  for (let step = blocks.next(); step.done !== true; step = blocks.next()) count += step.value.count;
  return count;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const noColumns: readonly string[] = [];
const systemFromOnly: readonly string[] = ['system_from'];
const everything: TimeBounds = { system: 'all', valid: 'all' };
/** A `system_from` as provenance names versions by it. */
const versionName = /^[0-9a-f]{16}$/;

const known = new WeakMap<readonly string[], readonly string[]>();

/** Columns of the type, each once. Scans of one plan name the same columns. */
function namesOf(columns: readonly string[]): readonly string[] {
  let names = known.get(columns);
  if (names === undefined) {
    names = columns.some((column) => shownOf(column) !== null)
      ? [...new Set(columns.map((column) => shownOf(column) ?? column))]
      : columns;
    known.set(columns, names);
  }
  return names;
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
