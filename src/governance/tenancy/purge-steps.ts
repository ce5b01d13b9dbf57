/** A purge driven to its end through one invocation: step by step, so that others have their turn in between. */
import type { PurgeCursor } from '../../projections/command.ts';
import type { Invocation } from '../gate-contract.ts';

/** Rows of so many keys leave in one append. */
const purgedKeysPerStep = 2_000;

/** Removes the rows of a tenant that was deleted with them. Resolves with the number of keys removed, once none is left. */
export async function purgeTenant(
  invocation: Pick<Invocation, 'submit'>,
  id: string,
  yieldTurn: () => Promise<void>,
): Promise<number> {
  let purgedRowCount = 0;
  let purgeCursor: PurgeCursor | null = null;
  do {
    const purgeStep: Awaited<ReturnType<Invocation['submit']>> = await invocation.submit(
      { kind: 'purge-tenant', id, cursor: purgeCursor, keysMax: purgedKeysPerStep },
      { sync: true },
    );
    purgeCursor = purgeStep.purge ?? null;
    if (purgeCursor !== null) purgedRowCount += purgeStep.accepted;
    await yieldTurn();
  } while (purgeCursor !== null);
  return purgedRowCount;
}
