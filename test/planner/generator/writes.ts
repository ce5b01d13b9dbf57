/**
 * Random INSERT, UPDATE and DELETE put to the store and to SQLite, over tables that hold the same rows: what they return, whether they
 * are refused, and what stands afterwards must be the same. Where the two mean different things by one text, each is given its own
 * words: SQLite has no DELETE ... USING, and updates a row twice where an ON CONFLICT meets its key twice, which we refuse.
 */
import initSqlJs from 'sql.js';
import { ServiceError } from '../../../src/errors.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import { rowsOf, TestStore } from '../../harness.ts';
import { Choices } from './random.ts';

export interface WriteMismatch {
  readonly world: number;
  readonly index: number;
  readonly ours: string;
  readonly theirs: string;
  readonly why: string;
}

export interface WriteReport {
  statements: number;
  refused: number;
  rows: number;
  readonly forms: Map<string, number>;
  readonly mismatches: WriteMismatch[];
}

const perWorld = 200;

export async function writeDifferential(seed: number, statements: number, stopAfter = 5): Promise<WriteReport> {
  const report: WriteReport = { statements: 0, refused: 0, rows: 0, forms: new Map(), mismatches: [] };
  for (let world = 0; report.statements < statements; world++) {
    const bench = await Bench.open(seed * 1_000_003 + world);
    try {
      for (let index = 0; index < perWorld && report.statements < statements; index++) {
        await bench.next(index, report);
        if (report.mismatches.length >= stopAfter) return report;
      }
    } finally {
      await bench.close();
    }
  }
  return report;
}

type Database = InstanceType<Awaited<ReturnType<typeof initSqlJs>>['Database']>;
type Exec = (sql: string, parameters: undefined, config: { useBigInt: boolean }) => { values: Cell[][] }[];

class Bench {
  readonly #seed: number;
  readonly #store: TestStore;
  readonly #database: Database;

  private constructor(seed: number, store: TestStore, database: Database) {
    this.#seed = seed;
    this.#store = store;
    this.#database = database;
  }

  static async open(seed: number): Promise<Bench> {
    const store = await TestStore.open();
    await store.register('Item', { sku: 'string', name: 'string', n: 'integer', x: 'number' }, 'sku');
    await store.register('Part', { sku: 'string', of: 'string', n: 'integer' }, 'sku');
    const database = new (await initSqlJs()).Database();
    database.exec('CREATE TABLE Item (sku TEXT PRIMARY KEY NOT NULL, name TEXT, n INTEGER, x REAL)');
    database.exec('CREATE TABLE Part (sku TEXT PRIMARY KEY NOT NULL, "of" TEXT, n INTEGER)');
    return new Bench(seed, store, database);
  }

  async close(): Promise<void> {
    this.#database.close();
    await this.#store.close();
  }

