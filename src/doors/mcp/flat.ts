/** The tool protocol as plain HTTP routes. Source: specification, "Tool protocol (MCP)" and "Other contracts". */
import { z } from 'zod';
import { record } from '../checked.ts';
import type { App, FastifyRequest, HttpContext } from '../http/context.ts';
import { headerText } from '../http/headers.ts';
import { invoke, statedBy } from '../http/invoke.ts';
import { problems } from '../http/schemas.ts';
import { refuseInEnvelope, textContent, toolEnvelope, toolProblem } from '../http/tool-envelope.ts';
import { sessionsVerb } from '../verbs/sessions.ts';
import { callVerb } from '../verbs/call.ts';
import { callTool, toolList } from './tools.ts';

/** Source: specification, "Versioning" 2. */
export const protocolVersion = '2024-11-05';

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

const reply = z
  .object(toolEnvelope)
  .meta({ id: 'ToolReply', description: 'the same content twice: as a JSON text, and as it is' });

export function registerFlatTools(app: App, context: HttpContext): void {
  const { system } = context;
  const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
  const listed = (request: FastifyRequest) => toolList(headerText(request, 'x-service-purpose') !== null);
  app.route({
    method: 'POST',
    url: '/mcp/initialize',
    config: reading,
    schema: {
      summary: 'Tool protocol: handshake',
      tags: ['tools'],
      response: { 200: handshake, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async () => ({
        protocol_version: protocolVersion,
        server_info: { name: 'annals', version: system.version, profile: system.profile, node_id: system.nodeId },
        capabilities: { tools: { list_changed: false } },
        tools: listed(request),
      })),
  });
  app.route({
    method: 'GET',
    url: '/mcp/tools',
    config: reading,
    schema: {
      summary: 'Tools, each with what it takes',
      tags: ['tools'],
      response: { 200: z.object({ tools: z.array(tool) }), ...problems },
    },
    handler: (request) => invoke(context, request, 'inspect', undefined, async () => ({ tools: listed(request) })),
  });
  app.route({
    method: 'POST',
    url: '/mcp/tools/call',
    config: { access: 'token', action: 'query', bucket: 'read' },
    schema: {
      summary: 'Call a tool',
      tags: ['tools'],
      body: callBody,
      response: { 200: reply, '4xx': toolProblem, '5xx': toolProblem },
    },
    attachValidation: true,
    handler: async (request, response) => {
      const startedMs = context.clock.monotonicMs();
      try {
        if (request.validationError) throw request.validationError;
        const { name, arguments: given } = request.body;
        const { output, processingTimeMs } = await callTool(context, request, name, given);
        return {
          content: [textContent(output), { type: 'json', json: output }],
          isError: false,
          meta: { processing_time_ms: processingTimeMs },
        };
      } catch (error) {
        const elapsedMs = context.clock.monotonicMs() - startedMs;
        return refuseInEnvelope(context, request, response, { route: '/mcp/tools/call', action: 'query', elapsedMs }, error);
      }
    },
  });
  app.route({
    method: 'GET',
    url: '/mcp/sessions',
    config: { access: 'token', action: sessionsVerb.action, bucket: 'read' },
    schema: {
      summary: 'Agent sessions and the tool calls of each',
      tags: ['tools'],
      querystring: z.object({
        session_id: z.string().optional(),
        limit: z
          .string()
          .regex(/^\d{1,4}$/)
          .optional()
          .describe('sessions at most; 100 by default'),
        purpose: z.string().optional(),
      }),
      response: { 200: sessionsVerb.output, ...problems },
    },
    handler: async (request) => {
      const { session_id: id, limit, purpose } = request.query;
      const stated = statedBy(request, purpose);
      request.recorded = true;
      const input = { ...(id !== undefined && { session_id: id }), ...(limit !== undefined && { limit: Number(limit) }) };
      return (await callVerb(context.gate, context, { verb: sessionsVerb, input, ...stated })).output;
    },
  });
}
