/**
 * Every shape that a question can have, over the types that the worlds hold. `$P` is an organisation-neutral place for the
 * instant of the adversary's choice, `$C` for a cursor inside its rows. What an owner is answered stands beside the shapes
 * that are refused: a shape whose words are wrong would prove nothing.
 */

export interface Shape {
  readonly name: string;
  readonly sql: string;
  /** Code of the refusal that even the owner of all rows gets; absent: it is answered. */
  readonly refused?: string;
  /** Files of rows have no place for what it gives. */
  readonly notFor?: readonly ('export' | 'stream' | 'arrow')[];
  /** Not the same rows at two moments, however equal the two worlds are: each door is asked at its own. */
  readonly moves?: true;
}

const deal = (name: string, rest: string, more: Partial<Shape> = {}): Shape => ({ name, sql: rest, ...more });

const reads: readonly Shape[] = [
  deal('scan', 'SELECT * FROM Deal'),
  deal('scan of columns', 'SELECT _pk, id, tenant_id, namespace_path, system_from, valid_from, valid_to FROM Deal'),
  deal('point', "SELECT * FROM Deal WHERE _pk = 'd1'"),
  deal('point of a hidden key', "SELECT * FROM Deal WHERE _pk = 'x1'"),
  deal('point by id', "SELECT id, amount FROM Deal WHERE id = 'x3'"),
  deal('points', "SELECT id, amount FROM Deal WHERE _pk IN ('d1', 'x1', 'x2', 'x3', 'x4', 'closed1')"),
  deal('keys from to', "SELECT id, amount FROM Deal WHERE _pk >= 'd2' AND _pk < 'y'"),
  deal('of another path', "SELECT id, amount FROM Deal WHERE namespace_path = 'acme/eu'"),
  deal('of another tenant', "SELECT id, amount FROM Deal WHERE tenant_id = 'acme' OR tenant_id = 'initech'"),
  deal('as of a valid instant', "SELECT id, amount FROM Deal AS OF '2024-01-01T00:00:02.000Z'"),
  deal('as of a system instant', "SELECT id, amount FROM Deal AS OF SYSTEM TIME '2024-01-01T00:00:02.500Z'"),
  deal('as of current', 'SELECT id, amount, note FROM Deal AS OF CURRENT'),
  deal('both axes', 'SELECT id, amount FROM Deal WHERE system_from <= now() AND system_to > now() AND valid_from <= now()'),
  deal('superseded', 'SELECT id, amount FROM Deal WHERE system_to < 9223372036854775807'),
  deal('newest by system time', 'SELECT MAX(system_from) AS newest, MIN(system_from) AS oldest FROM Deal'),
  deal('inner join', 'SELECT d.id, p.name FROM Deal d JOIN Party p ON d.who = p.id AS OF CURRENT'),
  deal('left join', 'SELECT d.id, p.name FROM Deal d LEFT JOIN Party p ON d.who = p.id AS OF CURRENT'),
  deal('right join', 'SELECT d.id, p.name FROM Deal d RIGHT JOIN Party p ON d.who = p.id AS OF CURRENT'),
  deal('full join', 'SELECT d.id, p.name FROM Deal d FULL JOIN Party p ON d.who = p.id AS OF CURRENT'),
  deal('join without keys', 'SELECT a.id, b.id FROM Deal a JOIN Deal b ON a.amount > b.amount AS OF CURRENT'),
  deal('self join by key', 'SELECT a.id, b.amount FROM Deal a JOIN Deal b ON a.id = b.id ORDER BY a.system_from, b.system_from'),
  deal('subquery in FROM', 'SELECT t.who, t.n FROM (SELECT who, COUNT(*) AS n FROM Deal GROUP BY who) t WHERE t.n > 0'),
  deal('subquery in IN', 'SELECT id FROM Party WHERE id IN (SELECT who FROM Deal WHERE amount > 0)'),
  deal('subquery in NOT IN', 'SELECT id FROM Party WHERE NOT id IN (SELECT who FROM Deal)'),
  deal('common table', 'WITH t AS (SELECT who, amount FROM Deal AS OF CURRENT) SELECT who, COUNT(*) AS s FROM t GROUP BY who'),
  deal(
    'common table, current',
    'WITH t AS (SELECT who, amount FROM Deal) SELECT who, SUM(amount) AS s FROM t AS OF CURRENT GROUP BY who',
  ),
  deal(
    'recursion',
    "WITH RECURSIVE up(id, boss, depth) AS (SELECT id, boss, 0 FROM Party WHERE id = 'p1' UNION ALL SELECT p.id, p.boss, u.depth + 1 FROM up u JOIN Party p ON p.id = u.boss AND u.depth < 4) SELECT id, depth FROM up AS OF CURRENT ORDER BY depth, id",
  ),
  deal('union', 'SELECT who FROM Deal UNION SELECT id FROM Party'),
  deal('union all', 'SELECT who FROM Deal UNION ALL SELECT id FROM Party'),
  deal('intersect', 'SELECT who FROM Deal INTERSECT SELECT id FROM Party'),
  deal('except', 'SELECT id FROM Party EXCEPT SELECT who FROM Deal'),
  deal('distinct', 'SELECT DISTINCT note FROM Deal'),
  deal('group', 'SELECT who, COUNT(*) AS n, SUM(amount) AS s, AVG(rate) AS r FROM Deal GROUP BY who'),
  deal('group by path', 'SELECT namespace_path, COUNT(*) AS n FROM Deal GROUP BY namespace_path'),
  deal('having', 'SELECT who, COUNT(*) AS n FROM Deal GROUP BY who HAVING COUNT(*) >= 1'),
  deal('tumbling window', "SELECT window_start, COUNT(*) AS n FROM Deal GROUP BY TUMBLE(at, INTERVAL '1 days')"),
  deal(
    'hopping window',
    "SELECT window_start, MAX(amount) AS m FROM Deal GROUP BY HOP(at, INTERVAL '1 days', INTERVAL '2 days')",
  ),
  deal('session window', "SELECT window_start, window_end, COUNT(*) AS n FROM Deal GROUP BY SESSION(at, INTERVAL '2 days')"),
  deal('facets', 'SELECT id FROM Deal AS OF CURRENT LIMIT 1 FACETS who, amount, note', { notFor: ['export'] }),
  deal('facets over nothing', "SELECT id FROM Deal WHERE id = 'none' FACETS who, rate", { notFor: ['export'] }),
  deal('facets of paths', 'SELECT id FROM Deal LIMIT 1 FACETS namespace_path, tenant_id', { notFor: ['export'] }),
  deal('count', 'SELECT COUNT(*) AS n FROM Deal'),
  deal('count of some', 'SELECT COUNT(*) AS n FROM Deal WHERE amount > 1000000'),
  deal('count, current', 'SELECT COUNT(*) AS n FROM Deal AS OF CURRENT'),
  deal(
    'aggregates',
    'SELECT SUM(amount) AS s, AVG(amount) AS a, MIN(amount) AS lo, MAX(amount) AS hi, MIN(note) AS t FROM Deal WHERE amount < 1000000',
  ),
  deal('extremes', 'SELECT MIN(amount) AS lo, MAX(amount) AS hi, MAX(note) AS t, MIN(at) AS at FROM Deal'),
  deal('estimated hits', 'SELECT id FROM Deal LIMIT 1'),
  deal('order', 'SELECT id, amount FROM Deal ORDER BY amount DESC, id'),
  deal('order and limit', 'SELECT id, note FROM Deal ORDER BY note LIMIT 2'),
  deal('collation', 'SELECT note FROM Deal AS OF CURRENT ORDER BY note COLLATE UNICODE DESC LIMIT 3'),
  deal('page', "SELECT id, amount FROM Deal LIMIT 2 AFTER '$C'"),
  deal('page from the beginning', "SELECT id FROM Deal LIMIT 3 AFTER '1'"),
  deal(
    'case',
    "SELECT id, CASE note WHEN 'open' THEN 1 ELSE 0 END AS c, CASE WHEN who = 'p1' THEN 'one' END AS w FROM Deal AS OF CURRENT",
  ),
  deal('arithmetic', 'SELECT id, amount + 1 AS a, amount / 2 AS h, rate * 2 AS r FROM Deal WHERE amount < 1000000'),
  deal('arithmetic that fails on what is hidden', 'SELECT id, amount * 4000000 AS a FROM Deal', { refused: 'REL_INVALID' }),
  deal('condition that fails on what is hidden', 'SELECT id FROM Deal WHERE amount * 4000000 > 0', { refused: 'REL_INVALID' }),
  deal('sum that fails on what is hidden', 'SELECT SUM(amount) AS s FROM Deal', { refused: 'REL_INVALID' }),
  deal('like', "SELECT id FROM Deal WHERE note LIKE 'c4n4ry%' OR who LIKE 'p%'"),
  deal('null', 'SELECT id FROM Deal WHERE note IS NULL OR rate IS NOT NULL'),
  deal('between', 'SELECT id FROM Deal WHERE amount NOT BETWEEN 1 AND 20'),
  deal('compute', 'SELECT id FROM Deal AS OF CURRENT COMPUTE more AS rate * 2, far AS DIST(rate, 3)'),
  deal('rank by a column', 'SELECT id FROM Deal AS OF CURRENT RANK BY CUSTOM(rate, 2)'),
  deal('rank by equality', "SELECT id FROM Deal AS OF CURRENT RANK BY EXACT(note, 5, 'OPEN'), CUSTOM(rate, 1) LIMIT 2"),
  deal('rank by recency', 'SELECT id FROM Deal AS OF CURRENT RANK BY RECENCY(system_from, 60)', { moves: true }),
  deal('soundex', "SELECT id FROM Party WHERE SOUNDEX(name) = 'Robert'"),
  deal('metaphone', "SELECT id FROM Party WHERE METAPHONE(name) = 'Thumb'"),
  deal('cologne', "SELECT id FROM Party WHERE COLOGNE(name) != 'Meier'"),
  deal('provenance', 'SELECT id, amount FROM Deal WITH PROVENANCE', { notFor: ['export'] }),
  deal('view', 'SELECT * FROM by_note', { moves: true }),
  deal('view under a condition', 'SELECT note FROM by_note WHERE n > 0', { moves: true }),
  deal('view of a hidden organisation', 'SELECT * FROM hidden_view', { refused: 'REL_UNKNOWN_TYPE' }),
  deal('lookup', 'SELECT id, LOOKUP names(who) -> name AS name FROM Deal AS OF CURRENT'),
  deal('lookup of a hidden organisation', 'SELECT id, LOOKUP hidden_names(who) -> name AS name FROM Deal', {
    refused: 'REL_NOT_FOUND',
  }),
  deal('list of tables', 'SELECT d.id, p.name FROM Deal d, Party p, Party q AS OF CURRENT WHERE d.who = p.id AND q.id = p.id'),
  deal('join by USING', 'SELECT id, a.amount FROM Deal a JOIN (SELECT id, note FROM Deal) b USING (id) AS OF CURRENT'),
  deal(
    'values beside rows',
    "SELECT v.n, d.id FROM (VALUES (1, 'x1'), (2, 'd1')) v(n, k) LEFT JOIN Deal d ON d.id = v.k AS OF CURRENT",
  ),
  deal(
    'EXISTS',
    'SELECT p.id FROM Party p AS OF CURRENT WHERE EXISTS (SELECT 1 FROM Deal d WHERE d.who = p.id AND d.amount > 0)',
  ),
  deal('NOT EXISTS', 'SELECT p.id FROM Party p AS OF CURRENT WHERE NOT EXISTS (SELECT 1 FROM Deal d WHERE d.who = p.id)'),
  deal('EXISTS of hidden rows', "SELECT EXISTS (SELECT 1 FROM Deal WHERE id = 'x1') AS x, EXISTS (SELECT 1 FROM Dossier) AS y"),
  deal(
    'query for a value',
    'SELECT id, (SELECT MAX(d.amount) FROM Deal d WHERE d.who = p.id AND d.amount < 1000000) AS m FROM Party p AS OF CURRENT',
  ),
  deal('query for a count', 'SELECT (SELECT COUNT(*) FROM Deal) AS n, (SELECT MAX(system_from) FROM Deal) AS newest'),
  deal(
    'query of one row',
    'SELECT d.id, (SELECT e.id FROM Deal e WHERE e.who = d.who ORDER BY e.id LIMIT 1) AS first FROM Deal d AS OF CURRENT',
  ),
  deal(
    'ANY and ALL',
    'SELECT id FROM Deal AS OF CURRENT WHERE amount >= ALL (SELECT amount FROM Deal WHERE amount < 1000000) OR amount = ANY (SELECT score FROM Party)',
  ),
  deal(
    'IN with what is around',
    'SELECT id FROM Party p AS OF CURRENT WHERE id NOT IN (SELECT who FROM Deal d WHERE d.amount > p.score)',
  ),
  deal('function that fails on what is hidden', 'SELECT id, CAST(note AS INTEGER) AS n FROM Deal', { refused: 'REL_INVALID' }),
  deal(
    'functions',
    "SELECT id, UPPER(note) AS u, LENGTH(note) AS l, note || who AS c, ROUND(rate, 1) AS r, note ~ '^c4n' AS x FROM Deal AS OF CURRENT",
  ),
  deal(
    'list aggregates',
    "SELECT STRING_AGG(id, ',') AS ids, ARRAY_AGG(note) AS notes, MEDIAN(rate) AS m, STDDEV(rate) AS s FROM Deal AS OF CURRENT",
  ),
  deal(
    'windows',
    'SELECT id, SUM(rate) OVER (PARTITION BY who ORDER BY id) AS s, LAG(note) OVER (ORDER BY id) AS before, COUNT(*) OVER () AS n FROM Deal AS OF CURRENT',
  ),
  deal('order by place, NULLs first', 'SELECT note, id FROM Deal AS OF CURRENT ORDER BY 1 NULLS FIRST, 2'),
  deal('as of now() and an interval', "SELECT id, amount FROM Deal AS OF SYSTEM TIME now() - INTERVAL '1 second'", {
    moves: true,
  }),
  deal('a type with hidden rows only', 'SELECT * FROM Dossier'),
  deal('counting a type with hidden rows only', 'SELECT COUNT(*) AS n FROM Dossier'),
  deal('joining a type with hidden rows only', 'SELECT d.id, o.id FROM Deal d LEFT JOIN Dossier o ON d.id = o.id AS OF CURRENT'),
];

