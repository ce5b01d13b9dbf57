/** Joins against two nested loops: any keys, layouts and block sizes, either side held. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import type { Bound, CompareOp } from '../../../src/planner/expressions/bound-expression.ts';
import type { JoinNode, PlanNode } from '../../../src/planner/logical-plan.ts';
import { joinKernels, JoinOperator } from '../../../src/planner/operators/join.ts';
import {
  ArraySource,
  arrayExecution,
  type CellRow,
  type Drained,
  drain,
  type Layout,
  plainLayout,
} from '../execution/array-source.ts';

type JoinType = JoinNode['type'];

interface Side {
  readonly types: readonly ColumnType[];
  readonly rows: readonly CellRow[];
  readonly layout: Layout;
}

interface Condition {
  readonly op: CompareOp;
  readonly left: number;
  readonly right: number;
}

interface Case {
  readonly type: JoinType;
  readonly left: Side;
  readonly right: Side;
  readonly keys: number;
  readonly residual: Condition | null;
  /** Output columns that are read; all where there is none. */
  readonly read?: readonly number[] | undefined;
}

function nodeOf({ type, left, right, keys, residual, read }: Case, build: 'left' | 'right'): JoinNode {
  const columns = (side: Side, prefix: string) => side.types.map((each, i) => ({ name: `${prefix}${i}`, type: each }));
  const input = (side: Side, prefix: string) => ({ kind: 'scan', columns: columns(side, prefix) }) as unknown as PlanNode;
  const column = (index: number, of: ColumnType): Bound => ({ kind: 'column', index, name: 'c', type: of });
  return {
    kind: 'join',
    type,
    left: input(left, 'l'),
    right: input(right, 'r'),
    leftKeys: Array.from({ length: keys }, (_, k) => k),
    rightKeys: Array.from({ length: keys }, (_, k) => k),
    residual: residual && {
      kind: 'compare',
      op: residual.op,
      left: column(residual.left, left.types[residual.left]!),
      right: column(left.types.length + residual.right, right.types[residual.right]!),
      type: 'boolean',
    },
    build,
    ...(read ? { read } : {}),
    columns: [...columns(left, 'l'), ...columns(right, 'r')],
  };
}

function joined(subject: Case, build: 'left' | 'right', bytesMax = 1e9): Drained {
  const node = nodeOf(subject, build);
  const { left, right } = subject;
  const operator = new JoinOperator({
    left: new ArraySource(left.types, left.rows, left.layout),
    right: new ArraySource(right.types, right.rows, right.layout),
    node,
    residual: joinKernels(node),
    execution: arrayExecution({ bytesMax }),
  });
  return drain(operator, [...left.types, ...right.types]);
}

function same(a: Cell, b: Cell): boolean {
  // Loose equality of a bigint and a double is exact.
  // oxlint-disable-next-line eslint/eqeqeq
  return a !== null && b !== null && (typeof a === typeof b ? a === b : a == b);
}

function holds(op: CompareOp, a: Cell, b: Cell): boolean {
  if (a === null || b === null) return false;
  return op === '<' ? a < b : op === '>=' ? a >= b : !same(a, b);
}

function expected({ type, left, right, keys, residual }: Case): CellRow[] {
  const nothing = (side: Side): CellRow => side.types.map(() => null);
  const met = new Set<CellRow>();
  const out: CellRow[] = [];
  for (const l of left.rows) {
    let found = false;
    for (const r of right.rows) {
      let fits = residual === null || holds(residual.op, l[residual.left]!, r[residual.right]!);
      for (let k = 0; k < keys; k++) fits &&= same(l[k]!, r[k]!);
      if (!fits) continue;
      found = true;
      met.add(r);
      out.push([...l, ...r]);
    }
    if (!found && (type === 'left' || type === 'full')) out.push([...l, ...nothing(right)]);
  }
  if (type === 'right' || type === 'full') for (const r of right.rows) if (!met.has(r)) out.push([...nothing(left), ...r]);
  return out;
}

const cells: Readonly<Record<Exclude<ColumnType, 'vector'>, fc.Arbitrary<Cell>>> = {
  integer: fc.constantFrom<Cell>(0n, 1n, 2n, 3n, -1n, 70_000n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 31n, null),
  timestamp: fc.constantFrom<Cell>(0n, 1n, 1_700_000_000_000_000_000n, 1_700_000_000_000_000_001n, null),
  number: fc.constantFrom<Cell>(0, -0, 1, 1.5, -1, 2 ** 53, 70_000, null),
  string: fc.constantFrom<Cell>('', 'a', 'b', 'ä', '\u{1F600}', null),
  json: fc.constantFrom<Cell>('{}', '[1]', null),
  boolean: fc.constantFrom<Cell>(true, false, null),
};
const denseKeys = fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 0, max: 12 }).map(BigInt) }, fc.constant(null));
const types = fc.constantFrom('integer', 'timestamp', 'number', 'string', 'json', 'boolean') as fc.Arbitrary<keyof typeof cells>;
const layout: fc.Arbitrary<Layout> = fc.record({
  blockRows: fc.integer({ min: 1, max: 9 }),
  sparse: fc.boolean(),
  text: fc.constantFrom('shared', 'per block', 'plain'),
  wide: fc.boolean(),
});

