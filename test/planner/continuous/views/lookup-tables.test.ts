/** Lookup tables under a clock that the test moves: what a refresh does, and what it leaves alone. */
import { expect, test } from 'vitest';
import { ServiceError } from '../../../../src/errors.ts';
import { LookupTables } from '../../../../src/planner/continuous/views/lookup-tables.ts';
import { SteppingClock } from '../stepping-clock.ts';

const definition = { name: 't', path: 't.csv', key: 'k', fields: ['v'], refreshMinutes: 5 };

test('a refresh replaces the table whole; one that fails leaves it, and the listing says why until one succeeds', async () => {
  const clock = new SteppingClock();
  let text: string | null = 'k,v\n1,a\n2,b\n';
  const files = {
    read: async (): Promise<Uint8Array> => {
      if (text === null) throw new ServiceError('REL_INVALID', 'it is gone');
      return Buffer.from(text);
    },
  };
  const tables = new LookupTables({ files, clock });
  await tables.register(definition, 'acme');
  const table = tables.table('acme', 't')!;
  const seen = (): unknown[] => [table.value('v', '1'), table.value('v', 2n), table.value('v', '3'), table.value('v', null)];
  expect(seen()).toEqual(['a', 'b', null, null]);

  text = 'k,v\n1,z\n3,c\n';
  await clock.pass(299_999);
  expect(seen()).toEqual(['a', 'b', null, null]);
  await clock.pass(1);
  expect(seen()).toEqual(['z', null, 'c', null]);

  for (const [wrong, why] of [
    ['k,v\n1,q\n1,q\n', 'row 2'],
    [null, 'it is gone'],
  ] as const) {
    text = wrong;
    await clock.pass(300_000);
    expect([seen(), tables.list('acme')[0]!.failure]).toEqual([['z', null, 'c', null], expect.stringContaining(why)]);
  }
  text = 'k,v\n1,end\n';
  await clock.pass(300_000);
  expect([seen()[0], tables.list('acme')[0]!.failure]).toEqual(['end', null]);

  // Registered anew without a refresh: the old one's has ended.
  text = 'k,v\n1,last\n';
  await tables.register({ ...definition, refreshMinutes: null as never }, 'acme');
  text = 'k,v\n1,never\n';
  await clock.pass(300_000);
  expect(tables.table('acme', 't')!.value('v', '1')).toBe('last');
});

test('a table is dropped by its own path: it is read by nobody any more, is not refreshed, and makes room', async () => {
  const clock = new SteppingClock();
  let reads = 0;
  const tables = new LookupTables({ files: { read: async () => (reads++, Buffer.from('k,v\n1,a\n')) }, clock });
  await tables.register(definition, 'acme');
  await tables.register(definition, 'acme/eu');
  const { epoch } = tables;
  const refusal = (name: string, path: string | null): string => {
    try {
      tables.drop(name, path);
    } catch (error) {
      return `${(error as ServiceError).code} ${(error as Error).message}`.replace(JSON.stringify(name), '…');
    }
    return 'dropped';
  };
  for (const path of ['acme/eu/berlin', 'globex', null]) expect(refusal('t', path)).toBe(refusal('none', path));
  expect(refusal('none', null)).toContain('REL_NOT_FOUND');
  expect([refusal('t', 'acme/eu'), tables.epoch]).toEqual(['dropped', epoch + 1]);
  expect([tables.list('acme/eu').length, tables.table('acme/eu', 't')]).toEqual([1, tables.table('acme', 't')]);
  expect(refusal('t', 'acme')).toBe('dropped');
  expect([tables.list('acme/eu'), tables.table('acme/eu', 't')]).toEqual([[], undefined]);
  await clock.pass(300_000);
  expect(reads).toBe(2);
});

test('a tenant has so many tables and no more, and names of its own', async () => {
  const tables = new LookupTables({ files: { read: async () => Buffer.from('k,v\n1,a\n') }, clock: new SteppingClock() });
  for (let i = 0; i < 64; i++) await tables.register({ ...definition, name: `t${i}` }, i % 2 === 0 ? 'acme' : 'acme/eu');
  await expect(tables.register(definition, 'acme/us')).rejects.toMatchObject({ code: 'REL_QUOTA' });
  await tables.register({ ...definition, name: 't0' }, 'acme');
  await tables.register(definition, 'globex');
  for (const wrong of [{ fields: [] }, { fields: ['v', 'v'] }, { name: '' }, { refreshMinutes: 0 }, { refreshMinutes: 1.5 }]) {
    await expect(tables.register({ ...definition, ...wrong }, 'initech')).rejects.toMatchObject({ kind: 'invalid' });
  }
});
