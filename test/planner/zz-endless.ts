import { FakeStore } from './fake-snapshot.ts';
import { Planner } from '../../src/planner/planner.ts';
import { systemClock } from '../../src/clock.ts';
const rows = Array.from({ length: 300000 }, (_, i) => ({ a: BigInt(i), b: i / 2, c: 'x'.repeat(30) + (i % 1000), d: BigInt(i % 7) }));
const store = new FakeStore([{ name: 'T', properties: { a: 'integer', b: 'number', c: 'string', d: 'integer' }, rows, blockRows: 65536, segmentRows: 65536 }]);
const cases: Record<string, string> = {
  crossRows: 'SELECT x.c, y.c FROM T x JOIN T y ON 1 = 1',
  crossSort: 'SELECT x.c, y.c FROM T x JOIN T y ON 1 = 1 ORDER BY y.c, x.c LIMIT 10',
  skew: 'SELECT COUNT(*) FROM T x JOIN T y ON x.d = y.d',
  endless2: "WITH RECURSIVE n(i) AS (SELECT 1 FROM T WHERE a < 3 UNION ALL SELECT x.i + 1 FROM n x JOIN n y ON 1 = 1) SELECT COUNT(*) FROM n",
  endless3: "WITH RECURSIVE n(i) AS (SELECT a FROM T WHERE a < 3 UNION SELECT i + 1 FROM n JOIN T ON T.a = n.i) SELECT COUNT(*) FROM n",
  in: 'SELECT COUNT(*) FROM T WHERE a IN (SELECT a FROM T WHERE a > 10)',
  distinct: 'SELECT COUNT(*) FROM (SELECT DISTINCT a, c FROM T)',
  sort: 'SELECT a FROM T ORDER BY c, a DESC LIMIT 3',
};
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
for (const [name, sql] of Object.entries(cases)) {
  if (process.argv[2] && process.argv[2] !== name) continue;
  let longest = 0, last = 0, turns = 0;
  const planner = new Planner({ clock: systemClock, limits: { timeoutMs: 6000 }, yieldTurn: () => new Promise((r) => { turns++; longest = Math.max(longest, cpu() - last); setImmediate(() => { last = cpu(); r(); }); }) });
  last = cpu(); const t = last; let note = '';
  await planner.query(store.invocation(), { sql }).then((a) => { note = `${a.rowCount} rows`; }, (e) => { note = `${e.code} ${e.message}`.slice(0, 90); });
  longest = Math.max(longest, cpu() - last);
  console.log(name.padEnd(10), `longest cpu ${longest.toFixed(0)} total cpu ${(cpu() - t).toFixed(0)} turns ${turns} ${note}`);
}
