/** A running server as the commands reach it: HTTP with a bearer token; problem records become one line. */
import { ConfigError } from '../config.ts';
import { parseExactJson } from './exact-json.ts';

export interface RemoteOptions {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly organization?: string | undefined;
}

/** The server refused or failed: its own words. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';
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
    url: url.replace(/\/+$/, ''),
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
  body?: string | ReadableStream,
  contentType = 'application/json',
): Promise<unknown> {
  const response = await send(remote, path, {
    method,
    headers: { ...remote.headers, ...(body === undefined ? {} : { 'content-type': contentType }) },
    ...(body === undefined ? {} : { body, duplex: 'half' }),
  } as RequestInit);
  const reply = parsed(await textOf(remote, response));
  // Where nothing of the answer is read, that there is one is enough.
  if (members.length === 0) return reply;
  if (typeof reply === 'object' && reply !== null && members.every((name) => name in reply)) return reply;
  throw new RemoteError(`${remote.url}${path} answers, but not as Annals does: does --url name its listener?`);
}

function parsed(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

async function textOf(remote: Remote, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw brokeOff(remote, error);
  }
}

const brokeOff = (remote: Remote, error: unknown): RemoteError =>
  new RemoteError(`${remote.url} broke off in the middle of the answer: ${(error as Error).message}`);

/** The reply to a GET as it comes. Throws a RemoteError, also when it breaks off in the middle. */
export async function* download(remote: Remote, path: string): AsyncGenerator<Uint8Array, void> {
  const { body } = await send(remote, path, { headers: remote.headers });
  if (body === null) return;
  try {
    yield* body as unknown as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw brokeOff(remote, error);
  }
}

async function send(remote: Remote, path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(remote.url + path, init);
  } catch (error) {
    const cause = (error as Error).cause;
    throw new RemoteError(`${remote.url} does not answer: ${cause instanceof Error ? cause.message : (error as Error).message}`);
  }
  if (!response.ok) throw new RemoteError(problemLine(response.status, await textOf(remote, response)));
  return response;
}

function problemLine(status: number, text: string): string {
  try {
    const problem = JSON.parse(text) as { type?: string; detail?: string; correlation_id?: string };
    if (problem.detail !== undefined)
      return `${problem.detail} (${status} ${problem.type ?? ''}, correlation ${problem.correlation_id ?? 'unknown'})`;
  } catch {
    // Not a problem record: whatever stands between us and the server answered.
  }
  return `the server answered ${status}: ${text.slice(0, 200)}`;
}
