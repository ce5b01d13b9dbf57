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
export function backupCommand(backupOptions: BackupCommandOptions, version: string): Promise<number> {
  return withService(backupOptions, version, async ({ upkeep: { backups }, store: { projections }, settings }) => {
    const backupTarget = backupOptions.to === undefined ? backupDirectory(settings) : resolve(backupOptions.to);
    const backupProgress = new Progress('backup', systemClock);
    const takenBackup = await backups.create({
      target: backupTarget,
      digests: () => projections.digests(),
      onProgress: (bytes, total) => backupProgress.update(bytes, total, 'bytes'),
    });
    backupProgress.finish(takenBackup.size_bytes, 'bytes');
    process.stdout.write(
      backupOptions.json
        ? `${JSON.stringify(takenBackup)}\n`
        : `${join(backupTarget, takenBackup.backup)}\n${count(takenBackup.tree_size)} entries, ${count(takenBackup.size_bytes)} bytes, root ${takenBackup.root}\n`,
    );
    return exitCode.ok;
  });
}

export async function backupsCommand(backupsOptions: BackupsCommandOptions): Promise<number> {
  const settings = directorySettings(backupsOptions);
  const backupsDirectory = backupsOptions.from === undefined ? backupDirectory(settings) : resolve(backupsOptions.from);
  if (backupsOptions.from !== undefined && (await nodeDisk.size(backupsDirectory)) === undefined)
    throw new ConfigError(`--from: there is no directory ${backupsDirectory}`);
  const backups = await listBackups(nodeDisk, backupsDirectory, publicKeysOf(await keysForRestore(backupsOptions, settings)));
  if (backupsOptions.json) process.stdout.write(`${JSON.stringify({ backups })}\n`);
  else
    for (const listedBackup of backups)
      process.stdout.write(
        'damaged' in listedBackup
          ? `${listedBackup.backup}  DAMAGED: ${listedBackup.damaged}\n`
          : `${listedBackup.backup}  ${listedBackup.created_at}  ${count(listedBackup.tree_size)} entries, ${count(listedBackup.size_bytes)} bytes, root ${listedBackup.root}\n`,
      );
  return backups.some((each) => 'damaged' in each) ? exitCode.findings : exitCode.ok;
}

/** Restores and proves the backup, or leaves the target empty. */
export async function restoreCommand(
  artefactPath: string,
  restoreOptions: RestoreCommandOptions,
  version: string,
): Promise<number> {
  if ((restoreOptions.target === undefined) === (restoreOptions.drill !== true))
    throw new ConfigError('give --target <dir> or --drill');
  const settings = directorySettings(restoreOptions);
  const restoreKeys = await keysForRestore(restoreOptions, settings);
  const drillDirectory = join(tmpdir(), `annals-drill-${new Ids(systemClock, systemRandom).next()}`);
  const restoreTarget = restoreOptions.target === undefined ? drillDirectory : resolve(restoreOptions.target);
  const restoreProgress = new Progress('restore', systemClock);
  try {
    const restoreReport = await restoreStore({
      disk: nodeDisk,
      clock: systemClock,
      random: systemRandom,
      settings,
      version,
      source: await backupSourceOf(artefactPath, settings),
      target: restoreTarget,
      keys: restoreKeys,
      say: (line) => void (restoreOptions.drill || process.stderr.write(`${line}\n`)),
      yieldTurn,
      onProgress: (bytes, total) => restoreProgress.update(bytes, total, 'bytes'),
      ...(spareCores() > 0 && {
        openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN, windowBytes: 1 << 20 },
      }),
    });
    restoreProgress.finish(restoreReport.size_bytes, 'bytes');
    printRestoreReport(restoreReport, restoreOptions);
    return exitCode.ok;
  } catch (error) {
    const restoreReport = error instanceof ServiceError ? error.facts.extras?.['report'] : undefined;
    if (!restoreReport) throw error;
    printRestoreReport(restoreReport as RestoreReport, restoreOptions);
    process.stderr.write(`annals: ${(error as ServiceError).message}\n`);
    return exitCode.findings;
  } finally {
    if ((await nodeDisk.size(drillDirectory)) !== undefined) await removeTree(nodeDisk, drillDirectory);
  }
}

