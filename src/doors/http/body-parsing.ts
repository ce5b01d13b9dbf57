/** Reads bodies: whole, compressed or not, up to the body limit or that of their route, or as a stream. */
import type { IncomingMessage } from 'node:http';
import { encodingOf, unfoldedWhole } from '../shared/content-encoding.ts';
import type { App, FastifyRequest, HttpContext } from './context.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import { parseJsonBody, parseJsonSteps } from './json-body.ts';

/** A body of no more is read in one turn. */
const shortBodyBytes = 1 << 20;

/** Routes take JSON by default under any Content-Type: plain `curl -d` claims to send a form. */
export function readBodies(app: App, httpContext: HttpContext): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (rawRequest: unknown, bodyStream: IncomingMessage) => {
    const httpRequest = rawRequest as FastifyRequest;
    const { bodyLimit, config } = httpRequest.routeOptions;
    const { reads: bodyReader } = config;
    if (bodyReader === 'stream') return bodyStream;
    const bodyEncoding = encodingOf(httpRequest);
    const receivedBody = await new Promise<Buffer>((resolveBody, rejectBody) => {
      const settleBody = (bodyError: Error | null, bodyBytes?: Buffer): void =>
        bodyError ? rejectBody(bodyError) : resolveBody(bodyBytes!);
      httpContext.bodies.collect(bodyStream, httpRequest.headers['content-length'], settleBody, bodyLimit);
    });
    const decodedBody = await unfoldedWhole(receivedBody, bodyEncoding, Math.min(bodyLimit, httpContext.bodyLimitBytes));
    if (bodyReader !== undefined) return bodyReader(decodedBody, httpRequest, httpContext.yieldTurn);
    return decodedBody.length > shortBodyBytes
      ? inTurns(parseJsonSteps(decodedBody), httpContext.yieldTurn)
      : parseJsonBody(decodedBody);
  });
}
