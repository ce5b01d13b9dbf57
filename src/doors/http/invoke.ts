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
  httpContext: HttpContext,
  gateRequest: GateRequest,
  action: Action,
  purposeField: string | undefined,
  runInvocation: (invocation: Invocation) => Promise<T>,
  invocationExtras: Pick<InvocationRequest, 'whileSuspended' | 'purposeRequired' | 'transaction'> = {},
): Promise<T> {
  assert(!gateRequest.recorded, 'a request enters the gate once');
  const { transaction: openTransaction = statedTransaction(httpContext, gateRequest) } = invocationExtras;
  const { caller: statedCaller, ...statedRequest } = statedBy(gateRequest, purposeField, openTransaction?.caller.branch);
  const enterGate = (): Promise<T> => {
    gateRequest.recorded = true;
    const { bucket = gateRequest.routeOptions.config?.bucket } = gateRequest.routeOptions;
    const onCost = bucket === 'read' ? refundOf(httpContext.readLimit, statedCaller.clientIp) : null;
    const invocationRequest = {
      action,
      ...statedRequest,
      ...(onCost && { onCost }),
      ...invocationExtras,
      ...(openTransaction && { transaction: openTransaction }),
    };
    return httpContext.gate.invoke(statedCaller, invocationRequest, runInvocation);
  };
  return openTransaction === undefined ? enterGate() : runInTransaction(openTransaction, enterGate);
}

const transactionsInUse = new WeakSet<Transaction>();

const requestSavepoint = 'before the request';

/** A request of a transaction: it leaves all that it writes, or where it is refused nothing. Two at once would see, or end, each other's halves. */
async function runInTransaction<T>(requestTransaction: Transaction, runRequest: () => Promise<T>): Promise<T> {
  if (transactionsInUse.has(requestTransaction))
    throw new ServiceError('REL_CONFLICT', 'a request of this transaction is not answered yet: send one after the other');
  transactionsInUse.add(requestTransaction);
  requestTransaction.savepoint(requestSavepoint);
  try {
    return await runRequest();
  } catch (requestError) {
    requestTransaction.rollbackTo(requestSavepoint);
    throw requestError;
  } finally {
    requestTransaction.release(requestSavepoint);
    transactionsInUse.delete(requestTransaction);
  }
}

/** Undefined where the request names none; routes that take part in none refuse the header. */
function statedTransaction(httpContext: HttpContext, gateRequest: GateRequest): Transaction | undefined {
  const transactionId = headerText(gateRequest, transactionHeader);
  return transactionId === null ? undefined : httpContext.gate.transaction(transactionId, callerOf(gateRequest));
}

/** The caller and the terms that the request states beside its question. `transactionBranch`: the default where it names none. */
export function statedBy(
  gateRequest: GateRequest,
  purposeField: string | undefined,
  transactionBranch: string | null = null,
): Omit<InvocationRequest, 'action'> & {
  readonly caller: Caller;
  readonly gone: AbortSignal;
  readonly template: string;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
} {
  return {
    caller: callerOnBranch(callerOf(gateRequest), statedBranch(gateRequest) ?? transactionBranch),
    purpose: statedPurpose(gateRequest, purposeField),
    correlationId: gateRequest.id,
    breakGlass: statedOpener(gateRequest, 'breakGlass'),
    accessScopeRef: statedOpener(gateRequest, 'accessScopeRef'),
    gone: signalOf(gateRequest.raw.socket),
    template: `${gateRequest.method} ${gateRequest.routeOptions.url ?? '*'}`,
  };
}

/**
 * Submits a command about one thing by its id, fsynced before it is answered: changes of permissions must not be lost. The access
 * record names the command and has a digest of the id.
 */
export function submitNamed(
  invocation: Invocation,
  namedCommand: Extract<Command, { readonly id: string }>,
): ReturnType<Invocation['submit']> {
  invocation.describe({ template: `${namedCommand.kind} ?`, literals: [namedCommand.id] });
  return invocation.submit(namedCommand, { sync: true });
}

function callerOnBranch(requestCaller: Caller, requestedBranch: string | null): Caller {
  return requestedBranch === null || requestedBranch === requestCaller.branch
    ? requestCaller
    : { ...requestCaller, branch: requestedBranch };
}

export function callerOf(gateRequest: GateRequest): Caller {
  assert(gateRequest.caller !== null, 'authentication comes before every handler that needs a caller');
  return gateRequest.caller;
}

const socketSignals = new WeakMap<Socket, AbortSignal>();

/** Aborts when the client goes away. One for all requests of a connection, which come one after the other. */
export function signalOf(requestSocket: Socket): AbortSignal {
  let socketSignal = socketSignals.get(requestSocket);
  if (socketSignal === undefined) {
    const socketAbort = new AbortController();
    ({ signal: socketSignal } = socketAbort);
    // A client may send its next questions before the first is answered.
    setMaxListeners(0, socketSignal);
    socketSignals.set(requestSocket, socketSignal);
    requestSocket.once('close', () => socketAbort.abort());
  }
  return socketSignal;
}
