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

export async function mcpCommand(mcpOptions: McpOptions): Promise<number> {
  const mcpServer = remoteOf(mcpOptions, process.env);
  if (mcpServer === null) throw new ConfigError('--url: name a running server, such as http://127.0.0.1:9090 (or ANNALS_URL)');
  const mcpEndpoint: Remote = {
    ...mcpServer,
    headers: {
      ...mcpServer.headers,
      accept: 'application/json, text/event-stream',
      ...(mcpOptions.purpose ? { 'x-service-purpose': mcpOptions.purpose } : {}),
      ...(mcpOptions.branch ? { 'x-service-branch': mcpOptions.branch } : {}),
    },
  };
  const pendingReplies: Promise<void>[] = [];
  for await (const rpcLine of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (rpcLine.trim() !== '') pendingReplies.push(passOnToolCall(mcpEndpoint, rpcLine));
  }
  await Promise.all(pendingReplies);
  return exitCode.ok;
}

/** A notification has no answer. */
async function passOnToolCall(mcpEndpoint: Remote, rpcLine: string): Promise<void> {
  try {
    const rpcReply = await request(mcpEndpoint, 'POST', '/mcp', [], rpcLine);
    if (rpcReply !== undefined) process.stdout.write(`${exactJson(rpcReply)}\n`);
  } catch (error) {
    // A request that can't be passed on is answered here: the client would wait for ever.
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`annals: ${message}\n`);
    const rpcId = rpcIdOf(rpcLine);
    if (rpcId !== undefined)
      process.stdout.write(`${exactJson({ jsonrpc: '2.0', id: rpcId, error: { code: rpcServerError, message } })}\n`);
  }
}

function rpcIdOf(rpcLine: string): unknown {
  try {
    return (parseExactJson(rpcLine) as { readonly id?: unknown } | null)?.id;
  } catch {
    return undefined;
  }
}

/** Source: JSON-RPC 2.0, "Error object": the first of those that a server defines. */
const rpcServerError = -32_000;
