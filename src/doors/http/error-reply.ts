/**
 * Answers a failed request, and records it where the gate has not: refused and malformed requests are in the audit trail too. The
 * same for every way in which a request is read.
 */
import { ServiceError } from '../../errors.ts';
import { tenantlessCaller } from '../../governance/caller.ts';
import type { Action } from '../../governance/gate-contract.ts';
import type { HttpContext, GateRequest, RouteAccess } from './context.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { problemOf, toServiceError } from './problem.ts';

/** The route of the request; without `access` it met none. */
export interface Destination {
  readonly route: string;
  readonly access: RouteAccess | undefined;
  readonly action: Action | undefined;
}

/** A problem record, to be sent as `problemType`. */
export interface Refusal {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
}

export async function refusalOf(
  httpContext: HttpContext,
  request: GateRequest,
  routeDestination: Destination,
  thrownError: unknown,
): Promise<Refusal> {
  const refusalError = await refusedWith(httpContext, request, routeDestination, thrownError);
  const httpProblem = problemOf(refusalError, httpContext.settings.SERVICE_ERRORS_BASE, routeDestination.route, request.id);
  return {
    status: httpProblem.status,
    headers: headersOf(refusalError),
    text: exactJson({ ...httpProblem, ...refusalError.facts.extras }),
  };
}

/** The error for the client, once it is recorded; the detail of a bug goes to the operator alone. */
export async function refusedWith(
  httpContext: HttpContext,
  request: GateRequest,
  routeDestination: Destination,
  thrownError: unknown,
): Promise<ServiceError> {
  const recordedError = await recordRouteFailure(httpContext, request, routeDestination, toServiceError(thrownError));
  if (recordedError.code !== 'REL_INTERNAL') return recordedError;
  const { route } = routeDestination;
  httpContext.log({
    event: 'internal error',
    correlationId: request.id,
    route,
    error: recordedError.facts.cause ?? recordedError,
  });
  return new ServiceError('REL_INTERNAL', 'internal error');
}

/** Headers of a refusal in any format. */
export function headersOf({ status: problemStatus, facts: errorFacts }: ServiceError): readonly (readonly [string, string])[] {
  const problemHeaders: [string, string][] = [];
  const { retryAfterSecs } = errorFacts;
  if (problemStatus === 429 || problemStatus === 503 || retryAfterSecs !== undefined)
    problemHeaders.push(['retry-after', String(retryAfterSecs ?? 1)]);
  if (problemStatus === 401) problemHeaders.push(['www-authenticate', 'Bearer realm="annals"']);
  return problemHeaders;
}

/** Makes sure that a failed request of a known caller has its access record; the gate's own verdict wins. */
async function recordRouteFailure(
  httpContext: HttpContext,
  refusedRequest: GateRequest,
  { route, access, action }: Destination,
  routeError: ServiceError,
): Promise<ServiceError> {
  if (refusedRequest.recorded || access === undefined || access === 'probe') return routeError;
  refusedRequest.recorded = true;
  // Strangers are recorded too, but can't fill the log: beyond a few in a second they are only counted.
  if (refusedRequest.caller === null && !httpContext.refusalRecordLimit.take('', httpContext.clock.monotonicMs()).allowed)
    return routeError;
  const failureInvocation = {
    action: action ?? 'inspect',
    purpose: null,
    correlationId: refusedRequest.id,
    recordOnly: true,
    template: `${refusedRequest.method} ${route}`,
  } as const;
  try {
    return await httpContext.gate.invoke(refusedRequest.caller ?? unauthenticatedCaller, failureInvocation, () =>
      Promise.reject(routeError),
    );
  } catch (gateError) {
    return toServiceError(gateError);
  }
}

const unauthenticatedCaller = tenantlessCaller('unauthenticated', 'none', 'http');
