/**
 * Grants of callers, per type: the caller's own organisation as the policies in force let it, and rows that agreements in force
 * share with it. Decided as of now, at whatever instant is read: a grant of then would dodge a policy, a mask or a revocation
 * that came since.
 *
 * Invariants: grants of one key let the same rows and cells through; without policies, agreements and masks there is one grant,
 * and finding it costs nothing measurable.
 */
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../errors.ts';
import type { AgreementRecord, MaskKind, TypeDefinition } from '../../log/entries/entry.ts';
import { compareText, tenantOf } from '../../log/values/value.ts';
import { isInForce } from '../../projections/tenants/agreements.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import { tenantOfPath } from '../../projections/tenants/tenant-drafts.ts';
import { answers } from './action-names.ts';
import { covers, sees, type Caller } from '../caller.ts';
import type { Action } from '../gate-contract.ts';
import { agreementPolicy } from './agreement-policy.ts';
import { CallerPolicies } from './cedar/decision.ts';
import { askerKey } from './cedar/entities.ts';
import { type CedarAction, type Policy } from './cedar/policies.ts';
import { strictness } from './cedar/compile.ts';
import { mentions } from './cedar/syntax.ts';
import type { CellMask, Grant, Lane, SharingTenant, TypeGrant } from './grant.ts';
import { askerOf, type PoliciesInForce, type Stated } from './policies-in-force.ts';
import { cedarActionOf, type PolicySet } from './policy-set.ts';

/** The input of a grant, beside the clock. */
export interface Granted {
  readonly caller: Caller;
  readonly stated: Stated;
  readonly action: Action;
  /** Rows are seen by this right, in place of the one that the action sees them by. */
  readonly right?: CedarAction;
  /** Nanoseconds: the instant of the invocation, never that of what it reads. */
  readonly now: bigint;
}

/** Callers whose grants are kept. */
const rememberedGrants = 1024;

export const noMasks: ReadonlyMap<string, MaskKind> = new Map();

export class Grants {
  readonly #policiesInForce: PoliciesInForce;
  readonly #tenants: Pick<Tenants, 'epoch' | 'sharedWith'>;
  /** Agreements by the tenant that they are shared with, as of one epoch of tenants. */
  readonly #sharedByTenant = new Map<string, readonly AgreementRecord[]>();
  #agreementsEpoch = -1;
  readonly #callerViews = new LRUCache<string, CallerView>({ max: rememberedGrants });
  /** Each caller's latest grant: the next question asks for the same one nearly always. */
  readonly #lastViewOf = new WeakMap<Caller, { readonly granted: Granted; readonly epoch: number; readonly view: CallerView }>();
  readonly #plainGrants = { masked: plainGrant('', []), unmasked: plainGrant('unmask', ['unmask']) };

  constructor(policies: PoliciesInForce, tenants: Pick<Tenants, 'epoch' | 'sharedWith'>) {
    this.#policiesInForce = policies;
    this.#tenants = tenants;
  }

  /** Rises with every change of policies, tenants and agreements. */
  get epoch(): number {
    return this.#policiesInForce.epoch + this.#tenants.epoch;
  }

  /** Throws REL_XORG for a visit that no agreement in force allows. */
  grantFor(granted: Granted): Grant {
    const { caller, now } = granted;
    const policySet = this.#policiesInForce.current;
    const agreements = caller.path === null ? noAgreements : this.#sharedWith(tenantOfPath(caller.path));
    if (caller.sharedFrom !== null) checkSharedVisit(agreements, caller.sharedFrom, now);
    if (policySet === null && agreements.length === 0) {
      return caller.roles.includes('unmask') ? this.#plainGrants.unmasked : this.#plainGrants.masked;
    }
    return this.#viewOf(granted, policySet, agreements).grantAt(now);
  }

  /**
   * The grant that a former policy set gave to the caller's own organisation, without rows that others share: for answers that
   * are derived again, and leave as seals.
   */
  grantOfThen(granted: Granted, policySetThen: PolicySet | null): Grant {
    const { caller, stated, action, now } = granted;
    if (policySetThen === null) return caller.roles.includes('unmask') ? this.#plainGrants.unmasked : this.#plainGrants.masked;
    const asker = askerOf(caller, stated);
    const policies = policySetThen.callerPolicies(asker);
    const grantKey = `of then ${policySetThen.digest} ${askerKey(asker)}`;
    const viewFacts = {
      key: grantKey,
      path: caller.path,
      visiting: null,
      action: cedarActionForRead(action),
      policies,
      masks: policies,
      shared: [],
    };
    return new CallerView({ ...viewFacts, isTimed: policySetThen.policies.some(asksTime) }).grantAt(now);
  }

