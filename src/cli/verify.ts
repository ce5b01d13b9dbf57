/** `annals verify`: an fsck. Reads only, takes no lock, and works beside a running server or on a copy of its files. */
import { systemClock, systemRandom } from '../clock.ts';
import type { Settings } from '../config.ts';
import { ServiceError } from '../errors.ts';
import { MissingBodies } from '../governance/erasure/missing-bodies.ts';
import { Blobs } from '../log/blobs/blobs.ts';
import { keyFilePath, type Keyring, openKeyring } from '../log/keys/keys.ts';
import { OPEN_BESIDE_BYTES_MIN } from '../log/files/frame-opener.ts';
import { verifyDirectory, type VerifyReport } from '../log/proofs/verify.ts';
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
export async function verifyCommand(verifyOptions: VerifyCommandOptions, version: string): Promise<number> {
  const settings = directorySettings(verifyOptions);
  const dataDirectory = settings.SERVICE_DATA_DIR;
  const verifyKeys = await readVerifyKeys(settings);
  const verifyProgress = new Progress('verify', systemClock);
  const verifyStartMs = systemClock.monotonicMs();
  const openedKeyring = verifyOptions.sealed ? null : verifyKeys.keyring;
  const missingBodyFinder = openedKeyring && findMissingBodies(openedKeyring, dataDirectory);
  const logReport = await verifyDirectory({
    disk: readOnlyDisk,
    directory: dataDirectory,
    sealed: verifyOptions.sealed ?? false,
    ...(verifyKeys.keyring ? { keyring: verifyKeys.keyring } : {}),
    ...(spareCores() > 0 ? { openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN } } : {}),
    ...(missingBodyFinder && { onEntry: (entry) => missingBodyFinder.note(entry) }),
    onProgress: (bytes, total) => verifyProgress.update(bytes, total, 'bytes'),
  });
  const missingFindings = (await missingBodyFinder?.findings(readOnlyDisk, dataDirectory)) ?? [];
  const verifyReport = {
    ...logReport,
    ok: logReport.ok && missingFindings.length === 0,
    findings: [...logReport.findings, ...missingFindings],
  };
  const seconds = (systemClock.monotonicMs() - verifyStartMs) / 1000;
  verifyProgress.finish(verifyReport.leaves, 'leaves');
  const isIntact = verifyReport.ok && verifyKeys.problem === null;
  const verifyRun: VerifyRun = {
    seconds,
    checked: checkedPartsOf(verifyReport),
    bytesPerSecond: verifyReport.bytes / seconds,
    rowsPerSecond: verifyReport.rows / seconds,
  };
  process.stdout.write(
    verifyOptions.json
      ? `${JSON.stringify({ ...verifyReport, ok: isIntact, keys: verifyKeys.problem, ...verifyRun })}\n`
      : verifyReportText(dataDirectory, verifyReport, verifyKeys, verifyRun, verifyOptions.sealed ?? false),
  );
  if (isIntact && verifyOptions.projections) return replayCommand({ ...verifyOptions, projection: [], check: true }, version);
  return isIntact ? exitCode.ok : exitCode.findings;
}

function findMissingBodies(keyring: Keyring, directory: string): MissingBodies {
  const verifiedBlobs = new Blobs({ disk: readOnlyDisk, random: systemRandom, directory, keyring });
  return new MissingBodies({ key: keyring.hmacKey, address: (name) => verifiedBlobs.address(name) });
}

interface VerifyRun {
  readonly seconds: number;
  readonly checked: readonly string[];
  readonly bytesPerSecond: number;
  /** Rows opened and recomputed, per second. */
  readonly rowsPerSecond: number;
}

/** The checks that a clean report vouches for. */
function checkedPartsOf({ bodiesOpened, leaves, checkpoint }: VerifyReport): readonly string[] {
  const checkedParts = ['manifest', 'frame checksums', 'payload digests', 'chain', 'tree'];
  if (checkpoint?.signature === 'verified') checkedParts.push('signed heads');
  if (bodiesOpened === leaves && leaves > 0) checkedParts.push('every body', 'rows roots', 'blobs');
  return checkedParts;
}

