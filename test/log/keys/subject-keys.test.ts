import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { type Keyring, openKeyring } from '../../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { KeyedHash } from '../../../src/log/bytes/sha256.ts';
import { RECORD_BYTES, SHARD_KEYS_MAX } from '../../../src/log/keys/subject-shard.ts';
import { MemorySubjectKeys } from '../memory-subject-keys.ts';
import { RecordingDisk } from '../recording-disk.ts';
import { directory, kek, openLog, rowsDraft, SeededRandom, settle, worldOn } from '../world.ts';

const first = `${directory}/keys/subjects-00`;

async function open(disk: Disk, seed = 'subjects'): Promise<Keyring> {
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
  expect(next.tombstones()).toEqual([{ id: ada.id, receipt: 'receipt-1' }]);
  expect(next.opening(bob.id)!.equals(bob.key)).toBe(true);
  expect(next.sealing('acme', 'ada').id).not.toBe(ada.id);
});

test('the file that held a destroyed key is noise, for whoever still has its bytes', async () => {
  const disk = new MemoryDisk();
  const { subjects } = await open(disk);
  const { id } = subjects.sealing('t', 'ada');
  subjects.sealing('t', 'bob');
  await subjects.durable();
  // Its name will be another file's: this is what lies on the disk of the one before.
  const before = await disk.open(first, 'read');
  const held = Buffer.alloc(await before.size());
  await before.read(held, 0);
  await subjects.destroy([id], 'r');
  const left = Buffer.alloc(held.length);
  await before.read(left, 0);
  expect(left.subarray(20, 80)).toEqual(Buffer.alloc(60));
  const copy = new MemoryDisk();
  for (const name of ['data-keys.json', 'subjects-00']) {
    await copy.makeDirectory(`${directory}/keys`);
    const path = `${directory}/keys/${name}`;
    await copy.replaceFile(path, name === 'subjects-00' ? left : (await disk.readFile(path))!);
  }
  await expect(open(copy, 'copy')).rejects.toMatchObject({ code: 'REL_STORAGE' });
  await copy.replaceFile(first, held);
  expect((await open(copy, 'copy')).subjects.opening(id)).not.toBeNull();
});

test('an id that is neither here nor destroyed is an error', async () => {
  const { subjects } = await open(new MemoryDisk());
  for (const id of ['00'.repeat(16), 'ff'.repeat(16), '', 'ada']) {
    expect(() => subjects.opening(id)).toThrow(expect.objectContaining({ code: 'REL_STORAGE' }));
    await expect(subjects.destroy([id], 'r')).rejects.toMatchObject({ code: 'REL_STORAGE' });
  }
});

test('a subject that was retired gets another key, and what was sealed under the first still opens', async () => {
  const disk = new MemoryDisk();
  const { subjects } = await open(disk);
  const before = subjects.sealing('acme', 'ada');
  subjects.retire([before.id]);
  const after = subjects.sealing('acme', 'ada');
  expect(after.id).not.toBe(before.id);
  expect(subjects.sealing('acme', 'ada').id).toBe(after.id);
  expect(subjects.opening(before.id)!.equals(before.key)).toBe(true);
  expect(subjects.idsOf('acme', 'ada')).toEqual([after.id, before.id]);
  await subjects.durable();
  const { subjects: next } = await open(disk, 'next');
  expect(next.idsOf('acme', 'ada')).toEqual([after.id, before.id]);
  expect(next.sealing('acme', 'ada').id).toBe(after.id);
  await next.destroy([before.id], 'r');
  expect(next.idsOf('acme', 'ada')).toEqual([after.id]);
  await next.destroy([after.id], 'r');
  expect(next.idsOf('acme', 'ada')).toEqual([]);
});

test('a newest key that is destroyed leaves the one before it in place', async () => {
  const { subjects } = await open(new MemoryDisk());
  const before = subjects.sealing(null, 'ada');
  subjects.retire([before.id]);
  const after = subjects.sealing(null, 'ada');
  await subjects.destroy([after.id], 'r');
  expect(subjects.idsOf(null, 'ada')).toEqual([before.id]);
  expect(subjects.sealing(null, 'ada').id).not.toBe(before.id);
});

test('all keys that wait share one write and one fsync, and those that come meanwhile the next', async () => {
  const disk = new RecordingDisk();
  const { subjects } = await open(disk);
  subjects.sealing('acme', 'first');
  await subjects.durable();
  disk.take();
  for (let i = 0; i < 100; i++) subjects.sealing('acme', `s${i}`);
  const waiting = subjects.durable();
  expect(subjects.durable()).toBe(waiting);
  await Promise.resolve();
  subjects.sealing('acme', 'late');
  const late = subjects.durable();
  expect(late).not.toBe(waiting);
  await Promise.all([waiting, late]);
  expect(disk.take().filter((step) => step.startsWith('fsync'))).toHaveLength(2);
});

