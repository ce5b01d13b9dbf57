/** Programs that write a row, read it and write it again before they commit. */
import { readFileSync } from 'node:fs';
import type { Client, Place } from './list.ts';

const python = '/usr/bin/python3';

const pgbench: Client = {
  name: 'pgbench TPC-B',
  door: 'relational',
  package: 'postgresql-contrib',
  probe: 'command -v pgbench',
  steps: ({ port, secret }: Place) => [
    {
      name: 'its own script, 8 clients for 60 s: the three sums agree',
      seconds: 240,
      script: `export PGPASSWORD=${secret} PGHOST=127.0.0.1 PGPORT=${port} PGUSER=me PGDATABASE=annals
psql -XqAt -c 'CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler text)' \\
  -c 'CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler text)' \\
  -c 'CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler text)' \\
  -c 'CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler text)'
pgbench -i -I g -s 1 2>&1 | tail -1
pgbench -n -c 8 -j 2 -T 60 --max-tries=50
psql -XAt -c 'SELECT (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history) AND (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(delta) FROM pgbench_history) AND (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)'`,
      prints: /number of transactions actually processed: [1-9]\d*\n[^]*\nt\n$/,
    },
  ],
};

const alchemy: Client = {
  name: 'SQLAlchemy ORM',
  door: 'relational',
  package: 'python3-sqlalchemy python3-psycopg2',
  probe: `${python} -c 'import psycopg2, sqlalchemy'`,
  steps: ({ port, secret }) => [
    {
      name: 'unit of work, relationships, flush and read again, nested transactions, rollback',
      script: `${python} - <<'END'
from sqlalchemy import create_engine, Column, BigInteger, String, ForeignKey, select, func
from sqlalchemy.orm import declarative_base, relationship, Session
from sqlalchemy.exc import IntegrityError
e = create_engine('postgresql+psycopg2://me:${secret}@127.0.0.1:${port}/annals')
Base = declarative_base()
class Author(Base):
    __tablename__ = 'orm_author'
    id = Column(BigInteger, primary_key=True, autoincrement=False)
    name = Column(String, nullable=False)
    books = relationship('Book', back_populates='author', cascade='all, delete-orphan', order_by='Book.id')
class Book(Base):
    __tablename__ = 'orm_book'
    id = Column(BigInteger, primary_key=True, autoincrement=False)
    title = Column(String)
    author_id = Column(BigInteger, ForeignKey('orm_author.id'))
    author = relationship('Author', back_populates='books')
Base.metadata.create_all(e)
with Session(e) as s, s.begin():
    a = Author(id=1, name='Ann', books=[Book(id=1, title='one'), Book(id=2, title='two')])
    s.add(a)
    s.flush()
    s.expire_all()
    print(a.name, [b.title for b in a.books], s.scalar(select(func.count()).select_from(Book).join(Author).where(Author.name == 'Ann')))
    a.name = 'Anne'
    a.books[0].title = 'uno'
    s.flush()
    s.expire_all()
    print(a.name, a.books[0].title)
    try:
        with s.begin_nested():
            s.add(Book(id=2, title='again'))
            s.flush()
    except IntegrityError as error:
        print(error.orig.pgcode)
    with s.begin_nested():
        a.books.append(Book(id=3, title='three'))
    nested = s.begin_nested()
    a.name = 'lost'
    s.flush()
    nested.rollback()
    print(a.name, len(a.books))
with Session(e) as s:
    a = s.get(Author, 1)
    a.name = 'never'
    s.flush()
    print(s.scalar(select(Author.name)))
    s.rollback()
    print(s.scalar(select(Author.name)))
    s.delete(s.get(Book, 1))
    s.flush()
    print(s.scalar(select(func.count()).select_from(Book)))
    s.commit()
with Session(e) as one, Session(e) as other:
    one.get(Author, 1).name = 'x'
    other.get(Author, 1).name = 'y'
    one.commit()
    try:
        other.commit()
        print('last wins')
    except Exception as error:
        print(error.orig.pgcode)
with Session(e) as s:
    print(s.scalar(select(Author.name)), [b.id for b in s.get(Author, 1).books])
END`,
      prints: /Ann \['one', 'two'\] 2\nAnne uno\n23505\nAnne 3\nnever\nAnne\n2\n(40001\nx|last wins\ny) \[2, 3\]\n/,
    },
  ],
};

