/**
 * Random statements of the shapes that PostgreSQL has beside the specified dialect. Each maker draws one; a statement that fails
 * in one of the two servers fails in the other.
 */
export interface Draw {
  /** A whole number below. */
  below(count: number): number;
  of<T>(...values: readonly T[]): T;
  chance(percent: number): boolean;
}

/** `ordered`: its rows come in an order that the statement says. */
export interface Shape {
  readonly sql: string;
  readonly ordered?: true;
}

export const shapeGround: readonly string[] = [
  'CREATE TABLE w (id int8 PRIMARY KEY, a int8, b int8, s text, x float8, ts timestamptz, te timestamptz, j jsonb)',
  `INSERT INTO w VALUES
    (1, 1, 2, 'u', 0.5, '2024-01-31 10:00:00+00', '2024-03-01 00:00:00+00', '{"a": 1, "b": {"c": [1, 2, {"d": null}]}, "k": "v"}'),
    (2, 1, NULL, 'u', -1.5, '2024-02-29 00:00:00+00', '2024-02-29 12:30:00.5+00', '[1, "a", null, {"a": 2}, [3]]'),
    (3, 2, 1, 'v', NULL, '2023-12-31 23:59:59.999+00', '2024-12-31 00:00:00+00', '{"a": "x", "n": null, "z": [], "b": 2.50}'),
    (4, NULL, NULL, NULL, 3, NULL, '2024-05-05 05:05:05+00', NULL),
    (5, 2, 2, 'v', 0, '2024-03-10 00:00:00+00', NULL, '"text"'),
    (6, 3, 2, 'é', 2.25, '2024-03-01 00:00:00+00', '2024-01-31 10:00:00+00', '{}'),
    (7, 3, 0, '', 100, '2024-03-01 00:00:00+00', '2024-03-01 00:00:00+00', '[]'),
    (8, -1, 5, 'u', 0.5, '1999-12-31 00:00:00+00', '2000-01-01 00:00:00+00', '7')`,
  'CREATE TABLE target (id text PRIMARY KEY, n int8, note text)',
];

const integer = (d: Draw): string => d.of('a', 'b', 'id', 'a + b', '1', '2', '0', '3', 'NULL', '-a');
const word = (d: Draw): string => d.of('s', "'u'", "'v'", "''", 'NULL', "s || 'x'", 'UPPER(s)');
const op = (d: Draw): string => d.of('=', '<>', '<', '<=', '>', '>=');
const some = <T>(d: Draw, least: number, most: number, make: () => T): T[] =>
  Array.from({ length: least + d.below(most - least + 1) }, make);
const condition = (d: Draw): string =>
  d.of('a = 1', 'b > 1', "s = 'u'", 'x IS NOT NULL', 'a < b', 'TRUE', 'id % 2 = 0', 'a IS NULL', 'FALSE', 'te > ts');

const instantText = (d: Draw): string =>
  d.of('2024-01-31', '2024-02-29 12:00:00', '2024-03-01', '2023-12-31 23:59:59.5', '2024-03-31', '2024-12-31 06:00:00');
const instant = (d: Draw): string => `TIMESTAMPTZ '${instantText(d)}'`;
const interval = (d: Draw): string =>
  `INTERVAL '${d.of('1 day', '36 hours', '1 month', '-1 day', '1 month -3 days', '90 minutes', '1 year', '0 days', '1.5 days')}'`;

function rowTest(d: Draw): string {
  const isWide = d.chance(30);
  const values = (): string => `(${integer(d)}, ${word(d)}${isWide ? `, ${integer(d)}` : ''})`;
  const row = (): string => (d.chance(25) ? 'ROW' : '') + values();
  switch (d.below(9)) {
    case 0:
      return `${row()} ${d.of('', 'NOT ')}IN (${some(d, 1, 3, values).join(', ')})`;
    case 1:
      return `${row()} IS ${d.of('', 'NOT ')}DISTINCT FROM ${row()}`;
    case 2:
      return `(a, s${isWide ? ', b' : ''}) ${d.of('', 'NOT ')}IN (SELECT a, s${isWide ? ', b' : ''} FROM w v WHERE v.${d.of('a = 1', "s = 'u'", 'id > 9', 'a IS NULL')})`;
    case 3:
      return `${row()} IS ${d.of('', 'NOT ')}NULL`;
    case 4:
      return `${row()} ${d.of('', 'NOT ')}BETWEEN ${row()} AND ${row()}`;
    case 5:
      return `NOT (${row()} ${op(d)} ${row()})`;
    default:
      return `${row()} ${op(d)} ${row()}`;
  }
}

