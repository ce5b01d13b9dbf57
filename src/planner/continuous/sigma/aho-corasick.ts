/**
 * Many literals sought in one text at once, in one pass: a trie of all of them, in which each state also knows the longest state
 * that ends like it. States near the root, where texts that hold nothing stay, have whole tables; the others share one table of
 * hashes.
 */

/** States of the whole tables: those nearest the root. */
const automatonTableCells = 1 << 20;
/** Work of one turn while an index is built. */
const literalsAtOnce = 512;
const statesAtOnce = 8_192;

export class LiteralIndex {
  /** Class of each UTF-16 unit; 0: in no literal. */
  readonly #unitClasses: Uint16Array;
  readonly #unitClassCount: number;
  /** By state of the tables, then class: the next state, whether it lies in the tables or not. */
  readonly #transitionTable: Int32Array;
  readonly #tabledStates: number;
  /** Open addressing: state * classes + class, and the state behind it. */
  readonly #transitionKeys: Float64Array;
  readonly #transitionStates: Int32Array;
  readonly #failureLinks: Int32Array;
  /** The literal that ends in a state, or -1; and the next state on the way of failures where one ends, or -1. */
  readonly #endingLiterals: Int32Array;
  readonly #nextEndingState: Int32Array;
  /** The state itself where a literal ends in it, else `#nextEndingState`. */
  readonly #firstEndingState: Int32Array;
  /** Classes of ASCII, capitals as small letters. */
  readonly #byteClasses: Uint16Array;

  private constructor(stateCount: number, unitClasses: Uint16Array, unitClassCount: number) {
    this.#unitClasses = unitClasses;
    this.#unitClassCount = unitClassCount;
    this.#endingLiterals = new Int32Array(stateCount);
    this.#nextEndingState = new Int32Array(stateCount).fill(-1);
    this.#failureLinks = new Int32Array(stateCount);
    this.#firstEndingState = new Int32Array(stateCount).fill(-1);
    this.#byteClasses = Uint16Array.from({ length: 256 }, (_, byte) =>
      byte > 127 ? 0 : unitClasses[byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte]!,
    );
    let transitionCapacity = 16;
    while (transitionCapacity < stateCount * 2) transitionCapacity *= 2;
    this.#transitionKeys = new Float64Array(transitionCapacity).fill(-1);
    this.#transitionStates = new Int32Array(transitionCapacity);
    this.#tabledStates = Math.min(stateCount, Math.max(1, Math.floor(automatonTableCells / unitClassCount)));
    this.#transitionTable = new Int32Array(this.#tabledStates * unitClassCount);
  }

  /** Literals are different from each other and not empty. Their ordinals are what a search yields. */
  static *build(literals: readonly string[]): Generator<undefined, LiteralIndex, void> {
    const unitClasses = new Uint16Array(65_536);
    let unitClassCount = 1;
    for (const literal of literals) {
      for (let i = 0; i < literal.length; i++) {
        const literalUnit = literal.charCodeAt(i);
        if (unitClasses[literalUnit] === 0) unitClasses[literalUnit] = unitClassCount++;
      }
    }
    yield;
    const literalTrie = new LiteralTrie(literals.reduce((sum, literal) => sum + literal.length, 1));
    for (let i = 0; i < literals.length; i++) {
      literalTrie.add(literals[i]!, i, unitClasses);
      if (i % literalsAtOnce === literalsAtOnce - 1) yield;
    }
    const breadthOrder = literalTrie.breadthFirst();
    yield;
    const literalIndex = new LiteralIndex(breadthOrder.length, unitClasses, unitClassCount);
    yield* literalIndex.#linkStates(literalTrie, breadthOrder);
    return literalIndex;
  }

  *#linkStates(trie: LiteralTrie, order: Int32Array): Generator<undefined, void, void> {
    const stateNumbers = new Int32Array(order.length);
    order.forEach((state, i) => {
      stateNumbers[state] = i;
    });
    // By breadth, so that the state on which one falls back is whole when it is needed.
    for (let stateNumber = 0; stateNumber < order.length; stateNumber++) {
      const trieState = order[stateNumber]!;
      this.#endingLiterals[stateNumber] = trie.ends[trieState]!;
      if (stateNumber > 0) {
        const parentState = stateNumbers[trie.parents[trieState]!]!;
        const unit = trie.classes[trieState]!;
        this.#failureLinks[stateNumber] = parentState === 0 ? 0 : this.#stepState(this.#failureLinks[parentState]!, unit);
        this.#addTransition(parentState, unit, stateNumber);
        const failureState = this.#failureLinks[stateNumber]!;
        this.#nextEndingState[stateNumber] =
          this.#endingLiterals[failureState] === -1 ? this.#nextEndingState[failureState]! : failureState;
      }
      this.#firstEndingState[stateNumber] =
        this.#endingLiterals[stateNumber] === -1 ? this.#nextEndingState[stateNumber]! : stateNumber;
      if (stateNumber % statesAtOnce === statesAtOnce - 1) yield;
    }
    const unitClassCount = this.#unitClassCount;
    for (let number = 0; number < this.#tabledStates; number++) {
      const tableRow = number * unitClassCount;
      if (number > 0)
        this.#transitionTable.copyWithin(
          tableRow,
          this.#failureLinks[number]! * unitClassCount,
          (this.#failureLinks[number]! + 1) * unitClassCount,
        );
      for (let trieChild = trie.firstChild[order[number]!]!; trieChild !== -1; trieChild = trie.sibling[trieChild]!) {
        this.#transitionTable[tableRow + trie.classes[trieChild]!] = stateNumbers[trieChild]!;
      }
    }
    yield;
  }

  /** Calls `found` with each literal and the index behind it, in order of their ends. */
  search(text: string, onLiteral: (literal: number, end: number) => void): void {
    let automatonState = 0;
    for (let i = 0; i < text.length; i++)
      automatonState = this.#advanceState(automatonState, this.#unitClasses[text.charCodeAt(i)]!, i + 1, onLiteral);
  }

  /** The same in ASCII bytes[from..to), whatever their case: literals are in lower case. Ends count from `from`. */
  searchBytes(bytes: Uint8Array, from: number, to: number, onLiteral: (literal: number, end: number) => void): void {
    let automatonState = 0;
    for (let i = from; i < to; i++)
      automatonState = this.#advanceState(automatonState, this.#byteClasses[bytes[i]!]!, i + 1 - from, onLiteral);
  }

  #advanceState(fromState: number, unit: number, literalEnd: number, onLiteral: (literal: number, end: number) => void): number {
    const state =
      unit === 0
        ? 0
        : fromState < this.#tabledStates
          ? this.#transitionTable[fromState * this.#unitClassCount + unit]!
          : this.#stepState(fromState, unit);
    let endingState = this.#firstEndingState[state]!;
    while (endingState !== -1) {
      onLiteral(this.#endingLiterals[endingState]!, literalEnd);
      endingState = this.#nextEndingState[endingState]!;
    }
    return state;
  }

  #stepState(fromState: number, unit: number): number {
    let state = fromState;
    for (;;) {
      const nextState = this.#childState(state, unit);
      if (nextState !== -1) return nextState;
      if (state === 0) return 0;
      state = this.#failureLinks[state]!;
    }
  }

  #childState(state: number, unit: number): number {
    const transitionKey = state * this.#unitClassCount + unit;
    const transitionMask = this.#transitionKeys.length - 1;
    for (
      let transitionSlot = (Math.imul(transitionKey, 0x9e3779b1) >>> 0) & transitionMask;
      ;
      transitionSlot = (transitionSlot + 1) & transitionMask
    ) {
      const nextState = this.#transitionKeys[transitionSlot]!;
      if (nextState === transitionKey) return this.#transitionStates[transitionSlot]!;
      if (nextState === -1) return -1;
    }
  }

  #addTransition(state: number, unit: number, nextState: number): void {
    const transitionKey = state * this.#unitClassCount + unit;
    const transitionMask = this.#transitionKeys.length - 1;
    let transitionSlot = (Math.imul(transitionKey, 0x9e3779b1) >>> 0) & transitionMask;
    while (this.#transitionKeys[transitionSlot] !== -1) transitionSlot = (transitionSlot + 1) & transitionMask;
    this.#transitionKeys[transitionSlot] = transitionKey;
    this.#transitionStates[transitionSlot] = nextState;
  }
}

