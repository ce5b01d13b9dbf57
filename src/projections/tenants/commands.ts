/**
 * Registering, changing and ending tenants: a command and the registry to entries. Pure.
 *
 *   absent ──create──> active <──suspend, reactivate──> suspended;   either ──delete──> deleted ──purge──> absent
 *
 * A deleted id may be registered again once it was purged: no row of the earlier tenant is left then, its agreements have
 * ended, its tokens are revoked, and `since` tells what else is older than the new one.
 */
import { ServiceError } from '../../errors.ts';
import { canonicalJson } from '../../log/values/canonical-json.ts';
import {
  type DeletionManner,
  type EntryDraft,
  quotaNames,
  type TenantBody,
  type TenantMember,
  type TenantQuota,
  type TenantRecord,
} from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { isShallow } from '../../log/entries/record-codec.ts';
import { checkIdentifier, checkText, compareText, limits } from '../../log/values/value.ts';
import type { ChangeTenant, CreateTenant, DeleteTenant, MemberChange, ReactivateTenant, SuspendTenant } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { Tokens } from '../tokens/projection.ts';
import { heldBy } from '../retention/holds.ts';
import { endings } from './agreements.ts';
import type { RegisteredTenant, Tenants } from './projection.ts';
import { checkTenantId, recordDraft, tenantOfPath } from './tenant-drafts.ts';

const membersMax = 1_000;
const nameMax = 1_024;
const searchTextMax = 65_536;

/** A known id is left as it is, at the cap too: a repeated request gets the same answer. */
export function decideCreateTenant(
  command: CreateTenant,
  tenants: Tenants,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id, name, tier, tenantsMax } = command;
  checkTenantId(id, 'the id of a tenant');
  const existing = tenants.tenant(id);
  if (existing && existing.manner === null) return decideOne('create-tenant', id, [], next);
  if (existing && !existing.purged) {
    throw new ServiceError('REL_CONFLICT', 'a deleted tenant of this id may still have rows: purge it first');
  }
  if (tenantsMax !== 0 && tenants.liveCount >= tenantsMax) {
    throw new ServiceError('REL_TENANT_CAP', `the installation may have ${tenantsMax} tenants`);
  }
  const added = command.members.map((member): MemberChange => ({ change: 'add', ...member }));
  const tenant: TenantRecord = {
    id,
    name,
    tier,
    state: 'active',
    quota: quotaOf(command.quota, noQuota),
    search: command.search,
    members: membersAfter([], added),
    createdAt: next.time,
    changedAt: next.time,
  };
  checkRecord(tenant);
  return decide('create-tenant', { kind: 'tenant', change: 'created', manner: null, tenant }, context, next);
}

/** A command that changes nothing is a no-op. */
export function decideChangeTenant(
  command: ChangeTenant,
  tenants: Tenants,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { record } = liveTenant(command.id, tenants);
  const changed: TenantRecord = {
    ...record,
    name: command.name ?? record.name,
    tier: command.tier ?? record.tier,
    quota: quotaOf(command.quota ?? {}, record.quota),
    search: command.search ?? record.search,
    members: membersAfter(record.members, command.members ?? []),
  };
  checkRecord(changed);
  if (sameRecord(changed, record)) return decideOne('change-tenant', record.id, [], next);
  const tenant = { ...changed, changedAt: next.time };
  return decide('change-tenant', { kind: 'tenant', change: 'changed', manner: null, tenant }, context, next);
}

export function decideSuspend(command: SuspendTenant, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { record } = liveTenant(command.id, tenants);
  if (record.state === 'suspended') return decideOne('suspend-tenant', record.id, [], next);
  const tenant: TenantRecord = { ...record, state: 'suspended', changedAt: next.time };
  return decide('suspend-tenant', { kind: 'tenant', change: 'suspended', manner: null, tenant }, context, next);
}

export function decideReactivate(
  command: ReactivateTenant,
  tenants: Tenants,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { record } = liveTenant(command.id, tenants);
  if (record.state === 'active') return decideOne('reactivate-tenant', record.id, [], next);
  const tenant: TenantRecord = { ...record, state: 'active', changedAt: next.time };
  return decide('reactivate-tenant', { kind: 'tenant', change: 'reactivated', manner: null, tenant }, context, next);
}

/** How far a deletion goes: one that was deleted may be deleted further, and never less. */
const thoroughness: Readonly<Record<DeletionManner, number>> = { soft: 1, tombstone: 2, purge: 3 };

/**
 * Its agreements end and its tokens are revoked in the same append. A soft deletion keeps the record as it was; the others
 * keep id and instants. A purge says that rows are to go: `purge-tenant` removes them.
 */
