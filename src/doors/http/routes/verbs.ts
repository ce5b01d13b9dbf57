/** HTTP routes of the verbs, made from their list. Source: specification, "Agent memory (HTTP)" and "Result envelopes". */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { callVerb, MissingPurpose } from '../../verbs/call-verb.ts';
import { verbs } from '../../verbs/all.ts';
import { snakeCase } from '../../verbs/member-spelling.ts';
import { inputSchema, purposeField, type Verb, type VerbRoute } from '../../verbs/verb.ts';
import type { FastifyRequest } from '../context.ts';
import { exactJson } from '../../shared/write-exact-json.ts';
import { statedBy } from '../invoke.ts';
import { route, type Route, type RouteExample } from '../route.ts';
import { refuseInEnvelope, textContent, toolProblem } from '../tool-envelope.ts';

/** The envelope of memory and tool replies. Source: specification, "Result envelopes". */
const memoryEnvelope = z
  .object({ isError: z.boolean(), content: z.array(z.object({ type: z.literal('text'), text: z.string() })) })
  .meta({ id: 'MemoryReply', description: 'text holds a JSON string' });

function verbRoute(routedVerb: Verb, { method: verbMethod, url: verbUrl }: VerbRoute): Route {
  const pathParameters = [...verbUrl.matchAll(/:(\w+)/g)].map(([, pathParameter]) => pathParameter!);
  const wholeInput = routedVerb.input.extend({ purpose: purposeField.optional() });
  const inputOutsidePath = wholeInput.omit(Object.fromEntries(pathParameters.map((pathParameter) => [pathParameter, true])));
  const verbQueryText = new VerbQueryText(routedVerb);
  const { action: verbAction, bucket: verbBucket, plain: isPlainReply } = routedVerb;
  return route({
    method: verbMethod,
    path: verbUrl,
    access: 'token',
    action: verbAction,
    bucket: verbBucket,
    // The verb checks its input itself, inside the gate: malformed input is recorded under the verb's name.
    framework: { validatorCompiler: () => (data: unknown) => ({ value: data }) },
    summary: routedVerb.tool?.title ?? routedVerb.name,
    description: routedVerb.description,
    tags: [verbUrl.startsWith('/memory/') ? 'memory' : 'query'],
    ...(pathParameters.length > 0 && {
      params: z.object(Object.fromEntries(pathParameters.map((pathParameter) => [pathParameter, z.string()]))),
    }),
    ...(verbMethod === 'POST' ? { body: inputOutsidePath } : { query: inputOutsidePath }),
    replies: isPlainReply === true ? { 200: routedVerb.output } : { 200: memoryEnvelope, 400: toolProblem },
    example: verbExample(routedVerb, verbMethod, pathParameters),
    handle: async ({ request: verbRequest, reply: verbReply, context: httpContext }) => {
      const verbStartedMs = httpContext.clock.monotonicMs();
      try {
        const { purpose: verbPurpose, ...verbArguments } = verbInput(verbRequest, verbQueryText);
        if (verbPurpose !== undefined && typeof verbPurpose !== 'string')
          throw new ServiceError('REL_INVALID', 'purpose: a text is expected');
        const statedRequest = statedBy(verbRequest, verbPurpose);
        verbRequest.recorded = true;
        const { output: verbOutput } = await callVerb(httpContext.gate, httpContext, {
          verb: routedVerb,
          input: verbArguments,
          ...statedRequest,
        });
        return isPlainReply === true ? verbOutput : { isError: false, content: [textContent(verbOutput)] };
      } catch (verbError) {
        if (isPlainReply === true || !(verbError instanceof MissingPurpose)) throw verbError;
        const verbElapsedMs = httpContext.clock.monotonicMs() - verbStartedMs;
        return refuseInEnvelope(
          httpContext,
          verbRequest,
          verbReply,
          { route: verbUrl, action: verbAction, elapsedMs: verbElapsedMs },
          verbError,
        );
      }
    },
  });
}

