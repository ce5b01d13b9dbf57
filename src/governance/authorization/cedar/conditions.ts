/**
 * The residual of a set of policies for rows of one type, as one predicate over blocks of columns. Atoms are the policies' tests
 * of cells; the classes of a row's atoms make a number, and a table gives the policies' decision for it, computed once, on first
 * sight: however many rules there are, a row costs one look per column and one more.
 *
 * Three-valued inside: a policy is true, false or an error in a row, by Cedar's rules of order, and only then does an
 * erring forbid deny and an erring permit count for nothing.
 */
import type { Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import type { RowCondition } from '../grant.ts';
import { ColumnClasses, comparedWith } from './column-classes.ts';
import { ComputedAtom } from './computed-atoms.ts';
import { ERRS, IS_FALSE, IS_TRUE, type Feature, type Rows } from './features.ts';
import { columnsOf, type Expr, textOf } from './syntax.ts';

export interface Residuals {
  /** A permit holds in every row. */
  readonly always: boolean;
  readonly permits: readonly Expr[];
  readonly forbids: readonly Expr[];
}

/** Bits of a verdict: the second lies above the first. */
const PERMITTED = 1;
const FORBIDDEN = 2;
const KNOWN = 4;

/** Rules that look at the same columns share a table up to this size: one verdict a combination of classes. */
const tableBits = 18;
/** And rules that share nothing: a pass over the rows less. */
const sharedBits = 12;
/** Up to here a combination is one number, and verdicts of those seen last are kept by it. */
const labelBits = 31;
const labelCacheBits = 16;

export function compileCondition(residuals: Residuals, typeOf: (column: string) => ColumnType): RowCondition {
  const permitExprs = distinctExprs(residuals.always ? [] : residuals.permits);
  const forbidExprs = distinctExprs(residuals.forbids);
  const columns = [...new Set([...permitExprs.values(), ...forbidExprs.values()].flatMap(columnsOf))].sort();
  const atomTable = new AtomTable();
  const verdictRules: VerdictRule[] = [];
  for (const [expr, effect] of [
    ...[...permitExprs.values()].map((permit) => [permit, PERMITTED] as const),
    ...[...forbidExprs.values()].map((forbid) => [forbid, FORBIDDEN] as const),
  ]) {
    const atoms = new Set<number>();
    const ruleNode = atomTable.compile(expr, atoms);
    verdictRules.push({ node: ruleNode, effect, atoms });
  }
  const verdictTables = verdictTablesOf(verdictRules, atomTable.atoms, typeOf).map((table) => table.bindColumns(columns));
  const startVerdict = residuals.always ? PERMITTED : 0;
  const columnTypesText = columns.map((column) => `${column}:${typeOf(column)}`).join(',');
  const keyText = (of: ReadonlyMap<string, Expr>): string => [...of.keys()].sort().join(' | ');
  return {
    columns,
    key: `(${columnTypesText}) permit ${residuals.always ? 'true' : keyText(permitExprs)} forbid ${keyText(forbidExprs)}`,
    test(vectors, selection, first, count, out) {
      const rows = { selection, first, count };
      if (verdictTables.length === 1 && verdictTables[0]!.passByCode(vectors, rows, startVerdict, out)) return;
      out.fill(startVerdict, 0, count);
      for (const table of verdictTables) table.judge(vectors, rows, out);
      concludeVerdicts(out, count);
    },
  };
}

/** Whether a row passes, by the code of its one cell that matters. */
function passDictionaryCodes(
  codes: Int32Array,
  nulls: Uint8Array | null,
  codePasses: Uint8Array,
  nullPasses: number,
  { selection, first, count }: Rows,
  passesOut: Uint8Array,
): void {
  if (nulls === null && selection === null) {
    for (let k = 0; k < count; k++) passesOut[k] = codePasses[codes[first + k]!]!;
    return;
  }
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    passesOut[k] = nulls !== null && nulls[row] === 1 ? nullPasses : codePasses[codes[row]!]!;
  }
}

/** From verdicts to what passes. Loops over rows are functions of their own: V8 compiles them once, for every condition. */
function concludeVerdicts(verdictsOut: Uint8Array, count: number): void {
  for (let k = 0; k < count; k++) {
    const verdict = verdictsOut[k]!;
    verdictsOut[k] = verdict & ~(verdict >> 1) & PERMITTED;
  }
}

/** Adds verdicts by combination. False when one of them is not known yet. */
function addVerdicts(labels: Int32Array, labelVerdicts: Uint8Array, count: number, verdictsOut: Uint8Array): boolean {
  let verdictsKnown = KNOWN;
  for (let k = 0; k < count; k++) {
    const labelVerdict = labelVerdicts[labels[k]!]!;
    verdictsKnown &= labelVerdict;
    verdictsOut[k]! |= labelVerdict;
  }
  return verdictsKnown !== 0;
}

