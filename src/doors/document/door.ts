/** The document door: the MongoDB wire protocol. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { mongoCodec } from './codec.ts';
import { doorName } from './command.ts';
import { OpenCursors } from './cursors.ts';
import { DocumentSession } from './session.ts';

export function createDocumentDoor(options: LocalDoorOptions): Door {
  let connections = 0;
  const parts = { ...options, cursors: new OpenCursors(options.random), number: () => ++connections };
  return createLocalDoor(options, {
    name: doorName,
    setting: 'SERVICE_DOCUMENT_PORT',
    protocol: { codec: mongoCodec, open: (connection) => new DocumentSession(parts, connection) },
  });
}
