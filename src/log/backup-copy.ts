/**
 * The copy of a log that a backup consists of, and its reading back, which goes on behind the copying: what was written last is
 * in memory still. Given as values, so that a thread may do it beside the store.
 */
import type { KeyObject } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import type { CopiedFile } from './backup-artefact.ts';
import { CopyFront } from './copy-front.ts';
import type { Disk } from './disk.ts';
import { writeCopy } from './file-copy.ts';
import type { Keyring } from './keys.ts';
import { pacedDisk } from './paced-disk.ts';
import { noSubjects } from './rows-codec.ts';
import { sha256Hex } from './sha256.ts';
import { verifyDirectory, type VerifyKeys } from './verify.ts';

/** A file by its path below the data directory, and how much of it is to be copied. */
export interface FileToCopy {
  readonly name: string;
  readonly length: number;
}

export interface CopyRequest {
  /** The data directory. */
  readonly directory: string;
  /** Where the copy is made. */
  readonly home: string;
  /** In the order of the log. */
  readonly log: readonly FileToCopy[];
  readonly manifest: Uint8Array;
  /** The signed head that the copy must lead to; its root in hex. */
  readonly head: { readonly note: string; readonly size: number; readonly root: string };
  readonly keys: HandedKeys;
}

/** What opens the entries that a log writes by itself. */
interface HandedKeys {
  readonly active: number;
  readonly dataKeys: readonly (readonly [number, KeyObject])[];
  readonly publicKeys: readonly Uint8Array[];
}

export interface CopiedLog {
  readonly files: readonly CopiedFile[];
  readonly blobs: readonly CopiedFile[];
}

/** Bytes are copied, and read back. */
export type OnCopied = (bytes: number, bytesTotal: number) => void;

export interface CopyMeans {
  readonly disk: Disk;
  readonly yieldTurn: () => Promise<void>;
  readonly onProgress?: OnCopied | undefined;
}

/** Every byte of it durable, and all names but that of `home`. Rejects when nothing that is going on touches the copy any more. */
export async function copyLog(request: CopyRequest, means: CopyMeans): Promise<CopiedLog> {
  return await new LogCopy(request, means).run();
}

export function handedKeys(keyring: Keyring): HandedKeys {
  const { activeDataKey: active, dataKeyIds, publicKeys } = keyring;
  return { active, dataKeys: dataKeyIds.map((id) => [id, keyring.open(id)]), publicKeys };
}

/** Checking so much takes the turn for two milliseconds. Less of it cuts frames in two, which are read twice then. */
const READ_BACK_BYTES = 1 << 20;

/** Files that may be on their way to the disk while the next one is copied. */
const UNSYNCED_MAX = 2;

class LogCopy {
  readonly #request: CopyRequest;
  readonly #means: CopyMeans;
  readonly #front: CopyFront;
  /** Oldest first. */
  readonly #unsynced: Promise<void>[] = [];
  #copied = 0;
  #readBack = 0;
  #bytesTotal = 0;

  constructor(request: CopyRequest, means: CopyMeans) {
    this.#request = request;
    this.#means = means;
    this.#front = new CopyFront(request.log.map(({ name, length }) => ({ path: `${request.home}/${name}`, length })));
  }

