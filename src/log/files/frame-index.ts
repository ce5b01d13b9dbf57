/** Where frames begin: about one note for every 64 KiB of log, so that one entry is found without reading the file before it. */
import type { ByteReader, ByteWriter } from '../bytes/byte-stream.ts';

export interface FrameStart {
  readonly file: number;
  readonly offset: number;
  readonly firstLeaf: number;
  /** Where the frame's first position is, or would be. */
  readonly firstPosition: number;
}

const STEP_BYTES = 64 << 10;
const FIELDS = 4;

export class FrameIndex {
  /** File, offset, first leaf and first position of one place after the other. */
  #places = new Float64Array(64 * FIELDS);
  #count = 0;

  static restore(source: ByteReader): FrameIndex {
    const index = new FrameIndex();
    const bytes = source.raw(source.count(FIELDS * Float64Array.BYTES_PER_ELEMENT) * FIELDS * Float64Array.BYTES_PER_ELEMENT);
    // A copy, for where it lies need not be aligned.
    index.#places = new Float64Array(Uint8Array.from(bytes).buffer);
    index.#count = index.#places.length / FIELDS;
    return index;
  }

  /** The first `count` notes. */
  save(count: number, target: ByteWriter): void {
    target.u32(count);
    target.raw(new Uint8Array(this.#places.buffer, 0, count * FIELDS * Float64Array.BYTES_PER_ELEMENT));
  }

  get count(): number {
    return this.#count;
  }

  /** Frames in the order in which they lie in the log. */
  note({ file, offset, firstLeaf, firstPosition }: FrameStart): void {
    const last = (this.#count - 1) * FIELDS;
    if (last >= 0 && this.#places[last] === file && offset - this.#places[last + 1]! < STEP_BYTES) return;
    const at = this.#count * FIELDS;
    if (at === this.#places.length) {
      const grown = new Float64Array(Math.max(64 * FIELDS, at * 2));
      grown.set(this.#places);
      this.#places = grown;
    }
    this.#places[at] = file;
    this.#places[at + 1] = offset;
    this.#places[at + 2] = firstLeaf;
    this.#places[at + 3] = firstPosition;
    this.#count++;
  }

  /** For a file that was written anew: other offsets, in order; places in other files stay. */
  replace(file: number, places: readonly FrameStart[]): void {
    const before = this.#fields().filter((place) => place.file < file);
    const after = this.#fields().filter((place) => place.file > file);
    this.#places = new Float64Array(64 * FIELDS);
    this.#count = 0;
    for (const place of [...before, ...places, ...after]) this.note(place);
  }

  #fields(): FrameStart[] {
    return Array.from({ length: this.#count }, (_, at) => this.#startAt(at));
  }

  /** The nearest known frame that does not begin after this leaf; undefined in an empty log. */
  before(leaf: number): FrameStart | undefined {
    return this.#last(2, leaf);
  }

  beforePosition(position: number): FrameStart | undefined {
    return this.#last(3, position);
  }

  /** The last place whose `field`, which never falls, is not above a bound. */
  #last(field: 2 | 3, bound: number): FrameStart | undefined {
    let low = -1;
    let high = this.#count;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#places[middle * FIELDS + field]! <= bound) low = middle;
      else high = middle;
    }
    return low < 0 ? undefined : this.#startAt(low);
  }

  #startAt(place: number): FrameStart {
    const [file, offset, firstLeaf, firstPosition] = this.#places.subarray(place * FIELDS, (place + 1) * FIELDS);
    return { file: file!, offset: offset!, firstLeaf: firstLeaf!, firstPosition: firstPosition! };
  }
}
