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

export async function rekeyCommand(rekeyOptions: RekeyCommandOptions): Promise<number> {
  const settings = directorySettings(rekeyOptions);
  const dataDirectory = settings.SERVICE_DATA_DIR;
  const newKek = parseKey('--new-kek-file', readSettingFile('--new-kek-file', rekeyOptions.newKekFile));
  if ((await nodeDisk.size(keyFilePath(dataDirectory))) === undefined)
    throw new ServiceError('REL_STORAGE', `there are no keys in ${dataDirectory}`);
  const directoryLock = await nodeDisk.lock(join(dataDirectory, 'lock'));
  try {
    const { kek } = await presentKeys(settings, nodeDisk);
    await rewrapKeys({ disk: nodeDisk, random: systemRandom, directory: dataDirectory, kek, next: newKek });
    const localKekFile = localKeyFile(dataDirectory);
    // A start that finds it would take it for the one in use.
    const isLocalKekStale =
      resolve(rekeyOptions.newKekFile) !== resolve(localKekFile) && (await nodeDisk.size(localKekFile)) !== undefined;
    if (isLocalKekStale) {
      await nodeDisk.unlink(localKekFile);
      await nodeDisk.syncDirectory(join(dataDirectory, 'keys'));
    }
    process.stdout.write(
      `the keys are under the new key-encryption key: start with SERVICE_KEK_FILE=${rekeyOptions.newKekFile}\n`,
    );
    if (isLocalKekStale) process.stdout.write(`${localKekFile} held the one before and is gone\n`);
  } finally {
    await directoryLock.release();
  }
  return exitCode.ok;
}
