/** Fsyncs of the open log file: in the turn where no other work waits and the disk is fast, otherwise in the background. */
import type { Clock } from '../../clock.ts';
import type { LogWriter } from '../files/log-writer.ts';

/** Longer fsyncs do not hold the event loop: those of larger groups, and of a disk whose last fsync in the turn was slow. */
const IN_TURN_BYTES_MAX = 64 << 10;
const IN_TURN_MS_MAX = 0.5;
/** Fsyncs beside the loop before another one is tried in the turn; doubled each time that one is slow. */
const BESIDE_MIN = 16;
const BESIDE_MAX = 4096;

export class LogFsync {
  readonly #writer: LogWriter;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Fsyncs that are still made beside the loop, because the last one in the turn was slow. */
  #besides = 0;
  #besidesNext = BESIDE_MIN;

  constructor(writer: LogWriter, clock: Pick<Clock, 'monotonicMs'>) {
    this.#writer = writer;
    this.#clock = clock;
  }

  async sync(bytes: number, nobodyElse: boolean): Promise<void> {
    if (!nobodyElse || bytes > IN_TURN_BYTES_MAX || this.#besides > 0) {
      this.#besides = Math.max(0, this.#besides - 1);
      return await this.#writer.sync();
    }
    const beganMs = this.#clock.monotonicMs();
    await this.#writer.sync(true);
    if (this.#clock.monotonicMs() - beganMs <= IN_TURN_MS_MAX) this.#besidesNext = BESIDE_MIN;
    else {
      this.#besides = this.#besidesNext;
      this.#besidesNext = Math.min(BESIDE_MAX, this.#besidesNext * 2);
    }
  }
}
