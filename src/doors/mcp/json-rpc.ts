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

type McpSdkTypes = typeof import('@modelcontextprotocol/sdk/types.js');

const typeUriScheme = 'annals://types/';

const jsonRpcMessage = z
  .looseObject({ jsonrpc: z.string() })
  .meta({ id: 'JsonRpcMessage', description: 'as the protocol has it' });

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
    replies: { 200: jsonRpcMessage, 400: jsonRpcMessage },
    reads: readRpcMessage,
    example: {
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    },
    handle: async ({ body: sentMessage, request: rpcRequest, reply: rpcReply, context: httpContext }) => {
      const rpcMessage = (sentMessage ?? new MalformedRpcMessage(rpcParseError, 'the body is empty')) as object;
      if (rpcMessage instanceof MalformedRpcMessage) {
        await recordInspect(httpContext, rpcRequest, async () => undefined);
        const { code: malformedCode, message: malformedReason } = rpcMessage;
        return rpcReply.code(400).send({ jsonrpc: '2.0', id: null, error: { code: malformedCode, message: malformedReason } });
      }
      const { serverFor: createMcpServer, transport: createTransport } = await mcpSdk();
      const mcpServer = createMcpServer(httpContext, rpcRequest);
      const mcpTransport = createTransport();
      // Messages that don't reach the gate leave an access record too.
      if (!asksGate(rpcMessage)) await recordInspect(httpContext, rpcRequest, async () => undefined);
      rpcReply.hijack();
      try {
        await mcpServer.connect(mcpTransport);
        await mcpTransport.handleRequest(rpcRequest.raw, rpcReply.raw, rpcMessage);
      } finally {
        rpcReply.raw.once('close', () => void mcpServer.close());
      }
      return rpcReply;
    },
  }),
];

/** Source: JSON-RPC 2.0, "Error object". */
const [rpcParseError, rpcInvalidRequest] = [-32_700, -32_600];

/** A body that is no message: answered in the protocol's own words. */
class MalformedRpcMessage {
  readonly code: number;
  readonly message: string;

  constructor(rpcErrorCode: number, rpcErrorMessage: string) {
    this.code = rpcErrorCode;
    this.message = rpcErrorMessage;
  }
}

function readRpcMessage(rpcBytes: Buffer): unknown {
  let rpcMessages: unknown;
  try {
    rpcMessages = parseJsonBody(rpcBytes) ?? new MalformedRpcMessage(rpcParseError, 'the body is empty');
  } catch (rpcBodyError) {
    if (!(rpcBodyError instanceof ServiceError)) throw rpcBodyError;
    return new MalformedRpcMessage(rpcParseError, rpcBodyError.message);
  }
  if (rpcMessages instanceof MalformedRpcMessage) return rpcMessages;
  if (Array.isArray(rpcMessages) && rpcMessages.length === 0)
    return new MalformedRpcMessage(rpcInvalidRequest, 'a batch has at least one message');
  const messageFaults = [rpcMessages].flat().map(rpcMessageFault);
  return messageFaults.find((messageFault) => messageFault !== null) ?? rpcMessages;
}

/** The error of a malformed message; null for a request, a notification or a response. */
function rpcMessageFault(rpcMessage: unknown): MalformedRpcMessage | null {
  if (typeof rpcMessage !== 'object' || rpcMessage === null || Array.isArray(rpcMessage))
    return new MalformedRpcMessage(rpcInvalidRequest, 'a message is one JSON object');
  const { jsonrpc: rpcVersion, method: rpcMethod, id: rpcId } = rpcMessage as Readonly<Record<string, unknown>>;
  if (rpcVersion !== '2.0') return new MalformedRpcMessage(rpcInvalidRequest, 'jsonrpc: "2.0" is expected');
  if (typeof rpcMethod !== 'string' && !('result' in rpcMessage) && !('error' in rpcMessage))
    return new MalformedRpcMessage(rpcInvalidRequest, 'method: the name of a method is expected');
  if (rpcId !== undefined && typeof rpcId !== 'string' && !Number.isSafeInteger(rpcId))
    return new MalformedRpcMessage(rpcInvalidRequest, 'id: a text is expected, or an integer up to 2^53');
  return null;
}

const gatedRpcMethods: ReadonlySet<unknown> = new Set(['tools/call', 'resources/list', 'resources/read']);

/** Whether a message reaches the gate by itself. */
export function asksGate(rpcBody: object): boolean {
  return [rpcBody].flat().some((rpcMessage) => gatedRpcMethods.has((rpcMessage as { readonly method?: unknown } | null)?.method));
}

/** Records an invocation without rows; each message of a request may have one. */
async function recordInspect<T>(
  httpContext: HttpContext,
  rpcRequest: FastifyRequest,
  runInspect: (invocation: Invocation) => Promise<T>,
): Promise<T> {
  const { caller: rpcCaller, ...statedRequest } = statedBy(rpcRequest, undefined);
  rpcRequest.recorded = true;
  return httpContext.gate.invoke(rpcCaller, { action: 'inspect', ...statedRequest }, runInspect);
}

async function loadMcpSdk() {
  const [{ Server }, { StreamableHTTPServerTransport }, mcpTypes] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/server/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  assert(mcpTypes.LATEST_PROTOCOL_VERSION === jsonRpcProtocolVersion, 'the SDK speaks another version of MCP');
  const createMcpServer = (httpContext: HttpContext, rpcRequest: FastifyRequest): InstanceType<typeof Server> => {
    const mcpServer = new Server(
      { name: 'annals', version: httpContext.system.version },
      { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions: howToAsk },
    );
    serveMcpTools(mcpServer, mcpTypes, httpContext, rpcRequest);
    serveMcpResources(mcpServer, mcpTypes, httpContext, rpcRequest);
    serveMcpPrompts(mcpServer, mcpTypes);
    return mcpServer;
  };
  // Answers come whole: nothing is left open for a client that went away.
  const createTransport = () => new StreamableHTTPServerTransport({ enableJsonResponse: true });
  return { serverFor: createMcpServer, transport: createTransport };
}

