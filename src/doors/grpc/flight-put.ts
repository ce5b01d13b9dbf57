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
import { batchSizes, Ingest, type IngestReply, rowRefusal, untilRefused } from '../shared/ingest-stream.ts';
import { registrations } from '../shared/type-body.ts';
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

interface PutArrowMessage {
  readonly header: Uint8Array;
  readonly body: Uint8Array;
}

/** Writes the rows and answers; or, where they are values for a prepared statement, gives those. */
export async function putRows(
  rpcCall: RpcCall,
  putStream: ServerDuplexStream<Buffer, Buffer>,
): Promise<{ readonly handle: Uint8Array; readonly values: readonly BoundValue[] } | null> {
  // A stream that was read to its end must stay open for the reply.
  const sentBuffers = putStream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  const incomingBuffers = receiveMessages(rpcCall.parts, sentBuffers, ({ length }) => length);
  const firstStep = await incomingBuffers.next();
  const firstFlightData = firstStep.done === true ? null : flightDataOf(firstStep.value);
  if (firstFlightData === null || firstFlightData.descriptor === null || firstFlightData.header === null)
    throw new ServiceError('REL_INVALID', 'the first message has a descriptor, and the schema of the rows');
  const putCommand = flightCommandOf(firstFlightData.descriptor);
  const arrowMessages = arrowMessagesOf(firstFlightData, incomingBuffers);
  if (putCommand.kind === 'prepared')
    return { handle: putCommand.handle, values: await readBoundValues(arrowMessages, rpcCall.parts.yieldTurn) };
  if (putCommand.kind !== 'type' && putCommand.kind !== 'ingest')
    throw new ServiceError('REL_INVALID', 'rows are put into a type: the path of the descriptor is its name');
  const putReply = await writePutRows(rpcCall, putCommand, firstFlightData.header, arrowMessages);
  putStream.write(
    bytesField(1, putCommand.kind === 'ingest' ? varintField(1, putReply.accepted) : Buffer.from(putReplyText(putReply))),
  );
  return null;
}

/** JSON for the application; instants are texts. */
function putReplyText({ system_from: firstSystemFrom, system_from_last: lastSystemFrom, ...replyFields }: IngestReply): string {
  return JSON.stringify({
    ...replyFields,
    system_from: String(firstSystemFrom ?? 0n),
    system_from_last: String(lastSystemFrom ?? 0n),
  });
}

async function* arrowMessagesOf(
  firstFlightData: FlightData,
  incomingBuffers: AsyncIterator<Buffer>,
): AsyncGenerator<PutArrowMessage, void> {
  let flightData = firstFlightData;
  for (;;) {
    // Metadata of an application may come alone.
    if (flightData.header !== null) yield { header: flightData.header, body: flightData.body };
    const bufferStep = await incomingBuffers.next();
    if (bufferStep.done === true) return;
    flightData = flightDataOf(bufferStep.value);
  }
}

async function writePutRows(
  rpcCall: RpcCall,
  { type: putType, ifAbsent, ifPresent }: { readonly type: string; readonly ifAbsent?: 'fail'; readonly ifPresent?: 'fail' },
  arrowSchema: Uint8Array,
  arrowMessages: AsyncIterable<PutArrowMessage>,
): Promise<IngestReply> {
  const { parts: rpcParts, caller, sync } = rpcCall;
  return rpcCall.ask({ writes: true, action: 'ingest' }, async ({ invocation }) => {
    invocation.describe({ objectType: putType, rowCount: 0 });
    const provenance = { source: 'flight', method: 'put', confidence: 1, derivedFrom: null };
    const createType = ifAbsent === undefined;
    const putIngest = new Ingest(invocation, { type: putType, atomic: false, sync, createType, waits: true, provenance });
    const typeDefinition = putIngest.definition();
    if (typeDefinition !== null && ifPresent === 'fail')
      throw new ServiceError('REL_CONFLICT', `the type ${JSON.stringify(putType)} is there already`);
    if (typeDefinition === null) await registerPutType(rpcCall, putType, arrowSchema);
    const putOptions = { definition: typeDefinition, ...batchSizes.stream, yieldTurn: rpcParts.yieldTurn };
    const putBatches = readArrowMessages(leasedPieces(rpcParts, caller, arrowMessages), putOptions);
    const putReply = await putIngest.run(untilRefused(putBatches, (rejectedRow) => rowRefusal(rejectedRow, putIngest.accepted)));
    const [firstRejection] = putReply.errors;
    if (firstRejection !== undefined) throw rowRefusal(firstRejection, putReply.accepted);
    return putReply;
  });
}

