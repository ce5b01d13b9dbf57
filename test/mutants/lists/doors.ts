/** Mistakes in the doors: credentials, headers, bodies, records, replies. */
import type { Mutant } from '../mutant.ts';

const server = 'src/doors/http/server.ts';
const headers = 'src/doors/http/headers.ts';
const bodies = 'src/doors/http/bodies.ts';
const test = (name: string): readonly string[] => [`test/doors/http/${name}.test.ts`];

export const mutants: readonly Mutant[] = [
  {
    name: 'admin routes that take data tokens',
    file: server,
    find: "request.caller = access === 'admin' ? authenticator.adminCaller(credentials) : authenticator.dataCaller(credentials);",
    replace: 'request.caller = authenticator.dataCaller(credentials);',
    killedBy: test('routes'),
  },
  {
    name: 'repeated headers that pass',
    file: server,
    find: '  refuseRepeatedHeaders(request.raw.rawHeaders);\n',
    replace: '',
    killedBy: test('headers'),
  },
  {
    name: 'reads that no bucket limits',
    file: server,
    find: 'if (!verdict.allowed) throw rateLimited(context, reply, verdict);',
    replace: '',
    killedBy: test('problems'),
  },
  {
    name: 'refusals before the gate that leave no record',
    file: server,
    find: "if (request.recorded || access === undefined || access === 'probe') return error;",
    replace: 'if (Date) return error;',
    killedBy: test('problems'),
  },
  {
    name: 'strangers that fill the log',
    file: server,
    find: "if (request.caller === null && !context.strangers.take('', context.clock.monotonicMs()).allowed) return error;",
    replace: '',
    killedBy: test('problems'),
  },
  {
    name: 'bugs that show their message',
    file: 'src/doors/http/problem.ts',
    find: "new ServiceError('REL_INTERNAL', 'internal error', { cause: error })",
    replace: "new ServiceError('REL_INVALID', String(error), { cause: error })",
    killedBy: test('problems'),
  },
  {
    name: 'TLS as old as it gets',
    file: server,
    find: "minVersion: 'TLSv1.2'",
    replace: "minVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0'",
    killedBy: test('listeners'),
  },
  {
    name: 'a drain without an end',
    file: server,
    find: 'if (!closed.signal.aborted) for (const app of listeners) (app.server as Server).closeAllConnections();',
    replace: '',
    killedBy: test('listeners'),
  },
  {
    name: 'organisations read as latin1',
    file: headers,
    find: 'if (value.charCodeAt(i) > 0x7f) return fromUtf8(value, name);',
    replace: '',
    killedBy: test('headers'),
  },
  {
    name: 'two purposes of which one wins',
    file: headers,
    find: 'if (field !== undefined && header !== null && field !== header) {',
    replace: 'if (field === null) {',
    killedBy: test('headers'),
  },
  {
    name: 'a body limit that only Content-Length meets',
    file: bodies,
    find: 'if (receipt.bytes > limitBytes) return finish(tooLarge());',
    replace: '',
    killedBy: test('bodies'),
  },
  {
    name: 'fast bytes that buy slow ones for ever',
    file: bodies,
    find: 'receipt.lagMs = Math.max(0, receipt.lagMs',
    replace: 'receipt.lagMs = Math.max(-1e12, receipt.lagMs',
    killedBy: test('bodies'),
  },
  {
    name: 'a pace that counts our own time',
    file: bodies,
    find: '        receipt.waitingSinceMs = null;\n        yield chunk;',
    replace: '        yield chunk;',
    killedBy: test('bodies'),
  },
  {
    name: 'bodies of any depth',
    file: 'src/doors/http/json-body.ts',
    find: '  checkDepth(body);\n',
    replace: '',
    killedBy: test('bodies'),
  },
  {
    name: 'a disconnected client whose query runs on',
    file: 'src/doors/http/invoke.ts',
    find: "socket.once('close', () => controller.abort());",
    replace: '',
    killedBy: test('query'),
  },
  {
    name: 'integers through doubles',
    file: 'src/doors/http/exact-json.ts',
    find: 'return value.toString();',
    replace: 'return Number(value).toString();',
    killedBy: test('ingest'),
  },
  {
    name: 'rejections counted within their batch',
    file: 'src/doors/ingest-stream.ts',
    find: '(indexes?.[index] ?? firstIndex + index)',
    replace: 'index',
    killedBy: test('ingest'),
  },
  {
    name: 'a purpose that only some routes hear',
    file: 'src/doors/http/invoke.ts',
    find: 'const purpose = statedPurpose(request, purposeField);',
    replace: 'const purpose = purposeField ?? null;\n  void statedPurpose;',
    killedBy: test('headers'),
  },
];
