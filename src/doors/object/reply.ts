/** Answers on their way to a client: whole, or as fast as it takes them, for as long as its next request would be let in. */
import { once } from 'node:events';
import { checkCaller, checkErased, stalledMs, watchStream } from '../shared/stream-lease.ts';
import type { S3Exchange } from './exchange.ts';

export interface S3Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | StreamedBody;
  /** Whether rows that it may hold were erased since it was made. */
  readonly overtaken?: () => boolean;
}

export interface StreamedBody {
  readonly length: number;
  read(): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

export type Operation = (exchange: S3Exchange) => Promise<S3Reply>;

export const xmlReply = (replyXml: string, replyHeaders: Readonly<Record<string, string>> = {}): S3Reply => ({
  status: 200,
  headers: { 'content-type': 'application/xml', ...replyHeaders },
  body: replyXml,
});

export async function sendReply(
  s3Exchange: S3Exchange,
  { status: replyStatus, headers: replyHeaders, body: replyBody = '', overtaken: isOvertaken = neverOvertaken }: S3Reply,
): Promise<void> {
  const { response: httpResponse, request: objectRequest } = s3Exchange;
  checkErased({ overtaken: isOvertaken });
  const streamedBody = typeof replyBody === 'string' || replyBody instanceof Uint8Array ? null : replyBody;
  const replyBytes = streamedBody === null ? Buffer.from(replyBody as string) : null;
  const contentLength = replyHeaders['content-length'] ?? String(streamedBody?.length ?? replyBytes!.length);
  const isBodiless = replyStatus === 204 || replyStatus === 304;
  httpResponse.writeHead(replyStatus, isBodiless ? replyHeaders : { ...replyHeaders, 'content-length': contentLength });
  if (isBodiless || objectRequest.method === 'HEAD' || streamedBody === null) {
    httpResponse.end(isBodiless || objectRequest.method === 'HEAD' ? undefined : replyBytes);
    return streamedBody?.close();
  }
  const replyOver = new AbortController();
  let lastTakenMs = s3Exchange.parts.clock.monotonicMs();
  const checkStream = (): void => {
    checkCaller(s3Exchange.parts, s3Exchange.caller);
    checkErased({ overtaken: isOvertaken });
    if (httpResponse.writableLength === 0) lastTakenMs = s3Exchange.parts.clock.monotonicMs();
    if (s3Exchange.parts.clock.monotonicMs() - lastTakenMs >= stalledMs) throw new Error('the client takes nothing');
  };
  httpResponse.once('close', () => replyOver.abort());
  void watchStream(s3Exchange.parts, checkStream, replyOver.signal, () => void httpResponse.destroy());
  try {
    for await (const bodyPiece of streamedBody.read()) {
      if (httpResponse.destroyed) return;
      lastTakenMs = s3Exchange.parts.clock.monotonicMs();
      if (!httpResponse.write(bodyPiece)) await once(httpResponse, 'drain', { signal: replyOver.signal });
    }
    httpResponse.end();
  } catch (replyError) {
    if (!replyOver.signal.aborted) s3Exchange.parts.reportFailure(replyError);
    httpResponse.destroy();
  } finally {
    await streamedBody.close();
  }
}

const neverOvertaken = (): boolean => false;
