/** Functions that choose among their arguments. COALESCE chooses before it computes, and is a node of its own. */
import { type Cell, compareText } from '../../../log/values/value.ts';
import { linear, type ScalarFunction, type Signature } from './scalar-function.ts';

function compareChoices(leftChoice: Cell, rightChoice: Cell): number {
  if (typeof leftChoice === 'string' && typeof rightChoice === 'string') return compareText(leftChoice, rightChoice);
  return leftChoice! < rightChoice! ? -1 : leftChoice! > rightChoice! ? 1 : 0;
}

function extremeChoice(cells: readonly Cell[], extremeSign: 1 | -1): Cell {
  let extremeCell: Cell = null;
  let hasDouble = false;
  for (const cell of cells) {
    if (cell === null) continue;
    hasDouble ||= typeof cell === 'number';
    if (extremeCell === null || compareChoices(cell, extremeCell) * extremeSign > 0) extremeCell = cell;
  }
  return hasDouble && typeof extremeCell === 'bigint' ? Number(extremeCell) : extremeCell;
}

function nullCountSignature(isCounted: (cell: Cell) => boolean): Signature {
  return {
    takes: ['any'],
    cost: linear,
    repeats: true,
    yields: 'integer',
    evaluate: (...cells) => BigInt(cells.filter(isCounted).length),
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
        evaluate: (...cells) => extremeChoice(cells, 1),
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
        evaluate: (...cells) => extremeChoice(cells, -1),
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
        evaluate: (x, y) => (x !== null && y !== null && compareChoices(x!, y!) === 0 ? null : x!),
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
    signatures: [nullCountSignature((cell) => cell === null)],
  },
  {
    name: 'NUM_NONNULLS',
    group: 'choice',
    usage: 'NUM_NONNULLS(x, ...)',
    summary: 'How many of the values are not NULL.',
    examples: [['NUM_NONNULLS(1, NULL, 2)', '2']],
    signatures: [nullCountSignature((cell) => cell !== null)],
  },
];
