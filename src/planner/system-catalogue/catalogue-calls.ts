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
const knownCalls = new Map<string, CatalogueCall>();
const knownCallsMax = 10_000;

export const catalogueFunctions: CatalogueFunctions = {
  call(functionName, argumentTypes) {
    if (functionName === '#row')
      return rememberedCall(`#row(${argumentTypes.length})`, () =>
        catalogueCallOf(argumentTypes, 'record', () => (fields) => recordCellText(fields as (string | null)[])),
      );
    const ownCall = timeCall(functionName, argumentTypes) ?? jsonCall(functionName, argumentTypes);
    if (ownCall) return rememberedCall(`${functionName}(${String(argumentTypes)})`, () => ownCall);
    const arrayOperator = operatorOf(functionName, argumentTypes);
    if (arrayOperator)
      return rememberedCall(`${functionName}(${String(argumentTypes)})`, () =>
        catalogueCallOf(
          argumentTypes,
          arrayOperator.yields,
          ({ names }) => arrayOperator.run(names),
          arrayOperator.mayFail !== false,
          arrayOperator.ofCells,
        ),
      );
    const catalogueFunction = functionOf(functionName, argumentTypes.length);
    return catalogueFunction === null || catalogueFunction.isSet ? null : catalogueFunctionCall(catalogueFunction, argumentTypes);
  },
  set(functionName, argumentTypes) {
    const instantSeries =
      functionName === 'generate_series' && argumentTypes.length === 3 ? timeCall('#series', argumentTypes) : null;
    if (instantSeries) {
      const elementWire = argumentTypes[0] === 'timestamp' ? 'timestamp' : 'timestamptz';
      return { array: instantSeries, element: { type: 'timestamp', wire: elementWire } };
    }
    const catalogueFunction = functionOf(functionName, argumentTypes.length);
    const arrayCall = catalogueFunction?.isSet === true ? catalogueFunctionCall(catalogueFunction, argumentTypes) : null;
    if (arrayCall === null) return null;
    const wire = isSetOfArrays(catalogueFunction!) ? catalogueFunction!.yields : elementOf(arrayCall.wire)!;
    return { array: arrayCall, element: { type: columnType(wire), wire } };
  },
  isSet: (name) => setFunctions.has(name),
  cast(castFrom, castTo) {
    if (castOf(castFrom, castTo, noCatalogueNames) === null) return null;
    return rememberedCall(`${castFrom}::${castTo}`, () =>
      catalogueCallOf(
        [castFrom],
        castTo,
        ({ names }) => {
          const catalogueCast = castOf(castFrom, castTo, names)!;
          return ([castValue]) => catalogueCast(castValue!);
        },
        castMayFail(castFrom, castTo),
      ),
    );
  },
  typeNamed(typeName) {
    const isArrayType = typeName.endsWith('[]');
    const elementName = isArrayType ? typeName.slice(0, -2) : typeName;
    const wireType = elementName.startsWith('"')
      ? typeNamed(elementName.slice(1, -1), true)
      : typeNamed(typeWords[elementName.toLowerCase()] ?? elementName.toLowerCase());
    return wireType === null || !isArrayType ? wireType : typeNamed(`_${wireType}`);
  },
  isReference,
  isPlain: (type) => !isReference(type) && elementOf(type) === null,
  common: commonOf,
  elementOf,
};

