/**
 * Short texts from place to place, four bytes at a time: a call of `set` costs more than such a text, and a loop over
 * single bytes four times as much. Up to three bytes behind the text are read and written with it.
 */

/** How many bytes must be there behind a text, where it stands and where it goes. */
export const wordSlack = 3;
/** From this size on a block copy is faster. */
const blockBytes = 192;

export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

export function copyWords(target: DataView, at: number, source: DataView, from: number, size: number): void {
  if (size > blockBytes) bytesOf(target, at, size).set(bytesOf(source, from, size));
  else for (let k = 0; k < size; k += 4) target.setInt32(at + k, source.getInt32(from + k, true), true);
}

function bytesOf({ buffer, byteOffset }: DataView, from: number, size: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + from, size);
}
