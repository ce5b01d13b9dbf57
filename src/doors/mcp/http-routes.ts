/** The tool protocol as plain HTTP routes. Source: specification, "Tool protocol (MCP)" and "Other contracts". */
import { z } from 'zod';
import { record } from '../shared/schema-check.ts';
import type { FastifyRequest } from '../http/context.ts';
import { headerText } from '../http/request-headers.ts';
import { statedBy } from '../http/invoke.ts';
import { refuseInEnvelope, textContent, toolEnvelope, toolProblem } from '../http/tool-envelope.ts';
import { route, type Route } from '../http/route.ts';
import { sessionsVerb } from '../verbs/agent-sessions.ts';
import { callVerb } from '../verbs/call-verb.ts';
import { httpProtocolVersion } from './protocol-versions.ts';
import { callTool, toolList } from './tools.ts';

const toolCallBody = z.object({
  name: z.string().describe('a tool of /mcp/tools'),
  arguments: record(z.unknown()).optional().describe('as its inputSchema has them'),
});

const toolShape = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  annotations: z.record(z.string(), z.unknown()),
});

const mcpHandshake = z.object({
  protocol_version: z.string(),
  server_info: z.object({ name: z.string(), version: z.string(), profile: z.string(), node_id: z.string() }),
  capabilities: z.object({ tools: z.object({ list_changed: z.boolean() }) }),
  tools: z.array(toolShape),
});

const toolCallReply = z
  .object(toolEnvelope)
  .meta({ id: 'ToolReply', description: 'the same content twice: as a JSON text, and as it is' });

const mcpReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const listMcpTools = (mcpRequest: FastifyRequest) => toolList(headerText(mcpRequest, 'x-service-purpose') !== null);

export const flatToolRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/mcp/initialize',
    ...mcpReading,
    summary: 'Tool protocol: handshake',
    tags: ['tools'],
    replies: { 200: mcpHandshake },
    run: async (_, { request: mcpRequest, context: { system: systemDesk } }) => ({
      protocol_version: httpProtocolVersion,
      server_info: { name: 'annals', version: systemDesk.version, profile: systemDesk.profile, node_id: systemDesk.nodeId },
      capabilities: { tools: { list_changed: false } },
      tools: listMcpTools(mcpRequest),
    }),
  }),
  route({
    method: 'GET',
    path: '/mcp/tools',
    ...mcpReading,
    summary: 'Tools, each with what it takes',
    tags: ['tools'],
    replies: { 200: z.object({ tools: z.array(toolShape) }) },
    run: async (_, { request: mcpRequest }) => ({ tools: listMcpTools(mcpRequest) }),
  }),
  route({
    method: 'POST',
    path: '/mcp/tools/call',
    access: 'token',
    action: 'query',
    bucket: 'read',
    summary: 'Call a tool',
    tags: ['tools'],
    body: toolCallBody,
    replies: { 200: toolCallReply, '4xx': toolProblem, '5xx': toolProblem },
    framework: { attachValidation: true },
    example: { body: { name: 'query', arguments: { sql: 'a statement', purpose: 'a purpose' } } },
    handle: async ({ body: toolCall, request: mcpRequest, reply: mcpReply, context: httpContext }) => {
      const callStartedMs = httpContext.clock.monotonicMs();
      try {
        if (mcpRequest.validationError) throw mcpRequest.validationError;
        const { name: toolName, arguments: toolArguments } = toolCall;
        const { output: toolOutput, processingTimeMs } = await callTool(httpContext, mcpRequest, toolName, toolArguments);
        return {
          content: [textContent(toolOutput), { type: 'json', json: toolOutput }],
          isError: false,
          meta: { processing_time_ms: processingTimeMs },
        };
      } catch (toolError) {
        const callElapsedMs = httpContext.clock.monotonicMs() - callStartedMs;
        return refuseInEnvelope(
          httpContext,
          mcpRequest,
          mcpReply,
          { route: '/mcp/tools/call', action: 'query', elapsedMs: callElapsedMs },
          toolError,
        );
      }
    },
  }),
  route({
    method: 'GET',
    path: '/mcp/sessions',
    access: 'token',
    action: sessionsVerb.action,
    bucket: 'read',
    summary: 'Agent sessions and the tool calls of each',
    tags: ['tools'],
    query: z.object({
      session_id: z.string().optional(),
      limit: z
        .string()
        .regex(/^\d{1,4}$/)
        .optional()
        .describe('sessions at most; 100 by default'),
      purpose: z.string().optional(),
    }),
    replies: { 200: sessionsVerb.output },
    handle: async ({ query: sessionsQuery, request: mcpRequest, context: httpContext }) => {
      const { session_id: agentSessionId, limit: agentSessionLimit, purpose: sessionsPurpose } = sessionsQuery;
      const statedRequest = statedBy(mcpRequest, sessionsPurpose);
      mcpRequest.recorded = true;
      const sessionsInput = {
        ...(agentSessionId !== undefined && { session_id: agentSessionId }),
        ...(agentSessionLimit !== undefined && { limit: Number(agentSessionLimit) }),
      };
      return (await callVerb(httpContext.gate, httpContext, { verb: sessionsVerb, input: sessionsInput, ...statedRequest }))
        .output;
    },
  }),
];
