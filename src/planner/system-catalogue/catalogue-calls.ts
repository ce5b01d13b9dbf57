/** Functions and casts of the catalogue as calls of an expression. */
import { AssertionError } from '../../errors.ts';
import type { Cell } from '../../log/values/value.ts';
import { type CatalogueCall, type CatalogueFunctions, drawingFunctions } from '../expressions/functions/catalogue.ts';
import { checkLength, type Evaluator, linear } from '../expressions/functions/scalar-function.ts';
import { cellMaker, columnType } from './catalogue-cells.ts';
import { type CatalogueFunction, type FunctionContext, functionOf, setFunctions } from './catalogue-functions.ts';
import { operatorOf } from './array-operators.ts';
import { jsonCall } from './json-calls.ts';
import type { SeenCatalogue } from './seen-catalogue.ts';
import { timeCall } from './time-calls.ts';
import { castMayFail, castOf, commonOf, elementOf, isReference, type Names, typeNamed, type Value } from './catalogue-types.ts';

/** Calls by their function and types: equal expressions share one. */
const known = new Map<string, CatalogueCall>();
const knownMax = 10_000;

export const catalogueFunctions: CatalogueFunctions = {
  call(name, given) {
    if (name === '#row')
      return once(`#row(${given.length})`, () =>
        callOf(given, 'record', () => (fields) => recordText(fields as (string | null)[])),
      );
    const own = timeCall(name, given) ?? jsonCall(name, given);
    if (own) return once(`${name}(${String(given)})`, () => own);
    const operator = operatorOf(name, given);
    if (operator)
      return once(`${name}(${String(given)})`, () =>
        callOf(given, operator.yields, ({ names }) => operator.run(names), operator.mayFail !== false, operator.ofCells),
      );
    const catalogueFunction = functionOf(name, given.length);
    return catalogueFunction === null || catalogueFunction.isSet ? null : functionCall(catalogueFunction, given);
  },
  set(name, given) {
    const instants = name === 'generate_series' && given.length === 3 ? timeCall('#series', given) : null;
    if (instants) {
      const wire = given[0] === 'timestamp' ? 'timestamp' : 'timestamptz';
      return { array: instants, element: { type: 'timestamp', wire } };
    }
    const catalogueFunction = functionOf(name, given.length);
    const array = catalogueFunction?.isSet === true ? functionCall(catalogueFunction, given) : null;
    if (array === null) return null;
    const wire = setOfArrays(catalogueFunction!) ? catalogueFunction!.yields : elementOf(array.wire)!;
    return { array, element: { type: columnType(wire), wire } };
  },
  isSet: (name) => setFunctions.has(name),
  cast(from, to) {
    if (castOf(from, to, noNames) === null) return null;
    return once(`${from}::${to}`, () =>
      callOf(
        [from],
        to,
        ({ names }) => {
          const cast = castOf(from, to, names)!;
          return ([value]) => cast(value!);
        },
        castMayFail(from, to),
      ),
    );
  },
  typeNamed(typeName) {
    const isArray = typeName.endsWith('[]');
    const name = isArray ? typeName.slice(0, -2) : typeName;
    const type = name.startsWith('"')
      ? typeNamed(name.slice(1, -1), true)
      : typeNamed(words[name.toLowerCase()] ?? name.toLowerCase());
    return type === null || !isArray ? type : typeNamed(`_${type}`);
  },
  isReference,
  isPlain: (type) => !isReference(type) && elementOf(type) === null,
  common: commonOf,
  elementOf,
};

