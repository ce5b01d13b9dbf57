/**
 * Access paths under a grant, as policies and agreements stand or as a recipe has pinned them: one invocation's view of a
 * snapshot. The paths of the caller's scope travel into storage with every
 * scan, so that storage can skip invisible rows, and every block is checked again where rows leave. Classified types exist for no
 * caller.
 */
import { ServiceError } from '../../errors.ts';
import type {
  AccessPaths,
  CatalogReader,
  ErasureReader,
  Removal,
  RemovalReader,
  TenantPaths,
  ViewRecord,
} from '../../projections/access-paths.ts';
import { isClassified } from '../authorization/egress.ts';
import type { CedarAction } from '../authorization/cedar/policies.ts';
import { visibleRules } from '../rules/visible-rules.ts';
import type { Grant, Lane } from '../authorization/grant.ts';
import type { Guards } from '../authorization/guards.ts';
import type { Judged } from '../authorization/judge.ts';
import { sees, type Caller } from '../caller.ts';
import type { GovernedSnapshot, PinnedGrant, RecalledRow } from '../gate-contract.ts';
import type { Core } from '../gate-core.ts';
import { type Beginning, beginningOf } from '../tenancy/earlier-tenant.ts';
import { GovernedRows } from './governed-rows.ts';
import type { Reading } from './lane-blocks.ts';
import { isClosed, VisibleTypes } from './visible-types.ts';

type GrantingCore = Pick<Core, 'judge' | 'grants' | 'reading' | 'parts'>;

export function grantedSnapshot(
  core: GrantingCore,
  paths: AccessPaths,
  judged: Judged,
  now: bigint,
  right?: CedarAction,
): GovernedSnapshot {
  const { grant, guardsOf } = grantAndGuards(core, judged, now, right);
  const { caller, purpose, breakGlass, accessScopeRef } = judged;
  const beginning = beginningOf(core.parts.projections.tenants, caller);
  return governSnapshot(paths, { caller, purpose, breakGlass, accessScopeRef, guardsOf, grant, beginning }, core.reading);
}

/** The types of such a snapshot alone, for callers that read no row. */
export function grantedTypes(core: GrantingCore, paths: AccessPaths, judged: Judged, now: bigint): VisibleTypes {
  const { grant, guardsOf } = grantAndGuards(core, judged, now);
  return new VisibleTypes({ paths, grant, visiting: judged.caller.sharedFrom !== null, guardsOf });
}

function grantAndGuards({ judge, grants }: GrantingCore, judged: Judged, now: bigint, right?: CedarAction): GrantAndGuards {
  const { caller, action } = judged;
  return {
    grant: grants.grantFor({ caller, action, stated: judged, now, ...(right && { right }) }),
    guardsOf: ({ protection }) => judge.guards(judged, protection),
  };
}

interface GrantAndGuards {
  readonly grant: Grant;
  guardsOf(paths: TenantPaths): Guards;
}

/**
 * The snapshot of a recipe, under the scope and the policies of then, for any caller who derives it again; never cached with
 * plans of now.
 */
export function pinnedSnapshot(
  core: GrantingCore,
  paths: AccessPaths,
  deriver: Caller,
  pinned: PinnedGrant,
  action: 'query' | 'search',
): GovernedSnapshot {
  const { judge, grants, reading } = core;
  const { principal, path, branch, roles, attributes, door, clientIp, instant, masked } = pinned;
  const { purpose, breakGlass, accessScopeRef } = pinned;
  const pinnedPolicies = judge.policies.setAt(paths.position);
  if ((pinnedPolicies?.digest ?? '') !== pinned.policyDigest) {
    throw new ServiceError('REL_UNPROCESSABLE', 'the policy set at the basis of the recipe is not the one that it names');
  }
  const caller = { ...deriver, principal, path, branch, roles, attributes, door, clientIp, sharedFrom: null };
  const pinnedJudged: Judged = { caller, action, purpose, breakGlass, accessScopeRef };
  const grant = grants.grantOfThen({ caller, action, stated: pinnedJudged, now: instant }, pinnedPolicies);
  const guardsOf = () => judge.guards(pinnedJudged, paths.protection);
  const pinnedProtection = (type: string) => ({ ...paths.protection(type), masked: new Set(masked[type]) });
  const governedPaths = governSnapshot(
    { ...paths, protection: pinnedProtection },
    { ...pinnedJudged, guardsOf, grant, beginning: null },
    reading,
  );
  return { ...governedPaths, grantKey: `${governedPaths.grantKey}\u0000@${instant}`, pinned: true };
}

