/** How far apart two vectors are, as pgvector has it. A text beside a vector is one: '[1, 2, 3]'. */
import type { Cell } from '../../../log/values/value.ts';
import { shortFloat } from '../../formats/byte-writer.ts';
import { type Cost, rowMost, work } from '../expression-cost.ts';
import { invalid, type ScalarFunction } from './scalar-function.ts';

/** A text that stands beside every row is read once. */
const vectorFunctionCost: Cost = { call: 100, character: 2 };

type VectorDistance = (a: Float32Array, b: Float32Array) => number;

/** 1 - cosine; NULL where one of them has no direction, which no order by distance shows first. */
const cosineDistance: VectorDistance = (leftVector, rightVector) => {
  let [dotProduct, leftSquare, rightSquare] = [0, 0, 0];
  for (let i = 0; i < leftVector.length; i++) {
    dotProduct += leftVector[i]! * rightVector[i]!;
    leftSquare += leftVector[i]! * leftVector[i]!;
    rightSquare += rightVector[i]! * rightVector[i]!;
  }
  return 1 - Math.max(-1, Math.min(1, dotProduct / Math.sqrt(leftSquare * rightSquare)));
};

const euclideanDistance: VectorDistance = (leftVector, rightVector) => {
  let squareSum = 0;
  for (let i = 0; i < leftVector.length; i++) squareSum += (leftVector[i]! - rightVector[i]!) ** 2;
  return Math.sqrt(squareSum);
};

const negativeInner: VectorDistance = (leftVector, rightVector) => {
  let negativeProduct = 0;
  for (let i = 0; i < leftVector.length; i++) negativeProduct -= leftVector[i]! * rightVector[i]!;
  return negativeProduct;
};

/** The vector that a cell is, as a vector or as a text of one; null for any other cell. */
export function vectorIn(cell: Cell): Float32Array | null {
  return cell instanceof Float32Array ? cell : typeof cell === 'string' ? parseVector(cell) : null;
}

export const differentDimensions = (a: number, b: number): Error =>
  invalid(`different vector dimensions ${a} and ${b}`, 'vector-dimensions');

function vectorOperator(name: string, summary: string, distance: VectorDistance, example: string): ScalarFunction {
  // The same text often stands beside every row: it is parsed once.
  let lastVectorText = '';
  let lastVector: Float32Array = new Float32Array(0);
  const vectorOf = (vectorCell: Cell | undefined): Float32Array => {
    if (vectorCell instanceof Float32Array) return vectorCell;
    if (vectorCell !== lastVectorText) [lastVector, lastVectorText] = [parseVector(vectorCell as string), vectorCell as string];
    return lastVector;
  };
  const evaluate = (leftCell: Cell, rightCell: Cell): Cell => {
    const [leftVector, rightVector] = [vectorOf(leftCell), vectorOf(rightCell)];
    if (leftVector.length !== rightVector.length) throw differentDimensions(leftVector.length, rightVector.length);
    const vectorDistance = distance(leftVector, rightVector);
    return Number.isFinite(vectorDistance) ? vectorDistance + 0 : null;
  };
  const distanceSignature = (takes: ScalarFunction['signatures'][number]['takes']) =>
    ({ takes, cost: vectorFunctionCost, yields: 'number', evaluate, raises: true }) as const;
  return {
    name,
    group: 'vectors',
    usage: `a ${name} b`,
    summary: `${summary} of two vectors of the same dimensions; either may be a text like '[1, 2, 3]'.`,
    examples: [[`'[1, 2]' ${name} '[2, 4]'`, example]],
    signatures: [
      distanceSignature(['vector', 'vector']),
      distanceSignature(['vector', 'string']),
      distanceSignature(['string', 'vector']),
      distanceSignature(['string', 'string']),
    ],
  };
}

export function vectorText(vector: Float32Array): string {
  return `[${Array.from(vector, shortFloat).join(',')}]`;
}

/** Nanoseconds that a character of a text takes which is read as a vector. */
const vectorReadCost = 70;

