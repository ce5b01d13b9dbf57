/** Functions over rows of a graph pattern: text can't name them, the binder chooses their inputs and outputs. */
import type { Opening, TableFunction } from '../calls/table-function.ts';
import type { Operator } from '../operators/operator.ts';

export function patternFunction(name: string, summary: string, open: (opening: Opening) => Operator): TableFunction {
  const patternAbout = { name, summary, action: 'query', units: 1, deterministic: true } as const;
  return { ...patternAbout, arguments: [], types: () => [], columns: () => [], open };
}
