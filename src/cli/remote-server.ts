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
export function remoteOf(remoteOptions: RemoteOptions, env: NodeJS.ProcessEnv): Remote | null {
  const serverUrl = remoteOptions.url ?? env['ANNALS_URL'];
  if (serverUrl === undefined || serverUrl === '') return null;
  if (!/^https?:\/\//.test(serverUrl))
    throw new ConfigError(`--url: ${JSON.stringify(serverUrl)} must start with http:// or https://`);
  const bearerToken = remoteOptions.token ?? env['ANNALS_TOKEN'];
  return {
    url: withoutTrailing(serverUrl, '/'),
    headers: {
      ...(bearerToken ? { authorization: `Bearer ${bearerToken}` } : {}),
      ...(remoteOptions.organization ? { 'x-organization-id': remoteOptions.organization } : {}),
    },
  };
}

/** Sends one request; the parsed JSON reply with the members that it must have, or a RemoteError. */
export async function request(
  remote: Remote,
  httpMethod: string,
  routePath: string,
  expectedMembers: readonly string[],
  requestBody?: string | Readable,
  contentType = 'application/json',
): Promise<unknown> {
  const serverResponse = await sendToServer(remote, routePath, {
    method: httpMethod,
    headers: { ...remote.headers, ...(requestBody === undefined ? {} : { 'content-type': contentType }) },
    body: requestBody,
  });
  const serverReply = parseReplyJson(await readReplyText(remote, serverResponse));
  // Where nothing of the answer is read, that there is one is enough.
  if (expectedMembers.length === 0) return serverReply;
  if (typeof serverReply === 'object' && serverReply !== null && expectedMembers.every((memberName) => memberName in serverReply))
    return serverReply;
  throw new RemoteError(`${remote.url}${routePath} answers, but not as Annals does: does --url name its listener?`);
}

function parseReplyJson(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

async function readReplyText(remote: Remote, serverResponse: IncomingMessage): Promise<string> {
  const replyPieces: Uint8Array[] = [];
  try {
    for await (const replyPiece of serverResponse) replyPieces.push(replyPiece as Uint8Array);
    return Buffer.concat(replyPieces).toString('utf8');
  } catch (replyError) {
    throw brokenReplyError(remote, replyError);
  }
}

const brokenReplyError = (remote: Remote, replyError: unknown): RemoteError =>
  new RemoteError(`${remote.url} broke off in the middle of the answer: ${(replyError as Error).message}`);

/** The reply to a GET as it comes. Throws a RemoteError, also when it breaks off in the middle. */
export async function* download(remote: Remote, routePath: string): AsyncGenerator<Uint8Array, void> {
  const serverResponse = await sendToServer(remote, routePath, { method: 'GET', headers: remote.headers, body: undefined });
  try {
    yield* serverResponse as AsyncIterable<Uint8Array>;
  } catch (downloadError) {
    throw brokenReplyError(remote, downloadError);
  }
}

interface HttpRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable | undefined;
}

/** By node:http, loaded where it is used: `fetch` takes 30 ms of CPU before its first request. */
async function sendToServer(remote: Remote, routePath: string, httpRequest: HttpRequest): Promise<IncomingMessage> {
  let serverResponse: IncomingMessage;
  try {
    serverResponse = await sendRequest(new URL(remote.url + routePath), httpRequest);
  } catch (error) {
    throw new RemoteError(`${remote.url} does not answer: ${connectionFailureReason(error)}`);
  }
  const httpStatus = serverResponse.statusCode ?? 0;
  if (httpStatus < 200 || httpStatus > 299)
    throw new RemoteError(problemText(httpStatus, await readReplyText(remote, serverResponse)));
  return serverResponse;
}

async function sendRequest(url: URL, { method, headers, body: requestBody }: HttpRequest): Promise<IncomingMessage> {
  const { request: openRequest } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  return await new Promise((resolve, reject) => {
    const clientRequest = openRequest(url, { method, headers }, resolve);
    clientRequest.on('error', reject);
    if (requestBody === undefined || typeof requestBody === 'string') clientRequest.end(requestBody);
    else pipeline(requestBody, clientRequest).catch(reject);
  });
}

/** Why the first address of a name did not answer. */
function connectionFailureReason(connectionError: unknown): string {
  const firstError: unknown = connectionError instanceof AggregateError ? connectionError.errors[0] : connectionError;
  return firstError instanceof Error ? firstError.message : String(firstError);
}

function problemText(httpStatus: number, problemBody: string): string {
  try {
    const problemRecord = JSON.parse(problemBody) as { type?: string; detail?: string; correlation_id?: string };
    if (problemRecord.detail !== undefined)
      return `${problemRecord.detail} (${httpStatus} ${problemRecord.type ?? ''}, correlation ${problemRecord.correlation_id ?? 'unknown'})`;
  } catch {
    // Not a problem record: a proxy between us and the server answered.
  }
  return `the server answered ${httpStatus}: ${problemBody.slice(0, 200)}`;
}
