/**
 * One request of the graph HTTP door: discovery, the transactional interface, or the query interface.
 *
 *   path and headers -> credential -> statements -> gate, one after the other, in a transaction or without -> answers
 *
 * Source: Neo4j's documentation of the HTTP and Query APIs; specification, "Compatibility doors".
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Settings } from '../../config.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Transaction } from '../../governance/gate-contract.ts';
import type { Executed } from '../../planner/planner-contract.ts';
import { type Literal, TypedValue } from '../../planner/syntax/statement.ts';
import { checkText } from '../../log/values/value.ts';
import { check } from '../shared/schema-check.ts';
import { errorCodesOf } from '../error-codes.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { basicCredential, checkOrganization, organizationOf } from '../shared/credentials.ts';
import type { DoorDependencies } from '../shared/door-dependencies.ts';
import { AnswerBody } from '../shared/http-answer-body.ts';
import { HttpCall } from '../shared/http-call.ts';
import { encodingOf, decodeInTurns } from '../shared/content-encoding.ts';
import type { HttpRoom } from '../shared/http-listener.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import type { Overtaken } from '../shared/stream-lease.ts';
import { noTerms, type Terms, timeOfTerms, withTerm } from '../shared/session-terms.ts';
import { boltCodeOf } from './errors.ts';
import { arrayOf, graphText, metaText, namesOf, objectForms, rowForms, rowPieces } from './json-answers.ts';

export const doorName = 'graph-http';
/** A request has at most so many bytes. */
export const bodyBytesMax = 4 << 20;
const requestStatementsMax = 100;

export interface GraphHttpOptions extends DoorDependencies {
  readonly settings: Pick<Settings, 'SERVICE_GRAPH_HTTP_PORT' | 'SERVICE_GRAPH_BINARY_PORT' | 'SERVICE_DRAIN_TIMEOUT_SECS'>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

export type GraphHttpSetup = GraphHttpOptions & HttpRoom;

const statementSchema = z.strictObject({
  statement: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  includeStats: z.boolean().optional(),
  resultDataContents: z
    .array(z.enum(['row', 'ROW', 'graph', 'GRAPH']))
    .max(2)
    .optional(),
});
const statementsSchema = z.strictObject({ statements: z.array(statementSchema).max(requestStatementsMax).optional() });
const questionSchema = z.strictObject({
  statement: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  includeCounters: z.boolean().optional(),
  accessMode: z.enum(['READ', 'WRITE', 'Read', 'Write']).optional(),
  bookmarks: z.array(z.string()).max(100).optional(),
});

type CypherStatement = Pick<z.output<typeof statementSchema>, 'statement' | 'parameters'>;

/** Two requests of one transaction at once would see, or end, each other's halves. */
const transactionsInUse = new WeakSet<Transaction>();

export class GraphRequest {
  readonly #graphParts: GraphHttpSetup;
  readonly #httpCall: HttpCall;
  readonly #waitsForContinue: boolean;
  #requestTerms: Terms = noTerms;

  /** `waitsForContinue`: the client sends its body only after `100 Continue`. */
  constructor(graphParts: GraphHttpSetup, httpRequest: IncomingMessage, httpResponse: ServerResponse, waitsForContinue: boolean) {
    this.#graphParts = graphParts;
    this.#httpCall = new HttpCall(graphParts, doorName, httpRequest, httpResponse);
    this.#waitsForContinue = waitsForContinue;
  }

  async run(): Promise<void> {
    const { raw: httpRequest } = this.#httpCall;
    try {
      const graphPath = (httpRequest.url ?? '/').replace(/\?.*$/s, '').replace(/(.)\/$/, '$1');
      if (graphPath === '/') return this.#replyDiscovery();
      const pathMatch = /^\/db\/([^/]{1,600})\/(tx|query\/v2)(?:\/([^/]{1,100}))?(?:\/(commit))?$/.exec(graphPath);
      if (pathMatch === null)
        throw new ServiceError('REL_NOT_FOUND', 'there is /db/{name}/tx/commit, /db/{name}/tx and /db/{name}/query/v2');
      const [, databaseName, resourceKind, transactionId, commitSegment] = pathMatch;
      this.#httpCall.admit(httpRequest.method === 'DELETE' ? 'delete' : 'query');
      this.#knowCaller(decodeDatabaseName(databaseName!));
      if (resourceKind === 'query/v2' && transactionId === undefined) return await this.#askQuestion();
      if (resourceKind !== 'tx') throw new ServiceError('REL_NOT_IMPLEMENTED', 'transactions are at /db/{name}/tx');
      await this.#runTransaction(transactionId, commitSegment !== undefined);
    } catch (requestError) {
      await this.#replyErrors(requestError);
    } finally {
      this.#httpCall.end();
    }
  }

