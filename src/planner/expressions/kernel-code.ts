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
const functionCodePartsMax = 256;
const functionCallsMax = 64;

export class KernelCode extends KernelWriter {
  #internerName = '';

  /** The value of a whole expression in the representation that its type leaves in. */
  result(bound: Bound): Value {
    if (bound.type === 'string' || bound.type === 'json') return this.#textCode(bound, this.#declareInterner(bound));
    const resultCode = this.value(bound);
    if (bound.type === 'number') return this.#convertRep(resultCode, 'num');
    return bound.type === 'timestamp' ? this.#convertRep(resultCode, 'big') : resultCode;
  }

  cost(bound: Bound): number {
    if (mayRaise(bound)) return 1;
    if (partsOf(bound) > dearCodeParts) return 3;
    if (this.#truthTableColumn(bound) !== null) return 0;
    return touchesText(bound, this.shape.columns) ? 2 : bound.kind === 'case' ? 1 : 0;
  }

  truth(bound: Bound): string {
    return this.rails(bound).isTrue;
  }

  /** Operands of a long condition are put together in functions of their own. */
  #groupOperands({ kind, operands }: Extract<Bound, { readonly kind: 'and' | 'or' }>): readonly Rails[] {
    const operandCodeParts = operands.reduce((sum, operandPart) => sum + codeParts(operandPart), 0);
    const operandGroups = groupsOf(operands, Math.max(functionCodePartsMax, operandCodeParts / functionCallsMax));
    if (operandGroups.length === 1) return operands.map((operand) => this.rails(operand));
    return operandGroups.map((operandGroup) => {
      const combinedTruth = this.apart(() => {
        const { isTrue, isFalse } = this.rails({ kind, type: 'boolean', operands: operandGroup });
        return `(${isTrue}) | ((${isFalse}) << 1)`;
      });
      return { isTrue: `(${combinedTruth} & 1)`, isFalse: `(${combinedTruth} >> 1)` };
    });
  }

  /** Both rails at once: each operand is computed one time, however deep conditions nest. */
  rails(bound: Bound): Rails {
    const dictionaryColumn = this.#truthTableColumn(bound);
    if (dictionaryColumn !== null) return this.#truthTableCode(bound, dictionaryColumn);
    switch (bound.kind) {
      case 'not': {
        const { isTrue, isFalse } = this.rails(bound.operand);
        return { isTrue: isFalse, isFalse: isTrue };
      }
      case 'and':
      case 'or': {
        const operandRails = this.#groupOperands(bound);
        const [whenTrue, whenFalse] = bound.kind === 'and' ? [' & ', ' | '] : [' | ', ' & '];
        return {
          isTrue: `(${operandRails.map(({ isTrue }) => isTrue).join(whenTrue)})`,
          isFalse: `(${operandRails.map(({ isFalse }) => isFalse).join(whenFalse)})`,
        };
      }
      case 'compare':
        return this.#comparisonCode(bound.op, this.#operandCode(bound.left), this.#operandCode(bound.right));
      case 'between': {
        const operand = this.#operandCode(bound.operand);
        const lowRails = this.#comparisonCode('>=', operand, this.#operandCode(bound.low));
        const highRails = this.#comparisonCode('<=', operand, this.#operandCode(bound.high));
        return { isTrue: `(${lowRails.isTrue} & ${highRails.isTrue})`, isFalse: `(${lowRails.isFalse} | ${highRails.isFalse})` };
      }
      case 'is-null': {
        const { ok } = this.#operandCode(bound.operand);
        return ok === null ? { isTrue: '0', isFalse: '1' } : { isTrue: `(${ok} ^ 1)`, isFalse: ok };
      }
      case 'in':
        return this.#inList(bound);
      case 'in-set':
        return this.#inSetCode(bound);
      case 'same-folded': {
        const { ok, string } = this.#operandCode(bound.operand);
        const textOperand = this.#operandCode(bound.text);
        const knownCode = both(ok, textOperand.ok);
        if (knownCode === '0') return never;
        const foldedText = this.once(`p${this.site(bound)}u`, `help.folded(${textOperand.string})`);
        const foldedTest = this.temporary(`${ok === null ? '' : `${ok} && `}help.folded(${string}) === ${foldedText}`);
        return { isTrue: both(knownCode, foldedTest), isFalse: both(knownCode, `!${foldedTest}`) };
      }
      case 'like':
        return this.#likeCode(bound);
      case 'match':
        return this.#matchCode(bound);
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
        return this.#parameterCode(bound.index);
      case 'arithmetic':
        return this.#arithmeticCode(bound);
      case 'negate':
        return this.#arithmeticCode({ kind: 'arithmetic', op: '-', left: zeroParameter, right: bound.operand, type: bound.type });
      case 'function':
        return this.#functionCode(bound);
      case 'call':
        return this.#callValueCode(bound);
      case 'coalesce':
        return this.#coalesceCode(bound, (operand) => this.value(operand));
      case 'to-number':
        return this.#toNumberCode(bound.operand);
      case 'case':
        return this.#caseCode(bound, (result) => this.value(result), bound.type);
      case 'literal':
      case 'constant':
      case 'now':
      case 'subquery':
      case 'outer':
        throw new AssertionError('constants are parameters by now');
      default: {
        const truthRails = this.rails(bound);
        const isTrue = this.temporary(truthRails.isTrue);
        return { code: `(${isTrue} & 1)`, ok: this.temporary(`${isTrue} | ${truthRails.isFalse}`), rep: 'bool' };
      }
    }
  }

