/** The methods of `annals.proto`. */
import type { ServerReadableStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import { assert, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import { readIngest } from '../../planner/formats/ingest-reader.ts';
import { outputForms } from '../../planner/formats/output-format.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { batchRowsMax, type DeleteRows, type Outcome, type PutRows } from '../../projections/command.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { check } from '../schemas/schema-check.ts';
import { leasedPieces } from '../shared/stream-lease.ts';
import { batchSizes, Ingest } from '../ingest/ingest-stream.ts';
import { receiveMessages } from './client-stream.ts';
import { registrations, describeType, typeBody } from '../schemas/type-body.ts';
import type { RpcCall, RpcDependencies } from './call.ts';
import { RpcHandlers } from './handlers.ts';
import { parametersOf, rowMessages, type SentMessage, type ValueMessage } from './values.ts';
import { followSubscription, type WatchDependencies } from './watch.ts';

export const doorName = 'grpc';

export type AnnalsDependencies = RpcDependencies & WatchDependencies & { readonly bodyLimitBytes: number };

interface QueryRequest {
  readonly sql: string;
  readonly named: Readonly<Record<string, ValueMessage>>;
  readonly positional: readonly ValueMessage[];
  readonly format: 'ROWS' | 'ARROW';
}

interface LookupRequest {
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

interface IngestPart {
  readonly head?: IngestHead;
  readonly rows?: Buffer;
}

interface Step {
  readonly put?: { readonly type: string; readonly rows: Buffer; readonly create_type: boolean };
  readonly delete?: { readonly type: string; readonly keys: readonly string[] };
}

export function annalsService(parts: AnnalsDependencies): UntypedServiceImplementation {
  const { unary, clientStreaming, serverStreaming } = new RpcHandlers(parts, doorName);
  return {
    Query: serverStreaming('query', (rpcCall, request: QueryRequest) => query(rpcCall, request)),
    Lookup: serverStreaming('query', (rpcCall, request: LookupRequest) => lookUp(rpcCall, request)),
    Ingest: clientStreaming('ingest', ingest),
    Write: unary('ingest', (rpcCall, { steps }: { readonly steps: readonly Step[] }) => write(rpcCall, steps)),
    Delete: unary('delete', (rpcCall, request: { readonly type: string; readonly keys: readonly string[] }) =>
      write(rpcCall, [{ delete: request }]),
    ),
    Watch: serverStreaming('watch', (rpcCall, request: { readonly sql: string; readonly resume_after: string }, stream) =>
      followSubscription(parts, rpcCall, request, stream),
    ),
    ListTypes: unary('inspect', listTypes),
    RegisterType: unary('schema', registerType),
    ListBranches: unary('inspect', listBranches),
    Fork: unary('fork', fork),
  };
}

async function query(rpcCall: RpcCall, { sql, named, positional, format }: QueryRequest): Promise<void> {
  const parameters = parametersOf(named, positional);
  const asked = {
    sql,
    ...(parameters && { parameters }),
    dialect: 'wide' as const,
    time: rpcCall.time,
    queriesOnly: true,
    signal: rpcCall.signal,
  };
  const answer = await rpcCall.ask({}, async ({ invocation, keep }) => {
    const answered = await rpcCall.parts.planner.query(invocation, asked);
    keep(answered);
    return answered;
  });
  await send(rpcCall, answer, format);
}

async function lookUp(rpcCall: RpcCall, { type, keys, columns, format }: LookupRequest): Promise<void> {
  const wanted = { type, keys: [...new Set(keys)], columns: columns.length === 0 ? null : columns, time: rpcCall.time };
  const answer = await rpcCall.ask({ keysRead: wanted.keys.length }, async ({ invocation, keep }) => {
    const answered = await rpcCall.parts.planner.lookUpMany(invocation, wanted, rpcCall.signal);
    keep(answered);
    return answered;
  });
  await send(rpcCall, answer, format);
}

async function send(rpcCall: RpcCall, answer: Answer, format: 'ROWS' | 'ARROW'): Promise<void> {
  const pieces = format === 'ARROW' ? (await outputForms.arrow.writer())(answer, new Map()) : null;
  await rpcCall.sendAll(messages(answer, pieces), answer);
}

function* messages(answer: Answer, pieces: Iterable<Uint8Array> | null): Generator<SentMessage, void> {
  const { columns, asOfSystem } = answer;
  const header = { columns: columns.map(({ name, type }) => ({ name, type })), as_of_system: String(asOfSystem) };
  yield { message: { header }, bytes: 0 };
  if (pieces === null) yield* rowMessages(answer);
  else for (const piece of pieces) if (piece.length > 0) yield { message: { arrow: piece }, bytes: piece.length };
  const totals = {
    row_count: answer.rowCount,
    estimated_total_hits: answer.estimatedTotalHits,
    cost_units: answer.costUnits,
    cursor: answer.cursor ?? '',
    next_cursor: answer.nextCursor ?? '',
    is_approximate: answer.isApproximate === true,
    notices: answer.notices ?? [],
    plan: answer.plan ?? '',
  };
  yield { message: { totals }, bytes: 0 };
}

async function ingest(rpcCall: RpcCall, stream: ServerReadableStream<IngestPart, object>): Promise<object> {
  const sent = stream[Symbol.asyncIterator]() as AsyncIterator<IngestPart>;
  const parts = receiveMessages(rpcCall.parts, sent, ({ rows }) => rows?.length ?? 0);
  const first = await parts.next();
  const head = first.done === true ? undefined : first.value.head;
  if (head === undefined) throw new ServiceError('REL_INVALID', 'the first message must be an IngestHead');
  const { type, atomic, create_type: createType, patch, source, method } = head;
  const { sync } = rpcCall;
  const reply = await rpcCall.ask({ writes: true, action: 'ingest' }, async ({ invocation }) => {
    invocation.describe({ objectType: type });
    const provenance = { source: source || doorName, method: method || 'ingest', confidence: 1, derivedFrom: null };
    const rows = new Ingest(invocation, { type, atomic, sync, createType, waits: true, provenance, ...(patch && { patch }) });
    const definition = rows.definition();
    const { bodyLimitBytes } = rpcCall.parts as AnnalsDependencies;
    const sizes = atomic ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: bodyLimitBytes } : batchSizes.stream;
    const { yieldTurn } = rpcCall.parts;
    const options = { definition, yieldTurn, ...sizes, ...(patch && { tracksSent: true }) };
    return rows.run(readIngest(leasedPieces(rpcCall.parts, rpcCall.caller, bytesOf(parts)), options));
  });
  const { system_from: from, system_from_last: last } = reply;
  return { ...reply, system_from: String(from ?? 0n), system_from_last: String(last ?? 0n) };
}

async function* bytesOf(parts: AsyncIterator<IngestPart>): AsyncGenerator<Uint8Array, void> {
  for (let step = await parts.next(); step.done !== true; step = await parts.next()) {
    const { rows } = step.value;
    if (rows === undefined) throw new ServiceError('REL_INVALID', 'IngestHead comes once, as the first message');
    yield rows;
  }
}

async function write(rpcCall: RpcCall, steps: readonly Step[]): Promise<object> {
  if (steps.length === 0) throw new ServiceError('REL_INVALID', 'the write has no steps');
  const isDeletion = steps.every((step) => step.delete !== undefined);
  const { sync } = rpcCall;
  const outcome = await rpcCall.ask({ writes: true, action: isDeletion ? 'delete' : 'ingest' }, async ({ invocation }) => {
    const rowCommands: (PutRows | DeleteRows)[] = [];
    for (const step of steps) rowCommands.push(await stepOf(rpcCall.parts, invocation, step));
    const command = rowCommands.length === 1 ? rowCommands[0]! : ({ kind: 'batch', steps: rowCommands } as const);
    const written = await invocation.submit(command, { sync });
    const [refused] = written.errors;
    if (refused !== undefined)
      throw new ServiceError(refused.code as ServiceError['code'], `row ${refused.index}: ${refused.detail}`);
    invocation.describe({ rowCount: written.accepted });
    return written;
  });
  return writeReply(outcome);
}

function writeReply({ accepted, systemFrom, systemFromLast, ids, durability }: Outcome): object {
  return { accepted, system_from: String(systemFrom), system_from_last: String(systemFromLast), ids, durability };
}

async function stepOf(
  { yieldTurn }: RpcDependencies,
  invocation: Invocation,
  { put, delete: deletion }: Step,
): Promise<PutRows | DeleteRows> {
  if (deletion !== undefined) {
    invocation.describe({ objectType: deletion.type });
    return { kind: 'delete-rows', type: deletion.type, keys: deletion.keys };
  }
  if (put === undefined) throw new ServiceError('REL_INVALID', 'a step puts rows, or deletes some');
  invocation.describe({ objectType: put.type });
  const provenance = { source: doorName, method: 'write', confidence: 1, derivedFrom: null };
  const definition = new Ingest(invocation, {
    type: put.type,
    atomic: true,
    sync: false,
    createType: put.create_type,
    provenance,
  }).definition();
  const options = { definition, yieldTurn, batchRows: batchRowsMax + 1, batchBytes: Infinity };
  const batches = readIngest(pieces(put.rows, yieldTurn), options);
  let rows: PutRows['rows'] | null = null;
  for await (const batch of batches) {
    const [first] = batch.rejections;
    if (first !== undefined) throw new ServiceError(first.code as ServiceError['code'], `row ${first.index}: ${first.detail}`);
    if (rows !== null)
      throw new ServiceError('REL_TOO_LARGE', `a write has at most ${batchRowsMax} rows: more of them go by Ingest`);
    rows = batch.rows;
  }
  if (rows === null || rows.length === 0) throw new ServiceError('REL_INVALID', 'a step that puts rows needs at least one row');
  return { kind: 'put-rows', type: put.type, rows, atomic: true, createType: put.create_type, provenance, idsMax: rows.length };
}

const pieceBytes = 65_536;

/** A message is here as a whole: others have their turn between pieces of it. */
async function* pieces(bytes: Uint8Array, yieldTurn: () => Promise<void>): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (at > 0) await yieldTurn();
    yield bytes.subarray(at, at + pieceBytes);
  }
}

