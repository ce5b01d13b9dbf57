/**
 * Access paths under a caller's scope. The scope travels into storage with every scan, so that storage can skip what
 * the caller may not see, and every block is checked again here, where rows leave: a reader that ignored the scope
 * would still let nothing out. Classified types don't exist for anybody.
 */
import { assert, ServiceError } from '../errors.ts';
import type { Vector } from '../log/columns.ts';
import type { TypeDefinition } from '../log/entry.ts';
import {
  pathColumn,
  type AccessPaths,
  type CatalogReader,
  type PathCodes,
  type RemovalReader,
  type RowBlock,
  type RowProvenance,
  type RowReader,
  type ScanEstimate,
  type ScanRequest,
} from '../projections/access-paths.ts';
import { isClassified, refuseClassified } from './authorization/egress.ts';
import type { Grant, Lane, TypeGrant } from './authorization/grant.ts';
import { openGrant } from './authorization/grants.ts';
import type { Guards } from './authorization/guards.ts';
import { unregistered } from './authorization/policy.ts';
import { sees, type Caller } from './caller.ts';
import type { GovernedSnapshot } from './gate-contract.ts';

/** Whom a snapshot is for. Everything that decides is in `grantKey`. */
export interface Governing {
  readonly caller: Caller;
  readonly purpose: string | null;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  readonly guards: Guards;
  readonly grant: Grant;
}

export function governSnapshot(paths: AccessPaths, governing: Governing, scopes: ScopeCache): GovernedSnapshot {
  const { caller, purpose, breakGlass, accessScopeRef, guards, grant } = governing;
  const scope = scopes.scopeOf(caller.path, paths.rows.pathCodes());
  const granted = (type: string): TypeGrant => grantedOf(paths, grant, type);
  const rows = new GovernedRows(paths.rows, scope, guards, granted);
  return {
    governed: true,
    caller,
    purpose,
    breakGlass,
    accessScopeRef,
    // A control character can't occur in a path, so no path reads as the null one.
    grantKey: `${grant.key}\u0000${paths.branchId}\u0000${guards.key}\u0000${caller.path ?? '\u0000'}`,
    branch: paths.branch,
    branchId: paths.branchId,
    position: paths.position,
    instant: paths.instant,
    catalog: new GovernedCatalog(paths.catalog),
    protection: paths.protection,
    masked: (type) => granted(type).masked,
    seenBy: (type) => (granted(type).lanes.every(isWhole) ? 'path' : 'row'),
    mayShow: (type, path) =>
      granted(type).lanes.some((lane) => (lane.agreement === null ? sees(caller.path, path) : lane.covers(path))),
    rows,
    stored: rows,
    removals: governRemovals(paths.removals, governing),
    // What is made for a path is made for those below it.
    views: paths.views.filter(({ owner }) => sees(owner, caller.path)),
  };
}

/** All rows of one's own organisation. */
function isWhole({ agreement, rows, history }: Lane): boolean {
  return agreement === null && rows === null && history === 'full';
}

/** A column that any definition of the lineage declares masked is, whatever the branch, or the catalog of then, says. */
function grantedOf({ catalog, protection }: AccessPaths, grant: Grant, name: string): TypeGrant {
  const type = catalog.type(name) ?? unregistered(name);
  const { masked } = protection(name);
  return grant.of(masked.size === 0 ? type : withMasked(type, masked));
}

const maskedTypes = new WeakMap<TypeDefinition, { readonly masked: ReadonlySet<string>; readonly type: TypeDefinition }>();

/** The same one for the same columns: what was decided of a type is found by its identity. */
function withMasked(type: TypeDefinition, masked: ReadonlySet<string>): TypeDefinition {
  const known = maskedTypes.get(type);
  if (known?.masked === masked) return known.type;
  const names = [...masked].filter((name) => Object.hasOwn(type.properties, name));
  const added = names.map((name) => [name, { ...type.properties[name]!, masked: true }] as const);
  const made = { ...type, properties: { ...type.properties, ...Object.fromEntries(added) } };
  maskedTypes.set(type, { masked, type: made });
  return made;
}

/** Path codes that one caller path may see. */
interface Scope {
  readonly codes: readonly number[];
  /** By code: 1 = allowed. Codes beyond its length came later than the snapshot's scope was made, and are refused. */
  readonly allowed: Uint8Array;
}

/** Scopes by caller path, remade when storage has met new paths. Path codes are append-only, so a size tells it all. */
export class ScopeCache {
  readonly #scopes = new Map<string | null, Scope>();
  readonly #entriesMax: number;

  constructor(entriesMax = 1024) {
    this.#entriesMax = entriesMax;
  }

  scopeOf(callerPath: string | null, pathCodes: PathCodes): Scope {
    const known = this.#scopes.get(callerPath);
    if (known !== undefined && known.allowed.length === pathCodes.size) return known;
    // Snapshots hold on to the scope they were given: a grown one is a new one, and looks at new codes only.
    const allowed = new Uint8Array(pathCodes.size);
    const codes = known === undefined ? [] : known.codes.slice();
    if (known !== undefined) allowed.set(known.allowed);
    for (let code = known?.allowed.length ?? 0; code < pathCodes.size; code++) {
      if (!sees(callerPath, pathCodes.path(code))) continue;
      allowed[code] = 1;
      codes.push(code);
    }
    if (this.#scopes.size >= this.#entriesMax) this.#scopes.clear();
    const scope = { codes, allowed };
    this.#scopes.set(callerPath, scope);
    return scope;
  }
}

class GovernedCatalog implements CatalogReader {
  readonly #catalog: CatalogReader;