const randomCase: fc.Arbitrary<Case> = fc
  .record({
    type: fc.constantFrom<JoinType>('inner', 'left', 'right', 'full'),
    keyTypes: fc.array(types, { maxLength: 3 }),
    /** An integer key beside a number. */
    mixed: fc.boolean(),
    dense: fc.boolean(),
    residual: fc.option(fc.constantFrom<CompareOp>('<', '>=', '!=')),
    rest: fc.constantFrom<ColumnType>('string', 'integer', 'number'),
    layouts: fc.tuple(layout, layout),
  })
  .chain(({ type, keyTypes, mixed, dense, residual, rest, layouts }) => {
    const side = (own: readonly ColumnType[], ownLayout: Layout): fc.Arbitrary<Side> =>
      fc
        .array(fc.tuple(...own.map((each) => (each === 'integer' && dense ? denseKeys : cells[each as keyof typeof cells]))), {
          maxLength: 20,
        })
        .map((rows) => ({ types: own, rows, layout: ownLayout }));
    const leftTypes = [...keyTypes, 'integer', rest] as ColumnType[];
    const rightTypes = leftTypes.map((each, k) => (mixed && k < keyTypes.length && each === 'integer' ? 'number' : each));
    return fc.record({
      read: fc.option(fc.subarray([...Array(leftTypes.length * 2).keys()]), { nil: undefined }),
      type: fc.constant(type),
      left: side(leftTypes, layouts[0]),
      right: side(rightTypes as ColumnType[], layouts[1]),
      keys: fc.constant(keyTypes.length),
      residual: fc.constant(residual && { op: residual, left: keyTypes.length, right: keyTypes.length }),
    });
  });

/** Which of two equal zeros, and which of 1n and 1, a cell is, is part of the answer. */
function shown(rows: readonly CellRow[]): string[] {
  return rows.map((row) => row.map((cell) => (Object.is(cell, -0) ? '-0' : `${typeof cell} ${String(cell)}`)).join('|'));
}

