/** How bodies are read: whole, up to the body limit or that of their route, or as the stream that they are. */
import type { App, FastifyRequest, HttpContext } from './context.ts';
import { parseJsonBody } from './json-body.ts';

/** Whatever a body is labelled, the routes that say nothing else mean JSON: plain `curl -d` says it is a form. */
export function readBodies(app: App, context: HttpContext): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request, payload, done) => {
    const { bodyLimit, config } = request.routeOptions;
    const { reads = parseJsonBody } = config;
    if (reads === 'stream') return done(null, payload);
    const take = (error: Error | null, body?: Buffer): void => {
      if (error) return done(error);
      try {
        done(null, reads(body!, request as FastifyRequest));
      } catch (thrown) {
        done(thrown as Error);
      }
    };
    context.bodies.collect(payload, request.headers['content-length'], take, bodyLimit);
  });
}
