/** The log under test, put together as the service does it: lock, keys, then the log. */
import type { LogStore } from '../../src/log/log-store.ts';
import { openKeyring } from '../../src/log/keys.ts';
import { LocalLog } from '../../src/log/log.ts';
import type { OpenLog } from './workload.ts';

export const directory = '/data';
export const kek = new Uint8Array(32).fill(7);
export const origin = 'simulated/log/main';

export const openLocalLog: OpenLog = async ({ disk, clock, random, walSync, fileBytes }): Promise<LogStore> => {
  await disk.makeDirectory(directory);
  await disk.lock(`${directory}/lock`);
  const keyring = await openKeyring({ disk, random, directory, kek });
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
    replay: () => undefined,
  });
};
