/**
 * What policies cost, through the gate and the planner in this process, for `measures/governance.ts`: the same aggregate and
 * the same point read without policies and under a hundred rules, in turn; a change of them; decisions alone. Arguments: data
 * directory, rows, runs. Prints one line of JSON.
 */
import { Grants } from '../src/governance/authorization/grants.ts';
import { Judge } from '../src/governance/authorization/judge.ts';
import type { Caller } from '../src/governance/caller.ts';
import type { Action, Invocation } from '../src/governance/gate-contract.ts';
import { VectorBuilder } from '../src/log/values/vector-builder.ts';
import type { Answer } from '../src/planner/planner-contract.ts';
import { caller, openDurable, putInto } from './durable-store.ts';
import { scramble, versions } from './workload.ts';

export interface Governance {
  /** ms each, and µs of one of many. */
  readonly aggregate: { readonly open: number[]; readonly ruled: number[] };
  readonly read: { readonly open: number[]; readonly ruled: number[] };
  /** s from a changed rule to the aggregate's answer under it. */
  readonly primed: number[];
  readonly decisions: number[];
}

const batchRows = 65_536;
const readsEach = 3_000;
const decisionsEach = 100_000;
const [directory, rows, runs] = [process.argv[2]!, Number(process.argv[3]), Number(process.argv[4])];

const service = await openDurable(directory);
const analyst: Caller = { ...caller, credential: 'token', path: 'acme', roles: ['analyst'] };
const admin: Caller = { ...caller, credential: 'admin' };

function invoke<T>(who: Caller, action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> {
  return service.gate.invoke(who, { action, purpose: 'analytics', correlationId: service.ids.next() }, run);
}

const ask = (sql: string): Promise<Answer> =>
  invoke(analyst, 'query', (invocation) => service.planner.query(invocation, { sql }));

await fill();
const aggregate =
  'SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM Version AS OF CURRENT WHERE quantity < 25 GROUP BY category';
const pointRead = (n: number): string => `SELECT * FROM Version WHERE _pk = 'k${scramble(n) % rows}'`;
const found: Governance = {
  aggregate: { open: [], ruled: [] },
  read: { open: [], ruled: [] },
  primed: [],
  decisions: [],
};
for (let run = 0; run < runs + 1; run++) {
  // The first run makes all that is made once.
  const kept = run > 0;
  for (const kind of ['open', 'ruled'] as const) {
    await install(kind === 'open' ? null : 0);
    await ask(aggregate);
    const ms = await timed(() => ask(aggregate));
    const readMs = await timed(async () => {
      for (let n = 0; n < readsEach; n++) {
        const { rowCount } = await ask(pointRead(n));
        if (rowCount > 1) throw new Error('a key has one version');
      }
    });
    if (!kept) continue;
    found.aggregate[kind].push(ms);
    found.read[kind].push((readMs * 1000) / readsEach);
  }
  const began = performance.now();
  await install(run + 1);
  await ask(aggregate);
  if (kept) {
    found.primed.push((performance.now() - began) / 1000);
    found.decisions.push(decisions());
  }
}
await service.close();
console.log(JSON.stringify(found));
process.exit(0);

/** A hundred rules with conditions on rows, of which `n` tells one from those of another number; null: none. */
async function install(n: number | null): Promise<void> {
  if (n === null) {
    const known = service.store.projections.policies.current.policies.map(({ id }) => id);
    for (const id of known) await invoke(admin, 'administer', (invocation) => invocation.submit({ kind: 'delete-policy', id }));
    return;
  }
  // Nearly all rows pass: what is measured is what rules cost, not how few rows are left.
  const rules = Array.from({ length: 50 }, (_, i) => [
    `permit(principal in Role::"analyst", action, resource is Version) when { resource.category == "c${i}" || resource.quantity >= ${i} };`,
    `forbid(principal, action, resource is Version) when { resource.quantity == ${i} && resource.day <= ${n} };`,
  ]);
  const text = rules.flat().join('\n');
  await invoke(admin, 'administer', (invocation) => invocation.submit({ kind: 'put-policy', id: 'rules', text }));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Whether a type may be read, and what of it: a second's worth, of many callers. */
function decisions(): number {
  const { policies, branches, catalog, tenants } = service.store.projections;
  const judge = new Judge({ policies, branches, catalog, clock: service.clock, rules: [] });
  const grants = new Grants(judge.policies, tenants);
  const type = catalog.catalogOn(0, null).type('Version')!;
  const stated = { purpose: 'analytics', breakGlass: null, accessScopeRef: null };
  const callers = Array.from({ length: 100 }, (_, i): Caller => ({ ...analyst, principal: `p${i}` }));
  const decide = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const asking = callers[i % callers.length]!;
      const { allowed } = judge.decide(
        { caller: asking, action: 'query', ...stated },
        { action: 'query', objectType: 'Version' },
      );
      const grant = grants.grantFor({ caller: asking, action: 'query', stated, now: service.clock.now() }).grantFor(type);
      if (!allowed || !grant.allowed) throw new Error('the rules let analysts read');
    }
  };
  decide(callers.length);
  const began = performance.now();
  decide(decisionsEach);
  return (decisionsEach / (performance.now() - began)) * 1000;
}

async function fill(): Promise<void> {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const properties = Object.fromEntries(
    Object.entries(versions.properties).map(([name, { type }]) => [name, { ...plain, type: type as 'string' }]),
  );
  await invoke(analyst, 'schema', (invocation) =>
    invocation.submit({ kind: 'register-type', name: 'Version', properties, primaryKey: 'id', graphTriggers: [] }),
  );
  for (let first = 0; first < rows; first += batchRows) {
    const length = Math.min(batchRows, rows - first);
    const id = new VectorBuilder('string', length);
    const category = new VectorBuilder('string', length);
    const amount = new VectorBuilder('number', length);
    const quantity = new VectorBuilder('integer', length);
    const day = new VectorBuilder('integer', length);
    for (let i = first; i < first + length; i++) {
      id.appendString(`k${i}`);
      category.appendString(`c${versions.category(i)}`);
      amount.appendNumber(versions.amount(i));
      quantity.appendInteger(versions.quantity(i));
      day.appendInteger(versions.day(i));
    }
    const columns = [
      { name: 'id', type: 'string', vector: id.build() },
      { name: 'category', type: 'string', vector: category.build() },
      { name: 'amount', type: 'number', vector: amount.build() },
      { name: 'quantity', type: 'integer', vector: quantity.build() },
      { name: 'day', type: 'integer', vector: day.build() },
    ] as const;
    await invoke(analyst, 'ingest', (invocation) => invocation.submit(putInto('Version', { length, columns })));
  }
}
