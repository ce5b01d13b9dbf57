import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lexStatement } from '../../../src/planner/languages/sql-lexer.ts';
import { parseLexed, parseStatement } from '../../../src/planner/languages/sql-parser.ts';
import type { Select, Slot } from '../../../src/planner/syntax/statement.ts';
import { condition, type OfKind, parsed, query, refused, select } from './parsing.ts';

describe('statement shape', () => {
  test('every clause in its order', () => {
    const text =
      "EXPLAIN ANALYZE PURPOSE 'audit' SELECT DISTINCT a, SUM(b) AS total FROM T t AS OF SYSTEM TIME '2024-01-01' " +
      "WHERE a > 1 GROUP BY a, TUMBLE(at, INTERVAL '5 minutes') HAVING SUM(b) > 2 RANK BY RECENCY(at, 3600) " +
      'COMPUTE label AS HIGHLIGHT(a) ORDER BY total DESC COLLATE UNICODE, a LIMIT 10 FACETS a, t.b WITH PROVENANCE';
    const outer = parsed(text, 'explain');
    expect(outer.mode).toBe('analyze');
    const inner = outer.statement as OfKind<'query'>;
    expect(parseStatement(text).parameters[inner.purpose!.slot]).toBe('audit');
    expect(inner.withProvenance).toBe(true);
    expect(inner.query.asOf).toMatchObject({ axis: 'system' });
    expect(inner.query.orderBy).toMatchObject([
      { descending: true, collate: 'unicode' },
      { descending: false, collate: 'codepoint' },
    ]);
    expect(inner.query.facets).toMatchObject([{ name: 'a' }, { table: 't', name: 'b' }]);
    expect(inner.query.body).toMatchObject({
      kind: 'select',
      distinct: true,
      from: { kind: 'table', name: 'T', alias: 't' },
      window: { type: 'tumble', column: { name: 'at' } },
      rankBy: [{ kind: 'call', name: 'RECENCY' }],
      compute: [{ label: 'label' }],
    });
  });

  test.each([
    ['SELECT * FROM T ORDER BY a WHERE b = 1', '1:28: WHERE cannot stand here'],
    ["SELECT * FROM T WHERE b = 1 AS OF '2024-01-01'", '1:29: AS cannot stand here'],
    ['SELECT * FROM T LIMIT 5 ORDER BY a', '1:25: ORDER cannot stand here'],
    ['SELECT * FROM T WITH PROVENANCE LIMIT 5', '1:33: LIMIT cannot stand here'],
    ["SELECT * FROM T PURPOSE 'x'", '1:25: expected the end of the statement, found a string'],
    ['SELECT *\nFROM T\n  GROUP a', '3:3: GROUP cannot stand here'],
  ])('order-sensitive: %s', (text, message) => expect(refused(text)).toContain(message));

  test.each([
    ['', '1:1: expected a statement, found the end of the statement'],
    ['-- nothing', '1:11: expected a statement'],
    ['SELECT', '1:7: expected an expression, found the end of the statement'],
    ['SELECT * FROM', '1:14: expected a type, a function or a subquery'],
    ['SELECT * FROM select', "1:15: expected a type, a function or a subquery, found 'select'"],
    ['SELECT a, FROM T', "1:11: expected an expression, found 'FROM'"],
    ['SELECT * FROM T WHERE', '1:22: expected an expression'],
    ['SELECT * FROM T WHERE a = ', '1:27: expected an expression'],
    ['SELECT * FROM T WHERE (a = 1', '1:29: expected ), found the end of the statement'],
    ['SELECT * FROM T WHERE a ==  1', "1:26: expected an expression, found '='"],
    ['SELECT * FROM T WHERE a = 1 = 2', '1:29: comparisons do not chain'],
    ['SELECT * FROM T; SELECT * FROM U', '1:18: one statement at a time'],
    ['EXPLAIN EXPLAIN SELECT * FROM T', "1:9: expected a statement, found 'EXPLAIN'"],
    ['PURPOSE analytics SELECT * FROM T', "1:9: expected a purpose in quotes, found 'analytics'"],
    ['FROBNICATE everything', "1:1: expected a statement, found 'FROBNICATE'"],
    ['FROBNICATE(1)', "1:1: no statement and no table function is called 'FROBNICATE'"],
    ["SELECT * FROM T WHERE a LIKE 'secret' 'secret2'", '1:39: expected the end of the statement, found a string'],
  ])('refused with its place: %j', (text, message) => expect(refused(text)).toContain(message));

  test.each([
    ['a call has at most 1024 arguments', (list: string) => `SELECT GREATEST(${list}) FROM T`],
    ['GROUP BY has at most 1024 expressions', (list: string) => `SELECT a FROM T GROUP BY ${list}`],
    ['ORDER BY has at most 1024 expressions', (list: string) => `SELECT a FROM T ORDER BY ${list}`],
  ])('%s', (message, statement) => {
    expect(() => query(statement('1, '.repeat(1_023) + '1'))).not.toThrow();
    expect(refused(statement('1, '.repeat(1_024) + '1'))).toContain(message);
  });

  test('errors never show the value of a literal', () => {
    expect(refused("SELECT * FROM T WHERE a = 'top' 'secret'")).not.toContain('secret');
    expect(refused("SELECT * FROM T LIMIT 'secret'")).not.toContain('secret');
    expect(refused("SELECT * FROM T LIMIT 1 AFTER 'a' 'secret'")).not.toContain('secret');
  });

  test('a closing semicolon and comments change nothing', () => {
    const plain = parseStatement('SELECT * FROM T');
    const decorated = parseStatement('/* a */ SELECT * -- b\n FROM T ;');
    expect(decorated.template).toBe(plain.template);
  });
});

