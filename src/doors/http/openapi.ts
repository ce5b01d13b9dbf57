/** /openapi.json from the schemas that check requests, so that it can't say anything else. */
import swagger from '@fastify/swagger';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { App, HttpContext, RouteAccess } from './context.ts';

/** Must run before any route is registered. */
export async function describeRoutes(app: App, context: HttpContext): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals',
        version: context.system.version,
        description: 'A governed, bi-temporal knowledge store: one hash-chained log, every answer provable.',
      },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    },
    transform: (route) => {
      const { schema, url } = jsonSchemaTransform(route);
      const { access } = (route.route.config ?? {}) as { readonly access?: RouteAccess };
      return access === 'token' ? { schema: { ...schema, ...branchWays(schema) }, url } : { schema, url };
    },
    transformObject: jsonSchemaTransformObject,
  });
}

interface ObjectSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

/** Every data route takes them, in one place for all (`headers.ts`): the routes’ own schemas don't name them. */
function branchWays(schema: object): { querystring: ObjectSchema; headers: ObjectSchema } {
  const { querystring, headers } = schema as { readonly querystring?: ObjectSchema; readonly headers?: ObjectSchema };
  return { querystring: including('branch', querystring), headers: including('X-Service-Branch', headers) };
}

function including(name: string, schema: ObjectSchema | undefined): ObjectSchema {
  const way = { type: 'string', description: 'branch to read or write; main by default' };
  return { type: 'object', ...schema, properties: { ...schema?.properties, [name]: way } };
}
