/**
 * What the functions over the graph answer, worked out from lists of edges in the plainest way: every path is tried, every pair
 * compared. Nodes are texts; an edge is there as often as a row says it.
 */
export interface NaiveEdge {
  readonly id: string;
  readonly link: string;
  readonly from: string;
  readonly to: string;
  readonly weight: number;
}

export interface NaiveGraph {
  readonly nodes: readonly string[];
  readonly edges: readonly NaiveEdge[];
}

export type Direction = 'out' | 'in' | 'both';
export type Cells = Readonly<Record<string, string | number | null>>;

/** Steps from a node: to whom, and along which edge. A loop is two of them where edges are gone either way. */
export function steps({ edges }: NaiveGraph, node: string, direction: Direction): { to: string; edge: NaiveEdge }[] {
  return edges.flatMap((edge) => [
    ...(direction !== 'in' && edge.from === node ? [{ to: edge.to, edge }] : []),
    ...(direction !== 'out' && edge.to === node ? [{ to: edge.from, edge }] : []),
  ]);
}

function joined(graph: NaiveGraph, node: string, direction: Direction): Set<string> {
  return new Set(
    steps(graph, node, direction)
      .map(({ to }) => to)
      .filter((to) => to !== node),
  );
}

export function paths(graph: NaiveGraph, from: string, to: string, hops: number, direction: Direction): NaiveEdge[][] {
  const found: NaiveEdge[][] = [];
  const go = (node: string, nodes: string[], edges: NaiveEdge[]): void => {
    if (node === to) return void found.push(edges);
    if (edges.length === hops) return;
    for (const step of steps(graph, node, direction)) {
      if (!nodes.includes(step.to)) go(step.to, [...nodes, step.to], [...edges, step.edge]);
    }
  };
  if (graph.nodes.includes(from) && graph.nodes.includes(to) && from !== to) go(from, [from], []);
  return found;
}

export function hopsFrom(graph: NaiveGraph, seed: string, hops: number, direction: Direction): Map<string, number> {
  const found = new Map(graph.nodes.includes(seed) ? [[seed, 0]] : []);
  for (let hop = 1; hop <= hops; hop++) {
    for (const [node, at] of found) {
      if (at === hop - 1) for (const { to } of steps(graph, node, direction)) if (!found.has(to)) found.set(to, hop);
    }
  }
  found.delete(seed);
  return found;
}

export function pagerank(graph: NaiveGraph, damping: number, rounds: number, direction: Direction): Map<string, number> {
  const n = graph.nodes.length;
  let score = new Map(graph.nodes.map((node) => [node, 1 / n]));
  for (let round = 0; round < rounds; round++) {
    const next = new Map(graph.nodes.map((node) => [node, (1 - damping) / n]));
    for (const node of graph.nodes) {
      const all = steps(graph, node, direction);
      const sum = all.reduce((total, { edge }) => total + edge.weight, 0);
      if (sum === 0) for (const other of graph.nodes) next.set(other, next.get(other)! + (damping * score.get(node)!) / n);
      else for (const { to, edge } of all) next.set(to, next.get(to)! + (damping * score.get(node)! * edge.weight) / sum);
    }
    const change = graph.nodes.reduce((sum, node) => sum + Math.abs(next.get(node)! - score.get(node)!), 0);
    score = next;
    if (change < 1e-9) break;
  }
  return score;
}

export function triangles(graph: NaiveGraph): Map<string, number> {
  return new Map(
    graph.nodes.map((a) => {
      const near = [...joined(graph, a, 'both')];
      const pairs = near.flatMap((b) => near.filter((c) => c > b && joined(graph, b, 'both').has(c)));
      return [a, pairs.length];
    }),
  );
}

/** Which nodes each node can reach, itself included. */
export function reach(graph: NaiveGraph, direction: Direction): Map<string, Set<string>> {
  return new Map(
    graph.nodes.map((node) => [node, new Set([node, ...hopsFrom(graph, node, graph.nodes.length, direction).keys()])]),
  );
}

/** The least node and the size of the set that each node is of. */
export function grouped(graph: NaiveGraph, together: (a: string, b: string) => boolean): Map<string, readonly [string, number]> {
  return new Map(
    graph.nodes.map((node) => {
      const all = graph.nodes.filter((other) => together(node, other)).sort();
      return [node, [all[0]!, all.length]];
    }),
  );
}

