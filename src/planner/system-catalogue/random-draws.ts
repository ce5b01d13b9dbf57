/** The random numbers of a session: `random()`, `setseed(x)` and `gen_random_uuid()`. */
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export class Draws {
  readonly #random: Random;
  /** Four words of 32 bits, never all zero; null before the first number. */
  #state: Uint32Array | null = null;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A number from 0 to below 1, of 53 bits. */
  number(): number {
    const state = (this.#state ??= this.#unpredictable());
    return ((next(state) >>> 5) * 0x4000000 + (next(state) >>> 6)) / 2 ** 53;
  }

  /** The numbers behind it are those of this seed, which is one from -1 to 1. */
  seed(from: number): void {
    if (!(from >= -1 && from <= 1)) throw new ServiceError('REL_INVALID', 'setseed() takes a number from -1 to 1');
    const words = new Uint32Array(new Float64Array([from === 0 ? 0 : from]).buffer);
    const state = Uint32Array.of(words[0]!, words[1]!, 0x9e3779b9, 0x243f6a88);
    // Seeds differ in few bits, and so would their first numbers.
    for (let i = 0; i < 20; i++) next(state);
    this.#state = state;
  }

  /** A random uuid of version 4, which no seed foretells. */
  uuid(): string {
    const bytes = this.#random.fill(Buffer.alloc(16));
    bytes[6] = (bytes[6]! & 0x0f) | 0x40;
    bytes[8] = (bytes[8]! & 0x3f) | 0x80;
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #unpredictable(): Uint32Array {
    const state = new Uint32Array(4);
    this.#random.fill(new Uint8Array(state.buffer));
    state[3]! |= 1;
    return state;
  }
}

/** Source: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators": xoshiro128**. */
function next(state: Uint32Array): number {
  const [a, b, c, d] = state as unknown as readonly [number, number, number, number];
  const product = Math.imul(b, 5);
  const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
  state[2] = c ^ a;
  state[3] = d ^ b;
  state[1] = b ^ state[2];
  state[0] = a ^ state[3];
  state[2] ^= b << 9;
  state[3] = (state[3] << 11) | (state[3] >>> 21);
  return result;
}
