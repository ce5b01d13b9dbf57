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
import { batchSizes, Ingest, type IngestReply, rowRefusal, untilRefused } from '../shared/ingest-stream.ts';
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

type InsertStatement = Extract<ColumnarStatement, { kind: 'insert' }>;

/** The head of an INSERT, up to where its rows begin, has at most so many bytes. */
const insertHeadMax = 262_144;
const queryIdMax = 200;
/** Parameters that are no settings. */
const requestParameters = new Set([
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
  #head: StatementHead | null = null;

  /** `waitsForContinue`: the client sends its body only after `100 Continue`. */
  constructor(
    columnarParts: ColumnarHttpSetup,
    httpRequest: IncomingMessage,
    httpResponse: ServerResponse,
    waitsForContinue: boolean,
  ) {
    this.#parts = columnarParts;
    this.#call = new HttpCall(columnarParts, doorName, httpRequest, httpResponse);
    this.#waits = waitsForContinue;
  }

  async run(): Promise<void> {
    const { raw: httpRequest } = this.#call;
    try {
      this.#url = columnarUrlOf(httpRequest);
      const isPing =
        this.#url.pathname === '/ping' ||
        (this.#url.pathname === '/' && httpRequest.method !== 'POST' && this.#url.search === '');
      if (isPing || this.#url.pathname === '/replicas_status') return this.#plain('Ok.\n');
      if (httpRequest.method !== 'GET' && httpRequest.method !== 'HEAD' && httpRequest.method !== 'POST')
        throw new ServiceError('REL_METHOD', `${httpRequest.method} is not supported: GET reads, POST reads and writes`);
      if (this.#url.pathname !== '/')
        throw new ServiceError('REL_NOT_FOUND', `There is no handle ${this.#url.pathname.slice(0, 100)}`);
      this.#call.admit('query');
      this.#call.know(this.#caller());
      await this.#answer();
    } catch (questionError) {
      await this.#refuse(questionError);
    } finally {
      await this.#head?.end();
      this.#call.end();
    }
  }

  #parameter(parameterName: string): string | null {
    return this.#url.searchParams.get(parameterName);
  }

  #header(headerName: string): string | null {
    const headerValue = this.#call.raw.headers[headerName];
    return typeof headerValue === 'string' && headerValue !== '' ? headerValue : null;
  }

  /** The credential: a key, or a name with a password. Never in the URL, which proxies log. */
  #caller(): Caller {
    if (this.#parameter('password') !== null || this.#parameter('user') !== null)
      throw new ServiceError(
        'REL_UNAUTHENTICATED',
        'user and password do not go into the URL: send X-Columnar-Key, or basic credentials',
      );
    const basicCredentials = basicCredential(this.#header('authorization'));
    const columnarUser = basicCredentials?.user ?? this.#header('x-clickhouse-user') ?? '';
    const columnarKey = this.#header('x-columnar-key') ?? this.#header('x-clickhouse-key') ?? basicCredentials?.password ?? null;
    if (columnarKey === null)
      throw new ServiceError(
        'REL_UNAUTHENTICATED',
        'the request carries no credential: X-Columnar-Key, basic or X-ClickHouse-Key',
      );
    const organization = this.#header('x-organization-id') ?? organizationOf(columnarUser);
    const callerFacts = { door: doorName, clientIp: this.#call.clientIp, organization };
    const columnarCaller = this.#parts.authenticator.passwordCaller(columnarKey, callerFacts);
    checkOrganization(this.#parts, columnarCaller, 'send x-organization-id, or the user name@organisation');
    return { ...columnarCaller, branch: branchOf(this.#database) };
  }

  get #database(): string {
    return this.#parameter('database') || this.#header('x-clickhouse-database') || 'default';
  }

  async #answer(): Promise<void> {
    const { raw: httpRequest } = this.#call;
    const isWrite = httpRequest.method === 'POST';
    const sessionId = this.#parameter('session_id');
    const sessionSettings =
      sessionId === null
        ? null
        : this.#parts.sessions.settingsOf(this.#call.caller, {
            id: sessionId,
            timeout: this.#parameter('session_timeout'),
            isChecked: this.#parameter('session_check') === '1',
          });
    this.#settings = new ColumnarSettings(sessionSettings);
    const statementFacts = this.#facts();
    for (const [parameterName, parameterValue] of this.#url.searchParams)
      if (!requestParameters.has(parameterName) && !parameterName.startsWith('param_'))
        this.#settings.set(parameterName, parameterValue);
    const { statement: columnarStatement, body: insertBody } = await this.#statement(statementFacts);
    if (columnarStatement.kind === 'set') {
      if (sessionSettings === null)
        throw refusedAs(
          'session',
          new ServiceError('REL_INVALID', 'SET needs a session: send a session_id, or SETTINGS with the statement'),
        );
      new ColumnarSettings().setAll(columnarStatement.settings);
      sessionSettings.setAll(columnarStatement.settings);
      return this.#plain('');
    }
    this.#settings.setAll(columnarStatement.settings);
    if (columnarStatement.kind === 'use')
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'USE is not supported: send the parameter database');
    const queryId = this.#parameter('query_id') || this.#call.id;
    if (queryId.length > queryIdMax || /[^\x20-\x7e]/.test(queryId))
      throw new ServiceError('REL_INVALID', `a query_id has at most ${queryIdMax} printable characters`);
    this.#call.response.setHeader('x-clickhouse-query-id', queryId);
    if (columnarStatement.kind === 'kill') return this.#kill(columnarStatement.queryId);
    const runningQuery = this.#parts.running.begin(this.#call.caller, queryId);
    try {
      if (columnarStatement.kind === 'question') return await this.#ask(columnarStatement, runningQuery.ended);
      if (!isWrite || this.#settings.flag('readonly'))
        throw new ServiceError('REL_READ_ONLY', 'Cannot execute query in readonly mode: rows are inserted by POST');
      return await this.#insert(columnarStatement, insertBody, runningQuery.ended);
    } finally {
      runningQuery.end();
    }
  }

  #facts(): StatementContext {
    const queryParameters = new Map<string, string>();
    for (const [parameterName, parameterValue] of this.#url.searchParams)
      if (parameterName.startsWith('param_')) queryParameters.set(parameterName.slice('param_'.length), parameterValue);
    return { database: this.#database, user: this.#call.caller.principal, parameters: queryParameters };
  }

  /** The statement, and what of the body is not of it. */
  async #statement(
    statementFacts: StatementContext,
  ): Promise<{ readonly statement: ColumnarStatement; readonly body: AsyncIterable<Uint8Array> }> {
    const { bodies } = this.#parts;
    const { raw: httpRequest } = this.#call;
    if (this.#parameter('compress') === '1' || this.#parameter('decompress') === '1')
      throw new ServiceError(
        'REL_NOT_IMPLEMENTED',
        'blocks compressed by ClickHouse are not supported over HTTP: use Content-Encoding: gzip',
      );
    if (httpRequest.method !== 'POST')
      return { statement: statementOf(this.#parameter('query') ?? '', statementFacts)!, body: emptyBody() };
    if (this.#waits) this.#call.response.writeContinue();
    const decodedBody = decodeInTurns(this.#parts, bodies.stream(httpRequest), encodingOf(httpRequest));
    const urlStatement = this.#parameter('query') ?? '';
    // The text of the URL ends a line: the body goes on behind it.
    const statementBefore = urlStatement === '' || urlStatement.endsWith('\n') ? urlStatement : `${urlStatement}\n`;
    const statementHead = new StatementHead(decodedBody);
    this.#head = statementHead;
    let isBodyWhole = false;
    for (let statementText = statementBefore; ; statementText = statementBefore + statementHead.text) {
      const isInsert = beginsInsert(statementText);
      if (isInsert === false || (isBodyWhole && isInsert === null)) {
        while (await statementHead.more()) checkStatementBytes(statementHead.bytes);
        const parsedStatement = await inTurns(
          statementSteps(statementBefore + statementHead.text, statementFacts),
          this.#parts.yieldTurn,
        );
        return { statement: parsedStatement, body: emptyBody() };
      }
      const statement = isInsert === true ? statementOf(statementText, statementFacts, isBodyWhole) : null;
      if (statement !== null)
        return {
          statement,
          body: statementHead.rowsBehindHead(statementText, statementBefore.length, insertDataAt(statement, statementText)),
        };
      if (isInsert === true && statementHead.bytes > insertHeadMax)
        throw refusedAs('syntax', new ServiceError('REL_PARSE', `an INSERT names its rows within ${insertHeadMax} bytes`));
      checkStatementBytes(statementHead.bytes);
      isBodyWhole = !(await statementHead.grow());
    }
  }

  async #ask(questionStatement: Question, queryKilled: AbortSignal): Promise<void> {
    const { planner, clock } = this.#parts;
    const { name: formatName, form: outputFormat } = outputForm(
      questionStatement.format ?? (this.#header('x-clickhouse-format') || this.#parameter('default_format') || 'TabSeparated'),
    );
    const writeFormat = await outputFormat.writer();
    const settingTerms = this.#settings.terms(null);
    const formatOptions = { quotesIntegers: this.#settings.flag('output_format_json_quote_64bit_integers') };
    const questionBegunMs = clock.monotonicMs();
    const columnarQuery = { question: questionStatement, settings: this.#settings, database: this.#database, client: everyType };
    const questionGone = AbortSignal.any([this.#call.signal, queryKilled]);
    const columnarAnswer = await withTimeLimit(timeLimitOf(this.#settings, clock, questionGone), (questionSignal) =>
      this.#call.invoke(
        'query',
        settingTerms,
        (invocation) => answerColumnarQuery(planner, invocation, { ...columnarQuery, signal: questionSignal }),
        {
          gone: questionSignal,
        },
      ),
    );
    const formattedPieces = writeFormat(columnarAnswer, formatOptions);
    const responseHead = {
      'content-type': outputFormat.mediaType,
      'x-clickhouse-format': formatName,
      'x-clickhouse-timezone': 'UTC',
      'x-clickhouse-server-display-name': 'annals',
      'x-clickhouse-summary': clickHouseSummary({
        read_rows: columnarAnswer.rowCount,
        result_rows: columnarAnswer.rowCount,
        elapsed_ns: Math.round((clock.monotonicMs() - questionBegunMs) * 1e6),
      }),
    };
    await this.#send(responseHead, formattedPieces, columnarAnswer);
  }

  async #send(
    responseHead: Readonly<Record<string, string>>,
    formattedPieces: Generator<Uint8Array, void>,
    columnarAnswer: Answer,
  ): Promise<void> {
    const { raw: httpRequest, response, caller, id } = this.#call;
    const isGzipped = this.#settings.flag('enable_http_compression') && /\bgzip\b/i.test(this.#header('accept-encoding') ?? '');
    response.writeHead(200, isGzipped ? { ...responseHead, 'content-encoding': 'gzip', vary: 'accept-encoding' } : responseHead);
    if (httpRequest.method === 'HEAD') return void response.end();
    const answerBody = new AnswerBody(
      this.#parts,
      { id, route: doorName, caller, overtaken: () => columnarAnswer.overtaken() },
      response,
    );
    if (!isGzipped) return answerBody.sendAll(formattedPieces);
    const gzippedAnswer = new GzippedAnswer();
    for (const formattedPiece of formattedPieces) {
      if (!(await answerBody.send((await gzippedAnswer.through(formattedPiece)).values()))) return;
    }
    await answerBody.sendAll((await gzippedAnswer.end()).values());
  }

  async #insert(
    insertStatement: InsertStatement,
    insertBody: AsyncIterable<Uint8Array>,
    queryKilled: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#parts;
    this.#call.admit('ingest');
    const inputFormat = inputForm(insertStatement.format!);
    const settingTerms = this.#settings.terms(null);
    if (timeOfTerms(settingTerms) !== 'current') throw new ServiceError('REL_INVALID', 'annals_as_of is for reads only');
    const insertBegunMs = clock.monotonicMs();
    const ingestReply = await this.#call.invoke(
      'ingest',
      settingTerms,
      (invocation) => this.#write(invocation, insertStatement, inputFormat, insertBody, settingTerms.durability === 'sync'),
      {
        gone: AbortSignal.any([this.#call.signal, queryKilled]),
      },
    );
    this.#call.response.setHeader(
      'x-clickhouse-summary',
      clickHouseSummary({
        written_rows: ingestReply.accepted,
        read_rows: ingestReply.accepted,
        elapsed_ns: Math.round((clock.monotonicMs() - insertBegunMs) * 1e6),
      }),
    );
    this.#plain('');
  }

  async #write(
    invocation: Invocation,
    { type: insertedType, columns: namedColumns }: InsertStatement,
    inputFormat: InputForm,
    insertBody: AsyncIterable<Uint8Array>,
    isSync: boolean,
  ): Promise<IngestReply> {
    invocation.describe({ objectType: insertedType });
    const provenance = { source: doorName, method: 'insert', confidence: 1, derivedFrom: null };
    const columnarIngest = new Ingest(invocation, {
      type: insertedType,
      atomic: false,
      sync: isSync,
      createType: true,
      waits: true,
      provenance,
    });
    const typeDefinition = columnarIngest.definition();
    const insertColumns = inputColumns(namedColumns, typeDefinition, inputFormat.needsColumns);
    const rowSource = readRows(inputFormat, leasedPieces(this.#parts, invocation.caller, insertBody), insertColumns);
    const ingestBatches = readIngest(rowSource, {
      definition: typeDefinition,
      ...batchSizes.stream,
      ...inputFormat.options(insertColumns),
    });
    const ingestReply = await columnarIngest.run(
      untilRefused(ingestBatches, (rejectedRow) => insertRowRefusal(rejectedRow, columnarIngest.accepted)),
    );
    const [firstRejection] = ingestReply.errors;
    if (firstRejection !== undefined) throw insertRowRefusal(firstRejection, ingestReply.accepted);
    return ingestReply;
  }

  #kill(killedQuery: string): void {
    if (!this.#parts.running.kill(this.#call.caller, killedQuery)) return this.#plain('');
    this.#plain(`finished\t${killedQuery}\t${this.#call.caller.principal}\n`);
  }

  #plain(plainText: string): void {
    const { response: httpResponse, raw: httpRequest } = this.#call;
    httpResponse.writeHead(200, { 'content-type': 'text/plain; charset=UTF-8', 'content-length': Buffer.byteLength(plainText) });
    httpResponse.end(httpRequest.method === 'HEAD' ? undefined : plainText);
  }

  async #refuse(questionError: unknown): Promise<void> {
    const { response: httpResponse, raw: httpRequest } = this.#call;
    const columnarRefusal = await this.#call.refusal(questionError);
    if (columnarRefusal === null) return;
    if (httpResponse.headersSent) return void httpResponse.destroy();
    const { number: exceptionNumber, status: httpStatus, text: exceptionText } = columnarError(columnarRefusal);
    if (columnarRefusal.facts.retryAfterSecs !== undefined)
      httpResponse.setHeader('retry-after', String(columnarRefusal.facts.retryAfterSecs));
    const exceptionBody = Buffer.from(`${exceptionText}\n`);
    httpResponse.writeHead(httpStatus, {
      'content-type': 'text/plain; charset=UTF-8',
      'content-length': exceptionBody.length,
      'x-clickhouse-exception-code': String(exceptionNumber),
    });
    httpResponse.end(httpRequest.method === 'HEAD' ? undefined : exceptionBody);
  }
}

function columnarUrlOf(httpRequest: IncomingMessage): URL {
  try {
    return new URL(httpRequest.url ?? '/', 'http://columnar');
  } catch {
    throw new ServiceError('REL_INVALID', 'the URL of the request is malformed');
  }
}

function clickHouseSummary(statedCounts: Readonly<Record<string, number>>): string {
  const summaryCounts = {
    read_rows: 0,
    read_bytes: 0,
    written_rows: 0,
    written_bytes: 0,
    total_rows_to_read: 0,
    result_rows: 0,
    result_bytes: 0,
    elapsed_ns: 0,
    ...statedCounts,
  };
  return JSON.stringify(
    Object.fromEntries(Object.entries(summaryCounts).map(([countName, summaryCount]) => [countName, String(summaryCount)])),
  );
}

/** The first refused row ends the INSERT; the rows before it are written, and the error gives their number. */
function insertRowRefusal(rejectedRow: RowRejection, writtenRows: number): ServiceError {
  return refusedAs('data', rowRefusal(rejectedRow, writtenRows));
}

async function* emptyBody(): AsyncGenerator<Uint8Array, void> {}

const insertDataAt = (columnarStatement: ColumnarStatement, statementText: string): number =>
  columnarStatement.kind === 'insert' ? columnarStatement.dataAt : statementText.length;

function checkStatementBytes(statementBytes: number): void {
  if (statementBytes > statementBytesMax)
    throw new ServiceError('REL_TOO_LARGE', `a statement has at most ${statementBytesMax} bytes`);
}

/** The beginning of a body, read only as far as it is needed. */
class StatementHead {
  readonly #bodySource: AsyncIterator<Uint8Array>;
  #headPieces: Uint8Array[] = [];
  bytes = 0;

  constructor(statementBody: AsyncIterable<Uint8Array>) {
    this.#bodySource = statementBody[Symbol.asyncIterator]();
  }

  get #headBytes(): Buffer {
    if (this.#headPieces.length !== 1) this.#headPieces = [Buffer.concat(this.#headPieces)];
    return this.#headPieces[0] as Buffer;
  }

  get text(): string {
    return this.#headBytes.toString();
  }

  /** False: there is no more. */
  async more(): Promise<boolean> {
    const bodyStep = await this.#bodySource.next();
    if (bodyStep.done === true) return false;
    // Others write over a piece once the next is asked for.
    this.#headPieces.push(Buffer.from(bodyStep.value));
    this.bytes += bodyStep.value.length;
    return true;
  }

  /** Half as much again, so that looking at it after each time costs little more than looking once. False: there is no more. */
  async grow(): Promise<boolean> {
    const grownBytes = this.bytes * 1.5;
    if (!(await this.more())) return false;
    while (this.bytes < grownBytes && (await this.more()));
    return true;
  }

  /** Abandons the rest of the body: one with a pending read could not be skipped. */
  async end(): Promise<void> {
    await this.#bodySource.return?.();
  }

  /** Rows in `statementText`, of which so many letters are not from the body, behind `at`, and all that follows. */
  async *rowsBehindHead(text: string, letters: number, at: number): AsyncGenerator<Uint8Array, void> {
    const ofUrl = text.slice(at, Math.max(at, letters));
    if (ofUrl.trim() !== '') yield Buffer.from(ofUrl);
    const ofStatement = Buffer.from(text.slice(letters, Math.max(at, letters)));
    const seen = this.#headBytes;
    if (!seen.subarray(0, ofStatement.length).equals(ofStatement))
      throw new ServiceError('REL_INVALID', 'the statement is not UTF-8');
    if (seen.length > ofStatement.length) yield seen.subarray(ofStatement.length);
    for (let step = await this.#bodySource.next(); step.done !== true; step = await this.#bodySource.next()) yield step.value;
  }
}

/** An answer compressed piece by piece. */
class GzippedAnswer {
  readonly #answerGzip: Gzip = createGzip({ level: constants.Z_BEST_SPEED });
  readonly #sentPieces: Buffer[] = [];

  constructor() {
    this.#answerGzip.on('data', (gzippedPiece: Buffer) => this.#sentPieces.push(gzippedPiece));
  }

  async through(answerPiece: Uint8Array): Promise<Buffer[]> {
    await new Promise<void>((onGzipped) => this.#answerGzip.write(answerPiece, () => onGzipped()));
    return this.#sentPieces.splice(0);
  }

  async end(): Promise<Buffer[]> {
    await new Promise<void>((onGzipEnd) => this.#answerGzip.once('end', onGzipEnd).end());
    return this.#sentPieces.splice(0);
  }
}
