/** Numbers on their way into a segment: how wide they rest, and the copy that changes their width. */
import type { Vector } from '../../../log/values/columns.ts';

const SAFE = 9_007_199_254_740_991n;
const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;

/** The narrowest layout that holds every integer of a range. */
export function integerLayout(
  source: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  from: number,
  to: number,
): 'i32' | 'f64' | 'i64' {
  if (source.kind === 'i32') return 'i32';
  if (source.kind === 'f64') {
    for (let i = from; i < to; i++) if (source.values[i]! > I32_MAX || source.values[i]! < I32_MIN) return 'f64';
    return 'i32';
  }
  for (let i = from; i < to; i++) if (source.values[i]! > SAFE || source.values[i]! < -SAFE) return 'i64';
  return 'f64';
}

export function copyNumbers(
  source: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
  from: number,
  to: number,
  target: Int32Array | Float64Array,
  at: number,
): void {
  if (source.kind === 'i64') for (let i = from; i < to; i++) target[at + i - from] = Number(source.values[i]!);
  else target.set(source.values.subarray(from, to), at);
}
