/** Every compatibility door beside the product whose protocol it speaks, by that product's own clients. */
import type { BenchContext } from '../context.ts';
import { relationalDoor } from './relational-door.ts';

export async function doors(context: BenchContext): Promise<void> {
  await relationalDoor(context);
}
