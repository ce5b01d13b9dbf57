/**
 * What a run is held against: every figure that has a goal, and every ratio that `--check` watches. A ratio compares two
 * things of the same run, so that it says the same on a faster machine; what has another unit is shown, and never checked.
 */

export interface Aim {
  /** What was compared, so that the figure can be read without its measure. */
  readonly text: string;
  /** 'x' is a ratio. */
  readonly unit: 'x' | '/s' | 'rows/s' | 'MB/s' | 's' | 'ms' | 'µs' | 'GB' | 'MB' | 'B';
  readonly better: 'larger' | 'smaller';
  /** What was promised of a full run; null where nothing was. */
  readonly wanted: number | null;
  /** Of what is accepted, how much worse a full run may be; a quarter unless said otherwise. */
  readonly tolerance?: number;
}

const times = (text: string, wanted: number | null = null): Aim => ({ text, unit: 'x', better: 'larger', wanted });
const share = (text: string, wanted: number | null = null): Aim => ({ text, unit: 'x', better: 'smaller', wanted });
/** Of samples that are few, or times so short that a machine's mood shows in them. */
const rough = (aim: Aim): Aim => ({ ...aim, tolerance: 0.6 });

const sealing = (of: string): Aim => ({
  text: `sealing by subject, ${of}, one core`,
  unit: 'rows/s',
  better: 'larger',
  wanted: 200_000,
});

