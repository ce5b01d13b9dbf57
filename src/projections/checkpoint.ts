/**
 * The saved state of all projections and of the log at one leaf: one derived file, replaced atomically, and the segment and
 * tree files that it names. Positions and data can't part, and no projection stands elsewhere than another.
 *
 * A checkpoint is a shortcut and never a source: whatever is wrong with it, it is refused with a reason and everything is
 * rebuilt from the log.
 */
import { assert } from '../errors.ts';
import {
  DerivedFile,
  DerivedFileError,
  DerivedFileWriter,
  type DerivedHome,
  type DerivedReader,
} from '../log/blobs/derived-file.ts';
import type { SavedLog } from '../log/files/saved-log.ts';
import type { CheckpointReader } from './projection.ts';
import type { Projector } from './projector.ts';

/** How much of which log a checkpoint stands for. */
export interface CheckpointPosition {
  readonly logId: string;
  /** Leaves that are applied. */
  readonly leaves: number;
  /** Lower-case hex hash of the last of them. */
  readonly leafHash: string;
}

/** The state of all projections, taken within one turn. */
export interface Captured {
  readonly leaves: number;
  readonly projections: readonly CapturedProjection[];
  /** Derived files that it rests on; all of them once it is written. */
  readonly files: ReadonlySet<string>;
  /** Rejects when a projection could not say. */
  readonly complete: Promise<unknown>;
}

interface CapturedProjection {
  readonly name: string;
  readonly format: number;
  readonly sections: Map<string, Uint8Array | (() => Uint8Array)>;
}

interface CheckpointContents {
  readonly format: number;
  readonly leaves: number;
  readonly leafHash: string;
  readonly projections: readonly { readonly name: string; readonly format: number }[];
  readonly files: readonly string[];
  readonly blobs: readonly string[];
}

const CHECKPOINT_FORMAT = 1;
const CHECKPOINT_NAME = 'checkpoint';
const PENDING_SUFFIX = '.new';

/**
 * Captures everything in the calling turn; large parts are serialised later, as they were now. With `filesToCome` the caller
 * first waits for files that are being written.
 */
export function captureCheckpoint(projector: Projector, filesToCome = false): Captured {
  const leaves = projector.watermark;
  const files = new Set<string>();
  const checkpointsComplete: Promise<void>[] = [];
  const projections = projector.names.map((name): CapturedProjection => {
    assert(projector.watermarkOf(name) === leaves, 'projections are saved at one leaf');
    const capturedProjection = projector.projection(name);
    const sections: CapturedProjection['sections'] = new Map();
    checkpointsComplete.push(
      capturedProjection.checkpoint({
        section: (section, bytes) => void sections.set(section, bytes),
        file: (file) => void files.add(file),
        filesToCome,
      }),
    );
    return { name, format: capturedProjection.formatVersion, sections };
  });
  return { leaves, projections, files, complete: Promise.all(checkpointsComplete) };
}

/** Makes it the newest one. Its log entries must be durable by now. */
export async function writeCheckpoint(
  checkpointHome: DerivedHome,
  capturedCheckpoint: Captured,
  savedLog: SavedLog,
): Promise<CheckpointPosition> {
  const { disk, directory, logId } = checkpointHome;
  assert(savedLog.leaves === capturedCheckpoint.leaves, 'log and projections are saved at one leaf');
  await capturedCheckpoint.complete;
  const blobs: string[] = [];
  for (const logBlob of savedLog.blobs) {
    blobs.push(logBlob.name);
    if ((await disk.size(`${directory}/${logBlob.name}`)) !== undefined) continue;
    await replaceCheckpointFile(checkpointHome, logBlob.name, (checkpointWriter) =>
      checkpointWriter.chunk('bytes', [logBlob.bytes()]),
    );
  }
  await replaceCheckpointFile(checkpointHome, CHECKPOINT_NAME, async (checkpointWriter) => {
    for (const { name, sections } of capturedCheckpoint.projections) {
      for (const [section, sectionBytes] of sections) {
        await checkpointWriter.chunk(`${name}/${section}`, [typeof sectionBytes === 'function' ? sectionBytes() : sectionBytes]);
        // Frees each section once it is written, not when all are.
        sections.set(section, noSectionBytes);
      }
    }
    await checkpointWriter.chunk('log', [savedLog.bytes]);
    const checkpointContents: CheckpointContents = {
      format: CHECKPOINT_FORMAT,
      leaves: savedLog.leaves,
      leafHash: savedLog.leafHash,
      projections: capturedCheckpoint.projections.map(({ name, format }) => ({ name, format })),
      files: [...capturedCheckpoint.files],
      blobs,
    };
    await checkpointWriter.chunk('contents', [Buffer.from(JSON.stringify(checkpointContents))]);
  });
  return { logId, leaves: savedLog.leaves, leafHash: savedLog.leafHash };
}

/** Never again believed. */
export async function dropCheckpoint({ disk, directory }: DerivedReader): Promise<void> {
  if ((await disk.size(`${directory}/${CHECKPOINT_NAME}`)) !== undefined) await disk.unlink(`${directory}/${CHECKPOINT_NAME}`);
}

/** The newest checkpoint, open; undefined where there is none. Throws a DerivedFileError for what is not one. */
export class Checkpoint {
  readonly position: CheckpointPosition;
  /** All files that it consists of. */
  readonly files: ReadonlySet<string>;
  readonly #checkpointFile: DerivedFile;
  readonly #checkpointContents: CheckpointContents;
  readonly #checkpointBlobs: ReadonlyMap<string, DerivedFile>;

