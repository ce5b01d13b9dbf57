/** The relational door: the Postgres wire protocol. Source: specification, "Compatibility doors". */
import type { Settings } from '../../config.ts';
import type { Door } from '../door.ts';
import type { DoorParts } from '../frame/door-parts.ts';
import { createSocketDoor } from '../frame/socket-door.ts';
import { CancelDesk } from './cancel-desk.ts';
import { relationalCodec } from './codec.ts';
import { doorName } from './login.ts';
import { RelationalSession } from './session.ts';

export interface RelationalDoorOptions extends DoorParts {
  readonly settings: Pick<Settings, 'SERVICE_RELATIONAL_PORT' | 'SERVICE_DRAIN_TIMEOUT_SECS'>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/** Compatibility doors listen on this machine only. */
const host = '127.0.0.1';

export function createRelationalDoor(options: RelationalDoorOptions): Door {
  const { settings, tls, clock, failed } = options;
  const parts = { ...options, cancels: new CancelDesk(options.random) };
  return createSocketDoor({
    name: doorName,
    host,
    port: settings.SERVICE_RELATIONAL_PORT,
    setting: 'SERVICE_RELATIONAL_PORT',
    protocol: { codec: relationalCodec, open: (connection) => new RelationalSession(parts, connection) },
    clock,
    drainMs: settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    tls,
    failed,
  });
}
