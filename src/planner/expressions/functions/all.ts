/** Every scalar function that a text can name. */
import { choiceFunctions } from './choice.ts';
import { documentFunctions } from './documents.ts';
import { graphValueFunctions } from './graph-values.ts';
import { instantFunctions } from './instants.ts';
import { jsonFunctions } from './json.ts';
import { numberFunctions } from './numbers.ts';
import { patternFunctions } from './patterns.ts';
import type { ScalarFunction } from './scalar-function.ts';
import { textFunctions } from './texts.ts';
import { vectorFunctions } from './vectors.ts';

export const scalarFunctions: readonly ScalarFunction[] = [
  ...numberFunctions,
  ...textFunctions,
  ...patternFunctions,
  ...instantFunctions,
  ...jsonFunctions,
  ...documentFunctions,
  ...choiceFunctions,
  ...vectorFunctions,
];

const byName: ReadonlyMap<string, ScalarFunction> = new Map(
  [...scalarFunctions, ...graphValueFunctions].flatMap((each) =>
    [each.name, ...(each.also ?? [])].map((name): [string, ScalarFunction] => [name, each]),
  ),
);

/** Finds a function by its name in upper case, or the symbol of an operator. */
export function scalarFunction(name: string): ScalarFunction | undefined {
  return byName.get(name);
}
