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
const graphInstantsMax = 4;

export class GraphCache {
  readonly #graphBytesMax: number;
  /** Cached graphs by key, the one used last at the end. */
  readonly #graphsByKey = new Map<string, readonly CachedGraph[]>();
  /** States of earlier answers, the one used last at the end. */
  readonly #warmGraphs = new Map<string, Warm>();
  #graphGeneration = 0;

  constructor(graphBytesMax: number) {
    this.#graphBytesMax = graphBytesMax;
  }

  clear(): void {
    this.#graphGeneration++;
    this.#graphsByKey.clear();
    this.#warmGraphs.clear();
  }

  /** Null where there is none, rows of it are gone for good, or the question is about another instant than now. */
  warm(graphSource: GraphSource, call: string): Warm | null {
    if (graphSource.snapshot.isPrivate) return null;
    const warmGraph = isGraphNow(graphSource) ? this.#warmGraphs.get(warmGraphKey(graphSource, call)) : undefined;
    if (warmGraph === undefined || warmGraph.isErased()) return null;
    const { removals } = graphSource.snapshot;
    return graphSource.types.some((type) => removals.removedAfter(type, warmGraph.instant).length > 0) ? null : warmGraph;
  }

  keepWarm(
    graphSource: GraphSource,
    call: string,
    state: State,
    { texts, lineage, edges }: Graph,
    isErased: () => boolean,
  ): void {
    if (!isGraphNow(graphSource) || isErased() || graphSource.snapshot.isPrivate) return;
    const warmEntryKey = warmGraphKey(graphSource, call);
    this.#warmGraphs.delete(warmEntryKey);
    this.#warmGraphs.set(warmEntryKey, { state, texts, lineage, edges, instant: graphSource.snapshot.instant, isErased });
    this.#evictOldestGraphs();
  }

  get bytes(): number {
    let graphBytes = this.edgeBytes;
    for (const { texts } of this.#distinctGraphs()) graphBytes += texts.bytes;
    return graphBytes;
  }

  /** Bytes without the texts of nodes: edges, and states of earlier answers. */
  get edgeBytes(): number {
    let edgeArrayBytes = 0;
    for (const { state } of this.#warmGraphs.values()) edgeArrayBytes += state.byteLength;
    for (const graph of this.#distinctGraphs()) edgeArrayBytes += graph.bytes - graph.texts.bytes;
    return edgeArrayBytes;
  }

  *find(source: GraphSource, read: () => Steps<Graph>): Steps<Graph> {
    const { snapshot } = source;
    if (snapshot.isPrivate) return yield* read();
    const readTime = timeAtMostNow(source.time, snapshot.instant);
    const graphSource = { ...source, time: readTime };
    const graphKey = graphKeyOf(graphSource);
    const graphGeneration = this.#graphGeneration;
    const isGraphErased = snapshot.erasing(graphSource.types);
    const cachedForKey = this.#graphsByKey.get(graphKey) ?? [];
    for (const cached of cachedForKey) {
      const readAgainAt = cached.isErased() ? null : yield* readAgain(cached, graphSource);
      if (readAgainAt === null) continue;
      const { graph: foundGraph } = cached;
      if (graphGeneration === this.#graphGeneration)
        this.#keepGraph(graphKey, { ...readAgainAt, graph: foundGraph, isErased: isGraphErased }, cached);
      return foundGraph;
    }
    let followedCache: CachedGraph | null = null;
    let graph: Graph | null = null;
    for (const cached of cachedForKey) {
      if (graph !== null || cached.isErased()) continue;
      graph = yield* followChanges(cached, graphSource);
      // A graph that was current is replaced by its later state.
      if (graph !== null && cached.time.system === cached.instant) followedCache = cached;
    }
    graph ??= yield* read();
    const knownGraph = yield* this.#sameKnownGraph(graph);
    if (graphGeneration === this.#graphGeneration && !isGraphErased()) {
      this.#keepGraph(graphKey, { ...readAt(readTime, snapshot), graph: knownGraph, isErased: isGraphErased }, followedCache);
    }
    return knownGraph;
  }

  #keepGraph(graphKey: string, cached: CachedGraph, replacedGraph: CachedGraph | null): void {
    const otherGraphs = (this.#graphsByKey.get(graphKey) ?? []).filter((each) => each !== replacedGraph);
    this.#graphsByKey.delete(graphKey);
    this.#graphsByKey.set(graphKey, [cached, ...otherGraphs].slice(0, graphInstantsMax));
    this.#evictOldestGraphs();
  }

  #evictOldestGraphs(): void {
    for (const cachedMap of [this.#warmGraphs, this.#graphsByKey]) {
      for (const oldestKey of cachedMap.keys()) {
        if (this.bytes <= this.#graphBytesMax) return;
        cachedMap.delete(oldestKey);
      }
    }
  }

  #distinctGraphs(): Set<Graph> {
    return new Set([...this.#graphsByKey.values()].flatMap((cachedForKey) => cachedForKey.map(({ graph }) => graph)));
  }

  *#sameKnownGraph(graph: Graph): Steps<Graph> {
    for (const knownGraph of this.#distinctGraphs()) if (yield* graph.equals(knownGraph)) return knownGraph;
    return graph;
  }
}

function graphKeyOf({ snapshot, types, about }: GraphSource): string {
  const { grantKey, branchId, catalog } = snapshot;
  return JSON.stringify([grantKey, branchId, catalog.ontologyVersion, types, about]);
}

function warmGraphKey(graphSource: GraphSource, call: string): string {
  return JSON.stringify([graphKeyOf(graphSource), call]);
}

function isGraphNow({ snapshot: { instant }, time }: GraphSource): boolean {
  return timeAtMostNow(time, instant).system === instant && time.valid === instant;
}

/** Bounds the system instant by now: later knowledge is current knowledge until more is written. */
function timeAtMostNow({ system, valid }: TimeBounds, now: bigint): TimeBounds {
  return { system: system !== 'all' && system > now ? now : system, valid };
}