function distinctExprs(exprs: readonly Expr[]): ReadonlyMap<string, Expr> {
  return new Map(exprs.map((expr) => [textOf(expr), expr]));
}

/** A policy's condition over atoms, by their index. */
type ConditionNode =
  | { readonly op: 'constant'; readonly state: number }
  | { readonly op: 'atom'; readonly atom: number }
  | { readonly op: 'not'; readonly arg: ConditionNode }
  | { readonly op: 'and' | 'or'; readonly left: ConditionNode; readonly right: ConditionNode }
  | { readonly op: 'if'; readonly test: ConditionNode; readonly yes: ConditionNode; readonly no: ConditionNode };

interface VerdictRule {
  readonly node: ConditionNode;
  readonly effect: number;
  readonly atoms: ReadonlySet<number>;
}

class AtomTable {
  readonly atoms: Expr[] = [];
  readonly #atomsByText = new Map<string, number>();

  compile(expr: Expr, usedAtoms: Set<number>): ConditionNode {
    switch (expr.op) {
      case 'value':
        return { op: 'constant', state: expr.value === true ? IS_TRUE : expr.value === false ? IS_FALSE : ERRS };
      case 'error':
        return { op: 'constant', state: ERRS };
      case 'not':
        return { op: 'not', arg: this.compile(expr.arg, usedAtoms) };
      case 'and':
      case 'or':
        return { op: expr.op, left: this.compile(expr.left, usedAtoms), right: this.compile(expr.right, usedAtoms) };
      case 'if': {
        const [test, yes, no] = [expr.test, expr.yes, expr.no].map((ifBranch) => this.compile(ifBranch, usedAtoms));
        return { op: 'if', test: test!, yes: yes!, no: no! };
      }
      default: {
        const atomText = textOf(expr);
        let atom = this.#atomsByText.get(atomText);
        if (atom === undefined) {
          atom = this.atoms.push(expr) - 1;
          this.#atomsByText.set(atomText, atom);
        }
        usedAtoms.add(atom);
        return { op: 'atom', atom };
      }
    }
  }
}

function stateOfNode(node: ConditionNode, atomStates: Uint8Array): number {
  switch (node.op) {
    case 'constant':
      return node.state;
    case 'atom':
      return atomStates[node.atom]!;
    case 'not': {
      const negatedState = stateOfNode(node.arg, atomStates);
      return negatedState === ERRS ? ERRS : 1 - negatedState;
    }
    case 'and': {
      const leftState = stateOfNode(node.left, atomStates);
      return leftState === IS_TRUE ? stateOfNode(node.right, atomStates) : leftState;
    }
    case 'or': {
      const leftState = stateOfNode(node.left, atomStates);
      return leftState === IS_FALSE ? stateOfNode(node.right, atomStates) : leftState;
    }
    case 'if': {
      const testState = stateOfNode(node.test, atomStates);
      return testState === ERRS ? ERRS : stateOfNode(testState === IS_TRUE ? node.yes : node.no, atomStates);
    }
  }
}

/** Rules that look at the same columns come into one table, as long as its size lets them. */
function verdictTablesOf(
  rules: readonly VerdictRule[],
  atoms: readonly Expr[],
  typeOf: (column: string) => ColumnType,
): readonly VerdictTable[] {
  const features = featuresOfAtoms(atoms, typeOf);
  const featureOfAtom = new Map<number, number>();
  features.forEach(({ atoms: ruleFeatures }, i) => ruleFeatures.forEach((atom) => featureOfAtom.set(atom, i)));
  const tableBitsOf = (of: Iterable<number>): number =>
    [...of].reduce((sum, i) => sum + bitsForClasses(Math.max(features[i]!.feature.size, features[i]!.atoms.length + 2)), 0);
  const featureGroups: { features: Set<number>; readonly rules: VerdictRule[] }[] = [];
  for (const rule of rules) {
    const ruleFeatures = new Set([...rule.atoms].map((atom) => featureOfAtom.get(atom)!));
    const featureGroup = featureGroups
      .filter(({ features: groupFeatures }) => {
        const sharesFeature = [...ruleFeatures].some((feature) => groupFeatures.has(feature));
        return tableBitsOf(new Set([...groupFeatures, ...ruleFeatures])) <= (sharesFeature ? tableBits : sharedBits);
      })
      .sort((a, b) => newFeatureCount(a.features, ruleFeatures) - newFeatureCount(b.features, ruleFeatures))[0];
    if (featureGroup === undefined) featureGroups.push({ features: ruleFeatures, rules: [rule] });
    else {
      for (const feature of ruleFeatures) featureGroup.features.add(feature);
      featureGroup.rules.push(rule);
    }
  }
  return featureGroups.map(({ features: ruleFeatures, rules: groupRules }) => {
    const orderedFeatures = [...ruleFeatures].sort((a, b) => a - b).map((i) => features[i]!);
    return new VerdictTable(orderedFeatures, groupRules, atoms.length);
  });
}

