/** How far apart two vectors are, as pgvector has it. A text beside a vector is one: '[1, 2, 3]'. */
import type { Cell } from '../../../log/values/value.ts';
import { shortFloat } from '../../formats/byte-writer.ts';
import { type Cost, rowMost, work } from '../expression-cost.ts';
import { invalid, type ScalarFunction } from './scalar-function.ts';

/** A text that stands beside every row is read once. */
const perNumber: Cost = { call: 100, character: 2 };

type Distance = (a: Float32Array, b: Float32Array) => number;

/** 1 - cosine; NULL where one of them has no direction, which no order by distance shows first. */
const cosine: Distance = (a, b) => {
  let [dot, left, right] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    left += a[i]! * a[i]!;
    right += b[i]! * b[i]!;
  }
  return 1 - Math.max(-1, Math.min(1, dot / Math.sqrt(left * right)));
};

const euclidean: Distance = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i]! - b[i]!) ** 2;
  return Math.sqrt(sum);
};

const negativeInner: Distance = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum -= a[i]! * b[i]!;
  return sum;
};

/** The vector that a cell is, as a vector or as a text of one; null for any other cell. */
export function vectorIn(cell: Cell): Float32Array | null {
  return cell instanceof Float32Array ? cell : typeof cell === 'string' ? parseVector(cell) : null;
}

export const differentDimensions = (a: number, b: number): Error =>
  invalid(`different vector dimensions ${a} and ${b}`, 'vector-dimensions');

function operator(name: string, summary: string, distance: Distance, example: string): ScalarFunction {
  // The same text often stands beside every row: it is parsed once.
  let lastText = '';
  let lastVector: Float32Array = new Float32Array(0);
  const vectorOf = (cell: Cell | undefined): Float32Array => {
    if (cell instanceof Float32Array) return cell;
    if (cell !== lastText) [lastVector, lastText] = [parseVector(cell as string), cell as string];
    return lastVector;
  };
  const evaluate = (left: Cell, right: Cell): Cell => {
    const [a, b] = [vectorOf(left), vectorOf(right)];
    if (a.length !== b.length) throw differentDimensions(a.length, b.length);
    const vectorDistance = distance(a, b);
    return Number.isFinite(vectorDistance) ? vectorDistance + 0 : null;
  };
  const signature = (takes: ScalarFunction['signatures'][number]['takes']) =>
    ({ takes, cost: perNumber, yields: 'number', evaluate, raises: true }) as const;
  return {
    name,
    group: 'vectors',
    usage: `a ${name} b`,
    summary: `${summary} of two vectors of the same dimensions; either may be a text like '[1, 2, 3]'.`,
    examples: [[`'[1, 2]' ${name} '[2, 4]'`, example]],
    signatures: [
      signature(['vector', 'vector']),
      signature(['vector', 'string']),
      signature(['string', 'vector']),
      signature(['string', 'string']),
    ],
  };
}

export function vectorText(vector: Float32Array): string {
  return `[${Array.from(vector, shortFloat).join(',')}]`;
}

/** Nanoseconds that a character of a text takes which is read as a vector. */
const readCost = 70;

function parseVector(text: string): Float32Array {
  // Before anything is made of it: it stands beside a row as a whole.
  if (text.length * readCost > rowMost)
    throw invalid(`a text beside a vector has at most ${Math.floor(rowMost / readCost)} characters`, 'text-form');
  work.done += text.length * readCost;
  const items = /^\s*\[([^\]]*)\]\s*$/.exec(text)?.[1]?.split(',');
  const values = Float32Array.from(items ?? [], (item) => (item.trim() === '' ? Number.NaN : Number(item)));
  if (values.length === 0 || !values.every(Number.isFinite))
    throw invalid("a text beside a vector is written '[1, 2, 3]'", 'text-form');
  return values;
}

/** The text of a vector in its canonical form; `dims` as VECTOR(n) states. */
function canonical(given: string, dims: bigint | null): string {
  const vector = parseVector(given);
  if (dims !== null && BigInt(vector.length) !== dims)
    throw invalid(`expected ${dims} dimensions, not ${vector.length}`, 'vector-dimensions');
  return vectorText(vector);
}

/** A text as the vector that it is; vectors of expressions are held as texts. */
export const vectorCast: ScalarFunction = {
  name: 'CAST AS vector',
  group: 'types',
  usage: 'CAST(x AS vector)',
  summary: '',
  examples: [],
  signatures: [
    { takes: ['vector'], cost: perNumber, yields: 'string', evaluate: (given) => vectorText(given as Float32Array) },
    { takes: ['string'], cost: perNumber, yields: 'string', evaluate: (given) => canonical(given as string, null), raises: true },
    { takes: ['json'], cost: perNumber, yields: 'string', evaluate: (given) => canonical(given as string, null), raises: true },
    {
      takes: ['string', 'integer'],
      cost: perNumber,
      yields: 'string',
      evaluate: (given, dims) => canonical(given as string, dims as bigint),
      raises: true,
    },
  ],
};

/** Whether two vectors are the same, component by component. */
export const sameVector: ScalarFunction = vectorComparison(
  'VECTOR =',
  '',
  (a, b) => a.length === b.length && a.every((value, i) => value === b[i]),
  'boolean',
  [],
);

function vectorComparison(
  name: string,
  summary: string,
  compare: (a: Float32Array, b: Float32Array) => Cell,
  yields: 'number' | 'boolean',
  examples: ScalarFunction['examples'],
): ScalarFunction {
  const pairs = [
    ['vector', 'vector'],
    ['vector', 'string'],
    ['string', 'vector'],
    ['string', 'string'],
  ] as const;
  const evaluate = (a: Cell, b: Cell): Cell => compare(vectorIn(a)!, vectorIn(b)!);
  const signatures = pairs.map((takes) => ({ takes, cost: perNumber, yields, evaluate, raises: true }) as const);
  return { name, group: 'vectors', usage: `${name}(a, b)`, summary, examples, signatures };
}

/** The function that pgvector has beside an operator. */
function namedOperator(name: string, of: string, sign: 1 | -1, example: readonly [string, string]): ScalarFunction {
  const { signatures } = vectorOperators.find((each) => each.name === of)!;
  return {
    name,
    group: 'vectors',
    usage: `${name}(a, b)`,
    summary: sign === 1 ? `The same as a ${of} b.` : `The same as a ${of} b, without its minus sign.`,
    examples: [example],
    signatures: signatures.map((signature) => ({
      ...signature,
      evaluate: (a, b) => {
        const pairDistance = signature.evaluate(a!, b!) as number | null;
        return pairDistance === null ? null : pairDistance * sign + 0;
      },
    })),
  };
}

const vectorOperators: readonly ScalarFunction[] = [
  operator('<=>', 'The cosine distance', cosine, '0'),
  operator('<->', 'The Euclidean distance', euclidean, '2.23606797749979'),
  operator('<#>', 'The negative inner product', negativeInner, '-10'),
];

export const vectorFunctions: readonly ScalarFunction[] = [
  ...vectorOperators,
  namedOperator('COSINE_DISTANCE', '<=>', 1, ["COSINE_DISTANCE('[1, 0]', '[0, 1]')", '1']),
  namedOperator('L2_DISTANCE', '<->', 1, ["L2_DISTANCE('[0, 0]', '[3, 4]')", '5']),
  namedOperator('INNER_PRODUCT', '<#>', -1, ["INNER_PRODUCT('[1, 2]', '[3, 4]')", '11']),
];