  #viewOf(granted: Granted, policySet: PolicySet | null, agreements: readonly AgreementRecord[]): CallerView {
    const { caller, stated, action, right } = granted;
    const { path, sharedFrom: visiting } = caller;
    const { epoch } = this;
    const lastView = this.#lastViewOf.get(caller);
    if (lastView !== undefined && lastView.epoch === epoch && isSameGranted(lastView.granted, granted)) return lastView.view;
    const cedarAction = right ?? cedarActionForRead(action);
    const asker = askerOf(caller, stated);
    const key = `${policySet?.digest ?? ''} ${cedarAction} ${JSON.stringify(visiting)} ${askerKey(asker)}`;
    // Agreements are not in the key: a view is of one epoch.
    const viewKey = `${epoch} ${key}`;
    let callerView = this.#callerViews.get(viewKey);
    if (callerView === undefined) {
      const policies = policySet === null ? null : policySet.callerPolicies(asker);
      const forbidPolicies = policySet === null ? [] : policySet.policies.filter(({ effect }) => effect === 'forbid');
      const sharedPolicies = agreements
        .filter((agreement) => concernsCaller(agreement, path!, stated.purpose, cedarAction, visiting))
        .map((agreement) => {
          const policy = agreementPolicy(agreement);
          const agreementPolicies = policy === null ? null : [policy, ...forbidPolicies];
          return {
            agreement,
            policies: agreementPolicies && new CallerPolicies(policiesForAction(agreementPolicies, cedarAction), asker),
          };
        });
      const isTimed = [
        ...(policySet?.policies ?? []),
        ...sharedPolicies.flatMap(({ agreement }) => agreementPolicy(agreement) ?? []),
      ].some(asksTime);
      const masks = policies ?? new CallerPolicies(new Map(), asker);
      callerView = new CallerView({ key, path, visiting, action: cedarAction, policies, masks, shared: sharedPolicies, isTimed });
      this.#callerViews.set(viewKey, callerView);
    }
    this.#lastViewOf.set(caller, { granted: { ...granted, stated: { ...stated } }, epoch, view: callerView });
    return callerView;
  }

  #sharedWith(tenant: string): readonly AgreementRecord[] {
    if (this.#agreementsEpoch !== this.#tenants.epoch) {
      this.#sharedByTenant.clear();
      this.#agreementsEpoch = this.#tenants.epoch;
    }
    let sharedAgreements = this.#sharedByTenant.get(tenant);
    if (sharedAgreements === undefined) this.#sharedByTenant.set(tenant, (sharedAgreements = this.#tenants.sharedWith(tenant)));
    return sharedAgreements;
  }
}

const noAgreements: readonly AgreementRecord[] = [];

/** Actions that answer from rows see them by their own permission; any other action reads them. */
function cedarActionForRead(action: Action): CedarAction {
  return answers.has(action) ? cedarActionOf[action].action : 'read';
}

function isSameGranted(a: Granted, b: Granted): boolean {
  return (
    a.action === b.action &&
    a.right === b.right &&
    a.stated.purpose === b.stated.purpose &&
    a.stated.breakGlass === b.stated.breakGlass &&
    a.stated.accessScopeRef === b.stated.accessScopeRef
  );
}

/** The terms cover the caller's action and purpose; the clock decides whether they are in force. */
function concernsCaller(
  { assigner, assignee, permission, purposes }: AgreementRecord,
  path: string,
  purpose: string | null,
  action: CedarAction,
  visiting: string | null,
): boolean {
  return (
    covers(assignee, path) &&
    permission.includes(action) &&
    (purposes.length === 0 ||
      (purpose !== null && purposes.some((above) => purpose === above || purpose.startsWith(`${above}:`)))) &&
    (visiting === null || covers(assigner, visiting) || covers(visiting, assigner))
  );
}

