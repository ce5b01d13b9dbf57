/**
 * The text of a kernel under construction: declarations ahead of the loop, the lines inside it, and the objects that it refers
 * to.
 */
import type { Vector } from '../../log/values/columns.ts';
import { AssertionError } from '../../errors.ts';
import type { Bound, BoundColumn } from './bound-expression.ts';
import { generateFunction } from './generate-function.ts';
import type { KernelContext } from './kernel-context.ts';
import type { Rep, Value, Words } from './kernel-text.ts';
import { runtime } from './kernel-runtime.ts';

/** Everything besides the expression that the generated code depends on. */
export interface Shape {
  readonly columns: readonly Vector[];
  readonly context: KernelContext;
  /** Rows come as first .. first+count-1, not as a selection. */
  readonly dense: boolean;
  readonly wide: boolean;
}

/** Nanoseconds of a row for each character of its code, as code runs before it is optimised. */
const codeCharacterCost = 0.25;
/** Rows that take no longer need no counting: a block of them fits a turn. */
const quickRowCost = 100;

export class KernelWriter {
  readonly shape: Shape;
  readonly #kernelPrologue: string[] = [];
  #kernelBody: string[] = [];
  readonly #kernelSites: unknown[] = [];
  readonly #declaredNames = new Map<string, string>();
  #nameCount = 0;
  /** Characters of the functions that are called for each row. */
  #apartLength = 0;
  #isCounted = false;

  constructor(shape: Shape) {
    this.shape = shape;
  }

  emit(codeLine: string): void {
    this.#kernelBody.push(codeLine);
  }

  /** Counts the work on texts: the loop stops once it has done enough for one turn. */
  count(): void {
    this.#isCounted = true;
  }

  /** Code in a function of its own, by its result: one of thousands of parts takes V8 gigabytes and minutes to optimise. */
  apart(writeApart: () => string): string {
    const outerBody = this.#kernelBody;
    this.#kernelBody = [];
    this.emit(`return ${writeApart()};`);
    const functionCode = this.#kernelBody.join('\n');
    this.#kernelBody = outerBody;
    this.#apartLength += functionCode.length;
    const functionName = this.name();
    this.#kernelPrologue.push(`const ${functionName} = (i) => {\n${functionCode}\n};`);
    return this.temporary(`${functionName}(i)`);
  }

  finish<K>(kernelParameters: string, lastLine: string): K {
    const countsRows = kernelParameters.endsWith('out');
    const loopCode = this.shape.dense
      ? 'for (let i = first, end = first + count; i < end; i++) {'
      : 'for (let j = 0; j < count; j++) { const i = selection[j];';
    // A row of very many parts is work in itself, whatever the parts are.
    const rowCost =
      this.#kernelBody.reduce((codeLength, { length }) => codeLength + length, lastLine.length + this.#apartLength) *
      codeCharacterCost;
    const isLong = rowCost > quickRowCost;
    const yieldsTurns = this.#isCounted || isLong;
    const kernelSource = [
      `"use strict"; return function (${kernelParameters}) {`,
      ...this.#kernelPrologue,
      countsRows ? 'let kept = 0;' : '',
      yieldsTurns ? 'const { work, turnMost } = help;' : '',
      loopCode,
      yieldsTurns ? `if (work.done > turnMost) { work.left = ${this.shape.dense ? 'end - i' : 'count - j'}; break; }` : '',
      isLong ? `work.done += ${Math.ceil(rowCost)};` : '',
      ...this.#kernelBody,
      lastLine,
      '}',
      countsRows ? 'return kept;' : '',
      '};',
    ].join('\n');
    const makeKernel = generateFunction<(sites: readonly unknown[], help: typeof runtime) => K>(['sites', 'help'], kernelSource);
    return makeKernel(this.#kernelSites, runtime);
  }

  ok(index: number): string | null {
    const columnVector = this.shape.columns[index]!;
    return columnVector.kind !== 'null' && columnVector.nulls ? `(${this.vector(index)}n[i] === 0)` : null;
  }

  /** Declares the arrays of a column ahead of the loop: `v` values, `n` nulls, `d` dictionary, `o` offsets, `h` heap. */
  vector(index: number): string {
    const vectorName = `c${index}`;
    if (this.#declaredNames.has(vectorName)) return vectorName;
    const columnVector = this.shape.columns[index]!;
    this.#declaredNames.set(vectorName, vectorName);
    const vectorProperties: [string, string][] =
      columnVector.kind === 'text'
        ? [
            ['o', 'offsets'],
            ['h', 'heap'],
          ]
        : columnVector.kind === 'dict'
          ? [
              ['v', 'values'],
              ['d', 'dictionary'],
            ]
          : [['v', 'values']];
    if (columnVector.kind !== 'null' && columnVector.nulls) vectorProperties.push(['n', 'nulls']);
    for (const [suffix, property] of vectorProperties)
      this.#kernelPrologue.push(`const ${vectorName}${suffix} = columns[${index}].${property};`);
    return vectorName;
  }

  /** A column that is no text, cell by cell. */
  column(bound: BoundColumn): Value {
    const columnVector = this.shape.columns[bound.index]!;
    if (columnVector.kind === 'null') return { code: '0', ok: '0', rep: bound.type === 'boolean' ? 'bool' : 'int' };
    const vectorName = this.vector(bound.index);
    const ok = this.ok(bound.index);
    const code = `${vectorName}v[i]`;
    if (columnVector.kind === 'bool') return { code, ok, rep: 'bool' };
    if (columnVector.kind === 'i64')
      return bound.type === 'number' ? { code: `Number(${code})`, ok, rep: 'num' } : { code, ok, rep: 'big' };
    if (columnVector.kind === 'i32' || columnVector.kind === 'f64')
      return { code, ok, rep: bound.type === 'number' ? 'num' : 'int' };
    throw new AssertionError(`a ${columnVector.kind} column is no scalar number`);
  }

  /** The halves of a 64-bit column, high and low; null where it is none. */
  columnWords({ index, type }: BoundColumn): Words | null {
    if (this.shape.columns[index]!.kind !== 'i64' || type === 'number') return null;
    const wordsName = this.once(`${this.vector(index)}w`, `help.words(c${index}v)`);
    return { high: `${wordsName}[2 * i + 1]`, low: `${wordsName}[2 * i]` };
  }

  once(name: string, code: string): string {
    if (!this.#declaredNames.has(name)) {
      this.#declaredNames.set(name, name);
      this.#kernelPrologue.push(`const ${name} = ${code};`);
    }
    return name;
  }

  site(bound: Bound): number {
    const siteIndex = this.#kernelSites.indexOf(bound);
    return siteIndex >= 0 ? siteIndex : this.#kernelSites.push(bound) - 1;
  }

  name(): string {
    return `x${this.#nameCount++}`;
  }

  temporary(code: string): string {
    const temporaryName = this.name();
    this.emit(`const ${temporaryName} = ${code};`);
    return temporaryName;
  }

  /** Guards arithmetic that can fail: the value under a NULL is arbitrary and must not reach it. */
  guard(ok: string | null, code: string, otherwise: string): string {
    return this.temporary(ok === null ? code : `${ok} ? ${code} : ${otherwise}`);
  }

  valueOf(code: string, ok: string | null, rep: Rep): Value {
    return { code, ok: ok === null ? null : this.temporary(ok), rep };
  }
}
