/** The document door: the MongoDB wire protocol. Source: specification, "Compatibility doors". */
import type { Settings } from '../../config.ts';
import type { Door } from '../door.ts';
import type { DoorParts } from '../frame/door-parts.ts';
import { createSocketDoor } from '../frame/socket-door.ts';
import { wireCodec } from './codec.ts';
import { doorName } from './command.ts';
import { OpenCursors } from './cursors.ts';
import { DocumentSession } from './session.ts';

export interface DocumentDoorOptions extends DoorParts {
  readonly settings: Pick<Settings, 'SERVICE_DOCUMENT_PORT' | 'SERVICE_DRAIN_TIMEOUT_SECS'>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/** Compatibility doors listen on this machine only. */
const host = '127.0.0.1';

export function createDocumentDoor(options: DocumentDoorOptions): Door {
  const { settings, clock, failed } = options;
  let connections = 0;
  const parts = { ...options, cursors: new OpenCursors(options.random), number: () => ++connections };
  return createSocketDoor({
    name: doorName,
    host,
    port: settings.SERVICE_DOCUMENT_PORT,
    setting: 'SERVICE_DOCUMENT_PORT',
    protocol: { codec: wireCodec, open: (connection) => new DocumentSession(parts, connection) },
    clock,
    drainMs: settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    // Clients of this protocol speak TLS from the first byte or not at all.
    tls: null,
    failed,
  });
}