/** Whom a snapshot is for. Everything that decides is in `grantKey`. */
export interface Governing {
  readonly caller: Caller;
  readonly purpose: string | null;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  guardsOf(paths: TenantPaths): Guards;
  readonly grant: Grant;
  /** When the caller’s tenant began. */
  readonly beginning: Beginning;
}

export function governSnapshot(paths: AccessPaths, governing: Governing, reading: Reading): GovernedSnapshot {
  const { caller, purpose, breakGlass, accessScopeRef, guardsOf, grant, beginning } = governing;
  const pathScope = reading.scopes.scopeOf(caller.path, paths.rows.pathCodes());
  const visibleTypes = new VisibleTypes({ paths, grant, visiting: caller.sharedFrom !== null, guardsOf });
  const governedRows = new GovernedRows({ types: visibleTypes, scope: pathScope, reading, instant: paths.instant });
  const laneCovers = (lane: Lane, path: string | null): boolean =>
    lane.agreement === null ? sees(caller.path, path) : lane.covers(path);
  const mayShow = (type: string, path: string | null): boolean =>
    visibleTypes.typeNamed(type).grant.lanes.some((lane) => laneCovers(lane, path));
  // A view of a path is visible to the paths below it.
  const visibleViews = paths.views.filter(
    ({ owner, position }) => sees(owner, caller.path) && position >= (beginning?.position ?? 0),
  );
  const protectionEpochs = `${paths.branchId}.${paths.protectionEpoch}`;
  return {
    governed: true,
    caller,
    purpose,
    breakGlass,
    accessScopeRef,
    // A control character can't occur in a path, so no path reads as the null one.
    // Two private snapshots may exist at one instant and hold different rows: results under this key are cached for neither.
    isPrivate: paths.isPrivate,
    grantKey: `${grant.key}\u0000${protectionEpochs}\u0000${visibleTypes.sharedKey}\u0000${guardsOf(paths).key}\u0000${caller.path ?? '\u0000'}${beginningKey(beginning)}`,
    tenant: paths.tenant,
    branch: paths.branch,
    branchId: paths.branchId,
    position: paths.position,
    instant: paths.instant,
    catalog: new GovernedCatalog(paths.catalog, visibleTypes, visibleViews),
    protection: paths.protection,
    protectionEpoch: paths.protectionEpoch,
    masksOf: (type) => visibleTypes.typeNamed(type).grant.masked,
    hides: (type, column) => visibleTypes.typeNamed(type).grant.lanes.every(({ masks }) => masks.get(column)?.when === null),
    offers: (type) => visibleTypes.offers(type),
    notices: (type, columns) => visibleTypes.notices(type, columns),
    seenBy: (type) => (visibleTypes.typeNamed(type).grant.lanes.every(isWholeLane) ? 'path' : 'row'),
    shares: (type) => visibleTypes.typeNamed(type).sources.some((source) => source.paths.tenant !== paths.tenant),
    mayShow,
    rows: governedRows,
    stored: governedRows,
    embeddingsOf: (type, model, instant, texts) => {
      const { sources, grant: granted } = visibleTypes.typeNamed(type);
      if (sources.some(({ paths: { tenant } }) => tenant !== paths.tenant)) return null;
      return paths.embeddings(model, instant, new Set(texts.filter((name) => !granted.masked.has(name))));
    },
    recallsOf: (type, rows, instant) => {
      const reader = paths.recalls(instant);
      return rows.map((row) => reader.recallsOf(recallId(reading, paths.branchId, type, row), (path) => sees(caller.path, path)));
    },
    recalledAs: (type, rows) => ({
      salt: recallSalt,
      ids: rows.map((row) => recallId(reading, paths.branchId, type, row)),
    }),
    removals: governRemovals(paths.removals, visibleTypes, laneCovers),
    erasing: (names) =>
      erasureTest(
        paths.erasures,
        [...names].map((name) => visibleTypes.typeNamed(name).definition.name),
        mayShow,
      ),
    textLanguage: paths.textLanguage,
    searchAt: paths.searchAt,
    views: visibleViews,
    // Like rows: those of a path are seen by it and by the paths above it.
    judgements: (instant) =>
      paths
        .judgements(instant)
        .filter(({ owner, position }) => sees(caller.path, owner) && position >= (beginning?.position ?? 0)),
    rules: () => visibleRules(paths.rules(), caller.path, beginning),
  };
}

