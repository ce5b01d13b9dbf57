/** The relational door beside PostgreSQL, by PostgreSQL's own clients: pgbench SELECTs by key, COPY in and out. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { type PostgresTarget, pgbenchOn, psqlOn } from '../peers/postgres.ts';
import { everyCore } from '../processes.ts';
import type { AimName } from '../goals.ts';
import { quotient } from '../report.ts';
import { orderCsv, orders } from '../workload.ts';

const clients = 8;
const secret = 'bench';
const table =
  'id text PRIMARY KEY, customer text, region text, category text, amount double precision, quantity bigint, placed bigint, paid boolean, note text';

export async function relationalDoor(context: BenchContext): Promise<void> {
  const { report, directory, postgres, rows, repeats, seconds, port } = context;
  if (!postgres) {
    console.log('relational-door: PostgreSQL is not installed, so its clients are not');
    return;
  }
  const count = Math.min(rows, 1_000_000);
  const csv = join(directory, 'orders.csv');
  writeFileSync(csv, orders(0, count, orderCsv));
  const script = join(directory, 'select.sql');
  const shape = { unit: 'rows/s', better: 'larger' } as const;
  const found = new Map<string, { ours: number[]; theirs: number[] }>();
  const sample = (name: string, whose: 'ours' | 'theirs', value: number): void => {
    if (!found.has(name)) found.set(name, { ours: [], theirs: [] });
    found.get(name)![whose].push(value);
  };
  // Each is asked for as long again before it is measured: neither is cold.
  const selected = async (target: PostgresTarget, mode: 'simple' | 'prepared'): Promise<number> => {
    const load = { file: script, text: selects(count) };
    await pgbenchOn(target, load, { clients, seconds, mode });
    return pgbenchOn(target, load, { clients, seconds, mode });
  };

  for (const cores of ['one', 'all'] as const) {
    for (let repeat = 0; repeat < repeats; repeat++) {
      const doorPort = port();
      const settings = { SERVICE_BEARER_TOKEN: secret, SERVICE_RELATIONAL_PORT: String(doorPort) };
      const server = await AnnalsServer.start(directory, `relational-${cores}-${repeat}`, port(), { cores, settings });
      const own: PostgresTarget = { port: doorPort, user: 'bench', database: 'annals', password: secret };
      const pinnedTo = cores === 'all' ? everyCore : undefined;
      try {
        await psqlOn(own, `CREATE TABLE orders (${table})`);
        sample(`copy-in-${cores}`, 'ours', count / (await psqlOn(own, `\\copy orders FROM '${csv}' (FORMAT csv)`, pinnedTo)));
        if (cores === 'one') {
          sample('copy-out', 'ours', count / (await psqlOn(own, `\\copy orders TO '/dev/null'`)));
          for (const mode of ['simple', 'prepared'] as const) sample(mode, 'ours', await selected(own, mode));
        }
      } finally {
        await server.stop();
      }
      const peer = async (): Promise<void> => {
        await psqlOn(postgres.target, `DROP TABLE IF EXISTS orders; CREATE TABLE orders (${table}); CHECKPOINT`);
        sample(
          `copy-in-${cores}`,
          'theirs',
          count / (await psqlOn(postgres.target, `\\copy orders FROM '${csv}' (FORMAT csv)`, pinnedTo)),
        );
      };
      if (cores === 'all') await postgres.withEveryCore(peer);
      else {
        await peer();
        await postgres.settle();
        sample('copy-out', 'theirs', count / (await psqlOn(postgres.target, `\\copy orders TO '/dev/null'`)));
        for (const mode of ['simple', 'prepared'] as const) sample(mode, 'theirs', await selected(postgres.target, mode));
      }
    }
  }
  const names: Readonly<Record<string, string>> = {
    simple: `pgbench SELECT by key, ${clients} clients, simple protocol`,
    prepared: `pgbench SELECT by key, ${clients} clients, prepared`,
    'copy-in-one': 'COPY in with a key, server on one core',
    'copy-in-all': 'COPY in with a key, both cores',
    'copy-out': `COPY out of ${count.toLocaleString('en')} rows`,
  };
  for (const [name, { ours, theirs }] of found) {
    const isSelect = name === 'simple' || name === 'prepared';
    const what = { ...shape, unit: isSelect ? 'reads/s' : shape.unit, measure: names[name]! };
    report.add({ ...what, product: 'annals', samples: ours });
    report.add({ ...what, product: 'PostgreSQL', samples: theirs });
    report.figure(`doors.relational-${name}` as AimName, quotient(ours, theirs));
  }
}

const selects = (count: number): string =>
  `\\set n random(0, ${count - 1})\nSELECT * FROM orders WHERE id = 'order-' || lpad(:n::text, 10, '0');`;