  #replyDiscovery(): void {
    const { SERVICE_GRAPH_BINARY_PORT: boltPort } = this.#graphParts.settings;
    const httpHost = this.#httpCall.raw.headers.host ?? '127.0.0.1';
    const httpScheme = this.#graphParts.tls === null ? 'http' : 'https';
    const hostName = httpHost.replace(/:\d+$/, '');
    this.#replyJson(200, {
      bolt_routing: `neo4j://${hostName}:${boltPort}`,
      bolt_direct: `bolt://${hostName}:${boltPort}`,
      transaction: `${httpScheme}://${httpHost}/db/{databaseName}/tx`,
      query: `${httpScheme}://${httpHost}/db/{databaseName}/query/v2`,
      neo4j_version: '5.13.0',
      neo4j_edition: 'community',
    });
  }

  /** Throws for a credential that is none, and for headers that state what there is not. */
  #knowCaller(databaseName: string): void {
    const basicCredentials = basicCredential(this.#requestHeader('authorization'));
    if (basicCredentials === null)
      throw new ServiceError('REL_UNAUTHENTICATED', 'the request carries no credential: basic authentication');
    const { user: graphUser, password: graphPassword } = basicCredentials;
    if (graphPassword === null) throw new ServiceError('REL_UNAUTHENTICATED', 'the credential is a user and a password');
    const organization = this.#requestHeader('x-organization-id') ?? organizationOf(graphUser);
    const callerFacts = { door: doorName, clientIp: this.#httpCall.clientIp, organization };
    const graphCaller: Caller = this.#graphParts.authenticator.passwordCaller(graphPassword, callerFacts);
    checkOrganization(this.#graphParts, graphCaller);
    this.#httpCall.know({ ...graphCaller, branch: databaseName === 'neo4j' ? 'main' : databaseName });
    for (const termName of Object.keys(noTerms)) {
      const termValue = this.#requestHeader(`x-service-${termName.replaceAll('_', '-')}`);
      if (termValue !== null && termName !== 'branch') this.#requestTerms = withTerm(this.#requestTerms, termName, termValue);
    }
  }

  #requestHeader(headerName: string): string | null {
    const headerValue = this.#httpCall.raw.headers[headerName];
    return typeof headerValue === 'string' && headerValue !== '' ? headerValue : null;
  }

  async #askQuestion(): Promise<void> {
    this.#checkMethod('POST');
    const questionBody = await this.#readBody(questionSchema);
    const isReadOnly = questionBody.accessMode?.toUpperCase() === 'READ';
    const executedQuestion = await this.#executeCypher(questionBody, null, isReadOnly);
    const { answer: questionAnswer } = executedQuestion;
    const countersText = questionBody.includeCounters === true ? `,"counters":${statementCounters(executedQuestion, true)}` : '';
    const notificationsList = (questionAnswer.notices ?? []).map((description) => ({
      code: noticeCode,
      description,
      severity: 'INFORMATION',
    }));
    const answerTail = `]}${countersText}${notificationsList.length > 0 ? `,"notifications":${JSON.stringify(notificationsList)}` : ''},"bookmarks":[]}`;
    await this.#sendAnswer(202, questionAnswer, function* () {
      yield `{"data":{"fields":${namesOf(questionAnswer)},"values":[`;
      yield* rowPieces(questionAnswer, (answerRow) => arrayOf(answerRow, objectForms));
      yield answerTail;
    });
  }

  async #runTransaction(transactionId: string | undefined, isCommit: boolean): Promise<void> {
    const { gate } = this.#graphParts;
    if (transactionId === undefined) {
      this.#checkMethod('POST');
      return this.#answerStatements(gate.begin(this.#httpCall.caller), 'open');
    }
    if (transactionId === 'commit' && !isCommit) {
      this.#checkMethod('POST');
      return this.#answerStatements(null, 'commit');
    }
    const openTransaction = gate.transaction(transactionId, this.#httpCall.caller);
    if (this.#httpCall.raw.method === 'DELETE' && !isCommit) {
      openTransaction.end();
      return this.#replyJson(200, { results: [], errors: [] });
    }
    this.#checkMethod('POST');
    await this.#answerStatements(openTransaction, isCommit ? 'commit' : 'stays');
  }

  /** Statements one after the other; the first that is refused ends the transaction, and nothing of it is written. */
  async #answerStatements(openTransaction: Transaction | null, transactionFate: 'open' | 'stays' | 'commit'): Promise<void> {
    const { gate } = this.#graphParts;
    const { statements: askedStatements = [] } = await this.#readBody(statementsSchema);
    // A single statement needs no transaction.
    const usedTransaction = openTransaction ?? (askedStatements.length > 1 ? gate.begin(this.#httpCall.caller) : null);
    if (openTransaction !== null && transactionsInUse.has(openTransaction))
      throw new ServiceError('REL_CONFLICT', 'a request of this transaction is not answered yet: send one after the other');
    if (usedTransaction !== null) transactionsInUse.add(usedTransaction);
    const executedStatements: { readonly executed: Executed; readonly stats: boolean; readonly shows: readonly string[] }[] = [];
    let transactionRefusal: ServiceError | null = null;
    try {
      for (const askedStatement of askedStatements)
        executedStatements.push({
          executed: await this.#executeCypher(askedStatement, usedTransaction, false),
          stats: askedStatement.includeStats === true,
          shows: (askedStatement.resultDataContents ?? ['row']).map((contentName) => contentName.toLowerCase()),
        });
      if (transactionFate === 'commit' && usedTransaction !== null) await this.#commitTransaction(usedTransaction);
    } catch (statementError) {
      transactionRefusal = await this.#httpCall.refusal(statementError);
      usedTransaction?.end();
      if (transactionRefusal === null) return;
    } finally {
      if (usedTransaction !== null) transactionsInUse.delete(usedTransaction);
    }
    const answerErrors =
      transactionRefusal === null ? [] : [{ code: boltCodeOf(transactionRefusal), message: transactionRefusal.message }];
    const staysOpen = transactionRefusal === null && transactionFate !== 'commit' && usedTransaction !== null;
    const answerTail = `],"errors":${JSON.stringify(answerErrors)}${staysOpen ? this.#openTransactionText(usedTransaction) : ''},"lastBookmarks":[]}`;
    if (transactionFate === 'open' && staysOpen)
      this.#httpCall.response.setHeader('location', this.#transactionUrl(usedTransaction));
    const statementAnswers = executedStatements.map(({ executed: executedStatement }) => executedStatement.answer);
    const anyOvertaken = { overtaken: () => statementAnswers.some((each) => each.overtaken()) };
    await this.#sendAnswer(transactionFate === 'open' && staysOpen ? 201 : 200, anyOvertaken, function* () {
      yield '{"results":[';
      for (const [i, { executed: executedStatement, stats: hasStats, shows: shownContents }] of executedStatements.entries()) {
        yield `${i === 0 ? '' : ','}{"columns":${namesOf(executedStatement.answer)},"data":[`;
        yield* rowPieces(executedStatement.answer, (answerRow) => {
          const rowParts = [
            ...(shownContents.includes('row') ? [`"row":${arrayOf(answerRow, rowForms)},"meta":${metaText(answerRow)}`] : []),
            ...(shownContents.includes('graph') ? [`"graph":${graphText(answerRow)}`] : []),
          ];
          return `{${rowParts.join(',')}}`;
        });
        yield hasStats ? `],"stats":${statementCounters(executedStatement, false)}}` : ']}';
      }
      yield answerTail;
    });
  }

  #openTransactionText(openTransaction: Transaction): string {
    const expiresText = new Date(Number(this.#graphParts.clock.now() / 1_000_000n) + openTransaction.idleMs).toUTCString();
    return `,"commit":${JSON.stringify(`${this.#transactionUrl(openTransaction)}/commit`)},"transaction":{"expires":${JSON.stringify(expiresText)}}`;
  }

  #transactionUrl({ id: transactionId, caller }: Transaction): string {
    const httpHost = this.#httpCall.raw.headers.host ?? '127.0.0.1';
    const databaseName = caller.branch === 'main' ? 'neo4j' : encodeURIComponent(caller.branch);
    return `${this.#graphParts.tls === null ? 'http' : 'https'}://${httpHost}/db/${databaseName}/tx/${transactionId}`;
  }

  #executeCypher(
    { statement: cypherText, parameters: cypherParameters = {} }: CypherStatement,
    statementTransaction: Transaction | null,
    isReadOnly: boolean,
  ): Promise<Executed> {
    const { planner } = this.#graphParts;
    const requestTerms = this.#requestTerms;
    checkText(cypherText, 'the statement');
    const cypherQuestion = {
      sql: cypherText,
      dialect: 'graph',
      parameters: cypherParametersOf(cypherParameters),
      time: timeOfTerms(requestTerms),
      purpose: requestTerms.purpose,
      signal: this.#httpCall.signal,
    } as const;
    return this.#httpCall.invoke(
      'query',
      requestTerms,
      async (invocation) =>
        // Past states are read, never written.
        isReadOnly || cypherQuestion.time !== 'current'
          ? { answer: await planner.query(invocation, { ...cypherQuestion, queriesOnly: true }), written: null }
          : planner.execute(invocation, { ...cypherQuestion, sync: requestTerms.durability === 'sync', graph: true }),
      statementTransaction === null ? {} : { transaction: statementTransaction },
    );
  }

  async #commitTransaction(committedTransaction: Transaction): Promise<void> {
    const sync = this.#requestTerms.durability === 'sync';
    await this.#httpCall.invoke(
      committedTransaction.isEmpty ? 'query' : 'ingest',
      this.#requestTerms,
      (invocation) => invocation.commit({ sync }),
      {
        transaction: committedTransaction,
      },
    );
    committedTransaction.end();
  }

  async #readBody<T>(bodySchema: z.ZodType<T>): Promise<T> {
    const { raw: httpRequest, response } = this.#httpCall;
    if (this.#waitsForContinue) response.writeContinue();
    const bodyPieces: Uint8Array[] = [];
    let bodyBytes = 0;
    const bodyLimits = { bodies: this.#graphParts.bodies, bodyLimitBytes: bodyBytesMax };
    for await (const bodyPiece of decodeInTurns(
      bodyLimits,
      this.#graphParts.bodies.stream(httpRequest),
      encodingOf(httpRequest),
    )) {
      bodyPieces.push(bodyPiece);
      bodyBytes += bodyPiece.length;
      if (bodyBytes > bodyBytesMax) throw new ServiceError('REL_TOO_LARGE', `a request has at most ${bodyBytesMax} bytes`);
    }
    const bodyText = Buffer.concat(bodyPieces).toString();
    const checkedBody = check(bodySchema, bodyText.trim() === '' ? {} : parseGraphBody(bodyText));
    if (checkedBody.success) return checkedBody.data;
    const [schemaIssue] = checkedBody.issues;
    throw new ServiceError('REL_INVALID', `the body: ${schemaIssue!.path.join('.')}: ${schemaIssue!.message}`);
  }

  #checkMethod(onlyMethod: string): void {
    if (this.#httpCall.raw.method !== onlyMethod) throw new ServiceError('REL_METHOD', `${onlyMethod} is the only method here`);
  }

  async #sendAnswer(httpStatus: number, sentAnswer: Overtaken, jsonPieces: () => Generator<string, void>): Promise<void> {
    const { response: httpResponse, caller, id } = this.#httpCall;
    httpResponse.writeHead(httpStatus, { 'content-type': 'application/json; charset=utf-8' });
    const answerBody = new AnswerBody(
      this.#graphParts,
      { id, route: doorName, caller, overtaken: () => sentAnswer.overtaken() },
      httpResponse,
    );
    await answerBody.sendAll(encodeJsonTexts(jsonPieces()));
  }

  #replyJson(httpStatus: number, replyValue: unknown): void {
    const replyBody = Buffer.from(JSON.stringify(replyValue));
    this.#httpCall.response.writeHead(httpStatus, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': replyBody.length,
    });
    this.#httpCall.response.end(this.#httpCall.raw.method === 'HEAD' ? undefined : replyBody);
  }

  async #replyErrors(requestError: unknown): Promise<void> {
    const { response: httpResponse } = this.#httpCall;
    const graphRefusal = await this.#httpCall.refusal(requestError);
    if (graphRefusal === null) return;
    if (httpResponse.headersSent) return void httpResponse.destroy();
    if (graphRefusal.facts.retryAfterSecs !== undefined)
      httpResponse.setHeader('retry-after', String(graphRefusal.facts.retryAfterSecs));
    if (graphRefusal.kind === 'unauthenticated')
      httpResponse.setHeader('www-authenticate', 'Basic realm="Annals", charset="UTF-8"');
    this.#replyJson(errorCodesOf(graphRefusal.code).http, {
      errors: [{ code: boltCodeOf(graphRefusal), message: graphRefusal.message }],
    });
  }
}

