/**
 * Loops over the columns of a segment, in AssemblyScript: `npm run kernels` compiles them into
 * `src/planner/kernels/compiled-kernels.ts`. The module has no memory of its own and no static data: it imports the memory
 * that the columns rest in, and every argument that is a place is an offset there.
 *
 * - A mask has one bit a row of the segment, in words of 32 rows. Kernels over masks work on whole words: the caller has
 *   cleared the bits of rows that are not asked for, and up to 31 rows behind a column's end may be read, never written.
 * - `selection` holds row numbers; 0 means that the rows are `first`, `first + 1`, …
 * - What a loop is told apart by (a selection or none, groups or none, NULLs or none) is a constant of an inlined function:
 *   each is a loop of its own without a branch on it.
 * - Groups are numbers above 0 by place, their accumulators lie by number. Doubles are added in the order of rows, one by
 *   one, so that a sum has the same bits as one that was made elsewhere.
 */

/** Truth of 16 rows of 32 bits each, as 16 bits. */
@inline
function bits16(a: v128, b: v128, c: v128, d: v128): i32 {
  return i8x16.bitmask(i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d)));
}

/** Truth of four rows of 64 bits each, as lanes of 32. */
@inline
function halves(a: v128, b: v128): v128 {
  return v128.shuffle<i32>(a, b, 0, 2, 4, 6);
}

@inline
function within32(values: usize, least: v128, span: v128): v128 {
  return i32x4.le_u(i32x4.sub(v128.load(values), least), span);
}

/** Keeps the rows with `least <= value <= most`, or with `flip` -1 all others. */
export function keepRangeI32(values: usize, least: i32, most: i32, flip: i32, mask: usize, words: i32): void {
  const low = i32x4.splat(least);
  const span = i32x4.splat(most - least);
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, values += 128) {
    const before = load<i32>(mask);
    if (before == 0) continue;
    const a = bits16(
      within32(values, low, span),
      within32(values + 16, low, span),
      within32(values + 32, low, span),
      within32(values + 48, low, span),
    );
    const b = bits16(
      within32(values + 64, low, span),
      within32(values + 80, low, span),
      within32(values + 96, low, span),
      within32(values + 112, low, span),
    );
    store<i32>(mask, before & ((a | (b << 16)) ^ flip));
  }
}

@inline
function withinF64(values: usize, low: v128, high: v128): v128 {
  const a = v128.load(values);
  const b = v128.load(values, 16);
  return halves(v128.and(f64x2.ge(a, low), f64x2.le(a, high)), v128.and(f64x2.ge(b, low), f64x2.le(b, high)));
}

/** NaN is within no range. */
export function keepRangeF64(values: usize, least: f64, most: f64, flip: i32, mask: usize, words: i32): void {
  const low = f64x2.splat(least);
  const high = f64x2.splat(most);
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, values += 256) {
    const before = load<i32>(mask);
    if (before == 0) continue;
    const a = bits16(
      withinF64(values, low, high),
      withinF64(values + 32, low, high),
      withinF64(values + 64, low, high),
      withinF64(values + 96, low, high),
    );
    const b = bits16(
      withinF64(values + 128, low, high),
      withinF64(values + 160, low, high),
      withinF64(values + 192, low, high),
      withinF64(values + 224, low, high),
    );
    store<i32>(mask, before & ((a | (b << 16)) ^ flip));
  }
}

@inline
function outside64(values: usize, low: v128, high: v128): v128 {
  const a = v128.load(values);
  const b = v128.load(values, 16);
  return halves(v128.or(i64x2.lt_s(a, low), i64x2.gt_s(a, high)), v128.or(i64x2.lt_s(b, low), i64x2.gt_s(b, high)));
}

export function keepRangeI64(values: usize, least: i64, most: i64, flip: i32, mask: usize, words: i32): void {
  const low = i64x2.splat(least);
  const high = i64x2.splat(most);
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, values += 256) {
    const before = load<i32>(mask);
    if (before == 0) continue;
    const a = bits16(
      outside64(values, low, high),
      outside64(values + 32, low, high),
      outside64(values + 64, low, high),
      outside64(values + 96, low, high),
    );
    const b = bits16(
      outside64(values + 128, low, high),
      outside64(values + 160, low, high),
      outside64(values + 192, low, high),
      outside64(values + 224, low, high),
    );
    store<i32>(mask, before & ~((a | (b << 16)) ^ flip));
  }
}

