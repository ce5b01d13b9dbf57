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
