/** From an authenticated request into the gate. */
import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';
import { assert } from '../../errors.ts';
import { refundOf } from '../../governance/admission/rate-limit.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation, InvocationRequest } from '../../governance/gate-contract.ts';
import type { Command } from '../../projections/command.ts';
import type { HttpContext, RequestFacts } from './context.ts';
import { statedBranch, statedOpener, statedPurpose } from './headers.ts';

/**
 * Runs one invocation under the request's caller. Every route passes here exactly once, so each leaves one access record.
 * `purposeField` is the purpose in the request's own body or query; the header says it for routes that have none.
 */
export function invoke<T>(
  context: HttpContext,
  request: RequestFacts,
  action: Action,
  purposeField: string | undefined,
  run: (invocation: Invocation) => Promise<T>,
  more: Pick<InvocationRequest, 'whileSuspended' | 'purposeRequired'> = {},
): Promise<T> {
  assert(!request.recorded, 'a request enters the gate once');
  const { caller, ...stated } = statedBy(request, purposeField);
  request.recorded = true;
  const { bucket = request.routeOptions.config?.bucket } = request.routeOptions;
  const onCost = bucket === 'read' ? refundOf(context.readLimit, caller.clientIp) : null;
  return context.gate.invoke(caller, { action, ...stated, ...(onCost && { onCost }), ...more }, run);
}

/** Who asks, and what the request states beside its question. */
export function statedBy(
  request: RequestFacts,
  purposeField: string | undefined,
): Omit<InvocationRequest, 'action'> & {
  readonly caller: Caller;
  readonly gone: AbortSignal;
  readonly template: string;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
} {
  return {
    caller: onBranch(callerOf(request), statedBranch(request)),
    purpose: statedPurpose(request, purposeField),
    correlationId: request.id,
    breakGlass: statedOpener(request, 'breakGlass'),
    accessScopeRef: statedOpener(request, 'accessScopeRef'),
    gone: signalOf(request.raw.socket),
    template: `${request.method} ${request.routeOptions.url ?? '*'}`,
  };
}

/**
 * Submits what is about one thing by its id, fsynced before it is answered: who may do what is never held up to be lost. The
 * access record says which command it was; of the id it keeps a digest.
 */
export function submitNamed(
  invocation: Invocation,
  command: Extract<Command, { readonly id: string }>,
): ReturnType<Invocation['submit']> {
  invocation.describe({ template: `${command.kind} ?`, literals: [command.id] });
  return invocation.submit(command, { sync: true });
}

function onBranch(caller: Caller, branch: string | null): Caller {
  return branch === null || branch === caller.branch ? caller : { ...caller, branch };
}

export function callerOf(request: RequestFacts): Caller {
  assert(request.caller !== null, 'authentication comes before every handler that needs a caller');
  return request.caller;
}

const signals = new WeakMap<Socket, AbortSignal>();

/** Aborts when the client goes away. One for all requests of a connection, which come one after the other. */
export function signalOf(socket: Socket): AbortSignal {
  let signal = signals.get(socket);
  if (signal === undefined) {
    const controller = new AbortController();
    ({ signal } = controller);
    // A client may send its next questions before the first is answered.
    setMaxListeners(0, signal);
    signals.set(socket, signal);
    socket.once('close', () => controller.abort());
  }
  return signal;
}
