/**
 * Restores a store from a backup. `log/backup/backup-restore.ts` copies the files and checks the log; here projections are rebuilt in the same
 * pass, and compared with those of the store that was backed up.
 */
import { type Clock, Ids, type Random } from '../clock.ts';
import type { Settings } from '../config.ts';
import type { RestoreReport } from '../doors/http/system-contract.ts';
import { assert, ServiceError } from '../errors.ts';
import { type Artefact, bytesOf, digestedAt } from '../log/backup/backup-artefact.ts';
import type { Disk } from '../log/disk/disk.ts';
import type { CommittedEntry } from '../log/entries/entry.ts';
import { writeKeysFrom } from '../log/keys/escrow.ts';
import { type BackgroundOpening, openJob } from '../log/files/frame-opener.ts';
import { type KeyContents, type Keyring, openKeyring } from '../log/keys/keys.ts';
import { recover } from '../log/recovery.ts';
import { type Restored, restoreBackup } from '../log/backup/backup-restore.ts';
import { startedAhead } from '../log/threads/workers.ts';
import { masterKeys } from '../master-keys.ts';
import { AuditProjection } from '../projections/audit/projection.ts';
import { Projections } from '../projections/projections.ts';
import { columnDigestJob } from '../projections/rows/digests/column-digests.ts';

export type OnProgress = (bytes: number, bytesTotal: number) => void;

/** The request of a restore: plain values only. */
export interface RestoreRequest {
  readonly settings: Settings;
  readonly version: string;
  /** The backup's directory. */
  readonly source: string;
  readonly target: string;
  /** The keys of now: of a store that runs, or from their escrow. */
  readonly keys: KeyContents;
}

export type BackgroundRestore = (request: RestoreRequest, signal: AbortSignal, onProgress?: OnProgress) => Promise<RestoreReport>;

export interface RestoreStoreOptions extends RestoreRequest {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly say: (line: string) => void;
  readonly yieldTurn: () => Promise<void>;
  readonly onProgress?: OnProgress;
  /** Opens and hashes beside the first thread, which then does not share its turns. */
  readonly openBeside?: BackgroundOpening;
}

/** Throws REL_UNPROCESSABLE, with the report, when what came of the replay is not what it must be. */
export async function restoreStore(restoreOptions: RestoreStoreOptions): Promise<RestoreReport> {
  const { openBeside } = restoreOptions;
  if (!openBeside) return await runRestore(restoreOptions);
  // The workers are ready by the time the copied files are read.
  const workersAhead = startedAhead(openBeside.startWorker, [openJob, columnDigestJob]);
  try {
    return await runRestore({ ...restoreOptions, openBeside: { ...openBeside, startWorker: workersAhead.startWorker } });
  } finally {
    await workersAhead.end();
  }
}

async function runRestore(restoreOptions: RestoreStoreOptions): Promise<RestoreReport> {
  const { disk, random, target: restoreTarget, keys: backupKeys, settings, say, yieldTurn } = restoreOptions;
  let restoredProjections: Projections | null = null;
  let backupDigests: ProjectionDigests | null = null;
  const restoreStartMs = restoreOptions.clock.monotonicMs();
  return await restoreBackup(
    {
      ...restoreOptions,
      publicKeys: publicKeysOf(backupKeys),
      putKeys: async () => {
        const master = await masterKeys({ ...settings, SERVICE_DATA_DIR: restoreTarget }, disk, random, say);
        await writeKeysFrom(backupKeys, { disk, random, directory: restoreTarget, kek: master.kek, yieldTurn });
        return await openKeyring({ disk, random, directory: restoreTarget, ...master });
      },
      rebuild: (artefact, keyring) => {
        const rebuilt = (restoredProjections = newRestoreProjections(restoreOptions, keyring));
        // Keys that the log says were destroyed will be: no fewer are in the end.
        const erased = Math.max(keyring.subjects.tombstones().length, artefact.erased_keys);
        const at = incomparableReason(restoreOptions, artefact, erased) === null ? digestedAt(artefact) : null;
        return (entry) => {
          rebuilt.apply(entry);
          if (entry.leaf + 1 !== at) return;
          return projectionDigestsOf(rebuilt, restoreOptions).then((rebuiltDigests) => void (backupDigests = rebuiltDigests));
        };
      },
    },
    async (verifiedLog) => {
      assert(restoredProjections, 'the log was read before it is judged');
      const restoreReport = await restoreReportOf(
        restoreOptions,
        verifiedLog,
        backupDigests,
        restoredProjections,
        restoreStartMs,
      );
      const differingNames = restoreReport.projections.filter(({ match }) => !match).map(({ name }) => name);
      if (differingNames.length === 0 && restoreReport.root_match && restoreReport.erased_absent) return restoreReport;
      const refusalReason =
        differingNames.length === 0
          ? 'what was erased is there'
          : `its projections differ from those of ${restoreReport.compared_with}: ${differingNames.join(', ')}`;
      throw new ServiceError('REL_UNPROCESSABLE', `the restored store is refused: ${refusalReason}`, {
        extras: { report: restoreReport },
      });
    },
  );
}

export const publicKeysOf = ({ secrets }: KeyContents): Uint8Array[] =>
  secrets.publicKeys.map((publicKey) => new Uint8Array(Buffer.from(publicKey, 'hex')));

