/** Binds the written arguments of a call: to words, on which the plan rests, and to values, which an execution reads. */
import { assert, didYouMean } from '../../errors.ts';
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { KernelContext } from '../expressions/kernel-context.ts';
import type { FunctionValue } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, FunctionArgument, Literal, Location } from '../syntax/statement.ts';
import type { ArgumentKind, Signature, Words } from './argument-spec.ts';

/** Values of a vector that is written out. */
const componentsMax = 4_096;

/** Each argument that was given, by the name of its specification. */
export function argumentsByName(
  { name: called, arguments: specs }: Signature,
  given: readonly FunctionArgument[],
  location: Location,
): ReadonlyMap<string, Expression> {
  const argumentByName = new Map<string, Expression>();
  let next = 0;
  for (const { name, value } of given) {
    if (name === null && next === specs.length) {
      throw errorAt('REL_INVALID', `${called} takes at most ${specs.length} arguments`, value.location);
    }
    const spec = name === null ? specs[next++]! : specs.find((each) => each.name === name);
    if (spec === undefined) {
      const guess = didYouMean(
        name!,
        specs.map((each) => each.name),
      );
      throw errorAt('REL_INVALID', `${called} has no argument ${name}${guess}`, value.location);
    }
    if (argumentByName.has(spec.name)) throw errorAt('REL_INVALID', `${called} is given ${spec.name} twice`, value.location);
    argumentByName.set(spec.name, value);
  }
  const missing = specs.find((spec) => spec.required && !argumentByName.has(spec.name));
  if (missing) throw errorAt('REL_INVALID', `${called} needs ${missing.name}: ${missing.summary}`, location);
  return argumentByName;
}

export function isWord(kind: ArgumentKind): boolean {
  return kind === 'type' || kind === 'column' || kind === 'word';
}

/** The words of a call. `literals` are those of the statement. */
export function wordsOf(
  { arguments: specs, name: called }: Signature,
  given: ReadonlyMap<string, Expression>,
  literals: readonly Literal[],
  location: Location,
): Words {
  const words = new Map<string, string>();
  for (const spec of specs) {
    const value = isWord(spec.kind) ? given.get(spec.name) : undefined;
    if (value === undefined) continue;
    const givenLiteral =
      value.kind === 'column' && value.table === null ? value.name : value.kind === 'literal' ? literals[value.slot] : undefined;
    const text = typeof givenLiteral === 'boolean' ? String(givenLiteral) : givenLiteral;
    if (typeof text !== 'string') throw errorAt('REL_INVALID', `${spec.name} of ${called} is a name`, value.location);
    const word = spec.choices?.find((choice) => choice.toLowerCase() === text.toLowerCase()) ?? text;
    if (spec.choices && !spec.choices.includes(word)) {
      throw errorAt('REL_INVALID', `${spec.name} of ${called} is ${listChoices(spec.choices)}`, value.location);
    }
    words.set(spec.name, word);
  }
  return {
    word: (name) => words.get(name),
    locationOf: (name) => given.get(name)?.location ?? location,
    given: new Set(given.keys()),
  };
}

function listChoices(choices: readonly string[]): string {
  return choices.map((choice) => `'${choice}'`).join(' or ');
}

/** The values of a call, read with the literals of an execution. */
export class Values {
  readonly #values: ReadonlyMap<string, FunctionValue>;

  constructor(values: ReadonlyMap<string, FunctionValue>) {
    this.#values = values;
  }

