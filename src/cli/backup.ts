/** `annals backup`, `backups` and `restore`: a stopped store, its copies, and stores made of them. */
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { backupDirectory, listBackups } from '../upkeep/store-backups.ts';
import { Ids, systemClock, systemRandom } from '../clock.ts';
import type { Settings } from '../config.ts';
import type { RestoreReport } from '../doors/http/system-contract.ts';
import { ConfigError, ServiceError } from '../errors.ts';
import { ARTEFACT_NAME } from '../log/backup/backup-artefact.ts';
import { readEscrow } from '../log/keys/escrow.ts';
import { removeTree } from '../log/disk/file-copy.ts';
import { OPEN_BESIDE_BYTES_MIN } from '../log/files/frame-opener.ts';
import { type KeyContents, keyFilePath, openKeyring } from '../log/keys/keys.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import { spareCores, threadWorker } from '../log/threads/workers.ts';
import { escrowKey, presentKeys } from '../master-keys.ts';
import { publicKeysOf, restoreStore } from '../upkeep/store-restores.ts';
import { exitCode } from './exit-codes.ts';
import { type DirectoryOptions, directorySettings, withService } from './local-store.ts';
import { count, Progress } from './progress.ts';
import { readOnlyDisk } from './read-only-disk.ts';

export interface BackupCommandOptions extends DirectoryOptions {
  /** Instead of SERVICE_BACKUP_DIR. */
  readonly to?: string;
  readonly json?: boolean;
}

export interface KeyOptions extends DirectoryOptions {
  /** Where the keys come from, in place of a data directory. */
  readonly escrow?: string;
  readonly escrowKeyFile?: string;
}

export interface BackupsCommandOptions extends KeyOptions {
  readonly from?: string;
  readonly json?: boolean;
}

export interface RestoreCommandOptions extends KeyOptions {
  readonly target?: string;
  /** Into a directory that is deleted again. */
  readonly drill?: boolean;
  readonly json?: boolean;
}

const yieldTurn = (): Promise<void> => new Promise((done) => setImmediate(done));

/** Under the directory's lock, so nothing is written meanwhile and the projections can be digested. */
export function backupCommand(options: BackupCommandOptions, version: string): Promise<number> {
  return withService(options, version, async ({ upkeep: { backups }, store: { projections }, settings }) => {
    const target = options.to === undefined ? backupDirectory(settings) : resolve(options.to);
    const progress = new Progress('backup', systemClock);
    const taken = await backups.create({
      target,
      digests: () => projections.digests(),
      onProgress: (bytes, total) => progress.update(bytes, total, 'bytes'),
    });
    progress.finish(taken.size_bytes, 'bytes');
    process.stdout.write(
      options.json
        ? `${JSON.stringify(taken)}\n`
        : `${join(target, taken.backup)}\n${count(taken.tree_size)} entries, ${count(taken.size_bytes)} bytes, root ${taken.root}\n`,
    );
    return exitCode.ok;
  });
}

export async function backupsCommand(options: BackupsCommandOptions): Promise<number> {
  const settings = directorySettings(options);
  const directory = options.from === undefined ? backupDirectory(settings) : resolve(options.from);
  if (options.from !== undefined && (await nodeDisk.size(directory)) === undefined)
    throw new ConfigError(`--from: there is no directory ${directory}`);
  const backups = await listBackups(nodeDisk, directory, publicKeysOf(await keysOf(options, settings)));
  if (options.json) process.stdout.write(`${JSON.stringify({ backups })}\n`);
  else
    for (const each of backups)
      process.stdout.write(
        'damaged' in each
          ? `${each.backup}  DAMAGED: ${each.damaged}\n`
          : `${each.backup}  ${each.created_at}  ${count(each.tree_size)} entries, ${count(each.size_bytes)} bytes, root ${each.root}\n`,
      );
  return backups.some((each) => 'damaged' in each) ? exitCode.findings : exitCode.ok;
}