function newFeatureCount(taken: ReadonlySet<number>, own: ReadonlySet<number>): number {
  return [...own].filter((feature) => !taken.has(feature)).length;
}

interface AtomsOfFeature {
  readonly feature: Feature;
  /** Atoms in the order of `statesOf`. */
  readonly atoms: readonly number[];
}

function featuresOfAtoms(atoms: readonly Expr[], typeOf: (column: string) => ColumnType): readonly AtomsOfFeature[] {
  const byColumn = new Map<string, number[]>();
  const features: AtomsOfFeature[] = [];
  atoms.forEach((atom, i) => {
    const columns = columnsOf(atom);
    const [column] = columns;
    const type = column === undefined ? undefined : typeOf(column);
    const isClassifiable = (type !== 'integer' && type !== 'timestamp') || comparedWith([atom]) !== null;
    if (columns.length === 1 && isClassifiable) byColumn.set(column!, [...(byColumn.get(column!) ?? []), i]);
    else features.push({ feature: new ComputedAtom(atom, typeOf), atoms: [i] });
  });
  for (const [column, own] of byColumn) {
    const columnAtoms = own.map((i) => atoms[i]!);
    features.push({ feature: new ColumnClasses(column, typeOf(column), columnAtoms), atoms: own });
  }
  return features;
}

function bitsForClasses(size: number): number {
  return Math.max(1, 32 - Math.clz32(size - 1));
}

/** Grown to the largest block so far: a block is judged in one go, and nothing of it is kept. */
let rowClasses = new Int32Array(4096);

class VerdictTable {
  readonly #tableFeatures: readonly AtomsOfFeature[];
  readonly #verdictRules: readonly VerdictRule[];
  readonly #atomStates: Uint8Array;
  #featureBits: number[] = [];
  /** By combination, or by a hash of it; null beyond what is one number. */
  #verdictsByLabel: Uint8Array | null = null;
  /** By the classes of a dictionary's codes, which change their identity when the dictionary has grown. */
  readonly #passesByCode = new WeakMap<Int32Array, Uint8Array>();
  /** Which combination a place of `#verdictsByLabel` is about, where it is found by hash. */
  #labelCache: Int32Array | null = null;
  /** For each feature, where its columns are among those of the condition. */
  #featureColumns: readonly (readonly number[])[] = [];

  constructor(features: readonly AtomsOfFeature[], rules: readonly VerdictRule[], atoms: number) {
    this.#tableFeatures = features;
    this.#verdictRules = rules;
    this.#atomStates = new Uint8Array(atoms);
  }

  bindColumns(columns: readonly string[]): this {
    this.#featureColumns = this.#tableFeatures.map(({ feature }) => feature.columns.map((column) => columns.indexOf(column)));
    return this;
  }

