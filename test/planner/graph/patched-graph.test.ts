/** A graph that edges came to and went from has the arrays that it would have if all of them were read anew. */
import { expect, test } from 'vitest';
import { column, inOrder, offsetsOf, roomFor, transpose } from '../../../src/planner/graph/edge-order.ts';
import { type EdgeChange, changedGraph } from '../../../src/planner/graph/patched-graph.ts';
import { Graph, type NodeTexts } from '../../../src/planner/graph/graph.ts';
import { makeGraph } from '../../../src/planner/graph/graph-builder.ts';
import { inTextOrder } from '../../../src/planner/graph/text-order.ts';
import type { Steps } from '../../../src/planner/graph/stepped-sort.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';

const nodes = 1_500;
const names = Array.from({ length: nodes }, (_, node) => Buffer.from(`n${node}`));

function finished<T>(steps: Steps<T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}

function graphOf(edges: readonly EdgeChange[]): Graph {
  const offsets = Uint32Array.from([
    0,
    ...names.map((_, i) => names.slice(0, i + 1).reduce((sum, { length }) => sum + length, 0)),
  ]);
  const read = {
    length: edges.length,
    from: Int32Array.from(edges, ({ source }) => source),
    to: Int32Array.from(edges, ({ target }) => target),
    time: BigInt64Array.from(edges, ({ systemFrom }) => systemFrom),
    weight: Float64Array.from(edges, ({ weight }) => weight),
    link: Uint16Array.from(edges, ({ link }) => link),
    links: ['a', 'b'],
    names: { size: nodes, offsets, heap: new Uint8Array(Buffer.concat(names)) },
    visible: new Uint8Array(nodes).fill(1),
  };
  const { arrays, order } = finished(makeGraph(read));
  const texts: NodeTexts = {
    size: nodes,
    text: (node) => names[order[node]!]!.toString(),
    bytesOf: (node) => names[order[node]!]!,
    numberOf: () => -1,
    bytes: 0,
  };
  return new Graph({ texts, ...arrays });
}

const shown = ({ out, in: into, systemFrom, weights, linkOf }: Graph): unknown =>
  [out.offsets, out.neighbours, into.offsets, into.neighbours, into.edges, systemFrom, weights, linkOf].map((each) => [...each!]);

test('whatever comes and goes', () => {
  const dice = new Seeded(seedBase);
  let now = 1_700_000_000_000_000_000n;
  const drawn = (): EdgeChange => {
    // Some nodes have many of the edges.
    const node = (): number => (dice.below(3) === 0 ? dice.below(5) : dice.below(nodes));
    return { source: node(), target: node(), link: dice.below(2), systemFrom: now++, weight: dice.below(9) };
  };
  const byRead = (a: EdgeChange, b: EdgeChange): number => a.link - b.link || Number(a.systemFrom - b.systemFrom);
  let edges = Array.from({ length: 4_000 }, drawn).sort(byRead);
  const number = new Map<string, number>();
  const first = graphOf(edges);
  for (let node = 0; node < nodes; node++) number.set(first.texts.text(node), node);
  const numbered = (edge: EdgeChange): EdgeChange => {
    const of = (node: number): number => number.get(`n${node}`)!;
    return { ...edge, source: of(edge.source), target: of(edge.target) };
  };
  let graph = first;
  for (const [coming, going] of [
    [0, 1],
    [1, 0],
    [40, 0],
    [0, 40],
    [30, 30],
    [500, 300],
    [1, 1],
  ] as const) {
    const added = Array.from({ length: coming }, drawn);
    const gone = new Set(Array.from({ length: going }, () => dice.pick(edges)));
    graph = finished(changedGraph(graph, added.map(numbered), [...gone].map(numbered)))!;
    edges = [...edges.filter((edge) => !gone.has(edge)), ...added].sort(byRead);
    expect(shown(graph)).toEqual(shown(graphOf(edges)));
  }
});

test.each([1, 1 << 10, 1 << 20, 3 << 20])('edges stand in the order of their ends, of %i nodes', (size) => {
  const dice = new Seeded(seedBase);
  const count = 2_000;
  const some = (): Int32Array =>
    Int32Array.from({ length: count }, () => dice.below(dice.below(2) === 0 ? Math.min(size, 9) : size));
  const [sources, targets] = [some(), some()];
  const plain = Array.from(sources, (source, name) => ({ source, target: targets[name]!, name }));
  plain.sort((a, b) => a.source - b.source || a.target - b.target || a.name - b.name);
  const records = roomFor(count, 4);
  for (let i = 0; i < count; i++) records.words.set([sources[i]!, targets[i]!, i, ~i], 4 * i);
  const ordered = finished(inOrder(records, count, size));
  const words = (word: number): Int32Array => {
    const own = new Int32Array(count);
    column(ordered, word, own, 0, count);
    return own;
  };
  expect(Array.from(words(2))).toEqual(plain.map(({ name }) => name));
  expect(Array.from(words(3))).toEqual(plain.map(({ name }) => ~name));
  const offsets = finished(offsetsOf(ordered, count, size));
  const out = words(1);
  const into = finished(transpose(offsets, out, size));
  expect(Array.from(out)).toEqual(plain.map(({ target }) => target));
  const back = plain
    .map(({ source, target }, edge) => ({ source, target, edge }))
    .sort((a, b) => a.target - b.target || a.edge - b.edge);
  expect([...into.edges!]).toEqual(back.map(({ edge }) => edge));
  expect([...into.neighbours]).toEqual(back.map(({ source }) => source));
});

test('texts stand in the order of their bytes, however much they have in common', () => {
  const dice = new Seeded(seedBase);
  for (const common of ['', 'n', 'a stem of many letters ']) {
    for (const letters of ['ab', 'a', '\0\u0001ÿé', '0123456789'].map((each) => each.split(''))) {
      const tail = (): string => Array.from({ length: dice.below(14) }, () => dice.pick(letters)).join('');
      const texts = [...new Set(Array.from({ length: 400 }, () => common + tail()))];
      const bytes = texts.map((text) => Buffer.from(text));
      const offsets = new Uint32Array(texts.length + 1);
      for (const [i, { length }] of bytes.entries()) offsets[i + 1] = offsets[i]! + length;
      const names = { size: texts.length, offsets, heap: new Uint8Array(Buffer.concat(bytes)) };
      const codes = Int32Array.from(texts.keys()).filter(() => dice.below(4) > 0);
      const plain = Array.from(codes).sort((a, b) => Buffer.compare(bytes[a]!, bytes[b]!));
      expect(Array.from(finished(inTextOrder(codes, names)))).toEqual(plain);
    }
  }
});
