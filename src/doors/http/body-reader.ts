/** How the routes of one scope read bodies that arrive whole: up to the body limit, or that of their route. */
import type { App, FastifyRequest, HttpContext } from './context.ts';

/** What `read` throws refuses the request. */
export function readBodies(app: App, context: HttpContext, read: (body: Buffer, request: FastifyRequest) => unknown): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request, payload, done) => {
    const take = (error: Error | null, body?: Buffer): void => {
      if (error) return done(error);
      try {
        done(null, read(body!, request as FastifyRequest));
      } catch (thrown) {
        done(thrown as Error);
      }
    };
    context.bodies.collect(payload, request.headers['content-length'], take, request.routeOptions.bodyLimit);
  });
}
