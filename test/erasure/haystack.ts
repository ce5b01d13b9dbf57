/** Finds any of very many byte patterns in very many bytes, each found one told once. */
import { encodings } from './encodings.ts';

export interface Needle {
  /** Whose canary it is, and which. */
  readonly subject: number;
  readonly canary: string;
}

export interface Found extends Needle {
  readonly encoding: string;
  readonly where: string;
}

interface Pattern extends Needle {
  readonly encoding: string;
  readonly bytes: Uint8Array;
}

const TABLE_BITS = 22;

export class Haystack {
  /** By a hash of their first four bytes. */
  readonly #buckets = new Map<number, Pattern[]>();
  readonly #maybe = new Uint8Array(1 << TABLE_BITS);
  readonly #found = new Map<string, Found>();
  bytes = 0;

  constructor(needles: Iterable<Needle>) {
    for (const needle of needles) {
      for (const [encoding, encode] of Object.entries(encodings)) {
        for (const bytes of encode(needle.canary)) this.#add({ ...needle, encoding, bytes });
      }
    }
  }

  get found(): readonly Found[] {
    return [...this.#found.values()];
  }

  text(where: string, text: string): void {
    this.search(where, Buffer.from(text, 'utf8'));
  }

  search(where: string, hay: Uint8Array): void {
    this.bytes += hay.length;
    const maybe = this.#maybe;
    let word = 0;
    for (let at = 0; at < hay.length; at++) {
      word = ((word << 8) | hay[at]!) >>> 0;
      if (at < 3) continue;
      if (maybe[slotOf(word)] === 0) continue;
      for (const pattern of this.#buckets.get(word) ?? []) this.#compare(where, hay, at - 3, pattern);
    }
  }

  #compare(where: string, hay: Uint8Array, at: number, { subject, canary, encoding, bytes }: Pattern): void {
    if (at + bytes.length > hay.length) return;
    for (let i = 4; i < bytes.length; i++) if (hay[at + i] !== bytes[i]) return;
    const key = `${subject} ${canary} ${encoding} ${where}`;
    if (!this.#found.has(key)) this.#found.set(key, { subject, canary, encoding, where });
  }

  #add(pattern: Pattern): void {
    const { bytes } = pattern;
    const word = ((bytes[0]! << 24) | (bytes[1]! << 16) | (bytes[2]! << 8) | bytes[3]!) >>> 0;
    this.#maybe[slotOf(word)] = 1;
    const bucket = this.#buckets.get(word);
    if (bucket === undefined) this.#buckets.set(word, [pattern]);
    else bucket.push(pattern);
  }
}

function slotOf(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> (32 - TABLE_BITS);
}
