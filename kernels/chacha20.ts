/**
 * ChaCha20 (RFC 8439) over bytes in this memory, four blocks at a time: one in each lane of a vector. Compiled by `npm run
 * kernels`; called by `src/log/entries/section-memory.ts`, which lays out the memory and checks that all fits. Takes the same time
 * whatever key and bytes are: nothing is looked up, nothing branches on them.
 */

/** The stream of four blocks. */
const stream: usize = memory.data(256, 16);

/** The first byte that the caller may use. */
export function freeFrom(): usize {
  return (__heap_base + 63) & ~63;
}

@inline
function add(a: v128, b: v128): v128 {
  return i32x4.add(a, b);
}

/** To the left. */
@inline
function turned(x: v128, by: i32): v128 {
  return v128.or(i32x4.shl(x, by), i32x4.shr_u(x, 32 - by));
}

@inline
function by16(x: v128): v128 {
  return v128.shuffle<u8>(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
}

@inline
function by8(x: v128): v128 {
  return v128.shuffle<u8>(x, x, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14);
}

/** Words w to w + 3 of four blocks, lane by lane, to where they belong in the stream. */
@inline
function spread(w: usize, a: v128, b: v128, c: v128, d: v128): void {
  const ab = v128.shuffle<u32>(a, b, 0, 4, 1, 5);
  const cd = v128.shuffle<u32>(c, d, 0, 4, 1, 5);
  const ef = v128.shuffle<u32>(a, b, 2, 6, 3, 7);
  const gh = v128.shuffle<u32>(c, d, 2, 6, 3, 7);
  const at = stream + w * 4;
  v128.store(at, v128.shuffle<u64>(ab, cd, 0, 2));
  v128.store(at, v128.shuffle<u64>(ab, cd, 1, 3), 64);
  v128.store(at, v128.shuffle<u64>(ef, gh, 0, 2), 128);
  v128.store(at, v128.shuffle<u64>(ef, gh, 1, 3), 192);
}

/** `size` bytes at `data`, and up to fifteen behind them. `block` is the number of the first block. */
export function xor(key: usize, nonce: usize, block: u32, data: usize, size: u32): void {
  const k0 = i32x4.splat(0x61707865);
  const k1 = i32x4.splat(0x3320646e);
  const k2 = i32x4.splat(0x79622d32);
  const k3 = i32x4.splat(0x6b206574);
  const k4 = v128.load32_splat(key, 0);
  const k5 = v128.load32_splat(key, 4);
  const k6 = v128.load32_splat(key, 8);
  const k7 = v128.load32_splat(key, 12);
  const k8 = v128.load32_splat(key, 16);
  const k9 = v128.load32_splat(key, 20);
  const k10 = v128.load32_splat(key, 24);
  const k11 = v128.load32_splat(key, 28);
  const k13 = v128.load32_splat(nonce, 0);
  const k14 = v128.load32_splat(nonce, 4);
  const k15 = v128.load32_splat(nonce, 8);
  let k12 = add(i32x4.splat(block), i32x4(0, 1, 2, 3));
  const end = data + size;
  for (let at = data; at < end; at += 256) {
    let x0 = k0;
    let x1 = k1;
    let x2 = k2;
    let x3 = k3;
    let x4 = k4;
    let x5 = k5;
    let x6 = k6;
    let x7 = k7;
    let x8 = k8;
    let x9 = k9;
    let x10 = k10;
    let x11 = k11;
    let x12 = k12;
    let x13 = k13;
    let x14 = k14;
    let x15 = k15;
    for (let round = 0; round < 10; round++) {
      x0 = add(x0, x4);
      x12 = by16(v128.xor(x12, x0));
      x8 = add(x8, x12);
      x4 = turned(v128.xor(x4, x8), 12);
      x0 = add(x0, x4);
      x12 = by8(v128.xor(x12, x0));
      x8 = add(x8, x12);
      x4 = turned(v128.xor(x4, x8), 7);
      x1 = add(x1, x5);
      x13 = by16(v128.xor(x13, x1));
      x9 = add(x9, x13);
      x5 = turned(v128.xor(x5, x9), 12);
      x1 = add(x1, x5);
      x13 = by8(v128.xor(x13, x1));
      x9 = add(x9, x13);
      x5 = turned(v128.xor(x5, x9), 7);
      x2 = add(x2, x6);
      x14 = by16(v128.xor(x14, x2));
      x10 = add(x10, x14);
      x6 = turned(v128.xor(x6, x10), 12);
      x2 = add(x2, x6);
      x14 = by8(v128.xor(x14, x2));
      x10 = add(x10, x14);
      x6 = turned(v128.xor(x6, x10), 7);
      x3 = add(x3, x7);
      x15 = by16(v128.xor(x15, x3));
      x11 = add(x11, x15);
      x7 = turned(v128.xor(x7, x11), 12);
      x3 = add(x3, x7);
      x15 = by8(v128.xor(x15, x3));
      x11 = add(x11, x15);
      x7 = turned(v128.xor(x7, x11), 7);
      x0 = add(x0, x5);
      x15 = by16(v128.xor(x15, x0));
      x10 = add(x10, x15);
      x5 = turned(v128.xor(x5, x10), 12);
      x0 = add(x0, x5);
      x15 = by8(v128.xor(x15, x0));
      x10 = add(x10, x15);
      x5 = turned(v128.xor(x5, x10), 7);
      x1 = add(x1, x6);
      x12 = by16(v128.xor(x12, x1));
      x11 = add(x11, x12);
      x6 = turned(v128.xor(x6, x11), 12);
      x1 = add(x1, x6);
      x12 = by8(v128.xor(x12, x1));
      x11 = add(x11, x12);
      x6 = turned(v128.xor(x6, x11), 7);
      x2 = add(x2, x7);
      x13 = by16(v128.xor(x13, x2));
      x8 = add(x8, x13);
      x7 = turned(v128.xor(x7, x8), 12);
      x2 = add(x2, x7);
      x13 = by8(v128.xor(x13, x2));
      x8 = add(x8, x13);
      x7 = turned(v128.xor(x7, x8), 7);
      x3 = add(x3, x4);
      x14 = by16(v128.xor(x14, x3));
      x9 = add(x9, x14);
      x4 = turned(v128.xor(x4, x9), 12);
      x3 = add(x3, x4);
      x14 = by8(v128.xor(x14, x3));
      x9 = add(x9, x14);
      x4 = turned(v128.xor(x4, x9), 7);
    }
    spread(0, add(x0, k0), add(x1, k1), add(x2, k2), add(x3, k3));
    spread(4, add(x4, k4), add(x5, k5), add(x6, k6), add(x7, k7));
    spread(8, add(x8, k8), add(x9, k9), add(x10, k10), add(x11, k11));
    spread(12, add(x12, k12), add(x13, k13), add(x14, k14), add(x15, k15));
    const last = at + 256 < end ? at + 256 : end;
    for (let i = at, s = stream; i < last; i += 16, s += 16) v128.store(i, v128.xor(v128.load(i), v128.load(s)));
    k12 = add(k12, i32x4.splat(4));
  }
}