function checkSharedVisit(agreements: readonly AgreementRecord[], visiting: string, now: bigint): void {
  const tenant = tenantOfPath(visiting);
  const isShared = agreements.some((agreement) => tenantOfPath(agreement.assigner) === tenant && isInForce(agreement, now));
  if (!isShared) throw new ServiceError('REL_XORG', 'no agreement in force shares rows of that organisation');
}

function policiesForAction(policies: readonly Policy[], action: CedarAction): ReadonlyMap<CedarAction, readonly Policy[]> {
  return new Map([[action, policies.filter(({ actions }) => actions === null || actions.has(action))]]);
}

function asksTime({ condition }: Policy): boolean {
  return mentions(
    condition,
    (part) => part.op === 'attribute' && part.name === 'now' && part.left.op === 'variable' && part.left.name === 'context',
  );
}

/** Without policies and agreements: rows of one's own organisation, less what types declare masked. */
function plainGrant(key: string, roles: readonly string[]): Grant {
  const declaredPolicies = new CallerPolicies(new Map(), { ...nobodyAsker, roles });
  return {
    key,
    sharing: [],
    grantFor: memoizeGrants((type) => {
      if (!Object.values(type.properties).some(({ masked }) => masked)) return openGrant;
      const { masks } = declaredPolicies.masks(type, 0n);
      return masks.size === 0 ? openGrant : grantOfLanes([{ ...ownLane, masks }]);
    }),
  };
}

const nobodyAsker = {
  principal: '',
  path: null,
  attributes: {},
  purpose: null,
  door: '',
  branch: '',
  breakGlass: null,
  accessScopeRef: null,
  clientIp: null,
} as const;

const ownLane: Lane = {
  agreement: null,
  // The scope of the caller's path is asked beside it.
  covers: () => true,
  rows: null,
  masks: new Map(),
  columns: null,
  history: 'full',
};

/** All rows of the caller's own organisation, every cell: the gate knows it by its identity. */
export const openGrant: TypeGrant = { allowed: true, lanes: [ownLane], masked: noMasks, because: [] };

type SharedPolicies = readonly { readonly agreement: AgreementRecord; readonly policies: CallerPolicies | null }[];

interface ViewInput {
  readonly key: string;
  readonly path: string | null;
  /** Another tenant's path, whose rows alone are asked for: those that agreements share. */
  readonly visiting: string | null;
  readonly action: CedarAction;
  /** null: none is installed. */
  readonly policies: CallerPolicies | null;
  /** Says what is masked, installed or declared. */
  readonly masks: CallerPolicies;
  readonly shared: SharedPolicies;
  /** Some policy asks what time it is. */
  readonly isTimed: boolean;
}

let viewCount = 0;

/** The view of one caller with one set of statements, while policies and agreements stay as they are: only the clock is left. */
class CallerView {
  readonly #viewInput: ViewInput;
  /** Where policies ask for the time, decisions come and go: grants are then identified by what was decided, in order. */
  readonly #viewId = ++viewCount;
  #decisionChanges = 0;
  /** By whose rows they are about. */
  readonly #decisionsByOwner = new Map<
    string | null,
    Map<TypeDefinition, { readonly decision: string; readonly grant: TypeGrant }>
  >();
  #lastGrant: { readonly grant: Grant; readonly from: bigint; readonly until: bigint } | null = null;

  constructor(parts: ViewInput) {
    this.#viewInput = parts;
  }

