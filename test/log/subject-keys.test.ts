import { expect, test } from 'vitest';
import { openKeyring } from '../../src/log/keys.ts';
import { MemoryDisk } from '../../src/log/memory-disk.ts';
import { directory, kek, SeededRandom } from './world.ts';

const first = `${directory}/keys/subjects-00`;

async function open(disk: MemoryDisk, seed = 'subjects') {
  await disk.makeDirectory(directory);
  return await openKeyring({ disk, random: new SeededRandom(seed), directory, kek });
}

test('a subject has one key, in this process and in the next', async () => {
  const disk = new MemoryDisk();
  const { subjects } = await open(disk);
  expect(subjects.durable()).toBeNull();
  const made = subjects.sealing('acme', 'ada');
  expect(made.id).toMatch(/^[0-9a-f]{32}$/);
  expect(subjects.sealing('acme', 'ada')).toBe(made);
  expect(subjects.opening(made.id)!.equals(made.key)).toBe(true);
  await subjects.durable();
  expect(subjects.durable()).toBeNull();
  const { subjects: next } = await open(disk, 'next');
  expect(next.sealing('acme', 'ada').id).toBe(made.id);
  expect(next.opening(made.id)!.equals(made.key)).toBe(true);
  expect(next.idsOf('acme', 'ada')).toEqual([made.id]);
  expect(next.durable()).toBeNull();
});

test('tenants, no tenant, and texts that look alike joined, are different subjects', async () => {
  const { subjects } = await open(new MemoryDisk());
  const pairs: [string | null, string][] = [
    ['a', 'b'],
    [null, 'b'],
    ['', 'b'],
    ['b', 'a'],
    ['a', '\0b'],
    [null, 'a\0b'],
    ['-', 'b'],
    [null, ''],
  ];
  expect(new Set(pairs.map(([tenant, subject]) => subjects.sealing(tenant, subject).id)).size).toBe(pairs.length);
});

test('a destroyed key is gone from memory and disk, its subject gets another one, and the ledger says so', async () => {
  const disk = new MemoryDisk();
  const { subjects } = await open(disk);
  const ada = subjects.sealing('acme', 'ada');
  const bob = subjects.sealing('acme', 'bob');
  await subjects.durable();
  await subjects.destroy([ada.id], 'receipt-1');
  expect(subjects.opening(ada.id)).toBeNull();
  expect(subjects.idsOf('acme', 'ada')).toEqual([]);
  const file = Buffer.from((await disk.readFile(first))!);
  await subjects.destroy([ada.id], 'receipt-2');
  expect(Buffer.from((await disk.readFile(first))!).equals(file)).toBe(true);
  const { subjects: next } = await open(disk, 'next');
  expect(next.opening(ada.id)).toBeNull();
  expect(next.destroyed()).toEqual([{ id: ada.id, receipt: 'receipt-1' }]);
  expect(next.opening(bob.id)!.equals(bob.key)).toBe(true);
  expect(next.sealing('acme', 'ada').id).not.toBe(ada.id);
});

test('an id that is neither here nor destroyed is an error', async () => {
  const { subjects } = await open(new MemoryDisk());
  for (const id of ['00'.repeat(16), 'ff'.repeat(16), '', 'ada']) {
    expect(() => subjects.opening(id)).toThrow(expect.objectContaining({ code: 'REL_STORAGE' }));
    await expect(subjects.destroy([id], 'r')).rejects.toMatchObject({ code: 'REL_STORAGE' });
  }
});