const django: Client = {
  name: 'Django',
  door: 'relational',
  package: 'python3-django python3-psycopg2',
  probe: `${python} -c 'import psycopg2, django'`,
  steps: ({ port, secret }) => [
    {
      name: 'models, questions, atomic blocks in each other',
      script: `cat > orm.py <<'END'
import datetime, django
from django.conf import settings
settings.configure(
    USE_TZ=True, DEFAULT_AUTO_FIELD='django.db.models.BigAutoField',
    DATABASES={'default': {'ENGINE': 'django.db.backends.postgresql', 'NAME': 'annals', 'USER': 'me', 'PASSWORD': '${secret}', 'HOST': '127.0.0.1', 'PORT': ${port}}})
django.setup()
from django.db import connection, models, transaction, IntegrityError
from django.db.models import Count, F, Q, Sum
class Ship(models.Model):
    id = models.BigIntegerField(primary_key=True)
    name = models.TextField()
    tons = models.IntegerField(null=True)
    speed = models.FloatField(default=0)
    sails = models.BooleanField(default=False)
    built = models.DateTimeField(null=True)
    more = models.JSONField(null=True)
    class Meta:
        app_label = 'orm'
        db_table = 'django_ship'
with connection.cursor() as k:
    k.execute('CREATE TABLE django_ship (id bigint PRIMARY KEY, name text NOT NULL, tons int, speed float8, sails boolean, built timestamptz, more jsonb)')
at = datetime.datetime(2024, 5, 1, 10, 0, 0, 5, tzinfo=datetime.timezone.utc)
with transaction.atomic():
    Ship.objects.create(id=1, name="O'Hara", tons=5, speed=1.5, sails=True, built=at, more={'a': [1]})
    Ship.objects.bulk_create([Ship(id=2, name='b', tons=7), Ship(id=3, name='c', tons=9)])
    one = Ship.objects.get(id=1)
    print(one.name, one.speed, one.sails, one.built == at, one.more)
    Ship.objects.filter(id=1).update(tons=F('tons') + 10)
    print(Ship.objects.get(pk=1).tons, Ship.objects.aggregate(n=Count('id'), tons=Sum('tons')))
    try:
        with transaction.atomic():
            Ship.objects.create(id=2, name='twice')
    except IntegrityError as error:
        print(error.__cause__.pgcode)
    try:
        with transaction.atomic():
            Ship.objects.filter(id=3).delete()
            print(Ship.objects.count())
            raise ValueError
    except ValueError:
        pass
    print(Ship.objects.count())
print(Ship.objects.update_or_create(id=4, defaults={'name': 'd'})[1], Ship.objects.update_or_create(id=4, defaults={'name': 'D'})[1], Ship.objects.get_or_create(id=4)[0].name)
with transaction.atomic():
    locked = Ship.objects.select_for_update().get(id=2)
    locked.tons += 1
    locked.save()
print(list(Ship.objects.filter(Q(name__icontains='D') | Q(tons__gte=15)).order_by('-id').values_list('id', 'tons')))
print(Ship.objects.exclude(sails=True).filter(id__in=[2, 3]).delete()[0], Ship.objects.count())
END
${python} orm.py`,
      prints:
        /O'Hara 1\.5 True True \{'a': \[1\]\}\n15 \{'n': 3, 'tons': 31\}\n23505\n2\n3\nTrue False D\n\[\(4, None\), \(1, 15\)\]\n2 2\n/,
    },
  ],
};