test('thousands of subjects over several files, and erasures in all of them, are the same after a restart', async () => {
  const disk = new MemoryDisk();
  const { subjects } = await open(disk);
  const made = Array.from({ length: 3 * SHARD_KEYS_MAX + 7 }, (_, i) => subjects.sealing('t', `subject ${i}`));
  await subjects.durable();
  const names = (await disk.list(`${directory}/keys`)).filter((name) => name.startsWith('subjects-'));
  expect(names).toEqual(['subjects-00', 'subjects-01', 'subjects-02', 'subjects-03']);
  expect(await disk.size(first)).toBeLessThan(SHARD_KEYS_MAX * RECORD_BYTES + 300);
  const gone = made.filter((_, i) => i % 1000 === 3);
  await subjects.destroy(
    gone.map(({ id }) => id),
    'many',
  );
  const { subjects: next } = await open(disk, 'next');
  expect(next.tombstones()).toHaveLength(gone.length);
  for (const [i, { id, key }] of made.entries()) {
    const found = next.opening(id);
    if (i % 1000 === 3) expect(found).toBeNull();
    else if (!found?.equals(key)) expect.fail(`key ${i} is another`);
  }
  expect(next.sealing('t', 'subject 5').id).toBe(made[5]!.id);
  next.sealing('t', 'one more');
  await next.durable();
  expect(await disk.list(`${directory}/keys`)).toContain('subjects-03');
});

describe('a damaged file', () => {
  async function written(): Promise<{ disk: MemoryDisk; ids: string[]; bytes: Buffer }> {
    const disk = new MemoryDisk();
    const keyring = await open(disk);
    const { subjects } = keyring;
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      ids.push(subjects.sealing('t', name).id);
      await subjects.durable();
    }
    await subjects.destroy([ids[1]!], 'receipt');
    ids.push(subjects.sealing('t', 'd').id);
    await subjects.durable();
    await keyring.close();
    return { disk, ids, bytes: Buffer.from((await disk.readFile(first))!) };
  }

  const refusal = async (disk: MemoryDisk): Promise<ServiceError | null> =>
    await open(disk, 'again').then(
      () => null,
      (error: unknown) => error as ServiceError,
    );

  test('is refused for a changed bit in any byte that anything vouches for', async () => {
    const { disk, bytes } = await written();
    const mark = bytes.length - 56;
    for (let at = 0; at < mark; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1 << (at % 8);
      await disk.replaceFile(first, changed);
      expect(await refusal(disk), `byte ${at}`).toMatchObject({ code: 'REL_STORAGE' });
    }
  });

  test('is refused where its end is gone and a file was begun after it', async () => {
    const disk = new MemoryDisk();
    const { subjects } = await open(disk);
    for (let i = 0; i <= SHARD_KEYS_MAX; i++) subjects.sealing('t', `s${i}`);
    await subjects.durable();
    const bytes = Buffer.from((await disk.readFile(first))!);
    await disk.replaceFile(first, bytes.subarray(0, bytes.length - 60));
    expect(await refusal(disk)).toMatchObject({ code: 'REL_STORAGE', message: expect.stringContaining('subjects-00') });
  });

  test('is refused where one is missing among others, or lies under another name', async () => {
    const disk = new MemoryDisk();
    const { subjects } = await open(disk);
    for (let i = 0; i <= SHARD_KEYS_MAX; i++) subjects.sealing('t', `s${i}`);
    await subjects.durable();
    await disk.rename(first, `${directory}/kept`);
    expect(await refusal(disk)).toMatchObject({ message: expect.stringContaining('subjects-00 is missing') });
    await disk.rename(`${directory}/keys/subjects-01`, first);
    expect(await refusal(disk)).toMatchObject({ message: expect.stringContaining('another name') });
  });

  test('with an end that was torn before it was acknowledged opens, and is whole again once something is written', async () => {
    const { disk, ids, bytes } = await written();
    // A block that was being written when the power went takes the place of the mark.
    const torn = Buffer.concat([
      bytes.subarray(0, bytes.length - 56),
      bytes.subarray(bytes.length - 56 - 120, bytes.length - 90),
    ]);
    await disk.replaceFile(first, torn);
    const { subjects } = await open(disk, 'again');
    expect(Buffer.from((await disk.readFile(first))!).equals(torn)).toBe(true);
    expect(subjects.opening(ids[3]!)).not.toBeNull();
    expect(subjects.opening(ids[1]!)).toBeNull();
    const more = subjects.sealing('t', 'e');
    await subjects.durable();
    const { subjects: last } = await open(disk, 'last');
    expect(last.durable()).toBeNull();
    for (const id of [ids[0]!, ids[2]!, ids[3]!, more.id]) expect(last.opening(id)).not.toBeNull();
  });

  test('that ends with a block of another place holds no key twice', async () => {
    const disk = new MemoryDisk();
    const keyring = await open(disk);
    const made = ['a', 'b'].map((name) => keyring.subjects.sealing('t', name).id);
    await keyring.subjects.durable();
    const bytes = Buffer.from((await disk.readFile(first))!);
    const block = bytes.subarray(80, bytes.length - 56);
    await disk.replaceFile(first, Buffer.concat([bytes.subarray(0, bytes.length - 56), block]));
    const { subjects } = await open(disk, 'again');
    expect(['a', 'b'].map((name) => subjects.idsOf('t', name))).toEqual(made.map((id) => [id]));
  });

  test('does not open under the keys of another directory', async () => {
    const { disk } = await written();
    const other = new MemoryDisk();
    await open(other, 'other');
    await disk.replaceFile(`${directory}/keys/data-keys.json`, (await other.readFile(`${directory}/keys/data-keys.json`))!);
    expect(await refusal(disk)).toMatchObject({ code: 'REL_STORAGE', message: expect.stringContaining('header does not open') });
  });
});

