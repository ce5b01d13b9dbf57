/**
 * A graph of five million edges through gate and planner in this process, under a policy that hides some of them: adjacency from
 * rows, PageRank, components, breadth-first search beside scipy and igraph; what a change costs; paths over a million edges; and an
 * expansion over HTTP beside PostgreSQL's recursive CTE. Scores are compared with the peers' where the policy hides nothing.
 */
import { rowsOf } from '../../test/harness.ts';
import { AnnalsServer } from '../annals-server.ts';
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { type Drawn, drawn, edgeLines, nodeKey, nodeLines } from '../graph-data.ts';
import { igraphTimes, type PeerTimes } from '../peers/igraph.ts';
import { quantile, quotient, summary } from '../report.ts';
import { scramble } from '../workload.ts';

const pathPairs = 200;
const warmUp = 20;
const added = 1_000;
const expansions = 100;
const hidden = 'forbid(principal, action, resource is Link) when { resource.hidden == true };';

export async function graph(context: BenchContext): Promise<void> {
  const { report, directory, rows, repeats } = context;
  const scale = rows >= 1_000_000 ? 19 : 16;
  const large = drawn(scale, 5 * rows, 1);
  const source = busiest(large);
  const peer = await igraphTimes(directory, large, source, repeats);
  if (peer === null) report.skip('igraph and scipy', 'not installed here (Debian: apt-get install python3-igraph python3-scipy)');
  await algorithms(context, large, source, peer);
  await paths(context, drawn(scale - 2, rows, 2));
  await expansion(context, drawn(scale - 2, rows, 2));
}

async function algorithms(
  { report, repeats }: BenchContext,
  large: Drawn,
  source: number,
  peer: PeerTimes | null,
): Promise<void> {
  const edges = `${(large.from.length / 1e6).toLocaleString('en')}M edges`;
  const store = await filled(large);
  try {
    const timed = (sql: string, before: () => unknown = () => undefined): Promise<number[]> => times(store, sql, repeats, before);
    const shape = (measure: string) => ({ measure: `${measure}, ${edges}`, unit: 'ms', better: 'smaller' }) as const;
    const add = (measure: string, samples: number[], note = 'in process'): number[] => {
      report.add({ ...shape(measure), product: 'annals', samples, note });
      return samples;
    };
    const beside = (measure: string, product: string, samples: number[]): void =>
      report.add({ ...shape(measure), product, samples });
    const stats = (call: string, options: string, asOf = ''): string =>
      `CALL traverse.${call}.stats('Node', 'Link'${options}) ${asOf}`;
    const forget = (): void => store.forget();

    if (peer !== null) await compare(store, stats, source, peer);
    await store.rule('all', 'permit(principal, action, resource);');
    await store.rule('some', hidden);
    const before = new Date().toISOString();
    await store.delete(
      'Link',
      Array.from({ length: 1_000 }, (_, i) => `e${i * 7}`),
    );

    const cold = add('adjacency from rows, first asked', await timed(stats('degreeCentrality', ''), forget));
    report.figure('graph.adjacency', summary(cold.map((ms) => ms / 1_000)));
    const ranked = stats('pageRank', ', {maxIterations: 20}');
    const now = add('PageRank and adjacency, both cold', await timed(ranked, forget));
    const then = add(
      'PageRank and adjacency, both cold, as of earlier',
      await timed(stats('pageRank', ', {maxIterations: 20}', `AS OF SYSTEM TIME '${before}'`), forget),
    );
    report.figure('graph.then', quotient(then, now));
    await store.query(ranked);
    const warm = add('PageRank, 20 rounds, adjacency warm', await timed(ranked));
    const settled = add('PageRank to 1e-9, adjacency warm', await timed(stats('pageRank', ', {maxIterations: 1000}')));
    const parts = add('components', await timed(stats('connectedComponents', '')));
    const bfs = add('breadth-first search', await timed(stats('sssp', `, '${nodeKey(source)}'`)));
    if (peer !== null) {
      beside('PageRank, 20 rounds, adjacency warm', `scipy ${peer.versions.scipy}`, peer.rounds);
      beside('PageRank to 1e-9, adjacency warm', `igraph ${peer.versions.igraph}`, peer.pagerank);
      beside('components', `igraph ${peer.versions.igraph}`, peer.components);
      beside('breadth-first search', `igraph ${peer.versions.igraph}`, peer.bfs);
      report.figure('graph.scipy', quotient(peer.rounds, warm));
      report.figure('graph.igraph', quotient(peer.pagerank, settled));
      report.figure('graph.components', quotient(peer.components, parts));
      report.figure('graph.bfs', quotient(peer.bfs, bfs));
    }
    const changed: number[] = [];
    for (let round = 0; round < repeats; round++) {
      await store.ingest('Link', edgeLines(drawn(Math.log2(large.nodes), added, 100 + round), large.from.length + round * added));
      changed.push(...(await times(store, stats('degreeCentrality', ''), 1)));
    }
    add('degrees after 1,000 new edges, warm', changed);
    report.figure('graph.changed', summary(changed));
    report.figure('graph.bytes', summary([store.graphBytes / large.from.length]));
  } finally {
    await store.close();
  }
}

type Stats = (call: string, options: string) => string;