/** Restores and proves the backup, or leaves the target empty. */
export async function restoreCommand(artefact: string, options: RestoreCommandOptions, version: string): Promise<number> {
  if ((options.target === undefined) === (options.drill !== true)) throw new ConfigError('give --target <dir> or --drill');
  const settings = directorySettings(options);
  const keys = await keysOf(options, settings);
  const drill = join(tmpdir(), `annals-drill-${new Ids(systemClock, systemRandom).next()}`);
  const target = options.target === undefined ? drill : resolve(options.target);
  const progress = new Progress('restore', systemClock);
  try {
    const report = await restoreStore({
      disk: nodeDisk,
      clock: systemClock,
      random: systemRandom,
      settings,
      version,
      source: await sourceOf(artefact, settings),
      target,
      keys,
      say: (line) => void (options.drill || process.stderr.write(`${line}\n`)),
      yieldTurn,
      onProgress: (bytes, total) => progress.update(bytes, total, 'bytes'),
      ...(spareCores() > 0 && {
        openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN, windowBytes: 1 << 20 },
      }),
    });
    progress.finish(report.size_bytes, 'bytes');
    print(report, options);
    return exitCode.ok;
  } catch (error) {
    const report = error instanceof ServiceError ? error.facts.extras?.['report'] : undefined;
    if (!report) throw error;
    print(report as RestoreReport, options);
    process.stderr.write(`annals: ${(error as ServiceError).message}\n`);
    return exitCode.findings;
  } finally {
    if ((await nodeDisk.size(drill)) !== undefined) await removeTree(nodeDisk, drill);
  }
}

/** A backup by its directory, its document, or its name among those of the store. */
async function sourceOf(artefact: string, settings: Settings): Promise<string> {
  const path = resolve(artefact);
  if (basename(path) === ARTEFACT_NAME) return dirname(path);
  if ((await nodeDisk.size(path)) !== undefined || artefact.includes('/')) return path;
  return join(backupDirectory(settings), artefact);
}

/** Keys from the escrow that was named, else from the data directory, which may hold nothing but its keys. */
async function keysOf(options: KeyOptions, settings: Settings): Promise<KeyContents> {
  if (options.escrow !== undefined) {
    const key = escrowKey(settings, options.escrowKeyFile);
    return await readEscrow({ disk: nodeDisk, path: resolve(options.escrow), key, yieldTurn });
  }
  const directory = settings.SERVICE_DATA_DIR;
  if ((await readOnlyDisk.size(keyFilePath(directory))) === undefined)
    throw new ConfigError(`there are no keys in ${directory}: give --escrow <file>`);
  const master = await presentKeys(settings, readOnlyDisk);
  return (await openKeyring({ disk: readOnlyDisk, random: systemRandom, directory, ...master })).contents();
}

function print(report: RestoreReport, { json, drill }: RestoreCommandOptions): void {
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : textOf(report, drill === true));
}

function textOf(report: RestoreReport, drill: boolean): string {
  const width = Math.max(...report.projections.map(({ name }) => name.length), 'compared'.length);
  const line = (label: string, text: string): string => `${label.padEnd(width)}  ${text}\n`;
  const rate = (ms: number): string =>
    `${(ms / 1000).toFixed(2)} s, ${count(Math.round(report.size_bytes / 1e3 / Math.max(ms, 1)))} MB/s`;
  return [
    line(drill ? 'drill' : 'restored', `${report.backup} ${drill ? 'restored, and deleted again' : `into ${report.target_dir}`}`),
    line('log', `${report.log_id}, ${count(report.tree_size)} entries, ${count(report.rows)} rows, ${count(report.blobs)} blobs`),
    line('root', `${report.root}  ${report.root_match ? 'as it was signed' : 'DIFFERS from what was signed'}`),
    ...report.projections.map(({ name, digest, match }) => line(name, `${digest}  ${match ? 'same' : 'DIFFERS'}`)),
    line('compared', `with ${report.compared_with}`),
    line(
      'erased',
      `${count(report.erased_keys)} keys, ${report.erased_absent ? 'none of which opens anything' : 'SOME OF WHICH OPEN ROWS'}; ${count(report.rows_erased)} rows are left as hashes`,
    ),
    line('speed', `${rate(report.copy_ms)} copied, ${rate(report.replay_ms)} checked and replayed meanwhile`),
  ].join('');
}
