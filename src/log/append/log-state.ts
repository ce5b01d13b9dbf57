/** Whether the log takes entries, and why not: one state, and the room that its disk has. */
import { ServiceError } from '../../errors.ts';
import { FullDisk, type FullDiskOptions } from './full-disk.ts';
import { failureText } from './group-commit.ts';
import type { LogStatus } from '../log-store.ts';

type At = { at: 'open' } | { at: 'draining' } | { at: 'closed' } | { at: 'failed'; reason: string };

export class LogState {
  readonly room: FullDisk;
  readonly #options: Omit<FullDiskOptions, 'signal'>;
  readonly #closing = new AbortController();
  #at: At = { at: 'open' };

  constructor(options: Omit<FullDiskOptions, 'signal'>) {
    this.#options = options;
    this.room = new FullDisk({ ...options, signal: this.#closing.signal });
  }

  /** Aborted when the log closes or has failed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  get at(): LogStatus['state'] {
    return this.isFull ? 'full' : this.#at.at;
  }

  get failure(): string | null {
    return this.#at.at === 'failed' ? this.#at.reason : this.room.why;
  }

  /** Full or not. */
  get isOpen(): boolean {
    return this.#at.at === 'open';
  }

  get isFull(): boolean {
    return this.isOpen && this.room.why !== null;
  }

  get hasFailed(): boolean {
    return this.#at.at === 'failed';
  }

  /** Heads are still signed while the log drains. */
  get isSealable(): boolean {
    return this.isOpen || this.#at.at === 'draining';
  }

  /** Nothing waits for room any more. */
  drain(): void {
    this.#closing.abort();
    if (this.isOpen) this.#at = { at: 'draining' };
  }

  close(): void {
    this.#at = { at: 'closed' };
  }

  fail(cause: unknown): void {
    this.#at = { at: 'failed', reason: cause instanceof Error ? cause.message : String(cause) };
    this.#options.say(`${this.#options.directory}: ${failureText(cause)}`);
    this.#closing.abort();
  }

  refusal(): ServiceError {
    const at = this.#at;
    if (this.isFull) return this.room.refusal();
    const why = at.at === 'failed' ? `the log has failed (${at.reason}): restart the server` : `the log is ${at.at}`;
    return new ServiceError('REL_UNAVAILABLE', `${why}; it accepts no writes`);
  }
}
