/** Random commands about tenants and agreements, against a reference that is told nothing but the rules. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { AgreementTerms } from '../../../src/log/entries/entry.ts';
import type { Command } from '../../../src/projections/command.ts';
import { isInForce } from '../../../src/projections/tenants/agreements.ts';
import { Projections } from '../../../src/projections/projections.ts';
import { agreementCommands, tenantCommands, tenantIds } from '../histories.ts';
import { Store } from '../store.ts';

interface Tenant {
  state: 'active' | 'suspended' | 'deleted';
  manner: 'soft' | 'tombstone' | 'purge' | null;
  purged: boolean;
  name: string;
  tier: string;
  quota: Record<string, number | null>;
  search: string;
  members: Map<string, string>;
  since: bigint | null;
}

interface Agreement {
  state: string;
  terms: AgreementTerms;
  made: bigint;
  events: number;
  activated: boolean;
}

/** Sorted at every level, as the log writes it. */
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : typeof member === 'bigint'
        ? String(member)
        : member,
  );
const first = (path: string): string => path.split('/')[0]!;
const tenantOf = (made: Map<string, Tenant>, path: string): string => made.get(first(path))?.state ?? 'active';

/** from > to: by whom. */
const moves: Readonly<Record<string, string>> = {
  'proposed accepted': 'assignee',
  'accepted active': 'assigner',
  'active suspended': 'assigner administrator',
  'suspended active': 'assigner',
};

class Reference {
  readonly tenants = new Map<string, Tenant>();
  readonly agreements = new Map<string, Agreement>();

  /** `changed`, `same`, or the code of the refusal. */
  run(command: Command, now: bigint): string {
    switch (command.kind) {
      case 'create-tenant':
        return this.#create(command, now);
      case 'change-tenant':
        return this.#change(command);
      case 'suspend-tenant':
        return this.#turn(command.id, 'suspended');
      case 'reactivate-tenant':
        return this.#turn(command.id, 'active');
      case 'delete-tenant':
        return this.#delete(command, now);
      case 'purge-tenant': {
        const tenant = this.tenants.get(command.id);
        if (!tenant) return 'REL_NOT_FOUND';
        if (tenant.purged) return 'same';
        if (tenant.manner !== 'purge') return 'REL_CONFLICT';
        tenant.purged = true;
        return 'changed';
      }
      case 'propose-agreement': {
        const { id, terms } = command;
        const wrong = this.#termsRefused(terms, now);
        if (wrong !== null) return wrong;
        if (this.agreements.has(id)) return 'REL_CONFLICT';
        this.agreements.set(id, { state: 'proposed', terms, made: now, events: 1, activated: false });
        return 'changed';
      }
      case 'change-agreement': {
        const agreement = this.agreements.get(command.id);
        if (!agreement) return 'REL_NOT_FOUND';
        const wrong = this.#termsRefused(command.terms, now);
        if (wrong !== null) return wrong;
        const { assigner, assignee } = agreement.terms;
        const open = agreement.state === 'proposed' && now < agreement.terms.validTo;
        if (!open || assigner !== command.terms.assigner || assignee !== command.terms.assignee) return 'REL_CONFLICT';
        if (sorted(command.terms) === sorted(agreement.terms)) return 'same';
        agreement.terms = command.terms;
        agreement.events++;
        return 'changed';
      }
      case 'move-agreement':
        return this.#move(command.id, command.to, command.side, now);
      default:
        throw new Error(`no rule for ${command.kind}`);
    }
  }