@inline
function equalOf(values: usize, items: usize, end: usize): v128 {
  const value = v128.load(values);
  let equal = i32x4.splat(0);
  for (let item = items; item < end; item += 16) equal = v128.or(equal, i32x4.eq(value, v128.load(item)));
  return equal;
}

/** Keeps the rows whose value is one of `count` items; each item stands in all four lanes of 16 bytes. */
export function keepSetI32(values: usize, items: usize, count: i32, flip: i32, mask: usize, words: i32): void {
  const last = items + ((<usize>count) << 4);
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, values += 128) {
    const before = load<i32>(mask);
    if (before == 0) continue;
    const a = bits16(
      equalOf(values, items, last),
      equalOf(values + 16, items, last),
      equalOf(values + 32, items, last),
      equalOf(values + 48, items, last),
    );
    const b = bits16(
      equalOf(values + 64, items, last),
      equalOf(values + 80, items, last),
      equalOf(values + 96, items, last),
      equalOf(values + 112, items, last),
    );
    store<i32>(mask, before & ((a | (b << 16)) ^ flip));
  }
}

/** Keeps the rows whose code has the lowest bit of its byte in `table`. Only rows that are still in are looked up. */
export function keepCodes(codes: usize, table: usize, mask: usize, words: i32): void {
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, codes += 128) {
    let left = load<i32>(mask);
    let kept = 0;
    while (left != 0) {
      const row = ctz(left);
      left &= left - 1;
      kept |= ((<i32>load<u8>(table + load<u32>(codes + ((<usize>row) << 2)))) & 1) << row;
    }
    store<i32>(mask, kept);
  }
}

/** Keeps the rows whose byte is 0, or with `flip` -1 those where it is not. */
export function keepUnmarked(bytes: usize, flip: i32, mask: usize, words: i32): void {
  const zero = i8x16.splat(0);
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, bytes += 32) {
    const a = i8x16.bitmask(i8x16.eq(v128.load(bytes), zero));
    const b = i8x16.bitmask(i8x16.eq(v128.load(bytes, 16), zero));
    store<i32>(mask, load<i32>(mask) & ((a | (b << 16)) ^ flip));
  }
}

/** For each byte the places of its bits, in eight bytes. */
export function prepareSelection(table: usize): void {
  for (let byte = 0; byte < 256; byte++) {
    const entry = table + ((<usize>byte) << 3);
    store<u64>(entry, 0);
    let left = byte;
    for (let at: usize = 0; left != 0; at++) {
      store<u8>(entry + at, ctz(left));
      left &= left - 1;
    }
  }
}

/** Writes the numbers of the rows in a mask, the first being `row`, and returns how many. Up to 7 places behind them are used. */
export function selectRows(mask: usize, words: i32, row: i32, table: usize, selection: usize): i32 {
  const begin = selection;
  const end = mask + ((<usize>words) << 2);
  for (; mask < end; mask += 4, row += 32) {
    let left = load<u32>(mask);
    if (left == 0) continue;
    for (let base = row; left != 0; base += 8) {
      const byte = left & 255;
      left >>= 8;
      const places = i16x8.extend_low_i8x16_u(v128.load64_zero(table + ((<usize>byte) << 3)));
      const from = i32x4.splat(base);
      v128.store(selection, i32x4.add(i32x4.extend_low_i16x8_u(places), from));
      v128.store(selection, i32x4.add(i32x4.extend_high_i16x8_u(places), from), 16);
      selection += (<usize>popcnt(byte)) << 2;
    }
  }
  return <i32>((selection - begin) >> 2);
}

@inline
function rowOf(selection: usize, first: i32, place: i32, chosen: boolean): usize {
  return chosen ? <usize>load<u32>(selection + ((<usize>place) << 2)) : <usize>(first + place);
}

