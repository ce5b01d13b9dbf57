/** From an authenticated request into the gate. */
import { assert } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation } from '../../governance/gate-contract.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from './context.ts';

/** Runs one invocation under the request's caller. Every route passes here exactly once, so each leaves one access record. */
export function invoke<T>(
  context: HttpContext,
  request: FastifyRequest,
  action: Action,
  purpose: string | null,
  run: (invocation: Invocation) => Promise<T>,
): Promise<T> {
  const caller = callerOf(request);
  assert(!request.recorded, 'a request enters the gate once');
  request.recorded = true;
  return context.gate.invoke(caller, { action, purpose, correlationId: request.id }, run);
}

export function callerOf(request: FastifyRequest): Caller {
  assert(request.caller !== null, 'authentication comes before every handler that needs a caller');
  return request.caller;
}

/** Aborts when the client goes away before its answer was sent. */
export function abortOnDisconnect(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort();
  });
  return controller.signal;
}
