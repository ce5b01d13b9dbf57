/**
 * Random small graphs, and random patterns over them, answered by the store and by `pattern-matcher.ts`. Each graph is of an
 * organisation of its own, so that one catalog serves all of them.
 *
 *   npm run patterns -- [--n 20000] [--seed 1]
 */
import type { Caller } from '../../../src/governance/caller.ts';
import { ServiceError } from '../../../src/errors.ts';
import { analyst, TestStore } from '../../harness.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { type Entity, namedCell } from './entity-names.ts';
import {
  type ChainTree,
  type ClauseTree,
  type ConditionTree,
  type EdgeTree,
  type ItemTree,
  matched,
  type ModelEdge,
  type ModelGraph,
  type ModelNode,
  type NodeTree,
  type TermTree,
  type Value,
} from './pattern-matcher.ts';

export interface Mismatch {
  readonly pattern: string;
  readonly graph: string;
  readonly store: string;
  readonly model: string;
}

const patternsOfGraph = 40;

export async function comparePatterns(seed: number, patterns: number): Promise<{ rows: number; mismatches: Mismatch[] }> {
  const store = await TestStore.open('2024-01-01', { SERVICE_QUERY_QUOTA: '100000000000' });
  try {
    for (const [name, properties] of Object.entries(nodeTypes)) await store.register(name, properties, 'id');
    for (const name of linkTypes) await store.register(name, linkProperties, 'id');
    const mismatches: Mismatch[] = [];
    let rows = 0;
    for (let first = 0; first < patterns; first += patternsOfGraph) {
      const dice = new Seeded(seed * 1_000_003 + first);
      const who: Caller = { ...analyst, path: `g${first}` };
      const graph = await randomGraph(dice, store, who);
      for (let i = first; i < Math.min(patterns, first + patternsOfGraph); i++) {
        const clauses = new PatternMaker(dice).clauses();
        const model = shown(matched(graph, clauses), clauses);
        const pattern = textOf(clauses);
        const answer = await answered(store, pattern, { who, clauses, graph });
        rows += model.length;
        if (answer !== model.join('\n')) {
          mismatches.push({ pattern, graph: JSON.stringify(graph), store: answer, model: model.join('\n') });
        }
      }
    }
    return { rows, mismatches };
  } finally {
    await store.close();
  }
}

interface Case {
  readonly who: Caller;
  readonly clauses: readonly ClauseTree[];
  readonly graph: ModelGraph;
}

/** Its name, where all that it shows is as the graph has it. */
function checkedName({ labels, type, element_id: id, start, end, properties }: Entity, graph: ModelGraph): string {
  const key = id.slice(id.indexOf('/') + 1);
  const elementOf = (name: string): readonly string[] => [
    name,
    ...graph.nodes.filter((node) => node.id === name).map((node) => `${node.type}/${name}`),
  ];
  const shows = (cells: Readonly<Record<string, unknown>>): boolean =>
    Object.entries(cells).every(([name, cell]) => (properties[name] ?? null) === cell);
  if (labels === undefined) {
    const edge = graph.edges.find((each) => each.type === type && each.key === key);
    const isRight =
      edge !== undefined && shows(edge.cells) && elementOf(edge.from).includes(start!) && elementOf(edge.to).includes(end!);
    return isRight ? key : `no such edge: ${id} from ${start} to ${end}`;
  }
  const node = graph.nodes.find((each) => each.type === labels[0] && each.id === key);
  const isRight = node === undefined ? labels.length === 0 && graph.nodes.every((each) => each.id !== id) : shows(node.cells);
  return isRight ? key : `no such node: ${id}`;
}

