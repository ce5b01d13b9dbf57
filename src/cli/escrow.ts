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

export async function escrowCommand(options: EscrowCommandOptions): Promise<number> {
  const settings = directorySettings(options);
  const key = escrowKey(settings, options.escrowKeyFile);
  if ((options.out === undefined) === (options.check === undefined)) throw new ConfigError('give --out <file> or --check <file>');
  const label =
    options.check === undefined
      ? await make(settings, options.out!, key)
      : (await readEscrow({ disk: nodeDisk, path: resolve(options.check), key, yieldTurn })).label;
  process.stdout.write(options.json ? `${JSON.stringify(label)}\n` : textOf(label));
  return exitCode.ok;
}

async function make(settings: Settings, out: string, key: Uint8Array): Promise<EscrowLabel> {
  const directory = settings.SERVICE_DATA_DIR;
  const path = resolve(out);
  const inside = relative(resolve(directory), path);
  if (!inside.startsWith('..') && !isAbsolute(inside))
    throw new ConfigError(`--out ${out} lies in the data directory: keep an escrow away from what it opens`);
  if ((await readOnlyDisk.size(keyFilePath(directory))) === undefined)
    throw new ServiceError('REL_STORAGE', `there are no keys in ${directory}`);
  const master = await presentKeys(settings, readOnlyDisk);
  const keyring = await openKeyring({ disk: readOnlyDisk, random: systemRandom, directory, ...master });
  const madeAt = formatInstant(systemClock.now());
  return await writeEscrow({ disk: nodeDisk, random: systemRandom, path, key, madeAt, yieldTurn }, keyring.contents());
}

function textOf(label: EscrowLabel): string {
  const { data_keys: dataKeys, active_data_key: active } = label;
  return [
    `made        ${label.made_at}, of the log that signs with ${label.log_key}`,
    `data keys   ${count(dataKeys.length)}, of which ${active} is in use`,
    `subjects    ${count(label.subject_keys)} keys, ${count(label.erased_keys)} erased`,
    'an escrow from before an erasure still opens what was erased: destroy it',
    '',
  ].join('\n');
}
