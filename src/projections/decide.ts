/** From command kind to the decide function of the projection that owns it: a new kind does not compile without one. */
import type { NextPosition } from '../log/log-store.ts';
import { mainBranch, positionsOf } from '../log/entries/entry.ts';
import { tenantOf } from '../log/values/value.ts';
import type { CatalogReader, ViewRecord } from './access-paths.ts';
import { decideDeleteBranch, decideFork, unknownBranch } from './branches/commands.ts';
import type { Branches } from './branches/projection.ts';
import { decideEvolve, decideRegister } from './catalog/commands.ts';
import { decideMigrate } from './catalog/type-migration.ts';
import { subjectProperty } from './catalog/subject-property.ts';
import type { Catalog } from './catalog/projection.ts';
import type { Command, CommandKind, DeleteRows, PutRows } from './command.ts';
import type { DecideContext, Decision } from './decision.ts';
import { decideMint, decideRevoke, decideRotate } from './tokens/commands.ts';
import type { Tokens } from './tokens/projection.ts';
import { decideEmbed } from './embeddings/commands.ts';
import { decideComplete, decideIntend } from './erasures/commands.ts';
import type { Erasures } from './erasures/projection.ts';
import { decideLink } from './exhibits/commands.ts';
import type { Exhibits } from './exhibits/projection.ts';
import { decideJudge } from './entity-resolution/commands.ts';
import type { Judgements } from './entity-resolution/judgements.ts';
import { decideDeletePolicy, decidePutPolicy } from './policies/commands.ts';
import type { Policies } from './policies/projection.ts';
import { decideOnce } from './receipts/commands.ts';
import type { Receipts } from './receipts/projection.ts';
import type { RemovedKeys } from './removed-keys/projection.ts';
import { decideChangeJob, decidePutJob, decideRun } from './jobs/commands.ts';
import type { Jobs } from './jobs/projection.ts';
import { decideEndRule, decidePutRule } from './rules/commands.ts';
import type { Rules } from './rules/projection.ts';
import type { RuleRecord } from './rules/rule.ts';
import { decideExpire, decideKeep, decideRelease } from './retention/commands.ts';
import { holds } from './retention/holds.ts';
import type { Retention } from './retention/projection.ts';
import { alertProperties, alertType, otherAlertType } from './catalog/builtin-types.ts';
import { DraftedTypes } from './catalog/drafted-types.ts';
import { decideMultiTypeBatch } from './rows/writes/multi-type-batch.ts';
import { sourceSealing } from './rows/checks/source-seals.ts';
import { decideDelete, decidePut, decideRemove, deleteSteps, putSteps } from './rows/writes/commands.ts';
import type { TenantRows } from './rows/tables/tenant-rows.ts';
import { type Rows, rowsOf } from './rows/projection.ts';
import { decideChange, decideMove, decidePropose } from './tenants/agreements.ts';
import {
  decideChangeTenant,
  decideCreateTenant,
  decideDeleteTenant,
  decideReactivate,
  decideSuspend,
} from './tenants/commands.ts';
import type { Tenants } from './tenants/projection.ts';
import { decidePurge } from './tenants/purge.ts';
import { decideCreateView, decideDropView, refuseNameOfView } from './views/commands.ts';
import type { Views } from './views/projection.ts';

/** The applied state, acknowledged or not: two writes of one commit group see each other. */
export interface CurrentState {
  readonly branches: Branches;
  readonly catalog: Catalog;
  readonly directory: Tokens;
  readonly erasures: Erasures;
  readonly exhibits: Exhibits;
  readonly judgements: Judgements;
  readonly jobs: Jobs;
  readonly policies: Policies;
  readonly receipts: Receipts;
  readonly removedKeys: RemovedKeys;
  readonly retention: Retention;
  readonly rows: Rows;
  readonly rules: Rules;
  readonly tenants: Tenants;
  readonly views: Views;
  /** Types and rows in place of those of the branch: one caller's uncommitted writes, invisible to others. */
  readonly own?: readonly [CatalogReader, TenantRows];
}

type CommandDecider<K extends CommandKind> = (
  command: Extract<Command, { kind: K }>,
  state: CurrentState,
  context: DecideContext,
  next: NextPosition,
) => Decision;