  get names(): readonly string[] {
    return [...this.#values.keys()];
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  locationOf(name: string): Location {
    return this.#values.get(name)!.location;
  }

  /** An argument that is no ARRAY, as an expression. */
  boundOf(name: string): Bound {
    const value = this.#values.get(name)!;
    assert('bound' in value, 'an ARRAY is no expression');
    return value.bound;
  }

  text(name: string, kernels: KernelContext): string | undefined {
    const cell = this.#cell(name, kernels);
    return cell === undefined ? undefined : String(cell);
  }

  /** Finite. */
  number(name: string, kernels: KernelContext): number | undefined {
    const cell = this.#cell(name, kernels);
    return cell === undefined ? undefined : Number(cell);
  }

  integer(name: string, kernels: KernelContext): bigint | undefined {
    const cell = this.#cell(name, kernels);
    return typeof cell === 'bigint' ? cell : undefined;
  }

  boolean(name: string, kernels: KernelContext): boolean | undefined {
    const cell = this.#cell(name, kernels);
    return cell === undefined ? undefined : cell === true;
  }

  /** 32-bit floats, as vectors are stored. */
  vector(name: string, kernels: KernelContext): Float32Array | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    const numbers =
      'items' in value
        ? value.items.map((item) => kernels.constant(item))
        : listOf(String(kernels.constant(value.bound)), value.location);
    const vector = Float32Array.from(numbers, Number);
    const isNumeric = numbers.every((each) => typeof each === 'number' || typeof each === 'bigint');
    if (!isNumeric || vector.length === 0 || vector.length > componentsMax || !vector.every(Number.isFinite)) {
      throw errorAt('REL_INVALID', `a vector has 1 to ${componentsMax} numbers, each a finite 32-bit float`, value.location);
    }
    return vector;
  }

  /** The value as EXPLAIN shows it: a vector by its length alone. */
  describe(name: string, kernels: KernelContext): string {
    const value = this.#values.get(name)!;
    if ('items' in value) return `[${value.items.length} numbers]`;
    const cell = kernels.constant(value.bound);
    if (value.isVector) return `[${this.vector(name, kernels)!.length} numbers]`;
    return typeof cell === 'string' ? `'${cell.replaceAll("'", "''")}'` : String(cell);
  }

  #cell(name: string, kernels: KernelContext): string | bigint | number | boolean | undefined {
    const value = this.#values.get(name);
    if (value === undefined || !('bound' in value)) return undefined;
    const cell = kernels.constant(value.bound);
    if (cell === null || typeof cell === 'object') throw errorAt('REL_INVALID', `${name} has no value`, value.location);
    return cell;
  }
}

/** `'[0.1, 2]'`, as clients of vector stores write one. */
function listOf(text: string, location: Location): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list)) return list as readonly unknown[];
  } catch {
    // Said below, in words of the statement.
  }
  throw errorAt('REL_INVALID', "a vector is ARRAY[0.1, 2] or '[0.1, 2]'", location);
}

export function valuesOf(
  { arguments: specs, name: called, mistyped }: Signature,
  given: ReadonlyMap<string, Expression>,
  environment: ExpressionContext['environment'],
): ReadonlyMap<string, FunctionValue> {
  const context: ExpressionContext = {
    environment,
    leaf: (expression) => {
      if (expression.kind !== 'column') return undefined;
      throw errorAt('REL_INVALID', `${called} takes values: a text stands in single quotes`, expression.location);
    },
    over: ({ location }) => {
      throw errorAt('REL_INVALID', `${called} takes values, not a window function`, location);
    },
    subselect: ({ location }) => {
      throw errorAt('REL_INVALID', `${called} takes values, not a subquery`, location);
    },
  };
  const values = new Map<string, FunctionValue>();
  for (const spec of specs) {
    const value = isWord(spec.kind) ? undefined : given.get(spec.name);
    if (value === undefined) continue;
    const { location } = value;
    if (spec.kind === 'vector' && value.kind === 'call' && value.name === 'ARRAY') {
      const items = value.arguments.map((item) =>
        checkArgument(bindExpression(item.value, context), 'number', item.value.location),
      );
      values.set(spec.name, { location, isVector: true, items });
    } else {
      const bound = checkArgument(bindExpression(value, context), spec.kind, location, `${spec.name} of ${called}`, mistyped);
      values.set(spec.name, { location, isVector: spec.kind === 'vector', bound });
    }
  }
  return values;
}

const typesOfKind: Readonly<Record<Exclude<ArgumentKind, 'type' | 'column' | 'word'>, readonly Bound['type'][]>> = {
  text: ['string'],
  key: ['string', 'integer'],
  number: ['number', 'integer'],
  integer: ['integer'],
  boolean: ['boolean'],
  vector: ['string'],
};

function checkArgument(
  bound: Bound,
  kind: ArgumentKind,
  location: Location,
  vectorPart = 'a component of a vector',
  code: 'REL_INVALID' | 'REL_TYPE_MISMATCH' = 'REL_TYPE_MISMATCH',
): Bound {
  if (isWord(kind) || typesOfKind[kind as keyof typeof typesOfKind].includes(bound.type)) return bound;
  throw errorAt(code, `${vectorPart} is ${kind === 'integer' ? 'an integer' : `a ${kind}`}, not ${bound.type}`, location);
}