  #parameterCode(index: number): Value {
    const { letter } = this.shape.context.parameters[index]!;
    if (letter === 'z') return { code: '0', ok: '0', rep: 'int' };
    const parameterName = this.once(`p${index}`, `context.parameters[${index}].narrow`);
    return {
      code: parameterName,
      ok: null,
      rep: letter === 'i' ? 'int' : letter === 'b' ? 'big' : letter === 'n' ? 'num' : 'bool',
    };
  }

  #arithmeticCode(bound: Extract<Bound, { kind: 'arithmetic' }>): Value {
    let leftCode = bound.left === zeroParameter ? zeroKernelValue : this.value(bound.left);
    let rightCode = this.value(bound.right);
    const { op, type } = bound;
    let ok = both(leftCode.ok, rightCode.ok);
    if (type === 'number') {
      leftCode = this.#convertRep(leftCode, 'num');
      rightCode = this.#convertRep(rightCode, 'num');
      let divisorCode = rightCode.code;
      if (op === '/' || op === '%') {
        divisorCode = this.temporary(rightCode.code);
        ok = both(ok, `(${divisorCode} !== 0)`);
      }
      const resultName = this.guard(ok, `${leftCode.code} ${op} ${divisorCode}`, '0');
      // Infinity and NaN are the only values that differ from themselves once subtracted.
      this.emit(`if (${resultName} - ${resultName} !== 0) throw help.numberOverflow();`);
      return this.valueOf(resultName, ok, 'num');
    }
    const isBigInt = this.shape.wide || leftCode.rep === 'big' || rightCode.rep === 'big';
    if (isBigInt) {
      leftCode = this.#convertRep(leftCode, 'big');
      rightCode = this.#convertRep(rightCode, 'big');
    }
    let divisor = rightCode.code;
    if (op === '%') {
      divisor = this.temporary(rightCode.code);
      ok = both(ok, `(${divisor} !== ${isBigInt ? '0n' : '0'})`);
    }
    if (isBigInt) {
      const resultName = this.guard(ok, `${leftCode.code} ${op} ${divisor}`, '0n');
      this.emit(`if (BigInt.asIntN(64, ${resultName}) !== ${resultName}) throw help.integerOverflow();`);
      return this.valueOf(resultName, ok, 'big');
    }
    // Adding 0 turns -0, which no integer is, into 0.
    const result = this.guard(
      ok,
      op === '*' || op === '%' ? `${leftCode.code} ${op} ${divisor} + 0` : `${leftCode.code} ${op} ${divisor}`,
      '0',
    );
    this.emit(`if (${result} > 9007199254740991 || ${result} < -9007199254740991) throw help.widen;`);
    return this.valueOf(result, ok, 'int');
  }

  #functionCode({ name, operands }: Extract<Bound, { kind: 'function' }>): Value {
    if (name === 'cosine') return cosine(this, operands[0]!, operands.slice(1));
    if (name === 'distance') {
      return distance(
        this,
        operands[0]!,
        operands.slice(1).map((bound) => this.#convertRep(this.value(bound), 'num')),
      );
    }
    const operandValues = operands.map((operand) => this.#convertRep(this.value(operand), name === 'elapsed' ? 'big' : 'num'));
    if (name === 'known') {
      const [{ code, ok }] = operandValues as [Value];
      return this.valueOf(this.temporary(ok === null ? code : `${ok} ? ${code} : 0`), null, 'num');
    }
    if (name === 'greatest') {
      const greatestItems = operandValues.map(({ code, ok }) => (ok === null ? code : `(${ok} ? ${code} : -Infinity)`));
      const greatestName = this.temporary(`Math.max(${greatestItems.join(', ')})`);
      return this.valueOf(
        greatestName,
        operandValues.some(({ ok }) => ok === null) ? null : `(${greatestName} !== -Infinity)`,
        'num',
      );
    }
    const ok = operandValues.reduce<string | null>((allKnown, value) => both(allKnown, value.ok), null);
    const resultName = this.guard(ok, `help.${name}(${operandValues.map(({ code }) => code).join(', ')})`, '0');
    this.emit(`if (${resultName} - ${resultName} !== 0) throw help.numberOverflow();`);
    return this.valueOf(resultName, ok, 'num');
  }

  /**
   * The result of a registry function as a cell: the name of a constant that is null where the result is NULL. Returns null where
   * every result is NULL.
   */
  #cellCode(bound: Extract<Bound, { kind: 'call' }>): string | null {
    const { takesNull } = bound.function;
    const argumentCells: string[] = [];
    let ok: string | null = null;
    for (const operand of bound.operands) {
      const { ok: isPresent, value, string } = this.#operandCode(operand);
      const code = vectorCell(this, operand) ?? string ?? (value && cellOf(value));
      if (takesNull !== true) ok = both(ok, code === null ? '0' : isPresent);
      if (ok === '0') return null;
      const isKnownCell = takesNull !== true || isPresent === null;
      argumentCells.push(code === null || isPresent === '0' ? 'null' : isKnownCell ? code : `(${isPresent} ? ${code} : null)`);
    }
    if (isCounted(bound.function)) this.count();
    const site = this.site(bound);
    const evaluatorCall = `${this.once(`f${site}`, `help.evaluator(sites[${site}], context)`)}(${argumentCells.join(', ')})`;
    return this.temporary(ok === null ? evaluatorCall : `${ok} ? ${evaluatorCall} : null`);
  }

  #callValueCode(bound: Extract<Bound, { kind: 'call' }>): Value {
    const [operand] = bound.operands;
    const wordsCode = bound.function.ofHalves && operand?.kind === 'column' ? this.columnWords(operand) : null;
    if (wordsCode) {
      const site = this.site(bound);
      const halvesField = this.once(`h${site}`, `sites[${site}].function.ofHalves`);
      const ok = this.ok((operand as BoundColumn).index);
      return { code: this.guard(ok, `${halvesField}(${wordsCode.high}, ${wordsCode.low})`, '0'), ok, rep: repOf(bound) };
    }
    const calledCell = this.#cellCode(bound);
    const rep = repOf(bound);
    if (calledCell === null) return { code: rep === 'big' ? '0n' : '0', ok: '0', rep };
    return { code: scalarOf(calledCell, rep), ok: `(${calledCell} !== null)`, rep };
  }

  /** Nested statements, as for CASE: nothing behind the value that was found is computed. */
  #coalesceCode(bound: Extract<Bound, { kind: 'coalesce' }>, operandYields: (operand: Bound) => Value): Value {
    const rep = this.#sharedRep(bound.type, bound.operands);
    const coalescedName = this.name();
    const ok = this.name();
    this.emit(`let ${coalescedName} = ${rep === 'big' ? '0n' : '0'}, ${ok} = 0;`);
    for (const operand of bound.operands) {
      this.emit(`if (${ok} === 0) {`);
      const operandValue = this.#convertRep(operandYields(operand), rep);
      if (operandValue.ok !== '0')
        this.emit(
          `${coalescedName} = ${operandValue.code}; ${ok} = ${operandValue.ok === null ? '1' : `${operandValue.ok} ? 1 : 0`};`,
        );
      this.emit('}');
    }
    return { code: coalescedName, ok: `(${ok} === 1)`, rep };
  }

  #toNumberCode(operand: Bound): Value {
    const convertedValue = this.value(operand);
    if (convertedValue.rep === 'big' && convertedValue.ok !== '0') {
      const exactTest = `BigInt(Number(${convertedValue.code})) === ${convertedValue.code}`;
      this.emit(
        `if (!(${convertedValue.ok === null ? exactTest : `!${convertedValue.ok} || ${exactTest}`})) throw help.inexactNumber();`,
      );
    }
    return this.#convertRep(convertedValue, 'num');
  }

  /** A branch that is not taken computes nothing and can't fail. */
  #caseCode(bound: Extract<Bound, { kind: 'case' }>, resultYields: (result: Bound) => Value, type: Bound['type']): Value {
    const rep = this.#sharedRep(type, resultsOf(bound));
    const caseResultName = this.name();
    const ok = this.name();
    this.emit(`let ${caseResultName} = ${rep === 'big' ? '0n' : '0'}, ${ok} = 0;`);
    const assign = (branchResult: Bound): void => {
      const branchValue = this.#convertRep(resultYields(branchResult), rep);
      if (branchValue.ok === '0') return;
      this.emit(
        `${caseResultName} = ${branchValue.code}; ${ok} = ${branchValue.ok === null ? '1' : `${branchValue.ok} ? 1 : 0`};`,
      );
    };
    const caseOperand = bound.operand && this.#operandCode(bound.operand);
    // Left at the branch that is taken: thousands of branches within each other are deeper than code may nest.
    const branchesLabel = this.name();
    this.emit(`${branchesLabel}: {`);
    for (const { when, result } of bound.branches) {
      this.emit(
        `if (${caseOperand ? this.#comparisonCode('=', caseOperand, this.#operandCode(when)).isTrue : this.truth(when)}) {`,
      );
      assign(result);
      this.emit(`break ${branchesLabel}; }`);
    }
    if (bound.otherwise) assign(bound.otherwise);
    this.emit('}');
    return { code: caseResultName, ok, rep };
  }

  /** Results of one CASE share a representation: bigint as soon as one of them is. */
  #sharedRep(type: Bound['type'], results: readonly Bound[]): Rep {
    if (type === 'number') return 'num';
    if (type === 'boolean') return 'bool';
    if (type === 'string' || type === 'json') return 'code';
    return this.shape.wide || type === 'timestamp' || results.some((branchResult) => this.#isBig(branchResult)) ? 'big' : 'int';
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

  #convertRep(value: Value, rep: Rep): Value {
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
  #operandCode(bound: Bound): Operand {
    if (isTextual(bound)) return this.#textualCode(bound);
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

  #textualCode(bound: Bound): Operand {
    if (bound.kind === 'parameter') {
      const isNullParameter = this.shape.context.parameters[bound.index]!.letter === 'z';
      if (isNullParameter) return { bound, ok: '0', value: null, bytes: null, string: null };
      const string = this.once(`p${bound.index}`, `context.parameters[${bound.index}].narrow`);
      return { bound, ok: null, value: null, bytes: null, string };
    }
    if (bound.kind === 'column') {
      const textVector = this.shape.columns[bound.index]!;
      if (textVector.kind === 'null') return { bound, ok: '0', value: null, bytes: null, string: null };
      const name = this.vector(bound.index);
      const ok = this.ok(bound.index);
      if (textVector.kind === 'dict') return { bound, ok, value: null, bytes: null, string: `${name}d.text(${name}v[i])` };
      const bytes = `${name}h, ${name}o[i], ${name}o[i + 1]`;
      this.count();
      return { bound, ok, value: null, bytes, string: `help.decode(${bytes})` };
    }
    if (bound.kind === 'phonetic') {
      const { ok, string } = this.#textualCode(bound.operand);
      this.count();
      return { bound, ok, value: null, bytes: null, string: `help.phoneticCode('${bound.function}', ${string})` };
    }
    if (bound.kind === 'call') {
      const calledCell = this.#cellCode(bound);
      return { bound, ok: calledCell === null ? '0' : `(${calledCell} !== null)`, value: null, bytes: null, string: calledCell };
    }
    const interner = this.#declareInterner(bound);
    const value = this.#textCode(bound, interner);
    return { bound, ok: value.ok, value: null, bytes: null, string: `${interner}.text(${value.code})` };
  }

  #comparisonCode(op: CompareOp, left: Operand, right: Operand): Rails {
    const ok = both(left.ok, right.ok);
    if (ok === '0') return never;
    const comparisonTest = (sign: CompareOp): string =>
      left.value && right.value
        ? this.#valueComparisonCode(sign, left, left.value, right, right.value)
        : this.#textComparisonCode(sign, left, right, ok);
    return { isTrue: both(ok, comparisonTest(op)), isFalse: both(ok, comparisonTest(opposite[op])) };
  }

  #valueComparisonCode(op: CompareOp, left: Operand, leftValue: Value, right: Operand, rightValue: Value): string {
    const leftWords = this.#wordsOfOperand(left.bound, rightValue);
    const rightWords = this.#wordsOfOperand(right.bound, leftValue);
    if (leftWords && rightWords) return compareWords(leftWords, rightWords, op);
    const leftAligned = this.#alignParameter(left.bound, leftValue, rightValue);
    const rightAligned = this.#alignParameter(right.bound, rightValue, leftValue);
    // Comparing a bigint with a double is exact in this language, as long as nothing converts either.
    const isStrict =
      (leftValue.rep === 'big') === (rightValue.rep === 'big') ||
      leftAligned !== leftValue.code ||
      rightAligned !== rightValue.code;
    return `(${leftAligned} ${signOf(op, isStrict)} ${rightAligned})`;
  }

  #textComparisonCode(op: CompareOp, left: Operand, right: Operand, ok: string | null): string {
    const isEquality = op === '=' || op === '!=';
    const sign = signOf(op, true);
    const constantSide = right.bound.kind === 'parameter' ? right.bound : left.bound.kind === 'parameter' ? left.bound : null;
    const heapRange = constantSide === right.bound ? left.bytes : right.bytes;
    if (constantSide && heapRange) {
      const bytes = this.once(`p${constantSide.index}t`, `context.parameters[${constantSide.index}].bytes`);
      if (isEquality) return `(help.equalBytes(${heapRange}, ${bytes}) ${sign} true)`;
      const byteOrder = `help.compareBytes(${heapRange}, ${bytes})`;
      return constantSide === right.bound ? `(${byteOrder} ${sign} 0)` : `(0 ${sign} ${byteOrder})`;
    }
    if (left.bytes && right.bytes) return `(help.compareHeaps(${left.bytes}, ${right.bytes}) ${sign} 0)`;
    // Text under a NULL may not exist: both sides are looked at only where both are there.
    const textTest = isEquality
      ? `${left.string} ${sign} ${right.string}`
      : `help.compareText(${left.string}, ${right.string}) ${sign} 0`;
    return ok === null ? `(${textTest})` : `(${ok} ? ${textTest} : false)`;
  }

  /** High and low halves of a 64-bit column, or of an integer constant beside one: far cheaper to compare than bigints. */
  #wordsOfOperand(bound: Bound, comparedValue: Value): Words | null {
    const wordsCode = bound.kind === 'column' ? this.columnWords(bound) : null;
    if (wordsCode) return wordsCode;
    if (bound.kind !== 'parameter' || comparedValue.rep !== 'big') return null;
    const { letter } = this.shape.context.parameters[bound.index]!;
    if (letter !== 'i' && letter !== 'b') return null;
    const highWord = this.once(`p${bound.index}h`, `Number(context.parameters[${bound.index}].big >> 32n)`);
    const lowWord = this.once(`p${bound.index}w`, `Number(BigInt.asIntN(32, context.parameters[${bound.index}].big))`);
    return { high: highWord, low: lowWord };
  }

  /** A small integer constant beside a bigint column is better a bigint too. */
  #alignParameter(bound: Bound, value: Value, comparedValue: Value): string {
    if (bound.kind !== 'parameter' || value.rep !== 'int' || comparedValue.rep !== 'big') return value.code;
    return this.once(`p${bound.index}b`, `context.parameters[${bound.index}].big`);
  }

  /** A text as a code of `interner`. */
  #textCode(bound: Bound, interner: string): Value {
    if (bound.type === 'null') return { code: '0', ok: '0', rep: 'code' };
    if (bound.kind === 'case') return this.#caseCode(bound, (result) => this.#textCode(result, interner), bound.type);
    if (bound.kind === 'parameter') {
      if (this.shape.context.parameters[bound.index]!.letter === 'z') return { code: '0', ok: '0', rep: 'code' };
      const parameterText = this.once(`p${bound.index}`, `context.parameters[${bound.index}].narrow`);
      return { code: this.once(`p${bound.index}c${interner}`, `${interner}.ofText(${parameterText})`), ok: null, rep: 'code' };
    }
    if (bound.kind === 'lookup') return this.#lookupTextCode(bound, interner);
    if (bound.kind === 'coalesce') return this.#coalesceCode(bound, (operand) => this.#textCode(operand, interner));
    if (bound.kind === 'call') return this.#calledTextCode(bound, interner);
    if (bound.kind !== 'column') throw new AssertionError(`${bound.kind} yields no text`);
    const textVector = this.shape.columns[bound.index]!;
    if (textVector.kind === 'null') return { code: '0', ok: '0', rep: 'code' };
    const name = this.vector(bound.index);
    const ok = this.ok(bound.index);
    let code: string;
    this.count();
    if (textVector.kind === 'text') code = `${interner}.ofBytes(${name}h, ${name}o[i], ${name}o[i + 1])`;
    else {
      const foreignTable = this.once(`${name}f${interner}`, `${interner}.foreign(${name}d)`);
      code = `(${foreignTable}[${name}v[i]] ? ${foreignTable}[${name}v[i]] - 1 : ${interner}.ofForeign(${name}d, ${name}v[i]))`;
    }
    // Under a NULL there may be a code that no dictionary has.
    return { code: ok === null ? code : `(${ok} ? ${code} : 0)`, ok, rep: 'code' };
  }

  /** Asks a function once for each text of a dictionary column. */
  #calledTextCode(bound: Extract<Bound, { kind: 'call' }>, interner: string): Value {
    const index = mayRaise(bound) ? null : this.#onlyDictionary(bound);
    if (index !== null) {
      const site = this.site(bound);
      const name = this.vector(index);
      this.count();
      const textCodeTable = this.once(`d${site}${interner}`, `context.codeTable(sites[${site}], ${name}d, ${interner})`);
      const ok = this.ok(index);
      const verdict = this.temporary(
        ok === null
          ? `${textCodeTable}.verdictOf(${name}v[i])`
          : `${ok} ? ${textCodeTable}.verdictOf(${name}v[i]) : ${textCodeTable}.ofNull`,
      );
      return { code: `(${verdict} < 0 ? 0 : ${verdict})`, ok: `(${verdict} >= 0)`, rep: 'code' };
    }
    const calledCell = this.#cellCode(bound);
    if (calledCell === null) return { code: '0', ok: '0', rep: 'code' };
    return {
      code: `(${calledCell} === null ? 0 : ${interner}.ofText(${calledCell}))`,
      ok: `(${calledCell} !== null)`,
      rep: 'code',
    };
  }

  /** Looks up each dictionary key once, not once per row. */
  #lookupTextCode(bound: Extract<Bound, { kind: 'lookup' }>, interner: string): Value {
    const { operand } = bound;
    const { ok, value, string } = this.#operandCode(operand);
    if (ok === '0') return { code: '0', ok: '0', rep: 'code' };
    this.count();
    const lookupField = this.once(`l${this.site(bound)}${interner}`, `context.lookupField(sites[${this.site(bound)}])`);
    const isDictionaryKey = operand.kind === 'column' && this.shape.columns[operand.index]!.kind === 'dict';
    const name = isDictionaryKey ? this.vector(operand.index) : '';
    const lookupKey = isDictionaryKey ? `${name}d, ${name}v[i]` : (string ?? value!.code);
    const codeCall = `${lookupField}.${isDictionaryKey ? 'ofCode' : 'codeOfKey'}(${interner}, ${lookupKey})`;
    const code = this.temporary(ok === null ? codeCall : `${ok} ? ${codeCall} : -1`);
    return { code: `(${code} < 0 ? 0 : ${code})`, ok: `(${code} >= 0)`, rep: 'code' };
  }

  #declareInterner(bound: Bound): string {
    const site = this.site(bound);
    this.#internerName = this.once(`n${site}`, `context.interner(sites[${site}])`);
    return this.#internerName;
  }

  /** Few items, and items that depend on the row, are compared one by one; many constants are a set. */
  #inList(bound: Extract<Bound, { kind: 'in' }>): Rails {
    const operand = this.#operandCode(bound.operand);
    if (operand.ok === '0') return never;
    if (!isConstantSet(bound)) {
      const equal = bound.items.map((item) => this.#comparisonCode('=', operand, this.#operandCode(item)));
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
  #inSetCode(bound: Extract<Bound, { kind: 'in-set' }>): Rails {
    const { ok, value, bytes, string } = this.#operandCode(bound.operand);
    const subquerySetName = this.once(`q${bound.set}`, `context.subquerySet(${bound.set})`);
    const emptySetTest = this.once(`q${bound.set}e`, `${subquerySetName}.isEmpty ? 1 : 0`);
    if (ok === '0') return { isTrue: '0', isFalse: emptySetTest };
    const setMember = value ? (value.rep === 'big' ? 'hasInteger' : 'hasNumber') : bytes ? 'hasBytes' : 'hasText';
    const membershipTest = `${subquerySetName}.${setMember}(${value ? value.code : (bytes ?? string)})`;
    const verdict = this.temporary(ok === null ? membershipTest : `${ok} ? ${membershipTest} : false`);
    return {
      isTrue: both(ok, verdict),
      isFalse: `(${emptySetTest} | ${both(ok, `(!${verdict} & (${subquerySetName}.hasNull ? 0 : 1))`)})`,
    };
  }

  #likeCode(bound: Extract<Bound, { kind: 'like' }>): Rails {
    const hasEscapes = bound.escapes === true;
    const { pattern } = bound;
    const { ok, bytes, string } = this.#operandCode(bound.operand);
    this.count();
    if (pattern.kind !== 'parameter') {
      const patternOperand = this.#operandCode(pattern);
      const knownOperands = both(ok, patternOperand.ok);
      if (knownOperands === '0') return never;
      const likeTest = `help.likeMatches(${patternOperand.string}, ${string}, ${hasEscapes})`;
      const verdict = this.temporary(knownOperands === null ? likeTest : `${knownOperands} ? ${likeTest} : false`);
      return { isTrue: both(knownOperands, verdict), isFalse: both(knownOperands, `!${verdict}`) };
    }
    if (ok === '0' || this.shape.context.parameters[pattern.index]!.letter === 'z') return never;
    const patternText = this.once(`p${pattern.index}`, `context.parameters[${pattern.index}].narrow`);
    const likeMatcher = this.once(`p${pattern.index}l`, `help.like(${patternText}, ${hasEscapes})`);
    const test = bytes ? `${likeMatcher}.matches(${bytes})` : `help.likeText(${likeMatcher}, ${string})`;
    const soundVerdict = this.temporary(ok === null ? test : `${ok} ? ${test} : false`);
    return { isTrue: both(ok, soundVerdict), isFalse: both(ok, `!${soundVerdict}`) };
  }

  #matchCode(bound: Extract<Bound, { kind: 'match' }>): Rails {
    const { operand, query, mode } = bound;
    if (query.kind !== 'parameter') throw new AssertionError('what MATCH seeks is a constant');
    this.count();
    const { ok, string } = this.#operandCode(operand);
    if (ok === '0' || this.shape.context.parameters[query.index]!.letter === 'z') return never;
    const soughtText = `context.parameters[${query.index}].narrow`;
    const matchColumn = JSON.stringify(operand.kind === 'column' ? operand.name : '');
    const textMatcher = this.once(
      `p${query.index}m${this.site(bound)}`,
      `context.rules.matcher(${soughtText}, '${mode}', ${matchColumn})`,
    );
    const verdict = this.temporary(
      `${ok === null ? '' : `${ok} && `}${textMatcher}.matches(${string}, ${operand.type === 'json'})`,
    );
    return { isTrue: both(ok, verdict), isFalse: both(ok, `!${verdict}`) };
  }

  /** The dictionary column that alone decides a condition, if there is one. Functions that can fail are dear: asked once too. */
  #truthTableColumn(bound: Bound): number | null {
    if (bound.type !== 'boolean' || bound.kind === 'parameter') return null;
    if (mayRaise(bound) && bound.kind !== 'call') return null;
    if (some(bound, isDraw)) return null;
    return this.#onlyDictionary(bound);
  }

  #onlyDictionary(bound: Bound): number | null {
    const columnIndexes = columnsIn(bound);
    if (columnIndexes.size !== 1) return null;
    const [index] = columnIndexes;
    return this.shape.columns[index!]!.kind === 'dict' ? index! : null;
  }

  #truthTableCode(bound: Bound, index: number): Rails {
    const site = this.site(bound);
    const name = this.vector(index);
    this.count();
    const truthTableName = this.once(`t${site}`, `context.truthTable(sites[${site}], ${name}d, count)`);
    const verdictBytes = this.once(`t${site}y`, `${truthTableName}.bytes`);
    const verdictCode = `(${verdictBytes}[${name}v[i]] || ${truthTableName}.fill(${name}v[i]))`;
    const ok = this.ok(index);
    // Under a NULL there may be a code that no dictionary has: it is not looked up.
    const cellVerdict = this.temporary(ok === null ? verdictCode : `${ok} ? ${verdictCode} : ${truthTableName}.ofNull`);
    return { isTrue: `(${cellVerdict} & 1)`, isFalse: `((${cellVerdict} >> 1) & 1)` };
  }
}

/** Conditions of more parts are tested on rows alone that pass the others. */
const dearCodeParts = 64;

const isDraw = (bound: Bound): boolean => bound.kind === 'call' && bound.function.draws === true;

const zeroParameter: Bound = { kind: 'parameter', index: -1, type: 'integer' };
const zeroKernelValue: Value = { code: '0', ok: null, rep: 'int' };