  grantAt(now: bigint): Grant {
    const lastGrant = this.#lastGrant;
    if (lastGrant !== null && lastGrant.from <= now && now < lastGrant.until) return lastGrant.grant;
    const { shared, isTimed, key } = this.#viewInput;
    const inForce = shared.filter(({ agreement }) => isInForce(agreement, now));
    const agreementIds = JSON.stringify(inForce.map(({ agreement }) => agreement.id));
    const tenant = tenantOf(this.#viewInput.path);
    const agreementsOfOwner = (owner: string | null): SharedPolicies =>
      inForce.filter(({ agreement }) => tenantOf(agreement.assigner) === owner);
    const grantBuilder = (owner: string | null): ((type: TypeDefinition) => TypeGrant) => {
      const own = agreementsOfOwner(owner);
      const build = (type: TypeDefinition): TypeGrant => this.#typeGrant(type, owner === tenant, own, now);
      return isTimed ? (type) => this.#reuseEqualGrant(owner, type, build(type)) : build;
    };
    const grantBuilders = new Map(
      [tenant, ...inForce.map(({ agreement }) => tenantOf(agreement.assigner))].map((owner) => [owner, grantBuilder(owner)]),
    );
    for (const [owner, typeDecisions] of this.#decisionsByOwner)
      for (const type of typeDecisions.keys()) grantBuilders.get(owner)?.(type);
    const grant: Grant = {
      key: isTimed ? `${key} ${agreementIds} ${this.#viewId}.${this.#decisionChanges}` : `${key} ${agreementIds}`,
      grantFor: memoizeGrants(grantBuilders.get(tenant)!),
      sharing: [...grantBuilders]
        .flatMap(([owner, buildTypeGrant]): SharingTenant[] => {
          if (owner === null || owner === tenant) return [];
          const types = new Set(agreementsOfOwner(owner).flatMap(({ agreement }) => agreement.types));
          return [{ tenant: owner, types, grantFor: memoizeGrants(buildTypeGrant) }];
        })
        .sort((a, b) => compareText(a.tenant, b.tenant)),
    };
    // Policies go by milliseconds.
    const grantedUntil = isTimed ? now - (now % 1_000_000n) + 1_000_000n : farInstant;
    this.#lastGrant = { grant, from: now, until: this.#nextAgreementChange(now, grantedUntil) };
    return grant;
  }

  /** Returns the earlier grant if the decision is the same: caches identify a grant by object. */
  #reuseEqualGrant(owner: string | null, type: TypeDefinition, newGrant: TypeGrant): TypeGrant {
    const decision = decisionText(newGrant);
    const typeDecisions = this.#decisionsByOwner.get(owner) ?? new Map<TypeDefinition, { decision: string; grant: TypeGrant }>();
    this.#decisionsByOwner.set(owner, typeDecisions);
    const knownDecision = typeDecisions.get(type);
    if (knownDecision?.decision === decision) return knownDecision.grant;
    if (knownDecision !== undefined) this.#decisionChanges++;
    typeDecisions.set(type, { decision, grant: newGrant });
    return newGrant;
  }

  #nextAgreementChange(now: bigint, until: bigint): bigint {
    let nextInstant = until;
    for (const { agreement } of this.#viewInput.shared) {
      for (const agreementInstant of [agreement.validFrom, agreement.validTo])
        if (agreementInstant > now && agreementInstant < nextInstant) nextInstant = agreementInstant;
    }
    return nextInstant;
  }

  /** `isOwnTenant`: rows of the caller's tenant. `inForce`: agreements whose assigner is of the tenant that the rows are of. */
  #typeGrant(type: TypeDefinition, isOwnTenant: boolean, inForce: SharedPolicies, now: bigint): TypeGrant {
    const { policies, masks: maskPolicies, action, path, visiting } = this.#viewInput;
    const { masks } = maskPolicies.masks(type, now);
    const ownLanes: Lane[] = [];
    const grantReasons: string[] = [];
    if (isOwnTenant && visiting === null) {
      const decision = policies === null ? null : policies.rows(action, type, now);
      grantReasons.push(...(decision?.because ?? []));
      if (decision === null) ownLanes.push({ ...ownLane, covers: (row) => sees(path, row), masks });
      else if (decision.rows !== 'none') {
        ownLanes.push({ ...ownLane, covers: (row) => sees(path, row), rows: decision.rows, masks });
      }
    }
    const agreementLanes: Lane[] = [];
    for (const { agreement, policies: agreementPolicies } of inForce) {
      if (agreementPolicies === null || !agreement.types.includes(type.name)) continue;
      const { rows } = agreementPolicies.rows(action, type, now);
      if (rows === 'none') continue;
      const { assigner, columns, history, activatedAt } = agreement;
      agreementLanes.push({
        agreement: agreement.id,
        covers: (row) => row !== null && covers(assigner, row) && (visiting === null || covers(visiting, row)),
        rows,
        masks: sharedMasks(agreement, masks, type),
        columns: columns === null ? null : new Set(columns),
        history: history === 'from_start' ? { from: activatedAt! } : history,
      });
      grantReasons.push(`agreement ${agreement.id}`);
    }
    // A row is read through the first lane that lets it through: those that hide less come first.
    agreementLanes.sort((a, b) => a.masks.size - b.masks.size || compareText(a.agreement!, b.agreement!));
    return grantOfLanes([...ownLanes, ...agreementLanes], grantReasons);
  }
}