async function answered(store: TestStore, pattern: string, { who, clauses, graph }: Case): Promise<string> {
  try {
    const rows = await store.rows(pattern, who);
    const items = (clauses.at(-1) as Extract<ClauseTree, { kind: 'with' | 'return' }>).items;
    const cells = rows.map((row) => {
      // A node or an edge alone comes with the columns of its row.
      const own = items.length === 1 && !('n0' in row) ? [row['_pk']!] : items.map(({ name }) => row[name]!);
      return own.map((given, i): Value => {
        const cell = namedCell(given, (entity) => checkedName(entity, graph)) as Value | bigint;
        const { term } = items[i]!;
        if (term.kind === 'aggregate' && term.function === 'collect') return JSON.parse(String(cell)) as Value;
        return typeof cell === 'bigint' ? Number(cell) : (cell as Value);
      });
    });
    return shown(cells, clauses).join('\n');
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** Rows in their order where the pattern says one; lists in any. */
function shown(rows: readonly (readonly Value[])[], clauses: readonly ClauseTree[]): string[] {
  const plain = (value: Value): Value =>
    Array.isArray(value) ? value.map(plain).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : value;
  const texts = rows.map((row) => JSON.stringify(row.map(plain)));
  const last = clauses.at(-1)!;
  return last.kind !== 'match' && last.page !== null ? texts : texts.sort();
}

const nodeTypes = {
  A: { id: 'string', k: 'integer', s: 'string' },
  B: { id: 'string', k: 'integer', s: 'string' },
  N: { id: 'integer', k: 'integer' },
} as const;
const linkTypes = ['T', 'U'] as const;
const linkProperties = { id: 'string', from_id: 'string', to_id: 'string', w: 'integer' } as const;
const texts = ['x', 'y', 'x y', "it's", 'a\\b', 'one\ntwo', 'é"😀'] as const;

async function randomGraph(dice: Seeded, store: TestStore, who: Caller): Promise<ModelGraph> {
  const nodes: ModelNode[] = [];
  for (const type of ['A', 'B', 'N']) {
    const count = 1 + dice.below(3);
    for (let i = 1; i <= count; i++) {
      const id = type === 'N' ? String(i) : `${type.toLowerCase()}${i}`;
      const k = dice.chance(0.2) ? null : dice.below(3);
      const s = type === 'N' || dice.chance(0.2) ? null : dice.pick(texts);
      nodes.push({ type, id, cells: { k, s } });
    }
  }
  const ends = [...nodes.map(({ id }) => id), 'ghost'];
  const edges = linkTypes.flatMap((type) =>
    Array.from({ length: 2 + dice.below(6) }, (_, i): ModelEdge => {
      const [from, to] = [dice.pick(ends), dice.pick(ends)];
      return { type, key: `${type.toLowerCase()}${i}`, from, to, cells: { w: dice.chance(0.2) ? null : dice.below(3) } };
    }),
  );
  for (const type of ['A', 'B', 'N']) {
    const rows = nodes
      .filter((node) => node.type === type)
      .map(({ id, cells }) => (type === 'N' ? { id: Number(id), k: cells['k'] } : { id, ...cells }));
    if (rows.length > 0) await store.put(type, rows, who);
  }
  for (const type of linkTypes) {
    const rows = edges
      .filter((edge) => edge.type === type)
      .map(({ key, from, to, cells }) => ({ id: key, from_id: from, to_id: to, ...cells }));
    if (rows.length > 0) await store.put(type, rows, who);
  }
  return { nodes, edges };
}

type Kind = 'node' | 'edge' | 'walk' | 'number' | 'text' | 'other';

class PatternMaker {
  readonly #dice: Seeded;
  /** What is bound, and which types a node may be of; null: of any. */
  #bound = new Map<string, { readonly kind: Kind; readonly labels: readonly string[] | null }>();
  #edges = 0;
  #names = 0;

  constructor(dice: Seeded) {
    this.#dice = dice;
  }

  clauses(): ClauseTree[] {
    const dice = this.#dice;
    const clauses: ClauseTree[] = [this.#match(dice.chance(0.25))];
    for (let more = dice.below(3); more > 0; more--) {
      clauses.push(dice.chance(0.3) ? this.#projection('with') : this.#match(dice.chance(0.5)));
    }
    clauses.push(this.#projection('return'));
    return clauses;
  }

  #match(optional: boolean): ClauseTree {
    const dice = this.#dice;
    const chains = Array.from({ length: dice.chance(0.2) ? 2 : 1 }, () => this.#chain());
    const where = dice.chance(0.3) ? this.#condition(2) : null;
    return { kind: 'match', optional, chains, where };
  }

  #chain(): ChainTree {
    const nodes = [this.#node()];
    const edges: EdgeTree[] = [];
    // What is tried grows with the product of all that is matched.
    for (let steps = this.#dice.below(3); steps > 0 && this.#edges < 3; steps--) {
      edges.push(this.#edge());
      nodes.push(this.#node());
    }
    return { nodes, edges };
  }

  #node(): NodeTree {
    const dice = this.#dice;
    const known = [...this.#bound].flatMap(([name, { kind }]) => (kind === 'node' ? [name] : []));
    const labels = dice.chance(0.6)
      ? []
      : [dice.chance(0.2) ? ['A', 'B'] : [dice.pick(['A', 'B', 'N'])], ...(dice.chance(0.05) ? [['A', 'N']] : [])];
    const properties: Record<string, string | number> = {};
    const isInteger = (only: readonly (readonly string[])[]): boolean => only.some((either) => either.includes('N'));
    if (dice.chance(0.08)) properties['k'] = dice.below(3);
    if (dice.chance(0.6) && known.length > 0) {
      const name = dice.pick(known);
      // A label of integers as keys would make others of its properties.
      return { name, labels: dice.chance(0.2) ? [dice.pick([['A'], ['B'], ['A', 'B']])] : [], properties };
    }
    if (dice.chance(0.1) && !isInteger(labels)) properties['id'] = dice.pick(['a1', 'b1', ...(labels.length === 0 ? ['1'] : [])]);
    if (dice.chance(0.25)) return { name: null, labels, properties };
    const name = `${dice.pick(['a', 'b', 'c'])}${++this.#names}`;
    this.#bound.set(name, { kind: 'node', labels: labels[0] ?? null });
    return { name, labels, properties };
  }

  #edge(): EdgeTree {
    const dice = this.#dice;
    this.#edges++;
    const types = dice.pick([[], [], ['T'], ['T'], ['U'], ['T', 'U']]);
    const direction = dice.pick(['out', 'out', 'in', 'both'] as const);
    const [least, most] = dice.pick([
      [0, 1],
      [0, 2],
      [1, 2],
      [2, 2],
      [0, 0],
      [1, 3],
    ]) as [number, number];
    const hops = dice.chance(0.3) ? { least, most } : null;
    const properties: Record<string, number> = hops === null && dice.chance(0.15) ? { w: dice.below(3) } : {};
    const name = dice.chance(0.4) ? `r${++this.#names}` : null;
    if (name !== null) this.#bound.set(name, { kind: hops === null ? 'edge' : 'walk', labels: null });
    return { name, types, direction, hops, properties };
  }

  #named(...kinds: Kind[]): string[] {
    return [...this.#bound].flatMap(([name, { kind }]) => (kinds.includes(kind) ? [name] : []));
  }

  /** null: nothing is there that has one. */
  #number(): TermTree | null {
    const dice = this.#dice;
    const all = this.#named('node', 'edge', 'number');
    if (all.length === 0) return null;
    const name = dice.pick(all);
    const { kind } = this.#bound.get(name)!;
    if (kind === 'number') return { kind: 'name', name };
    return { kind: 'property', of: name, name: kind === 'edge' ? 'w' : 'k' };
  }

  #text(): TermTree | null {
    const dice = this.#dice;
    const all = this.#named('node', 'text').filter((name) => this.#hasTexts(name));
    if (all.length === 0) return null;
    const name = dice.pick(all);
    if (this.#bound.get(name)!.kind === 'text') return { kind: 'name', name };
    return { kind: 'property', of: name, name: dice.pick(['id', 's']) };
  }

  #hasTexts(name: string): boolean {
    const { labels } = this.#bound.get(name)!;
    return labels === null || !labels.includes('N');
  }

  #condition(depth: number): ConditionTree | null {
    const dice = this.#dice;
    if (depth > 0 && dice.chance(0.4)) {
      const [left, right] = [this.#condition(depth - 1), this.#condition(depth - 1)];
      if (left === null || right === null) return left ?? right;
      return dice.chance(0.2) ? { kind: 'not', operand: left } : { kind: dice.pick(['and', 'or'] as const), left, right };
    }
    const isText = dice.chance(0.4);
    const left = isText ? this.#text() : this.#number();
    if (left === null) return null;
    const literal = (): TermTree => ({ kind: 'value', value: isText ? dice.pick(['a1', 'b2', ...texts]) : dice.below(3) });
    const right = (dice.chance(0.3) ? (isText ? this.#text() : this.#number()) : null) ?? literal();
    if (dice.chance(0.2)) return { kind: 'null', left, negated: dice.chance(0.5) };
    if (dice.chance(0.15)) return { kind: 'in', left, items: [literal(), literal()] };
    if (isText && dice.chance(0.4)) return { kind: dice.pick(['starts', 'ends', 'contains'] as const), left, right };
    return { kind: dice.pick(['=', '=', '<>', '<', '<=', '>', '>='] as const), left, right };
  }

  #item(): { term: TermTree; becomes: { kind: Kind; labels: readonly string[] | null } } {
    const dice = this.#dice;
    const other = { kind: 'other', labels: null } as const;
    if (dice.chance(0.35)) {
      const counted = this.#named('node', 'edge', 'walk', 'number', 'text');
      const name = dice.chance(0.3) || counted.length === 0 ? null : dice.pick(counted);
      const distinct = dice.chance(0.25);
      const number = this.#number();
      const text = this.#text();
      const called = dice.pick(['count', 'count', 'collect', 'sum', 'avg', 'min', 'max'] as const);
      const isNumber = { kind: 'number', labels: null } as const;
      if (called === 'count' || number === null) {
        const isPath = name !== null && this.#bound.get(name)!.kind === 'walk';
        const of: TermTree | null = name === null ? null : { kind: 'name', name };
        return {
          term: { kind: 'aggregate', function: 'count', of, distinct: distinct && of !== null && !isPath },
          becomes: isNumber,
        };
      }
      if (called === 'collect')
        return { term: { kind: 'aggregate', function: called, of: text ?? number, distinct }, becomes: other };
      return {
        term: { kind: 'aggregate', function: called, of: number, distinct },
        becomes: called === 'avg' ? other : isNumber,
      };
    }
    const whole = this.#named('node', 'edge', 'number', 'text');
    if (whole.length > 0 && dice.chance(0.6)) {
      const name = dice.pick(whole);
      return { term: { kind: 'name', name }, becomes: this.#bound.get(name)! };
    }
    const number = this.#number();
    const term = dice.chance(0.5) ? (this.#text() ?? number) : number;
    if (term === null)
      return {
        term: { kind: 'aggregate', function: 'count', of: null, distinct: false },
        becomes: { kind: 'number', labels: null },
      };
    const isText =
      term.kind === 'property'
        ? term.name === 'id' || term.name === 's'
        : this.#bound.get((term as { name: string }).name)?.kind === 'text';
    return { term, becomes: { kind: isText ? 'text' : 'number', labels: null } };
  }

  #projection(kind: 'with' | 'return'): ClauseTree {
    const dice = this.#dice;
    const made = Array.from({ length: 1 + dice.below(3) }, () => this.#item());
    const items: ItemTree[] = [];
    const bound = new Map<string, { kind: Kind; labels: readonly string[] | null }>();
    for (const [i, { term, becomes }] of made.entries()) {
      const name = kind === 'return' ? `n${i}` : `v${++this.#names}`;
      items.push({ term, name });
      bound.set(name, becomes);
    }
    const sortable = items.every(
      ({ term }) => term.kind !== 'aggregate' || (term.function !== 'collect' && term.function !== 'avg'),
    );
    const page =
      sortable && dice.chance(0.3)
        ? { descending: items.map(() => dice.chance(0.4)), skip: dice.below(2), limit: dice.below(6) }
        : null;
    const distinct = dice.chance(0.2);
    this.#bound = bound;
    const where = kind === 'with' && dice.chance(0.3) ? this.#condition(1) : null;
    return { kind, distinct, items, where, page };
  }
}

export function textOf(clauses: readonly ClauseTree[]): string {
  return clauses.map(clauseText).join(' ');
}

function clauseText(clause: ClauseTree): string {
  const where = clause.where === null ? '' : ` WHERE ${conditionText(clause.where)}`;
  if (clause.kind === 'match')
    return `${clause.optional ? 'OPTIONAL ' : ''}MATCH ${clause.chains.map(chainText).join(', ')}${where}`;
  const { kind, distinct, items, page } = clause;
  const list = items.map(({ term, name }) => `${termText(term)} AS ${name}`).join(', ');
  const order = page && items.map(({ name }, i) => name + (page.descending[i] ? ' DESC' : '')).join(', ');
  const paged = page === null ? '' : ` ORDER BY ${order} SKIP ${page.skip} LIMIT ${page.limit}`;
  return `${kind.toUpperCase()} ${distinct ? 'DISTINCT ' : ''}${list}${paged}${where}`;
}

function chainText({ nodes, edges }: ChainTree): string {
  return nodes.map((node, i) => nodeText(node) + (edges[i] ? edgeText(edges[i]) : '')).join('');
}

function nodeText({ name, labels, properties }: NodeTree): string {
  return `(${name ?? ''}${labels.map((either) => `:${either.join('|')}`).join('')}${propertiesText(properties)})`;
}

function edgeText({ name, types, direction, hops, properties }: EdgeTree): string {
  const length = hops === null ? '' : hops.least === hops.most ? `*${hops.least}` : `*${hops.least}..${hops.most}`;
  const inner = `${name ?? ''}${types.length === 0 ? '' : `:${types.join('|')}`}${length}${propertiesText(properties)}`;
  return `${direction === 'in' ? '<' : ''}-[${inner}]-${direction === 'out' ? '>' : ''}`;
}

function propertiesText(properties: Readonly<Record<string, string | number>>): string {
  const list = Object.entries(properties).map(([name, value]) => `${name}: ${valueText(value)}`);
  return list.length === 0 ? '' : ` {${list.join(', ')}}`;
}

function conditionText(condition: ConditionTree): string {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return `(${conditionText(condition.left)} ${condition.kind.toUpperCase()} ${conditionText(condition.right)})`;
    case 'not':
      return `NOT (${conditionText(condition.operand)})`;
    case 'null':
      return `${termText(condition.left)} IS ${condition.negated ? 'NOT ' : ''}NULL`;
    case 'in':
      return `${termText(condition.left)} IN [${condition.items.map(termText).join(', ')}]`;
    case 'starts':
    case 'ends':
      return `${termText(condition.left)} ${condition.kind.toUpperCase()} WITH ${termText(condition.right)}`;
    case 'contains':
      return `${termText(condition.left)} CONTAINS ${termText(condition.right)}`;
    default:
      return `${termText(condition.left)} ${condition.kind} ${termText(condition.right)}`;
  }
}

function termText(term: TermTree): string {
  switch (term.kind) {
    case 'name':
      return term.name;
    case 'property':
      return `${term.of}.${term.name}`;
    case 'value':
      return valueText(term.value);
    case 'aggregate':
      return `${term.function}(${term.distinct ? 'DISTINCT ' : ''}${term.of === null ? '*' : termText(term.of)})`;
  }
}

/** As openCypher escapes them. */
function valueText(value: string | number | null): string {
  if (typeof value !== 'string') return String(value);
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n').replaceAll('é', '\\u00e9')}'`;
}
