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
  #starts = new Float64Array(64 * FIELDS);
  #count = 0;

  static restore(source: ByteReader): FrameIndex {
    const index = new FrameIndex();
    const bytes = source.raw(source.count(FIELDS * Float64Array.BYTES_PER_ELEMENT) * FIELDS * Float64Array.BYTES_PER_ELEMENT);
    // A copy, for where it lies need not be aligned.
    index.#starts = new Float64Array(Uint8Array.from(bytes).buffer);
    index.#count = index.#starts.length / FIELDS;
    return index;
  }

  /** The first `count` notes. */
  save(count: number, target: ByteWriter): void {
    target.u32(count);
    target.raw(new Uint8Array(this.#starts.buffer, 0, count * FIELDS * Float64Array.BYTES_PER_ELEMENT));
  }

  get count(): number {
    return this.#count;
  }

  /** Frames in the order in which they lie in the log. */
  note({ file, offset, firstLeaf, firstPosition }: FrameStart): void {
    const last = (this.#count - 1) * FIELDS;
    if (last >= 0 && this.#starts[last] === file && offset - this.#starts[last + 1]! < STEP_BYTES) return;
    const at = this.#count * FIELDS;
    if (at === this.#starts.length) {
      const grown = new Float64Array(Math.max(64 * FIELDS, at * 2));
      grown.set(this.#starts);
      this.#starts = grown;
    }
    this.#starts[at] = file;
    this.#starts[at + 1] = offset;
    this.#starts[at + 2] = firstLeaf;
    this.#starts[at + 3] = firstPosition;
    this.#count++;
  }

  /** For a file that was written anew: other offsets, in order; places in other files stay. */
  replace(file: number, frameStarts: readonly FrameStart[]): void {
    const before = this.#fields().filter((start) => start.file < file);
    const after = this.#fields().filter((start) => start.file > file);
    this.#starts = new Float64Array(64 * FIELDS);
    this.#count = 0;
    for (const start of [...before, ...frameStarts, ...after]) this.note(start);
  }

  #fields(): FrameStart[] {
    return Array.from({ length: this.#count }, (_, at) => this.#startAt(at));
  }

  /** The nearest known frame that does not begin after this leaf; undefined in an empty log. */
  frameBefore(leaf: number): FrameStart | undefined {
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
      if (this.#starts[middle * FIELDS + field]! <= bound) low = middle;
      else high = middle;
    }
    return low < 0 ? undefined : this.#startAt(low);
  }

  #startAt(index: number): FrameStart {
    const [file, offset, firstLeaf, firstPosition] = this.#starts.subarray(index * FIELDS, (index + 1) * FIELDS);
    return { file: file!, offset: offset!, firstLeaf: firstLeaf!, firstPosition: firstPosition! };
  }
}
