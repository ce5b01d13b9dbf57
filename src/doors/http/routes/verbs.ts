/** HTTP routes of the verbs, made from their list. Source: specification, "Agent memory (HTTP)" and "Result envelopes". */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { callVerb, MissingPurpose } from '../../verbs/call-verb.ts';
import { verbs } from '../../verbs/all.ts';
import { snakeCase } from '../../schemas/member-spelling.ts';
import { inputSchema, purposeField, type Verb, type VerbRoute } from '../../verbs/verb.ts';
import type { FastifyRequest } from '../context.ts';
import { exactJson } from '../../shared/write-exact-json.ts';
import { statedBy } from '../invoke.ts';
import { route, type Route, type RouteExample } from '../route.ts';
import { refuseInEnvelope, textContent, toolProblem } from '../tool-envelope.ts';

/** The envelope of memory and tool replies. Source: specification, "Result envelopes". */
const envelope = z
  .object({ isError: z.boolean(), content: z.array(z.object({ type: z.literal('text'), text: z.string() })) })
  .meta({ id: 'MemoryReply', description: 'text holds a JSON string' });

function routeOf(verb: Verb, { method, url }: VerbRoute): Route {
  const inPath = [...url.matchAll(/:(\w+)/g)].map(([, name]) => name!);
  const whole = verb.input.extend({ purpose: purposeField.optional() });
  const rest = whole.omit(Object.fromEntries(inPath.map((name) => [name, true])));
  const text = new QueryText(verb);
  const { action, bucket, plain } = verb;
  return route({
    method,
    path: url,
    access: 'token',
    action,
    bucket,
    // The verb checks its input itself, inside the gate: malformed input is recorded under the verb's name.
    framework: { validatorCompiler: () => (data: unknown) => ({ value: data }) },
    summary: verb.tool?.title ?? verb.name,
    description: verb.description,
    tags: [url.startsWith('/memory/') ? 'memory' : 'query'],
    ...(inPath.length > 0 && { params: z.object(Object.fromEntries(inPath.map((name) => [name, z.string()]))) }),
    ...(method === 'POST' ? { body: rest } : { query: rest }),
    replies: plain === true ? { 200: verb.output } : { 200: envelope, 400: toolProblem },
    example: exampleOf(verb, method, inPath),
    handle: async ({ request, reply, context }) => {
      const startedMs = context.clock.monotonicMs();
      try {
        const { purpose, ...input } = inputOf(request, text);
        if (purpose !== undefined && typeof purpose !== 'string')
          throw new ServiceError('REL_INVALID', 'purpose: a text is expected');
        const stated = statedBy(request, purpose);
        request.recorded = true;
        const { output } = await callVerb(context.gate, context, { verb, input, ...stated });
        return plain === true ? output : { isError: false, content: [textContent(output)] };
      } catch (error) {
        if (plain === true || !(error instanceof MissingPurpose)) throw error;
        const elapsedMs = context.clock.monotonicMs() - startedMs;
        return refuseInEnvelope(context, request, reply, { route: url, action, elapsedMs }, error);
      }
    },
  });
}

function exampleOf({ example }: Verb, method: VerbRoute['method'], inPath: readonly string[]): RouteExample {
  const given: readonly (readonly [string, unknown])[] = Object.entries({ ...example, purpose: 'a purpose' });
  const texts = given.map(([name, value]) => [name, String(value)] as const);
  const params = Object.fromEntries(texts.filter(([name]) => inPath.includes(name)));
  if (method === 'POST') return { params, body: Object.fromEntries(given.filter(([name]) => !inPath.includes(name))) };
  return { params, query: Object.fromEntries(texts.filter(([name]) => !inPath.includes(name))) };
}

/** Terms that a request states beside the members of its verb: `request-headers.ts`. */
const beside: ReadonlySet<string> = new Set(['branch', 'break_glass', 'access_scope_ref']);

/** Members of path, query and body together; one that is given twice with different values is refused. */
function inputOf(request: FastifyRequest, text: QueryText): Readonly<Record<string, unknown>> {
  const { body = {} } = request;
  if (body !== null && (typeof body !== 'object' || Array.isArray(body))) {
    throw new ServiceError('REL_INVALID', 'the body is one JSON object');
  }
  const parts = [
    text.read(request.query as Record<string, unknown>),
    (body ?? {}) as Record<string, unknown>,
    request.params as object,
  ];
  const input: Record<string, unknown> = {};
  for (const part of parts) {
    for (const [name, value] of Object.entries(part)) {
      if (beside.has(name)) continue;
      if (Object.hasOwn(input, name) && exactJson(input[name]) !== exactJson(value)) {
        throw new ServiceError('REL_INVALID', `${name}: the request gives it twice, with different values`);
      }
      input[name] = value;
    }
  }
  return input;
}

/** In a query everything is text: numbers and booleans are read by the schema. */
class QueryText {
  readonly #kinds = new Map<string, string>();

  constructor(verb: Verb) {
    const { properties = {} } = inputSchema(verb) as {
      readonly properties?: Readonly<Record<string, { readonly type?: string }>>;
    };
    for (const [name, { type }] of Object.entries(properties)) if (type !== undefined) this.#kinds.set(name, type);
  }

  read(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
    return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, this.#value(name, value)]));
  }

  #value(name: string, value: unknown): unknown {
    const kind = this.#kinds.get(name) ?? this.#kinds.get(snakeCase(name));
    if (kind === 'array') return Array.isArray(value) ? value : String(value).split(',');
    if (typeof value !== 'string') return value;
    if (kind === 'boolean')
      return value === 'true' || value === '1' || value === '' ? true : value === 'false' || value === '0' ? false : value;
    if (kind !== 'number' && kind !== 'integer') return value;
    const number = value.trim() === '' ? Number.NaN : Number(value);
    return Number.isFinite(number) ? number : value;
  }
}

/** A route for each path of each verb. */
export const verbRoutes: readonly Route[] = verbs.flatMap((verb) => (verb.http ?? []).map((each) => routeOf(verb, each)));
