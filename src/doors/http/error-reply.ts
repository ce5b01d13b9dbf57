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
  context: HttpContext,
  request: GateRequest,
  destination: Destination,
  raw: unknown,
): Promise<Refusal> {
  const error = await refusedWith(context, request, destination, raw);
  const problem = problemOf(error, context.settings.SERVICE_ERRORS_BASE, destination.route, request.id);
  return { status: problem.status, headers: headersOf(error), text: exactJson({ ...problem, ...error.facts.extras }) };
}

/** The error for the client, once it is recorded; the detail of a bug goes to the operator alone. */
export async function refusedWith(
  context: HttpContext,
  request: GateRequest,
  destination: Destination,
  raw: unknown,
): Promise<ServiceError> {
  const error = await recordFailure(context, request, destination, toServiceError(raw));
  if (error.code !== 'REL_INTERNAL') return error;
  const { route } = destination;
  context.log({ event: 'internal error', correlationId: request.id, route, error: error.facts.cause ?? error });
  return new ServiceError('REL_INTERNAL', 'internal error');
}

/** Headers of a refusal in any format. */
export function headersOf({ status, facts }: ServiceError): readonly (readonly [string, string])[] {
  const headers: [string, string][] = [];
  const { retryAfterSecs } = facts;
  if (status === 429 || status === 503 || retryAfterSecs !== undefined)
    headers.push(['retry-after', String(retryAfterSecs ?? 1)]);
  if (status === 401) headers.push(['www-authenticate', 'Bearer realm="annals"']);
  return headers;
}

/** Makes sure that a failed request of a known caller has its access record; the gate's own verdict wins. */
async function recordFailure(
  context: HttpContext,
  request: GateRequest,
  { route, access, action }: Destination,
  error: ServiceError,
): Promise<ServiceError> {
  if (request.recorded || access === undefined || access === 'probe') return error;
  request.recorded = true;
  // Strangers are recorded too, but can't fill the log: beyond a few in a second they are only counted.
  if (request.caller === null && !context.refusalRecordLimit.take('', context.clock.monotonicMs()).allowed) return error;
  const invocation = {
    action: action ?? 'inspect',
    purpose: null,
    correlationId: request.id,
    recordOnly: true,
    template: `${request.method} ${route}`,
  } as const;
  try {
    return await context.gate.invoke(request.caller ?? unauthenticated, invocation, () => Promise.reject(error));
  } catch (thrown) {
    return toServiceError(thrown);
  }
}

const unauthenticated = tenantlessCaller('unauthenticated', 'none', 'http');
