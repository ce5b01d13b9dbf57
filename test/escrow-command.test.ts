/** `annals escrow` and `annals rekey` on real files: what they write, what they refuse, and what they leave alone. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type EscrowCommandOptions, escrowCommand } from '../src/cli/escrow.ts';
import { rekeyCommand } from '../src/cli/rekey.ts';
import { systemRandom } from '../src/clock.ts';
import { loadSettings, type Settings } from '../src/config.ts';
import { type EscrowLabel, readEscrow, writeKeysFrom } from '../src/log/keys/escrow.ts';
import { type KeyStore, openKeyring } from '../src/log/keys/keys.ts';
import { nodeDisk } from '../src/log/disk/node-disk.ts';
import { masterKeys } from '../src/master-keys.ts';

const secret = '5'.repeat(64);
let home: string;
let dataDir: string;
let keyFile: string;
let erased: string;
let standing: string;

const settingsOf = (directory: string): Settings => loadSettings({ env: {}, overrides: { SERVICE_DATA_DIR: directory } });

async function open(directory: string): Promise<KeyStore> {
  const keys = await masterKeys(settingsOf(directory), nodeDisk, systemRandom, () => undefined);
  return await openKeyring({ disk: nodeDisk, random: systemRandom, directory, ...keys });
}

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'annals-escrow-'));
  dataDir = join(home, 'data');
  keyFile = join(home, 'secret');
  writeFileSync(keyFile, `${secret}\n`);
  await nodeDisk.makeDirectory(dataDir);
  const keyring = await open(dataDir);
  standing = keyring.subjects.sealing('acme', 'ada').id;
  erased = keyring.subjects.sealing('acme', 'bob').id;
  await keyring.subjects.durable();
  await keyring.subjects.destroy([erased], 'receipt');
  await keyring.rotate();
  await keyring.close();
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Every file below, with its bytes. */
function contents(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'latin1')]),
  );
}

async function run(options: EscrowCommandOptions): Promise<{ code: number; text: string }> {
  let text = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    return { code: await escrowCommand(options), text };
  } finally {
    spy.mockRestore();
  }
}

describe('annals escrow', () => {
  test('writes the keys beside a running server, changes nothing there, and says what is in it', async () => {
    const lock = await nodeDisk.lock(join(dataDir, 'lock'));
    const before = contents(dataDir);
    const out = join(home, 'escrow');
    const made = await run({ dataDir, out, escrowKeyFile: keyFile, json: true });
    expect(made.code).toBe(0);
    const label = JSON.parse(made.text) as EscrowLabel;
    expect(label).toMatchObject({ format: 1, active_data_key: 2, data_keys: [1, 2], subject_keys: 1, erased_keys: 1 });
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const again = await run({ dataDir, check: out, escrowKeyFile: keyFile });
    expect(again.text).toContain('data keys   2, of which 2 is in use\nsubjects    1 keys, 1 erased\n');
    expect(contents(dataDir)).toEqual(before);
    await lock.release();
  });

  test('what it wrote opens another directory under another key-encryption key', async () => {
    const out = join(home, 'escrow');
    await run({ dataDir, out, escrowKeyFile: keyFile });
    const yieldTurn = (): Promise<void> => Promise.resolve();
    const escrow = await readEscrow({ disk: nodeDisk, path: out, key: Buffer.from(secret, 'hex'), yieldTurn });
    const target = join(home, 'restored');
    await nodeDisk.makeDirectory(target);
    const { kek } = await masterKeys(settingsOf(target), nodeDisk, systemRandom, () => undefined);
    await writeKeysFrom(escrow, { disk: nodeDisk, random: systemRandom, directory: target, kek, yieldTurn });
    const [from, to] = [await open(dataDir), await open(target)];
    expect(to.subjects.opening(standing)!.equals(from.subjects.opening(standing)!)).toBe(true);
    expect(to.subjects.opening(erased)).toBeNull();
    expect(to.open(2).equals(from.open(2))).toBe(true);
  });

  test('without a secret, with a wrong one, or where there are no keys, it is one error and no file', async () => {
    const out = join(home, 'escrow');
    await expect(run({ dataDir, out })).rejects.toThrow('SERVICE_ESCROW_KEY');
    writeFileSync(join(home, 'short'), 'abc');
    await expect(run({ dataDir, out, escrowKeyFile: join(home, 'short') })).rejects.toThrow('expected 32 bytes');
    await expect(run({ dataDir, out, escrowKeyFile: join(home, 'none') })).rejects.toThrow('cannot read');
    await expect(run({ dataDir: join(home, 'empty'), out, escrowKeyFile: keyFile })).rejects.toThrow('there are no keys in');
    await expect(run({ dataDir, escrowKeyFile: keyFile })).rejects.toThrow('--out <file> or --check <file>');
    await expect(run({ dataDir, out: join(dataDir, 'keys', 'escrow'), escrowKeyFile: keyFile })).rejects.toThrow(
      'lies in the data',
    );
    expect(readdirSync(home).sort()).toEqual(['data', 'secret', 'short']);
    await run({ dataDir, out, escrowKeyFile: keyFile });
    writeFileSync(join(home, 'other'), '6'.repeat(64));
    await expect(run({ dataDir, check: out, escrowKeyFile: join(home, 'other') })).rejects.toThrow(
      'the escrow key given is not the one',
    );
  });

  test('of a directory whose key-encryption key is gone makes none', async () => {
    rmSync(join(dataDir, 'keys', 'kek'));
    const before = contents(dataDir);
    await expect(run({ dataDir, out: join(home, 'escrow'), escrowKeyFile: keyFile })).rejects.toThrow('SERVICE_KEK');
    expect(contents(dataDir)).toEqual(before);
  });
});

