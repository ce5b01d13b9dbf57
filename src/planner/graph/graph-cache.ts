/**
 * Caches recently read graphs, each under the grant, branch and types that it was read for. Invariants:
 *
 * - one is used again only where the rows that it was read from say the same at the instant that is asked about: nothing of its
 *   types was written, ended, removed or erased in between, and nothing began or ended to be true; or where all that happened is that
 *   a few edges were written or ended, which then come and go in a copy of it;
 * - where the edges and nodes of two of them are the same, be it of two grants or of two instants, they are one in memory;
 * - all of them together take no more than the budget: what was not asked about for longest goes first.
 */
import type { TimeBounds } from '../../projections/access-paths.ts';
import type { Graph } from './graph.ts';
import type { State } from './graph-algorithm.ts';
import { followChanges, type GraphSource, readAgain, readAt, type ReadGraph } from './edge-changes.ts';
import type { Steps } from './stepped-sort.ts';
import type { Warm } from './warm-start.ts';

interface CachedGraph extends ReadGraph {
  readonly isErased: () => boolean;
}

/** Instants for which one sort of graph is kept under one grant. */
const instantsMax = 4;

export class GraphCache {
  readonly #bytesMax: number;
  /** Cached graphs by key, the one used last at the end. */
  readonly #graphsByKey = new Map<string, readonly CachedGraph[]>();
  /** States of earlier answers, the one used last at the end. */
  readonly #warm = new Map<string, Warm>();
  #generation = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  clear(): void {
    this.#generation++;
    this.#graphsByKey.clear();
    this.#warm.clear();
  }

  /** Null where there is none, rows of it are gone for good, or the question is about another instant than now. */
  warm(of: GraphSource, call: string): Warm | null {
    if (of.snapshot.isPrivate) return null;
    const warm = isNow(of) ? this.#warm.get(warmKey(of, call)) : undefined;
    if (warm === undefined || warm.isErased()) return null;
    const { removals } = of.snapshot;
    return of.types.some((type) => removals.removedAfter(type, warm.instant).length > 0) ? null : warm;
  }

  keepWarm(of: GraphSource, call: string, state: State, { texts, lineage, edges }: Graph, isErased: () => boolean): void {
    if (!isNow(of) || isErased() || of.snapshot.isPrivate) return;
    const key = warmKey(of, call);
    this.#warm.delete(key);
    this.#warm.set(key, { state, texts, lineage, edges, instant: of.snapshot.instant, isErased });
    this.#letGo();
  }

  get bytes(): number {
    let bytes = this.edgeBytes;
    for (const { texts } of this.#graphs()) bytes += texts.bytes;
    return bytes;
  }

  /** Bytes without the texts of nodes: edges, and states of earlier answers. */
  get edgeBytes(): number {
    let bytes = 0;
    for (const { state } of this.#warm.values()) bytes += state.byteLength;
    for (const graph of this.#graphs()) bytes += graph.bytes - graph.texts.bytes;
    return bytes;
  }

  *find(source: GraphSource, read: () => Steps<Graph>): Steps<Graph> {
    const { snapshot } = source;
    if (snapshot.isPrivate) return yield* read();
    const time = atMostNow(source.time, snapshot.instant);
    const of = { ...source, time };
    const key = keyOf(of);
    const generation = this.#generation;
    const isErased = snapshot.erasing(of.types);
    const all = this.#graphsByKey.get(key) ?? [];
    for (const cached of all) {
      const again = cached.isErased() ? null : yield* readAgain(cached, of);
      if (again === null) continue;
      const { graph } = cached;
      if (generation === this.#generation) this.#keep(key, { ...again, graph, isErased }, cached);
      return graph;
    }
    let before: CachedGraph | null = null;
    let graph: Graph | null = null;
    for (const cached of all) {
      if (graph !== null || cached.isErased()) continue;
      graph = yield* followChanges(cached, of);
      // A graph that was current is replaced by its later state.
      if (graph !== null && cached.time.system === cached.instant) before = cached;
    }
    graph ??= yield* read();
    const known = yield* this.#same(graph);
    if (generation === this.#generation && !isErased()) {
      this.#keep(key, { ...readAt(time, snapshot), graph: known, isErased }, before);
    }
    return known;
  }

  #keep(key: string, cached: CachedGraph, instead: CachedGraph | null): void {
    const others = (this.#graphsByKey.get(key) ?? []).filter((each) => each !== instead);
    this.#graphsByKey.delete(key);
    this.#graphsByKey.set(key, [cached, ...others].slice(0, instantsMax));
    this.#letGo();
  }

  #letGo(): void {
    for (const all of [this.#warm, this.#graphsByKey]) {
      for (const oldest of all.keys()) {
        if (this.bytes <= this.#bytesMax) return;
        all.delete(oldest);
      }
    }
  }

  #graphs(): Set<Graph> {
    return new Set([...this.#graphsByKey.values()].flatMap((all) => all.map(({ graph }) => graph)));
  }

  *#same(graph: Graph): Steps<Graph> {
    for (const other of this.#graphs()) if (yield* graph.equals(other)) return other;
    return graph;
  }
}

function keyOf({ snapshot, types, about }: GraphSource): string {
  const { grantKey, branchId, catalog } = snapshot;
  return JSON.stringify([grantKey, branchId, catalog.ontologyVersion, types, about]);
}

function warmKey(of: GraphSource, call: string): string {
  return JSON.stringify([keyOf(of), call]);
}

function isNow({ snapshot: { instant }, time }: GraphSource): boolean {
  return atMostNow(time, instant).system === instant && time.valid === instant;
}

/** Bounds the system instant by now: later knowledge is current knowledge until more is written. */
function atMostNow({ system, valid }: TimeBounds, now: bigint): TimeBounds {
  return { system: system !== 'all' && system > now ? now : system, valid };
}
