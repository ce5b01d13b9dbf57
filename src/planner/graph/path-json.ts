/**
 * Paths and relationships of a graph pattern as json. A walk knows its edges by their instants and its ends by their names: their
 * rows are read by the scans of the plan, so a path shows what the caller may see of each. Rows stay in their order; they are
 * taken in ever larger portions, so that a few need no more than a few, and all of them read the graph a handful of times.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Opening } from '../calls/table-function.ts';
import { CollectedRows } from '../operators/collected-rows.ts';
import { KeyFilter } from '../operators/key-filter.ts';
import { emptyBatch, type Operator, type Pieces, PiecesOperator } from '../operators/operator.ts';
import { entitiesName, type EntityLayout, rowColumns } from './pattern-columns.ts';
import { patternFunction } from './inner-pattern-function.ts';

const firstPortion = 1_024;
const portionsGrow = 8;
const outputRows = 256;

export const entities = patternFunction(entitiesName, 'paths and relationships', (opening) => new EntitiesOperator(opening));

interface Edge {
  readonly entity: string;
  readonly from: string | null;
  readonly to: string | null;
}

/** The nodes and edges that the rows of one portion name. */
interface EntityJson {
  /** Entities by the names of the nodes; null: none was found. Of several rows by one name the first. */
  readonly nodes: Map<string, string | null>;
  /** Edges by system_from; null: none was found. */
  readonly edges: Map<string, Edge | null>;
  bytes: number;
}

type Cell = (column: number) => string | null;

class EntitiesOperator extends PiecesOperator {
  readonly #opening: Opening;
  readonly #input: Operator;
  readonly #layouts: readonly EntityLayout[];
  readonly #types: readonly ColumnType[];
  readonly #begins: number;
  #open: Operator | null = null;
  #heldBytes = 0;

  constructor(opening: Opening) {
    super();
    const { input, node } = opening;
    assert(input !== null, 'entities stand behind rows');
    this.#opening = opening;
    this.#input = input;
    const { choices } = node.graph!;
    this.#layouts = JSON.parse(choices.get('LAYOUT')!) as readonly EntityLayout[];
    this.#types = node.input!.columns.map(({ type }) => type);
    this.#begins = this.#types.length - Number(choices.get('BEGINS'));
  }

  close(): void {
    this.#input.close();
    this.#open?.close();
    this.#open = null;
  }

  protected *pieces(): Pieces {
    let portion = firstPortion;
    let batch = this.#input.next();
    while (batch !== null) {
      const rows = new CollectedRows(this.#types);
      for (; batch !== null && rows.length < portion; batch = this.#input.next()) {
        if (batch.count > 0) rows.append(batch);
        this.#hold(rows.bytes);
        yield emptyBatch;
      }
      portion *= portionsGrow;
      const count = rows.length;
      const columns = yield* this.#drive(rows.vectors());
      const cellsOf =
        (row: number): Cell =>
        (column) => {
          const at = this.#begins + column;
          const cell = cellAt(columns[at]!, this.#types[at]!, row);
          return cell === null ? null : String(cell);
        };
      const elements: EntityJson = { nodes: new Map(), edges: new Map(), bytes: rows.bytes };
      for (let row = 0; row < count; row++) {
        this.#name(cellsOf(row), elements);
        if (row % outputRows === outputRows - 1) yield emptyBatch;
      }
      yield* this.#readEdges(elements);
      yield* this.#readNodes(elements);
      for (let first = 0; first < count; first += outputRows) {
        const most = Math.min(outputRows, count - first);
        const builders = this.#layouts.map(() => new VectorBuilder('json'));
        for (let row = first; row < first + most; row++)
          for (const [i, layout] of this.#layouts.entries()) builders[i]!.append(entityOf(layout, cellsOf(row), elements));
        const selection = Int32Array.from({ length: most }, (_, i) => first + i);
        const output = new CollectedRows(this.#types);
        output.append({ columns, selection, first: 0, count: most });
        const through = yield* this.#drive(output.vectors());
        yield { columns: [...through, ...builders.map((each) => each.build())], selection: null, first: 0, count: most };
      }
    }
    this.#hold(0);
  }

  *#drive<T>(steps: Generator<undefined, T, void>): Pieces<T> {
    let step = steps.next();
    for (; !step.done; step = steps.next()) yield emptyBatch;
    return step.value;
  }

  /** Notes the names in a row. */
  #name(cell: Cell, { nodes, edges }: EntityJson): void {
    for (const { edge, start, steps } of this.#layouts) {
      for (const column of edge === null ? [start] : [edge.from, edge.to]) {
        const name = column === null ? null : cell(column);
        if (name !== null) nodes.set(name, null);
      }
      for (const { trail } of steps) for (const each of edgesOf(cell(trail))) edges.set(each, null);
    }
  }

  /** Reads the edges with the names of their ends. */
  *#readEdges(elements: EntityJson): Pieces {
    if (elements.edges.size === 0) return;
    const number = Number(this.#opening.node.graph!.choices.get('NODES'));
    const scan = this.#opening.edges[number];
    assert(scan !== undefined, 'what names edges has a scan of them');
    yield* this.#scan(scan, number, elements, ({ name, entity, from, to }) => {
      if (!elements.edges.has(name)) return 0;
      elements.edges.set(name, { entity, from, to });
      for (const end of [from, to]) if (end !== null && !elements.nodes.has(end)) elements.nodes.set(end, null);
      return entity.length + name.length;
    });
  }

