/**
 * Messages of Flight on any bytes: descriptors, rows, tickets. What must hold: a message is read or refused in the
 * service's words, and no ticket opens but one that was sealed.
 */
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import {
  flightCommandOf,
  flightDataFrom,
  flightDataOf,
  flightInfo,
  pack,
  pathDescriptor,
} from '../../../src/doors/grpc/flight-messages.ts';
import { FlightTickets } from '../../../src/doors/grpc/flight-tickets.ts';
import { bytesField, protobufMessage, textField, varintField } from '../../../src/doors/grpc/protobuf.ts';
import { assert, ServiceError } from '../../../src/errors.ts';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import { arrowColumns } from '../../../src/planner/formats/arrow-reader.ts';

export const name = 'flight-messages';

const caller = tenantlessCaller('ada', 'shared-secret', 'flight');
const tickets = new FlightTickets({ clock: { monotonicMs: () => 0 }, random: { fill: (bytes) => bytes.fill(7) } });
const sealed = tickets.seal('ticket', caller, { kind: 'sql', sql: 'SELECT 1' });
const command = (bytes: Uint8Array): Buffer => protobufMessage(varintField(1, 2), bytesField(2, bytes));

export function seeds(): Uint8Array[] {
  const rows = [...flightDataFrom([tableToIPC(tableFromArrays({ id: ['a', 'b'], n: Int32Array.of(1, 2) }), 'stream')])].map(
    (each) => each.toBuffer(),
  );
  return [
    ...rows,
    sealed,
    pathDescriptor('Reading'),
    command(Buffer.from('SELECT id FROM Reading')),
    command(pack('CommandStatementQuery', textField(1, 'SELECT 1'))),
    command(pack('CommandGetTables', protobufMessage(textField(3, 'R%'), textField(4, 'VIEW'), varintField(5, 1)))),
    command(pack('CommandGetSqlInfo', bytesField(1, Buffer.from([0, 3, 0x80, 0x04])))),
    command(pack('CommandStatementIngest', protobufMessage(bytesField(1, varintField(1, 2)), textField(2, 'Reading')))),
    flightInfo(Buffer.from('schema'), pathDescriptor('T'), sealed),
  ];
}

export function run(bytes: Uint8Array): void {
  attempt(() => flightCommandOf(bytes));
  attempt(() => {
    const { header } = flightDataOf(bytes);
    if (header !== null) arrowColumns(header);
  });
  attempt(() => {
    tickets.open('ticket', caller, bytes);
    assert(Buffer.compare(bytes, sealed) === 0, 'nobody makes a ticket');
  });
}

function attempt(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}