const commandDeciders: { readonly [K in CommandKind]: CommandDecider<K> } = {
  'put-rows': (command, state, context, next) => {
    const [catalog, rows] = catalogAndRowsOn(state, context);
    const type = catalog.type(command.type);
    refuseViewsMade(command, catalog, state, context);
    const decideRows = (): Decision => decidePut(command, catalog, rows, context, next);
    const { receipt } = command;
    if (receipt === undefined) return decideRows();
    const hidesKeys = type !== undefined && subjectProperty(type) !== null;
    return decideOnce(receipt, state.receipts, hidesKeys, decideRows, context, next);
  },
  'delete-rows': (command, state, context, next) => decideDelete(command, ...catalogAndRowsOn(state, context), context, next),
  batch: (command, state, context, next) => {
    const [catalog, rows] = catalogAndRowsOn(state, context);
    for (const step of command.steps) if (step.kind === 'put-rows') refuseViewsMade(step, catalog, state, context);
    return decideMultiTypeBatch(command, catalog, rows, context, next);
  },
  'remove-rows': (command, state, context, next) => {
    const [catalog, rows] = catalogAndRowsOn(state, context);
    const sealing = sourceSealing({ catalog, rows, path: context.entry.path, removed: state.removedKeys }, context);
    return decideRemove(command, catalog, rows, { holds: holds(state), sealing }, context, next);
  },
  'register-type': (command, state, context, next) => {
    refuseNameOfView(command.name, ...viewsOf(state, context));
    return decideRegister(command, ...catalogAndRowsOn(state, context), context, next);
  },
  'evolve-type': (command, state, context, next) => decideEvolve(command, ...catalogAndRowsOn(state, context), context, next),
  'migrate-types': (command, state, context, next) => {
    for (const { kind, name } of command.steps) if (kind === 'register-type') refuseNameOfView(name, ...viewsOf(state, context));
    return decideMigrate(command, ...catalogAndRowsOn(state, context), context, next);
  },
  'mint-token': (command, { directory }, context, next) => decideMint(command, directory, contextOnMain(context), next),
  'rotate-token': (command, { directory }, context, next) => decideRotate(command, directory, contextOnMain(context), next),
  'revoke-token': (command, { directory }, context, next) => decideRevoke(command, directory, contextOnMain(context), next),
  'fork-branch': (command, { branches }, context, next) => decideFork(command, branches, context, next),
  'delete-branch': (command, { branches, retention }, context, next) =>
    decideDeleteBranch(command, branches, (fork) => retention.heldOn(fork), context, next),
  'create-view': (command, state, context, next) =>
    decideCreateView(command, ...catalogAndViewsOn(state, context), context, next),
  'drop-view': (command, state, context, next) => decideDropView(command, catalogAndViewsOn(state, context)[1], context, next),
  'link-exhibit': (command, state, context, next) => decideLink(command, state, context, next),
  'put-policy': (command, { policies }, context, next) => decidePutPolicy(command, policies, contextOnMain(context), next),
  'delete-policy': (command, { policies }, context, next) => decideDeletePolicy(command, policies, contextOnMain(context), next),
  'create-tenant': (command, { tenants }, context, next) => decideCreateTenant(command, tenants, contextOnMain(context), next),
  'change-tenant': (command, { tenants }, context, next) => decideChangeTenant(command, tenants, contextOnMain(context), next),
  'suspend-tenant': (command, { tenants }, context, next) => decideSuspend(command, tenants, contextOnMain(context), next),
  'reactivate-tenant': (command, { tenants }, context, next) => decideReactivate(command, tenants, contextOnMain(context), next),
  'delete-tenant': (command, { tenants, directory, retention }, context, next) =>
    decideDeleteTenant(command, tenants, directory, retention.heldUnder(command.id), contextOnMain(context), next),
  'purge-tenant': (command, state, context, next) => decidePurge(command, state, holds(state), contextOnMain(context), next),
  'propose-agreement': (command, { tenants }, context, next) => decidePropose(command, tenants, contextOnMain(context), next),
  'move-agreement': (command, { tenants }, context, next) => decideMove(command, tenants, contextOnMain(context), next),
  'change-agreement': (command, { tenants }, context, next) => decideChange(command, tenants, contextOnMain(context), next),
  'schedule-retention': (command, state, context, next) =>
    decideKeep(command, state.retention, ...catalogAndRowsOn(state, context), context, next),
  'hold-row': (command, state, context, next) =>
    decideKeep(command, state.retention, ...catalogAndRowsOn(state, context), context, next),
  'release-retention': (command, state, context, next) => decideRelease(command, state, context, next),
  'expire-retention': (command, state, context, next) => decideExpire(command, state, holds(state), context, next),
  'intend-erasure': (command, state, context, next) =>
    decideIntend(command, state.erasures, holds(state), contextOnMain(context), next),
  'embed-rows': (command, state, context, next) => {
    const { branch, path } = command;
    const own = catalogAndRowsOn(state, { ...context, entry: { ...context.entry, branch, path } });
    return decideEmbed(command, ...own, context, next);
  },
  'judge-identities': (command, state, context, next) => {
    const since = state.tenants.sinceOf(context.entry.tenant)?.position ?? 0;
    const judgements = state.judgements.judgementsOn(branchIdOf(state, context)).filter(({ position }) => position >= since);
    return decideJudge(command, judgements, ...catalogAndRowsOn(state, context), context, next);
  },
  'put-rule': (command, state, context, next) => decidePutRule(command, rulesOn(state, context), context, next),
  'end-rule': (command, state, context, next) => decideEndRule(command, rulesOn(state, context), context, next),
  'put-job': (command, { jobs }, context, next) => decidePutJob(command, jobs, context, next),
  'change-job': (command, { jobs }, context, next) => decideChangeJob(command, jobs, context, next),
  'record-run': (command, state, context, next) =>
    decideRun(
      command,
      state.jobs,
      (alerts) => decideAlerts(alerts, ...catalogAndRowsOn(state, context), context, next),
      context,
      next,
    ),
  'complete-erasure': (command, { erasures }, context, next) => decideComplete(command, erasures, contextOnMain(context), next),
};