export function spread(graph: NaiveGraph, rounds: number): Map<string, string> {
  const label = new Map(graph.nodes.map((node) => [node, node]));
  for (let round = 0; round < rounds; round++) {
    const before = JSON.stringify([...label]);
    for (const node of [...graph.nodes].sort()) {
      const sums = new Map<string, number>();
      for (const { to, edge } of steps(graph, node, 'both')) {
        if (to !== node) sums.set(label.get(to)!, (sums.get(label.get(to)!) ?? 0) + edge.weight);
      }
      if (sums.size === 0) continue;
      const most = Math.max(...sums.values());
      const best = [...sums].flatMap(([of, sum]) => (sum === most ? [of] : [])).sort();
      if (!best.includes(label.get(node)!)) label.set(node, best[0]!);
    }
    if (JSON.stringify([...label]) === before) break;
  }
  return label;
}

/** Distance, hops and the node before, by trying every way: Bellman and Ford. */
export function shortest(graph: NaiveGraph, source: string, direction: Direction) {
  const found = new Map<string, { far: number; hop: number; previous: string | null }>();
  if (!graph.nodes.includes(source)) return found;
  found.set(source, { far: 0, hop: 0, previous: null });
  for (let round = 0; round < graph.nodes.length; round++) {
    for (const [node, { far, hop }] of found) {
      for (const { to, edge } of steps(graph, node, direction)) {
        const now = { far: far + edge.weight, hop: hop + 1, previous: node };
        const before = found.get(to);
        const nearer =
          before === undefined ||
          now.far < before.far ||
          (now.far === before.far &&
            (now.hop < before.hop || (now.hop === before.hop && before.previous !== null && node < before.previous)));
        if (nearer) found.set(to, now);
      }
    }
  }
  return found;
}

export function cycles(graph: NaiveGraph, most: number): string[][] {
  const found = new Map<string, string[]>();
  const go = (path: string[]): void => {
    for (const { to } of steps(graph, path.at(-1)!, 'out')) {
      if (to === path[0]) found.set(path.join(' '), path);
      else if (to > path[0]! && !path.includes(to) && path.length < most) go([...path, to]);
    }
  };
  for (const node of graph.nodes) go([node]);
  return [...found.values()].sort((a, b) => a.length - b.length || (a.join(' ') < b.join(' ') ? -1 : 1));
}

/** What a spanning forest weighs at least, and how many edges it has. */
export function forest(graph: NaiveGraph): { edges: number; weight: number } {
  const parts = new Map(graph.nodes.map((node) => [node, node]));
  let [edges, weight] = [0, 0];
  for (const edge of [...graph.edges].sort((a, b) => a.weight - b.weight)) {
    const [a, b] = [parts.get(edge.from)!, parts.get(edge.to)!];
    if (a === b) continue;
    for (const [node, part] of parts) if (part === a) parts.set(node, b);
    edges++;
    weight += edge.weight;
  }
  return { edges, weight };
}

export function jaccard(graph: NaiveGraph, a: string, b: string, direction: Direction): number {
  const [of, other] = [joined(graph, a, direction), joined(graph, b, direction)];
  const both = [...of].filter((each) => other.has(each)).length;
  return both === 0 ? 0 : both / (of.size + other.size - both);
}

export function predicted(graph: NaiveGraph, a: string, b: string, method: string): number {
  const degree = (node: string): number => joined(graph, node, 'both').size;
  const shared = [...joined(graph, a, 'both')].filter((each) => joined(graph, b, 'both').has(each));
  switch (method) {
    case 'jaccard':
      return jaccard(graph, a, b, 'both');
    case 'adamic_adar':
      return shared.reduce((sum, node) => sum + (degree(node) < 2 ? 0 : 1 / Math.log(degree(node))), 0);
    case 'resource_allocation':
      return shared.reduce((sum, node) => sum + 1 / degree(node), 0);
    case 'preferential_attachment':
      return degree(a) * degree(b);
    default:
      return shared.length;
  }
}

export function areJoined(graph: NaiveGraph, a: string, b: string): boolean {
  return joined(graph, a, 'both').has(b);
}

