/**
 * POST /mcp: JSON-RPC over Streamable HTTP, by the protocol's own SDK. Without sessions: every request stands for itself, so a
 * client may come back to any node. The SDK is loaded when the first client comes.
 *
 * Types are resources (`annals://types/<name>`), and one prompt says how to ask.
 */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { z } from 'zod';
import { assert, type ErrorCode, errorTable, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { FastifyRequest, HttpContext } from '../http/context.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { headerText } from '../http/request-headers.ts';
import { statedBy } from '../http/invoke.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { toServiceError } from '../http/problem.ts';
import { textContent } from '../http/tool-envelope.ts';
import { route, type Route } from '../http/route.ts';
import { howToAsk } from './instructions.ts';
import { jsonRpcProtocolVersion } from './protocol-versions.ts';
import { callTool, toolList } from './tools.ts';

type SdkTypes = typeof import('@modelcontextprotocol/sdk/types.js');

const scheme = 'annals://types/';

const message = z.looseObject({ jsonrpc: z.string() }).meta({ id: 'JsonRpcMessage', description: 'as the protocol has it' });

export const rpcRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/mcp',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'Model Context Protocol: JSON-RPC over Streamable HTTP',
    description:
      'What MCP clients connect to: this URL, and the token as bearer. A header x-service-purpose states the purpose of every call.',
    tags: ['tools'],
    replies: { 200: message, 400: message },
    reads: messageOf,
    example: {
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    },
    handle: async ({ body: sent, request, reply, context }) => {
      const body = (sent ?? new Malformed(parseError, 'the body is empty')) as object;
      if (body instanceof Malformed) {
        await recordInspect(context, request, async () => undefined);
        const { code, message: why } = body;
        return reply.code(400).send({ jsonrpc: '2.0', id: null, error: { code, message: why } });
      }
      const { serverFor, transport } = await loadSdk();
      const server = serverFor(context, request);
      const channel = transport();
      // Messages that don't reach the gate leave an access record too.
      if (!asksGate(body)) await recordInspect(context, request, async () => undefined);
      reply.hijack();
      try {
        await server.connect(channel);
        await channel.handleRequest(request.raw, reply.raw, body);
      } finally {
        reply.raw.once('close', () => void server.close());
      }
      return reply;
    },
  }),
];

/** Source: JSON-RPC 2.0, "Error object". */
const [parseError, invalidRequest] = [-32_700, -32_600];

/** A body that is no message: answered in the protocol's own words. */
class Malformed {
  readonly code: number;
  readonly message: string;

  constructor(code: number, message: string) {
    this.code = code;
    this.message = message;
  }
}

function messageOf(body: Buffer): unknown {
  let messages: unknown;
  try {
    messages = parseJsonBody(body) ?? new Malformed(parseError, 'the body is empty');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return new Malformed(parseError, error.message);
  }
  if (messages instanceof Malformed) return messages;
  if (Array.isArray(messages) && messages.length === 0) return new Malformed(invalidRequest, 'a batch has at least one message');
  const wrong = [messages].flat().map(wrongIn);
  return wrong.find((why) => why !== null) ?? messages;
}

/** The error of a malformed message; null for a request, a notification or a response. */
function wrongIn(each: unknown): Malformed | null {
  if (typeof each !== 'object' || each === null || Array.isArray(each))
    return new Malformed(invalidRequest, 'a message is one JSON object');
  const { jsonrpc, method, id } = each as Readonly<Record<string, unknown>>;
  if (jsonrpc !== '2.0') return new Malformed(invalidRequest, 'jsonrpc: "2.0" is expected');
  if (typeof method !== 'string' && !('result' in each) && !('error' in each))
    return new Malformed(invalidRequest, 'method: the name of a method is expected');
  if (id !== undefined && typeof id !== 'string' && !Number.isSafeInteger(id))
    return new Malformed(invalidRequest, 'id: a text is expected, or an integer up to 2^53');
  return null;
}

const gated: ReadonlySet<unknown> = new Set(['tools/call', 'resources/list', 'resources/read']);

/** Whether a message reaches the gate by itself. */
export function asksGate(body: object): boolean {
  return [body].flat().some((message) => gated.has((message as { readonly method?: unknown } | null)?.method));
}

/** Records an invocation without rows; each message of a request may have one. */
async function recordInspect<T>(
  context: HttpContext,
  request: FastifyRequest,
  run: (invocation: Invocation) => Promise<T>,
): Promise<T> {
  const { caller, ...stated } = statedBy(request, undefined);
  request.recorded = true;
  return context.gate.invoke(caller, { action: 'inspect', ...stated }, run);
}