/** As PostgreSQL writes a record. */
function recordText(fields: readonly (string | null)[]): string {
  const shown = fields.map((field) => {
    if (field === null) return '';
    return field === '' || /[\s(),"\\]/.test(field) ? `"${field.replaceAll(/["\\]/g, '$&$&')}"` : field;
  });
  return checkLength(`(${shown.join(',')})`);
}

/** The result of a call; for a set all of its rows, as an array. */
function functionCall(of: CatalogueFunction, given: readonly string[]): CatalogueCall | null {
  const takes = given.map((type, i) => argumentType(of.takes[i]!, type));
  if (!takes.every((type) => type !== null)) return null;
  const yields =
    of.yields === 'element'
      ? elementOf(takes[0]!)!
      : of.yields === 'same'
        ? takes[0]!
        : of.yields === 'second'
          ? takes[1]!
          : of.yields;
  const mayFail = of.mayFail || given.some((type, i) => castMayFail(type, takes[i]!));
  const draws = drawingFunctions.has(of.name.toUpperCase());
  const wire = setOfArrays(of) ? '_text' : of.isSet ? `_${yields}` : yields;
  const run = (context: FunctionContext): ((values: readonly Value[]) => Value) => {
    const casts = given.map((type, i) => castOf(type, takes[i]!, context.names)!);
    return (values) => {
      const cast = values.map((value, i) => casts[i]!(value));
      return !of.takesNull && cast.includes(null) ? null : of.run(context, cast, takes);
    };
  };
  return once(`${of.name}(${String(given)})`, () => {
    const call = callOf(given, wire, run, mayFail);
    // As what may fail it is moved nowhere, and as what draws it is called for each row.
    return draws ? { ...call, signature: { ...call.signature, draws, raises: true } } : call;
  });
}

/** There are no arrays of arrays: a set of them is one of their texts. */
function setOfArrays({ isSet, yields }: CatalogueFunction): boolean {
  return isSet && yields.startsWith('_');
}

/** Types of which the reader of a cast says the first word. */
const words: Readonly<Record<string, string>> = { double: 'float8', character: 'varchar' };

const noNames: Names = { nameOf: () => null, oidOf: () => null };

function once(key: string, make: () => CatalogueCall): CatalogueCall {
  let call = known.get(key);
  if (call === undefined) {
    if (known.size === knownMax) known.clear();
    known.set(key, (call = make()));
  }
  return call;
}

/** The type to which an argument is cast; null: it can't be. */
function argumentType(wanted: string, given: string): string | null {
  if (wanted === 'any') return given === 'unknown' ? 'text' : given;
  if (wanted === 'anyarray') return given === 'unknown' ? '_text' : elementOf(given) === null ? null : given;
  return castOf(given, wanted, noNames) === null ? null : wanted;
}

function callOf(
  given: readonly string[],
  wire: string,
  run: (context: FunctionContext) => (values: readonly Value[]) => Value,
  mayFail = true,
  ofCells?: () => Evaluator,
): CatalogueCall {
  const type = columnType(wire);
  return {
    type,
    wire,
    signature: {
      takes: given.map(columnType),
      yields: type,
      cost: linear,
      raises: mayFail,
      takesNull: true,
      evaluate: () => {
        throw new AssertionError('a function of the catalogue is asked within one');
      },
      // Each run has an evaluator of its own: one that remembers a cell must not outlive it.
      inCatalogue: (catalogue) => ofCells?.() ?? evaluatorOf(catalogue as SeenCatalogue, given, wire, run),
    },
  };
}

function evaluatorOf(
  catalogue: FunctionContext,
  given: readonly string[],
  wire: string,
  make: (context: FunctionContext) => (values: readonly Value[]) => Value,
): Evaluator {
  const readers = given.map((type) => valueReader(type, catalogue.names));
  const run = make(catalogue);
  const cell = cellMaker(wire, catalogue.names);
  return (...cells) => cell(run(cells.map((each, i) => readers[i]!(each))));
}

/** Converts cells of a type to its values. */
function valueReader(type: string, names: Names): (cell: Cell) => Value {
  const parsed = elementOf(type) === null ? null : castOf('unknown', type, names)!;
  return (cell) => {
    if (typeof cell === 'bigint') return Number(cell);
    return parsed !== null && typeof cell === 'string' ? parsed(cell) : (cell as Value);
  };
}