  async run(): Promise<CopiedLog> {
    const { log, home, manifest, head } = this.#request;
    const { disk } = this.#means;
    // A blob is there before the entry that names it, so all that these entries name are there by now.
    const blobs = await this.#listBlobs();
    const sum = (files: readonly FileToCopy[]): number => files.reduce((bytes, { length }) => bytes + length, 0);
    this.#bytesTotal = 2 * sum(log) + sum(blobs);
    await disk.makeDirectory(`${home}/log`);
    const small = [await this.#put('log/manifest', manifest), await this.#put('log/checkpoint', Buffer.from(head.note))];
    const [copying, reading] = await Promise.allSettled([this.#copyAll(blobs), this.#checkCopy()]);
    // What could not be copied could not be read back either.
    if (copying.status === 'rejected') throw copying.reason;
    if (reading.status === 'rejected') throw reading.reason;
    const { files, blobs: copiedBlobs } = copying.value;
    return { files: [...files, ...small], blobs: copiedBlobs };
  }

  async #copyAll(blobs: readonly FileToCopy[]): Promise<CopiedLog> {
    const { disk } = this.#means;
    const { home, log } = this.#request;
    try {
      const files: CopiedFile[] = [];
      for (const each of log) files.push(await this.#copy(each, (bytes) => this.#front.advance(bytes)));
      const copiedBlobs = await this.#copyBlobs(blobs);
      await this.#synced(0);
      await disk.syncDirectory(`${home}/log`);
      return { files, blobs: copiedBlobs };
    } catch (error) {
      this.#front.fail(error);
      await Promise.allSettled(this.#unsynced);
      throw error;
    }
  }

  async #listBlobs(): Promise<FileToCopy[]> {
    const { directory } = this.#request;
    const { disk } = this.#means;
    const blobs: FileToCopy[] = [];
    for (const prefix of await disk.list(`${directory}/blobs`)) {
      for (const hash of await disk.list(`${directory}/blobs/${prefix}`)) {
        if (!/^[0-9a-f]{64}$/.test(hash)) continue;
        const name = `blobs/${prefix}/${hash}`;
        const length = await disk.size(`${directory}/${name}`);
        if (length !== undefined) blobs.push({ name, length });
      }
    }
    return blobs;
  }

  async #copyBlobs(blobs: readonly FileToCopy[]): Promise<CopiedFile[]> {
    const { directory, home } = this.#request;
    const { disk } = this.#means;
    const copied: CopiedFile[] = [];
    const homes = new Set<string>();
    for (const blob of blobs) {
      const { name } = blob;
      const place = `${home}/${name.slice(0, 'blobs/00'.length)}`;
      if (!homes.has(place)) await disk.makeDirectory(place);
      homes.add(place);
      try {
        copied.push(await this.#copy(blob));
      } catch (error) {
        // Removed for good while the backup was taken: it is in no backup from then on.
        if ((await disk.size(`${directory}/${name}`)) !== undefined) throw error;
        await disk.unlink(`${home}/${name}`).catch(() => undefined);
      }
    }
    for (const place of homes) await disk.syncDirectory(place);
    return copied;
  }

  async #copy({ name, length }: FileToCopy, onBytes?: (bytes: number) => void): Promise<CopiedFile> {
    const { directory, home } = this.#request;
    const { disk, yieldTurn } = this.#means;
    const options = {
      disk,
      yieldTurn,
      onBytes: (bytes: number) => {
        onBytes?.(bytes);
        this.#copied += bytes;
        this.#progress();
      },
    };
    await this.#synced(UNSYNCED_MAX - 1);
    const { sha256, durable } = await writeCopy(options, `${directory}/${name}`, `${home}/${name}`, length);
    this.#unsynced.push(durable);
    return { name, length, sha256 };
  }

  /** No more than so many files are on their way to the disk. */
  async #synced(most: number): Promise<void> {
    while (this.#unsynced.length > most) {
      await this.#unsynced[0];
      void this.#unsynced.shift();
    }
  }

  async #put(name: string, content: Uint8Array): Promise<CopiedFile> {
    await this.#means.disk.replaceFile(`${this.#request.home}/${name}`, content);
    return { name, length: content.length, sha256: sha256Hex(content) };
  }

  /** A copy of what has rotted since it was written is a true copy, and no backup. */
  async #checkCopy(): Promise<void> {
    const { home, head, keys } = this.#request;
    const { disk, yieldTurn } = this.#means;
    const report = await verifyDirectory({
      disk: pacedDisk(this.#front.behind(disk), yieldTurn),
      windowBytes: READ_BACK_BYTES,
      directory: home,
      keyring: openedKeys(keys),
      sealed: true,
      onProgress: (bytes) => {
        this.#readBack = bytes;
        this.#progress();
      },
    });
    const [finding] = report.findings;
    if (finding) throw new ServiceError('REL_STORAGE', `${finding.place}: ${finding.what}`);
    if (report.root !== head.root || report.leaves !== head.size)
      throw new ServiceError('REL_STORAGE', `the copy holds ${report.leaves} leaves of another root than the signed head`);
  }

  #progress(): void {
    this.#means.onProgress?.(this.#copied + this.#readBack, this.#bytesTotal);
  }
}

function openedKeys({ active, dataKeys, publicKeys }: HandedKeys): VerifyKeys {
  const keys = new Map(dataKeys);
  const open = (id: number): KeyObject => {
    const key = keys.get(id);
    if (!key) throw new ServiceError('REL_STORAGE', `data key ${id} is not there`);
    return key;
  };
  return { activeDataKey: active, open, publicKeys, subjects: noSubjects };
}