describe('rule 1: PURPOSE', () => {
  test('is optional and recorded', () => {
    expect(parsed('SELECT * FROM T', 'query').purpose).toBe(null);
    expect(parsed("PURPOSE 'x:y' SELECT * FROM T", 'query').purpose).toMatchObject({ slot: 0 });
  });
});

describe('rule 2: AS OF', () => {
  test.each([
    ["AS OF '2024-05-01'", 'valid'],
    ["AS OF '2024-05-01T10:00:00'", 'valid'],
    ["AS OF SYSTEM TIME '2024-05-01T10:00:00.123Z'", 'system'],
    ['AS OF CURRENT', 'current'],
    ['as of current', 'current'],
  ])('%s', (clause, axis) => {
    expect(query(`SELECT * FROM T ${clause}`).asOf).toMatchObject({ axis });
    expect(query(`SELECT * FROM T t ${clause} WHERE a = 1`).asOf).toMatchObject({ axis });
  });

  test('two consecutive clauses are refused at the second', () => {
    expect(refused("SELECT * FROM T AS OF '2024-01-01' AS OF SYSTEM TIME '2024-01-01'")).toContain(
      '1:36: a statement has one AS OF',
    );
  });

  test('a second one in a subquery or in another arm is refused too', () => {
    expect(refused('SELECT * FROM (SELECT * FROM T AS OF CURRENT) t AS OF CURRENT')).toContain(
      '1:49: AS OF holds for the whole statement',
    );
    expect(refused('SELECT a FROM T AS OF CURRENT UNION SELECT a FROM U AS OF CURRENT')).toContain(
      '1:53: AS OF holds for the whole statement',
    );
  });

  test('wherever it is written, the outermost query has it', () => {
    const outer = query("SELECT * FROM (SELECT * FROM T AS OF '2024-01-01') t");
    expect(outer.asOf).toMatchObject({ axis: 'valid', location: { line: 1, column: 32 } });
    const { from } = outer.body as Select;
    expect(from).toMatchObject({ kind: 'subquery', query: { asOf: null } });
  });

  test.each([["AS OF SYSTEM '2024-01-01'", '1:30: expected TIME, found a string']])('refused: %s', (clause, message) =>
    expect(refused(`SELECT * FROM T ${clause}`)).toContain(message),
  );

  test('the value of a timestamp is not the parser’s business', () => {
    expect(query("SELECT * FROM T AS OF 'yesterday'").asOf).toMatchObject({ axis: 'valid' });
  });

  test('of can still be an alias', () => {
    expect(select('SELECT * FROM T AS of WHERE of.a = 1').from).toMatchObject({ alias: 'of' });
  });
});

describe('rule 4: LIMIT and AFTER', () => {
  test('LIMIT n AFTER cursor', () => {
    const text = "SELECT * FROM T LIMIT 10 AFTER '1700000000000000000'";
    const page = query(text);
    expect([page.limit as Slot, page.after].map((slot) => parseStatement(text).parameters[slot!.slot])).toEqual([
      10n,
      '1700000000000000000',
    ]);
  });

  test('AFTER cannot combine with ORDER BY', () => {
    expect(refused("SELECT * FROM T ORDER BY a LIMIT 10 AFTER '1'")).toMatch(/^1:37: AFTER .* cannot combine with ORDER BY/);
  });

  test.each([
    ['LIMIT 1.5', '1:23: expected a number of rows, found a number'],
    ['LIMIT', '1:22: expected a number of rows'],
    ["AFTER '1'", '1:17: AFTER cannot stand here'],
    ['LIMIT 1 AFTER 5', '1:31: expected a cursor in quotes, found an integer'],
    ['LIMIT 1 OFFSET 5', '1:25: OFFSET'],
  ])('refused: %s', (clause, message) => expect(refused(`SELECT * FROM T ${clause}`)).toContain(message));
});

