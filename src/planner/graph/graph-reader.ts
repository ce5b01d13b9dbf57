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
const looksOfEdge = 8;

export class GraphReader {
  readonly #opening: Opening;
  #open: Operator | null = null;
  /** Aborted once the result of a worker is no longer wanted. */
  readonly #cancelled = new AbortController();
  #heldBytes = 0;

  constructor(opening: Opening) {
    this.#opening = opening;
  }

  close(): void {
    this.#cancelled.abort();
    this.#closeScan();
  }

  /** That of an earlier question where nothing has changed; read anew where WHERE leaves edges out. */
  graph(): Steps<Graph> {
    const { execution } = this.#opening;
    const { of } = this;
    return of === null ? this.#read() : execution.services.graphs.find(of, () => this.#read());
  }

  /** The identity under which the graph may be shared; null where it serves this statement alone. */
  get of(): GraphSource | null {
    const { node, execution } = this.#opening;
    const { types, weight, isWhole } = node.graph!;
    if (!isWhole || execution.pinned !== null) return null;
    const { snapshot, time } = execution;
    const nodes = types.nodes.map(({ name }) => name);
    const links = types.links.map(({ name }, i) => ({ type: name, columns: node.graph!.edges[i]!.columns }));
    const read = [...new Set([...links.map(({ type }) => type), ...nodes])];
    const about = JSON.stringify([types, weight]);
    const { isolated } = types;
    return { snapshot, types: read, nodes, links, isolated, about, time };
  }

  *#read(): Steps<Graph> {
    const { node, edges, execution } = this.#opening;
    const { types, weight } = node.graph!;
    const list = new EdgeList(
      types.links.map(({ name }) => name),
      weight !== null,
    );
    for (const [i, link] of types.links.entries()) {
      const [from, to] = node.graph!.edges[i]!.columns;
      yield* this.#scan(
        link.named,
        () => edges[i]!(),
        (batch) => list.addEdges(batch, i, [from!.type, to!.type]),
        list,
      );
    }
    for (const type of types.nodes) {
      const scan = this.#nodeScan(type);
      const hidesId = scan.masked.has('id');
      const idType: ColumnType = scan.columns[0]!.type;
      const how = { isolated: types.isolated, hidesId };
      yield* this.#scan(
        type.named,
        () => new ScanOperator(scan, execution),
        (batch) => list.addNodes(batch, idType, how),
        list,
      );
    }
    const graph = list.graphOf(yield* this.#make(list.read));
    this.#hold(graph.bytes);
    return graph;
  }

  #make(read: ReadEdges): Steps<MadeGraph> {
    const { wait } = this.#opening.execution;
    const { beside } = this.#opening.execution.services;
    if (beside === null || read.length <= beside.looksMin / looksOfEdge) return makeGraph(read);
    return besideLoop(makingJob, read, { workers: beside.workers, wait, signal: this.#cancelled.signal });
  }

  *#scan(
    named: boolean,
    open: () => Operator,
    take: (batch: NonNullable<ReturnType<Operator['next']>>) => void,
    list: EdgeList,
  ): Steps<void> {
    try {
      this.#open = open();
    } catch (error) {
      if (!named && isClosed(error)) return;
      throw error;
    }
    for (let batch = this.#open.next(); batch !== null; batch = this.#open.next()) {
      if (batch.count > 0) take(batch);
      this.#hold(list.bytes);
      yield;
    }
    this.#closeScan();
  }

  #closeScan(): void {
    this.#open?.close();
    this.#open = null;
  }

  #nodeScan({ name }: NodeType): ScanNode {
    const { snapshot } = this.#opening.execution;
    const definition = snapshot.catalog.type(name);
    return {
      kind: 'scan',
      type: name,
      primaryKey: definition?.primaryKey ?? null,
      masked: snapshot.masksOf(name),
      columns: [
        { name: 'id', type: definition?.properties['id']?.type ?? 'string' },
        { name: '_pk', type: 'string' },
      ],
      keys: null,
      zones: [],
      after: null,
    };
  }

  #hold(bytes: number): void {
    this.#heldBytes = this.#opening.execution.memory.change(this.#heldBytes, bytes);
  }
}
