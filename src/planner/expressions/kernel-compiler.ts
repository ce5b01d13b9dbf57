/**
 * Expressions to loops. A kernel is generated per expression and layout of its input (which typed array each column
 * rests in, which have NULLs), so the loop reads arrays and nothing else: no object or closure per row.
 *
 * - Code is made of column numbers, parameter numbers and fixed words only. Literals and names never enter it: they are
 *   arguments, so one kernel serves every literal and no text of a caller can become code.
 * - Conditions are two rails: "is true" and "is false". NULL is neither, so three-valued logic is `&` and `|` of 0 and 1.
 * - Integers are doubles while results stay within 2^53; a result beyond throws `widen`, and the block runs again on a
 *   kernel of bigints, exact to 64 bits.
 * - A predicate over one dictionary column is a table lookup: the text is judged once per code.
 */
import { AssertionError } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { compareText } from '../../log/value.ts';
import { type Bound, type BoundColumn, childrenOf, columnsIn, mayRaise } from './bound-expression.ts';
import { integerOverflow, numberOverflow } from './evaluate.ts';
import { generated } from './generated.ts';
import type { KernelContext } from './kernel-context.ts';
import { LikePattern } from './like.ts';

/** Thrown by a narrow kernel: the block needs bigints. */
export const widen = Symbol('widen');

/** Writes numbers of the rows kept to `out`, returns how many. */
export type FilterKernel = (
  columns: readonly Vector[],
  context: KernelContext,
  selection: Int32Array | null,
  first: number,
  count: number,
  out: Int32Array,
) => number;

export type ProjectTarget = Float64Array | BigInt64Array | Uint8Array | Int32Array;

/** Writes results at the rows' own numbers. */
export type ProjectKernel = (
  columns: readonly Vector[],
  context: KernelContext,
  selection: Int32Array | null,
  first: number,
  count: number,
  out: ProjectTarget,
  nulls: Uint8Array | null,
) => void;

/** Layout of a computed column: `code` is a code of the interner that belongs to the expression. */
export type ComputedLayout = 'f64' | 'i64' | 'bool' | 'code' | 'null';

export interface CompiledProject {
  readonly kernel: ProjectKernel;
  readonly layout: ComputedLayout;
  readonly nullable: boolean;
}

/** What the generated code depends on besides the expression. */
export interface Shape {
  readonly columns: readonly Vector[];
  readonly context: KernelContext;
  /** Rows come as first .. first+count-1, not as a selection. */
  readonly dense: boolean;
  readonly wide: boolean;
}

const layoutLetters: Record<Vector['kind'], string> = {
  i32: 'i',
  f64: 'f',
  i64: 'l',
  bool: 'b',
  dict: 'd',
  text: 't',
  vec: 'v',
  null: '0',
};

/** Kernels of one expression by signature; lives as long as its plan. */
export class KernelCache<K> {
  readonly #bound: Bound;
  readonly #compile: (bound: Bound, shape: Shape) => K;
  readonly #columns: readonly number[];
  readonly #parameters: readonly number[];
  readonly #kernels = new Map<string, K>();

  constructor(bound: Bound, compile: (bound: Bound, shape: Shape) => K) {
    this.#bound = bound;
    this.#compile = compile;
    this.#columns = [...columnsIn(bound)];
    this.#parameters = [...parametersIn(bound)];
  }

