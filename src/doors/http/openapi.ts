/** /openapi.json from the schemas that check requests, so that it can't say anything else. */
import swagger from '@fastify/swagger';
import type { RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { App, HttpContext, RouteAccess } from './context.ts';
import { exactJson } from '../shared/write-exact-json.ts';

interface Document {
  readonly paths: object;
}
type Transformed = ReturnType<typeof jsonSchemaTransform>;

const openapi = '3.1.0';
/** Names of decorators, one for each part of the description that is made in one turn. */
const parts = Array.from({ length: 10 }, (_, i) => `description${i}` as const);
const descriptions = new WeakMap<object, () => Promise<Buffer>>();

/** The text of /openapi.json: made once, a route in a turn, and sent as it is to everybody. */
export function descriptionOf({ server }: Pick<App, 'server'>): Promise<Buffer> {
  return descriptions.get(server)!();
}

/** Must run before any route is registered. */
export async function describeRoutes(app: App, context: HttpContext): Promise<void> {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => void routes.push(route));
  const transformed = new WeakMap<RouteOptions, Transformed>();
  const transform = (route: RouteOptions): Transformed => {
    let made = transformed.get(route);
    if (made === undefined) transformed.set(route, (made = transformedRoute(route)));
    return made;
  };
  const describe = async (): Promise<Buffer> => {
    for (const route of routes) {
      transform(route);
      await context.yieldTurn();
    }
    const urls = [...new Set(routes.map(({ url }) => url))];
    for (const [i, url] of urls.entries()) partOfUrl.set(url, parts[Math.floor((i * parts.length) / urls.length)]!);
    const documents: Document[] = [];
    for (const part of parts) {
      documents.push(app.getDecorator<() => Document>(part)());
      await context.yieldTurn();
    }
    const paths: string[] = [];
    for (const document of documents) {
      paths.push(...Object.entries(document.paths ?? {}).map(member));
      await context.yieldTurn();
    }
    const around = Object.entries(documents[0]!).map(([name, value]) =>
      name === 'paths' ? `"paths":{${paths.join()}}` : member([name, value]),
    );
    return Buffer.from(`{${around.join()}}`);
  };
  let described: Promise<Buffer> | null = null;
  descriptions.set(app.server, () => (described ??= describe()));
  // The library describes all of its routes in one turn, more than a tenth of a second of them: each part has a tenth of the routes.
  const partOfUrl = new Map<string, string>();
  for (const part of parts) {
    await app.register(swagger, {
      decorator: part,
      openapi: {
        openapi,
        info: {
          title: 'Annals',
          version: context.system.version,
          description: 'A governed, bi-temporal knowledge store: one hash-chained log, every answer provable.',
        },
        components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
        security: [{ token: [] }],
      },
      transform: ({ route }) =>
        partOfUrl.get(route.url) === part ? transform(route) : { schema: { hide: true }, url: route.url },
      ...(part === parts[0] && { transformObject: jsonSchemaTransformObject }),
    });
  }
}

const member = ([name, value]: [string, unknown]): string => `${JSON.stringify(name)}:${exactJson(value)}`;

function transformedRoute(route: RouteOptions): Transformed {
  const { schema, url } = jsonSchemaTransform({ schema: route.schema!, url: route.url, route, openapiObject: { openapi } });
  const { access } = (route.config ?? {}) as { readonly access?: RouteAccess };
  return access === 'token' ? { schema: { ...schema, ...branchWays(schema) }, url } : { schema, url };
}

interface ObjectSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

/** Every data route takes them, in one place for all (`request-headers.ts`): the routes’ own schemas don't name them. */
function branchWays(schema: object): { querystring: ObjectSchema; headers: ObjectSchema } {
  const { querystring, headers } = schema as { readonly querystring?: ObjectSchema; readonly headers?: ObjectSchema };
  return { querystring: including('branch', querystring), headers: including('X-Service-Branch', headers) };
}

function including(name: string, schema: ObjectSchema | undefined): ObjectSchema {
  const way = { type: 'string', description: 'branch to read or write; main by default' };
  return { type: 'object', ...schema, properties: { ...schema?.properties, [name]: way } };
}
