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
const keptBits = 16;

export function compileCondition(residuals: Residuals, typeOf: (column: string) => ColumnType): RowCondition {
  const permits = distinct(residuals.always ? [] : residuals.permits);
  const forbids = distinct(residuals.forbids);
  const columns = [...new Set([...permits.values(), ...forbids.values()].flatMap(columnsOf))].sort();
  const compiler = new AtomTable();
  const rules: Rule[] = [];
  for (const [expr, effect] of [
    ...[...permits.values()].map((permit) => [permit, PERMITTED] as const),
    ...[...forbids.values()].map((forbid) => [forbid, FORBIDDEN] as const),
  ]) {
    const atoms = new Set<number>();
    const node = compiler.compile(expr, atoms);
    rules.push({ node, effect, atoms });
  }
  const tables = tablesOf(rules, compiler.atoms, typeOf).map((table) => table.bindColumns(columns));
  const start = residuals.always ? PERMITTED : 0;
  const types = columns.map((column) => `${column}:${typeOf(column)}`).join(',');
  const keyText = (of: ReadonlyMap<string, Expr>): string => [...of.keys()].sort().join(' | ');
  return {
    columns,
    key: `(${types}) permit ${residuals.always ? 'true' : keyText(permits)} forbid ${keyText(forbids)}`,
    test(vectors, selection, first, count, out) {
      const rows = { selection, first, count };
      if (tables.length === 1 && tables[0]!.passByCode(vectors, rows, start, out)) return;
      out.fill(start, 0, count);
      for (const table of tables) table.judge(vectors, rows, out);
      conclude(out, count);
    },
  };
}

/** Whether a row passes, by the code of its one cell that matters. */
function passCodes(
  codes: Int32Array,
  nulls: Uint8Array | null,
  passes: Uint8Array,
  ofNull: number,
  { selection, first, count }: Rows,
  out: Uint8Array,
): void {
  if (nulls === null && selection === null) {
    for (let k = 0; k < count; k++) out[k] = passes[codes[first + k]!]!;
    return;
  }
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    out[k] = nulls !== null && nulls[row] === 1 ? ofNull : passes[codes[row]!]!;
  }
}

/** From verdicts to what passes. Loops over rows are functions of their own: V8 compiles them once, for every condition. */
function conclude(out: Uint8Array, count: number): void {
  for (let k = 0; k < count; k++) {
    const verdict = out[k]!;
    out[k] = verdict & ~(verdict >> 1) & PERMITTED;
  }
}

/** Adds verdicts by combination. False when one of them is not known yet. */
function addVerdicts(labels: Int32Array, verdicts: Uint8Array, count: number, out: Uint8Array): boolean {
  let known = KNOWN;
  for (let k = 0; k < count; k++) {
    const verdict = verdicts[labels[k]!]!;
    known &= verdict;
    out[k]! |= verdict;
  }
  return known !== 0;
}

function distinct(exprs: readonly Expr[]): ReadonlyMap<string, Expr> {
  return new Map(exprs.map((expr) => [textOf(expr), expr]));
}

/** A policy's condition over atoms, by their index. */
type Node =
  | { readonly op: 'constant'; readonly state: number }
  | { readonly op: 'atom'; readonly atom: number }
  | { readonly op: 'not'; readonly arg: Node }
  | { readonly op: 'and' | 'or'; readonly left: Node; readonly right: Node }
  | { readonly op: 'if'; readonly test: Node; readonly yes: Node; readonly no: Node };

interface Rule {
  readonly node: Node;
  readonly effect: number;
  readonly atoms: ReadonlySet<number>;
}

class AtomTable {
  readonly atoms: Expr[] = [];
  readonly #known = new Map<string, number>();

  compile(expr: Expr, used: Set<number>): Node {
    switch (expr.op) {
      case 'value':
        return { op: 'constant', state: expr.value === true ? IS_TRUE : expr.value === false ? IS_FALSE : ERRS };
      case 'error':
        return { op: 'constant', state: ERRS };
      case 'not':
        return { op: 'not', arg: this.compile(expr.arg, used) };
      case 'and':
      case 'or':
        return { op: expr.op, left: this.compile(expr.left, used), right: this.compile(expr.right, used) };
      case 'if': {
        const [test, yes, no] = [expr.test, expr.yes, expr.no].map((part) => this.compile(part, used));
        return { op: 'if', test: test!, yes: yes!, no: no! };
      }
      default: {
        const text = textOf(expr);
        let atom = this.#known.get(text);
        if (atom === undefined) {
          atom = this.atoms.push(expr) - 1;
          this.#known.set(text, atom);
        }
        used.add(atom);
        return { op: 'atom', atom };
      }
    }
  }
}