/** While it is built: states in order of their making. */
class LiteralTrie {
  readonly parents: Int32Array;
  readonly classes: Uint16Array;
  readonly firstChild: Int32Array;
  readonly sibling: Int32Array;
  readonly ends: Int32Array;
  #trieStateCount = 1;

  constructor(statesMax: number) {
    this.parents = new Int32Array(statesMax);
    this.classes = new Uint16Array(statesMax);
    this.firstChild = new Int32Array(statesMax).fill(-1);
    this.sibling = new Int32Array(statesMax).fill(-1);
    this.ends = new Int32Array(statesMax).fill(-1);
  }

  add(literal: string, ordinal: number, classOf: Uint16Array): void {
    let trieState = 0;
    for (let i = 0; i < literal.length; i++) trieState = this.#trieChildOf(trieState, classOf[literal.charCodeAt(i)]!);
    this.ends[trieState] = ordinal;
  }

  breadthFirst(): Int32Array {
    const trieOrder = new Int32Array(this.#trieStateCount);
    for (let readStates = 0, orderLength = 1; readStates < orderLength; readStates++) {
      for (let trieChild = this.firstChild[trieOrder[readStates]!]!; trieChild !== -1; trieChild = this.sibling[trieChild]!)
        trieOrder[orderLength++] = trieChild;
    }
    return trieOrder;
  }

  #trieChildOf(state: number, unit: number): number {
    for (let trieChild = this.firstChild[state]!; trieChild !== -1; trieChild = this.sibling[trieChild]!) {
      if (this.classes[trieChild] === unit) return trieChild;
    }
    const newState = this.#trieStateCount++;
    this.parents[newState] = state;
    this.classes[newState] = unit;
    this.sibling[newState] = this.firstChild[state]!;
    this.firstChild[state] = newState;
    return newState;
  }
}
