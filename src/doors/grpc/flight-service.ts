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
interface FlightTicket {
  readonly asked: FlightQuestion | CatalogueRequest;
  readonly terms: Terms;
  /** Nanoseconds. */
  readonly basis: string;
}

/** A question, and values of its parameters. */
interface FlightQuestion extends BoundStatement {
  readonly kind: 'sql';
}

/**
 * Messages are bytes here: bodies of rows would be copied once more by a description of them. Of what a serializer gives the library
 * asks the length, and has it copied behind the head of a message: so it takes pieces as well as one stretch.
 */
const flightMethod = (methodName: string, isRequestStream: boolean, isResponseStream: boolean): ServiceDefinition[string] => ({
  path: `/${serviceName}/${methodName}`,
  requestStream: isRequestStream,
  responseStream: isResponseStream,
  requestSerialize: (requestBytes: Buffer) => requestBytes,
  requestDeserialize: (requestBytes: Buffer) => requestBytes,
  responseSerialize: (responseBytes: Buffer | MessagePieces) => responseBytes as Buffer,
  responseDeserialize: (responseBytes: Buffer) => responseBytes,
});

const flightServiceDefinition: ServiceDefinition = {
  Handshake: flightMethod('Handshake', true, true),
  ListFlights: flightMethod('ListFlights', false, true),
  GetFlightInfo: flightMethod('GetFlightInfo', false, false),
  GetSchema: flightMethod('GetSchema', false, false),
  DoGet: flightMethod('DoGet', false, true),
  DoPut: flightMethod('DoPut', true, true),
  DoAction: flightMethod('DoAction', false, true),
  ListActions: flightMethod('ListActions', false, true),
};

const flightActions = {
  CreatePreparedStatement: 'Reads a statement of Flight SQL and gives a handle of it',
  ClosePreparedStatement: 'Lets go of a handle',
} as const;

export function flightService(flightParts: FlightDependencies): {
  readonly service: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
} {
  const flightDoor = new FlightDoor(flightParts);
  const { unary, serverStreaming, duplex } = new RpcHandlers(flightParts, doorName);
  const flightImplementation: UntypedServiceImplementation = {
    Handshake: duplex('query', handshakeRpc),
    ListFlights: serverStreaming('query', (rpcCall, criteria: Buffer, flightStream) =>
      flightDoor.listFlights(rpcCall, criteria, flightStream),
    ),
    GetFlightInfo: unary('query', (rpcCall, descriptor: Buffer) => flightDoor.flightInfo(rpcCall, descriptor)),
    GetSchema: unary('query', (rpcCall, descriptor: Buffer) => flightDoor.schema(rpcCall, descriptor)),
    DoGet: serverStreaming('query', (rpcCall, ticket: Buffer) => flightDoor.get(rpcCall, ticket)),
    DoPut: duplex('ingest', (rpcCall, flightStream: ServerDuplexStream<Buffer, Buffer>) => flightDoor.put(rpcCall, flightStream)),
    DoAction: serverStreaming('query', (rpcCall, action: Buffer, flightStream) => flightDoor.act(rpcCall, action, flightStream)),
    ListActions: serverStreaming('query', async (_, __, flightStream) => {
      for (const [actionType, aboutAction] of Object.entries(flightActions))
        flightStream.write(protobufMessage(textField(1, actionType), textField(2, aboutAction)));
    }),
  };
  return { service: flightServiceDefinition, implementation: flightImplementation };
}

/** Returns a password as the bearer token of later calls. */
async function handshakeRpc(_: RpcCall, handshakeStream: ServerDuplexStream<Buffer, Buffer>): Promise<void> {
  const callerSecret = secretOf(textOf(handshakeStream.metadata, 'authorization'));
  assert(callerSecret !== null, 'the call was let in by its credential');
  const handshakeMetadata = new Metadata();
  handshakeMetadata.set('authorization', `Bearer ${callerSecret}`);
  handshakeStream.sendMetadata(handshakeMetadata);
  handshakeStream.resume();
  handshakeStream.write(protobufMessage(bytesField(2, Buffer.from(callerSecret))));
}

