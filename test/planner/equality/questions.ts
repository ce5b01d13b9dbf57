/**
 * Questions that can be put as SQL, and answered by the plainest means there are: every version that the caller may see is
 * looked at, cell by cell, in the order of system_from. No plan, kernel, generated code, bitmap, index or zone has a part in it.
 */
import { formatInstant } from '../../../src/log/values/timestamp.ts';
import { type Cell, type ColumnType, compareText } from '../../../src/log/values/value.ts';
import { type History, instantAt, paths } from './history.ts';

export const columnTypes = {
  _pk: 'string',
  region: 'string',
  amount: 'number',
  qty: 'integer',
  label: 'string',
  at: 'timestamp',
  valid_from: 'timestamp',
  valid_to: 'timestamp',
  system_from: 'timestamp',
  system_to: 'timestamp',
} as const satisfies Record<string, ColumnType>;
export type Column = keyof typeof columnTypes;
export type Version = Readonly<Record<Column, Cell>>;

type Call = readonly ['count', '*'] | readonly ['count' | 'sum' | 'min' | 'max' | 'avg' | 'count distinct', Column];

interface Condition {
  readonly sql: string;
  readonly holds: (row: Version) => boolean;
}

interface Basis {
  readonly sql: string;
  readonly system: bigint | 'all';
  readonly valid: bigint | 'all';
}

export interface Question {
  readonly path: string;
  readonly basis: Basis;
  readonly where: readonly Condition[];
  /** Keys of groups with calls over each, or columns of rows. */
  readonly shape:
    | { readonly by: readonly Column[]; readonly calls: readonly Call[] }
    | { readonly select: readonly Column[]; readonly sort?: Column; readonly limit?: number };
}

const compares = {
  '=': (order: number) => order === 0,
  '<>': (order: number) => order !== 0,
  '<': (order: number) => order < 0,
  '>=': (order: number) => order >= 0,
} as const;

function condition(column: Column, op: keyof typeof compares, value: string | number): Condition {
  const literal = typeof value === 'string' ? `'${value}'` : String(value);
  return {
    sql: `${column} ${op} ${literal}`,
    holds: (row) => row[column] !== null && compares[op](orderOf(row[column], value)),
  };
}

const isNull = (column: Column): Condition => ({ sql: `${column} IS NULL`, holds: (row) => row[column] === null });
const oneOf = (column: Column, values: readonly string[]): Condition => ({
  sql: `${column} IN (${values.map((value) => `'${value}'`).join(', ')})`,
  holds: (row) => values.includes(row[column] as string),
});
const beginsWith = (column: Column, text: string): Condition => ({
  sql: `${column} LIKE '${text}%'`,
  holds: (row) => row[column] !== null && (row[column] as string).startsWith(text),
});

/** Texts of letters, spaces and digits: their words are told apart by where these meet. */
const matches = (column: Column, words: readonly string[], mode: 'ANY' | 'ALL' | 'PHRASE'): Condition => ({
  sql: `MATCH(${column}, '${words.join(' ')}'${mode === 'ANY' ? '' : `, ${mode}`})`,
  holds: (row) => {
    const own =
      row[column] === null
        ? []
        : [
            ...String(row[column])
              .toLowerCase()
              .matchAll(/[a-z]+|[0-9]+/g),
          ].map(([word]) => word);
    if (mode === 'PHRASE') return own.some((_, i) => words.every((word, k) => own[i + k] === word));
    return mode === 'ALL' ? words.every((word) => own.includes(word)) : words.some((word) => own.includes(word));
  },
});

function orderOf(a: Exclude<Cell, null>, b: string | number): number {
  if (typeof a === 'string') return compareText(a, b as string);
  const [value, other] = [a as number | bigint, b as number];
  return value < other ? -1 : value > other ? 1 : 0;
}

export function questionsOf(history: History, now: bigint): Question[] {
  const system = (share: number): Basis => {
    const instant = instantAt(history, share);
    return { sql: `AS OF SYSTEM TIME '${formatInstant(instant)}'`, system: instant, valid: 'all' };
  };
  const valid = instantAt(history, 0.5);
  const bases: Basis[] = [
    { sql: '', system: 'all', valid: 'all' },
    { sql: 'AS OF CURRENT', system: now, valid: now },
    system(0.35),
    system(0.75),
    { sql: `AS OF '${formatInstant(valid)}'`, system: 'all', valid },
  ];
  const every = ['count', '*'] as const;
  const numbers = (['sum', 'min', 'max', 'avg'] as const).map((name) => [name, 'amount'] as const);
  const whole = [every, ['count', 'qty'], ['sum', 'qty'], ['min', 'qty'], ['max', 'qty']] as const;
  const shapes: (Pick<Question, 'where' | 'shape'> & { readonly few?: true })[] = [
    { where: [], shape: { by: [], calls: [...whole, ...numbers] } },
    { few: true, where: [], shape: { by: [], calls: [every, ['min', 'at'], ['max', 'label'], ['min', 'system_from']] } },
    { where: [], shape: { by: ['region'], calls: [...whole, ...numbers] } },
    {
      where: [condition('amount', '>=', 12_345.5), condition('region', '<>', 'r7')],
      shape: { by: ['region', 'qty'], calls: [every, ['sum', 'amount']] },
    },
    {
      where: [oneOf('region', ['r1', 'r12', 'r4', 'nowhere'])],
      shape: { by: [], calls: [['count distinct', 'label'], ['count distinct', 'qty'], ['count distinct', 'region'], every] },
    },
    {
      where: [condition('qty', '=', 17), condition('amount', '<', -50_000)],
      shape: { select: ['_pk', 'amount', 'label', 'at', 'system_from', 'valid_to'] },
    },
    {
      where: [isNull('qty'), beginsWith('label', 'label 1')],
      shape: { by: ['region'], calls: [every, ['max', 'amount'], ['min', 'label']] },
    },
    {
      where: [matches('label', ['17', '230', '31'], 'ANY'), condition('qty', '<', 40)],
      shape: { by: ['region'], calls: [every, ['sum', 'amount']] },
    },
    {
      where: [matches('label', ['label', '42'], 'PHRASE'), matches('label', ['42', 'label'], 'ALL')],
      shape: { select: ['_pk', 'label', 'amount', 'system_from'] },
    },
    { few: true, where: [], shape: { by: ['label'], calls: [every, ['sum', 'amount'], ['max', 'qty']] } },
    {
      few: true,
      where: [condition('_pk', '>=', 'k00000100'), condition('_pk', '<', 'k00000900')],
      shape: { select: ['_pk', 'region', 'qty', 'system_from', 'system_to'] },
    },
    {
      few: true,
      where: [condition('region', '=', 'r9')],
      shape: { select: ['label', 'amount', '_pk', 'system_from'], sort: 'amount', limit: 500 },
    },
  ];
  return bases.flatMap((basis, at) =>
    shapes.flatMap(({ few, where, shape }, s) =>
      few && at % 2 === 0 && at !== 2 ? [] : [{ path: paths[(at + s) % 4 === 0 ? 2 : s % 5 === 4 ? 1 : 0], basis, where, shape }],
    ),
  );
}