/** A backup by its directory, its document, or its name among those of the store. */
async function backupSourceOf(artefactPath: string, settings: Settings): Promise<string> {
  const backupPath = resolve(artefactPath);
  if (basename(backupPath) === ARTEFACT_NAME) return dirname(backupPath);
  if ((await nodeDisk.size(backupPath)) !== undefined || artefactPath.includes('/')) return backupPath;
  return join(backupDirectory(settings), artefactPath);
}

/** Keys from the escrow that was named, else from the data directory, which may hold nothing but its keys. */
async function keysForRestore(keyOptions: KeyOptions, settings: Settings): Promise<KeyContents> {
  if (keyOptions.escrow !== undefined) {
    const escrowSecret = escrowKey(settings, keyOptions.escrowKeyFile);
    return await readEscrow({ disk: nodeDisk, path: resolve(keyOptions.escrow), key: escrowSecret, yieldTurn });
  }
  const dataDirectory = settings.SERVICE_DATA_DIR;
  if ((await readOnlyDisk.size(keyFilePath(dataDirectory))) === undefined)
    throw new ConfigError(`there are no keys in ${dataDirectory}: give --escrow <file>`);
  const presentMasterKeys = await presentKeys(settings, readOnlyDisk);
  return (
    await openKeyring({ disk: readOnlyDisk, random: systemRandom, directory: dataDirectory, ...presentMasterKeys })
  ).contents();
}

function printRestoreReport(restoreReport: RestoreReport, { json, drill }: RestoreCommandOptions): void {
  process.stdout.write(json ? `${JSON.stringify(restoreReport)}\n` : restoreReportText(restoreReport, drill === true));
}

function restoreReportText(restoreReport: RestoreReport, isDrill: boolean): string {
  const labelWidth = Math.max(
    ...restoreReport.projections.map(({ name: projectionName }) => projectionName.length),
    'compared'.length,
  );
  const reportLine = (label: string, text: string): string => `${label.padEnd(labelWidth)}  ${text}\n`;
  const speedText = (ms: number): string =>
    `${(ms / 1000).toFixed(2)} s, ${count(Math.round(restoreReport.size_bytes / 1e3 / Math.max(ms, 1)))} MB/s`;
  return [
    reportLine(
      isDrill ? 'drill' : 'restored',
      `${restoreReport.backup} ${isDrill ? 'restored, and deleted again' : `into ${restoreReport.target_dir}`}`,
    ),
    reportLine(
      'log',
      `${restoreReport.log_id}, ${count(restoreReport.tree_size)} entries, ${count(restoreReport.rows)} rows, ${count(restoreReport.blobs)} blobs`,
    ),
    reportLine(
      'root',
      `${restoreReport.root}  ${restoreReport.root_match ? 'as it was signed' : 'DIFFERS from what was signed'}`,
    ),
    ...restoreReport.projections.map(({ name: projectionName, digest, match }) =>
      reportLine(projectionName, `${digest}  ${match ? 'same' : 'DIFFERS'}`),
    ),
    reportLine('compared', `with ${restoreReport.compared_with}`),
    reportLine(
      'erased',
      `${count(restoreReport.erased_keys)} keys, ${restoreReport.erased_absent ? 'none of which opens anything' : 'SOME OF WHICH OPEN ROWS'}; ${count(restoreReport.rows_erased)} rows are left as hashes`,
    ),
    reportLine(
      'speed',
      `${speedText(restoreReport.copy_ms)} copied, ${speedText(restoreReport.replay_ms)} checked and replayed meanwhile`,
    ),
  ].join('');
}
