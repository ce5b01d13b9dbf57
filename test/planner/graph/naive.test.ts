/**
 * Every function over the graph against its plain counterpart: random multigraphs with loops, parallel edges and dangling ones, at
 * random instants of either axis, on two branches, under a policy that hides rows of edges and of nodes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Action } from '../../../src/governance/gate-contract.ts';
import { formatInstant } from '../../../src/log/values/timestamp.ts';
import type { Command } from '../../../src/projections/command.ts';
import { seedBase } from '../../runner/seed.ts';
import { inTurn } from '../../runner/turn.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { analyst, rowsOf, TestStore } from '../../harness.ts';
import * as naive from './naive.ts';
import type { Cells, Direction, NaiveEdge, NaiveGraph } from './naive.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };
const chief: Caller = { ...analyst, principal: 'chas', path: 'acme', roles: ['chief'] };
const trial: Caller = { ...chief, branch: 'trial' };

const policies = {
  all: 'permit(principal, action, resource);',
  nodes: 'forbid(principal in Role::"clerk", action, resource is Node) when { resource.hidden == true };',
  edges: 'forbid(principal in Role::"clerk", action, resource is Likes) when { resource.hidden == true };',
};

let store: TestStore;
const dice = new Seeded(seedBase);
const instants: string[] = [];

const submit = (who: Caller, action: Action, command: Command) =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) => invocation.submit(command));

const names = 'a b c d e f g h i j é 😀'.split(' ');
const random = (): number => dice.below(1_000_000) / 1_000_000;
const some = <T>(list: readonly T[]): T => dice.pick(list);

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  const types = { id: 'string', hidden: 'boolean' } as const;
  const edge = { ...types, from_id: 'string', to_id: 'string', weight: 'number' } as const;
  await store.register('Node', types, 'id');
  await store.register('Likes', edge, 'id');
  await store.register('Pays', edge, 'id');
  for (const [id, text] of Object.entries(policies)) await submit(admin, 'administer', { kind: 'put-policy', id, text });
  for (let day = 1; day <= 12; day++) {
    store.clock.set(`2024-01-${String(day).padStart(2, '0')}`);
    if (day === 6) await submit(chief, 'fork', { kind: 'fork-branch', name: 'trial', source: 'main', shares: 'everything' });
    for (const who of day > 6 ? [chief, trial] : [chief]) {
      await store.put(
        'Node',
        Array.from({ length: 3 }, () => ({ id: some(names), hidden: random() < 0.2 })).filter(firstOfId),
        who,
      );
      for (const link of ['Likes', 'Pays']) {
        const rows = Array.from({ length: 4 }, () => ({
          id: `e${Math.floor(random() * 24)}`,
          hidden: random() < 0.2,
          from_id: some([...names, 'nobody']),
          to_id: some(names),
          weight: random() < 0.05 ? null : Math.ceil(random() * 4) / 2,
          ...(random() < 0.3 ? { valid_to: `2024-01-${13 + Math.floor(random() * 12)}` } : {}),
        })).filter(firstOfId);
        await store.put(link, rows, who);
      }
      if (random() < 0.4)
        await submit(who, 'delete', { kind: 'delete-rows', type: 'Pays', keys: [`e${Math.floor(random() * 24)}`] });
    }
    instants.push(formatInstant(store.clock.wallNs + 3_600_000_000_000n));
  }
  store.clock.set('2024-01-20');
});
afterAll(() => store.close());

function firstOfId({ id }: { id: string }, i: number, rows: readonly { id: string }[]): boolean {
  return rows.findIndex((row) => row.id === id) === i;
}

/** A world to ask in: who, and as of when. */
interface Basis {
  readonly who: Caller;
  readonly asOf: string;
}

function someBasis(): Basis {
  const asOf = some(['AS OF CURRENT', `AS OF SYSTEM TIME '${some(instants)}'`, `AS OF '${some(instants)}'`]);
  return { who: some([chief, clerk, trial]), asOf };
}

/** Rows of a type by the rule of functions: as they are believed and true then. */
async function rowsAt(type: string, { who, asOf }: Basis): Promise<Cells[]> {
  const [, axis, instant] = /AS OF (SYSTEM TIME )?(?:'(.*)'|CURRENT)/.exec(asOf)!;
  const end = { SYSTEM: 'system_to', VALID: 'valid_to' };
  if (instant === undefined) return (await store.rows(`SELECT * FROM ${type} AS OF CURRENT`, who)) as unknown as Cells[];
  if (axis !== undefined) {
    const still = `WHERE valid_from <= '${instant}' AND valid_to > '${instant}'`;
    return (await store.rows(`SELECT * FROM ${type} AS OF SYSTEM TIME '${instant}' ${still}`, who)) as unknown as Cells[];
  }
  return (await store.rows(`SELECT * FROM ${type} AS OF '${instant}' WHERE ${end.SYSTEM} > now()`, who)) as unknown as Cells[];
}