function verbExample({ example }: Verb, verbMethod: VerbRoute['method'], pathParameters: readonly string[]): RouteExample {
  const exampleArguments: readonly (readonly [string, unknown])[] = Object.entries({ ...example, purpose: 'a purpose' });
  const exampleTexts = exampleArguments.map(([argumentName, argumentValue]) => [argumentName, String(argumentValue)] as const);
  const exampleParams = Object.fromEntries(exampleTexts.filter(([argumentName]) => pathParameters.includes(argumentName)));
  if (verbMethod === 'POST')
    return {
      params: exampleParams,
      body: Object.fromEntries(exampleArguments.filter(([argumentName]) => !pathParameters.includes(argumentName))),
    };
  return {
    params: exampleParams,
    query: Object.fromEntries(exampleTexts.filter(([argumentName]) => !pathParameters.includes(argumentName))),
  };
}

/** Terms that a request states beside the members of its verb: `request-headers.ts`. */
const statedBesideInput: ReadonlySet<string> = new Set(['branch', 'break_glass', 'access_scope_ref']);

/** Members of path, query and body together; one that is given twice with different values is refused. */
function verbInput(verbRequest: FastifyRequest, verbQueryText: VerbQueryText): Readonly<Record<string, unknown>> {
  const { body: verbBody = {} } = verbRequest;
  if (verbBody !== null && (typeof verbBody !== 'object' || Array.isArray(verbBody))) {
    throw new ServiceError('REL_INVALID', 'the body is one JSON object');
  }
  const inputParts = [
    verbQueryText.read(verbRequest.query as Record<string, unknown>),
    (verbBody ?? {}) as Record<string, unknown>,
    verbRequest.params as object,
  ];
  const mergedInput: Record<string, unknown> = {};
  for (const inputPart of inputParts) {
    for (const [argumentName, argumentValue] of Object.entries(inputPart)) {
      if (statedBesideInput.has(argumentName)) continue;
      if (Object.hasOwn(mergedInput, argumentName) && exactJson(mergedInput[argumentName]) !== exactJson(argumentValue)) {
        throw new ServiceError('REL_INVALID', `${argumentName}: the request gives it twice, with different values`);
      }
      mergedInput[argumentName] = argumentValue;
    }
  }
  return mergedInput;
}

/** In a query everything is text: numbers and booleans are read by the schema. */
class VerbQueryText {
  readonly #kindByParameter = new Map<string, string>();

  constructor(routedVerb: Verb) {
    const { properties: inputProperties = {} } = inputSchema(routedVerb) as {
      readonly properties?: Readonly<Record<string, { readonly type?: string }>>;
    };
    for (const [parameterName, { type: parameterType }] of Object.entries(inputProperties))
      if (parameterType !== undefined) this.#kindByParameter.set(parameterName, parameterType);
  }

  read(verbQuery: Readonly<Record<string, unknown>>): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(verbQuery).map(([parameterName, parameterText]) => [
        parameterName,
        this.#parameterValue(parameterName, parameterText),
      ]),
    );
  }

  #parameterValue(parameterName: string, parameterText: unknown): unknown {
    const parameterKind = this.#kindByParameter.get(parameterName) ?? this.#kindByParameter.get(snakeCase(parameterName));
    if (parameterKind === 'array') return Array.isArray(parameterText) ? parameterText : String(parameterText).split(',');
    if (typeof parameterText !== 'string') return parameterText;
    if (parameterKind === 'boolean')
      return parameterText === 'true' || parameterText === '1' || parameterText === ''
        ? true
        : parameterText === 'false' || parameterText === '0'
          ? false
          : parameterText;
    if (parameterKind !== 'number' && parameterKind !== 'integer') return parameterText;
    const parameterNumber = parameterText.trim() === '' ? Number.NaN : Number(parameterText);
    return Number.isFinite(parameterNumber) ? parameterNumber : parameterText;
  }
}

/** A route for each path of each verb. */
export const verbRoutes: readonly Route[] = verbs.flatMap((routedVerb) =>
  (routedVerb.http ?? []).map((verbHttpRoute) => verbRoute(routedVerb, verbHttpRoute)),
);
