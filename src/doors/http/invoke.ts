/** Takes an authenticated request into the gate. */
import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';
import { assert, ServiceError } from '../../errors.ts';
import { refundOf } from '../../governance/admission/rate-limit.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation, InvocationRequest, Transaction } from '../../governance/gate-contract.ts';
import type { Command } from '../../projections/command.ts';
import type { HttpContext, GateRequest } from './context.ts';
import { headerText, statedBranch, statedOpener, statedPurpose, transactionHeader } from './request-headers.ts';

/**
 * Runs one invocation under the request's caller. Every route passes here exactly once, so each leaves one access record.
 * `purposeField` is the purpose in the request's own body or query; the header says it for routes that have none.
 */
export function invoke<T>(
  context: HttpContext,
  request: GateRequest,
  action: Action,
  purposeField: string | undefined,
  run: (invocation: Invocation) => Promise<T>,
  more: Pick<InvocationRequest, 'whileSuspended' | 'purposeRequired' | 'transaction'> = {},
): Promise<T> {
  assert(!request.recorded, 'a request enters the gate once');
  const { transaction = statedTransaction(context, request) } = more;
  const { caller, ...stated } = statedBy(request, purposeField, transaction?.caller.branch);
  const enter = (): Promise<T> => {
    request.recorded = true;
    const { bucket = request.routeOptions.config?.bucket } = request.routeOptions;
    const onCost = bucket === 'read' ? refundOf(context.readLimit, caller.clientIp) : null;
    const invocationRequest = { action, ...stated, ...(onCost && { onCost }), ...more, ...(transaction && { transaction }) };
    return context.gate.invoke(caller, invocationRequest, run);
  };
  return transaction === undefined ? enter() : oneOf(transaction, enter);
}

const inUse = new WeakSet<Transaction>();

const beforeRequest = 'before the request';

/** A request of a transaction: it leaves all that it writes, or where it is refused nothing. Two at once would see, or end, each other's halves. */
async function oneOf<T>(transaction: Transaction, run: () => Promise<T>): Promise<T> {
  if (inUse.has(transaction))
    throw new ServiceError('REL_CONFLICT', 'a request of this transaction is not answered yet: send one after the other');
  inUse.add(transaction);
  transaction.savepoint(beforeRequest);
  try {
    return await run();
  } catch (error) {
    transaction.rollbackTo(beforeRequest);
    throw error;
  } finally {
    transaction.release(beforeRequest);
    inUse.delete(transaction);
  }
}

/** Undefined where the request names none; routes that take part in none refuse the header. */
function statedTransaction(context: HttpContext, request: GateRequest): Transaction | undefined {
  const id = headerText(request, transactionHeader);
  return id === null ? undefined : context.gate.transaction(id, callerOf(request));
}

/** The caller and the terms that the request states beside its question. `branch`: the default where it names none. */
export function statedBy(
  request: GateRequest,
  purposeField: string | undefined,
  branch: string | null = null,
): Omit<InvocationRequest, 'action'> & {
  readonly caller: Caller;
  readonly gone: AbortSignal;
  readonly template: string;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
} {
  return {
    caller: onBranch(callerOf(request), statedBranch(request) ?? branch),
    purpose: statedPurpose(request, purposeField),
    correlationId: request.id,
    breakGlass: statedOpener(request, 'breakGlass'),
    accessScopeRef: statedOpener(request, 'accessScopeRef'),
    gone: signalOf(request.raw.socket),
    template: `${request.method} ${request.routeOptions.url ?? '*'}`,
  };
}

/**
 * Submits a command about one thing by its id, fsynced before it is answered: changes of permissions must not be lost. The access
 * record names the command and has a digest of the id.
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

export function callerOf(request: GateRequest): Caller {
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
