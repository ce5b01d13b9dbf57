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
const vectorComponentsMax = 4_096;

/** Each argument that was given, by the name of its specification. */
export function argumentsByName(
  { name: functionName, arguments: specs }: Signature,
  givenArguments: readonly FunctionArgument[],
  location: Location,
): ReadonlyMap<string, Expression> {
  const argumentByName = new Map<string, Expression>();
  let nextPosition = 0;
  for (const { name, value } of givenArguments) {
    if (name === null && nextPosition === specs.length) {
      throw errorAt('REL_INVALID', `${functionName} takes at most ${specs.length} arguments`, value.location);
    }
    const argumentSpec = name === null ? specs[nextPosition++]! : specs.find((each) => each.name === name);
    if (argumentSpec === undefined) {
      const argumentGuess = didYouMean(
        name!,
        specs.map((each) => each.name),
      );
      throw errorAt('REL_INVALID', `${functionName} has no argument ${name}${argumentGuess}`, value.location);
    }
    if (argumentByName.has(argumentSpec.name))
      throw errorAt('REL_INVALID', `${functionName} is given ${argumentSpec.name} twice`, value.location);
    argumentByName.set(argumentSpec.name, value);
  }
  const missingArgument = specs.find((argumentSpec) => argumentSpec.required && !argumentByName.has(argumentSpec.name));
  if (missingArgument)
    throw errorAt('REL_INVALID', `${functionName} needs ${missingArgument.name}: ${missingArgument.summary}`, location);
  return argumentByName;
}

export function isWord(kind: ArgumentKind): boolean {
  return kind === 'type' || kind === 'column' || kind === 'word';
}

/** The words of a call. `literals` are those of the statement. */
export function wordsOf(
  { arguments: specs, name: functionName }: Signature,
  given: ReadonlyMap<string, Expression>,
  literals: readonly Literal[],
  location: Location,
): Words {
  const argumentWords = new Map<string, string>();
  for (const wordSpec of specs) {
    const wordValue = isWord(wordSpec.kind) ? given.get(wordSpec.name) : undefined;
    if (wordValue === undefined) continue;
    const givenLiteral =
      wordValue.kind === 'column' && wordValue.table === null
        ? wordValue.name
        : wordValue.kind === 'literal'
          ? literals[wordValue.slot]
          : undefined;
    const wordText = typeof givenLiteral === 'boolean' ? String(givenLiteral) : givenLiteral;
    if (typeof wordText !== 'string')
      throw errorAt('REL_INVALID', `${wordSpec.name} of ${functionName} is a name`, wordValue.location);
    const chosenWord = wordSpec.choices?.find((choice) => choice.toLowerCase() === wordText.toLowerCase()) ?? wordText;
    if (wordSpec.choices && !wordSpec.choices.includes(chosenWord)) {
      throw errorAt('REL_INVALID', `${wordSpec.name} of ${functionName} is ${listChoices(wordSpec.choices)}`, wordValue.location);
    }
    argumentWords.set(wordSpec.name, chosenWord);
  }
  return {
    word: (name) => argumentWords.get(name),
    locationOf: (name) => given.get(name)?.location ?? location,
    given: new Set(given.keys()),
  };
}

function listChoices(choices: readonly string[]): string {
  return choices.map((choice) => `'${choice}'`).join(' or ');
}

/** The values of a call, read with the literals of an execution. */
export class Values {
  readonly #functionValues: ReadonlyMap<string, FunctionValue>;

  constructor(values: ReadonlyMap<string, FunctionValue>) {
    this.#functionValues = values;
  }

