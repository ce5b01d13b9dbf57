/**
 * Each scalar function with inputs at their limits: a million characters, or as much of what it counts. `{t}` is such a text of each
 * row, `{u}` one that is not ASCII, `{j}` a list of as many numbers and `{o}` an object of many members, as JSON. A function without
 * a line here fails a test.
 */
import type { Bomb } from './bombs.ts';

const long = 1_000_000;
const pieces: Readonly<Record<string, string>> = {
  t: `LPAD(s, ${long}, 'ab,')`,
  u: `LPAD(s, ${long}, 'äб😀')`,
  j: `CAST(CONCAT('[', n, LPAD('', ${long - 20}, ',1'), ']') AS JSON)`,
  o: `CAST(CONCAT('{"a":', n, LPAD('', 999999, ',"bcd":12'), '}') AS JSON)`,
  v: `CONCAT('[', n, LPAD('', 100000, ',1'), ']')`,
};

const conditions = (count: number, text: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => text(i)).join(',');
const filter = `{"$nor":[${conditions(1_000, (i) => `{"a":${-1 - i}}`)}]}`;

/** By function, or by what else an expression is made of. */
export const scalarsAtLimits: Readonly<Record<string, readonly string[]>> = {
  ABS: ['ABS(n)'],
  CEIL: ['CEIL(x)'],
  FLOOR: ['FLOOR(x)'],
  ROUND: ['ROUND(x, 300)'],
  TRUNC: ['TRUNC(x, 300)'],
  SIGN: ['SIGN(x)'],
  MOD: ['MOD(n, 7)'],
  POWER: ['POWER(x, 2)'],
  SQRT: ['SQRT(x)'],
  EXP: ['EXP(x / 1000000)'],
  LN: ['LN(x + 1)'],
  LOG: ['LOG(x + 1)'],
  LOG10: ['LOG10(x + 1)'],
  PI: ['PI()'],
  RADIANS: ['RADIANS(x)'],
  DEGREES: ['DEGREES(x)'],
  SIN: ['SIN(x)'],
  COS: ['COS(x)'],
  TAN: ['TAN(x)'],
  COT: ['COT(x)'],
  ASIN: ['ASIN(x / 100000)'],
  ACOS: ['ACOS(x / 100000)'],
  ATAN: ['ATAN(x)'],
  ATAN2: ['ATAN2(x, n)'],
  SINH: ['SINH(x / 100000)'],
  COSH: ['COSH(x / 100000)'],
  TANH: ['TANH(x)'],
  ASINH: ['ASINH(x)'],
  ACOSH: ['ACOSH(x + 1)'],
  ATANH: ['ATANH(x / 100000)'],
  SIND: ['SIND(x)'],
  COSD: ['COSD(x)'],
  TAND: ['TAND(x)'],
  ASIND: ['ASIND(x / 100000)'],
  ACOSD: ['ACOSD(x / 100000)'],
  ATAND: ['ATAND(x)'],
  CBRT: ['CBRT(x)'],
  DIV: ['DIV(n, 7)', 'DIV(x, 7)'],
  GCD: ['GCD(n + 7540113804746346429, 4660046610375530309)'],
  LCM: ['LCM(n, 462)'],
  FACTORIAL: ['FACTORIAL(MOD(n, 20))'],
  WIDTH_BUCKET: ['WIDTH_BUCKET(x, 0, 1000000, 1000)'],
  '&': ['n & 15'],
  '|': ['n | 15'],
  '#': ['n # 15'],
  '#~': ['~n'],
  '<<': ['n << 63'],
  '>>': ['n >> 63'],
  DATE_PART: ["DATE_PART('week', TO_TIMESTAMP(n))"],
  MAKE_DATE: ['MAKE_DATE(2000 + MOD(n, 200), 2, 28)'],
  MAKE_TIMESTAMP: ['MAKE_TIMESTAMP(2000 + MOD(n, 200), 2, 28, 23, 59, 59.5)'],
  MAKE_TIMESTAMPTZ: ["MAKE_TIMESTAMPTZ(2000 + MOD(n, 200), 2, 28, 23, 59, 59.5, 'America/New_York')"],
  TO_CHAR: ["TO_CHAR(TO_TIMESTAMP(n), REPEAT('FMMonth ', 120))", "TO_CHAR(n, REPEAT('9,', 490))"],
  TO_DATE: ["TO_DATE(CONCAT('20240501', {t}), 'YYYYMMDD')"],
  TO_NUMBER: ["TO_NUMBER({t}, '999')", "TO_NUMBER(LPAD('1', 1000000, '1'), REPEAT('9', 300))"],
  CONCAT_WS: ["CONCAT_WS(', ', {t}, s)", 'CONCAT_WS({t}, {t}, {t})'],
  FORMAT: [
    "FORMAT('%L', {t})",
    "FORMAT({t} || '%s', s)",
    "FORMAT(REPLACE(LEFT({t}, 300000), 'ab,', '%1$s'), s)",
    "FORMAT('%1048577s', s)",
  ],
  REPEAT: ['REPEAT(s, 100000)', 'REPEAT({t}, 9000)'],
  TRANSLATE: ["TRANSLATE({t}, 'ab', 'xyz')", 'TRANSLATE({t}, {u}, {t})'],
  INITCAP: ['INITCAP({t})', 'INITCAP({u})'],
  OVERLAY: ['OVERLAY({t} PLACING s FROM 500000 FOR 3)', 'OVERLAY({t} PLACING {u} FROM 2 FOR 0)'],
  ASCII: ['ASCII({u})'],
  CHR: ['CHR(n + 33)'],
  OCTET_LENGTH: ['OCTET_LENGTH({u})'],
  BIT_LENGTH: ['BIT_LENGTH({u})'],
  MD5: ['MD5({t})', 'MD5({u})'],
  TO_HEX: ['TO_HEX(n)'],
  QUOTE_IDENT: ['QUOTE_IDENT({t})'],
  QUOTE_LITERAL: ['QUOTE_LITERAL({t})'],
  QUOTE_NULLABLE: ["QUOTE_NULLABLE(REPLACE({t}, 'a', ''''))"],
  REGEXP_COUNT: ["REGEXP_COUNT(LEFT({t}, 100000), '[a-c]')", "REGEXP_COUNT({t}, '[xyz]', 2)"],
  REGEXP_INSTR: ["REGEXP_INSTR(LEFT({u}, 100000), 'б', 2, 1000)", "REGEXP_INSTR({t}, '(a)(b)', 1, 1, 0, 'i', 2)"],
  REGEXP_SUBSTR: ["REGEXP_SUBSTR({t}, '(.*)(.*)(.*)', 1, 1, 's', 2)", "REGEXP_SUBSTR(LEFT({t}, 100000), '[a-c]', 1, 99999)"],
  NUM_NULLS: ['NUM_NULLS({t}, {u})'],
  NUM_NONNULLS: ['NUM_NONNULLS({t}, {u})'],
  LOWER: ['LOWER({t})', 'LOWER({u})'],
  UPPER: ['UPPER({t})', 'UPPER({u})'],
  LENGTH: ['LENGTH({t})', 'LENGTH({u})'],
  TRIM: ["TRIM('ab,' FROM {t})", "TRIM('äб😀' FROM {u})"],
  LTRIM: ["LTRIM({u}, 'äб😀')"],
  RTRIM: ["RTRIM({u}, 'äб😀0123456789s')"],
  SUBSTRING: ['SUBSTRING({u}, 2, 999999)', 'SUBSTRING({t} FROM 999999)'],
  LEFT: ['LEFT({u}, -1)'],
  RIGHT: ['RIGHT({u}, -1)'],
  LPAD: [`LPAD({u}, ${1 << 20}, 'é')`],
  RPAD: [`RPAD({u}, ${1 << 20}, 'é')`, 'RPAD(s, 2000000)'],
  REPLACE: ["REPLACE({t}, 'a', 'b')", "REPLACE({t}, 'ab', 'a')", "REPLACE({t}, 'a', 'bbbbbbbbbbbb')"],
  POSITION: ["POSITION('aab' IN {t})", "POSITION('é' IN {u})"],
  STRPOS: ["STRPOS({t}, 'aab')"],
  SPLIT_PART: ["SPLIT_PART({t}, 'a', 333333)", "SPLIT_PART({t}, ',', -333333)"],
  STARTS_WITH: ["STARTS_WITH({t}, 'ab')"],
  ENDS_WITH: ["ENDS_WITH({t}, 'ab')"],
  CONTAINS: ["CONTAINS({t}, 'aab')"],
  REVERSE: ['REVERSE({t})', 'REVERSE({u})'],
  CONCAT: ['CONCAT({t}, s)', 'CONCAT({t}, {t})'],
  '||': ['{t} || s', '{t} || {t}'],
  ILIKE: ["{t} ILIKE '%A_B%A_B%x%'"],
  LIKE_ESCAPE: ["LIKE_ESCAPE({t}, 'a')"],
  SIMILAR_TO_ESCAPE: ["SIMILAR_TO_ESCAPE({t}, 'a')"],
  '~': [
    "{t} ~ '[a-c]{0,900}[xz]'",
    "LEFT({t}, 4000) ~ '[a-c]{0,900}[xz]'",
    "{t} ~ '[xyz]'",
    "LEFT({t}, 1000) ~ CONCAT('[a-c]{', MOD(n, 900), '}[xz]')",
  ],
  '~*': ["LEFT({t}, 100000) ~* '(a|ab|abc|b|bc|c)+[xz]'"],
  '!~': ["LEFT({t}, 10000) !~ '((a?){30}){10}[xz]'"],
  '!~*': ["{t} !~* 'X'"],
  REGEXP_LIKE: ["REGEXP_LIKE({t}, '^(.+)+$', 's')"],
  REGEXP_REPLACE: [
    "REGEXP_REPLACE(LEFT({t}, 100000), '[a-c]', 'x', 'g')",
    "REGEXP_REPLACE({t}, '(.*)(.*)(.*)(.*)', '\\\\1', 'g')",
  ],
  DATE_TRUNC: ["DATE_TRUNC('quarter', t)"],
  TO_TIMESTAMP: [
    "TO_TIMESTAMP(LPAD('2024', 999999), 'YYYY')",
    "TO_TIMESTAMP('2024', LPAD('YYYY', 100, ', '))",
    'TO_TIMESTAMP(x)',
  ],
  '->': ['{j} -> 400000', '{j} -> -1', "{o} -> 'zz'"],
  '->>': ['{j} ->> 400000', "{o} ->> 'b'"],
  JSON_EXTRACT: ["JSON_EXTRACT({j}, '$[400000]')", "JSON_EXTRACT({o}, '$.zz')"],
  DOCUMENT_MATCHES: [
    `DOCUMENT_MATCHES(CAST(CONCAT('{"a":', n, '}') AS JSON), '${filter}')`,
    `DOCUMENT_MATCHES(CAST(CONCAT('{"a":[', n, LPAD('', 100000, ',1'), ']}') AS JSON), '${filter}')`,
  ],
  GREATEST: ['GREATEST({t}, {u})'],
  LEAST: ['LEAST({t}, {u})'],
  NULLIF: ['NULLIF({t}, {u})'],
  '<=>': ['{v} <=> {v}'],
  '<->': ['{v} <-> {v}'],
  COSINE_DISTANCE: ['cosine_distance({v}, {v})'],
  L2_DISTANCE: ['l2_distance({v}, {v})'],
  INNER_PRODUCT: ['inner_product({v}, {v})'],
  '<#>': ['{v} <#> {v}'],
  LIKE: [`{t} LIKE '${'%a_b'.repeat(50)}%x%'`, `{t} LIKE '%${'a'.repeat(64)}x%'`],
  SOUNDEX: ["SOUNDEX(long) = 'A100'"],
  METAPHONE: ["METAPHONE(long) = 'SKL'", "METAPHONE(longest) = 'X'"],
  COLOGNE: ["COLOGNE(long) = '85'", "COLOGNE(longest) = '1'"],
  CAST: [
    'CAST({j} AS TEXT)',
    "CAST(LPAD('', 1000000, ' ') || n AS INTEGER)",
    "CAST(LPAD('', 1000000, ' ') || n AS DOUBLE)",
    'CAST({t} AS BOOLEAN)',
    'CAST({t} AS TIMESTAMP)',
    'CAST({t} AS JSON)',
    'CAST({j} AS INTEGER)',
  ],
  EXTRACT: ['EXTRACT(week FROM t)'],
  INTERVAL: ["t + INTERVAL '11' MONTH"],
  COALESCE: ['COALESCE(NULLIF({t}, {t}), {u})'],
  CASE: ['CASE WHEN {t} = {u} THEN {t} ELSE {u} END'],
  '=': ['{t} = {u}', '{t} < {t}'],
};

/** What is asked of columns alone. */
const columns = `LPAD(s, 50000, 'school') AS long, ${pieces['t']!} AS longest`;

/** Anything but a loop that is held: answers, caps, and what is too long for a row. */
const ends = ['answered', 'REL_TIMEOUT', 'REL_MEMORY_CAP', 'REL_INVALID'];
/** Not in the dialect of this route, as the specification's list of what is not implemented says. */
const refused = ['REL_PARSE'];

/** Over so many rows of a table with columns n, s, x and t. */
export function scalarBombs(rows: number, table = 'Middle'): Bomb[] {
  return Object.entries(scalarsAtLimits).flatMap(([name, expressions]) =>
    expressions.map((expression, i): Bomb => {
      const written = expression.replaceAll(/\{([tujov])\}/g, (_, piece: string) => pieces[piece]!);
      const sql = `SELECT COUNT(*) AS c FROM (SELECT n, s, x, t, ${columns} FROM ${table} LIMIT ${rows}) q WHERE (${written}) IS NOT NULL`;
      return { name: `${name} at its limits${i === 0 ? '' : ` (${i + 1})`}`, sql, ends: name === 'COALESCE' ? refused : ends };
    }),
  );
}
