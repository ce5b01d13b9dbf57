/**
 * The text of one kernel, built from an expression for one layout of its input. Code is made of column numbers, parameter numbers
 * and fixed words only; values of the caller are passed as arguments.
 */
import { AssertionError } from '../../errors.ts';
import {
  type Bound,
  type BoundColumn,
  codeParts,
  columnsIn,
  type CompareOp,
  groupsOf,
  isConstantSet,
  mayRaise,
  partsOf,
  some,
} from './bound-expression.ts';
import {
  both,
  cellOf,
  resultsOf,
  compareWords,
  isTextual,
  opposite,
  signOf,
  touchesText,
  type Words,
  never,
  type Rails,
  type Rep,
  type Operand,
  repOf,
  scalarOf,
  type Value,
} from './kernel-text.ts';
import { cosine, distance, vectorCell } from './kernel-vectors.ts';
import { KernelWriter } from './kernel-writer.ts';
import { isCounted } from './functions/scalar-function.ts';

/** Parts of a condition in one function, and about how many functions one calls. */
const functionParts = 256;
const functionCalls = 64;

export class KernelCode extends KernelWriter {
  #interner = '';

  /** The value of a whole expression in the representation that its type leaves in. */
  result(bound: Bound): Value {
    if (bound.type === 'string' || bound.type === 'json') return this.#code(bound, this.#internerOf(bound));
    const value = this.value(bound);
    if (bound.type === 'number') return this.#convert(value, 'num');
    return bound.type === 'timestamp' ? this.#convert(value, 'big') : value;
  }

  cost(bound: Bound): number {
    if (mayRaise(bound)) return 1;
    if (partsOf(bound) > manyParts) return 3;
    if (this.#tableColumn(bound) !== null) return 0;
    return touchesText(bound, this.shape.columns) ? 2 : bound.kind === 'case' ? 1 : 0;
  }

  truth(bound: Bound): string {
    return this.rails(bound).isTrue;
  }

  /** Operands of a long condition are put together in functions of their own. */
  #fewOperands({ kind, operands }: Extract<Bound, { readonly kind: 'and' | 'or' }>): readonly Rails[] {
    const parts = operands.reduce((sum, each) => sum + codeParts(each), 0);
    const groups = groupsOf(operands, Math.max(functionParts, parts / functionCalls));
    if (groups.length === 1) return operands.map((operand) => this.rails(operand));
    return groups.map((group) => {
      const both = this.apart(() => {
        const { isTrue, isFalse } = this.rails({ kind, type: 'boolean', operands: group });
        return `(${isTrue}) | ((${isFalse}) << 1)`;
      });
      return { isTrue: `(${both} & 1)`, isFalse: `(${both} >> 1)` };
    });
  }

  /** Both rails at once: each operand is computed one time, however deep conditions nest. */
  rails(bound: Bound): Rails {
    const dictionaryColumn = this.#tableColumn(bound);
    if (dictionaryColumn !== null) return this.#lookup(bound, dictionaryColumn);
    switch (bound.kind) {
      case 'not': {
        const { isTrue, isFalse } = this.rails(bound.operand);
        return { isTrue: isFalse, isFalse: isTrue };
      }
      case 'and':
      case 'or': {
        const operands = this.#fewOperands(bound);
        const [whenTrue, whenFalse] = bound.kind === 'and' ? [' & ', ' | '] : [' | ', ' & '];
        return {
          isTrue: `(${operands.map(({ isTrue }) => isTrue).join(whenTrue)})`,
          isFalse: `(${operands.map(({ isFalse }) => isFalse).join(whenFalse)})`,
        };
      }
      case 'compare':
        return this.#compare(bound.op, this.#operand(bound.left), this.#operand(bound.right));
      case 'between': {
        const operand = this.#operand(bound.operand);
        const above = this.#compare('>=', operand, this.#operand(bound.low));
        const below = this.#compare('<=', operand, this.#operand(bound.high));
        return { isTrue: `(${above.isTrue} & ${below.isTrue})`, isFalse: `(${above.isFalse} | ${below.isFalse})` };
      }
      case 'is-null': {
        const { ok } = this.#operand(bound.operand);
        return ok === null ? { isTrue: '0', isFalse: '1' } : { isTrue: `(${ok} ^ 1)`, isFalse: ok };
      }
      case 'in':
        return this.#inList(bound);
      case 'in-set':
        return this.#inSet(bound);
      case 'same-folded': {
        const { ok, string } = this.#operand(bound.operand);
        const text = this.#operand(bound.text);
        const known = both(ok, text.ok);
        if (known === '0') return never;
        const wanted = this.once(`p${this.site(bound)}u`, `help.folded(${text.string})`);
        const same = this.temporary(`${ok === null ? '' : `${ok} && `}help.folded(${string}) === ${wanted}`);
        return { isTrue: both(known, same), isFalse: both(known, `!${same}`) };
      }
      case 'like':
        return this.#like(bound);
      case 'match':
        return this.#match(bound);
      case 'literal':
      case 'constant':
      case 'now':
      case 'subquery':
      case 'outer':
        throw new AssertionError('constants are parameters by now');
      default: {
        const { code, ok } = this.value(bound);
        return { isTrue: both(ok, `(${code} === 1)`), isFalse: both(ok, `(${code} === 0)`) };
      }
    }
  }