export function betweenness(graph: NaiveGraph, direction: Direction): Map<string, number> {
  const simple: NaiveGraph = {
    nodes: graph.nodes,
    edges: graph.nodes.flatMap((from) =>
      [...joined(graph, from, direction)].map((to) => ({ id: '', link: '', from, to, weight: 1 })),
    ),
  };
  const score = new Map(graph.nodes.map((node) => [node, 0]));
  for (const a of graph.nodes) {
    const far = hopsFrom(simple, a, graph.nodes.length, 'out');
    for (const [b, hops] of far) {
      const all = paths(simple, a, b, hops, 'out');
      for (const path of all) for (const { to } of path.slice(0, -1)) score.set(to, score.get(to)! + 1 / all.length);
    }
  }
  return direction === 'both' ? new Map([...score].map(([node, sum]) => [node, sum / 2])) : score;
}

export function closeness(graph: NaiveGraph, direction: Direction): Map<string, number> {
  return new Map(
    graph.nodes.map((node) => {
      const far = [...hopsFrom(graph, node, graph.nodes.length, direction).values()];
      const sum = far.reduce((total, each) => total + each, 0);
      return [node, sum === 0 ? 0 : (far.length / sum) * (far.length / (graph.nodes.length - 1))];
    }),
  );
}

export function eigenvector(graph: NaiveGraph, direction: Direction): Map<string, number> {
  let score = new Map(graph.nodes.map((node) => [node, 1 / Math.sqrt(graph.nodes.length)]));
  const back = direction === 'both' ? 'both' : direction === 'out' ? 'in' : 'out';
  for (let round = 0; round < 1_000; round++) {
    const next = new Map(
      graph.nodes.map((node) => [node, steps(graph, node, back).reduce((sum, { to }) => sum + score.get(to)!, score.get(node)!)]),
    );
    const norm = Math.sqrt([...next.values()].reduce((sum, each) => sum + each * each, 0));
    const scaled = new Map([...next].map(([node, each]) => [node, each / norm]));
    const change = graph.nodes.reduce((sum, node) => sum + Math.abs(scaled.get(node)! - score.get(node)!), 0);
    score = scaled;
    if (change < 1e-12 * graph.nodes.length) break;
  }
  return score;
}

export function hits(graph: NaiveGraph, which: 'hub' | 'authority'): Map<string, number> {
  const scaled = (sums: Map<string, number>): Map<string, number> => {
    const norm = Math.sqrt([...sums.values()].reduce((sum, each) => sum + each * each, 0));
    return new Map([...sums].map(([node, each]) => [node, norm === 0 ? 0 : each / norm]));
  };
  const summed = (from: Map<string, number>, to: Direction): Map<string, number> =>
    scaled(
      new Map(
        graph.nodes.map((node) => [node, steps(graph, node, to).reduce((sum, { to: other }) => sum + from.get(other)!, 0)]),
      ),
    );
  let hub = new Map(graph.nodes.map((node) => [node, 1 / Math.sqrt(graph.nodes.length)]));
  let authority = hub;
  for (let round = 0; round < 1_000; round++) {
    authority = summed(hub, 'in');
    const next = summed(authority, 'out');
    const change = graph.nodes.reduce((sum, node) => sum + Math.abs(next.get(node)! - hub.get(node)!), 0);
    hub = next;
    if (change < 1e-12 * graph.nodes.length) break;
  }
  return which === 'hub' ? hub : authority;
}

export function modularity(graph: NaiveGraph, of: ReadonlyMap<string, string>): number {
  const all = 2 * graph.edges.reduce((sum, { weight }) => sum + weight, 0);
  if (all === 0) return 0;
  const degree = new Map(
    graph.nodes.map((node) => [node, steps(graph, node, 'both').reduce((sum, { edge }) => sum + edge.weight, 0)]),
  );
  let sum = 0;
  for (const a of graph.nodes) {
    for (const b of graph.nodes) {
      if (of.get(a) !== of.get(b)) continue;
      const between = steps(graph, a, 'both').reduce((total, { to, edge }) => total + (to === b ? edge.weight : 0), 0);
      sum += between / all - (degree.get(a)! * degree.get(b)!) / (all * all);
    }
  }
  return sum;
}

/** Walks of so many edges, none of them twice: where they end. */
export function walks(graph: NaiveGraph, from: string, least: number, most: number, direction: Direction): string[] {
  const ends: string[] = [];
  const go = (node: string, gone: readonly NaiveEdge[]): void => {
    if (gone.length >= least) ends.push(node);
    if (gone.length === most) return;
    const met = new Set<NaiveEdge>();
    for (const { to, edge } of steps(graph, node, direction)) {
      if (gone.includes(edge) || met.has(edge)) continue;
      met.add(edge);
      go(to, [...gone, edge]);
    }
  };
  go(from, []);
  return ends;
}
