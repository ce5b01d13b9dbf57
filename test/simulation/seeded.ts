/** Pseudo-random numbers that one seed decides (sfc32). Serves as the `Random` of a simulated world as well. */
import type { Random } from '../../src/clock.ts';

export class Seeded implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 4_294_967_296) | 0;
    this.#c = 0x9e3779b9 | 0;
    for (let i = 0; i < 12; i++) this.bits();
  }

  /** 32 random bits, unsigned. */
  bits(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }

  /** 0 <= result < bound. */
  below(bound: number): number {
    return Math.floor((this.bits() / 4_294_967_296) * bound);
  }

  chance(probability: number): boolean {
    return this.bits() < probability * 4_294_967_296;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  fill<T extends Uint8Array>(target: T): T {
    for (let i = 0; i < target.length; i += 4) {
      const bits = this.bits();
      target[i] = bits;
      target[i + 1] = bits >>> 8;
      target[i + 2] = bits >>> 16;
      target[i + 3] = bits >>> 24;
    }
    return target;
  }
}
