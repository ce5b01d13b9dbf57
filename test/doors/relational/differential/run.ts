/**
 * Parameters of every type in every position, lists of them, what is written with them, and statements that are wrong, put to this
 * store and to a PostgreSQL 15 that is started for it.
 *
 *   npm run wire:diff -- --n 100000 [--seed 1]
 *   npm run wire:diff -- --shapes 5000 [--seed 1]     random statements of each shape of `shapes.ts` instead
 */
import { parseArgs } from 'node:util';
import { StoreWorld } from '../../http/store-world.ts';
import { RawClient, simple } from '../raw-client.ts';
import { relationalSecret } from '../relational-client.ts';
import { isSame, outcomes, randomFrom, shown } from './ask.ts';
import { caseOf } from './cases.ts';
import { explained } from './explained.ts';
import { startPostgres } from './postgres.ts';
import { shapeDifferences } from './shape-run.ts';
import { explainedState, grounds, statesOf, wrong } from './wrong.ts';

const { values: options } = parseArgs({
  options: { n: { type: 'string' }, shapes: { type: 'string' }, seed: { type: 'string', default: '1' } },
});
const total = Number(options.n ?? (options.shapes === undefined ? 100_000 : 0));
/** Cases of one round trip. */
const together = 500;

const peer = await startPostgres(relationalSecret);
if (peer === null) {
  console.error('PostgreSQL 15 is not installed: apt-get install postgresql-15');
  process.exit(1);
}
const counts = new Map<string, number>();
const faults = new Map<string, { count: number; example: string }>();
let world: StoreWorld | null = null;
let clients: RawClient[] = [];
try {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  const ourPort = world.others.find(({ name }) => name === 'relational')!.port;
  clients = await Promise.all([ourPort, peer.port].map((port) => RawClient.ready(port, relationalSecret)));
  const [ours, theirs] = clients as [RawClient, RawClient];
  for (const client of clients) {
    await client.ask(simple('CREATE TABLE v (id int8 PRIMARY KEY, n int8, x float8, s text, b bool, ts timestamptz)'));
    await client.ask(
      simple(`INSERT INTO v VALUES (1, 10, 1.5, 'a', true, '2024-05-01 10:00:00+00'), (2, -7, -0.25, 'b', false, '1999-12-31 00:00:00+00'),
      (3, NULL, NULL, NULL, NULL, NULL), (4, 1, 10, '10', true, '2024-05-01 00:00:00+00'), (5, 0, 0, '', false, '2100-01-01 00:00:00+00')`),
    );
  }

  await shapeDifferences(ours, theirs, { count: Number(options.shapes ?? 0), seed: Number(options.seed) }, faults);

  const rows = [
    'DELETE FROM stored',
    "INSERT INTO stored (id, u) VALUES (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (2, NULL), (3, NULL)",
  ];
  for (const client of clients) {
    await client.ask(
      simple('CREATE TABLE stored (id int8 PRIMARY KEY, n int8, x float8, s text, b bool, ts timestamptz, j json, u uuid)'),
    );
  }
  for (const client of clients) for (const ground of grounds) await client.ask(simple(ground));
  const mistakes = options.shapes === undefined ? wrong : [];
  const [mineWrong, rightWrong] = await Promise.all([statesOf(ours, mistakes), statesOf(theirs, mistakes)]);
  mistakes.forEach((statement, i) => {
    const [mine, right] = [mineWrong[i]!, rightWrong[i]!];
    if (mine === right) return;
    const reason = explainedState(statement, mine, right);
    if (reason !== null) return void counts.set(reason, (counts.get(reason) ?? 0) + 1);
    faults.set(statement, { count: 1, example: `${mine ?? 'answered'} for ${right ?? 'answered'}` });
  });

  const random = randomFrom(Number(options.seed));
  for (let done = 0; done < total; done += together) {
    // What one of them took and the other refused is no reason for more.
    for (const client of clients) for (const row of rows) await client.ask(simple(row));
    const cases = Array.from({ length: Math.min(together, total - done) }, () => caseOf(random));
    const [mine, right] = await Promise.all([outcomes(ours, cases), outcomes(theirs, cases)]);
    cases.forEach((asked, i) => {
      if (isSame(mine[i]!, right[i]!)) return;
      const reason = explained(asked, mine[i]!, right[i]!);
      if (reason !== null) return void counts.set(reason, (counts.get(reason) ?? 0) + 1);
      const { type, isStated } = asked.parameters[0]!;
      const key = `${asked.sql} | ${isStated ? type : `${type} as text`} | ${mine[i]!.error ?? 'rows'} for ${right[i]!.error ?? 'rows'}`;
      const known = faults.get(key);
      const example = `${asked.parameters.map(({ text }) => text).join(', ')}: ${shown(mine[i]!)} for ${shown(right[i]!)}`;
      faults.set(key, { count: (known?.count ?? 0) + 1, example: known?.example ?? example });
    });
  }
} finally {
  peer.stop();
  for (const client of clients) client.close();
  await world?.close();
}
for (const [reason, count] of counts) console.log(`${count} explained: ${reason}`);
for (const [key, { count, example }] of faults) console.log(`${count} × ${key}\n    ${example}`);
const unexplained = [...faults.values()].reduce((sum, { count }) => sum + count, 0);
console.log(`${total} cases, ${wrong.length} wrong statements, ${unexplained} unexplained (seed ${options.seed})`);
process.exitCode = unexplained === 0 ? 0 : 1;
