/** Edges as they are read; `graph-making.ts` makes a graph of them. */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from '../operators/operator.ts';
import { EndNumbers } from './node-numbers.ts';
import { Graph, type NodeTexts } from './graph.ts';
import type { MadeGraph, ReadEdges } from './graph-builder.ts';
import { floatsOf } from './instant-floats.ts';
import { sharedArray } from './shared-array.ts';

/** Grows by doubling. */
interface GrowingEdges {
  from: Int32Array;
  to: Int32Array;
  time: BigInt64Array;
  weight: Float64Array | null;
  link: Uint16Array;
}

export class EdgeList {
  readonly #nodeNames = new TextInterner();
  readonly #endNumbers = [new EndNumbers(this.#nodeNames), new EndNumbers(this.#nodeNames)] as const;
  readonly #linkTypes: readonly string[];
  readonly #growingEdges: GrowingEdges;
  #edgeCount = 0;
  /** By code: 1 for a visible node. */
  #visibleNodes = new Uint8Array(1024);
  #endCodes = new Int32Array(0);

  constructor(linkTypes: readonly string[], isWeighted: boolean) {
    const edgeRoom = 1024;
    this.#linkTypes = linkTypes;
    this.#growingEdges = {
      from: new Int32Array(edgeRoom),
      to: new Int32Array(edgeRoom),
      time: new BigInt64Array(edgeRoom),
      weight: isWeighted ? new Float64Array(edgeRoom) : null,
      link: new Uint16Array(edgeRoom),
    };
  }

  get length(): number {
    return this.#edgeCount;
  }

  get bytes(): number {
    const { from, to, time, weight, link } = this.#growingEdges;
    const edgeArrayBytes = from.byteLength + to.byteLength + time.byteLength + (weight?.byteLength ?? 0) + link.byteLength;
    return this.#nodeNames.bytes + edgeArrayBytes + this.#visibleNodes.byteLength;
  }

  /** Columns: source, target, system_from and, of a weighted list, the weight. An edge that lacks one of them is not there. */
  addEdges(batch: Batch, link: number, endTypes: readonly [ColumnType, ColumnType]): void {
    const { count } = batch;
    this.#reserveEdges(this.#edgeCount + count);
    const { from, to, time, weight, link: links } = this.#growingEdges;
    const bothEnds = this.#endCodeRoom(2 * count);
    const sourceCodes = bothEnds.subarray(0, count);
    const targetCodes = bothEnds.subarray(count);
    this.#numberEnds(batch, 0, endTypes[0], sourceCodes);
    this.#numberEnds(batch, 1, endTypes[1], targetCodes);
    const systemTimes = batch.columns[2]!;
    const edgeWeights = weight === null ? null : batch.columns[3]!;
    if (systemTimes.kind !== 'i64') return;
    const [edgeInstants, readInstants] = [floatsOf(time), floatsOf(systemTimes.values)];
    let edgeOrdinal = this.#edgeCount;
    for (let k = 0; k < count; k++) {
      const sourceCode = sourceCodes[k]!;
      const targetCode = targetCodes[k]!;
      if (sourceCode === 0 || targetCode === 0) continue;
      const edgeRow = batchRowAt(batch, k);
      if (edgeWeights !== null) {
        const weightValue = edgeNumberAt(edgeWeights, edgeRow);
        if (weightValue === null) continue;
        weight![edgeOrdinal] = weightValue;
      }
      from[edgeOrdinal] = sourceCode - 1;
      to[edgeOrdinal] = targetCode - 1;
      edgeInstants[edgeOrdinal] = readInstants[edgeRow]!;
      links[edgeOrdinal] = link;
      edgeOrdinal++;
    }
    this.#edgeCount = edgeOrdinal;
  }

  /**
   * Adds rows of a type by their names: of the columns `idVector` and `_pk` the first that has a text. Rows that no edge names become
   * nodes where `isolated` is set. A row whose `idVector` is hidden has no name.
   */
  addNodes(
    batch: Batch,
    idType: ColumnType,
    { isolated, hidesId }: { readonly isolated: boolean; readonly hidesId: boolean },
  ): void {
    const [idVector, keyVector] = batch.columns;
    const { count } = batch;
    if (idVector!.kind === 'text' && idVector!.nulls === null) return this.#addTextNodes(idVector!, batch, isolated);
    for (let k = 0; k < count; k++) {
      const nodeRow = batchRowAt(batch, k);
      const namedVector = isNullEnd(idVector!, nodeRow) && !hidesId ? keyVector! : idVector!;
      if (isNullEnd(namedVector, nodeRow)) continue;
      const nodeCode = this.#nodeCodeOf(namedVector, nodeRow, namedVector === idVector ? idType : 'string', isolated);
      if (nodeCode >= 0) this.#showNode(nodeCode);
    }
  }

  #addTextNodes(idTexts: Extract<Vector, { kind: 'text' }>, batch: Batch, addsNodes: boolean): void {
    const nodeNumbers = this.#endCodeRoom(batch.count);
    this.#nodeNames.numbersOf(idTexts, batch, nodeNumbers, addsNodes);
    for (let k = 0; k < batch.count; k++) {
      const nodeRow = batchRowAt(batch, k);
      // The empty text is no name.
      if (nodeNumbers[k] !== 0 && idTexts.offsets[nodeRow] !== idTexts.offsets[nodeRow + 1]) this.#showNode(nodeNumbers[k]! - 1);
    }
  }

  #endCodeRoom(count: number): Int32Array {
    if (this.#endCodes.length < count) this.#endCodes = new Int32Array(count);
    return this.#endCodes.subarray(0, count);
  }

  /** All edges that were read, in the form in which they go to the maker of the graph. */
  get read(): ReadEdges {
    const { from, to, time, weight, link } = this.#growingEdges;
    const nodeNames = this.#nodeNames;
    return {
      length: this.#edgeCount,
      from,
      to,
      time,
      weight,
      link,
      links: this.#linkTypes,
      names: { size: nodeNames.size, ...nodeNames.utf8 },
      visible: this.#visibleNodes,
    };
  }

  graphOf({ arrays, order: nodeOrder, numberOf }: MadeGraph): Graph {
    const nodeNames = this.#nodeNames;
    const nodeTexts: NodeTexts = {
      size: nodeOrder.length,
      text: (node) => nodeNames.text(nodeOrder[node]!),
      bytesOf: (node) => nodeNames.bytesOf(nodeOrder[node]!),
      numberOf: (text) => {
        const nodeCode = nodeNames.codeOf(text);
        return nodeCode < 0 ? -1 : numberOf[nodeCode]!;
      },
      bytes: nodeNames.bytes + nodeOrder.byteLength + numberOf.byteLength,
    };
    return new Graph({ texts: nodeTexts, ...arrays });
  }

  #numberEnds(batch: Batch, endColumn: 0 | 1, type: ColumnType, endNumbersOut: Int32Array): void {
    const endVector = batch.columns[endColumn]!;
    if (endVector.kind === 'text') return this.#endNumbers[endColumn]!.numberTexts(endVector, batch, endNumbersOut);
    for (let k = 0; k < batch.count; k++) {
      const endRow = batchRowAt(batch, k);
      endNumbersOut[k] = isNullEnd(endVector, endRow) ? 0 : this.#nodeCodeOf(endVector, endRow, type, true) + 1;
    }
  }

  /** -1 where nothing is called so, and nothing is added. */
  #nodeCodeOf(nodeVector: Vector, row: number, type: ColumnType, addsNodes: boolean): number {
    const nodeNames = this.#nodeNames;
    if (nodeVector.kind === 'text') {
      const { heap, offsets } = nodeVector;
      const [nameStart, nameEnd] = [offsets[row]!, offsets[row + 1]!];
      if (nameStart === nameEnd) return -1;
      return addsNodes ? nodeNames.ofBytes(heap, nameStart, nameEnd) : nodeNames.codeOfBytes(heap, nameStart, nameEnd);
    }
    if (nodeVector.kind === 'dict') return this.#foreignNodeCode(nodeVector.dictionary, nodeVector.values[row]!, addsNodes);
    const nodeCell = cellAt(nodeVector, type, row);
    const nodeText = nodeCell === null || typeof nodeCell === 'object' ? '' : String(nodeCell);
    return nodeText === '' ? -1 : addsNodes ? nodeNames.ofText(nodeText) : nodeNames.codeOf(nodeText);
  }

  #foreignNodeCode(dictionary: Dictionary, code: number, addsNodes: boolean): number {
    const knownNode = this.#nodeNames.foreign(dictionary)[code]!;
    if (knownNode !== 0) return knownNode - 1;
    const nodeText = dictionary.text(code);
    if (nodeText === '') return -1;
    return addsNodes ? this.#nodeNames.ofForeign(dictionary, code) : this.#nodeNames.codeOf(nodeText);
  }

  #showNode(nodeCode: number): void {
    if (nodeCode >= this.#visibleNodes.length) {
      const grownVisible = new Uint8Array(Math.max(2 * this.#visibleNodes.length, this.#nodeNames.size + 1, nodeCode + 1));
      grownVisible.set(this.#visibleNodes);
      this.#visibleNodes = grownVisible;
    }
    this.#visibleNodes[nodeCode] = 1;
  }

  #reserveEdges(wantedEdges: number): void {
    const growingEdges = this.#growingEdges;
    if (growingEdges.from.length >= wantedEdges) return;
    const edgeRoom = Math.max(2 * growingEdges.from.length, wantedEdges);
    growingEdges.from = copyEdges(growingEdges.from, sharedArray(Int32Array, edgeRoom));
    growingEdges.to = copyEdges(growingEdges.to, sharedArray(Int32Array, edgeRoom));
    growingEdges.time = copyEdges(growingEdges.time, sharedArray(BigInt64Array, edgeRoom));
    growingEdges.weight &&= copyEdges(growingEdges.weight, sharedArray(Float64Array, edgeRoom));
    growingEdges.link = copyEdges(growingEdges.link, sharedArray(Uint16Array, edgeRoom));
  }
}

function copyEdges<A extends Int32Array | BigInt64Array | Float64Array | Uint16Array>(earlierEdges: A, edgeRoom: A): A {
  edgeRoom.set(earlierEdges as never);
  return edgeRoom;
}

function batchRowAt({ selection, first }: Batch, k: number): number {
  return selection === null ? first + k : selection[k]!;
}

function isNullEnd(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

function edgeNumberAt(weightVector: Vector, row: number): number | null {
  if (weightVector.kind !== 'i32' && weightVector.kind !== 'f64' && weightVector.kind !== 'i64') return null;
  return isNullEnd(weightVector, row) ? null : Number(weightVector.values[row]!);
}