/** The part of a key before the dot is the measure that finds it. */
export const aims = {
  'bulk-ingest.copy': times('bulk ingest over HTTP / COPY with a primary key, each on one core', 1.5),
  'bulk-ingest.copy-both-cores': times('bulk ingest over HTTP / COPY with a primary key, both cores open to all', 1.5),
  'commits.gate-1': rough(times('commits through the gate / prepared INSERT, 1 client')),
  'commits.gate-16': times('commits through the gate / prepared INSERT, 16 clients', 1.5),
  'commits.gate-64': times('commits through the gate / prepared INSERT, 64 clients', 1.5),
  'commits.http-1': rough(times('commits over HTTP / prepared INSERT, 1 client')),
  'commits.http-16': times('commits over HTTP / prepared INSERT, 16 clients', 0.6),
  'commits.http-64': times('commits over HTTP / prepared INSERT, 64 clients', 0.6),
  'point-read.rate': { text: 'point reads over HTTP, one core', unit: '/s', better: 'larger', wanted: 12_000 },
  'point-read.postgres': times('point reads over HTTP / PostgreSQL, simple protocol'),
  'point-read.net': times('point reads over HTTP / the same bytes from bare node:net'),
  'point-read.node-http': times('point reads over HTTP / the same bytes from bare node:http'),
  'point-read.range-rate': { text: 'reads of 100 rows by key over HTTP, one core', unit: '/s', better: 'larger', wanted: 12_000 },
  'point-read.range-postgres': times('reads of 100 rows by key over HTTP / PostgreSQL, simple protocol'),
  'point-read.range-net': times('reads of 100 rows by key over HTTP / the same bytes from bare node:net'),
  'point-read.range-node-http': times('reads of 100 rows by key over HTTP / the same bytes from bare node:http'),
  'doors.relational-simple': times('relational door / PostgreSQL, pgbench SELECT by key, simple', 0.8),
  'doors.relational-prepared': times('relational door / PostgreSQL, pgbench SELECT by key, prepared', 0.4),
  'doors.relational-copy-in-one': times('relational door / PostgreSQL, COPY in with a key, one core', 0.5),
  'doors.relational-copy-in-all': times('relational door / PostgreSQL, COPY in with a key, both cores', 1),
  'transactions.by-key': times('transactions / PostgreSQL, UPDATE by key and SELECT it, 16 clients', 0.8),
  'transactions.tpcb': times('transactions / PostgreSQL, pgbench TPC-B, scale 1, 8 clients', 0.5),
  'transactions.own-reads': rough(share('read by key in a transaction of 1,000 own rows / outside', 1.05)),
  'doors.redis-get-1': times('key-value door / Redis, GET by 50 clients', 0.25),
  'doors.redis-get-16': times('key-value door / Redis, GET by 50 clients, 16 at a time', 0.1),
  'doors.redis-set': times('key-value door / Redis, SET by 50 clients, synced', 0.2),
  'doors.columnar-insert': times('columnar HTTP door / ClickHouse, INSERT of JSON lines', 0.2),
  'doors.columnar-group': times('columnar HTTP door / ClickHouse, filter, group, sum over 10M rows', 0.5),
  'doors.native-plain': times('1M rows out of the native columnar door / the same by /query/arrow, plain', 0.8),
  'doors.native-lz4': times('1M rows out of the native columnar door / the same by /query/arrow, LZ4', 0.4),
  'doors.bolt-point': times('a row by its key by Bolt / the same by /query, by the server’s time', 0.6),
  'doors.grpc-point': times('a row by its key by gRPC, 100 calls at once / the same by /query, by the server’s time', 0.3),
  'doors.flight-get': times('1M rows out by DoGet / the same by /query/arrow', 0.7),
  'doors.flight-put': times('rows in by DoPut / the same as JSON lines', 1),
  'doors.document-find': times('a document by its _id / the same by /query, by the server’s time', 0.8),
  'doors.relational-copy-out': times('relational door / PostgreSQL, COPY out', 0.5),
  'as-of-aggregate.duckdb-small': times('as-of filter, group, sum: DuckDB’s time / ours, small', 2),
  'as-of-aggregate.duckdb': times('as-of filter, group, sum: DuckDB’s time / ours', 2),
  'as-of-aggregate.postgres': times('as-of filter, group, sum: PostgreSQL’s time / ours', 10),
  'aggregates.duckdb': share('other aggregates: our time / DuckDB’s, geometric mean', 1.3),
  'aggregates.worst': share('other aggregates: our time / DuckDB’s, the worst of them'),
  'as-of-head.share': share('AS OF SYSTEM TIME at the head / AS OF CURRENT', 1.2),
  'history.scan-rounds': rough(share('aggregate as of current, 100 superseded versions a row / none, in rounds', 1.2)),
  'history.scan-random': rough(share('aggregate as of current, 100 superseded versions a row / none, in random order', 1.2)),
  'history.read-rounds': rough(share('point read as of current, 100 superseded versions a row / none, in rounds', 1.2)),
  'history.read-random': rough(share('point read as of current, 100 superseded versions a row / none, in random order', 1.2)),
  'start.saved': { text: 'process start to /health ok, from a checkpoint', unit: 's', better: 'smaller', wanted: 2 },
  'start.share': rough(share('start from a checkpoint / start from the log alone')),
  'replay-verify.replay-rate': {
    text: '`annals replay`, every core, without process start',
    unit: 'rows/s',
    better: 'larger',
    wanted: 2e6,
  },
  'replay-verify.verify-rate': {
    text: '`annals verify --sealed`, every core, without process start',
    unit: 'MB/s',
    better: 'larger',
    wanted: 500,
  },
  'replay-verify.opened-rate': {
    text: '`annals verify`, every body opened, every core, without process start',
    unit: 'MB/s',
    better: 'larger',
    wanted: null,
  },
  'replay-verify.opened-rows': {
    text: '`annals verify`, every row hashed again, every core, without process start',
    unit: 'rows/s',
    better: 'larger',
    wanted: null,
  },
  'replay-verify.replay-sha': times('`annals replay`, bytes of log / SHA-256 over 64 KiB blocks'),
  'replay-verify.verify-sha': times('`annals verify --sealed`, bytes of log / SHA-256 over 64 KiB blocks'),
  'memory.resident': { text: 'RSS with all 5 columns in memory', unit: 'GB', better: 'smaller', wanted: 1 },
  'memory.share': share('RSS with all 5 columns in memory / the same rows as NDJSON'),
  'memory.index': { text: 'primary-key index, a key', unit: 'B', better: 'smaller', wanted: 20 },
  'memory.budget-resident': {
    text: 'RSS after scans, SERVICE_MEMORY_BUDGET_MB=256',
    unit: 'MB',
    better: 'smaller',
    wanted: null,
  },
  'memory.budget-scan': rough(share('scan under SERVICE_MEMORY_BUDGET_MB=256 / without a limit')),
  'health-under-load.p99': { text: '/health p99 under four scans and an ingest', unit: 'ms', better: 'smaller', wanted: 10 },
  'text.fts5': times('search of short texts, best 10 and how many: FTS5’s time / ours, geometric mean', 20),
  'text.postgres': times(
    'search of short texts, best 10 and how many: PostgreSQL’s time (ts_rank, GIN) / ours, geometric mean',
    20,
  ),
  'text.build': times('index of short texts, with its first answer: FTS5’s seconds / ours', 1),
  'text.health': { text: '/health p99 while texts are indexed', unit: 'ms', better: 'smaller', wanted: 50 },
  'text-arrival.acknowledged': share('a batch acknowledged where its texts are searched / where not', 1.25),
  'text-arrival.found': { text: 'written until a search finds it, p95', unit: 'ms', better: 'smaller', wanted: 100 },
  'text.then': rough(share('search before a tenth changed / search now, geometric mean', 3)),
  'governed-text.phrase': { text: 'search for a phrase, p99', unit: 'ms', better: 'smaller', wanted: 50 },
  'governed-text.fuzzy': { text: 'search for two words with typos, p99', unit: 'ms', better: 'smaller', wanted: 50 },
  'governed-text.branch': rough(share('search on a branch / beside it', 3)),
  'governed-text.policy': rough(share('search under a row policy that shows half / without', 3)),
  'facets.time': { text: 'facets of 100,000 rows that match', unit: 'ms', better: 'smaller', wanted: 50 },
  'governed-text.bytes': share('indexes of texts / the texts', 1),
  'joins.duckdb': share('questions in the manner of TPC-H: our time / DuckDB’s, geometric mean'),
  'joins.duckdb-worst': share('questions in the manner of TPC-H: our time / DuckDB’s, the worst of them'),
  'joins.sqlite': share('questions in the manner of TPC-H: our time / SQLite’s, geometric mean'),
  'tpch.duckdb': share('TPC-H’s 22 questions as written: our time / DuckDB’s, geometric mean', 1.5),
  'tpch.duckdb-worst': share('TPC-H’s 22 questions as written: our time / DuckDB’s, the worst of them', 5),
  'tpch.sqlite': share('TPC-H’s 22 questions as written: our time / SQLite’s, cut off at 60 s, geometric mean', 0.15),
  'vectors.exact': {
    text: 'p95, 10 nearest of 131,072 x 128 vectors, exact, one thread',
    unit: 'ms',
    better: 'smaller',
    wanted: 4,
  },
  'vectors.rate': { text: 'nearest vectors by graphs, one client in process', unit: '/s', better: 'larger', wanted: 2_436 },
  'vectors.recall': times('of the 10 nearest, found by graphs', 0.98),
  'vectors.build': { text: 'graphs of vectors made in a thread', unit: 'rows/s', better: 'larger', wanted: 2_500 },
  'vectors.half': rough(share('nearest vectors where a condition leaves half / of all', 1.5)),
  'graph.adjacency': { text: 'adjacency of 5M edges from rows, first asked', unit: 's', better: 'smaller', wanted: 2.5 },
  'graph.scipy': times('PageRank, 20 rounds, 5M edges, warm: scipy’s time / ours', 0.5),
  'graph.igraph': times('PageRank to 1e-9, 5M edges, warm: igraph’s time / ours', 1),
  'graph.components': times('components, 5M edges, warm: igraph’s time / ours', 1),
  'graph.bfs': times('breadth-first search, 5M edges, warm: igraph’s time / ours', 1),
  'graph.then': share('PageRank and adjacency, cold, as of earlier / as of now', 1.5),
  'graph.changed': { text: 'degrees after 1,000 new edges, 5M edges, warm', unit: 'ms', better: 'smaller', wanted: 200 },
  'graph.paths': { text: 'paths of 4 hops, LIMIT 100, 1M edges, p99', unit: 'ms', better: 'smaller', wanted: 50 },
  'graph.expand': times('2-hop expansion over HTTP: PostgreSQL’s time / ours', 2),
  'graph.bytes': { text: 'graph kept, dictionary of nodes aside, an edge', unit: 'B', better: 'smaller', wanted: 24 },
  'sigma.compiled': { text: '3,000 Sigma rules read and compiled', unit: 's', better: 'smaller', wanted: 5 },
  'sigma.rate': {
    text: 'events of 30 fields under 3,000 Sigma rules, one core',
    unit: '/s',
    better: 'larger',
    wanted: 15_000,
  },
  'sigma.sql': times('3,000 Sigma rules over events: sql.js’ time / ours', 100),
  'rules.acknowledged': share('ingest of events acknowledged, p50: under 3,000 Sigma rules / without', 1.15),
  'rules.sigma-alert': { text: 'alert after its commit, 3,000 Sigma rules, p95', unit: 'ms', better: 'smaller', wanted: 500 },
  'rules.commit-p99': rough(share('commit of a row, 8 writers, p99: under 500 rules in SQL / without', 2)),
  'rules.alert': { text: 'alert after its commit, 500 rules in SQL, p95', unit: 'ms', better: 'smaller', wanted: 500 },
  'jobs.tick': { text: 'longest turn of a look at 10,000 jobs that wait', unit: 'ms', better: 'smaller', wanted: 5 },
  'jobs.first-tick': { text: 'the same, the first after a start', unit: 'ms', better: 'smaller', wanted: 5 },
  'jobs.read-p99': rough(share('point read, p99: while two jobs run / while none does', 1.5)),
  'screening.p95': { text: 'a name against a list of 20,000, p95', unit: 'ms', better: 'smaller', wanted: 10 },
  'resolve.p95': { text: 'a person among 100,000 resolved, p95', unit: 'ms', better: 'smaller', wanted: 25 },
  'resolve.ingest': share('rows taken in: time with identifiers / without', 1.3),
  'resolve.all': { text: '100,000 persons clustered, one core', unit: 's', better: 'smaller', wanted: 120 },
  'trace.p95': { text: 'money over 5 hops, 1M transfers, p95', unit: 'ms', better: 'smaller', wanted: 300 },
  'geofence.sqlite': times('places within a distance, 1M, a hundred found: time of SQLite’s R*Tree / ours', 1),
  'export.csv': times('export of CSV over HTTP / DuckDB’s COPY to a file'),
  'subjects.sealed-1': sealing('every row of another subject'),
  'subjects.sealed-10': sealing('10 rows in a body of one subject'),
  'subjects.sealed-1000': sealing('1,000 rows in a body of one subject'),
  'branch-fork.flat': rough(share('forking a branch, largest store / smallest')),
  'backup.backup-rate': { text: 'POST /admin/backup, read back', unit: 'MB/s', better: 'larger', wanted: 150 },
  'backup.restore-copy': { text: 'copying in a restore, its replay beside it', unit: 'MB/s', better: 'larger', wanted: 150 },
  'backup.restore-replay': rough(share('POST /admin/restore / `annals replay` of the same log')),
  'backup.text-backup-rate': {
    text: 'POST /admin/backup of text that packs hardly',
    unit: 'MB/s',
    better: 'larger',
    wanted: 150,
  },
  'backup.text-restore-rate': {
    text: 'POST /admin/restore of text that packs hardly',
    unit: 'MB/s',
    better: 'larger',
    wanted: 150,
  },
  'backup.text-restore-replay': rough(share('POST /admin/restore / `annals replay`, of text that packs hardly')),
  'rotation.commits': rough(share('commits of 16 clients / the same while data keys are rotated', 1.2)),
  'governance.aggregate': share('aggregate as of current under 100 rules / without policies', 1.15),
  'governance.read': {
    text: 'point read by key under 100 rules, beyond one without policies',
    unit: 'µs',
    better: 'smaller',
    wanted: 20,
  },
  'governance.primed': {
    text: 'from a changed rule to the first aggregate under it',
    unit: 's',
    better: 'smaller',
    wanted: 1,
  },
  'governance.decisions': {
    text: 'decisions under 100 rules, one core',
    unit: '/s',
    better: 'larger',
    wanted: 100_000,
  },
  'governance.record': times('point reads over HTTP, with access records / with a recorder that does nothing', 0.9),
  'erasure.served': { text: 'from ERASE to the last answer that shows a row', unit: 's', better: 'smaller', wanted: 1 },
  'erasure.started': { text: 'the same of a store that was just started', unit: 's', better: 'smaller', wanted: 1 },
  'erasure.certificate': { text: 'from ERASE to its certificate', unit: 's', better: 'smaller', wanted: null },
  'erasure.health': { text: '/health at most, while a subject is erased', unit: 'ms', better: 'smaller', wanted: null },
  'catalogue.slowest': {
    text: 'the slowest recorded question to a catalogue of 10,000 types, CPU',
    unit: 'ms',
    better: 'smaller',
    wanted: 100,
  },
  'catalogue.changed': {
    text: 'the slowest of them after a type changed, CPU',
    unit: 'ms',
    better: 'smaller',
    wanted: 100,
  },
  'catalogue.turn': { text: 'the longest turn of that one', unit: 'ms', better: 'smaller', wanted: null },
  'tenants.table': { text: 'a table of 1,000 rows, beyond its rows', unit: 'B', better: 'smaller', wanted: 20_000 },
  'tenants.definition': { text: 'a definition without rows', unit: 'B', better: 'smaller', wanted: 2_000 },
  'tenants.aggregate': rough(share('aggregate over a tenant’s type among many tenants / alone', 1.1)),
  'tenants.sweep': rough(share('aggregates over a tenant’s types among many tenants / alone', 1.1)),
  'tenants.read': rough(share('point read by key of a tenant among many / alone')),
  'agent-memory.remember': times('remembers over HTTP / commits of one row over HTTP, 16 clients each', 0.6),
  'agent-memory.recall-p95': { text: 'recall over HTTP, p95', unit: 'ms', better: 'smaller', wanted: 100 },
  'agent-memory.recall-then': rough(share('recall as of before a twentieth changed / recall now', 2)),
  'watch.p99': rough(share('commit p99 of 8 writers with 100 standing queries / with none')),
  'doors.object-put': { text: 'object PUT of 64 MiB, one core', unit: 'MB/s', better: 'larger', wanted: 150 },
  'doors.object-get': { text: 'object GET of 64 MiB, one core', unit: 'MB/s', better: 'larger', wanted: 150 },
  'doors.object-memory': { text: 'memory that PUT and GET of 5 GiB take', unit: 'MB', better: 'smaller', wanted: 157 },
} as const satisfies Readonly<Record<string, Aim>>;

export type AimName = keyof typeof aims;

export const aimNames = Object.keys(aims) as AimName[];

export const measureOf = (name: string): string => name.slice(0, name.indexOf('.'));

export function isMet({ better, wanted }: Aim, found: number): boolean | null {
  if (wanted === null) return null;
  return better === 'larger' ? found >= wanted : found <= wanted;
}
