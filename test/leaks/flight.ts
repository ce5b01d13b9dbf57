/** What the Flight door says: its methods, called as the server calls them. Tickets and handles are noise: what they open is heard. */
import { UnsentMessages } from '../../src/doors/grpc/unsent-messages.ts';
import { RpcConnections } from '../../src/doors/grpc/connections.ts';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { flightDataFrom, pack, pathDescriptor } from '../../src/doors/grpc/flight-messages.ts';
import { flightService } from '../../src/doors/grpc/flight-service.ts';
import { bytesField, ProtobufMessage, protobufMessage, textField, varintField } from '../../src/doors/grpc/protobuf.ts';
import { type Conversation, talk } from './conversations.ts';
import { Call, letIn } from './grpc.ts';
import { settled } from './lab.ts';
import { comesAs, heardOf, partsOf } from './narrow-doors.ts';

const types = ['Deal', 'Party', 'Dossier', 'Hidden', 'hidden_view', 'SourceTrueIdentity', 'Nowhere'];
const command = (bytes: Uint8Array): Buffer => protobufMessage(varintField(1, 2), bytesField(2, bytes));
const sql = (text: string): Buffer => command(Buffer.from(text));
const prepared = (text: string): Buffer =>
  protobufMessage(
    textField(1, 'CreatePreparedStatement'),
    bytesField(2, pack('ActionCreatePreparedStatementRequest', textField(1, text))),
  );

const descriptors: readonly Buffer[] = [
  ...types.flatMap((type) => [pathDescriptor(type), sql(`SELECT COUNT(*) AS n FROM ${type}`)]),
  sql('SELECT amount FROM Deal AS OF CURRENT'),
  sql('EXPLAIN SELECT * FROM Deal'),
  command(pack('CommandGetCatalogs', Buffer.alloc(0))),
  command(pack('CommandGetDbSchemas', Buffer.alloc(0))),
  command(pack('CommandGetTables', varintField(5, 1))),
  command(pack('CommandGetTableTypes', Buffer.alloc(0))),
  ...types.map((type) => command(pack('CommandGetPrimaryKeys', textField(3, type)))),
];

const actions: readonly Buffer[] = types.map((type) => prepared(`SELECT * FROM ${type} WHERE _pk = $1`));

/** A table that has to be there: options of the bulk command, and its name. */
const into = (type: string): Buffer =>
  command(pack('CommandStatementIngest', protobufMessage(bytesField(1, varintField(1, 2)), textField(2, type))));

const puts: readonly (readonly [type: string, descriptor: Buffer, columns: Parameters<typeof tableFromArrays>[0]])[] = [
  ['Deal', pathDescriptor('Deal'), { id: ['x1'], amount: Int32Array.of(1), note: ['own'] }],
  ['Hidden', into('Hidden'), { id: ['x1'] }],
  ['Mine3', pathDescriptor('Mine3'), { id: ['x1'] }],
];

/** A call that sends messages, too. */
class Sending extends Call {
  readonly iterator: () => AsyncGenerator<Buffer, void>;

  constructor(sent: readonly Buffer[], metadata: Readonly<Record<string, string>>) {
    super({}, metadata);
    this.iterator = async function* () {
      yield* sent;
    };
  }
}

export const flightConversations: readonly Conversation[] = [
  {
    name: 'the Flight door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      const comes = comesAs(stage, adversary);
      if (comes === null) return;
      const { token, organization, purpose } = comes;
      const { implementation } = flightService({
        ...partsOf(stage),
        isDraining: () => false,
        outboxes: new UnsentMessages(),
        endings: new RpcConnections(partsOf(stage).clock).endings,
        sending: new RpcConnections(partsOf(stage).clock).sending,
        version: '0',
      });
      const methods = implementation as unknown as Readonly<Record<string, (call: Call, reply: Call['reply']) => void>>;
      const metadata = {
        authorization: `Bearer ${token}`,
        ...(organization !== null && { 'x-organization-id': organization }),
        ...(purpose !== null && { 'x-service-purpose': purpose }),
      };
      const answers = async (method: string, call: Call): Promise<readonly unknown[]> => {
        await stage.lab.tick();
        if (await letIn(call, partsOf(stage), 'flight')) methods[method]!(call, call.reply);
        await call.answered();
        call.emit('cancelled');
        await settled(8);
        return call.told;
      };
      const hear = (what: string, told: readonly unknown[]): void => {
        const body = JSON.stringify(told, (_, value: unknown) => (value instanceof Uint8Array ? latin1(value) : value));
        heard.push(heardOf('FLIGHT', what, Buffer.from(body, 'latin1')));
      };
      for (const descriptor of descriptors) {
        const [info] = await answers('GetFlightInfo', new Call(descriptor, metadata));
        hear(`GetFlightInfo ${latin1(descriptor)}`, [schemaIn(info)]);
        if (!(info instanceof Uint8Array)) continue;
        const ticket = new ProtobufMessage(new ProtobufMessage(info).bytes(3)!).bytes(1)!;
        hear(`DoGet ${latin1(descriptor)}`, await answers('DoGet', new Call(ticket, metadata)));
      }
      hear('ListFlights', (await answers('ListFlights', new Call(Buffer.alloc(0), metadata))).map(schemaIn));
      for (const action of actions) {
        const told = await answers('DoAction', new Call(action, metadata));
        const schemas = told.map((result) => {
          if (!(result instanceof Uint8Array)) return result;
          const made = new ProtobufMessage(new ProtobufMessage(new ProtobufMessage(result).bytes(1)!).bytes(2)!);
          return [made.bytes(2), made.bytes(3)];
        });
        hear(`DoAction ${latin1(action)}`, schemas);
      }
      for (const [type, descriptor, columns] of puts) {
        const [first, ...rest] = [...flightDataFrom([tableToIPC(tableFromArrays(columns), 'stream')])].map((each) =>
          each.toBuffer(),
        );
        const sent = [protobufMessage(bytesField(1, descriptor), first!), ...rest];
        hear(`DoPut ${type}`, await answers('DoPut', new Sending(sent, metadata)));
      }
    }),
  },
];

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

/** What an info says beside its ticket; a refusal as it is. */
function schemaIn(info: unknown): unknown {
  if (!(info instanceof Uint8Array)) return info;
  const read = new ProtobufMessage(info);
  return [read.bytes(1), read.bytes(2)];
}