  get(shape: Shape): K {
    let signature = shape.dense ? (shape.wide ? 'DW' : 'D') : shape.wide ? 'W' : '';
    for (const index of this.#columns) {
      const vector = shape.columns[index]!;
      signature += layoutLetters[vector.kind];
      if (vector.kind !== 'null' && vector.nulls) signature += '?';
    }
    for (const index of this.#parameters) signature += shape.context.parameters[index]!.letter;
    let kernel = this.#kernels.get(signature);
    if (!kernel) this.#kernels.set(signature, (kernel = this.#compile(this.#bound, shape)));
    return kernel;
  }
}

export function compileFilter(predicate: Bound, shape: Shape): FilterKernel {
  const code = new KernelCode(shape);
  const conjuncts = predicate.kind === 'and' ? [...predicate.operands] : [predicate];
  // Cheap tests are one branchless mask; each dear one runs only on rows that are still in.
  const ranked = conjuncts.map((bound) => ({ bound, cost: code.cost(bound) })).sort((a, b) => a.cost - b.cost);
  let mask = '';
  for (const { bound, cost } of ranked) {
    if (cost > 0 && mask !== '') code.emit(`if (!(${mask})) continue;`);
    const test = code.truth(bound, 'true');
    mask = cost > 0 || mask === '' ? test : `${mask} & ${test}`;
  }
  return code.finish<FilterKernel>(
    'columns, context, selection, first, count, out',
    `out[kept] = i; kept = (kept + ((${mask}) & 1)) | 0;`,
  );
}

export function compileProject(bound: Bound, shape: Shape): CompiledProject {
  const code = new KernelCode(shape);
  if (bound.type === 'null') return { kernel: () => undefined, layout: 'null', nullable: true };
  const value = code.result(bound);
  if (value.ok === '0') return { kernel: () => undefined, layout: 'null', nullable: true };
  const nulls = value.ok === null ? '' : `nulls[i] = ${value.ok} ? 0 : 1;`;
  const kernel = code.finish<ProjectKernel>(
    'columns, context, selection, first, count, out, nulls',
    `out[i] = ${value.code}; ${nulls}`,
  );
  const layout = value.rep === 'code' ? 'code' : value.rep === 'bool' ? 'bool' : value.rep === 'big' ? 'i64' : 'f64';
  return { kernel, layout, nullable: value.ok !== null };
}

/** `int`: an exact integer in a double. `code`: a code of the context's interner of the whole expression. */
type Rep = 'int' | 'num' | 'big' | 'bool' | 'code';

/** A value as code; `ok` is code that is 1 where the value is not NULL, or null where it never is. */
interface Value {
  readonly code: string;
  readonly ok: string | null;
  readonly rep: Rep;
}

type Rail = 'true' | 'false';

class KernelCode {
  readonly #shape: Shape;
  readonly #prologue: string[] = [];
  readonly #body: string[] = [];
  readonly #sites: unknown[] = [];
  readonly #known = new Map<string, string>();
  #names = 0;
  #interner = '';

  constructor(shape: Shape) {
    this.#shape = shape;
  }

  emit(line: string): void {
    this.#body.push(line);
  }