async function listTypes(rpcCall: RpcCall): Promise<object> {
  return rpcCall.ask({ action: 'inspect' }, ({ invocation }) => {
    const { catalog, protection } = invocation.snapshot();
    const types = catalog.types().map((type) => JSON.stringify(describeType(type, protection(type.name))));
    invocation.describe({ rowCount: types.length });
    return { types, ontology_version: catalog.ontologyVersion };
  });
}

async function registerType(rpcCall: RpcCall, { definition }: { readonly definition: string }): Promise<object> {
  const read = check(typeBody, parseDefinition(definition));
  if (!read.success) {
    const [issue] = read.issues;
    assert(issue, 'what is wrong is said');
    throw new ServiceError('REL_INVALID', `definition: ${issue.path.join('.')}: ${issue.message}`);
  }
  const { data } = read;
  const { sync } = rpcCall;
  return rpcCall.ask({ writes: true, action: 'schema' }, async ({ invocation }) => {
    invocation.describe({ objectType: data.name });
    const steps = registrations(data);
    const { changed } = await invocation.submit(steps.length === 1 ? steps[0]! : { kind: 'migrate-types', steps }, { sync });
    return { type: data.name, changed };
  });
}

function parseDefinition(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    throw error instanceof ServiceError ? error : new ServiceError('REL_INVALID', 'definition is not JSON', { cause: error });
  }
}

async function listBranches(rpcCall: RpcCall): Promise<object> {
  return rpcCall.ask({ action: 'inspect' }, ({ invocation }) => {
    const main = { name: 'main', tenant: '', source: '', forked_at: '0', shares: 'everything' };
    const others = invocation.branches().map(({ name, tenant, source, instant, shares }) => ({
      name,
      tenant: tenant ?? '',
      source,
      forked_at: String(instant),
      shares,
    }));
    invocation.describe({ rowCount: others.length + 1 });
    return { branches: [main, ...others] };
  });
}

async function fork(
  rpcCall: RpcCall,
  { name, source, types_only: typesOnly }: { readonly name: string; readonly source: string; readonly types_only: boolean },
): Promise<object> {
  const { sync } = rpcCall;
  return rpcCall.ask({ writes: true, action: 'fork' }, async ({ invocation }) => {
    const shares = typesOnly ? 'ontology' : 'everything';
    const { systemFrom } = await invocation.submit({ kind: 'fork-branch', name, source: source || 'main', shares }, { sync });
    return { name, system_from: String(systemFrom) };
  });
}
