/** Clients that run random transactions over the wire of Postgres, and write down what they did and saw. */
import pg from 'pg';
import type { Seeded } from '../simulation/seeded.ts';
import type { Step, Transacted } from './history.ts';

export const accounts = 12;
export const opening = 100;
/** Lists that are written at a time: as numbers are given out, new ones come in turn, so that none grows long. */
const lists = 8;
const numbersPerList = 50;
const registers = 6;

export const tables = [
  'CREATE TABLE lists (id text PRIMARY KEY, v text)',
  'CREATE TABLE registers (id text PRIMARY KEY, v int8)',
  'CREATE TABLE accounts (id text PRIMARY KEY, balance int8)',
];

/** Fills the tables that `tables` makes, for as many transactions. */
export async function fill(client: pg.Client, transactions: number): Promise<void> {
  const count = lists + Math.ceil((transactions * 5) / numbersPerList);
  await insert(client, 'lists (id, v)', count, (i) => `('l${i}', '')`);
  await insert(client, 'registers (id, v)', registers, (i) => `('r${i}', 0)`);
  await insert(client, 'accounts (id, balance)', accounts, (i) => `('a${i}', ${opening})`);
}

async function insert(client: pg.Client, table: string, count: number, row: (i: number) => string): Promise<void> {
  const rows = Array.from({ length: count }, (_, i) => row(i));
  for (let i = 0; i < count; i += 1_000) await client.query(`INSERT INTO ${table} VALUES ${rows.slice(i, i + 1_000).join(', ')}`);
}

export interface Counts {
  committed: number;
  aborted: number;
  unknown: number;
  /** Refused with 40001 or 40P01, by COMMIT or before it. */
  conflicts: number;
  /** By SQLSTATE and message: what else refused a transaction. */
  readonly refused: Map<string, number>;
  savepoints: number;
}

export const noCounts = (): Counts => ({ committed: 0, aborted: 0, unknown: 0, conflicts: 0, refused: new Map(), savepoints: 0 });

/** Numbers that no two transactions of a run share. */
export class Numbers {
  #last = 0;

  next(): number {
    return ++this.#last;
  }

  /** One of the lists that are written now. */
  list(random: Seeded): string {
    return `l${Math.floor(this.#last / numbersPerList) + random.below(lists)}`;
  }
}

export interface ClientParts {
  readonly number: number;
  readonly random: Seeded;
  readonly numbers: Numbers;
  readonly counts: Counts;
  readonly connect: () => Promise<pg.Client>;
  /** As BEGIN names it. */
  readonly isolation: string;
  /** Says whether one more transaction is wanted, and counts it. */
  readonly more: () => boolean;
  /** Milliseconds. */
  readonly now: () => number;
  readonly put: (transacted: Transacted) => void;
}

/** Runs transactions until no more are wanted, or the connection ends. */
export async function work(parts: ClientParts): Promise<void> {
  let client: pg.Client;
  try {
    client = await parts.connect();
  } catch {
    return;
  }
  let alive = true;
  client.on('error', () => (alive = false));
  client.on('end', () => (alive = false));
  while (alive && parts.more()) if (!(await transact(client, parts))) break;
  await client.end().catch(() => undefined);
}

