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

const firstEntityPortion = 1_024;
const portionGrowth = 8;
const entityOutputRows = 256;

export const entities = patternFunction(entitiesName, 'paths and relationships', (opening) => new EntitiesOperator(opening));

interface EntityEdge {
  readonly entity: string;
  readonly from: string | null;
  readonly to: string | null;
}

/** The nodes and edges that the rows of one portion name. */
interface EntityJson {
  /** Entities by the names of the nodes; null: none was found. Of several rows by one name the first. */
  readonly nodes: Map<string, string | null>;
  /** Edges by system_from; null: none was found. */
  readonly edges: Map<string, EntityEdge | null>;
  bytes: number;
}

type PathCell = (column: number) => string | null;

class EntitiesOperator extends PiecesOperator {
  readonly #entitiesOpening: Opening;
  readonly #pathRows: Operator;
  readonly #entityLayouts: readonly EntityLayout[];
  readonly #pathRowTypes: readonly ColumnType[];
  readonly #patternColumn: number;
  #openEntityScan: Operator | null = null;
  #heldBytes = 0;

  constructor(opening: Opening) {
    super();
    const { input: pathRows, node } = opening;
    assert(pathRows !== null, 'entities stand behind rows');
    this.#entitiesOpening = opening;
    this.#pathRows = pathRows;
    const { choices: layoutChoices } = node.graph!;
    this.#entityLayouts = JSON.parse(layoutChoices.get('LAYOUT')!) as readonly EntityLayout[];
    this.#pathRowTypes = node.input!.columns.map(({ type }) => type);
    this.#patternColumn = this.#pathRowTypes.length - Number(layoutChoices.get('BEGINS'));
  }

  close(): void {
    this.#pathRows.close();
    this.#openEntityScan?.close();
    this.#openEntityScan = null;
  }

  protected *pieces(): Pieces {
    let portionRows = firstEntityPortion;
    let pathBatch = this.#pathRows.next();
    while (pathBatch !== null) {
      const portionOfPaths = new CollectedRows(this.#pathRowTypes);
      for (; pathBatch !== null && portionOfPaths.length < portionRows; pathBatch = this.#pathRows.next()) {
        if (pathBatch.count > 0) portionOfPaths.append(pathBatch);
        this.#holdEntityBytes(portionOfPaths.bytes);
        yield emptyBatch;
      }
      portionRows *= portionGrowth;
      const portionCount = portionOfPaths.length;
      const portionColumns = yield* this.#finishSteps(portionOfPaths.vectors());
      const pathCellOf =
        (row: number): PathCell =>
        (column) => {
          const at = this.#patternColumn + column;
          const cell = cellAt(portionColumns[at]!, this.#pathRowTypes[at]!, row);
          return cell === null ? null : String(cell);
        };
      const elements: EntityJson = { nodes: new Map(), edges: new Map(), bytes: portionOfPaths.bytes };
      for (let row = 0; row < portionCount; row++) {
        this.#nameEntities(pathCellOf(row), elements);
        if (row % entityOutputRows === entityOutputRows - 1) yield emptyBatch;
      }
      yield* this.#readEdges(elements);
      yield* this.#readNodes(elements);
      for (let firstOutputRow = 0; firstOutputRow < portionCount; firstOutputRow += entityOutputRows) {
        const outputCount = Math.min(entityOutputRows, portionCount - firstOutputRow);
        const builders = this.#entityLayouts.map(() => new VectorBuilder('json'));
        for (let row = firstOutputRow; row < firstOutputRow + outputCount; row++)
          for (const [i, layout] of this.#entityLayouts.entries())
            builders[i]!.append(pathEntityOf(layout, pathCellOf(row), elements));
        const selection = Int32Array.from({ length: outputCount }, (_, i) => firstOutputRow + i);
        const outputPaths = new CollectedRows(this.#pathRowTypes);
        outputPaths.append({ columns: portionColumns, selection, first: 0, count: outputCount });
        const pathVectors = yield* this.#finishSteps(outputPaths.vectors());
        yield {
          columns: [...pathVectors, ...builders.map((entityBuilder) => entityBuilder.build())],
          selection: null,
          first: 0,
          count: outputCount,
        };
      }
    }
    this.#holdEntityBytes(0);
  }

  *#finishSteps<T>(steps: Generator<undefined, T, void>): Pieces<T> {
    let drivenStep = steps.next();
    for (; !drivenStep.done; drivenStep = steps.next()) yield emptyBatch;
    return drivenStep.value;
  }

  /** Notes the names in a row. */
  #nameEntities(pathCell: PathCell, { nodes, edges }: EntityJson): void {
    for (const { edge, start, steps } of this.#entityLayouts) {
      for (const nodeColumn of edge === null ? [start] : [edge.from, edge.to]) {
        const nodeName = nodeColumn === null ? null : pathCell(nodeColumn);
        if (nodeName !== null) nodes.set(nodeName, null);
      }
      for (const { trail } of steps) for (const trailEdge of trailEdges(pathCell(trail))) edges.set(trailEdge, null);
    }
  }

  /** Reads the edges with the names of their ends. */
  *#readEdges(elements: EntityJson): Pieces {
    if (elements.edges.size === 0) return;
    const edgeScanOrdinal = Number(this.#entitiesOpening.node.graph!.choices.get('NODES'));
    const edgeScan = this.#entitiesOpening.edges[edgeScanOrdinal];
    assert(edgeScan !== undefined, 'what names edges has a scan of them');
    yield* this.#scanEntities(edgeScan, edgeScanOrdinal, elements, ({ name, entity, from, to }) => {
      if (!elements.edges.has(name)) return 0;
      elements.edges.set(name, { entity, from, to });
      for (const edgeEnd of [from, to]) if (edgeEnd !== null && !elements.nodes.has(edgeEnd)) elements.nodes.set(edgeEnd, null);
      return entity.length + name.length;
    });
  }

