/**
 * Documents read beside the store. Their parsers are not ours and some inputs keep them busy for hours: each document has a thread
 * of its own that ends when its time is over. What is too short for that is read at once.
 */
import type { Clock } from './clock.ts';
import { formatOf } from './doors/documents/blocks.ts';
import type { ReadDocuments } from './doors/documents/document.ts';
import { readDocument, readingJob } from './doors/documents/chunks.ts';
import { ServiceError } from './errors.ts';
import { threadWorker } from './log/workers.ts';

const patienceMs = 60_000;
/** Bytes that no input of the format needs more than some milliseconds for. */
const atOnceBytes = { text: 1 << 16, markdown: 1 << 12, html: 1 << 12, pdf: 0 } as const;
/** Threads at a time: what is more waits. */
const threadsMax = 2;

export function documentReader(clock: Pick<Clock, 'sleep'>): ReadDocuments {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (given, signal) => {
    const request = { ...given, format: given.format ?? formatOf(given.bytes, given.name) };
    if (request.bytes.length <= atOnceBytes[request.format]) return readDocument(request);
    if (running === threadsMax) await new Promise<void>((go) => waiting.push(go));
    else running++;
    const worker = threadWorker(readingJob, null);
    const over = new AbortController();
    try {
      const late = async (): Promise<never> => {
        await clock.sleep(patienceMs, AbortSignal.any([over.signal, ...(signal ? [signal] : [])]));
        if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
        throw new ServiceError('REL_UNPROCESSABLE', `the document takes more than ${patienceMs / 1000} s to read`);
      };
      return await Promise.race([worker.ask(request), late()]);
    } finally {
      over.abort();
      await worker.end();
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
