/** Programs, and what each is asked to do: a step is a script of bash and what it must print. */
import { objectClients } from './objects.ts';

export interface Place {
  readonly port: number;
  /** SERVICE_BEARER_TOKEN. */
  readonly secret: string;
  readonly objectSecret: string;
  /** A registry token without a tenant. */
  readonly token: string;
  readonly directory: string;
}

export interface Step {
  readonly name: string;
  readonly script: string;
  readonly prints: RegExp;
}

export interface Client {
  readonly name: string;
  readonly door: string;
  /** Debian's. */
  readonly package: string;
  /** Succeeds where it is installed. */
  readonly probe: string;
  steps(place: Place): readonly Step[];
}

const psql = ({ port, secret }: Place): string =>
  `export PGPASSWORD=${secret}; P="psql -XAt -h 127.0.0.1 -p ${port} -U me annals"`;
/** Debian's, whatever other versions of Python come first on the PATH. */
const python = '/usr/bin/python3';

export const clients: readonly Client[] = [
  {
    name: 'psql',
    door: 'relational',
    package: 'postgresql-client',
    probe: 'command -v psql',
    steps: (place) => [
      {
        name: 'a table, rows, a question as of the past',
        script: `${psql(place)}
$P -c "CREATE TABLE \\"Ship\\" (id text PRIMARY KEY, name text NOT NULL, tons int)" -c "INSERT INTO \\"Ship\\" VALUES ('s1', 'Aurelia', 100), ('s2', 'Brisa', 50)"
T=$($P -c "SELECT max(system_from) FROM \\"Ship\\"")
$P -c "UPDATE \\"Ship\\" SET tons = 120 WHERE id = 's1'"
$P -c "SELECT id, tons FROM \\"Ship\\" ORDER BY id" -c "SELECT tons FROM \\"Ship\\" AS OF SYSTEM TIME '$T' WHERE id = 's1'"`,
        prints: /CREATE TABLE\nINSERT 0 2\nUPDATE 1\ns1\|120\ns2\|50\n100\n/,
      },
      {
        name: 'COPY both ways, and a transaction',
        script: `${psql(place)}
printf 's3,Cormoran,10\\ns4,Dorada,20\\n' | $P -c "\\copy \\"Ship\\" FROM STDIN CSV"
$P -c "\\copy \\"Ship\\" (id, name) TO STDOUT CSV"
printf "BEGIN; INSERT INTO \\"Ship\\" VALUES ('s5', 'E', 1); INSERT INTO \\"Ship\\" VALUES ('s6', 'F', 2); COMMIT; SELECT count(*) FROM \\"Ship\\";" | $P`,
        prints: /COPY 2\ns2,Brisa\ns1,Aurelia\ns3,Cormoran\ns4,Dorada\nBEGIN\nINSERT 0 1\nINSERT 0 1\nCOMMIT\n6\n/,
      },
      {
        name: 'what \\dt, \\d, \\l, \\dn and \\df list',
        script: `${psql(place)}
$P -c '\\dt' -c '\\d "Ship"' -c '\\l' -c '\\dn' -c '\\df lower' -c '\\dv' -c '\\di'`,
        prints: /Ship[^]*tons\|bigint[^]*annals[^]*public[^]*lower/,
      },
    ],
  },
  {
    name: 'pgbench',
    door: 'relational',
    package: 'postgresql-contrib',
    probe: 'command -v pgbench',
    steps: ({ port, secret }) =>
      (['simple', 'extended', 'prepared'] as const).map((mode) => ({
        name: `SELECT by key, ${mode}`,
        script: `export PGPASSWORD=${secret}
printf '\\\\set n random(1, 2)\\nSELECT tons FROM "Ship" WHERE id = %s || :n;\\n' "'s'" > bench.sql
pgbench -n -f bench.sql -M ${mode} -c 4 -t 50 -h 127.0.0.1 -p ${port} -U me annals`,
        prints: /number of failed transactions: 0 [^]*tps = \d+/,
      })),
  },
  {
    name: 'psycopg2',
    door: 'relational',
    package: 'python3-psycopg2',
    probe: `${python} -c 'import psycopg2'`,
    steps: ({ port, secret }) => [
      {
        name: 'parameters, a transaction, COPY',
        script: `${python} - <<'END'
import io, psycopg2
c = psycopg2.connect(host='127.0.0.1', port=${port}, user='me', password='${secret}', dbname='annals')
k = c.cursor()
k.execute('INSERT INTO "Ship" (id, name, tons) VALUES (%s, %s, %s)', ('p1', "O'Hara", 7))
k.execute('INSERT INTO "Ship" (id, name, tons) VALUES (%s, %s, %s)', ('p2', 'Q', None))
c.commit()
k.execute('SELECT id, name, tons FROM "Ship" WHERE id = ANY(%s) ORDER BY id', (['p1', 'p2'],))
print(k.fetchall())
c.commit()
k.copy_expert('COPY "Ship" (id, name) FROM STDIN', io.StringIO('p3\\tx\\n'))
c.commit()
k.execute('SELECT count(*) FROM "Ship" WHERE id = %s', ('p3',))
print(k.fetchone())
END`,
        prints: /\[\('p1', "O'Hara", 7\), \('p2', 'Q', None\)\]\n\(1,\)/,
      },
    ],
  },
  {
    name: 'redis-cli',
    door: 'kv',
    package: 'redis-tools',
    probe: 'command -v redis-cli',
    steps: ({ port, secret }) => [
      {
        name: 'values, expiry, keys',
        script: `R="redis-cli -p ${port} -a ${secret} --no-auth-warning"
$R SET greeting hello EX 100; $R GET greeting; $R TTL greeting; $R INCR n; $R INCR n; $R DEL greeting; $R GET greeting; $R KEYS '*'; $R PING`,
        prints: /OK\nhello\n(100|99)\n1\n2\n1\n\n(.*\n)*n\n(.*\n)*PONG/,
      },
      {
        name: 'redis-benchmark of GET and SET, pipelined',
        script: `redis-benchmark -p ${port} -a ${secret} -t set,get -n 2000 -c 20 -P 8 -q`,
        prints: /GET: [\d.]+ requests per second/,
      },
    ],
  },
  ...objectClients,
];