  get names(): readonly string[] {
    return [...this.#functionValues.keys()];
  }

  has(name: string): boolean {
    return this.#functionValues.has(name);
  }

  locationOf(name: string): Location {
    return this.#functionValues.get(name)!.location;
  }

  /** An argument that is no ARRAY, as an expression. */
  boundOf(name: string): Bound {
    const value = this.#functionValues.get(name)!;
    assert('bound' in value, 'an ARRAY is no expression');
    return value.bound;
  }

  text(name: string, kernels: KernelContext): string | undefined {
    const cell = this.#constantCell(name, kernels);
    return cell === undefined ? undefined : String(cell);
  }

  /** Finite. */
  number(name: string, kernels: KernelContext): number | undefined {
    const cell = this.#constantCell(name, kernels);
    return cell === undefined ? undefined : Number(cell);
  }

  integer(name: string, kernels: KernelContext): bigint | undefined {
    const cell = this.#constantCell(name, kernels);
    return typeof cell === 'bigint' ? cell : undefined;
  }

  boolean(name: string, kernels: KernelContext): boolean | undefined {
    const cell = this.#constantCell(name, kernels);
    return cell === undefined ? undefined : cell === true;
  }

  /** 32-bit floats, as vectors are stored. */
  vector(name: string, kernels: KernelContext): Float32Array | undefined {
    const vectorValue = this.#functionValues.get(name);
    if (vectorValue === undefined) return undefined;
    const components =
      'items' in vectorValue
        ? vectorValue.items.map((item) => kernels.constant(item))
        : vectorListOf(String(kernels.constant(vectorValue.bound)), vectorValue.location);
    const componentVector = Float32Array.from(components, Number);
    const isNumeric = components.every((each) => typeof each === 'number' || typeof each === 'bigint');
    if (
      !isNumeric ||
      componentVector.length === 0 ||
      componentVector.length > vectorComponentsMax ||
      !componentVector.every(Number.isFinite)
    ) {
      throw errorAt(
        'REL_INVALID',
        `a vector has 1 to ${vectorComponentsMax} numbers, each a finite 32-bit float`,
        vectorValue.location,
      );
    }
    return componentVector;
  }

  /** The value as EXPLAIN shows it: a vector by its length alone. */
  describe(name: string, kernels: KernelContext): string {
    const value = this.#functionValues.get(name)!;
    if ('items' in value) return `[${value.items.length} numbers]`;
    const constantCell = kernels.constant(value.bound);
    if (value.isVector) return `[${this.vector(name, kernels)!.length} numbers]`;
    return typeof constantCell === 'string' ? `'${constantCell.replaceAll("'", "''")}'` : String(constantCell);
  }

  #constantCell(name: string, kernels: KernelContext): string | bigint | number | boolean | undefined {
    const value = this.#functionValues.get(name);
    if (value === undefined || !('bound' in value)) return undefined;
    const constantCell = kernels.constant(value.bound);
    if (constantCell === null || typeof constantCell === 'object')
      throw errorAt('REL_INVALID', `${name} has no value`, value.location);
    return constantCell;
  }
}

/** `'[0.1, 2]'`, as clients of vector stores write one. */
function vectorListOf(vectorText: string, location: Location): readonly unknown[] {
  try {
    const componentList: unknown = JSON.parse(vectorText);
    if (Array.isArray(componentList)) return componentList as readonly unknown[];
  } catch {
    // Said below, in words of the statement.
  }
  throw errorAt('REL_INVALID', "a vector is ARRAY[0.1, 2] or '[0.1, 2]'", location);
}

export function valuesOf(
  { arguments: specs, name: functionName, mistyped }: Signature,
  given: ReadonlyMap<string, Expression>,
  environment: ExpressionContext['environment'],
): ReadonlyMap<string, FunctionValue> {
  const valuesContext: ExpressionContext = {
    environment,
    leaf: (expression) => {
      if (expression.kind !== 'column') return undefined;
      throw errorAt('REL_INVALID', `${functionName} takes values: a text stands in single quotes`, expression.location);
    },
    over: ({ location }) => {
      throw errorAt('REL_INVALID', `${functionName} takes values, not a window function`, location);
    },
    subselect: ({ location }) => {
      throw errorAt('REL_INVALID', `${functionName} takes values, not a subquery`, location);
    },
  };
  const functionValues = new Map<string, FunctionValue>();
  for (const valueSpec of specs) {
    const argumentValue = isWord(valueSpec.kind) ? undefined : given.get(valueSpec.name);
    if (argumentValue === undefined) continue;
    const { location } = argumentValue;
    if (valueSpec.kind === 'vector' && argumentValue.kind === 'call' && argumentValue.name === 'ARRAY') {
      const boundItems = argumentValue.arguments.map((item) =>
        checkArgument(bindExpression(item.value, valuesContext), 'number', item.value.location),
      );
      functionValues.set(valueSpec.name, { location, isVector: true, items: boundItems });
    } else {
      const bound = checkArgument(
        bindExpression(argumentValue, valuesContext),
        valueSpec.kind,
        location,
        `${valueSpec.name} of ${functionName}`,
        mistyped,
      );
      functionValues.set(valueSpec.name, { location, isVector: valueSpec.kind === 'vector', bound });
    }
  }
  return functionValues;
}

const typesByArgumentKind: Readonly<Record<Exclude<ArgumentKind, 'type' | 'column' | 'word'>, readonly Bound['type'][]>> = {
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
  if (isWord(kind) || typesByArgumentKind[kind as keyof typeof typesByArgumentKind].includes(bound.type)) return bound;
  throw errorAt(code, `${vectorPart} is ${kind === 'integer' ? 'an integer' : `a ${kind}`}, not ${bound.type}`, location);
}
