/**
 * Loops over columns of vectors, in AssemblyScript: `npm run kernels` compiles them into
 * `src/planner/kernels/vector-kernels-code.ts`. Like `column-kernels.ts` the module has no memory of its own: every place is an
 * offset in the memory that it imports.
 */

/** Squared lengths between which 32-bit sums are as exact as the caller counts on. */
const leastSquare: f32 = 1e-20;
const mostSquare: f32 = 1e30;

@inline
function sumOf(lanes: v128): f32 {
  return (
    f32x4.extract_lane(lanes, 0) + f32x4.extract_lane(lanes, 1) + (f32x4.extract_lane(lanes, 2) + f32x4.extract_lane(lanes, 3))
  );
}

/**
 * Estimates of the cosine of the angle between `query`, whose length is 1, and each chosen row, in the order of rows: NaN where
 * 32 bits can't tell. `selection` holds row numbers; 0 means that the rows are `first`, `first + 1`, …
 */
export function cosines(
  values: usize,
  dims: i32,
  query: usize,
  selection: usize,
  first: i32,
  count: i32,
  into: usize,
): void {
  const bytes = <usize>dims << 2;
  const wide = bytes & ~63;
  for (let k = 0; k < count; k++) {
    const row = selection == 0 ? first + k : load<i32>(selection + (<usize>k << 2));
    let at = values + <usize>row * bytes;
    const end = at + bytes;
    const wideEnd = at + wide;
    let q = query;
    let dot0 = f32x4.splat(0);
    let dot1 = f32x4.splat(0);
    let dot2 = f32x4.splat(0);
    let dot3 = f32x4.splat(0);
    let square0 = f32x4.splat(0);
    let square1 = f32x4.splat(0);
    let square2 = f32x4.splat(0);
    let square3 = f32x4.splat(0);
    for (; at < wideEnd; at += 64, q += 64) {
      const a = v128.load(at);
      const b = v128.load(at, 16);
      const c = v128.load(at, 32);
      const d = v128.load(at, 48);
      dot0 = f32x4.add(dot0, f32x4.mul(a, v128.load(q)));
      dot1 = f32x4.add(dot1, f32x4.mul(b, v128.load(q, 16)));
      dot2 = f32x4.add(dot2, f32x4.mul(c, v128.load(q, 32)));
      dot3 = f32x4.add(dot3, f32x4.mul(d, v128.load(q, 48)));
      square0 = f32x4.add(square0, f32x4.mul(a, a));
      square1 = f32x4.add(square1, f32x4.mul(b, b));
      square2 = f32x4.add(square2, f32x4.mul(c, c));
      square3 = f32x4.add(square3, f32x4.mul(d, d));
    }
    let dot = sumOf(f32x4.add(f32x4.add(dot0, dot1), f32x4.add(dot2, dot3)));
    let square = sumOf(f32x4.add(f32x4.add(square0, square1), f32x4.add(square2, square3)));
    for (; at < end; at += 4, q += 4) {
      const x = load<f32>(at);
      dot += x * load<f32>(q);
      square += x * x;
    }
    const isExact = square >= leastSquare && square <= mostSquare;
    store<f32>(into + (<usize>k << 2), isExact ? dot / sqrt<f32>(square) : <f32>NaN);
  }
}

@inline
function rowOf(selection: usize, first: i32, k: i32): i32 {
  return selection == 0 ? first + k : load<i32>(selection + (<usize>k << 2));
}

/** Writes the place of a row that may reach the cut; what compares with nothing may. */
@inline
function keep(dot: v128, scale: f32, row: i32, scales: usize, bounds: usize, least: f32, into: usize, k: i32, kept: i32): i32 {
  const sum =
    i32x4.extract_lane(dot, 0) + i32x4.extract_lane(dot, 1) + (i32x4.extract_lane(dot, 2) + i32x4.extract_lane(dot, 3));
  const at = <usize>row << 2;
  const highest = <f32>sum * load<f32>(scales + at) * scale + load<f32>(bounds + at);
  store<i32>(into + (<usize>kept << 2), k);
  return kept + (highest < least ? 0 : 1);
}

/**
 * Writes the places, among the chosen rows, of those that may be at least as like the query as `least`; gives their number.
 * Rows are as `coarse-vectors.ts` has them, `width` bytes each; the query has as many whole numbers of 16 bits, of the scale
 * `scale`, that sum up with any row within 32 bits.
 */
export function candidates(
  components: usize,
  width: i32,
  scales: usize,
  bounds: usize,
  query: usize,
  scale: f32,
  least: f32,
  selection: usize,
  first: i32,
  count: i32,
  into: usize,
): i32 {
  let kept = 0;
  let k = 0;
  // Four rows at a time: the query is read once for all of them.
  for (; k + 4 <= count; k += 4) {
    const row0 = rowOf(selection, first, k);
    const row1 = rowOf(selection, first, k + 1);
    const row2 = rowOf(selection, first, k + 2);
    const row3 = rowOf(selection, first, k + 3);
    const at0 = components + <usize>row0 * <usize>width;
    const at1 = components + <usize>row1 * <usize>width;
    const at2 = components + <usize>row2 * <usize>width;
    const at3 = components + <usize>row3 * <usize>width;
    let dot0 = i32x4.splat(0);
    let dot1 = i32x4.splat(0);
    let dot2 = i32x4.splat(0);
    let dot3 = i32x4.splat(0);
    for (let i: usize = 0; i < <usize>width; i += 16) {
      const low = v128.load(query + (i << 1));
      const high = v128.load(query + (i << 1), 16);
      dot0 = i32x4.add(dot0, i32x4.dot_i16x8_s(low, v128.load_ext<i8>(at0 + i)));
      dot1 = i32x4.add(dot1, i32x4.dot_i16x8_s(low, v128.load_ext<i8>(at1 + i)));
      dot2 = i32x4.add(dot2, i32x4.dot_i16x8_s(low, v128.load_ext<i8>(at2 + i)));
      dot3 = i32x4.add(dot3, i32x4.dot_i16x8_s(low, v128.load_ext<i8>(at3 + i)));
      dot0 = i32x4.add(dot0, i32x4.dot_i16x8_s(high, v128.load_ext<i8>(at0 + i, 8)));
      dot1 = i32x4.add(dot1, i32x4.dot_i16x8_s(high, v128.load_ext<i8>(at1 + i, 8)));
      dot2 = i32x4.add(dot2, i32x4.dot_i16x8_s(high, v128.load_ext<i8>(at2 + i, 8)));
      dot3 = i32x4.add(dot3, i32x4.dot_i16x8_s(high, v128.load_ext<i8>(at3 + i, 8)));
    }
    kept = keep(dot0, scale, row0, scales, bounds, least, into, k, kept);
    kept = keep(dot1, scale, row1, scales, bounds, least, into, k + 1, kept);
    kept = keep(dot2, scale, row2, scales, bounds, least, into, k + 2, kept);
    kept = keep(dot3, scale, row3, scales, bounds, least, into, k + 3, kept);
  }
  for (; k < count; k++) {
    const row = rowOf(selection, first, k);
    const at = components + <usize>row * <usize>width;
    let dot = i32x4.splat(0);
    for (let i: usize = 0; i < <usize>width; i += 8) {
      dot = i32x4.add(dot, i32x4.dot_i16x8_s(v128.load(query + (i << 1)), v128.load_ext<i8>(at + i)));
    }
    kept = keep(dot, scale, row, scales, bounds, least, into, k, kept);
  }
  return kept;
}
