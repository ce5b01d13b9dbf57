/** Key files and escrows as they were first written: every later version must open them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readEscrow, writeKeysFrom } from '../../../src/log/keys/escrow.ts';
import { type KeyStore, openKeyring } from '../../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { directory, kek, SeededRandom } from '../world.ts';

const fixtures = fileURLToPath(new URL('../../../fixtures/key-files/', import.meta.url));
const random = new SeededRandom('key fixtures');

interface Expected {
  readonly data_keys: Readonly<Record<string, string>>;
  readonly active: number;
  readonly log_key: string;
  readonly hmac_key: string;
  readonly subjects: readonly (readonly [string | null, string, string, string])[];
  readonly destroyed: readonly { readonly id: string; readonly receipt: string }[];
}

function compare(keyring: KeyStore, expected: Expected): void {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  expect(keyring.activeDataKey).toBe(expected.active);
  expect(Object.fromEntries(keyring.dataKeyIds.map((id) => [id, hex(keyring.open(id).export())]))).toEqual(expected.data_keys);
  expect(hex(keyring.signer.publicKey)).toBe(expected.log_key);
  expect(hex(keyring.hmacKey)).toBe(expected.hmac_key);
  const { subjects } = keyring;
  for (const [tenant, subject, id, key] of expected.subjects) {
    expect(subjects.idsOf(tenant, subject)).toEqual([id]);
    expect(hex(subjects.opening(id)!.export())).toBe(key);
    expect(subjects.sealing(tenant, subject).id).toBe(id);
  }
  expect(subjects.tombstones()).toEqual(expected.destroyed);
  for (const { id } of expected.destroyed) expect(subjects.opening(id)).toBeNull();
}

describe.each(readdirSync(fixtures))('key files %s', (version) => {
  const file = (name: string): Buffer => readFileSync(`${fixtures}${version}/${name}`);
  const expected = JSON.parse(file('expected.json').toString()) as Expected;

  test('open to what they were made of, and opening them changes no byte', async () => {
    const disk = new MemoryDisk();
    await disk.makeDirectory(`${directory}/keys`);
    const names = ['data-keys.json', 'subjects-00'];
    for (const name of names) await disk.replaceFile(`${directory}/keys/${name}`, file(name));
    const keyring = await openKeyring({ disk, random, directory, kek });
    compare(keyring, expected);
    expect(keyring.subjects.durable()).toBeNull();
    for (const name of names)
      expect(Buffer.from((await disk.readFile(`${directory}/keys/${name}`))!).equals(file(name))).toBe(true);
  });

  test('are what their escrow holds', async () => {
    const disk = new MemoryDisk();
    await disk.makeDirectory('/safe');
    await disk.makeDirectory(directory);
    await disk.replaceFile('/safe/escrow', file('escrow'));
    const yieldTurn = (): Promise<void> => Promise.resolve();
    const escrow = await readEscrow({ disk, path: '/safe/escrow', key: new Uint8Array(32).fill(5), yieldTurn });
    await writeKeysFrom(escrow, { disk, random, directory, kek, yieldTurn });
    compare(await openKeyring({ disk, random, directory, kek }), expected);
  });
});
