/**
 * One request of the columnar HTTP door:
 *
 *   parameters and head -> credential -> statement, out of the URL, the body, or both -> gate -> rows in, or rows out
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, createGzip, type Gzip } from 'node:zlib';
import type { Settings } from '../../config.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import type { RowRejection } from '../../projections/command.ts';
import { readIngest } from '../../planner/formats/ingest-reader.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { basicCredential, checkOrganization, organizationOf } from '../shared/credentials.ts';
import type { DoorDependencies } from '../shared/door-dependencies.ts';
import { AnswerBody } from '../shared/http-answer-body.ts';
import { HttpCall } from '../shared/http-call.ts';
import { encodingOf, decodeInTurns } from '../shared/content-encoding.ts';
import type { HttpRoom } from '../shared/http-listener.ts';
import { withTimeLimit } from '../shared/time-limit.ts';
import { leasedPieces } from '../shared/stream-lease.ts';
import { timeOfTerms } from '../shared/session-terms.ts';
import { batchSizes, Ingest, type IngestReply, rowRefusal, untilRefused } from '../ingest/ingest-stream.ts';
import { answerColumnarQuery, branchOf, type Question, timeLimitOf } from './columnar-query.ts';
import { columnarError, refusedAs } from './errors.ts';
import type { HttpSessions } from './http-sessions.ts';
import { type InputForm, inputColumns, inputForm, readRows } from './insert-formats.ts';
import { outputForm } from './output-formats.ts';
import type { RunningQueries } from './running-queries.ts';
import { ColumnarSettings } from './settings.ts';
import { beginsInsert, type ColumnarStatement, type StatementContext, statementOf, statementSteps } from './statement.ts';
import { everyType } from './column-types.ts';

export const doorName = 'columnar-http';

export interface ColumnarHttpOptions extends DoorDependencies {
  readonly settings: Pick<Settings, 'SERVICE_COLUMNAR_HTTP_PORT' | 'SERVICE_DRAIN_TIMEOUT_SECS' | 'SERVICE_BODY_LIMIT_MB'>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/** A statement has at most so many bytes; rows of an INSERT come beside it. */
export const statementBytesMax = 4 << 20;

export interface ColumnarHttpSetup extends ColumnarHttpOptions, HttpRoom {
  readonly sessions: HttpSessions;
  readonly running: RunningQueries;
  readonly bodyLimitBytes: number;
}

type Insert = Extract<ColumnarStatement, { kind: 'insert' }>;

/** The head of an INSERT, up to where its rows begin, has at most so many bytes. */
const insertHeadMax = 262_144;
const idMax = 200;
/** Parameters that are no settings. */
const ofRequest = new Set([
  'query',
  'database',
  'default_format',
  'query_id',
  'session_id',
  'session_timeout',
  'session_check',
  'quota_key',
  'client_protocol_version',
]);

export class ColumnarHttpRequest {
  readonly #parts: ColumnarHttpSetup;
  readonly #call: HttpCall;
  readonly #waits: boolean;
  #url = new URL('http://columnar/');
  #settings = new ColumnarSettings();
  #head: Head | null = null;

  /** `waits`: the client sends its body only after `100 Continue`. */
  constructor(parts: ColumnarHttpSetup, raw: IncomingMessage, response: ServerResponse, waits: boolean) {
    this.#parts = parts;
    this.#call = new HttpCall(parts, doorName, raw, response);
    this.#waits = waits;
  }