  *#readNodes(elements: EntityJson): Pieces {
    if (elements.nodes.size === 0 || this.#entitiesOpening.node.graph!.choices.get('NODES') === '0') return;
    const nodeKeys = new VectorBuilder('string');
    for (const name of elements.nodes.keys()) nodeKeys.append(name);
    const nodeKeyFilter = new KeyFilter();
    yield* this.#finishSteps(nodeKeyFilter.take(nodeKeys.build(), elements.nodes.size));
    const nodeScan = this.#entitiesOpening.edges[0]!;
    const scanNamedNodes = (): Operator => nodeScan([{ column: 0, filter: nodeKeyFilter }]);
    yield* this.#scanEntities(scanNamedNodes, 0, elements, ({ name, entity }) => {
      if (elements.nodes.get(name) !== null) return 0;
      elements.nodes.set(name, entity);
      return entity.length + name.length;
    });
  }

  /** `takeEntity` says how many bytes of a row it keeps. */
  *#scanEntities(
    open: () => Operator,
    number: number,
    elements: EntityJson,
    takeEntity: (entityRow: EntityEdge & { readonly name: string }) => number,
  ): Pieces {
    const { columns } = this.#entitiesOpening.node.graph!.edges[number]!;
    const indexOfColumn = (name: string): number => columns.findIndex((column) => column.name === name);
    const [nameColumn, entityColumn, fromColumn, toColumn] = [
      rowColumns.name,
      rowColumns.entity,
      rowColumns.from,
      rowColumns.to,
    ].map(indexOfColumn) as [number, number, number, number];
    this.#openEntityScan = open();
    for (let entityBatch = this.#openEntityScan.next(); entityBatch !== null; entityBatch = this.#openEntityScan.next()) {
      const text = (column: number, row: number): string | null => {
        const entityCell = column < 0 ? null : cellAt(entityBatch!.columns[column]!, columns[column]!.type, row);
        return entityCell === null ? null : String(entityCell);
      };
      for (let k = 0; k < entityBatch.count; k++) {
        const entityRow = entityBatch.selection === null ? entityBatch.first + k : entityBatch.selection[k]!;
        const entityName = text(nameColumn, entityRow);
        if (entityName === null) continue;
        const entityJson = text(entityColumn, entityRow);
        if (entityJson === null) continue;
        elements.bytes +=
          2 *
          takeEntity({ name: entityName, entity: entityJson, from: text(fromColumn, entityRow), to: text(toColumn, entityRow) });
      }
      this.#holdEntityBytes(elements.bytes);
      yield emptyBatch;
    }
    this.#openEntityScan.close();
    this.#openEntityScan = null;
  }

  #holdEntityBytes(bytes: number): void {
    this.#heldBytes = this.#entitiesOpening.execution.memory.change(this.#heldBytes, bytes);
  }
}