const jdbc: Client = {
  name: 'pgjdbc in transactions',
  door: 'relational',
  package: 'libpostgresql-jdbc-java default-jdk-headless',
  probe: 'test -e /usr/share/java/postgresql.jar && command -v javac',
  steps: ({ port, secret }) =>
    (['simple', 'extended'] as const).map((mode) => ({
      name: `${mode}: a batch inserts and updates the same rows, a savepoint, what was written is read`,
      script: `cat > Batch.java <<'END'
import java.sql.*;
public class Batch {
  public static void main(String[] a) throws Exception {
    try (Connection c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:${port}/annals?preferQueryMode=${mode}", "me", "${secret}")) {
      Statement s = c.createStatement();
      s.execute("CREATE TABLE batch_${mode} (id bigint PRIMARY KEY, n bigint)");
      s.addBatch("INSERT INTO batch_${mode} (id, n) VALUES (1, 1)");
      s.addBatch("UPDATE batch_${mode} SET n = n + 1 WHERE id = 1");
      s.addBatch("UPDATE batch_${mode} SET n = n * 10 WHERE id = 1");
      print(s.executeBatch());
      c.setAutoCommit(false);
      PreparedStatement p = c.prepareStatement("INSERT INTO batch_${mode} (id, n) VALUES (?, ?)");
      PreparedStatement u = c.prepareStatement("UPDATE batch_${mode} SET n = n + ? WHERE id = ?");
      for (int i = 2; i <= 5; i++) { p.setLong(1, i); p.setLong(2, i); p.addBatch(); }
      print(p.executeBatch());
      for (int i = 1; i <= 10; i++) { u.setLong(1, 1); u.setLong(2, 2 + i % 2); u.addBatch(); }
      print(u.executeBatch());
      Savepoint here = c.setSavepoint("here");
      try { s.execute("INSERT INTO batch_${mode} VALUES (2, 0)"); } catch (SQLException e) { System.out.println(e.getSQLState()); }
      c.rollback(here);
      ResultSet r = s.executeQuery("SELECT sum(n), count(*) FROM batch_${mode}"); r.next();
      System.out.println(r.getLong(1) + " " + r.getLong(2));
      c.commit();
      s.execute("DELETE FROM batch_${mode}");
      c.rollback();
      c.setAutoCommit(true);
      p.setLong(1, 9); p.setLong(2, 9); p.addBatch(); p.setLong(1, 1); p.addBatch();
      try { p.executeBatch(); } catch (BatchUpdateException e) { System.out.println(e.getSQLState()); }
      r = s.executeQuery("SELECT n FROM batch_${mode} ORDER BY id");
      while (r.next()) System.out.print(r.getLong(1) + " ");
      System.out.println();
    }
  }
  static void print(int[] counts) { for (int n : counts) System.out.print(n + " "); System.out.println(); }
}
END
java -cp /usr/share/java/postgresql.jar Batch.java`,
      prints:
        mode === 'simple'
          ? /1 1 1 \n1 1 1 1 \n1 1 1 1 1 1 1 1 1 1 \n23505\n44 5\n23505\n20 7 8 4 5 (9 )?\n/
          : /1 1 1 \n1 1 1 1 \n1 1 1 1 1 1 1 1 1 1 \n23505\n44 5\n23505\n20 7 8 4 5 \n/,
    })),
};

const interactive: Client = {
  name: 'pg and Drizzle in transactions',
  door: 'relational',
  package: 'drizzle-orm@0.45.4 pg@8.23.1',
  registry: 'npm',
  probe: `node -e "require('drizzle-orm'); require('pg')"`,
  steps: ({ port, secret }) => [
    {
      name: 'read, write and read again; one inside another; a conflict is asked again',
      script: `cat > drizzle.cjs <<'END'
const { Pool } = require('pg');
const { drizzle } = require('drizzle-orm/node-postgres');
const { bigint, pgTable, text } = require('drizzle-orm/pg-core');
const { eq, sql } = require('drizzle-orm');
const pool = new Pool({ host: '127.0.0.1', port: ${port}, user: 'me', password: '${secret}', database: 'annals', max: 4 });
const db = drizzle(pool);
const wallet = pgTable('wallet', { id: bigint('id', { mode: 'number' }).primaryKey(), owner: text('owner'), coins: bigint('coins', { mode: 'number' }) });
(async () => {
  await pool.query('CREATE TABLE wallet (id bigint PRIMARY KEY, owner text, coins bigint)');
  await db.transaction(async (t) => {
    await t.insert(wallet).values([{ id: 1, owner: 'a', coins: 10 }, { id: 2, owner: 'b', coins: 0 }]);
    await t.update(wallet).set({ coins: sql\`\${wallet.coins} - 4\` }).where(eq(wallet.id, 1));
    await t.transaction(async (inner) => {
      await inner.update(wallet).set({ coins: 4 }).where(eq(wallet.id, 2));
    });
    await t.transaction(async (inner) => {
      await inner.delete(wallet);
      inner.rollback();
    }).catch(() => undefined);
    console.log(JSON.stringify(await t.select().from(wallet).orderBy(wallet.id)));
  });
  await db.transaction(async (t) => {
    await t.insert(wallet).values({ id: 3 });
    throw new Error('given up');
  }).catch((error) => console.log(error.message, ));
  const add = async () => {
    for (let tries = 0; ; tries++) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
        const { rows } = await client.query('SELECT coins FROM wallet WHERE id = 1');
        await client.query('UPDATE wallet SET coins = $1 WHERE id = 1', [Number(rows[0].coins) + 1]);
        await client.query('COMMIT');
        return;
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined);
        if (error.code !== '40001' || tries > 50) throw error;
      } finally {
        client.release();
      }
    }
  };
  await Promise.all(Array.from({ length: 20 }, add));
  console.log((await pool.query('SELECT coins FROM wallet WHERE id = 1')).rows[0].coins, (await db.select().from(wallet)).length);
  const counting = Array.from({ length: 4 }, async () => {
    for (let i = 0; i < 25; i++) await pool.query('UPDATE wallet SET coins = coins + 1 WHERE id = 2');
  });
  await Promise.all(counting);
  console.log((await pool.query('SELECT coins FROM wallet WHERE id = 2')).rows[0].coins);
  await pool.end();
})();
END
node drizzle.cjs`,
      prints: /\[\{"id":1,"owner":"a","coins":6\},\{"id":2,"owner":"b","coins":4\}\]\ngiven up\n26 2\n104\n/,
    },
  ],
};

