/**
 * Arrow Flight and Flight SQL. Nothing waits on the server between two calls: `GetFlightInfo` seals the query and its instant
 * into a ticket, and `DoGet` asks the gate and the planner with it. Source: Flight.proto, FlightSql.proto.
 */
import { Metadata, type ServerDuplexStream, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { assert, errorTable, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { Cell } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { writeArrowPieces } from '../../planner/formats/arrow-rows.ts';
import { smallAnswer } from '../../planner/execution/small-answer.ts';
import type { Answer, Description, OutputColumn } from '../../planner/planner-contract.ts';
import type { ClientSession } from '../../planner/system-catalogue/client-session.ts';
import type { Terms } from '../shared/session-terms.ts';
import { type RpcCall, type RpcDependencies, secretOf, textOf } from './call.ts';
import { catalogueFields, catalogueQuestion, catalogueStream, infoStream } from './flight-catalogue.ts';
import {
  type CatalogueRequest,
  type FlightCommand,
  flightCommandOf,
  flightDataFrom,
  flightInfo,
  type MessagePieces,
  pack,
  pathDescriptor,
  unpack,
} from './flight-messages.ts';
import { type BoundStatement, parametersOf, putRows } from './flight-put.ts';
import { FlightTickets } from './flight-tickets.ts';
import { RpcHandlers } from './handlers.ts';
import type { SentMessage } from './values.ts';
import { bytesField, ProtobufMessage, protobufMessage, textField } from './protobuf.ts';

export const serviceName = 'arrow.flight.protocol.FlightService';
const doorName = 'flight';

export interface FlightDependencies extends RpcDependencies {
  readonly version: string;
}

/** The content of a ticket: a query to run under the terms, and as of the instant, of the call that returned it. */
interface Ticket {
  readonly asked: Question | CatalogueRequest;
  readonly terms: Terms;
  /** Nanoseconds. */
  readonly basis: string;
}

/** A question, and values of its parameters. */
interface Question extends BoundStatement {
  readonly kind: 'sql';
}

/**
 * Messages are bytes here: bodies of rows would be copied once more by a description of them. Of what a serializer gives the library
 * asks the length, and has it copied behind the head of a message: so it takes pieces as well as one stretch.
 */
const method = (name: string, requestStream: boolean, responseStream: boolean): ServiceDefinition[string] => ({
  path: `/${serviceName}/${name}`,
  requestStream,
  responseStream,
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer | MessagePieces) => bytes as Buffer,
  responseDeserialize: (bytes: Buffer) => bytes,
});

const service: ServiceDefinition = {
  Handshake: method('Handshake', true, true),
  ListFlights: method('ListFlights', false, true),
  GetFlightInfo: method('GetFlightInfo', false, false),
  GetSchema: method('GetSchema', false, false),
  DoGet: method('DoGet', false, true),
  DoPut: method('DoPut', true, true),
  DoAction: method('DoAction', false, true),
  ListActions: method('ListActions', false, true),
};

const actions = {
  CreatePreparedStatement: 'Reads a statement of Flight SQL and gives a handle of it',
  ClosePreparedStatement: 'Lets go of a handle',
} as const;

export function flightService(parts: FlightDependencies): {
  readonly service: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
} {
  const door = new FlightDoor(parts);
  const { unary, serverStreaming, duplex } = new RpcHandlers(parts, doorName);
  const implementation: UntypedServiceImplementation = {
    Handshake: duplex('query', handshake),
    ListFlights: serverStreaming('query', (rpcCall, criteria: Buffer, stream) => door.listFlights(rpcCall, criteria, stream)),
    GetFlightInfo: unary('query', (rpcCall, descriptor: Buffer) => door.flightInfo(rpcCall, descriptor)),
    GetSchema: unary('query', (rpcCall, descriptor: Buffer) => door.schema(rpcCall, descriptor)),
    DoGet: serverStreaming('query', (rpcCall, ticket: Buffer) => door.get(rpcCall, ticket)),
    DoPut: duplex('ingest', (rpcCall, stream: ServerDuplexStream<Buffer, Buffer>) => door.put(rpcCall, stream)),
    DoAction: serverStreaming('query', (rpcCall, action: Buffer, stream) => door.act(rpcCall, action, stream)),
    ListActions: serverStreaming('query', async (_, __, stream) => {
      for (const [type, about] of Object.entries(actions)) stream.write(protobufMessage(textField(1, type), textField(2, about)));
    }),
  };
  return { service, implementation };
}

/** Returns a password as the bearer token of later calls. */
async function handshake(_: RpcCall, stream: ServerDuplexStream<Buffer, Buffer>): Promise<void> {
  const secret = secretOf(textOf(stream.metadata, 'authorization'));
  assert(secret !== null, 'the call was let in by its credential');
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${secret}`);
  stream.sendMetadata(metadata);
  stream.resume();
  stream.write(protobufMessage(bytesField(2, Buffer.from(secret))));
}

/** Bytes of the cells of one message, at most twice as many: clients take four mebibytes, unless they say so. */
const messageBytes = 3 << 18;

class FlightDoor {
  readonly #parts: FlightDependencies;
  readonly #tickets: FlightTickets;

  constructor(parts: FlightDependencies) {
    this.#parts = parts;
    this.#tickets = new FlightTickets(parts);
  }

  async flightInfo(rpcCall: RpcCall, descriptor: Uint8Array): Promise<Buffer> {
    const asked = this.#questionOf(rpcCall, flightCommandOf(descriptor));
    return rpcCall.ask({}, (asking) => this.#info(rpcCall, asking.invocation, asked, descriptor));
  }

  async schema(rpcCall: RpcCall, descriptor: Uint8Array): Promise<Buffer> {
    const asked = this.#questionOf(rpcCall, flightCommandOf(descriptor));
    return rpcCall.ask({}, async ({ invocation }) =>
      protobufMessage(bytesField(1, await this.#schemaOf(rpcCall, invocation, asked))),
    );
  }

  /** Types that the caller may read, and how each is read whole. A criterion is the beginning of their names. */
  async listFlights(rpcCall: RpcCall, criteria: Uint8Array, stream: { write(info: Buffer): boolean }): Promise<void> {
    const prefix = new ProtobufMessage(criteria).text(1) ?? '';
    await rpcCall.ask({}, async ({ invocation }) => {
      const { catalog, offers } = invocation.snapshot();
      const names = catalog.types().flatMap(({ name }) => (name.startsWith(prefix) && offers(name) ? name : []));
      const turn = this.#parts.planner.turns(rpcCall.signal);
      for (const name of names) {
        await turn();
        try {
          stream.write(await this.#info(rpcCall, invocation, wholeType(name), pathDescriptor(name)));
        } catch (error) {
          // Rows that are shown for a reason alone, which this call has not given, are no flight of it.
          if (!(error instanceof ServiceError) || !['forbidden', 'not_found'].includes(errorTable[error.code].kind)) throw error;
        }
      }
      invocation.describe({ template: 'flights', objectType: '', rowCount: names.length });
    });
  }

  async get(rpcCall: RpcCall, flightBytes: Uint8Array): Promise<void> {
    const { asked, terms, basis } = this.#tickets.open<Ticket>(
      'ticket',
      rpcCall.caller,
      new ProtobufMessage(flightBytes).bytes(1) ?? new Uint8Array(0),
    );
    rpcCall.resume(terms);
    if (asked.kind === 'sql') {
      const [answer, dims] = await rpcCall.ask({}, async ({ invocation, keep }) => {
        const answered = await this.#ask(rpcCall, invocation, asked, BigInt(basis));
        keep(answered);
        return [answered, dimsOf(answered.columns, invocation)] as const;
      });
      await rpcCall.sendAll(withSizes(flightDataFrom(piecesOf(answer, dims))), answer);
      return;
    }
    const stream = await rpcCall.ask({}, ({ invocation }) => this.#catalogue(rpcCall, invocation, asked));
    await rpcCall.sendAll(withSizes(flightDataFrom([stream])), { overtaken: () => false });
  }

  async act(rpcCall: RpcCall, flightBytes: Uint8Array, stream: { write(result: Buffer): boolean }): Promise<void> {
    const action = new ProtobufMessage(flightBytes);
    const [type, body] = [action.text(1) ?? '', action.bytes(2) ?? new Uint8Array(0)];
    if (!Object.hasOwn(actions, type))
      throw new ServiceError(
        'REL_NOT_FOUND',
        `there is no action ${JSON.stringify(type.slice(0, 100))}; there are ${Object.keys(actions).join(', ')}`,
      );
    const request = unpack(body, `Action${type}Request`);
    if (request === null) throw new ServiceError('REL_INVALID', `${type} takes an Action${type}Request of Flight SQL`);
    if (type === 'ClosePreparedStatement') {
      // Checks that the handle belongs to this caller; the server stores nothing of it.
      this.#handle(rpcCall, request.bytes(1));
      return;
    }
    const sql = request.text(1) ?? '';
    const described = await rpcCall.ask({}, async ({ invocation }) => {
      const description = await this.#describe(rpcCall, invocation, { kind: 'sql', sql });
      return { schema: schemaOf(description.columns, invocation), parameters: description.parameters };
    });
    const columns = described.parameters.map((type, i) => ({
      name: `$${i + 1}`,
      type: type === 'date' ? ('timestamp' as const) : type,
    }));
    const result = protobufMessage(
      bytesField(1, this.#tickets.seal('handle', rpcCall.caller, { sql } satisfies BoundStatement)),
      bytesField(2, described.schema),
      ...(columns.length === 0
        ? []
        : [
            bytesField(
              3,
              encodedSchema(
                columns,
                columns.map(() => 1),
              ),
            ),
          ]),
    );
    stream.write(protobufMessage(bytesField(1, pack('ActionCreatePreparedStatementResult', result))));
  }

  async put(rpcCall: RpcCall, stream: ServerDuplexStream<Buffer, Buffer>): Promise<void> {
    const command = await putRows(rpcCall, stream);
    if (command === null) return;
    const { sql } = this.#handle(rpcCall, command.handle);
    const handle = this.#tickets.seal('handle', rpcCall.caller, { sql, values: command.values } satisfies BoundStatement);
    stream.write(protobufMessage(bytesField(1, protobufMessage(bytesField(1, handle)))));
  }

  /** Prepared statements become the question that they are. */
  #questionOf(rpcCall: RpcCall, command: FlightCommand): Question | CatalogueRequest {
    if (command.kind === 'type') return wholeType(command.type);
    if (command.kind === 'ingest') throw new ServiceError('REL_INVALID', 'this command takes rows: DoPut');
    return command.kind === 'prepared' ? { kind: 'sql', ...this.#handle(rpcCall, command.handle) } : command;
  }

  #handle(rpcCall: RpcCall, handle: Uint8Array | null): BoundStatement {
    return this.#tickets.open<BoundStatement>('handle', rpcCall.caller, handle ?? new Uint8Array(0));
  }

  async #info(
    rpcCall: RpcCall,
    invocation: Invocation,
    asked: Question | CatalogueRequest,
    descriptor: Uint8Array,
  ): Promise<Buffer> {
    const schema = await this.#schemaOf(rpcCall, invocation, asked);
    const basis = String(invocation.snapshot().instant);
    const ticket = this.#tickets.seal('ticket', rpcCall.caller, { asked, terms: rpcCall.terms, basis } satisfies Ticket);
    return flightInfo(schema, descriptor, ticket);
  }

  async #schemaOf(rpcCall: RpcCall, invocation: Invocation, asked: Question | CatalogueRequest): Promise<Uint8Array> {
    if (asked.kind === 'sql') return schemaOf((await this.#describe(rpcCall, invocation, asked)).columns, invocation);
    invocation.describe({ template: `flight sql ${asked.kind}`, objectType: '', rowCount: 0 });
    return withoutEnd(
      asked.kind === 'sql-info' ? infoStream([-1], this.#parts.version) : catalogueStream(catalogueFields(asked), []),
    );
  }

  #describe(rpcCall: RpcCall, invocation: Invocation, { sql }: Question): Promise<Description> {
    return this.#parts.planner.describe(invocation, { sql, dialect: 'wide', time: rpcCall.time });
  }

  #ask(rpcCall: RpcCall, invocation: Invocation, { sql, values }: Question, basis: bigint | null): Promise<Answer> {
    return this.#parts.planner.query(invocation, {
      sql,
      ...(values && { parameters: parametersOf(values) }),
      dialect: 'wide',
      time: rpcCall.time,
      ...(basis !== null && { basis }),
      session: sessionOf(invocation),
      queriesOnly: true,
      signal: rpcCall.signal,
    });
  }

  async #catalogue(rpcCall: RpcCall, invocation: Invocation, asked: CatalogueRequest): Promise<Uint8Array> {
    const question = catalogueQuestion(asked);
    if (question === null) {
      invocation.describe({ template: `flight sql ${asked.kind}`, objectType: '', rowCount: 0 });
      return infoStream(asked.kind === 'sql-info' ? asked.info : [], this.#parts.version);
    }
    const { sql, parameters } = question;
    const values = parameters.map((value) => ({ type: 'string' as const, value }));
    const answer = await this.#ask(rpcCall, invocation, { kind: 'sql', sql, values }, null);
    const rows: (Cell | Uint8Array)[][] = rowsOf(answer);
    if (asked.kind === 'tables' && asked.withSchemas) {
      const turn = this.#parts.planner.turns(rpcCall.signal);
      for (const row of rows) {
        await turn();
        row.push(await this.#tableSchema(rpcCall, invocation, row[1] as string, row[2] as string));
      }
      invocation.describe({ template: 'flight sql tables', objectType: '', rowCount: rows.length });
    }
    return catalogueStream(catalogueFields(asked), rows);
  }

  async #tableSchema(rpcCall: RpcCall, invocation: Invocation, schema: string, table: string): Promise<Uint8Array> {
    const name = schema === 'public' ? quote(table) : `${schema}.${quote(table)}`;
    const { columns } = await this.#describe(rpcCall, invocation, { kind: 'sql', sql: `SELECT * FROM ${name}` });
    return schemaOf(columns, invocation);
  }
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const wholeType = (name: string): Question => ({ kind: 'sql', sql: `SELECT * FROM ${quote(name)}` });

function rowsOf({ columns, batches }: Answer): Cell[][] {
  return batches.flatMap(({ columns: vectors, selection, first, count }) =>
    Array.from({ length: count }, (_, i) => {
      const row = selection === null ? first + i : selection[i]!;
      return columns.map(({ type }, c) => cellAt(vectors[c]!, type, row));
    }),
  );
}

/** The lines of a plan are sent as rows. */
function piecesOf(answer: Answer, dims: readonly number[]): Generator<Uint8Array, void> {
  const { columns, batches } = answer.plan === null ? answer : planRows(answer, answer.plan);
  const limits = { textBytes: messageBytes, floats: messageBytes / 4, bytes: messageBytes };
  return writeArrowPieces({ columns, batches }, new Map(), { limits, dims });
}

function planRows({ asOfSystem, costUnits, processingTimeMs }: Answer, plan: string): Answer {
  const lines = plan.split('\n').filter((line) => line !== '');
  return smallAnswer(
    [{ name: 'plan', type: 'string' }],
    lines.map((line) => [line]),
    { asOfSystem, costUnits, processingTimeMs },
  );
}

/** By column: the declared length of its vectors; 0: none is declared, or it holds no vectors. */
function dimsOf(columns: readonly OutputColumn[], invocation: Invocation): number[] {
  return columns.map(({ type, origin }) => {
    if (type !== 'vector' || origin === undefined) return 0;
    return invocation.snapshot().catalog.type(origin.type)?.properties[origin.column]?.dims ?? 0;
  });
}

/** Nothing where the length of a vector shows with the rows alone: a wrong schema would be worse than none. */
function schemaOf(columns: readonly OutputColumn[], invocation: Invocation): Uint8Array {
  const dims = dimsOf(columns, invocation);
  if (columns.some(({ type }, i) => type === 'vector' && dims[i] === 0)) return new Uint8Array(0);
  return encodedSchema(columns, dims);
}

const encodedSchema = (columns: readonly OutputColumn[], dims: readonly number[]): Uint8Array =>
  withoutEnd(Buffer.concat([...writeArrowPieces({ columns, batches: [] }, new Map(), { dims })]));

const endBytes = 8;

const withoutEnd = (stream: Uint8Array): Uint8Array => stream.subarray(0, stream.length - endBytes);

/** The session that relations of the catalogue describe. */
function sessionOf({ caller }: Invocation): ClientSession {
  return {
    user: caller.principal,
    database: caller.branch,
    process: 0,
    variables: {
      all: () => [],
      instants: 'int8',
      set: (name) => {
        throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(name.slice(0, 100))}`);
      },
    },
  };
}

function* withSizes(messages: Iterable<MessagePieces>): Generator<SentMessage, void> {
  for (const each of messages) yield { message: each, bytes: each.byteLength };
}
