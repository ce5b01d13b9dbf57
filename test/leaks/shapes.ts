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
  deal(
    'VALUES about the rows around them',
    'SELECT p.id, (SELECT MAX(v.n) FROM (VALUES (p.score), ((SELECT MAX(d.amount) FROM Deal d WHERE d.who = p.id))) v(n)) AS m FROM Party p AS OF CURRENT',
  ),
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
  deal('plan of a point, run', "EXPLAIN ANALYZE SELECT amount FROM Deal WHERE id = 'x1'"),
  deal('plan of keys, run', "EXPLAIN ANALYZE SELECT amount FROM Deal WHERE _pk IN ('d1', 'x1', 'x2') AND note = 'open'"),
  deal(
    'plan of a join, run',
    'EXPLAIN ANALYZE SELECT d.id FROM Deal d JOIN Party p ON d.who = p.id AND p.score > 1 AS OF CURRENT LIMIT 2',
  ),
  deal(
    'plan of what is held, run',
    "EXPLAIN ANALYZE SELECT note, COUNT(DISTINCT who) AS n, STRING_AGG(id, ',') AS ids FROM Deal GROUP BY note ORDER BY note",
  ),
  deal(
    'plan of queries, run',
    'EXPLAIN ANALYZE SELECT id FROM Deal d WHERE amount > (SELECT MIN(score) FROM Party) AND EXISTS (SELECT 1 FROM Dossier) AND who IN (SELECT id FROM Party p WHERE p.score <> d.amount) LIMIT 3 FACETS who',
  ),
  deal('plan of a search', "EXPLAIN SELECT id FROM Deal WHERE MATCH(note, 'open secret') AND MATCH(who, 'p1')"),
  deal(
    'plan of a search, run',
    "EXPLAIN ANALYZE SELECT id FROM Deal WHERE MATCH(note, 'open secret') ORDER BY _score DESC LIMIT 1",
  ),
  deal('plan of likeness, run', "EXPLAIN ANALYZE SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0]) LIMIT 3"),
  deal('plan of the nearest, run', "EXPLAIN ANALYZE SELECT id FROM Deal ORDER BY emb <=> '[1,0]', id LIMIT 1"),
  deal('plan of a mask, run', 'EXPLAIN ANALYZE SELECT secret, id FROM Deal AS OF CURRENT ORDER BY id'),
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
  deal('misspelt column', 'SELECT id, amuont FROM Deal', { refused: 'REL_UNKNOWN_COLUMN' }),
  deal('misspelt column of several types', 'SELECT d.id, scroe FROM Deal d JOIN Party p ON d.who = p.id', {
    refused: 'REL_UNKNOWN_COLUMN',
  }),
  deal('misspelt column of a protected type', 'SELECT t.nmae FROM (SELECT * FROM Vault) t', { refused: 'REL_UNKNOWN_COLUMN' }),
  deal('misspelt type of another tenant', 'SELECT * FROM Hiden', { refused: 'REL_UNKNOWN_TYPE' }),
  deal('no SQL', 'SELEKT 1', { refused: 'REL_PARSE' }),
  deal('column of another kind', "SELECT id FROM Deal WHERE amount = 'many'", { refused: 'REL_TYPE_MISMATCH' }),
  deal('update', "UPDATE Deal SET note = 'x' WHERE id = 'x1'", { refused: 'REL_READ_ONLY' }),
  deal('delete', "DELETE FROM Deal WHERE id = 'x1'", { refused: 'REL_READ_ONLY' }),
  deal('classified type', 'SELECT * FROM SourceTrueIdentity', { refused: 'REL_HUMINT' }),
  deal('classified type in other letters', 'SELECT COUNT(*) FROM sigintintercept', { refused: 'REL_HUMINT' }),
  deal('classified type in a join', 'SELECT d.id FROM Deal d JOIN LawfulInterceptRecord l ON d.id = l.id', {
    refused: 'REL_HUMINT',
  }),
  deal('protected type', 'SELECT * FROM Vault', { refused: 'REL_HUMINT' }),
  deal('protected type, counted', 'SELECT COUNT(*) FROM Vault', { refused: 'REL_HUMINT' }),
  deal('plan of a protected type', 'EXPLAIN SELECT * FROM Vault', { refused: 'REL_HUMINT', notFor: ['export', 'arrow'] }),
  deal('protected type in a subquery', 'SELECT id FROM Deal WHERE id IN (SELECT id FROM Vault)', { refused: 'REL_HUMINT' }),
  deal('edges guarded late', 'SELECT from_id, to_id, subject FROM LetterLink', { refused: 'REL_HUMINT' }),
  deal('edges scoped late', 'SELECT from_id, to_id, subject FROM NoticeLink', { refused: 'REL_ACCESS_SCOPE' }),
  deal('rows guarded late', 'SELECT * FROM Letter', { refused: 'REL_HUMINT' }),
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
  deal('text, all of it', "SELECT id, _score FROM Deal WHERE MATCH(note, who, 'open p1', ALL) ORDER BY _score DESC"),
  deal('text, the last', "SELECT id, _score FROM Deal WHERE MATCH(note, who, 'open note p1', LAST) ORDER BY _score DESC"),
  deal(
    'text, the rarest',
    "SELECT id, _score FROM Deal WHERE MATCH(note, who, 'open secret c4n4ry p1', FREQUENCY) ORDER BY _score DESC",
  ),
  deal(
    'text that ranks beside others',
    "SELECT id FROM Deal WHERE MATCH(note, 'open note') RANK BY SUM(BM25(), SATURATE(rate, 2)) COMPUTE w AS BM25(), h AS HIGHLIGHT(note)",
  ),
  deal('text that is masked, marked', "SELECT id FROM Deal WHERE MATCH(note, 'open s') COMPUTE h AS HIGHLIGHT(secret)", {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('vectors that rank', 'SELECT id FROM Deal WHERE SIMILAR(emb, ARRAY[1, 0.5], threshold=-1) RANK BY VECTOR()'),
  deal('text in a subquery', "SELECT COUNT(*) AS n FROM (SELECT note FROM Deal) t WHERE MATCH(t.note, '*e*')"),
  deal('text of a join', "SELECT d.id, p.id FROM Deal d JOIN Party p ON d.who = p.id AS OF CURRENT WHERE MATCH(d.note, '*e*')"),
];

/** Words and members of json cells: of rows that are hidden, of columns that are masked, of documents that are somebody else's. */
const documents: readonly Shape[] = [
  deal(
    'words of documents',
    "SELECT id, _score FROM DocumentEntry WHERE MATCH(document, 'open note c4n4ry') ORDER BY _score DESC, id",
  ),
  deal('words of documents that begin so', "SELECT id FROM DocumentEntry WHERE MATCH(document, 'c4n* op*')"),
  deal('words of documents that are not there', "SELECT id FROM DocumentEntry WHERE NOT MATCH(document, 'open')"),
  deal(
    'words of documents, marked',
    "SELECT id FROM DocumentEntry WHERE MATCH(document, 'note') COMPUTE h AS HIGHLIGHT(document)",
  ),
  deal(
    'documents by a filter',
    `SELECT id FROM DocumentEntry WHERE DOCUMENT_MATCHES(document, '{"note":{"$regex":"c4n4ry|open"}}')`,
  ),
  deal('hybrid, of documents', "HYBRID_SEARCH FROM DocumentEntry QUERY 'open note c4n4ry' LIMIT 5"),
  deal('like a hidden document', "SIMILAR TO DocumentEntry WHERE id = 'shop.deals/x1' LIMIT 3"),
  deal('json cells', 'SELECT id, kind, body, aside, hidden FROM Paper'),
  deal('json cells by their text', "SELECT id FROM Paper WHERE body LIKE '%c4n4ry%' OR aside LIKE '%open%' OR body IS NULL"),
  deal('words of json', "SELECT id, _score FROM Paper WHERE MATCH(body, 'open note c4n4ry') ORDER BY _score DESC, id"),
  deal('words of json that is masked', "SELECT id, _score FROM Paper WHERE MATCH(hidden, 'open s c4n4ry') ORDER BY _score DESC", {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('words of json, the best', "SELECT id, _score FROM Paper WHERE MATCH(body, 'note p1') ORDER BY _score DESC LIMIT 2"),
  deal('masked json by its text', "SELECT id FROM Paper WHERE hidden LIKE '%s-1%' OR NOT hidden LIKE '%s-2%'"),
  deal('masked json by a filter', `SELECT id FROM Paper WHERE DOCUMENT_MATCHES(hidden, '{"note":{"$exists":true}}')`),
  deal('masked json, marked', "SELECT id FROM Paper WHERE MATCH(body, 'open') COMPUTE h AS HIGHLIGHT(hidden)", {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('masked json, grouped', 'SELECT hidden, COUNT(*) AS n FROM Paper GROUP BY hidden', { refused: 'REL_MASKED_COLUMN' }),
  deal('json, grouped', 'SELECT body, COUNT(*) AS n FROM Paper GROUP BY body'),
  deal('hybrid, of json', "HYBRID_SEARCH FROM Paper QUERY 'open s-1 c4n4ry done' LIMIT 5"),
  deal('like a paper', "SIMILAR TO Paper WHERE id = 'q1' LIMIT 3"),
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
  deal('where rows come from', 'SELECT * FROM PROVENANCE_TRIPLES() LIMIT 40'),
  deal('where a row comes from', "SELECT * FROM PROVENANCE_TRIPLES('18a0c0ffee000000')"),
  deal(
    'where rows come from, joined',
    'SELECT a.object, b.object AS who FROM ProvenanceTriple a JOIN ProvenanceTriple b ON a.object = b.subject LIMIT 40',
  ),
  deal('paths', "SELECT * FROM PATHS_BETWEEN('p1', 'p3')"),
  deal('paths, to a hidden node', "PATHS_BETWEEN('p1', 'x1')"),
  deal('paths over some edges', "PATHS_BETWEEN('p1', 'p3', 3, DIRECTION => 'out') WHERE from_id != 'p2' LIMIT 1"),
  deal('paths, then', "PATHS_BETWEEN('p1', 'p3') AS OF SYSTEM TIME '2024-01-01T00:00:02.500Z'"),
  deal('paths, as it was true', "PATHS_BETWEEN('p1', 'p3') AS OF '2024-01-01T00:00:02.000Z'"),
  deal('plan of paths', "EXPLAIN PATHS_BETWEEN('p1', 'p3')", { notFor: ['export', 'arrow'], moves: true }),
  deal('neighbours', "NETWORK_EXPAND('p2', MAX_HOPS => 3)"),
  deal('neighbours of a hidden node', "NETWORK_EXPAND('x1')"),
  deal('how paths are found', "EXPLAIN_PATH('p1', 'p2')"),
  deal('ranks', "GRAPH_PAGERANK('Party', 'Reports')"),
  deal('ranks of some edges', "GRAPH_PAGERANK('Party') WHERE to_id != 'p1' ORDER BY nodeId"),
  deal('ranks of edges with no weight there', "GRAPH_PAGERANK('Party', 'Reports', WEIGHT => score)", {
    refused: 'REL_UNKNOWN_COLUMN',
  }),
  deal('ranks of a type of another tenant', "GRAPH_PAGERANK('Hidden')", { refused: 'REL_UNKNOWN_TYPE' }),
  deal('ranks of protected rows', "GRAPH_PAGERANK('Vault')", { refused: 'REL_HUMINT' }),
  deal('degrees', "DEGREE_CENTRALITY('Party')"),
  deal('triangles', "TRIANGLE_COUNT('Party')"),
  deal('components', "CONNECTED_COMPONENTS('Party')"),
  deal('labels', "LABEL_PROPAGATION('Party')"),
  deal('shortest way', "GRAPH_DIJKSTRA('Party', 'Reports', 'p1', 'p3')"),
  deal('shortest ways', "GRAPH_SSSP('Party', 'Reports', 'p1')"),
  deal('strong components', "GRAPH_SCC('Party')"),
  deal('cycles', "GRAPH_CYCLES('Party', MAX_LENGTH => 4)"),
  deal('spanning tree', "GRAPH_SPANNING_TREE('Party')"),
  deal('distances', "GRAPH_APSP('Party')"),
  deal('diameter', "GRAPH_DIAMETER('Party')"),
  deal('alike by neighbours', "GRAPH_SIMILARITY('Party', TOP_K => 2)"),
  deal('alike to a node', "GRAPH_NODE_SIMILARITY('Party', NODE => 'p1')"),
  deal('betweenness', "GRAPH_NODE_METRIC('Party')"),
  deal('closeness', "GRAPH_NODE_METRIC('Party', METRIC => 'closeness')"),
  deal('hubs', "GRAPH_NODE_METRIC('Party', METRIC => 'hub')"),
  deal('authorities', "GRAPH_NODE_METRIC('Party', METRIC => 'authority')"),
  deal('eigenvector', "GRAPH_NODE_METRIC('Party', METRIC => 'eigenvector')"),
  deal('likely links', "LINK_PREDICT('Party', METHOD => 'adamic_adar')"),
  deal('likely links of a node', "GRAPH_LINK_PREDICT('Party', FROM => 'p1')"),
  deal('communities', "GRAPH_COMMUNITY('Party')"),
  deal('communities by labels', "GRAPH_COMMUNITY('Party', ALGO => 'label_propagation')"),
  deal('degrees beside rows', 'SELECT id, DEGREE(id) AS d, DEGREE(boss, in) AS b FROM Party AS OF CURRENT ORDER BY id, d'),
  deal('rows by degree', 'SELECT id FROM Party AS OF CURRENT WHERE DEGREE(id, out) > 0'),
  deal('ranks by CALL', "CALL gds.pageRank('Party', {maxIterations: 5}) YIELD nodeId, score"),
  deal('figures by CALL', "CALL traverse.degreeCentrality.stats('Party')"),
  deal('pattern', 'MATCH (a:Party)-[r:Reports]->(b:Party) RETURN a.name, b.name, r.to_id ORDER BY a.name, b.name'),
  deal('pattern with a bounded path', "MATCH (a:Party {id: 'p1'})-[*1..3]-(b) RETURN b, count(*) AS n ORDER BY b"),
  deal('pattern, optional', 'MATCH (a:Deal) OPTIONAL MATCH (a)-[:Reports]->(b:Party) RETURN a.id, b.id ORDER BY a.id LIMIT 5'),
  deal('pattern, collected', 'MATCH (a:Party)<-[:Reports]-(b) WITH a, count(*) AS n WHERE n > 0 RETURN a.id, n ORDER BY a.id'),
  deal('pattern, entities', 'MATCH (a:Party)-[r:Reports]->(b) RETURN a, r, b, properties(b) AS p, labels(b) AS l ORDER BY a, r'),
  deal(
    'pattern, paths',
    "MATCH p = (a:Party {id: 'p1'})-[r:Reports*1..3]-(b) RETURN p, r, size(nodes(p)) AS n, b.name ORDER BY n, b.name",
  ),
  deal(
    'pattern, lists',
    "UNWIND ['p1', 'p2', 'p3'] AS id OPTIONAL MATCH (a:Party {id: id}) WITH id, collect(a) AS all UNWIND all AS a RETURN toString(id) AS id, a, toString(a.name) AS name",
  ),
  deal('pattern without labels', 'MATCH (n) OPTIONAL MATCH (n)-[r]->(m) RETURN n, n.name, n.amount, r, m.name ORDER BY n, r'),
  deal(
    'pattern over protected edges',
    'MATCH (a)-[r]->(b) WHERE r.to_id IS NOT NULL RETURN count(*) AS n, collect(r.to_id) AS c',
  ),
  deal(
    'pattern, then',
    "MATCH (a:Party)-[:Reports]->(b) AS OF SYSTEM TIME '2024-01-01T00:00:02.500Z' RETURN a.id, b ORDER BY a.id, b",
  ),
  deal('pattern over edges guarded late', 'MATCH (a:Party)-[r:LetterLink]->(b) RETURN a.id, b', { refused: 'REL_HUMINT' }),
  deal('pattern over edges scoped late', 'MATCH (a:Party)-[r:NoticeLink]->(b) RETURN a.id, b', { refused: 'REL_ACCESS_SCOPE' }),
  deal('ranks over edges guarded late', "GRAPH_PAGERANK('Party', 'LetterLink')", { refused: 'REL_HUMINT' }),
  deal('edges masked late', 'SELECT from_id, to_id, subject FROM TaleLink'),
  deal('edges masked late, grouped', 'SELECT subject, COUNT(*) AS n FROM TaleLink GROUP BY subject', {
    refused: 'REL_MASKED_COLUMN',
  }),
  deal('pattern over edges masked late', 'MATCH (a:Party)-[r:TaleLink]->(b) RETURN a.id, r.subject, b.id'),
  deal('pattern over protected rows', 'MATCH (a:Vault) RETURN a.id', { refused: 'REL_HUMINT' }),
  deal('pattern over a type of another tenant', 'MATCH (a:Hidden) RETURN a.id', { refused: 'REL_UNKNOWN_TYPE' }),
  deal('pattern that writes', "CREATE (a:Party {id: 'p9'})", { refused: 'REL_READ_ONLY' }),
  deal('plan of likeness', "EXPLAIN SELECT * FROM SIMILAR('Deal', emb, ARRAY[1, 0]) LIMIT 3", {
    notFor: ['export', 'arrow'],
    moves: true,
  }),
];

/** Functions of the domain: hidden rows have the ids of visible ones, and the worlds differ in what these rows say. */
const domain: readonly Shape[] = [
  deal('identifiers of a text', "SELECT * FROM DETECT_IDENTITIES('ann@example.org, +44 20 7946 0018')"),
  deal('tiers of accounts', 'SELECT * FROM INFLUENCE_TIER()'),
  deal('tier of a hidden account', "SELECT * FROM INFLUENCE_TIER('x1')"),
];

export const shapes: readonly Shape[] = [
  ...reads,
  ...searches,
  ...documents,
  ...plans,
  ...masked,
  ...functions,
  ...domain,
  ...refusals,
];