  constructor(catalog: CatalogReader) {
    this.#catalog = catalog;
  }

  type(name: string): ReturnType<CatalogReader['type']> {
    refuseClassified(name);
    return this.#catalog.type(name);
  }

  types(): ReturnType<CatalogReader['types']> {
    return this.#catalog.types().filter((type) => !isClassified(type.name));
  }

  get ontologyVersion(): number {
    return this.#catalog.ontologyVersion;
  }
}

class GovernedRows implements RowReader {
  readonly #rows: RowReader;
  readonly #scope: Scope;
  readonly #guards: Guards;
  readonly #granted: (type: string) => TypeGrant;

  constructor(rows: RowReader, scope: Scope, guards: Guards, granted: (type: string) => TypeGrant) {
    this.#rows = rows;
    this.#scope = scope;
    this.#guards = guards;
    this.#granted = granted;
  }

  scan(request: ScanRequest): Iterator<RowBlock, void> {
    refuse(request);
    this.#guards.check(request.type, request.columns);
    this.#checkOpen(request.type);
    const width = request.columns.length;
    const blocks = this.#rows.scan({
      ...request,
      columns: withPath(request.columns),
      paths: this.#scope.codes,
    });
    return new GovernedBlocks(blocks, width, this.#scope.allowed);
  }

  estimate(request: ScanRequest): ScanEstimate {
    refuse(request);
    this.#guards.check(request.type, request.columns);
    this.#checkOpen(request.type);
    return this.#rows.estimate({ ...request, paths: this.#scope.codes });
  }

  provenanceOf(type: string, systemFrom: bigint): RowProvenance | undefined {
    refuseClassified(type);
    this.#guards.check(type, []);
    this.#checkOpen(type);
    return this.#rows.provenanceOf(type, systemFrom, this.#scope.codes);
  }

  #checkOpen(type: string): void {
    if (this.#granted(type) === openGrant) return;
    throw new ServiceError('REL_NOT_IMPLEMENTED', `reading ${type} under policies, masks or agreements`);
  }

  /** Which organisations exist is nobody's business above the gate. */
  pathCodes(): PathCodes {
    return noPathCodes;
  }
}

const widened = new WeakMap<readonly string[], readonly string[]>();

/** Scans of one plan name the same columns. */
function withPath(columns: readonly string[]): readonly string[] {
  let names = widened.get(columns);
  if (names === undefined) widened.set(columns, (names = [...columns, pathColumn]));
  return names;
}

function governRemovals(removals: RemovalReader, { caller, guards }: Governing): RemovalReader {
  return {
    removedAfter: (type, instant) => {
      refuseClassified(type);
      guards.check(type, []);
      return removals.removedAfter(type, instant).filter(({ path }) => sees(caller.path, path));
    },
  };
}

const noPathCodes: PathCodes = { size: 0, path: () => null, codeOf: () => -1 };

function refuse(request: ScanRequest): void {
  refuseClassified(request.type);
  assert(!request.columns.includes(pathColumn), 'the path column is the gate’s own');
  assert(request.paths === undefined, 'only the gate says which paths a scan may show');
}

class GovernedBlocks implements Iterator<RowBlock, void> {
  readonly #blocks: Iterator<RowBlock, void>;
  /** Columns that the reader asked for; the path column stands behind them. */
  readonly #width: number;
  readonly #allowed: Uint8Array;

  constructor(blocks: Iterator<RowBlock, void>, width: number, allowed: Uint8Array) {
    this.#blocks = blocks;
    this.#width = width;
    this.#allowed = allowed;
  }

  next(): IteratorResult<RowBlock, void> {
    for (;;) {
      const step = this.#blocks.next();
      if (step.done === true) return step;
      const block = step.value;
      assert(block.columns.length === this.#width + 1, 'a block carries the path column');
      const columns = block.columns.slice(0, this.#width);
      if (block.path >= 0) {
        if (this.#allowed[block.path] === 1) return { done: false, value: { ...block, columns } };
        continue;
      }
      const visible = this.#filter(block);
      if (visible !== undefined) return { done: false, value: { ...visible, columns } };
    }
  }

  return(): IteratorResult<RowBlock, void> {
    this.#blocks.return?.();
    return { done: true, value: undefined };
  }

  /** The rows of a mixed block that may be seen; the block itself when all may, undefined when none. */
  #filter(block: RowBlock): RowBlock | undefined {
    assert(block.sift === undefined, 'rows of several paths leave sifted');
    const codes = codesOf(block.columns[this.#width]!);
    const allowed = this.#allowed;
    const { selection, first, count } = block;
    let seen = 0;
    if (selection === null) for (let i = first; i < first + count; i++) seen += allowed[codes[i]!] ?? 0;
    else for (let i = 0; i < count; i++) seen += allowed[codes[selection[i]!]!] ?? 0;
    if (seen === count) return block;
    if (seen === 0) return undefined;
    const kept = new Int32Array(seen);
    let at = 0;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (allowed[codes[row]!] === 1) kept[at++] = row;
    }
    // How many versions storage looked at would tell how much others wrote.
    return { ...block, selection: kept, first: 0, count: seen, scanned: Math.min(block.scanned, seen) };
  }
}

function codesOf(vector: Vector): Int32Array {
  assert(vector.kind === 'i32' && vector.nulls === null, 'the path column is i32 without nulls');
  return vector.values;
}
