/** A purge driven to its end through one invocation: step by step, so that others have their turn in between. */
import type { PurgeCursor } from '../../projections/command.ts';
import type { Invocation } from '../gate-contract.ts';

/** Rows of so many keys leave in one append. */
const keysPerStep = 2_000;

/** Removes the rows of a tenant that was deleted with them. Resolves with the number of keys removed, once none is left. */
export async function purgeTenant(
  invocation: Pick<Invocation, 'submit'>,
  id: string,
  yieldTurn: () => Promise<void>,
): Promise<number> {
  let removed = 0;
  let cursor: PurgeCursor | null = null;
  do {
    const step: Awaited<ReturnType<Invocation['submit']>> = await invocation.submit(
      { kind: 'purge-tenant', id, cursor, keysMax: keysPerStep },
      { sync: true },
    );
    cursor = step.purge ?? null;
    if (cursor !== null) removed += step.accepted;
    await yieldTurn();
  } while (cursor !== null);
  return removed;
}
