/** Names of callers' actions in policies, their cost at the start, and the types that they are about. */
import type { Command, CommandKind } from '../../projections/command.ts';
import type { Action } from '../gate-contract.ts';

interface ActionTraits {
  /** Cost units that an invocation takes at its start; the rest of a query is charged when it is known. */
  readonly units: number;
  /** Reads or writes rows: a credential that is limited to purposes states one. */
  readonly touchesRows: boolean;
  /** May be done with what another organisation shares. */
  readonly readsOnly: boolean;
  /** Answers from rows: it counts as a query of its tenant, and rows are seen by a right of its own. */
  readonly answers: boolean;
  /** Any authenticated caller may do it inside its own tenant, until policies are installed. */
  readonly ofTenant: boolean;
}

const actionTraits: Readonly<Record<Action, ActionTraits>> = {
  query: { units: 1, touchesRows: true, readsOnly: true, answers: true, ofTenant: true },
  search: { units: 1, touchesRows: true, readsOnly: true, answers: true, ofTenant: true },
  export: { units: 1, touchesRows: true, readsOnly: true, answers: true, ofTenant: true },
  watch: { units: 1, touchesRows: true, readsOnly: true, answers: true, ofTenant: true },
  replay: { units: 1, touchesRows: true, readsOnly: false, answers: true, ofTenant: true },
  inspect: { units: 0, touchesRows: false, readsOnly: true, answers: false, ofTenant: true },
  audit: { units: 1, touchesRows: false, readsOnly: false, answers: false, ofTenant: true },
  ingest: { units: 0, touchesRows: true, readsOnly: false, answers: false, ofTenant: true },
  delete: { units: 0, touchesRows: true, readsOnly: false, answers: false, ofTenant: true },
  remove: { units: 0, touchesRows: true, readsOnly: false, answers: false, ofTenant: true },
  erase: { units: 0, touchesRows: true, readsOnly: false, answers: false, ofTenant: true },
  schema: { units: 0, touchesRows: false, readsOnly: false, answers: false, ofTenant: true },
  administer: { units: 0, touchesRows: false, readsOnly: false, answers: false, ofTenant: false },
  fork: { units: 0, touchesRows: false, readsOnly: false, answers: false, ofTenant: true },
};

export const unitsAtStart = (action: Action): number => actionTraits[action].units;

export const touchesRows = actionsThat(({ touchesRows: touches }) => touches);

export const readsOnly = actionsThat(({ readsOnly: reads }) => reads);

export const answers = actionsThat(({ answers: does }) => does);

export const ofTenant = actionsThat(({ ofTenant: is }) => is);

function actionsThat(hasTrait: (facts: ActionTraits) => boolean): ReadonlySet<Action> {
  return new Set((Object.keys(actionTraits) as Action[]).filter((action) => hasTrait(actionTraits[action])));
}

/** Policy actions of commands, independent of the invocation that submits them. */
export const actionOf: Readonly<Record<CommandKind, Action>> = {
  'put-rows': 'ingest',
  'delete-rows': 'delete',
  // Each step by itself is called what it is.
  batch: 'ingest',
  'remove-rows': 'remove',
  'register-type': 'schema',
  'evolve-type': 'schema',
  'migrate-types': 'schema',
  'mint-token': 'administer',
  'rotate-token': 'administer',
  'revoke-token': 'administer',
  'fork-branch': 'fork',
  'delete-branch': 'fork',
  'create-view': 'schema',
  'drop-view': 'schema',
  'link-exhibit': 'replay',
  'put-policy': 'administer',
  'delete-policy': 'administer',
  'create-tenant': 'administer',
  'change-tenant': 'administer',
  'suspend-tenant': 'administer',
  'reactivate-tenant': 'administer',
  'delete-tenant': 'administer',
  'purge-tenant': 'administer',
  'propose-agreement': 'administer',
  'move-agreement': 'administer',
  'change-agreement': 'administer',
  'schedule-retention': 'remove',
  'hold-row': 'remove',
  'release-retention': 'remove',
  'expire-retention': 'administer',
  'intend-erasure': 'erase',
  'complete-erasure': 'administer',
  'embed-rows': 'administer',
  'judge-identities': 'ingest',
  'put-rule': 'schema',
  'end-rule': 'schema',
  'put-job': 'schema',
  'change-job': 'schema',
  // Its alerts are judged as rows that are put.
  'record-run': 'administer',
};

/** The parts of a command that are admitted and authorised one by one: steps of a batch, or the command. */
export function partsOf(command: Command): readonly Command[] {
  if (command.kind === 'record-run' && command.alerts !== null) return [command.alerts];
  return command.kind === 'batch' ? command.steps : [command];
}

/** The type that a command writes to or defines; of a batch, the only one. */
export function typeNamed(command: Command): string | null {
  switch (command.kind) {
    case 'put-rows':
    case 'delete-rows':
    case 'remove-rows':
    case 'schedule-retention':
    case 'hold-row':
      return command.type;
    case 'batch':
      return command.steps.every(({ type }) => type === command.steps[0]!.type) ? (command.steps[0]?.type ?? null) : null;
    case 'register-type':
    case 'evolve-type':
    case 'create-view':
    case 'drop-view':
      return command.name;
    case 'judge-identities':
      return command.a.type;
    case 'put-rule':
      return command.definition.object_type;
    case 'migrate-types':
    case 'mint-token':
    case 'rotate-token':
    case 'revoke-token':
    case 'fork-branch':
    case 'delete-branch':
    case 'link-exhibit':
    case 'put-policy':
    case 'delete-policy':
    case 'create-tenant':
    case 'change-tenant':
    case 'suspend-tenant':
    case 'reactivate-tenant':
    case 'delete-tenant':
    case 'purge-tenant':
    case 'propose-agreement':
    case 'move-agreement':
    case 'change-agreement':
    case 'release-retention':
    case 'expire-retention':
    case 'intend-erasure':
    case 'complete-erasure':
    case 'embed-rows':
    case 'end-rule':
    case 'put-job':
    case 'change-job':
    case 'record-run':
      return null;
  }
}

/** Types that a command is about beside the one that it names, each to be allowed. */
export function typesBeside(command: Command): readonly string[] {
  if (command.kind === 'judge-identities') return command.b.type === command.a.type ? [] : [command.b.type];
  return command.kind === 'migrate-types' ? [...new Set(command.steps.map(({ name }) => name))] : [];
}
