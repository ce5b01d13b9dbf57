/**
 * What a graph pattern answers, worked out from lists of rows in the plainest way: every row is tried for every node, every edge
 * for every step. It knows a pattern as a tree, and nothing of how one is written.
 */
export type Value = string | number | null | readonly Value[];

export interface ModelNode {
  readonly type: string;
  /** How edges name it; no other node is called so. */
  readonly id: string;
  readonly cells: Readonly<Record<string, Value>>;
}

export interface ModelEdge {
  readonly type: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
  readonly cells: Readonly<Record<string, Value>>;
}

export interface ModelGraph {
  readonly nodes: readonly ModelNode[];
  /** Those that name a node that is not there are no edges. */
  readonly edges: readonly ModelEdge[];
}

export type TermTree =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'property'; readonly of: string; readonly name: string }
  | { readonly kind: 'value'; readonly value: string | number | null }
  | {
      readonly kind: 'aggregate';
      readonly function: 'count' | 'collect' | 'sum' | 'avg' | 'min' | 'max';
      readonly of: TermTree | null;
      readonly distinct: boolean;
    };

export type ConditionTree =
  | { readonly kind: 'and' | 'or'; readonly left: ConditionTree; readonly right: ConditionTree }
  | { readonly kind: 'not'; readonly operand: ConditionTree }
  | { readonly kind: '=' | '<>' | '<' | '<=' | '>' | '>='; readonly left: TermTree; readonly right: TermTree }
  | { readonly kind: 'starts' | 'ends' | 'contains'; readonly left: TermTree; readonly right: TermTree }
  | { readonly kind: 'in'; readonly left: TermTree; readonly items: readonly TermTree[] }
  | { readonly kind: 'null'; readonly left: TermTree; readonly negated: boolean };

export interface NodeTree {
  readonly name: string | null;
  readonly labels: readonly (readonly string[])[];
  readonly properties: Readonly<Record<string, string | number>>;
}

export interface EdgeTree {
  readonly name: string | null;
  readonly types: readonly string[];
  readonly direction: 'out' | 'in' | 'both';
  readonly hops: { readonly least: number; readonly most: number } | null;
  readonly properties: Readonly<Record<string, string | number>>;
}

export interface ChainTree {
  readonly nodes: readonly NodeTree[];
  readonly edges: readonly EdgeTree[];
}

export interface ItemTree {
  readonly term: TermTree;
  readonly name: string;
}

export type ClauseTree =
  | {
      readonly kind: 'match';
      readonly optional: boolean;
      readonly chains: readonly ChainTree[];
      readonly where: ConditionTree | null;
    }
  | {
      readonly kind: 'with' | 'return';
      readonly distinct: boolean;
      readonly items: readonly ItemTree[];
      readonly where: ConditionTree | null;
      /** Sorted by all of its items, the first so many left out, and no more than so many. */
      readonly page: { readonly descending: readonly boolean[]; readonly skip: number; readonly limit: number } | null;
    };

type Bound = ModelNode | ModelEdge | readonly ModelEdge[] | Value;
type Row = ReadonlyMap<string, Bound>;

/** The cells of the rows, in the order of the items of RETURN. */
export function matched(graph: ModelGraph, clauses: readonly ClauseTree[]): Value[][] {
  const ids = new Set(graph.nodes.map(({ id }) => id));
  const edges = graph.edges.filter(({ from, to }) => ids.has(from) && ids.has(to));
  const matcher = new Matcher({ nodes: graph.nodes, edges });
  let rows: Row[] = [new Map()];
  for (const clause of clauses) {
    if (clause.kind === 'match') rows = rows.flatMap((row) => matcher.match(clause, row));
    else rows = projected(clause, rows);
  }
  return rows.map((row) => [...row.values()].map(valueOf));
}

class Matcher {
  readonly #graph: ModelGraph;

  constructor(graph: ModelGraph) {
    this.#graph = graph;
  }

