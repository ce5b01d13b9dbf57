/** Array operators: construction, subscripts, comparison and concatenation. */
import type { Cell } from '../../log/values/value.ts';
import type { Evaluator } from '../expressions/functions/scalar-function.ts';
import { columnType } from './catalogue-cells.ts';
import {
  castMayFail,
  castOf,
  commonOf,
  compare,
  elementOf,
  elementsOf,
  familyOf,
  isReference,
  type Names,
  typeNamed,
  type Value,
} from './catalogue-types.ts';

interface ArrayOperator {
  readonly yields: string;
  /** Absent: values may be refused. */
  readonly mayFail?: false;
  /** The same of cells as they are, where it takes no cast. */
  readonly ofCells?: () => Evaluator;
  run(names: Names): (values: readonly Value[]) => Value;
}

const orderTests: Readonly<Record<string, (order: number) => boolean>> = {
  '=': (order) => order === 0,
  '!=': (order) => order !== 0,
  '<': (order) => order < 0,
  '>': (order) => order > 0,
  '<=': (order) => order <= 0,
  '>=': (order) => order >= 0,
};

/** Finds an operator by its name or symbol; null: there is none for such arrays. */
export function operatorOf(operatorName: string, operandTypes: readonly string[]): ArrayOperator | null {
  if (operatorName === 'array') return arrayConstructor(operandTypes);
  const [leftType, rightType] = operandTypes;
  if (leftType === 'record' && rightType === undefined && (operatorName === '.x' || operatorName === '.n'))
    return recordFieldOf(operatorName);
  if (leftType !== undefined && operatorName.startsWith('[') && operatorName !== '[]')
    return arraySlice(operatorName, operandTypes);
  if (leftType === undefined || rightType === undefined || operandTypes.length > 2) return null;
  if (operatorName === '[]') return arrayElementAt(leftType, rightType);
  if (operatorName === '||') return concatenateArrays(leftType, rightType);
  const [comparisonOp, arrayQuantifier] = operatorName.split(' ');
  const orderTest = orderTests[comparisonOp!];
  if (orderTest !== undefined && arrayQuantifier !== undefined)
    return quantifiedComparison(comparisonOp!, arrayQuantifier === 'all', leftType, rightType);
  return orderTest !== undefined || operatorName === '@>' || operatorName === '<@' || operatorName === '&&'
    ? arrayComparison(operatorName, leftType, rightType)
    : null;
}

function arrayConstructor(elementTypes: readonly string[]): ArrayOperator | null {
  let commonType: string | null = 'unknown';
  for (const type of elementTypes) commonType = commonType === null ? null : commonOf(commonType, type);
  const elementType = commonType === 'unknown' ? 'text' : commonType;
  const arrayType = elementType === null ? null : typeNamed(`_${elementType}`);
  if (arrayType === null) return null;
  return {
    yields: arrayType,
    run: (names) =>
      castArguments(
        elementTypes,
        elementTypes.map(() => elementType!),
        names,
      ),
  };
}

/** A field of what `_pg_expandarray` yields. */
function recordFieldOf(name: '.x' | '.n'): ArrayOperator {
  return {
    yields: 'int4',
    run: () => nullIfAnyNull(([recordText]) => Number((recordText as string).slice(1, -1).split(',')[name === '.x' ? 0 : 1])),
  };
}

function arrayElementAt(array: string, subscriptType: string): ArrayOperator | null {
  const elementType = elementOf(array);
  if (elementType === null || (subscriptType !== 'unknown' && familyOf(subscriptType) !== 'number')) return null;
  const firstSubscriptOf = firstSubscript(array);
  return {
    yields: elementType,
    run: () =>
      nullIfAnyNull(([arrayValues, subscript]) => (arrayValues as Value[])[Number(subscript) - firstSubscriptOf] ?? null),
  };
}

/** The vectors of the catalogue count from 0, all else from 1. */
const firstSubscript = (arrayType: string): number => (arrayType === 'int2vector' || arrayType === 'oidvector' ? 0 : 1);

/** `x[from:to]`, both inclusive: elements that there are not are left out. */
function arraySlice(name: string, [array, ...boundTypes]: readonly string[]): ArrayOperator | null {
  const elementType = elementOf(array!);
  const slicedType = elementType === null ? null : typeNamed(`_${elementType}`);
  if (slicedType === null || boundTypes.some((type) => type !== 'unknown' && familyOf(type) !== 'number')) return null;
  const firstSubscriptOf = firstSubscript(array!);
  const hasLowerBound = name.startsWith('[from');
  const hasUpperBound = name.endsWith('to]');
  return {
    yields: slicedType,
    run: () =>
      nullIfAnyNull((sliceValues) => {
        const slicedArray = sliceValues[0] as Value[];
        const sliceFrom = hasLowerBound ? Math.max(0, Number(sliceValues[1]) - firstSubscriptOf) : 0;
        const sliceTo = hasUpperBound ? Number(sliceValues.at(-1)) - firstSubscriptOf + 1 : slicedArray.length;
        return slicedArray.slice(sliceFrom, Math.max(sliceFrom, sliceTo));
      }),
  };
}

