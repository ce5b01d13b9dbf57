/** The built server as users run it: its own process on its own core, fresh data, durable commits, one token. */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pinned, serverCore, start, stop } from './processes.ts';

const bin = fileURLToPath(new URL('../bin/annals', import.meta.url));

type Body = string | Buffer | ReadableStream<Uint8Array>;

/** Limits that a closed loop would run into; printed with the figures. */
export const raisedLimits = {
  SERVICE_RATE_LIMIT_RPS: '100000000',
  SERVICE_READ_RATE_LIMIT_RPS: '100000000',
  SERVICE_QUERY_QUOTA: '1000000000000',
  SERVICE_MAX_INFLIGHT_QUERIES: '1000',
  SERVICE_MAX_SCANNED_ROWS: '1000000000',
  SERVICE_QUERY_TIMEOUT_SECS: '600',
} as const;

export class AnnalsServer {
  readonly port: number;
  readonly dataDirectory: string;
  readonly token: string;
  readonly #child: ChildProcess;

  private constructor(port: number, dataDirectory: string, token: string, child: ChildProcess) {
    this.port = port;
    this.dataDirectory = dataDirectory;
    this.token = token;
    this.#child = child;
  }

  static async start(parent: string, name: string, port: number): Promise<AnnalsServer> {
    const dataDirectory = join(parent, name);
    const admin = randomBytes(16).toString('hex');
    const env = {
      PATH: process.env['PATH'] ?? '',
      SERVICE_DATA_DIR: dataDirectory,
      SERVICE_PORT: String(port),
      SERVICE_ADMIN_BIND: `127.0.0.1:${port + 1}`,
      SERVICE_ADMIN_TOKEN: admin,
      SERVICE_WAL_SYNC: 'always',
      ...raisedLimits,
    };
    const child = start(pinned(serverCore, [process.execPath, bin, 'serve']), { env });
    let said = '';
    child.stderr!.on('data', (bytes: Buffer) => (said += bytes.toString()));
    child.stdout!.resume();
    const authorization = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' };
    for (let attempt = 0; ; attempt++) {
      const ready = await fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (ready) break;
      if (child.exitCode !== null || attempt > 300) throw new Error(`the server did not start: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const reply = await fetch(`http://127.0.0.1:${port + 1}/admin/tokens`, {
      method: 'POST',
      headers: authorization,
      body: '{}',
    });
    const minted = (await reply.json()) as { token?: string };
    if (!minted.token) throw new Error(`no token: ${JSON.stringify(minted)}`);
    return new AnnalsServer(port, dataDirectory, minted.token, child);
  }

  get headers(): Record<string, string> {
    return { authorization: `Bearer ${this.token}`, 'x-service-purpose': 'analytics' };
  }

  async request(path: string, body: Body, contentType = 'application/json'): Promise<string> {
    const reply = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method: 'POST',
      headers: { ...this.headers, 'content-type': contentType },
      body: body as string,
      ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text.slice(0, 1000)}`);
    return text;
  }

  /** Rows accepted of an NDJSON body; throws when one was not. */
  async ingest(type: string, body: Body, rows: number, route = '/ingest/bulk'): Promise<void> {
    const text = await this.request(`${route}?object_type=${type}`, body, 'application/x-ndjson');
    const reply = JSON.parse(text) as { accepted: number };
    if (reply.accepted !== rows) throw new Error(`${reply.accepted} of ${rows} rows accepted: ${text.slice(0, 1000)}`);
  }

  async registerOrders(): Promise<void> {
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
    await this.request('/types', JSON.stringify({ name: 'Purchase', properties, primary_key: 'id' }));
  }

  async stop(): Promise<void> {
    await stop(this.#child);
  }
}
