/** What governance calls the things that callers do, what they cost at their start, and which type they are about. */
import type { Command, CommandKind } from '../projections/command.ts';
import type { Action } from './gate-contract.ts';

/** Cost units that an invocation takes at its start; the rest of a query is charged when it is known. */
export const unitsAtStart: Readonly<Record<Action, number>> = {
  query: 1,
  audit: 1,
  inspect: 0,
  ingest: 0,
  delete: 0,
  remove: 0,
  erase: 0,
  schema: 0,
  administer: 0,
  fork: 0,
  export: 1,
  watch: 1,
  replay: 1,
};

export const touchesRows: ReadonlySet<Action> = new Set([
  'query',
  'ingest',
  'delete',
  'remove',
  'erase',
  'export',
  'watch',
  'replay',
]);

/** What may be done with what another organisation shares. */
export const readsOnly: ReadonlySet<Action> = new Set(['query', 'export', 'watch', 'inspect']);

/** What a command is called in policies, whatever the invocation that submits it is called. */
export const actionOf: Readonly<Record<CommandKind, Action>> = {
  'put-rows': 'ingest',
  'delete-rows': 'delete',
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
};

/** The type that a command writes to or defines. */
export function typeNamed(command: Command): string | null {
  switch (command.kind) {
    case 'put-rows':
    case 'delete-rows':
    case 'remove-rows':
    case 'schedule-retention':
    case 'hold-row':
      return command.type;
    case 'register-type':
    case 'evolve-type':
    case 'create-view':
    case 'drop-view':
      return command.name;
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
      return null;
  }
}

/** The types that a migration is about, each to be allowed. */
export function typesMigrated(command: Command): readonly string[] {
  return command.kind === 'migrate-types' ? [...new Set(command.steps.map(({ name }) => name))] : [];
}
