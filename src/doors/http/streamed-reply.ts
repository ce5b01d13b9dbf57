/** Replies of the framework's routes that are sent piece by piece while they are written. */
import type { FastifyReply, FastifyRequest, HttpContext } from './context.ts';
import { AnswerBody } from '../shared/http-answer-body.ts';
import type { Overtaken } from '../shared/stream-lease.ts';
import { callerOf } from './invoke.ts';

/** Takes the response over from the framework; null when the client is gone. */
export function openBody(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  { overtaken }: Overtaken,
): AnswerBody | null {
  reply.hijack();
  reply.raw.writeHead(200, headers);
  if (request.method !== 'HEAD') {
    const asked = { id: request.id, route: request.routeOptions.url ?? 'unknown', caller: callerOf(request), overtaken };
    return new AnswerBody(context, asked, reply.raw);
  }
  reply.raw.end();
  return null;
}

/** Answers up to here leave in one piece, with their length. */
const bytesAtOnce = 1 << 19;

/** Sends what an answer is made of, once its access record is there: whole where it is short, else as fast as the client takes it. */
export async function sendPieces(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  pieces: Iterator<Uint8Array, void>,
  answer: Overtaken,
): Promise<FastifyReply> {
  const firstPieces: Uint8Array[] = [];
  let bytes = 0;
  let step = pieces.next();
  for (; step.done !== true && bytes < bytesAtOnce; step = pieces.next()) {
    firstPieces.push(step.value);
    bytes += step.value.length;
  }
  const isWhole = step.done === true;
  const rest = step.done === true ? [] : [step.value];
  const allHeaders = { ...headers, ...(isWhole && { 'content-length': String(bytes) }) };
  const body = openBody(context, request, reply, allHeaders, answer);
  await body?.sendAll(isWhole ? [Buffer.concat(firstPieces)].values() : chain([...firstPieces, ...rest], pieces));
  return reply;
}

function* chain(firstPieces: readonly Uint8Array[], rest: Iterator<Uint8Array, void>): Generator<Uint8Array, void> {
  yield* firstPieces;
  for (let step = rest.next(); step.done !== true; step = rest.next()) yield step.value;
}
