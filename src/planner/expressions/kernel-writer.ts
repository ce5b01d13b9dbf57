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
const characterCost = 0.25;
/** Rows that take no longer need no counting: a block of them fits a turn. */
const quickRow = 100;

export class KernelWriter {
  readonly shape: Shape;
  readonly #prologue: string[] = [];
  #body: string[] = [];
  readonly #sites: unknown[] = [];
  readonly #known = new Map<string, string>();
  #names = 0;
  /** Characters of the functions that are called for each row. */
  #apart = 0;
  #isDear = false;

  constructor(shape: Shape) {
    this.shape = shape;
  }

  emit(line: string): void {
    this.#body.push(line);
  }

  /** Counts the work on texts: the loop stops once it has done enough for one turn. */
  count(): void {
    this.#isDear = true;
  }

  /** Code in a function of its own, by its result: one of thousands of parts takes V8 gigabytes and minutes to optimise. */
  apart(write: () => string): string {
    const body = this.#body;
    this.#body = [];
    this.emit(`return ${write()};`);
    const code = this.#body.join('\n');
    this.#body = body;
    this.#apart += code.length;
    const name = this.name();
    this.#prologue.push(`const ${name} = (i) => {\n${code}\n};`);
    return this.temporary(`${name}(i)`);
  }

  finish<K>(parameters: string, last: string): K {
    const counting = parameters.endsWith('out');
    const loop = this.shape.dense
      ? 'for (let i = first, end = first + count; i < end; i++) {'
      : 'for (let j = 0; j < count; j++) { const i = selection[j];';
    // A row of very many parts is work in itself, whatever the parts are.
    const rowCost = this.#body.reduce((sum, { length }) => sum + length, last.length + this.#apart) * characterCost;
    const isLong = rowCost > quickRow;
    const stops = this.#isDear || isLong;
    const source = [
      `"use strict"; return function (${parameters}) {`,
      ...this.#prologue,
      counting ? 'let kept = 0;' : '',
      stops ? 'const { work, turnMost } = help;' : '',
      loop,
      stops ? `if (work.done > turnMost) { work.left = ${this.shape.dense ? 'end - i' : 'count - j'}; break; }` : '',
      isLong ? `work.done += ${Math.ceil(rowCost)};` : '',
      ...this.#body,
      last,
      '}',
      counting ? 'return kept;' : '',
      '};',
    ].join('\n');
    const make = generateFunction<(sites: readonly unknown[], help: typeof runtime) => K>(['sites', 'help'], source);
    return make(this.#sites, runtime);
  }

  ok(index: number): string | null {
    const vector = this.shape.columns[index]!;
    return vector.kind !== 'null' && vector.nulls ? `(${this.vector(index)}n[i] === 0)` : null;
  }

  /** Declares the arrays of a column ahead of the loop: `v` values, `n` nulls, `d` dictionary, `o` offsets, `h` heap. */
  vector(index: number): string {
    const name = `c${index}`;
    if (this.#known.has(name)) return name;
    const vector = this.shape.columns[index]!;
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

  /** A column that is no text, cell by cell. */
  column(bound: BoundColumn): Value {
    const vector = this.shape.columns[bound.index]!;
    if (vector.kind === 'null') return { code: '0', ok: '0', rep: bound.type === 'boolean' ? 'bool' : 'int' };
    const name = this.vector(bound.index);
    const ok = this.ok(bound.index);
    const code = `${name}v[i]`;
    if (vector.kind === 'bool') return { code, ok, rep: 'bool' };
    if (vector.kind === 'i64')
      return bound.type === 'number' ? { code: `Number(${code})`, ok, rep: 'num' } : { code, ok, rep: 'big' };
    if (vector.kind === 'i32' || vector.kind === 'f64') return { code, ok, rep: bound.type === 'number' ? 'num' : 'int' };
    throw new AssertionError(`a ${vector.kind} column is no scalar number`);
  }

  /** The halves of a 64-bit column, high and low; null where it is none. */
  columnWords({ index, type }: BoundColumn): Words | null {
    if (this.shape.columns[index]!.kind !== 'i64' || type === 'number') return null;
    const words = this.once(`${this.vector(index)}w`, `help.words(c${index}v)`);
    return { high: `${words}[2 * i + 1]`, low: `${words}[2 * i]` };
  }

  once(name: string, code: string): string {
    if (!this.#known.has(name)) {
      this.#known.set(name, name);
      this.#prologue.push(`const ${name} = ${code};`);
    }
    return name;
  }

  site(bound: Bound): number {
    const known = this.#sites.indexOf(bound);
    return known >= 0 ? known : this.#sites.push(bound) - 1;
  }

  name(): string {
    return `x${this.#names++}`;
  }

  temporary(code: string): string {
    const name = this.name();
    this.emit(`const ${name} = ${code};`);
    return name;
  }

  /** Guards arithmetic that can fail: the value under a NULL is arbitrary and must not reach it. */
  guard(ok: string | null, code: string, otherwise: string): string {
    return this.temporary(ok === null ? code : `${ok} ? ${code} : ${otherwise}`);
  }

  valueOf(code: string, ok: string | null, rep: Rep): Value {
    return { code, ok: ok === null ? null : this.temporary(ok), rep };
  }
}
