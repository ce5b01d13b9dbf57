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
  const { id: erasureId, commitment, reason, keys, mentions, statement } = command;
  checkIdentifier(erasureId, 'the id of an erasure');
  assert(/^[0-9a-f]{64}$/.test(commitment), 'a commitment is 64 lower-case hex digits');
  if (erasures.find(erasureId)) throw new ServiceError('REL_CONFLICT', 'an erasure with this id exists');
  const erasedVersions = command.versions.map(sortErasedVersions).sort((a, b) => compareText(a.type, b.type));
  const holdIds = erasedVersions.flatMap(({ type, positions }) => holds.holdsOn(type, positions));
  if (holdIds.length > 0) {
    throw new ServiceError('REL_CONFLICT', `rows of the subject are under legal hold: ${heldBy(holdIds)}; nothing was erased`);
  }
  const erasureIntent: ErasureBody = {
    kind: 'erasure',
    change: 'intended',
    id: erasureId,
    commitment,
    reason,
    keys,
    versions: erasedVersions.filter(({ positions }) => positions.length > 0),
    mentions: risingPositions(mentions),
    statement,
  };
  return decideOne('intend-erasure', erasureId, [{ context: context.entry, body: erasureIntent }], next);
}

export function decideComplete(
  command: CompleteErasure,
  erasures: Erasures,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id: erasureId, statement } = command;
  const intendedErasure = erasures.find(erasureId);
  if (!intendedErasure) throw new ServiceError('REL_NOT_FOUND', 'no erasure of this id was intended');
  if (intendedErasure.completed !== null) return decideOne('complete-erasure', erasureId, [], next);
  const { commitment, reason, keys, tenant } = intendedErasure;
  const erasureCompletion: ErasureBody = {
    kind: 'erasure',
    change: 'completed',
    id: erasureId,
    commitment,
    reason,
    keys,
    versions: [],
    mentions: [],
    statement,
  };
  // The entry belongs to the subject's tenant, whichever caller completes the erasure.
  return decideOne('complete-erasure', erasureId, [{ context: { ...context.entry, tenant }, body: erasureCompletion }], next);
}

function sortErasedVersions({ type, paths, positions }: ErasedVersions): ErasedVersions {
  const sortedPaths = [...new Set(paths)].sort((a, b) =>
    a === null || b === null ? +(b === null) - +(a === null) : compareText(a, b),
  );
  return { type, paths: sortedPaths, positions: risingPositions(positions) };
}

function risingPositions(erasedPositions: readonly number[]): readonly number[] {
  return [...new Set(erasedPositions)].sort((a, b) => a - b);
}