const noticeCode = 'Neo.ClientNotification.Statement.Notice';

function* encodeJsonTexts(jsonTexts: Iterable<string>): Generator<Uint8Array, void> {
  for (const jsonText of jsonTexts) yield Buffer.from(jsonText);
}

/** Counters in the words of the transactional interface, or of the query interface. Operations that don't exist here count 0. */
function statementCounters({ written: writtenCounts }: Pick<Executed, 'written'>, isQuery: boolean): string {
  const { nodes: nodesCreated = 0, relationships = 0, properties = 0 } = writtenCounts?.graph ?? {};
  const graphCounts = {
    containsUpdates: writtenCounts !== null && writtenCounts.inserted + writtenCounts.updated + writtenCounts.deleted > 0,
    nodesCreated: nodesCreated,
    nodesDeleted: 0,
    propertiesSet: properties,
    relationshipsCreated: relationships,
    ...(isQuery ? { relationshipsDeleted: 0 } : { relationshipDeleted: 0 }),
    labelsAdded: nodesCreated,
    labelsRemoved: 0,
    indexesAdded: 0,
    indexesRemoved: 0,
    constraintsAdded: 0,
    constraintsRemoved: 0,
    containsSystemUpdates: false,
    systemUpdates: 0,
  };
  const memberName = (counterName: string): string =>
    isQuery ? counterName : counterName.replaceAll(/[A-Z]/g, (upperLetter) => `_${upperLetter.toLowerCase()}`);
  return JSON.stringify(
    Object.fromEntries(Object.entries(graphCounts).map(([counterName, counterValue]) => [memberName(counterName), counterValue])),
  );
}

