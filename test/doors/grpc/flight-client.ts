/** A client of the Flight door: messages and stubs of the Flight SQL client’s package, for what that client leaves out. */
import { createRequire } from 'node:module';
import { type Client, credentials, Metadata } from '@grpc/grpc-js';
import { type Table, tableFromIPC, tableToIPC } from 'apache-arrow';
import { flightDataFrom } from '../../../src/doors/grpc/flight-messages.ts';
import { ProtobufMessage } from '../../../src/doors/grpc/protobuf.ts';
import type { StoreWorld } from '../http/store-world.ts';
import type { Channel } from './grpc-client.ts';

const require = createRequire(import.meta.url);
const generated = '@firetiger-oss/flight-sql-client/dist/generated/proto/';
/** The generated classes have no types that tell anything. */
type Loose = ReturnType<typeof JSON.parse>;
const { FlightServiceClient } = require(`${generated}Flight_grpc_pb.js`) as Loose;
export const flightMessages = require(`${generated}Flight_pb.js`) as Loose;
export const sqlMessages = require(`${generated}FlightSql_pb.js`) as Loose;
const { Any } = require('google-protobuf/google/protobuf/any_pb.js') as Loose;

export const flightSecret = 'flight-secret';

export interface Info {
  readonly schema: Uint8Array;
  readonly ticket: Uint8Array;
}

export class FlightClient {
  readonly raw: Client & Record<string, (...given: Loose[]) => Loose>;
  readonly metadata = new Metadata();

  constructor(
    world: Pick<StoreWorld, 'others'>,
    given: Readonly<Record<string, string>> = {},
    key: string | null = flightSecret,
    { host = '127.0.0.1', by = credentials.createInsecure(), options = {} }: Channel = {},
  ) {
    const { port } = world.others.find(({ name }) => name === 'flight')!;
    this.raw = new FlightServiceClient(`${host}:${port}`, by, {
      'grpc.ssl_target_name_override': 'localhost',
      'grpc.max_receive_message_length': 4 << 20,
      ...options,
    }) as FlightClient['raw'];
    if (key !== null) this.metadata.set('authorization', `Bearer ${key}`);
    for (const [name, value] of Object.entries(given)) this.metadata.set(name, value);
  }

  close(): void {
    this.raw.close();
  }

  info(descriptor: Loose): Promise<Info> {
    return new Promise((resolve, reject) => {
      this.raw['getFlightInfo']!(descriptor, this.metadata, (error: Error | null, info: Loose) =>
        error === null
          ? resolve({ schema: info.getSchema_asU8(), ticket: info.getEndpointList()[0].getTicket().getTicket_asU8() })
          : reject(error),
      );
    });
  }

  /** Record batches as an IPC stream. */
  async get(ticket: Uint8Array, options: object = {}): Promise<Table> {
    const asked = new flightMessages.Ticket();
    asked.setTicket(ticket);
    const parts: Uint8Array[] = [];
    for await (const data of this.raw['doGet']!(asked, this.metadata, options) as AsyncIterable<Loose>) {
      const header = data.getDataHeader_asU8() as Uint8Array;
      const mark = Buffer.alloc(8);
      mark.writeUInt32LE(0xffff_ffff, 0);
      mark.writeUInt32LE(header.length, 4);
      parts.push(mark, header, data.getDataBody_asU8());
    }
    return tableFromIPC(Buffer.concat(parts));
  }

  async table(sql: string): Promise<Table> {
    return this.get((await this.info(commandDescriptor(Buffer.from(sql)))).ticket);
  }

  async rows(sql: string): Promise<Record<string, unknown>[]> {
    return rowsOf(await this.table(sql));
  }

  /** What a command of Flight SQL gives. */
  async catalogue(name: string, command: Loose): Promise<Record<string, unknown>[]> {
    return rowsOf(await this.get((await this.info(sqlDescriptor(name, command))).ticket));
  }

  /** Puts the table; gives the metadata of the results. */
  put(descriptor: Loose, table: Table): Promise<Buffer[]> {
    return this.putMessages(
      [...flightDataFrom([tableToIPC(table, 'stream')])].map((each) => each.toBuffer()),
      descriptor,
    );
  }

  putMessages(messages: readonly Uint8Array[], descriptor: Loose): Promise<Buffer[]> {
    return new Promise((resolve, reject) => {
      const results: Buffer[] = [];
      const stream = this.raw['doPut']!(this.metadata);
      stream.on('data', (result: Loose) => results.push(Buffer.from(result.getAppMetadata_asU8())));
      stream.on('error', reject);
      stream.on('end', () => resolve(results));
      messages.forEach((bytes, i) => {
        const data = flightMessages.FlightData.deserializeBinary(bytes);
        if (i === 0) data.setFlightDescriptor(descriptor);
        stream.write(data);
      });
      stream.end();
    });
  }

  async action(type: string, request: Loose): Promise<ProtobufMessage[]> {
    const action = new flightMessages.Action();
    action.setType(type);
    action.setBody(packed(`Action${type}Request`, request));
    const results: ProtobufMessage[] = [];
    for await (const result of this.raw['doAction']!(action, this.metadata) as AsyncIterable<Loose>)
      results.push(new ProtobufMessage(new ProtobufMessage(result.getBody_asU8()).bytes(2)!));
    return results;
  }
}

function packed(name: string, given: Loose): Uint8Array {
  const any = new Any();
  any.setTypeUrl(`type.googleapis.com/arrow.flight.protocol.sql.${name}`);
  any.setValue(given.serializeBinary());
  return any.serializeBinary();
}

export function commandDescriptor(command: Uint8Array): Loose {
  const descriptor = new flightMessages.FlightDescriptor();
  descriptor.setType(2);
  descriptor.setCmd(command);
  return descriptor;
}

export const sqlDescriptor = (name: string, command: Loose): Loose => commandDescriptor(packed(name, command));

export function typeDescriptor(...path: string[]): Loose {
  const descriptor = new flightMessages.FlightDescriptor();
  descriptor.setType(1);
  descriptor.setPathList(path);
  return descriptor;
}

export function rowsOf(table: Table): Record<string, unknown>[] {
  return table.toArray().map((row) => {
    const { ...cells } = row.toJSON() as Record<string, unknown>;
    for (const [name, cell] of Object.entries(cells))
      if (cell !== null && typeof cell === 'object' && Symbol.iterator in cell) cells[name] = [...(cell as Iterable<unknown>)];
    return cells;
  });
}
