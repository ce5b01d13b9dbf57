/** `annals escrow`: the keys of a data directory, in one file under a secret of its own. Takes no lock: a server may run beside it. */
import { isAbsolute, relative, resolve } from 'node:path';
import { systemClock, systemRandom } from '../clock.ts';
import type { Settings } from '../config.ts';
import { ConfigError, ServiceError } from '../errors.ts';
import { type EscrowLabel, readEscrow, writeEscrow } from '../log/keys/escrow.ts';
import { keyFilePath, openKeyring } from '../log/keys/keys.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import { escrowKey, presentKeys } from '../master-keys.ts';
import { exitCode } from './exit-codes.ts';
import { type DirectoryOptions, directorySettings } from './local-store.ts';
import { count } from './progress.ts';
import { readOnlyDisk } from './read-only-disk.ts';

export interface EscrowCommandOptions extends DirectoryOptions {
  readonly out?: string;
  /** An escrow to look into instead. */
  readonly check?: string;
  readonly escrowKeyFile?: string;
  readonly json?: boolean;
}

const yieldTurn = (): Promise<void> => new Promise((done) => setImmediate(done));

export async function escrowCommand(escrowOptions: EscrowCommandOptions): Promise<number> {
  const storeSettings = directorySettings(escrowOptions);
  const escrowSecret = escrowKey(storeSettings, escrowOptions.escrowKeyFile);
  if ((escrowOptions.out === undefined) === (escrowOptions.check === undefined))
    throw new ConfigError('give --out <file> or --check <file>');
  const escrowLabel =
    escrowOptions.check === undefined
      ? await makeEscrow(storeSettings, escrowOptions.out!, escrowSecret)
      : (await readEscrow({ disk: nodeDisk, path: resolve(escrowOptions.check), key: escrowSecret, yieldTurn })).label;
  process.stdout.write(escrowOptions.json ? `${JSON.stringify(escrowLabel)}\n` : escrowLabelText(escrowLabel));
  return exitCode.ok;
}

async function makeEscrow(settings: Settings, escrowFile: string, escrowSecret: Uint8Array): Promise<EscrowLabel> {
  const dataDirectory = settings.SERVICE_DATA_DIR;
  const escrowPath = resolve(escrowFile);
  const pathInDataDirectory = relative(resolve(dataDirectory), escrowPath);
  if (!pathInDataDirectory.startsWith('..') && !isAbsolute(pathInDataDirectory))
    throw new ConfigError(`--out ${escrowFile} lies in the data directory: keep an escrow away from what it opens`);
  if ((await readOnlyDisk.size(keyFilePath(dataDirectory))) === undefined)
    throw new ServiceError('REL_STORAGE', `there are no keys in ${dataDirectory}`);
  const presentMasterKeys = await presentKeys(settings, readOnlyDisk);
  const keyring = await openKeyring({ disk: readOnlyDisk, random: systemRandom, directory: dataDirectory, ...presentMasterKeys });
  const madeAt = formatInstant(systemClock.now());
  return await writeEscrow(
    { disk: nodeDisk, random: systemRandom, path: escrowPath, key: escrowSecret, madeAt, yieldTurn },
    keyring.contents(),
  );
}

function escrowLabelText(escrowLabel: EscrowLabel): string {
  const { data_keys: dataKeys, active_data_key: activeDataKey } = escrowLabel;
  return [
    `made        ${escrowLabel.made_at}, of the log that signs with ${escrowLabel.log_key}`,
    `data keys   ${count(dataKeys.length)}, of which ${activeDataKey} is in use`,
    `subjects    ${count(escrowLabel.subject_keys)} keys, ${count(escrowLabel.erased_keys)} erased`,
    'an escrow from before an erasure still opens what was erased: destroy it',
    '',
  ].join('\n');
}
