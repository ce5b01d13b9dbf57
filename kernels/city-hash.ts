/**
 * CityHash128 as of version 1.0.2, by which ClickHouse guards compressed blocks: later versions give other numbers. Compiled by
 * `npm run kernels`; called by `src/doors/columnar/city-hash.ts`, which lays the bytes out and checks that they fit.
 */

const k0: u64 = 0xc3a5c85c97cb3127;
const k1: u64 = 0xb492b66fbe98f273;
const k2: u64 = 0x9ae16a3b2f90404f;
const k3: u64 = 0xc949d7c7509e6557;
const fold: u64 = 0x9ddfea08eb382d69;

/** The two halves of what was computed last. */
const result: usize = memory.data(16);

/** Halves of the two pairs that `weak` moves on. */
let v0: u64 = 0;
let v1: u64 = 0;
let w0: u64 = 0;
let w1: u64 = 0;
let x: u64 = 0;
let y: u64 = 0;
let z: u64 = 0;

export function resultAt(): usize {
  return result;
}

export function freeFrom(): usize {
  return __heap_base;
}

/** Hash of so many bytes from there on. */
export function hash(at: usize, length: usize): void {
  if (length >= 16) return seeded(at + 16, length - 16, load<u64>(at) ^ k3, load<u64>(at, 8));
  if (length >= 8) return seeded(0, 0, load<u64>(at) ^ ((length as u64) * k0), load<u64>(at + length - 8) ^ k1);
  seeded(at, length, k0, k1);
}

function seeded(at: usize, length: usize, seed0: u64, seed1: u64): void {
  if (length < 128) return murmur(at, length, seed0, seed1);
  x = seed0;
  y = seed1;
  z = (length as u64) * k1;
  v0 = rotr(y ^ k1, 49) * k1 + load<u64>(at);
  v1 = rotr(v0, 42) * k1 + load<u64>(at, 8);
  w0 = rotr(y + z, 35) * k1 + x;
  w1 = rotr(x + load<u64>(at, 88), 53) * k1;
  let rest = length;
  do {
    round(at);
    round(at + 64);
    at += 128;
    rest -= 128;
  } while (rest >= 128);
  y += rotr(w0, 37) * k0 + z;
  x += rotr(v0 + z, 49) * k0;
  // Up to four pieces of 32 bytes from the end, of which the last may reach back into what was hashed.
  for (let done: usize = 0; done < rest; ) {
    done += 32;
    const piece = at + rest - done;
    y = rotr(y - x, 42) * k0 + v1;
    w0 += load<u64>(piece, 16);
    x = rotr(x, 49) * k0 + w0;
    w0 += v0;
    weakV(piece, v0, v1);
  }
  x = mix(x, v0);
  y = mix(y, w0);
  store<u64>(result, mix(x + v1, w1) + y);
  store<u64>(result, mix(x + w1, y + v1), 8);
}

// @ts-ignore: a decorator of the compiler
@inline
function round(at: usize): void {
  x = rotr(x + y + v0 + load<u64>(at, 16), 37) * k1;
  y = rotr(y + v1 + load<u64>(at, 48), 42) * k1;
  x ^= w1;
  y ^= v0;
  z = rotr(z ^ w0, 33);
  weakV(at, v1 * k1, x + w0);
  weakW(at + 32, z + w1, y);
  const swapped = z;
  z = x;
  x = swapped;
}

// @ts-ignore: a decorator of the compiler
@inline
function weakV(at: usize, seed0: u64, seed1: u64): void {
  const a = seed0 + load<u64>(at);
  const b = rotr(seed1 + a + load<u64>(at, 24), 21);
  const sum = a + load<u64>(at, 8) + load<u64>(at, 16);
  v0 = sum + load<u64>(at, 24);
  v1 = b + rotr(sum, 44) + a;
}

// @ts-ignore: a decorator of the compiler
@inline
function weakW(at: usize, seed0: u64, seed1: u64): void {
  const a = seed0 + load<u64>(at);
  const b = rotr(seed1 + a + load<u64>(at, 24), 21);
  const sum = a + load<u64>(at, 8) + load<u64>(at, 16);
  w0 = sum + load<u64>(at, 24);
  w1 = b + rotr(sum, 44) + a;
}

function murmur(at: usize, length: usize, seed0: u64, seed1: u64): void {
  let a = seed0;
  let b = seed1;
  let c: u64;
  let d: u64;
  let rest = (length as isize) - 16;
  if (rest <= 0) {
    a = shifted(a * k1) * k1;
    c = b * k1 + short(at, length);
    d = shifted(a + (length >= 8 ? load<u64>(at) : c));
  } else {
    c = mix(load<u64>(at + length - 8) + k1, a);
    d = mix(b + (length as u64), c + load<u64>(at + length - 16));
    a += d;
    do {
      a = (a ^ (shifted(load<u64>(at) * k1) * k1)) * k1;
      b ^= a;
      c = (c ^ (shifted(load<u64>(at, 8) * k1) * k1)) * k1;
      d ^= c;
      at += 16;
      rest -= 16;
    } while (rest > 0);
  }
  a = mix(a, c);
  b = mix(d, b);
  store<u64>(result, a ^ b);
  store<u64>(result, mix(b, a), 8);
}

/** Of at most 16 bytes. */
function short(at: usize, length: usize): u64 {
  const size = length as u64;
  if (length > 8) {
    const last = load<u64>(at + length - 8);
    return mix(load<u64>(at), rotr(last + size, size)) ^ last;
  }
  if (length >= 4) return mix(size + ((load<u32>(at) as u64) << 3), load<u32>(at + length - 4) as u64);
  if (length === 0) return k2;
  const first: u32 = (load<u8>(at) as u32) + ((load<u8>(at + (length >> 1)) as u32) << 8);
  const second: u32 = (length as u32) + ((load<u8>(at + length - 1) as u32) << 2);
  return shifted(((first as u64) * k2) ^ ((second as u64) * k3)) * k2;
}

// @ts-ignore: a decorator of the compiler
@inline
function shifted(value: u64): u64 {
  return value ^ (value >> 47);
}

// @ts-ignore: a decorator of the compiler
@inline
function mix(low: u64, high: u64): u64 {
  const a = shifted((low ^ high) * fold);
  return shifted((high ^ a) * fold) * fold;
}
