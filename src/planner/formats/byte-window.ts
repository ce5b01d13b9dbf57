/** Bytes of a body that arrived and are not used up: `bytes[at .. end)`. No larger than a chunk and an unfinished row. */
export class ByteWindow {
  bytes: Uint8Array = new Uint8Array(0);
  at = 0;
  end = 0;
  /** Offset in the body of the first byte. */
  offset = 0;
  /** Bytes that arrived so far, used up or not. */
  received = 0;
  /** Whether bytes came, or moved, since a reader opened the window. */
  isDirty = true;

  push(chunk: Uint8Array): void {
    // Moved even where it would fit, so that the window stays as small as a chunk and a row.
    if (this.at > 0) {
      this.bytes.copyWithin(0, this.at, this.end);
      this.offset += this.at;
      this.end -= this.at;
      this.at = 0;
    }
    if (this.end + chunk.length + 1 > this.bytes.length) {
      // A body may be one small row: the first window fits the first chunk exactly, later ones double.
      const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.end + chunk.length + 1));
      larger.set(this.bytes.subarray(0, this.end));
      this.bytes = larger;
    }
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
    this.isDirty = true;
  }
}
