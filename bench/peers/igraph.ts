/** scipy and igraph as peers, by Debian's own Python, one thread. Null where they are not installed. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Drawn } from '../graph-data.ts';
import { clientCore, mustRun, pinned } from '../processes.ts';

const python = '/usr/bin/python3';

export interface PeerTimes {
  readonly versions: { readonly scipy: string; readonly igraph: string };
  /** ms of each run. */
  readonly rounds: number[];
  readonly pagerank: number[];
  readonly bfs: number[];
  readonly components: number[];
  /** Of what is compared: the score of the best, nodes that are reached, and how many components there are. */
  readonly best: number;
  readonly reached: number;
  readonly count: number;
}

export async function igraphTimes(directory: string, drawn: Drawn, source: number, runs: number): Promise<PeerTimes | null> {
  if (spawnSync(python, ['-c', 'import igraph, scipy']).status !== 0) return null;
  const file = join(directory, 'edges.bin');
  const { nodes, from, to } = drawn;
  writeFileSync(file, Buffer.concat([Buffer.from(from.buffer), Buffer.from(to.buffer)]));
  const { stdout } = await mustRun(
    pinned(clientCore, [python, '-c', script, file, String(nodes), String(from.length), String(source), String(runs)]),
    { env: { PATH: process.env['PATH'] ?? '', OMP_NUM_THREADS: '1', OPENBLAS_NUM_THREADS: '1' } },
  );
  return JSON.parse(stdout) as PeerTimes;
}

const script = `
import json, sys, time
import numpy, scipy, scipy.sparse, igraph
file, nodes, edges, source, runs = sys.argv[1], *map(int, sys.argv[2:6])
raw = numpy.fromfile(file, dtype=numpy.int32)
a, b = raw[:edges], raw[edges:]
def timed(work):
    samples = []
    for _ in range(runs):
        began = time.perf_counter()
        result = work()
        samples.append((time.perf_counter() - began) * 1000)
    return samples, result
matrix = scipy.sparse.csr_matrix((numpy.ones(edges), (b, a)), shape=(nodes, nodes))
given = numpy.asarray(matrix.sum(axis=0)).ravel()
def rounds():
    score = numpy.full(nodes, 1 / nodes)
    idle = given == 0
    per = numpy.where(idle, 0, 1 / numpy.where(idle, 1, given))
    for _ in range(20):
        score = 0.85 * (matrix @ (score * per)) + (0.15 + 0.85 * score[idle].sum()) / nodes
    return score
twenty, score = timed(rounds)
graph = igraph.Graph(n=nodes, edges=numpy.column_stack((a, b)).tolist(), directed=True)
settled, ranks = timed(lambda: graph.pagerank(implementation='prpack'))
bfs, layers = timed(lambda: graph.bfs(source, mode='out'))
parts, components = timed(lambda: graph.connected_components(mode='weak'))
print(json.dumps({
    'versions': {'scipy': scipy.__version__, 'igraph': igraph.__version__},
    'rounds': twenty, 'pagerank': settled, 'bfs': bfs, 'components': parts,
    'best': max(score), 'reached': len(layers[0]), 'count': len(components),
}))
`;