function rowValues(d: Draw): Shape {
  if (d.chance(50)) return { sql: `SELECT id FROM w WHERE ${rowTest(d)}` };
  if (d.chance(40)) return { sql: `SELECT id, CASE WHEN ${rowTest(d)} THEN 'y' ELSE 'n' END, ${rowTest(d)} FROM w` };
  return {
    sql: `SELECT v.id, w.id FROM w ${d.of('JOIN', 'LEFT JOIN')} w v ON (w.a, w.s) ${d.of('=', '<', '>=', '<>')} (v.b, v.s)`,
  };
}

function distinctRows(d: Draw): Shape {
  const counted = (): string => {
    const columns = d.of('a, b', 's, a', 'a, b, s', 'b', 'a % 2, s', 'j, a');
    const filter = d.chance(30) ? ` FILTER (WHERE ${condition(d)})` : '';
    return `COUNT(DISTINCT ${d.of('', 'ROW')}(${columns}))${filter}`.replace('ROW(b)', '(b)');
  };
  const list = some(d, 1, 2, counted).join(', ');
  if (d.chance(50)) return { sql: `SELECT ${list} FROM w WHERE ${condition(d)}` };
  return { sql: `SELECT s, ${list}, COUNT(*) FROM w GROUP BY s${d.chance(30) ? ` HAVING ${counted()} > 1` : ''}` };
}

function overlaps(d: Draw): Shape {
  const bound = (): string => d.of('ts', 'te', instant(d), instant(d), 'NULL::timestamptz');
  const period = (): string => `(${bound()}, ${d.chance(40) ? interval(d) : bound()})`;
  const test = `${period()} OVERLAPS ${period()}`;
  return { sql: d.chance(50) ? `SELECT id, ${test} FROM w` : `SELECT id FROM w WHERE ${d.of('', 'NOT ')}(${test})` };
}

function seriesOfInstants(d: Draw): Shape {
  const step = `INTERVAL '${d.of('1 day', '36 hours', '1 month', '-1 day', '10 days', '-1 month', '1 month 1 day', '2 weeks', '0 days')}'`;
  const series = `generate_series(${instant(d)}, ${instant(d)}, ${step})`;
  switch (d.below(5)) {
    case 0:
      return { sql: `SELECT g FROM ${series} g ORDER BY g ${d.of('', 'DESC ')}LIMIT ${d.below(9)}`, ordered: true };
    case 1:
      return { sql: `SELECT COUNT(*), MIN(g), MAX(g) FROM ${series} AS t(g) WHERE g ${op(d)} ${instant(d)}` };
    case 2:
      return { sql: `SELECT date_trunc('month', g), COUNT(*) FROM ${series} g GROUP BY 1` };
    case 3:
      return { sql: `SELECT d, w.id FROM ${series} d LEFT JOIN w ON w.ts >= d AND w.ts < d + INTERVAL '1 day'` };
    default:
      return {
        sql: `SELECT w.id, g FROM w, LATERAL generate_series(w.ts, w.ts + ${interval(d)}, INTERVAL '${d.of('1 day', '12 hours')}') g`,
      };
  }
}

