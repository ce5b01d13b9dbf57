/**
 * Documents read beside the store. Their parsers are not ours and some inputs keep them busy for hours: each document has a
 * thread of its own that ends when its time is over. Documents too short for that are read at once. A tenant's documents wait for
 * each other before they wait for those of others.
 */
import type { Clock } from './clock.ts';
import { formatOf } from './doors/rich-text/blocks.ts';
import type { ReadDocuments } from './doors/rich-text/rich-text.ts';
import { readDocument, readingJob } from './doors/rich-text/chunks.ts';
import { ServiceError } from './errors.ts';
import { type StartWorker, threadWorker } from './log/threads/workers.ts';

/** How long a document may take: so long, and for each MiB so much more; never longer than the last. */
const readingPatience = { ms: 5_000, perMiBMs: 15_000, mostMs: 60_000 } as const;
/** Bytes that no input of the format needs more than some milliseconds for. */
const readAtOnceBytes = { text: 1 << 16, markdown: 1 << 12, html: 1 << 12, pdf: 0 } as const;
/** Threads at a time, beside one for a tenant that has none while another has all of them. */
const readerThreadsMax = 2;

export function richTextReader(clock: Pick<Clock, 'sleep'>, startWorker: StartWorker = threadWorker): ReadDocuments {
  const readerThreads = new ReaderThreads();
  return async (givenDocument, { tenant, signal: callerSignal }) => {
    const readRequest = { ...givenDocument, format: givenDocument.format ?? formatOf(givenDocument.bytes, givenDocument.name) };
    if (readRequest.bytes.length <= readAtOnceBytes[readRequest.format]) return readDocument(readRequest);
    await readerThreads.acquire(tenant, callerSignal);
    const readerWorker = startWorker(readingJob, null);
    const readingEnded = new AbortController();
    const patienceMs = Math.min(
      readingPatience.mostMs,
      readingPatience.ms + (readRequest.bytes.length / (1 << 20)) * readingPatience.perMiBMs,
    );
    try {
      const refuseLateReading = async (): Promise<never> => {
        await clock.sleep(patienceMs, AbortSignal.any([readingEnded.signal, ...(callerSignal ? [callerSignal] : [])]));
        if (callerSignal?.aborted) throw callerGoneError();
        throw new ServiceError('REL_UNPROCESSABLE', `the document takes more than ${Math.round(patienceMs / 1000)} s to read`);
      };
      return await Promise.race([readerWorker.ask(readRequest), refuseLateReading()]);
    } catch (readingError) {
      // A parser that throws something of its own, or whose thread ran out of memory, says that this input can't be read.
      if (readingError instanceof ServiceError && readingError.code !== 'REL_INTERNAL') throw readingError;
      throw new ServiceError('REL_UNPROCESSABLE', 'the document can not be read: it is damaged, or needs too much memory', {
        cause: readingError,
      });
    } finally {
      readingEnded.abort();
      await readerWorker.end();
      readerThreads.release(tenant);
    }
  };
}

interface WaitingReader {
  readonly tenant: string;
  readonly start: () => void;
}

/** Hands out threads: tenants take turns, and a tenant gets a second one only while no other waits. */
class ReaderThreads {
  /** By tenant, how many it has. */
  readonly #runningReaders = new Map<string, number>();
  /** In the order in which they came. */
  readonly #waitingReaders: WaitingReader[] = [];
  /** By tenant that has one or waits for one: when it got the last one. */
  readonly #lastReaderTurns = new Map<string, number>();
  #readerTurn = 0;

  async acquire(tenant: string, callerSignal: AbortSignal | undefined): Promise<void> {
    if (callerSignal?.aborted) throw callerGoneError();
    await new Promise<void>((resolve, reject) => {
      const waitingReader = { tenant, start: resolve };
      this.#waitingReaders.push(waitingReader);
      this.#startNextReader();
      callerSignal?.addEventListener(
        'abort',
        () => {
          const waitingIndex = this.#waitingReaders.indexOf(waitingReader);
          if (waitingIndex < 0) return;
          this.#waitingReaders.splice(waitingIndex, 1);
          this.#forgetTenant(tenant);
          reject(callerGoneError());
        },
        { once: true },
      );
    });
  }

  release(tenant: string): void {
    const readersLeft = this.#runningReaders.get(tenant)! - 1;
    if (readersLeft === 0) this.#runningReaders.delete(tenant);
    else this.#runningReaders.set(tenant, readersLeft);
    this.#startNextReader();
    this.#forgetTenant(tenant);
  }

  #forgetTenant(tenant: string): void {
    if (!this.#runningReaders.has(tenant) && !this.#waitingReaders.some((waitingReader) => waitingReader.tenant === tenant))
      this.#lastReaderTurns.delete(tenant);
  }

  #startNextReader(): void {
    for (;;) {
      const readersOfIdleTenants = this.#waitingReaders.filter(({ tenant }) => !this.#runningReaders.has(tenant));
      const mayStartReader =
        readersOfIdleTenants.length > 0
          ? this.#runningReaders.size < readerThreadsMax
          : this.#runningReaderCount < readerThreadsMax;
      const [nextReader] = (readersOfIdleTenants.length > 0 ? readersOfIdleTenants : this.#waitingReaders).toSorted(
        (a, b) => this.#lastReaderTurn(a) - this.#lastReaderTurn(b),
      );
      if (!mayStartReader || nextReader === undefined) return;
      this.#waitingReaders.splice(this.#waitingReaders.indexOf(nextReader), 1);
      this.#lastReaderTurns.set(nextReader.tenant, ++this.#readerTurn);
      this.#runningReaders.set(nextReader.tenant, (this.#runningReaders.get(nextReader.tenant) ?? 0) + 1);
      nextReader.start();
    }
  }

  #lastReaderTurn({ tenant }: WaitingReader): number {
    return this.#lastReaderTurns.get(tenant) ?? 0;
  }

  get #runningReaderCount(): number {
    let readerCount = 0;
    for (const tenantReaders of this.#runningReaders.values()) readerCount += tenantReaders;
    return readerCount;
  }
}

const callerGoneError = (): ServiceError => new ServiceError('REL_CANCELLED', 'the caller went away');
