/** A data directory as the commands open it: the same service without doors, under the directory's lock. */
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom } from '../clock.ts';
import { loadSettings, type Settings } from '../config.ts';
import { ServiceError } from '../errors.ts';
import { type Caller, tenantlessCaller } from '../governance/caller.ts';
import { checkOrganization } from '../governance/tenancy/organization-path.ts';
import { mainBranch } from '../log/entries/entry.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import type { StartWorker } from '../log/threads/workers.ts';
import type { Service } from '../service.ts';
import { Progress } from './progress.ts';

export interface DirectoryOptions {
  readonly config?: string;
  readonly dataDir?: string;
}

export function directorySettings(directoryOptions: DirectoryOptions): Settings {
  return loadSettings({
    env: process.env,
    configPath: directoryOptions.config,
    overrides: directoryOptions.dataDir === undefined ? {} : { SERVICE_DATA_DIR: directoryOptions.dataDir },
  });
}

export interface Rebuild {
  /** Opens frames of the log; null where there is no core for it. */
  readonly startWorker: StartWorker | null;
}

/** Opens the directory, runs `serviceWork`, closes it whatever happens. `rebuild`: from the log alone, and saved state stays as it is. */
export async function withService<T>(
  directoryOptions: DirectoryOptions,
  version: string,
  serviceWork: (service: Service) => Promise<T>,
  onReplay?: (replayedEntries: number, leafHash: Uint8Array) => void,
  rebuild?: Rebuild,
): Promise<T> {
  const settings = directorySettings(directoryOptions);
  // Commands to a running server load this file too, and never need the service.
  const { checkBoot, Service } = await import('../service.ts');
  checkBoot(settings);
  await requireLogDirectory(settings.SERVICE_DATA_DIR);
  const replayProgress = new Progress('replay', systemClock);
  let replayedEntries = 0;
  const service = await Service.open({
    settings,
    disk: nodeDisk,
    clock: systemClock,
    random: systemRandom,
    version,
    say: (line) => void process.stderr.write(`${line}\n`),
    ...(rebuild ? rebuild.startWorker && { startOpener: rebuild.startWorker } : { derived: { machineBytes: totalmem() } }),
    onReplay: (replayed, leafHash) => {
      onReplay?.(replayed, leafHash);
      replayProgress.update((replayedEntries = replayed), 0, 'entries');
    },
  });
  replayProgress.finish(replayedEntries, 'entries');
  try {
    return await serviceWork(service);
  } finally {
    await service.close();
  }
}

/** A mistyped path must not become an empty store: `serve` begins a log, `restore` makes one of a backup, nothing else does. */
async function requireLogDirectory(dataDirectory: string): Promise<void> {
  if ((await nodeDisk.list(join(dataDirectory, 'log'))).length > 0) return;
  throw new ServiceError(
    'REL_STORAGE',
    `there is no log here: ${dataDirectory} is not a data directory (--data-dir, SERVICE_DATA_DIR); annals serve creates one`,
  );
}

/** The caller of a local command: its user can open the directory. Every record that the command leaves names it. */
export function operator(organization: string | null, branch = mainBranch): Caller {
  if (organization !== null) checkOrganization(organization);
  return { ...tenantlessCaller('operator', 'operator', 'cli'), path: organization, branch };
}
