/** A store whose keys are gone, or are another's: each start is one clear error, and leaves every byte as it was. */
import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import { Service } from '../src/service.ts';

let disk: MemoryDisk;

async function open(more: Readonly<Record<string, string>> = {}): Promise<Service> {
  return await Service.open({
    settings: loadSettings({ env: { SERVICE_DATA_DIR: '/data', ...more }, workingDirectory: '/none', homeDirectory: '/none' }),
    disk,
    clock: systemClock,
    random: systemRandom,
    version: '0.0.0',
    say: () => undefined,
  });
}

beforeEach(async () => {
  disk = new MemoryDisk();
  const service = await open();
  service.store.keyring.subjects.sealing('acme', 'ada');
  await service.store.keyring.subjects.durable();
  await service.close();
});

/** Every file of the data directory, as text. */
async function bytes(): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const folder of ['', '/keys', '/log']) {
    for (const name of await disk.list(`/data${folder}`)) {
      const content = await disk.readFile(`/data${folder}/${name}`);
      if (content && name !== 'lock') files[`${folder}/${name}`] = Buffer.from(content).toString('latin1');
    }
  }
  return files;
}

async function refused(more: Readonly<Record<string, string>>, why: RegExp): Promise<void> {
  const before = await bytes();
  await expect(open(more)).rejects.toMatchObject({ code: 'REL_STORAGE', message: expect.stringMatching(why) });
  expect(await bytes()).toEqual(before);
}

describe('a start', () => {
  test('with the keys opens, and opens again', async () => {
    const before = Object.keys(await bytes());
    await (await open()).close();
    expect(Object.keys(await bytes())).toEqual(before);
  });

  test('under another key-encryption key', () =>
    refused({ SERVICE_KEK: '9'.repeat(64) }, /^the key-encryption key given is not the one/));

  test('whose key-encryption key is gone makes none', async () => {
    await disk.unlink('/data/keys/kek');
    await refused({}, /keys\/kek is missing, and \S+data-keys\.json does not open without it/);
  });

  test('whose data keys are gone makes none', async () => {
    await disk.unlink('/data/keys/data-keys.json');
    await refused({}, /data-keys\.json is missing, and keys of subjects beside it/);
    await disk.unlink('/data/keys/subjects-00');
    await refused({}, /data-keys\.json is missing, and the log beside it/);
    await disk.unlink('/data/keys/kek');
    await refused({}, /data-keys\.json is missing, and the log beside it/);
  });

  test('with a damaged file of keys', async () => {
    for (const name of ['data-keys.json', 'subjects-00']) {
      const path = `/data/keys/${name}`;
      const whole = (await disk.readFile(path))!;
      const changed = Buffer.from(whole);
      changed[changed.length >> 1]! ^= 1;
      await disk.replaceFile(path, changed);
      await refused({}, name === 'subjects-00' ? /subjects-00 is damaged/ : /data-keys\.json is damaged/);
      await disk.replaceFile(path, whole);
    }
  });
});