  private constructor(
    checkpointFile: DerivedFile,
    checkpointContents: CheckpointContents,
    checkpointBlobs: ReadonlyMap<string, DerivedFile>,
  ) {
    this.#checkpointFile = checkpointFile;
    this.#checkpointContents = checkpointContents;
    this.#checkpointBlobs = checkpointBlobs;
    this.position = { logId: checkpointFile.logId, leaves: checkpointContents.leaves, leafHash: checkpointContents.leafHash };
    this.files = new Set([CHECKPOINT_NAME, ...checkpointContents.files, ...checkpointContents.blobs]);
  }

  static async open(derivedReader: DerivedReader): Promise<Checkpoint | undefined> {
    const checkpointFile = await DerivedFile.open(derivedReader, CHECKPOINT_NAME);
    if (!checkpointFile) return undefined;
    const openedFiles: DerivedFile[] = [checkpointFile];
    try {
      const checkpointContents = JSON.parse(Buffer.from(checkpointFile.readNow('contents')).toString()) as CheckpointContents;
      if (checkpointContents.format !== CHECKPOINT_FORMAT) throw new DerivedFileError(CHECKPOINT_NAME, 'it has another format');
      const checkpointBlobs = new Map<string, DerivedFile>();
      for (const name of checkpointContents.blobs) {
        const checkpointBlob = await DerivedFile.open({ ...derivedReader, logId: checkpointFile.logId }, name);
        if (!checkpointBlob) throw new DerivedFileError(name, 'it is missing');
        openedFiles.push(checkpointBlob);
        checkpointBlobs.set(name, checkpointBlob);
      }
      return new Checkpoint(checkpointFile, checkpointContents, checkpointBlobs);
    } catch (error) {
      for (const openedFile of openedFiles) await openedFile.close();
      throw error;
    }
  }

  /** The saved log, from which the log continues. */
  get log(): { readonly bytes: Uint8Array; blob(name: string): Uint8Array } {
    return {
      bytes: this.#checkpointFile.readNow('log'),
      blob: (name) => {
        const blob = this.#checkpointBlobs.get(name);
        assert(blob, 'a checkpoint has the blobs that its log names');
        return blob.readNow('bytes');
      },
    };
  }

  /**
   * Brings projections to its leaf. Those that it does not hold, or holds in another format, are left behind
   * (`Projector.behind`), and so are those that rest on them. Throws with all of them reset where it can't be read.
   */
  async restore(projector: Projector): Promise<void> {
    const { projections, leaves } = this.#checkpointContents;
    try {
      const savedFormats = new Map(projections.map(({ name, format }) => [name, format]));
      const projectionsBehind = new Set<string>();
      for (const name of projector.names) {
        const { formatVersion, restsOn = [] } = projector.projection(name);
        if (
          savedFormats.get(name) !== formatVersion ||
          restsOn.some((underlyingProjection) => projectionsBehind.has(underlyingProjection))
        ) {
          projectionsBehind.add(name);
          projector.leaveBehind(name);
          continue;
        }
        await projector.projection(name).restore(this.#savedSections(name));
        projector.markRestored(name, leaves);
      }
    } catch (error) {
      projector.reset();
      throw error;
    }
  }

  /** Closes the state; the blobs of old proofs stay readable. */
  async closeState(): Promise<void> {
    await this.#checkpointFile.close();
  }

  async closeBlobs(): Promise<void> {
    for (const checkpointBlob of this.#checkpointBlobs.values()) await checkpointBlob.close();
  }

  #savedSections(projection: string): CheckpointReader {
    return {
      section: (section) => {
        const chunk = `${projection}/${section}`;
        return this.#checkpointFile.has(chunk) ? this.#checkpointFile.readNow(chunk) : undefined;
      },
    };
  }
}

/**
 * Removes derived files that no state rests on. One that can't be removed, a directory say, is left and reported, and no
 * certificate is issued over it.
 */
export async function removeStrays(
  { disk, directory }: DerivedReader,
  isKept: (strayFile: string) => boolean,
  sayNotRemoved: (line: string) => void,
): Promise<void> {
  for (const strayFile of await disk.list(directory)) {
    if (isKept(strayFile)) continue;
    try {
      await disk.unlink(`${directory}/${strayFile}`);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      sayNotRemoved(
        `${directory}/${strayFile} is no file of the store and can't be removed; erasures get no certificate until it is moved elsewhere`,
      );
    }
  }
}

const noSectionBytes = new Uint8Array(0);

/** Writes a file beside its place, durable in every byte, and then gives it its name. */
async function replaceCheckpointFile(
  checkpointHome: DerivedHome,
  replacedFile: string,
  writeChunks: (checkpointWriter: DerivedFileWriter) => Promise<void>,
): Promise<void> {
  const { disk, directory } = checkpointHome;
  const pendingFile = `${directory}/${replacedFile}${PENDING_SUFFIX}`;
  if ((await disk.size(pendingFile)) !== undefined) await disk.unlink(pendingFile);
  const checkpointWriter = await DerivedFileWriter.create(checkpointHome, replacedFile, `${replacedFile}${PENDING_SUFFIX}`);
  try {
    await writeChunks(checkpointWriter);
    await (await checkpointWriter.finish()).close();
  } catch (error) {
    await checkpointWriter.abandon();
    throw error;
  }
  // The names of what it rests on are durable before its own is.
  await disk.syncDirectory(directory);
  await disk.rename(pendingFile, `${directory}/${replacedFile}`);
  await disk.syncDirectory(directory);
}
