/** Random parameters of every type in every position: a statement, and values with their types and formats. */
export interface Parameter {
  readonly type: ParameterType;
  /** Its type is told to the server; it is found out otherwise. */
  readonly isStated: boolean;
  readonly isBinary: boolean;
  /** As Postgres writes it; null: NULL. */
  readonly text: string | null;
}

export interface Case {
  readonly sql: string;
  readonly parameters: readonly Parameter[];
  readonly isResultBinary: boolean;
}

export const oids = {
  bool: 16,
  int2: 21,
  int4: 23,
  int8: 20,
  float4: 700,
  float8: 701,
  numeric: 1700,
  text: 25,
  varchar: 1043,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  json: 114,
  uuid: 2950,
  bytea: 17,
  'bool[]': 1000,
  'int4[]': 1007,
  'int8[]': 1016,
  'float8[]': 1022,
  'text[]': 1009,
  'timestamptz[]': 1185,
  'uuid[]': 2951,
} as const;

export type ParameterType = keyof typeof oids;
const types = Object.keys(oids) as ParameterType[];

const values: Readonly<Record<ParameterType, readonly string[]>> = {
  bool: ['true', 'false'],
  int2: ['0', '1', '-7', '32767'],
  int4: ['0', '1', '10', '-7', '2147483647'],
  int8: ['0', '1', '10', '-7', '9007199254740993', '3000000000'],
  float4: ['0', '1.5', '-0.25', '1024'],
  float8: ['0', '1.5', '-0.25', '10', '123456.789'],
  numeric: ['0', '1.5', '-0.25', '10', '123456.789'],
  text: ['', 'a', 'b', 'é', "it's", 'a\\b', '10', 'true', '2024-05-01'],
  varchar: ['a', 'b', '10'],
  date: ['2024-05-01', '1999-12-31', '2024-02-29', '2100-01-01'],
  timestamp: ['2024-05-01 10:00:00', '1999-12-31 23:59:59.999999', '2024-05-01 00:00:00'],
  timestamptz: ['2024-05-01 10:00:00+00', '2024-05-01 12:00:00+02', '1999-12-31 23:59:59.123456-05:30'],
  json: ['{"a": 1}', '[1, 2.50, 9007199254740993]', '"x"', 'null', '{"b":1,"a":{"z":[],"é":null}}', '7'],
  uuid: ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '00000000-0000-0000-0000-000000000000'],
  bytea: ['\\x00ff', '\\x'],
  'bool[]': ['{t}', '{f,NULL}', '{}'],
  'int4[]': ['{1,10}', '{}', '{NULL}', '{0,-7,1,NULL}', '{2147483647}'],
  'int8[]': ['{1,10}', '{}', '{NULL}', '{0,-7,1}', '{9007199254740993,10,NULL}'],
  'float8[]': ['{1.5}', '{}', '{-0.25,10,NULL}', '{0,1.5,10}'],
  'text[]': ['{a,b}', '{}', '{NULL}', '{"",a,NULL}', '{"b c","q\\"d",é}', '{10,"NULL"}'],
  'timestamptz[]': ['{"2024-05-01 10:00:00+00"}', '{}', '{"2024-05-01 02:00:00+02",NULL}', '{"1999-12-31 00:00:00+00"}'],
  'uuid[]': ['{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{}', '{NULL,00000000-0000-0000-0000-000000000000}'],
};

/** What takes a value of a family, `$1`, and one more of it where there is `$2`. */
type Family = 'any' | 'number' | 'text' | 'instant' | 'bool' | 'json' | 'uuid' | 'bytea' | 'list';

