/** AgentSession records with the calls of each. Source: specification, "Tool protocol (MCP)", GET /mcp/sessions. */
import { z } from 'zod';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { groupBy, textOf } from './verb-rows.ts';
import { verb } from './verb.ts';

const limitDefault = 100;
/** Calls of all sessions listed, the newest of them. */
const callsMax = 5_000;

export const sessionsVerb = verb({
  name: 'list_sessions',
  description: 'Agent sessions, newest first, each with the tool calls made in it.',
  input: z.object({ session_id: z.string().min(1).optional(), limit: z.int().min(0).max(1_000).default(limitDefault) }),
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
  run: async (verbCall, { session_id: id, limit }) => {
    const where = id === undefined ? '' : ' WHERE session_id = $1';
    const values = id === undefined ? [] : [id];
    const rows = await verbCall.ask(
      `SELECT session_id, valid_from FROM AgentSession${where} ORDER BY valid_from DESC, _pk LIMIT ${limit}`,
      values,
    );
    const ids = rows.map((row) => String(row['session_id']));
    const marks = ids.map((_, i) => `$${i + 1}`).join(', ');
    const calls =
      ids.length === 0
        ? []
        : await verbCall.ask(
            `SELECT * FROM ToolCall WHERE session_id IN (${marks}) ORDER BY system_from DESC LIMIT ${callsMax}`,
            ids,
          );
    const bySession = groupBy(calls.reverse(), (row) => String(row['session_id']));
    const sessions = rows.map((row) => ({
      session_id: String(row['session_id']),
      started_at: row['valid_from'],
      tool_calls: (bySession.get(String(row['session_id'])) ?? []).map((call) => ({
        id: call['_pk'],
        name: call['name'],
        arguments: parseExactJson(textOf(call['arguments']) ?? 'null') as unknown,
        result: parseExactJson(textOf(call['result']) ?? 'null') as unknown,
        latency: call['latency'],
        at: call['system_from'],
      })),
    }));
    return { sessions, total: sessions.length };
  },
});
