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
  readonly #columnType: ColumnType;
  readonly #columnAtoms: readonly Expr[];
  readonly #statesByLabel: Uint8Array[] = [];
  readonly #labelsBySignature = new Map<string, number>();
  /** Constants that texts are compared with; null where atoms ask more than that. */
  readonly #comparedTexts: readonly string[] | null;
  readonly #labelsByDictionary = new WeakMap<Dictionary, Int32Array>();
  readonly #labelsByText = new Map<string, number>();
  readonly #nullLabel: number;
  readonly #cutBounds: Bounds | null;
  readonly #presenceOnly: boolean;
  #constantTextLabels: ConstantTexts | undefined;

  constructor(name: string, type: ColumnType, columnAtoms: readonly Expr[]) {
    this.columns = [name];
    this.#columnType = type;
    this.#columnAtoms = columnAtoms;
    this.#presenceOnly = columnAtoms.every(({ op }) => op === 'present');
    const comparedConstants = comparedWith(columnAtoms);
    this.#comparedTexts = comparedConstants?.filter((constant) => typeof constant === 'string') ?? null;
    this.#nullLabel = this.#learnLabel(undefined);
    const isNumber = type === 'integer' || type === 'timestamp';
    this.#cutBounds = isNumber && !this.#presenceOnly ? this.#boundsOfAtoms(columnAtoms) : null;
  }

  get size(): number {
    return this.#statesByLabel.length;
  }

  statesOf(label: number): Uint8Array {
    return this.#statesByLabel[label]!;
  }

  classify([vector]: readonly Vector[], rows: Rows, shift: number, classesOut: Int32Array): void {
    assert(vector !== undefined, 'a column for the condition');
    const { selection, first, count } = rows;
    const shiftedNullLabel = this.#nullLabel << shift;
    if (vector.kind === 'null') {
      for (let k = 0; k < count; k++) classesOut[k]! |= shiftedNullLabel;
      return;
    }
    const { nulls } = vector;
    const isNull = (row: number): boolean => nulls !== null && nulls[row] === 1;
    if (this.#presenceOnly) {
      const presentLabel = this.#labelOfStates(this.#columnAtoms.map(() => IS_TRUE)) << shift;
      for (let k = 0; k < count; k++)
        classesOut[k]! |= isNull(selection === null ? first + k : selection[k]!) ? shiftedNullLabel : presentLabel;
      return;
    }
    switch (vector.kind) {
      case 'dict': {
        const codeLabels = this.tableOf(vector.dictionary);
        classifyCodes(vector, { table: codeLabels, ofNull: this.#nullLabel }, rows, shift, classesOut);
        return;
      }
      case 'bool': {
        const { values } = vector;
        const [falseLabel, trueLabel] = [this.#learnLabel(false) << shift, this.#learnLabel(true) << shift];
        for (let k = 0; k < count; k++) {
          const row = selection === null ? first + k : selection[k]!;
          classesOut[k]! |= nulls !== null && nulls[row] === 1 ? shiftedNullLabel : values[row] === 1 ? trueLabel : falseLabel;
        }
        return;
      }
      case 'text':
        this.#classifyTexts(vector, rows, shift, classesOut);
        return;
      case 'i32':
      case 'f64':
        this.#cutBounds!.classify(vector.values, nulls, this.#nullLabel, rows, shift, classesOut);
        return;
      case 'i64':
        if (this.#columnType === 'timestamp')
          this.#cutBounds!.classifyInstants(vector.values, nulls, this.#nullLabel, rows, shift, classesOut);
        else this.#cutBounds!.classifyWide(vector.values, nulls, this.#nullLabel, rows, shift, classesOut);
        return;
      case 'vec':
        assert(false, 'no condition compares vectors');
    }
  }

  #classifyTexts(
    vector: Extract<Vector, { kind: 'text' }>,
    { selection, first, count }: Rows,
    shift: number,
    classesOut: Int32Array,
  ): void {
    const { nulls } = vector;
    const constantTexts = this.#constantTexts();
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      if (nulls !== null && nulls[row] === 1) classesOut[k]! |= this.#nullLabel << shift;
      else
        classesOut[k]! |=
          (constantTexts === null ? this.#labelOfText(textAt(vector, row)) : constantTexts.labelOf(vector, row)) << shift;
    }
  }

  #constantTexts(): ConstantTexts | null {
    if (this.#comparedTexts === null) return null;
    this.#constantTextLabels ??= new ConstantTexts(
      this.#comparedTexts.map((text) => [text, this.#learnLabel(text)]),
      this.#learnLabel(textOtherThan(this.#comparedTexts)),
    );
    return this.#constantTextLabels;
  }

  #labelOfText(text: string): number {
    const textClass = this.#labelsByText.get(text);
    if (textClass !== undefined) return textClass;
    const label = this.#learnLabel(text);
    if (this.#labelsByText.size < rememberedTexts) this.#labelsByText.set(text, label);
    return label;
  }

  get ofNull(): number {
    return this.#nullLabel;
  }

  /** Codes to classes. A dictionary grows, and its codes keep their meaning. */
  tableOf(dictionary: Dictionary): Int32Array {
    const rememberedLabels = this.#labelsByDictionary.get(dictionary);
    if (rememberedLabels !== undefined && rememberedLabels.length >= dictionary.size) return rememberedLabels;
    const codeLabels = new Int32Array(dictionary.size);
    if (this.#comparedTexts !== null) {
      codeLabels.fill(this.#learnLabel(textOtherThan(this.#comparedTexts)));
      for (const text of this.#comparedTexts) {
        const code = dictionary.codeOf(text);
        if (code >= 0) codeLabels[code] = this.#learnLabel(text);
      }
    } else {
      if (rememberedLabels !== undefined) codeLabels.set(rememberedLabels);
      for (let code = rememberedLabels?.length ?? 0; code < codeLabels.length; code++)
        codeLabels[code] = this.#learnLabel(dictionary.text(code));
    }
    this.#labelsByDictionary.set(dictionary, codeLabels);
    return codeLabels;
  }

  #boundsOfAtoms(atoms: readonly Expr[]): Bounds {
    const cuts = new Set<bigint>();
    for (const constant of comparedWith(atoms) ?? []) {
      const cutAt = typeof constant === 'bigint' ? constant : constant instanceof Instant ? constant.ms : undefined;
      if (cutAt !== undefined) cuts.add(cutAt).add(cutAt + 1n);
    }
    const ascendingCuts = [...cuts].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const exampleCell = (at: bigint): Value => (this.#columnType === 'timestamp' ? new Instant(at) : at);
    const labels = [
      this.#learnLabel(exampleCell((ascendingCuts[0] ?? 0n) - 1n)),
      ...ascendingCuts.map((cut) => this.#learnLabel(exampleCell(cut))),
    ];
    return new Bounds(ascendingCuts, labels);
  }

  #learnLabel(value: Value | undefined): number {
    return this.#labelOfStates(this.#columnAtoms.map((atom) => stateOf(atom, () => value)));
  }

  #labelOfStates(atomStates: readonly number[]): number {
    const statesSignature = atomStates.join('');
    let label = this.#labelsBySignature.get(statesSignature);
    if (label === undefined) {
      label = this.#statesByLabel.length;
      this.#labelsBySignature.set(statesSignature, label);
      this.#statesByLabel.push(Uint8Array.from(atomStates));
    }
    return label;
  }
}

/** Adds the class of each row's code. */
function classifyCodes(
  { values: codes, nulls }: Extract<Vector, { kind: 'dict' }>,
  { table: codeLabels, ofNull }: { readonly table: Int32Array; readonly ofNull: number },
  { selection, first, count }: Rows,
  shift: number,
  classesOut: Int32Array,
): void {
  if (nulls === null && selection === null) {
    for (let k = 0; k < count; k++) classesOut[k]! |= codeLabels[codes[first + k]!]! << shift;
    return;
  }
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    classesOut[k]! |= (nulls !== null && nulls[row] === 1 ? ofNull : codeLabels[codes[row]!]!) << shift;
  }
}

/** Constants, when atoms ask nothing but how the column compares with constants; else null. */
export function comparedWith(atoms: readonly Expr[]): readonly Value[] | null {
  const comparedConstants: Value[] = [];
  for (const atom of atoms) {
    const atomConstants = constantsOfAtom(atom);
    if (atomConstants === null) return null;
    comparedConstants.push(...atomConstants);
  }
  return comparedConstants;
}

function constantsOfAtom(atom: Expr): readonly Value[] | null {
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
function textOtherThan(comparedTexts: readonly string[]): string {
  return comparedTexts.reduce((longest, text) => (text.length > longest.length ? text : longest), '') + '\u0000';
}