  value(bound: Bound): Value {
    switch (bound.kind) {
      case 'column':
        return this.column(bound);
      case 'parameter':
        return this.#parameter(bound.index);
      case 'arithmetic':
        return this.#arithmetic(bound);
      case 'negate':
        return this.#arithmetic({ kind: 'arithmetic', op: '-', left: zero, right: bound.operand, type: bound.type });
      case 'function':
        return this.#function(bound);
      case 'call':
        return this.#callCode(bound);
      case 'coalesce':
        return this.#coalesce(bound, (operand) => this.value(operand));
      case 'to-number':
        return this.#toNumber(bound.operand);
      case 'case':
        return this.#case(bound, (result) => this.value(result), bound.type);
      case 'literal':
      case 'constant':
      case 'now':
      case 'subquery':
      case 'outer':
        throw new AssertionError('constants are parameters by now');
      default: {
        const rails = this.rails(bound);
        const isTrue = this.temporary(rails.isTrue);
        return { code: `(${isTrue} & 1)`, ok: this.temporary(`${isTrue} | ${rails.isFalse}`), rep: 'bool' };
      }
    }
  }

  #parameter(index: number): Value {
    const { letter } = this.shape.context.parameters[index]!;
    if (letter === 'z') return { code: '0', ok: '0', rep: 'int' };
    const name = this.once(`p${index}`, `context.parameters[${index}].narrow`);
    return { code: name, ok: null, rep: letter === 'i' ? 'int' : letter === 'b' ? 'big' : letter === 'n' ? 'num' : 'bool' };
  }

  #arithmetic(bound: Extract<Bound, { kind: 'arithmetic' }>): Value {
    let left = bound.left === zero ? zeroValue : this.value(bound.left);
    let right = this.value(bound.right);
    const { op, type } = bound;
    let ok = both(left.ok, right.ok);
    if (type === 'number') {
      left = this.#convert(left, 'num');
      right = this.#convert(right, 'num');
      let divisor = right.code;
      if (op === '/' || op === '%') {
        divisor = this.temporary(right.code);
        ok = both(ok, `(${divisor} !== 0)`);
      }
      const result = this.guard(ok, `${left.code} ${op} ${divisor}`, '0');
      // Infinity and NaN are the only values that differ from themselves once subtracted.
      this.emit(`if (${result} - ${result} !== 0) throw help.numberOverflow();`);
      return this.valueOf(result, ok, 'num');
    }
    const big = this.shape.wide || left.rep === 'big' || right.rep === 'big';
    if (big) {
      left = this.#convert(left, 'big');
      right = this.#convert(right, 'big');
    }
    let divisor = right.code;
    if (op === '%') {
      divisor = this.temporary(right.code);
      ok = both(ok, `(${divisor} !== ${big ? '0n' : '0'})`);
    }
    if (big) {
      const result = this.guard(ok, `${left.code} ${op} ${divisor}`, '0n');
      this.emit(`if (BigInt.asIntN(64, ${result}) !== ${result}) throw help.integerOverflow();`);
      return this.valueOf(result, ok, 'big');
    }
    // Adding 0 turns -0, which no integer is, into 0.
    const result = this.guard(
      ok,
      op === '*' || op === '%' ? `${left.code} ${op} ${divisor} + 0` : `${left.code} ${op} ${divisor}`,
      '0',
    );
    this.emit(`if (${result} > 9007199254740991 || ${result} < -9007199254740991) throw help.widen;`);
    return this.valueOf(result, ok, 'int');
  }

  #function({ name, operands }: Extract<Bound, { kind: 'function' }>): Value {
    if (name === 'cosine') return cosine(this, operands[0]!, operands.slice(1));
    if (name === 'distance') {
      return distance(
        this,
        operands[0]!,
        operands.slice(1).map((bound) => this.#convert(this.value(bound), 'num')),
      );
    }
    const values = operands.map((operand) => this.#convert(this.value(operand), name === 'elapsed' ? 'big' : 'num'));
    if (name === 'known') {
      const [{ code, ok }] = values as [Value];
      return this.valueOf(this.temporary(ok === null ? code : `${ok} ? ${code} : 0`), null, 'num');
    }
    if (name === 'greatest') {
      const items = values.map(({ code, ok }) => (ok === null ? code : `(${ok} ? ${code} : -Infinity)`));
      const most = this.temporary(`Math.max(${items.join(', ')})`);
      return this.valueOf(most, values.some(({ ok }) => ok === null) ? null : `(${most} !== -Infinity)`, 'num');
    }
    const ok = values.reduce<string | null>((all, value) => both(all, value.ok), null);
    const result = this.guard(ok, `help.${name}(${values.map(({ code }) => code).join(', ')})`, '0');
    this.emit(`if (${result} - ${result} !== 0) throw help.numberOverflow();`);
    return this.valueOf(result, ok, 'num');
  }

  /**
   * The result of a registry function as a cell: the name of a constant that is null where the result is NULL. Returns null where
   * every result is NULL.
   */
  #cell(bound: Extract<Bound, { kind: 'call' }>): string | null {
    const { takesNull } = bound.function;
    const cells: string[] = [];
    let ok: string | null = null;
    for (const operand of bound.operands) {
      const { ok: there, value, string } = this.#operand(operand);
      const code = vectorCell(this, operand) ?? string ?? (value && cellOf(value));
      if (takesNull !== true) ok = both(ok, code === null ? '0' : there);
      if (ok === '0') return null;
      const known = takesNull !== true || there === null;
      cells.push(code === null || there === '0' ? 'null' : known ? code : `(${there} ? ${code} : null)`);
    }
    if (isCounted(bound.function)) this.count();
    const site = this.site(bound);
    const call = `${this.once(`f${site}`, `help.evaluator(sites[${site}], context)`)}(${cells.join(', ')})`;
    return this.temporary(ok === null ? call : `${ok} ? ${call} : null`);
  }

  #callCode(bound: Extract<Bound, { kind: 'call' }>): Value {
    const [operand] = bound.operands;
    const words = bound.function.ofHalves && operand?.kind === 'column' ? this.columnWords(operand) : null;
    if (words) {
      const site = this.site(bound);
      const field = this.once(`h${site}`, `sites[${site}].function.ofHalves`);
      const ok = this.ok((operand as BoundColumn).index);
      return { code: this.guard(ok, `${field}(${words.high}, ${words.low})`, '0'), ok, rep: repOf(bound) };
    }
    const cell = this.#cell(bound);
    const rep = repOf(bound);
    if (cell === null) return { code: rep === 'big' ? '0n' : '0', ok: '0', rep };
    return { code: scalarOf(cell, rep), ok: `(${cell} !== null)`, rep };
  }

  /** Nested statements, as for CASE: nothing behind the value that was found is computed. */
  #coalesce(bound: Extract<Bound, { kind: 'coalesce' }>, yields: (operand: Bound) => Value): Value {
    const rep = this.#sharedRep(bound.type, bound.operands);
    const held = this.name();
    const ok = this.name();
    this.emit(`let ${held} = ${rep === 'big' ? '0n' : '0'}, ${ok} = 0;`);
    for (const operand of bound.operands) {
      this.emit(`if (${ok} === 0) {`);
      const value = this.#convert(yields(operand), rep);
      if (value.ok !== '0') this.emit(`${held} = ${value.code}; ${ok} = ${value.ok === null ? '1' : `${value.ok} ? 1 : 0`};`);
      this.emit('}');
    }
    return { code: held, ok: `(${ok} === 1)`, rep };
  }

  #toNumber(operand: Bound): Value {
    const value = this.value(operand);
    if (value.rep === 'big' && value.ok !== '0') {
      const exact = `BigInt(Number(${value.code})) === ${value.code}`;
      this.emit(`if (!(${value.ok === null ? exact : `!${value.ok} || ${exact}`})) throw help.inexactNumber();`);
    }
    return this.#convert(value, 'num');
  }

  /** A branch that is not taken computes nothing and can't fail. */
  #case(bound: Extract<Bound, { kind: 'case' }>, yields: (result: Bound) => Value, type: Bound['type']): Value {
    const rep = this.#sharedRep(type, resultsOf(bound));
    const held = this.name();
    const ok = this.name();
    this.emit(`let ${held} = ${rep === 'big' ? '0n' : '0'}, ${ok} = 0;`);
    const assign = (each: Bound): void => {
      const value = this.#convert(yields(each), rep);
      if (value.ok === '0') return;
      this.emit(`${held} = ${value.code}; ${ok} = ${value.ok === null ? '1' : `${value.ok} ? 1 : 0`};`);
    };
    const operand = bound.operand && this.#operand(bound.operand);
    // Left at the branch that is taken: thousands of branches within each other are deeper than code may nest.
    const branches = this.name();
    this.emit(`${branches}: {`);
    for (const { when, result } of bound.branches) {
      this.emit(`if (${operand ? this.#compare('=', operand, this.#operand(when)).isTrue : this.truth(when)}) {`);
      assign(result);
      this.emit(`break ${branches}; }`);
    }
    if (bound.otherwise) assign(bound.otherwise);
    this.emit('}');
    return { code: held, ok, rep };
  }

  /** Results of one CASE share a representation: bigint as soon as one of them is. */
  #sharedRep(type: Bound['type'], results: readonly Bound[]): Rep {
    if (type === 'number') return 'num';
    if (type === 'boolean') return 'bool';
    if (type === 'string' || type === 'json') return 'code';
    return this.shape.wide || type === 'timestamp' || results.some((each) => this.#isBig(each)) ? 'big' : 'int';
  }

  #isBig(bound: Bound): boolean {
    if (bound.kind === 'column') return this.shape.columns[bound.index]!.kind === 'i64';
    if (bound.kind === 'parameter') return this.shape.context.parameters[bound.index]!.letter === 'b';
    if (bound.kind === 'arithmetic') return this.#isBig(bound.left) || this.#isBig(bound.right);
    if (bound.kind === 'negate') return this.#isBig(bound.operand);
    if (bound.kind === 'call') return repOf(bound) === 'big';
    if (bound.kind === 'coalesce') return this.#sharedRep(bound.type, bound.operands) === 'big';
    return bound.kind === 'case' && this.#sharedRep(bound.type, resultsOf(bound)) === 'big';
  }

  #convert(value: Value, rep: Rep): Value {
    if (value.rep === rep || value.ok === '0')
      return value.ok === '0' ? { ...value, code: rep === 'big' ? '0n' : '0', rep } : value;
    if (rep === 'big') {
      // The value under a NULL of an integer column is arbitrary, but always an integer.
      return { ...value, code: `BigInt(${value.code})`, rep };
    }
    if (rep === 'num') return value.rep === 'int' ? { ...value, rep } : { ...value, code: `Number(${value.code})`, rep };
    throw new AssertionError(`${value.rep} does not convert to ${rep}`);
  }

  /** An operand made ready to be used more than once. */
  #operand(bound: Bound): Operand {
    if (isTextual(bound)) return this.#textual(bound);
    if (bound.kind === 'column') {
      const { kind } = this.shape.columns[bound.index]!;
      if (kind === 'null') return { bound, ok: '0', value: null, bytes: null, string: null };
      // Vectors, and text under another name, are there or not, and nothing else.
      if (kind === 'vec' || kind === 'text' || kind === 'dict') {
        this.vector(bound.index);
        return { bound, ok: this.ok(bound.index), value: null, bytes: null, string: null };
      }
    }
    if (bound.type === 'null') return { bound, ok: '0', value: null, bytes: null, string: null };
    const value = this.value(bound);
    return { bound, ok: value.ok, value, bytes: null, string: null };
  }

  #textual(bound: Bound): Operand {
    if (bound.kind === 'parameter') {
      const absent = this.shape.context.parameters[bound.index]!.letter === 'z';
      if (absent) return { bound, ok: '0', value: null, bytes: null, string: null };
      const string = this.once(`p${bound.index}`, `context.parameters[${bound.index}].narrow`);
      return { bound, ok: null, value: null, bytes: null, string };
    }
    if (bound.kind === 'column') {
      const vector = this.shape.columns[bound.index]!;
      if (vector.kind === 'null') return { bound, ok: '0', value: null, bytes: null, string: null };
      const name = this.vector(bound.index);
      const ok = this.ok(bound.index);
      if (vector.kind === 'dict') return { bound, ok, value: null, bytes: null, string: `${name}d.text(${name}v[i])` };
      const bytes = `${name}h, ${name}o[i], ${name}o[i + 1]`;
      this.count();
      return { bound, ok, value: null, bytes, string: `help.decode(${bytes})` };
    }
    if (bound.kind === 'phonetic') {
      const { ok, string } = this.#textual(bound.operand);
      this.count();
      return { bound, ok, value: null, bytes: null, string: `help.phoneticCode('${bound.function}', ${string})` };
    }
    if (bound.kind === 'call') {
      const cell = this.#cell(bound);
      return { bound, ok: cell === null ? '0' : `(${cell} !== null)`, value: null, bytes: null, string: cell };
    }
    const interner = this.#internerOf(bound);
    const value = this.#code(bound, interner);
    return { bound, ok: value.ok, value: null, bytes: null, string: `${interner}.text(${value.code})` };
  }

  #compare(op: CompareOp, left: Operand, right: Operand): Rails {
    const ok = both(left.ok, right.ok);
    if (ok === '0') return never;
    const test = (sign: CompareOp): string =>
      left.value && right.value
        ? this.#compareValues(sign, left, left.value, right, right.value)
        : this.#compareTexts(sign, left, right, ok);
    return { isTrue: both(ok, test(op)), isFalse: both(ok, test(opposite[op])) };
  }

  #compareValues(op: CompareOp, left: Operand, leftValue: Value, right: Operand, rightValue: Value): string {
    const leftWords = this.#words(left.bound, rightValue);
    const rightWords = this.#words(right.bound, leftValue);
    if (leftWords && rightWords) return compareWords(leftWords, rightWords, op);
    const l = this.#alignParameter(left.bound, leftValue, rightValue);
    const r = this.#alignParameter(right.bound, rightValue, leftValue);
    // Comparing a bigint with a double is exact in this language, as long as nothing converts either.
    const strict = (leftValue.rep === 'big') === (rightValue.rep === 'big') || l !== leftValue.code || r !== rightValue.code;
    return `(${l} ${signOf(op, strict)} ${r})`;
  }

  #compareTexts(op: CompareOp, left: Operand, right: Operand, ok: string | null): string {
    const equality = op === '=' || op === '!=';
    const sign = signOf(op, true);
    const constant = right.bound.kind === 'parameter' ? right.bound : left.bound.kind === 'parameter' ? left.bound : null;
    const range = constant === right.bound ? left.bytes : right.bytes;
    if (constant && range) {
      const bytes = this.once(`p${constant.index}t`, `context.parameters[${constant.index}].bytes`);
      if (equality) return `(help.equalBytes(${range}, ${bytes}) ${sign} true)`;
      const order = `help.compareBytes(${range}, ${bytes})`;
      return constant === right.bound ? `(${order} ${sign} 0)` : `(0 ${sign} ${order})`;
    }
    if (left.bytes && right.bytes) return `(help.compareHeaps(${left.bytes}, ${right.bytes}) ${sign} 0)`;
    // Text under a NULL may not exist: both sides are looked at only where both are there.
    const test = equality
      ? `${left.string} ${sign} ${right.string}`
      : `help.compareText(${left.string}, ${right.string}) ${sign} 0`;
    return ok === null ? `(${test})` : `(${ok} ? ${test} : false)`;
  }

  /** High and low halves of a 64-bit column, or of an integer constant beside one: far cheaper to compare than bigints. */
  #words(bound: Bound, other: Value): Words | null {
    const column = bound.kind === 'column' ? this.columnWords(bound) : null;
    if (column) return column;
    if (bound.kind !== 'parameter' || other.rep !== 'big') return null;
    const { letter } = this.shape.context.parameters[bound.index]!;
    if (letter !== 'i' && letter !== 'b') return null;
    const high = this.once(`p${bound.index}h`, `Number(context.parameters[${bound.index}].big >> 32n)`);
    const low = this.once(`p${bound.index}w`, `Number(BigInt.asIntN(32, context.parameters[${bound.index}].big))`);
    return { high, low };
  }

  /** A small integer constant beside a bigint column is better a bigint too. */
  #alignParameter(bound: Bound, value: Value, other: Value): string {
    if (bound.kind !== 'parameter' || value.rep !== 'int' || other.rep !== 'big') return value.code;
    return this.once(`p${bound.index}b`, `context.parameters[${bound.index}].big`);
  }

  /** A text as a code of `interner`. */
  #code(bound: Bound, interner: string): Value {
    if (bound.type === 'null') return { code: '0', ok: '0', rep: 'code' };
    if (bound.kind === 'case') return this.#case(bound, (result) => this.#code(result, interner), bound.type);
    if (bound.kind === 'parameter') {
      if (this.shape.context.parameters[bound.index]!.letter === 'z') return { code: '0', ok: '0', rep: 'code' };
      const text = this.once(`p${bound.index}`, `context.parameters[${bound.index}].narrow`);
      return { code: this.once(`p${bound.index}c${interner}`, `${interner}.ofText(${text})`), ok: null, rep: 'code' };
    }
    if (bound.kind === 'lookup') return this.#lookupCode(bound, interner);
    if (bound.kind === 'coalesce') return this.#coalesce(bound, (operand) => this.#code(operand, interner));
    if (bound.kind === 'call') return this.#calledCode(bound, interner);
    if (bound.kind !== 'column') throw new AssertionError(`${bound.kind} yields no text`);
    const vector = this.shape.columns[bound.index]!;
    if (vector.kind === 'null') return { code: '0', ok: '0', rep: 'code' };
    const name = this.vector(bound.index);
    const ok = this.ok(bound.index);
    let code: string;
    this.count();
    if (vector.kind === 'text') code = `${interner}.ofBytes(${name}h, ${name}o[i], ${name}o[i + 1])`;
    else {
      const table = this.once(`${name}f${interner}`, `${interner}.foreign(${name}d)`);
      code = `(${table}[${name}v[i]] ? ${table}[${name}v[i]] - 1 : ${interner}.ofForeign(${name}d, ${name}v[i]))`;
    }
    // Under a NULL there may be a code that no dictionary has.
    return { code: ok === null ? code : `(${ok} ? ${code} : 0)`, ok, rep: 'code' };
  }

  /** Asks a function once for each text of a dictionary column. */
  #calledCode(bound: Extract<Bound, { kind: 'call' }>, interner: string): Value {
    const index = mayRaise(bound) ? null : this.#onlyDictionary(bound);
    if (index !== null) {
      const site = this.site(bound);
      const name = this.vector(index);
      this.count();
      const table = this.once(`d${site}${interner}`, `context.codeTable(sites[${site}], ${name}d, ${interner})`);
      const ok = this.ok(index);
      const verdict = this.temporary(
        ok === null ? `${table}.verdictOf(${name}v[i])` : `${ok} ? ${table}.verdictOf(${name}v[i]) : ${table}.ofNull`,
      );
      return { code: `(${verdict} < 0 ? 0 : ${verdict})`, ok: `(${verdict} >= 0)`, rep: 'code' };
    }
    const cell = this.#cell(bound);
    if (cell === null) return { code: '0', ok: '0', rep: 'code' };
    return { code: `(${cell} === null ? 0 : ${interner}.ofText(${cell}))`, ok: `(${cell} !== null)`, rep: 'code' };
  }

  /** Looks up each dictionary key once, not once per row. */
  #lookupCode(bound: Extract<Bound, { kind: 'lookup' }>, interner: string): Value {
    const { operand } = bound;
    const { ok, value, string } = this.#operand(operand);
    if (ok === '0') return { code: '0', ok: '0', rep: 'code' };
    this.count();
    const field = this.once(`l${this.site(bound)}${interner}`, `context.lookupField(sites[${this.site(bound)}])`);
    const isCode = operand.kind === 'column' && this.shape.columns[operand.index]!.kind === 'dict';
    const name = isCode ? this.vector(operand.index) : '';
    const key = isCode ? `${name}d, ${name}v[i]` : (string ?? value!.code);
    const codeCall = `${field}.${isCode ? 'ofCode' : 'codeOfKey'}(${interner}, ${key})`;
    const code = this.temporary(ok === null ? codeCall : `${ok} ? ${codeCall} : -1`);
    return { code: `(${code} < 0 ? 0 : ${code})`, ok: `(${code} >= 0)`, rep: 'code' };
  }

  #internerOf(bound: Bound): string {
    const site = this.site(bound);
    this.#interner = this.once(`n${site}`, `context.interner(sites[${site}])`);
    return this.#interner;
  }

  /** Few items, and items that depend on the row, are compared one by one; many constants are a set. */
  #inList(bound: Extract<Bound, { kind: 'in' }>): Rails {
    const operand = this.#operand(bound.operand);
    if (operand.ok === '0') return never;
    if (!isConstantSet(bound)) {
      const equal = bound.items.map((item) => this.#compare('=', operand, this.#operand(item)));
      return {
        isTrue: `(${equal.map(({ isTrue }) => isTrue).join(' | ')})`,
        isFalse: `(${equal.map(({ isFalse }) => isFalse).join(' & ')})`,
      };
    }
    const site = this.site(bound);
    const set = this.once(`s${site}`, `context.constantSet(sites[${site}])`);
    const { ok, value, bytes, string } = operand;
    const member = value ? (value.rep === 'big' ? 'bigs.has' : 'numbers.has') : bytes ? 'texts.hasBytes' : 'texts.has';
    const test = `${set}.${member}(${value ? value.code : (bytes ?? string)})`;
    const verdict = this.temporary(ok === null ? test : `${ok} ? ${test} : false`);
    return { isTrue: both(ok, verdict), isFalse: both(ok, `(!${verdict} & !${set}.hasNull)`) };
  }

  /** IN an empty set is false, even for NULL. */
  #inSet(bound: Extract<Bound, { kind: 'in-set' }>): Rails {
    const { ok, value, bytes, string } = this.#operand(bound.operand);
    const set = this.once(`q${bound.set}`, `context.subquerySet(${bound.set})`);
    const empty = this.once(`q${bound.set}e`, `${set}.isEmpty ? 1 : 0`);
    if (ok === '0') return { isTrue: '0', isFalse: empty };
    const member = value ? (value.rep === 'big' ? 'hasInteger' : 'hasNumber') : bytes ? 'hasBytes' : 'hasText';
    const test = `${set}.${member}(${value ? value.code : (bytes ?? string)})`;
    const verdict = this.temporary(ok === null ? test : `${ok} ? ${test} : false`);
    return { isTrue: both(ok, verdict), isFalse: `(${empty} | ${both(ok, `(!${verdict} & (${set}.hasNull ? 0 : 1))`)})` };
  }

  #like(bound: Extract<Bound, { kind: 'like' }>): Rails {
    const escapes = bound.escapes === true;
    const { pattern } = bound;
    const { ok, bytes, string } = this.#operand(bound.operand);
    this.count();
    if (pattern.kind !== 'parameter') {
      const patternOperand = this.#operand(pattern);
      const known = both(ok, patternOperand.ok);
      if (known === '0') return never;
      const test = `help.likeMatches(${patternOperand.string}, ${string}, ${escapes})`;
      const verdict = this.temporary(known === null ? test : `${known} ? ${test} : false`);
      return { isTrue: both(known, verdict), isFalse: both(known, `!${verdict}`) };
    }
    if (ok === '0' || this.shape.context.parameters[pattern.index]!.letter === 'z') return never;
    const text = this.once(`p${pattern.index}`, `context.parameters[${pattern.index}].narrow`);
    const matcher = this.once(`p${pattern.index}l`, `help.like(${text}, ${escapes})`);
    const test = bytes ? `${matcher}.matches(${bytes})` : `help.likeText(${matcher}, ${string})`;
    const soundVerdict = this.temporary(ok === null ? test : `${ok} ? ${test} : false`);
    return { isTrue: both(ok, soundVerdict), isFalse: both(ok, `!${soundVerdict}`) };
  }

  #match(bound: Extract<Bound, { kind: 'match' }>): Rails {
    const { operand, query, mode } = bound;
    if (query.kind !== 'parameter') throw new AssertionError('what MATCH seeks is a constant');
    this.count();
    const { ok, string } = this.#operand(operand);
    if (ok === '0' || this.shape.context.parameters[query.index]!.letter === 'z') return never;
    const sought = `context.parameters[${query.index}].narrow`;
    const column = JSON.stringify(operand.kind === 'column' ? operand.name : '');
    const matcher = this.once(`p${query.index}m${this.site(bound)}`, `context.rules.matcher(${sought}, '${mode}', ${column})`);
    const verdict = this.temporary(`${ok === null ? '' : `${ok} && `}${matcher}.matches(${string}, ${operand.type === 'json'})`);
    return { isTrue: both(ok, verdict), isFalse: both(ok, `!${verdict}`) };
  }

  /** The dictionary column that alone decides a condition, if there is one. Functions that can fail are dear: asked once too. */
  #tableColumn(bound: Bound): number | null {
    if (bound.type !== 'boolean' || bound.kind === 'parameter') return null;
    if (mayRaise(bound) && bound.kind !== 'call') return null;
    if (some(bound, isDraw)) return null;
    return this.#onlyDictionary(bound);
  }

  #onlyDictionary(bound: Bound): number | null {
    const columns = columnsIn(bound);
    if (columns.size !== 1) return null;
    const [index] = columns;
    return this.shape.columns[index!]!.kind === 'dict' ? index! : null;
  }

  #lookup(bound: Bound, index: number): Rails {
    const site = this.site(bound);
    const name = this.vector(index);
    this.count();
    const table = this.once(`t${site}`, `context.truthTable(sites[${site}], ${name}d, count)`);
    const bytes = this.once(`t${site}y`, `${table}.bytes`);
    const verdict = `(${bytes}[${name}v[i]] || ${table}.fill(${name}v[i]))`;
    const ok = this.ok(index);
    // Under a NULL there may be a code that no dictionary has: it is not looked up.
    const cellVerdict = this.temporary(ok === null ? verdict : `${ok} ? ${verdict} : ${table}.ofNull`);
    return { isTrue: `(${cellVerdict} & 1)`, isFalse: `((${cellVerdict} >> 1) & 1)` };
  }
}

/** Conditions of more parts are tested on rows alone that pass the others. */
const manyParts = 64;

const isDraw = (bound: Bound): boolean => bound.kind === 'call' && bound.function.draws === true;

const zero: Bound = { kind: 'parameter', index: -1, type: 'integer' };
const zeroValue: Value = { code: '0', ok: null, rep: 'int' };
