/** The key-value door: RESP, as Redis speaks it. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { respCodec } from './codec.ts';
import { doorName } from './command.ts';
import { ScanCursors } from './scan-cursors.ts';
import { KvSession } from './session.ts';
import { Channels } from './pub-sub.ts';

export function createKvDoor(doorOptions: LocalDoorOptions): Door {
  let connectionCount = 0;
  const kvParts = { ...doorOptions, cursors: new ScanCursors(), channels: new Channels(), number: () => ++connectionCount };
  return createLocalDoor(doorOptions, {
    name: doorName,
    setting: 'SERVICE_KV_PORT',
    protocol: { codec: respCodec, open: (connection) => new KvSession(kvParts, connection) },
  });
}
