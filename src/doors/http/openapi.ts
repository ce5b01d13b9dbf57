/** /openapi.json from the schemas that check requests, so that it can't say anything else. */
import swagger from '@fastify/swagger';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { App, HttpContext } from './context.ts';

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
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
}
