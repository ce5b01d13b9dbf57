/** The relational door: the Postgres wire protocol. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { AdvisoryLocks } from './advisory-locks.ts';
import { CancelKeys } from './cancel-keys.ts';
import { relationalCodec } from './codec.ts';
import { doorName } from './login.ts';
import { RelationalSession } from './session.ts';

export function createRelationalDoor(options: LocalDoorOptions): Door {
  const parts = { ...options, cancels: new CancelKeys(options.random), locks: new AdvisoryLocks() };
  return createLocalDoor(options, {
    name: doorName,
    setting: 'SERVICE_RELATIONAL_PORT',
    protocol: { codec: relationalCodec, open: (connection) => new RelationalSession(parts, connection) },
  });
}
