/** Where frames begin: about one note for every 64 KiB of log, so that one entry is found without reading the file before it. */
import type { ByteReader, ByteWriter } from '../bytes/byte-stream.ts';

export interface FrameStart {
  readonly file: number;
  readonly offset: number;
  readonly firstLeaf: number;
  /** Where the frame's first position is, or would be. */
  readonly firstPosition: number;
}

const INDEX_STEP_BYTES = 64 << 10;
const FRAME_START_FIELDS = 4;

export class FrameIndex {
  /** File, offset, first leaf and first position of one place after the other. */
  #starts = new Float64Array(64 * FRAME_START_FIELDS);
  #frameStartCount = 0;

  static restore(savedIndexReader: ByteReader): FrameIndex {
    const frameIndex = new FrameIndex();
    const frameStartBytes = savedIndexReader.raw(
      savedIndexReader.count(FRAME_START_FIELDS * Float64Array.BYTES_PER_ELEMENT) *
        FRAME_START_FIELDS *
        Float64Array.BYTES_PER_ELEMENT,
    );
    // A copy, for where it lies need not be aligned.
    frameIndex.#starts = new Float64Array(Uint8Array.from(frameStartBytes).buffer);
    frameIndex.#frameStartCount = frameIndex.#starts.length / FRAME_START_FIELDS;
    return frameIndex;
  }

  /** The first `count` notes. */
  save(count: number, savedIndexWriter: ByteWriter): void {
    savedIndexWriter.u32(count);
    savedIndexWriter.raw(new Uint8Array(this.#starts.buffer, 0, count * FRAME_START_FIELDS * Float64Array.BYTES_PER_ELEMENT));
  }

  get count(): number {
    return this.#frameStartCount;
  }

  /** Frames in the order in which they lie in the log. */
  note({ file, offset, firstLeaf, firstPosition }: FrameStart): void {
    const lastFrameStart = (this.#frameStartCount - 1) * FRAME_START_FIELDS;
    if (
      lastFrameStart >= 0 &&
      this.#starts[lastFrameStart] === file &&
      offset - this.#starts[lastFrameStart + 1]! < INDEX_STEP_BYTES
    )
      return;
    const newStartIndex = this.#frameStartCount * FRAME_START_FIELDS;
    if (newStartIndex === this.#starts.length) {
      const grownFrameStarts = new Float64Array(Math.max(64 * FRAME_START_FIELDS, newStartIndex * 2));
      grownFrameStarts.set(this.#starts);
      this.#starts = grownFrameStarts;
    }
    this.#starts[newStartIndex] = file;
    this.#starts[newStartIndex + 1] = offset;
    this.#starts[newStartIndex + 2] = firstLeaf;
    this.#starts[newStartIndex + 3] = firstPosition;
    this.#frameStartCount++;
  }

  /** For a file that was written anew: other offsets, in order; places in other files stay. */
  replace(file: number, frameStarts: readonly FrameStart[]): void {
    const startsBefore = this.#allFrameStarts().filter((start) => start.file < file);
    const startsAfter = this.#allFrameStarts().filter((start) => start.file > file);
    this.#starts = new Float64Array(64 * FRAME_START_FIELDS);
    this.#frameStartCount = 0;
    for (const start of [...startsBefore, ...frameStarts, ...startsAfter]) this.note(start);
  }

  #allFrameStarts(): FrameStart[] {
    return Array.from({ length: this.#frameStartCount }, (_, at) => this.#frameStartAt(at));
  }

  /** The nearest known frame that does not begin after this leaf; undefined in an empty log. */
  frameBefore(leaf: number): FrameStart | undefined {
    return this.#lastFrameBefore(2, leaf);
  }

  beforePosition(position: number): FrameStart | undefined {
    return this.#lastFrameBefore(3, position);
  }

  /** The last place whose `frameStartField`, which never falls, is not above a bound. */
  #lastFrameBefore(frameStartField: 2 | 3, startBound: number): FrameStart | undefined {
    let lowStart = -1;
    let highStart = this.#frameStartCount;
    while (highStart - lowStart > 1) {
      const middleStart = (lowStart + highStart) >> 1;
      if (this.#starts[middleStart * FRAME_START_FIELDS + frameStartField]! <= startBound) lowStart = middleStart;
      else highStart = middleStart;
    }
    return lowStart < 0 ? undefined : this.#frameStartAt(lowStart);
  }

  #frameStartAt(index: number): FrameStart {
    const [file, offset, firstLeaf, firstPosition] = this.#starts.subarray(
      index * FRAME_START_FIELDS,
      (index + 1) * FRAME_START_FIELDS,
    );
    return { file: file!, offset: offset!, firstLeaf: firstLeaf!, firstPosition: firstPosition! };
  }
}