  finish<K>(parameters: string, last: string): K {
    const counting = parameters.endsWith('out');
    const loop = this.#shape.dense
      ? 'for (let i = first, end = first + count; i < end; i++) {'
      : 'for (let j = 0; j < count; j++) { const i = selection[j];';
    const source = [
      `"use strict"; return function (${parameters}) {`,
      ...this.#prologue,
      counting ? 'let kept = 0;' : '',
      loop,
      ...this.#body,
      last,
      '}',
      counting ? 'return kept;' : '',
      '};',
    ].join('\n');
    const make = generated<(sites: readonly unknown[], help: typeof helpers) => K>(['sites', 'help'], source);
    return make(this.#sites, helpers);
  }

  /** The value of a whole expression in the representation that its type leaves in. */
  result(bound: Bound): Value {
    if (bound.type === 'string' || bound.type === 'json') return this.#code(bound, this.#internerOf(bound));
    const value = this.value(bound);
    if (bound.type === 'number') return this.#converted(value, 'num');
    return bound.type === 'timestamp' ? this.#converted(value, 'big') : value;
  }

  cost(bound: Bound): number {
    if (this.#tableColumn(bound) !== null) return 0;
    if (mayRaise(bound)) return 1;
    return touchesText(bound, this.#shape.columns) ? 2 : bound.kind === 'case' ? 1 : 0;
  }

  /** Code that is 1 (or true) exactly where the condition is true, or exactly where it is false. */
  truth(bound: Bound, rail: Rail): string {
    const dictionaryColumn = this.#tableColumn(bound);
    if (dictionaryColumn !== null) return this.#lookup(bound, dictionaryColumn, rail);
    switch (bound.kind) {
      case 'not':
        return this.truth(bound.operand, rail === 'true' ? 'false' : 'true');
      case 'and':
      case 'or': {
        const joint = (bound.kind === 'and') === (rail === 'true') ? ' & ' : ' | ';
        return `(${bound.operands.map((operand) => this.truth(operand, rail)).join(joint)})`;
      }
      case 'compare':
        return this.#compare(bound, rail);
      case 'is-null': {
        const ok = this.#notNull(bound.operand);
        if (ok === null) return rail === 'true' ? '0' : '1';
        return rail === 'true' ? `(${ok} ^ 1)` : ok;
      }
      case 'in':
        return this.#in(bound, rail);
      case 'like':
        return this.#like(bound, rail);
      case 'literal':
      case 'now':
        throw new AssertionError('constants are parameters by now');
      default: {
        const value = this.value(bound);
        return both(value.ok, rail === 'true' ? `(${value.code} === 1)` : `(${value.code} === 0)`);
      }
    }
  }

  value(bound: Bound): Value {
    switch (bound.kind) {
      case 'column':
        return this.#column(bound);
      case 'parameter':
        return this.#parameter(bound.index);
      case 'arithmetic':
        return this.#arithmetic(bound);
      case 'negate':
        return this.#arithmetic({ kind: 'arithmetic', op: '-', left: zero, right: bound.operand, type: bound.type });
      case 'case':
        return this.#case(bound, (result) => this.value(result), bound.type);
      case 'literal':
      case 'now':
        throw new AssertionError('constants are parameters by now');
      default: {
        const isTrue = this.#temporary(this.truth(bound, 'true'));
        const isFalse = this.#temporary(this.truth(bound, 'false'));
        return { code: `(${isTrue} & 1)`, ok: `(${isTrue} | ${isFalse})`, rep: 'bool' };
      }
    }
  }

  #column(bound: BoundColumn): Value {
    const vector = this.#shape.columns[bound.index]!;
    if (vector.kind === 'null') return { code: '0', ok: '0', rep: bound.type === 'boolean' ? 'bool' : 'int' };
    const name = this.#vector(bound.index);
    const ok = this.#ok(bound.index);
    const code = `${name}v[i]`;
    if (vector.kind === 'bool') return { code, ok, rep: 'bool' };
    if (vector.kind === 'i64')
      return bound.type === 'number' ? { code: `Number(${code})`, ok, rep: 'num' } : { code, ok, rep: 'big' };
    if (vector.kind === 'i32' || vector.kind === 'f64') return { code, ok, rep: bound.type === 'number' ? 'num' : 'int' };
    throw new AssertionError(`a ${vector.kind} column is no scalar number`);
  }

  #parameter(index: number): Value {
    const { letter } = this.#shape.context.parameters[index]!;
    if (letter === 'z') return { code: '0', ok: '0', rep: 'int' };
    const name = this.#once(`p${index}`, `context.parameters[${index}].narrow`);
    return { code: name, ok: null, rep: letter === 'i' ? 'int' : letter === 'b' ? 'big' : letter === 'n' ? 'num' : 'bool' };
  }

  #arithmetic(bound: Extract<Bound, { kind: 'arithmetic' }>): Value {
    let left = bound.left === zero ? zeroValue : this.value(bound.left);
    let right = this.value(bound.right);
    const { op, type } = bound;
    let ok = both(left.ok, right.ok);
    if (type === 'number') {
      left = this.#converted(left, 'num');
      right = this.#converted(right, 'num');
      let divisor = right.code;
      if (op === '/' || op === '%') {
        divisor = this.#temporary(right.code);
        ok = both(ok, `(${divisor} !== 0)`);
      }
      const result = this.#guarded(ok, `${left.code} ${op} ${divisor}`, '0');
      // Infinity and NaN are the only values that differ from themselves once subtracted.
      this.emit(`if (${result} - ${result} !== 0) throw help.numberOverflow();`);
      return this.#held(result, ok, 'num');
    }
    const big = this.#shape.wide || left.rep === 'big' || right.rep === 'big';
    if (big) {
      left = this.#converted(left, 'big');
      right = this.#converted(right, 'big');
    }
    let divisor = right.code;
    if (op === '%') {
      divisor = this.#temporary(right.code);
      ok = both(ok, `(${divisor} !== ${big ? '0n' : '0'})`);
    }
    if (big) {
      const result = this.#guarded(ok, `${left.code} ${op} ${divisor}`, '0n');
      this.emit(`if (BigInt.asIntN(64, ${result}) !== ${result}) throw help.integerOverflow();`);
      return this.#held(result, ok, 'big');
    }
    // Adding 0 turns -0, which no integer is, into 0.
    const result = this.#guarded(
      ok,
      op === '*' || op === '%' ? `${left.code} ${op} ${divisor} + 0` : `${left.code} ${op} ${divisor}`,
      '0',
    );
    this.emit(`if (${result} > 9007199254740991 || ${result} < -9007199254740991) throw help.widen;`);
    return this.#held(result, ok, 'int');
  }

