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

export const xmlReply = (document: string, headers: Readonly<Record<string, string>> = {}): S3Reply => ({
  status: 200,
  headers: { 'content-type': 'application/xml', ...headers },
  body: document,
});

export async function sendReply(exchange: S3Exchange, { status, headers, body = '', overtaken = never }: S3Reply): Promise<void> {
  const { response, request } = exchange;
  checkErased({ overtaken });
  const streamed = typeof body === 'string' || body instanceof Uint8Array ? null : body;
  const bytes = streamed === null ? Buffer.from(body as string) : null;
  const said = headers['content-length'] ?? String(streamed?.length ?? bytes!.length);
  const bodiless = status === 204 || status === 304;
  response.writeHead(status, bodiless ? headers : { ...headers, 'content-length': said });
  if (bodiless || request.method === 'HEAD' || streamed === null) {
    response.end(bodiless || request.method === 'HEAD' ? undefined : bytes);
    return streamed?.close();
  }
  const over = new AbortController();
  let takenMs = exchange.parts.clock.monotonicMs();
  const check = (): void => {
    checkCaller(exchange.parts, exchange.caller);
    checkErased({ overtaken });
    if (response.writableLength === 0) takenMs = exchange.parts.clock.monotonicMs();
    if (exchange.parts.clock.monotonicMs() - takenMs >= stalledMs) throw new Error('the client takes nothing');
  };
  response.once('close', () => over.abort());
  void watchStream(exchange.parts, check, over.signal, () => void response.destroy());
  try {
    for await (const piece of streamed.read()) {
      if (response.destroyed) return;
      takenMs = exchange.parts.clock.monotonicMs();
      if (!response.write(piece)) await once(response, 'drain', { signal: over.signal });
    }
    response.end();
  } catch (error) {
    if (!over.signal.aborted) exchange.parts.reportFailure(error);
    response.destroy();
  } finally {
    await streamed.close();
  }
}

const never = (): boolean => false;