function decodeDatabaseName(encodedName: string): string {
  try {
    return decodeURIComponent(encodedName);
  } catch {
    throw new ServiceError('REL_INVALID', 'the name of the database is not UTF-8');
  }
}

function parseGraphBody(bodyText: string): unknown {
  try {
    return parseExactJson(bodyText);
  } catch (bodyError) {
    throw bodyError instanceof ServiceError
      ? bodyError
      : new ServiceError('REL_INVALID', 'the body is not JSON', { cause: bodyError });
  }
}

/** Lists and maps are json; integers are exact. */
function cypherParametersOf(cypherParameters: Readonly<Record<string, unknown>>): ReadonlyMap<string, Literal | TypedValue> {
  return new Map(
    Object.entries(cypherParameters).map(([parameterName, parameterValue]) => [
      parameterName,
      cypherParameterOf(parameterName, parameterValue),
    ]),
  );
}

function cypherParameterOf(parameterName: string, parameterValue: unknown): Literal | TypedValue {
  if (parameterValue === null || typeof parameterValue === 'boolean' || typeof parameterValue === 'bigint') return parameterValue;
  if (typeof parameterValue === 'string') {
    checkText(parameterValue, `$${parameterName}`);
    return parameterValue;
  }
  if (typeof parameterValue === 'number') return Number.isSafeInteger(parameterValue) ? BigInt(parameterValue) : parameterValue;
  return new TypedValue('json', exactJson(parameterValue));
}
