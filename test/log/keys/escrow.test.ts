import { beforeAll, describe, expect, test } from 'vitest';
import { type Escrow, readEscrow, writeEscrow, writeKeysFrom } from '../../../src/log/keys/escrow.ts';
import { type KeyStore, openKeyring } from '../../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import type { SubjectKey } from '../../../src/log/keys/recent-subject-keys.ts';
import { SHARD_KEYS_MAX } from '../../../src/log/keys/subject-shard.ts';
import { crashImage } from '../../simulation/crash-image.ts';
import { FaultyDisk } from '../../simulation/faulty-disk.ts';
import { directory, kek, SeededRandom } from '../world.ts';

const key = new Uint8Array(32).fill(5);
const path = '/safe/escrow';
const random = new SeededRandom('escrow');
const yieldTurn = (): Promise<void> => Promise.resolve();
const disk = new MemoryDisk();
let keyring: KeyStore;
let standing: SubjectKey;
let destroyed: SubjectKey;

beforeAll(async () => {
  await disk.makeDirectory(directory);
  await disk.makeDirectory('/safe');
  keyring = await openKeyring({ disk, random, directory, kek });
  const made = Array.from({ length: SHARD_KEYS_MAX + 3 }, (_, i) => keyring.subjects.sealing('t', `s${i}`));
  standing = made.at(-1)!;
  destroyed = made[1]!;
  await keyring.subjects.durable();
  await keyring.subjects.destroy([destroyed.id], 'receipt-7');
  await keyring.rotate();
  await writeEscrow({ disk, random, path, key, madeAt: '2026-01-01T00:00:00Z', yieldTurn }, keyring.contents());
});

const read = (from: MemoryDisk = disk, secret = key): Promise<Escrow> => readEscrow({ disk: from, path, key: secret, yieldTurn });

test('a data directory made from an escrow opens what the one that it was made of opens', async () => {
  const target = new MemoryDisk();
  await target.makeDirectory(directory);
  const otherKek = new Uint8Array(32).fill(9);
  await writeKeysFrom(await read(), { disk: target, random, directory, kek: otherKek, yieldTurn });
  await expect(openKeyring({ disk: target, random, directory, kek })).rejects.toMatchObject({ code: 'REL_STORAGE' });
  const again = await openKeyring({ disk: target, random, directory, kek: otherKek });
  expect(again.dataKeyIds).toEqual([1, 2]);
  expect(again.activeDataKey).toBe(2);
  for (const id of [1, 2]) expect(again.open(id).equals(keyring.open(id))).toBe(true);
  expect(again.hmacKey).toEqual(keyring.hmacKey);
  expect(again.signer.publicKey).toEqual(keyring.signer.publicKey);
  expect(again.subjects.opening(standing.id)!.equals(standing.key)).toBe(true);
  expect(again.subjects.sealing('t', 's2').id).toBe(keyring.subjects.sealing('t', 's2').id);
  expect(again.subjects.opening(destroyed.id)).toBeNull();
  expect(again.subjects.tombstones()).toEqual([{ id: destroyed.id, receipt: 'receipt-7' }]);
  again.subjects.sealing('t', 'new');
  await again.subjects.durable();
});

test('a key that was destroyed is in no form in an escrow, opened or not', async () => {
  const { records, secrets, tombstones } = await read();
  const secret = destroyed.key.export();
  expect(Buffer.concat(records as Uint8Array[]).includes(secret)).toBe(false);
  expect(JSON.stringify([secrets.publicKeys, tombstones])).not.toContain(secret.toString('hex'));
  const file = Buffer.from((await disk.readFile(path))!);
  for (const hidden of [secret, standing.key.export(), keyring.open(1).export(), Buffer.from(keyring.hmacKey)]) {
    for (const form of [hidden.toString('latin1'), hidden.toString('hex'), hidden.toString('base64')])
      expect(file.includes(Buffer.from(form, 'latin1'))).toBe(false);
  }
});

test('says without its secret what it is', async () => {
  const file = Buffer.from((await disk.readFile(path))!);
  expect(JSON.parse(file.toString('utf8', 0, file.indexOf('\n')))).toMatchObject({
    format: 1,
    made_at: '2026-01-01T00:00:00Z',
    active_data_key: 2,
    data_keys: [1, 2],
    subject_keys: SHARD_KEYS_MAX + 2,
    erased_keys: 1,
  });
});

