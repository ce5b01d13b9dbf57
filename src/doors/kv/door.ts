/** The key-value door: RESP, as Redis speaks it. Source: specification, "Compatibility doors". */
import type { Settings } from '../../config.ts';
import type { Door } from '../door.ts';
import type { DoorParts } from '../frame/door-parts.ts';
import { createSocketDoor } from '../frame/socket-door.ts';
import { respCodec } from './codec.ts';
import { doorName } from './command.ts';
import { Cursors } from './cursors.ts';
import { KvSession } from './session.ts';
import { Channels } from './subscriptions.ts';

export interface KvDoorOptions extends DoorParts {
  readonly settings: Pick<Settings, 'SERVICE_KV_PORT' | 'SERVICE_DRAIN_TIMEOUT_SECS'>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/** Compatibility doors listen on this machine only. */
const host = '127.0.0.1';

export function createKvDoor(options: KvDoorOptions): Door {
  const { settings, clock, failed } = options;
  let connections = 0;
  const parts = { ...options, cursors: new Cursors(), channels: new Channels(), number: () => ++connections };
  return createSocketDoor({
    name: doorName,
    host,
    port: settings.SERVICE_KV_PORT,
    setting: 'SERVICE_KV_PORT',
    protocol: { codec: respCodec, open: (connection) => new KvSession(parts, connection) },
    clock,
    drainMs: settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    // Clients of this protocol speak TLS from the first byte or not at all.
    tls: null,
    failed,
  });
}
