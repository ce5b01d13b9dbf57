/**
 * Many literals sought in one text at once, in one pass: a trie of all of them, in which each state also knows the longest state
 * that ends like it. States near the root, where texts that hold nothing stay, have whole tables; the others share one table of
 * hashes.
 */

/** States of the whole tables: those nearest the root. */
const tableCells = 1 << 20;
/** Work of one turn while an index is built. */
const stepLiterals = 512;
const stepStates = 8_192;

export class LiteralIndex {
  /** Class of each UTF-16 unit; 0: in no literal. */
  readonly #classes: Uint16Array;
  readonly #classCount: number;
  /** By state of the tables, then class: the next state, whether it lies in the tables or not. */
  readonly #table: Int32Array;
  readonly #tableStates: number;
  /** Open addressing: state * classes + class, and the state behind it. */
  readonly #keys: Float64Array;
  readonly #values: Int32Array;
  readonly #fail: Int32Array;
  /** The literal that ends in a state, or -1; and the next state on the way of failures where one ends, or -1. */
  readonly #ends: Int32Array;
  readonly #next: Int32Array;
  /** The state itself where a literal ends in it, else `#next`. */
  readonly #first: Int32Array;
  /** Classes of ASCII, capitals as small letters. */
  readonly #byteClasses: Uint16Array;

  private constructor(states: number, classes: Uint16Array, classCount: number) {
    this.#classes = classes;
    this.#classCount = classCount;
    this.#ends = new Int32Array(states);
    this.#next = new Int32Array(states).fill(-1);
    this.#fail = new Int32Array(states);
    this.#first = new Int32Array(states).fill(-1);
    this.#byteClasses = Uint16Array.from({ length: 256 }, (_, byte) =>
      byte > 127 ? 0 : classes[byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte]!,
    );
    let capacity = 16;
    while (capacity < states * 2) capacity *= 2;
    this.#keys = new Float64Array(capacity).fill(-1);
    this.#values = new Int32Array(capacity);
    this.#tableStates = Math.min(states, Math.max(1, Math.floor(tableCells / classCount)));
    this.#table = new Int32Array(this.#tableStates * classCount);
  }

  /** Literals are different from each other and not empty. Their ordinals are what a search yields. */
  static *build(literals: readonly string[]): Generator<undefined, LiteralIndex, void> {
    const classes = new Uint16Array(65_536);
    let classCount = 1;
    for (const literal of literals) {
      for (let i = 0; i < literal.length; i++) {
        const unit = literal.charCodeAt(i);
        if (classes[unit] === 0) classes[unit] = classCount++;
      }
    }
    yield;
    const trie = new Trie(literals.reduce((sum, literal) => sum + literal.length, 1));
    for (let i = 0; i < literals.length; i++) {
      trie.add(literals[i]!, i, classes);
      if (i % stepLiterals === stepLiterals - 1) yield;
    }
    const order = trie.breadthFirst();
    yield;
    const index = new LiteralIndex(order.length, classes, classCount);
    yield* index.#link(trie, order);
    return index;
  }

  *#link(trie: Trie, order: Int32Array): Generator<undefined, void, void> {
    const newNumber = new Int32Array(order.length);
    order.forEach((state, i) => {
      newNumber[state] = i;
    });
    // By breadth, so that the state on which one falls back is whole when it is needed.
    for (let number = 0; number < order.length; number++) {
      const old = order[number]!;
      this.#ends[number] = trie.ends[old]!;
      if (number > 0) {
        const parent = newNumber[trie.parents[old]!]!;
        const unit = trie.classes[old]!;
        this.#fail[number] = parent === 0 ? 0 : this.#step(this.#fail[parent]!, unit);
        this.#add(parent, unit, number);
        const fail = this.#fail[number]!;
        this.#next[number] = this.#ends[fail] === -1 ? this.#next[fail]! : fail;
      }
      this.#first[number] = this.#ends[number] === -1 ? this.#next[number]! : number;
      if (number % stepStates === stepStates - 1) yield;
    }
    const width = this.#classCount;
    for (let number = 0; number < this.#tableStates; number++) {
      const row = number * width;
      if (number > 0) this.#table.copyWithin(row, this.#fail[number]! * width, (this.#fail[number]! + 1) * width);
      for (let child = trie.firstChild[order[number]!]!; child !== -1; child = trie.sibling[child]!) {
        this.#table[row + trie.classes[child]!] = newNumber[child]!;
      }
    }
    yield;
  }

  /** Calls `found` with each literal and the index behind it, in order of their ends. */
  search(text: string, onLiteral: (literal: number, end: number) => void): void {
    let state = 0;
    for (let i = 0; i < text.length; i++) state = this.#advance(state, this.#classes[text.charCodeAt(i)]!, i + 1, onLiteral);
  }

  /** The same in ASCII bytes[from..to), whatever their case: literals are in lower case. Ends count from `from`. */
  searchBytes(bytes: Uint8Array, from: number, to: number, onLiteral: (literal: number, end: number) => void): void {
    let state = 0;
    for (let i = from; i < to; i++) state = this.#advance(state, this.#byteClasses[bytes[i]!]!, i + 1 - from, onLiteral);
  }

  #advance(from: number, unit: number, end: number, onLiteral: (literal: number, end: number) => void): number {
    const state =
      unit === 0 ? 0 : from < this.#tableStates ? this.#table[from * this.#classCount + unit]! : this.#step(from, unit);
    let at = this.#first[state]!;
    while (at !== -1) {
      onLiteral(this.#ends[at]!, end);
      at = this.#next[at]!;
    }
    return state;
  }

  #step(from: number, unit: number): number {
    let state = from;
    for (;;) {
      const next = this.#child(state, unit);
      if (next !== -1) return next;
      if (state === 0) return 0;
      state = this.#fail[state]!;
    }
  }

  #child(state: number, unit: number): number {
    const key = state * this.#classCount + unit;
    const mask = this.#keys.length - 1;
    for (let at = (Math.imul(key, 0x9e3779b1) >>> 0) & mask; ; at = (at + 1) & mask) {
      const nextState = this.#keys[at]!;
      if (nextState === key) return this.#values[at]!;
      if (nextState === -1) return -1;
    }
  }

  #add(state: number, unit: number, value: number): void {
    const key = state * this.#classCount + unit;
    const mask = this.#keys.length - 1;
    let at = (Math.imul(key, 0x9e3779b1) >>> 0) & mask;
    while (this.#keys[at] !== -1) at = (at + 1) & mask;
    this.#keys[at] = key;
    this.#values[at] = value;
  }
}

