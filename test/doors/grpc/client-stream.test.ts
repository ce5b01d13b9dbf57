import { expect, test } from 'vitest';
import { RequestTurns } from '../../../src/doors/shared/request-turns.ts';
import { receiveMessages } from '../../../src/doors/grpc/client-stream.ts';
import { endingsAtOnce } from '../../../src/doors/grpc/connections.ts';
import { TestClock } from '../../harness.ts';

/** A clock whose sleeps end at once where so much time passes until the next message. */
class SilentClock extends TestClock {
  /** Of each message. */
  readonly waitsMs: number[];

  constructor(waitsMs: readonly number[]) {
    super('2024-01-01');
    this.waitsMs = [...waitsMs];
  }

  /** The sleep is over before. */
  async next(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    this.steadyMs += this.waitsMs[0]!;
  }

  override monotonicMs = (): number => this.steadyMs;
  override sleep = (ms: number): Promise<void> => {
    const waitMs = this.waitsMs[0]!;
    return new Promise((resolve) => {
      if (waitMs > ms) setImmediate(resolve);
    });
  };
}

const nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function taken(waitsMs: readonly number[], bytes: number): Promise<number | string> {
  const clock = new SilentClock(waitsMs);
  async function* sent() {
    while (clock.waitsMs.length > 0) {
      if (clock.waitsMs[0]! > 1e6) await new Promise(() => undefined);
      await clock.next();
      clock.waitsMs.shift();
      yield bytes;
    }
  }
  let count = 0;
  try {
    const endings = new RequestTurns(clock, nextRound);
    for await (const _ of receiveMessages({ clock, endings }, sent(), (each) => each)) count++;
    return count;
  } catch (error) {
    return `${count}: ${(error as Error).message}`;
  }
}

test.each([
  ['one that is silent for less than its grace', [20_000, 20_000, 29_000], 65_536, 3],
  ['one that falls silent', [10, 10, 1e9], 65_536, '2: the messages of the call did not arrive in time'],
  [
    'one that says little each time, just in time',
    [20_000, 20_000, 20_000],
    1,
    '1: the messages of the call did not arrive in time',
  ],
])('%s', async (_, waitsMs, bytes, expected) => {
  expect(await taken(waitsMs, bytes)).toEqual(expected);
});

test('calls that end together go on in portions', async () => {
  const clock = new TestClock('2024-01-01');
  const rounds: (() => void)[] = [];
  const endings = new RequestTurns(clock, () => new Promise((resolve) => rounds.push(resolve)), endingsAtOnce);
  let ended = 0;
  const calls = Array.from({ length: 40 }, async () => {
    for await (const _ of receiveMessages({ clock, endings }, (async function* () {})(), () => 0));
    ended++;
  });
  const counts: number[] = [];
  while (ended < calls.length) {
    await new Promise((resolve) => setImmediate(resolve));
    counts.push(ended);
    rounds.shift()!();
  }
  expect(Math.max(...counts.map((count, i) => count - (counts[i - 1] ?? 0)))).toBeLessThanOrEqual(endingsAtOnce);
});