const positions: Readonly<Record<Family, readonly string[]>> = {
  any: [
    'SELECT $1',
    'SELECT $1 AS a, $1 AS b',
    'SELECT $1 IS NULL',
    'VALUES ($1)',
    'VALUES ($1), ($2)',
    'SELECT v FROM (VALUES ($1), ($2)) t(v)',
    'SELECT (SELECT $1)',
    'SELECT v FROM (SELECT $1 AS v) t',
    'WITH w AS (SELECT $1 AS v) SELECT v FROM w',
    'SELECT $1 UNION ALL SELECT $2',
    'SELECT $1 UNION SELECT $2 ORDER BY 1',
    'SELECT COALESCE($1, $2)',
    'SELECT COALESCE(NULL, $1)',
    'SELECT NULLIF($1, $2)',
    'SELECT CASE WHEN TRUE THEN $1 ELSE $2 END',
    'SELECT CASE $1 WHEN $2 THEN 1 ELSE 2 END',
    'SELECT $1 = $2',
    'SELECT $1 IN ($2)',
    'SELECT $1 IS DISTINCT FROM $2',
    'SELECT COUNT($1) FROM v',
    'SELECT 1 WHERE EXISTS (SELECT $1)',
    'SELECT $1::text',
  ],
  number: [
    'SELECT n + $1 FROM v ORDER BY id',
    'SELECT n - $1 FROM v ORDER BY id',
    'SELECT $1 - n FROM v ORDER BY id',
    'SELECT n * $1 FROM v ORDER BY id',
    'SELECT x * $1 FROM v ORDER BY id',
    'SELECT x + $1 FROM v ORDER BY id',
    'SELECT (n + 1) * $1 FROM v ORDER BY id',
    'SELECT SUM(n * $1) FROM v',
    'SELECT n FROM v ORDER BY n * $1, id',
    'SELECT id FROM v WHERE n = $1 ORDER BY id',
    'SELECT id FROM v WHERE n < $1 ORDER BY id',
    'SELECT id FROM v WHERE x >= $1 ORDER BY id',
    'SELECT id FROM v WHERE n IN ($1, $2) ORDER BY id',
    'SELECT id FROM v WHERE n NOT IN ($1, $2) ORDER BY id',
    'SELECT id FROM v WHERE n BETWEEN $1 AND $2 ORDER BY id',
    'SELECT COALESCE(n, $1) FROM v ORDER BY id',
    'SELECT GREATEST(n, $1) FROM v ORDER BY id',
    'SELECT LEAST($1, x) FROM v ORDER BY id',
    'SELECT CASE WHEN b THEN n ELSE $1 END FROM v ORDER BY id',
    'SELECT n FROM v WHERE id = 1 UNION ALL SELECT $1',
    'SELECT NULLIF(n, $1) FROM v ORDER BY id',
    'SELECT id FROM v WHERE n > (SELECT $1) ORDER BY id',
    'SELECT MAX(n) FROM v GROUP BY b HAVING MAX(n) > $1 ORDER BY 1',
    'SELECT ABS($1 - n) FROM v ORDER BY id',
    'SELECT $1::int8',
    'SELECT $1::int4',
    'SELECT $1::int2',
    'SELECT $1::float8',
    'SELECT n % $1 FROM v WHERE $1 <> 0 ORDER BY id',
    'SELECT id FROM v WHERE n = $1 + 1 ORDER BY id',
  ],
  text: [
    'SELECT id FROM v WHERE s = $1 ORDER BY id',
    'SELECT id FROM v WHERE s <> $1 ORDER BY id',
    'SELECT id FROM v WHERE s < $1 ORDER BY id',
    'SELECT id FROM v WHERE s LIKE $1 ORDER BY id',
    'SELECT s || $1 FROM v ORDER BY id',
    'SELECT COALESCE(s, $1) FROM v ORDER BY id',
    'SELECT UPPER($1)',
    'SELECT LENGTH($1)',
    'SELECT s FROM v WHERE id = 1 UNION ALL SELECT $1',
    'SELECT CASE WHEN b THEN s ELSE $1 END FROM v ORDER BY id',
    'SELECT id FROM v WHERE s IN ($1, $2) ORDER BY id',
  ],
  instant: [
    'SELECT id FROM v WHERE ts = $1 ORDER BY id',
    'SELECT id FROM v WHERE ts < $1 ORDER BY id',
    'SELECT id FROM v WHERE ts BETWEEN $1 AND $2 ORDER BY id',
    'SELECT id FROM v WHERE ts IN ($1, $2) ORDER BY id',
    'SELECT COALESCE(ts, $1) FROM v ORDER BY id',
    'SELECT COALESCE($1, ts) FROM v ORDER BY id',
    'SELECT GREATEST(ts, $1) FROM v ORDER BY id',
    'SELECT CASE WHEN b THEN ts ELSE $1 END FROM v ORDER BY id',
    'SELECT ts FROM v WHERE id = 1 UNION ALL SELECT $1',
    'SELECT MIN($1) FROM v',
    'SELECT $1::timestamptz',
    'SELECT $1::date',
    'SELECT EXTRACT(year FROM $1::timestamptz)::int8',
    "SELECT DATE_TRUNC('month', $1::timestamptz)",
    'SELECT $1::date - 7',
    'SELECT $1::date + 1',
    'SELECT $1::date - $2::date',
    "SELECT $1::timestamptz + INTERVAL '1 day'",
    "SELECT DATE '2024-05-01' - $1::date",
  ],
  bool: [
    'SELECT id FROM v WHERE b = $1 ORDER BY id',
    'SELECT id FROM v WHERE $1 ORDER BY id',
    'SELECT id FROM v WHERE NOT $1 OR b ORDER BY id',
    'SELECT COALESCE(b, $1) FROM v ORDER BY id',
    'SELECT CASE WHEN $1 THEN 1 ELSE 2 END',
    'SELECT $1 AND b FROM v ORDER BY id',
  ],
  json: [
    'SELECT $1',
    'SELECT $1::text',
    'SELECT $1::json',
    'SELECT COALESCE(j, $1) FROM stored ORDER BY id',
    'SELECT j FROM stored WHERE id = 1 UNION ALL SELECT $1',
  ],
  uuid: [
    'SELECT $1::uuid',
    'SELECT id FROM stored WHERE u = $1 ORDER BY id',
    'SELECT id FROM stored WHERE u IN ($1, $2) ORDER BY id',
    'SELECT COALESCE(u, $1) FROM stored ORDER BY id',
  ],
  bytea: ['SELECT $1', 'SELECT $1 = $2', 'SELECT COUNT($1) FROM v'],
  list: [
    'SELECT id FROM # WHERE # = ANY($1) ORDER BY id',
    'SELECT id FROM # WHERE # <> ALL($1) ORDER BY id',
    'SELECT id FROM # WHERE NOT # = ANY($1) ORDER BY id',
    'SELECT id FROM # WHERE NOT (# <> ALL($1)) ORDER BY id',
    'SELECT id FROM # WHERE # = ANY($1::#) ORDER BY id',
    'SELECT id FROM # WHERE # = ANY($1) OR # = ANY($2) ORDER BY id',
    'SELECT id, # = ANY($1) FROM # ORDER BY id',
    'SELECT id, # <> ALL($1) FROM # ORDER BY id',
    'SELECT COUNT(*) FROM # WHERE # = SOME($1)',
  ],
};

