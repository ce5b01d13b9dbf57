/**
 * Tables in the manner of TPC-H, made from row numbers alone: customers with orders, orders with lines, suppliers, nations.
 * The ratios are those of the benchmark (lines : orders : customers about 33 : 8 : 1), the values are our own.
 */
import { scramble } from './workload.ts';

export interface MadeSizes {
  readonly customers: number;
  readonly orders: number;
  readonly lines: number;
  readonly parts: number;
  readonly suppliers: number;
}

/** Sizes for so many lines. */
export function joinsSizes(lines: number): MadeSizes {
  const of = (share: number): number => Math.max(5, Math.round(lines * share));
  return { lines, orders: of(0.25), customers: of(0.03), parts: of(0.033), suppliers: of(0.0017) };
}

type Type = 'integer' | 'number' | 'string' | 'timestamp';
type Value = string | number;

export interface MadeTable {
  readonly name: string;
  readonly columns: Readonly<Record<string, Type>>;
  readonly key: string | null;
  readonly rows: (sizes: MadeSizes) => number;
  readonly row: (i: number, sizes: MadeSizes) => readonly Value[];
}

const segments = ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'];
const priorities = ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'];
const modes = ['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'];
const instructions = ['COLLECT COD', 'DELIVER IN PERSON', 'NONE', 'TAKE BACK RETURN'];
const regions = ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'];

const day = 86_400_000;
const firstDay = Date.UTC(1992, 0, 1);
const date = (days: number): string => new Date(firstDay + days * day).toISOString().slice(0, 10);
const dates = Array.from({ length: 2_700 }, (_, days) => date(days));

/** Numbers that look independent of each other, from a row number and the column's own. */
const pick = (i: number, column: number, below: number): number => scramble(scramble(i) ^ Math.imul(column, 0x9e37_79b1)) % below;

/** Order that line i belongs to: most orders have four lines, some one, some eleven. */
const orderOfLine = (i: number, { orders, lines }: MadeSizes): number => {
  const even = Math.floor((i * orders) / lines);
  return even % 8 === 3 ? even - (even % 3) : even;
};
/** A third of the customers never order. */
const customerOfOrder = (i: number, { customers }: MadeSizes): number => {
  const customer = pick(i, 1, customers);
  return customer % 3 === 0 ? (customer + 1) % customers : customer;
};
const placedDay = (i: number): number => pick(i, 2, 2_400);

export const joinsTables: readonly MadeTable[] = [
  {
    name: 'Nation',
    columns: { nation: 'integer', name: 'string', region: 'string' },
    key: null,
    rows: () => 25,
    row: (i) => [i, `NATION ${String(i).padStart(2, '0')}`, regions[i % 5]!],
  },
  {
    name: 'Supplier',
    columns: { supplier: 'integer', nation: 'integer' },
    key: null,
    rows: ({ suppliers }) => suppliers,
    row: (i) => [i, pick(i, 3, 25)],
  },
  {
    name: 'Customer',
    columns: { customer: 'integer', name: 'string', nation: 'integer', segment: 'string', balance: 'number' },
    key: null,
    rows: ({ customers }) => customers,
    row: (i) => [
      i,
      `Customer#${String(i).padStart(9, '0')}`,
      pick(i, 4, 25),
      segments[pick(i, 5, 5)]!,
      pick(i, 6, 1_000_000) / 100,
    ],
  },
  {
    name: 'Orders',
    columns: {
      orderkey: 'integer',
      customer: 'integer',
      status: 'string',
      total: 'number',
      placed: 'timestamp',
      priority: 'string',
      clerk: 'string',
    },
    key: null,
    rows: ({ orders }) => orders,
    row: (i, sizes) => [
      i,
      customerOfOrder(i, sizes),
      'FOP'[pick(i, 7, 3)]!,
      pick(i, 8, 40_000_000) / 100,
      dates[placedDay(i)]!,
      priorities[pick(i, 9, 5)]!,
      `Clerk#${String(pick(i, 10, 1_000)).padStart(9, '0')}`,
    ],
  },
  {
    name: 'Lineitem',
    columns: {
      orderkey: 'integer',
      part: 'integer',
      supplier: 'integer',
      quantity: 'integer',
      price: 'number',
      discount: 'number',
      tax: 'number',
      flag: 'string',
      status: 'string',
      shipped: 'timestamp',
      committed: 'timestamp',
      received: 'timestamp',
      mode: 'string',
      instruction: 'string',
      parcel: 'string',
    },
    key: null,
    rows: ({ lines }) => lines,
    row: (i, sizes) => {
      const order = orderOfLine(i, sizes);
      const placed = placedDay(order);
      const quantity = 1 + pick(i, 11, 50);
      const shipped = placed + 1 + pick(i, 12, 121);
      const received = shipped + 1 + pick(i, 13, 30);
      return [
        order,
        pick(i, 14, sizes.parts),
        pick(i, 15, sizes.suppliers),
        quantity,
        (quantity * (90_000 + pick(i, 16, 100_000))) / 100,
        pick(i, 17, 11) / 100,
        pick(i, 18, 9) / 100,
        shipped > 1_260 ? 'N' : 'AR'[pick(i, 19, 2)]!,
        shipped > 1_260 ? 'O' : 'F',
        dates[shipped]!,
        dates[placed + 30 + pick(i, 20, 61)]!,
        dates[received]!,
        modes[pick(i, 21, 7)]!,
        instructions[pick(i, 22, 4)]!,
        `parcel-${pick(i, 23, Math.ceil(sizes.lines / 5))}`,
      ];
    },
  },
];

/** Rows as lines of text, some at a time; no value has a quote or a comma. */
export function* tableLines(table: MadeTable, sizes: MadeSizes, shape: 'csv' | 'ndjson'): Generator<Buffer, void> {
  const names = Object.keys(table.columns);
  const json = (values: readonly Value[]): string =>
    `{${names.map((name, c) => `"${name}":${typeof values[c] === 'string' ? `"${values[c]}"` : values[c]}`).join(',')}}`;
  const count = table.rows(sizes);
  for (let first = 0; first < count; first += 5_000) {
    let text = '';
    for (let i = first; i < Math.min(count, first + 5_000); i++) {
      const values = table.row(i, sizes);
      text += `${shape === 'csv' ? values.join(',') : json(values)}\n`;
    }
    yield Buffer.from(text);
  }
}
