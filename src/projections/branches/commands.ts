/**
 * Forking and deleting branches: a command and the registry to a `branch` entry. A tenant's fork has its name within the tenant;
 * another tenant's branch of that name is no conflict, and stays hidden. Pure.
 */
import { ServiceError } from '../../errors.ts';
import { mainBranch, type BranchBody, type EntryDraft } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier, limits } from '../../log/values/value.ts';
import type { DeleteBranch, ForkBranch } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { heldBy } from '../retention/holds.ts';
import type { BranchRecord, Branches } from './projection.ts';

export function decideFork(command: ForkBranch, branches: Branches, context: DecideContext, next: NextPosition): Decision {
  const { name, source, shares } = command;
  checkIdentifier(name, 'a branch name');
  const { tenant } = context.entry;
  if (branches.idOf(source, tenant) === undefined) throw unknownBranch(source);
  if (branches.idOf(name, tenant) !== undefined) {
    throw new ServiceError('REL_CONFLICT', `there is a branch ${JSON.stringify(name)} already`);
  }
  return decideOne(
    'fork-branch',
    name,
    [draft({ kind: 'branch', change: 'forked', name, source, shares }, tenant, context)],
    next,
  );
}

/** `held`: ids of the holds that were asked for on the branch of a fork. They would end with it. */
export function decideDeleteBranch(
  command: DeleteBranch,
  branches: Branches,
  held: (fork: number) => readonly string[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { name } = command;
  if (name === mainBranch) throw new ServiceError('REL_INVALID', 'main always exists and can not be deleted');
  const branch = branches.branch(name, context.entry.tenant);
  if (!branch) throw unknownBranch(name);
  const ids = held(branch.fork);
  if (ids.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the branch are under legal hold: ${heldBy(ids)}`);
  return decideOne('delete-branch', name, [deletionOf(branch, context)], next);
}

export function unknownBranch(name: string): ServiceError {
  const detail = `there is no branch ${JSON.stringify(name.slice(0, limits.identifierLength))}`;
  return new ServiceError('REL_NOT_FOUND', detail, { reason: 'no-such-branch' });
}

/** Deletes a branch of the tenant's, or one of the store's. */
export function deletionOf({ name, tenant, source, shares }: BranchRecord, context: DecideContext): EntryDraft {
  return draft({ kind: 'branch', change: 'deleted', name, source, shares }, tenant, context);
}

/** The leaf of a branch's entry names the branch, whichever one its maker was on. */
function draft(body: BranchBody, tenant: string | null, context: DecideContext): EntryDraft {
  return { context: { ...context.entry, branch: body.name }, body: tenant === null ? body : { ...body, own: true } };
}
