/** Answers for the writers of rows: the hard cells of every type, in every layout that a store may keep them in. */
import type { Dictionary, Vector } from '../../../src/log/values/columns.ts';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import type { OutputBatch, OutputColumn } from '../../../src/planner/planner-contract.ts';

export interface Rows {
  readonly columns: readonly OutputColumn[];
  readonly batches: readonly OutputBatch[];
}

export type Layout = 'plain' | 'scattered' | 'codes' | 'masked' | 'mixed';
export const layouts: readonly Layout[] = ['plain', 'scattered', 'codes', 'masked', 'mixed'];

/** What no writer may let out: it stands between the rows, under NULLs and in dictionaries. */
export const hidden = 'HIDDEN';
export const hiddenInteger = 6_661_234_567_890_123_456n;

export const hardColumns: readonly OutputColumn[] = [
  { name: 'key', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'n', type: 'integer' },
  { name: 'x', type: 'number' },
  { name: 'yes', type: 'boolean' },
  { name: 'at', type: 'timestamp' },
  { name: 'doc', type: 'json' },
  { name: 'v', type: 'vector' },
  { name: 'never', type: 'string' },
];

export const hardTexts: readonly string[] = [
  '',
  ' ',
  'plain',
  'NULL',
  'null',
  'quo"te',
  '"',
  '""',
  'a,b',
  'line\nbreak',
  'carriage\rreturn',
  'both\r\n',
  '123',
  '-0',
  '1e5',
  '.5',
  '+7',
  'true',
  'FALSE',
  'é€',
  '😀 astral',
  'e\u0301 combining',
  '\u2028\u2029',
  '\ufeffmark',
  "=1+1,'x'",
  'x'.repeat(300),
  '# no comment',
  '\\N',
  'tab\tbed',
];

export const hardIntegers: readonly bigint[] = [
  9_223_372_036_854_775_807n,
  -9_223_372_036_854_775_808n,
  9_007_199_254_740_993n,
  9_007_199_254_740_991n,
  -9_007_199_254_740_993n,
  4_294_967_296n,
  -4_294_967_297n,
  2_147_483_648n,
  -2_147_483_648n,
  -1n,
  0n,
  1n,
];

const numbers = [0, -0, 0.1, -2.5, 1e15, 1e20, 1e21, 1e300, 5e-324, Number.MAX_VALUE, 2 ** 53 + 2, 123456789.12345679, 9.95];
const documents = ['{ "a":  1.0 }', '[1,2]', '"text"', '12345678901234567890', '{"k":"é,\\"q\\""}', 'true', '{"a":\n1}'];
const vectors = [Float32Array.of(0.1, -2, 3), Float32Array.of(-0, 1e-30, 3.4028234663852886e38)];

/** `count` rows: every hard cell comes up, and NULL in every column but the key. */
export function hardRows(count = 120): Cell[][] {
  const cycle = <T>(values: readonly T[], i: number, every: number): T | null =>
    i % every === 3 ? null : values[i % values.length]!;
  return Array.from({ length: count }, (_, i) => [
    `k${i}`,
    cycle(hardTexts, i, 7),
    cycle(hardIntegers, i, 5),
    cycle(numbers, i, 6),
    cycle([true, false], i, 4),
    cycle(hardIntegers, i + 1, 8),
    cycle(documents, i, 9),
    cycle(vectors, i, 10),
    null,
  ]);
}

/** The rows as an answer of three batches or more, laid out as asked. */
export function rowsOf(columns: readonly OutputColumn[], rows: readonly (readonly Cell[])[], layout: Layout = 'plain'): Rows {
  const size = Math.max(1, Math.ceil(rows.length / 3));
  const batches: OutputBatch[] = [];
  for (let from = 0; from < rows.length; from += size) {
    const some = rows.slice(from, from + size);
    const chosen = layout === 'mixed' ? layouts[batches.length % 3]! : layout;
    batches.push(chosen === 'scattered' ? scattered(columns, some) : inARow(columns, some, chosen));
  }
  return { columns, batches };
}

function inARow(columns: readonly OutputColumn[], rows: readonly (readonly Cell[])[], chosen: Layout): OutputBatch {
  const vectorsOf = columns.map(({ type }, c) => {
    const cells = [garbage(type, rows, c), ...rows.map((row) => row[c]!)];
    if (chosen === 'codes' && type === 'string') return coded(cells);
    if (chosen !== 'masked') return built(type, cells);
    // As if a policy had hidden cells: a mark, and the value still under it.
    const vector = built(
      type,
      cells.map((cell) => cell ?? garbage(type, rows, c)),
    );
    return vector.kind === 'null' ? vector : { ...vector, nulls: Uint8Array.from(cells, (cell) => (cell === null ? 1 : 0)) };
  });
  return { columns: vectorsOf, selection: null, first: 1, count: rows.length };
}

/** Every other row is somebody else's, and NULLs are marks over values. */
function scattered(columns: readonly OutputColumn[], rows: readonly (readonly Cell[])[]): OutputBatch {
  const vectorsOf = columns.map(({ type }, c) => {
    const vector = built(
      type,
      rows.flatMap((row) => [garbage(type, rows, c), row[c] ?? garbage(type, rows, c)]),
    );
    const nulls = Uint8Array.from(rows.flatMap((row) => [0, row[c] === null ? 1 : 0]));
    return vector.kind === 'null' ? vector : { ...vector, nulls };
  });
  return { columns: vectorsOf, selection: Int32Array.from(rows, (_, i) => i * 2 + 1), first: 0, count: rows.length };
}

export function built(type: ColumnType, cells: readonly Cell[]): Vector {
  const builder = new VectorBuilder(type);
  for (const cell of cells) builder.append(cell);
  return builder.build();
}

/** Codes into a dictionary that holds more than the rows do. */
function coded(cells: readonly Cell[]): Vector {
  const texts = [
    ...new Set([hidden, ...cells.filter((cell): cell is string => typeof cell === 'string'), `${hidden} too`]),
  ].reverse();
  const dictionary: Dictionary = { size: texts.length, text: (code) => texts[code]!, codeOf: (text) => texts.indexOf(text) };
  const codeOfHidden = texts.indexOf(hidden);
  const values = Int32Array.from(cells, (cell) => (cell === null ? codeOfHidden : texts.indexOf(cell as string)));
  const nulls = Uint8Array.from(cells, (cell) => (cell === null ? 1 : 0));
  return { kind: 'dict', values, dictionary, nulls: nulls.includes(1) ? nulls : null };
}

function garbage(type: ColumnType, rows: readonly (readonly Cell[])[], column: number): Cell {
  switch (type) {
    case 'string':
      return hidden;
    case 'json':
      return `"${hidden}"`;
    case 'integer':
    case 'timestamp':
      return hiddenInteger;
    case 'number':
      return 666.125;
    case 'boolean':
      return true;
    case 'vector':
      return new Float32Array(rows.map((row) => row[column]).find((cell) => cell instanceof Float32Array)?.length ?? 3).fill(666);
  }
}

/** True when the bytes hold what is hidden, as text or as an integer of 64 bits. */
export function letsOut(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes);
  const integer = Buffer.alloc(8);
  integer.writeBigInt64LE(hiddenInteger);
  return buffer.includes(hidden) || buffer.includes(integer) || buffer.includes(String(hiddenInteger));
}