  *#readNodes(elements: EntityJson): Pieces {
    if (elements.nodes.size === 0 || this.#opening.node.graph!.choices.get('NODES') === '0') return;
    const keys = new VectorBuilder('string');
    for (const name of elements.nodes.keys()) keys.append(name);
    const filter = new KeyFilter();
    yield* this.#drive(filter.take(keys.build(), elements.nodes.size));
    const scan = this.#opening.edges[0]!;
    const scanFiltered = (): Operator => scan([{ column: 0, filter }]);
    yield* this.#scan(scanFiltered, 0, elements, ({ name, entity }) => {
      if (elements.nodes.get(name) !== null) return 0;
      elements.nodes.set(name, entity);
      return entity.length + name.length;
    });
  }

  /** `take` says how many bytes of a row it keeps. */
  *#scan(
    open: () => Operator,
    number: number,
    elements: EntityJson,
    take: (row: Edge & { readonly name: string }) => number,
  ): Pieces {
    const { columns } = this.#opening.node.graph!.edges[number]!;
    const indexOfColumn = (name: string): number => columns.findIndex((column) => column.name === name);
    const [name, entity, from, to] = [rowColumns.name, rowColumns.entity, rowColumns.from, rowColumns.to].map(indexOfColumn) as [
      number,
      number,
      number,
      number,
    ];
    this.#open = open();
    for (let batch = this.#open.next(); batch !== null; batch = this.#open.next()) {
      const text = (column: number, row: number): string | null => {
        const cell = column < 0 ? null : cellAt(batch!.columns[column]!, columns[column]!.type, row);
        return cell === null ? null : String(cell);
      };
      for (let k = 0; k < batch.count; k++) {
        const row = batch.selection === null ? batch.first + k : batch.selection[k]!;
        const called = text(name, row);
        if (called === null) continue;
        const json = text(entity, row);
        if (json === null) continue;
        elements.bytes += 2 * take({ name: called, entity: json, from: text(from, row), to: text(to, row) });
      }
      this.#hold(elements.bytes);
      yield emptyBatch;
    }
    this.#open.close();
    this.#open = null;
  }

  #hold(bytes: number): void {
    this.#heldBytes = this.#opening.execution.memory.change(this.#heldBytes, bytes);
  }
}

const edgesOf = (trail: string | null): readonly string[] => (trail === null || trail === '' ? [] : trail.split(','));

function entityOf(layout: EntityLayout, cell: Cell, elements: EntityJson): string | null {
  const known = new Map(layout.known.map(({ name, entity }) => [cell(name), cell(entity)]));
  const nodeOf = (name: string | null): string => {
    const there = known.get(name) ?? (name === null ? null : elements.nodes.get(name)) ?? null;
    // An edge may lead to a node without a row, which has only its name.
    return there ?? `{"labels":[],"element_id":${JSON.stringify(name)},"system_from":null,"properties":{}}`;
  };
  const relationshipOf = ({ entity, from, to }: Edge): string =>
    `${entity.slice(0, -1)},${endOf('start', nodeOf(from))},${endOf('end', nodeOf(to))}}`;
  if (layout.edge !== null) {
    const entity = cell(layout.edge.entity);
    return entity === null ? null : relationshipOf({ entity, from: cell(layout.edge.from), to: cell(layout.edge.to) });
  }
  if (layout.as === 'node') {
    const name = cell(layout.start!);
    return name === null ? null : nodeOf(name);
  }
  const names = layout.steps.map(({ trail }) => cell(trail));
  const start = layout.start === null ? null : cell(layout.start);
  const edges: Edge[] = [];
  for (const [i, { reversed }] of layout.steps.entries()) {
    const walked = edgesOf(names[i]!).map((each) => {
      const edge = elements.edges.get(each) ?? null;
      if (edge === null) throw new ServiceError('REL_INTERNAL', 'a walk went along an edge that nobody has');
      return edge;
    });
    edges.push(...(reversed ? walked.reverse() : walked));
  }
  const relationships = `[${edges.map(relationshipOf).join(',')}]`;
  if (layout.as === 'relationships') return start === null ? null : relationships;
  if (start === null) return null;
  const nodes = [nodeOf(start)];
  let at: string | null = start;
  for (const { from, to } of edges) {
    at = from === at ? to : from;
    nodes.push(nodeOf(at));
  }
  return `{"nodes":[${nodes.join(',')}],"relationships":${relationships}}`;
}

/** How a relationship names a node by its json. */
function endOf(which: 'start' | 'end', node: string): string {
  const begin = node.indexOf('"element_id":') + '"element_id":'.length;
  const end = node.indexOf(',"system_from":', begin);
  const from = end + ',"system_from":'.length;
  return `"${which}":${node.slice(begin, end)},"${which}_system_from":${node.slice(from, node.indexOf(',', from))}`;
}
