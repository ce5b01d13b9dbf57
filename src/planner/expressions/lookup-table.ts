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
  readonly #lookupTable: LookupTable;
  readonly #lookupFieldName: string;
  readonly #codesByDictionary = new Map<Dictionary, Int32Array>();

  constructor(table: LookupTable, field: string) {
    this.#lookupTable = table;
    this.#lookupFieldName = field;
  }

  codeOfKey(interner: TextInterner, lookupKey: Cell): number {
    const lookedUp = this.#lookupTable.value(this.#lookupFieldName, lookupKey);
    return typeof lookedUp === 'string' ? interner.ofText(lookedUp) : -1;
  }

  /** `interner` is the same one throughout. */
  ofCode(interner: TextInterner, dictionary: Dictionary, dictionaryCode: number): number {
    let dictionaryCodes = this.#codesByDictionary.get(dictionary);
    if (!dictionaryCodes || dictionaryCodes.length <= dictionaryCode) {
      const largerCodes = new Int32Array(Math.max(dictionary.size, dictionaryCode + 1));
      if (dictionaryCodes) largerCodes.set(dictionaryCodes);
      this.#codesByDictionary.set(dictionary, (dictionaryCodes = largerCodes));
    }
    // 0 is not asked yet; else the code + 2, so that NULL is 1.
    if (dictionaryCodes[dictionaryCode] === 0)
      dictionaryCodes[dictionaryCode] = this.codeOfKey(interner, dictionary.text(dictionaryCode)) + 2;
    return dictionaryCodes[dictionaryCode]! - 2;
  }
}
