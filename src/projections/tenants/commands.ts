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
const tenantNameMax = 1_024;
const searchTextMax = 65_536;

/** A known id is left as it is, at the cap too: a repeated request gets the same answer. */
export function decideCreateTenant(
  command: CreateTenant,
  tenants: Tenants,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id: tenantId, name, tier, tenantsMax } = command;
  checkTenantId(tenantId, 'the id of a tenant');
  const existingTenant = tenants.tenant(tenantId);
  if (existingTenant && existingTenant.manner === null) return decideOne('create-tenant', tenantId, [], next);
  if (existingTenant && !existingTenant.purged) {
    throw new ServiceError('REL_CONFLICT', 'a deleted tenant of this id may still have rows: purge it first');
  }
  if (tenantsMax !== 0 && tenants.liveCount >= tenantsMax) {
    throw new ServiceError('REL_TENANT_CAP', `the installation may have ${tenantsMax} tenants`);
  }
  const addedMembers = command.members.map((member): MemberChange => ({ change: 'add', ...member }));
  const createdTenant: TenantRecord = {
    id: tenantId,
    name,
    tier,
    state: 'active',
    quota: quotaOf(command.quota, noQuota),
    search: command.search,
    members: membersAfter([], addedMembers),
    createdAt: next.time,
    changedAt: next.time,
  };
  checkTenantRecord(createdTenant);
  return decideTenant('create-tenant', { kind: 'tenant', change: 'created', manner: null, tenant: createdTenant }, context, next);
}

/** A command that changes nothing is a no-op. */
export function decideChangeTenant(
  command: ChangeTenant,
  tenants: Tenants,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { record: tenantBefore } = liveTenant(command.id, tenants);
  const changedRecord: TenantRecord = {
    ...tenantBefore,
    name: command.name ?? tenantBefore.name,
    tier: command.tier ?? tenantBefore.tier,
    quota: quotaOf(command.quota ?? {}, tenantBefore.quota),
    search: command.search ?? tenantBefore.search,
    members: membersAfter(tenantBefore.members, command.members ?? []),
  };
  checkTenantRecord(changedRecord);
  if (isSameTenantRecord(changedRecord, tenantBefore)) return decideOne('change-tenant', tenantBefore.id, [], next);
  const changedTenant = { ...changedRecord, changedAt: next.time };
  return decideTenant('change-tenant', { kind: 'tenant', change: 'changed', manner: null, tenant: changedTenant }, context, next);
}

export function decideSuspend(command: SuspendTenant, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { record: tenantBefore } = liveTenant(command.id, tenants);
  if (tenantBefore.state === 'suspended') return decideOne('suspend-tenant', tenantBefore.id, [], next);
  const suspendedTenant: TenantRecord = { ...tenantBefore, state: 'suspended', changedAt: next.time };
  return decideTenant(
    'suspend-tenant',
    { kind: 'tenant', change: 'suspended', manner: null, tenant: suspendedTenant },
    context,
    next,
  );
}

export function decideReactivate(
  command: ReactivateTenant,
  tenants: Tenants,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { record: tenantBefore } = liveTenant(command.id, tenants);
  if (tenantBefore.state === 'active') return decideOne('reactivate-tenant', tenantBefore.id, [], next);
  const reactivatedTenant: TenantRecord = { ...tenantBefore, state: 'active', changedAt: next.time };
  return decideTenant(
    'reactivate-tenant',
    { kind: 'tenant', change: 'reactivated', manner: null, tenant: reactivatedTenant },
    context,
    next,
  );
}

/** How far a deletion goes: one that was deleted may be deleted further, and never less. */
const deletionThoroughness: Readonly<Record<DeletionManner, number>> = { soft: 1, tombstone: 2, purge: 3 };

/**
 * Its agreements end and its tokens are revoked in the same append. A soft deletion keeps the record as it was; the others
 * keep id and instants. A purge says that rows are to go: `purge-tenant` removes them.
 */
