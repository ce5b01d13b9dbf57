/** Statements that are wrong, of every kind that a client meets: both servers tell the same SQLSTATE. */
import type { RawClient } from '../raw-client.ts';
import { simple } from '../raw-client.ts';

/** Tables that the statements are about, made and filled on both servers. */
export const grounds: readonly string[] = [
  'CREATE TABLE w (id int8 PRIMARY KEY, n int8, x float8, s text NOT NULL, b bool, ts timestamptz, j json)',
  `INSERT INTO w VALUES (1, 10, 1.5, 'a', true, '2024-05-01 10:00:00+00', '{"a": 1}'), (2, 0, -0.25, 'b', false, NULL, NULL)`,
  'CREATE TABLE narrow (id int PRIMARY KEY, tiny int2, plain int, named varchar)',
  "INSERT INTO narrow VALUES (1, 1, 1, 'a')",
  'CREATE MATERIALIZED VIEW seen AS SELECT id, n FROM w',
];

/** Each line is asked by itself, in the order of the list; several statements of a line make one transaction. */
export const wrong: readonly string[] = `
SELEC 1
SELECT
SELECT FROM
SELECT 1 FROM
SELECT 1,
SELECT * FROM w WHERE
SELECT * FROM w ORDER BY
SELECT * FROM w GROUP BY
SELECT (1
SELECT 1)
SELECT 'a
SELECT "a
SELECT $tag$a
SELECT /* a
SELECT 1 +
SELECT * * FROM w
SELECT "" FROM w
SELECT CASE WHEN b THEN 1 FROM w
SELECT CASE END
SELECT 1 IN ()
SELECT n BETWEEN 1 FROM w
SELECT CAST(1)
SELECT CAST(1 AS)
SELECT 1::
INSERT INTO w
INSERT INTO w VALUES
INSERT INTO w VALUES (
UPDATE w
UPDATE w SET
UPDATE w SET n
UPDATE w SET n = 
DELETE w
DELETE FROM
CREATE TABLE
CREATE TABLE new_one
CREATE TABLE new_one (id
CREATE TABLE new_one (id int8 id2 int8)
DROP
DROP TABLE
BEGIN NOW
SET
SELECT * FROM nope
SELECT * FROM nope.w
SELECT * FROM public.nope
SELECT nope FROM w
SELECT w.nope FROM w
SELECT v.n FROM w
SELECT z.n FROM w z WHERE w.n = 1
SELECT n FROM w ORDER BY nope
SELECT n FROM w GROUP BY nope
SELECT n FROM w WHERE nope = 1
SELECT n FROM w HAVING nope > 1
SELECT id FROM w a JOIN w b ON a.id = b.id
SELECT a.id FROM w a JOIN w a ON a.id = a.id
SELECT a.id FROM w a JOIN w b USING (nope)
SELECT 1 AS a, 2 AS a ORDER BY a
SELECT * FROM (SELECT 1 AS a, 2 AS a) t WHERE a = 1
WITH t AS (SELECT 1), t AS (SELECT 2) SELECT * FROM t
WITH t (a, b) AS (SELECT 1) SELECT * FROM t
SELECT * FROM (SELECT 1) t (a, b)
INSERT INTO nope VALUES (1)
INSERT INTO w (nope) VALUES (1)
INSERT INTO w (id, id, s) VALUES (1, 2, 'a')
INSERT INTO w (id, s) VALUES (1)
INSERT INTO w (id) VALUES (1, 'a')
INSERT INTO w (id, s) SELECT 1
INSERT INTO w (id, s) VALUES (1, 'again')
INSERT INTO w (id, s) VALUES (9, NULL)
INSERT INTO w (id) VALUES (9)
INSERT INTO w (s) VALUES ('no key') RETURNING nope
INSERT INTO w (id, s, n) VALUES (9, 'a', 'x')
INSERT INTO w (id, s, x) VALUES (9, 'a', 'x')
INSERT INTO w (id, s, b) VALUES (9, 'a', 'x')
INSERT INTO w (id, s, ts) VALUES (9, 'a', 'x')
INSERT INTO w (id, s, j) VALUES (9, 'a', '{')
INSERT INTO w (id, s, n) VALUES (9, 'a', TRUE)
INSERT INTO w (id, s, b) VALUES (9, 'a', 1)
INSERT INTO w (id, s, ts) VALUES (9, 'a', 1)
INSERT INTO w (id, s, n) VALUES (9, 'a', '99999999999999999999')
INSERT INTO w (id, s, n) VALUES (9, 'a', 99999999999999999999)
INSERT INTO w (id, s, ts) VALUES (9, 'a', '2024-13-01')
INSERT INTO w (id, s, ts) VALUES (9, 'a', '2024-02-30')
INSERT INTO w (id, s) VALUES (9, 'a'), (10)
INSERT INTO w (id, s) VALUES (9, 'a') ON CONFLICT (nope) DO NOTHING
INSERT INTO w (id, s) VALUES (9, 'a') ON CONFLICT (n) DO NOTHING
INSERT INTO w (id, s) VALUES (9, 'a') ON CONFLICT (id) DO UPDATE SET nope = 1
INSERT INTO w (id, s) VALUES (9, 'a'), (9, 'b') ON CONFLICT (id) DO UPDATE SET s = 'c'
INSERT INTO w (id, s) VALUES (9, 'a') ON CONFLICT DO UPDATE SET s = 'c'
INSERT INTO narrow (id, tiny) VALUES (7, 70000)
INSERT INTO narrow (id, plain) VALUES (8, 3000000000)
INSERT INTO narrow (id, plain) VALUES (9, -2147483649)
INSERT INTO narrow (id, plain) VALUES (9, '3000000000')
UPDATE narrow SET plain = 3000000000
UPDATE narrow SET tiny = 32768 WHERE id = 1
UPDATE narrow SET plain = plain + 2147483647
UPDATE nope SET n = 1
UPDATE w SET nope = 1
UPDATE w SET n = nope
UPDATE w SET n = 1, n = 2
UPDATE w SET (n, n) = (1, 2)
UPDATE w SET (n, x) = (1, 2, 3)
UPDATE w SET s = NULL
UPDATE w SET n = 'x'
UPDATE w SET n = TRUE
UPDATE w SET b = 1
UPDATE w SET n = n / 0
UPDATE w SET n = COUNT(*)
UPDATE w SET n = 1 WHERE COUNT(*) > 1
DELETE FROM nope
DELETE FROM w WHERE nope = 1
DELETE FROM w WHERE n
DELETE FROM w WHERE COUNT(*) > 1
SELECT 1 / 0
SELECT 1 % 0
SELECT 1.0 / 0
SELECT n / 0 FROM w
SELECT 9223372036854775807 + 1
SELECT 9223372036854775807 * 2
SELECT -9223372036854775807 - 2
SELECT 3000000000::int4
SELECT 70000::int2
SELECT 1e400::float8
SELECT 'x'::int8
SELECT ''::int8
SELECT '1.5'::int8
SELECT 'x'::float8
SELECT 'x'::bool
SELECT 'x'::timestamptz
SELECT 'x'::date
SELECT 'x'::uuid
SELECT '{'::json
SELECT '{'::jsonb
SELECT 'x'::interval
SELECT 'x'::numeric
SELECT '99999999999999999999'::int8
SELECT '2024-13-01'::date
SELECT '2024-02-30'::timestamptz
SELECT DATE '2024-02-30'
SELECT TIMESTAMP '2024-05-01 25:00:00'
SELECT INTERVAL '1 nope'
SELECT 1::nope
SELECT CAST(1 AS nope)
SELECT nope '1'
CREATE TABLE new_one (id nope)
SELECT TRUE::timestamptz
SELECT ts::int8 FROM w
SELECT ts::bool FROM w
SELECT b::float8 FROM w
SELECT 1.5::bool
SELECT SQRT(-1)
SELECT LN(0)
SELECT LN(-1)
SELECT POWER(0, -1)
SELECT POWER(-1, 0.5)
SELECT EXP(10000)
SELECT ASIN(2)
SELECT ACOS(2)
SELECT CHR(-1)
SELECT CHR(0)
SELECT SUBSTRING('abc' FROM 1 FOR -1)
SELECT LEFT('abc')
SELECT REPEAT('a')
SELECT LPAD('a')
SELECT UPPER()
SELECT UPPER(1, 2)
SELECT NOPE(1)
SELECT pg_catalog.nope(1)
SELECT nope.upper('a')
SELECT ABS('a'::text)
SELECT ABS(TRUE)
SELECT UPPER(1)
SELECT LENGTH(1)
SELECT DATE_TRUNC('nope', now())
SELECT EXTRACT(nope FROM now())
SELECT DATE_PART('nope', now())
SELECT EXTRACT(year FROM 1)
SELECT now() AT TIME ZONE 'Nope/Nope'
SELECT 1 + 'x'
SELECT 1 + TRUE
SELECT 'a'::text + 1
SELECT TRUE + TRUE
SELECT now() + 1
SELECT now() * 2
SELECT now() + now()
SELECT -'a'::text
SELECT NOT 1
SELECT 1 AND TRUE
SELECT n AND b FROM w
SELECT 1 WHERE 1
SELECT 1 WHERE 'x'
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE WHEN b THEN 1 ELSE 'x' END FROM w
SELECT CASE WHEN b THEN n ELSE s END FROM w
SELECT COALESCE(n, s) FROM w
SELECT COALESCE(1, 'x')
SELECT COALESCE()
SELECT NULLIF(n, s) FROM w
SELECT NULLIF(1)
SELECT GREATEST(n, s) FROM w
SELECT n = s FROM w
SELECT n = b FROM w
SELECT ts = n FROM w
SELECT n = 'x' FROM w
SELECT ts = 'x' FROM w
SELECT b = 'x' FROM w
SELECT n < TRUE FROM w
SELECT n IN (1, 'x') FROM w
SELECT n IN (s) FROM w
SELECT n BETWEEN 1 AND 'x' FROM w
SELECT n LIKE 'a' FROM w
SELECT s LIKE 1 FROM w
SELECT s ~ '(' FROM w
SELECT s ~ '[' FROM w
SELECT REGEXP_REPLACE('a', '(', 'b')
SELECT 'a' LIKE 'a\\'
SELECT 'a' LIKE 'b' ESCAPE 'xx'
SELECT j = j FROM w
SELECT DISTINCT j FROM w
SELECT id FROM w ORDER BY j
SELECT COUNT(*) FROM w GROUP BY j
SELECT n, COUNT(*) FROM w
SELECT n FROM w GROUP BY s
SELECT n + x FROM w GROUP BY n
SELECT * FROM w GROUP BY n
SELECT n FROM w GROUP BY n HAVING x > 1
SELECT COUNT(*) FROM w ORDER BY n
SELECT n FROM w WHERE COUNT(*) > 1
SELECT n FROM w GROUP BY COUNT(*)
SELECT SUM(COUNT(*)) FROM w
SELECT MAX(SUM(n)) FROM w GROUP BY s
SELECT COUNT(*) FROM w a JOIN w b ON COUNT(*) = 1
SELECT SUM(s) FROM w
SELECT AVG(s) FROM w
SELECT SUM(b) FROM w
SELECT MAX(b) FROM w
SELECT SUM(*) FROM w
SELECT COUNT() FROM w
SELECT SUM() FROM w
SELECT SUM(n, x) FROM w
SELECT COUNT(n, x) FROM w
SELECT SUM(nope) FROM w
SELECT UPPER(DISTINCT s) FROM w
SELECT UPPER(*) FROM w
SELECT n FROM w GROUP BY 2
SELECT n FROM w GROUP BY 0
SELECT n FROM w ORDER BY 2
SELECT n FROM w ORDER BY 0
SELECT n FROM w ORDER BY 'x'
SELECT n FROM w ORDER BY 1.5
SELECT DISTINCT n FROM w ORDER BY x
SELECT DISTINCT ON (n) n, x FROM w ORDER BY x
SELECT ROW_NUMBER()
SELECT ROW_NUMBER() FROM w
SELECT RANK() FROM w
SELECT LAG(n) FROM w
SELECT UPPER(s) OVER () FROM w
SELECT n FROM w WHERE ROW_NUMBER() OVER () = 1
SELECT n FROM w GROUP BY ROW_NUMBER() OVER ()
SELECT n FROM w HAVING ROW_NUMBER() OVER () = 1
SELECT SUM(ROW_NUMBER() OVER ()) FROM w
SELECT ROW_NUMBER() OVER (ORDER BY ROW_NUMBER() OVER ()) FROM w
SELECT RANK() OVER nope FROM w
SELECT RANK() OVER (nope) FROM w
SELECT RANK() OVER (ORDER BY nope) FROM w
SELECT COUNT(DISTINCT n) OVER () FROM w
SELECT ROW_NUMBER(1) OVER () FROM w
SELECT NTILE(0) OVER () FROM w
SELECT SUM(n) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM w
SELECT SUM(n) OVER (ROWS -1 PRECEDING) FROM w
SELECT n FROM w LIMIT 'x'
SELECT n FROM w OFFSET 'x'
SELECT n FROM w LIMIT -1
SELECT n FROM w OFFSET -1
SELECT n FROM w LIMIT n
SELECT n FROM w LIMIT TRUE
SELECT n FROM w LIMIT 1 LIMIT 2
SELECT n FROM w LIMIT 99999999999999999999
SELECT (SELECT n, x FROM w)
SELECT (SELECT n FROM w)
SELECT n IN (SELECT n, x FROM w) FROM w
SELECT n IN (SELECT s FROM w) FROM w
SELECT n FROM w WHERE n = (SELECT id FROM w)
SELECT n FROM w WHERE EXISTS (SELECT nope FROM w)
SELECT n FROM w UNION SELECT n, x FROM w
SELECT n FROM w UNION SELECT s FROM w
SELECT n FROM w UNION SELECT b FROM w
SELECT 1 UNION SELECT 'x'
SELECT n FROM w UNION SELECT n FROM w ORDER BY x
SELECT n FROM w ORDER BY n UNION SELECT n FROM w
SELECT j FROM w UNION SELECT j FROM w
VALUES (1), (1, 2)
VALUES (1), ('x')
SELECT * FROM w JOIN w v
SELECT * FROM w CROSS JOIN w v ON TRUE
SELECT * FROM w LEFT JOIN w v
SELECT 1 FROM w JOIN w v ON 1
SELECT 1 FROM w JOIN w v ON w.n
SELECT 1 FROM w, (SELECT w.n) t
SELECT *
SELECT nope.*
SELECT COUNT(*) FILTER (WHERE COUNT(*) > 1) FROM w
SELECT COUNT(*) FILTER (WHERE n) FROM w
SELECT UPPER(s) FILTER (WHERE b) FROM w
SELECT $1
SELECT n FROM w WHERE n = $1
SELECT E'\\u12'
SELECT E'\\uD800'
SELECT E'\\xZZ'
SELECT E'\\u0000'
SELECT U&'\\12'
SELECT U&'\\D800'
SELECT U&'a' UESCAPE '1'
SELECT B'2'
SELECT X'g'
SELECT 0x
SELECT 1a
SELECT 1__0
SELECT 'a' 'b'
SET nope = 1
SET nope.nope = 1
SET statement_timeout = 'x'
SET statement_timeout = -5
SET client_encoding = 'nope'
SET DateStyle = 'nope'
SET TimeZone = 'Nope/Nope'
SET transaction_read_only = 'x'
SET standard_conforming_strings = 'x'
SET extra_float_digits = 99
SET client_min_messages = 'nope'
SET bytea_output = 'nope'
SET default_transaction_isolation = 'nope'
SET search_path
SET server_version = '1'
SHOW nope
SHOW
RESET nope
SET TRANSACTION ISOLATION LEVEL NOPE
DEALLOCATE nope
EXECUTE nope
PREPARE p AS SELECT nope
CLOSE nope
FETCH nope
MOVE nope
DECLARE c CURSOR FOR SELECT 1
SAVEPOINT a
ROLLBACK TO a
RELEASE a
BEGIN; ROLLBACK TO nope
BEGIN; SELECT 1 / 0; SELECT 1
BEGIN READ ONLY; INSERT INTO w (id, s) VALUES (9, 'a')
START TRANSACTION READ ONLY; DELETE FROM w
BEGIN; SELECT nope FROM w
VACUUM nope
ANALYZE nope
EXPLAIN
EXPLAIN SELECT nope FROM w
EXPLAIN (NOPE) SELECT 1
EXPLAIN (FORMAT NOPE) SELECT 1
COPY nope FROM STDIN
COPY nope TO STDOUT
COPY w (nope) TO STDOUT
COPY w TO STDOUT (FORMAT nope)
COPY w TO STDOUT (NOPE)
COPY w TO STDOUT (FORMAT csv, DELIMITER 'xx')
COPY (SELECT nope FROM w) TO STDOUT
LOCK TABLE nope
LOCK TABLE w IN NOPE MODE
TRUNCATE nope
COMMENT ON TABLE nope IS 'a'
GRANT SELECT ON nope TO PUBLIC
REINDEX TABLE nope
CLUSTER nope
LISTEN
NOTIFY
CALL nope()
DO 'x' LANGUAGE nope
CREATE TABLE w (id int8)
CREATE TABLE new_one (id int8, id text)
CREATE TABLE new_one (id int8 PRIMARY KEY, k int8 PRIMARY KEY)
CREATE TABLE new_one (id int8, PRIMARY KEY (nope))
CREATE TABLE nope.new_one (id int8)
CREATE VIEW seen AS SELECT 1
CREATE VIEW new_one AS SELECT nope FROM w
CREATE VIEW new_one AS SELECT * FROM nope
CREATE INDEX ON nope (id)
CREATE INDEX ON w (nope)
CREATE SCHEMA public
CREATE EXTENSION nope
CREATE NOPE x
CREATE ROLE
DROP TABLE nope
DROP TABLE nope.w
DROP VIEW nope
DROP INDEX nope
DROP SCHEMA nope
DROP SEQUENCE nope
DROP FUNCTION nope
DROP TYPE nope
DROP EXTENSION nope
DROP ROLE nope
DROP DATABASE nope
DROP TRIGGER nope ON w
DROP NOPE x
DROP VIEW w
DROP TABLE seen
ALTER TABLE nope ADD COLUMN a int8
ALTER TABLE w ADD COLUMN n int8
ALTER TABLE w DROP COLUMN nope
ALTER TABLE w RENAME COLUMN nope TO other
ALTER TABLE w ALTER COLUMN nope SET NOT NULL
ALTER TABLE w ADD COLUMN a nope
ALTER NOPE x
MERGE INTO nope USING w ON TRUE WHEN MATCHED THEN DELETE
SELECT nextval('nope')
SELECT currval('nope')
SELECT 'nope'::regclass
SELECT to_regclass('nope') + 1
SELECT ARRAY[1, 'x']
SELECT ARRAY[]
SELECT n[1] FROM w
SELECT 1 = ANY(1)
SELECT 1 = ANY('x')
SELECT '{1'::int8[]
SELECT '{x}'::int8[]
SELECT j ->> TRUE FROM w
SELECT s ->> 'a' FROM w
SELECT n -> 'a' FROM w
SELECT j.a FROM w
SELECT w FROM nope w, w w
SELECT 1 FROM generate_series(1, 10, 0)
SELECT 1 FROM generate_series('a', 'b')
SELECT 1 FROM nope(1)
SELECT SPLIT_PART('a', ',', 0)
SELECT TO_NUMBER('x', '999')
SELECT TO_TIMESTAMP('x', 'YYYY')
SELECT TO_DATE('2024-13-01', 'YYYY-MM-DD')
SELECT MAKE_DATE(2024, 13, 1)
SELECT ENCODE('a', 'nope')
SELECT DECODE('zz', 'hex')
SELECT CONVERT_FROM('a', 'nope')
SELECT STRING_AGG(s) FROM w
SELECT JSON_BUILD_OBJECT('a')
SELECT ROUND('x')
SELECT ROUND(1, 2, 3)
SELECT pg_sleep('x')
SELECT set_config('nope', '1', false)
SELECT current_setting('nope')
`
  .split('\n')
  .filter((line) => line !== '');

