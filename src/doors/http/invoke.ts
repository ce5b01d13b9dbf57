/** From an authenticated request into the gate. */
import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';
import { assert, ServiceError } from '../../errors.ts';
import { refundOf } from '../../governance/admission/rate-limit.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation, InvocationRequest, Transaction } from '../../governance/gate-contract.ts';
import type { Command } from '../../projections/command.ts';
import type { HttpContext, RequestFacts } from './context.ts';
import { headerText, statedBranch, statedOpener, statedPurpose, transactionHeader } from './headers.ts';

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
  more: Pick<InvocationRequest, 'whileSuspended' | 'purposeRequired' | 'transaction'> = {},
): Promise<T> {
  assert(!request.recorded, 'a request enters the gate once');
  const { transaction = statedTransaction(context, request) } = more;
  if (transaction === undefined) return invokeBy(context, request, statedBy(request, purposeField), action, more, run);
  return exclusively(transaction, () => {
    const stated = statedBy(request, purposeField);
    // A transaction is of one branch: its requests need not name it again.
    const caller = onBranch(stated.caller, statedBranch(request) ?? transaction.caller.branch);
    return invokeBy(context, request, { ...stated, caller }, action, { ...more, transaction }, run);
  });
}

function invokeBy<T>(
  context: HttpContext,
  request: RequestFacts,
  { caller, ...stated }: ReturnType<typeof statedBy>,
  action: Action,
  more: Pick<InvocationRequest, 'whileSuspended' | 'purposeRequired' | 'transaction'>,
  run: (invocation: Invocation) => Promise<T>,
): Promise<T> {
  request.recorded = true;
  const { bucket = request.routeOptions.config?.bucket } = request.routeOptions;
  const onCost = bucket === 'read' ? refundOf(context.readLimit, caller.clientIp) : null;
  return context.gate.invoke(caller, { action, ...stated, ...(onCost && { onCost }), ...more }, run);
}

const inUse = new WeakSet<Transaction>();

/** Two requests at once would see, or end, each other's halves. */
async function exclusively<T>(transaction: Transaction, run: () => Promise<T>): Promise<T> {
  if (inUse.has(transaction))
    throw new ServiceError('REL_CONFLICT', 'a request of this transaction is not answered yet: send one after the other');
  inUse.add(transaction);
  try {
    return await run();
  } finally {
    inUse.delete(transaction);
  }
}

/** Undefined where the request names none; routes that take part in none refuse the header. */
function statedTransaction(context: HttpContext, request: RequestFacts): Transaction | undefined {
  const id = headerText(request, transactionHeader);
  return id === null ? undefined : context.gate.transaction(id, callerOf(request));
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