/** Before any policy hides anything. */
async function compare(store: AnnalsStore, stats: Stats, source: number, peer: PeerTimes): Promise<void> {
  const [ranks] = rowsOf(await store.query(stats('pageRank', ', {maxIterations: 20}')));
  if (Math.abs(Number(ranks!['max']) - peer.best) > 1e-9)
    throw new Error(`the best rank is ${peer.best}, not ${String(ranks!['max'])}`);
  const { rowCount } = await store.query(`GRAPH_SSSP('Node', 'Link', '${nodeKey(source)}')`);
  if (rowCount !== peer.reached) throw new Error(`${peer.reached} nodes are reached, not ${rowCount}`);
  const parts = new Set(rowsOf(await store.query("CONNECTED_COMPONENTS('Node', 'Link')")).map((row) => row['community']));
  if (parts.size !== peer.count) throw new Error(`there are ${peer.count} components, not ${parts.size}`);
}

async function paths({ report, repeats }: BenchContext, small: Drawn): Promise<void> {
  const store = await filled(small);
  try {
    const p99: number[] = [];
    for (let round = 0; round < repeats; round++) {
      const samples: number[] = [];
      for (let pair = 0; pair < pathPairs + warmUp; pair++) {
        const [from, to] = [0, 1].map((end) => small.from[scramble(2 * (round * 1_000 + pair) + end) % small.from.length]!);
        const sql = `PATHS_BETWEEN('${nodeKey(from!)}', '${nodeKey(to!)}', 4) LIMIT 100`;
        const [ms] = await times(store, sql, 1);
        if (pair >= warmUp) samples.push(ms!);
      }
      p99.push(
        quantile(
          samples.toSorted((a, b) => a - b),
          0.99,
        ),
      );
    }
    const measure = `paths of at most 4 hops, LIMIT 100, ${(small.from.length / 1e6).toLocaleString('en')}M edges`;
    report.add({
      measure,
      product: 'annals',
      unit: 'ms',
      better: 'smaller',
      samples: p99,
      note: 'p99 of random pairs, in process',
    });
    report.figure('graph.paths', summary(p99));
  } finally {
    await store.close();
  }
}

async function expansion({ report, directory, postgres, port }: BenchContext, small: Drawn): Promise<void> {
  if (postgres === null) return;
  const seeds = withDegree(small, 20).slice(0, expansions);
  const csv = Array.from(small.from, (from, edge) => `${nodeKey(from)},${nodeKey(small.to[edge]!)}\n`).join('');
  await postgres.prepare(
    'DROP TABLE IF EXISTS links; CREATE TABLE links (a text, b text)',
    'links',
    Buffer.from(csv),
    'CREATE INDEX ON links (a); CREATE INDEX ON links (b)',
  );
  const theirs: number[] = [];
  for (const seed of seeds) theirs.push(...(await postgres.timed(twoHops(nodeKey(seed)), 1)));
  const server = await AnnalsServer.start(directory, 'graph', port());
  try {
    const text = { type: 'string' };
    await server.request('/types', JSON.stringify({ name: 'Node', properties: { id: text }, primary_key: 'id' }));
    const properties = { id: text, from_id: text, to_id: text, hidden: { type: 'boolean' } };
    await server.request('/types', JSON.stringify({ name: 'Link', properties, primary_key: 'id' }));
    await server.ingest('Node', nodeLines(small), small.nodes);
    await server.ingest('Link', edgeLines(small), small.from.length);
    const ours: number[] = [];
    for (const [i, seed] of [...seeds.slice(0, warmUp), ...seeds].entries()) {
      const { ms } = await server.query(`NETWORK_EXPAND('${nodeKey(seed)}', 2)`);
      if (i >= Math.min(warmUp, seeds.length)) ours.push(ms);
    }
    const shape = { measure: '2-hop expansion of a node of degree 20', unit: 'ms', better: 'smaller' } as const;
    report.add({ ...shape, product: 'annals', samples: ours, note: 'over HTTP' });
    report.add({ ...shape, product: 'PostgreSQL', samples: theirs, note: 'recursive CTE, both ends indexed, its own clock' });
    report.figure('graph.expand', quotient(theirs, ours));
  } finally {
    await server.stop();
  }
}

function twoHops(seed: string): string {
  return `WITH RECURSIVE near(node, hop) AS (SELECT '${seed}'::text, 0 UNION SELECT l.node, near.hop + 1 FROM near CROSS JOIN LATERAL (SELECT b AS node FROM links WHERE a = near.node UNION ALL SELECT a FROM links WHERE b = near.node) l WHERE near.hop < 2) SELECT node, min(hop) FROM near WHERE hop > 0 GROUP BY node`;
}

async function filled(made: Drawn): Promise<AnnalsStore> {
  const store = await AnnalsStore.open();
  await store.register('Node', { id: 'string' }, 'id');
  await store.register('Link', { id: 'string', from_id: 'string', to_id: 'string', hidden: 'boolean' }, 'id');
  await store.ingest('Node', nodeLines(made));
  await store.ingest('Link', edgeLines(made));
  return store;
}

async function times(store: AnnalsStore, sql: string, runs: number, before: () => unknown = () => undefined): Promise<number[]> {
  const samples: number[] = [];
  for (let run = 0; run < runs; run++) {
    before();
    const began = performance.now();
    await store.query(sql);
    samples.push(performance.now() - began);
  }
  return samples;
}

function degrees({ nodes, from, to }: Drawn): Int32Array {
  const degree = new Int32Array(nodes);
  for (const ends of [from, to]) for (const node of ends) degree[node]!++;
  return degree;
}

function busiest(made: Drawn): number {
  const degree = degrees(made);
  return degree.indexOf(degree.reduce((most, each) => Math.max(most, each), 0));
}

function withDegree(made: Drawn, wanted: number): number[] {
  return [...degrees(made).entries()].flatMap(([node, degree]) => (degree === wanted ? [node] : []));
}
