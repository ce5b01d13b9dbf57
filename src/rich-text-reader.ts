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
const patience = { ms: 5_000, perMiBMs: 15_000, mostMs: 60_000 } as const;
/** Bytes that no input of the format needs more than some milliseconds for. */
const atOnceBytes = { text: 1 << 16, markdown: 1 << 12, html: 1 << 12, pdf: 0 } as const;
/** Threads at a time, beside one for a tenant that has none while another has all of them. */
const threadsMax = 2;

export function richTextReader(clock: Pick<Clock, 'sleep'>, startWorker: StartWorker = threadWorker): ReadDocuments {
  const threads = new Threads();
  return async (given, { tenant, signal }) => {
    const request = { ...given, format: given.format ?? formatOf(given.bytes, given.name) };
    if (request.bytes.length <= atOnceBytes[request.format]) return readDocument(request);
    await threads.acquire(tenant, signal);
    const worker = startWorker(readingJob, null);
    const over = new AbortController();
    const patienceMs = Math.min(patience.mostMs, patience.ms + (request.bytes.length / (1 << 20)) * patience.perMiBMs);
    try {
      const late = async (): Promise<never> => {
        await clock.sleep(patienceMs, AbortSignal.any([over.signal, ...(signal ? [signal] : [])]));
        if (signal?.aborted) throw goneError();
        throw new ServiceError('REL_UNPROCESSABLE', `the document takes more than ${Math.round(patienceMs / 1000)} s to read`);
      };
      return await Promise.race([worker.ask(request), late()]);
    } catch (error) {
      // A parser that throws something of its own, or whose thread ran out of memory, says that this input can't be read.
      if (error instanceof ServiceError && error.code !== 'REL_INTERNAL') throw error;
      throw new ServiceError('REL_UNPROCESSABLE', 'the document can not be read: it is damaged, or needs too much memory', {
        cause: error,
      });
    } finally {
      over.abort();
      await worker.end();
      threads.release(tenant);
    }
  };
}

interface Waiting {
  readonly tenant: string;
  readonly start: () => void;
}

/** Hands out threads: tenants take turns, and a tenant gets a second one only while no other waits. */
class Threads {
  /** By tenant, how many it has. */
  readonly #running = new Map<string, number>();
  /** In the order in which they came. */
  readonly #waiting: Waiting[] = [];
  /** By tenant that has one or waits for one: when it got the last one. */
  readonly #lastTurns = new Map<string, number>();
  #turn = 0;

  async acquire(tenant: string, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw goneError();
    await new Promise<void>((resolve, reject) => {
      const waiting = { tenant, start: resolve };
      this.#waiting.push(waiting);
      this.#next();
      signal?.addEventListener(
        'abort',
        () => {
          const at = this.#waiting.indexOf(waiting);
          if (at < 0) return;
          this.#waiting.splice(at, 1);
          this.#forget(tenant);
          reject(goneError());
        },
        { once: true },
      );
    });
  }

  release(tenant: string): void {
    const left = this.#running.get(tenant)! - 1;
    if (left === 0) this.#running.delete(tenant);
    else this.#running.set(tenant, left);
    this.#next();
    this.#forget(tenant);
  }

  #forget(tenant: string): void {
    if (!this.#running.has(tenant) && !this.#waiting.some((each) => each.tenant === tenant)) this.#lastTurns.delete(tenant);
  }

  #next(): void {
    for (;;) {
      const without = this.#waiting.filter(({ tenant }) => !this.#running.has(tenant));
      const mayStart = without.length > 0 ? this.#running.size < threadsMax : this.#count < threadsMax;
      const [next] = (without.length > 0 ? without : this.#waiting).toSorted((a, b) => this.#lastTurn(a) - this.#lastTurn(b));
      if (!mayStart || next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#lastTurns.set(next.tenant, ++this.#turn);
      this.#running.set(next.tenant, (this.#running.get(next.tenant) ?? 0) + 1);
      next.start();
    }
  }

  #lastTurn({ tenant }: Waiting): number {
    return this.#lastTurns.get(tenant) ?? 0;
  }

  get #count(): number {
    let count = 0;
    for (const each of this.#running.values()) count += each;
    return count;
  }
}

const goneError = (): ServiceError => new ServiceError('REL_CANCELLED', 'the caller went away');