/** False once the connection is broken. */
async function transact(
  client: pg.Client,
  { random, numbers, counts, number, isolation, now, put }: ClientParts,
): Promise<boolean> {
  const steps: Step[] = [];
  /** What was taken back by ROLLBACK TO: nobody may ever see it. */
  const takenBack: Step[] = [];
  const began = now();
  let committing = false;
  const end = (how: Transacted['end']): void => {
    counts[how]++;
    const ended = now();
    put({ client: number, steps, end: how, began, ended });
    if (takenBack.length > 0) put({ client: number, steps: takenBack, end: 'aborted', began, ended });
  };
  try {
    await client.query(`BEGIN ISOLATION LEVEL ${isolation}${random.chance(0.3) ? ', READ WRITE' : ''}`);
    const length = 1 + random.below(5);
    for (let i = 0; i < length; i++) {
      if (!random.chance(0.1)) await step(client, random, numbers, steps);
      else {
        counts.savepoints++;
        await client.query('SAVEPOINT here');
        const inner: Step[] = [];
        await step(client, random, numbers, inner);
        const keeps = random.chance(0.5);
        await client.query(keeps ? 'RELEASE SAVEPOINT here' : 'ROLLBACK TO SAVEPOINT here');
        if (keeps) steps.push(...inner);
        else takenBack.push(...inner.filter(({ kind }) => kind === 'append' || kind === 'write'));
      }
    }
    if (random.chance(0.08)) {
      await client.query('ROLLBACK');
      end('aborted');
      return true;
    }
    committing = true;
    const { command } = await client.query('COMMIT');
    end(command === 'COMMIT' ? 'committed' : 'aborted');
    return true;
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code === undefined || !/^[0-9A-Z]{5}$/.test(code) || code.startsWith('57P') || code.startsWith('08')) {
      end(committing ? 'unknown' : 'aborted');
      return false;
    }
    if (code === '40001' || code === '40P01') counts.conflicts++;
    else counts.refused.set(`${code} ${message}`, (counts.refused.get(`${code} ${message}`) ?? 0) + 1);
    end('aborted');
    if (committing) return true;
    return client.query('ROLLBACK').then(
      () => true,
      () => false,
    );
  }
}

/** Does one thing, and puts it into `steps`. */
async function step(client: pg.Client, random: Seeded, numbers: Numbers, steps: Step[]): Promise<void> {
  const kind = random.below(10);
  if (kind < 3) return append(client, random, numbers, steps);
  if (kind < 5) {
    const key = numbers.list(random);
    steps.push({ kind: 'list', key, saw: await listOf(client, key, random.chance(0.1)) });
    return;
  }
  if (kind < 7) {
    const key = `r${random.below(registers)}`;
    const { rows } = await client.query<{ v: string }>('SELECT v FROM registers WHERE id = $1', [key]);
    steps.push({ kind: 'read', key, saw: Number(rows[0]?.v) });
    if (random.chance(0.6)) {
      const value = numbers.next();
      await client.query('UPDATE registers SET v = $1 WHERE id = $2', [value, key]);
      steps.push({ kind: 'write', key, value });
    }
    return;
  }
  if (kind < 9) return transfer(client, random);
  // Whole tables: what the transaction itself transferred is in it.
  const { rows } = await client.query<{ id: string; balance: string }>('SELECT id, balance FROM accounts');
  steps.push({ kind: 'balances', saw: new Map(rows.map(({ id, balance }) => [id, Number(balance)])) });
}

async function append(client: pg.Client, random: Seeded, numbers: Numbers, steps: Step[]): Promise<void> {
  const key = numbers.list(random);
  const element = numbers.next();
  await client.query('UPDATE lists SET v = v || $1 WHERE id = $2', [` ${element}`, key]);
  steps.push({ kind: 'append', key, element });
  if (random.chance(0.3)) steps.push({ kind: 'list', key, saw: await listOf(client, key, false) });
}

export async function listOf(client: pg.Client, key: string, locked: boolean): Promise<number[]> {
  const { rows } = await client.query<{ v: string }>(`SELECT v FROM lists WHERE id = $1${locked ? ' FOR UPDATE' : ''}`, [key]);
  return rows[0]!.v.split(' ').filter(Boolean).map(Number);
}

async function transfer(client: pg.Client, random: Seeded): Promise<void> {
  const from = random.below(accounts);
  const to = (from + 1 + random.below(accounts - 1)) % accounts;
  const amount = 1 + random.below(20);
  await client.query('UPDATE accounts SET balance = balance - $1 WHERE id = $2', [amount, `a${from}`]);
  await client.query('UPDATE accounts SET balance = balance + $1 WHERE id = $2', [amount, `a${to}`]);
}

/** What stands when all is over. */
export async function standing(client: pg.Client): Promise<{
  lists: Map<string, number[]>;
  registers: Map<string, number>;
  total: number;
}> {
  const all = await client.query<{ id: string; v: string }>('SELECT id, v FROM lists');
  const values = await client.query<{ id: string; v: string }>('SELECT id, v FROM registers');
  return {
    lists: new Map(all.rows.map(({ id, v }) => [id, v.split(' ').filter(Boolean).map(Number)])),
    registers: new Map(values.rows.map(({ id, v }) => [id, Number(v)])),
    total: accounts * opening,
  };
}
