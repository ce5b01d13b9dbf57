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

interface TokenBucket {
  tokens: number;
  filledAtMs: number;
}

export class RateLimiter {
  readonly #tokensPerSecond: number;
  /** The setting that its refusals name. */
  readonly setting: string;
  // A bucket left alone for a second is full again, which is what an unknown address starts with: dropping whole
  // generations older than that forgets nothing and bounds memory by the addresses of two seconds.
  #youngBuckets = new Map<string, TokenBucket>();
  #oldBuckets = new Map<string, TokenBucket>();
  #bucketsTurnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(requestsPerSecond: number, setting = '') {
    this.#tokensPerSecond = requestsPerSecond;
    this.setting = setting;
  }

  /** Takes one token of `address`, or so many. `nowMs` never falls. */
  take(address: string, nowMs: number, tokens = 1): RateVerdict {
    const bucket = this.#bucketOf(address, nowMs);
    const gainedTokens = ((nowMs - bucket.filledAtMs) / 1000) * this.#tokensPerSecond;
    bucket.tokens = Math.min(this.#tokensPerSecond, bucket.tokens + gainedTokens);
    bucket.filledAtMs = nowMs;
    const allowed = bucket.tokens >= tokens;
    if (allowed) bucket.tokens -= tokens;
    const nextInMs = bucket.tokens >= 1 ? 0 : ((1 - bucket.tokens) / this.#tokensPerSecond) * 1000;
    return {
      allowed,
      limit: this.#tokensPerSecond,
      remaining: allowed ? Math.floor(bucket.tokens) : 0,
      retryAfterSecs: allowed ? 0 : Math.max(1, Math.ceil(nextInMs / 1000)),
      nextInMs,
    };
  }

  /** Gives back what was taken of `address` before it was known how little it costs. */
  giveBack(address: string, tokens: number): void {
    const bucket = this.#youngBuckets.get(address) ?? this.#oldBuckets.get(address);
    if (bucket !== undefined) bucket.tokens = Math.min(this.#tokensPerSecond, bucket.tokens + tokens);
  }

  /** Addresses held. */
  get size(): number {
    return this.#youngBuckets.size + this.#oldBuckets.size;
  }

  #bucketOf(address: string, nowMs: number): TokenBucket {
    if (nowMs - this.#bucketsTurnedAtMs >= 1000) {
      this.#oldBuckets = nowMs - this.#bucketsTurnedAtMs >= 2000 ? new Map() : this.#youngBuckets;
      this.#youngBuckets = new Map();
      this.#bucketsTurnedAtMs = nowMs;
    }
    const youngBucket = this.#youngBuckets.get(address);
    if (youngBucket !== undefined) return youngBucket;
    const bucket = this.#oldBuckets.get(address) ?? { tokens: this.#tokensPerSecond, filledAtMs: nowMs };
    this.#oldBuckets.delete(address);
    this.#youngBuckets.set(address, bucket);
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
  const limiterSetting = setting === '' ? '' : ` (${setting})`;
  return new ServiceError('REL_RATE_LIMITED', `more than ${limit} requests in a second from this address${limiterSetting}`, {
    retryAfterSecs,
  });
}
