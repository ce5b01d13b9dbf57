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
  readonly #policies: PoliciesInForce;
  readonly #tenants: Pick<Tenants, 'epoch' | 'sharedWith'>;
  /** Agreements by the tenant that they are shared with, as of one epoch of tenants. */
  readonly #shared = new Map<string, readonly AgreementRecord[]>();
  #sharedEpoch = -1;
  readonly #views = new LRUCache<string, CallerView>({ max: rememberedGrants });
  /** Each caller's latest grant: the next question asks for the same one nearly always. */
  readonly #last = new WeakMap<Caller, { readonly granted: Granted; readonly epoch: number; readonly view: CallerView }>();
  readonly #plain = { masked: plainGrant('', []), unmasked: plainGrant('unmask', ['unmask']) };

  constructor(policies: PoliciesInForce, tenants: Pick<Tenants, 'epoch' | 'sharedWith'>) {
    this.#policies = policies;
    this.#tenants = tenants;
  }

  /** Rises with every change of policies, tenants and agreements. */
  get epoch(): number {
    return this.#policies.epoch + this.#tenants.epoch;
  }

  /** Throws REL_XORG for a visit that no agreement in force allows. */
  grantFor(granted: Granted): Grant {
    const { caller, now } = granted;
    const set = this.#policies.current;
    const agreements = caller.path === null ? none : this.#sharedWith(tenantOfPath(caller.path));
    if (caller.sharedFrom !== null) checkVisit(agreements, caller.sharedFrom, now);
    if (set === null && agreements.length === 0) {
      return caller.roles.includes('unmask') ? this.#plain.unmasked : this.#plain.masked;
    }
    return this.#viewOf(granted, set, agreements).grantAt(now);
  }

  /**
   * The grant that a former policy set gave to the caller's own organisation, without rows that others share: for answers that
   * are derived again, and leave as seals.
   */
  grantOfThen(granted: Granted, set: PolicySet | null): Grant {
    const { caller, stated, action, now } = granted;
    if (set === null) return caller.roles.includes('unmask') ? this.#plain.unmasked : this.#plain.masked;
    const asker = askerOf(caller, stated);
    const policies = set.callerPolicies(asker);
    const key = `of then ${set.digest} ${askerKey(asker)}`;
    const about = { key, path: caller.path, visiting: null, action: readAs(action), policies, masks: policies, shared: [] };
    return new CallerView({ ...about, isTimed: set.policies.some(asksTime) }).grantAt(now);
  }

  #viewOf(granted: Granted, set: PolicySet | null, agreements: readonly AgreementRecord[]): CallerView {
    const { caller, stated, action, right } = granted;
    const { path, sharedFrom: visiting } = caller;
    const { epoch } = this;
    const last = this.#last.get(caller);
    if (last !== undefined && last.epoch === epoch && isSame(last.granted, granted)) return last.view;
    const cedarAction = right ?? readAs(action);
    const asker = askerOf(caller, stated);
    const key = `${set?.digest ?? ''} ${cedarAction} ${JSON.stringify(visiting)} ${askerKey(asker)}`;
    // Agreements are not in the key: a view is of one epoch.
    const viewKey = `${epoch} ${key}`;
    let view = this.#views.get(viewKey);
    if (view === undefined) {
      const policies = set === null ? null : set.callerPolicies(asker);
      const forbids = set === null ? [] : set.policies.filter(({ effect }) => effect === 'forbid');
      const shared = agreements
        .filter((agreement) => concerns(agreement, path!, stated.purpose, cedarAction, visiting))
        .map((agreement) => {
          const policy = agreementPolicy(agreement);
          const allowing = policy === null ? null : [policy, ...forbids];
          return { agreement, policies: allowing && new CallerPolicies(byAction(allowing, cedarAction), asker) };
        });
      const isTimed = [...(set?.policies ?? []), ...shared.flatMap(({ agreement }) => agreementPolicy(agreement) ?? [])].some(
        asksTime,
      );
      const masks = policies ?? new CallerPolicies(new Map(), asker);
      view = new CallerView({ key, path, visiting, action: cedarAction, policies, masks, shared, isTimed });
      this.#views.set(viewKey, view);
    }
    this.#last.set(caller, { granted: { ...granted, stated: { ...stated } }, epoch, view });
    return view;
  }

  #sharedWith(tenant: string): readonly AgreementRecord[] {
    if (this.#sharedEpoch !== this.#tenants.epoch) {
      this.#shared.clear();
      this.#sharedEpoch = this.#tenants.epoch;
    }
    let shared = this.#shared.get(tenant);
    if (shared === undefined) this.#shared.set(tenant, (shared = this.#tenants.sharedWith(tenant)));
    return shared;
  }
}

const none: readonly AgreementRecord[] = [];

/** Actions that answer from rows see them by their own permission; any other action reads them. */
function readAs(action: Action): CedarAction {
  return answers.has(action) ? cedarActionOf[action].action : 'read';
}