  /** What lies under a NULL is arbitrary: it must not take part in arithmetic that can fail. */
  #guarded(ok: string | null, code: string, otherwise: string): string {
    return this.#temporary(ok === null ? code : `${ok} ? ${code} : ${otherwise}`);
  }

  #held(code: string, ok: string | null, rep: Rep): Value {
    return { code, ok: ok === null ? null : this.#temporary(ok), rep };
  }

  /** Branches are nested statements: a branch not taken computes nothing and can't fail. */
  #case(bound: Extract<Bound, { kind: 'case' }>, yields: (result: Bound) => Value, type: Bound['type']): Value {
    const rep: Rep =
      type === 'number'
        ? 'num'
        : type === 'boolean'
          ? 'bool'
          : type === 'string' || type === 'json'
            ? 'code'
            : this.#integerRep(bound);
    const held = this.#name();
    const ok = this.#name();
    this.emit(`let ${held} = ${rep === 'big' ? '0n' : '0'}, ${ok} = 0;`);
    const assign = (each: Bound): void => {
      const value = this.#converted(yields(each), rep);
      if (value.ok === '0') return;
      this.emit(`${held} = ${value.code}; ${ok} = ${value.ok === null ? '1' : `${value.ok} ? 1 : 0`};`);
    };
    let open = 0;
    for (const { when, result } of bound.branches) {
      this.emit('{');
      this.emit(`if (${this.truth(when, 'true')}) {`);
      assign(result);
      this.emit('} else {');
      open += 2;
    }
    if (bound.otherwise) assign(bound.otherwise);
    this.emit('}'.repeat(open));
    return { code: held, ok, rep };
  }

  /** Branches of one CASE share a representation: bigint as soon as one of them is. */
  #integerRep(bound: Extract<Bound, { kind: 'case' }>): Rep {
    const results = [...bound.branches.map(({ result }) => result), ...(bound.otherwise ? [bound.otherwise] : [])];
    return this.#shape.wide || bound.type === 'timestamp' || results.some((each) => this.#isBig(each)) ? 'big' : 'int';
  }

  #isBig(bound: Bound): boolean {
    if (bound.kind === 'column') return this.#shape.columns[bound.index]!.kind === 'i64';
    if (bound.kind === 'parameter') return this.#shape.context.parameters[bound.index]!.letter === 'b';
    if (bound.kind === 'arithmetic') return this.#isBig(bound.left) || this.#isBig(bound.right);
    if (bound.kind === 'negate') return this.#isBig(bound.operand);
    return bound.kind === 'case' && this.#integerRep(bound) === 'big';
  }

  #converted(value: Value, rep: Rep): Value {
    if (value.rep === rep || value.ok === '0')
      return value.ok === '0' ? { ...value, code: rep === 'big' ? '0n' : '0', rep } : value;
    if (rep === 'big') {
      // What lies under a NULL of an integer column may be anything, but is always an integer.
      return { ...value, code: `BigInt(${value.code})`, rep };
    }
    if (rep === 'num') return value.rep === 'int' ? { ...value, rep } : { ...value, code: `Number(${value.code})`, rep };
    throw new AssertionError(`${value.rep} does not convert to ${rep}`);
  }

  #compare(bound: Extract<Bound, { kind: 'compare' }>, rail: Rail): string {
    const op = rail === 'true' ? bound.op : opposite[bound.op];
    if (isTextual(bound.left) || isTextual(bound.right)) return this.#compareText(bound.left, bound.right, op);
    const left = this.value(bound.left);
    const right = this.value(bound.right);
    if (left.ok === '0' || right.ok === '0') return '0';
    const leftWords = this.#words(bound.left, right);
    const rightWords = this.#words(bound.right, left);
    if (leftWords && rightWords) return both(both(left.ok, right.ok), compareWords(leftWords, rightWords, op));
    const l = this.#beside(bound.left, left, right);
    const r = this.#beside(bound.right, right, left);
    // Comparing a bigint with a double is exact in this language, as long as nothing converts either.
    const strict = (left.rep === 'big') === (right.rep === 'big') || l !== left.code || r !== right.code;
    const sign = op === '=' ? (strict ? '===' : '==') : op === '!=' ? (strict ? '!==' : '!=') : op;
    return both(both(left.ok, right.ok), `(${l} ${sign} ${r})`);
  }

  /** High and low halves of a 64-bit column, or of an integer constant beside one: far cheaper to compare than bigints. */
  #words(bound: Bound, other: Value): Words | null {
    if (bound.kind === 'column' && this.#shape.columns[bound.index]!.kind === 'i64' && bound.type !== 'number') {
      const words = this.#once(`${this.#vector(bound.index)}w`, `help.words(c${bound.index}v)`);
      return { high: `${words}[2 * i + 1]`, low: `${words}[2 * i]` };
    }
    if (bound.kind !== 'parameter' || other.rep !== 'big') return null;
    const { letter } = this.#shape.context.parameters[bound.index]!;
    if (letter !== 'i' && letter !== 'b') return null;
    const high = this.#once(`p${bound.index}h`, `Number(context.parameters[${bound.index}].big >> 32n)`);
    const low = this.#once(`p${bound.index}w`, `Number(BigInt.asIntN(32, context.parameters[${bound.index}].big))`);
    return { high, low };
  }

  /** A small integer constant beside a bigint column is better a bigint too. */
  #beside(bound: Bound, value: Value, other: Value): string {
    if (bound.kind !== 'parameter' || value.rep !== 'int' || other.rep !== 'big') return value.code;
    return this.#once(`p${bound.index}b`, `context.parameters[${bound.index}].big`);
  }

  #compareText(left: Bound, right: Bound, op: string): string {
    const ok = both(this.#notNull(left), this.#notNull(right));
    if (ok === '0') return '0';
    const sign = op === '=' ? '===' : op === '!=' ? '!==' : op;
    const constant = right.kind === 'parameter' ? right : left.kind === 'parameter' ? left : null;
    const other = constant === right ? left : right;
    if (constant && other.kind === 'column' && this.#shape.columns[other.index]!.kind === 'text') {
      const bytes = this.#once(`p${constant.index}t`, `context.parameters[${constant.index}].bytes`);
      const name = this.#vector(other.index);
      const range = `${name}h, ${name}o[i], ${name}o[i + 1], ${bytes}`;
      if (op === '=' || op === '!=') return both(ok, `(help.equalBytes(${range}) ${sign} true)`);
      return both(ok, constant === right ? `(help.compareBytes(${range}) ${sign} 0)` : `(0 ${sign} help.compareBytes(${range}))`);
    }
    const a = this.#text(left);
    const b = this.#text(right);
    // Text under a NULL may not exist: both sides are looked at only where both are there.
    const test = op === '=' || op === '!=' ? `${a} ${sign} ${b}` : `help.compareText(${a}, ${b}) ${sign} 0`;
    return ok === null ? `(${test})` : `(${ok} ? ${test} : false)`;
  }

  /** A JavaScript string: the slow way, for columns beside columns and for text that a CASE yields. */
  #text(bound: Bound): string {
    if (bound.kind === 'parameter') return this.#once(`p${bound.index}`, `context.parameters[${bound.index}].narrow`);
    if (bound.kind === 'column') {
      const vector = this.#shape.columns[bound.index]!;
      if (vector.kind === 'null') return '""';
      const name = this.#vector(bound.index);
      return vector.kind === 'dict' ? `${name}d.text(${name}v[i])` : `help.decode(${name}h, ${name}o[i], ${name}o[i + 1])`;
    }
    const interner = this.#internerOf(bound);
    const value = this.#code(bound, interner);
    return `${interner}.text(${value.code})`;
  }

  /** A text as a code of `interner`. */
  #code(bound: Bound, interner: string): Value {
    if (bound.type === 'null') return { code: '0', ok: '0', rep: 'code' };
    if (bound.kind === 'case') return this.#case(bound, (result) => this.#code(result, interner), bound.type);
    if (bound.kind === 'parameter') {
      if (this.#shape.context.parameters[bound.index]!.letter === 'z') return { code: '0', ok: '0', rep: 'code' };
      const text = this.#once(`p${bound.index}`, `context.parameters[${bound.index}].narrow`);
      return { code: this.#once(`p${bound.index}c${interner}`, `${interner}.ofText(${text})`), ok: null, rep: 'code' };
    }
    if (bound.kind !== 'column') throw new AssertionError(`${bound.kind} yields no text`);
    const vector = this.#shape.columns[bound.index]!;
    if (vector.kind === 'null') return { code: '0', ok: '0', rep: 'code' };
    const name = this.#vector(bound.index);
    const ok = this.#ok(bound.index);
    let code: string;
    if (vector.kind === 'text') code = `${interner}.ofBytes(${name}h, ${name}o[i], ${name}o[i + 1])`;
    else {
      const table = this.#once(`${name}f${interner}`, `${interner}.foreign(${name}d)`);
      code = `(${table}[${name}v[i]] ? ${table}[${name}v[i]] - 1 : ${interner}.ofForeign(${name}d, ${name}v[i]))`;
    }
    // Under a NULL there may be a code that no dictionary has.
    return { code: ok === null ? code : `(${ok} ? ${code} : 0)`, ok, rep: 'code' };
  }

  #internerOf(bound: Bound): string {
    const site = this.#site(bound);
    this.#interner = this.#once(`n${site}`, `context.interner(sites[${site}])`);
    return this.#interner;
  }

  #in(bound: Extract<Bound, { kind: 'in' }>, rail: Rail): string {
    if (bound.items.length <= 8 || bound.operand.type === 'boolean') {
      const equal = bound.items.map(
        (item): Bound => ({ kind: 'compare', op: '=', left: bound.operand, right: item, type: 'boolean' }),
      );
      return this.truth({ kind: 'or', operands: equal, type: 'boolean' }, rail);
    }
    const site = this.#site(bound);
    const set = this.#once(`s${site}`, `context.constantSet(sites[${site}])`);
    const textual = isTextual(bound.operand);
    const value = textual ? null : this.value(bound.operand);
    const ok = value ? value.ok : this.#notNull(bound.operand);
    if (ok === '0') return '0';
    const code = value ? value.code : this.#text(bound.operand);
    const test = `${set}.${!value ? 'texts' : value.rep === 'big' ? 'bigs' : 'numbers'}.has(${code})`;
    const found = this.#temporary(ok === null ? test : `${ok} ? ${test} : false`);
    return rail === 'true' ? both(ok, found) : both(ok, `(!${found} & !${set}.hasNull)`);
  }

  #like(bound: Extract<Bound, { kind: 'like' }>, rail: Rail): string {
    const { operand, pattern } = bound;
    if (pattern.kind !== 'parameter') throw new AssertionError('a LIKE pattern is a constant');
    if (operand.type === 'null' || this.#shape.context.parameters[pattern.index]!.letter === 'z') return '0';
    const ok = this.#notNull(operand);
    if (ok === '0') return '0';
    const text = this.#once(`p${pattern.index}`, `context.parameters[${pattern.index}].narrow`);
    const matcher = this.#once(`p${pattern.index}l`, `help.like(${text})`);
    let test: string;
    if (operand.kind === 'column' && this.#shape.columns[operand.index]!.kind === 'text') {
      const name = this.#vector(operand.index);
      test = `${matcher}.matches(${name}h, ${name}o[i], ${name}o[i + 1])`;
    } else {
      test = `help.likeText(${matcher}, ${this.#text(operand)})`;
    }
    const found = this.#temporary(ok === null ? test : `${ok} ? ${test} : false`);
    return both(ok, rail === 'true' ? found : `!${found}`);
  }

  /** The dictionary column that alone decides a condition, if there is one. */
  #tableColumn(bound: Bound): number | null {
    if (bound.type !== 'boolean' || bound.kind === 'parameter' || mayRaise(bound)) return null;
    const columns = columnsIn(bound);
    if (columns.size !== 1) return null;
    const [index] = columns;
    return this.#shape.columns[index!]!.kind === 'dict' ? index! : null;
  }

  #lookup(bound: Bound, index: number, rail: Rail): string {
    const site = this.#site(bound);
    const name = this.#vector(index);
    const table = this.#once(`t${site}`, `context.truthTable(sites[${site}], ${name}d, count)`);
    const bytes = this.#once(`t${site}y`, `${table}.bytes`);
    const verdict = `(${bytes}[${name}v[i]] || ${table}.fill(${name}v[i]))`;
    const ok = this.#ok(index);
    const shift = rail === 'true' ? '' : ' >> 1';
    if (ok === null) return `((${verdict}${shift}) & 1)`;
    // Under a NULL there may be a code that no dictionary has: it is not looked up.
    const ofNull = this.#once(`t${site}n`, `${table}.ofNull`);
    return `(((${ok} ? ${verdict} : ${ofNull})${shift}) & 1)`;
  }

  /** Code for "is not NULL" of any expression; null where it never is NULL. */
  #notNull(bound: Bound): string | null {
    if (bound.type === 'null') return '0';
    if (bound.kind === 'column') return this.#shape.columns[bound.index]!.kind === 'null' ? '0' : this.#ok(bound.index);
    if (bound.kind === 'parameter') return this.#shape.context.parameters[bound.index]!.letter === 'z' ? '0' : null;
    if (isTextual(bound)) return this.#code(bound, this.#internerOf(bound)).ok;
    return this.value(bound).ok;
  }

  #ok(index: number): string | null {
    const vector = this.#shape.columns[index]!;
    return vector.kind !== 'null' && vector.nulls ? `(${this.#vector(index)}n[i] === 0)` : null;
  }

  /** Declares the arrays of a column ahead of the loop: `v` values, `n` nulls, `d` dictionary, `o` offsets, `h` heap. */
  #vector(index: number): string {
    const name = `c${index}`;
    if (this.#known.has(name)) return name;
    const vector = this.#shape.columns[index]!;
    this.#known.set(name, name);
    const parts: [string, string][] =
      vector.kind === 'text'
        ? [
            ['o', 'offsets'],
            ['h', 'heap'],
          ]
        : vector.kind === 'dict'
          ? [
              ['v', 'values'],
              ['d', 'dictionary'],
            ]
          : [['v', 'values']];
    if (vector.kind !== 'null' && vector.nulls) parts.push(['n', 'nulls']);
    for (const [suffix, property] of parts) this.#prologue.push(`const ${name}${suffix} = columns[${index}].${property};`);
    return name;
  }

  #once(name: string, code: string): string {
    if (!this.#known.has(name)) {
      this.#known.set(name, name);
      this.#prologue.push(`const ${name} = ${code};`);
    }
    return name;
  }

  #site(bound: Bound): number {
    const known = this.#sites.indexOf(bound);
    return known >= 0 ? known : this.#sites.push(bound) - 1;
  }

  #name(): string {
    return `x${this.#names++}`;
  }

  #temporary(code: string): string {
    const name = this.#name();
    this.emit(`const ${name} = ${code};`);
    return name;
  }
}