const psycopg: Client = {
  name: 'psycopg3 in transactions',
  door: 'relational',
  package: 'python3-psycopg',
  probe: `${python} -c 'import psycopg'`,
  steps: ({ port, secret }) => [
    {
      name: 'blocks in each other, executemany and pipelines with errors in the middle',
      script: `${python} - <<'END'
import psycopg
c = psycopg.connect(host='127.0.0.1', port=${port}, user='me', password='${secret}', dbname='annals')
c.execute('CREATE TABLE coin (id bigint PRIMARY KEY, n bigint)')
c.commit()
k = c.cursor()
k.executemany('INSERT INTO coin VALUES (%s, %s)', [(i, i) for i in range(100)])
print(c.execute('SELECT sum(n) FROM coin').fetchone())
try:
    k.executemany('INSERT INTO coin VALUES (%s, 0)', [(200,), (5,), (201,)])
except psycopg.errors.UniqueViolation as e:
    print(e.sqlstate, c.info.transaction_status.name)
try:
    c.execute('SELECT 1')
except psycopg.errors.InFailedSqlTransaction as e:
    print(e.sqlstate)
c.rollback()
print(c.execute('SELECT count(*) FROM coin').fetchone())
c.rollback()
with c.transaction():
    c.execute('INSERT INTO coin VALUES (1, 1)')
    try:
        with c.transaction():
            c.execute('UPDATE coin SET n = 99 WHERE id = 1')
            c.execute('INSERT INTO coin VALUES (1, 2)')
    except psycopg.errors.UniqueViolation as e:
        print(e.sqlstate)
    with c.transaction():
        k.executemany('UPDATE coin SET n = n + %s WHERE id = 1 RETURNING n', [(1,), (2,), (3,)], returning=True)
        print(k.fetchone(), k.nextset() and k.fetchone())
    print(c.execute('SELECT n FROM coin').fetchall())
with c.pipeline() as p, c.transaction():
    c.execute('INSERT INTO coin VALUES (2, 2)')
    c.execute('UPDATE coin SET n = 20 WHERE id = 2')
    got = c.execute('SELECT n FROM coin WHERE id = 2')
    print(got.fetchone())
try:
    with c.pipeline() as p, c.transaction():
        c.execute('INSERT INTO coin VALUES (3, 3)')
        c.execute('INSERT INTO coin VALUES (2, 3)')
        c.execute('INSERT INTO coin VALUES (4, 3)')
except psycopg.errors.UniqueViolation as e:
    print(e.sqlstate)
print(c.execute('SELECT id, n FROM coin ORDER BY id').fetchall())
END`,
      prints:
        /\(4950,\)\n23505 INERROR\n25P02\n\(0,\)\n23505\n\(2,\) \(4,\)\n\[\(7,\)\]\n\(20,\)\n23505\n\[\(1, 7\), \(2, 20\)\]\n/,
    },
  ],
};

/** The one of docs/postgres.md, as it stands there. */
const documented: Client = {
  name: 'SQLAlchemy, the example of the documentation',
  door: 'relational',
  package: 'python3-sqlalchemy python3-psycopg2',
  probe: `${python} -c 'import psycopg2, sqlalchemy'`,
  steps: ({ port, secret }) => [
    {
      name: 'a transfer, run again where another one came between',
      script: `PGPASSWORD=${secret} PGPORT=${port} ${python} - <<'END'\n${exampleIn('docs/postgres.md')}END`,
      prints: /^6 4\n$/,
    },
  ],
};

function exampleIn(file: string): string {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  return /^```python\n([^]*?)^```$/m.exec(text)![1]!;
}

export const transactionClients: readonly Client[] = [documented, pgbench, alchemy, django, jdbc, interactive, psycopg];
