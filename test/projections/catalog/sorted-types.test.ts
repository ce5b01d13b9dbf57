/** The types that a tenant sees, in the order of their names, after any changes: as if all of them were sorted anew. */
import { expect, test } from 'vitest';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import { compareText } from '../../../src/log/values/value.ts';
import { BranchTypes } from '../../../src/projections/catalog/branch-types.ts';
import { Dice } from '../../fuzz/mutate.ts';
import { seedBase } from '../../runner/seed.ts';

test('are those of the store and of the tenant, whoever looks how often', () => {
  const random = new Dice(seedBase);
  let branch = BranchTypes.builtin();
  const tenants = [null, 'a', 'b'];
  const define = (tenant: string | null, name: string): void => {
    const ontologyVersion = branch.readerFor(tenant).ontologyVersion + 1;
    branch.define(tenant, { name, ontologyVersion, properties: {} } as unknown as TypeDefinition);
  };
  const check = (tenant: string | null): void => {
    const all = new Map([...branch.ownOf(null), ...branch.ownOf(tenant)]);
    expect(branch.readerFor(tenant).types()).toEqual([...all.values()].sort((a, b) => compareText(a.name, b.name)));
  };
  for (let i = 0; i < 3_000; i++) {
    const tenant = tenants[random.roll(3)]!;
    if (random.roll(20) === 0) check(tenant);
    else if (random.roll(500) === 0) branch.forget('a');
    else if (random.roll(300) === 0) branch = branch.fork();
    else define(tenant, `T${random.roll(400)}`);
    if (i === 1_500) for (let more = 0; more < 2_500; more++) define('b', `U${more % 300}`);
  }
  for (const tenant of tenants) check(tenant);
});