describe('annals rekey', () => {
  const rekey = async (newKekFile: string): Promise<number> => {
    const spy = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    return await rekeyCommand({ dataDir, newKekFile }).finally(() => spy.mockRestore());
  };

  test('puts the keys under another key-encryption key, and only that opens them', async () => {
    const kek = join(home, 'kek');
    writeFileSync(kek, '7'.repeat(64));
    const old = await masterKeys(settingsOf(dataDir), nodeDisk, systemRandom, () => undefined);
    expect(await rekey(kek)).toBe(0);
    expect(readdirSync(join(dataDir, 'keys')).sort()).toEqual(['data-keys.json', 'subjects-00']);
    const with_ = (key: Uint8Array): Promise<KeyStore> =>
      openKeyring({ disk: nodeDisk, random: systemRandom, directory: dataDir, kek: key });
    await expect(with_(old.kek)).rejects.toMatchObject({ code: 'REL_STORAGE' });
    const opened = await with_(Buffer.from('7'.repeat(64), 'hex'));
    expect(opened.activeDataKey).toBe(2);
    expect(opened.subjects.opening(standing)).not.toBeNull();
  });

  test('cut off after its one step, it is done again', async () => {
    const kek = join(home, 'kek');
    writeFileSync(kek, '7'.repeat(64));
    const local = readFileSync(join(dataDir, 'keys', 'kek'));
    await rekey(kek);
    writeFileSync(join(dataDir, 'keys', 'kek'), local);
    expect(await rekey(kek)).toBe(0);
    expect(readdirSync(join(dataDir, 'keys'))).not.toContain('kek');
  });

  test('of a running store, with a malformed key or under a wrong one, it touches nothing', async () => {
    const kek = join(home, 'kek');
    writeFileSync(kek, 'short');
    const before = contents(join(dataDir, 'keys'));
    await expect(rekey(kek)).rejects.toThrow('expected 32 bytes');
    writeFileSync(kek, '7'.repeat(64));
    const lock = await nodeDisk.lock(join(dataDir, 'lock'));
    await expect(rekey(kek)).rejects.toThrow('is in use by');
    await lock.release();
    writeFileSync(join(dataDir, 'keys', 'kek'), '8'.repeat(64));
    await expect(rekey(kek)).rejects.toMatchObject({ code: 'REL_STORAGE' });
    expect({ ...contents(join(dataDir, 'keys')), [join(dataDir, 'keys', 'kek')]: '' }).toEqual({
      ...before,
      [join(dataDir, 'keys', 'kek')]: '',
    });
  });
});
