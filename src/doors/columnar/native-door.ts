/** The columnar door for clients of ClickHouse's native protocol. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { nativeCodec } from './native-codec.ts';
import { doorName, NativeSession } from './native-session.ts';
import { RunningQueries } from './running-queries.ts';

export function createNativeDoor(doorOptions: LocalDoorOptions): Door {
  const nativeParts = { ...doorOptions, running: new RunningQueries() };
  return createLocalDoor(doorOptions, {
    name: doorName,
    setting: 'SERVICE_COLUMNAR_NATIVE_PORT',
    protocol: { codec: nativeCodec, open: (connection) => new NativeSession(nativeParts, connection) },
  });
}
