/** How long a client may stay, and how many messages and logins it may send, before it has authenticated. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { UnauthenticatedConnections } from './unauthenticated-connections.ts';
import { isOver } from './unsent-bytes.ts';

/** A client has this long to authenticate. */
const loginMs = 10_000;
/** Most messages of a client before it has authenticated. */
const loginMessagesMax = 64;
/** How long it waits after its first refused login; twice as long after each more, and after the last the connection ends. */
const loginRefusalMs = 100;
const loginRefusalsMax = 5;

export class LoginLimits {
  readonly #loginClock: Clock;
  readonly #unknownConnections: UnauthenticatedConnections;
  readonly #cutOffConnection: () => void;
  /** Aborts when the client need not hurry any more to authenticate. */
  readonly #loginTimeLimit = new AbortController();
  #isAuthenticated = false;
  #refusedLogins = 0;
  /** Messages of a stranger since then. */
  #strangerMessages = 0;
  #messagesSinceMs = 0;

  constructor(loginClock: Clock, unknownConnections: UnauthenticatedConnections, cutOffConnection: () => void) {
    this.#loginClock = loginClock;
    this.#unknownConnections = unknownConnections;
    this.#cutOffConnection = cutOffConnection;
    unknownConnections.admit(this);
  }

  get isKnown(): boolean {
    return this.#isAuthenticated;
  }

  get isRefusedTooOften(): boolean {
    return this.#refusedLogins >= loginRefusalsMax;
  }

  /** Makes room for another client that has not authenticated. */
  destroy(): void {
    this.#cutOffConnection();
  }

  /** Cuts the client off once it has taken too long to authenticate. */
  async limitSilence(): Promise<void> {
    await this.#loginClock.sleep(loginMs, this.#loginTimeLimit.signal);
    if (!this.#loginTimeLimit.signal.aborted) this.#cutOffConnection();
  }

  /** Throws REL_UNAUTHENTICATED where the client talks on without logging in. */
  countMessage(): void {
    this.#unknownConnections.noteMessage(this);
    const nowMs = this.#loginClock.monotonicMs();
    if (nowMs - this.#messagesSinceMs > loginMs) {
      this.#strangerMessages = 0;
      this.#messagesSinceMs = nowMs;
    }
    if (++this.#strangerMessages > loginMessagesMax) throw new ServiceError('REL_UNAUTHENTICATED', 'log in first');
  }

  markAuthenticated(): void {
    this.#isAuthenticated = true;
    this.#refusedLogins = 0;
    this.#unknownConnections.leave(this);
    this.#loginTimeLimit.abort(isOver);
  }

  liftTimeLimit(): void {
    this.#loginTimeLimit.abort(isOver);
  }

  /** Resolves when the client's next message is looked at. */
  async delayNextLogin(connectionGone: AbortSignal): Promise<void> {
    const loginDelayMs = loginRefusalMs * 2 ** this.#refusedLogins++;
    if (this.#refusedLogins < loginRefusalsMax) await this.#loginClock.sleep(loginDelayMs, connectionGone);
  }

  leave(): void {
    this.#unknownConnections.leave(this);
  }
}
