/** Reads bodies: whole, compressed or not, up to the body limit or that of their route, or as a stream. */
import type { IncomingMessage } from 'node:http';
import { encodingOf, unfoldedWhole } from '../shared/content-encoding.ts';
import type { App, FastifyRequest, HttpContext } from './context.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import { parseJsonBody, parseJsonSteps } from './json-body.ts';

/** A body of no more is read in one turn. */
const shortBytes = 1 << 20;

/** Routes take JSON by default under any Content-Type: plain `curl -d` claims to send a form. */
export function readBodies(app: App, context: HttpContext): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (given: unknown, payload: IncomingMessage) => {
    const request = given as FastifyRequest;
    const { bodyLimit, config } = request.routeOptions;
    const { reads } = config;
    if (reads === 'stream') return payload;
    const encoding = encodingOf(request);
    const body = await new Promise<Buffer>((resolve, reject) => {
      const settle = (error: Error | null, came?: Buffer): void => (error ? reject(error) : resolve(came!));
      context.bodies.collect(payload, request.headers['content-length'], settle, bodyLimit);
    });
    const whole = await unfoldedWhole(body, encoding, Math.min(bodyLimit, context.bodyLimitBytes));
    if (reads !== undefined) return reads(whole, request, context.yieldTurn);
    return whole.length > shortBytes ? inTurns(parseJsonSteps(whole), context.yieldTurn) : parseJsonBody(whole);
  });
}
