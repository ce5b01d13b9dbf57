/** Every scalar function that a text can name. */
import { bitFunctions } from './bits.ts';
import { calendarFunctions } from './calendar.ts';
import { choiceFunctions } from './choice.ts';
import { documentFunctions } from './documents.ts';
import { graphValueFunctions } from './graph-values.ts';
import { instantFunctions } from './instants.ts';
import { jsonFunctions } from './json.ts';
import { numberFunctions } from './numbers.ts';
import { patternFunctions } from './patterns.ts';
import type { ScalarFunction } from './scalar-function.ts';
import { textBuildingFunctions } from './text-building.ts';
import { textFunctions } from './texts.ts';
import { trigonometricFunctions } from './trigonometry.ts';
import { vectorFunctions } from './vectors.ts';

export const scalarFunctions: readonly ScalarFunction[] = [
  ...numberFunctions,
  ...trigonometricFunctions,
  ...bitFunctions,
  ...textFunctions,
  ...textBuildingFunctions,
  ...patternFunctions,
  ...instantFunctions,
  ...calendarFunctions,
  ...jsonFunctions,
  ...documentFunctions,
  ...choiceFunctions,
  ...vectorFunctions,
];

const scalarFunctionsByName: ReadonlyMap<string, ScalarFunction> = new Map(
  [...scalarFunctions, ...graphValueFunctions].flatMap((scalarFunctionEntry) =>
    [scalarFunctionEntry.name, ...(scalarFunctionEntry.also ?? [])].map((name): [string, ScalarFunction] => [
      name,
      scalarFunctionEntry,
    ]),
  ),
);

/** Finds a function by its name in upper case, or the symbol of an operator. */
export function scalarFunction(name: string): ScalarFunction | undefined {
  return scalarFunctionsByName.get(name);
}