test('neither keys nor subjects lie in the files as they are', async () => {
  const disk = new MemoryDisk();
  const { subjects } = await open(disk);
  const { id, key } = subjects.sealing('tenant-of-hers', 'ada.lovelace@example.org');
  await subjects.durable();
  await subjects.destroy([subjects.sealing('tenant-of-hers', 'bob').id], 'receipt in the clear?');
  const file = Buffer.from((await disk.readFile(first))!);
  const secrets = [
    key.export(),
    Buffer.from(id, 'hex'),
    Buffer.from('lovelace'),
    Buffer.from('tenant-of'),
    Buffer.from('receipt'),
  ];
  for (const secret of secrets) {
    for (const form of [secret.toString('latin1'), secret.toString('hex'), secret.toString('base64')])
      expect(file.includes(Buffer.from(form, 'latin1'))).toBe(false);
  }
});

describe('the log', () => {
  async function opened(): Promise<{
    log: Awaited<ReturnType<typeof openLog>>['log'];
    disk: RecordingDisk;
    subjects: MemorySubjectKeys;
  }> {
    const disk = new RecordingDisk();
    const keys = await open(disk);
    const subjects = new MemorySubjectKeys();
    const { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey } = keys;
    const keyring = { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey, subjects, open: (id: number) => keys.open(id) };
    const { log } = await openLog(worldOn(disk), { keyring: { ...keyring, close: () => keys.close() } });
    disk.take();
    return { log, disk, subjects };
  }

  test('writes no frame before the keys that its rows may need are on disk', async () => {
    const { log, disk, subjects } = await opened();
    let durable = (): void => undefined;
    subjects.waiting = new Promise((resolve) => (durable = resolve));
    const { acknowledged } = log.append([rowsDraft(['a'])]);
    await settle();
    expect(disk.take()).toEqual([]);
    subjects.waiting = null;
    durable();
    await acknowledged;
    expect(disk.take().map((step) => step.split(' ')[0])).toEqual(['write', 'fsync']);
  });

  test('fails where they can not be written, and writes nothing', async () => {
    const { log, disk, subjects } = await opened();
    subjects.waiting = Promise.reject(new Error('the disk is full'));
    subjects.waiting.catch(() => undefined);
    await expect(log.append([rowsDraft(['a'])]).acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    expect(disk.take()).toEqual([]);
    expect(log.status()).toMatchObject({ state: 'failed', failure: 'the disk is full' });
  });
});

test('the keyed hash of a subject is HMAC-SHA-256, whatever came before it', () => {
  const key = new SeededRandom('hash').fill(new Uint8Array(32));
  const hash = new KeyedHash(key);
  for (const text of ['', 'a', 'ä€😀\ud800', 'x'.repeat(2000), 'b', 'é'.repeat(5000), 'c'])
    expect(hash.digest(text).toString('hex')).toBe(createHmac('sha256', key).update(text).digest('hex'));
});

test('a key that was handed out before it was destroyed seals what nobody will open', async () => {
  const { subjects } = await open(new MemoryDisk());
  const made = subjects.sealing('t', 'ada');
  const opening = subjects.opening(made.id)!;
  await subjects.destroy([made.id], 'r');
  expect(made.key.equals(opening)).toBe(true);
  expect(subjects.sealing('t', 'ada').key.equals(opening)).toBe(false);
});
