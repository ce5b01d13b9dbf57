/**
 * `annals mcp`: the tools of a running server for a client that speaks over standard input and output, a message a line. Messages
 * pass as they are, both ways; what each may do, the server decides by the token.
 */
import { createInterface } from 'node:readline';
import { ConfigError } from '../errors.ts';
import { exactJson } from '../doors/shared/write-exact-json.ts';
import { parseExactJson } from '../doors/shared/read-exact-json.ts';
import { exitCode } from './exit-codes.ts';
import { type Remote, type RemoteOptions, remoteOf, request } from './remote-server.ts';

export interface McpOptions extends RemoteOptions {
  readonly purpose?: string | undefined;
  readonly branch?: string | undefined;
}

export async function mcpCommand(options: McpOptions): Promise<number> {
  const remote = remoteOf(options, process.env);
  if (remote === null) throw new ConfigError('--url: name a running server, such as http://127.0.0.1:9090 (or ANNALS_URL)');
  const server: Remote = {
    ...remote,
    headers: {
      ...remote.headers,
      accept: 'application/json, text/event-stream',
      ...(options.purpose ? { 'x-service-purpose': options.purpose } : {}),
      ...(options.branch ? { 'x-service-branch': options.branch } : {}),
    },
  };
  const answers: Promise<void>[] = [];
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim() !== '') answers.push(passOn(server, line));
  }
  await Promise.all(answers);
  return exitCode.ok;
}

/** A notification has no answer. */
async function passOn(server: Remote, line: string): Promise<void> {
  try {
    const reply = await request(server, 'POST', '/mcp', [], line);
    if (reply !== undefined) process.stdout.write(`${exactJson(reply)}\n`);
  } catch (error) {
    // A request that can't be passed on is answered here: the client would wait for ever.
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`annals: ${message}\n`);
    const id = idOf(line);
    if (id !== undefined) process.stdout.write(`${exactJson({ jsonrpc: '2.0', id, error: { code: serverError, message } })}\n`);
  }
}

function idOf(line: string): unknown {
  try {
    return (parseExactJson(line) as { readonly id?: unknown } | null)?.id;
  } catch {
    return undefined;
  }
}

/** Source: JSON-RPC 2.0, "Error object": the first of those that a server defines. */
const serverError = -32_000;
