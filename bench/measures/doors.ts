/** Doors that speak the protocols of others, one after the other. */
import type { BenchContext } from '../context.ts';
import { objectDoor } from './doors-object.ts';

export async function doors(context: BenchContext): Promise<void> {
  await objectDoor(context);
}
