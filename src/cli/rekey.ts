/**
 * `annals rekey`: another key-encryption key for a data directory. The wrapped keys stay the same, so only one small file
 * changes.
 */
import { join, resolve } from 'node:path';
import { systemRandom } from '../clock.ts';
import { parseKey, readSettingFile } from '../config.ts';
import { ServiceError } from '../errors.ts';
import { keyFilePath, rewrapKeys } from '../log/keys/keys.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import { localKeyFile, presentKeys } from '../master-keys.ts';
import { exitCode } from './exit-codes.ts';
import { type DirectoryOptions, directorySettings } from './local-store.ts';

export interface RekeyCommandOptions extends DirectoryOptions {
  readonly newKekFile: string;
}

export async function rekeyCommand(options: RekeyCommandOptions): Promise<number> {
  const settings = directorySettings(options);
  const directory = settings.SERVICE_DATA_DIR;
  const next = parseKey('--new-kek-file', readSettingFile('--new-kek-file', options.newKekFile));
  if ((await nodeDisk.size(keyFilePath(directory))) === undefined)
    throw new ServiceError('REL_STORAGE', `there are no keys in ${directory}`);
  const lock = await nodeDisk.lock(join(directory, 'lock'));
  try {
    const { kek } = await presentKeys(settings, nodeDisk);
    await rewrapKeys({ disk: nodeDisk, random: systemRandom, directory, kek, next });
    const local = localKeyFile(directory);
    // A start that finds it would take it for the one in use.
    const stale = resolve(options.newKekFile) !== resolve(local) && (await nodeDisk.size(local)) !== undefined;
    if (stale) {
      await nodeDisk.unlink(local);
      await nodeDisk.syncDirectory(join(directory, 'keys'));
    }
    process.stdout.write(`the keys are under the new key-encryption key: start with SERVICE_KEK_FILE=${options.newKekFile}\n`);
    if (stale) process.stdout.write(`${local} held the one before and is gone\n`);
  } finally {
    await lock.release();
  }
  return exitCode.ok;
}