describe('rule 5: COLLATE UNICODE', () => {
  test('before or after the direction', () => {
    for (const order of ['a COLLATE UNICODE DESC', 'a DESC COLLATE UNICODE']) {
      expect(query(`SELECT * FROM T ORDER BY ${order}`).orderBy).toMatchObject([{ descending: true, collate: 'unicode' }]);
    }
    expect(query('SELECT * FROM T ORDER BY a').orderBy).toMatchObject([{ descending: false, collate: 'codepoint' }]);
  });

  test('no other collation', () => expect(refused('SELECT * FROM T ORDER BY a COLLATE "C"')).toContain('1:36: expected UNICODE'));
});

describe('rule 6: WHERE forms', () => {
  test.each([
    ['a = 1', '(a = 1)'],
    ['a <> 1', '(a != 1)'],
    ['a = 1 OR b = 2 AND c = 3', '((a = 1) or ((b = 2) and (c = 3)))'],
    ['NOT a = 1 AND b = 2', '((not (a = 1)) and (b = 2))'],
    ['NOT NOT a', '(not (not a))'],
    ['a + b * c - d', '((a + (b * c)) - d)'],
    ['a - 1 - -1', '((a - 1) - -1)'],
    ['-a * b', '((- a) * b)'],
    ['a % 2 = 0', '((a % 2) = 0)'],
    ['a IS NULL', '(a is null)'],
    ['a IS NOT NULL', '(a is not null)'],
    ['a IN (1, 2)', '(a in (1, 2))'],
    ["a NOT IN ('x')", '(a not in (x))'],
    ['a IN (SELECT b FROM U)', '(a in (query))'],
    ['a BETWEEN 1 AND 2 AND b = 3', '((a between 1 and 2) and (b = 3))'],
    ['a NOT BETWEEN -1 AND 2', '(a not between -1 and 2)'],
    ["a LIKE 'x%'", '(a like x%)'],
    ["a NOT LIKE 'x%'", '(not (a like x%))'],
    ['t.a = t.b', '(t.a = t.b)'],
    ["at > now() - INTERVAL '7 days'", '(at > (now() - interval 7 days))'],
    ["SOUNDEX(a) = 'Robert'", '(SOUNDEX(a) = Robert)'],
    ["'x' != METAPHONE(a)", '(x != METAPHONE(a))'],
    ['a <=> ARRAY[1, 2.5] < 0.3', '(<=>(a, ARRAY(1, 2.5)) < 0.3)'],
    ['a <-> b', '<->(a, b)'],
    ['"a b" = `c`', '(a b = c)'],
  ])('%s', (text, expected) => expect(condition(text)).toBe(expected));

  test.each(['days', 'hours', 'minutes', 'weeks', 'months', 'years', 'day'])('INTERVAL in %s', (unit) =>
    expect(condition(`a > now() - INTERVAL '3 ${unit}'`)).toContain(`3 ${unit}`),
  );

  test.each([
    ["SOUNDEX(a) < 'R'", '1:23: SOUNDEX is compared with = or != only'],
    ["'R' >= COLOGNE(a)", '1:30: COLOGNE is compared'],
    ["METAPHONE(a) LIKE 'R'", '1:23: METAPHONE is compared'],
    ["METAPHONE(a) IN ('R')", '1:23: METAPHONE is compared'],
    ['COUNT(*) > 1', '1:23: an aggregate stands in'],
    ['a IS 5', '1:28: expected NULL'],
    ['a = ANY (1, 2)', '1:32: expected a subquery or ARRAY'],
    ['(a, b) = (1, 2, 3)', '1:23: rows of 2 and of 3 values are compared'],
    ["a LIKE 'x' ESCAPE '!'", '1:34: ESCAPE is not implemented'],
    ["a SIMILAR TO 'x'", '1:25: SIMILAR is not implemented'],
  ])('refused: %s', (text, message) => expect(refused(`SELECT * FROM T WHERE ${text}`)).toContain(message));

  test('text printed from a tree parses back to it', () => {
    const text = fc.letrec((tie) => {
      const small = { maxDepth: 4, depthIdentifier: 'expression' };
      const value: fc.Arbitrary<string> = fc.oneof(
        small,
        fc.constantFrom('a', 'b', 't.c'),
        fc.integer().map(String),
        fc
          .tuple(tie('value'), fc.constantFrom('+', '-', '*', '/', '%'), tie('value'))
          .map(([l, op, r]) => `(${l as string} ${op} ${r as string})`),
      );
      const bool: fc.Arbitrary<string> = fc.oneof(
        small,
        fc
          .tuple(tie('value'), fc.constantFrom('=', '!=', '<', '<=', '>', '>='), tie('value'))
          .map(([l, op, r]) => `(${l as string} ${op} ${r as string})`),
        tie('value').map((v) => `(${v as string} is not null)`),
        fc
          .tuple(tie('value'), tie('value'), tie('value'))
          .map(([v, l, h]) => `(${v as string} not between ${l as string} and ${h as string})`),
        fc
          .tuple(tie('bool'), fc.constantFrom('and', 'or'), tie('bool'))
          .map(([l, op, r]) => `(${l as string} ${op} ${r as string})`),
        tie('bool').map((b) => `(not ${b as string})`),
      );
      return { value, bool };
    }).bool;
    fc.assert(
      fc.property(text, (printed) => {
        expect(condition(printed)).toBe(printed);
      }),
    );
  });
});