async function graphAt(basis: Basis, links: readonly string[], weighted: boolean): Promise<NaiveGraph> {
  const nodes = (await rowsAt('Node', basis)).map((row) => String(row['id'])).sort();
  const edges: NaiveEdge[] = [];
  for (const link of links) {
    for (const row of await rowsAt(link, basis)) {
      const [from, to, weight] = [String(row['from_id']), String(row['to_id']), row['weight']];
      if (!nodes.includes(from) || !nodes.includes(to) || (weighted && weight === null)) continue;
      edges.push({ id: String(row['system_from']), link, from, to, weight: weighted ? Number(weight) : 1 });
    }
  }
  return { nodes, edges };
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

describe('naive', () => {
  const rounds = inTurn(
    Array.from({ length: 100 }, (_, i) => i),
    4,
  );

  test.each(rounds)('round %i', async () => {
    const basis = someBasis();
    const weighted = random() < 0.5;
    const direction = some<Direction>(['out', 'in', 'both']);
    const graph = await graphAt(basis, ['Likes'], weighted);
    const all = await graphAt(basis, ['Likes', 'Pays'], false);
    const ask = async (sql: string): Promise<Cells[]> => rowsOf(await store.answer(sql, basis.who)) as unknown as Cells[];
    const call = (name: string, more: readonly string[] = [], ways = true): Promise<Cells[]> => {
      const weight = weighted && takesWeight.has(name) ? ['WEIGHT => weight'] : [];
      const list = ["'Node'", "'Likes'", ...more, ...weight, ...(ways ? [`DIRECTION => '${direction}'`] : [])];
      return ask(`SELECT * FROM ${name}(${list.join(', ')}) ${basis.asOf}`);
    };
    const plain = await graphAt(basis, ['Likes'], false);
    const scores = (rows: Cells[]): Map<string, number> =>
      new Map(rows.map((row) => [String(row['nodeId']), Number(row['score'])]));
    const scored = (rows: Cells[], wanted: ReadonlyMap<string, number>): void => {
      const found = scores(rows);
      expect([...found.keys()].sort(byBytes)).toEqual([...wanted.keys()].sort(byBytes));
      for (const [node, score] of wanted) expect(found.get(node)! - score).toBeCloseTo(0, 9);
    };
    const near = (rows: Cells[], wanted: ReadonlyMap<string, number>): void => {
      scored(rows, wanted);
      inOrder(rows);
    };
    const inOrder = (rows: Cells[]): void => {
      const key = (row: Cells) => [-Number(row['score']), String(row['nodeId']), String(row['from_id'])] as const;
      const sorted = [...rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return x[0] - y[0] || byBytes(x[1], y[1]) || byBytes(x[2], y[2]);
      });
      expect(rows.map(key)).toEqual(sorted.map(key));
    };
    const [from, to] = [some(names), some(names)];

    const hops = 1 + Math.floor(random() * 4);
    const rows = await ask(`PATHS_BETWEEN('${from}', '${to}', ${hops}, DIRECTION => '${direction}') ${basis.asOf}`);
    const told = new Map<unknown, Cells[]>();
    for (const row of rows) told.set(row['path'], [...(told.get(row['path']) ?? []), row]);
    const spelled = [...told.values()].map((path) => path.map((row) => String(row['system_from'])).join(' '));
    const wanted = naive.paths(all, from, to, hops, direction).map((path) => path.map(({ id }) => id).join(' '));
    expect([...spelled].sort()).toEqual(wanted.sort());
    const lengths = [...told.values()].map((path) => [path.length, path.map((row) => String(row['nodeId'])).join('\0')] as const);
    expect(lengths).toEqual([...lengths].sort((a, b) => a[0] - b[0] || byBytes(a[1], b[1])));

    const expanded = await ask(`NETWORK_EXPAND('${from}', ${hops}, DIRECTION => '${direction}') ${basis.asOf}`);
    expect(new Map(expanded.map((row) => [row['nodeId'], Number(row['hop'])]))).toEqual(
      naive.hopsFrom(all, from, hops, direction),
    );
    inOrder(expanded);

    near(await call('GRAPH_PAGERANK', ['MAX_ITER => 30', 'DAMPING => 0.8']), naive.pagerank(graph, 0.8, 30, direction));
    near(
      await call('DEGREE_CENTRALITY'),
      new Map(graph.nodes.map((n) => [n, naive.steps(graph, n, direction).reduce((sum, { edge }) => sum + edge.weight, 0)])),
    );
    near(await call('TRIANGLE_COUNT', [], false), naive.triangles(plain));

    const both = naive.reach(plain, 'both');
    const out = naive.reach(plain, 'out');
    const together = (rowsOfGroups: Cells[], wantedGroups: ReadonlyMap<string, readonly [string, number]>): void => {
      const found = new Map(rowsOfGroups.map((row) => [row['nodeId'], [row['community'], Number(row['score'])]]));
      expect(found).toEqual(wantedGroups);
      inOrder(rowsOfGroups);
    };
    together(
      await call('CONNECTED_COMPONENTS', [], false),
      naive.grouped(plain, (a, b) => both.get(a)!.has(b)),
    );
    together(
      await call('GRAPH_SCC', [], false),
      naive.grouped(plain, (a, b) => out.get(a)!.has(b) && out.get(b)!.has(a)),
    );
    const label = naive.spread(graph, 7);
    together(
      await call('LABEL_PROPAGATION', ['MAX_ITER => 7'], false),
      naive.grouped(graph, (a, b) => label.get(a) === label.get(b)),
    );

    const far = naive.shortest(graph, from, direction);
    const reached = await call('GRAPH_SSSP', [`SOURCE => '${from}'`]);
    scored(reached, new Map([...far].map(([node, at]) => [node, at.far])));
    // Ways begin at their source.
    const nearestFirst = [...reached].sort(
      (a, b) =>
        Number(a['score']) - Number(b['score']) ||
        Number(a['hop']) - Number(b['hop']) ||
        byBytes(String(a['nodeId']), String(b['nodeId'])),
    );
    expect(reached).toEqual(nearestFirst);
    for (const row of reached) {
      const at = far.get(String(row['nodeId']))!;
      expect([Number(row['hop']), row['previous']]).toEqual([at.hop, at.previous]);
    }
    const way = await call('GRAPH_DIJKSTRA', [`FROM => '${from}'`, `TO => '${to}'`]);
    const expected: string[] = [];
    for (let at: string | null = far.has(to) ? to : null; at !== null; at = far.get(at)!.previous) expected.push(at);
    expect(way.map((row) => row['nodeId'])).toEqual(expected.reverse());
    expect(way.map((row) => Number(row['hop']))).toEqual([...way.keys()]);

    const pairs = graph.nodes.flatMap((a) => [...naive.shortest(graph, a, direction)].map(([b, at]) => [a, b, at.far] as const));
    const apart = pairs.filter(([a, b]) => a !== b);
    const asPairs = (found: Cells[]): string[] =>
      found.map((row) => `${row['from_id']} ${row['to_id']} ${Number(row['score']).toFixed(9)}`).sort();
    const distances = await call('GRAPH_APSP');
    expect(asPairs(distances)).toEqual(apart.map(([a, b, score]) => `${a} ${b} ${score.toFixed(9)}`).sort());
    inOrder(distances);
    const widest = [...apart].sort((x, y) => y[2] - x[2] || byBytes(x[0], y[0]) || byBytes(x[1], y[1]))[0];
    expect(asPairs(await call('GRAPH_DIAMETER'))).toEqual(widest ? [`${widest[0]} ${widest[1]} ${widest[2].toFixed(9)}`] : []);

    const rings = await call('GRAPH_CYCLES', ['MAX_LENGTH => 4'], false);
    const ringed = new Map<unknown, string[]>();
    for (const row of rings) ringed.set(row['cycle'], [...(ringed.get(row['cycle']) ?? []), String(row['nodeId'])]);
    const cycles = naive.cycles(plain, 4);
    expect([...ringed.values()].map((ring) => ring.join(' ')).sort()).toEqual(cycles.map((ring) => ring.join(' ')).sort());
    expect([...ringed.values()].map((ring) => ring.length)).toEqual(cycles.map((ring) => ring.length));

    const tree = await call('GRAPH_SPANNING_TREE', [], false);
    const forest = naive.forest(graph);
    expect(tree.length).toBe(forest.edges);
    expect(tree.reduce((sum, row) => sum + Number(row['score']), 0)).toBeCloseTo(forest.weight, 9);

    const alike = graph.nodes.flatMap((a) =>
      graph.nodes.map((b) => [a, b, a === b ? 0 : naive.jaccard(plain, a, b, direction)] as const),
    );
    const shown = (list: typeof alike): string[] => list.map(([a, b, score]) => `${a} ${b} ${score.toFixed(9)}`).sort();
    expect(asPairs(await call('GRAPH_SIMILARITY', ['TOP_K => 1000']))).toEqual(shown(alike.filter(([, , score]) => score > 0)));
    const once = alike.filter(([a, b, score]) => byBytes(a, b) < 0 && score > 0);
    expect(asPairs(await call('GRAPH_NODE_SIMILARITY'))).toEqual(shown(once));
    expect(asPairs(await call('GRAPH_NODE_SIMILARITY', [`NODE => '${from}'`]))).toEqual(
      shown(alike.filter(([a, , score]) => a === from && score > 0)),
    );

    const method = some(['common_neighbours', 'jaccard', 'adamic_adar', 'resource_allocation', 'preferential_attachment']);
    const likely = graph.nodes.flatMap((a) =>
      graph.nodes.flatMap((b) => {
        const isNew = byBytes(a, b) < 0 && !naive.areJoined(plain, a, b) && naive.predicted(plain, a, b, 'common_neighbours') > 0;
        return isNew ? [[a, b, naive.predicted(plain, a, b, method)] as const] : [];
      }),
    );
    expect(asPairs(await call('LINK_PREDICT', [`METHOD => '${method}'`], false))).toEqual(shown(likely));
    const pair = await call('GRAPH_LINK_PREDICT', [`FROM => '${from}'`, `TO => '${to}'`, `METHOD => '${method}'`], false);
    const isThere = graph.nodes.includes(from) && graph.nodes.includes(to);
    expect(asPairs(pair)).toEqual(isThere ? shown([[from, to, naive.predicted(plain, from, to, method)]]) : []);

    near(await call('GRAPH_NODE_METRIC', [], true), naive.betweenness(plain, direction));
    near(await call('GRAPH_NODE_METRIC', ["METRIC => 'closeness'"]), naive.closeness(plain, direction));
    near(await call('GRAPH_NODE_METRIC', ["METRIC => 'eigenvector'"]), naive.eigenvector(plain, direction));
    near(await call('GRAPH_NODE_METRIC', ["METRIC => 'pagerank'"], false), naive.pagerank(plain, 0.85, 20, 'out'));

    for (const which of ['hub', 'authority'] as const) {
      near(await call('GRAPH_NODE_METRIC', [`METRIC => '${which}'`], false), naive.hits(plain, which));
    }

    const found = await call('GRAPH_COMMUNITY', [], false);
    const of = new Map(found.map((row) => [String(row['nodeId']), String(row['community'])]));
    const alone = new Map(graph.nodes.map((node) => [node, node]));
    const quality = naive.modularity(graph, of);
    expect(quality).toBeGreaterThanOrEqual(naive.modularity(graph, alone) - 1e-9);
    // No two communities are better as one.
    for (const a of new Set(of.values())) {
      for (const b of new Set(of.values())) {
        const merged = new Map([...of].map(([node, each]) => [node, each === b ? a : each]));
        expect(naive.modularity(graph, merged)).toBeLessThanOrEqual(quality + 1e-9);
      }
    }
    const arrow = { out: ['-', '->'], in: ['<-', '-'], both: ['-', '-'] }[direction];
    const [least, most] = [Math.floor(random() * 2), 1 + Math.floor(random() * 2)];
    const walked = await ask(
      `MATCH (a:Node)${arrow[0]}[:Likes*${least}..${most}]${arrow[1]}(b:Node) ${basis.asOf} RETURN a.id AS a, b.id AS b`,
    );
    const ends = plain.nodes.flatMap((a) => naive.walks(plain, a, least, most, direction).map((b) => `${a} ${b}`));
    expect(walked.map(({ a, b }) => `${a} ${b}`).sort()).toEqual(ends.sort());
    const turned = await ask(
      `MATCH (a:Node)-[:Likes]->(b:Node)<-[:Likes]-(c) ${basis.asOf} RETURN a.id AS a, b.id AS b, c.id AS c`,
    );
    const turns = plain.edges.flatMap((x) =>
      plain.edges.flatMap((y) => (x !== y && x.to === y.to ? [`${x.from} ${x.to} ${y.from}`] : [])),
    );
    expect(turned.map(({ a, b, c }) => `${a} ${b} ${c}`).sort()).toEqual(turns.sort());
    const count = all.nodes.filter((node) => naive.steps(all, node, 'both').length > 0).length;
    expect(await ask(`SELECT * FROM EXPLAIN_PATH('${from}', '${to}') ${basis.asOf}`)).toEqual([
      { strategy: 'breadth-first', graph_node_count: BigInt(count), pll_warm: false },
    ]);
  });
});

const takesWeight = new Set(
  'GRAPH_PAGERANK DEGREE_CENTRALITY LABEL_PROPAGATION GRAPH_DIJKSTRA GRAPH_SSSP GRAPH_SPANNING_TREE GRAPH_APSP GRAPH_DIAMETER GRAPH_COMMUNITY'.split(
    ' ',
  ),
);
