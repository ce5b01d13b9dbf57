/** Whether the log takes entries, and why not: one state, and the room that its disk has. */
import { ServiceError } from '../../errors.ts';
import { FullDisk, type FullDiskOptions } from './full-disk.ts';
import { failureText } from './group-commit.ts';
import type { LogStatus } from '../log-store.ts';

type LogStage = { at: 'open' } | { at: 'draining' } | { at: 'closed' } | { at: 'failed'; reason: string };

export class LogState {
  readonly room: FullDisk;
  readonly #logOptions: Omit<FullDiskOptions, 'signal'>;
  readonly #logClosing = new AbortController();
  #logStage: LogStage = { at: 'open' };

  constructor(logOptions: Omit<FullDiskOptions, 'signal'>) {
    this.#logOptions = logOptions;
    this.room = new FullDisk({ ...logOptions, signal: this.#logClosing.signal });
  }

  /** Aborted when the log closes or has failed. */
  get signal(): AbortSignal {
    return this.#logClosing.signal;
  }

  get at(): LogStatus['state'] {
    return this.isFull ? 'full' : this.#logStage.at;
  }

  get failure(): string | null {
    return this.#logStage.at === 'failed' ? this.#logStage.reason : this.room.why;
  }

  /** Full or not. */
  get isOpen(): boolean {
    return this.#logStage.at === 'open';
  }

  get isFull(): boolean {
    return this.isOpen && this.room.why !== null;
  }

  get hasFailed(): boolean {
    return this.#logStage.at === 'failed';
  }

  /** Heads are still signed while the log drains. */
  get isSealable(): boolean {
    return this.isOpen || this.#logStage.at === 'draining';
  }

  /** Nothing waits for room any more. */
  drain(): void {
    this.#logClosing.abort();
    if (this.isOpen) this.#logStage = { at: 'draining' };
  }

  close(): void {
    this.#logStage = { at: 'closed' };
  }

  fail(failureCause: unknown): void {
    this.#logStage = { at: 'failed', reason: failureCause instanceof Error ? failureCause.message : String(failureCause) };
    this.#logOptions.say(`${this.#logOptions.directory}: ${failureText(failureCause)}`);
    this.#logClosing.abort();
  }

  refusal(): ServiceError {
    const logStage = this.#logStage;
    if (this.isFull) return this.room.refusal();
    const logStateText =
      logStage.at === 'failed' ? `the log has failed (${logStage.reason}): restart the server` : `the log is ${logStage.at}`;
    return new ServiceError('REL_UNAVAILABLE', `${logStateText}; it accepts no writes`);
  }
}
