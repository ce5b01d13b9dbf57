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

const idleMs = 30 * 60_000;
/** A page that was sent a cookie claims its secret at once. */
const claimMs = 60_000;
const codeMs = 60_000;
const sessionsMax = 1_000;

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

  begin(grant: Grant): BrowserSession {
    this.#dropIdle();
    const session: BrowserSession = {
      cookie: this.#secret(),
      secret: null,
      administrator: grant.administrator ?? null,
      token: grant.token ?? null,
      acting: null,
      usedMs: this.#clock.monotonicMs(),
    };
    this.#sessions.set(session.cookie, session);
    return session;
  }

  /** The page's secret, given out once. A second claim ends the session: somebody else holds the first. */
  claim(cookie: string | undefined): { readonly session: BrowserSession; readonly secret: string } {
    const session = this.#live(cookie);
    if (session === undefined) throw unauthenticatedError();
    if (session.secret !== null) {
      this.end(session);
      throw unauthenticatedError();
    }
    const secret = this.#secret();
    session.secret = digest(secret);
    session.usedMs = this.#clock.monotonicMs();
    return { session, secret };
  }

  /** The session of a cookie and a secret that belong together. Throws REL_UNAUTHENTICATED. */
  find(cookie: string | undefined, secret: string | undefined): BrowserSession {
    const session = this.#live(cookie);
    const expected = session?.secret ?? noDigest;
    const isSame = timingSafeEqual(digest(secret ?? ''), expected);
    if (session === undefined || session.secret === null || !isSame) throw unauthenticatedError();
    session.usedMs = this.#clock.monotonicMs();
    return session;
  }

  end(session: BrowserSession): void {
    this.#sessions.delete(session.cookie);
  }

  /** A code that opens one session within a minute. */
  mintCode(grant: Grant): string {
    const code = this.#secret();
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { untilMs }] of this.#codes) if (untilMs <= nowMs) this.#codes.delete(key);
    this.#codes.set(digest(code).toString('hex'), { grant, untilMs: nowMs + codeMs });
    return code;
  }

  /** Throws REL_UNAUTHENTICATED for a code that was used, is too old or was never given out. */
  redeem(code: string): Grant {
    const key = digest(code).toString('hex');
    const held = this.#codes.get(key);
    this.#codes.delete(key);
    if (held === undefined || held.untilMs <= this.#clock.monotonicMs()) throw unauthenticatedError();
    return held.grant;
  }

  #live(cookie: string | undefined): BrowserSession | undefined {
    const session = cookie === undefined ? undefined : this.#sessions.get(cookie);
    if (session === undefined) return undefined;
    if (this.#isOver(session)) {
      this.end(session);
      return undefined;
    }
    return session;
  }

  #isOver({ usedMs, secret }: BrowserSession): boolean {
    return this.#clock.monotonicMs() - usedMs > (secret === null ? claimMs : idleMs);
  }

  #dropIdle(): void {
    for (const session of this.#sessions.values()) if (this.#isOver(session)) this.end(session);
    const [oldest] = this.#sessions.values();
    if (this.#sessions.size >= sessionsMax && oldest !== undefined) this.end(oldest);
  }

  #secret(): string {
    return Buffer.from(this.#random.fill(new Uint8Array(32))).toString('base64url');
  }
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');
const noDigest = Buffer.alloc(32);
