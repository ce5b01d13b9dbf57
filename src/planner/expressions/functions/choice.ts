/** Functions that choose among their arguments. COALESCE chooses before it computes, and is a node of its own. */
import { type Cell, compareText } from '../../../log/values/value.ts';
import { linear, type ScalarFunction, type Signature } from './scalar-function.ts';

function order(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

function extreme(cells: readonly Cell[], sign: 1 | -1): Cell {
  let best: Cell = null;
  let mixed = false;
  for (const cell of cells) {
    if (cell === null) continue;
    mixed ||= typeof cell === 'number';
    if (best === null || order(cell, best) * sign > 0) best = cell;
  }
  return mixed && typeof best === 'bigint' ? Number(best) : best;
}

function counting(is: (cell: Cell) => boolean): Signature {
  return {
    takes: ['any'],
    cost: linear,
    repeats: true,
    yields: 'integer',
    evaluate: (...cells) => BigInt(cells.filter(is).length),
    takesNull: true,
    small: true,
  };
}

export const choiceFunctions: readonly ScalarFunction[] = [
  {
    name: 'GREATEST',
    group: 'choice',
    usage: 'GREATEST(x, ...)',
    summary: 'The greatest of the values that are not NULL.',
    examples: [['GREATEST(1, NULL, 3)', '3']],
    signatures: [
      {
        takes: ['same'],
        cost: linear,
        repeats: true,
        yields: 'same',
        evaluate: (...cells) => extreme(cells, 1),
        takesNull: true,
      },
    ],
  },
  {
    name: 'LEAST',
    group: 'choice',
    usage: 'LEAST(x, ...)',
    summary: 'The least of the values that are not NULL.',
    examples: [["LEAST('b', 'a')", 'a']],
    signatures: [
      {
        takes: ['same'],
        cost: linear,
        repeats: true,
        yields: 'same',
        evaluate: (...cells) => extreme(cells, -1),
        takesNull: true,
      },
    ],
  },
  {
    name: 'NULLIF',
    group: 'choice',
    usage: 'NULLIF(x, y)',
    summary: 'x, but NULL where it equals y.',
    examples: [
      ['NULLIF(3, 3)', 'NULL'],
      ['NULLIF(3, NULL)', '3'],
    ],
    signatures: [
      {
        takes: ['same', 'same'],
        cost: linear,
        yields: 'same',
        evaluate: (x, y) => (x !== null && y !== null && order(x!, y!) === 0 ? null : x!),
        takesNull: true,
      },
    ],
  },
  {
    name: 'NUM_NULLS',
    group: 'choice',
    usage: 'NUM_NULLS(x, ...)',
    summary: 'How many of the values are NULL.',
    examples: [['NUM_NULLS(1, NULL, 2)', '1']],
    signatures: [counting((cell) => cell === null)],
  },
  {
    name: 'NUM_NONNULLS',
    group: 'choice',
    usage: 'NUM_NONNULLS(x, ...)',
    summary: 'How many of the values are not NULL.',
    examples: [['NUM_NONNULLS(1, NULL, 2)', '2']],
    signatures: [counting((cell) => cell !== null)],
  },
];