/** Columns of a row that are no properties. */
const systemPutColumns: ReadonlySet<string> = new Set(['_pk', 'valid_from', 'valid_to', '_provenance']);

async function registerPutType(rpcCall: RpcCall, putTypeName: string, arrowSchema: Uint8Array): Promise<void> {
  const putProperties: Record<string, { type: ColumnType; dims?: number }> = {};
  for (const { name: arrowColumn, type: arrowColumnType, dims: vectorDims } of arrowColumns(arrowSchema)) {
    if (systemPutColumns.has(arrowColumn)) continue;
    if (arrowColumnType === 'vector' && vectorDims === 0)
      throw new ServiceError(
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(arrowColumn)}: lists of a fixed size make a column of vectors`,
      );
    putProperties[arrowColumn] =
      arrowColumnType === 'vector' ? { type: arrowColumnType, dims: vectorDims } : { type: arrowColumnType };
  }
  await rpcCall.ask({ writes: true, action: 'schema', continues: true }, async ({ invocation }) => {
    invocation.describe({ objectType: putTypeName });
    const [registration] = registrations({ name: putTypeName, properties: putProperties });
    assert(registration, 'a type that is not open is registered at once');
    await invocation.submit(registration, { sync: rpcCall.sync });
  });
}

async function readBoundValues(
  arrowMessages: AsyncIterable<PutArrowMessage>,
  yieldTurn: () => Promise<void>,
): Promise<readonly BoundValue[]> {
  const boundOptions = { definition: null, batchRows: 2, batchBytes: Infinity, tracksSent: true, yieldTurn };
  const boundBatches: IngestBatch[] = [];
  for await (const boundBatch of readArrowMessages(arrowMessages, boundOptions, true)) {
    boundBatches.push(boundBatch);
    if (boundBatch.rejections.length > 0) throw rowRefusal(boundBatch.rejections[0]!, 0);
    if (boundBatches.length > 1 || boundBatch.rows.length > 1)
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'values are bound one row at a time');
  }
  const [soleBatch] = boundBatches;
  if (soleBatch === undefined) return [];
  const boundColumns = new Map(soleBatch.rows.columns.map((boundColumn) => [boundColumn.name, boundColumn]));
  return [...soleBatch.sent!.keys()].map((boundName) => {
    const boundColumn = boundColumns.get(boundName);
    const boundCell = boundColumn === undefined ? null : cellAt(boundColumn.vector, boundColumn.type, 0);
    const boundType = boundColumn?.type ?? 'string';
    if (boundCell instanceof Float32Array) return { type: boundType, value: JSON.stringify([...boundCell]) };
    return { type: boundType, value: typeof boundCell === 'bigint' ? String(boundCell) : boundCell };
  });
}

/** Values for `$1`, `$2` … in their order. */
export function parametersOf(boundValues: readonly BoundValue[]): Parameters {
  return boundValues.map(({ type: boundType, value: boundValue }) => {
    if (boundValue === null || boundType === 'string' || boundType === 'number' || boundType === 'boolean') return boundValue;
    if (boundType === 'integer') return BigInt(boundValue);
    return new TypedValue(boundType, boundType === 'timestamp' ? BigInt(boundValue) : boundValue);
  });
}
