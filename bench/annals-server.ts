/** The built server as users run it: its own process on its own core, durable commits, one token. */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { everyCore, pinned, serverCore, start, stop } from './processes.ts';

const bin = fileURLToPath(new URL('../bin/annals', import.meta.url));

/** A body in pieces is sent as its reader takes it. */
type Body = string | Buffer | Iterable<Buffer>;

/** Limits that a closed loop would run into; printed with the figures. */
export const raisedLimits = {
  SERVICE_RATE_LIMIT_RPS: '100000000',
  SERVICE_READ_RATE_LIMIT_RPS: '100000000',
  SERVICE_MEMORY_RATE_LIMIT_RPS: '100000000',
  SERVICE_QUERY_QUOTA: '1000000000000',
  SERVICE_MAX_INFLIGHT_QUERIES: '1000',
  SERVICE_MAX_RUNNING_QUERIES: '1000',
  SERVICE_MAX_SCANNED_ROWS: '1000000000',
  SERVICE_QUERY_TIMEOUT_SECS: '600',
} as const;

export interface StartOptions {
  /** One core unless said otherwise. */
  readonly cores?: 'one' | 'all';
  readonly settings?: Readonly<Record<string, string>>;
  /** Instead of the built server: a program of the same manners, and its arguments. */
  readonly program?: readonly string[];
}

const startTimeoutMs = 600_000;

export class AnnalsServer {
  readonly port: number;
  readonly dataDirectory: string;
  readonly token: string;
  /** From the start of the process to the first 200 of /health. */
  readonly startSeconds: number;
  readonly #admin: string;
  readonly #child: ChildProcess;

  private constructor(
    port: number,
    dataDirectory: string,
    token: string,
    admin: string,
    startSeconds: number,
    child: ChildProcess,
  ) {
    this.port = port;
    this.dataDirectory = dataDirectory;
    this.token = token;
    this.startSeconds = startSeconds;
    this.#admin = admin;
    this.#child = child;
  }

  /** On the data directory `name` of `parent`, which may be there already. */
  static async start(parent: string, name: string, port: number, options: StartOptions = {}): Promise<AnnalsServer> {
    const dataDirectory = join(parent, name);
    const admin = randomBytes(16).toString('hex');
    const env = {
      PATH: process.env['PATH'] ?? '',
      SERVICE_DATA_DIR: dataDirectory,
      SERVICE_PORT: String(port),
      SERVICE_ADMIN_BIND: `127.0.0.1:${port + 1}`,
      SERVICE_ADMIN_TOKEN: admin,
      SERVICE_WAL_SYNC: 'always',
      SERVICE_KV_PORT: '0',
      SERVICE_COLUMNAR_HTTP_PORT: '0',
      SERVICE_COLUMNAR_NATIVE_PORT: '0',
      SERVICE_DOCUMENT_PORT: '0',
      SERVICE_OBJECT_PORT: '0',
      SERVICE_GRPC_PORT: '0',
      SERVICE_FLIGHT_PORT: '0',
      SERVICE_GRAPH_HTTP_PORT: '0',
      SERVICE_GRAPH_BINARY_PORT: '0',
      ...raisedLimits,
      ...options.settings,
    };
    const began = performance.now();
    const command = options.program ? [process.execPath, ...options.program] : [bin, 'serve'];
    const child = start(pinned(options.cores === 'all' ? everyCore : serverCore, command), { env });
    let said = '';
    child.stderr!.on('data', (bytes: Buffer) => (said += bytes.toString()));
    child.stdout!.resume();
    while (!(await answers(port))) {
      if (child.exitCode !== null || performance.now() - began > startTimeoutMs)
        throw new Error(`the server did not start: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const startSeconds = (performance.now() - began) / 1000;
    const reply = await fetch(`http://127.0.0.1:${port + 1}/admin/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
      body: '{}',
    });
    const minted = (await reply.json()) as { token?: string };
    if (!minted.token) throw new Error(`no token: ${JSON.stringify(minted)}`);
    return new AnnalsServer(port, dataDirectory, minted.token, admin, startSeconds, child);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get headers(): Record<string, string> {
    return { authorization: `Bearer ${this.token}`, 'x-service-purpose': 'analytics' };
  }

  /** On the admin listener: GET without a body. */
  async admin<T>(path: string, body?: object): Promise<T> {
    const headers = { authorization: `Bearer ${this.#admin}`, 'content-type': 'application/json' };
    const reply = await fetch(`http://127.0.0.1:${this.port + 1}${path}`, {
      method: body ? 'POST' : 'GET',
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${(await reply.text()).slice(0, 1000)}`);
    return (await reply.json()) as T;
  }

  async request(path: string, body: Body, contentType = 'application/json'): Promise<string> {
    const headers = { ...this.headers, 'content-type': contentType };
    const sent = httpRequest({ host: '127.0.0.1', port: this.port, path, method: 'POST', headers });
    const replied = new Promise<{ status: number; text: string }>((resolve, reject) => {
      sent.on('error', reject);
      sent.once('response', (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.once('error', reject);
        response.once('end', () => resolve({ status: response.statusCode!, text: Buffer.concat(pieces).toString() }));
      });
    });
    replied.catch(() => undefined);
    for (const piece of piecesOf(body)) {
      if (sent.destroyed) break;
      if (!sent.write(piece)) await Promise.race([once(sent, 'drain'), replied]);
    }
    sent.end();
    const { status, text } = await replied;
    if (status >= 300) throw new Error(`${path}: ${status} ${text.slice(0, 1000)}`);
    return text;
  }

  /** The reply to a statement, milliseconds until it was there, and how many of them the server says it took. */
  async query(sql: string): Promise<{ text: string; ms: number; insideMs: number }> {
    const began = performance.now();
    const text = await this.request('/query', JSON.stringify({ sql }));
    const ms = performance.now() - began;
    return { text, ms, insideMs: Number(/"processing_time_ms":([\d.]+)/.exec(text)![1]) };
  }

  /** Rows accepted of an NDJSON body; throws when one was not. */
  async ingest(type: string, body: Body, rows: number, route = '/ingest/bulk'): Promise<void> {
    const text = await this.request(`${route}?object_type=${type}`, body, 'application/x-ndjson');
    const reply = JSON.parse(text) as { accepted: number };
    if (reply.accepted !== rows) throw new Error(`${reply.accepted} of ${rows} rows accepted: ${text.slice(0, 1000)}`);
  }

  async registerOrders(name = 'Purchase'): Promise<void> {
    const text = { type: 'string' };
    const properties = {
      id: text,
      customer: text,
      region: text,
      category: text,
      amount: { type: 'number' },
      quantity: { type: 'integer' },
      placed: { type: 'integer' },
      paid: { type: 'boolean' },
      note: text,
    };
    await this.request('/types', JSON.stringify({ name, properties, primary_key: 'id' }));
  }

  async stop(): Promise<void> {
    await stop(this.#child);
  }
}

const pieceBytes = 1 << 20;

function* piecesOf(body: Body): Generator<Buffer | string> {
  if (typeof body === 'string') yield body;
  else if (Buffer.isBuffer(body)) for (let i = 0; i < body.length; i += pieceBytes) yield body.subarray(i, i + pieceBytes);
  else yield* body;
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
}
