/**
 * `annals mcp`: the tools of a running server for a client that speaks over standard input and output. Messages pass as they are,
 * both ways; what each may do, the server decides by the token.
 */
import { ConfigError } from '../errors.ts';
import { exitCode } from './exit.ts';
import { type RemoteOptions, remoteOf } from './remote.ts';

export interface McpOptions extends RemoteOptions {
  readonly purpose?: string | undefined;
  readonly branch?: string | undefined;
}

export async function mcpCommand(options: McpOptions): Promise<number> {
  const remote = remoteOf(options, process.env);
  if (remote === null) throw new ConfigError('--url: name a running server, such as http://127.0.0.1:9090 (or ANNALS_URL)');
  const [{ StdioServerTransport }, { StreamableHTTPClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/stdio.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
  ]);
  const headers = {
    ...remote.headers,
    ...(options.purpose ? { 'x-service-purpose': options.purpose } : {}),
    ...(options.branch ? { 'x-service-branch': options.branch } : {}),
  };
  const server = new StreamableHTTPClientTransport(new URL(`${remote.url}/mcp`), { requestInit: { headers } });
  const client = new StdioServerTransport();
  const ended = new Promise<void>((resolve) => {
    client.onclose = resolve;
    process.stdin.once('end', resolve);
  });
  server.onmessage = (message) => void client.send(message);
  client.onmessage = (message) => {
    // A request that can't be passed on is answered here: the client would wait for ever.
    server.send(message).catch((error: unknown) => {
      const what = error instanceof Error ? error.message : String(error);
      process.stderr.write(`annals: ${what}\n`);
      if ('id' in message && 'method' in message) {
        void client.send({ jsonrpc: '2.0', id: message.id, error: { code: serverError, message: what } });
      }
    });
  };
  await server.start();
  await client.start();
  await ended;
  await server.close();
  return exitCode.ok;
}

/** Source: JSON-RPC 2.0, "Error object": the first of those that a server defines. */
const serverError = -32_000;