async function load() {
  const [{ Server }, { StreamableHTTPServerTransport }, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/server/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  assert(types.LATEST_PROTOCOL_VERSION === jsonRpcProtocolVersion, 'the SDK speaks another version of MCP');
  const serverFor = (context: HttpContext, request: FastifyRequest): InstanceType<typeof Server> => {
    const server = new Server(
      { name: 'annals', version: context.system.version },
      { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions: howToAsk },
    );
    serveTools(server, types, context, request);
    serveResources(server, types, context, request);
    servePrompts(server, types);
    return server;
  };
  // Answers come whole: nothing is left open for a client that went away.
  const transport = () => new StreamableHTTPServerTransport({ enableJsonResponse: true });
  return { serverFor, transport };
}

let loading: ReturnType<typeof load> | null = null;
const loadSdk = (): ReturnType<typeof load> => (loading ??= load());

function serveTools(server: Server, types: SdkTypes, context: HttpContext, request: FastifyRequest): void {
  const purposeKnown = headerText(request, 'x-service-purpose') !== null;
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: [...toolList(purposeKnown)] }));
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params }) => {
    try {
      const { output } = await callTool(context, request, params.name, params.arguments);
      return { content: [textContent(output)] };
    } catch (raw) {
      const error = refusalOf(context, request, raw);
      if (error.code === 'REL_NOT_FOUND' && error.message.startsWith('no such tool')) throw rpcError(types, error);
      const text = `${error.code}: ${error.message} (${statusOf(error.code)}, correlation ${request.id})`;
      return { content: [{ type: 'text' as const, text }], isError: true };
    }
  });
}

function serveResources(server: Server, types: SdkTypes, context: HttpContext, request: FastifyRequest): void {
  const inspect = async <T>(run: (invocation: Invocation) => Promise<T>): Promise<T> => {
    try {
      return await recordInspect(context, request, run);
    } catch (raw) {
      throw rpcError(types, refusalOf(context, request, raw));
    }
  };
  server.setRequestHandler(types.ListResourcesRequestSchema, () =>
    inspect(async (invocation) => ({
      resources: invocation
        .snapshot()
        .catalog.types()
        .map(({ name }) => ({
          uri: scheme + encodeURIComponent(name),
          name,
          description: `columns of the type ${name}`,
          mimeType: 'application/json',
        })),
    })),
  );
  server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) =>
    inspect(async (invocation) => {
      const name = uri.startsWith(scheme) ? decode(uri.slice(scheme.length)) : undefined;
      const type = name === undefined ? undefined : invocation.snapshot().catalog.type(name);
      if (type === undefined) throw new ServiceError('REL_UNKNOWN_TYPE', 'no such resource');
      const columns = Object.fromEntries(Object.entries(type.properties).map(([column, property]) => [column, property.type]));
      return {
        contents: [
          { uri, mimeType: 'application/json', text: exactJson({ name: type.name, columns, primary_key: type.primaryKey }) },
        ],
      };
    }),
  );
}

function servePrompts(server: Server, types: SdkTypes): void {
  server.setRequestHandler(types.ListPromptsRequestSchema, () => ({
    prompts: [
      { name: 'how-to-query', title: 'How to ask', description: 'What this store is, and how to ask it in SQL and by tools' },
    ],
  }));
  server.setRequestHandler(types.GetPromptRequestSchema, ({ params: { name } }) => {
    if (name !== 'how-to-query') throw new types.McpError(types.ErrorCode.InvalidParams, 'no such prompt');
    return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: howToAsk } }] };
  });
}

/** The error as callers see it; one of ours is logged under the request's correlation id. */
function refusalOf(context: HttpContext, request: FastifyRequest, raw: unknown): ServiceError {
  const error = toServiceError(raw);
  if (error.code !== 'REL_INTERNAL') return error;
  context.log({ event: 'internal error', correlationId: request.id, route: '/mcp', error: error.facts.cause ?? error });
  return new ServiceError('REL_INTERNAL', 'internal error; the correlation id finds it in the log');
}

function rpcError({ McpError, ErrorCode: Rpc }: SdkTypes, error: ServiceError): Error {
  return new McpError(error.kind === 'internal' ? Rpc.InternalError : Rpc.InvalidParams, error.message, { code: error.code });
}

const statusOf = (code: ErrorCode): number => errorTable[code].status;

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