  #create(command: Extract<Command, { kind: 'create-tenant' }>, now: bigint): string {
    const before = this.tenants.get(command.id);
    if (before && before.state !== 'deleted') return 'same';
    if (before && !before.purged) return 'REL_CONFLICT';
    const standing = [...this.tenants.values()].filter(({ state }) => state !== 'deleted').length;
    if (command.tenantsMax > 0 && standing >= command.tenantsMax) return 'REL_TENANT_CAP';
    this.tenants.set(command.id, {
      state: 'active',
      manner: null,
      purged: false,
      name: command.name,
      tier: command.tier,
      quota: { ...noQuota, ...command.quota },
      search: sorted(command.search),
      members: new Map(command.members.map(({ principal, role }) => [principal, role])),
      since: before ? now : null,
    });
    return 'changed';
  }

  #change(command: Extract<Command, { kind: 'change-tenant' }>): string {
    const before = this.tenants.get(command.id);
    if (!before || before.state === 'deleted') return 'REL_NOT_FOUND';
    const members = new Map(before.members);
    for (const { change, principal, role } of command.members ?? []) {
      const known = members.get(principal);
      if (change !== 'add' && known === undefined) return 'REL_NOT_FOUND';
      if (change === 'add' && known !== undefined && known !== role) return 'REL_CONFLICT';
      if (change === 'remove') members.delete(principal);
      else members.set(principal, role);
    }
    const after: Tenant = {
      ...before,
      name: command.name ?? before.name,
      tier: command.tier ?? before.tier,
      quota: { ...before.quota, ...command.quota },
      search: command.search === undefined ? before.search : sorted(command.search),
      members,
    };
    const same = sorted(shownTenant(after)) === sorted(shownTenant(before));
    this.tenants.set(command.id, after);
    return same ? 'same' : 'changed';
  }

  #turn(id: string, to: 'active' | 'suspended'): string {
    const tenant = this.tenants.get(id);
    if (!tenant || tenant.state === 'deleted') return 'REL_NOT_FOUND';
    if (tenant.state === to) return 'same';
    tenant.state = to;
    return 'changed';
  }

  #delete({ id, manner }: Extract<Command, { kind: 'delete-tenant' }>, now: bigint): string {
    const tenant = this.tenants.get(id);
    const order = [null, 'soft', 'tombstone', 'purge'];
    if (!tenant || tenant.purged) return 'REL_NOT_FOUND';
    if (tenant.manner === 'purge' && manner === 'purge') return 'same';
    if (order.indexOf(manner) <= order.indexOf(tenant.manner)) return 'REL_NOT_FOUND';
    tenant.state = 'deleted';
    tenant.manner = manner;
    if (manner !== 'soft') Object.assign(tenant, { name: '', tier: '', quota: noQuota, search: '{}', members: new Map() });
    for (const agreement of this.agreements.values()) {
      const { terms, state, made } = agreement;
      const concerned = first(terms.assigner) === id || first(terms.assignee) === id;
      if (!concerned || state === 'revoked' || state === 'expired' || (tenant.since !== null && made < tenant.since)) continue;
      agreement.state = now >= terms.validTo ? 'expired' : 'revoked';
      agreement.events++;
    }
    return 'changed';
  }

  #move(id: string, to: string, side: string, now: bigint): string {
    const agreement = this.agreements.get(id);
    if (!agreement) return 'REL_NOT_FOUND';
    const { state, terms } = agreement;
    const over = state === 'revoked' || state === 'expired';
    const by = over
      ? undefined
      : to === 'expired'
        ? 'clock'
        : to === 'revoked'
          ? 'assigner assignee administrator'
          : moves[`${state} ${to}`];
    if (by === undefined) return 'REL_CONFLICT';
    if (!by.split(' ').includes(side)) return 'REL_ACL';
    if (now >= terms.validTo !== (to === 'expired')) return 'REL_CONFLICT';
    agreement.state = to;
    agreement.events++;
    agreement.activated ||= to === 'active';
    return 'changed';
  }

  #termsRefused({ assigner, validTo }: AgreementTerms, now: bigint): string | null {
    if (tenantOf(this.tenants, assigner) !== 'active') return 'REL_CONFLICT';
    return validTo <= now ? 'REL_INVALID' : null;
  }
}

const noQuota = { queryUnits: null, inFlight: null, storageBytes: null, subscriptions: null, requestsPerSecond: null };

function shownTenant(tenant: Tenant): unknown {
  return { ...tenant, members: [...tenant.members].sort(([a], [b]) => (a < b ? -1 : 1)) };
}

