/**
 * What streams for long, to a client or from one, goes on for as long as a next request of the caller would be let in: a
 * credential that has ended, or a tenant that was suspended, is noticed within a second.
 */
import type { Caller } from '../../governance/caller.ts';
import type { HttpContext } from './context.ts';

/** How often callers of open streams are looked at. */
const everyMs = 400;

type LeaseParts = Pick<HttpContext, 'authenticator' | 'gate' | 'clock'>;

/** Throws what a next request of this caller would be refused with. */
export function checkCaller({ authenticator, gate }: Pick<LeaseParts, 'authenticator' | 'gate'>, caller: Caller): void {
  authenticator.renewed(caller);
  gate.checkStanding(caller);
}

/** Calls `end` once, with what the caller is refused for by now; resolves then, or when the stream is over. */
export async function watchCaller(
  parts: LeaseParts,
  caller: Caller,
  over: AbortSignal,
  end: (refusal: unknown) => void,
): Promise<void> {
  for (;;) {
    await parts.clock.sleep(everyMs, over);
    if (over.aborted) return;
    try {
      checkCaller(parts, caller);
    } catch (refusal) {
      return end(refusal);
    }
  }
}

/** A body as it comes: it fails, whoever it is waiting for, once its sender is not let in any more. */
export async function* leased(
  parts: LeaseParts,
  caller: Caller,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  const over = new AbortController();
  const pieces = body[Symbol.asyncIterator]();
  let refused: { readonly refusal: unknown } | null = null;
  let cutOff: (refusal: unknown) => void = () => undefined;
  void watchCaller(parts, caller, over.signal, (refusal) => {
    refused = { refusal };
    cutOff(refusal);
  });
  try {
    for (;;) {
      if (refused !== null) throw (refused as { readonly refusal: unknown }).refusal;
      // One promise a piece: racing with a lasting one would keep every piece's answer in memory.
      const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        cutOff = reject;
        pieces.next().then(resolve, reject);
      });
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    over.abort();
    // Where a piece is still waited for, this has to wait as well: nobody waits for it.
    void Promise.resolve(pieces.return?.()).catch(() => undefined);
  }
}
