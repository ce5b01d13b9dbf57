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
interface Growing {
  from: Int32Array;
  to: Int32Array;
  time: BigInt64Array;
  weight: Float64Array | null;
  link: Uint16Array;
}

export class EdgeList {
  readonly #names = new TextInterner();
  readonly #ends = [new EndNumbers(this.#names), new EndNumbers(this.#names)] as const;
  readonly #links: readonly string[];
  readonly #edges: Growing;
  #length = 0;
  /** By code: 1 for a visible node. */
  #visible = new Uint8Array(1024);
  #codes = new Int32Array(0);

  constructor(links: readonly string[], weighted: boolean) {
    const room = 1024;
    this.#links = links;
    this.#edges = {
      from: new Int32Array(room),
      to: new Int32Array(room),
      time: new BigInt64Array(room),
      weight: weighted ? new Float64Array(room) : null,
      link: new Uint16Array(room),
    };
  }

  get length(): number {
    return this.#length;
  }

  get bytes(): number {
    const { from, to, time, weight, link } = this.#edges;
    const arrays = from.byteLength + to.byteLength + time.byteLength + (weight?.byteLength ?? 0) + link.byteLength;
    return this.#names.bytes + arrays + this.#visible.byteLength;
  }

  /** Columns: source, target, system_from and, of a weighted list, the weight. An edge that lacks one of them is not there. */
  addEdges(batch: Batch, link: number, endTypes: readonly [ColumnType, ColumnType]): void {
    const { count } = batch;
    this.#reserve(this.#length + count);
    const { from, to, time, weight, link: links } = this.#edges;
    const both = this.#room(2 * count);
    const sources = both.subarray(0, count);
    const targets = both.subarray(count);
    this.#numbers(batch, 0, endTypes[0], sources);
    this.#numbers(batch, 1, endTypes[1], targets);
    const times = batch.columns[2]!;
    const weights = weight === null ? null : batch.columns[3]!;
    if (times.kind !== 'i64') return;
    const [instants, read] = [floatsOf(time), floatsOf(times.values)];
    let length = this.#length;
    for (let k = 0; k < count; k++) {
      const source = sources[k]!;
      const target = targets[k]!;
      if (source === 0 || target === 0) continue;
      const row = rowAt(batch, k);
      if (weights !== null) {
        const value = numberAt(weights, row);
        if (value === null) continue;
        weight![length] = value;
      }
      from[length] = source - 1;
      to[length] = target - 1;
      instants[length] = read[row]!;
      links[length] = link;
      length++;
    }
    this.#length = length;
  }

  /**
   * Adds rows of a type by their names: of the columns `id` and `_pk` the first that has a text. Rows that no edge names become
   * nodes where `isolated` is set. A row whose `id` is hidden has no name.
   */
  addNodes(
    batch: Batch,
    idType: ColumnType,
    { isolated, hidesId }: { readonly isolated: boolean; readonly hidesId: boolean },
  ): void {
    const [id, key] = batch.columns;
    const { count } = batch;
    if (id!.kind === 'text' && id!.nulls === null) return this.#addTexts(id!, batch, isolated);
    for (let k = 0; k < count; k++) {
      const row = rowAt(batch, k);
      const named = isNull(id!, row) && !hidesId ? key! : id!;
      if (isNull(named, row)) continue;
      const code = this.#codeOf(named, row, named === id ? idType : 'string', isolated);
      if (code >= 0) this.#show(code);
    }
  }

  #addTexts(ids: Extract<Vector, { kind: 'text' }>, batch: Batch, adds: boolean): void {
    const numbers = this.#room(batch.count);
    this.#names.numbersOf(ids, batch, numbers, adds);
    for (let k = 0; k < batch.count; k++) {
      const row = rowAt(batch, k);
      // The empty text is no name.
      if (numbers[k] !== 0 && ids.offsets[row] !== ids.offsets[row + 1]) this.#show(numbers[k]! - 1);
    }
  }

  #room(count: number): Int32Array {
    if (this.#codes.length < count) this.#codes = new Int32Array(count);
    return this.#codes.subarray(0, count);
  }

  /** All edges that were read, in the form in which they go to the maker of the graph. */
  get read(): ReadEdges {
    const { from, to, time, weight, link } = this.#edges;
    const names = this.#names;
    return {
      length: this.#length,
      from,
      to,
      time,
      weight,
      link,
      links: this.#links,
      names: { size: names.size, ...names.utf8 },
      visible: this.#visible,
    };
  }

  graphOf({ arrays, order, numberOf }: MadeGraph): Graph {
    const names = this.#names;
    const texts: NodeTexts = {
      size: order.length,
      text: (node) => names.text(order[node]!),
      bytesOf: (node) => names.bytesOf(order[node]!),
      numberOf: (text) => {
        const code = names.codeOf(text);
        return code < 0 ? -1 : numberOf[code]!;
      },
      bytes: names.bytes + order.byteLength + numberOf.byteLength,
    };
    return new Graph({ texts, ...arrays });
  }

  #numbers(batch: Batch, column: 0 | 1, type: ColumnType, out: Int32Array): void {
    const vector = batch.columns[column]!;
    if (vector.kind === 'text') return this.#ends[column]!.numberTexts(vector, batch, out);
    for (let k = 0; k < batch.count; k++) {
      const row = rowAt(batch, k);
      out[k] = isNull(vector, row) ? 0 : this.#codeOf(vector, row, type, true) + 1;
    }
  }

  /** -1 where nothing is called so, and nothing is added. */
  #codeOf(vector: Vector, row: number, type: ColumnType, adds: boolean): number {
    const names = this.#names;
    if (vector.kind === 'text') {
      const { heap, offsets } = vector;
      const [start, end] = [offsets[row]!, offsets[row + 1]!];
      if (start === end) return -1;
      return adds ? names.ofBytes(heap, start, end) : names.codeOfBytes(heap, start, end);
    }
    if (vector.kind === 'dict') return this.#codeOfForeign(vector.dictionary, vector.values[row]!, adds);
    const cell = cellAt(vector, type, row);
    const text = cell === null || typeof cell === 'object' ? '' : String(cell);
    return text === '' ? -1 : adds ? names.ofText(text) : names.codeOf(text);
  }

  #codeOfForeign(dictionary: Dictionary, code: number, adds: boolean): number {
    const known = this.#names.foreign(dictionary)[code]!;
    if (known !== 0) return known - 1;
    const text = dictionary.text(code);
    if (text === '') return -1;
    return adds ? this.#names.ofForeign(dictionary, code) : this.#names.codeOf(text);
  }

  #show(code: number): void {
    if (code >= this.#visible.length) {
      const grown = new Uint8Array(Math.max(2 * this.#visible.length, this.#names.size + 1, code + 1));
      grown.set(this.#visible);
      this.#visible = grown;
    }
    this.#visible[code] = 1;
  }

  #reserve(wanted: number): void {
    const edges = this.#edges;
    if (edges.from.length >= wanted) return;
    const room = Math.max(2 * edges.from.length, wanted);
    edges.from = copyInto(edges.from, sharedArray(Int32Array, room));
    edges.to = copyInto(edges.to, sharedArray(Int32Array, room));
    edges.time = copyInto(edges.time, sharedArray(BigInt64Array, room));
    edges.weight &&= copyInto(edges.weight, sharedArray(Float64Array, room));
    edges.link = copyInto(edges.link, sharedArray(Uint16Array, room));
  }
}

function copyInto<A extends Int32Array | BigInt64Array | Float64Array | Uint16Array>(before: A, room: A): A {
  room.set(before as never);
  return room;
}

function rowAt({ selection, first }: Batch, k: number): number {
  return selection === null ? first + k : selection[k]!;
}

function isNull(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

function numberAt(vector: Vector, row: number): number | null {
  if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64') return null;
  return isNull(vector, row) ? null : Number(vector.values[row]!);
}
