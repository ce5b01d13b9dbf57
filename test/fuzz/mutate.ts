/** Changes to bytes that break parsers: flipped bits, spliced and repeated stretches, lengths that lie, early ends. */

/** Repeatable numbers (mulberry32): the same seed, the same inputs, on any machine. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to `below` - 1. */
  roll(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4_294_967_296) * below);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.roll(items.length)]!;
  }
}

const inputBytesMax = 1 << 16;

/** A seed as it is now and then; else one with one to eight changes. */
export function mutated(seeds: readonly Uint8Array[], dice: Dice): Uint8Array {
  let bytes = Uint8Array.from(dice.pick(seeds));
  if (dice.roll(50) === 0) return bytes;
  for (let left = 1 + dice.roll(8); left > 0; left--) bytes = dice.pick(mutators)(bytes, dice, seeds);
  return bytes.subarray(0, inputBytesMax);
}

type Mutator = (bytes: Uint8Array<ArrayBuffer>, dice: Dice, seeds: readonly Uint8Array[]) => Uint8Array<ArrayBuffer>;

const edges = [0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff];

const mutators: readonly Mutator[] = [
  function flipBit(bytes, dice) {
    if (bytes.length > 0) bytes[dice.roll(bytes.length)]! ^= 1 << dice.roll(8);
    return bytes;
  },
  function setByte(bytes, dice) {
    if (bytes.length > 0) bytes[dice.roll(bytes.length)] = dice.roll(256);
    return bytes;
  },
  function lieAboutLength(bytes, dice) {
    const width = dice.pick([1, 2, 4]);
    if (bytes.length < width) return bytes;
    const at = dice.roll(bytes.length - width + 1);
    const value = dice.pick(edges) + dice.roll(3) - 1;
    for (let i = 0; i < width; i++) bytes[at + i] = value >>> (8 * i);
    return bytes;
  },
  function truncate(bytes, dice) {
    return bytes.slice(0, dice.roll(bytes.length + 1));
  },
  function cutOut(bytes, dice) {
    const from = dice.roll(bytes.length + 1);
    return joined(bytes.subarray(0, from), bytes.subarray(from + dice.roll(16)));
  },
  function repeat(bytes, dice) {
    const from = dice.roll(bytes.length + 1);
    const part = bytes.subarray(from, from + 1 + dice.roll(32));
    const times = 1 + dice.roll(dice.pick([2, 8, 64]));
    return joined(bytes.subarray(0, from), ...Array.from({ length: times }, () => part), bytes.subarray(from));
  },
  function insert(bytes, dice) {
    const at = dice.roll(bytes.length + 1);
    const noise = Uint8Array.from({ length: 1 + dice.roll(8) }, () => dice.roll(256));
    return joined(bytes.subarray(0, at), noise, bytes.subarray(at));
  },
  function splice(bytes, dice, seeds) {
    const other = dice.pick(seeds);
    const from = dice.roll(other.length + 1);
    return joined(bytes.subarray(0, dice.roll(bytes.length + 1)), other.subarray(from));
  },
];

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(
    Math.min(
      inputBytesMax,
      parts.reduce((sum, part) => sum + part.length, 0),
    ),
  );
  let at = 0;
  for (const part of parts) {
    if (at + part.length > whole.length) break;
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
