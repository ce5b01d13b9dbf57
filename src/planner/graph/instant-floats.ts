/**
 * Instants as the floats that have their bits: read without an object for each. Those since 1970 stand in the order of these floats; that
 * of what never ends is no number.
 */
export function floatsOf({ buffer, byteOffset, length }: BigInt64Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length);
}

/** The bits of instants as 32-bit numbers, two for each. */
export function halvesOf({ buffer, byteOffset, length }: BigInt64Array): Int32Array {
  return new Int32Array(buffer, byteOffset, 2 * length);
}