describe('rule 7: MATCH', () => {
  test.each(['PHRASE', 'FUZZY', 'STEMMED', 'BOOLEAN', 'SUFFIX', 'INFIX', 'phrase'])('mode %s', (mode) =>
    expect(condition(`MATCH(a, 'q', ${mode})`)).toBe(`MATCH(a, q, MODE => ${mode.toUpperCase()})`),
  );
  test('without a mode', () => expect(condition("MATCH(t.a, 'q') AND b = 1")).toBe('(MATCH(t.a, q) and (b = 1))'));
  test.each([
    ["MATCH(a, 'q', LOUDLY)", '1:37: expected one of ALL, LAST, FREQ'],
    ['MATCH(a, b)', '1:33: expected ,'],
    ["MATCH('a', 'q')", '1:29: expected a column name'],
  ])('refused: %s', (text, message) => expect(refused(`SELECT * FROM T WHERE ${text}`)).toContain(message));
});

describe('rule 8: projection', () => {
  test.each([
    ['*', [{ kind: 'star', table: null }]],
    [
      't.*, a',
      [
        { kind: 'star', table: 't' },
        { expression: { name: 'a' }, alias: null },
      ],
    ],
    ['a AS b, c d', [{ alias: 'b' }, { alias: 'd' }]],
    ['COUNT(*)', [{ expression: { kind: 'aggregate', function: 'count', operand: null } }]],
    ['count(DISTINCT a)', [{ expression: { kind: 'aggregate', function: 'count', distinct: true } }]],
    ['SUM(a * 2) + 1 AS x', [{ expression: { kind: 'binary', left: { kind: 'aggregate', function: 'sum' } } }]],
    ["DEGREE(a, 'out')", [{ expression: { kind: 'call', name: 'DEGREE' } }]],
    ["CASE a WHEN 1 THEN 'x' ELSE 'y' END", [{ expression: { kind: 'case', operand: { name: 'a' } } }]],
    ["CASE WHEN a = 1 THEN 'x' END", [{ expression: { kind: 'case', operand: null, otherwise: null } }]],
    [
      'LOOKUP countries(code) -> name',
      [{ expression: { kind: 'call', name: 'LOOKUP', arguments: [{ name: 'TABLE' }, { name: 'KEY' }, { name: 'FIELD' }] } }],
    ],
    ['key, value, rank, lookup, interval, array, current', [{}, {}, {}, {}, {}, {}, {}]],
    ['a contains, b over', [{ alias: 'contains' }, { alias: 'over' }]],
  ])('%s', (projection, expected) => expect(select(`SELECT ${projection} FROM T t`).projection).toMatchObject(expected));

  test.each([
    ['SUM(*)', '1:12: only COUNT takes *'],
    ['CASE a END', '1:15: expected WHEN'],
    ['CASE WHEN a = 1 END', '1:24: expected THEN'],
    ['a AS', '1:13: expected an alias'],
  ])('refused: %s', (projection, message) => expect(refused(`SELECT ${projection} FROM T`)).toContain(message));
});