interface VerifyCommandKeys {
  readonly keyring: Keyring | null;
  /** Why the key file does not open, where it is there. */
  readonly problem: string | null;
}

async function readVerifyKeys(settings: Settings): Promise<VerifyCommandKeys> {
  const dataDirectory = settings.SERVICE_DATA_DIR;
  const isKekConfigured = settings.SERVICE_KEK !== null || settings.SERVICE_KEK_FILE !== null;
  const hasKeys = isKekConfigured || (await readOnlyDisk.size(localKeyFile(dataDirectory))) !== undefined;
  if (!hasKeys || (await readOnlyDisk.size(keyFilePath(dataDirectory))) === undefined) return { keyring: null, problem: null };
  try {
    const verifyMasterKeys = await masterKeys(settings, readOnlyDisk, systemRandom, () => undefined);
    return {
      keyring: await openKeyring({ disk: readOnlyDisk, random: systemRandom, directory: dataDirectory, ...verifyMasterKeys }),
      problem: null,
    };
  } catch (keyError) {
    if (keyError instanceof ServiceError) return { keyring: null, problem: keyError.message };
    throw keyError;
  }
}

function verifyReportText(
  verifiedDirectory: string,
  verifyReport: VerifyReport,
  { keyring, problem }: VerifyCommandKeys,
  verifyRun: VerifyRun,
  onlySealed: boolean,
): string {
  const reportLines: string[] = [];
  const { findings, checkpoint } = verifyReport;
  for (const { place, leaf, what } of findings)
    reportLines.push(`BAD   ${place}${leaf === null ? '' : ` (leaf ${leaf})`}: ${what}`);
  if (problem !== null) reportLines.push(`BAD   keys: ${problem}`);
  for (const verifyNote of verifyReport.notes) reportLines.push(`note  ${verifyNote}`);
  reportLines.push(`log         ${verifyReport.logId ?? 'unknown'} in ${verifiedDirectory}`);
  reportLines.push(
    `read        ${count(verifyReport.bytes)} bytes, ${count(verifyReport.files)} files, ${count(verifyReport.frames)} frames`,
  );
  reportLines.push(
    `entries     ${count(verifyReport.leaves)} leaves, ${count(verifyReport.positions)} positions, ${count(verifyReport.seals)} seals`,
  );
  const openedText = `${count(verifyReport.bodiesOpened)} bodies opened, ${count(verifyReport.rows)} rows and ${count(verifyReport.blobs)} blobs checked`;
  const erasedText = `${count(verifyReport.rowsErased)} rows: their keys are destroyed, their hashes hold`;
  const unopenedText = `not opened: ${keyring ? 'asked to leave bodies shut' : 'no keys were given'}; digests and chain are checked all the same`;
  reportLines.push(`content     ${keyring && !onlySealed ? openedText : unopenedText}`);
  if (verifyReport.rowsErased > 0) reportLines.push(`erased      ${erasedText}`);
  if (verifyReport.rowsPruned > 0)
    reportLines.push(`pruned      ${count(verifyReport.rowsPruned)} rows: removed for good before, their hashes hold`);
  reportLines.push(`checked     ${verifyRun.checked.join(', ')}`);
  const rowRateText = verifyReport.rows > 0 ? `, ${count(Math.round(verifyRun.rowsPerSecond))} rows/s` : '';
  reportLines.push(
    `speed       ${verifyRun.seconds.toFixed(2)} s, ${count(Math.round(verifyRun.bytesPerSecond / 1e6))} MB/s${rowRateText}`,
  );
  reportLines.push(`root        ${verifyReport.root ?? 'none: leaves are missing'}`);
  reportLines.push(
    `signed head ${checkpoint ? `${count(checkpoint.size)} leaves, signature ${checkpoint.signature}` : 'none yet'}`,
  );
  const faultCount = findings.length + (problem === null ? 0 : 1);
  reportLines.push(faultCount === 0 ? 'intact' : `NOT INTACT: ${count(faultCount)} finding${faultCount === 1 ? '' : 's'}`);
  return `${reportLines.join('\n')}\n`;
}
