/** Calls a model behind an HTTP endpoint that takes and gives JSON. */
import { ServiceError } from '../errors.ts';

export interface ModelEndpoint {
  readonly url: string;
  /** Sent as a bearer token. */
  readonly key: string | null;
  /** Begins the sentence that says that it does not answer. */
  readonly what: string;
  /** Milliseconds after which it counts as down. */
  readonly patienceMs: number;
}

/**
 * Returns the result of `read` on the answer; its errors say `an answer …`. Rejects with REL_UNAVAILABLE without a usable answer.
 */
export async function askModel<T>(
  { url, key, what, patienceMs }: ModelEndpoint,
  body: unknown,
  signal: AbortSignal | undefined,
  read: (answer: unknown) => T,
): Promise<T> {
  const patience = AbortSignal.timeout(patienceMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key !== null && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
      redirect: 'error',
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return read(await response.json());
  } catch (error) {
    if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
    throw new ServiceError('REL_UNAVAILABLE', `${what} does not answer: ${reasonOf(error, patienceMs)}`);
  }
}

/** Never repeats the endpoint's own text: it may contain the request. */
function reasonOf(error: unknown, patienceMs: number): string {
  if (!(error instanceof Error)) return 'no reason given';
  if (error.name === 'TimeoutError') return `no answer within ${patienceMs / 1000} s`;
  return /^(?:status|an answer) /.test(error.message) ? error.message : 'no connection';
}