// A value has no group where the table ends before it or holds 0.
@inline
function numberOf(values: usize, table: usize, size: u32, row: usize): u32 {
  const value = load<u32>(values + (row << 2));
  return value < size ? load<u32>(table + ((<usize>value) << 2)) : 0;
}

@inline
function countRow(rows: usize, group: u32): void {
  const counter = rows + ((<usize>group) << 2);
  store<u32>(counter, load<u32>(counter) + 1);
}

@inline
function eachValue(
  values: usize,
  table: usize,
  size: u32,
  selection: usize,
  first: i32,
  from: i32,
  count: i32,
  groups: usize,
  rows: usize,
  addends: usize,
  sums: usize,
  chosen: boolean,
  noted: boolean,
  adding: boolean,
): i32 {
  for (let place = from; place < count; place++) {
    const row = rowOf(selection, first, place, chosen);
    const group = numberOf(values, table, size, row);
    if (group == 0) return place;
    if (noted) store<u32>(groups + ((<usize>place) << 2), group);
    countRow(rows, group);
    if (adding) {
      const sum = sums + ((<usize>group) << 3);
      store<f64>(sum, load<f64>(sum) + load<f64>(addends + (row << 3)));
    }
  }
  return count;
}

/**
 * Groups by a key of small numbers, from place `from` on: `table` holds the group of each value below `size`. Counts the rows
 * of each group and, unless `addends` is 0, adds doubles on the way; with `groups` 0 nobody needs to know them again. Returns
 * the first place whose value has no group yet, or `count`.
 */
export function groupValues(
  values: usize,
  table: usize,
  size: u32,
  selection: usize,
  first: i32,
  from: i32,
  count: i32,
  groups: usize,
  rows: usize,
  addends: usize,
  sums: usize,
): i32 {
  const v = values;
  if (addends == 0) {
    if (selection == 0) return eachValue(v, table, size, 0, first, from, count, groups, rows, 0, 0, false, true, false);
    return eachValue(v, table, size, selection, first, from, count, groups, rows, 0, 0, true, true, false);
  }
  if (groups == 0) {
    if (selection == 0) return eachValue(v, table, size, 0, first, from, count, 0, rows, addends, sums, false, false, true);
    return eachValue(v, table, size, selection, first, from, count, 0, rows, addends, sums, true, false, true);
  }
  if (selection == 0) return eachValue(v, table, size, 0, first, from, count, groups, rows, addends, sums, false, true, true);
  return eachValue(v, table, size, selection, first, from, count, groups, rows, addends, sums, true, true, true);
}

/** The same by two keys: their numbers side by side are a place in `places`, where the group stands. */
export function groupPairs(
  left: usize,
  leftTable: usize,
  leftSize: u32,
  right: usize,
  rightTable: usize,
  rightSize: u32,
  places: usize,
  bits: i32,
  selection: usize,
  first: i32,
  from: i32,
  count: i32,
  groups: usize,
  rows: usize,
): i32 {
  for (let place = from; place < count; place++) {
    const row = rowOf(selection, first, place, selection != 0);
    const a = numberOf(left, leftTable, leftSize, row);
    const b = numberOf(right, rightTable, rightSize, row);
    if (a == 0 || b == 0) return place;
    const group = load<u32>(places + ((<usize>((a << bits) | b)) << 2));
    if (group == 0) return place;
    store<u32>(groups + ((<usize>place) << 2), group);
    countRow(rows, group);
  }
  return count;
}

@inline
function groupOf(groups: usize, place: i32): usize {
  return groups == 0 ? 0 : <usize>load<u32>(groups + ((<usize>place) << 2));
}

/** True where the row's value is NULL, which is counted. */
@inline
function isAbsent(nulls: usize, row: usize, absent: usize, group: usize): boolean {
  if (load<u8>(nulls + row) == 0) return false;
  countRow(absent, <u32>group);
  return true;
}

/** How many NULLs each group has. */
export function countAbsent(selection: usize, first: i32, count: i32, groups: usize, nulls: usize, absent: usize): void {
  for (let place = 0; place < count; place++) {
    isAbsent(nulls, rowOf(selection, first, place, selection != 0), absent, groupOf(groups, place));
  }
}