function intervals(d: Draw): Shape {
  const of = (): string => d.of('te - ts', `${interval(d)}`, 'te - ts', `${interval(d)} * a`, `(te - ts) / 2`, `-(te - ts)`);
  const call = (): string => {
    const filter = d.chance(25) ? ` FILTER (WHERE ${condition(d)})` : '';
    return `${d.of('SUM', 'AVG', 'MIN', 'MAX', 'COUNT')}(${of()})${filter}`;
  };
  const list = some(d, 1, 3, call).join(', ');
  if (d.chance(50)) return { sql: `SELECT ${list} FROM w WHERE ${condition(d)}` };
  return { sql: `SELECT a, ${list} FROM w GROUP BY a${d.chance(25) ? ` HAVING SUM(te - ts) > ${interval(d)}` : ''}` };
}

const path = (d: Draw): string => d.of("'{a}'", "'{b,c}'", "'{b,c,0}'", "'{b,c,-1,d}'", "'{0}'", "'{3,a}'", "'{}'", "'{zz}'");
const key = (d: Draw): string => d.of("'a'", "'b'", "'k'", "'zz'", '0', '1', '-1', "'n'", '7');
const piece = (d: Draw): string =>
  `${d.of(`'{"a": 1}'`, "'[1]'", `'{"b": {"c": [2]}}'`, `'"a"'`, "'null'", "'[]'", "'{}'", "'7'", `'[{"a": 2}]'`)}::jsonb`;

function jsonValue(d: Draw, depth = 1): string {
  const from = depth > 0 && d.chance(30) ? `(${jsonValue(d, depth - 1)})` : d.chance(80) ? 'j' : piece(d);
  switch (d.below(12)) {
    case 0:
      return `${from} -> ${key(d)}`;
    case 1:
      return `${from} #> ${path(d)}`;
    case 2:
      return `${from} || ${piece(d)}`;
    case 3:
      return `${from} - ${d.of("'a'", "'b'", "'zz'")}`;
    case 4:
      return `${from} #- ${path(d)}`;
    case 5:
      return `jsonb_set(${from}, ${path(d)}, ${piece(d)}${d.of('', ', FALSE', ', TRUE')})`;
    case 6:
      return `jsonb_build_object('k', ${d.of('a', 's', 'x', 'j', 'NULL', 'TRUE', 'ts')}, s || 'q', ${integer(d)})`;
    case 7:
      return `jsonb_build_array(${d.of('a', 's', 'x', 'NULL', 'b > 1', 'j')}, ${d.of("'t'", 'j', '1.50', 'te')})`;
    case 8:
      return `jsonb_strip_nulls(${from})`;
    case 9:
      return `to_jsonb(${d.of('a', 's', 'x', 'a = b', 'j', 'ts')})`;
    case 10:
      return `jsonb_insert(${from}, ${path(d)}, ${piece(d)}${d.of('', ', TRUE')})`;
    default:
      return from;
  }
}

function jsonTest(d: Draw): string {
  switch (d.below(6)) {
    case 0:
      return `${d.of('j', `(${jsonValue(d)})`)} @> ${piece(d)}`;
    case 1:
      return `${piece(d)} <@ j`;
    case 2:
      return `j ? ${d.of("'a'", "'k'", "'zz'", "'text'")}`;
    case 3:
      return `j ${d.of('?|', '?&')} ARRAY[${some(d, 1, 2, () => d.of("'a'", "'b'", "'zz'")).join(', ')}]`;
    case 4:
      return `jsonb_typeof(${jsonValue(d)}) = ${d.of("'object'", "'array'", "'null'", "'number'")}`;
    default:
      return `(${jsonValue(d)}) = ${piece(d)}`;
  }
}

function wholeRows(d: Draw): Shape {
  const call = d.of('row_to_json', 'to_jsonb', 'to_json');
  const columns = some(d, 1, 3, () => d.of('b', 's', 'x', 'ts', 'j', 'b > 1 AS c', 'a + b AS n'));
  const list = [...new Set(['id', 'a', ...columns])].join(', ');
  switch (d.below(4)) {
    case 0:
      return { sql: `SELECT ${call}(w) FROM w WHERE ${condition(d)}` };
    case 1:
      return {
        sql: `SELECT v.id, ${call}(w)${d.of('', "::jsonb ->> 'a'")} FROM w v LEFT JOIN w ON w.a = v.b AND w.${d.of('b > 1', 'a = 1')}`,
      };
    case 2:
      return {
        sql: `SELECT a, ${d.of('json_agg', 'jsonb_agg')}(q ORDER BY id), COUNT(q) FROM (SELECT ${list} FROM w) q GROUP BY a`,
      };
    default:
      return { sql: `SELECT ${call}(q) FROM (SELECT ${list} FROM w WHERE ${condition(d)}) q` };
  }
}

