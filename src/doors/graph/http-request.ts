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
import { check } from '../schemas/schema-check.ts';
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
const statementsMax = 100;

export interface GraphHttpOptions extends DoorDependencies {
  readonly settings: Pick<Settings, 'SERVICE_GRAPH_HTTP_PORT' | 'SERVICE_GRAPH_BINARY_PORT' | 'SERVICE_DRAIN_TIMEOUT_SECS'>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

export type GraphHttpSetup = GraphHttpOptions & HttpRoom;

const statement = z.strictObject({
  statement: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  includeStats: z.boolean().optional(),
  resultDataContents: z
    .array(z.enum(['row', 'ROW', 'graph', 'GRAPH']))
    .max(2)
    .optional(),
});
const statements = z.strictObject({ statements: z.array(statement).max(statementsMax).optional() });
const question = z.strictObject({
  statement: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  includeCounters: z.boolean().optional(),
  accessMode: z.enum(['READ', 'WRITE', 'Read', 'Write']).optional(),
  bookmarks: z.array(z.string()).max(100).optional(),
});

type Statement = Pick<z.output<typeof statement>, 'statement' | 'parameters'>;

/** Two requests of one transaction at once would see, or end, each other's halves. */
const inUse = new WeakSet<Transaction>();

export class GraphRequest {
  readonly #parts: GraphHttpSetup;
  readonly #call: HttpCall;
  readonly #waits: boolean;
  #terms: Terms = noTerms;

  /** `waits`: the client sends its body only after `100 Continue`. */
  constructor(parts: GraphHttpSetup, raw: IncomingMessage, response: ServerResponse, waits: boolean) {
    this.#parts = parts;
    this.#call = new HttpCall(parts, doorName, raw, response);
    this.#waits = waits;
  }

  async run(): Promise<void> {
    const { raw } = this.#call;
    try {
      const path = (raw.url ?? '/').replace(/\?.*$/s, '').replace(/(.)\/$/, '$1');
      if (path === '/') return this.#discovery();
      const match = /^\/db\/([^/]{1,600})\/(tx|query\/v2)(?:\/([^/]{1,100}))?(?:\/(commit))?$/.exec(path);
      if (match === null)
        throw new ServiceError('REL_NOT_FOUND', 'there is /db/{name}/tx/commit, /db/{name}/tx and /db/{name}/query/v2');
      const [, database, kind, id, end] = match;
      this.#call.admit(raw.method === 'DELETE' ? 'delete' : 'query');
      this.#enter(decodeName(database!));
      if (kind === 'query/v2' && id === undefined) return await this.#ask();
      if (kind !== 'tx') throw new ServiceError('REL_NOT_IMPLEMENTED', 'transactions are at /db/{name}/tx');
      await this.#transact(id, end !== undefined);
    } catch (error) {
      await this.#refuse(error);
    } finally {
      this.#call.end();
    }
  }