type ProjectionDigests = Readonly<Record<string, string>>;

/** Digests of the projections, the digests to compare them with, and where those come from. */
interface DigestComparison {
  readonly digests: ProjectionDigests;
  readonly expected: ProjectionDigests;
  readonly with: string;
}

async function restoreReportOf(
  restoreOptions: RestoreStoreOptions,
  restoredStore: Restored,
  backupDigests: ProjectionDigests | null,
  restoredProjections: Projections,
  restoreStartMs: number,
): Promise<RestoreReport> {
  const { artefact: backupArtefact, root: restoredRoot } = restoredStore;
  const { clock } = restoreOptions;
  const digestComparison = await compareProjections(restoreOptions, restoredStore, backupDigests, restoredProjections);
  return {
    backup: backupArtefact.id,
    target_dir: restoreOptions.target,
    log_id: backupArtefact.log_id,
    root_match: restoredRoot === backupArtefact.root,
    root: restoredRoot,
    tree_size: backupArtefact.tree_size,
    rows: restoredStore.rows,
    blobs: restoredStore.blobs,
    size_bytes: bytesOf(backupArtefact),
    copy_ms: Math.round(restoredStore.copyMs),
    replay_ms: Math.round(clock.monotonicMs() - restoreStartMs),
    projections: projectionMatches(digestComparison),
    compared_with: digestComparison.with,
    rows_erased: restoredStore.rowsErased,
    erased_keys: restoredStore.erased.length,
    erased_absent: restoredStore.erasedAbsent,
  };
}

/** Every name that either side has: a projection that only one of them knows differs. */
function projectionMatches({ digests, expected }: DigestComparison): RestoreReport['projections'] {
  const projectionNames = new Set([...Object.keys(digests), ...Object.keys(expected)]);
  return [...projectionNames].map((projectionName) => ({
    name: projectionName,
    digest: digests[projectionName] ?? '',
    match: digests[projectionName] === expected[projectionName],
  }));
}

/** `backupDigests`: of the log as far as the store's own digests reach. */
async function compareProjections(
  restoreOptions: RestoreStoreOptions,
  restoredStore: Restored,
  backupDigests: ProjectionDigests | null,
  restoredProjections: Projections,
): Promise<DigestComparison> {
  const { artefact: backupArtefact } = restoredStore;
  const incomparableText = incomparableReason(restoreOptions, backupArtefact, restoredStore.erased.length);
  if (incomparableText === null && backupArtefact.projections) {
    if (!backupDigests)
      throw new ServiceError('REL_UNPROCESSABLE', 'the backup has digests for a position that its log does not contain');
    const digestedLeaf = digestedAt(backupArtefact)!;
    const headNote =
      digestedLeaf === backupArtefact.tree_size ? '' : `, as it was at ${digestedLeaf} of ${backupArtefact.tree_size} entries`;
    return { digests: backupDigests, expected: backupArtefact.projections, with: `the store that was backed up${headNote}` };
  }
  return {
    digests: await projectionDigestsOf(restoredProjections, restoreOptions),
    expected: await digestsOfRecovery(restoreOptions, restoredStore),
    with: `a second replay, by the reader that opens stores: ${incomparableText}`,
  };
}

/** Why digests of the store that was backed up say nothing about a store with so many keys destroyed; null where they do. */
function incomparableReason(
  { version: engineVersion }: RestoreStoreOptions,
  backupArtefact: Artefact,
  erasedKeyCount: number,
): string | null {
  if (backupArtefact.engine_version !== engineVersion) return `it was backed up by version ${backupArtefact.engine_version}`;
  if (!backupArtefact.projections) return 'the store was in use when it was backed up, and its projections were not digested';
  if (erasedKeyCount !== backupArtefact.erased_keys) return 'somebody was erased since it was backed up';
  return null;
}

/** Reads the log once more, as a start would. */
async function digestsOfRecovery(
  restoreOptions: RestoreStoreOptions,
  { artefact: backupArtefact, keyring }: Restored,
): Promise<ProjectionDigests> {
  const { disk, clock, random, target: restoreTarget, yieldTurn, openBeside } = restoreOptions;
  const recoveredProjections = newRestoreProjections(restoreOptions, keyring);
  const { end: recoveredEnd } = await recover({
    disk,
    clock,
    random,
    logDirectory: `${restoreTarget}/log`,
    keyring,
    origin: backupArtefact.origin,
    breathe: yieldTurn,
    replay: (entry: CommittedEntry) => recoveredProjections.apply(entry),
    ...(openBeside && { openBeside }),
  });
  await recoveredEnd.file.close();
  return await projectionDigestsOf(recoveredProjections, restoreOptions);
}

async function projectionDigestsOf(
  digestedProjections: Projections,
  { openBeside }: RestoreStoreOptions,
): Promise<ProjectionDigests> {
  return openBeside ? await digestedProjections.projector.digestsBeside(openBeside.startWorker) : digestedProjections.digests();
}

function newRestoreProjections({ clock, random, settings }: RestoreStoreOptions, { subjects }: Keyring): Projections {
  const ids = new Ids(clock, random);
  return new Projections({
    newKey: () => ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    textKeys: subjects,
    more: [new AuditProjection()],
  });
}
