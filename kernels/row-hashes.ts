/**
 * Row leaf hashes and the tree over them (`row-leaf.ts` says what they are), four rows and four nodes at a time: SHA-256 over
 * four messages at once, one in each lane of a vector. Long rows are only laid out here, and hashed elsewhere. Compiled by `npm run kernels`; called by `src/log/entries/row-hashes.ts`,
 * which lays out the memory and checks that all fits.
 *
 * Every pointer in the tables below lies in this memory. Reads and writes may pass the end of what they are about by
 * seven bytes: copies go eight bytes at a time.
 */

/** Where the caller writes pointers, in the order of these names. */
const enum At {
  prefix = 0,
  prefixBytes = 4,
  salts = 8,
  ops = 12,
  closeOffsets = 16,
  closes = 20,
  columns = 24,
  columnCount = 28,
  stage = 32,
  stride = 36,
  hashes = 40,
  pk = 44,
  from = 48,
  fromNulls = 52,
  to = 56,
  toNulls = 60,
}

/** A column: what its cells start with, and where its arrays lie; 0 for an array that is not there. */
const enum Column {
  form = 0,
  head = 4,
  headBytes = 8,
  data = 12,
  offsets = 16,
  nulls = 20,
  dims = 24,
  bytes = 32,
}

const enum Form {
  text = 0,
  integerOfI32 = 1,
  integerOfF64 = 2,
  numberOfF64 = 3,
  numberOfI32 = 4,
  wide = 5,
  bool = 6,
  vec = 7,
}

const SALT: usize = 16;
const HASH: usize = 32;

// prettier-ignore
const roundKeys: usize = memory.data<u32>([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
]);
const initial: usize = memory.data<u32>([
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]);
/** Message schedule and state of four messages, word by word. */
const schedule: usize = memory.data(64 * 16, 16);
const state: usize = memory.data(8 * 16, 16);
/** Blocks of each of four messages. */
const blocks: usize = memory.data(16, 16);
const table: usize = memory.data(64, 16);

/** Where the pointers go. */
export function tableAt(): usize {
  return table;
}

/** The first byte that the caller may use. */
export function freeFrom(): usize {
  return (__heap_base + 63) & ~63;
}

@inline
function add(a: v128, b: v128): v128 {
  return i32x4.add(a, b);
}

@inline
function turned(x: v128, by: i32): v128 {
  return v128.or(i32x4.shr_u(x, by), i32x4.shl(x, 32 - by));
}

@inline
function s0(x: v128): v128 {
  return v128.xor(v128.xor(turned(x, 2), turned(x, 13)), turned(x, 22));
}

@inline
function s1(x: v128): v128 {
  return v128.xor(v128.xor(turned(x, 6), turned(x, 11)), turned(x, 25));
}

