/** Programs, and what each is asked to do: a step is a script of bash and what it must print. */
import { columnarClients } from './columnar.ts';
import { mapperClients } from './mappers.ts';
import { objectClients } from './objects.ts';
import { rpcClients } from './rpc.ts';
import { storeClients } from './stores.ts';

export interface Place {
  readonly port: number;
  /** SERVICE_BEARER_TOKEN. */
  readonly secret: string;
  readonly objectSecret: string;
  /** A registry token without a tenant. */
  readonly token: string;
  /** Of the HTTP door. */
  readonly url: string;
  readonly directory: string;
}

export interface Step {
  readonly name: string;
  readonly script: string;
  readonly prints: RegExp;
  /** At most so many; absent: 60. */
  readonly seconds?: number;
}

export interface Client {
  readonly name: string;
  readonly door: string;
  /** Debian's, or those of `registry`. */
  readonly package: string;
  /** Installed into a folder of this run alone. */
  readonly registry?: 'npm';
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
    name: 'psycopg2 and SQLAlchemy',
    door: 'relational',
    package: 'python3-sqlalchemy',
    probe: `${python} -c 'import psycopg2, sqlalchemy'`,
    steps: ({ port, secret }) => [
      {
        name: 'aware datetimes, backslashes, a broken constraint',
        script: `${python} - <<'END'
import datetime, psycopg2
c = psycopg2.connect(host='127.0.0.1', port=${port}, user='me', password='${secret}', dbname='annals')
k = c.cursor()
k.execute('CREATE TABLE "Log" (id int PRIMARY KEY, at timestamptz, note text)')
at = datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
k.execute('INSERT INTO "Log" VALUES (%s, %s, %s)', (1, at, 'a\\\\b\\nc'))
c.commit()
k.execute('SELECT note FROM "Log" WHERE at = %s', (at,))
print(k.fetchone()[0] == 'a\\\\b\\nc')
k.execute('SELECT now()')
print(k.fetchone()[0].tzinfo is not None)
c.commit()
try:
    k.execute('INSERT INTO "Log" (id) VALUES (1)')
    c.commit()
except psycopg2.errors.UniqueViolation as e:
    print(e.diag.constraint_name, e.diag.message_detail)
c.rollback()
END`,
        prints: /True\nTrue\nLog_pkey Key \(id\)=\(1\) already exists\.\n/,
      },
      {
        name: 'DateTime(timezone=True), rows in and out',
        script: `${python} - <<'END'
import datetime
from sqlalchemy import create_engine, MetaData, Table, Column, BigInteger, DateTime, String, select
e = create_engine('postgresql+psycopg2://me:${secret}@127.0.0.1:${port}/annals')
t = Table('Alchemy', MetaData(), Column('id', BigInteger, primary_key=True, autoincrement=False), Column('at', DateTime(timezone=True)), Column('s', String))
at = datetime.datetime(2024, 5, 1, 10, 0, tzinfo=datetime.timezone.utc)
with e.begin() as c:
    t.create(c)
with e.begin() as c:
    c.execute(t.insert(), [{'id': 1, 'at': at, 's': 'x'}, {'id': 2, 'at': None, 's': None}])
with e.begin() as c:
    print(c.execute(select(t).where(t.c.at == at)).fetchall() == [(1, at, 'x')], c.execute(select(t.c.id + 1).where(t.c.id.in_([1, 2])).order_by(t.c.id)).fetchall())
END`,
        prints: /True \[\(2,\), \(3,\)\]/,
      },
    ],
  },
  {
    name: 'psycopg3',
    door: 'relational',
    package: 'python3-psycopg',
    probe: `${python} -c 'import psycopg'`,
    steps: ({ port, secret }) => [
      {
        name: 'executemany with a key that is there, pipelines, types of parameters',
        script: `${python} - <<'END'
import datetime, psycopg
c = psycopg.connect(host='127.0.0.1', port=${port}, user='me', password='${secret}', dbname='annals', autocommit=True)
c.execute('CREATE TABLE "Three" (id int PRIMARY KEY, at timestamptz, s text)')
k = c.cursor()
try:
    k.executemany('INSERT INTO "Three" (id, s) VALUES (%s, %s)', [(1, 'a'), (2, 'b'), (1, 'c')])
except psycopg.errors.UniqueViolation as e:
    print(e.sqlstate, e.diag.constraint_name, c.execute('SELECT count(*) FROM "Three"').fetchone())
k.executemany('INSERT INTO "Three" (id, s) VALUES (%s, %s)', [(1, 'a'), (2, 'b')])
with c.pipeline() as p:
    one = c.execute('SELECT s FROM "Three" WHERE id = %s', (1,))
    c.execute('INSERT INTO "Three" (id) VALUES (%s)', (3,))
    print(one.fetchone())
try:
    with c.pipeline() as p:
        c.execute('INSERT INTO "Three" (id) VALUES (4)')
        c.execute('INSERT INTO "Three" (id) VALUES (1)')
except psycopg.errors.UniqueViolation as e:
    print(e.sqlstate)
at = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
print([c.execute('SELECT %s', (v,)).fetchone()[0] == v for v in (at, at.date(), 5, 2**40, 1.5, True, 'x', None)])
print(c.execute('SELECT count(*) FROM "Three" WHERE id = ANY(%s)', ([1, 2, 3, 4],)).fetchone())
print(c.cursor(binary=True).execute('SELECT %b::timestamptz = %b', (at, at)).fetchone())
END`,
        prints: /23505 Three_pkey \(0,\)\n\('a',\)\n23505\n\[(True, ){7}True\]\n\(3,\)\n\(True,\)/,
      },
    ],
  },
  {
    name: 'asyncpg',
    door: 'relational',
    package: 'python3-asyncpg',
    probe: `${python} -c 'import asyncpg'`,
    steps: ({ port, secret }) => [
      {
        name: 'connect, pool, parameters, executemany, COPY',
        script: `${python} - <<'END'
import asyncio, asyncpg, datetime, io
async def main():
    who = dict(host='127.0.0.1', port=${port}, user='me', password='${secret}', database='annals')
    c = await asyncpg.connect(**who)
    await c.execute('CREATE TABLE "Async" (id int PRIMARY KEY, at timestamptz, s text)')
    at = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone.utc)
    await c.executemany('INSERT INTO "Async" VALUES ($1, $2, $3)', [(1, at, 'a'), (2, None, 'b')])
    print(await c.fetchval('SELECT id + $1 FROM "Async" WHERE at = $2', 5, at), await c.fetchval('SELECT $1::timestamptz', at) == at)
    print([r['id'] for r in await c.fetch('SELECT id FROM "Async" WHERE s = ANY($1::text[]) ORDER BY id', ['a', 'b'])])
    print(await c.copy_records_to_table('Async', records=[(3, at, 'c')], columns=['id', 'at', 's']))
    try:
        await c.execute('INSERT INTO "Async" (id) VALUES (1)')
    except asyncpg.UniqueViolationError as e:
        print(e.constraint_name)
    async with c.transaction():
        await c.execute('INSERT INTO "Async" (id) VALUES (4)')
    await c.execute('CREATE TABLE "AsyncV" (id int PRIMARY KEY, v vector(2))')
    await c.execute('INSERT INTO "AsyncV" VALUES (1, $1)', '[1,2]')
    print(await c.fetchval('SELECT v FROM "AsyncV"'))
    await c.close()
    pool = await asyncpg.create_pool(min_size=1, max_size=1, **who)
    for _ in range(3):
        async with pool.acquire() as c:
            print(await c.fetchval('SELECT count(*) FROM "Async"'))
    await pool.close()
asyncio.run(main())
END`,
        prints: /6 True\n\[1, 2\]\nCOPY 1\nAsync_pkey\n\[1,2\]\n4\n4\n4\n/,
      },
    ],
  },
  {
    name: 'pgjdbc',
    door: 'relational',
    package: 'libpostgresql-jdbc-java default-jdk-headless',
    probe: 'test -e /usr/share/java/postgresql.jar && command -v javac',
    steps: ({ port, secret }) =>
      (['simple', 'extended'] as const).map((mode) => ({
        name: `${mode}: instants, a batch, updatable results, imported keys`,
        script: `cat > Jdbc.java <<'END'
import java.sql.*;
import java.time.*;
public class Jdbc {
  public static void main(String[] a) throws Exception {
    try (Connection c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:${port}/annals?preferQueryMode=${mode}", "me", "${secret}")) {
      Statement s = c.createStatement();
      s.execute("CREATE TABLE Parent_${mode} (id bigint PRIMARY KEY)");
      s.execute("CREATE TABLE child_${mode} (id bigint PRIMARY KEY, at timestamptz, parent bigint REFERENCES Parent_${mode} (id))");
      OffsetDateTime at = OffsetDateTime.parse("2024-05-01T12:00:00+02:00");
      PreparedStatement p = c.prepareStatement("INSERT INTO child_${mode} (id, at) VALUES (?, ?)");
      for (int i = 1; i <= 3; i++) { p.setLong(1, i); p.setObject(2, at); p.addBatch(); }
      p.executeBatch();
      PreparedStatement q = c.prepareStatement("SELECT ?");
      q.setObject(1, at);
      ResultSet r = q.executeQuery(); r.next();
      System.out.println(r.getObject(1, OffsetDateTime.class).toInstant());
      q = c.prepareStatement("SELECT count(*) FROM child_${mode} WHERE at = ?");
      q.setObject(1, at);
      r = q.executeQuery(); r.next();
      System.out.println(r.getInt(1));
      Statement u = c.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE);
      r = u.executeQuery("SELECT id, at FROM child_${mode} WHERE id >= 2 ORDER BY id");
      r.next(); r.updateTimestamp("at", Timestamp.from(Instant.parse("2025-01-01T00:00:00Z"))); r.updateRow(); r.refreshRow();
      System.out.println(r.getObject("at", OffsetDateTime.class).toInstant());
      r.moveToInsertRow(); r.updateLong("id", 4); r.insertRow(); r.absolute(2); r.deleteRow();
      r = s.executeQuery("SELECT id FROM child_${mode} ORDER BY id");
      while (r.next()) System.out.print(r.getInt(1) + " ");
      System.out.println();
      r = c.getMetaData().getImportedKeys(null, "public", "child_${mode}");
      while (r.next()) System.out.println(r.getString("PKTABLE_NAME") + "." + r.getString("PKCOLUMN_NAME") + " " + r.getString("FKCOLUMN_NAME"));
      try { s.execute("INSERT INTO child_${mode} (id) VALUES (1)"); }
      catch (SQLException e) { System.out.println(e.getSQLState()); }
      r = s.executeQuery("SELECT 1"); r.next(); System.out.println("usable " + r.getInt(1));
    }
  }
}
END
java -cp /usr/share/java/postgresql.jar Jdbc.java`,
        prints: new RegExp(
          `2024-05-01T10:00:00Z\\n3\\n2025-01-01T00:00:00Z\\n1 2 4 \\nParent_${mode}\\.id parent\\n23505\\nusable 1`,
        ),
      })),
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
  ...storeClients,
  ...columnarClients,
  ...rpcClients,
  ...mapperClients,
  ...objectClients,
];
