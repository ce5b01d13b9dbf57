/**
 * Edges in the order of their ends. Digit by digit of the numbers, the lowest first: whatever is moved goes to few places at once, so it
 * stays in the cache, where places by node would miss it for each edge.
 */
import type { Adjacency } from './graph.ts';
import { shared } from './shared.ts';
import type { Steps } from './steps.ts';

/** By edge: its ends, and what it is called. */
export interface Ends {
  readonly sources: Int32Array;
  readonly targets: Int32Array;
  readonly names: Int32Array;
  /** What goes along with them, so that it need not be looked up edge by edge; null: nothing. */
  readonly times: Float64Array | null;
}

/** Edges that are looked at between two looks at the clock. */
export const edgesAtOnce = 1 << 15;

const digitBits = 10;

export function roomFor(length: number, timed: boolean): Ends {
  const [sources, targets, names] = [new Int32Array(length), new Int32Array(length), new Int32Array(length)];
  return { sources, targets, names, times: timed ? new Float64Array(length) : null };
}

/** By source, then by target; those alike in the order in which they stand. Uses up what it is given. */
export function* inOrder(ends: Ends, nodes: number): Steps<Ends> {
  const first: Passing = { ends, spare: roomFor(ends.names.length, ends.times !== null) };
  return (yield* byDigits(yield* byDigits(first, 'targets', nodes), 'sources', nodes)).ends;
}

/** Edges by target: within one by source, then by edge, as they lie. */
export function* turned(outOffsets: Uint32Array, targets: Int32Array, nodes: number): Steps<Adjacency> {
  const { length } = targets;
  const passes = passesOf(nodes);
  // The third pass writes where the first one reads.
  const ends: Ends = {
    sources: new Int32Array(length),
    targets: passes > 2 ? targets.slice() : targets,
    names: new Int32Array(length),
    times: null,
  };
  for (let first = 0; first < nodes; ) {
    let end = first + 1;
    while (end < nodes && outOffsets[end]! - outOffsets[first]! < edgesAtOnce) end++;
    spell(outOffsets, ends, first, end);
    first = end;
    yield;
  }
  const last: Ends = {
    sources: shared(Int32Array, length),
    targets: new Int32Array(length),
    names: shared(Int32Array, length),
    times: null,
  };
  const made = yield* byDigits({ ends, spare: passes > 1 ? roomFor(length, false) : last, last }, 'targets', nodes);
  const offsets = yield* offsetsOf(made.ends.targets, nodes);
  return { offsets, neighbours: last.sources, edges: last.names };
}

/** Where each key begins; one more than there are. */
export function* offsetsOf(keys: Int32Array, keysMax: number): Steps<Uint32Array> {
  const offsets = shared(Uint32Array, keysMax + 1);
  for (let first = 0; first < keys.length; first += edgesAtOnce) {
    countKeys(keys, offsets, first, Math.min(keys.length, first + edgesAtOnce));
    yield;
  }
  for (let key = 0; key < keysMax; key++) offsets[key + 1]! += offsets[key]!;
  yield;
  return offsets;
}

interface Passing {
  readonly ends: Ends;
  readonly spare: Ends;
  /** Where the last pass writes; into what is spare, where this is absent. */
  readonly last?: Ends;
}

function passesOf(keysMax: number): number {
  return Math.max(1, Math.ceil(Math.ceil(Math.log2(Math.max(2, keysMax))) / digitBits));
}

function* byDigits({ ends, spare, last }: Passing, by: 'sources' | 'targets', keysMax: number): Steps<Passing> {
  const passes = passesOf(keysMax);
  let [from, to] = [ends, spare];
  for (let pass = 0; pass < passes; pass++) {
    if (pass === passes - 1 && last !== undefined) to = last;
    const shift = pass * digitBits;
    const keys = from[by];
    const places = new Uint32Array((1 << digitBits) + 1);
    for (let first = 0; first < keys.length; first += edgesAtOnce) {
      countDigits(keys, places, shift, first, Math.min(keys.length, first + edgesAtOnce));
      yield;
    }
    for (let digit = 0; digit < 1 << digitBits; digit++) places[digit + 1]! += places[digit]!;
    for (let first = 0; first < keys.length; first += edgesAtOnce) {
      move(from, to, keys, places, shift, first, Math.min(keys.length, first + edgesAtOnce));
      yield;
    }
    [from, to] = [to, from];
  }
  return { ends: from, spare: to };
}

// The loops below are functions of their own: in one that can be left in the middle they would be compiled worse.

function countDigits(keys: Int32Array, places: Uint32Array, shift: number, first: number, end: number): void {
  const mask = (1 << digitBits) - 1;
  for (let i = first; i < end; i++) places[((keys[i]! >>> shift) & mask) + 1]!++;
}

function move(from: Ends, to: Ends, keys: Int32Array, places: Uint32Array, shift: number, first: number, end: number): void {
  const mask = (1 << digitBits) - 1;
  const { sources, targets, names, times } = from;
  const { sources: toSources, targets: toTargets, names: toNames, times: toTimes } = to;
  for (let i = first; i < end; i++) {
    const place = places[(keys[i]! >>> shift) & mask]!++;
    toSources[place] = sources[i]!;
    toTargets[place] = targets[i]!;
    toNames[place] = names[i]!;
    if (times !== null) toTimes![place] = times[i]!;
  }
}

function countKeys(keys: Int32Array, offsets: Uint32Array, first: number, end: number): void {
  for (let i = first; i < end; i++) offsets[keys[i]! + 1]!++;
}

/** The sources of edges that lie by source, each under the number of its place. */
function spell(offsets: Uint32Array, { sources, names }: Ends, first: number, last: number): void {
  for (let source = first; source < last; source++) {
    const end = offsets[source + 1]!;
    for (let edge = offsets[source]!; edge < end; edge++) {
      sources[edge] = source;
      names[edge] = edge;
    }
  }
}