describe('join', () => {
  test('is what two nested loops say, in their order, whichever side is held', () => {
    fc.assert(
      fc.property(randomCase, fc.constantFrom('left', 'right'), (subject, build) => {
        const { read } = subject;
        const seen = (rows: readonly CellRow[]): string[] =>
          shown(read ? rows.map((row) => read.map((column) => row[column]!)) : rows);
        expect(seen(joined(subject, build).rows)).toEqual(seen(expected(subject)));
      }),
      { numRuns: 2_000 },
    );
  });

  const counted = (count: number, types_: readonly ColumnType[], row: (i: number) => CellRow): Side => ({
    types: types_,
    rows: Array.from({ length: count }, (_, i) => row(i)),
    layout: { ...plainLayout, blockRows: 2_000, text: 'shared' },
  });

  test('integers past the doubles and far apart stay apart', () => {
    const left = counted(3, ['integer'], (i) => [2n ** 53n + BigInt(i)]);
    const right = counted(3, ['integer'], (i) => [2n ** 53n + 2n - BigInt(i)]);
    for (const build of ['left', 'right'] as const)
      expect(joined({ type: 'inner', left, right, keys: 1, residual: null }, build).rows).toEqual(left.rows.map(([n]) => [n, n]));
  });

  test('many rows by dense keys, duplicates and gaps among them', () => {
    const left = counted(20_000, ['integer', 'string'], (i) => [BigInt((i * 7) % 9_000), `l${i % 50}`]);
    const right = counted(10_000, ['integer', 'integer'], (i) => [BigInt(i - (i % 3)), BigInt(i)]);
    const subject: Case = { type: 'full', left, right, keys: 1, residual: null };
    const byKey = new Map<Cell, CellRow[]>();
    for (const r of right.rows) byKey.set(r[0]!, [...(byKey.get(r[0]!) ?? []), r]);
    const wanted = left.rows.flatMap((l) => (byKey.get(l[0]!) ?? [[null, null]]).map((r) => [...l, ...r]));
    const met = new Set(left.rows.map(([key]) => key));
    const rest = right.rows.filter(([key]) => !met.has(key!)).map((r) => [null, null, ...r]);
    for (const build of ['left', 'right'] as const) expect(joined(subject, build).rows).toEqual([...wanted, ...rest]);
  });

  test('many pairs of keys, most of which never came', () => {
    const left = counted(6_000, ['integer', 'integer'], (i) => [BigInt(i % 75), BigInt(Math.floor(i / 75))]);
    const right = counted(6_000, ['integer', 'integer'], (i) => [BigInt(i % 75), BigInt(2 * Math.floor(i / 75))]);
    const keys = new Set(right.rows.map(String));
    const wanted = left.rows.flatMap((row) => (keys.has(String(row)) ? [[...row, ...row]] : []));
    for (const build of ['left', 'right'] as const)
      expect(joined({ type: 'inner', left, right, keys: 2, residual: null }, build).rows).toEqual(wanted);
  });

  test('keys of which one alone tells rows apart, NULLs in each of them', () => {
    const own: ColumnType[] = ['string', 'integer', 'boolean'];
    const nullable = (cell: Cell, isNull: boolean): Cell => (isNull ? null : cell);
    const side = (count: number, step: number): Side =>
      counted(count, own, (i) => [
        nullable(`t${(i * step) % 3}`, i % 11 === 0),
        nullable(BigInt(i * step), i % 13 === 0),
        nullable(i % 2 === 0, i % 17 === 0),
      ]);
    for (const type of ['inner', 'left', 'right', 'full'] as const) {
      const subject: Case = { type, left: side(700, 1), right: side(400, 2), keys: 3, residual: null };
      for (const build of ['left', 'right'] as const)
        expect(shown(joined(subject, build).rows)).toEqual(shown(expected(subject)));
    }
  });

  test('a row with very many partners comes out in pieces', () => {
    const left = counted(3, ['integer', 'string'], (i) => [1n, `l${i}`]);
    const right = counted(10_000, ['integer', 'string'], (i) => [1n, `r${i}`]);
    for (const build of ['left', 'right'] as const) {
      for (const keys of [0, 1]) {
        const { rows, largest } = joined({ type: 'left', left, right, keys, residual: null }, build);
        expect(rows.length).toBe(30_000);
        expect(rows[10_001]).toEqual([1n, 'l1', 1n, 'r1']);
        expect(largest).toBeLessThanOrEqual(8_192);
      }
    }
  });

  test('a row that met a partner long before its last one has met one', () => {
    const left = counted(2, ['integer', 'integer'], () => [1n, 5n]);
    const right = counted(10_000, ['integer', 'integer'], (i) => [1n, i === 0 ? 9n : 0n]);
    const residual: Condition = { op: '<', left: 1, right: 1 };
    for (const build of ['left', 'right'] as const) {
      const { rows } = joined({ type: 'full', left, right, keys: 1, residual }, build);
      expect(rows.slice(0, 2)).toEqual([
        [1n, 5n, 1n, 9n],
        [1n, 5n, 1n, 9n],
      ]);
      expect(rows.length).toBe(2 + 9_999);
      expect(rows[2]).toEqual([null, null, 1n, 0n]);
    }
  });

  test('pairs that the residual drops are work: a call looks at one block of them', () => {
    const left = counted(300, ['integer'], () => [5n]);
    const right = counted(3_000, ['integer'], () => [1n]);
    const residual: Condition = { op: '<', left: 0, right: 0 };
    const { rows, calls } = joined({ type: 'inner', left, right, keys: 0, residual }, 'right');
    expect(rows).toEqual([]);
    expect(calls).toBeGreaterThan((300 * 3_000) / 4_096);
  });

  test('what it holds is metered on either side', () => {
    const big = counted(5_000, ['integer', 'string'], (i) => [BigInt(i), `text ${i}`]);
    const small = counted(1, ['integer', 'string'], () => [1n, 'x']);
    const code = (run: () => unknown): string => {
      try {
        run();
        return 'answered';
      } catch (error) {
        return error instanceof ServiceError ? error.code : String(error);
      }
    };
    const subject = (left: Side, right: Side): Case => ({ type: 'inner', left, right, keys: 1, residual: null });
    expect(code(() => joined(subject(small, big), 'right', 40_000))).toBe('REL_MEMORY_CAP');
    expect(code(() => joined(subject(big, small), 'left', 40_000))).toBe('REL_MEMORY_CAP');
    expect(code(() => joined(subject(small, big), 'left', 400_000))).toBe('answered');
  });

  test('closes both inputs, also when it ends early', () => {
    const subject: Case = {
      type: 'inner',
      left: counted(2, ['integer'], () => [1n]),
      right: counted(2, ['integer'], () => [1n]),
      keys: 1,
      residual: null,
    };
    const sources = [subject.left, subject.right].map((side) => new ArraySource(side.types, side.rows));
    const node = nodeOf(subject, 'right');
    const operator = new JoinOperator({
      left: sources[0]!,
      right: sources[1]!,
      node,
      residual: null,
      execution: arrayExecution(),
    });
    operator.next();
    operator.close();
    expect(sources.map(({ closed }) => closed)).toEqual([1, 1]);
  });
});