  async next(index: number, report: WriteReport): Promise<void> {
    const made = new Maker(new Choices(this.#seed, index)).statement();
    // A statement begins where the one before has ended.
    this.#store.clock.wallNs += 1_000_000n;
    report.statements++;
    report.forms.set(made.form, (report.forms.get(made.form) ?? 0) + 1);
    const [ours, theirs] = [await this.#ours(made.ours), this.#theirs(made.theirs)];
    if (typeof ours === 'string') report.refused++;
    const why = typeof ours === 'string' || typeof theirs === 'string' ? this.#refusals(ours, theirs) : different(ours, theirs);
    const stands = why ?? (await this.#standsAlike(report));
    if (stands !== null) report.mismatches.push({ world: this.#seed, index, ours: made.ours, theirs: made.theirs, why: stands });
  }

  #refusals(ours: Cell[][] | string, theirs: Cell[][] | string): string | null {
    if (typeof ours === 'string' && typeof theirs === 'string') return null;
    return `ours: ${shown(ours)}; theirs: ${shown(theirs)}`;
  }

  async #ours(sql: string): Promise<Cell[][] | string> {
    try {
      return rowsOf((await this.#store.execute(sql)).answer).map((row) => Object.values(row));
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'REL_CONFLICT') return `${error.code} ${error.message}`;
      throw new Error(`${sql}: ${String(error)}`, { cause: error });
    }
  }

  #theirs(sql: string): Cell[][] | string {
    try {
      const run = this.#database.exec.bind(this.#database) as unknown as Exec;
      return run(sql, undefined, { useBigInt: true })[0]?.values ?? [];
    } catch (error) {
      return String(error);
    }
  }

  async #standsAlike(report: WriteReport): Promise<string | null> {
    for (const sql of ['SELECT sku, name, n, x FROM Item', 'SELECT sku, "of", n FROM Part']) {
      const ours = (await this.#store.rows(`${sql} AS OF CURRENT`)).map((row) => Object.values(row));
      report.rows += ours.length;
      const why = different(ours, this.#theirs(sql) as Cell[][]);
      if (why !== null) return `afterwards: ${why}`;
    }
    return null;
  }
}

function different(ours: Cell[][], theirs: Cell[][]): string | null {
  const [a, b] = [ours, theirs].map((rows) => rows.map((row) => row.map(canonical).join()).sort());
  return a!.join('\n') === b!.join('\n') ? null : `ours\n${a!.join('\n')}\ntheirs\n${b!.join('\n')}`;
}

function canonical(cell: Cell): string {
  if (typeof cell === 'boolean') return cell ? '1' : '0';
  return cell === null ? 'NULL' : typeof cell === 'string' ? JSON.stringify(cell) : String(Number(cell));
}

function shown(answer: Cell[][] | string): string {
  return typeof answer === 'string' ? answer : `${answer.length} rows`;
}

interface Made {
  readonly form: string;
  readonly ours: string;
  readonly theirs: string;
}

const skus = 'abcdefghij'.split('');

/** Statements that mean the same in both; expressions are total, and small enough for 64 bits however often they are applied. */
class Maker {
  readonly #choices: Choices;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  statement(): Made {
    const form = this.#choices.weighted({ insert: 3, select: 2, nothing: 2, upsert: 3, update: 4, from: 3, delete: 2, using: 1 });
    const table = this.#choices.chance(65) ? 'Item' : 'Part';
    switch (form) {
      case 'insert':
        return this.#alike(
          form,
          `INSERT INTO ${table} (${this.#columns(table).join(', ')}) ${this.#values(table, false)}${this.#returning(table)}`,
        );
      case 'select':
        return this.#alike(
          form,
          `INSERT INTO ${table} (${this.#columns(table).join(', ')}) ${this.#query(table)}${this.#returning(table)}`,
        );
      case 'nothing': {
        const source = this.#choices.chance(50) ? this.#values(table, true) : this.#query(table);
        const target = this.#choices.chance(50) ? ' (sku)' : '';
        return this.#alike(
          form,
          `INSERT INTO ${table} (${this.#columns(table).join(', ')}) ${source} ON CONFLICT${target} DO NOTHING${this.#returning(table)}`,
        );
      }
      case 'upsert':
        return this.#upsert(table);
      case 'update':
        return this.#alike(form, `UPDATE ${table} SET ${this.#set(table, table)}${this.#where(table)}${this.#returning(table)}`);
      case 'from':
        return this.#updateFrom();
      case 'delete':
        return this.#alike(form, `DELETE FROM ${table}${this.#where(table)}${this.#returning(table)}`);
      case 'using':
        return this.#deleteUsing();
    }
  }

  #alike(form: string, sql: string): Made {
    return { form, ours: sql, theirs: sql };
  }

