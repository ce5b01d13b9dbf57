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

const orders: Readonly<Record<string, (order: number) => boolean>> = {
  '=': (order) => order === 0,
  '!=': (order) => order !== 0,
  '<': (order) => order < 0,
  '>': (order) => order > 0,
  '<=': (order) => order <= 0,
  '>=': (order) => order >= 0,
};

/** Finds an operator by its name or symbol; null: there is none for such arrays. */
export function operatorOf(name: string, given: readonly string[]): ArrayOperator | null {
  if (name === 'array') return listOf(given);
  const [a, b] = given;
  if (a === 'record' && b === undefined && (name === '.x' || name === '.n')) return fieldOf(name);
  if (a !== undefined && name.startsWith('[') && name !== '[]') return slice(name, given);
  if (a === undefined || b === undefined || given.length > 2) return null;
  if (name === '[]') return elementAt(a, b);
  if (name === '||') return concatenate(a, b);
  const [op, quantifier] = name.split(' ');
  const judge = orders[op!];
  if (judge !== undefined && quantifier !== undefined) return ofElements(op!, quantifier === 'all', a, b);
  return judge !== undefined || name === '@>' || name === '<@' || name === '&&' ? comparison(name, a, b) : null;
}

function listOf(given: readonly string[]): ArrayOperator | null {
  let common: string | null = 'unknown';
  for (const type of given) common = common === null ? null : commonOf(common, type);
  const element = common === 'unknown' ? 'text' : common;
  const yields = element === null ? null : typeNamed(`_${element}`);
  if (yields === null) return null;
  return {
    yields,
    run: (names) =>
      castAll(
        given,
        given.map(() => element!),
        names,
      ),
  };
}

/** A field of what `_pg_expandarray` yields. */
function fieldOf(name: '.x' | '.n'): ArrayOperator {
  return {
    yields: 'int4',
    run: () => strict(([record]) => Number((record as string).slice(1, -1).split(',')[name === '.x' ? 0 : 1])),
  };
}

function elementAt(array: string, at: string): ArrayOperator | null {
  const element = elementOf(array);
  if (element === null || (at !== 'unknown' && familyOf(at) !== 'number')) return null;
  const first = firstNumber(array);
  return { yields: element, run: () => strict(([values, n]) => (values as Value[])[Number(n) - first] ?? null) };
}

/** The vectors of the catalogue count from 0, all else from 1. */
const firstNumber = (array: string): number => (array === 'int2vector' || array === 'oidvector' ? 0 : 1);

/** `x[from:to]`, both inclusive: elements that there are not are left out. */
function slice(name: string, [array, ...bounds]: readonly string[]): ArrayOperator | null {
  const element = elementOf(array!);
  const yields = element === null ? null : typeNamed(`_${element}`);
  if (yields === null || bounds.some((type) => type !== 'unknown' && familyOf(type) !== 'number')) return null;
  const first = firstNumber(array!);
  const hasFrom = name.startsWith('[from');
  const hasTo = name.endsWith('to]');
  return {
    yields,
    run: () =>
      strict((values) => {
        const list = values[0] as Value[];
        const from = hasFrom ? Math.max(0, Number(values[1]) - first) : 0;
        const to = hasTo ? Number(values.at(-1)) - first + 1 : list.length;
        return list.slice(from, Math.max(from, to));
      }),
  };
}

function concatenate(a: string, b: string): ArrayOperator | null {
  const [x, y] = [elementOf(a), elementOf(b)];
  const element = x === null && y === null ? null : commonOf(x ?? a, y ?? b);
  const yields = element === null ? null : typeNamed(`_${element}`);
  if (yields === null) return null;
  const lists = (own: string | null, type: string): string => (own === null && type !== 'unknown' ? element! : yields);
  const wanted = [lists(x, a), lists(y, b)];
  return {
    yields,
    run: (names) => {
      const cast = castAll([a, b], wanted, names);
      return (values) => {
        const [first, second] = (cast(values) as Value[]).map((value, i) => (wanted[i] === yields ? value : [value]));
        if (first === null || second === null) return first ?? second ?? null;
        return [...(first as Value[]), ...(second as Value[])];
      };
    },
  };
}

