/** The graph door for drivers of Bolt, as Neo4j speaks it. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { boltCodec } from './bolt-codec.ts';
import { BoltSession, doorName } from './bolt-session.ts';

export function createBoltDoor(doorOptions: LocalDoorOptions): Door {
  return createLocalDoor(doorOptions, {
    name: doorName,
    setting: 'SERVICE_GRAPH_BINARY_PORT',
    protocol: { codec: boltCodec, open: (connection) => new BoltSession(doorOptions, connection) },
  });
}