  async run(): Promise<void> {
    const { raw } = this.#call;
    try {
      this.#url = urlOf(raw);
      const isPing =
        this.#url.pathname === '/ping' || (this.#url.pathname === '/' && raw.method !== 'POST' && this.#url.search === '');
      if (isPing || this.#url.pathname === '/replicas_status') return this.#plain('Ok.\n');
      if (raw.method !== 'GET' && raw.method !== 'HEAD' && raw.method !== 'POST')
        throw new ServiceError('REL_METHOD', `${raw.method} is not supported: GET reads, POST reads and writes`);
      if (this.#url.pathname !== '/')
        throw new ServiceError('REL_NOT_FOUND', `There is no handle ${this.#url.pathname.slice(0, 100)}`);
      this.#call.admit('query');
      this.#call.know(this.#caller());
      await this.#answer();
    } catch (error) {
      await this.#refuse(error);
    } finally {
      await this.#head?.end();
      this.#call.end();
    }
  }

  #parameter(name: string): string | null {
    return this.#url.searchParams.get(name);
  }

  #header(name: string): string | null {
    const value = this.#call.raw.headers[name];
    return typeof value === 'string' && value !== '' ? value : null;
  }

  /** The credential: a key, or a name with a password. Never in the URL, which proxies log. */
  #caller(): Caller {
    if (this.#parameter('password') !== null || this.#parameter('user') !== null)
      throw new ServiceError(
        'REL_UNAUTHENTICATED',
        'user and password do not go into the URL: send X-Columnar-Key, or basic credentials',
      );
    const basic = basicCredential(this.#header('authorization'));
    const user = basic?.user ?? this.#header('x-clickhouse-user') ?? '';
    const key = this.#header('x-columnar-key') ?? this.#header('x-clickhouse-key') ?? basic?.password ?? null;
    if (key === null)
      throw new ServiceError(
        'REL_UNAUTHENTICATED',
        'the request carries no credential: X-Columnar-Key, basic or X-ClickHouse-Key',
      );
    const organization = this.#header('x-organization-id') ?? organizationOf(user);
    const facts = { door: doorName, clientIp: this.#call.clientIp, organization };
    const caller = this.#parts.authenticator.passwordCaller(key, facts);
    checkOrganization(this.#parts, caller, 'send x-organization-id, or the user name@organisation');
    return { ...caller, branch: branchOf(this.#database) };
  }

  get #database(): string {
    return this.#parameter('database') || this.#header('x-clickhouse-database') || 'default';
  }

  async #answer(): Promise<void> {
    const { raw } = this.#call;
    const isWrite = raw.method === 'POST';
    const session = this.#parameter('session_id');
    const sessionSettings =
      session === null
        ? null
        : this.#parts.sessions.settingsOf(this.#call.caller, {
            id: session,
            timeout: this.#parameter('session_timeout'),
            isChecked: this.#parameter('session_check') === '1',
          });
    this.#settings = new ColumnarSettings(sessionSettings);
    const facts = this.#facts();
    for (const [name, value] of this.#url.searchParams)
      if (!ofRequest.has(name) && !name.startsWith('param_')) this.#settings.set(name, value);
    const { statement, body } = await this.#statement(facts);
    if (statement.kind === 'set') {
      if (sessionSettings === null)
        throw refusedAs(
          'session',
          new ServiceError('REL_INVALID', 'SET needs a session: send a session_id, or SETTINGS with the statement'),
        );
      new ColumnarSettings().setAll(statement.settings);
      sessionSettings.setAll(statement.settings);
      return this.#plain('');
    }
    this.#settings.setAll(statement.settings);
    if (statement.kind === 'use')
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'USE is not supported: send the parameter database');
    const id = this.#parameter('query_id') || this.#call.id;
    if (id.length > idMax || /[^\x20-\x7e]/.test(id))
      throw new ServiceError('REL_INVALID', `a query_id has at most ${idMax} printable characters`);
    this.#call.response.setHeader('x-clickhouse-query-id', id);
    if (statement.kind === 'kill') return this.#kill(statement.queryId);
    const running = this.#parts.running.begin(this.#call.caller, id);
    try {
      if (statement.kind === 'question') return await this.#ask(statement, running.ended);
      if (!isWrite || this.#settings.flag('readonly'))
        throw new ServiceError('REL_READ_ONLY', 'Cannot execute query in readonly mode: rows are inserted by POST');
      return await this.#insert(statement, body, running.ended);
    } finally {
      running.end();
    }
  }

  #facts(): StatementContext {
    const parameters = new Map<string, string>();
    for (const [name, value] of this.#url.searchParams)
      if (name.startsWith('param_')) parameters.set(name.slice('param_'.length), value);
    return { database: this.#database, user: this.#call.caller.principal, parameters };
  }

  /** The statement, and what of the body is not of it. */
  async #statement(
    facts: StatementContext,
  ): Promise<{ readonly statement: ColumnarStatement; readonly body: AsyncIterable<Uint8Array> }> {
    const { bodies } = this.#parts;
    const { raw } = this.#call;
    if (this.#parameter('compress') === '1' || this.#parameter('decompress') === '1')
      throw new ServiceError(
        'REL_NOT_IMPLEMENTED',
        'blocks compressed by ClickHouse are not supported over HTTP: use Content-Encoding: gzip',
      );
    if (raw.method !== 'POST') return { statement: statementOf(this.#parameter('query') ?? '', facts)!, body: empty() };
    if (this.#waits) this.#call.response.writeContinue();
    const sent = decodeInTurns(this.#parts, bodies.stream(raw), encodingOf(raw));
    const inUrl = this.#parameter('query') ?? '';
    // The text of the URL ends a line: the body goes on behind it.
    const before = inUrl === '' || inUrl.endsWith('\n') ? inUrl : `${inUrl}\n`;
    const head = new Head(sent);
    this.#head = head;
    let isWhole = false;
    for (let text = before; ; text = before + head.text) {
      const begins = beginsInsert(text);
      if (begins === false || (isWhole && begins === null)) {
        while (await head.more()) checkStatement(head.bytes);
        const statement = await inTurns(statementSteps(before + head.text, facts), this.#parts.yieldTurn);
        return { statement, body: empty() };
      }
      const statement = begins === true ? statementOf(text, facts, isWhole) : null;
      if (statement !== null) return { statement, body: head.rowsBehindHead(text, before.length, dataAt(statement, text)) };
      if (begins === true && head.bytes > insertHeadMax)
        throw refusedAs('syntax', new ServiceError('REL_PARSE', `an INSERT names its rows within ${insertHeadMax} bytes`));
      checkStatement(head.bytes);
      isWhole = !(await head.grow());
    }
  }

  async #ask(statement: Question, killed: AbortSignal): Promise<void> {
    const { planner, clock } = this.#parts;
    const { name, form } = outputForm(
      statement.format ?? (this.#header('x-clickhouse-format') || this.#parameter('default_format') || 'TabSeparated'),
    );
    const write = await form.writer();
    const terms = this.#settings.terms(null);
    const options = { quotesIntegers: this.#settings.flag('output_format_json_quote_64bit_integers') };
    const begunMs = clock.monotonicMs();
    const columnarQuery = { question: statement, settings: this.#settings, database: this.#database, client: everyType };
    const gone = AbortSignal.any([this.#call.signal, killed]);
    const answer = await withTimeLimit(timeLimitOf(this.#settings, clock, gone), (signal) =>
      this.#call.invoke('query', terms, (invocation) => answerColumnarQuery(planner, invocation, { ...columnarQuery, signal }), {
        gone: signal,
      }),
    );
    const pieces = write(answer, options);
    const head = {
      'content-type': form.mediaType,
      'x-clickhouse-format': name,
      'x-clickhouse-timezone': 'UTC',
      'x-clickhouse-server-display-name': 'annals',
      'x-clickhouse-summary': summary({
        read_rows: answer.rowCount,
        result_rows: answer.rowCount,
        elapsed_ns: Math.round((clock.monotonicMs() - begunMs) * 1e6),
      }),
    };
    await this.#send(head, pieces, answer);
  }

  async #send(head: Readonly<Record<string, string>>, pieces: Generator<Uint8Array, void>, answer: Answer): Promise<void> {
    const { raw, response, caller, id } = this.#call;
    const zips = this.#settings.flag('enable_http_compression') && /\bgzip\b/i.test(this.#header('accept-encoding') ?? '');
    response.writeHead(200, zips ? { ...head, 'content-encoding': 'gzip', vary: 'accept-encoding' } : head);
    if (raw.method === 'HEAD') return void response.end();
    const body = new AnswerBody(this.#parts, { id, route: doorName, caller, overtaken: () => answer.overtaken() }, response);
    if (!zips) return body.sendAll(pieces);
    const zipped = new Zipped();
    for (const piece of pieces) {
      if (!(await body.send((await zipped.through(piece)).values()))) return;
    }
    await body.sendAll((await zipped.end()).values());
  }

  async #insert(statement: Insert, body: AsyncIterable<Uint8Array>, killed: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    this.#call.admit('ingest');
    const form = inputForm(statement.format!);
    const terms = this.#settings.terms(null);
    if (timeOfTerms(terms) !== 'current') throw new ServiceError('REL_INVALID', 'annals_as_of is for reads only');
    const begunMs = clock.monotonicMs();
    const reply = await this.#call.invoke(
      'ingest',
      terms,
      (invocation) => this.#write(invocation, statement, form, body, terms.durability === 'sync'),
      {
        gone: AbortSignal.any([this.#call.signal, killed]),
      },
    );
    this.#call.response.setHeader(
      'x-clickhouse-summary',
      summary({
        written_rows: reply.accepted,
        read_rows: reply.accepted,
        elapsed_ns: Math.round((clock.monotonicMs() - begunMs) * 1e6),
      }),
    );
    this.#plain('');
  }

  async #write(
    invocation: Invocation,
    { type, columns: named }: Insert,
    form: InputForm,
    body: AsyncIterable<Uint8Array>,
    sync: boolean,
  ): Promise<IngestReply> {
    invocation.describe({ objectType: type });
    const provenance = { source: doorName, method: 'insert', confidence: 1, derivedFrom: null };
    const ingest = new Ingest(invocation, { type, atomic: false, sync, createType: true, waits: true, provenance });
    const definition = ingest.definition();
    const columns = inputColumns(named, definition, form.needsColumns);
    const source = readRows(form, leasedPieces(this.#parts, invocation.caller, body), columns);
    const batches = readIngest(source, { definition, ...batchSizes.stream, ...form.options(columns) });
    const reply = await ingest.run(untilRefused(batches, (row) => wrongRow(row, ingest.accepted)));
    const [first] = reply.errors;
    if (first !== undefined) throw wrongRow(first, reply.accepted);
    return reply;
  }

  #kill(queryId: string): void {
    if (!this.#parts.running.kill(this.#call.caller, queryId)) return this.#plain('');
    this.#plain(`finished\t${queryId}\t${this.#call.caller.principal}\n`);
  }

  #plain(text: string): void {
    const { response, raw } = this.#call;
    response.writeHead(200, { 'content-type': 'text/plain; charset=UTF-8', 'content-length': Buffer.byteLength(text) });
    response.end(raw.method === 'HEAD' ? undefined : text);
  }

  async #refuse(error: unknown): Promise<void> {
    const { response, raw } = this.#call;
    const refusal = await this.#call.refusal(error);
    if (refusal === null) return;
    if (response.headersSent) return void response.destroy();
    const { number, status, text } = columnarError(refusal);
    if (refusal.facts.retryAfterSecs !== undefined) response.setHeader('retry-after', String(refusal.facts.retryAfterSecs));
    const body = Buffer.from(`${text}\n`);
    response.writeHead(status, {
      'content-type': 'text/plain; charset=UTF-8',
      'content-length': body.length,
      'x-clickhouse-exception-code': String(number),
    });
    response.end(raw.method === 'HEAD' ? undefined : body);
  }
}

function urlOf(raw: IncomingMessage): URL {
  try {
    return new URL(raw.url ?? '/', 'http://columnar');
  } catch {
    throw new ServiceError('REL_INVALID', 'the URL of the request is malformed');
  }
}

function summary(counts: Readonly<Record<string, number>>): string {
  const all = {
    read_rows: 0,
    read_bytes: 0,
    written_rows: 0,
    written_bytes: 0,
    total_rows_to_read: 0,
    result_rows: 0,
    result_bytes: 0,
    elapsed_ns: 0,
    ...counts,
  };
  return JSON.stringify(Object.fromEntries(Object.entries(all).map(([name, count]) => [name, String(count)])));
}

/** The first refused row ends the INSERT; the rows before it are written, and the error gives their number. */
function wrongRow(row: RowRejection, written: number): ServiceError {
  return refusedAs('data', rowRefusal(row, written));
}

async function* empty(): AsyncGenerator<Uint8Array, void> {}

const dataAt = (statement: ColumnarStatement, text: string): number =>
  statement.kind === 'insert' ? statement.dataAt : text.length;

function checkStatement(bytes: number): void {
  if (bytes > statementBytesMax) throw new ServiceError('REL_TOO_LARGE', `a statement has at most ${statementBytesMax} bytes`);
}

/** The beginning of a body, read only as far as it is needed. */
class Head {
  readonly #source: AsyncIterator<Uint8Array>;
  #pieces: Uint8Array[] = [];
  bytes = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  get #seen(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0] as Buffer;
  }

  get text(): string {
    return this.#seen.toString();
  }

  /** False: there is no more. */
  async more(): Promise<boolean> {
    const step = await this.#source.next();
    if (step.done === true) return false;
    // Others write over a piece once the next is asked for.
    this.#pieces.push(Buffer.from(step.value));
    this.bytes += step.value.length;
    return true;
  }

  /** Half as much again, so that looking at it after each time costs little more than looking once. False: there is no more. */
  async grow(): Promise<boolean> {
    const enough = this.bytes * 1.5;
    if (!(await this.more())) return false;
    while (this.bytes < enough && (await this.more()));
    return true;
  }

  /** Abandons the rest of the body: one with a pending read could not be skipped. */
  async end(): Promise<void> {
    await this.#source.return?.();
  }

  /** Rows in `text`, of which so many letters are not from the body, behind `at`, and all that follows. */
  async *rowsBehindHead(text: string, letters: number, at: number): AsyncGenerator<Uint8Array, void> {
    const ofUrl = text.slice(at, Math.max(at, letters));
    if (ofUrl.trim() !== '') yield Buffer.from(ofUrl);
    const ofStatement = Buffer.from(text.slice(letters, Math.max(at, letters)));
    const seen = this.#seen;
    if (!seen.subarray(0, ofStatement.length).equals(ofStatement))
      throw new ServiceError('REL_INVALID', 'the statement is not UTF-8');
    if (seen.length > ofStatement.length) yield seen.subarray(ofStatement.length);
    for (let step = await this.#source.next(); step.done !== true; step = await this.#source.next()) yield step.value;
  }
}

/** An answer compressed piece by piece. */
class Zipped {
  readonly #gzip: Gzip = createGzip({ level: constants.Z_BEST_SPEED });
  readonly #sentPieces: Buffer[] = [];

  constructor() {
    this.#gzip.on('data', (piece: Buffer) => this.#sentPieces.push(piece));
  }

  async through(piece: Uint8Array): Promise<Buffer[]> {
    await new Promise<void>((resolve) => this.#gzip.write(piece, () => resolve()));
    return this.#sentPieces.splice(0);
  }

  async end(): Promise<Buffer[]> {
    await new Promise<void>((resolve) => this.#gzip.once('end', resolve).end());
    return this.#sentPieces.splice(0);
  }
}
