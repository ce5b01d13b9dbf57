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

interface Contents {
  readonly format: number;
  readonly leaves: number;
  readonly leafHash: string;
  readonly projections: readonly { readonly name: string; readonly format: number }[];
  readonly files: readonly string[];
  readonly blobs: readonly string[];
}

const FORMAT = 1;
const NAME = 'checkpoint';
const PENDING = '.new';

/**
 * Captures everything in the calling turn; large parts are serialised later, as they were now. With `filesToCome` the caller
 * first waits for files that are being written.
 */
export function captureCheckpoint(projector: Projector, filesToCome = false): Captured {
  const leaves = projector.watermark;
  const files = new Set<string>();
  const complete: Promise<void>[] = [];
  const projections = projector.names.map((name): CapturedProjection => {
    assert(projector.watermarkOf(name) === leaves, 'projections are saved at one leaf');
    const projection = projector.projection(name);
    const sections: CapturedProjection['sections'] = new Map();
    complete.push(
      projection.checkpoint({
        section: (section, bytes) => void sections.set(section, bytes),
        file: (file) => void files.add(file),
        filesToCome,
      }),
    );
    return { name, format: projection.formatVersion, sections };
  });
  return { leaves, projections, files, complete: Promise.all(complete) };
}

/** Makes it the newest one. Its log entries must be durable by now. */
export async function writeCheckpoint(home: DerivedHome, captured: Captured, log: SavedLog): Promise<CheckpointPosition> {
  const { disk, directory, logId } = home;
  assert(log.leaves === captured.leaves, 'log and projections are saved at one leaf');
  await captured.complete;
  const blobs: string[] = [];
  for (const blob of log.blobs) {
    blobs.push(blob.name);
    if ((await disk.size(`${directory}/${blob.name}`)) !== undefined) continue;
    await replace(home, blob.name, (writer) => writer.chunk('bytes', [blob.bytes()]));
  }
  await replace(home, NAME, async (writer) => {
    for (const { name, sections } of captured.projections) {
      for (const [section, bytes] of sections) {
        await writer.chunk(`${name}/${section}`, [typeof bytes === 'function' ? bytes() : bytes]);
        // Frees each section once it is written, not when all are.
        sections.set(section, none);
      }
    }
    await writer.chunk('log', [log.bytes]);
    const contents: Contents = {
      format: FORMAT,
      leaves: log.leaves,
      leafHash: log.leafHash,
      projections: captured.projections.map(({ name, format }) => ({ name, format })),
      files: [...captured.files],
      blobs,
    };
    await writer.chunk('contents', [Buffer.from(JSON.stringify(contents))]);
  });
  return { logId, leaves: log.leaves, leafHash: log.leafHash };
}

/** Never again believed. */
export async function dropCheckpoint({ disk, directory }: DerivedReader): Promise<void> {
  if ((await disk.size(`${directory}/${NAME}`)) !== undefined) await disk.unlink(`${directory}/${NAME}`);
}

/** The newest checkpoint, open; undefined where there is none. Throws a DerivedFileError for what is not one. */
export class Checkpoint {
  readonly position: CheckpointPosition;
  /** All files that it consists of. */
  readonly files: ReadonlySet<string>;
  readonly #file: DerivedFile;
  readonly #contents: Contents;
  readonly #blobs: ReadonlyMap<string, DerivedFile>;

  private constructor(file: DerivedFile, contents: Contents, blobs: ReadonlyMap<string, DerivedFile>) {
    this.#file = file;
    this.#contents = contents;
    this.#blobs = blobs;
    this.position = { logId: file.logId, leaves: contents.leaves, leafHash: contents.leafHash };
    this.files = new Set([NAME, ...contents.files, ...contents.blobs]);
  }

  static async open(reader: DerivedReader): Promise<Checkpoint | undefined> {
    const file = await DerivedFile.open(reader, NAME);
    if (!file) return undefined;
    const opened: DerivedFile[] = [file];
    try {
      const contents = JSON.parse(Buffer.from(file.readNow('contents')).toString()) as Contents;
      if (contents.format !== FORMAT) throw new DerivedFileError(NAME, 'it has another format');
      const blobs = new Map<string, DerivedFile>();
      for (const name of contents.blobs) {
        const blob = await DerivedFile.open({ ...reader, logId: file.logId }, name);
        if (!blob) throw new DerivedFileError(name, 'it is missing');
        opened.push(blob);
        blobs.set(name, blob);
      }
      return new Checkpoint(file, contents, blobs);
    } catch (error) {
      for (const each of opened) await each.close();
      throw error;
    }
  }

  /** The saved log, from which the log continues. */
  get log(): { readonly bytes: Uint8Array; blob(name: string): Uint8Array } {
    return {
      bytes: this.#file.readNow('log'),
      blob: (name) => {
        const blob = this.#blobs.get(name);
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
    const { projections, leaves } = this.#contents;
    try {
      const formats = new Map(projections.map(({ name, format }) => [name, format]));
      const behind = new Set<string>();
      for (const name of projector.names) {
        const { formatVersion, restsOn = [] } = projector.projection(name);
        if (formats.get(name) !== formatVersion || restsOn.some((other) => behind.has(other))) {
          behind.add(name);
          projector.leaveBehind(name);
          continue;
        }
        await projector.projection(name).restore(this.#sections(name));
        projector.markRestored(name, leaves);
      }
    } catch (error) {
      projector.reset();
      throw error;
    }
  }

  /** Closes the state; the blobs of old proofs stay readable. */
  async closeState(): Promise<void> {
    await this.#file.close();
  }

  async closeBlobs(): Promise<void> {
    for (const blob of this.#blobs.values()) await blob.close();
  }

  #sections(projection: string): CheckpointReader {
    return {
      section: (section) => {
        const chunk = `${projection}/${section}`;
        return this.#file.has(chunk) ? this.#file.readNow(chunk) : undefined;
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
  isKept: (name: string) => boolean,
  say: (line: string) => void,
): Promise<void> {
  for (const name of await disk.list(directory)) {
    if (isKept(name)) continue;
    try {
      await disk.unlink(`${directory}/${name}`);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      say(
        `${directory}/${name} is no file of the store and can't be removed; erasures get no certificate until it is moved elsewhere`,
      );
    }
  }
}

const none = new Uint8Array(0);

/** Writes a file beside its place, durable in every byte, and then gives it its name. */
async function replace(home: DerivedHome, name: string, write: (writer: DerivedFileWriter) => Promise<void>): Promise<void> {
  const { disk, directory } = home;
  const pending = `${directory}/${name}${PENDING}`;
  if ((await disk.size(pending)) !== undefined) await disk.unlink(pending);
  const writer = await DerivedFileWriter.create(home, name, `${name}${PENDING}`);
  try {
    await write(writer);
    await (await writer.finish()).close();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
  // The names of what it rests on are durable before its own is.
  await disk.syncDirectory(directory);
  await disk.rename(pending, `${directory}/${name}`);
  await disk.syncDirectory(directory);
}