  match({ chains, where, optional }: Extract<ClauseTree, { kind: 'match' }>, row: Row): Row[] {
    let found: { row: Row; gone: ReadonlySet<ModelEdge> }[] = [{ row, gone: new Set() }];
    for (const chain of chains) found = found.flatMap((each) => this.#chain(chain, each.row, each.gone));
    const rows = found.map((each) => each.row).filter((each) => where === null || holds(where, each) === true);
    if (rows.length > 0 || !optional) return rows;
    const names = chains.flatMap(({ nodes, edges }) => [...nodes, ...edges].flatMap(({ name }) => name ?? []));
    return [new Map([...row, ...names.flatMap((name): [string, Bound][] => (row.has(name) ? [] : [[name, null]]))])];
  }

  #chain({ nodes, edges }: ChainTree, row: Row, gone: ReadonlySet<ModelEdge>): { row: Row; gone: ReadonlySet<ModelEdge> }[] {
    let found = this.#graph.nodes.flatMap((at) => {
      const bound = withNode(nodes[0]!, at, row);
      return bound ? [{ row: bound, gone, at }] : [];
    });
    for (const [i, edge] of edges.entries()) {
      found = found.flatMap((each) =>
        this.#walks(edge, each.at, each.gone).flatMap(({ at, gone: then, walked }) => {
          const named = withName(edge.name, edge.hops === null ? walked[0]! : walked, each.row);
          const bound = withNode(nodes[i + 1]!, at, named);
          return bound ? [{ row: bound, gone: then, at }] : [];
        }),
      );
    }
    return found;
  }

  #walks(
    edge: EdgeTree,
    from: ModelNode,
    gone: ReadonlySet<ModelEdge>,
  ): { at: ModelNode; gone: ReadonlySet<ModelEdge>; walked: readonly ModelEdge[] }[] {
    const { least, most } = edge.hops ?? { least: 1, most: 1 };
    let reached = [{ at: from, gone, walked: [] as readonly ModelEdge[] }];
    const found = least === 0 ? [...reached] : [];
    for (let hop = 1; hop <= most; hop++) {
      reached = reached.flatMap((each) =>
        this.#graph.edges.flatMap((next) => {
          if (each.gone.has(next) || (edge.types.length > 0 && !edge.types.includes(next.type))) return [];
          if (!Object.entries(edge.properties).every(([name, value]) => next.cells[name] === value)) return [];
          const ends: string[] = [];
          if (edge.direction !== 'in' && next.from === each.at.id) ends.push(next.to);
          if (edge.direction !== 'out' && next.to === each.at.id && !(ends.length > 0 && next.from === next.to))
            ends.push(next.from);
          return ends.map((end) => ({
            at: this.#graph.nodes.find(({ id }) => id === end)!,
            gone: new Set([...each.gone, next]),
            walked: [...each.walked, next],
          }));
        }),
      );
      if (hop >= least) found.push(...reached);
    }
    return found;
  }
}

function withNode({ name, labels, properties }: NodeTree, at: ModelNode, row: Row): Row | null {
  if (!labels.every((either) => either.includes(at.type))) return null;
  if (!Object.entries(properties).every(([property, value]) => cellOf(at, property) === value)) return null;
  if (name === null) return row;
  if (!row.has(name)) return withName(name, at, row);
  return row.get(name) === at ? row : null;
}

function withName(name: string | null, bound: Bound, row: Row): Row {
  return name === null ? row : new Map([...row, [name, bound]]);
}

function cellOf(bound: Bound, property: string): Value {
  if (bound === null || typeof bound !== 'object' || Array.isArray(bound)) return null;
  const { cells, ...own } = bound as ModelNode;
  return property === 'id' && !('from' in own) ? own.id : (cells[property] ?? null);
}

function valueOf(bound: Bound): Value {
  if (bound === null || typeof bound !== 'object') return bound;
  if ('key' in bound) return bound.key;
  if ('id' in bound) return bound.id;
  return (bound as readonly Bound[]).map(valueOf);
}

function termOf(term: TermTree, row: Row): Bound {
  if (term.kind === 'value') return term.value;
  if (term.kind === 'name') return row.get(term.name) ?? null;
  if (term.kind === 'property') return cellOf(row.get(term.of) ?? null, term.name);
  throw new Error('an aggregate is of rows');
}