  /** Where one column is all that matters, and it has a dictionary: one look at a row. False where that is not so. */
  passByCode(vectors: readonly Vector[], rows: Rows, startVerdict: number, passesOut: Uint8Array): boolean {
    const { feature } = this.#tableFeatures[0]!;
    const vector = vectors[0]!;
    if (this.#tableFeatures.length > 1 || vector.kind !== 'dict' || !(feature instanceof ColumnClasses)) return false;
    const codeLabels = feature.tableOf(vector.dictionary);
    let codePasses = this.#passesByCode.get(codeLabels);
    if (codePasses === undefined) {
      codePasses = this.#passesOfCodes(feature, codeLabels, startVerdict);
      this.#passesByCode.set(codeLabels, codePasses);
    }
    passDictionaryCodes(vector.values, vector.nulls, codePasses, codePasses.at(-1)!, rows, passesOut);
    return true;
  }

  /** Whether each code passes, and last whether NULL does. */
  #passesOfCodes(feature: ColumnClasses, codeLabels: Int32Array, startVerdict: number): Uint8Array {
    const classVerdicts = Uint8Array.from({ length: feature.size }, (_, label) => {
      const { atoms } = this.#tableFeatures[0]!;
      feature.statesOf(label).forEach((state, j) => (this.#atomStates[atoms[j]!] = state));
      return startVerdict | this.#verdictOfStates();
    });
    const codePasses = new Uint8Array(codeLabels.length + 1);
    codeLabels.forEach((label, code) => (codePasses[code] = classVerdicts[label]!));
    codePasses[codeLabels.length] = classVerdicts[feature.ofNull]!;
    concludeVerdicts(codePasses, codePasses.length);
    return codePasses;
  }

  /** Adds to out[k] what the rules say of row k. */
  judge(vectors: readonly Vector[], rows: Rows, verdictsOut: Uint8Array): void {
    const { count } = rows;
    if (rowClasses.length < count) rowClasses = new Int32Array(count * 2);
    const featureVectors = this.#featureColumns.map((columnIndexes) => columnIndexes.map((columnIndex) => vectors[columnIndex]!));
    // A block that shows more classes than there was room for is classified again, with room for them.
    do {
      this.#fitTable();
      if (this.#verdictsByLabel === null) {
        this.#judgeOneByOne(featureVectors, rows, verdictsOut);
        return;
      }
    } while (!this.#classify(featureVectors, rows));
    const labelVerdicts = this.#verdictsByLabel;
    const labelCache = this.#labelCache;
    const rowLabels = rowClasses;
    if (labelCache === null) {
      if (addVerdicts(rowLabels, labelVerdicts, count, verdictsOut)) return;
      for (let k = 0; k < count; k++)
        if (labelVerdicts[rowLabels[k]!] === 0) labelVerdicts[rowLabels[k]!] = this.#workOutVerdict(rowLabels[k]!);
      addVerdicts(rowLabels, labelVerdicts, count, verdictsOut);
      return;
    }
    for (let k = 0; k < count; k++) {
      const label = rowLabels[k]!;
      const cacheSlot = Math.imul(label, 0x9e37_79b1) >>> (32 - labelCacheBits);
      if (labelCache[cacheSlot] !== label) {
        labelCache[cacheSlot] = label;
        labelVerdicts[cacheSlot] = this.#workOutVerdict(label);
      }
      verdictsOut[k]! |= labelVerdicts[cacheSlot]!;
    }
  }

  /** False when a class has more bits than it was given. */
  #classify(featureVectors: readonly (readonly Vector[])[], rows: Rows): boolean {
    rowClasses.fill(0, 0, rows.count);
    let shift = 0;
    for (const [i, { feature }] of this.#tableFeatures.entries()) {
      feature.classify(featureVectors[i]!, rows, shift, rowClasses);
      if (bitsForClasses(feature.size) > this.#featureBits[i]!) return false;
      shift += this.#featureBits[i]!;
    }
    return true;
  }

  #fitTable(): void {
    const featureBits = this.#tableFeatures.map(({ feature }, i) =>
      Math.max(bitsForClasses(feature.size), this.#featureBits[i] ?? 2),
    );
    const totalBits = featureBits.reduce((sum, bitCount) => sum + bitCount, 0);
    if (this.#verdictsByLabel !== null && featureBits.every((bitCount, i) => bitCount === this.#featureBits[i])) return;
    this.#featureBits = featureBits;
    const isHashedTable = totalBits > tableBits && totalBits <= labelBits;
    this.#labelCache = isHashedTable ? new Int32Array(1 << labelCacheBits).fill(-1) : null;
    this.#verdictsByLabel = totalBits > labelBits ? null : new Uint8Array(1 << (isHashedTable ? labelCacheBits : totalBits));
  }

  #workOutVerdict(label: number): number {
    let remainingLabel = label;
    for (const [i, { feature, atoms }] of this.#tableFeatures.entries()) {
      const labelStates = feature.statesOf(remainingLabel & ((1 << this.#featureBits[i]!) - 1));
      for (let j = 0; j < atoms.length; j++) this.#atomStates[atoms[j]!] = labelStates[j]!;
      remainingLabel >>= this.#featureBits[i]!;
    }
    return this.#verdictOfStates();
  }

  #judgeOneByOne(featureVectors: readonly (readonly Vector[])[], rows: Rows, verdictsOut: Uint8Array): void {
    const { count } = rows;
    const labels = this.#tableFeatures.map(({ feature }, i) => {
      const featureLabels = new Int32Array(count);
      feature.classify(featureVectors[i]!, rows, 0, featureLabels);
      return featureLabels;
    });
    for (let k = 0; k < count; k++) {
      for (const [i, { feature, atoms }] of this.#tableFeatures.entries()) {
        const labelStates = feature.statesOf(labels[i]![k]!);
        for (let j = 0; j < atoms.length; j++) this.#atomStates[atoms[j]!] = labelStates[j]!;
      }
      verdictsOut[k]! |= this.#verdictOfStates();
    }
  }

  #verdictOfStates(): number {
    let verdict = KNOWN;
    for (const { node, effect } of this.#verdictRules) {
      if ((verdict & effect) !== 0) continue;
      const ruleState = stateOfNode(node, this.#atomStates);
      if (ruleState === IS_TRUE || (ruleState === ERRS && effect === FORBIDDEN)) verdict |= effect;
    }
    return verdict;
  }
}