function stateIn(node: Node, states: Uint8Array): number {
  switch (node.op) {
    case 'constant':
      return node.state;
    case 'atom':
      return states[node.atom]!;
    case 'not': {
      const arg = stateIn(node.arg, states);
      return arg === ERRS ? ERRS : 1 - arg;
    }
    case 'and': {
      const left = stateIn(node.left, states);
      return left === IS_TRUE ? stateIn(node.right, states) : left;
    }
    case 'or': {
      const left = stateIn(node.left, states);
      return left === IS_FALSE ? stateIn(node.right, states) : left;
    }
    case 'if': {
      const test = stateIn(node.test, states);
      return test === ERRS ? ERRS : stateIn(test === IS_TRUE ? node.yes : node.no, states);
    }
  }
}

/** Rules that look at the same columns come into one table, as long as its size lets them. */
function tablesOf(
  rules: readonly Rule[],
  atoms: readonly Expr[],
  typeOf: (column: string) => ColumnType,
): readonly VerdictTable[] {
  const features = featuresOf(atoms, typeOf);
  const featureOfAtom = new Map<number, number>();
  features.forEach(({ atoms: own }, i) => own.forEach((atom) => featureOfAtom.set(atom, i)));
  const bitsOf = (of: Iterable<number>): number =>
    [...of].reduce((sum, i) => sum + bitsFor(Math.max(features[i]!.feature.size, features[i]!.atoms.length + 2)), 0);
  const groups: { features: Set<number>; readonly rules: Rule[] }[] = [];
  for (const rule of rules) {
    const own = new Set([...rule.atoms].map((atom) => featureOfAtom.get(atom)!));
    const group = groups
      .filter(({ features: taken }) => {
        const shares = [...own].some((feature) => taken.has(feature));
        return bitsOf(new Set([...taken, ...own])) <= (shares ? tableBits : sharedBits);
      })
      .sort((a, b) => newFeatureCount(a.features, own) - newFeatureCount(b.features, own))[0];
    if (group === undefined) groups.push({ features: own, rules: [rule] });
    else {
      for (const feature of own) group.features.add(feature);
      group.rules.push(rule);
    }
  }
  return groups.map(({ features: own, rules: ruled }) => {
    const ordered = [...own].sort((a, b) => a - b).map((i) => features[i]!);
    return new VerdictTable(ordered, ruled, atoms.length);
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

function featuresOf(atoms: readonly Expr[], typeOf: (column: string) => ColumnType): readonly AtomsOfFeature[] {
  const byColumn = new Map<string, number[]>();
  const features: AtomsOfFeature[] = [];
  atoms.forEach((atom, i) => {
    const columns = columnsOf(atom);
    const [column] = columns;
    const type = column === undefined ? undefined : typeOf(column);
    const isCut = (type !== 'integer' && type !== 'timestamp') || comparedWith([atom]) !== null;
    if (columns.length === 1 && isCut) byColumn.set(column!, [...(byColumn.get(column!) ?? []), i]);
    else features.push({ feature: new ComputedAtom(atom, typeOf), atoms: [i] });
  });
  for (const [column, own] of byColumn) {
    const asked = own.map((i) => atoms[i]!);
    features.push({ feature: new ColumnClasses(column, typeOf(column), asked), atoms: own });
  }
  return features;
}

function bitsFor(size: number): number {
  return Math.max(1, 32 - Math.clz32(size - 1));
}

/** Grown to the largest block so far: a block is judged in one go, and nothing of it is kept. */
let classes = new Int32Array(4096);

class VerdictTable {
  readonly #features: readonly AtomsOfFeature[];
  readonly #rules: readonly Rule[];
  readonly #states: Uint8Array;
  #bits: number[] = [];
  /** By combination, or by a hash of it; null beyond what is one number. */
  #verdicts: Uint8Array | null = null;
  /** By the classes of a dictionary's codes, which change their identity when the dictionary has grown. */
  readonly #passes = new WeakMap<Int32Array, Uint8Array>();
  /** Which combination a place of `#verdicts` is about, where it is found by hash. */
  #labelCache: Int32Array | null = null;
  /** For each feature, where its columns are among those of the condition. */
  #featureColumns: readonly (readonly number[])[] = [];

  constructor(features: readonly AtomsOfFeature[], rules: readonly Rule[], atoms: number) {
    this.#features = features;
    this.#rules = rules;
    this.#states = new Uint8Array(atoms);
  }

  bindColumns(columns: readonly string[]): this {
    this.#featureColumns = this.#features.map(({ feature }) => feature.columns.map((column) => columns.indexOf(column)));
    return this;
  }

  /** Where one column is all that matters, and it has a dictionary: one look at a row. False where that is not so. */
  passByCode(vectors: readonly Vector[], rows: Rows, start: number, out: Uint8Array): boolean {
    const { feature } = this.#features[0]!;
    const vector = vectors[0]!;
    if (this.#features.length > 1 || vector.kind !== 'dict' || !(feature instanceof ColumnClasses)) return false;
    const labels = feature.tableOf(vector.dictionary);
    let passes = this.#passes.get(labels);
    if (passes === undefined) {
      passes = this.#passesOf(feature, labels, start);
      this.#passes.set(labels, passes);
    }
    passCodes(vector.values, vector.nulls, passes, passes.at(-1)!, rows, out);
    return true;
  }

  /** Whether each code passes, and last whether NULL does. */
  #passesOf(feature: ColumnClasses, labels: Int32Array, start: number): Uint8Array {
    const verdicts = Uint8Array.from({ length: feature.size }, (_, label) => {
      const { atoms } = this.#features[0]!;
      feature.statesOf(label).forEach((state, j) => (this.#states[atoms[j]!] = state));
      return start | this.#verdict();
    });
    const passes = new Uint8Array(labels.length + 1);
    labels.forEach((label, code) => (passes[code] = verdicts[label]!));
    passes[labels.length] = verdicts[feature.ofNull]!;
    conclude(passes, passes.length);
    return passes;
  }

  /** Adds to out[k] what the rules say of row k. */
  judge(vectors: readonly Vector[], rows: Rows, out: Uint8Array): void {
    const { count } = rows;
    if (classes.length < count) classes = new Int32Array(count * 2);
    const own = this.#featureColumns.map((columnIndexes) => columnIndexes.map((columnIndex) => vectors[columnIndex]!));
    // A block that shows more classes than there was room for is classified again, with room for them.
    do {
      this.#fit();
      if (this.#verdicts === null) {
        this.#judgeOneByOne(own, rows, out);
        return;
      }
    } while (!this.#classify(own, rows));
    const verdicts = this.#verdicts;
    const labelCache = this.#labelCache;
    const labels = classes;
    if (labelCache === null) {
      if (addVerdicts(labels, verdicts, count, out)) return;
      for (let k = 0; k < count; k++) if (verdicts[labels[k]!] === 0) verdicts[labels[k]!] = this.#workOut(labels[k]!);
      addVerdicts(labels, verdicts, count, out);
      return;
    }
    for (let k = 0; k < count; k++) {
      const label = labels[k]!;
      const cacheSlot = Math.imul(label, 0x9e37_79b1) >>> (32 - keptBits);
      if (labelCache[cacheSlot] !== label) {
        labelCache[cacheSlot] = label;
        verdicts[cacheSlot] = this.#workOut(label);
      }
      out[k]! |= verdicts[cacheSlot]!;
    }
  }

  /** False when a class has more bits than it was given. */
  #classify(own: readonly (readonly Vector[])[], rows: Rows): boolean {
    classes.fill(0, 0, rows.count);
    let shift = 0;
    for (const [i, { feature }] of this.#features.entries()) {
      feature.classify(own[i]!, rows, shift, classes);
      if (bitsFor(feature.size) > this.#bits[i]!) return false;
      shift += this.#bits[i]!;
    }
    return true;
  }

  #fit(): void {
    const bits = this.#features.map(({ feature }, i) => Math.max(bitsFor(feature.size), this.#bits[i] ?? 2));
    const total = bits.reduce((sum, of) => sum + of, 0);
    if (this.#verdicts !== null && bits.every((of, i) => of === this.#bits[i])) return;
    this.#bits = bits;
    const hashed = total > tableBits && total <= labelBits;
    this.#labelCache = hashed ? new Int32Array(1 << keptBits).fill(-1) : null;
    this.#verdicts = total > labelBits ? null : new Uint8Array(1 << (hashed ? keptBits : total));
  }

  #workOut(label: number): number {
    let rest = label;
    for (const [i, { feature, atoms }] of this.#features.entries()) {
      const own = feature.statesOf(rest & ((1 << this.#bits[i]!) - 1));
      for (let j = 0; j < atoms.length; j++) this.#states[atoms[j]!] = own[j]!;
      rest >>= this.#bits[i]!;
    }
    return this.#verdict();
  }

  #judgeOneByOne(own: readonly (readonly Vector[])[], rows: Rows, out: Uint8Array): void {
    const { count } = rows;
    const labels = this.#features.map(({ feature }, i) => {
      const of = new Int32Array(count);
      feature.classify(own[i]!, rows, 0, of);
      return of;
    });
    for (let k = 0; k < count; k++) {
      for (const [i, { feature, atoms }] of this.#features.entries()) {
        const states = feature.statesOf(labels[i]![k]!);
        for (let j = 0; j < atoms.length; j++) this.#states[atoms[j]!] = states[j]!;
      }
      out[k]! |= this.#verdict();
    }
  }

  #verdict(): number {
    let verdict = KNOWN;
    for (const { node, effect } of this.#rules) {
      if ((verdict & effect) !== 0) continue;
      const state = stateIn(node, this.#states);
      if (state === IS_TRUE || (state === ERRS && effect === FORBIDDEN)) verdict |= effect;
    }
    return verdict;
  }
}
