/** The tool protocol as plain HTTP routes. Source: specification, "Tool protocol (MCP)" and "Other contracts". */
import { z } from 'zod';
import { record } from '../schemas/schema-check.ts';
import type { FastifyRequest } from '../http/context.ts';
import { headerText } from '../http/request-headers.ts';
import { statedBy } from '../http/invoke.ts';
import { refuseInEnvelope, textContent, toolEnvelope, toolProblem } from '../http/tool-envelope.ts';
import { route, type Route } from '../http/route.ts';
import { sessionsVerb } from '../verbs/agent-sessions.ts';
import { callVerb } from '../verbs/call-verb.ts';
import { httpProtocolVersion } from './protocol-versions.ts';
import { callTool, toolList } from './tools.ts';

const callBody = z.object({
  name: z.string().describe('a tool of /mcp/tools'),
  arguments: record(z.unknown()).optional().describe('as its inputSchema has them'),
});

const tool = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  annotations: z.record(z.string(), z.unknown()),
});

const handshake = z.object({
  protocol_version: z.string(),
  server_info: z.object({ name: z.string(), version: z.string(), profile: z.string(), node_id: z.string() }),
  capabilities: z.object({ tools: z.object({ list_changed: z.boolean() }) }),
  tools: z.array(tool),
});

const toolReply = z
  .object(toolEnvelope)
  .meta({ id: 'ToolReply', description: 'the same content twice: as a JSON text, and as it is' });

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const listTools = (request: FastifyRequest) => toolList(headerText(request, 'x-service-purpose') !== null);

export const flatToolRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/mcp/initialize',
    ...reading,
    summary: 'Tool protocol: handshake',
    tags: ['tools'],
    replies: { 200: handshake },
    run: async (_, { request, context: { system } }) => ({
      protocol_version: httpProtocolVersion,
      server_info: { name: 'annals', version: system.version, profile: system.profile, node_id: system.nodeId },
      capabilities: { tools: { list_changed: false } },
      tools: listTools(request),
    }),
  }),
  route({
    method: 'GET',
    path: '/mcp/tools',
    ...reading,
    summary: 'Tools, each with what it takes',
    tags: ['tools'],
    replies: { 200: z.object({ tools: z.array(tool) }) },
    run: async (_, { request }) => ({ tools: listTools(request) }),
  }),
  route({
    method: 'POST',
    path: '/mcp/tools/call',
    access: 'token',
    action: 'query',
    bucket: 'read',
    summary: 'Call a tool',
    tags: ['tools'],
    body: callBody,
    replies: { 200: toolReply, '4xx': toolProblem, '5xx': toolProblem },
    framework: { attachValidation: true },
    example: { body: { name: 'query', arguments: { sql: 'a statement', purpose: 'a purpose' } } },
    handle: async ({ body, request, reply, context }) => {
      const startedMs = context.clock.monotonicMs();
      try {
        if (request.validationError) throw request.validationError;
        const { name, arguments: given } = body;
        const { output, processingTimeMs } = await callTool(context, request, name, given);
        return {
          content: [textContent(output), { type: 'json', json: output }],
          isError: false,
          meta: { processing_time_ms: processingTimeMs },
        };
      } catch (error) {
        const elapsedMs = context.clock.monotonicMs() - startedMs;
        return refuseInEnvelope(context, request, reply, { route: '/mcp/tools/call', action: 'query', elapsedMs }, error);
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
    handle: async ({ query, request, context }) => {
      const { session_id: id, limit, purpose } = query;
      const stated = statedBy(request, purpose);
      request.recorded = true;
      const input = { ...(id !== undefined && { session_id: id }), ...(limit !== undefined && { limit: Number(limit) }) };
      return (await callVerb(context.gate, context, { verb: sessionsVerb, input, ...stated })).output;
    },
  }),
];