function json(d: Draw): Shape {
  switch (d.below(9)) {
    case 0:
      return { sql: `SELECT id FROM w WHERE ${jsonTest(d)}` };
    case 1:
      return { sql: `SELECT id, j ->> ${key(d)}, j #>> ${path(d)}, ${jsonTest(d)} FROM w` };
    case 2:
      return {
        sql: `SELECT ${d.of('a', 's')} AS g, jsonb_agg(${d.of('b', 'x', 's', 'j', 'j -> 0')} ORDER BY id) FROM w GROUP BY 1`,
      };
    case 3:
      return { sql: `SELECT jsonb_object_agg(id, ${d.of('a', 's', 'j')}) FROM w WHERE ${condition(d)}` };
    case 4:
      return { sql: `SELECT w.id, e FROM w, jsonb_array_elements(CASE WHEN jsonb_typeof(j) = 'array' THEN j ELSE '[]' END) e` };
    case 5:
      return {
        sql: `SELECT w.id, e.key, e.value FROM w, jsonb_each(CASE WHEN jsonb_typeof(j) = 'object' THEN j ELSE '{}' END) e`,
      };
    case 6:
      return { sql: `SELECT id, jsonb_array_length(CASE WHEN jsonb_typeof(j) = 'array' THEN j END) FROM w WHERE ${jsonTest(d)}` };
    case 7:
      return wholeRows(d);
    default:
      return { sql: `SELECT id, ${jsonValue(d)} FROM w` };
  }
}

function groupingSets(d: Draw): Shape {
  const columns = ['a', 's', 'b'];
  const set = (): string => `(${columns.filter(() => d.chance(50)).join(', ')})`;
  const sets = d.of(
    () => `GROUPING SETS (${some(d, 1, 3, set).join(', ')}, (a, s, b))`,
    () => 'ROLLUP (a, s, b)',
    () => 'CUBE (a, s), b',
    () => 'a, ROLLUP (s, b)',
    () => 'ROLLUP ((a, s), b)',
    () => 'GROUPING SETS (ROLLUP (a, s), CUBE (b), (a, s, b))',
  )();
  const shown = columns.filter(() => d.chance(70));
  const grouping = d.chance(60) ? [`GROUPING(${d.of('a', 's', 'a, s', 'b, a, s')})`] : [];
  const calls = some(d, 1, 2, () => d.of('COUNT(*)', 'SUM(id)', 'MAX(x)', 'COUNT(DISTINCT b)', 'COUNT(x)', 'MIN(s)'));
  const having = d.chance(25) ? ` HAVING ${d.of('COUNT(*) > 1', 'GROUPING(a) = 0', 'SUM(id) > 4', 's IS NULL')}` : '';
  return { sql: `SELECT ${[...shown, ...grouping, ...calls].join(', ')} FROM w WHERE ${condition(d)} GROUP BY ${sets}${having}` };
}

