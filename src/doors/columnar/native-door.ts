/** The columnar door for clients of ClickHouse's native protocol. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { nativeCodec } from './native-codec.ts';
import { doorName, NativeSession } from './native-session.ts';
import { RunningQueries } from './running-queries.ts';

export function createNativeDoor(options: LocalDoorOptions): Door {
  const parts = { ...options, running: new RunningQueries() };
  return createLocalDoor(options, {
    name: doorName,
    setting: 'SERVICE_COLUMNAR_NATIVE_PORT',
    protocol: { codec: nativeCodec, open: (connection) => new NativeSession(parts, connection) },
  });
}
