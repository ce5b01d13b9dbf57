/** Forking and deleting branches: a command and the registry to a `branch` entry. Pure. */
import { ServiceError } from '../../errors.ts';
import { mainBranch, type BranchBody, type EntryDraft } from '../../log/entry.ts';
import type { NextPlace } from '../../log/log-store.ts';
import { checkIdentifier, limits } from '../../log/value.ts';
import type { DeleteBranch, ForkBranch } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { heldBy } from '../retention/holds.ts';
import type { Branches } from './projection.ts';

export function decideFork(command: ForkBranch, branches: Branches, context: DecideContext, next: NextPlace): Decision {
  const { name, source, shares } = command;
  checkIdentifier(name, 'a branch name');
  if (branches.idOf(source) === undefined) throw unknownBranch(source);
  if (branches.idOf(name) !== undefined) {
    throw new ServiceError('REL_CONFLICT', `there is a branch ${JSON.stringify(name)} already`);
  }
  return decideOne('fork-branch', name, [draft({ kind: 'branch', change: 'forked', name, source, shares }, context)], next);
}

/** `held`: ids of the holds that were asked for on the branch of a fork. They would end with it. */
export function decideDeleteBranch(
  command: DeleteBranch,
  branches: Branches,
  held: (fork: number) => readonly string[],
  context: DecideContext,
  next: NextPlace,
): Decision {
  const { name } = command;
  if (name === mainBranch) throw new ServiceError('REL_INVALID', 'main always exists and can not be deleted');
  const branch = branches.branch(name);
  if (!branch) throw unknownBranch(name);
  const ids = held(branch.fork);
  if (ids.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the branch are under legal hold: ${heldBy(ids)}`);
  const { source, shares } = branch;
  return decideOne('delete-branch', name, [draft({ kind: 'branch', change: 'deleted', name, source, shares }, context)], next);
}

export function unknownBranch(name: string): ServiceError {
  return new ServiceError('REL_NOT_FOUND', `there is no branch ${JSON.stringify(name.slice(0, limits.identifierLength))}`);
}

/** The leaf of a branch's entry names the branch, whichever one its maker was on. */
function draft(body: BranchBody, context: DecideContext): EntryDraft {
  return { context: { ...context.entry, branch: body.name }, body };
}