function ofElements(op: string, all: boolean, left: string, right: string): ArrayOperator | null {
  const judge = orders[op]!;
  const array = right === 'unknown' ? typeNamed(`_${left === 'unknown' ? 'text' : left}`) : right;
  const element = array === null ? null : elementOf(array);
  const common = element === null ? null : commonOf(left, element);
  if (common === null) return null;
  const type = common === 'unknown' ? 'text' : common;
  return {
    yields: 'bool',
    ...(castMayFail(left, type) || castMayFail(right, array!) || castMayFail(element!, type) ? {} : { mayFail: false }),
    ...(op === '=' && !all && isWritten(left, element!) ? { ofCells: () => isElement(array!) } : {}),
    run: (names) => {
      const cast = castAll([left, right], [type, array!], names);
      const each = castOf(element!, type, names)!;
      return (values) => {
        const [one, list] = cast(values) as Value[];
        if (list === null) return null;
        let unsure = false;
        for (const item of list as Value[]) {
          const value = each(item);
          const verdict = one === null || value === null ? null : judge(compare(one!, value));
          if (verdict === !all) return verdict;
          unsure ||= verdict === null;
        }
        return unsure ? null : all;
      };
    },
  };
}

const texts: ReadonlySet<string> = new Set(['text', 'name', 'varchar', 'bpchar']);

/** Whether elements stand in the text of an array as cells of such a type are. */
function isWritten(type: string, element: string): boolean {
  if (texts.has(type)) return texts.has(element);
  return columnType(type) === 'integer' && columnType(element) === 'integer' && !isReference(element);
}

/** `x = ANY (array)`: rows that follow each other often have the same array. */
function isElement(array: string): Evaluator {
  const areIntegers = columnType(elementOf(array)!) === 'integer';
  let last: { readonly text: Cell; readonly has: ReadonlySet<Cell> } = { text: null, has: new Set() };
  return (one = null, list = null) => {
    if (list === null) return null;
    if (last.text !== list) last = { text: list, has: new Set(elementCells(list as string, array, areIntegers)) };
    if (one !== null && last.has.has(one)) return true;
    return last.has.size > 0 && (one === null || last.has.has(null)) ? null : false;
  };
}

function elementCells(text: string, array: string, areIntegers: boolean): readonly Cell[] {
  const elementTexts = array.endsWith('vector') ? text.split(/\s+/).filter(Boolean) : elementsOf(text, array);
  return elementTexts.map((each) => (each !== null && areIntegers ? BigInt(each) : each));
}

function comparison(name: string, a: string, b: string): ArrayOperator | null {
  const common = commonOf(a, b);
  if (common === null || elementOf(common) === null) return null;
  const judge = orders[name];
  return {
    yields: 'bool',
    run: (names) => {
      const cast = castAll([a, b], [common, common], names);
      return strict((values) => {
        const [x, y] = cast(values) as Value[][];
        if (judge) return judge(compare(x!, y!));
        if (name === '&&') return y!.some((one) => has(x!, one));
        return name === '@>' ? y!.every((one) => has(x!, one)) : x!.every((one) => has(y!, one));
      });
    },
  };
}

const has = (all: readonly Value[], one: Value): boolean =>
  one !== null && all.some((each) => each !== null && compare(each, one) === 0);

const strict =
  (run: (values: readonly Value[]) => Value) =>
  (values: readonly Value[]): Value =>
    values.includes(null) ? null : run(values);

function castAll(from: readonly string[], to: readonly string[], names: Names): (values: readonly Value[]) => Value[] {
  const casts = from.map((type, i) => castOf(type, to[i]!, names)!);
  return (values) => values.map((value, i) => casts[i]!(value));
}
