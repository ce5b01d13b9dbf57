/**
 * The lease of a long stream: it continues only while a new request of its caller would be admitted and would give the same rows. An
 * ended credential, a suspended tenant and erased rows end it within a second.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Authenticator } from '../../governance/authentication/authenticator.ts';
import type { Caller } from '../../governance/caller.ts';
import type { GateContract } from '../../governance/gate-contract.ts';
import type { Answer } from '../../planner/planner-contract.ts';

/** How often it is looked whether a stream may go on. */
const leaseCheckMs = 400;
/** A client that takes nothing for so long is cut off: it would hold its answer in memory for ever. */
export const stalledMs = 120_000;

interface LeaseDependencies {
  readonly authenticator: Pick<Authenticator, 'renew'>;
  readonly gate: Pick<GateContract, 'checkStanding'>;
  readonly clock: Pick<Clock, 'sleep' | 'monotonicMs'>;
}

/** Throws the error with which a new request of this caller would be refused. */
export function checkCaller({ authenticator, gate }: Pick<LeaseDependencies, 'authenticator' | 'gate'>, caller: Caller): void {
  authenticator.renew(caller);
  gate.checkStanding(caller);
}

export type Overtaken = Pick<Answer, 'overtaken'>;

/** Throws where rows that the answer may hold were erased since it was made. */
export function checkErased(sentAnswer: Overtaken): void {
  if (sentAnswer.overtaken()) throw new ServiceError('REL_CONFLICT', 'rows of the answer were erased while it was sent');
}

/** Calls `endStream` once, with what `checkStream` throws by then; resolves then, or when the stream is over. */
export async function watchStream(
  { clock }: Pick<LeaseDependencies, 'clock'>,
  checkStream: () => void,
  streamOver: AbortSignal,
  endStream: (streamRefusal: unknown) => void,
): Promise<void> {
  while (!streamOver.aborted) {
    await clock.sleep(leaseCheckMs, streamOver);
    if (streamOver.aborted) return;
    try {
      checkStream();
    } catch (streamRefusal) {
      return endStream(streamRefusal);
    }
  }
}

/**
 * Watches an answer that was handed over as a whole until its client has taken it. `end` is called once rows of it were
 * erased, or when the client has taken nothing for too long. `unsent` counts the bytes that still wait.
 */
export function watchUnsent(
  parts: Pick<LeaseDependencies, 'clock'>,
  answer: Overtaken,
  unsent: () => number,
  end: (refusal: unknown) => void,
): void {
  let left = unsent();
  if (left === 0) return;
  const { clock } = parts;
  let takenMs = clock.monotonicMs();
  const over = new AbortController();
  const check = (): void => {
    const unsentBefore = left;
    left = unsent();
    if (left < unsentBefore) takenMs = clock.monotonicMs();
    if (left === 0) return over.abort();
    checkErased(answer);
    if (clock.monotonicMs() - takenMs >= stalledMs) throw new ServiceError('REL_TIMEOUT', 'the answer was not taken in time');
  };
  void watchStream(parts, check, over.signal, end);
}

/** Passes a body on as it comes. Fails, even while it waits for a piece, once its sender is no longer admitted. */
export async function* leasedPieces<T>(
  parts: LeaseDependencies,
  caller: Caller,
  body: AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const over = new AbortController();
  const pieces = body[Symbol.asyncIterator]();
  let refused: { readonly refusal: unknown } | null = null;
  let cutOff: (refusal: unknown) => void = () => undefined;
  const check = (): void => checkCaller(parts, caller);
  void watchStream(parts, check, over.signal, (refusal) => {
    refused = { refusal };
    cutOff(refusal);
  });
  try {
    for (;;) {
      if (refused !== null) throw (refused as { readonly refusal: unknown }).refusal;
      // One promise per piece: a race with a lasting promise would keep every piece in memory.
      const step = await new Promise<IteratorResult<T>>((resolve, reject) => {
        cutOff = reject;
        pieces.next().then(resolve, reject);
      });
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    over.abort();
    // Cleanup may have to wait for a pending piece; the caller does not wait for it.
    void Promise.resolve(pieces.return?.()).catch(() => undefined);
  }
}
