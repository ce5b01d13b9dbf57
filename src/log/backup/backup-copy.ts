/**
 * The copy of a log that a backup consists of, and its reading back, which goes on behind the copying: what was written last is
 * in memory still. Given as values, so that a thread may do it beside the store.
 */
import type { KeyObject } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import type { CopiedFile } from './backup-artefact.ts';
import type { Disk } from '../disk/disk.ts';
import { copyAndRead, FileCopier, type FileToCopy } from './file-copier.ts';
import type { Keyring } from '../keys/keys.ts';
import { pacedDisk } from '../disk/paced-disk.ts';
import { noSubjects } from '../entries/rows-codec.ts';
import { sha256Hex } from '../bytes/sha256.ts';
import { verifyDirectory, type VerifyKeys } from '../verify/verify.ts';

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

/** Keys that open the entries which a log writes by itself. */
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

class LogCopy {
  readonly #request: CopyRequest;
  readonly #means: CopyMeans;
  readonly #copier: FileCopier;
  #copied = 0;
  #readBack = 0;
  #bytesTotal = 0;

  constructor(request: CopyRequest, means: CopyMeans) {
    this.#request = request;
    this.#means = means;
    const { disk, yieldTurn } = means;
    const onBytes = (bytes: number): void => {
      this.#copied += bytes;
      this.#progress();
    };
    this.#copier = new FileCopier({ disk, yieldTurn, onBytes, from: request.directory, to: request.home });
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
    const copyAll = async (copy: (file: FileToCopy) => Promise<CopiedFile>): Promise<CopiedLog> => {
      const files: CopiedFile[] = [];
      for (const each of log) files.push(await copy(each));
      return { files, blobs: await this.#copyBlobs(blobs) };
    };
    const [copied] = await copyAndRead(this.#copier, { disk, to: home }, log, copyAll, (behind) => this.#checkCopy(behind));
    await disk.syncDirectory(`${home}/log`);
    return { files: [...copied.files, ...small], blobs: copied.blobs };
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
      const blobFolder = `${home}/${name.slice(0, 'blobs/00'.length)}`;
      if (!homes.has(blobFolder)) await disk.makeDirectory(blobFolder);
      homes.add(blobFolder);
      try {
        copied.push(await this.#copier.copy(blob));
      } catch (error) {
        // Removed for good while the backup was taken: it is in no backup from then on.
        if ((await disk.size(`${directory}/${name}`)) !== undefined) throw error;
        await disk.unlink(`${home}/${name}`).catch(() => undefined);
      }
    }
    for (const blobFolder of homes) await disk.syncDirectory(blobFolder);
    return copied;
  }

  async #put(name: string, content: Uint8Array): Promise<CopiedFile> {
    await this.#means.disk.replaceFile(`${this.#request.home}/${name}`, content);
    return { name, length: content.length, sha256: sha256Hex(content) };
  }

  /** A copy of what has rotted since it was written is a true copy, and no backup. */
  async #checkCopy(behind: Disk): Promise<void> {
    const { home, head, keys } = this.#request;
    const { yieldTurn } = this.#means;
    const report = await verifyDirectory({
      disk: pacedDisk(behind, yieldTurn),
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
