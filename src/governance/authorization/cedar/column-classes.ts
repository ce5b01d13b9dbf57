/**
 * Conditions on one column divide its values into classes that none of them tells apart: codes of a dictionary through a table,
 * integers by the bounds that are named, texts by the constants that they are compared with. A hundred
 * rules about a column are one look at it.
 */
import { assert } from '../../../errors.ts';
import type { Dictionary, Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { Bounds } from './bounds.ts';
import { textAt } from './cells.ts';
import { ConstantTexts } from './constant-texts.ts';
import { IS_TRUE, stateOf, type Feature, type Rows } from './features.ts';
import type { Expr } from './syntax.ts';
import { Instant, SetValue, type Value } from './values.ts';

/** Texts that are remembered of a column without a dictionary. */
const rememberedTexts = 4096;

export class ColumnClasses implements Feature {
  readonly columns: readonly string[];
  readonly #type: ColumnType;
  readonly #atoms: readonly Expr[];
  readonly #states: Uint8Array[] = [];
  readonly #labels = new Map<string, number>();
  /** Constants that texts are compared with; null where atoms ask more than that. */
  readonly #constants: readonly string[] | null;
  readonly #ofCodes = new WeakMap<Dictionary, Int32Array>();
  readonly #ofTexts = new Map<string, number>();
  readonly #ofNull: number;
  readonly #bounds: Bounds | null;
  readonly #presenceOnly: boolean;
  #texts: ConstantTexts | undefined;

  constructor(name: string, type: ColumnType, atoms: readonly Expr[]) {
    this.columns = [name];
    this.#type = type;
    this.#atoms = atoms;
    this.#presenceOnly = atoms.every(({ op }) => op === 'present');
    const compared = comparedWith(atoms);
    this.#constants = compared?.filter((constant) => typeof constant === 'string') ?? null;
    this.#ofNull = this.#learn(undefined);
    const isNumber = type === 'integer' || type === 'timestamp';
    this.#bounds = isNumber && !this.#presenceOnly ? this.#boundsOf(atoms) : null;
  }

  get size(): number {
    return this.#states.length;
  }

  statesOf(label: number): Uint8Array {
    return this.#states[label]!;
  }

  classify([vector]: readonly Vector[], rows: Rows, shift: number, out: Int32Array): void {
    assert(vector !== undefined, 'a column for the condition');
    const { selection, first, count } = rows;
    const ofNull = this.#ofNull << shift;
    if (vector.kind === 'null') {
      for (let k = 0; k < count; k++) out[k]! |= ofNull;
      return;
    }
    const { nulls } = vector;
    const isNull = (row: number): boolean => nulls !== null && nulls[row] === 1;
    if (this.#presenceOnly) {
      const present = this.#labelOf(this.#atoms.map(() => IS_TRUE)) << shift;
      for (let k = 0; k < count; k++) out[k]! |= isNull(selection === null ? first + k : selection[k]!) ? ofNull : present;
      return;
    }
    switch (vector.kind) {
      case 'dict': {
        const table = this.tableOf(vector.dictionary);
        classifyCodes(vector, { table, ofNull: this.#ofNull }, rows, shift, out);
        return;
      }
      case 'bool': {
        const { values } = vector;
        const [no, yes] = [this.#learn(false) << shift, this.#learn(true) << shift];
        for (let k = 0; k < count; k++) {
          const row = selection === null ? first + k : selection[k]!;
          out[k]! |= nulls !== null && nulls[row] === 1 ? ofNull : values[row] === 1 ? yes : no;
        }
        return;
      }
      case 'text':
        this.#classifyTexts(vector, rows, shift, out);
        return;
      case 'i32':
      case 'f64':
        this.#bounds!.classify(vector.values, nulls, this.#ofNull, rows, shift, out);
        return;
      case 'i64':
        if (this.#type === 'timestamp') this.#bounds!.classifyInstants(vector.values, nulls, this.#ofNull, rows, shift, out);
        else this.#bounds!.classifyWide(vector.values, nulls, this.#ofNull, rows, shift, out);
        return;
      case 'vec':
        assert(false, 'no condition compares vectors');
    }
  }

  #classifyTexts(
    vector: Extract<Vector, { kind: 'text' }>,
    { selection, first, count }: Rows,
    shift: number,
    out: Int32Array,
  ): void {
    const { nulls } = vector;
    const constants = this.#constantTexts();
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      if (nulls !== null && nulls[row] === 1) out[k]! |= this.#ofNull << shift;
      else out[k]! |= (constants === null ? this.#labelOfText(textAt(vector, row)) : constants.labelOf(vector, row)) << shift;
    }
  }

  #constantTexts(): ConstantTexts | null {
    if (this.#constants === null) return null;
    this.#texts ??= new ConstantTexts(
      this.#constants.map((text) => [text, this.#learn(text)]),
      this.#learn(otherThan(this.#constants)),
    );
    return this.#texts;
  }

  #labelOfText(text: string): number {
    const textClass = this.#ofTexts.get(text);
    if (textClass !== undefined) return textClass;
    const label = this.#learn(text);
    if (this.#ofTexts.size < rememberedTexts) this.#ofTexts.set(text, label);
    return label;
  }

  get ofNull(): number {
    return this.#ofNull;
  }

  /** Codes to classes. A dictionary grows, and its codes keep their meaning. */
  tableOf(dictionary: Dictionary): Int32Array {
    const known = this.#ofCodes.get(dictionary);
    if (known !== undefined && known.length >= dictionary.size) return known;
    const table = new Int32Array(dictionary.size);
    if (this.#constants !== null) {
      table.fill(this.#learn(otherThan(this.#constants)));
      for (const text of this.#constants) {
        const code = dictionary.codeOf(text);
        if (code >= 0) table[code] = this.#learn(text);
      }
    } else {
      if (known !== undefined) table.set(known);
      for (let code = known?.length ?? 0; code < table.length; code++) table[code] = this.#learn(dictionary.text(code));
    }
    this.#ofCodes.set(dictionary, table);
    return table;
  }

  #boundsOf(atoms: readonly Expr[]): Bounds {
    const cuts = new Set<bigint>();
    for (const constant of comparedWith(atoms) ?? []) {
      const at = typeof constant === 'bigint' ? constant : constant instanceof Instant ? constant.ms : undefined;
      if (at !== undefined) cuts.add(at).add(at + 1n);
    }
    const ascending = [...cuts].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const example = (at: bigint): Value => (this.#type === 'timestamp' ? new Instant(at) : at);
    const labels = [this.#learn(example((ascending[0] ?? 0n) - 1n)), ...ascending.map((cut) => this.#learn(example(cut)))];
    return new Bounds(ascending, labels);
  }

  #learn(value: Value | undefined): number {
    return this.#labelOf(this.#atoms.map((atom) => stateOf(atom, () => value)));
  }

  #labelOf(states: readonly number[]): number {
    const signature = states.join('');
    let label = this.#labels.get(signature);
    if (label === undefined) {
      label = this.#states.length;
      this.#labels.set(signature, label);
      this.#states.push(Uint8Array.from(states));
    }
    return label;
  }
}

/** Adds the class of each row's code. */
function classifyCodes(
  { values: codes, nulls }: Extract<Vector, { kind: 'dict' }>,
  { table, ofNull }: { readonly table: Int32Array; readonly ofNull: number },
  { selection, first, count }: Rows,
  shift: number,
  out: Int32Array,
): void {
  if (nulls === null && selection === null) {
    for (let k = 0; k < count; k++) out[k]! |= table[codes[first + k]!]! << shift;
    return;
  }
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    out[k]! |= (nulls !== null && nulls[row] === 1 ? ofNull : table[codes[row]!]!) << shift;
  }
}

/** Constants, when atoms ask nothing but how the column compares with constants; else null. */
export function comparedWith(atoms: readonly Expr[]): readonly Value[] | null {
  const constants: Value[] = [];
  for (const atom of atoms) {
    const found = constantsOf(atom);
    if (found === null) return null;
    constants.push(...found);
  }
  return constants;
}

function constantsOf(atom: Expr): readonly Value[] | null {
  switch (atom.op) {
    case 'present':
    case 'column':
      return [];
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
      if (atom.left.op === 'column' && atom.right.op === 'value') return [atom.right.value];
      return atom.right.op === 'column' && atom.left.op === 'value' ? [atom.left.value] : null;
    case 'contains':
      if (atom.right.op !== 'column' || atom.left.op !== 'value') return null;
      return atom.left.value instanceof SetValue ? atom.left.value.items : [];
    default:
      return null;
  }
}

/** A text that is none of these. */
function otherThan(constants: readonly string[]): string {
  return constants.reduce((longest, text) => (text.length > longest.length ? text : longest), '') + '\u0000';
}
