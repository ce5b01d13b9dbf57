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

export interface Sizes {
  readonly big: number;
  readonly middle: number;
  readonly sides: number;
}

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
  ];
}