/** The first sixteen words of the schedule are there: one block of four messages. `active` is all ones in lanes that go on. */
function compress(active: v128): void {
  for (let w = schedule; w < schedule + 48 * 16; w += 16) {
    const x = v128.load(w, 16);
    const y = v128.load(w, 14 * 16);
    const low = v128.xor(v128.xor(turned(x, 7), turned(x, 18)), i32x4.shr_u(x, 3));
    const high = v128.xor(v128.xor(turned(y, 17), turned(y, 19)), i32x4.shr_u(y, 10));
    v128.store(w, add(add(v128.load(w), low), add(v128.load(w, 9 * 16), high)), 16 * 16);
  }
  let a = v128.load(state, 0);
  let b = v128.load(state, 16);
  let c = v128.load(state, 32);
  let d = v128.load(state, 48);
  let e = v128.load(state, 64);
  let f = v128.load(state, 80);
  let g = v128.load(state, 96);
  let h = v128.load(state, 112);
  let t: v128;
  let k = roundKeys;
  for (let w = schedule; w < schedule + 64 * 16; w += 8 * 16) {
    t = add(add(add(h, s1(e)), v128.bitselect(f, g, e)), add(v128.load(w, 0), v128.load32_splat(k, 0)));
    d = add(d, t);
    h = add(t, add(s0(a), v128.bitselect(c, b, v128.xor(a, b))));
    t = add(add(add(g, s1(d)), v128.bitselect(e, f, d)), add(v128.load(w, 16), v128.load32_splat(k, 4)));
    c = add(c, t);
    g = add(t, add(s0(h), v128.bitselect(b, a, v128.xor(h, a))));
    t = add(add(add(f, s1(c)), v128.bitselect(d, e, c)), add(v128.load(w, 32), v128.load32_splat(k, 8)));
    b = add(b, t);
    f = add(t, add(s0(g), v128.bitselect(a, h, v128.xor(g, h))));
    t = add(add(add(e, s1(b)), v128.bitselect(c, d, b)), add(v128.load(w, 48), v128.load32_splat(k, 12)));
    a = add(a, t);
    e = add(t, add(s0(f), v128.bitselect(h, g, v128.xor(f, g))));
    t = add(add(add(d, s1(a)), v128.bitselect(b, c, a)), add(v128.load(w, 64), v128.load32_splat(k, 16)));
    h = add(h, t);
    d = add(t, add(s0(e), v128.bitselect(g, f, v128.xor(e, f))));
    t = add(add(add(c, s1(h)), v128.bitselect(a, b, h)), add(v128.load(w, 80), v128.load32_splat(k, 20)));
    g = add(g, t);
    c = add(t, add(s0(d), v128.bitselect(f, e, v128.xor(d, e))));
    t = add(add(add(b, s1(g)), v128.bitselect(h, a, g)), add(v128.load(w, 96), v128.load32_splat(k, 24)));
    f = add(f, t);
    b = add(t, add(s0(c), v128.bitselect(e, d, v128.xor(c, d))));
    t = add(add(add(a, s1(f)), v128.bitselect(g, h, f)), add(v128.load(w, 112), v128.load32_splat(k, 28)));
    e = add(e, t);
    a = add(t, add(s0(b), v128.bitselect(d, c, v128.xor(b, c))));
    k += 8 * 4;
  }
  grow(0, a, active);
  grow(16, b, active);
  grow(32, c, active);
  grow(48, d, active);
  grow(64, e, active);
  grow(80, f, active);
  grow(96, g, active);
  grow(112, h, active);
}

@inline
function grow(at: usize, word: v128, active: v128): void {
  const before = v128.load(state + at);
  v128.store(state + at, add(before, v128.and(word, active)));
}

function begin(): void {
  for (let i: usize = 0; i < 8; i++) v128.store(state + i * 16, v128.load32_splat(initial + i * 4));
}