function parseVector(writtenVector: string): Float32Array {
  // Before anything is made of it: it stands beside a row as a whole.
  if (writtenVector.length * vectorReadCost > rowMost)
    throw invalid(`a text beside a vector has at most ${Math.floor(rowMost / vectorReadCost)} characters`, 'text-form');
  work.done += writtenVector.length * vectorReadCost;
  const componentTexts = /^\s*\[([^\]]*)\]\s*$/.exec(writtenVector)?.[1]?.split(',');
  const vectorComponents = Float32Array.from(componentTexts ?? [], (componentText) =>
    componentText.trim() === '' ? Number.NaN : Number(componentText),
  );
  if (vectorComponents.length === 0 || !vectorComponents.every(Number.isFinite))
    throw invalid("a text beside a vector is written '[1, 2, 3]'", 'text-form');
  return vectorComponents;
}

/** The text of a vector in its canonical form; `dims` as VECTOR(n) states. */
function canonicalVector(writtenVector: string, dims: bigint | null): string {
  const parsedVector = parseVector(writtenVector);
  if (dims !== null && BigInt(parsedVector.length) !== dims)
    throw invalid(`expected ${dims} dimensions, not ${parsedVector.length}`, 'vector-dimensions');
  return vectorText(parsedVector);
}

/** A text as the vector that it is; vectors of expressions are held as texts. */
export const vectorCast: ScalarFunction = {
  name: 'CAST AS vector',
  group: 'types',
  usage: 'CAST(x AS vector)',
  summary: '',
  examples: [],
  signatures: [
    { takes: ['vector'], cost: vectorFunctionCost, yields: 'string', evaluate: (given) => vectorText(given as Float32Array) },
    {
      takes: ['string'],
      cost: vectorFunctionCost,
      yields: 'string',
      evaluate: (given) => canonicalVector(given as string, null),
      raises: true,
    },
    {
      takes: ['json'],
      cost: vectorFunctionCost,
      yields: 'string',
      evaluate: (given) => canonicalVector(given as string, null),
      raises: true,
    },
    {
      takes: ['string', 'integer'],
      cost: vectorFunctionCost,
      yields: 'string',
      evaluate: (given, dims) => canonicalVector(given as string, dims as bigint),
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
  compareVectors: (a: Float32Array, b: Float32Array) => Cell,
  yields: 'number' | 'boolean',
  examples: ScalarFunction['examples'],
): ScalarFunction {
  const vectorTypePairs = [
    ['vector', 'vector'],
    ['vector', 'string'],
    ['string', 'vector'],
    ['string', 'string'],
  ] as const;
  const evaluate = (leftCell: Cell, rightCell: Cell): Cell => compareVectors(vectorIn(leftCell)!, vectorIn(rightCell)!);
  const signatures = vectorTypePairs.map(
    (takes) => ({ takes, cost: vectorFunctionCost, yields, evaluate, raises: true }) as const,
  );
  return { name, group: 'vectors', usage: `${name}(a, b)`, summary, examples, signatures };
}

/** The function that pgvector has beside an operator. */
function namedOperator(
  name: string,
  operatorName: string,
  distanceSign: 1 | -1,
  example: readonly [string, string],
): ScalarFunction {
  const { signatures } = vectorOperators.find((knownOperator) => knownOperator.name === operatorName)!;
  return {
    name,
    group: 'vectors',
    usage: `${name}(a, b)`,
    summary: distanceSign === 1 ? `The same as a ${operatorName} b.` : `The same as a ${operatorName} b, without its minus sign.`,
    examples: [example],
    signatures: signatures.map((operatorSignature) => ({
      ...operatorSignature,
      evaluate: (a, b) => {
        const pairDistance = operatorSignature.evaluate(a!, b!) as number | null;
        return pairDistance === null ? null : pairDistance * distanceSign + 0;
      },
    })),
  };
}

const vectorOperators: readonly ScalarFunction[] = [
  vectorOperator('<=>', 'The cosine distance', cosineDistance, '0'),
  vectorOperator('<->', 'The Euclidean distance', euclideanDistance, '2.23606797749979'),
  vectorOperator('<#>', 'The negative inner product', negativeInner, '-10'),
];

export const vectorFunctions: readonly ScalarFunction[] = [
  ...vectorOperators,
  namedOperator('COSINE_DISTANCE', '<=>', 1, ["COSINE_DISTANCE('[1, 0]', '[0, 1]')", '1']),
  namedOperator('L2_DISTANCE', '<->', 1, ["L2_DISTANCE('[0, 0]', '[3, 4]')", '5']),
  namedOperator('INNER_PRODUCT', '<#>', -1, ["INNER_PRODUCT('[1, 2]', '[3, 4]')", '11']),
];