/** Bytes of the cells of one message, at most twice as many: clients take four mebibytes, unless they say so. */
const flightMessageBytes = 3 << 18;

class FlightDoor {
  readonly #flightParts: FlightDependencies;
  readonly #flightTickets: FlightTickets;

  constructor(flightParts: FlightDependencies) {
    this.#flightParts = flightParts;
    this.#flightTickets = new FlightTickets(flightParts);
  }

  async flightInfo(rpcCall: RpcCall, flightDescriptor: Uint8Array): Promise<Buffer> {
    const flightQuestion = this.#flightQuestionOf(rpcCall, flightCommandOf(flightDescriptor));
    return rpcCall.ask({}, (callAsking) => this.#flightInfoOf(rpcCall, callAsking.invocation, flightQuestion, flightDescriptor));
  }

  async schema(rpcCall: RpcCall, flightDescriptor: Uint8Array): Promise<Buffer> {
    const flightQuestion = this.#flightQuestionOf(rpcCall, flightCommandOf(flightDescriptor));
    return rpcCall.ask({}, async ({ invocation }) =>
      protobufMessage(bytesField(1, await this.#questionSchemaOf(rpcCall, invocation, flightQuestion))),
    );
  }

  /** Types that the caller may read, and how each is read whole. A criterion is the beginning of their names. */
  async listFlights(
    rpcCall: RpcCall,
    flightCriteria: Uint8Array,
    flightsStream: { write(info: Buffer): boolean },
  ): Promise<void> {
    const typePrefix = new ProtobufMessage(flightCriteria).text(1) ?? '';
    await rpcCall.ask({}, async ({ invocation }) => {
      const { catalog, offers } = invocation.snapshot();
      const flightNames = catalog
        .types()
        .flatMap(({ name: flightName }) => (flightName.startsWith(typePrefix) && offers(flightName) ? flightName : []));
      const listTurn = this.#flightParts.planner.turns(rpcCall.signal);
      for (const name of flightNames) {
        await listTurn();
        try {
          flightsStream.write(await this.#flightInfoOf(rpcCall, invocation, wholeTypeQuestion(name), pathDescriptor(name)));
        } catch (flightError) {
          // Rows that are shown for a reason alone, which this call has not given, are no flight of it.
          if (!(flightError instanceof ServiceError) || !['forbidden', 'not_found'].includes(errorTable[flightError.code].kind))
            throw flightError;
        }
      }
      invocation.describe({ template: 'flights', objectType: '', rowCount: flightNames.length });
    });
  }

  async get(rpcCall: RpcCall, flightBytes: Uint8Array): Promise<void> {
    const {
      asked: ticketQuestion,
      terms: ticketTerms,
      basis: ticketBasis,
    } = this.#flightTickets.open<FlightTicket>(
      'ticket',
      rpcCall.caller,
      new ProtobufMessage(flightBytes).bytes(1) ?? new Uint8Array(0),
    );
    rpcCall.resume(ticketTerms);
    if (ticketQuestion.kind === 'sql') {
      const [flightAnswer, vectorDims] = await rpcCall.ask({}, async ({ invocation, keep: keepAnswer }) => {
        const plannedAnswer = await this.#askFlight(rpcCall, invocation, ticketQuestion, BigInt(ticketBasis));
        keepAnswer(plannedAnswer);
        return [plannedAnswer, vectorDimsOf(plannedAnswer.columns, invocation)] as const;
      });
      await rpcCall.sendAll(withMessageSizes(flightDataFrom(arrowPiecesOf(flightAnswer, vectorDims))), flightAnswer);
      return;
    }
    const catalogueBytes = await rpcCall.ask({}, ({ invocation }) =>
      this.#catalogueStreamOf(rpcCall, invocation, ticketQuestion),
    );
    await rpcCall.sendAll(withMessageSizes(flightDataFrom([catalogueBytes])), { overtaken: () => false });
  }

  async act(rpcCall: RpcCall, flightBytes: Uint8Array, resultStream: { write(preparedResult: Buffer): boolean }): Promise<void> {
    const actionMessage = new ProtobufMessage(flightBytes);
    const [actionType, actionBody] = [actionMessage.text(1) ?? '', actionMessage.bytes(2) ?? new Uint8Array(0)];
    if (!Object.hasOwn(flightActions, actionType))
      throw new ServiceError(
        'REL_NOT_FOUND',
        `there is no action ${JSON.stringify(actionType.slice(0, 100))}; there are ${Object.keys(flightActions).join(', ')}`,
      );
    const actionRequest = unpack(actionBody, `Action${actionType}Request`);
    if (actionRequest === null)
      throw new ServiceError('REL_INVALID', `${actionType} takes an Action${actionType}Request of Flight SQL`);
    if (actionType === 'ClosePreparedStatement') {
      // Checks that the handle belongs to this caller; the server stores nothing of it.
      this.#openHandle(rpcCall, actionRequest.bytes(1));
      return;
    }
    const preparedSql = actionRequest.text(1) ?? '';
    const preparedDescription = await rpcCall.ask({}, async ({ invocation }) => {
      const plannedDescription = await this.#describeQuestion(rpcCall, invocation, { kind: 'sql', sql: preparedSql });
      return { schema: flightSchemaOf(plannedDescription.columns, invocation), parameters: plannedDescription.parameters };
    });
    const parameterColumns = preparedDescription.parameters.map((type, i) => ({
      name: `$${i + 1}`,
      type: type === 'date' ? ('timestamp' as const) : type,
    }));
    const preparedResult = protobufMessage(
      bytesField(1, this.#flightTickets.seal('handle', rpcCall.caller, { sql: preparedSql } satisfies BoundStatement)),
      bytesField(2, preparedDescription.schema),
      ...(parameterColumns.length === 0
        ? []
        : [
            bytesField(
              3,
              encodedArrowSchema(
                parameterColumns,
                parameterColumns.map(() => 1),
              ),
            ),
          ]),
    );
    resultStream.write(protobufMessage(bytesField(1, pack('ActionCreatePreparedStatementResult', preparedResult))));
  }

  async put(rpcCall: RpcCall, putStream: ServerDuplexStream<Buffer, Buffer>): Promise<void> {
    const preparedPut = await putRows(rpcCall, putStream);
    if (preparedPut === null) return;
    const { sql: preparedSql } = this.#openHandle(rpcCall, preparedPut.handle);
    const boundHandle = this.#flightTickets.seal('handle', rpcCall.caller, {
      sql: preparedSql,
      values: preparedPut.values,
    } satisfies BoundStatement);
    putStream.write(protobufMessage(bytesField(1, protobufMessage(bytesField(1, boundHandle)))));
  }

  /** Prepared statements become the question that they are. */
  #flightQuestionOf(rpcCall: RpcCall, flightCommand: FlightCommand): FlightQuestion | CatalogueRequest {
    if (flightCommand.kind === 'type') return wholeTypeQuestion(flightCommand.type);
    if (flightCommand.kind === 'ingest') throw new ServiceError('REL_INVALID', 'this command takes rows: DoPut');
    return flightCommand.kind === 'prepared'
      ? { kind: 'sql', ...this.#openHandle(rpcCall, flightCommand.handle) }
      : flightCommand;
  }

  #openHandle(rpcCall: RpcCall, preparedHandle: Uint8Array | null): BoundStatement {
    return this.#flightTickets.open<BoundStatement>('handle', rpcCall.caller, preparedHandle ?? new Uint8Array(0));
  }

  async #flightInfoOf(
    rpcCall: RpcCall,
    invocation: Invocation,
    flightQuestion: FlightQuestion | CatalogueRequest,
    flightDescriptor: Uint8Array,
  ): Promise<Buffer> {
    const flightSchema = await this.#questionSchemaOf(rpcCall, invocation, flightQuestion);
    const flightBasis = String(invocation.snapshot().instant);
    const flightTicket = this.#flightTickets.seal('ticket', rpcCall.caller, {
      asked: flightQuestion,
      terms: rpcCall.terms,
      basis: flightBasis,
    } satisfies FlightTicket);
    return flightInfo(flightSchema, flightDescriptor, flightTicket);
  }

  async #questionSchemaOf(
    rpcCall: RpcCall,
    invocation: Invocation,
    flightQuestion: FlightQuestion | CatalogueRequest,
  ): Promise<Uint8Array> {
    if (flightQuestion.kind === 'sql')
      return flightSchemaOf((await this.#describeQuestion(rpcCall, invocation, flightQuestion)).columns, invocation);
    invocation.describe({ template: `flight sql ${flightQuestion.kind}`, objectType: '', rowCount: 0 });
    return withoutStreamEnd(
      flightQuestion.kind === 'sql-info'
        ? infoStream([-1], this.#flightParts.version)
        : catalogueStream(catalogueFields(flightQuestion), []),
    );
  }

  #describeQuestion(rpcCall: RpcCall, invocation: Invocation, { sql: flightSql }: FlightQuestion): Promise<Description> {
    return this.#flightParts.planner.describe(invocation, { sql: flightSql, dialect: 'wide', time: rpcCall.time });
  }

  #askFlight(
    rpcCall: RpcCall,
    invocation: Invocation,
    { sql: flightSql, values: boundValues }: FlightQuestion,
    flightBasis: bigint | null,
  ): Promise<Answer> {
    return this.#flightParts.planner.query(invocation, {
      sql: flightSql,
      ...(boundValues && { parameters: parametersOf(boundValues) }),
      dialect: 'wide',
      time: rpcCall.time,
      ...(flightBasis !== null && { basis: flightBasis }),
      session: flightSessionOf(invocation),
      queriesOnly: true,
      signal: rpcCall.signal,
    });
  }

  async #catalogueStreamOf(rpcCall: RpcCall, invocation: Invocation, flightCatalogue: CatalogueRequest): Promise<Uint8Array> {
    const catalogueSql = catalogueQuestion(flightCatalogue);
    if (catalogueSql === null) {
      invocation.describe({ template: `flight sql ${flightCatalogue.kind}`, objectType: '', rowCount: 0 });
      return infoStream(flightCatalogue.kind === 'sql-info' ? flightCatalogue.info : [], this.#flightParts.version);
    }
    const { sql, parameters: catalogueParameters } = catalogueSql;
    const catalogueValues = catalogueParameters.map((value) => ({ type: 'string' as const, value }));
    const catalogueAnswer = await this.#askFlight(rpcCall, invocation, { kind: 'sql', sql, values: catalogueValues }, null);
    const catalogueRows: (Cell | Uint8Array)[][] = answerRowsOf(catalogueAnswer);
    if (flightCatalogue.kind === 'tables' && flightCatalogue.withSchemas) {
      const catalogueTurn = this.#flightParts.planner.turns(rpcCall.signal);
      for (const catalogueRow of catalogueRows) {
        await catalogueTurn();
        catalogueRow.push(await this.#tableSchemaOf(rpcCall, invocation, catalogueRow[1] as string, catalogueRow[2] as string));
      }
      invocation.describe({ template: 'flight sql tables', objectType: '', rowCount: catalogueRows.length });
    }
    return catalogueStream(catalogueFields(flightCatalogue), catalogueRows);
  }

  async #tableSchemaOf(rpcCall: RpcCall, invocation: Invocation, schemaName: string, tableName: string): Promise<Uint8Array> {
    const qualifiedTable = schemaName === 'public' ? quoteTypeName(tableName) : `${schemaName}.${quoteTypeName(tableName)}`;
    const { columns } = await this.#describeQuestion(rpcCall, invocation, {
      kind: 'sql',
      sql: `SELECT * FROM ${qualifiedTable}`,
    });
    return flightSchemaOf(columns, invocation);
  }
}

