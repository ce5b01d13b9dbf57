/** The document door: the MongoDB wire protocol. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createLocalDoor, type LocalDoorOptions } from '../shared/socket-door.ts';
import { mongoCodec } from './codec.ts';
import { doorName } from './command.ts';
import { OpenCursors } from './cursors.ts';
import { DocumentSession } from './session.ts';

export function createDocumentDoor(doorOptions: LocalDoorOptions): Door {
  let connectionCount = 0;
  const documentParts = { ...doorOptions, cursors: new OpenCursors(doorOptions.random), number: () => ++connectionCount };
  return createLocalDoor(doorOptions, {
    name: doorName,
    setting: 'SERVICE_DOCUMENT_PORT',
    protocol: { codec: mongoCodec, open: (connection) => new DocumentSession(documentParts, connection) },
  });
}
