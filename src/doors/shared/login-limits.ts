/** How long a client may stay, and how many messages and logins it may send, before it has authenticated. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { UnauthenticatedConnections } from './unauthenticated-connections.ts';
import { isOver } from './unsent-bytes.ts';

/** A client has this long to authenticate. */
const authenticateMs = 10_000;
/** Most messages of a client before it has authenticated. */
const strangerMessagesMax = 64;
/** How long it waits after its first refused login; twice as long after each more, and after the last the connection ends. */
const refusalMs = 100;
const refusalsMax = 5;

export class LoginLimits {
  readonly #clock: Clock;
  readonly #unauthenticated: UnauthenticatedConnections;
  readonly #cutOff: () => void;
  /** Aborts when the client need not hurry any more to authenticate. */
  readonly #mayStay = new AbortController();
  #isKnown = false;
  #refusals = 0;
  /** Messages of a stranger since then. */
  #messages = 0;
  #messagesFromMs = 0;

  constructor(clock: Clock, unauthenticated: UnauthenticatedConnections, cutOff: () => void) {
    this.#clock = clock;
    this.#unauthenticated = unauthenticated;
    this.#cutOff = cutOff;
    unauthenticated.admit(this);
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  get isRefusedTooOften(): boolean {
    return this.#refusals >= refusalsMax;
  }

  /** Makes room for another client that has not authenticated. */
  destroy(): void {
    this.#cutOff();
  }

  /** Cuts the client off once it has taken too long to authenticate. */
  async limitSilence(): Promise<void> {
    await this.#clock.sleep(authenticateMs, this.#mayStay.signal);
    if (!this.#mayStay.signal.aborted) this.#cutOff();
  }

  /** Throws REL_UNAUTHENTICATED where the client talks on without logging in. */
  countMessage(): void {
    this.#unauthenticated.noteMessage(this);
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#messagesFromMs > authenticateMs) {
      this.#messages = 0;
      this.#messagesFromMs = nowMs;
    }
    if (++this.#messages > strangerMessagesMax) throw new ServiceError('REL_UNAUTHENTICATED', 'log in first');
  }

  markAuthenticated(): void {
    this.#isKnown = true;
    this.#refusals = 0;
    this.#unauthenticated.leave(this);
    this.#mayStay.abort(isOver);
  }

  liftTimeLimit(): void {
    this.#mayStay.abort(isOver);
  }

  /** Resolves when the client's next message is looked at. */
  async delayNextLogin(gone: AbortSignal): Promise<void> {
    const waitMs = refusalMs * 2 ** this.#refusals++;
    if (this.#refusals < refusalsMax) await this.#clock.sleep(waitMs, gone);
  }

  leave(): void {
    this.#unauthenticated.leave(this);
  }
}
