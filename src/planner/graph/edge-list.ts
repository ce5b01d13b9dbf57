/** Edges as they are read, and how they become a graph. Both go in bounded steps: a generator yields between any two. */
import type { Dictionary, Vector } from '../../log/columns.ts';
import { cellAt } from '../../log/vector-builder.ts';
import type { ColumnType } from '../../log/value.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from '../operators/operator.ts';
import { type Adjacency, Graph, type NodeTexts } from './graph.ts';
import { turned } from './graph-delta.ts';
import { sorted, type Steps } from './steps.ts';

/** Edges or nodes that are looked at between two looks at the clock. */
const atOnce = 1 << 15;

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
  readonly #links: readonly string[];
  readonly #edges: Growing;
  #length = 0;
  /** By code: 1 of a visible node. */
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
    if (this.#codes.length < 2 * count) this.#codes = new Int32Array(2 * count);
    const sources = this.#codes.subarray(0, count);
    const targets = this.#codes.subarray(count, 2 * count);
    this.#numbers(batch, 0, endTypes[0], sources);
    this.#numbers(batch, 1, endTypes[1], targets);
    const times = batch.columns[2]!;
    const weights = weight === null ? null : batch.columns[3]!;
    if (times.kind !== 'i64') return;
    const [instants, read] = [bits(time), bits(times.values)];
    let length = this.#length;
    for (let place = 0; place < count; place++) {
      const source = sources[place]!;
      const target = targets[place]!;
      if (source === 0 || target === 0) continue;
      const row = rowAt(batch, place);
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
   * Rows of a type, by what names them: columns `id` and `_pk`, of which the first that has a text counts. Those that no edge
   * names become nodes where `isolated` says so. A row whose `id` is hidden is called nothing.
   */
  addNodes(
    batch: Batch,
    idType: ColumnType,
    { isolated, hidesId }: { readonly isolated: boolean; readonly hidesId: boolean },
  ): void {
    const [id, key] = batch.columns;
    const { count } = batch;
    for (let place = 0; place < count; place++) {
      const row = rowAt(batch, place);
      const named = isNull(id!, row) && !hidesId ? key! : id!;
      if (isNull(named, row)) continue;
      const code = this.#codeOf(named, row, named === id ? idType : 'string', isolated);
      if (code >= 0) this.#show(code);
    }
  }

  /** Edges of which both ends are visible. */
  *graph(): Steps<Graph> {
    const order = yield* this.#ordered();
    const nodes = order.length;
    const numberOf = new Int32Array(this.#names.size).fill(-1);
    for (let node = 0; node < nodes; node++) numberOf[order[node]!] = node;
    const { from, to, time, weight, link } = this.#edges;
    const kept = new Int32Array(this.#length);
    const sources = new Int32Array(this.#length);
    const targets = new Int32Array(this.#length);
    const both: Ends = { kept, sources, targets };
    let count = 0;
    for (let first = 0; first < this.#length; first += atOnce) {
      count = numbered({ from, to }, numberOf, both, { first, end: Math.min(this.#length, first + atOnce), count });
      yield;
    }
    // Edges came by link type and system_from; sorting by target, then by source, leaves each order within the next.
    const byTarget = yield* stableOrder(targets.subarray(0, count), null, nodes);
    const bySource = yield* stableOrder(sources.subarray(0, count), byTarget, nodes);
    const neighbours = new Int32Array(count);
    const systemFrom = new BigInt64Array(count);
    const weights = weight === null ? null : new Float64Array(count);
    const linkOf = this.#links.length > 1 ? new Uint16Array(count) : null;
    const listed = { time: bits(time), weight, link };
    const made = { neighbours, systemFrom: bits(systemFrom), weights, linkOf };
    for (let first = 0; first < count; first += atOnce) {
      take(both, listed, made, bySource.subarray(first, Math.min(count, first + atOnce)), first);
      yield;
    }
    const out: Adjacency = { offsets: yield* offsetsOf(sources.subarray(0, count), nodes), neighbours, edges: null };
    const into = yield* turned(out.offsets, neighbours, nodes);
    return new Graph({ texts: this.#texts(order, numberOf), out, in: into, systemFrom, linkOf, links: this.#links, weights });
  }

  /** Codes of the visible nodes by the bytes of their texts. */
  *#ordered(): Steps<Int32Array> {
    const names = this.#names;
    const codes = new Int32Array(names.size);
    let count = 0;
    for (let code = 0; code < names.size; code++) if (this.#visible[code] === 1) codes[count++] = code;
    return yield* sorted(codes.subarray(0, count), (a, b) => names.compare(a, b));
  }

  #texts(order: Int32Array, numberOf: Int32Array): NodeTexts {
    const names = this.#names;
    return {
      size: order.length,
      text: (node) => names.text(order[node]!),
      bytesOf: (node) => names.bytesOf(order[node]!),
      numberOf: (text) => {
        const code = names.codeOf(text);
        return code < 0 ? -1 : numberOf[code]!;
      },
      bytes: names.bytes + order.byteLength + numberOf.byteLength,
    };
  }

  #numbers(batch: Batch, column: number, type: ColumnType, out: Int32Array): void {
    const vector = batch.columns[column]!;
    if (vector.kind === 'text') {
      this.#names.numbersOf(vector, batch, out);
      // An empty text names nothing.
      for (let place = 0; place < batch.count; place++) {
        const row = rowAt(batch, place);
        if (vector.offsets[row] === vector.offsets[row + 1]) out[place] = 0;
      }
      return;
    }
    for (let place = 0; place < batch.count; place++) {
      const row = rowAt(batch, place);
      out[place] = isNull(vector, row) ? 0 : this.#codeOf(vector, row, type, true) + 1;
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
    edges.from = grown(edges.from, new Int32Array(room));
    edges.to = grown(edges.to, new Int32Array(room));
    edges.time = grown(edges.time, new BigInt64Array(room));
    edges.weight &&= grown(edges.weight, new Float64Array(room));
    edges.link = grown(edges.link, new Uint16Array(room));
  }
}

/** By edge that is kept: its place in the list, and its ends as numbers of nodes. */
interface Ends {
  readonly kept: Int32Array;
  readonly sources: Int32Array;
  readonly targets: Int32Array;
}

interface Stretch {
  readonly first: number;
  readonly end: number;
  readonly count: number;
}

// The loops below are functions of their own: in one that can be left in the middle they would be compiled worse.

/** Edges of which both ends are visible; how many there are by now. */
function numbered(
  { from, to }: Pick<Growing, 'from' | 'to'>,
  numberOf: Int32Array,
  { kept, sources, targets }: Ends,
  { first, end, count: before }: Stretch,
): number {
  let count = before;
  for (let edge = first; edge < end; edge++) {
    const source = numberOf[from[edge]!]!;
    const target = numberOf[to[edge]!]!;
    if (source < 0 || target < 0) continue;
    kept[count] = edge;
    sources[count] = source;
    targets[count++] = target;
  }
  return count;
}

/** Instants as they lie, since reading them would make an object of each. None is what a float would change: they are far below it. */
function bits({ buffer, byteOffset, length }: BigInt64Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length);
}

interface Listed {
  readonly time: Float64Array;
  readonly weight: Float64Array | null;
  readonly link: Uint16Array;
}

interface Made {
  readonly neighbours: Int32Array;
  readonly systemFrom: Float64Array;
  readonly weights: Float64Array | null;
  readonly linkOf: Uint16Array | null;
}

/** Edges in the order that they are to have, the first at a place. */
function take({ kept, targets }: Ends, listed: Listed, made: Made, order: Int32Array, first: number): void {
  const { neighbours, systemFrom, weights, linkOf } = made;
  const { time, weight, link } = listed;
  for (let i = 0; i < order.length; i++) {
    const read = order[i]!;
    const edge = first + i;
    const place = kept[read]!;
    neighbours[edge] = targets[read]!;
    systemFrom[edge] = time[place]!;
    if (weights !== null) weights[edge] = weight![place]!;
    if (linkOf !== null) linkOf[edge] = link[place]!;
  }
}

/** Numbers of `keys` in ascending order of them; those alike in the order of `input`, or of their numbers. */
function* stableOrder(keys: Int32Array, input: Int32Array | null, keysMax: number): Steps<Int32Array> {
  const places = yield* offsetsOf(keys, keysMax);
  const order = new Int32Array(keys.length);
  for (let first = 0; first < keys.length; first += atOnce) {
    scatter(keys, input, places, order, first, Math.min(keys.length, first + atOnce));
    yield;
  }
  return order;
}

function scatter(
  keys: Int32Array,
  input: Int32Array | null,
  places: Uint32Array,
  order: Int32Array,
  first: number,
  end: number,
): void {
  if (input === null) for (let i = first; i < end; i++) order[places[keys[i]!]!++] = i;
  else {
    for (let i = first; i < end; i++) {
      const each = input[i]!;
      order[places[keys[each]!]!++] = each;
    }
  }
}

/** Where each key begins; one more than there are. */
function* offsetsOf(keys: Int32Array, keysMax: number): Steps<Uint32Array> {
  const offsets = new Uint32Array(keysMax + 1);
  for (let first = 0; first < keys.length; first += atOnce) {
    countKeys(keys, offsets, first, Math.min(keys.length, first + atOnce));
    yield;
  }
  for (let key = 0; key < keysMax; key++) offsets[key + 1]! += offsets[key]!;
  yield;
  return offsets;
}

function countKeys(keys: Int32Array, offsets: Uint32Array, first: number, end: number): void {
  for (let i = first; i < end; i++) offsets[keys[i]! + 1]!++;
}

function grown<A extends Int32Array | BigInt64Array | Float64Array | Uint16Array>(before: A, room: A): A {
  room.set(before as never);
  return room;
}

function rowAt({ selection, first }: Batch, place: number): number {
  return selection === null ? first + place : selection[place]!;
}

function isNull(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

function numberAt(vector: Vector, row: number): number | null {
  if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64') return null;
  return isNull(vector, row) ? null : Number(vector.values[row]!);
}
