/** `annals verify`: an fsck. Reads only, takes no lock, and works beside a running server or on a copy of its files. */
import { systemClock, systemRandom } from '../clock.ts';
import type { Settings } from '../config.ts';
import { ServiceError } from '../errors.ts';
import { MissingBodies } from '../governance/erasure/missing-bodies.ts';
import { Blobs } from '../log/blobs/blobs.ts';
import { keyFilePath, type Keyring, openKeyring } from '../log/keys/keys.ts';
import { OPEN_BESIDE_BYTES_MIN } from '../log/files/frame-opener.ts';
import { verifyDirectory, type VerifyReport } from '../log/verify/verify.ts';
import { spareCores, threadWorker } from '../log/threads/workers.ts';
import { localKeyFile, masterKeys } from '../master-keys.ts';
import { exitCode } from './exit-codes.ts';
import { type DirectoryOptions, directorySettings } from './local-store.ts';
import { count, Progress } from './progress.ts';
import { readOnlyDisk } from './read-only-disk.ts';
import { replayCommand } from './replay.ts';

export interface VerifyCommandOptions extends DirectoryOptions {
  readonly projections?: boolean;
  /** Leaves bodies shut. */
  readonly sealed?: boolean;
  readonly json?: boolean;
}

/** `--projections` opens the directory like `replay --check` does, so it waits for a running server to be stopped. */
export async function verifyCommand(options: VerifyCommandOptions, version: string): Promise<number> {
  const settings = directorySettings(options);
  const directory = settings.SERVICE_DATA_DIR;
  const keys = await readKeys(settings);
  const progress = new Progress('verify', systemClock);
  const startMs = systemClock.monotonicMs();
  const opened = options.sealed ? null : keys.keyring;
  const bodies = opened && missingBodies(opened, directory);
  const walked = await verifyDirectory({
    disk: readOnlyDisk,
    directory,
    sealed: options.sealed ?? false,
    ...(keys.keyring ? { keyring: keys.keyring } : {}),
    ...(spareCores() > 0 ? { openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN } } : {}),
    ...(bodies && { onEntry: (entry) => bodies.note(entry) }),
    onProgress: (bytes, total) => progress.update(bytes, total, 'bytes'),
  });
  const missing = (await bodies?.findings(readOnlyDisk, directory)) ?? [];
  const report = { ...walked, ok: walked.ok && missing.length === 0, findings: [...walked.findings, ...missing] };
  const seconds = (systemClock.monotonicMs() - startMs) / 1000;
  progress.finish(report.leaves, 'leaves');
  const ok = report.ok && keys.problem === null;
  const run: Run = {
    seconds,
    checked: checkedOf(report),
    bytesPerSecond: report.bytes / seconds,
    rowsPerSecond: report.rows / seconds,
  };
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ ...report, ok, keys: keys.problem, ...run })}\n`
      : reportText(directory, report, keys, run, options.sealed ?? false),
  );
  if (ok && options.projections) return replayCommand({ ...options, projection: [], check: true }, version);
  return ok ? exitCode.ok : exitCode.findings;
}

function missingBodies(keyring: Keyring, directory: string): MissingBodies {
  const blobs = new Blobs({ disk: readOnlyDisk, random: systemRandom, directory, keyring });
  return new MissingBodies({ key: keyring.hmacKey, address: (name) => blobs.address(name) });
}

interface Run {
  readonly seconds: number;
  readonly checked: readonly string[];
  readonly bytesPerSecond: number;
  /** Rows opened and recomputed, per second. */
  readonly rowsPerSecond: number;
}

/** The checks that a clean report vouches for. */
function checkedOf({ bodiesOpened, leaves, checkpoint }: VerifyReport): readonly string[] {
  const checked = ['manifest', 'frame checksums', 'payload digests', 'chain', 'tree'];
  if (checkpoint?.signature === 'verified') checked.push('signed heads');
  if (bodiesOpened === leaves && leaves > 0) checked.push('every body', 'rows roots', 'blobs');
  return checked;
}

interface Keys {
  readonly keyring: Keyring | null;
  /** Why the key file does not open, where it is there. */
  readonly problem: string | null;
}

async function readKeys(settings: Settings): Promise<Keys> {
  const directory = settings.SERVICE_DATA_DIR;
  const given = settings.SERVICE_KEK !== null || settings.SERVICE_KEK_FILE !== null;
  const hasKeys = given || (await readOnlyDisk.size(localKeyFile(directory))) !== undefined;
  if (!hasKeys || (await readOnlyDisk.size(keyFilePath(directory))) === undefined) return { keyring: null, problem: null };
  try {
    const master = await masterKeys(settings, readOnlyDisk, systemRandom, () => undefined);
    return { keyring: await openKeyring({ disk: readOnlyDisk, random: systemRandom, directory, ...master }), problem: null };
  } catch (error) {
    if (error instanceof ServiceError) return { keyring: null, problem: error.message };
    throw error;
  }
}

function reportText(directory: string, report: VerifyReport, { keyring, problem }: Keys, run: Run, sealed: boolean): string {
  const lines: string[] = [];
  const { findings, checkpoint } = report;
  for (const { place, leaf, what } of findings) lines.push(`BAD   ${place}${leaf === null ? '' : ` (leaf ${leaf})`}: ${what}`);
  if (problem !== null) lines.push(`BAD   keys: ${problem}`);
  for (const note of report.notes) lines.push(`note  ${note}`);
  lines.push(`log         ${report.logId ?? 'unknown'} in ${directory}`);
  lines.push(`read        ${count(report.bytes)} bytes, ${count(report.files)} files, ${count(report.frames)} frames`);
  lines.push(`entries     ${count(report.leaves)} leaves, ${count(report.positions)} positions, ${count(report.seals)} seals`);
  const opened = `${count(report.bodiesOpened)} bodies opened, ${count(report.rows)} rows and ${count(report.blobs)} blobs checked`;
  const erased = `${count(report.rowsErased)} rows: their keys are destroyed, their hashes hold`;
  const shut = `not opened: ${keyring ? 'asked to leave bodies shut' : 'no keys were given'}; digests and chain are checked all the same`;
  lines.push(`content     ${keyring && !sealed ? opened : shut}`);
  if (report.rowsErased > 0) lines.push(`erased      ${erased}`);
  if (report.rowsPruned > 0)
    lines.push(`pruned      ${count(report.rowsPruned)} rows: removed for good before, their hashes hold`);
  lines.push(`checked     ${run.checked.join(', ')}`);
  const rows = report.rows > 0 ? `, ${count(Math.round(run.rowsPerSecond))} rows/s` : '';
  lines.push(`speed       ${run.seconds.toFixed(2)} s, ${count(Math.round(run.bytesPerSecond / 1e6))} MB/s${rows}`);
  lines.push(`root        ${report.root ?? 'none: leaves are missing'}`);
  lines.push(`signed head ${checkpoint ? `${count(checkpoint.size)} leaves, signature ${checkpoint.signature}` : 'none yet'}`);
  const bad = findings.length + (problem === null ? 0 : 1);
  lines.push(bad === 0 ? 'intact' : `NOT INTACT: ${count(bad)} finding${bad === 1 ? '' : 's'}`);
  return `${lines.join('\n')}\n`;
}
