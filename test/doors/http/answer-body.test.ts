/** A client that takes nothing: its answer is not held in memory for ever, and time that it did take something does not count. */
import { Writable } from 'node:stream';
import { beforeEach, expect, test } from 'vitest';
import { AnswerBody } from '../../../src/doors/http/answer-body.ts';
import type { HttpContext } from '../../../src/doors/http/context.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import { analyst } from '../../harness.ts';
import type { ServerResponse } from 'node:http';

/** Time passes only when the test says so. */
class SteppedClock {
  #nowMs = 0;
  #sleepers: { readonly until: number; readonly wake: () => void }[] = [];

  monotonicMs = (): number => this.#nowMs;
  sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      this.#sleepers.push({ until: this.#nowMs + ms, wake });
      signal?.addEventListener('abort', wake, { once: true });
    });

  async pass(ms: number): Promise<void> {
    this.#nowMs += ms;
    const due = this.#sleepers.filter(({ until }) => until <= this.#nowMs);
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.#nowMs);
    for (const { wake } of due) wake();
    await turn();
  }
}

/** A socket that takes a piece when the test says so. */
class Reader extends Writable {
  #take: (() => void) | null = null;

  constructor() {
    super({ highWaterMark: 1 });
  }

  override _write(_piece: unknown, _encoding: unknown, done: () => void): void {
    this.#take = done;
  }

  async takeOne(): Promise<void> {
    const take = this.#take;
    this.#take = null;
    take?.();
    await turn();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function* pieces(count: number): Generator<Uint8Array> {
  for (let i = 0; i < count; i++) yield new Uint8Array(200 * 1024);
}

let refusal: ServiceError | null = null;
let standing: ServiceError | null = null;
beforeEach(() => (refusal = standing = null));

function sending(count: number): { clock: SteppedClock; reader: Reader; sent: Promise<boolean> } {
  const clock = new SteppedClock();
  const reader = new Reader();
  const context = {
    clock,
    log: () => undefined,
    yieldTurn: turn,
    authenticator: {
      renewed: (known: Caller) => {
        if (refusal !== null) throw refusal;
        return known;
      },
    },
    gate: {
      checkStanding: () => {
        if (standing !== null) throw standing;
      },
    },
  } as unknown as HttpContext;
  const body = new AnswerBody(context, { id: 'request', route: '/query', caller: analyst }, reader as unknown as ServerResponse);
  return { clock, reader, sent: body.send(pieces(count)) };
}

test('is cut off when it has taken nothing for two minutes', async () => {
  const { clock, reader, sent } = sending(50);
  await turn();
  await clock.pass(119_000);
  expect(reader.destroyed).toBe(false);
  await clock.pass(1_000);
  expect(reader.destroyed).toBe(true);
  expect(await sent).toBe(false);
});

test('is waited for as long as it takes something now and then', async () => {
  const { clock, reader, sent } = sending(12);
  for (let i = 0; i < 12; i++) {
    await turn();
    await clock.pass(100_000);
    expect(reader.destroyed).toBe(false);
    await reader.takeOne();
  }
  expect(await sent).toBe(true);
});

test.each([
  ['its credential has ended', () => (refusal = new ServiceError('REL_UNAUTHENTICATED', 'ended'))],
  ['its tenant was suspended', () => (standing = new ServiceError('REL_TENANT_SUSPENDED', 'suspended'))],
])('is cut off within a second once %s', async (_, end) => {
  const { clock, reader, sent } = sending(50);
  await turn();
  for (let i = 0; i < 20; i++) await clock.pass(100);
  expect(reader.destroyed).toBe(false);
  end();
  for (let i = 0; i < 9; i++) await clock.pass(100);
  expect(reader.destroyed).toBe(true);
  expect(await sent).toBe(false);
});