/** What the projection says, in the words of the reference. */
function seen({ tenants }: Projections, now: bigint): unknown {
  return {
    tenants: tenants.tenants().map(({ record, manner, purged, since }) => {
      const { id, name, tier, state, quota, search, members } = record;
      const listed = members.map(({ principal, role }) => [principal, role]);
      return [
        id,
        { state, manner, purged, name, tier, quota, search: sorted(search), members: listed, since: since?.time ?? null },
      ];
    }),
    agreements: tenants
      .agreements()
      .map(({ id, state, createdAt, activatedAt, ...terms }) => [
        id,
        { state, terms, made: createdAt, events: tenants.agreement(id)!.events.length, activated: activatedAt !== null },
      ]),
    standing: tenants.liveCount,
    purging: tenants.purging(),
    shared: tenantIds.map((id) =>
      tenants
        .sharedWith(id)
        .filter((agreement) => isInForce(agreement, now))
        .map((agreement) => agreement.id),
    ),
  };
}

function expected({ tenants, agreements }: Reference, now: bigint): unknown {
  const byId = <T>(map: Map<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    tenants: byId(tenants).map(([id, tenant]) => [id, shownTenant(tenant)]),
    agreements: byId(agreements),
    standing: [...tenants.values()].filter(({ state }) => state !== 'deleted').length,
    purging: byId(tenants)
      .filter(([, { manner, purged }]) => manner === 'purge' && !purged)
      .map(([id]) => id),
    shared: tenantIds.map((id) =>
      byId(agreements)
        .filter(([, { state, terms, made }]) => {
          const since = tenants.get(id)?.since ?? null;
          const inTime = terms.validFrom <= now && now < terms.validTo;
          return state === 'active' && first(terms.assignee) === id && inTime && (since === null || made >= since);
        })
        .map(([agreement]) => agreement),
    ),
  };
}

const single = fc.oneof({ weight: 2, arbitrary: tenantCommands }, { weight: 3, arbitrary: agreementCommands });

/** What single commands hardly ever come to: a tenant is purged, and the same command makes another of its id. */
const again = tenantCommands
  .filter(({ kind }) => kind === 'create-tenant')
  .map((create): readonly Command[] => {
    const { id } = create as Extract<Command, { kind: 'create-tenant' }>;
    return [
      create,
      { kind: 'delete-tenant', id, manner: 'purge' },
      { kind: 'purge-tenant', id, cursor: null, keysMax: 100 },
      create,
    ];
  });

/** Terms that are said twice. */
const unchanged = agreementCommands
  .filter(({ kind }) => kind === 'propose-agreement')
  .map((propose): readonly Command[] => [propose, { ...propose, kind: 'change-agreement' } as Command]);

const stretches = fc.oneof(
  { weight: 60, arbitrary: single.map((command) => [command]) },
  { weight: 1, arbitrary: again },
  { weight: 1, arbitrary: unchanged },
);

test('tenants and agreements do what the rules say, command by command', () => {
  const met = new Set<string>();
  fc.assert(
    fc.property(
      fc.array(stretches, { minLength: 20, maxLength: 60 }).map((each): readonly Command[] => each.flat()),
      (commands) => {
        const store = new Store();
        const reference = new Reference();
        for (const command of commands) {
          const { time, entries } = store;
          const before = entries.length;
          const wanted = reference.run(command, time);
          let done: string;
          try {
            done = store.run(command).changed ? 'changed' : 'same';
          } catch (error) {
            if (!(error instanceof ServiceError)) throw error;
            done = error.code;
          }
          met.add(`${command.kind} ${done}`);
          if ([...reference.tenants.values()].some(({ since }) => since !== null)) met.add('an id again');
          expect([command, done]).toEqual([command, wanted]);
          expect(entries.length > before).toBe(done === 'changed');
          expect(seen(store.projections, store.time)).toEqual(expected(reference, store.time));
        }
      },
    ),
    { numRuns: 300 },
  );
  // Histories in which hardly anything happens would prove hardly anything.
  for (const each of [
    'create-tenant changed',
    'create-tenant same',
    'create-tenant REL_CONFLICT',
    'create-tenant REL_TENANT_CAP',
    'change-tenant changed',
    'change-tenant REL_CONFLICT',
    'delete-tenant changed',
    'delete-tenant REL_NOT_FOUND',
    'purge-tenant changed',
    'propose-agreement changed',
    'propose-agreement REL_INVALID',
    'move-agreement changed',
    'move-agreement REL_ACL',
    'move-agreement REL_CONFLICT',
    'change-agreement changed',
    'change-agreement same',
    'an id again',
  ]) {
    expect(met).toContain(each);
  }
});
