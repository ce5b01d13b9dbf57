/** Functions that choose among their arguments. COALESCE chooses before it computes, and is a node of its own. */
import { type Cell, compareText } from '../../../log/values/value.ts';
import { linear, type ScalarFunction } from './scalar-function.ts';

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
];
