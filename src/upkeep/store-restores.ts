/**
 * Stores made from backups. `log/backup/backup-restore.ts` copies the files and checks the log; here projections are rebuilt in the same
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
export async function restoreStore(options: RestoreStoreOptions): Promise<RestoreReport> {
  const { openBeside } = options;
  if (!openBeside) return await runRestore(options);
  // The workers are ready by the time the copied files are read.
  const ahead = startedAhead(openBeside.startWorker, [openJob, columnDigestJob]);
  try {
    return await runRestore({ ...options, openBeside: { ...openBeside, startWorker: ahead.startWorker } });
  } finally {
    await ahead.end();
  }
}

async function runRestore(options: RestoreStoreOptions): Promise<RestoreReport> {
  const { disk, random, target, keys, settings, say, yieldTurn } = options;
  let projections: Projections | null = null;
  let digests: Digests | null = null;
  const startMs = options.clock.monotonicMs();
  return await restoreBackup(
    {
      ...options,
      publicKeys: publicKeysOf(keys),
      putKeys: async () => {
        const master = await masterKeys({ ...settings, SERVICE_DATA_DIR: target }, disk, random, say);
        await writeKeysFrom(keys, { disk, random, directory: target, kek: master.kek, yieldTurn });
        return await openKeyring({ disk, random, directory: target, ...master });
      },
      rebuild: (artefact, keyring) => {
        const rebuilt = (projections = freshProjections(options, keyring));
        // Keys that the log says were destroyed will be: no fewer are in the end.
        const erased = Math.max(keyring.subjects.tombstones().length, artefact.erased_keys);
        const at = incomparable(options, artefact, erased) === null ? digestedAt(artefact) : null;
        return (entry) => {
          rebuilt.apply(entry);
          if (entry.leaf + 1 !== at) return;
          return digestsOf(rebuilt, options).then((rebuiltDigests) => void (digests = rebuiltDigests));
        };
      },
    },
    async (verifiedLog) => {
      assert(projections, 'the log was read before it is judged');
      const report = await reportOf(options, verifiedLog, digests, projections, startMs);
      const other = report.projections.filter(({ match }) => !match).map(({ name }) => name);
      if (other.length === 0 && report.root_match && report.erased_absent) return report;
      const what =
        other.length === 0
          ? 'what was erased is there'
          : `its projections differ from those of ${report.compared_with}: ${other.join(', ')}`;
      throw new ServiceError('REL_UNPROCESSABLE', `the restored store is refused: ${what}`, { extras: { report } });
    },
  );
}

export const publicKeysOf = ({ secrets }: KeyContents): Uint8Array[] =>
  secrets.publicKeys.map((key) => new Uint8Array(Buffer.from(key, 'hex')));

type Digests = Readonly<Record<string, string>>;

/** Digests of the projections, the digests to compare them with, and where those come from. */
interface Comparison {
  readonly digests: Digests;
  readonly expected: Digests;
  readonly with: string;
}

async function reportOf(
  options: RestoreStoreOptions,
  restored: Restored,
  digests: Digests | null,
  projections: Projections,
  startMs: number,
): Promise<RestoreReport> {
  const { artefact, root } = restored;
  const { clock } = options;
  const compared = await comparisonOf(options, restored, digests, projections);
  return {
    backup: artefact.id,
    target_dir: options.target,
    log_id: artefact.log_id,
    root_match: root === artefact.root,
    root,
    tree_size: artefact.tree_size,
    rows: restored.rows,
    blobs: restored.blobs,
    size_bytes: bytesOf(artefact),
    copy_ms: Math.round(restored.copyMs),
    replay_ms: Math.round(clock.monotonicMs() - startMs),
    projections: matches(compared),
    compared_with: compared.with,
    rows_erased: restored.rowsErased,
    erased_keys: restored.erased.length,
    erased_absent: restored.erasedAbsent,
  };
}

/** Every name that either side has: a projection that only one of them knows differs. */
function matches({ digests, expected }: Comparison): RestoreReport['projections'] {
  const names = new Set([...Object.keys(digests), ...Object.keys(expected)]);
  return [...names].map((name) => ({ name, digest: digests[name] ?? '', match: digests[name] === expected[name] }));
}

/** `digests`: of the log as far as the store's own digests reach. */
async function comparisonOf(
  options: RestoreStoreOptions,
  restored: Restored,
  digests: Digests | null,
  projections: Projections,
): Promise<Comparison> {
  const { artefact } = restored;
  const why = incomparable(options, artefact, restored.erased.length);
  if (why === null && artefact.projections) {
    if (!digests)
      throw new ServiceError('REL_UNPROCESSABLE', 'the backup has digests for a position that its log does not contain');
    const at = digestedAt(artefact)!;
    const headNote = at === artefact.tree_size ? '' : `, as it was at ${at} of ${artefact.tree_size} entries`;
    return { digests, expected: artefact.projections, with: `the store that was backed up${headNote}` };
  }
  return {
    digests: await digestsOf(projections, options),
    expected: await digestsOfRecovery(options, restored),
    with: `a second replay, by the reader that opens stores: ${why}`,
  };
}

/** Why digests of the store that was backed up say nothing about a store with so many keys destroyed; null where they do. */
function incomparable({ version }: RestoreStoreOptions, artefact: Artefact, erased: number): string | null {
  if (artefact.engine_version !== version) return `it was backed up by version ${artefact.engine_version}`;
  if (!artefact.projections) return 'the store was in use when it was backed up, and its projections were not digested';
  if (erased !== artefact.erased_keys) return 'somebody was erased since it was backed up';
  return null;
}

/** Reads the log once more, as a start would. */
async function digestsOfRecovery(options: RestoreStoreOptions, { artefact, keyring }: Restored): Promise<Digests> {
  const { disk, clock, random, target, yieldTurn, openBeside } = options;
  const projections = freshProjections(options, keyring);
  const { end } = await recover({
    disk,
    clock,
    random,
    logDirectory: `${target}/log`,
    keyring,
    origin: artefact.origin,
    breathe: yieldTurn,
    replay: (entry: CommittedEntry) => projections.apply(entry),
    ...(openBeside && { openBeside }),
  });
  await end.file.close();
  return await digestsOf(projections, options);
}

async function digestsOf(projections: Projections, { openBeside }: RestoreStoreOptions): Promise<Digests> {
  return openBeside ? await projections.projector.digestsBeside(openBeside.startWorker) : projections.digests();
}

function freshProjections({ clock, random, settings }: RestoreStoreOptions, { subjects }: Keyring): Projections {
  const ids = new Ids(clock, random);
  return new Projections({
    newKey: () => ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    textKeys: subjects,
    more: [new AuditProjection()],
  });
}
