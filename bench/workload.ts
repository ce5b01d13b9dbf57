/**
 * Rows that every product is measured with: pure functions of the row number, so that any peer can make the same ones
 * in its own language and answers can be compared. Row i of the orders is 9 columns, about 200 bytes of JSON.
 */

export const orderColumns = ['id', 'customer', 'region', 'category', 'amount', 'quantity', 'placed', 'paid', 'note'] as const;

const regions = ['north', 'south', 'east', 'west'];
const words = ['fragile', 'urgent', 'gift', 'bulk', 'return', 'sample', 'cold', 'heavy'];

/** A number below 2^31 that looks random and is not: the finaliser of MurmurHash3 over the row number. */
export function scramble(i: number): number {
  let h = (i + 0x9e37_79b9) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85eb_ca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2_ae35);
  return (h ^ (h >>> 16)) >>> 1;
}

export const orderKey = (i: number): string => `order-${String(i).padStart(10, '0')}`;

export function orderCells(i: number): readonly (string | number | boolean)[] {
  const h = scramble(i);
  return [
    orderKey(i),
    `customer-${h % 50_000}`,
    regions[h % 4]!,
    `category-${h % 100}`,
    (h % 1_000_000) / 100,
    h % 50,
    1_700_000_000_000 + i,
    h % 3 === 0,
    `${words[h % 8]!} ${words[(h >> 3) % 8]!} ${words[(h >> 6) % 8]!} parcel`,
  ];
}

export function orderJson(i: number): string {
  const [id, customer, region, category, amount, quantity, placed, paid, note] = orderCells(i);
  return `{"id":"${id}","customer":"${customer}","region":"${region}","category":"${category}","amount":${amount},"quantity":${quantity},"placed":${placed},"paid":${paid},"note":"${note}"}\n`;
}

/** An order whose note is a kilobyte that nothing packs: characters that look random, in words. */
export function letterJson(i: number): string {
  let note = '';
  for (let word = 0; word < 128; word++) {
    const h = scramble(Math.imul(i, 128) + word);
    for (let at = 0; at < 30; at += 5) note += letters[(h >>> at) & 31]!;
    note += h & 1 ? ' ' : letters[(h >>> 7) & 31]!;
  }
  return orderJson(i).replace(/"note":"[^"]*"/, `"note":"${note}"`);
}

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEF';

/** The orders as one buffer, made before any clock starts. */
export function orders(from: number, count: number, row: (i: number) => string): Buffer {
  const parts: Buffer[] = [];
  for (let i = from; i < from + count; i += 10_000) {
    let text = '';
    for (let j = i; j < Math.min(i + 10_000, from + count); j++) text += row(j);
    parts.push(Buffer.from(text));
  }
  return Buffer.concat(parts);
}

export const orderCsv = (i: number): string => `${orderCells(i).join(',')}\n`;

/**
 * Versions for the as-of aggregate: plain arithmetic, so that DuckDB makes them with the same formulas. Every tenth
 * version or so supersedes one from the first half of the history before it: version 2j + 1 closes version j where
 * j mod 10 = 4.
 */
export const versions = {
  key: (i: number): string => `k${i % 20 === 9 ? (i - 1) / 2 : i}`,
  category: (i: number): number => (i * 7919) % 100,
  amount: (i: number): number => ((i * 104_729) % 100_000) / 100,
  quantity: (i: number): number => (i * 31 + Math.floor(i / 100)) % 50,
  day: (i: number): number => (i * 13) % 365,
  json: (i: number): string =>
    `{"id":"${versions.key(i)}","category":"c${versions.category(i)}","amount":${versions.amount(i)},"quantity":${versions.quantity(i)},"day":${versions.day(i)}}\n`,
  properties: {
    id: { type: 'string' },
    category: { type: 'string' },
    amount: { type: 'number' },
    quantity: { type: 'integer' },
    day: { type: 'integer' },
  },
  /** The same as a SELECT over `range`, with system bounds as ordinals; version count in `n`. */
  duckdb: (n: number): string => `
    SELECT ${systemFromBase} + i AS system_from,
           CASE WHEN i % 10 = 4 AND 2 * i + 1 < ${n} THEN ${systemFromBase} + 2 * i + 1 ELSE 9223372036854775807 END AS system_to,
           'k' || CASE WHEN i % 20 = 9 THEN (i - 1) // 2 ELSE i END AS id,
           'c' || (i * 7919) % 100 AS category,
           ((i * 104729) % 100000) / 100.0::DOUBLE AS amount,
           ((i * 31 + i // 100) % 50)::INTEGER AS quantity,
           ((i * 13) % 365)::INTEGER AS day
    FROM range(${n}) AS r(i)`,
  postgres: (n: number): string => `
    SELECT ${systemFromBase} + i AS system_from,
           CASE WHEN i % 10 = 4 AND 2 * i + 1 < ${n} THEN ${systemFromBase} + 2 * i + 1 ELSE 9223372036854775807 END AS system_to,
           'k' || CASE WHEN i % 20 = 9 THEN (i - 1) / 2 ELSE i END AS id,
           'c' || (i * 7919) % 100 AS category,
           ((i * 104729) % 100000) / 100.0::double precision AS amount,
           ((i * 31 + i / 100) % 50)::integer AS quantity,
           ((i * 13) % 365)::integer AS day
    FROM generate_series(0::bigint, ${n} - 1) AS r(i)`,
} as const;

/** Nanoseconds, so that the peer's bounds are as wide as ours. */
export const systemFromBase = 1_700_000_000_000_000_000n;
