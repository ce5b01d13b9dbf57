/** Intending and completing an erasure: commands to entries. Pure. */
import { assert, ServiceError } from '../../errors.ts';
import type { ErasedVersions, ErasureBody } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier, compareText } from '../../log/values/value.ts';
import type { HoldReader } from '../access-paths.ts';
import type { CompleteErasure, IntendErasure } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { heldBy } from '../retention/holds.ts';
import type { Erasures } from './projection.ts';

export function decideIntend(
  command: IntendErasure,
  erasures: Erasures,
  holds: HoldReader,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id, commitment, reason, keys, mentions, statement } = command;
  checkIdentifier(id, 'the id of an erasure');
  assert(/^[0-9a-f]{64}$/.test(commitment), 'a commitment is 64 lower-case hex digits');
  if (erasures.find(id)) throw new ServiceError('REL_CONFLICT', 'an erasure with this id exists');
  const versions = command.versions.map(inOrder).sort((a, b) => compareText(a.type, b.type));
  const held = versions.flatMap(({ type, positions }) => holds.holdsOn(type, positions));
  if (held.length > 0) {
    throw new ServiceError('REL_CONFLICT', `rows of the subject are under legal hold: ${heldBy(held)}; nothing was erased`);
  }
  const body: ErasureBody = {
    kind: 'erasure',
    change: 'intended',
    id,
    commitment,
    reason,
    keys,
    versions: versions.filter(({ positions }) => positions.length > 0),
    mentions: rising(mentions),
    statement,
  };
  return decideOne('intend-erasure', id, [{ context: context.entry, body }], next);
}

export function decideComplete(
  command: CompleteErasure,
  erasures: Erasures,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id, statement } = command;
  const erasure = erasures.find(id);
  if (!erasure) throw new ServiceError('REL_NOT_FOUND', 'no erasure of this id was intended');
  if (erasure.completed !== null) return decideOne('complete-erasure', id, [], next);
  const { commitment, reason, keys, tenant } = erasure;
  const body: ErasureBody = {
    kind: 'erasure',
    change: 'completed',
    id,
    commitment,
    reason,
    keys,
    versions: [],
    mentions: [],
    statement,
  };
  // The entry belongs to the subject's tenant, whichever caller completes the erasure.
  return decideOne('complete-erasure', id, [{ context: { ...context.entry, tenant }, body }], next);
}

function inOrder({ type, paths, positions }: ErasedVersions): ErasedVersions {
  const named = [...new Set(paths)].sort((a, b) =>
    a === null || b === null ? +(b === null) - +(a === null) : compareText(a, b),
  );
  return { type, paths: named, positions: rising(positions) };
}

function rising(positions: readonly number[]): readonly number[] {
  return [...new Set(positions)].sort((a, b) => a - b);
}
