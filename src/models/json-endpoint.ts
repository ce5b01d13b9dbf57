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
 * Returns the result of `readModelAnswer` on the answer; its errors say `an answer …`. Rejects with REL_UNAVAILABLE without a usable answer.
 */
export async function askModel<T>(
  { url: endpointUrl, key: endpointKey, what: modelTitle, patienceMs }: ModelEndpoint,
  modelRequest: unknown,
  callerSignal: AbortSignal | undefined,
  readModelAnswer: (answer: unknown) => T,
): Promise<T> {
  const patienceSignal = AbortSignal.timeout(patienceMs);
  try {
    const modelResponse = await fetch(endpointUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(endpointKey !== null && { authorization: `Bearer ${endpointKey}` }) },
      body: JSON.stringify(modelRequest),
      signal: callerSignal ? AbortSignal.any([callerSignal, patienceSignal]) : patienceSignal,
      redirect: 'error',
    });
    if (!modelResponse.ok) throw new Error(`status ${modelResponse.status}`);
    return readModelAnswer(await modelResponse.json());
  } catch (endpointError) {
    if (callerSignal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
    throw new ServiceError(
      'REL_UNAVAILABLE',
      `${modelTitle} does not answer: ${endpointFailureReason(endpointError, patienceMs)}`,
    );
  }
}

/** Never repeats the endpoint's own text: it may contain the request. */
function endpointFailureReason(endpointError: unknown, patienceMs: number): string {
  if (!(endpointError instanceof Error)) return 'no reason given';
  if (endpointError.name === 'TimeoutError') return `no answer within ${patienceMs / 1000} s`;
  return /^(?:status|an answer) /.test(endpointError.message) ? endpointError.message : 'no connection';
}