let mcpSdkLoading: ReturnType<typeof loadMcpSdk> | null = null;
const mcpSdk = (): ReturnType<typeof loadMcpSdk> => (mcpSdkLoading ??= loadMcpSdk());

function serveMcpTools(mcpServer: Server, mcpTypes: McpSdkTypes, httpContext: HttpContext, rpcRequest: FastifyRequest): void {
  const isPurposeKnown = headerText(rpcRequest, 'x-service-purpose') !== null;
  mcpServer.setRequestHandler(mcpTypes.ListToolsRequestSchema, () => ({ tools: [...toolList(isPurposeKnown)] }));
  mcpServer.setRequestHandler(mcpTypes.CallToolRequestSchema, async ({ params: toolCallParams }) => {
    try {
      const { output: toolOutput } = await callTool(httpContext, rpcRequest, toolCallParams.name, toolCallParams.arguments);
      return { content: [textContent(toolOutput)] };
    } catch (thrownError) {
      const toolError = rpcRefusal(httpContext, rpcRequest, thrownError);
      if (toolError.code === 'REL_NOT_FOUND' && toolError.message.startsWith('no such tool'))
        throw mcpErrorOf(mcpTypes, toolError);
      const toolErrorText = `${toolError.code}: ${toolError.message} (${rpcErrorStatus(toolError.code)}, correlation ${rpcRequest.id})`;
      return { content: [{ type: 'text' as const, text: toolErrorText }], isError: true };
    }
  });
}

function serveMcpResources(mcpServer: Server, mcpTypes: McpSdkTypes, httpContext: HttpContext, rpcRequest: FastifyRequest): void {
  const inspectResource = async <T>(readResource: (invocation: Invocation) => Promise<T>): Promise<T> => {
    try {
      return await recordInspect(httpContext, rpcRequest, readResource);
    } catch (thrownError) {
      throw mcpErrorOf(mcpTypes, rpcRefusal(httpContext, rpcRequest, thrownError));
    }
  };
  mcpServer.setRequestHandler(mcpTypes.ListResourcesRequestSchema, () =>
    inspectResource(async (resourceInvocation) => ({
      resources: resourceInvocation
        .snapshot()
        .catalog.types()
        .map(({ name: resourceTypeName }) => ({
          uri: typeUriScheme + encodeURIComponent(resourceTypeName),
          name: resourceTypeName,
          description: `columns of the type ${resourceTypeName}`,
          mimeType: 'application/json',
        })),
    })),
  );
  mcpServer.setRequestHandler(mcpTypes.ReadResourceRequestSchema, ({ params: { uri: resourceUri } }) =>
    inspectResource(async (resourceInvocation) => {
      const resourceTypeName = resourceUri.startsWith(typeUriScheme)
        ? decodeTypeName(resourceUri.slice(typeUriScheme.length))
        : undefined;
      const resourceType =
        resourceTypeName === undefined ? undefined : resourceInvocation.snapshot().catalog.type(resourceTypeName);
      if (resourceType === undefined) throw new ServiceError('REL_UNKNOWN_TYPE', 'no such resource');
      const resourceColumns = Object.fromEntries(
        Object.entries(resourceType.properties).map(([columnName, columnProperty]) => [columnName, columnProperty.type]),
      );
      return {
        contents: [
          {
            uri: resourceUri,
            mimeType: 'application/json',
            text: exactJson({ name: resourceType.name, columns: resourceColumns, primary_key: resourceType.primaryKey }),
          },
        ],
      };
    }),
  );
}

function serveMcpPrompts(mcpServer: Server, mcpTypes: McpSdkTypes): void {
  mcpServer.setRequestHandler(mcpTypes.ListPromptsRequestSchema, () => ({
    prompts: [
      { name: 'how-to-query', title: 'How to ask', description: 'What this store is, and how to ask it in SQL and by tools' },
    ],
  }));
  mcpServer.setRequestHandler(mcpTypes.GetPromptRequestSchema, ({ params: { name: promptName } }) => {
    if (promptName !== 'how-to-query') throw new mcpTypes.McpError(mcpTypes.ErrorCode.InvalidParams, 'no such prompt');
    return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: howToAsk } }] };
  });
}

/** The error as callers see it; one of ours is logged under the request's correlation id. */
function rpcRefusal(httpContext: HttpContext, rpcRequest: FastifyRequest, thrownError: unknown): ServiceError {
  const refusedError = toServiceError(thrownError);
  if (refusedError.code !== 'REL_INTERNAL') return refusedError;
  httpContext.log({
    event: 'internal error',
    correlationId: rpcRequest.id,
    route: '/mcp',
    error: refusedError.facts.cause ?? refusedError,
  });
  return new ServiceError('REL_INTERNAL', 'internal error; the correlation id finds it in the log');
}

function mcpErrorOf({ McpError, ErrorCode: RpcErrorCode }: McpSdkTypes, refusedError: ServiceError): Error {
  return new McpError(
    refusedError.kind === 'internal' ? RpcErrorCode.InternalError : RpcErrorCode.InvalidParams,
    refusedError.message,
    { code: refusedError.code },
  );
}

const rpcErrorStatus = (toolErrorCode: ErrorCode): number => errorTable[toolErrorCode].status;

function decodeTypeName(encodedName: string): string | undefined {
  try {
    return decodeURIComponent(encodedName);
  } catch {
    return undefined;
  }
}