function concatenateArrays(leftType: string, rightType: string): ArrayOperator | null {
  const [leftElement, rightElement] = [elementOf(leftType), elementOf(rightType)];
  const elementType =
    leftElement === null && rightElement === null ? null : commonOf(leftElement ?? leftType, rightElement ?? rightType);
  const concatenatedType = elementType === null ? null : typeNamed(`_${elementType}`);
  if (concatenatedType === null) return null;
  const operandArrayType = (own: string | null, type: string): string =>
    own === null && type !== 'unknown' ? elementType! : concatenatedType;
  const wantedTypes = [operandArrayType(leftElement, leftType), operandArrayType(rightElement, rightType)];
  return {
    yields: concatenatedType,
    run: (names) => {
      const castOperands = castArguments([leftType, rightType], wantedTypes, names);
      return (operandValues) => {
        const [firstArray, secondArray] = (castOperands(operandValues) as Value[]).map((operandValue, i) =>
          wantedTypes[i] === concatenatedType ? operandValue : [operandValue],
        );
        if (firstArray === null || secondArray === null) return firstArray ?? secondArray ?? null;
        return [...(firstArray as Value[]), ...(secondArray as Value[])];
      };
    },
  };
}

function quantifiedComparison(
  comparisonOp: string,
  isForAll: boolean,
  leftType: string,
  rightType: string,
): ArrayOperator | null {
  const orderTest = orderTests[comparisonOp]!;
  const arrayType = rightType === 'unknown' ? typeNamed(`_${leftType === 'unknown' ? 'text' : leftType}`) : rightType;
  const elementType = arrayType === null ? null : elementOf(arrayType);
  const commonType = elementType === null ? null : commonOf(leftType, elementType);
  if (commonType === null) return null;
  const comparedType = commonType === 'unknown' ? 'text' : commonType;
  return {
    yields: 'bool',
    ...(castMayFail(leftType, comparedType) || castMayFail(rightType, arrayType!) || castMayFail(elementType!, comparedType)
      ? {}
      : { mayFail: false }),
    ...(comparisonOp === '=' && !isForAll && isComparedAsWritten(leftType, elementType!)
      ? { ofCells: () => elementTest(arrayType!) }
      : {}),
    run: (names) => {
      const castOperands = castArguments([leftType, rightType], [comparedType, arrayType!], names);
      const castElement = castOf(elementType!, comparedType, names)!;
      return (operandValues) => {
        const [comparedValue, arrayElements] = castOperands(operandValues) as Value[];
        if (arrayElements === null) return null;
        let isUnsure = false;
        for (const arrayElement of arrayElements as Value[]) {
          const elementValue = castElement(arrayElement);
          const elementVerdict =
            comparedValue === null || elementValue === null ? null : orderTest(compare(comparedValue!, elementValue));
          if (elementVerdict === !isForAll) return elementVerdict;
          isUnsure ||= elementVerdict === null;
        }
        return isUnsure ? null : isForAll;
      };
    },
  };
}

const textTypes: ReadonlySet<string> = new Set(['text', 'name', 'varchar', 'bpchar']);

/** Whether elements stand in the text of an array as cells of such a type are. */
function isComparedAsWritten(type: string, element: string): boolean {
  if (textTypes.has(type)) return textTypes.has(element);
  return columnType(type) === 'integer' && columnType(element) === 'integer' && !isReference(element);
}

/** `x = ANY (array)`: rows that follow each other often have the same array. */
function elementTest(array: string): Evaluator {
  const areIntegerElements = columnType(elementOf(array)!) === 'integer';
  let lastArray: { readonly text: Cell; readonly has: ReadonlySet<Cell> } = { text: null, has: new Set() };
  return (soughtCell = null, arrayText = null) => {
    if (arrayText === null) return null;
    if (lastArray.text !== arrayText)
      lastArray = { text: arrayText, has: new Set(arrayElementCells(arrayText as string, array, areIntegerElements)) };
    if (soughtCell !== null && lastArray.has.has(soughtCell)) return true;
    return lastArray.has.size > 0 && (soughtCell === null || lastArray.has.has(null)) ? null : false;
  };
}

function arrayElementCells(text: string, array: string, areIntegers: boolean): readonly Cell[] {
  const elementTexts = array.endsWith('vector') ? text.split(/\s+/).filter(Boolean) : elementsOf(text, array);
  return elementTexts.map((writtenElement) => (writtenElement !== null && areIntegers ? BigInt(writtenElement) : writtenElement));
}

function arrayComparison(operatorName: string, leftType: string, rightType: string): ArrayOperator | null {
  const commonArrayType = commonOf(leftType, rightType);
  if (commonArrayType === null || elementOf(commonArrayType) === null) return null;
  const orderTest = orderTests[operatorName];
  return {
    yields: 'bool',
    run: (names) => {
      const castOperands = castArguments([leftType, rightType], [commonArrayType, commonArrayType], names);
      return nullIfAnyNull((operandValues) => {
        const [leftElements, rightElements] = castOperands(operandValues) as Value[][];
        if (orderTest) return orderTest(compare(leftElements!, rightElements!));
        if (operatorName === '&&') return rightElements!.some((comparedElement) => hasElement(leftElements!, comparedElement));
        return operatorName === '@>'
          ? rightElements!.every((comparedElement) => hasElement(leftElements!, comparedElement))
          : leftElements!.every((comparedElement) => hasElement(rightElements!, comparedElement));
      });
    },
  };
}

const hasElement = (arrayElements: readonly Value[], soughtElement: Value): boolean =>
  soughtElement !== null &&
  arrayElements.some((arrayElement) => arrayElement !== null && compare(arrayElement, soughtElement) === 0);

const nullIfAnyNull =
  (operatorRun: (operandValues: readonly Value[]) => Value) =>
  (operandValues: readonly Value[]): Value =>
    operandValues.includes(null) ? null : operatorRun(operandValues);

function castArguments(
  fromTypes: readonly string[],
  toTypes: readonly string[],
  names: Names,
): (operandValues: readonly Value[]) => Value[] {
  const operandCasts = fromTypes.map((type, i) => castOf(type, toTypes[i]!, names)!);
  return (operandValues) => operandValues.map((operandValue, i) => operandCasts[i]!(operandValue));
}