const quoteTypeName = (typeName: string): string => `"${typeName.replaceAll('"', '""')}"`;

const wholeTypeQuestion = (typeName: string): FlightQuestion => ({
  kind: 'sql',
  sql: `SELECT * FROM ${quoteTypeName(typeName)}`,
});

function answerRowsOf({ columns: answerColumns, batches: answerBatches }: Answer): Cell[][] {
  return answerBatches.flatMap(({ columns: answerVectors, selection, first, count: batchRowCount }) =>
    Array.from({ length: batchRowCount }, (_, i) => {
      const answerRow = selection === null ? first + i : selection[i]!;
      return answerColumns.map(({ type: columnType }, c) => cellAt(answerVectors[c]!, columnType, answerRow));
    }),
  );
}

/** The lines of a plan are sent as rows. */
function arrowPiecesOf(flightAnswer: Answer, vectorDims: readonly number[]): Generator<Uint8Array, void> {
  const { columns, batches } = flightAnswer.plan === null ? flightAnswer : planAsRows(flightAnswer, flightAnswer.plan);
  const messageLimits = { textBytes: flightMessageBytes, floats: flightMessageBytes / 4, bytes: flightMessageBytes };
  return writeArrowPieces({ columns, batches }, new Map(), { limits: messageLimits, dims: vectorDims });
}

