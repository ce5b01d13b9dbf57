/** Replies of the framework's routes that are sent piece by piece while they are written. */
import type { FastifyReply, FastifyRequest, HttpContext } from './context.ts';
import { AnswerBody } from '../shared/http-answer-body.ts';
import type { Overtaken } from '../shared/stream-lease.ts';
import { callerOf } from './invoke.ts';

/** Takes the response over from the framework; null when the client is gone. */
export function openBody(
  httpContext: HttpContext,
  httpRequest: FastifyRequest,
  httpReply: FastifyReply,
  replyHeaders: Readonly<Record<string, string>>,
  { overtaken: isOvertaken }: Overtaken,
): AnswerBody | null {
  httpReply.hijack();
  httpReply.raw.writeHead(200, replyHeaders);
  if (httpRequest.method !== 'HEAD') {
    const answeredRequest = {
      id: httpRequest.id,
      route: httpRequest.routeOptions.url ?? 'unknown',
      caller: callerOf(httpRequest),
      overtaken: isOvertaken,
    };
    return new AnswerBody(httpContext, answeredRequest, httpReply.raw);
  }
  httpReply.raw.end();
  return null;
}

/** Answers up to here leave in one piece, with their length. */
const replyBytesAtOnce = 1 << 19;

/** Sends what an answer is made of, once its access record is there: whole where it is short, else as fast as the client takes it. */
export async function sendPieces(
  httpContext: HttpContext,
  httpRequest: FastifyRequest,
  httpReply: FastifyReply,
  routeHeaders: Readonly<Record<string, string>>,
  replyPieces: Iterator<Uint8Array, void>,
  answer: Overtaken,
): Promise<FastifyReply> {
  const firstPieces: Uint8Array[] = [];
  let firstPieceBytes = 0;
  let pieceStep = replyPieces.next();
  for (; pieceStep.done !== true && firstPieceBytes < replyBytesAtOnce; pieceStep = replyPieces.next()) {
    firstPieces.push(pieceStep.value);
    firstPieceBytes += pieceStep.value.length;
  }
  const isWholeReply = pieceStep.done === true;
  const lastPiece = pieceStep.done === true ? [] : [pieceStep.value];
  const allHeaders = { ...routeHeaders, ...(isWholeReply && { 'content-length': String(firstPieceBytes) }) };
  const answerBody = openBody(httpContext, httpRequest, httpReply, allHeaders, answer);
  await answerBody?.sendAll(
    isWholeReply ? [Buffer.concat(firstPieces)].values() : chain([...firstPieces, ...lastPiece], replyPieces),
  );
  return httpReply;
}

function* chain(firstPieces: readonly Uint8Array[], rest: Iterator<Uint8Array, void>): Generator<Uint8Array, void> {
  yield* firstPieces;
  for (let step = rest.next(); step.done !== true; step = rest.next()) yield step.value;
}