/** null: it is not known. */
function holds(condition: ConditionTree, row: Row): boolean | null {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const sides = [holds(condition.left, row), holds(condition.right, row)];
      const decides = condition.kind === 'or';
      return sides.includes(decides) ? decides : sides.includes(null) ? null : !decides;
    }
    case 'not': {
      const operand = holds(condition.operand, row);
      return operand === null ? null : !operand;
    }
    case 'null':
      return (termOf(condition.left, row) === null) !== condition.negated;
    case 'in': {
      const found = condition.items.map((item) => compared('=', condition.left, item, row));
      return found.includes(true) ? true : found.includes(null) ? null : false;
    }
    default:
      return compared(condition.kind, condition.left, condition.right, row);
  }
}

function compared(op: string, left: TermTree, right: TermTree, row: Row): boolean | null {
  const [a, b] = [valueOf(termOf(left, row)), valueOf(termOf(right, row))];
  if (a === null || b === null) return null;
  switch (op) {
    case '=':
      return a === b;
    case '<>':
      return a !== b;
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    case '>=':
      return a >= b;
    case 'starts':
      return String(a).startsWith(String(b));
    case 'ends':
      return String(a).endsWith(String(b));
    default:
      return String(a).includes(String(b));
  }
}

function projected(clause: Extract<ClauseTree, { kind: 'with' | 'return' }>, rows: readonly Row[]): Row[] {
  const { items, where, page, distinct } = clause;
  let found = items.some(({ term }) => term.kind === 'aggregate') ? grouped(items, rows) : rows.map((row) => ofItems(items, row));
  if (distinct) found = [...new Map(found.map((row) => [keyOf([...row.values()]), row])).values()];
  if (page !== null) {
    const { descending, skip, limit } = page;
    const order = (a: Row, b: Row): number => {
      const [left, right] = [[...a.values()], [...b.values()]].map((cells) => cells.map(valueOf));
      for (const [i, cell] of left!.entries()) {
        const sign = inOrder(cell, right![i]!, descending[i]!);
        if (sign !== 0) return sign;
      }
      return 0;
    };
    found = [...found].sort(order).slice(skip, skip + limit);
  }
  return where === null ? found : found.filter((row) => holds(where, row) === true);
}

/** NULL is last, whichever way rows are sorted. */
function inOrder(a: Value, b: Value, descending: boolean): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return (a < b ? -1 : 1) * (descending ? -1 : 1);
}

function ofItems(items: readonly ItemTree[], row: Row): Row {
  return new Map(items.map(({ term, name }) => [name, termOf(term, row)]));
}

function keyOf(cells: readonly Bound[]): string {
  return JSON.stringify(cells.map(valueOf));
}

function grouped(items: readonly ItemTree[], rows: readonly Row[]): Row[] {
  const keys = items.filter(({ term }) => term.kind !== 'aggregate');
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyOf(keys.map(({ term }) => termOf(term, row)));
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  if (keys.length === 0 && rows.length === 0) groups.set('', []);
  return [...groups.values()].map(
    (group) =>
      new Map(
        items.map(({ term, name }): [string, Bound] => [
          name,
          term.kind === 'aggregate' ? aggregated(term, group) : termOf(term, group[0]!),
        ]),
      ),
  );
}

function aggregated(term: Extract<TermTree, { kind: 'aggregate' }>, rows: readonly Row[]): Value {
  const { of, distinct } = term;
  if (of === null) return rows.length;
  const all = rows.map((row) => valueOf(termOf(of, row))).filter((value) => value !== null);
  const values = distinct ? [...new Map(all.map((value) => [JSON.stringify(value), value])).values()] : all;
  const numbers = values as number[];
  switch (term.function) {
    case 'count':
      return values.length;
    case 'collect':
      return values;
    case 'sum':
      return numbers.reduce((sum, each) => sum + each, 0);
    case 'avg':
      return values.length === 0 ? null : numbers.reduce((sum, each) => sum + each, 0) / values.length;
    case 'min':
      return values.reduce<Value>((least, each) => (least === null || each < least ? each : least), null);
    case 'max':
      return values.reduce<Value>((most, each) => (most === null || each > most ? each : most), null);
  }
}