export function sqlOf({ basis, where, shape }: Question): string {
  const conditions = where.length === 0 ? '' : ` WHERE ${where.map(({ sql }) => sql).join(' AND ')}`;
  if ('select' in shape) {
    const tail = shape.sort ? ` ORDER BY ${shape.sort} LIMIT ${shape.limit}` : '';
    return `SELECT ${shape.select.join(', ')} FROM Fact ${basis.sql}${conditions}${tail}`;
  }
  const calls = shape.calls.map(([name, column], i) => {
    const call = name === 'count distinct' ? `COUNT(DISTINCT ${column})` : `${name.toUpperCase()}(${column})`;
    return `${call} AS c${i}`;
  });
  const by = shape.by.length === 0 ? '' : ` GROUP BY ${shape.by.join(', ')}`;
  return `SELECT ${[...shape.by, ...calls].join(', ')} FROM Fact ${basis.sql}${conditions}${by}`;
}

/** Takes versions one by one; then gives the rows of the answer. */
export class PlainAnswer {
  readonly #question: Question;
  readonly #groups = new Map<string, { readonly keys: readonly Cell[]; readonly states: readonly CallState[] }>();
  readonly #rows: Version[] = [];

  constructor(question: Question) {
    this.#question = question;
    const { shape } = question;
    // Without keys there is one group, of however many rows.
    if ('by' in shape && shape.by.length === 0)
      this.#groups.set('', { keys: [], states: shape.calls.map((call) => new CallState(call)) });
  }

  take(row: Version): void {
    const { basis, where, shape } = this.#question;
    const within = (instant: bigint | 'all', from: Cell, to: Cell): boolean =>
      instant === 'all' || ((from as bigint) <= instant && instant < (to as bigint));
    if (!within(basis.system, row.system_from, row.system_to) || !within(basis.valid, row.valid_from, row.valid_to)) return;
    for (const { holds } of where) if (!holds(row)) return;
    if ('select' in shape) {
      this.#rows.push(row);
      return;
    }
    const keys = shape.by.map((column) => row[column]);
    const name = keys.map((key) => (key === null ? '-' : `=${String(key)}`)).join('\0');
    let group = this.#groups.get(name);
    if (!group) this.#groups.set(name, (group = { keys, states: shape.calls.map((call) => new CallState(call)) }));
    for (const state of group.states) state.take(row);
  }

  *rows(): Generator<readonly Cell[]> {
    const { shape } = this.#question;
    if ('by' in shape) {
      for (const { keys, states } of this.#groups.values()) yield [...keys, ...states.map((state) => state.result())];
      return;
    }
    const { sort, limit } = shape;
    const rows = sort ? this.#rows.toSorted((a, b) => Number(a[sort]) - Number(b[sort])).slice(0, limit) : this.#rows;
    for (const row of rows) yield shape.select.map((column) => row[column]);
  }
}

class CallState {
  readonly #call: Call;
  #count = 0;
  #sum: bigint | number | null = null;
  #extreme: Cell = null;
  readonly #seen = new Set<Cell>();

  constructor(call: Call) {
    this.#call = call;
  }

  take(row: Version): void {
    const [name, column] = this.#call;
    const cell = column === '*' ? true : row[column];
    if (cell === null) return;
    this.#count++;
    if (name === 'sum' || name === 'avg') {
      if (typeof cell === 'bigint') this.#sum = ((this.#sum as bigint | null) ?? 0n) + cell;
      else this.#sum = ((this.#sum as number | null) ?? 0) + (cell as number);
    } else if (name === 'count distinct') this.#seen.add(cell);
    else if (name === 'min' || name === 'max') {
      const before = this.#extreme;
      const order = before === null ? 0 : typeof cell === 'string' ? compareText(cell, before as string) : cell < before ? -1 : 1;
      if (before === null || (name === 'min' ? order < 0 : order > 0)) this.#extreme = cell;
    }
  }

  result(): Cell {
    switch (this.#call[0]) {
      case 'count':
        return BigInt(this.#count);
      case 'count distinct':
        return BigInt(this.#seen.size);
      case 'sum':
        return this.#sum;
      case 'avg':
        return this.#count === 0 ? null : Number(this.#sum) / this.#count;
      default:
        return this.#extreme;
    }
  }
}
