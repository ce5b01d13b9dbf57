/** A table of texts by key beside the store: `LOOKUP name(column) -> field`. */
import type { Dictionary } from '../../log/values/columns.ts';
import type { Cell } from '../../log/values/value.ts';
import type { TextInterner } from './text-interner.ts';

export interface LookupTable {
  readonly fields: readonly string[];
  /** Undefined where the table has no such field. */
  readonly fieldType: (field: string) => 'string' | undefined;
  /** The field beside a key; NULL where the key is not known. */
  readonly value: (field: string, key: Cell) => Cell;
}

/** One field of a table while a statement runs: keys of a dictionary are looked up once each. Codes are of one interner; -1 is NULL. */
export class LookupField {
  readonly #table: LookupTable;
  readonly #field: string;
  readonly #codes = new Map<Dictionary, Int32Array>();

  constructor(table: LookupTable, field: string) {
    this.#table = table;
    this.#field = field;
  }

  codeOfKey(interner: TextInterner, key: Cell): number {
    const lookedUp = this.#table.value(this.#field, key);
    return typeof lookedUp === 'string' ? interner.ofText(lookedUp) : -1;
  }

  /** `interner` is the same one throughout. */
  ofCode(interner: TextInterner, dictionary: Dictionary, code: number): number {
    let codes = this.#codes.get(dictionary);
    if (!codes || codes.length <= code) {
      const larger = new Int32Array(Math.max(dictionary.size, code + 1));
      if (codes) larger.set(codes);
      this.#codes.set(dictionary, (codes = larger));
    }
    // 0 is not asked yet; else the code + 2, so that NULL is 1.
    if (codes[code] === 0) codes[code] = this.codeOfKey(interner, dictionary.text(code)) + 2;
    return codes[code]! - 2;
  }
}