const plans: readonly Shape[] = [
  deal('plan of a scan', "EXPLAIN SELECT * FROM Deal WHERE amount > 3 AND note = 'open'"),
  deal('plan of a point', "EXPLAIN SELECT * FROM Deal WHERE _pk = 'x1'"),
  deal('plan of a join', 'EXPLAIN SELECT d.id FROM Deal d JOIN Party p ON d.who = p.id AND p.score > 1 AS OF CURRENT'),
  deal('plan of hidden rows', 'EXPLAIN SELECT d.id FROM Dossier d JOIN Party p ON d.id = p.id'),
  deal('plan of a view', 'EXPLAIN SELECT * FROM by_note'),
  deal('plan, run', 'EXPLAIN ANALYZE SELECT who, COUNT(*) AS n FROM Deal GROUP BY who'),
  deal('plan of a page, run', 'EXPLAIN ANALYZE SELECT id FROM Deal WHERE amount > 2 LIMIT 1'),
  deal('policy', 'EXPLAIN POLICY SELECT * FROM Deal'),
].map((shape) => ({ ...shape, notFor: ['export', 'arrow'] as const, moves: true as const }));

const masked: readonly Shape[] = [
  deal('masked column', 'SELECT id, secret FROM Deal AS OF CURRENT'),
  deal('masked column, equal', "SELECT id FROM Deal WHERE secret = 's-1'"),
  deal('masked column, like', "SELECT id FROM Deal WHERE secret LIKE 's%'"),
  deal('masked column, null', 'SELECT id FROM Deal WHERE secret IS NOT NULL'),
  deal('masked column, in', "SELECT id FROM Deal WHERE secret IN ('s-1', 's-2')"),
  deal('masked column, range', "SELECT id FROM Deal WHERE secret > 'a' AND secret < 'z'"),
  deal('masked column in a subquery', 'SELECT id FROM Party WHERE name IN (SELECT secret FROM Deal)'),
  deal('masked column in CASE', "SELECT id, CASE secret WHEN 's-1' THEN 'yes' ELSE 'no' END AS c FROM Deal AS OF CURRENT"),
  deal('masked column in a join', 'SELECT d.id, p.id FROM Deal d JOIN Party p ON d.secret = p.name'),
  deal('masked column in SOUNDEX', "SELECT id FROM Deal WHERE SOUNDEX(secret) = 'Robert'"),
  deal(
    'masked column in functions',
    "SELECT id, UPPER(secret) AS u, secret || 'x' AS c, LENGTH(secret) AS n, NULLIF(secret, 's-1') AS m, CAST(secret AS JSON) AS j, CONCAT(secret, '!') AS k FROM Deal AS OF CURRENT",
  ),
  deal('masked column, as a pattern', "SELECT id FROM Deal WHERE 's-1' LIKE secret OR secret ~ '^s' OR secret ILIKE 'S%'"),
  deal(
    'masked column in EXISTS',
    "SELECT id FROM Party p WHERE EXISTS (SELECT 1 FROM Deal d WHERE d.secret = 's-1' OR d.secret = p.name)",
  ),
  deal(
    'masked column for a value',
    'SELECT id, (SELECT d.secret FROM Deal d WHERE d.id = e.id AND d.system_from = e.system_from) AS s FROM Deal e',
  ),
  deal(
    'masked column around',
    "SELECT id FROM Deal e WHERE EXISTS (SELECT 1 FROM Party p WHERE p.name = e.secret OR e.secret > 's')",
  ),
  deal('masked column, windowed', 'SELECT id, ROW_NUMBER() OVER (ORDER BY secret) AS n FROM Deal', { refused: 'REL_PARSE' }),
  deal('masked column, counted in a window', 'SELECT id, COUNT(*) OVER (PARTITION BY secret) AS n FROM Deal', {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('masked column, lagging', 'SELECT id, LAG(secret) OVER (ORDER BY id) AS n FROM Deal', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, listed', "SELECT STRING_AGG(secret, ',') AS s FROM Deal", { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, sorted by place', 'SELECT secret FROM Deal ORDER BY 1', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, grouped by place', 'SELECT secret, COUNT(*) AS n FROM Deal GROUP BY 1', { refused: 'REL_MASKED_COLUMN' }),
  deal(
    'masked value of a query, sorted',
    'SELECT id FROM Deal e ORDER BY (SELECT d.secret FROM Deal d WHERE d.system_from = e.system_from)',
    { refused: 'REL_MASKED_COLUMN' },
  ),
  deal('masked column ranked', "SELECT id FROM Deal AS OF CURRENT RANK BY EXACT(secret, 5, 's-1'), CUSTOM(rate, 1)", {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('masked column looked up', 'SELECT id, LOOKUP names(secret) -> name AS n FROM Deal'),
  deal('masked column through a subquery', 'SELECT t.s FROM (SELECT secret AS s FROM Deal) t WHERE t.s IS NOT NULL'),
  deal('masked column in a union', 'SELECT secret FROM Deal UNION SELECT name FROM Party'),
  deal('masked column, distinct', 'SELECT DISTINCT secret FROM Deal', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, grouped', 'SELECT secret, COUNT(*) AS n FROM Deal GROUP BY secret', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, sorted', 'SELECT id FROM Deal ORDER BY secret', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, its extremes', 'SELECT MAX(secret) AS hi, MIN(secret) AS lo FROM Deal', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, counted', 'SELECT COUNT(secret) AS n FROM Deal', { refused: 'REL_MASKED_COLUMN' }),
  deal('masked column, faceted', 'SELECT id FROM Deal LIMIT 1 FACETS secret', {
    refused: 'REL_MASKED_COLUMN',
    notFor: ['export'],
  }),
  deal('cards', 'SELECT id, name, pan, born, ceiling FROM Card AS OF CURRENT'),
  deal('cards by number', "SELECT id FROM Card WHERE pan LIKE 'c4%' OR born < '1980-06-01' OR ceiling > 7500"),
  deal('masked column, in a plan', "EXPLAIN SELECT id FROM Deal WHERE secret = 's-1'", { notFor: ['export', 'arrow'] }),
];

const refusals: readonly Shape[] = [
  deal('unknown type', 'SELECT * FROM Nothing', { refused: 'REL_UNKNOWN_TYPE' }),
  deal('unknown column', 'SELECT nothing FROM Deal', { refused: 'REL_UNKNOWN_COLUMN' }),
  deal('type of another tenant', 'SELECT * FROM Hidden', { refused: 'REL_UNKNOWN_TYPE' }),
  deal('type of another tenant, by its name there', 'SELECT * FROM "oscorp"."Deal"', { refused: 'REL_UNKNOWN_TYPE' }),
  deal('plan of a type of another tenant', 'EXPLAIN SELECT * FROM Hidden', {
    refused: 'REL_UNKNOWN_TYPE',
    notFor: ['export', 'arrow'],
  }),
  deal('column of another tenant', 'SELECT id, extra FROM Deal', { refused: 'REL_UNKNOWN_COLUMN' }),
  deal('no SQL', 'SELEKT 1', { refused: 'REL_PARSE' }),
  deal('column of another kind', "SELECT id FROM Deal WHERE amount = 'many'", { refused: 'REL_TYPE_MISMATCH' }),
  deal('classified type', 'SELECT * FROM SourceTrueIdentity', { refused: 'REL_HUMINT' }),
  deal('classified type in other letters', 'SELECT COUNT(*) FROM sigintintercept', { refused: 'REL_HUMINT' }),
  deal('classified type in a join', 'SELECT d.id FROM Deal d JOIN LawfulInterceptRecord l ON d.id = l.id', {
    refused: 'REL_HUMINT',
  }),
  deal('protected type', 'SELECT * FROM Vault', { refused: 'REL_HUMINT' }),
  deal('protected type, counted', 'SELECT COUNT(*) FROM Vault', { refused: 'REL_HUMINT' }),
  deal('plan of a protected type', 'EXPLAIN SELECT * FROM Vault', { refused: 'REL_HUMINT', notFor: ['export', 'arrow'] }),
  deal('protected type in a subquery', 'SELECT id FROM Deal WHERE id IN (SELECT id FROM Vault)', { refused: 'REL_HUMINT' }),
  deal('type under an access scope', 'SELECT * FROM Cleared', { refused: 'REL_ACCESS_SCOPE' }),
  deal('column of a protected type', 'SELECT vault FROM Clue', { refused: 'REL_PROTECTED_COLUMN' }),
  deal('unregistered purpose', "PURPOSE 'curiosity' SELECT id FROM Deal", { refused: 'REL_PURPOSE_UNKNOWN' }),
  deal('a write', "INSERT INTO Deal (id) VALUES ('x1')", { refused: 'REL_READ_ONLY' }),
];

/** Words of hidden rows and cells change no score, no figure and no word that a search comes upon by itself. */
const searches: readonly Shape[] = [
  deal('text', "SELECT id, _score FROM Deal WHERE MATCH(note, 'open closed secret note') ORDER BY _score DESC, id"),
  deal('text, best', "SELECT id, _score FROM Deal WHERE MATCH(note, 'note open') ORDER BY _score DESC LIMIT 2"),
  deal('text, current', "SELECT id, _score FROM Deal AS OF CURRENT WHERE MATCH(note, 'open note') ORDER BY _score DESC"),
  deal('text, then', "SELECT id, _score FROM Deal AS OF SYSTEM TIME '2024-01-01T00:00:02.500Z' WHERE MATCH(note, 'open note')"),
  deal('text that differs', "SELECT id, _score FROM Deal WHERE MATCH(note, 'opn nota secrt', FUZZY) ORDER BY _score DESC"),
  deal('text that begins, ends, holds', "SELECT id, _score FROM Deal WHERE MATCH(note, '*e o* *e*') ORDER BY _score DESC"),
  deal('text by stems', "SELECT id FROM Deal WHERE MATCH(note, 'opening notes', STEMMED)"),
  deal('text, phrase', "SELECT id FROM Deal WHERE MATCH(note, 'note of', PHRASE) OR MATCH(who, 'p1')"),
  deal('text that is not there', "SELECT id FROM Deal WHERE NOT MATCH(note, 'secret')"),
  deal('text, boolean', "SELECT id, _score FROM Deal WHERE MATCH(note, 'NOT open OR note', BOOLEAN) ORDER BY _score DESC"),
  deal('text of columns', "SELECT id, _score FROM Deal WHERE MATCH(note, who, 'note p1 p2') ORDER BY _score DESC"),
  deal('text, hits', "SELECT id FROM Deal WHERE MATCH(note, '*e*') ORDER BY _score DESC LIMIT 1"),
  deal('text in a subquery', "SELECT COUNT(*) AS n FROM (SELECT note FROM Deal) t WHERE MATCH(t.note, '*e*')"),
  deal('text of a join', "SELECT d.id, p.id FROM Deal d JOIN Party p ON d.who = p.id AS OF CURRENT WHERE MATCH(d.note, '*e*')"),
];

/** Every table function there is, in each of its ways: a test compares with the list. */
const functions: readonly Shape[] = [
  deal('like a vector', "SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0]) LIMIT 3"),
  deal('like a vector, all', "SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0], THRESHOLD => -1)"),
  deal('like a vector, of some', "SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0]) WHERE amount < 1000000 LIMIT 2"),
  deal('like a vector, by column alone', 'SELECT * FROM SIMILAR(emb, ARRAY[1, 0]) LIMIT 3'),
  deal(
    'like a vector, as of',
    "SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0]) AS OF SYSTEM TIME '2024-01-01T00:00:02.500Z' LIMIT 3",
  ),
  deal('like a vector that is masked', "SELECT * FROM SIMILAR('Deal', shape, ARRAY[1, 0]) LIMIT 3", {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('like a row', "SIMILAR TO Deal WHERE id = 'd1' LIMIT 3"),
  deal('like a hidden row', "SIMILAR TO Deal WHERE id = 'x1' LIMIT 3"),
  deal('like a row by its words', "SIMILAR TO Party WHERE _pk = 'p1' LIMIT 3"),
  deal('like a row of hidden rows', "SIMILAR TO Dossier WHERE id = 'o1' LIMIT 3"),
  deal('like a protected row', "SIMILAR TO Vault WHERE id = 'v0' LIMIT 3", { refused: 'REL_HUMINT' }),
  deal('like a row with a protected column', "SIMILAR TO Clue WHERE id = 'none' LIMIT 3", { refused: 'REL_PROTECTED_COLUMN' }),
  deal('like a row of another tenant', "SIMILAR TO Hidden WHERE id = 'h1' LIMIT 3", { refused: 'REL_UNKNOWN_TYPE' }),
  deal('hybrid', "HYBRID_SEARCH FROM Deal QUERY 'open c4n4ry' LIMIT 5"),
  deal('hybrid, by score', "SELECT * FROM HYBRID_SEARCH('Deal', 'open p1 done', FUSION => 'linear') LIMIT 5"),
  deal('hybrid, of some', "SELECT * FROM HYBRID_SEARCH('Deal', 'open') WHERE amount < 1000000 LIMIT 2"),
  deal('hybrid, of masked words', "HYBRID_SEARCH FROM Deal QUERY 's-1 s-2' LIMIT 5"),
  deal('hybrid, of hidden rows', "HYBRID_SEARCH FROM Dossier QUERY 'x' LIMIT 5"),
  deal('hybrid, of protected rows', "HYBRID_SEARCH FROM Vault QUERY 'x' LIMIT 5", { refused: 'REL_HUMINT' }),
  deal('hybrid, as of', "HYBRID_SEARCH FROM Deal QUERY 'open' AS OF '2024-01-01T00:00:02.000Z' LIMIT 5"),
  deal('plan of likeness', "EXPLAIN SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0]) LIMIT 3", {
    notFor: ['export', 'arrow'],
    moves: true,
  }),
];

export const shapes: readonly Shape[] = [...reads, ...searches, ...plans, ...masked, ...functions, ...refusals];
