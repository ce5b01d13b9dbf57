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
  const { name: forkName, source: forkedBranch, shares: forkShares } = command;
  checkIdentifier(forkName, 'a branch name');
  const { tenant } = context.entry;
  if (branches.idOf(forkedBranch, tenant) === undefined) throw unknownBranch(forkedBranch);
  if (branches.idOf(forkName, tenant) !== undefined) {
    throw new ServiceError('REL_CONFLICT', `there is a branch ${JSON.stringify(forkName)} already`);
  }
  return decideOne(
    'fork-branch',
    forkName,
    [
      branchDraft(
        { kind: 'branch', change: 'forked', name: forkName, source: forkedBranch, shares: forkShares },
        tenant,
        context,
      ),
    ],
    next,
  );
}

/** `holdsOnFork`: ids of the holds that were asked for on the branch of a fork. They would end with it. */
export function decideDeleteBranch(
  command: DeleteBranch,
  branches: Branches,
  holdsOnFork: (fork: number) => readonly string[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { name: deletedBranchName } = command;
  if (deletedBranchName === mainBranch) throw new ServiceError('REL_INVALID', 'main always exists and can not be deleted');
  const deletedBranch = branches.branch(deletedBranchName, context.entry.tenant);
  if (!deletedBranch) throw unknownBranch(deletedBranchName);
  const holdIds = holdsOnFork(deletedBranch.fork);
  if (holdIds.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the branch are under legal hold: ${heldBy(holdIds)}`);
  return decideOne('delete-branch', deletedBranchName, [deletionOf(deletedBranch, context)], next);
}

export function unknownBranch(branchName: string): ServiceError {
  const noSuchBranch = `there is no branch ${JSON.stringify(branchName.slice(0, limits.identifierLength))}`;
  return new ServiceError('REL_NOT_FOUND', noSuchBranch, { reason: 'no-such-branch' });
}

/** Deletes a branch of the tenant's, or one of the store's. */
export function deletionOf({ name, tenant, source, shares }: BranchRecord, context: DecideContext): EntryDraft {
  return branchDraft({ kind: 'branch', change: 'deleted', name, source, shares }, tenant, context);
}

/** The leaf of a branch's entry names the branch, whichever one its maker was on. */
function branchDraft(branchBody: BranchBody, tenant: string | null, context: DecideContext): EntryDraft {
  return {
    context: { ...context.entry, branch: branchBody.name },
    body: tenant === null ? branchBody : { ...branchBody, own: true },
  };
}
