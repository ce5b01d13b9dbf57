/**
 * Access paths under a grant: what one invocation may see of a snapshot. The paths of the caller's scope travel into storage
 * with every scan, so that storage can skip what is not visible, and every block is checked again where rows leave.
 * Classified types don't exist for anybody.
 */
import type { TypeDefinition } from '../log/entry.ts';
import type { AccessPaths, CatalogReader, ErasureReader, Removal, RemovalReader } from '../projections/access-paths.ts';
import { isClassified, refuseClassified } from './authorization/egress.ts';
import type { Grant, Lane, TypeGrant } from './authorization/grant.ts';
import type { Guards } from './authorization/guards.ts';
import { unregistered } from './authorization/policy.ts';
import { sees, type Caller } from './caller.ts';
import type { GovernedSnapshot } from './gate-contract.ts';
import { GovernedRows, type Reading } from './governed-rows.ts';
import type { Beginning } from './tenancy/earlier-tenant.ts';

/** Whom a snapshot is for. Everything that decides is in `grantKey`. */
export interface Governing {
  readonly caller: Caller;
  readonly purpose: string | null;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  readonly guards: Guards;
  readonly grant: Grant;
  /** Of the caller’s tenant. */
  readonly beginning: Beginning;
}

interface Granted {
  readonly grant: TypeGrant;
  readonly type: TypeDefinition;
}

export function governSnapshot(paths: AccessPaths, governing: Governing, reading: Reading): GovernedSnapshot {
  const { caller, purpose, breakGlass, accessScopeRef, guards, grant, beginning } = governing;
  const scope = reading.scopes.scopeOf(caller.path, paths.rows.pathCodes());
  const granted = (type: string): Granted => grantedOf(paths, grant, type);
  const rows = new GovernedRows({ rows: paths.rows, scope, guards, granted, reading, instant: paths.instant });
  const mayShow = (type: string, path: string | null): boolean =>
    granted(type).grant.lanes.some((lane) => (lane.agreement === null ? sees(caller.path, path) : lane.covers(path)));
  return {
    governed: true,
    caller,
    purpose,
    breakGlass,
    accessScopeRef,
    // A control character can't occur in a path, so no path reads as the null one.
    grantKey: `${grant.key}\u0000${paths.branchId}.${paths.protectionEpoch}\u0000${guards.key}\u0000${caller.path ?? '\u0000'}${began(beginning)}`,
    branch: paths.branch,
    branchId: paths.branchId,
    position: paths.position,
    instant: paths.instant,
    catalog: new GovernedCatalog(paths.catalog),
    protection: paths.protection,
    protectionEpoch: paths.protectionEpoch,
    masked: (type) => granted(type).grant.masked,
    seenBy: (type) => (granted(type).grant.lanes.every(isWhole) ? 'path' : 'row'),
    mayShow,
    rows,
    stored: rows,
    removals: governRemovals(paths.removals, governing, granted),
    erasing: (types) => erasing(paths.erasures, types, mayShow),
    // What is made for a path is made for those below it.
    views: paths.views.filter(({ owner, position }) => sees(owner, caller.path) && position >= (beginning?.position ?? 0)),
  };
}

function erasing(erasures: ErasureReader, types: Iterable<string>, mayShow: GovernedSnapshot['mayShow']): () => boolean {
  const { count } = erasures;
  return () => {
    if (erasures.count === count) return false;
    for (const type of types) {
      for (const [path, last] of erasures.of(type)) if (last > count && mayShow(type, path)) return true;
    }
    return false;
  };
}

/** What an earlier tenant of the same path asked was planned with its views. */
const began = (beginning: Beginning): string => (beginning === null ? '' : `\u0000${beginning.position}`);

/** All rows of one's own organisation. */
function isWhole({ agreement, rows, history }: Lane): boolean {
  return agreement === null && rows === null && history === 'full';
}

/** A column that any definition of the lineage declares masked is, whatever the branch, or the catalog of then, says. */
function grantedOf({ catalog, protection }: AccessPaths, grant: Grant, name: string): Granted {
  const declared = catalog.type(name) ?? unregistered(name);
  const { masked } = protection(name);
  const type = masked.size === 0 ? declared : withMasked(declared, masked);
  return { grant: grant.of(type), type };
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

/**
 * Of what is gone nothing is left to ask a condition of: where one decides about rows, or keys are hidden, it is told that
 * rows were removed, for whoever keeps some, and not which.
 */
function governRemovals(
  removals: RemovalReader,
  { caller, guards }: Governing,
  granted: (type: string) => Granted,
): RemovalReader {
  const covers = (lane: Lane, path: string | null): boolean =>
    lane.agreement === null ? sees(caller.path, path) : lane.covers(path);
  return {
    removedAfter: (type, instant) => {
      refuseClassified(type);
      guards.check(type, []);
      const { lanes } = granted(type).grant;
      return removals.removedAfter(type, instant).flatMap((removal): Removal[] => {
        const lane = lanes.find((each) => covers(each, removal.path));
        if (lane === undefined) return [];
        if (lane.rows === null && showsKeys(lane)) return [removal];
        const { unnamed: _, ...told } = removal;
        return [{ ...told, keys: [] }];
      });
    },
  };
}

function showsKeys({ masks, columns, history }: Lane): boolean {
  return !masks.has('_pk') && columns === null && history === 'full';
}