interface Explanation {
  readonly reason: string;
  /** Ours and theirs; null: it is answered. */
  holds(statement: string, ours: string | null, theirs: string | null): boolean;
}

const when =
  (pattern: RegExp, states: readonly (string | null)[], theirs: readonly (string | null)[]): Explanation['holds'] =>
  (statement, mine, right) =>
    pattern.test(statement) && states.includes(mine) && theirs.includes(right);

const explanations: readonly Explanation[] = [
  {
    reason: 'a statement or a form that is not there says so, before anything else that is wrong with it',
    holds: (_, ours) => ours === '0A000',
  },
  {
    reason: 'a function that is not there',
    holds: (statement, ours) =>
      ours === '42883' &&
      /\b(ASIN|ACOS|CHR|DATE_PART|TO_NUMBER|TO_TIMESTAMP|TO_DATE|MAKE_DATE|ENCODE|DECODE|CONVERT_FROM|JSON_BUILD_OBJECT|pg_sleep|nextval|currval|set_config)\(/.test(
        statement,
      ),
  },
  {
    reason: 'what is no form of the grammar here is its error',
    holds: when(
      /AT TIME ZONE|nope\.upper|DISTINCT ON|OVER \(?nope|ROWS|\[1\]|ANY\(|EXPLAIN \(FORMAT|FROM (generate_series|nope)\(|CALL|nope '1'/,
      ['42601', '42809'],
      ['22023', '3F000', '42P10', '42704', '42P20', '22013', '42804', '42809', '22P02', '42725', '42883'],
    ),
  },
  { reason: 'a projection is not empty', holds: when(/^SELECT$/, ['42601'], [null]) },
  { reason: 'x IN () is false, and a star of no table has no columns', holds: when(/IN \(\)$|^SELECT \*$/, [null], ['42601']) },
  {
    reason: 'a value that a column does not take',
    holds: when(/^(INSERT|UPDATE)/, ['22P02'], ['42804', '22003']),
  },
  { reason: 'an integer column has 64 bits', holds: when(/ narrow /, [null], ['22003']) },
  {
    reason: 'an instant beside an integer is nanoseconds',
    holds: when(/ts\) VALUES \(9, 'a', 1\)|ts::int8|ts = n|EXTRACT\(year FROM 1\)/, [null], ['42804', '42846', '42883']),
  },
  { reason: 'an empty list without a type is one of texts', holds: when(/ARRAY\[\]$/, [null], ['42P18']) },
  { reason: 'a function or an operator that takes none of these', holds: when(/n\[1\]|ANY\(1\)/, ['42883'], ['42804', '42809']) },
  { reason: 'series are of numbers', holds: when(/generate_series/, ['22P02'], ['42725']) },
  { reason: 'divided by zero is NULL', holds: when(/[/%] 0/, [null], ['22012']) },
  { reason: 'json is compared as its text', holds: when(/ j( |$)/, [null], ['42883']) },
  { reason: 'an interval is no value of its own', holds: when(/interval/i, ['42704', '22P02'], ['22007']) },
  { reason: 'a negative length is none', holds: when(/SUBSTRING/, [null], ['22011']) },
  {
    reason: 'a text in quotes is a text where nothing asks for another type',
    holds: when(/'x'/, [null, '42804', '42883'], ['22P02']),
  },
  { reason: 'GREATEST and NULLIF are functions', holds: when(/GREATEST|NULLIF/, ['42883'], ['42804', '42601']) },
  { reason: 'the key is what rows conflict by: it need not be named', holds: when(/ON CONFLICT DO/, [null], ['42601']) },
  {
    reason: 'of two mistakes another one comes first',
    holds: when(
      /HAVING|SUM\(ROW_NUMBER|a JOIN w a|ORDER BY a$/,
      ['42803', '42P20', '42702', '22023'],
      ['42703', '42P20', '42803', '42712', '42702'],
    ),
  },
  { reason: 'the first of two columns of one name is meant', holds: when(/AS a, 2 AS a\) t/, [null], ['42702']) },
  { reason: 'a window may be ordered by another', holds: when(/OVER \(ORDER BY ROW_NUMBER/, [null], ['42P20']) },
  { reason: 'to_regclass is a text', holds: when(/to_regclass/, [null], ['42883']) },
  { reason: 'no setting is made by naming it', holds: when(/nope\.nope/, ['42704'], [null]) },
];

/** The reason of a difference; null: there is none. */
export function explainedState(statement: string, ours: string | null, theirs: string | null): string | null {
  return explanations.find(({ holds }) => holds(statement, ours, theirs))?.reason ?? null;
}

/** SQLSTATE of each statement; null where it is answered. Whatever it began is rolled back. */
export async function statesOf(client: RawClient, statements: readonly string[]): Promise<(string | null)[]> {
  const states: (string | null)[] = [];
  for (const statement of statements) {
    const replies = await client.ask(simple(statement));
    if (replies.some(({ type }) => type === 'G')) throw new Error(`${statement}: takes rows`);
    const refusal = replies.find(({ type }) => type === 'E');
    states.push(refusal === undefined ? null : /\0C([0-9A-Z]{5})\0/.exec(refusal.body.toString('latin1'))![1]!);
    if (replies.at(-1)!.body.toString() !== 'I') await client.ask(simple('ROLLBACK'));
  }
  return states;
}