const familyOf: Readonly<Record<ParameterType, Family>> = {
  bool: 'bool',
  int2: 'number',
  int4: 'number',
  int8: 'number',
  float4: 'number',
  float8: 'number',
  numeric: 'number',
  text: 'text',
  varchar: 'text',
  date: 'instant',
  timestamp: 'instant',
  timestamptz: 'instant',
  json: 'json',
  uuid: 'uuid',
  bytea: 'bytea',
  'bool[]': 'list',
  'int4[]': 'list',
  'int8[]': 'list',
  'float8[]': 'list',
  'text[]': 'list',
  'timestamptz[]': 'list',
  'uuid[]': 'list',
};

/** Where a value of a type is stored. */
const columnOf: Readonly<Record<ParameterType, string | null>> = {
  bool: 'b',
  int2: 'n',
  int4: 'n',
  int8: 'n',
  float4: 'x',
  float8: 'x',
  numeric: 'x',
  text: 's',
  varchar: 's',
  date: 'ts',
  timestamp: 'ts',
  timestamptz: 'ts',
  json: 'j',
  uuid: 'u',
  bytea: null,
  'bool[]': 'b',
  'int4[]': 'n',
  'int8[]': 'n',
  'float8[]': 'x',
  'text[]': 's',
  'timestamptz[]': 'ts',
  'uuid[]': 'u',
};

/** `#` is the column that a value of the type is stored in; what they write is read back by what comes after them. */
const writes: readonly string[] = [
  'INSERT INTO stored (id, #) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET # = EXCLUDED.# RETURNING id, #',
  'INSERT INTO stored (id, #) VALUES (3, $1), (4, $2) ON CONFLICT (id) DO UPDATE SET # = EXCLUDED.# RETURNING #',
  'INSERT INTO stored (id, #) VALUES (2, $1) ON CONFLICT (id) DO NOTHING RETURNING #',
  'UPDATE stored SET # = $1 WHERE id = 2 RETURNING #',
  'UPDATE stored SET # = $1 WHERE id IN (1, 3) RETURNING id, #',
  'UPDATE stored SET # = COALESCE($1, #) WHERE id = 4 RETURNING #',
  'UPDATE stored SET # = CASE WHEN id = 1 THEN $1 ELSE # END WHERE id < 3 RETURNING id, #',
  'DELETE FROM stored WHERE id = 4 AND $1::text IS NOT NULL RETURNING id, #',
  'SELECT id, n, x, s, b, ts, j, u FROM stored WHERE $1::text IS NULL OR TRUE ORDER BY id',
];

