import nacl from 'tweetnacl';
import { expect, test } from 'vitest';
import { openKeyring } from '../../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { directory, kek, openLog, SeededRandom, worldOn } from '../world.ts';

const path = `${directory}/keys/data-keys.json`;

async function diskWithDirectory(): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  await disk.makeDirectory(directory);
  return disk;
}

test('keys made once are the same after a restart, and nothing is written again', async () => {
  const disk = await diskWithDirectory();
  const first = await openKeyring({ disk, random: new SeededRandom('a'), directory, kek });
  const stored = await disk.readFile(path);
  const second = await openKeyring({ disk, random: new SeededRandom('b'), directory, kek });
  expect(second.open(1).equals(first.open(1))).toBe(true);
  expect(second.hmacKey).toEqual(first.hmacKey);
  expect(second.signer.publicKey).toEqual(first.signer.publicKey);
  expect(await disk.readFile(path)).toEqual(stored);
});

test('no key lies on disk in the clear', async () => {
  const disk = await diskWithDirectory();
  const keyring = await openKeyring({ disk, random: new SeededRandom(), directory, kek });
  const file = Buffer.from((await disk.readFile(path))!).toString('latin1');
  const secrets = [keyring.open(1).export(), Buffer.from(keyring.hmacKey), Buffer.from(kek)];
  for (const secret of secrets) {
    for (const form of [secret.toString('latin1'), secret.toString('hex'), secret.toString('base64')])
      expect(file).not.toContain(form);
  }
});

test('a wrong key-encryption key is one clear error and touches nothing', async () => {
  const disk = await diskWithDirectory();
  await openKeyring({ disk, random: new SeededRandom(), directory, kek });
  const before = await disk.readFile(path);
  const wrong = openKeyring({ disk, random: new SeededRandom(), directory, kek: new Uint8Array(32).fill(8) });
  await expect(wrong).rejects.toMatchObject({ code: 'REL_STORAGE', message: expect.stringContaining('key-encryption key') });
  expect(await disk.readFile(path)).toEqual(before);
});

test('every changed bit of the key file is found', async () => {
  const disk = await diskWithDirectory();
  await openKeyring({ disk, random: new SeededRandom(), directory, kek });
  const bytes = Buffer.from((await disk.readFile(path))!);
  let opened = 0;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    await disk.replaceFile(path, changed);
    await openKeyring({ disk, random: new SeededRandom(), directory, kek }).then(
      (keyring) => {
        // Letter case of a hex digit and white space carry nothing.
        expect(keyring.hmacKey.length).toBe(32);
        opened++;
      },
      (error: unknown) => expect(error).toMatchObject({ code: 'REL_STORAGE' }),
    );
  }
  expect(opened).toBeLessThan(bytes.length);
});

test('a log whose key file is gone is not given new keys', async () => {
  const world = worldOn(new MemoryDisk());
  const { log } = await openLog(world);
  await log.close();
  await world.disk.unlink(path);
  await expect(openLog(world)).rejects.toMatchObject({ code: 'REL_STORAGE', message: expect.stringContaining('missing') });
  expect(await world.disk.size(path)).toBeUndefined();
});

test('a signing seed from outside signs, and heads signed by an earlier key still open', async () => {
  const disk = await diskWithDirectory();
  const first = await openKeyring({ disk, random: new SeededRandom(), directory, kek });
  const seed = new Uint8Array(32).fill(3);
  const second = await openKeyring({ disk, random: new SeededRandom(), directory, kek, signingSeed: seed });
  expect(second.signer.publicKey).toEqual(nacl.sign.keyPair.fromSeed(seed).publicKey);
  expect(second.publicKeys).toEqual([second.signer.publicKey, first.signer.publicKey]);
  const third = await openKeyring({ disk, random: new SeededRandom(), directory, kek });
  expect(third.signer.publicKey).toEqual(first.signer.publicKey);
  expect(third.publicKeys).toEqual([first.signer.publicKey, second.signer.publicKey]);
  expect(Buffer.from((await disk.readFile(path))!).toString()).not.toContain('0303030303');
});

test('keys of another length and numbers that are not there are refused', async () => {
  const disk = await diskWithDirectory();
  const random = new SeededRandom();
  await expect(openKeyring({ disk, random, directory, kek: new Uint8Array(16) })).rejects.toMatchObject({ code: 'REL_INVALID' });
  const keyring = await openKeyring({ disk, random, directory, kek });
  expect(() => keyring.open(2)).toThrow(expect.objectContaining({ code: 'REL_STORAGE' }));
});