/** The type of alerts comes with the first of them. */
function decideAlerts(
  alertRows: PutRows,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const alertTypeName = alertRows.type;
  if (catalog.type(alertTypeName) !== undefined || (alertTypeName !== alertType && alertTypeName !== otherAlertType))
    return decidePut(alertRows, catalog, rows, context, next);
  const registerAlerts = {
    kind: 'register-type',
    name: alertTypeName,
    properties: alertProperties,
    primaryKey: null,
    graphTriggers: [],
  } as const;
  const { drafts } = decideRegister(registerAlerts, catalog, rows, context, next);
  const draftedTypes = new DraftedTypes(catalog);
  let { position, time } = next;
  for (const { body } of drafts) {
    if (body.kind === 'type') draftedTypes.add(body.definition);
    position += positionsOf(body);
    time += BigInt(positionsOf(body));
  }
  const alertsDecision = decidePut(alertRows, draftedTypes, rows, context, { position, time });
  return { ...alertsDecision, drafts: [...drafts, ...alertsDecision.drafts] };
}

/** A type that comes with its first row, and one that comes with its first edge, take no name of a view. */
function refuseViewsMade(command: PutRows, catalog: CatalogReader, state: CurrentState, context: DecideContext): void {
  const writtenType = catalog.type(command.type);
  const linkTypes = (writtenType?.graphTriggers ?? [])
    .map(({ linkType }) => linkType)
    .filter((createdTypeName) => catalog.type(createdTypeName) === undefined);
  if (writtenType === undefined && command.createType) linkTypes.push(command.type);
  for (const name of linkTypes) refuseNameOfView(name, ...viewsOf(state, context));
}

/** Types and rows of the branch and the tenant that the command is on. */
function catalogAndRowsOn(state: CurrentState, context: DecideContext): [CatalogReader, TenantRows] {
  if (state.own) return [...state.own];
  const branchRows = rowsOf(state.catalog, branchIdOf(state, context), tenantOf(context.entry.path));
  return [branchRows.catalog, state.rows.tenantRows(branchRows)];
}

function catalogAndViewsOn(state: CurrentState, context: DecideContext): [CatalogReader, readonly ViewRecord[]] {
  const branch = branchIdOf(state, context);
  return [state.catalog.catalogOn(branch, tenantOf(context.entry.path)), viewsOf(state, context)[0]];
}

/** Views left by an earlier tenant of the same id do not belong to this one. */
function viewsOf(state: CurrentState, context: DecideContext): [readonly ViewRecord[], DecideContext] {
  const tenantSince = state.tenants.sinceOf(context.entry.tenant)?.position ?? 0;
  return [state.views.viewsOn(branchIdOf(state, context)).filter(({ position }) => position >= tenantSince), context];
}

/** Rules left by an earlier tenant of the same id do not belong to this one. */
function rulesOn(state: CurrentState, context: DecideContext): readonly RuleRecord[] {
  const tenantSince = state.tenants.sinceOf(context.entry.tenant)?.position ?? 0;
  return state.rules.rulesOn(branchIdOf(state, context)).filter(({ position }) => position >= tenantSince);
}

/** Throws REL_NOT_FOUND when the command's branch is none that its tenant can name. */
function branchIdOf({ branches }: CurrentState, { entry }: DecideContext): number {
  const branchId = branches.idOf(entry.branch, entry.tenant);
  if (branchId === undefined) throw unknownBranch(entry.branch);
  return branchId;
}

/** Tokens, policies and tenants never fork: a branch can't keep alive what was revoked. */
function contextOnMain(context: DecideContext): DecideContext {
  return { ...context, entry: { ...context.entry, branch: mainBranch } };
}

/** Pure: nothing changes until the drafts are appended and applied. Throws the ServiceError that refuses a command. */
export function decide(command: Command, state: CurrentState, context: DecideContext, next: NextPosition): Decision {
  const commandDecider = commandDeciders[command.kind] as CommandDecider<CommandKind>;
  return commandDecider(command, state, context, next);
}

/**
 * The same for rows, so many a step. The decision holds if no write and no policy came between its steps; otherwise it may fail
 * in any way.
 */
export function* decideInSteps(
  command: PutRows | DeleteRows,
  state: CurrentState,
  context: DecideContext,
  next: NextPosition,
): Generator<undefined, Decision> {
  const [catalog, rows] = catalogAndRowsOn(state, context);
  if (command.kind === 'delete-rows') return yield* deleteSteps(command, catalog, rows, context, next);
  refuseViewsMade(command, catalog, state, context);
  return yield* putSteps(command, catalog, rows, context, next);
}