describe('rule 9: also supported', () => {
  test.each([
    ['JOIN', 'inner'],
    ['INNER JOIN', 'inner'],
    ['LEFT JOIN', 'left'],
    ['LEFT OUTER JOIN', 'left'],
    ['RIGHT JOIN', 'right'],
    ['FULL OUTER JOIN', 'full'],
  ])('%s', (word, type) =>
    expect(select(`SELECT * FROM A a ${word} B AS b ON a.id = b.id`).from).toMatchObject({
      kind: 'join',
      type,
      left: { name: 'A', alias: 'a' },
      right: { name: 'B', alias: 'b' },
    }),
  );

  test('joins are left-deep', () => {
    const { from } = select('SELECT * FROM A JOIN B ON A.x = B.x LEFT JOIN C ON B.y = C.y');
    expect(from).toMatchObject({ type: 'left', left: { kind: 'join', type: 'inner' }, right: { name: 'C' } });
  });

  test('set operations from left to right, INTERSECT first', () => {
    expect(query('SELECT a FROM A UNION SELECT a FROM B INTERSECT SELECT a FROM C EXCEPT SELECT a FROM D').body).toMatchObject({
      op: 'except',
      left: { op: 'union', right: { op: 'intersect' } },
    });
    expect(query('(SELECT a FROM A UNION ALL SELECT a FROM B) INTERSECT SELECT a FROM C ORDER BY a LIMIT 1')).toMatchObject({
      body: { op: 'intersect', left: { op: 'union all' } },
      orderBy: [{}],
    });
  });

  test('common tables, recursive too', () => {
    expect(
      query('WITH RECURSIVE n (i) AS (SELECT a FROM T UNION ALL SELECT i + 1 FROM n), m AS (SELECT b FROM U) SELECT * FROM n')
        .with,
    ).toMatchObject([
      { name: 'n', columns: ['i'], recursive: true },
      { name: 'm', columns: [] },
    ]);
  });

  test('windows in GROUP BY', () => {
    expect(select("SELECT COUNT(*) FROM T GROUP BY HOP(at, INTERVAL '1 minutes', INTERVAL '5 minutes')").window).toMatchObject({
      type: 'hop',
      intervals: [{}, {}],
    });
    expect(select("SELECT COUNT(*) FROM T GROUP BY a, SESSION(at, INTERVAL '1 hours')")).toMatchObject({
      groupBy: [{ name: 'a' }],
      window: { type: 'session' },
    });
  });

  test('comparisons that say their operands several times do not nest without end', () => {
    const within = (depth: number, compare: (inner: string) => string) => {
      let inner = 'a';
      for (let i = 0; i < depth; i++) inner = compare(inner);
      return lexStatement(`SELECT ${inner} FROM T`);
    };
    for (const compare of [
      (inner: string) => `(${inner} IS DISTINCT FROM b)`,
      (inner: string) => `((${inner}, 1) < (b, 2))`,
      (inner: string) => `((${inner}, 1) IN ((b, 1), (c, 2)))`,
      (inner: string) => `((${inner}, 1) IS NOT DISTINCT FROM (b, 1))`,
    ]) {
      expect(parseLexed(within(4, compare), 'wide').statement.kind).toBe('query');
      expect(() => parseLexed(within(60, compare), 'wide')).toThrow('nested too deeply within each other');
    }
  });

  test('a chain of comparisons is in the middle of no other', () => {
    const pattern = (term: string) => () => parseLexed(lexStatement(`MATCH (a:T) RETURN ${term} AS x`));
    expect(pattern('1 < a.k + 1 <= a.m = 3').call(null).statement.kind).toBe('query');
    expect(pattern('(1 < a.k < 2) = true').call(null).statement.kind).toBe('query');
    expect(pattern('true = (1 < a.k < 2) = true')).toThrow('name it by WITH');
  });

  test('subqueries nest 40 deep, not 41, and chains have 500 links', () => {
    const nested = (depth: number) => 'SELECT * FROM ('.repeat(depth) + 'SELECT * FROM T' + ')'.repeat(depth);
    expect(query(nested(40)).body.kind).toBe('select');
    expect(refused(nested(41))).toContain('subqueries nested deeper than 40');
    const inside = (depth: number) => 'SELECT a FROM T WHERE a IN ('.repeat(depth) + '1' + ')'.repeat(depth);
    expect(query(inside(40)).body.kind).toBe('select');
    expect(refused(inside(42))).toContain('subqueries nested deeper than 40');
    const chained = (links: number) => `SELECT a${' + 1'.repeat(links)} FROM T`;
    expect(refused(chained(501))).toContain('more than 500 arithmetic operators');
    expect(query(chained(500)).body.kind).toBe('select');
  });

  test.each([
    ['SELECT * FROM A JOIN B', '1:23: expected ON'],
    ['SELECT a FROM A INTERSECT ALL SELECT a FROM B', '1:17: INTERSECT ALL'],
  ])('refused: %s', (text, message) => expect(refused(text)).toContain(message));
});
