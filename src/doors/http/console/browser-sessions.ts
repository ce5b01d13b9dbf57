/**
 * Sessions of the pages, in memory. A session is two things at once: a cookie, which the browser keeps from scripts, and a secret in
 * the storage of the page, which the browser keeps from other ports: cookies know no port, so either alone is worth nothing.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock, Random } from '../../../clock.ts';
import { unauthenticatedError } from '../../../governance/authentication/bearer-tokens.ts';

/** Credentials that a session stands for. They never leave the server. */
export interface Grant {
  /** `Authorization` of the administrator; undefined: not an administrator. Open development has an empty one. */
  readonly administrator?: string;
  /** A registry token: every question is asked by it. */
  readonly token?: string;
}

/** The principal as whom an administrator looks at the store for a while. */
export interface Acting {
  readonly principal: string;
  readonly organization: string | null;
  readonly reason: string;
  readonly tokenId: string;
  readonly token: string;
  /** Nanoseconds. */
  readonly expiresAt: bigint;
}

export interface BrowserSession {
  readonly cookie: string;
  /** Digest of the page's secret; null until a page has claimed it. */
  secret: Buffer | null;
  administrator: string | null;
  token: string | null;
  acting: Acting | null;
  /** Monotonic milliseconds of the last request. */
  usedMs: number;
}

const sessionIdleMs = 30 * 60_000;
/** A page that was sent a cookie claims its secret at once. */
const sessionClaimMs = 60_000;
const sessionCodeMs = 60_000;
const browserSessionsMax = 1_000;

export class BrowserSessions {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #sessions = new Map<string, BrowserSession>();
  /** By the digest of a code. */
  readonly #codes = new Map<string, { readonly grant: Grant; readonly untilMs: number }>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  begin(consoleGrant: Grant): BrowserSession {
    this.#dropIdle();
    const browserSession: BrowserSession = {
      cookie: this.#secret(),
      secret: null,
      administrator: consoleGrant.administrator ?? null,
      token: consoleGrant.token ?? null,
      acting: null,
      usedMs: this.#clock.monotonicMs(),
    };
    this.#sessions.set(browserSession.cookie, browserSession);
    return browserSession;
  }

  /** The page's secret, given out once. A second claim ends the session: somebody else holds the first. */
  claim(sessionCookie: string | undefined): { readonly session: BrowserSession; readonly secret: string } {
    const unclaimedSession = this.#live(sessionCookie);
    if (unclaimedSession === undefined) throw unauthenticatedError();
    if (unclaimedSession.secret !== null) {
      this.end(unclaimedSession);
      throw unauthenticatedError();
    }
    const sessionSecret = this.#secret();
    unclaimedSession.secret = secretDigest(sessionSecret);
    unclaimedSession.usedMs = this.#clock.monotonicMs();
    return { session: unclaimedSession, secret: sessionSecret };
  }

  /** The session of a cookie and a secret that belong together. Throws REL_UNAUTHENTICATED. */
  find(sessionCookie: string | undefined, sentSecret: string | undefined): BrowserSession {
    const browserSession = this.#live(sessionCookie);
    const expectedDigest = browserSession?.secret ?? absentSecretDigest;
    const isSameSecret = timingSafeEqual(secretDigest(sentSecret ?? ''), expectedDigest);
    if (browserSession === undefined || browserSession.secret === null || !isSameSecret) throw unauthenticatedError();
    browserSession.usedMs = this.#clock.monotonicMs();
    return browserSession;
  }

  end(endedSession: BrowserSession): void {
    this.#sessions.delete(endedSession.cookie);
  }

  /** A code that opens one session within a minute. */
  mintCode(consoleGrant: Grant): string {
    const consoleCode = this.#secret();
    const nowMs = this.#clock.monotonicMs();
    for (const [codeDigest, { untilMs }] of this.#codes) if (untilMs <= nowMs) this.#codes.delete(codeDigest);
    this.#codes.set(secretDigest(consoleCode).toString('hex'), { grant: consoleGrant, untilMs: nowMs + sessionCodeMs });
    return consoleCode;
  }

  /** Throws REL_UNAUTHENTICATED for a code that was used, is too old or was never given out. */
  redeem(consoleCode: string): Grant {
    const codeDigest = secretDigest(consoleCode).toString('hex');
    const codeGrant = this.#codes.get(codeDigest);
    this.#codes.delete(codeDigest);
    if (codeGrant === undefined || codeGrant.untilMs <= this.#clock.monotonicMs()) throw unauthenticatedError();
    return codeGrant.grant;
  }

  #live(sessionCookie: string | undefined): BrowserSession | undefined {
    const browserSession = sessionCookie === undefined ? undefined : this.#sessions.get(sessionCookie);
    if (browserSession === undefined) return undefined;
    if (this.#isOver(browserSession)) {
      this.end(browserSession);
      return undefined;
    }
    return browserSession;
  }

  #isOver({ usedMs: sessionUsedMs, secret: sessionSecret }: BrowserSession): boolean {
    return this.#clock.monotonicMs() - sessionUsedMs > (sessionSecret === null ? sessionClaimMs : sessionIdleMs);
  }

  #dropIdle(): void {
    for (const browserSession of this.#sessions.values()) if (this.#isOver(browserSession)) this.end(browserSession);
    const [oldestSession] = this.#sessions.values();
    if (this.#sessions.size >= browserSessionsMax && oldestSession !== undefined) this.end(oldestSession);
  }

  #secret(): string {
    return Buffer.from(this.#random.fill(new Uint8Array(32))).toString('base64url');
  }
}

const secretDigest = (secretText: string): Buffer => hash('sha256', secretText, 'buffer');
const absentSecretDigest = Buffer.alloc(32);