/** The low half is signed: an order between two of them takes `>>> 0`. */
interface Words {
  readonly high: string;
  readonly low: string;
}

function compareWords(left: Words, right: Words, op: string): string {
  const equal = `(${left.low} === ${right.low}) & (${left.high} === ${right.high})`;
  if (op === '=') return `(${equal})`;
  if (op === '!=') return `(1 - (${equal}))`;
  const strict = op.slice(0, 1);
  return `((${left.high} ${strict} ${right.high}) | ((${left.high} === ${right.high}) & (${left.low} >>> 0 ${op} ${right.low} >>> 0)))`;
}

const zero: Bound = { kind: 'parameter', index: -1, type: 'integer' };
const zeroValue: Value = { code: '0', ok: null, rep: 'int' };

const opposite = { '=': '!=', '!=': '=', '<': '>=', '<=': '>', '>': '<=', '>=': '<' } as const;

function both(left: string | null, right: string): string;
function both(left: string | null, right: string | null): string | null;
function both(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  if (left === '0' || right === '0') return '0';
  return `(${left} & ${right})`;
}

function isTextual(bound: Bound): boolean {
  return bound.type === 'string' || bound.type === 'json';
}

function touchesText(bound: Bound, columns: readonly Vector[]): boolean {
  for (const index of columnsIn(bound)) {
    const kind = columns[index]!.kind;
    if (kind === 'text' || kind === 'dict') return true;
  }
  return false;
}

