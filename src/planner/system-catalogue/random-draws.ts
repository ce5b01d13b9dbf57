/** The random numbers of a session: `random()`, `setseed(x)` and `gen_random_uuid()`. */
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export class Draws {
  readonly #drawRandom: Random;
  /** Four words of 32 bits, never all zero; null before the first number. */
  #drawState: Uint32Array | null = null;

  constructor(drawRandom: Random) {
    this.#drawRandom = drawRandom;
  }

  /** A number from 0 to below 1, of 53 bits. */
  number(): number {
    const drawState = (this.#drawState ??= this.#unpredictableState());
    return ((nextDraw(drawState) >>> 5) * 0x4000000 + (nextDraw(drawState) >>> 6)) / 2 ** 53;
  }

  /** The numbers behind it are those of this seed, which is one from -1 to 1. */
  seed(drawSeed: number): void {
    if (!(drawSeed >= -1 && drawSeed <= 1)) throw new ServiceError('REL_INVALID', 'setseed() takes a number from -1 to 1');
    const seedWords = new Uint32Array(new Float64Array([drawSeed === 0 ? 0 : drawSeed]).buffer);
    const seededState = Uint32Array.of(seedWords[0]!, seedWords[1]!, 0x9e3779b9, 0x243f6a88);
    // Seeds differ in few bits, and so would their first numbers.
    for (let i = 0; i < 20; i++) nextDraw(seededState);
    this.#drawState = seededState;
  }

  /** A random uuid of version 4, which no seed foretells. */
  uuid(): string {
    const uuidBytes = this.#drawRandom.fill(Buffer.alloc(16));
    uuidBytes[6] = (uuidBytes[6]! & 0x0f) | 0x40;
    uuidBytes[8] = (uuidBytes[8]! & 0x3f) | 0x80;
    return uuidBytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #unpredictableState(): Uint32Array {
    const randomState = new Uint32Array(4);
    this.#drawRandom.fill(new Uint8Array(randomState.buffer));
    randomState[3]! |= 1;
    return randomState;
  }
}

/** Source: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators": xoshiro128**. */
function nextDraw(drawState: Uint32Array): number {
  const [firstWord, secondWord, thirdWord, fourthWord] = drawState as unknown as readonly [number, number, number, number];
  const stateProduct = Math.imul(secondWord, 5);
  const drawnWord = Math.imul((stateProduct << 7) | (stateProduct >>> 25), 9) >>> 0;
  drawState[2] = thirdWord ^ firstWord;
  drawState[3] = fourthWord ^ secondWord;
  drawState[1] = secondWord ^ drawState[2];
  drawState[0] = firstWord ^ drawState[3];
  drawState[2] ^= secondWord << 9;
  drawState[3] = (drawState[3] << 11) | (drawState[3] >>> 21);
  return drawnWord;
}