const trailEdges = (trail: string | null): readonly string[] => (trail === null || trail === '' ? [] : trail.split(','));

function pathEntityOf(entityLayout: EntityLayout, pathCell: PathCell, elements: EntityJson): string | null {
  const knownEntities = new Map(entityLayout.known.map(({ name, entity }) => [pathCell(name), pathCell(entity)]));
  const nodeJson = (name: string | null): string => {
    const nodeEntity = knownEntities.get(name) ?? (name === null ? null : elements.nodes.get(name)) ?? null;
    // An edge may lead to a node without a row, which has only its name.
    return nodeEntity ?? `{"labels":[],"element_id":${JSON.stringify(name)},"system_from":null,"properties":{}}`;
  };
  const relationshipOf = ({ entity, from, to }: EntityEdge): string =>
    `${entity.slice(0, -1)},${relationshipEnd('start', nodeJson(from))},${relationshipEnd('end', nodeJson(to))}}`;
  if (entityLayout.edge !== null) {
    const entity = pathCell(entityLayout.edge.entity);
    return entity === null
      ? null
      : relationshipOf({ entity, from: pathCell(entityLayout.edge.from), to: pathCell(entityLayout.edge.to) });
  }
  if (entityLayout.as === 'node') {
    const name = pathCell(entityLayout.start!);
    return name === null ? null : nodeJson(name);
  }
  const trailTexts = entityLayout.steps.map(({ trail }) => pathCell(trail));
  const startNode = entityLayout.start === null ? null : pathCell(entityLayout.start);
  const pathEdges: EntityEdge[] = [];
  for (const [i, { reversed }] of entityLayout.steps.entries()) {
    const walkedEdges = trailEdges(trailTexts[i]!).map((each) => {
      const foundEdge = elements.edges.get(each) ?? null;
      if (foundEdge === null) throw new ServiceError('REL_INTERNAL', 'a walk went along an edge that nobody has');
      return foundEdge;
    });
    pathEdges.push(...(reversed ? walkedEdges.reverse() : walkedEdges));
  }
  const relationshipsJson = `[${pathEdges.map(relationshipOf).join(',')}]`;
  if (entityLayout.as === 'relationships') return startNode === null ? null : relationshipsJson;
  if (startNode === null) return null;
  const pathNodes = [nodeJson(startNode)];
  let currentNode: string | null = startNode;
  for (const { from, to } of pathEdges) {
    currentNode = from === currentNode ? to : from;
    pathNodes.push(nodeJson(currentNode));
  }
  return `{"nodes":[${pathNodes.join(',')}],"relationships":${relationshipsJson}}`;
}

/** How a relationship names a node by its json. */
function relationshipEnd(startOrEnd: 'start' | 'end', nodeJson: string): string {
  const elementIdBegin = nodeJson.indexOf('"element_id":') + '"element_id":'.length;
  const elementIdEnd = nodeJson.indexOf(',"system_from":', elementIdBegin);
  const systemFromBegin = elementIdEnd + ',"system_from":'.length;
  return `"${startOrEnd}":${nodeJson.slice(elementIdBegin, elementIdEnd)},"${startOrEnd}_system_from":${nodeJson.slice(systemFromBegin, nodeJson.indexOf(',', systemFromBegin))}`;
}
