/** The log under test, put together as the service does it: lock, keys, then the log. */
import type { KeyObject } from 'node:crypto';
import type { LogStore } from '../../src/log/log-store.ts';
import { type Keyring, keyFilePath, openKeyring } from '../../src/log/keys/keys.ts';
import { LocalLog } from '../../src/log/log.ts';
import { SubjectKeyFiles } from '../../src/log/keys/subject-keys.ts';
import type { FaultyDisk } from './faulty-disk.ts';
import type { Seeded } from './seeded.ts';
import { rememberSignatures } from './known-signatures.ts';
import type { OpenLog } from './workload.ts';

rememberSignatures();

export const directory = '/data';
export const kek = new Uint8Array(32).fill(7);
export const origin = 'simulated/log/main';

export const openLocalLog: OpenLog = async ({
  disk,
  clock,
  random,
  walSync,
  fileBytes,
  bulk,
  resume,
  replay,
}): Promise<LogStore> => {
  await disk.makeDirectory(directory);
  await disk.lock(`${directory}/lock`);
  const keyring = await openKeys({ disk, random });
  return await LocalLog.open({
    disk,
    clock,
    random,
    directory,
    keyring,
    origin,
    engineVersion: '0.0.0',
    walSync,
    sealIdleMs: 1000,
    limits: { fileBytesMax: fileBytes, preallocateBytes: fileBytes >> 2 },
    ...(bulk === undefined ? {} : { bulk }),
    ...(resume === undefined ? {} : { resume }),
    replay: replay ?? (() => undefined),
  });
};

const opened = new Map<string, Keyring>();

/**
 * Opening the same key file again and again would be half of all the work, and changes nothing once it is durable. Keys of
 * subjects are read from this disk each time: a crash may have taken some.
 */
async function openKeys({ disk, random }: { disk: FaultyDisk; random: Seeded }): Promise<Keyring> {
  const path = keyFilePath(directory);
  const stored = disk.isDurable(path) ? await disk.readFile(path) : undefined;
  const known = stored && opened.get(Buffer.from(stored).toString('latin1'));
  if (known) return await withSubjectKeys(known, disk, random);
  const keyring = await openKeyring({ disk, random, directory, kek });
  const file = disk.visible().files.get(path);
  if (file) opened.set(Buffer.from(file).toString('latin1'), keyring);
  return keyring;
}

async function withSubjectKeys(keyring: Keyring, disk: FaultyDisk, random: Seeded): Promise<Keyring> {
  const { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey } = keyring;
  const keys = `${directory}/keys`;
  await disk.syncDirectory(keys);
  const subjects = await SubjectKeyFiles.open({ disk, random, directory: keys, dataKeys: keyring, hmacKey });
  const open = (id: number): KeyObject => keyring.open(id);
  return { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey, open, subjects, close: () => subjects.close() };
}
