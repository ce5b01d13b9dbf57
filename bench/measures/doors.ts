/** Compatibility doors beside the products whose protocols they speak, by the clients of those. */
import type { BenchContext } from '../context.ts';
import { columnarDoor } from './doors-columnar.ts';
import { narrowDoors } from './doors-narrow.ts';
import { nativeDoor } from './doors-native.ts';
import { objectDoor } from './doors-object.ts';
import { relationalDoor } from './doors-relational.ts';
import { rpcDoors } from './doors-rpc.ts';

export async function doors(context: BenchContext): Promise<void> {
  await relationalDoor(context);
  await objectDoor(context);
  await narrowDoors(context);
  await columnarDoor(context);
  await nativeDoor(context);
  await rpcDoors(context);
}