function statementOf(type: ParameterType, random: () => number, pick: <T>(list: readonly T[]) => T): string {
  const [family, column] = [familyOf[type], columnOf[type]!];
  if (family === 'list') {
    // What a table is called stands behind FROM, what a type is called behind a cast.
    const table = type === 'uuid[]' ? 'stored' : 'v';
    return pick(positions.list).replaceAll(/(FROM |::)?#/g, (_, before?: string) =>
      before === undefined ? column : before === '::' ? `::${type}` : `FROM ${table}`,
    );
  }
  if (column !== null && random() < 0.25) return pick(writes).replaceAll('#', column);
  return pick(positions[random() < 0.3 ? 'any' : family]);
}

export function caseOf(random: () => number): Case {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const type = pick(types);
  const sql = statementOf(type, random, pick);
  const isStated = random() < 0.6;
  const count = sql.includes('$2') ? 2 : 1;
  const parameters = Array.from({ length: count }, (): Parameter => {
    const text = random() < 0.12 ? null : pick(values[type]);
    // A value of a type that nobody states is sent as text: its bytes would be of a type that the server does not know.
    return { type, isStated, isBinary: isStated && type !== 'numeric' && random() < 0.5, text };
  });
  return { sql, parameters, isResultBinary: random() < 0.3 };
}

const epoch = Date.UTC(2000, 0, 1);

/** Bytes of a value in its format. */
export function bytesOf({ type, isBinary, text }: Parameter): Buffer | null {
  if (text === null) return null;
  if (!isBinary) return Buffer.from(text);
  const bytes = Buffer.alloc(8);
  switch (type) {
    case 'bool':
      return Buffer.from([text === 'true' ? 1 : 0]);
    case 'int2':
      return bytes.subarray(0, bytes.writeInt16BE(Number(text)));
    case 'int4':
      return bytes.subarray(0, bytes.writeInt32BE(Number(text)));
    case 'int8':
      return bytes.subarray(0, bytes.writeBigInt64BE(BigInt(text)));
    case 'float4':
      return bytes.subarray(0, bytes.writeFloatBE(Number(text)));
    case 'float8':
      return bytes.subarray(0, bytes.writeDoubleBE(Number(text)));
    case 'date':
      return bytes.subarray(0, bytes.writeInt32BE((Date.parse(`${text}T00:00:00Z`) - epoch) / 86_400_000));
    case 'timestamp':
    case 'timestamptz': {
      const [, head, fraction = '', zone = 'Z'] = /^(\S+ \S{8})(?:\.(\d+))?([+-].*)?$/.exec(text)!;
      const offset = zone === 'Z' ? zone : zone.includes(':') ? zone : `${zone}:00`;
      const ms = Date.parse(`${head!.replace(' ', 'T')}${offset}`) - epoch;
      return bytes.subarray(0, bytes.writeBigInt64BE(BigInt(ms) * 1_000n + BigInt(fraction.padEnd(6, '0'))));
    }
    case 'uuid':
      return Buffer.from(text.replaceAll('-', ''), 'hex');
    case 'bytea':
      return Buffer.from(text.slice(2), 'hex');
    default:
      return type.endsWith('[]') ? listOf(type.slice(0, -2) as ParameterType, text) : Buffer.from(text);
  }
}

/** Dimensions, whether there are NULLs, type of the elements; how many from which; each behind its length. */
function listOf(type: ParameterType, text: string): Buffer {
  const elements = [...text.matchAll(/"((?:[^"\\]|\\.)*)"|[^{},]+/g)].map(([whole, quoted]) =>
    quoted === undefined ? (whole === 'NULL' ? null : whole) : quoted.replaceAll(/\\(.)/g, '$1'),
  );
  const words = elements.length === 0 ? [0, 0, oids[type]] : [1, elements.includes(null) ? 1 : 0, oids[type], elements.length, 1];
  const cells = elements.flatMap((element) => {
    if (element === null) return [int32(-1)];
    const bytes = bytesOf({
      type,
      isStated: true,
      isBinary: true,
      text: type === 'bool' ? (element === 't' ? 'true' : 'false') : element,
    })!;
    return [int32(bytes.length), bytes];
  });
  return Buffer.concat([...words.map(int32), ...cells]);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