/** `holdIds`: ids of the holds on rows of its paths. After the deletion no caller could release them. */
export function decideDeleteTenant(
  command: DeleteTenant,
  tenants: Tenants,
  tenantTokens: Tokens,
  holdIds: readonly string[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id: tenantId, manner } = command;
  const registeredTenant = tenants.tenant(tenantId);
  if (!registeredTenant || registeredTenant.purged) throw unknownTenantError();
  if (registeredTenant.manner === 'purge' && manner === 'purge') return decideOne('delete-tenant', tenantId, [], next);
  if (registeredTenant.manner !== null && deletionThoroughness[manner] <= deletionThoroughness[registeredTenant.manner])
    throw unknownTenantError();
  if (holdIds.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the tenant are under legal hold: ${heldBy(holdIds)}`);
  const { record: tenantBefore } = registeredTenant;
  const deletedRecord =
    manner === 'soft' ? tenantBefore : { ...tenantBefore, name: '', tier: '', quota: noQuota, search: {}, members: [] };
  const deletedTenant: TenantRecord = { ...deletedRecord, state: 'deleted', changedAt: next.time };
  const deletionDrafts = [
    recordDraft({ kind: 'tenant', change: 'deleted', manner, tenant: deletedTenant }, context.entry),
    ...endings(tenantId, tenants, context, next),
    ...tokenRevocations(tenantId, tenantTokens, context),
  ];
  return decideOne('delete-tenant', tenantId, deletionDrafts, next);
}

function tokenRevocations(tenantId: string, tenantTokens: Tokens, context: DecideContext): EntryDraft[] {
  return tenantTokens
    .tokens()
    .filter(({ endedAt, record }) => endedAt === null && record.tenant !== null && tenantOfPath(record.tenant) === tenantId)
    .map(({ record: revokedToken }) => ({
      context: context.entry,
      body: { kind: 'token', change: 'revoked', token: revokedToken, replaces: null },
    }));
}

function decideTenant(
  tenantCommand: 'create-tenant' | 'change-tenant' | 'suspend-tenant' | 'reactivate-tenant',
  tenantBody: TenantBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(tenantCommand, tenantBody.tenant.id, [recordDraft(tenantBody, context.entry)], next);
}

function liveTenant(id: string, tenants: Tenants): RegisteredTenant {
  const tenant = tenants.tenant(id);
  if (!tenant || tenant.manner !== null) throw unknownTenantError();
  return tenant;
}

function unknownTenantError(): ServiceError {
  return new ServiceError('REL_NOT_FOUND', 'no such tenant');
}

const noQuota = Object.fromEntries(quotaNames.map((name) => [name, null])) as TenantQuota;

function quotaOf(givenQuota: Partial<TenantQuota>, quotaBefore: TenantQuota): TenantQuota {
  for (const [quotaName, quotaAmount] of Object.entries(givenQuota)) {
    if (!quotaNames.some((knownQuota) => knownQuota === quotaName)) {
      throw new ServiceError('REL_INVALID', `there is no quota ${JSON.stringify(quotaName.slice(0, limits.identifierLength))}`);
    }
    if (quotaAmount !== null && (!Number.isSafeInteger(quotaAmount) || quotaAmount < 0)) {
      throw new ServiceError('REL_INVALID', `the quota ${quotaName} must be a whole number of 0 or more, or null`);
    }
  }
  return { ...quotaBefore, ...givenQuota };
}

function membersAfter(members: readonly TenantMember[], memberChanges: readonly MemberChange[]): readonly TenantMember[] {
  const rolesByMember = new Map(members.map(({ principal, role }) => [principal, role]));
  for (const { change: memberChange, principal, role } of memberChanges) {
    checkIdentifier(principal, 'the principal of a member');
    const roleBefore = rolesByMember.get(principal);
    if (memberChange !== 'add' && roleBefore === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such member');
    if (memberChange === 'remove') {
      rolesByMember.delete(principal);
      continue;
    }
    checkIdentifier(role, 'the role of a member');
    if (memberChange === 'add' && roleBefore !== undefined && roleBefore !== role) {
      throw new ServiceError('REL_CONFLICT', 'a member of this name has another role');
    }
    rolesByMember.set(principal, role);
  }
  if (rolesByMember.size > membersMax) throw new ServiceError('REL_CONFLICT', `a tenant has at most ${membersMax} members`);
  return [...rolesByMember]
    .map(([principal, role]) => ({ principal, role }))
    .sort((a, b) => compareText(a.principal, b.principal));
}

function checkTenantRecord({ name: tenantName, tier, search: searchSettings }: TenantRecord): void {
  checkText(tenantName, 'the name of a tenant');
  if (tenantName.length > tenantNameMax)
    throw new ServiceError('REL_INVALID', `the name of a tenant has at most ${tenantNameMax} characters`);
  checkIdentifier(tier, 'the tier of a tenant');
  if (!isShallow(searchSettings, limits.jsonDepth)) {
    throw new ServiceError('REL_INVALID', `a search configuration is at most ${limits.jsonDepth} deep`);
  }
  if (canonicalJson(searchSettings).length > searchTextMax) {
    throw new ServiceError('REL_INVALID', `a search configuration has at most ${searchTextMax} characters as JSON`);
  }
}

function isSameTenantRecord(a: TenantRecord, b: TenantRecord): boolean {
  const tenantJson = ({ name, tier, quota, search, members }: TenantRecord): string =>
    canonicalJson({ name, tier, quota, search, members: members.map(({ principal, role }) => [principal, role]) });
  return tenantJson(a) === tenantJson(b);
}
