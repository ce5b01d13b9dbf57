/** Statements that were written to hurt, and how each must end. Columns: see `siege.ts`. */

export interface Bomb {
  readonly name: string;
  readonly sql: string;
  /** Error codes, or `answered`: anything else is a failure. */
  readonly ends: readonly string[];
  /** Single values of the answer that are known. */
  readonly first?: Readonly<Record<string, unknown>>;
}

/** Limits that bound what a statement may take. */
const bounded = ['REL_TIMEOUT', 'REL_RESULT_CAP', 'REL_MEMORY_CAP', 'REL_SCAN_CAP'];
const refused = ['REL_PARSE'];
const answered = ['answered'];

const times = (count: number, text: (i: number) => string, between = ''): string =>
  Array.from({ length: count }, (_, i) => text(i)).join(between);

/** `SELECT n FROM (SELECT n FROM (… Small …))`: the innermost query stands at this depth. */
const nested = (depth: number): string =>
  `${times(depth, () => 'SELECT n FROM (')}SELECT n FROM Small${times(depth, (i) => `) q${depth - i}`, '')} LIMIT 3`;

/** Queries in conditions, each about the rows of the one around it. */
const correlated = (depth: number): string =>
  `SELECT COUNT(*) AS c FROM Small s0 WHERE ${times(depth, (i) => `EXISTS (SELECT 1 FROM Small s${i + 1} WHERE s${i + 1}.n >= s${i}.n AND `)}1 = 1${')'.repeat(depth)}`;

/** Queries for a value, each within the other. */
const valued = (depth: number, beside: (of: number) => string = () => 'WHERE'): string =>
  `SELECT ${times(depth, (i) => `(SELECT MAX(s${i + 1}.n) FROM Small s${i + 1} ${beside(i + 1)} s${i + 1}.n <= ${i === 0 ? 's0.n' : `s${i}.n`} AND s${i + 1}.n >= 0 + `)}0${')'.repeat(depth)} AS m FROM Small s0`;

const tables = (count: number, table: string): string => times(count, (i) => `${table} t${i}`, ', ');

export interface Sizes {
  readonly big: number;
  readonly middle: number;
  readonly sides: number;
}

/** Over the graphs of `supply`. */
const graphBombs: readonly Bomb[] = [
  ['paths along a deep chain', "PATHS_BETWEEN('v0', 'v9', 10, LINK_TYPES => 'Chain')", answered],
  ['the way along a deep chain', "CALL traverse.sssp.stats('Spot', 'Chain', {source: 'v0'})", answered],
  ['components of a deep chain', "CALL traverse.scc.stats('Spot', 'Chain')", answered],
  ['simple paths of a clique', "PATHS_BETWEEN('v0', 'v1', 10, LINK_TYPES => 'Clique')", bounded],
  ['cycles of a clique', "GRAPH_CYCLES('Spot', 'Clique', MAX_LENGTH => 10)", bounded],
  ['walks of a clique', "MATCH (a:Spot {id: 'v0'})-[:Clique*1..6]->(b) RETURN count(*) AS n", bounded],
  ['pairs of a clique', "CALL traverse.nodeSimilarity.stats('Spot', 'Clique')", [...bounded, ...answered]],
  ['all distances of a web', "GRAPH_APSP('Spot', 'Web')", bounded],
  ['the diameter of a web', "GRAPH_DIAMETER('Spot', 'Web')", [...bounded, ...answered]],
  ['betweenness in a web', "GRAPH_NODE_METRIC('Spot', 'Web')", [...bounded, ...answered]],
  ['communities of a web', "CALL traverse.community.stats('Spot', 'Web')", [...bounded, ...answered]],
  ['likely links of a web', "CALL traverse.linkPredict.stats('Web')", [...bounded, ...answered]],
  ['ranks of a web, a thousand rounds', "CALL traverse.pageRank.stats('Spot', 'Web', {maxIterations: 1000})", answered],
  ['a pattern over all of a web', 'MATCH (a)-[:Web]-(b)-[:Web]-(c)-[:Web]-(d) RETURN count(*) AS n', [...bounded, ...answered]],
].map(([name, sql, ends]): Bomb => ({ name, sql, ends }) as Bomb);

export function bombs({ big, middle }: Sizes): Bomb[] {
  return [
    {
      name: 'cross join',
      sql: 'SELECT COUNT(*) AS c FROM Left1 a JOIN Right1 b ON a.n != b.n + 0.5',
      ends: [...bounded, ...answered],
    },
    { name: 'cross join, shown', sql: 'SELECT a.n, b.n FROM Left1 a JOIN Right1 b ON a.n >= 0', ends: bounded },
    {
      name: 'full join without equality',
      sql: 'SELECT COUNT(*) AS c FROM Left1 a FULL JOIN Right1 b ON a.n < b.n - 1000000',
      ends: [...bounded, ...answered],
    },
    {
      name: 'endless recursion',
      sql: 'WITH RECURSIVE r(n) AS (SELECT n FROM Small WHERE n = 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) AS c FROM r',
      ends: [...bounded, 'REL_INVALID'],
    },
    {
      name: 'recursion that doubles',
      sql: 'WITH RECURSIVE r(n) AS (SELECT n FROM Small UNION ALL SELECT r.n FROM r JOIN Small s ON s.n < 2) SELECT COUNT(*) AS c FROM r',
      ends: [...bounded, 'REL_INVALID'],
    },
    {
      name: '50 wildcards on long texts',
      sql: `SELECT COUNT(*) AS c FROM Text WHERE body LIKE '${'%a'.repeat(50)}%b'`,
      ends: answered,
      first: { c: 0 },
    },
    {
      name: 'wildcards that nearly match',
      sql: `SELECT COUNT(*) AS c FROM Text WHERE body LIKE '${'%aaaaaaaaab'.repeat(50)}%'`,
      ends: answered,
      first: { c: 0 },
    },
    {
      name: 'single-character wildcards',
      sql: `SELECT COUNT(*) AS c FROM Text WHERE body LIKE '%${'_a'.repeat(30)}b%${'a_'.repeat(30)}b%'`,
      ends: answered,
      first: { c: 0 },
    },
    {
      name: '60,000 OR terms',
      sql: `SELECT COUNT(*) AS c FROM Small WHERE ${times(60_000, (i) => `n = ${i}`, ' OR ')}`,
      ends: [...answered, ...refused],
      first: { c: 1000 },
    },
    {
      name: 'IN list of 100,000',
      sql: `SELECT COUNT(*) AS c FROM Middle WHERE n IN (${times(100_000, (i) => String(i * 2), ',')})`,
      ends: answered,
      first: { c: Math.min(100_000, middle / 2) },
    },
    { name: '38 subqueries deep', sql: nested(38), ends: answered },
    { name: '41 subqueries deep', sql: nested(41), ends: refused },
    {
      name: 'a comparison of rows within another, sixty times',
      sql: `SELECT ${'('.repeat(120)}a${', 1) < (b, 2))'.repeat(60)} FROM Big`,
      ends: refused,
    },
    {
      name: 'IS DISTINCT FROM within another, sixty times',
      sql: `SELECT ${'('.repeat(60)}a${' IS DISTINCT FROM b)'.repeat(60)} FROM Big`,
      ends: refused,
    },
    { name: 'EXISTS, 39 around each other', sql: correlated(39), ends: [...answered, ...bounded] },
    { name: 'EXISTS, 41 around each other', sql: correlated(41), ends: refused },
    { name: 'values, 39 around each other', sql: valued(39), ends: [...answered, ...bounded] },
    {
      name: 'values of two tables, 30 around each other',
      sql: valued(30, (of) => `, Small t${of} WHERE s${of}.n = t${of}.n AND`),
      ends: [...answered, ...bounded],
    },
    { name: 'cross join of 20 tables', sql: `SELECT COUNT(*) AS c FROM ${tables(20, 'Middle')}`, ends: bounded },
    {
      name: '20 tables, bound in WHERE',
      sql: `SELECT COUNT(*) AS c FROM ${tables(20, 'Middle')} WHERE ${times(19, (i) => `t${i}.n = t${i + 1}.n`, ' AND ')}`,
      ends: [...answered, ...bounded],
    },
    {
      name: '20 tables, bound crosswise',
      sql: `SELECT COUNT(*) AS c FROM ${tables(20, 'Middle')} WHERE ${times(10, (i) => `t${i}.g = t${i + 10}.g`, ' AND ')}`,
      ends: bounded,
    },
    {
      name: 'windows over everything',
      sql: 'SELECT n, SUM(n) OVER (PARTITION BY g ORDER BY n) AS a, LAG(s) OVER (ORDER BY s, n) AS b, COUNT(*) OVER () AS c FROM Big',
      ends: [...answered, ...bounded],
    },
    {
      name: 'a frame of everything for each row',
      sql: 'SELECT MAX(t.a) AS m FROM (SELECT SUM(n) OVER (ORDER BY n ROWS BETWEEN 500000 PRECEDING AND 500000 FOLLOWING) AS a FROM Big) t',
      ends: [...answered, ...bounded],
    },
    {
      name: 'EXISTS without equality',
      sql: 'SELECT COUNT(*) AS c FROM Big a WHERE NOT EXISTS (SELECT 1 FROM Big b WHERE b.n + 0.5 = a.n * 2 OR b.n < a.n - 1e9)',
      ends: [...answered, ...bounded],
    },
    {
      name: 'more than ALL of everything',
      sql: 'SELECT COUNT(*) AS c FROM Big WHERE n > ALL (SELECT n FROM Big)',
      ends: [...answered, ...bounded],
    },
    {
      name: 'one text of everything',
      sql: "SELECT LENGTH(STRING_AGG(s, ',')) AS n, MEDIAN(n) AS m FROM Big",
      ends: [...answered, ...bounded, 'REL_INVALID'],
    },
    {
      name: 'patterns on long texts',
      sql: "SELECT COUNT(*) AS c FROM Text WHERE body ~ '(a|aa)+(b|c)+x$' OR REGEXP_REPLACE(body, '(a*)*b', 'x', 'g') = 'x'",
      ends: [...answered, ...bounded],
    },
    {
      name: '256 words with typos',
      sql: `SELECT n, _score FROM Big WHERE MATCH(s, '${times(256, (i) => `wordly${i}`, ' ')}', FUZZY) ORDER BY _score DESC LIMIT 5`,
      ends: [...answered, ...bounded, 'REL_INVALID'],
    },
    {
      name: '16 parts of words, and none of them',
      sql: `SELECT COUNT(*) AS c FROM Text WHERE NOT MATCH(body, '${times(16, (i) => `*${'abcdefgh'[i % 8]}*`, ' ')}')`,
      ends: [...answered, ...bounded],
    },
    {
      name: '50 parts of words',
      sql: `SELECT COUNT(*) AS c FROM Text WHERE MATCH(body, '${times(50, () => '*a*', ' ')}')`,
      ends: ['REL_INVALID'],
    },
    {
      name: '100,000 words',
      sql: `SELECT COUNT(*) AS c FROM Text WHERE MATCH(body, '${times(100_000, (i) => `w${i}`, ' OR ')}', BOOLEAN)`,
      ends: ['REL_INVALID'],
    },
    {
      name: '1,000 patterns, by OR',
      sql: `SELECT COUNT(*) AS c FROM Middle WHERE ${times(1_000, (i) => `MATCH(s, 's${i}')`, ' OR ')}`,
      ends: [...answered, ...bounded, ...refused],
      first: { c: middle },
    },
    {
      name: '1,000 words by OR, in a pattern of the graph',
      sql: `MATCH (a:Spot) WHERE ${times(1_000, (i) => `a.id = 'v${i}' OR a.id CONTAINS 'w${i}'`, ' OR ')} RETURN count(*) AS n`,
      ends: [...answered, ...bounded, ...refused],
      first: { n: 1000 },
    },
    {
      name: '256 phrases by OR in one search',
      sql: `SELECT COUNT(*) AS c FROM Middle WHERE MATCH(s, '${times(256, (i) => `s${i}`, ' OR ')}', BOOLEAN)`,
      ends: [...answered, ...bounded, 'REL_INVALID'],
    },
    { name: 'a million alike', sql: "HYBRID_SEARCH FROM Small QUERY 'text' LIMIT 1000000", ends: ['REL_VECTOR_BUDGET'] },
    { name: '1 MiB of parentheses', sql: `SELECT ${'('.repeat((1 << 20) - 100)}`, ends: refused },
    { name: '8 MiB of statement', sql: `SELECT n FROM Small WHERE s = '${'text '.repeat(1_677_000)}'`, ends: refused },
    {
      name: '60 MiB of statement',
      sql: `SELECT n FROM Small WHERE s = '${'text '.repeat(12_000_000)}'`,
      ends: ['REL_TOO_LARGE'],
    },
    { name: 'parentheses, closed', sql: `SELECT ${'('.repeat(100_000)}n${')'.repeat(100_000)} FROM Small`, ends: refused },
    { name: 'NOT, 100,000 times', sql: `SELECT n FROM Small WHERE ${'NOT '.repeat(100_000)} n = 1`, ends: refused },
    {
      name: 'CASE in CASE',
      sql: `SELECT ${'CASE WHEN n = 1 THEN '.repeat(20_000)}1${' END'.repeat(20_000)} AS x FROM Small`,
      ends: refused,
    },
    {
      name: 'CASE of 1,500 branches',
      sql: `SELECT SUM(CASE ${times(1_500, (i) => `WHEN n = ${i} AND s = 's${i}' THEN ${i}`, ' ')} END) AS c FROM Middle`,
      ends: [...answered, ...bounded],
    },
    {
      name: '2,000 pairs in a list',
      sql: `SELECT COUNT(*) AS c FROM Big WHERE (n, s) IN (${times(2_000, (i) => `(${500 * i}, 's${i}')`, ', ')})`,
      ends: [...answered, ...bounded],
    },
    {
      name: '20,000 pairs in a list',
      sql: `SELECT COUNT(*) AS c FROM Big WHERE (n, s) IN (${times(20_000, (i) => `(${50 * i}, 's${i}')`, ', ')})`,
      ends: refused,
    },
    {
      name: '2,000 conditions on two columns',
      sql: `SELECT COUNT(*) AS c FROM Big WHERE ${times(2_000, (i) => `(n != ${-i} OR s = 's${i}')`, ' AND ')}`,
      ends: [...answered, ...bounded],
    },
    {
      name: '3,000 patterns of a thousand texts',
      sql: `SELECT COUNT(*) AS c FROM Big WHERE ${times(3_000, (i) => `s LIKE '%q${i}%'`, ' OR ')}`,
      ends: [...answered, ...bounded],
    },
    {
      name: '2,000 pairs of texts, by OR',
      sql: `SELECT COUNT(*) AS c FROM Big WHERE ${times(2_000, (i) => `(s = 's${i}' AND n = ${i})`, ' OR ')}`,
      ends: [...answered, ...bounded],
    },
    {
      name: 'IN list of 100,000 NULLs',
      sql: `SELECT COUNT(*) AS c FROM Middle WHERE n IN (${times(100_000, () => 'NULL', ',')})`,
      ends: answered,
      first: { c: 0 },
    },
    { name: '16,000 places in GROUP BY', sql: `SELECT n FROM Small GROUP BY ${times(16_000, () => '1', ', ')}`, ends: refused },
    {
      name: 'a thousand places in GROUP BY',
      sql: `SELECT n FROM Small GROUP BY ${times(1_000, () => '1', ', ')}`,
      ends: [...answered, ...bounded],
    },
    { name: '16,000 places in ORDER BY', sql: `SELECT n FROM Small ORDER BY ${times(16_000, () => '1', ', ')}`, ends: refused },
    {
      name: 'a thousand places in ORDER BY',
      sql: `SELECT n FROM Small ORDER BY ${times(1_000, () => '1', ', ')}`,
      ends: answered,
    },
    { name: 'a call of 100,000 values', sql: `SELECT GREATEST(${times(100_000, String, ', ')}) AS x FROM Small`, ends: refused },
    {
      name: 'a call of 1,000 values',
      sql: `SELECT GREATEST(${times(1_000, String, ', ')}, n) AS x FROM Small`,
      ends: answered,
    },
    {
      name: 'a list of 16,000 in a pattern of the graph',
      sql: `MATCH (a:Spot) WHERE a.id IN [${times(16_000, (i) => `'v${i}'`, ',')}] RETURN count(*) AS n`,
      ends: answered,
    },
    {
      name: '450 arms of UNION',
      sql: times(450, (i) => `SELECT n FROM Small WHERE n = ${i}`, ' UNION '),
      ends: answered,
    },
    { name: 'a sum of 100,000 terms', sql: `SELECT n + ${times(100_000, () => '1', '+')} AS x FROM Small`, ends: refused },
    {
      name: '1,000 arms of UNION ALL',
      sql: times(1_000, (i) => `SELECT n FROM Small WHERE n = ${i}`, ' UNION ALL '),
      ends: [...answered, ...refused],
    },
    {
      name: '5,000 columns',
      sql: `SELECT ${times(5_000, (i) => `n + ${i} AS c${i}`, ', ')} FROM Small LIMIT 5`,
      ends: [...answered, ...refused],
    },
    {
      name: 'windows that overlap a million times',
      sql: "SELECT window_start, COUNT(*) AS c FROM Big GROUP BY HOP(t, INTERVAL '1 seconds', INTERVAL '365 days')",
      ends: [...bounded, 'REL_INVALID'],
    },
    {
      name: 'sessions of everything',
      sql: "SELECT s, COUNT(*) AS c FROM Big GROUP BY s, SESSION(t, INTERVAL '1 seconds') LIMIT 5",
      ends: [...answered, ...bounded],
    },
    { name: 'facets', sql: 'SELECT n FROM Middle LIMIT 1 FACETS s, n, g', ends: [...answered, ...bounded] },
    { name: 'sort of everything', sql: 'SELECT n FROM Big ORDER BY s DESC, g, n', ends: [...answered, ...bounded] },
    {
      name: 'sort by language',
      sql: 'SELECT n, s FROM Big ORDER BY s COLLATE UNICODE, n LIMIT 5',
      ends: [...answered, ...bounded],
    },
    { name: 'every row shown', sql: 'SELECT * FROM Big', ends: [...answered, ...bounded] },
    { name: 'distinct wide rows', sql: 'SELECT DISTINCT * FROM Wide', ends: [...answered, ...bounded] },
    {
      name: 'a group a row',
      sql: 'SELECT n, COUNT(*) AS c, MAX(s) AS m FROM Big GROUP BY n ORDER BY c DESC, n LIMIT 5',
      ends: [...answered, ...bounded],
      first: { n: 0, c: 1 },
    },
    { name: 'groups of long texts', sql: 'SELECT body, COUNT(*) AS c FROM Text GROUP BY body', ends: [...answered, ...bounded] },
    {
      name: 'distinct count of everything',
      sql: 'SELECT COUNT(DISTINCT n) AS c, COUNT(DISTINCT s) AS d FROM Big',
      ends: [...answered, ...bounded],
      first: { c: big },
    },
    {
      name: 'join of few keys',
      sql: 'SELECT COUNT(*) AS c FROM Middle a JOIN Middle b ON a.few = b.few',
      ends: [...answered, ...bounded],
    },
    {
      name: 'three of them',
      sql: 'SELECT COUNT(*) AS c FROM Middle a JOIN Middle b ON a.few = b.few JOIN Middle c ON b.few = c.few',
      ends: bounded,
    },
    {
      name: 'everything with itself',
      sql: 'SELECT COUNT(*) AS c FROM Big a JOIN Big b ON a.n = b.n',
      ends: [...answered, ...bounded],
      first: { c: big },
    },
    {
      name: 'IN everything',
      sql: 'SELECT COUNT(*) AS c FROM Big WHERE n IN (SELECT n FROM Big)',
      ends: [...answered, ...bounded],
      first: { c: big },
    },
    {
      name: 'NOT IN everything',
      sql: 'SELECT COUNT(*) AS c FROM Big WHERE n + 1 NOT IN (SELECT n FROM Big)',
      ends: [...answered, ...bounded],
      first: { c: 1 },
    },
    {
      name: 'INTERSECT of everything',
      sql: 'SELECT n, s FROM Big INTERSECT SELECT n, s FROM Big ORDER BY n LIMIT 3',
      ends: [...answered, ...bounded],
    },
    { name: 'EXCEPT of everything', sql: 'SELECT n, s FROM Big EXCEPT SELECT n, s FROM Big', ends: [...answered, ...bounded] },
    {
      name: 'UNION of everything',
      sql: 'SELECT n, s FROM Big UNION SELECT n + 1, s FROM Big ORDER BY n LIMIT 3',
      ends: [...answered, ...bounded],
    },
    {
      name: 'common tables that double',
      sql: `WITH ${times(20, (i) => `w${i} AS (${i === 0 ? 'SELECT n FROM Small' : `SELECT n FROM w${i - 1} UNION ALL SELECT n FROM w${i - 1}`})`, ', ')} SELECT COUNT(*) AS c FROM w19`,
      ends: [...answered, ...bounded, ...refused],
    },
    {
      name: 'arithmetic on everything',
      sql: `SELECT ${times(60, (i) => `SUM(n * ${i} % 7 + x / ${i + 1}) AS c${i}`, ', ')} FROM Big`,
      ends: [...answered, ...bounded],
    },
    ...graphBombs,
  ];
}