function lateral(d: Draw): Shape {
  const where = d.of('v.s = w.s', 'v.a = w.a', 'v.id > w.id', 'v.a = w.b AND v.id <> w.id', 'v.a < w.b', 'w.a = 1');
  const inner = d.of(
    () => `SELECT v.id AS i, v.a + w.b AS n FROM w v WHERE ${where} ORDER BY v.id ${d.of('', 'DESC ')}LIMIT ${d.below(3)}`,
    () => `SELECT COUNT(*) AS i, MAX(v.b) AS n FROM w v WHERE ${where}`,
    () => `SELECT v.a AS i, SUM(v.id) AS n FROM w v WHERE ${where} GROUP BY v.a`,
    () => 'SELECT w.a AS i, w.b + 1 AS n',
    () => `SELECT DISTINCT v.a AS i, w.id AS n FROM w v WHERE ${where}`,
    () => `SELECT v.id AS i, ROW_NUMBER() OVER (ORDER BY v.id) AS n FROM w v WHERE ${where}`,
    () => `SELECT i, n FROM (VALUES (w.a, 1), (w.b, 2)) t(i, n) WHERE i IS NOT NULL`,
    () => `SELECT v.id AS i, 1 AS n FROM w v WHERE ${where} UNION ALL SELECT w.id, 2`,
    () => 'SELECT g AS i, w.a AS n FROM generate_series(1, w.a) g',
  )();
  const join = d.of(', LATERAL', 'CROSS JOIN LATERAL', 'LEFT JOIN LATERAL', 'JOIN LATERAL');
  const on = join.startsWith('LEFT') || join === 'JOIN LATERAL' ? ` ON ${d.of('TRUE', 'l.i > 1', 'l.n IS NOT NULL')}` : '';
  const select = d.chance(70) ? 'SELECT w.id, l.i, l.n' : 'SELECT COUNT(*), SUM(l.i)';
  return {
    sql: `${select} FROM w${join.startsWith(',') ? '' : ' '}${join} (${inner}) l${on}${
      d.chance(40)
        ? ` WHERE w.${condition(d)
            .replace(/^te > ts$/, 'te > w.ts')
            .replace(/^(TRUE|FALSE)$/, 'id > 0')}`
        : ''
    }`,
  };
}

/** The target as it stands is asked for behind each: states of both servers stay the same. */
function merge(d: Draw): Shape {
  if (d.chance(40)) return { sql: 'SELECT id, n, note FROM target' };
  if (d.chance(15)) return { sql: `DELETE FROM target WHERE n ${op(d)} ${d.below(4)}` };
  const value = (): string => d.of('w.a', 'w.b', 'w.a + 1', 'NULL', '7', 'w.id');
  const when = (): string =>
    d.chance(60) ? ` AND ${d.of('w.a = 1', 'w.b > 1', "w.s = 'u'", 'w.x IS NOT NULL', 'w.a < w.b')}` : '';
  const both = (): string => (d.chance(40) ? ` AND t.n ${op(d)} w.${d.of('a', 'b', 'id')}` : when());
  const clauses = some(d, 1, 4, () =>
    d.of(
      () =>
        `WHEN MATCHED${both()} THEN UPDATE SET n = ${d.of(value(), 't.n + w.id')}${d.of('', ', note = w.s', ', note = t.note || w.s')}`,
      () => `WHEN MATCHED${both()} THEN DELETE`,
      () => `WHEN MATCHED${both()} THEN DO NOTHING`,
      () =>
        `WHEN NOT MATCHED${when()} THEN INSERT (id, n, note) VALUES (${d.of('w.id::text', 'w.id::text', "w.s || 'k'")}, ${value()}, w.s)`,
      () => `WHEN NOT MATCHED${when()} THEN INSERT VALUES (w.id::text, ${value()})`,
      () => `WHEN NOT MATCHED${when()} THEN DO NOTHING`,
    )(),
  );
  const source = d.of('w', `(SELECT * FROM w WHERE ${condition(d)}) w`, '(SELECT DISTINCT ON (s) * FROM w ORDER BY s, id) w');
  const on = d.of(
    't.id = w.id::text',
    't.id = w.id::text',
    "t.id = w.s || 'k'",
    't.n = w.a',
    't.id = w.id::text AND w.a > 1',
    't.n = w.id',
  );
  return { sql: `MERGE INTO target t USING ${source} ON ${on} ${clauses.join(' ')}` };
}

export const shapes: Readonly<Record<string, (draw: Draw) => Shape>> = {
  'row values': rowValues,
  'COUNT(DISTINCT (a, b))': distinctRows,
  OVERLAPS: overlaps,
  'generate_series of instants': seriesOfInstants,
  'SUM and AVG of intervals': intervals,
  jsonb: json,
  'GROUPING SETS': groupingSets,
  LATERAL: lateral,
  MERGE: merge,
};