/** One loop of an accumulator that has a loop for each way in which rows, groups and NULLs come. */
@inline
function eachRow<T>(
  step: i32,
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  into: usize,
  chosen: boolean,
  grouped: boolean,
  nullable: boolean,
): void {
  let one = grouped ? <T>0 : load<T>(into);
  for (let place = 0; place < count; place++) {
    const row = rowOf(selection, first, place, chosen);
    const group: usize = grouped ? <usize>load<u32>(groups + ((<usize>place) << 2)) : 0;
    if (nullable) {
      if (isAbsent(nulls, row, absent, group)) continue;
    }
    const known = grouped ? load<T>(into + (group << 3)) : one;
    const next = stepped<T>(step, values, row, known);
    if (grouped) store<T>(into + (group << 3), next);
    else one = next;
  }
  if (!grouped) store<T>(into, one);
}

/** Numbers of what is done with a value. */
const ADD_F64 = 0;
const ADD_F64_OF_I32 = 1;
const ADD_I32 = 2;
const LEAST_F64 = 3;
const MOST_F64 = 4;
const LEAST_I32 = 5;
const MOST_I32 = 6;
const LEAST_I64 = 7;
const MOST_I64 = 8;

@inline
function stepped<T>(step: i32, values: usize, row: usize, known: T): T {
  if (step == ADD_F64) return <T>(<f64>known + load<f64>(values + (row << 3)));
  if (step == ADD_F64_OF_I32) return <T>(<f64>known + <f64>load<i32>(values + (row << 2)));
  if (step == ADD_I32) return <T>(<i64>known + <i64>load<i32>(values + (row << 2)));
  if (step == LEAST_F64 || step == MOST_F64) {
    const value = load<f64>(values + (row << 3));
    return <T>((step == LEAST_F64 ? value < <f64>known : value > <f64>known) ? value : <f64>known);
  }
  const wide = step == LEAST_I64 || step == MOST_I64;
  const value = wide ? load<i64>(values + (row << 3)) : <i64>load<i32>(values + (row << 2));
  return <T>((step == LEAST_I32 || step == LEAST_I64 ? value < <i64>known : value > <i64>known) ? value : <i64>known);
}

@inline
function accumulate<T>(
  step: i32,
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  into: usize,
): void {
  if (nulls != 0) {
    if (groups == 0) eachRow<T>(step, values, selection, first, count, groups, nulls, absent, into, selection != 0, false, true);
    else eachRow<T>(step, values, selection, first, count, groups, nulls, absent, into, selection != 0, true, true);
  } else if (groups == 0) {
    if (selection == 0) eachRow<T>(step, values, selection, first, count, groups, nulls, absent, into, false, false, false);
    else eachRow<T>(step, values, selection, first, count, groups, nulls, absent, into, true, false, false);
  } else if (selection == 0) eachRow<T>(step, values, selection, first, count, groups, nulls, absent, into, false, true, false);
  else eachRow<T>(step, values, selection, first, count, groups, nulls, absent, into, true, true, false);
}

export function addF64(
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  sums: usize,
): void {
  accumulate<f64>(ADD_F64, values, selection, first, count, groups, nulls, absent, sums);
}

/** A column of doubles that holds small integers in 32 bits is added like any other. */
export function addF64OfI32(
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  sums: usize,
): void {
  accumulate<f64>(ADD_F64_OF_I32, values, selection, first, count, groups, nulls, absent, sums);
}

/** Exact sums in 64 bits: those of 65,536 rows always fit. */
export function addI32(
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  sums: usize,
): void {
  if (groups != 0 || selection != 0 || nulls != 0) {
    return accumulate<i64>(ADD_I32, values, selection, first, count, groups, nulls, absent, sums);
  }
  let sum = i64x2.splat(0);
  let place = 0;
  let at = values + ((<usize>first) << 2);
  for (; place + 4 <= count; place += 4, at += 16) {
    const four = v128.load(at);
    sum = i64x2.add(sum, i64x2.add(i64x2.extend_low_i32x4_s(four), i64x2.extend_high_i32x4_s(four)));
  }
  let total = i64x2.extract_lane(sum, 0) + i64x2.extract_lane(sum, 1);
  for (; place < count; place++, at += 4) total += <i64>load<i32>(at);
  store<i64>(sums, load<i64>(sums) + total);
}

