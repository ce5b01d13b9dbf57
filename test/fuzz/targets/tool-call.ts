/**
 * Bodies of POST /mcp: JSON-RPC messages, and the tool calls in them. What must hold: nothing but a ServiceError is thrown, whatever a
 * tool is given is taken or refused by its schema, and what a refusal says repeats no value that was sent.
 */
import { CallToolRequestSchema, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { assert, ServiceError } from '../../../src/errors.ts';
import { parseExactJson } from '../../../src/doors/shared/read-exact-json.ts';
import { asksGate } from '../../../src/doors/mcp/json-rpc.ts';
import { readCall, tools } from '../../../src/doors/mcp/tools.ts';
import { readInput } from '../../../src/doors/verbs/call-verb.ts';

export const name = 'tool-call';

const canary = 'c4n4ry';

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  const call = (tool: string, given: unknown): object => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: tool, arguments: given },
  });
  const messages: unknown[] = [
    ...tools.map(({ name: tool, example }) => call(tool, { purpose: canary, ...example })),
    call('recall', { query: 5, top_k: canary, as_of: [canary], detailed: canary, class_filter: { a: canary } }),
    call('remember', { content: canary, confidence: canary, fields: [canary], derived_from: canary, valid_from: canary }),
    call('get_entities', { entity_type: [canary], filters: { a: { b: canary } }, limit: -1, offset: 1e300 }),
    call('search_knowledge', { query: '', type_filter: [canary, 5], fuzzy: { edit_distance: canary } }),
    call('ingest_document', { content_base64: canary, format: canary, chunk_size: 1.5 }),
    call(canary, canary),
    {
      jsonrpc: '2.0',
      id: canary,
      method: 'initialize',
      params: { protocolVersion: canary, capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }, null, 5, [[]], { method: 'resources/read', params: { uri: canary } }],
    { jsonrpc: '1.0', id: null, result: {}, error: { code: canary } },
  ];
  return [
    ...messages.map((message) => encoder.encode(JSON.stringify(message))),
    encoder.encode('{"__proto__":{"method":"tools/call"}}'),
  ];
}

export function run(bytes: Uint8Array): void {
  const text = new TextDecoder('utf-8').decode(bytes);
  let body: unknown;
  try {
    body = parseExactJson(text);
  } catch {
    throw new ServiceError('REL_INVALID', 'the body is not JSON');
  }
  if (typeof body !== 'object' || body === null) throw new ServiceError('REL_INVALID', 'the body is a JSON-RPC message');
  asksGate(body);
  for (const message of [body].flat()) {
    JSONRPCMessageSchema.safeParse(message);
    const call = CallToolRequestSchema.safeParse(message);
    if (!call.success) continue;
    const { verb, input } = readCall(call.data.params.name, call.data.params.arguments);
    try {
      readInput(verb.input, input);
    } catch (error) {
      // Names of members are told.
      if (!(error instanceof ServiceError) || /c4n4ry[^"]*"\s*:/.test(text)) throw error;
      assert(!error.message.includes(canary), 'no value is repeated');
    }
  }
}