test('a wrong secret, and one of another length, are one clear error', async () => {
  await expect(read(disk, new Uint8Array(32).fill(6))).rejects.toMatchObject({
    code: 'REL_UNPROCESSABLE',
    message: expect.stringContaining('the escrow key given is not the one'),
  });
  await expect(read(disk, new Uint8Array(16))).rejects.toMatchObject({ code: 'REL_INVALID' });
  await expect(readEscrow({ disk, path: '/safe/none', key, yieldTurn })).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });
});

describe('an escrow that is not as it was written', () => {
  async function small(): Promise<{ target: MemoryDisk; bytes: Buffer }> {
    const target = new MemoryDisk();
    await target.makeDirectory(directory);
    await target.makeDirectory('/safe');
    const keys = await openKeyring({ disk: target, random, directory, kek });
    keys.subjects.sealing('t', 'a');
    await keys.subjects.destroy([keys.subjects.sealing('t', 'b').id], 'r');
    await writeEscrow({ disk: target, random, path, key, madeAt: 'now', yieldTurn }, keys.contents());
    return { target, bytes: Buffer.from((await target.readFile(path))!) };
  }

  test('is refused with any bit flipped and at any length but its own', async () => {
    const { target, bytes } = await small();
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1 << (at % 8);
      for (const wrong of [changed, bytes.subarray(0, at)]) {
        await target.replaceFile(path, wrong);
        await expect(read(target), `byte ${at}`).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
      }
    }
    await target.replaceFile(path, Buffer.concat([bytes, Buffer.alloc(1)]));
    await expect(read(target)).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
  });

  test('is refused when it was edited and its digest made to fit', async () => {
    const { target, bytes } = await small();
    const { createHash } = await import('node:crypto');
    const line = bytes.indexOf('\n') + 1;
    const pieces: Buffer[] = [];
    for (let at = line; at < bytes.length - 32; ) {
      const next = at + 4 + bytes.readUInt32LE(at);
      pieces.push(bytes.subarray(at, next));
      at = next;
    }
    expect(pieces).toHaveLength(3);
    const head = bytes.subarray(0, line);
    const older = Buffer.from(head.toString().replace('"now"', '"old"'));
    const edits: Buffer[][] = [
      [older, ...pieces],
      [head, ...pieces.slice(0, 2)],
      [head, pieces[0]!, pieces[2]!],
      [head, pieces[0]!, pieces[2]!, pieces[1]!],
      [head, ...pieces, pieces[2]!],
      [head],
    ];
    for (const edit of edits) {
      const body = Buffer.concat(edit);
      await target.replaceFile(path, Buffer.concat([body, createHash('sha256').update(body).digest()]));
      await expect(read(target)).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
    }
  });

  test('of a later format is refused by name', async () => {
    const { target, bytes } = await small();
    await target.replaceFile(path, Buffer.from(bytes.toString('latin1').replace('"format":1', '"format":2'), 'latin1'));
    await expect(read(target)).rejects.toMatchObject({ message: expect.stringContaining('format 2; this version reads 1') });
  });
});

test('keys are not put where keys are', async () => {
  const escrow = await read();
  const before = await disk.readFile(`${directory}/keys/data-keys.json`);
  await expect(writeKeysFrom(escrow, { disk, random, directory, kek, yieldTurn })).rejects.toMatchObject({
    code: 'REL_CONFLICT',
  });
  expect(await disk.readFile(`${directory}/keys/data-keys.json`)).toEqual(before);
});

test('put half-way, they open nothing and say so; put whole, they are durable', async () => {
  const escrow = await read();
  const points: FaultyDisk[] = [];
  const target: FaultyDisk = new FaultyDisk({
    beforeStep: () => {
      points.push(new FaultyDisk({}, crashImage(target.state(), 'all')), new FaultyDisk({}, crashImage(target.state(), 'none')));
      return undefined;
    },
  });
  await target.makeDirectory(directory);
  points.length = 0;
  await writeKeysFrom(escrow, { disk: target, random, directory, kek, yieldTurn });
  const whole = await openKeyring({ disk: new FaultyDisk({}, crashImage(target.state(), 'none')), random, directory, kek });
  expect(whole.subjects.opening(standing.id)).not.toBeNull();
  expect(points.length).toBeGreaterThan(20);
  let refused = 0;
  for (const point of points) {
    const begun = (await point.list(`${directory}/keys`)).some((name) => /^(subjects-\d+|data-keys\.json)$/.test(name));
    if (!begun) continue;
    await openKeyring({ disk: point, random, directory, kek }).then(
      (opened) => expect(opened.subjects.opening(standing.id)).not.toBeNull(),
      (error: unknown) => {
        refused++;
        expect(error).toMatchObject({ code: 'REL_STORAGE', message: expect.stringContaining('is missing') });
      },
    );
  }
  expect(refused).toBeGreaterThan(0);
});