  #upsert(table: string): Made {
    const source = this.#choices.chance(60) ? this.#values(table, false) : this.#query(table);
    const set = this.#unread(table, () => this.#set(table, table, 'EXCLUDED'));
    const where = this.#choices.chance(40) ? ` WHERE ${this.#unread(table, () => this.#condition(table))}` : '';
    const head = `INSERT INTO ${table} (${this.#columns(table).join(', ')}) ${source}`;
    return this.#alike('upsert', `${head} ON CONFLICT (sku) DO UPDATE SET ${set}${where}${this.#returning(table)}`);
  }

  /** Without questions of the table that is written: SQLite counts rows that the statement has inserted by then. */
  #unread(table: string, make: () => string): string {
    for (;;) {
      const made = make();
      if (!made.includes(`FROM ${table} `)) return made;
    }
  }

  /** Joined by keys, or to groups: each row meets one at most. */
  #updateFrom(): Made {
    const grouped = this.#choices.chance(50);
    const beside = grouped ? '(SELECT "of" AS k, COUNT(*) AS c, MAX(n) AS m FROM Part GROUP BY "of") p' : 'Part p';
    const joined = grouped ? 'p.k = Item.sku' : 'p.sku = Item.sku';
    const value = grouped
      ? this.#choices.of(['p.c', 'p.m', 'Item.n + p.c'])
      : this.#choices.of(['p.n', 'Item.n - p.n', 'COALESCE(p.n, 0)']);
    const also = this.#choices.chance(50) ? `, name = ${grouped ? "Item.name || 'f'" : 'p."of"'}` : '';
    const more = this.#choices.chance(50) ? ` AND ${this.#condition('Item')}` : '';
    const returning = this.#choices.chance(60) ? ` RETURNING Item.sku, Item.n, ${grouped ? 'p.c' : 'p.n'}` : '';
    const text = `UPDATE Item SET n = ${this.#bounded(value)}${also} FROM ${beside} WHERE ${joined}${more}`;
    // SQLite can't return columns of the tables beside.
    if (returning === '') return this.#alike('from', text);
    return { form: 'from', ours: `${text} RETURNING Item.sku, Item.n`, theirs: `${text} RETURNING sku, n` };
  }

  #deleteUsing(): Made {
    const more = this.#choices.chance(50) ? ` AND ${this.#condition('Item')}` : '';
    const returning = this.#choices.chance(60) ? ' RETURNING Item.sku, Item.n' : '';
    return {
      form: 'using',
      ours: `DELETE FROM Item USING Part p WHERE p."of" = Item.sku AND p.n > 0${more}${returning}`,
      theirs: `DELETE FROM Item WHERE EXISTS (SELECT 1 FROM Part p WHERE p."of" = Item.sku AND p.n > 0)${more}${returning.replaceAll('Item.', '')}`,
    };
  }

  #columns(table: string): readonly string[] {
    return table === 'Item' ? ['sku', 'name', 'n', 'x'] : ['sku', '"of"', 'n'];
  }

  /** Keys differ, unless some may be there twice. */
  #values(table: string, mayRepeat: boolean): string {
    const keys = this.#choices.shuffled(skus).slice(0, this.#choices.between(1, 3));
    const taken = mayRepeat && this.#choices.chance(30) ? [...keys, keys[0]!] : keys;
    const rows = taken.map((key) => {
      const rest = table === 'Item' ? [this.#text(), this.#integer(), this.#number()] : [this.#text(), this.#integer()];
      return `('${key}', ${rest.join(', ')})`;
    });
    return `VALUES ${rows.join(', ')}`;
  }

  /** Rows of distinct keys. SQLite wants a WHERE in front of ON CONFLICT. */
  #query(table: string): string {
    const key = this.#choices.of(["'a'", 'sku', "'z' || sku", "sku || '2'"]);
    const from = this.#choices.of(['Item', 'Part']);
    const rest = table === 'Item' ? [from === 'Item' ? 'name' : '"of"', this.#sum(from), '1.5'] : ["'q'", this.#sum(from)];
    const one = key === "'a'" ? `sku = '${this.#choices.of(skus)}'` : 'LENGTH(sku) < 3';
    const where = ` WHERE ${one}${this.#choices.chance(70) ? ` AND ${this.#condition(from)}` : ''}`;
    return `SELECT ${[key, ...rest].join(', ')} FROM ${from}${where}`;
  }

  #set(table: string, of: string, other?: string): string {
    const text = table === 'Item' ? 'name' : '"of"';
    const choices = [
      `n = ${this.#sum(of)}`,
      `${text} = ${this.#choices.of([`UPPER(${of}.${text})`, `COALESCE(${of}.${text}, '') || 'v'`, this.#text(), 'NULL'])}`,
      ...(table === 'Item' ? [`x = ${this.#choices.of([`${of}.n`, `${of}.x + 0.5`, 'NULL'])}`] : []),
    ];
    const set = this.#choices.shuffled(choices).slice(0, this.#choices.between(1, choices.length));
    if (other === undefined) return set.map((each) => this.#short(each)).join(', ');
    return set
      .map((each) =>
        this.#choices.chance(40) && each.startsWith('n =') ? `n = ${this.#bounded(`${of}.n + ${other}.n`)}` : this.#short(each),
      )
      .join(', ');
  }

  /** Texts that grow are cut. */
  #short(assignment: string): string {
    const [column, ...value] = assignment.split(' = ');
    return column === 'name' || column === '"of"'
      ? `${column} = SUBSTR(${value.join(' = ')}, 1, 6)`.replace('SUBSTR(', 'SUBSTRING(')
      : assignment;
  }

  #sum(of: string): string {
    return this.#bounded(
      this.#choices.of([
        `${of}.n + 1`,
        `${of}.n * 2`,
        this.#integer(),
        // Of the other table: SQLite counts rows that the statement has changed by then.
        of === 'Part'
          ? '(SELECT COUNT(*) FROM Item q WHERE q.name = Part.sku)'
          : `(SELECT COUNT(*) FROM Part q WHERE q."of" = ${of}.sku)`,
        '(SELECT MAX(n) FROM Item i)',
        `CASE WHEN ${of}.n IS NULL THEN 0 ELSE ${of}.n - 3 END`,
      ]),
    );
  }

  #bounded(value: string): string {
    return `(${value}) % 1000`;
  }

  #where(table: string): string {
    return this.#choices.chance(80) ? ` WHERE ${this.#condition(table)}` : '';
  }

  #condition(table: string): string {
    const one = (): string =>
      this.#choices.of([
        `${table}.sku = '${this.#choices.of(skus)}'`,
        `${table}.sku > '${this.#choices.of(skus)}'`,
        `${table}.n > ${this.#choices.between(-3, 9)}`,
        `${table}.n IS NULL`,
        `${table}.sku IN ('${this.#choices.shuffled(skus).slice(0, 3).join("', '")}')`,
        `${table}.sku IN (SELECT q."of" FROM Part q WHERE q.n > 2)`,
        `NOT EXISTS (SELECT 1 FROM Part q WHERE q."of" = ${table}.sku)`,
        `${table}.n >= (SELECT MIN(i.n) FROM Item i)`,
      ]);
    return this.#choices.chance(30) ? `(${one()} ${this.#choices.of(['AND', 'OR'])} ${one()})` : one();
  }

  #returning(table: string): string {
    if (this.#choices.chance(50)) return '';
    return ` RETURNING ${this.#choices.of(['sku', 'sku, n', 'sku, n + 1 AS m, n IS NULL AS z', `sku, ${table === 'Item' ? 'x, UPPER(name) AS u' : '"of" AS o'}`])}`;
  }

  #text(): string {
    return this.#choices.of(["'a'", "'b'", "'word'", "'O''Neil'", 'NULL', "''"]);
  }

  #integer(): string {
    return this.#choices.of(['0', '1', '-2', '7', '12', 'NULL']);
  }

  #number(): string {
    return this.#choices.of(['0.5', '-1.25', '3', 'NULL']);
  }
}
