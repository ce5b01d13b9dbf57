/** The system clock: nanoseconds between the wall clock's milliseconds, never behind them. */
import { expect, test } from 'vitest';
import { wallNanoseconds } from '../src/clock.ts';

/** A true time in nanoseconds, told by a wall clock of whole milliseconds and a steady one of its own pace. */
class Clocks {
  true = 1_700_000_000_000_900_000n;
  steady = 0n;

  readonly now = wallNanoseconds(
    () => this.wallMs,
    () => this.steady,
  );

  get wallMs(): number {
    return Number(this.true / 1_000_000n);
  }

  pass(nanoseconds: bigint, steady = nanoseconds): void {
    this.true += nanoseconds;
    this.steady += steady;
  }
}

test('what the wall clock calls now never lies ahead, though it began late in a millisecond or runs faster', () => {
  const clocks = new Clocks();
  let last = clocks.now();
  for (let i = 0; i < 5_000; i++) {
    clocks.pass(130_000n, 129_000n);
    const now = clocks.now();
    expect(now).toBeGreaterThanOrEqual(BigInt(clocks.wallMs) * 1_000_000n);
    expect(now).toBeGreaterThan(last);
    last = now;
  }
});

test('digits below a millisecond rise with the steady clock; a wall clock that is set is followed', () => {
  const clocks = new Clocks();
  const first = clocks.now();
  clocks.pass(40_000n);
  expect(clocks.now() - first).toBe(40_000n);
  clocks.pass(-3_600_000_000_000n, 1_000n);
  expect(clocks.now()).toBe(BigInt(clocks.wallMs) * 1_000_000n);
  clocks.pass(7_200_000_000_000n, 1_000n);
  expect(clocks.now()).toBe(BigInt(clocks.wallMs) * 1_000_000n);
});
