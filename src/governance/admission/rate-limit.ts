/**
 * A token bucket per address: holds one second's worth, refills continuously. Time is an argument, so the same calls
 * give the same verdicts.
 */
import { ServiceError } from '../../errors.ts';

export interface RateVerdict {
  readonly allowed: boolean;
  /** Requests per second: `X-RateLimit-Limit`. */
  readonly limit: number;
  /** Whole requests left: `X-RateLimit-Remaining`, 0 whenever `allowed` is false. */
  readonly remaining: number;
  /** `Retry-After`: at least 1 when refused, 0 when allowed. */
  readonly retryAfterSecs: number;
  /** Milliseconds until the next request would pass; 0 when one would now. */
  readonly nextInMs: number;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

export class RateLimiter {
  readonly #perSecond: number;
  /** The setting that its refusals name. */
  readonly setting: string;
  // A bucket left alone for a second is full again, which is what an unknown address starts with: dropping whole
  // generations older than that forgets nothing and bounds memory by the addresses of two seconds.
  #young = new Map<string, Bucket>();
  #old = new Map<string, Bucket>();
  #turnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(requestsPerSecond: number, setting = '') {
    this.#perSecond = requestsPerSecond;
    this.setting = setting;
  }

  /** Takes one token of `address`, or so many. `nowMs` never falls. */
  take(address: string, nowMs: number, tokens = 1): RateVerdict {
    const bucket = this.#bucket(address, nowMs);
    const gained = ((nowMs - bucket.filledAtMs) / 1000) * this.#perSecond;
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + gained);
    bucket.filledAtMs = nowMs;
    const allowed = bucket.tokens >= tokens;
    if (allowed) bucket.tokens -= tokens;
    const nextInMs = bucket.tokens >= 1 ? 0 : ((1 - bucket.tokens) / this.#perSecond) * 1000;
    return {
      allowed,
      limit: this.#perSecond,
      remaining: allowed ? Math.floor(bucket.tokens) : 0,
      retryAfterSecs: allowed ? 0 : Math.max(1, Math.ceil(nextInMs / 1000)),
      nextInMs,
    };
  }

  /** Gives back what was taken of `address` before it was known how little it costs. */
  giveBack(address: string, tokens: number): void {
    const bucket = this.#young.get(address) ?? this.#old.get(address);
    if (bucket !== undefined) bucket.tokens = Math.min(this.#perSecond, bucket.tokens + tokens);
  }

  /** Addresses held. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  #bucket(address: string, nowMs: number): Bucket {
    if (nowMs - this.#turnedAtMs >= 1000) {
      this.#old = nowMs - this.#turnedAtMs >= 2000 ? new Map() : this.#young;
      this.#young = new Map();
      this.#turnedAtMs = nowMs;
    }
    const young = this.#young.get(address);
    if (young !== undefined) return young;
    const bucket = this.#old.get(address) ?? { tokens: this.#perSecond, filledAtMs: nowMs };
    this.#old.delete(address);
    this.#young.set(address, bucket);
    return bucket;
  }
}

/** For the gate to call: a request that only looked up keys took a whole token, and costs as much of it as they do. */
export function refundOf(limiter: RateLimiter, address: string | null): (costUnits: number) => void {
  return (costUnits) => {
    if (costUnits > 0 && costUnits < 1) limiter.giveBack(address ?? '', 1 - costUnits);
  };
}

export function rateRefusal({ setting }: RateLimiter, { limit, retryAfterSecs }: RateVerdict): ServiceError {
  const named = setting === '' ? '' : ` (${setting})`;
  return new ServiceError('REL_RATE_LIMITED', `more than ${limit} requests in a second from this address${named}`, {
    retryAfterSecs,
  });
}
