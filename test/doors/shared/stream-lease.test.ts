/** Bodies that stream in go on for as long as their sender would be let in again. */
import { expect, test } from 'vitest';
import { leasedPieces } from '../../../src/doors/shared/stream-lease.ts';
import type { HttpContext } from '../../../src/doors/http/context.ts';
import { ServiceError } from '../../../src/errors.ts';
import { analyst } from '../../harness.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Sleeps end when the test says so. */
class Sleeps {
  readonly wakes = new Set<() => void>();

  sleep = (_ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        this.wakes.delete(wake);
        resolve();
      };
      this.wakes.add(wake);
      signal?.addEventListener('abort', wake, { once: true });
    });

  async pass(): Promise<void> {
    for (const wake of this.wakes) wake();
    await turn();
  }
}

function world(): { sleeps: Sleeps; parts: HttpContext; refuse: (error: ServiceError) => void } {
  const sleeps = new Sleeps();
  let refusal: ServiceError | null = null;
  const check = (): void => {
    if (refusal !== null) throw refusal;
  };
  const parts = { clock: sleeps, authenticator: { renew: () => undefined }, gate: { checkStanding: check } };
  return { sleeps, parts: parts as unknown as HttpContext, refuse: (error) => (refusal = error) };
}

const suspended = new ServiceError('REL_TENANT_SUSPENDED', 'suspended');

test('a body passes as it is, and nothing is left that waits', async () => {
  const { sleeps, parts } = world();
  const body = (async function* () {
    for (const byte of [1, 2, 3]) yield Uint8Array.of(byte);
  })();
  const seen: number[] = [];
  for await (const piece of leasedPieces(parts, analyst, body)) {
    await sleeps.pass();
    seen.push(piece[0]!);
  }
  expect(seen).toEqual([1, 2, 3]);
  await turn();
  expect(sleeps.wakes.size).toBe(0);
});

test('a sender that sends nothing more is ended while it is waited for', async () => {
  const { sleeps, parts, refuse } = world();
  const body = (async function* () {
    yield Uint8Array.of(1);
    await new Promise(() => undefined);
  })();
  const pieces = leasedPieces(parts, analyst, body);
  expect((await pieces.next()).value).toEqual(Uint8Array.of(1));
  const next = pieces.next().catch((error: unknown) => error);
  await sleeps.pass();
  refuse(suspended);
  await sleeps.pass();
  expect(await next).toBe(suspended);
  expect(sleeps.wakes.size).toBe(0);
}, 2_000);

test('one that is refused while its last piece is worked on gets no further', async () => {
  const { sleeps, parts, refuse } = world();
  const body = (async function* () {
    for (;;) yield Uint8Array.of(1);
  })();
  const pieces = leasedPieces(parts, analyst, body);
  await pieces.next();
  refuse(suspended);
  await sleeps.pass();
  await expect(pieces.next()).rejects.toBe(suspended);
});

test('a body that fails by itself fails as it would', async () => {
  const { parts, sleeps } = world();
  const gone = new ServiceError('REL_CANCELLED', 'gone');
  const body = (async function* (): AsyncGenerator<Uint8Array> {
    yield* [];
    throw gone;
  })();
  await expect(leasedPieces(parts, analyst, body).next()).rejects.toBe(gone);
  expect(sleeps.wakes.size).toBe(0);
});