function planAsRows({ asOfSystem, costUnits, processingTimeMs }: Answer, planText: string): Answer {
  const planLines = planText.split('\n').filter((planLine) => planLine !== '');
  return smallAnswer(
    [{ name: 'plan', type: 'string' }],
    planLines.map((planLine) => [planLine]),
    { asOfSystem, costUnits, processingTimeMs },
  );
}

/** By column: the declared length of its vectors; 0: none is declared, or it holds no vectors. */
function vectorDimsOf(flightColumns: readonly OutputColumn[], invocation: Invocation): number[] {
  return flightColumns.map(({ type: columnType, origin: columnOrigin }) => {
    if (columnType !== 'vector' || columnOrigin === undefined) return 0;
    return invocation.snapshot().catalog.type(columnOrigin.type)?.properties[columnOrigin.column]?.dims ?? 0;
  });
}

/** Nothing where the length of a vector shows with the rows alone: a wrong schema would be worse than none. */
function flightSchemaOf(flightColumns: readonly OutputColumn[], invocation: Invocation): Uint8Array {
  const vectorDims = vectorDimsOf(flightColumns, invocation);
  if (flightColumns.some(({ type: columnType }, i) => columnType === 'vector' && vectorDims[i] === 0)) return new Uint8Array(0);
  return encodedArrowSchema(flightColumns, vectorDims);
}

const encodedArrowSchema = (flightColumns: readonly OutputColumn[], vectorDims: readonly number[]): Uint8Array =>
  withoutStreamEnd(
    Buffer.concat([...writeArrowPieces({ columns: flightColumns, batches: [] }, new Map(), { dims: vectorDims })]),
  );

const streamEndBytes = 8;

const withoutStreamEnd = (arrowStream: Uint8Array): Uint8Array => arrowStream.subarray(0, arrowStream.length - streamEndBytes);

/** The session that relations of the catalogue describe. */
function flightSessionOf({ caller }: Invocation): ClientSession {
  return {
    user: caller.principal,
    database: caller.branch,
    process: 0,
    variables: {
      all: () => [],
      instants: 'int8',
      set: (settingName) => {
        throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(settingName.slice(0, 100))}`);
      },
    },
  };
}

function* withMessageSizes(flightMessages: Iterable<MessagePieces>): Generator<SentMessage, void> {
  for (const flightMessage of flightMessages) yield { message: flightMessage, bytes: flightMessage.byteLength };
}