const farInstant = 2n ** 63n;

function decisionText({ lanes, because }: TypeGrant): string {
  const laneTexts = lanes
    .map(({ agreement, rows, masks }) => {
      const maskTexts = [...masks].map(([column, { kind, size, when }]) => `${column} ${kind} ${size ?? ''} ${when?.key ?? ''}`);
      return JSON.stringify([agreement, rows === null || rows === 'none' ? rows : rows.key, maskTexts]);
    })
    .join('\n');
  return `${because.join()}\n${laneTexts}`;
}

/** Joins the grants of several tenants' rows of one name, to explain them. */
export function joinedGrant(grants: readonly TypeGrant[]): TypeGrant {
  const [only] = grants;
  if (grants.length === 1) return only!;
  return grantOfLanes(
    grants.flatMap(({ lanes }) => lanes),
    grants.flatMap(({ because }) => because),
  );
}

function grantOfLanes(lanes: readonly Lane[], because: readonly string[] = []): TypeGrant {
  const maskedColumns = new Map<string, MaskKind>();
  for (const lane of lanes) {
    for (const [column, { kind }] of lane.masks) {
      const strictestMask = maskedColumns.get(column);
      if (strictestMask === undefined || strictness[kind] > strictness[strictestMask]) maskedColumns.set(column, kind);
    }
  }
  return { allowed: lanes.length > 0, lanes, masked: maskedColumns.size === 0 ? noMasks : maskedColumns, because };
}

/**
 * Columns that are not shared. Columns that repeat the key are shared with it; the organisation and the instants of a shared row
 * are always known.
 */
function withheldColumns(columns: readonly string[] | null, type: TypeDefinition): readonly string[] {
  if (columns === null) return [];
  const keyNames = keyColumns(type);
  const isKeyShared = keyNames.some((key) => columns.includes(key));
  const typeColumns = new Set([...Object.keys(type.properties), ...keyNames]);
  return [...typeColumns].filter((name) => (keyNames.includes(name) ? !isKeyShared : !columns.includes(name)));
}

function keyColumns({ primaryKey }: TypeDefinition): readonly string[] {
  return ['_pk', 'id', ...(primaryKey === null ? [] : [primaryKey])];
}

/**
 * The masks of the agreement, and those of policies on top: in a column that has both the stricter, in every row. A column that
 * is not shared at all shows nothing.
 */
function sharedMasks(
  { id, masking, columns }: AgreementRecord,
  policies: ReadonlyMap<string, CellMask>,
  type: TypeDefinition,
): ReadonlyMap<string, CellMask> {
  const laneMasks = new Map(policies);
  const keyNames = keyColumns(type);
  const agreementMasks = Object.entries(masking).flatMap(([column, kind]) =>
    keyNames.includes(column) ? keyNames.map((key) => [key, kind] as const) : [[column, kind] as const],
  );
  for (const [column, kind] of agreementMasks) {
    const policyMask = laneMasks.get(column);
    const because = `agreement ${id}`;
    const agreementMask: CellMask = { kind, when: null, because };
    if (policyMask === undefined) laneMasks.set(column, agreementMask);
    else if (strictness[policyMask.kind] >= strictness[kind])
      laneMasks.set(column, { ...policyMask, when: null, because: `${policyMask.because}, ${because}` });
    else laneMasks.set(column, agreementMask);
  }
  for (const column of withheldColumns(columns, type))
    laneMasks.set(column, { kind: 'null', when: null, because: `agreement ${id}` });
  return laneMasks;
}

function memoizeGrants(build: (type: TypeDefinition) => TypeGrant): (type: TypeDefinition) => TypeGrant {
  const grantsByType = new WeakMap<TypeDefinition, TypeGrant>();
  return (type) => {
    let typeGrant = grantsByType.get(type);
    if (typeGrant === undefined) grantsByType.set(type, (typeGrant = build(type)));
    return typeGrant;
  };
}