function parametersIn(bound: Bound, into = new Set<number>()): Set<number> {
  if (bound.kind === 'parameter') into.add(bound.index);
  for (const child of childrenOf(bound)) parametersIn(child, into);
  return into;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** All that generated code may call. */
const helpers = {
  widen,
  integerOverflow,
  numberOverflow,
  compareText,
  like: (pattern: string): LikePattern => new LikePattern(pattern),
  likeText: (pattern: LikePattern, text: string): boolean => {
    const bytes = encoder.encode(text);
    return pattern.matches(bytes, 0, bytes.length);
  },
  words: (values: BigInt64Array): Int32Array => new Int32Array(values.buffer, values.byteOffset, values.length * 2),
  decode: (heap: Uint8Array, start: number, end: number): string => decoder.decode(heap.subarray(start, end)),
  equalBytes: (heap: Uint8Array, start: number, end: number, bytes: Uint8Array): boolean => {
    if (end - start !== bytes.length) return false;
    for (let i = start, j = 0; i < end; i++, j++) if (heap[i] !== bytes[j]) return false;
    return true;
  },
  /** Bytewise order of UTF-8 is codepoint order. */
  compareBytes: (heap: Uint8Array, start: number, end: number, bytes: Uint8Array): number => {
    const shared = Math.min(end - start, bytes.length);
    for (let j = 0; j < shared; j++) {
      const difference = heap[start + j]! - bytes[j]!;
      if (difference !== 0) return difference;
    }
    return end - start - bytes.length;
  },
};
