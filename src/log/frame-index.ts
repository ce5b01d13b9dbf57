/** Where frames begin: about one note for every 64 KiB of log, so that one entry is found without reading the file before it. */

export interface FramePlace {
  readonly file: number;
  readonly offset: number;
  readonly firstLeaf: number;
  /** Where the frame's first position is, or would be. */
  readonly firstPosition: number;
}

const STEP_BYTES = 64 << 10;

export class FrameIndex {
  readonly #places: FramePlace[] = [];

  /** Frames in the order in which they lie in the log. */
  note(place: FramePlace): void {
    const last = this.#places[this.#places.length - 1];
    if (last && last.file === place.file && place.offset - last.offset < STEP_BYTES) return;
    this.#places.push(place);
  }

  /** The nearest known frame that does not begin after this leaf; undefined in an empty log. */
  before(leaf: number): FramePlace | undefined {
    return this.#last((place) => place.firstLeaf <= leaf);
  }

  beforePosition(position: number): FramePlace | undefined {
    return this.#last((place) => place.firstPosition <= position);
  }

  /** The last place that `holds`, which is true of a prefix of them. */
  #last(holds: (place: FramePlace) => boolean): FramePlace | undefined {
    let low = -1;
    let high = this.#places.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (holds(this.#places[middle]!)) low = middle;
      else high = middle;
    }
    return this.#places[low];
  }
}
