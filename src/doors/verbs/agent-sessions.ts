/** AgentSession records with the calls of each. Source: specification, "Tool protocol (MCP)", GET /mcp/sessions. */
import { z } from 'zod';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { groupBy, textOf } from './verb-rows.ts';
import { verb } from './verb.ts';

const agentSessionsDefault = 100;
/** Calls of all sessions listed, the newest of them. */
const toolCallsMax = 5_000;

export const sessionsVerb = verb({
  name: 'list_sessions',
  description: 'Agent sessions, newest first, each with the tool calls made in it.',
  input: z.object({ session_id: z.string().min(1).optional(), limit: z.int().min(0).max(1_000).default(agentSessionsDefault) }),
  output: z.object({
    sessions: z.array(
      z.object({
        session_id: z.string(),
        started_at: z.int().describe('nanoseconds'),
        tool_calls: z.array(
          z.object({
            id: z.string(),
            name: z.string(),
            arguments: z.unknown(),
            result: z.unknown(),
            latency: z.number().nullable(),
            at: z.int(),
          }),
        ),
      }),
    ),
    total: z.int(),
  }) as unknown as z.ZodType,
  action: 'query',
  units: 1,
  purpose: { byDefault: 'analytics' },
  bucket: 'read',
  tool: { title: 'Agent sessions', readOnly: true },
  example: { limit: 10 },
  run: async (verbCall, { session_id: agentSessionId, limit: agentSessionLimit }) => {
    const sessionWhere = agentSessionId === undefined ? '' : ' WHERE session_id = $1';
    const sessionValues = agentSessionId === undefined ? [] : [agentSessionId];
    const agentSessionRows = await verbCall.ask(
      `SELECT session_id, valid_from FROM AgentSession${sessionWhere} ORDER BY valid_from DESC, _pk LIMIT ${agentSessionLimit}`,
      sessionValues,
    );
    const agentSessionIds = agentSessionRows.map((agentSessionRow) => String(agentSessionRow['session_id']));
    const sessionMarks = agentSessionIds.map((_, i) => `$${i + 1}`).join(', ');
    const toolCallRows =
      agentSessionIds.length === 0
        ? []
        : await verbCall.ask(
            `SELECT * FROM ToolCall WHERE session_id IN (${sessionMarks}) ORDER BY system_from DESC LIMIT ${toolCallsMax}`,
            agentSessionIds,
          );
    const callsBySession = groupBy(toolCallRows.reverse(), (agentSessionRow) => String(agentSessionRow['session_id']));
    const agentSessions = agentSessionRows.map((agentSessionRow) => ({
      session_id: String(agentSessionRow['session_id']),
      started_at: agentSessionRow['valid_from'],
      tool_calls: (callsBySession.get(String(agentSessionRow['session_id'])) ?? []).map((toolCallRow) => ({
        id: toolCallRow['_pk'],
        name: toolCallRow['name'],
        arguments: parseExactJson(textOf(toolCallRow['arguments']) ?? 'null') as unknown,
        result: parseExactJson(textOf(toolCallRow['result']) ?? 'null') as unknown,
        latency: toolCallRow['latency'],
        at: toolCallRow['system_from'],
      })),
    }));
    return { sessions: agentSessions, total: agentSessions.length };
  },
});
