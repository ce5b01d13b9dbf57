/** The relational door: the Postgres wire protocol. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { AdvisoryLocks } from './advisory-locks.ts';
import { CancelKeys } from './cancel-keys.ts';
import { relationalCodec } from './codec.ts';
import { doorName } from './login.ts';
import { RelationalSession } from './session.ts';

export function createRelationalDoor(doorOptions: LocalDoorOptions): Door {
  const relationalParts = { ...doorOptions, cancels: new CancelKeys(doorOptions.random), locks: new AdvisoryLocks() };
  return createLocalDoor(doorOptions, {
    name: doorName,
    setting: 'SERVICE_RELATIONAL_PORT',
    protocol: { codec: relationalCodec, open: (connection) => new RelationalSession(relationalParts, connection) },
  });
}
