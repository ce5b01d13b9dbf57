/** From command kind to the decide function of the projection that owns it: a new kind does not compile without one. */
import { ServiceError } from '../errors.ts';
import type { NextPlace } from '../log/log-store.ts';
import { decideEvolve, decideRegister } from './catalog/commands.ts';
import type { Catalog } from './catalog/projection.ts';
import type { Command, CommandKind } from './command.ts';
import type { DecideContext, Decision } from './decision.ts';
import { decideMint, decideRevoke, decideRotate } from './directory/commands.ts';
import type { Directory } from './directory/projection.ts';
import { decideLink } from './exhibits/commands.ts';
import type { Exhibits } from './exhibits/projection.ts';
import { decideDelete, decidePut, decideRemove } from './rows/commands.ts';
import type { Rows } from './rows/projection.ts';

/** What has been applied, acknowledged or not: two writes of one commit group see each other. */
export interface CurrentState {
  readonly catalog: Catalog;
  readonly directory: Directory;
  readonly exhibits: Exhibits;
  readonly rows: Rows;
}

type Decide<K extends CommandKind> = (
  command: Extract<Command, { kind: K }>,
  state: CurrentState,
  context: DecideContext,
  next: NextPlace,
) => Decision;

const deciders: { readonly [K in CommandKind]: Decide<K> } = {
  'put-rows': (command, { catalog, rows }, context, next) => decidePut(command, catalog, rows, context, next),
  'delete-rows': (command, { catalog, rows }, context, next) => decideDelete(command, catalog, rows, context, next),
  'remove-rows': (command, { catalog, rows }, context, next) => decideRemove(command, catalog, rows, context, next),
  'register-type': (command, { catalog }, context, next) => decideRegister(command, catalog, context, next),
  'evolve-type': (command, { catalog, rows }, context, next) => decideEvolve(command, catalog, rows, context, next),
  'mint-token': (command, { directory }, context, next) => decideMint(command, directory, context, next),
  'rotate-token': (command, { directory }, context, next) => decideRotate(command, directory, context, next),
  'revoke-token': (command, { directory }, context, next) => decideRevoke(command, directory, context, next),
  'fork-branch': refuse,
  'delete-branch': refuse,
  'create-view': refuse,
  'link-exhibit': (command, { exhibits }, context, next) => decideLink(command, exhibits, context, next),
};

function refuse(command: Command): never {
  throw new ServiceError('REL_NOT_IMPLEMENTED', `${command.kind} is not implemented`);
}

/** Pure: nothing changes until the drafts are appended and applied. Throws the ServiceError that refuses a command. */
export function decide(command: Command, state: CurrentState, context: DecideContext, next: NextPlace): Decision {
  const decider = deciders[command.kind] as Decide<CommandKind>;
  return decider(command, state, context, next);
}