function erasureTest(erasures: ErasureReader, types: Iterable<string>, mayShow: GovernedSnapshot['mayShow']): () => boolean {
  const { count } = erasures;
  return () => {
    if (erasures.count === count) return false;
    for (const type of types) {
      for (const [path, lastErasure] of erasures.pathsOf(type)) if (lastErasure > count && mayShow(type, path)) return true;
    }
    return false;
  };
}

/** Raised with what is hashed. */
const recallSalt = 'recall/1';

/** The id of a row in access records: without the store's key it leads to no row. */
function recallId({ hash }: Reading, branch: number, type: string, { key, path }: RecalledRow): string {
  return hash.hashOf(JSON.stringify([recallSalt, branch, path, type, key]), path);
}

/** Part of the plan-cache key: plans of an earlier tenant of the same path used its views. */
const beginningKey = (beginning: Beginning): string => (beginning === null ? '' : `\u0000${beginning.position}`);

/** All rows of one's own organisation. */
function isWholeLane({ agreement, rows, history }: Lane): boolean {
  return agreement === null && rows === null && history === 'full';
}

const noViewNames: ReadonlySet<string> = new Set();

class GovernedCatalog implements CatalogReader {
  readonly #storedCatalog: CatalogReader;
  readonly #visibleTypes: VisibleTypes;
  readonly #viewNames: ReadonlySet<string>;

  constructor(catalog: CatalogReader, types: VisibleTypes, views: readonly ViewRecord[]) {
    this.#storedCatalog = catalog;
    this.#visibleTypes = types;
    this.#viewNames = views.length === 0 ? noViewNames : new Set(views.map(({ name }) => name));
  }

  type(name: string): ReturnType<CatalogReader['type']> {
    return this.#isHiddenByView(name) ? undefined : this.#visibleTypes.find(name)?.definition;
  }

  /** A view of the tenant comes before an inherited or shared type of its name: no other tenant can replace it. */
  #isHiddenByView(name: string): boolean {
    return this.#viewNames.has(name) && !this.#storedCatalog.isOwn(name);
  }

  isOwn(name: string): boolean {
    return !isClassified(name) && this.#storedCatalog.isOwn(name);
  }

  types(): ReturnType<CatalogReader['types']> {
    const visibleDefinitions = this.#visibleTypes.definitions();
    return this.#viewNames.size === 0 ? visibleDefinitions : visibleDefinitions.filter(({ name }) => !this.#isHiddenByView(name));
  }

  get ontologyVersion(): number {
    return this.#storedCatalog.ontologyVersion;
  }
}

/**
 * Removed rows can't be tested against a row condition: where one decides about rows, or keys are hidden, callers learn that
 * rows were removed, not which.
 */
function governRemovals(
  removals: RemovalReader,
  types: VisibleTypes,
  laneCovers: (coveringLane: Lane, path: string | null) => boolean,
): RemovalReader {
  return {
    removedAfter: (name, instant) => {
      const { sources } = types.typeNamed(name);
      return sources.flatMap(({ declared, guards, grant }, i) => {
        if (i > 0 && isClosed(guards, declared.name, [])) return [];
        guards.check(declared.name, []);
        return removals.removedAfter(declared.name, instant).flatMap((removal): Removal[] => {
          const lane = grant.lanes.find((each) => laneCovers(each, removal.path));
          if (lane === undefined) return [];
          if (lane.rows === null && isLaneShowingKeys(lane)) return [removal];
          const { unnamed: _, ...namedRemoval } = removal;
          return [{ ...namedRemoval, keys: [] }];
        });
      });
    },
  };
}

function isLaneShowingKeys({ masks, columns, history }: Lane): boolean {
  return !masks.has('_pk') && columns === null && history === 'full';
}
