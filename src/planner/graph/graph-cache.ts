/**
 * Graphs that were read not long ago, each under the grant, branch and types that it was read for. What must hold:
 *
 * - one is used again only where the rows that it was read from say the same at the instant that is asked about: nothing of its
 *   types was written, ended, removed or erased in between, and nothing began or ended to be true;
 * - where the edges and nodes of two of them are the same, be it of two grants or of two instants, they are one in memory;
 * - all of them together take no more than the budget: what was not asked about for longest goes first.
 */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { ScanRequest, TimeBounds, ZonePredicate } from '../../projections/access-paths.ts';
import type { Graph } from './graph.ts';
import { isClosed } from './graph-types.ts';
import type { Steps } from './steps.ts';

/** What a graph is of, but for the instant. */
export interface GraphOf {
  readonly snapshot: GovernedSnapshot;
  readonly types: readonly string[];
  /** All else that it depends on. */
  readonly about: string;
  readonly time: TimeBounds;
}

interface Kept {
  readonly graph: Graph;
  readonly time: TimeBounds;
  /** The instant of the snapshot that it was read through. */
  readonly instant: bigint;
  readonly isErased: () => boolean;
}

/** Instants for which one sort of graph is kept under one grant. */
const instantsMax = 4;

export class GraphCache {
  readonly #bytesMax: number;
  /** By key, the one asked about last at the end. */
  readonly #kept = new Map<string, readonly Kept[]>();
  #generation = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  clear(): void {
    this.#generation++;
    this.#kept.clear();
  }

  get bytes(): number {
    let bytes = 0;
    for (const graph of this.#graphs()) bytes += graph.bytes;
    return bytes;
  }

  get edgeBytes(): number {
    let bytes = 0;
    for (const graph of this.#graphs()) bytes += graph.bytes - graph.texts.bytes;
    return bytes;
  }

  *find(of: GraphOf, read: () => Steps<Graph>): Steps<Graph> {
    const { snapshot, time } = of;
    const key = keyOf(of);
    const generation = this.#generation;
    const { instant } = snapshot;
    const isErased = snapshot.erasing(of.types);
    const all = this.#kept.get(key) ?? [];
    for (const kept of all) {
      if (kept.isErased() || !(yield* isSame(kept, of))) continue;
      if (generation === this.#generation) this.#keep(key, { ...kept, time, instant, isErased }, kept);
      return kept.graph;
    }
    const graph = yield* read();
    const known = yield* this.#same(graph);
    if (generation === this.#generation && !isErased()) this.#keep(key, { graph: known, time, instant, isErased }, null);
    return known;
  }

  #keep(key: string, kept: Kept, instead: Kept | null): void {
    const others = (this.#kept.get(key) ?? []).filter((each) => each !== instead);
    this.#kept.delete(key);
    this.#kept.set(key, [kept, ...others].slice(0, instantsMax));
    for (const oldest of this.#kept.keys()) {
      if (this.bytes <= this.#bytesMax) return;
      this.#kept.delete(oldest);
    }
  }

  #graphs(): Set<Graph> {
    return new Set([...this.#kept.values()].flatMap((all) => all.map(({ graph }) => graph)));
  }

  *#same(graph: Graph): Steps<Graph> {
    for (const other of this.#graphs()) if (yield* graph.equals(other)) return other;
    return graph;
  }
}

function keyOf({ snapshot, types, about }: GraphOf): string {
  const { grantKey, branchId, catalog } = snapshot;
  return JSON.stringify([grantKey, branchId, catalog.ontologyVersion, types, about]);
}

/** Whether the rows of its types say the same at another instant, and are still there. */
function* isSame({ time, instant }: Kept, { snapshot, types, time: asked }: GraphOf): Steps<boolean> {
  if (time.system === 'all' || time.valid === 'all' || asked.system === 'all' || asked.valid === 'all') return false;
  const [before, after] = ascending(time.system, asked.system);
  const [since, until] = ascending(time.valid, asked.valid);
  for (const type of types) {
    try {
      if (yield* hasChanged(snapshot, type, { instant, before, after, since, until })) return false;
    } catch (error) {
      // It has no part in the graph, and had none under this grant.
      if (!isClosed(error)) throw error;
    }
  }
  return true;
}

interface Span {
  /** The instant of the snapshot before. */
  readonly instant: bigint;
  readonly before: bigint;
  readonly after: bigint;
  readonly since: bigint;
  readonly until: bigint;
}

function* hasChanged(snapshot: GovernedSnapshot, type: string, { instant, before, after, since, until }: Span): Steps<boolean> {
  if (snapshot.removals.removedAfter(type, instant).length > 0) return true;
  const all: TimeBounds = { system: 'all', valid: 'all' };
  const then: TimeBounds = { system: before, valid: 'all' };
  if (before < after) {
    const came = { type, columns: ['system_from'], time: all, after: before, zones: between('system_from', before, after) };
    if (yield* has(snapshot, came, before, after)) return true;
    const ended = { type, columns: ['system_to'], time: then, zones: between('system_to', before, after) };
    if (yield* has(snapshot, ended, before, after)) return true;
  }
  if (since === until) return false;
  for (const column of ['valid_from', 'valid_to']) {
    const turned = { type, columns: [column], time: then, zones: between(column, since, until) };
    if (yield* has(snapshot, turned, since, until)) return true;
  }
  return false;
}

function ascending(a: bigint, b: bigint): readonly [bigint, bigint] {
  return a < b ? [a, b] : [b, a];
}

/** Above `after`, up to and with `until`. */
function between(column: string, after: bigint, until: bigint): readonly ZonePredicate[] {
  return [
    { column, op: '>', value: after },
    { column, op: '<=', value: until },
  ];
}

/** Whether an instant of the first column lies in between, or may: one that is hidden. Yields after each block. */
function* has({ rows }: GovernedSnapshot, request: ScanRequest, after: bigint, until: bigint): Steps<boolean> {
  const blocks = rows.scan(request);
  try {
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      const { columns, selection, first, count } = step.value;
      if (count === 0) continue;
      const vector = columns[0]!;
      if (vector.kind !== 'i64' || vector.nulls !== null) return true;
      for (let place = 0; place < count; place++) {
        const instant = vector.values[selection === null ? first + place : selection[place]!]!;
        if (after < instant && instant <= until) return true;
      }
      yield;
    }
    return false;
  } finally {
    blocks.return?.();
  }
}