/** While it is built: states in order of their making. */
class Trie {
  readonly parents: Int32Array;
  readonly classes: Uint16Array;
  readonly firstChild: Int32Array;
  readonly sibling: Int32Array;
  readonly ends: Int32Array;
  #states = 1;

  constructor(statesMax: number) {
    this.parents = new Int32Array(statesMax);
    this.classes = new Uint16Array(statesMax);
    this.firstChild = new Int32Array(statesMax).fill(-1);
    this.sibling = new Int32Array(statesMax).fill(-1);
    this.ends = new Int32Array(statesMax).fill(-1);
  }

  add(literal: string, ordinal: number, classOf: Uint16Array): void {
    let state = 0;
    for (let i = 0; i < literal.length; i++) state = this.#childOf(state, classOf[literal.charCodeAt(i)]!);
    this.ends[state] = ordinal;
  }

  breadthFirst(): Int32Array {
    const order = new Int32Array(this.#states);
    for (let read = 0, length = 1; read < length; read++) {
      for (let child = this.firstChild[order[read]!]!; child !== -1; child = this.sibling[child]!) order[length++] = child;
    }
    return order;
  }

  #childOf(state: number, unit: number): number {
    for (let child = this.firstChild[state]!; child !== -1; child = this.sibling[child]!) {
      if (this.classes[child] === unit) return child;
    }
    const newState = this.#states++;
    this.parents[newState] = state;
    this.classes[newState] = unit;
    this.sibling[newState] = this.firstChild[state]!;
    this.firstChild[state] = newState;
    return newState;
  }
}