/** Least values with `sign` 1, greatest with -1: of two that are equal, the first one. NaN is none. */
export function extremeF64(
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  extremes: usize,
  sign: i32,
): void {
  if (groups == 0 && selection == 0 && nulls == 0) {
    return store<f64>(extremes, extremeOfAll(values + ((<usize>first) << 3), count, load<f64>(extremes), sign));
  }
  if (sign > 0) accumulate<f64>(LEAST_F64, values, selection, first, count, groups, nulls, absent, extremes);
  else accumulate<f64>(MOST_F64, values, selection, first, count, groups, nulls, absent, extremes);
}

/** Lanes meet their rows out of order, which shows in the sign of zero alone: then the first zero is looked for. */
function extremeOfAll(values: usize, count: i32, known: f64, sign: i32): f64 {
  const start = values;
  let best = f64x2.splat(known);
  let other = best;
  let place = 0;
  if (sign > 0) {
    for (; place + 4 <= count; place += 4, values += 32) {
      best = f64x2.pmin(best, v128.load(values));
      other = f64x2.pmin(other, v128.load(values, 16));
    }
    best = f64x2.pmin(best, other);
  } else {
    for (; place + 4 <= count; place += 4, values += 32) {
      best = f64x2.pmax(best, v128.load(values));
      other = f64x2.pmax(other, v128.load(values, 16));
    }
    best = f64x2.pmax(best, other);
  }
  let extreme = f64x2.extract_lane(best, 0);
  const second = f64x2.extract_lane(best, 1);
  if (sign > 0 ? second < extreme : second > extreme) extreme = second;
  for (; place < count; place++, values += 8) {
    const value = load<f64>(values);
    if (sign > 0 ? value < extreme : value > extreme) extreme = value;
  }
  if (extreme != 0 || known == 0) return extreme == known ? known : extreme;
  let at = start;
  while (load<f64>(at) != 0) at += 8;
  return load<f64>(at);
}

/** The extremes are 64 bits wide, the values 32. */
export function extremeI32(
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  extremes: usize,
  sign: i32,
): void {
  if (groups != 0 || selection != 0 || nulls != 0 || count < 4) {
    if (sign > 0) accumulate<i64>(LEAST_I32, values, selection, first, count, groups, nulls, absent, extremes);
    else accumulate<i64>(MOST_I32, values, selection, first, count, groups, nulls, absent, extremes);
    return;
  }
  let best = v128.load(values + ((<usize>first) << 2));
  let place = 4;
  let at = values + ((<usize>(first + 4)) << 2);
  if (sign > 0) for (; place + 4 <= count; place += 4, at += 16) best = i32x4.min_s(best, v128.load(at));
  else for (; place + 4 <= count; place += 4, at += 16) best = i32x4.max_s(best, v128.load(at));
  takeI64(extremes, <i64>i32x4.extract_lane(best, 0), sign);
  takeI64(extremes, <i64>i32x4.extract_lane(best, 1), sign);
  takeI64(extremes, <i64>i32x4.extract_lane(best, 2), sign);
  takeI64(extremes, <i64>i32x4.extract_lane(best, 3), sign);
  for (; place < count; place++, at += 4) takeI64(extremes, <i64>load<i32>(at), sign);
}

export function extremeI64(
  values: usize,
  selection: usize,
  first: i32,
  count: i32,
  groups: usize,
  nulls: usize,
  absent: usize,
  extremes: usize,
  sign: i32,
): void {
  if (sign > 0) accumulate<i64>(LEAST_I64, values, selection, first, count, groups, nulls, absent, extremes);
  else accumulate<i64>(MOST_I64, values, selection, first, count, groups, nulls, absent, extremes);
}

@inline
function takeI64(extreme: usize, value: i64, sign: i32): void {
  const known = load<i64>(extreme);
  if (sign > 0 ? value < known : value > known) store<i64>(extreme, value);
}
