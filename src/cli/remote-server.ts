/** A running server as the commands reach it: HTTP with a bearer token; problem records become one line. */
import { ConfigError } from '../errors.ts';
import type { IncomingMessage } from 'node:http';
import { type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseExactJson } from '../doors/shared/read-exact-json.ts';
import { RemoteError } from './exit-codes.ts';
import { withoutTrailing } from '../log/values/trim-end.ts';

export interface RemoteOptions {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly organization?: string | undefined;
}

export interface Remote {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The server that flags or environment name, or null when the command works on a data directory. */
export function remoteOf(options: RemoteOptions, env: NodeJS.ProcessEnv): Remote | null {
  const url = options.url ?? env['ANNALS_URL'];
  if (url === undefined || url === '') return null;
  if (!/^https?:\/\//.test(url)) throw new ConfigError(`--url: ${JSON.stringify(url)} must start with http:// or https://`);
  const token = options.token ?? env['ANNALS_TOKEN'];
  return {
    url: withoutTrailing(url, '/'),
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(options.organization ? { 'x-organization-id': options.organization } : {}),
    },
  };
}

/** Sends one request; the parsed JSON reply with the members that it must have, or a RemoteError. */
export async function request(
  remote: Remote,
  method: string,
  path: string,
  members: readonly string[],
  body?: string | Readable,
  contentType = 'application/json',
): Promise<unknown> {
  const response = await send(remote, path, {
    method,
    headers: { ...remote.headers, ...(body === undefined ? {} : { 'content-type': contentType }) },
    body,
  });
  const reply = parseJson(await textOf(remote, response));
  // Where nothing of the answer is read, that there is one is enough.
  if (members.length === 0) return reply;
  if (typeof reply === 'object' && reply !== null && members.every((name) => name in reply)) return reply;
  throw new RemoteError(`${remote.url}${path} answers, but not as Annals does: does --url name its listener?`);
}

function parseJson(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

async function textOf(remote: Remote, response: IncomingMessage): Promise<string> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of response) pieces.push(piece as Uint8Array);
    return Buffer.concat(pieces).toString('utf8');
  } catch (error) {
    throw brokeOff(remote, error);
  }
}

const brokeOff = (remote: Remote, error: unknown): RemoteError =>
  new RemoteError(`${remote.url} broke off in the middle of the answer: ${(error as Error).message}`);

/** The reply to a GET as it comes. Throws a RemoteError, also when it breaks off in the middle. */
export async function* download(remote: Remote, path: string): AsyncGenerator<Uint8Array, void> {
  const response = await send(remote, path, { method: 'GET', headers: remote.headers, body: undefined });
  try {
    yield* response as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw brokeOff(remote, error);
  }
}

interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable | undefined;
}

/** By node:http, loaded where it is used: `fetch` takes 30 ms of CPU before its first request. */
async function send(remote: Remote, path: string, sent: Sent): Promise<IncomingMessage> {
  let response: IncomingMessage;
  try {
    response = await sendRequest(new URL(remote.url + path), sent);
  } catch (error) {
    throw new RemoteError(`${remote.url} does not answer: ${reasonOf(error)}`);
  }
  const status = response.statusCode ?? 0;
  if (status < 200 || status > 299) throw new RemoteError(problemLine(status, await textOf(remote, response)));
  return response;
}

async function sendRequest(url: URL, { method, headers, body }: Sent): Promise<IncomingMessage> {
  const { request: open } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  return await new Promise((resolve, reject) => {
    const clientRequest = open(url, { method, headers }, resolve);
    clientRequest.on('error', reject);
    if (body === undefined || typeof body === 'string') clientRequest.end(body);
    else pipeline(body, clientRequest).catch(reject);
  });
}

/** Why the first address of a name did not answer. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}

function problemLine(status: number, text: string): string {
  try {
    const problem = JSON.parse(text) as { type?: string; detail?: string; correlation_id?: string };
    if (problem.detail !== undefined)
      return `${problem.detail} (${status} ${problem.type ?? ''}, correlation ${problem.correlation_id ?? 'unknown'})`;
  } catch {
    // Not a problem record: a proxy between us and the server answered.
  }
  return `the server answered ${status}: ${text.slice(0, 200)}`;
}
