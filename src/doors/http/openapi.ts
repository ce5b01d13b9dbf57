/** /openapi.json from the schemas that check requests, so that it can't say anything else. */
import swagger from '@fastify/swagger';
import type { RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { App, HttpContext, RouteAccess } from './context.ts';
import { exactJson } from '../shared/write-exact-json.ts';

interface OpenapiDocument {
  readonly paths: object;
}
type OpenapiRoute = ReturnType<typeof jsonSchemaTransform>;

const openapiVersion = '3.1.0';
/** Names of decorators, one for each part of the description that is made in one turn. */
const openapiParts = Array.from({ length: 10 }, (_, i) => `description${i}` as const);
const routeDescriptions = new WeakMap<object, () => Promise<Buffer>>();

/** The text of /openapi.json: made once, a route in a turn, and sent as it is to everybody. */
export function descriptionOf({ server }: Pick<App, 'server'>): Promise<Buffer> {
  return routeDescriptions.get(server)!();
}

/** Must run before any route is registered. */
export async function describeRoutes(app: App, httpContext: HttpContext): Promise<void> {
  const describedRoutes: RouteOptions[] = [];
  app.addHook('onRoute', (describedRoute) => void describedRoutes.push(describedRoute));
  const openapiByRoute = new WeakMap<RouteOptions, OpenapiRoute>();
  const transformRoute = (describedRoute: RouteOptions): OpenapiRoute => {
    let routeSchema = openapiByRoute.get(describedRoute);
    if (routeSchema === undefined) openapiByRoute.set(describedRoute, (routeSchema = openapiRoute(describedRoute)));
    return routeSchema;
  };
  const describeApi = async (): Promise<Buffer> => {
    for (const describedRoute of describedRoutes) {
      transformRoute(describedRoute);
      await httpContext.yieldTurn();
    }
    const routeUrls = [...new Set(describedRoutes.map(({ url: routeUrl }) => routeUrl))];
    for (const [i, url] of routeUrls.entries())
      openapiPartByUrl.set(url, openapiParts[Math.floor((i * openapiParts.length) / routeUrls.length)]!);
    const openapiDocuments: OpenapiDocument[] = [];
    for (const openapiPart of openapiParts) {
      openapiDocuments.push(app.getDecorator<() => OpenapiDocument>(openapiPart)());
      await httpContext.yieldTurn();
    }
    const openapiPaths: string[] = [];
    for (const openapiDocument of openapiDocuments) {
      openapiPaths.push(...Object.entries(openapiDocument.paths ?? {}).map(openapiMember));
      await httpContext.yieldTurn();
    }
    const openapiMembers = Object.entries(openapiDocuments[0]!).map(([openapiName, openapiValue]) =>
      openapiName === 'paths' ? `"paths":{${openapiPaths.join()}}` : openapiMember([openapiName, openapiValue]),
    );
    return Buffer.from(`{${openapiMembers.join()}}`);
  };
  let apiDescription: Promise<Buffer> | null = null;
  routeDescriptions.set(app.server, () => (apiDescription ??= describeApi()));
  // The library describes all of its routes in one turn, more than a tenth of a second of them: each part has a tenth of the routes.
  const openapiPartByUrl = new Map<string, string>();
  for (const swaggerPart of openapiParts) {
    await app.register(swagger, {
      decorator: swaggerPart,
      openapi: {
        openapi: openapiVersion,
        info: {
          title: 'Annals',
          version: httpContext.system.version,
          description: 'A governed, bi-temporal knowledge store: one hash-chained log, every answer provable.',
        },
        components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
        security: [{ token: [] }],
      },
      transform: ({ route: describedRoute }) =>
        openapiPartByUrl.get(describedRoute.url) === swaggerPart
          ? transformRoute(describedRoute)
          : { schema: { hide: true }, url: describedRoute.url },
      ...(swaggerPart === openapiParts[0] && { transformObject: jsonSchemaTransformObject }),
    });
  }
}

const openapiMember = ([openapiName, openapiValue]: [string, unknown]): string =>
  `${JSON.stringify(openapiName)}:${exactJson(openapiValue)}`;

function openapiRoute(registeredRoute: RouteOptions): OpenapiRoute {
  const { schema: openapiSchema, url: openapiUrl } = jsonSchemaTransform({
    schema: registeredRoute.schema!,
    url: registeredRoute.url,
    route: registeredRoute,
    openapiObject: { openapi: openapiVersion },
  });
  const { access: routeAccess } = (registeredRoute.config ?? {}) as { readonly access?: RouteAccess };
  return routeAccess === 'token'
    ? { schema: { ...openapiSchema, ...branchParameters(openapiSchema) }, url: openapiUrl }
    : { schema: openapiSchema, url: openapiUrl };
}

interface OpenapiObjectSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

/** Every data route takes them, in one place for all (`request-headers.ts`): the routes’ own schemas don't name them. */
function branchParameters(routeSchema: object): { querystring: OpenapiObjectSchema; headers: OpenapiObjectSchema } {
  const { querystring: querySchema, headers: headersSchema } = routeSchema as {
    readonly querystring?: OpenapiObjectSchema;
    readonly headers?: OpenapiObjectSchema;
  };
  return { querystring: withParameter('branch', querySchema), headers: withParameter('X-Service-Branch', headersSchema) };
}

function withParameter(parameterName: string, objectSchema: OpenapiObjectSchema | undefined): OpenapiObjectSchema {
  const branchParameter = { type: 'string', description: 'branch to read or write; main by default' };
  return { type: 'object', ...objectSchema, properties: { ...objectSchema?.properties, [parameterName]: branchParameter } };
}