/** As PostgreSQL writes a record. */
function recordCellText(recordFields: readonly (string | null)[]): string {
  const fieldTexts = recordFields.map((recordField) => {
    if (recordField === null) return '';
    return recordField === '' || /[\s(),"\\]/.test(recordField) ? `"${recordField.replaceAll(/["\\]/g, '$&$&')}"` : recordField;
  });
  return checkLength(`(${fieldTexts.join(',')})`);
}

/** The result of a call; for a set all of its rows, as an array. */
function catalogueFunctionCall(catalogueFunction: CatalogueFunction, argumentTypes: readonly string[]): CatalogueCall | null {
  const takenTypes = argumentTypes.map((type, i) => catalogueArgumentType(catalogueFunction.takes[i]!, type));
  if (!takenTypes.every((type) => type !== null)) return null;
  const yieldedType =
    catalogueFunction.yields === 'element'
      ? elementOf(takenTypes[0]!)!
      : catalogueFunction.yields === 'same'
        ? takenTypes[0]!
        : catalogueFunction.yields === 'second'
          ? takenTypes[1]!
          : catalogueFunction.yields;
  const mayCallFail = catalogueFunction.mayFail || argumentTypes.some((type, i) => castMayFail(type, takenTypes[i]!));
  const drawsRandom = drawingFunctions.has(catalogueFunction.name.toUpperCase());
  const wireType = isSetOfArrays(catalogueFunction) ? '_text' : catalogueFunction.isSet ? `_${yieldedType}` : yieldedType;
  const runFunction = (functionContext: FunctionContext): ((argumentValues: readonly Value[]) => Value) => {
    const argumentCasts = argumentTypes.map((type, i) => castOf(type, takenTypes[i]!, functionContext.names)!);
    return (argumentValues) => {
      const castValues = argumentValues.map((argumentValue, i) => argumentCasts[i]!(argumentValue));
      return !catalogueFunction.takesNull && castValues.includes(null)
        ? null
        : catalogueFunction.run(functionContext, castValues, takenTypes);
    };
  };
  return rememberedCall(`${catalogueFunction.name}(${String(argumentTypes)})`, () => {
    const signedCall = catalogueCallOf(argumentTypes, wireType, runFunction, mayCallFail);
    // As what may fail it is moved nowhere, and as what draws it is called for each row.
    return drawsRandom ? { ...signedCall, signature: { ...signedCall.signature, draws: drawsRandom, raises: true } } : signedCall;
  });
}

/** There are no arrays of arrays: a set of them is one of their texts. */
function isSetOfArrays({ isSet, yields }: CatalogueFunction): boolean {
  return isSet && yields.startsWith('_');
}

/** Types of which the reader of a cast says the first word. */
const typeWords: Readonly<Record<string, string>> = { double: 'float8', character: 'varchar' };

const noCatalogueNames: Names = { nameOf: () => null, oidOf: () => null };

function rememberedCall(callKey: string, makeCall: () => CatalogueCall): CatalogueCall {
  let catalogueCall = knownCalls.get(callKey);
  if (catalogueCall === undefined) {
    if (knownCalls.size === knownCallsMax) knownCalls.clear();
    knownCalls.set(callKey, (catalogueCall = makeCall()));
  }
  return catalogueCall;
}

/** The type to which an argument is cast; null: it can't be. */
function catalogueArgumentType(wantedType: string, givenType: string): string | null {
  if (wantedType === 'any') return givenType === 'unknown' ? 'text' : givenType;
  if (wantedType === 'anyarray') return givenType === 'unknown' ? '_text' : elementOf(givenType) === null ? null : givenType;
  return castOf(givenType, wantedType, noCatalogueNames) === null ? null : wantedType;
}

function catalogueCallOf(
  argumentTypes: readonly string[],
  wire: string,
  runCall: (context: FunctionContext) => (values: readonly Value[]) => Value,
  mayFail = true,
  ofCells?: () => Evaluator,
): CatalogueCall {
  const yieldedCellType = columnType(wire);
  return {
    type: yieldedCellType,
    wire,
    signature: {
      takes: argumentTypes.map(columnType),
      yields: yieldedCellType,
      cost: linear,
      raises: mayFail,
      takesNull: true,
      evaluate: () => {
        throw new AssertionError('a function of the catalogue is asked within one');
      },
      // Each run has an evaluator of its own: one that remembers a cell must not outlive it.
      inCatalogue: (catalogue) => ofCells?.() ?? catalogueEvaluator(catalogue as SeenCatalogue, argumentTypes, wire, runCall),
    },
  };
}

function catalogueEvaluator(
  catalogue: FunctionContext,
  argumentTypes: readonly string[],
  wire: string,
  makeRun: (context: FunctionContext) => (values: readonly Value[]) => Value,
): Evaluator {
  const argumentReaders = argumentTypes.map((type) => argumentReader(type, catalogue.names));
  const runCall = makeRun(catalogue);
  const makeCell = cellMaker(wire, catalogue.names);
  return (...argumentCells) => makeCell(runCall(argumentCells.map((argumentCell, i) => argumentReaders[i]!(argumentCell))));
}

/** Converts cells of a type to its values. */
function argumentReader(type: string, names: Names): (cell: Cell) => Value {
  const parseElement = elementOf(type) === null ? null : castOf('unknown', type, names)!;
  return (cell) => {
    if (typeof cell === 'bigint') return Number(cell);
    return parseElement !== null && typeof cell === 'string' ? parseElement(cell) : (cell as Value);
  };
}
