/**
 * Short texts from place to place, four bytes at a time: a call of `set` costs more than such a text, and a loop over
 * single bytes four times as much. Up to three bytes behind the text are read and written with it.
 */

/** How many bytes must be there behind a text, where it stands and where it goes. */
export const wordSlack = 3;
/** From this size on a block copy is faster. */
const blockCopyBytes = 192;

export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

export function copyWords(
  targetView: DataView,
  targetOffset: number,
  sourceView: DataView,
  sourceOffset: number,
  copiedBytes: number,
): void {
  if (copiedBytes > blockCopyBytes)
    viewedBytes(targetView, targetOffset, copiedBytes).set(viewedBytes(sourceView, sourceOffset, copiedBytes));
  else
    for (let k = 0; k < copiedBytes; k += 4)
      targetView.setInt32(targetOffset + k, sourceView.getInt32(sourceOffset + k, true), true);
}

function viewedBytes({ buffer, byteOffset }: DataView, from: number, size: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + from, size);
}