  #discovery(): void {
    const { SERVICE_GRAPH_BINARY_PORT: port } = this.#parts.settings;
    const host = this.#call.raw.headers.host ?? '127.0.0.1';
    const scheme = this.#parts.tls === null ? 'http' : 'https';
    const name = host.replace(/:\d+$/, '');
    this.#json(200, {
      bolt_routing: `neo4j://${name}:${port}`,
      bolt_direct: `bolt://${name}:${port}`,
      transaction: `${scheme}://${host}/db/{databaseName}/tx`,
      query: `${scheme}://${host}/db/{databaseName}/query/v2`,
      neo4j_version: '5.13.0',
      neo4j_edition: 'community',
    });
  }

  /** Throws for a credential that is none, and for headers that state what there is not. */
  #enter(database: string): void {
    const stated = basicCredential(this.#header('authorization'));
    if (stated === null) throw new ServiceError('REL_UNAUTHENTICATED', 'the request carries no credential: basic authentication');
    const { user, password } = stated;
    if (password === null) throw new ServiceError('REL_UNAUTHENTICATED', 'the credential is a user and a password');
    const organization = this.#header('x-organization-id') ?? organizationOf(user);
    const facts = { door: doorName, clientIp: this.#call.clientIp, organization };
    const caller: Caller = this.#parts.authenticator.passwordCaller(password, facts);
    checkOrganization(this.#parts, caller);
    this.#call.know({ ...caller, branch: database === 'neo4j' ? 'main' : database });
    for (const term of Object.keys(noTerms)) {
      const value = this.#header(`x-service-${term.replaceAll('_', '-')}`);
      if (value !== null && term !== 'branch') this.#terms = withTerm(this.#terms, term, value);
    }
  }

  #header(name: string): string | null {
    const value = this.#call.raw.headers[name];
    return typeof value === 'string' && value !== '' ? value : null;
  }

  async #ask(): Promise<void> {
    this.#checkMethod('POST');
    const given = await this.#body(question);
    const readOnly = given.accessMode?.toUpperCase() === 'READ';
    const executed = await this.#execute(given, null, readOnly);
    const { answer } = executed;
    const stats = given.includeCounters === true ? `,"counters":${counters(executed, true)}` : '';
    const notices = (answer.notices ?? []).map((description) => ({ code: noticeCode, description, severity: 'INFORMATION' }));
    const tail = `]}${stats}${notices.length > 0 ? `,"notifications":${JSON.stringify(notices)}` : ''},"bookmarks":[]}`;
    await this.#send(202, answer, function* () {
      yield `{"data":{"fields":${namesOf(answer)},"values":[`;
      yield* rowPieces(answer, (row) => arrayOf(row, objectForms));
      yield tail;
    });
  }

  async #transact(id: string | undefined, commits: boolean): Promise<void> {
    const { gate } = this.#parts;
    if (id === undefined) {
      this.#checkMethod('POST');
      return this.#answer(gate.begin(this.#call.caller), 'open');
    }
    if (id === 'commit' && !commits) {
      this.#checkMethod('POST');
      return this.#answer(null, 'commit');
    }
    const transaction = gate.transaction(id, this.#call.caller);
    if (this.#call.raw.method === 'DELETE' && !commits) {
      transaction.end();
      return this.#json(200, { results: [], errors: [] });
    }
    this.#checkMethod('POST');
    await this.#answer(transaction, commits ? 'commit' : 'stays');
  }

  /** Statements one after the other; the first that is refused ends the transaction, and nothing of it is written. */
  async #answer(given: Transaction | null, then: 'open' | 'stays' | 'commit'): Promise<void> {
    const { gate } = this.#parts;
    const { statements: asked = [] } = await this.#body(statements);
    // A single statement needs no transaction.
    const transaction = given ?? (asked.length > 1 ? gate.begin(this.#call.caller) : null);
    if (given !== null && inUse.has(given))
      throw new ServiceError('REL_CONFLICT', 'a request of this transaction is not answered yet: send one after the other');
    if (transaction !== null) inUse.add(transaction);
    const done: { readonly executed: Executed; readonly stats: boolean; readonly shows: readonly string[] }[] = [];
    let refused: ServiceError | null = null;
    try {
      for (const each of asked)
        done.push({
          executed: await this.#execute(each, transaction, false),
          stats: each.includeStats === true,
          shows: (each.resultDataContents ?? ['row']).map((name) => name.toLowerCase()),
        });
      if (then === 'commit' && transaction !== null) await this.#commit(transaction);
    } catch (error) {
      refused = await this.#call.refusal(error);
      transaction?.end();
      if (refused === null) return;
    } finally {
      if (transaction !== null) inUse.delete(transaction);
    }
    const errors = refused === null ? [] : [{ code: boltCodeOf(refused), message: refused.message }];
    const isOpen = refused === null && then !== 'commit' && transaction !== null;
    const tail = `],"errors":${JSON.stringify(errors)}${isOpen ? this.#openText(transaction) : ''},"lastBookmarks":[]}`;
    if (then === 'open' && isOpen) this.#call.response.setHeader('location', this.#urlOf(transaction));
    const overtaken = done.map(({ executed }) => executed.answer);
    const anyOvertaken = { overtaken: () => overtaken.some((each) => each.overtaken()) };
    await this.#send(then === 'open' && isOpen ? 201 : 200, anyOvertaken, function* () {
      yield '{"results":[';
      for (const [i, { executed, stats, shows }] of done.entries()) {
        yield `${i === 0 ? '' : ','}{"columns":${namesOf(executed.answer)},"data":[`;
        yield* rowPieces(executed.answer, (row) => {
          const parts = [
            ...(shows.includes('row') ? [`"row":${arrayOf(row, rowForms)},"meta":${metaText(row)}`] : []),
            ...(shows.includes('graph') ? [`"graph":${graphText(row)}`] : []),
          ];
          return `{${parts.join(',')}}`;
        });
        yield stats ? `],"stats":${counters(executed, false)}}` : ']}';
      }
      yield tail;
    });
  }

  #openText(transaction: Transaction): string {
    const expires = new Date(Number(this.#parts.clock.now() / 1_000_000n) + transaction.idleMs).toUTCString();
    return `,"commit":${JSON.stringify(`${this.#urlOf(transaction)}/commit`)},"transaction":{"expires":${JSON.stringify(expires)}}`;
  }

  #urlOf({ id, caller }: Transaction): string {
    const host = this.#call.raw.headers.host ?? '127.0.0.1';
    const name = caller.branch === 'main' ? 'neo4j' : encodeURIComponent(caller.branch);
    return `${this.#parts.tls === null ? 'http' : 'https'}://${host}/db/${name}/tx/${id}`;
  }

  #execute(
    { statement: text, parameters = {} }: Statement,
    transaction: Transaction | null,
    readOnly: boolean,
  ): Promise<Executed> {
    const { planner } = this.#parts;
    const terms = this.#terms;
    checkText(text, 'the statement');
    const asked = {
      sql: text,
      dialect: 'graph',
      parameters: parametersOf(parameters),
      time: timeOfTerms(terms),
      purpose: terms.purpose,
      signal: this.#call.signal,
    } as const;
    return this.#call.invoke(
      'query',
      terms,
      async (invocation) =>
        // Past states are read, never written.
        readOnly || asked.time !== 'current'
          ? { answer: await planner.query(invocation, { ...asked, queriesOnly: true }), written: null }
          : planner.execute(invocation, { ...asked, sync: terms.durability === 'sync', graph: true }),
      transaction === null ? {} : { transaction },
    );
  }

  async #commit(transaction: Transaction): Promise<void> {
    const sync = this.#terms.durability === 'sync';
    await this.#call.invoke(transaction.isEmpty ? 'query' : 'ingest', this.#terms, (invocation) => invocation.commit({ sync }), {
      transaction,
    });
    transaction.end();
  }

  async #body<T>(schema: z.ZodType<T>): Promise<T> {
    const { raw, response } = this.#call;
    if (this.#waits) response.writeContinue();
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    const limits = { bodies: this.#parts.bodies, bodyLimitBytes: bodyBytesMax };
    for await (const piece of decodeInTurns(limits, this.#parts.bodies.stream(raw), encodingOf(raw))) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bodyBytesMax) throw new ServiceError('REL_TOO_LARGE', `a request has at most ${bodyBytesMax} bytes`);
    }
    const text = Buffer.concat(pieces).toString();
    const read = check(schema, text.trim() === '' ? {} : parseBody(text));
    if (read.success) return read.data;
    const [issue] = read.issues;
    throw new ServiceError('REL_INVALID', `the body: ${issue!.path.join('.')}: ${issue!.message}`);
  }

  #checkMethod(method: string): void {
    if (this.#call.raw.method !== method) throw new ServiceError('REL_METHOD', `${method} is the only method here`);
  }

  async #send(status: number, answer: Overtaken, jsonPieces: () => Generator<string, void>): Promise<void> {
    const { response, caller, id } = this.#call;
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
    const body = new AnswerBody(this.#parts, { id, route: doorName, caller, overtaken: () => answer.overtaken() }, response);
    await body.sendAll(encodeTexts(jsonPieces()));
  }

  #json(status: number, value: unknown): void {
    const body = Buffer.from(JSON.stringify(value));
    this.#call.response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length });
    this.#call.response.end(this.#call.raw.method === 'HEAD' ? undefined : body);
  }

  async #refuse(error: unknown): Promise<void> {
    const { response } = this.#call;
    const refusal = await this.#call.refusal(error);
    if (refusal === null) return;
    if (response.headersSent) return void response.destroy();
    if (refusal.facts.retryAfterSecs !== undefined) response.setHeader('retry-after', String(refusal.facts.retryAfterSecs));
    if (refusal.kind === 'unauthenticated') response.setHeader('www-authenticate', 'Basic realm="Annals", charset="UTF-8"');
    this.#json(errorCodesOf(refusal.code).http, { errors: [{ code: boltCodeOf(refusal), message: refusal.message }] });
  }
}

