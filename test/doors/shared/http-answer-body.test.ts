/** Answers that wait for their client: how long, and what ends them before it has taken all. */
import { Writable } from 'node:stream';
import { beforeEach, describe, expect, test } from 'vitest';
import { AnswerBody } from '../../../src/doors/shared/http-answer-body.ts';
import type { HttpContext } from '../../../src/doors/http/context.ts';
import { watchUnsent } from '../../../src/doors/shared/stream-lease.ts';
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

  get sleeping(): number {
    return this.#sleepers.length;
  }

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
    super({ highWaterMark: 1, autoDestroy: false });
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
let erased = false;
beforeEach(() => {
  refusal = standing = null;
  erased = false;
});

function sending(count: number, how: 'open' | 'all' = 'open'): { clock: SteppedClock; reader: Reader; sent: Promise<boolean> } {
  const clock = new SteppedClock();
  const reader = new Reader();
  const context = {
    clock,
    log: () => undefined,
    yieldTurn: turn,
    authenticator: {
      renew: (known: Caller) => {
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
  const asked = { id: 'request', route: '/query', caller: analyst, overtaken: () => erased };
  const body = new AnswerBody(context, asked, reader as unknown as ServerResponse);
  const sent = how === 'open' ? body.send(pieces(count)) : body.sendAll(pieces(count)).then(() => true);
  return { clock, reader, sent };
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
  ['rows of it were erased', () => (erased = true)],
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

test('sends no piece once rows of it were erased', async () => {
  const { reader, sent } = sending(50);
  await turn();
  erased = true;
  for (let i = 0; i < 3; i++) await reader.takeOne();
  expect(reader.destroyed).toBe(true);
  expect(await sent).toBe(false);
});

test('is cut off too when only its last pieces are left to take', async () => {
  const { clock, reader, sent } = sending(1, 'all');
  expect(await sent).toBe(true);
  await clock.pass(800);
  expect(reader.destroyed).toBe(false);
  erased = true;
  await clock.pass(400);
  expect(reader.destroyed).toBe(true);
});

test('is looked at no more once its client has taken all of it', async () => {
  const { clock, reader, sent } = sending(1, 'all');
  expect(await sent).toBe(true);
  await reader.takeOne();
  erased = true;
  await clock.pass(400);
  expect([reader.destroyed, reader.writableFinished, clock.sleeping]).toEqual([false, true, 0]);
});

describe('an answer of one piece', () => {
  let unsent = 2;
  const watch = (): { clock: SteppedClock; ended: () => number } => {
    const clock = new SteppedClock();
    let ended = 0;
    const answer = { overtaken: () => erased };
    watchUnsent(
      { clock } as never,
      answer,
      () => unsent,
      () => void ended++,
    );
    return { clock, ended: () => ended };
  };
  beforeEach(() => (unsent = 2));

  test('that waits for its client is cut off within a second once rows of it were erased', async () => {
    const { clock, ended } = watch();
    await clock.pass(400);
    expect(ended()).toBe(0);
    erased = true;
    await clock.pass(400);
    expect(ended()).toBe(1);
    await clock.pass(4_000);
    expect([ended(), clock.sleeping]).toEqual([1, 0]);
  });

  test('that its client has taken leaves the connection to the next', async () => {
    const { clock, ended } = watch();
    unsent = 0;
    erased = true;
    await clock.pass(400);
    expect([ended(), clock.sleeping]).toEqual([0, 0]);
  });

  test('that its client has taken nothing of for two minutes is cut off', async () => {
    const { clock, ended } = watch();
    for (let i = 0; i < 250; i++) await clock.pass(400);
    unsent = 1;
    for (let i = 0; i < 290; i++) await clock.pass(400);
    expect(ended()).toBe(0);
    for (let i = 0; i < 20; i++) await clock.pass(400);
    expect(ended()).toBe(1);
  });

  test('that left at once is not looked at', () => {
    unsent = 0;
    expect(watch().clock.sleeping).toBe(0);
  });
});
