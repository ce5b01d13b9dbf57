/** How long a transaction may be left alone, and how much its record says. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AccessRecord } from '../../../src/log/entries/entry.ts';
import { TestStore } from '../../harness.ts';
import { bob, refused, Teller } from './world.ts';

let store: TestStore;
beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Account', { id: 'string', balance: 'integer' }, 'id');
});
afterAll(() => store.close());

const put = (teller: Teller, id: string) => teller.run('INSERT INTO Account (id, balance) VALUES ($1, 1)', id);

test('one that is left alone is over after a minute, and lets go of what it held though nobody asks for it', async () => {
  const { gate } = store.service;
  const [idle, busy] = [new Teller(store), new Teller(store, bob)];
  await put(idle, 'a');
  await put(busy, 'b');
  store.clock.steadyMs += 40_000;
  await put(busy, 'c');
  store.clock.steadyMs += 20_001;
  gate.endIdle();
  expect(gate.transactions()).toEqual([busy.transaction]);
  expect(idle.transaction.pinnedBytes).toBe(0);
  expect(await refused(put(idle, 'd'))).toBe('REL_TIMEOUT');
  expect(await refused(idle.commit())).toBe('REL_TIMEOUT');
  expect((await busy.commit())?.accepted).toBe(2);
});

async function newest(): Promise<AccessRecord> {
  let found: AccessRecord | undefined;
  for await (const { body } of store.service.store.log.read(0)) if (body.kind === 'access') found = body.records.at(-1);
  return found!;
}

test('the record of a commit names 255 statements, and holds one digest of all others', async () => {
  const digests: (string | null)[] = [];
  for (const last of ['x', 'y']) {
    const teller = new Teller(store);
    for (let i = 0; i < 259; i++) await put(teller, `${last}${i}`);
    await put(teller, last);
    await teller.commit();
    const { template, statements } = await newest();
    expect(template).toBe('COMMIT');
    expect(statements).toHaveLength(256);
    expect(statements![254]!.template).toMatch(/^INSERT INTO Account/);
    expect(statements![255]!.template).toBe('5 more statements');
    digests.push(statements![255]!.literalDigest);
  }
  expect(digests[0]).not.toBeNull();
  expect(digests[0]).not.toBe(digests[1]);
});