function isSame(a: Granted, b: Granted): boolean {
  return (
    a.action === b.action &&
    a.right === b.right &&
    a.stated.purpose === b.stated.purpose &&
    a.stated.breakGlass === b.stated.breakGlass &&
    a.stated.accessScopeRef === b.stated.accessScopeRef
  );
}

/** The terms cover the caller's action and purpose; the clock decides whether they are in force. */
function concerns(
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

function checkVisit(agreements: readonly AgreementRecord[], visiting: string, now: bigint): void {
  const tenant = tenantOfPath(visiting);
  const open = agreements.some((each) => tenantOfPath(each.assigner) === tenant && isInForce(each, now));
  if (!open) throw new ServiceError('REL_XORG', 'no agreement in force shares rows of that organisation');
}

function byAction(policies: readonly Policy[], action: CedarAction): ReadonlyMap<CedarAction, readonly Policy[]> {
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
  const policies = new CallerPolicies(new Map(), { ...nobody, roles });
  return {
    key,
    sharing: [],
    grantFor: memoize((type) => {
      if (!Object.values(type.properties).some(({ masked }) => masked)) return openGrant;
      const { masks } = policies.masks(type, 0n);
      return masks.size === 0 ? openGrant : grantOf([{ ...ownLane, masks }]);
    }),
  };
}

const nobody = {
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

type Shared = readonly { readonly agreement: AgreementRecord; readonly policies: CallerPolicies | null }[];

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
  readonly shared: Shared;
  /** Some policy asks what time it is. */
  readonly isTimed: boolean;
}

let views = 0;

/** The view of one caller with one set of statements, while policies and agreements stay as they are: only the clock is left. */
class CallerView {
  readonly #parts: ViewInput;
  /** Where policies ask for the time, decisions come and go: grants are then identified by what was decided, in order. */
  readonly #id = ++views;
  #decided = 0;
  /** By whose rows they are about. */
  readonly #decisions = new Map<string | null, Map<TypeDefinition, { readonly decision: string; readonly grant: TypeGrant }>>();
  #last: { readonly grant: Grant; readonly from: bigint; readonly until: bigint } | null = null;

  constructor(parts: ViewInput) {
    this.#parts = parts;
  }

  grantAt(now: bigint): Grant {
    const last = this.#last;
    if (last !== null && last.from <= now && now < last.until) return last.grant;
    const { shared, isTimed, key } = this.#parts;
    const inForce = shared.filter(({ agreement }) => isInForce(agreement, now));
    const ids = JSON.stringify(inForce.map(({ agreement }) => agreement.id));
    const tenant = tenantOf(this.#parts.path);
    const ofTenant = (owner: string | null): Shared => inForce.filter(({ agreement }) => tenantOf(agreement.assigner) === owner);
    const builder = (owner: string | null): ((type: TypeDefinition) => TypeGrant) => {
      const own = ofTenant(owner);
      const build = (type: TypeDefinition): TypeGrant => this.#typeGrant(type, owner === tenant, own, now);
      return isTimed ? (type) => this.#reuseEqual(owner, type, build(type)) : build;
    };
    const builders = new Map(
      [tenant, ...inForce.map(({ agreement }) => tenantOf(agreement.assigner))].map((owner) => [owner, builder(owner)]),
    );
    for (const [owner, decided] of this.#decisions) for (const type of decided.keys()) builders.get(owner)?.(type);
    const grant: Grant = {
      key: isTimed ? `${key} ${ids} ${this.#id}.${this.#decided}` : `${key} ${ids}`,
      grantFor: memoize(builders.get(tenant)!),
      sharing: [...builders]
        .flatMap(([owner, build]): SharingTenant[] => {
          if (owner === null || owner === tenant) return [];
          const types = new Set(ofTenant(owner).flatMap(({ agreement }) => agreement.types));
          return [{ tenant: owner, types, grantFor: memoize(build) }];
        })
        .sort((a, b) => compareText(a.tenant, b.tenant)),
    };
    // Policies go by milliseconds.
    const until = isTimed ? now - (now % 1_000_000n) + 1_000_000n : FAR;
    this.#last = { grant, from: now, until: this.#nextChange(now, until) };
    return grant;
  }

  /** Returns the earlier grant if the decision is the same: caches identify a grant by object. */
  #reuseEqual(owner: string | null, type: TypeDefinition, newGrant: TypeGrant): TypeGrant {
    const decision = decisionOf(newGrant);
    const decided = this.#decisions.get(owner) ?? new Map<TypeDefinition, { decision: string; grant: TypeGrant }>();
    this.#decisions.set(owner, decided);
    const known = decided.get(type);
    if (known?.decision === decision) return known.grant;
    if (known !== undefined) this.#decided++;
    decided.set(type, { decision, grant: newGrant });
    return newGrant;
  }

  #nextChange(now: bigint, until: bigint): bigint {
    let next = until;
    for (const { agreement } of this.#parts.shared) {
      for (const at of [agreement.validFrom, agreement.validTo]) if (at > now && at < next) next = at;
    }
    return next;
  }

  /** `own`: rows of the caller's tenant. `inForce`: agreements whose assigner is of the tenant that the rows are of. */
  #typeGrant(type: TypeDefinition, own: boolean, inForce: Shared, now: bigint): TypeGrant {
    const { policies, masks: of, action, path, visiting } = this.#parts;
    const { masks } = of.masks(type, now);
    const lanes: Lane[] = [];
    const because: string[] = [];
    if (own && visiting === null) {
      const decision = policies === null ? null : policies.rows(action, type, now);
      because.push(...(decision?.because ?? []));
      if (decision === null) lanes.push({ ...ownLane, covers: (row) => sees(path, row), masks });
      else if (decision.rows !== 'none') {
        lanes.push({ ...ownLane, covers: (row) => sees(path, row), rows: decision.rows, masks });
      }
    }
    const shared: Lane[] = [];
    for (const { agreement, policies: allowing } of inForce) {
      if (allowing === null || !agreement.types.includes(type.name)) continue;
      const { rows } = allowing.rows(action, type, now);
      if (rows === 'none') continue;
      const { assigner, columns, history, activatedAt } = agreement;
      shared.push({
        agreement: agreement.id,
        covers: (row) => row !== null && covers(assigner, row) && (visiting === null || covers(visiting, row)),
        rows,
        masks: sharedMasks(agreement, masks, type),
        columns: columns === null ? null : new Set(columns),
        history: history === 'from_start' ? { from: activatedAt! } : history,
      });
      because.push(`agreement ${agreement.id}`);
    }
    // A row is read through the first lane that lets it through: those that hide less come first.
    shared.sort((a, b) => a.masks.size - b.masks.size || compareText(a.agreement!, b.agreement!));
    return grantOf([...lanes, ...shared], because);
  }
}