const noticeCode = 'Neo.ClientNotification.Statement.Notice';

function* encodeTexts(texts: Iterable<string>): Generator<Uint8Array, void> {
  for (const text of texts) yield Buffer.from(text);
}

/** Counters in the words of the transactional interface, or of the query interface. Operations that don't exist here count 0. */
function counters({ written }: Pick<Executed, 'written'>, isQuery: boolean): string {
  const { nodes = 0, relationships = 0, properties = 0 } = written?.graph ?? {};
  const counts = {
    containsUpdates: written !== null && written.inserted + written.updated + written.deleted > 0,
    nodesCreated: nodes,
    nodesDeleted: 0,
    propertiesSet: properties,
    relationshipsCreated: relationships,
    ...(isQuery ? { relationshipsDeleted: 0 } : { relationshipDeleted: 0 }),
    labelsAdded: nodes,
    labelsRemoved: 0,
    indexesAdded: 0,
    indexesRemoved: 0,
    constraintsAdded: 0,
    constraintsRemoved: 0,
    containsSystemUpdates: false,
    systemUpdates: 0,
  };
  const memberName = (name: string): string =>
    isQuery ? name : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return JSON.stringify(Object.fromEntries(Object.entries(counts).map(([name, count]) => [memberName(name), count])));
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ServiceError('REL_INVALID', 'the name of the database is not UTF-8');
  }
}

function parseBody(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    throw error instanceof ServiceError ? error : new ServiceError('REL_INVALID', 'the body is not JSON', { cause: error });
  }
}

/** Lists and maps are json; integers are exact. */
function parametersOf(given: Readonly<Record<string, unknown>>): ReadonlyMap<string, Literal | TypedValue> {
  return new Map(Object.entries(given).map(([name, value]) => [name, parameterOf(name, value)]));
}

function parameterOf(name: string, value: unknown): Literal | TypedValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return value;
  if (typeof value === 'string') {
    checkText(value, `$${name}`);
    return value;
  }
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  return new TypedValue('json', exactJson(value));
}