/** Four vectors of four words, one vector a message, as four vectors of one word of each message. */
@inline
function transpose(a: v128, b: v128, c: v128, d: v128, target: usize): void {
  const ab = i8x16.shuffle(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const cd = i8x16.shuffle(c, d, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const AB = i8x16.shuffle(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  const CD = i8x16.shuffle(c, d, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  v128.store(target, i8x16.shuffle(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23), 0);
  v128.store(target, i8x16.shuffle(ab, cd, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31), 16);
  v128.store(target, i8x16.shuffle(AB, CD, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23), 32);
  v128.store(target, i8x16.shuffle(AB, CD, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31), 48);
}

@inline
function bigEndian(at: usize): v128 {
  const x = v128.load(at);
  return i8x16.shuffle(x, x, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

/** Leaf hashes of rows first .. end-1, as words of this machine. */
export function hashRows(first: i32, end: i32): void {
  const stage = load<u32>(table, At.stage) as usize;
  const stride = load<u32>(table, At.stride) as usize;
  const hashes = load<u32>(table, At.hashes) as usize;
  for (let row = first; row < end; row += 4) {
    const lanes = min(4, end - row);
    let most = 0;
    for (let lane = 0; lane < 4; lane++) {
      const count = lane < lanes ? stageRow(row + lane, stage + lane * stride) : 0;
      store<i32>(blocks + lane * 4, count);
      most = max(most, count);
    }
    begin();
    const counts = v128.load(blocks);
    for (let block = 0; block < most; block++) {
      const at = stage + block * 64;
      for (let part: usize = 0; part < 64; part += 16) {
        transpose(
          bigEndian(at + part),
          bigEndian(at + part + stride),
          bigEndian(at + part + stride * 2),
          bigEndian(at + part + stride * 3),
          schedule + part * 4,
        );
      }
      compress(i32x4.gt_s(counts, i32x4.splat(block)));
    }
    takeState(hashes + row * HASH, lanes);
  }
}

/** The states of the first `lanes` messages, one after the other. */
function takeState(target: usize, lanes: i32): void {
  for (let word: usize = 0; word < 8; word++) {
    for (let lane = 0; lane < lanes; lane++) {
      store<u32>(target + lane * HASH + word * 4, load<u32>(state + word * 16 + lane * 4));
    }
  }
}

/** The tree over the first `count` hashes: each level over the one before it, an odd last node going up as it is. */
export function reduce(count: i32): void {
  const hashes = load<u32>(table, At.hashes) as usize;
  for (let nodes = count; nodes > 1; nodes = (nodes + 1) >> 1) {
    const pairs = nodes >> 1;
    for (let pair = 0; pair < pairs; pair += 4) hashPairs(hashes + pair * 2 * HASH, hashes + pair * HASH, min(4, pairs - pair));
    if (nodes & 1) memory.copy(hashes + pairs * HASH, hashes + (nodes - 1) * HASH, HASH);
  }
}

/** 0x01, left, right of four pairs that follow each other: a byte before the words shifts all of them. */
function hashPairs(source: usize, target: usize, pairs: i32): void {
  const words = schedule + 16;
  for (let part: usize = 0; part < 64; part += 16) {
    transpose(
      v128.load(source + part),
      v128.load(source + part + 64),
      v128.load(source + part + 128),
      v128.load(source + part + 192),
      words + part * 4,
    );
  }
  const last = v128.load(words, 15 * 16);
  let before = i32x4.splat(1);
  for (let at = schedule; at < schedule + 16 * 16; at += 16) {
    const next = v128.load(at, 16);
    v128.store(at, v128.or(i32x4.shl(before, 24), i32x4.shr_u(next, 8)));
    before = next;
  }
  const all = i32x4.splat(-1);
  begin();
  compress(all);
  v128.store(schedule, v128.or(i32x4.shl(last, 24), i32x4.splat(0x00800000)));
  for (let at = schedule + 16; at < schedule + 15 * 16; at += 16) v128.store(at, i32x4.splat(0));
  v128.store(schedule, i32x4.splat(65 * 8), 15 * 16);
  compress(all);
  takeState(target, pairs);
}

/** A row's bytes at the stage, for whoever hashes them; how many. */
export function stage(row: i32): i32 {
  const at = load<u32>(table, At.stage) as usize;
  return (writeRow(row, at) - at) as i32;
}

/** A row as a whole message, padding and all; how many blocks it takes. */
function stageRow(row: i32, at: usize): i32 {
  const to = writeRow(row, at);
  const bytes = to - at;
  const count = ((bytes + 9 + 63) >> 6) as i32;
  store<u8>(to, 0x80);
  const lengthAt = at + count * 64 - 8;
  for (let zero = to + 1; zero < lengthAt; zero += 8) store<u64>(zero, 0);
  store<u64>(lengthAt, bswap<u64>((bytes as u64) << 3));
  return count;
}

/** Returns where it ends. */
function writeRow(row: i32, at: usize): usize {
  const prefixBytes = load<u32>(table, At.prefixBytes) as usize;
  copy(at, load<u32>(table, At.prefix), prefixBytes);
  const salt = (load<u32>(table, At.salts) as usize) + row * SALT;
  store<u64>(at + 1, load<u64>(salt));
  store<u64>(at + 9, load<u64>(salt, 8));
  let to = at + prefixBytes;
  store<u8>(to, load<u8>(load<u32>(table, At.ops) + row));
  to++;
  const pk = load<u32>(table, At.pk) as usize;
  if (pk === 0) {
    store<u32>(to, 0);
    to += 4;
  } else to = writeCell(pk, row, to);
  to = writeBound(load<u32>(table, At.from), load<u32>(table, At.fromNulls), row, to);
  to = writeBound(load<u32>(table, At.to), load<u32>(table, At.toNulls), row, to);
  to = writeCloses(row, to);
  const columns = load<u32>(table, At.columns) as usize;
  const end = columns + load<u32>(table, At.columnCount) * Column.bytes;
  for (let column = columns; column < end; column += Column.bytes) {
    const nulls = load<u32>(column, Column.nulls) as usize;
    if (nulls !== 0 && load<u8>(nulls + row) === 1) continue;
    const headBytes = load<u32>(column, Column.headBytes) as usize;
    copy(to, load<u32>(column, Column.head), headBytes);
    to = writeCell(column, row, to + headBytes);
  }
  return to;
}

function writeCell(column: usize, row: i32, to: usize): usize {
  const data = load<u32>(column, Column.data) as usize;
  switch (load<u32>(column, Column.form)) {
    case Form.text: {
      const offsets = (load<u32>(column, Column.offsets) as usize) + row * 4;
      const from = load<u32>(offsets);
      const bytes = load<u32>(offsets, 4) - from;
      store<u32>(to, bswap<u32>(bytes));
      copy(to + 4, data + from, bytes);
      return to + 4 + bytes;
    }
    case Form.integerOfI32:
      store<u64>(to, bswap<u64>(load<i32>(data + row * 4) as i64 as u64));
      return to + 8;
    case Form.integerOfF64:
      store<u64>(to, bswap<u64>((load<f64>(data + row * 8) as i64) as u64));
      return to + 8;
    case Form.numberOfF64:
      store<u64>(to, bswap<u64>(load<u64>(data + row * 8)));
      return to + 8;
    case Form.numberOfI32:
      store<u64>(to, bswap<u64>(reinterpret<u64>(load<i32>(data + row * 4) as f64)));
      return to + 8;
    case Form.wide:
      store<u64>(to, bswap<u64>(load<u64>(data + row * 8)));
      return to + 8;
    case Form.bool:
      store<u8>(to, load<u8>(data + row));
      return to + 1;
    default: {
      const dims = load<u32>(column, Column.dims);
      store<u32>(to, bswap<u32>(dims));
      const from = data + (row as usize) * dims * 4;
      for (let i: u32 = 0; i < dims; i++) store<u32>(to + 4 + i * 4, bswap<u32>(load<u32>(from + i * 4)));
      return to + 4 + dims * 4;
    }
  }
}

function writeBound(data: usize, nulls: usize, row: i32, to: usize): usize {
  if (data === 0 || (nulls !== 0 && load<u8>(nulls + row) === 1)) {
    store<u8>(to, 0);
    return to + 1;
  }
  store<u8>(to, 1);
  store<u64>(to + 1, bswap<u64>(load<u64>(data + row * 8)));
  return to + 9;
}

function writeCloses(row: i32, to: usize): usize {
  const offsets = load<u32>(table, At.closeOffsets) as usize;
  if (offsets === 0) {
    store<u32>(to, 0);
    return to + 4;
  }
  const from = load<u32>(offsets + row * 4);
  const end = load<u32>(offsets + row * 4, 4);
  store<u32>(to, bswap<u32>(end - from));
  to += 4;
  const closes = load<u32>(table, At.closes) as usize;
  for (let i = from; i < end; i++, to += 8) store<u64>(to, bswap<u64>((load<f64>(closes + i * 8) as i64) as u64));
  return to;
}

/** Eight bytes at a time, past the end of both. */
@inline
function copy(to: usize, from: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 8) store<u64>(to + i, load<u64>(from + i));
}