/** `held`: ids of the holds on rows of its paths. After the deletion no caller could release them. */
export function decideDeleteTenant(
  command: DeleteTenant,
  tenants: Tenants,
  directory: Tokens,
  held: readonly string[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id, manner } = command;
  const before = tenants.tenant(id);
  if (!before || before.purged) throw unknownTenant();
  if (before.manner === 'purge' && manner === 'purge') return decideOne('delete-tenant', id, [], next);
  if (before.manner !== null && thoroughness[manner] <= thoroughness[before.manner]) throw unknownTenant();
  if (held.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the tenant are under legal hold: ${heldBy(held)}`);
  const { record } = before;
  const deletedRecord = manner === 'soft' ? record : { ...record, name: '', tier: '', quota: noQuota, search: {}, members: [] };
  const tenant: TenantRecord = { ...deletedRecord, state: 'deleted', changedAt: next.time };
  const drafts = [
    recordDraft({ kind: 'tenant', change: 'deleted', manner, tenant }, context.entry),
    ...endings(id, tenants, context, next),
    ...revocations(id, directory, context),
  ];
  return decideOne('delete-tenant', id, drafts, next);
}

function revocations(id: string, directory: Tokens, context: DecideContext): EntryDraft[] {
  return directory
    .tokens()
    .filter(({ endedAt, record }) => endedAt === null && record.tenant !== null && tenantOfPath(record.tenant) === id)
    .map(({ record: token }) => ({
      context: context.entry,
      body: { kind: 'token', change: 'revoked', token, replaces: null },
    }));
}

function decide(
  kind: 'create-tenant' | 'change-tenant' | 'suspend-tenant' | 'reactivate-tenant',
  body: TenantBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(kind, body.tenant.id, [recordDraft(body, context.entry)], next);
}

function liveTenant(id: string, tenants: Tenants): RegisteredTenant {
  const tenant = tenants.tenant(id);
  if (!tenant || tenant.manner !== null) throw unknownTenant();
  return tenant;
}

function unknownTenant(): ServiceError {
  return new ServiceError('REL_NOT_FOUND', 'no such tenant');
}

const noQuota = Object.fromEntries(quotaNames.map((name) => [name, null])) as TenantQuota;

function quotaOf(given: Partial<TenantQuota>, before: TenantQuota): TenantQuota {
  for (const [name, amount] of Object.entries(given)) {
    if (!quotaNames.some((known) => known === name)) {
      throw new ServiceError('REL_INVALID', `there is no quota ${JSON.stringify(name.slice(0, limits.identifierLength))}`);
    }
    if (amount !== null && (!Number.isSafeInteger(amount) || amount < 0)) {
      throw new ServiceError('REL_INVALID', `the quota ${name} must be a whole number of 0 or more, or null`);
    }
  }
  return { ...before, ...given };
}

function membersAfter(members: readonly TenantMember[], changes: readonly MemberChange[]): readonly TenantMember[] {
  const roles = new Map(members.map(({ principal, role }) => [principal, role]));
  for (const { change, principal, role } of changes) {
    checkIdentifier(principal, 'the principal of a member');
    const before = roles.get(principal);
    if (change !== 'add' && before === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such member');
    if (change === 'remove') {
      roles.delete(principal);
      continue;
    }
    checkIdentifier(role, 'the role of a member');
    if (change === 'add' && before !== undefined && before !== role) {
      throw new ServiceError('REL_CONFLICT', 'a member of this name has another role');
    }
    roles.set(principal, role);
  }
  if (roles.size > membersMax) throw new ServiceError('REL_CONFLICT', `a tenant has at most ${membersMax} members`);
  return [...roles].map(([principal, role]) => ({ principal, role })).sort((a, b) => compareText(a.principal, b.principal));
}

function checkRecord({ name, tier, search }: TenantRecord): void {
  checkText(name, 'the name of a tenant');
  if (name.length > nameMax) throw new ServiceError('REL_INVALID', `the name of a tenant has at most ${nameMax} characters`);
  checkIdentifier(tier, 'the tier of a tenant');
  if (!isShallow(search, limits.jsonDepth)) {
    throw new ServiceError('REL_INVALID', `a search configuration is at most ${limits.jsonDepth} deep`);
  }
  if (canonicalJson(search).length > searchTextMax) {
    throw new ServiceError('REL_INVALID', `a search configuration has at most ${searchTextMax} characters as JSON`);
  }
}

function sameRecord(a: TenantRecord, b: TenantRecord): boolean {
  const textOf = ({ name, tier, quota, search, members }: TenantRecord): string =>
    canonicalJson({ name, tier, quota, search, members: members.map(({ principal, role }) => [principal, role]) });
  return textOf(a) === textOf(b);
}
