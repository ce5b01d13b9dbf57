/**
 * Rows of one tenant as one grant lets them out: the security barrier. Every predicate and sum of a reader runs over rows that
 * have passed and cells that are shown; figures about rows count those alone.
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
} from '../../projections/access-paths.ts';
import type { StoredBlock } from '../../projections/stored-block.ts';
import { typesOf } from '../authorization/cedar/compile.ts';
import { refuseClassified } from '../authorization/egress.ts';
import type { TypeGrant } from '../authorization/grant.ts';
import { openGrant } from '../authorization/grants.ts';
import type { MaskHash } from '../authorization/renderings.ts';
import type { RowBits } from '../authorization/row-bits.ts';
import { GovernedBlocks } from './governed-blocks.ts';
import { LaneBlocks } from './lane-blocks.ts';
import { historiesOf, type LaneHistory, lanePlan, visibleZones } from './lane-plan.ts';
import type { LaneScope, Scope, ScopeCache } from './path-scopes.ts';
import type { GovernedBlock } from '../search/visible-texts.ts';
import type { RowSource } from './visible-types.ts';

/** Caches that reads keep between snapshots. */
export interface Reading {
  readonly scopes: ScopeCache;
  readonly bits: RowBits;
  readonly hash: MaskHash;
}

export interface GovernedRowsDependencies {
  readonly rows: RowReader<StoredBlock>;
  /** Scope of the caller's own path. */
  readonly scope: Scope;
  /** The guards of a type, the grant on its rows, and its tenant's definition. */
  readonly sourceOf: (type: string) => Pick<RowSource, 'guards' | 'grant' | 'type'>;
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
    this.#check({ type, columns, time: everything });
    return this.#parts.rows.prepare?.(type, columns) ?? null;
  }

  /** Where a condition or a mask hides anything, everything that is shown is looked at. */
  canBeNear({ type, column, time }: Pick<NearRequest, 'type' | 'column' | 'time'>): boolean {
    const { grant } = this.#check({ type, columns: [column], time });
    return grant === openGrant && this.#parts.rows.near !== undefined;
  }

  near(request: NearRequest): Promise<Near> | null {
    const { rows, scope } = this.#parts;
    assert(request.paths === undefined, 'only the gate says which paths are near');
    return this.canBeNear(request) ? rows.near!({ ...request, paths: scope.codes }) : null;
  }

  scan(request: ScanRequest): Iterator<GovernedBlock, void> {
    const { rows, scope } = this.#parts;
    const { grant, type } = this.#check(request);
    const asked = askedOf(request.columns);
    if (grant !== openGrant || asked.shown) return this.#throughLanes(request, grant, type);
    const blocks = rows.scan(within(request, asked.withPath, scope.codes));
    return new GovernedBlocks(blocks, request.columns.length, scope.allowed);
  }

  #throughLanes(request: ScanRequest, grant: TypeGrant, type: TypeDefinition): Iterator<GovernedBlock, void> {
    const { rows, reading } = this.#parts;
    const { scope, codes, history } = this.#lanes(request, grant);
    const plan = lanePlan(grant, request.columns, typesOf(type));
    // Bits tell what one lane lets through; a row that several may show, or whose past counts, is looked at by itself.
    const bitwise =
      scope.apart && !plan.shown && history.every(isWhole) && grant.lanes.every(({ history: past }) => past === 'full');
    const asked = within(request, plan.columns, codes);
    asked.further = true;
    if (!bitwise) asked.unsiftedRows = undefined;
    if (request.zones !== undefined && grant.masked.size > 0) asked.zones = visibleZones(request.zones, grant);
    // To look rows up by a masked column would reveal its values.
    if (asked.identifiers?.some(({ column }) => grant.masked.has(column))) asked.identifiers = undefined;
    const blocks = rows.scan(asked);
    const { bits, hash } = reading;
    const byKey = request.keys !== undefined;
    return new LaneBlocks(blocks, { plan, lanes: grant.lanes, scope, history, byKey, bits, hash, pathCodes: rows.pathCodes() });
  }

  estimate(request: ScanRequest): ScanEstimate {
    const { rows, scope, instant } = this.#parts;
    const { grant, type } = this.#check(request);
    if (grant === openGrant) return rows.estimate(within(request, request.columns, scope.codes));
    const lanes = this.#lanes(request, grant);
    const zones = visibleZones(request.zones ?? [], grant);
    const asked: ScanRequest = { type: request.type, columns: noColumns, time: request.time, zones };
    const { access } = rows.estimate({ ...asked, paths: [], ...(request.keys ? { keys: request.keys } : {}) });
    if (request.keys) {
      const found = this.#count(this.#throughLanes({ ...asked, keys: request.keys }, grant, type));
      return { access, rows: found, segments: found === 0 ? 0 : 1 };
    }
    const counted = { all: [] as number[], open: [] as number[] };
    for (const code of lanes.codes) {
      const [first] = lanes.scope.lanes[lanes.scope.groups[code]! - 1]!.filter((lane) => lanes.history[lane] !== 'nothing');
      if (first === undefined || grant.lanes[first]!.rows !== null) continue;
      if (lanes.history[first] === 'all') counted.all.push(code);
      else if (lanes.history[first] === 'open') counted.open.push(code);
    }
    let sum = rows.estimate({ ...asked, paths: counted.all }).rows;
    const now = { ...asked.time, system: instant };
    if (counted.open.length > 0) sum += rows.estimate({ ...asked, time: now, paths: counted.open }).rows;
    // The count must not reveal whether such rows exist either.
    const isUncounted = grant.lanes.some((lane, i) => lane.rows !== null || typeof lanes.history[i] === 'object');
    if (isUncounted) sum += uncounted;
    return { access, rows: sum, segments: Math.ceil(sum / segmentRows) };
  }

  provenanceOf(name: string, systemFrom: bigint): RowProvenance | undefined {
    refuseClassified(name);
    const { rows, scope, sourceOf: granted } = this.#parts;
    const { guards, grant, type } = granted(name);
    guards.check(name, []);
    if (grant === openGrant) return rows.provenanceOf(name, systemFrom, scope.codes);
    if (!this.#shows(systemFrom, grant, type)) return undefined;
    const found = rows.provenanceOf(name, systemFrom, this.#lanes({ time: everything }, grant).codes);
    if (found === undefined || found.derivedFrom === null || !versionName.test(found.derivedFrom)) return found;
    // The version that this one superseded may be hidden, and is not named then.
    const isVisible = this.#shows(BigInt.asIntN(64, BigInt(`0x${found.derivedFrom}`)), grant, type);
    return isVisible ? found : { ...found, derivedFrom: null };
  }

  /** Above the gate nothing may learn which organisations exist. */
  pathCodes(): PathCodes {
    return noPathCodes;
  }

  #check(request: ScanRequest): { readonly grant: TypeGrant; readonly type: TypeDefinition } {
    refuseClassified(request.type);
    assert(!request.columns.includes(pathColumn), 'the path column is the gate’s own');
    assert(request.paths === undefined, 'only the gate says which paths a scan may show');
    assert(request.further === undefined, 'further columns are the gate’s own');
    const found = this.#parts.sourceOf(request.type);
    found.guards.check(request.type, askedOf(request.columns).names);
    if (found.grant.allowed) return found;
    throw new ServiceError('REL_ACL', `no policy permits reading ${request.type}, and no agreement shares it`);
  }

  /** The paths that the grant's lanes cover, codes ascending. */
  #lanes(
    { time }: Pick<ScanRequest, 'time'>,
    grant: TypeGrant,
  ): { readonly scope: LaneScope; readonly codes: readonly number[]; readonly history: readonly LaneHistory[] } {
    const { rows, scope: own, reading, instant } = this.#parts;
    const scope = reading.scopes.lanesOf(grant, own, rows.pathCodes());
    const history = historiesOf(grant, time, instant);
    if (!history.includes('nothing')) return { scope, codes: scope.codes, history };
    const isShown = (code: number): boolean => scope.lanes[scope.groups[code]! - 1]!.some((lane) => history[lane] !== 'nothing');
    return { scope, codes: scope.codes.filter(isShown), history };
  }

  #count(blocks: Iterator<RowBlock, void>): number {
    let count = 0;
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) count += step.value.count;
    return count;
  }

  #shows(systemFrom: bigint, grant: TypeGrant, type: TypeDefinition): boolean {
    const request: ScanRequest = {
      type: type.name,
      columns: systemFromOnly,
      time: everything,
      after: systemFrom - 1n,
      zones: [{ column: 'system_from', op: '<=', value: systemFrom }],
      blockRows: 1,
    };
    const blocks = this.#throughLanes(request, grant, type);
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

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function isWhole(history: LaneHistory): boolean {
  return history === 'all' || history === 'nothing';
}

const noColumns: readonly string[] = [];
const systemFromOnly: readonly string[] = ['system_from'];
const everything = { system: 'all', valid: 'all' } as const;
/** A `system_from` as provenance names versions by it. */
const versionName = /^[0-9a-f]{16}$/;

interface RequestedColumns {
  readonly withPath: readonly string[];
  /** Columns of the type. */
  readonly names: readonly string[];
  readonly shown: boolean;
}

const known = new WeakMap<readonly string[], RequestedColumns>();

/** Scans of one plan name the same columns. */
function askedOf(columns: readonly string[]): RequestedColumns {
  let asked = known.get(columns);
  if (asked === undefined) {
    const shown = columns.some((column) => shownOf(column) !== null);
    const names = shown ? [...new Set(columns.map((column) => shownOf(column) ?? column))] : columns;
    known.set(columns, (asked = { withPath: [...columns, pathColumn], names, shown }));
  }
  return asked;
}

export const noPathCodes: PathCodes = { size: 0, path: () => null, codeOf: () => -1 };

/** Written field by field: one is made for every scan, and a spread makes another hidden class each time. */
function within(request: ScanRequest, columns: readonly string[], paths: readonly number[]): Writable<ScanRequest> {
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
