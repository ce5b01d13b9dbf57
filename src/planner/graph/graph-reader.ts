/**
 * Reads the graph of a call: edges by the scans of its plan, nodes by scans of their own, all of them through the gate. Types
 * that the caller did not name and may not read have no edges and no nodes for it.
 */
import type { ColumnType } from '../../log/values/value.ts';
import type { Opening } from '../calls/table-function.ts';
import type { ScanNode } from '../logical-plan.ts';
import type { Operator } from '../operators/operator.ts';
import { ScanOperator } from '../operators/scan.ts';
import { besideLoop } from './worker-task.ts';
import { EdgeList } from './edge-list.ts';
import type { Graph } from './graph.ts';
import type { GraphSource } from './edge-changes.ts';
import { makeGraph, type MadeGraph, makingJob, type ReadEdges } from './graph-builder.ts';
import { isClosed, type NodeType } from './node-and-edge-types.ts';
import type { Steps } from './stepped-sort.ts';

/** Looks that an edge costs until it has its place. */
const looksPerEdge = 8;

export class GraphReader {
  readonly #graphOpening: Opening;
  #openEdgeScan: Operator | null = null;
  /** Aborted once the result of a worker is no longer wanted. */
  readonly #cancelled = new AbortController();
  #heldBytes = 0;

  constructor(graphOpening: Opening) {
    this.#graphOpening = graphOpening;
  }

  close(): void {
    this.#cancelled.abort();
    this.#closeEdgeScan();
  }

  /** That of an earlier question where nothing has changed; read anew where WHERE leaves edges out. */
  graph(): Steps<Graph> {
    const { execution } = this.#graphOpening;
    const { graphSource } = this;
    return graphSource === null ? this.#readGraph() : execution.services.graphs.find(graphSource, () => this.#readGraph());
  }

  /** The identity under which the graph may be shared; null where it serves this statement alone. */
  get graphSource(): GraphSource | null {
    const { node, execution } = this.#graphOpening;
    const { types: graphTypes, weight, isWhole } = node.graph!;
    if (!isWhole || execution.pinned !== null) return null;
    const { snapshot, time } = execution;
    const nodeTypes = graphTypes.nodes.map(({ name }) => name);
    const linkColumns = graphTypes.links.map(({ name }, i) => ({ type: name, columns: node.graph!.edges[i]!.columns }));
    const readTypes = [...new Set([...linkColumns.map(({ type }) => type), ...nodeTypes])];
    const graphAbout = JSON.stringify([graphTypes, weight]);
    const { isolated } = graphTypes;
    return { snapshot, types: readTypes, nodes: nodeTypes, links: linkColumns, isolated, about: graphAbout, time };
  }

  *#readGraph(): Steps<Graph> {
    const { node, edges, execution } = this.#graphOpening;
    const { types, weight } = node.graph!;
    const edgeList = new EdgeList(
      types.links.map(({ name }) => name),
      weight !== null,
    );
    for (const [i, linkType] of types.links.entries()) {
      const [fromColumn, toColumn] = node.graph!.edges[i]!.columns;
      yield* this.#scanRows(
        linkType.named,
        () => edges[i]!(),
        (batch) => edgeList.addEdges(batch, i, [fromColumn!.type, toColumn!.type]),
        edgeList,
      );
    }
    for (const nodeType of types.nodes) {
      const nodeScan = this.#nodeScanOf(nodeType);
      const hidesId = nodeScan.masked.has('id');
      const nodeIdType: ColumnType = nodeScan.columns[0]!.type;
      const nodeOptions = { isolated: types.isolated, hidesId };
      yield* this.#scanRows(
        nodeType.named,
        () => new ScanOperator(nodeScan, execution),
        (batch) => edgeList.addNodes(batch, nodeIdType, nodeOptions),
        edgeList,
      );
    }
    const readGraph = edgeList.graphOf(yield* this.#buildGraph(edgeList.read));
    this.#holdGraphBytes(readGraph.bytes);
    return readGraph;
  }

  #buildGraph(edgesRead: ReadEdges): Steps<MadeGraph> {
    const { wait } = this.#graphOpening.execution;
    const { beside: graphBeside } = this.#graphOpening.execution.services;
    if (graphBeside === null || edgesRead.length <= graphBeside.looksMin / looksPerEdge) return makeGraph(edgesRead);
    return besideLoop(makingJob, edgesRead, { workers: graphBeside.workers, wait, signal: this.#cancelled.signal });
  }

  *#scanRows(
    isNamed: boolean,
    openScan: () => Operator,
    takeBatch: (scanBatch: NonNullable<ReturnType<Operator['next']>>) => void,
    edgeList: EdgeList,
  ): Steps<void> {
    try {
      this.#openEdgeScan = openScan();
    } catch (error) {
      if (!isNamed && isClosed(error)) return;
      throw error;
    }
    for (let scanBatch = this.#openEdgeScan.next(); scanBatch !== null; scanBatch = this.#openEdgeScan.next()) {
      if (scanBatch.count > 0) takeBatch(scanBatch);
      this.#holdGraphBytes(edgeList.bytes);
      yield;
    }
    this.#closeEdgeScan();
  }

  #closeEdgeScan(): void {
    this.#openEdgeScan?.close();
    this.#openEdgeScan = null;
  }

  #nodeScanOf({ name: nodeTypeName }: NodeType): ScanNode {
    const { snapshot } = this.#graphOpening.execution;
    const nodeDefinition = snapshot.catalog.type(nodeTypeName);
    return {
      kind: 'scan',
      type: nodeTypeName,
      primaryKey: nodeDefinition?.primaryKey ?? null,
      masked: snapshot.masksOf(nodeTypeName),
      columns: [
        { name: 'id', type: nodeDefinition?.properties['id']?.type ?? 'string' },
        { name: '_pk', type: 'string' },
      ],
      keys: null,
      zones: [],
      after: null,
    };
  }

  #holdGraphBytes(graphBytes: number): void {
    this.#heldBytes = this.#graphOpening.execution.memory.change(this.#heldBytes, graphBytes);
  }
}
