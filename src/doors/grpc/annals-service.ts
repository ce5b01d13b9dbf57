/** The methods of `annals.proto`. */
import type { ServerReadableStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import { assert, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import { readIngest } from '../../planner/formats/ingest-reader.ts';
import { outputForms } from '../../planner/formats/output-format.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { batchRowsMax, type DeleteRows, type Outcome, type PutRows } from '../../projections/command.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { check } from '../shared/schema-check.ts';
import { leasedPieces } from '../shared/stream-lease.ts';
import { batchSizes, Ingest } from '../shared/ingest-stream.ts';
import { receiveMessages } from './client-stream.ts';
import { registrations, describeType, typeBody } from '../shared/type-body.ts';
import type { RpcCall, RpcDependencies } from './call.ts';
import { RpcHandlers } from './handlers.ts';
import { parametersOf, rowMessages, type SentMessage, type ValueMessage } from './values.ts';
import { followSubscription, type WatchDependencies } from './watch.ts';

export const doorName = 'grpc';

export type AnnalsDependencies = RpcDependencies & WatchDependencies & { readonly bodyLimitBytes: number };

interface RpcQueryRequest {
  readonly sql: string;
  readonly named: Readonly<Record<string, ValueMessage>>;
  readonly positional: readonly ValueMessage[];
  readonly format: 'ROWS' | 'ARROW';
}

interface RpcLookupRequest {
  readonly type: string;
  readonly keys: readonly string[];
  readonly columns: readonly string[];
  readonly format: 'ROWS' | 'ARROW';
}

interface IngestHead {
  readonly type: string;
  readonly atomic: boolean;
  readonly create_type: boolean;
  readonly patch: boolean;
  readonly source: string;
  readonly method: string;
}

interface IngestMessage {
  readonly head?: IngestHead;
  readonly rows?: Buffer;
}

interface WriteStep {
  readonly put?: { readonly type: string; readonly rows: Buffer; readonly create_type: boolean };
  readonly delete?: { readonly type: string; readonly keys: readonly string[] };
}

export function annalsService(rpcParts: AnnalsDependencies): UntypedServiceImplementation {
  const { unary, clientStreaming, serverStreaming } = new RpcHandlers(rpcParts, doorName);
  return {
    Query: serverStreaming('query', (rpcCall, rpcRequest: RpcQueryRequest) => queryRpc(rpcCall, rpcRequest)),
    Lookup: serverStreaming('query', (rpcCall, rpcRequest: RpcLookupRequest) => lookUpRpc(rpcCall, rpcRequest)),
    Ingest: clientStreaming('ingest', ingestRpc),
    Write: unary('ingest', (rpcCall, { steps: writeSteps }: { readonly steps: readonly WriteStep[] }) =>
      writeRpc(rpcCall, writeSteps),
    ),
    Delete: unary('delete', (rpcCall, rpcRequest: { readonly type: string; readonly keys: readonly string[] }) =>
      writeRpc(rpcCall, [{ delete: rpcRequest }]),
    ),
    Watch: serverStreaming('watch', (rpcCall, rpcRequest: { readonly sql: string; readonly resume_after: string }, rpcStream) =>
      followSubscription(rpcParts, rpcCall, rpcRequest, rpcStream),
    ),
    ListTypes: unary('inspect', listTypesRpc),
    RegisterType: unary('schema', registerTypeRpc),
    ListBranches: unary('inspect', listBranchesRpc),
    Fork: unary('fork', forkRpc),
  };
}

async function queryRpc(
  rpcCall: RpcCall,
  { sql: querySql, named: namedValues, positional: positionalValues, format: answerFormat }: RpcQueryRequest,
): Promise<void> {
  const queryParameters = parametersOf(namedValues, positionalValues);
  const rpcQuestion = {
    sql: querySql,
    ...(queryParameters && { parameters: queryParameters }),
    dialect: 'wide' as const,
    time: rpcCall.time,
    queriesOnly: true,
    signal: rpcCall.signal,
  };
  const queryAnswer = await rpcCall.ask({}, async ({ invocation, keep: keepAnswer }) => {
    const plannedAnswer = await rpcCall.parts.planner.query(invocation, rpcQuestion);
    keepAnswer(plannedAnswer);
    return plannedAnswer;
  });
  await sendAnswer(rpcCall, queryAnswer, answerFormat);
}

async function lookUpRpc(
  rpcCall: RpcCall,
  { type: lookUpType, keys: lookUpKeys, columns: lookUpColumns, format: answerFormat }: RpcLookupRequest,
): Promise<void> {
  const lookUpWanted = {
    type: lookUpType,
    keys: [...new Set(lookUpKeys)],
    columns: lookUpColumns.length === 0 ? null : lookUpColumns,
    time: rpcCall.time,
  };
  const lookUpAnswer = await rpcCall.ask({ keysRead: lookUpWanted.keys.length }, async ({ invocation, keep: keepAnswer }) => {
    const plannedAnswer = await rpcCall.parts.planner.lookUpMany(invocation, lookUpWanted, rpcCall.signal);
    keepAnswer(plannedAnswer);
    return plannedAnswer;
  });
  await sendAnswer(rpcCall, lookUpAnswer, answerFormat);
}

async function sendAnswer(rpcCall: RpcCall, rpcAnswer: Answer, answerFormat: 'ROWS' | 'ARROW'): Promise<void> {
  const arrowPieces = answerFormat === 'ARROW' ? (await outputForms.arrow.writer())(rpcAnswer, new Map()) : null;
  await rpcCall.sendAll(answerMessages(rpcAnswer, arrowPieces), rpcAnswer);
}

function* answerMessages(rpcAnswer: Answer, arrowPieces: Iterable<Uint8Array> | null): Generator<SentMessage, void> {
  const { columns: answerColumns, asOfSystem } = rpcAnswer;
  const headerMessage = {
    columns: answerColumns.map(({ name: columnName, type: columnType }) => ({ name: columnName, type: columnType })),
    as_of_system: String(asOfSystem),
  };
  yield { message: { header: headerMessage }, bytes: 0 };
  if (arrowPieces === null) yield* rowMessages(rpcAnswer);
  else
    for (const arrowPiece of arrowPieces)
      if (arrowPiece.length > 0) yield { message: { arrow: arrowPiece }, bytes: arrowPiece.length };
  const totalsMessage = {
    row_count: rpcAnswer.rowCount,
    estimated_total_hits: rpcAnswer.estimatedTotalHits,
    cost_units: rpcAnswer.costUnits,
    cursor: rpcAnswer.cursor ?? '',
    next_cursor: rpcAnswer.nextCursor ?? '',
    is_approximate: rpcAnswer.isApproximate === true,
    notices: rpcAnswer.notices ?? [],
    plan: rpcAnswer.plan ?? '',
  };
  yield { message: { totals: totalsMessage }, bytes: 0 };
}

async function ingestRpc(rpcCall: RpcCall, ingestStream: ServerReadableStream<IngestMessage, object>): Promise<object> {
  const sentMessages = ingestStream[Symbol.asyncIterator]() as AsyncIterator<IngestMessage>;
  const ingestMessages = receiveMessages(rpcCall.parts, sentMessages, ({ rows: rpcIngest }) => rpcIngest?.length ?? 0);
  const firstMessage = await ingestMessages.next();
  const ingestHead = firstMessage.done === true ? undefined : firstMessage.value.head;
  if (ingestHead === undefined) throw new ServiceError('REL_INVALID', 'the first message must be an IngestHead');
  const { type: ingestType, atomic, create_type: createType, patch, source, method } = ingestHead;
  const { sync } = rpcCall;
  const ingestReply = await rpcCall.ask({ writes: true, action: 'ingest' }, async ({ invocation }) => {
    invocation.describe({ objectType: ingestType });
    const provenance = { source: source || doorName, method: method || 'ingest', confidence: 1, derivedFrom: null };
    const rpcIngest = new Ingest(invocation, {
      type: ingestType,
      atomic,
      sync,
      createType,
      waits: true,
      provenance,
      ...(patch && { patch }),
    });
    const typeDefinition = rpcIngest.definition();
    const { bodyLimitBytes } = rpcCall.parts as AnnalsDependencies;
    const ingestSizes = atomic ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: bodyLimitBytes } : batchSizes.stream;
    const { yieldTurn } = rpcCall.parts;
    const ingestOptions = { definition: typeDefinition, yieldTurn, ...ingestSizes, ...(patch && { tracksSent: true }) };
    return rpcIngest.run(readIngest(leasedPieces(rpcCall.parts, rpcCall.caller, ingestBytesOf(ingestMessages)), ingestOptions));
  });
  const { system_from: firstSystemFrom, system_from_last: lastSystemFrom } = ingestReply;
  return { ...ingestReply, system_from: String(firstSystemFrom ?? 0n), system_from_last: String(lastSystemFrom ?? 0n) };
}

async function* ingestBytesOf(ingestMessages: AsyncIterator<IngestMessage>): AsyncGenerator<Uint8Array, void> {
  for (let messageStep = await ingestMessages.next(); messageStep.done !== true; messageStep = await ingestMessages.next()) {
    const { rows: rowsBytes } = messageStep.value;
    if (rowsBytes === undefined) throw new ServiceError('REL_INVALID', 'IngestHead comes once, as the first message');
    yield rowsBytes;
  }
}

async function writeRpc(rpcCall: RpcCall, writeSteps: readonly WriteStep[]): Promise<object> {
  if (writeSteps.length === 0) throw new ServiceError('REL_INVALID', 'the write has no steps');
  const isOnlyDeletes = writeSteps.every((writeStep) => writeStep.delete !== undefined);
  const { sync } = rpcCall;
  const writeOutcome = await rpcCall.ask(
    { writes: true, action: isOnlyDeletes ? 'delete' : 'ingest' },
    async ({ invocation }) => {
      const rowCommands: (PutRows | DeleteRows)[] = [];
      for (const writeStep of writeSteps) rowCommands.push(await stepCommandOf(rpcCall.parts, invocation, writeStep));
      const writeCommand = rowCommands.length === 1 ? rowCommands[0]! : ({ kind: 'batch', steps: rowCommands } as const);
      const writtenOutcome = await invocation.submit(writeCommand, { sync });
      const [rowRefusal] = writtenOutcome.errors;
      if (rowRefusal !== undefined)
        throw new ServiceError(rowRefusal.code as ServiceError['code'], `row ${rowRefusal.index}: ${rowRefusal.detail}`);
      invocation.describe({ rowCount: writtenOutcome.accepted });
      return writtenOutcome;
    },
  );
  return writeRpcReply(writeOutcome);
}

function writeRpcReply({ accepted, systemFrom, systemFromLast, ids, durability }: Outcome): object {
  return { accepted, system_from: String(systemFrom), system_from_last: String(systemFromLast), ids, durability };
}

async function stepCommandOf(
  { yieldTurn }: RpcDependencies,
  invocation: Invocation,
  { put: putStep, delete: deleteStep }: WriteStep,
): Promise<PutRows | DeleteRows> {
  if (deleteStep !== undefined) {
    invocation.describe({ objectType: deleteStep.type });
    return { kind: 'delete-rows', type: deleteStep.type, keys: deleteStep.keys };
  }
  if (putStep === undefined) throw new ServiceError('REL_INVALID', 'a step puts rows, or deletes some');
  invocation.describe({ objectType: putStep.type });
  const provenance = { source: doorName, method: 'write', confidence: 1, derivedFrom: null };
  const typeDefinition = new Ingest(invocation, {
    type: putStep.type,
    atomic: true,
    sync: false,
    createType: putStep.create_type,
    provenance,
  }).definition();
  const stepIngestOptions = { definition: typeDefinition, yieldTurn, batchRows: batchRowsMax + 1, batchBytes: Infinity };
  const stepBatches = readIngest(stepPieces(putStep.rows, yieldTurn), stepIngestOptions);
  let stepRows: PutRows['rows'] | null = null;
  for await (const stepBatch of stepBatches) {
    const [firstRejection] = stepBatch.rejections;
    if (firstRejection !== undefined)
      throw new ServiceError(
        firstRejection.code as ServiceError['code'],
        `row ${firstRejection.index}: ${firstRejection.detail}`,
      );
    if (stepRows !== null)
      throw new ServiceError('REL_TOO_LARGE', `a write has at most ${batchRowsMax} rows: more of them go by Ingest`);
    stepRows = stepBatch.rows;
  }
  if (stepRows === null || stepRows.length === 0)
    throw new ServiceError('REL_INVALID', 'a step that puts rows needs at least one row');
  return {
    kind: 'put-rows',
    type: putStep.type,
    rows: stepRows,
    atomic: true,
    createType: putStep.create_type,
    provenance,
    idsMax: stepRows.length,
  };
}

const stepPieceBytes = 65_536;

/** A message is here as a whole: others have their turn between pieces of it. */
async function* stepPieces(stepBytes: Uint8Array, yieldTurn: () => Promise<void>): AsyncGenerator<Uint8Array, void> {
  for (let stepOffset = 0; stepOffset < stepBytes.length; stepOffset += stepPieceBytes) {
    if (stepOffset > 0) await yieldTurn();
    yield stepBytes.subarray(stepOffset, stepOffset + stepPieceBytes);
  }
}

async function listTypesRpc(rpcCall: RpcCall): Promise<object> {
  return rpcCall.ask({ action: 'inspect' }, ({ invocation }) => {
    const { catalog, protection } = invocation.snapshot();
    const typeTexts = catalog
      .types()
      .map((catalogType) => JSON.stringify(describeType(catalogType, protection(catalogType.name))));
    invocation.describe({ rowCount: typeTexts.length });
    return { types: typeTexts, ontology_version: catalog.ontologyVersion };
  });
}

async function registerTypeRpc(
  rpcCall: RpcCall,
  { definition: definitionText }: { readonly definition: string },
): Promise<object> {
  const checkedDefinition = check(typeBody, parseTypeDefinition(definitionText));
  if (!checkedDefinition.success) {
    const [definitionIssue] = checkedDefinition.issues;
    assert(definitionIssue, 'what is wrong is said');
    throw new ServiceError('REL_INVALID', `definition: ${definitionIssue.path.join('.')}: ${definitionIssue.message}`);
  }
  const { data: typeRegistration } = checkedDefinition;
  const { sync } = rpcCall;
  return rpcCall.ask({ writes: true, action: 'schema' }, async ({ invocation }) => {
    invocation.describe({ objectType: typeRegistration.name });
    const registrationSteps = registrations(typeRegistration);
    const { changed: hasChanged } = await invocation.submit(
      registrationSteps.length === 1 ? registrationSteps[0]! : { kind: 'migrate-types', steps: registrationSteps },
      { sync },
    );
    return { type: typeRegistration.name, changed: hasChanged };
  });
}

function parseTypeDefinition(definitionText: string): unknown {
  try {
    return parseExactJson(definitionText);
  } catch (definitionError) {
    throw definitionError instanceof ServiceError
      ? definitionError
      : new ServiceError('REL_INVALID', 'definition is not JSON', { cause: definitionError });
  }
}

async function listBranchesRpc(rpcCall: RpcCall): Promise<object> {
  return rpcCall.ask({ action: 'inspect' }, ({ invocation }) => {
    const mainBranch = { name: 'main', tenant: '', source: '', forked_at: '0', shares: 'everything' };
    const forkedBranches = invocation
      .branches()
      .map(({ name: branchName, tenant, source: sourceBranch, instant: forkInstant, shares }) => ({
        name: branchName,
        tenant: tenant ?? '',
        source: sourceBranch,
        forked_at: String(forkInstant),
        shares,
      }));
    invocation.describe({ rowCount: forkedBranches.length + 1 });
    return { branches: [mainBranch, ...forkedBranches] };
  });
}

async function forkRpc(
  rpcCall: RpcCall,
  {
    name: forkName,
    source: sourceBranch,
    types_only: typesOnly,
  }: { readonly name: string; readonly source: string; readonly types_only: boolean },
): Promise<object> {
  const { sync } = rpcCall;
  return rpcCall.ask({ writes: true, action: 'fork' }, async ({ invocation }) => {
    const forkShares = typesOnly ? 'ontology' : 'everything';
    const { systemFrom } = await invocation.submit(
      { kind: 'fork-branch', name: forkName, source: sourceBranch || 'main', shares: forkShares },
      { sync },
    );
    return { name: forkName, system_from: String(systemFrom) };
  });
}