const FAR = 2n ** 63n;

function decisionOf({ lanes, because }: TypeGrant): string {
  const each = lanes
    .map(({ agreement, rows, masks }) => {
      const cells = [...masks].map(([column, { kind, size, when }]) => `${column} ${kind} ${size ?? ''} ${when?.key ?? ''}`);
      return JSON.stringify([agreement, rows === null || rows === 'none' ? rows : rows.key, cells]);
    })
    .join('\n');
  return `${because.join()}\n${each}`;
}

/** Joins the grants of several tenants' rows of one name, to explain them. */
export function joinedGrant(grants: readonly TypeGrant[]): TypeGrant {
  const [only] = grants;
  if (grants.length === 1) return only!;
  return grantOf(
    grants.flatMap(({ lanes }) => lanes),
    grants.flatMap(({ because }) => because),
  );
}

function grantOf(lanes: readonly Lane[], because: readonly string[] = []): TypeGrant {
  const masked = new Map<string, MaskKind>();
  for (const lane of lanes) {
    for (const [column, { kind }] of lane.masks) {
      const known = masked.get(column);
      if (known === undefined || strictness[kind] > strictness[known]) masked.set(column, kind);
    }
  }
  return { allowed: lanes.length > 0, lanes, masked: masked.size === 0 ? noMasks : masked, because };
}

/**
 * Columns that are not shared. Columns that repeat the key are shared with it; the organisation and the instants of a shared row
 * are always known.
 */
function withheld(columns: readonly string[] | null, type: TypeDefinition): readonly string[] {
  if (columns === null) return [];
  const keys = keyColumns(type);
  const showsKey = keys.some((key) => columns.includes(key));
  const names = new Set([...Object.keys(type.properties), ...keys]);
  return [...names].filter((name) => (keys.includes(name) ? !showsKey : !columns.includes(name)));
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
  const masks = new Map(policies);
  const keys = keyColumns(type);
  const named = Object.entries(masking).flatMap(([column, kind]) =>
    keys.includes(column) ? keys.map((key) => [key, kind] as const) : [[column, kind] as const],
  );
  for (const [column, kind] of named) {
    const known = masks.get(column);
    const because = `agreement ${id}`;
    const own: CellMask = { kind, when: null, because };
    if (known === undefined) masks.set(column, own);
    else if (strictness[known.kind] >= strictness[kind])
      masks.set(column, { ...known, when: null, because: `${known.because}, ${because}` });
    else masks.set(column, own);
  }
  for (const column of withheld(columns, type)) masks.set(column, { kind: 'null', when: null, because: `agreement ${id}` });
  return masks;
}

function memoize(build: (type: TypeDefinition) => TypeGrant): (type: TypeDefinition) => TypeGrant {
  const known = new WeakMap<TypeDefinition, TypeGrant>();
  return (type) => {
    let grant = known.get(type);
    if (grant === undefined) known.set(type, (grant = build(type)));
    return grant;
  };
}
