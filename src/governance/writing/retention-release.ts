/**
 * Decides who may end a schedule or hold. Commands name it by an id alone, so its row is looked up here. It is released in the
 * path and on the branch of that row, as the row itself is removed. The operator of the store, naming no path, removes due rows
 * anywhere. Nobody can tell another tenant's id from one that is not in force.
 */
import type { Command } from '../../projections/command.ts';
import { notInForce } from '../../projections/retention/commands.ts';
import type { RetentionRule, Retention } from '../../projections/retention/projection.ts';

/** Where a command is submitted: the caller's path, and the fork of the branch. */
export interface ReleaseScope {
  readonly path: string | null;
  readonly fork: number | undefined;
}

/** Null for commands that name neither. REL_NOT_FOUND for an id that is not in force, and for one that the caller may not end. */
export function rowToRelease(command: Command, retention: Pick<Retention, 'find'>, scope: ReleaseScope): RetentionRule | null {
  if (command.kind !== 'release-retention' && command.kind !== 'expire-retention') return null;
  const retentionRule = retention.find(command.id);
  if (retentionRule === undefined || !isOwnRetention(command.kind, retentionRule, scope)) {
    throw notInForce();
  }
  return retentionRule;
}

function isOwnRetention(
  kind: 'release-retention' | 'expire-retention',
  retentionRule: RetentionRule,
  { path, fork }: ReleaseScope,
): boolean {
  if (kind === 'expire-retention') return path === null || path === retentionRule.path;
  return path === retentionRule.path && fork === retentionRule.fork;
}
