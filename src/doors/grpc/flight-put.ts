/**
 * Rows that are put by a stream of `FlightData`. Invariants: an unregistered type is registered with the columns of the schema,
 * if the caller has the right to do so, before a row of it is written; the first row that is refused ends the call with an error,
 * since clients look at nothing else.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { assert, ServiceError } from '../../errors.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { arrowColumns, readArrowMessages } from '../../planner/formats/arrow-reader.ts';
import type { IngestBatch } from '../../planner/formats/ingest-batch.ts';
import type { Parameters } from '../../planner/planner-contract.ts';
import { TypedValue } from '../../planner/syntax/statement.ts';
import { leasedPieces } from '../shared/stream-lease.ts';
import { batchSizes, Ingest, type IngestReply, rowRefusal, untilRefused } from '../ingest/ingest-stream.ts';
import { registrations } from '../schemas/type-body.ts';
import { receiveMessages } from './client-stream.ts';
import type { RpcCall } from './call.ts';
import { flightCommandOf, type FlightData, flightDataOf } from './flight-messages.ts';
import { bytesField, varintField } from './protobuf.ts';

/** A statement that was prepared, and values of its parameters. */
export interface BoundStatement {
  readonly sql: string;
  readonly values?: readonly BoundValue[];
}

/** A value as JSON has it: 64-bit integers and instants are texts. */
export interface BoundValue {
  readonly type: ColumnType;
  readonly value: string | number | boolean | null;
}

interface ArrowMessage {
  readonly header: Uint8Array;
  readonly body: Uint8Array;
}

/** Writes the rows and answers; or, where they are values for a prepared statement, gives those. */
export async function putRows(
  rpcCall: RpcCall,
  stream: ServerDuplexStream<Buffer, Buffer>,
): Promise<{ readonly handle: Uint8Array; readonly values: readonly BoundValue[] } | null> {
  // A stream that was read to its end must stay open for the reply.
  const sent = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  const incoming = receiveMessages(rpcCall.parts, sent, ({ length }) => length);
  const step = await incoming.next();
  const first = step.done === true ? null : flightDataOf(step.value);
  if (first === null || first.descriptor === null || first.header === null)
    throw new ServiceError('REL_INVALID', 'the first message has a descriptor, and the schema of the rows');
  const command = flightCommandOf(first.descriptor);
  const source = messagesOf(first, incoming);
  if (command.kind === 'prepared') return { handle: command.handle, values: await readValues(source, rpcCall.parts.yieldTurn) };
  if (command.kind !== 'type' && command.kind !== 'ingest')
    throw new ServiceError('REL_INVALID', 'rows are put into a type: the path of the descriptor is its name');
  const reply = await write(rpcCall, command, first.header, source);
  stream.write(bytesField(1, command.kind === 'ingest' ? varintField(1, reply.accepted) : Buffer.from(replyText(reply))));
  return null;
}

/** JSON for the application; instants are texts. */
function replyText({ system_from: from, system_from_last: last, ...reply }: IngestReply): string {
  return JSON.stringify({ ...reply, system_from: String(from ?? 0n), system_from_last: String(last ?? 0n) });
}

async function* messagesOf(first: FlightData, incoming: AsyncIterator<Buffer>): AsyncGenerator<ArrowMessage, void> {
  let data = first;
  for (;;) {
    // Metadata of an application may come alone.
    if (data.header !== null) yield { header: data.header, body: data.body };
    const step = await incoming.next();
    if (step.done === true) return;
    data = flightDataOf(step.value);
  }
}

async function write(
  rpcCall: RpcCall,
  { type, ifAbsent, ifPresent }: { readonly type: string; readonly ifAbsent?: 'fail'; readonly ifPresent?: 'fail' },
  schema: Uint8Array,
  source: AsyncIterable<ArrowMessage>,
): Promise<IngestReply> {
  const { parts, caller, sync } = rpcCall;
  return rpcCall.ask({ writes: true, action: 'ingest' }, async ({ invocation }) => {
    invocation.describe({ objectType: type, rowCount: 0 });
    const provenance = { source: 'flight', method: 'put', confidence: 1, derivedFrom: null };
    const createType = ifAbsent === undefined;
    const ingest = new Ingest(invocation, { type, atomic: false, sync, createType, waits: true, provenance });
    const definition = ingest.definition();
    if (definition !== null && ifPresent === 'fail')
      throw new ServiceError('REL_CONFLICT', `the type ${JSON.stringify(type)} is there already`);
    if (definition === null) await register(rpcCall, type, schema);
    const options = { definition, ...batchSizes.stream, yieldTurn: parts.yieldTurn };
    const batches = readArrowMessages(leasedPieces(parts, caller, source), options);
    const reply = await ingest.run(untilRefused(batches, (row) => rowRefusal(row, ingest.accepted)));
    const [refused] = reply.errors;
    if (refused !== undefined) throw rowRefusal(refused, reply.accepted);
    return reply;
  });
}

/** Columns of a row that are no properties. */
const notProperties: ReadonlySet<string> = new Set(['_pk', 'valid_from', 'valid_to', '_provenance']);

async function register(rpcCall: RpcCall, name: string, schema: Uint8Array): Promise<void> {
  const properties: Record<string, { type: ColumnType; dims?: number }> = {};
  for (const { name: column, type, dims } of arrowColumns(schema)) {
    if (notProperties.has(column)) continue;
    if (type === 'vector' && dims === 0)
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(column)}: lists of a fixed size make a column of vectors`,
      );
    properties[column] = type === 'vector' ? { type, dims } : { type };
  }
  await rpcCall.ask({ writes: true, action: 'schema', continues: true }, async ({ invocation }) => {
    invocation.describe({ objectType: name });
    const [step] = registrations({ name, properties });
    assert(step, 'a type that is not open is registered at once');
    await invocation.submit(step, { sync: rpcCall.sync });
  });
}

async function readValues(source: AsyncIterable<ArrowMessage>, yieldTurn: () => Promise<void>): Promise<readonly BoundValue[]> {
  const options = { definition: null, batchRows: 2, batchBytes: Infinity, tracksSent: true, yieldTurn };
  const batches: IngestBatch[] = [];
  for await (const batch of readArrowMessages(source, options, true)) {
    batches.push(batch);
    if (batch.rejections.length > 0) throw rowRefusal(batch.rejections[0]!, 0);
    if (batches.length > 1 || batch.rows.length > 1)
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'values are bound one row at a time');
  }
  const [only] = batches;
  if (only === undefined) return [];
  const columns = new Map(only.rows.columns.map((column) => [column.name, column]));
  return [...only.sent!.keys()].map((name) => {
    const column = columns.get(name);
    const cell = column === undefined ? null : cellAt(column.vector, column.type, 0);
    const type = column?.type ?? 'string';
    if (cell instanceof Float32Array) return { type, value: JSON.stringify([...cell]) };
    return { type, value: typeof cell === 'bigint' ? String(cell) : cell };
  });
}

/** Values for `$1`, `$2` … in their order. */
export function parametersOf(values: readonly BoundValue[]): Parameters {
  return values.map(({ type, value }) => {
    if (value === null || type === 'string' || type === 'number' || type === 'boolean') return value;
    if (type === 'integer') return BigInt(value);
    return new TypedValue(type, type === 'timestamp' ? BigInt(value) : value);
  });
}
