/** Fsyncs of the open log file: in the turn where no other work waits and the disk is fast, otherwise in the background. */
import type { Clock } from '../../clock.ts';
import type { LogWriter } from '../files/log-writer.ts';

/** Longer fsyncs do not hold the event loop: those of larger groups, and of a disk whose last fsync in the turn was slow. */
const SYNC_IN_TURN_BYTES_MAX = 64 << 10;
const SYNC_IN_TURN_MS_MAX = 0.5;
/** Fsyncs beside the loop before another one is tried in the turn; doubled each time that one is slow. */
const OFF_TURN_SYNCS_MIN = 16;
const OFF_TURN_SYNCS_MAX = 4096;

export class LogFsync {
  readonly #logWriter: LogWriter;
  readonly #fsyncClock: Pick<Clock, 'monotonicMs'>;
  /** Fsyncs that are still made beside the loop, because the last one in the turn was slow. */
  #offTurnSyncs = 0;
  #nextOffTurnSyncs = OFF_TURN_SYNCS_MIN;

  constructor(logWriter: LogWriter, fsyncClock: Pick<Clock, 'monotonicMs'>) {
    this.#logWriter = logWriter;
    this.#fsyncClock = fsyncClock;
  }

  async sync(unsyncedBytes: number, isOnlyWriter: boolean): Promise<void> {
    if (!isOnlyWriter || unsyncedBytes > SYNC_IN_TURN_BYTES_MAX || this.#offTurnSyncs > 0) {
      this.#offTurnSyncs = Math.max(0, this.#offTurnSyncs - 1);
      return await this.#logWriter.sync();
    }
    const fsyncBeganMs = this.#fsyncClock.monotonicMs();
    await this.#logWriter.sync(true);
    if (this.#fsyncClock.monotonicMs() - fsyncBeganMs <= SYNC_IN_TURN_MS_MAX) this.#nextOffTurnSyncs = OFF_TURN_SYNCS_MIN;
    else {
      this.#offTurnSyncs = this.#nextOffTurnSyncs;
      this.#nextOffTurnSyncs = Math.min(OFF_TURN_SYNCS_MAX, this.#nextOffTurnSyncs * 2);
    }
  }
}
