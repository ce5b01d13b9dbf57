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
import { verifyDirectory, type VerifyKeys } from '../proofs/verify.ts';

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
export async function copyLog(copyRequest: CopyRequest, copyMeans: CopyMeans): Promise<CopiedLog> {
  return await new LogCopy(copyRequest, copyMeans).run();
}

export function handedKeys(keyring: Keyring): HandedKeys {
  const { activeDataKey: active, dataKeyIds, publicKeys } = keyring;
  return { active, dataKeys: dataKeyIds.map((id) => [id, keyring.open(id)]), publicKeys };
}

/** Checking so much takes the turn for two milliseconds. Less of it cuts frames in two, which are read twice then. */
const READ_BACK_BYTES = 1 << 20;

class LogCopy {
  readonly #copyRequest: CopyRequest;
  readonly #copyMeans: CopyMeans;
  readonly #fileCopier: FileCopier;
  #copiedBytes = 0;
  #readBackBytes = 0;
  #copyBytesTotal = 0;

  constructor(copyRequest: CopyRequest, copyMeans: CopyMeans) {
    this.#copyRequest = copyRequest;
    this.#copyMeans = copyMeans;
    const { disk, yieldTurn } = copyMeans;
    const onBytes = (bytes: number): void => {
      this.#copiedBytes += bytes;
      this.#reportCopyProgress();
    };
    this.#fileCopier = new FileCopier({ disk, yieldTurn, onBytes, from: copyRequest.directory, to: copyRequest.home });
  }

  async run(): Promise<CopiedLog> {
    const { log, home: backupHome, manifest, head: signedHead } = this.#copyRequest;
    const { disk } = this.#copyMeans;
    // A blob is there before the entry that names it, so all that these entries name are there by now.
    const blobsToCopy = await this.#listBlobs();
    const totalBytes = (files: readonly FileToCopy[]): number => files.reduce((bytes, { length }) => bytes + length, 0);
    this.#copyBytesTotal = 2 * totalBytes(log) + totalBytes(blobsToCopy);
    await disk.makeDirectory(`${backupHome}/log`);
    const manifestAndHead = [
      await this.#writeBackupFile('log/manifest', manifest),
      await this.#writeBackupFile('log/checkpoint', Buffer.from(signedHead.note)),
    ];
    const copyLogAndBlobs = async (copy: (file: FileToCopy) => Promise<CopiedFile>): Promise<CopiedLog> => {
      const files: CopiedFile[] = [];
      for (const each of log) files.push(await copy(each));
      return { files, blobs: await this.#copyBlobs(blobsToCopy) };
    };
    const [copiedLog] = await copyAndRead(this.#fileCopier, { disk, to: backupHome }, log, copyLogAndBlobs, (diskBehindCopy) =>
      this.#checkCopy(diskBehindCopy),
    );
    await disk.syncDirectory(`${backupHome}/log`);
    return { files: [...copiedLog.files, ...manifestAndHead], blobs: copiedLog.blobs };
  }

  async #listBlobs(): Promise<FileToCopy[]> {
    const { directory } = this.#copyRequest;
    const { disk } = this.#copyMeans;
    const blobsToCopy: FileToCopy[] = [];
    for (const hashPrefix of await disk.list(`${directory}/blobs`)) {
      for (const blobHash of await disk.list(`${directory}/blobs/${hashPrefix}`)) {
        if (!/^[0-9a-f]{64}$/.test(blobHash)) continue;
        const blobName = `blobs/${hashPrefix}/${blobHash}`;
        const blobLength = await disk.size(`${directory}/${blobName}`);
        if (blobLength !== undefined) blobsToCopy.push({ name: blobName, length: blobLength });
      }
    }
    return blobsToCopy;
  }

  async #copyBlobs(blobs: readonly FileToCopy[]): Promise<CopiedFile[]> {
    const { directory, home: backupHome } = this.#copyRequest;
    const { disk } = this.#copyMeans;
    const copiedBlobs: CopiedFile[] = [];
    const blobDirectories = new Set<string>();
    for (const blobToCopy of blobs) {
      const { name } = blobToCopy;
      const blobFolder = `${backupHome}/${name.slice(0, 'blobs/00'.length)}`;
      if (!blobDirectories.has(blobFolder)) await disk.makeDirectory(blobFolder);
      blobDirectories.add(blobFolder);
      try {
        copiedBlobs.push(await this.#fileCopier.copy(blobToCopy));
      } catch (error) {
        // Removed for good while the backup was taken: it is in no backup from then on.
        if ((await disk.size(`${directory}/${name}`)) !== undefined) throw error;
        await disk.unlink(`${backupHome}/${name}`).catch(() => undefined);
      }
    }
    for (const blobFolder of blobDirectories) await disk.syncDirectory(blobFolder);
    return copiedBlobs;
  }

  async #writeBackupFile(name: string, fileContent: Uint8Array): Promise<CopiedFile> {
    await this.#copyMeans.disk.replaceFile(`${this.#copyRequest.home}/${name}`, fileContent);
    return { name, length: fileContent.length, sha256: sha256Hex(fileContent) };
  }

  /** A copy of what has rotted since it was written is a true copy, and no backup. */
  async #checkCopy(diskBehindCopy: Disk): Promise<void> {
    const { home, head, keys } = this.#copyRequest;
    const { yieldTurn } = this.#copyMeans;
    const copyReport = await verifyDirectory({
      disk: pacedDisk(diskBehindCopy, yieldTurn),
      windowBytes: READ_BACK_BYTES,
      directory: home,
      keyring: openedKeys(keys),
      sealed: true,
      onProgress: (bytes) => {
        this.#readBackBytes = bytes;
        this.#reportCopyProgress();
      },
    });
    const [copyFinding] = copyReport.findings;
    if (copyFinding) throw new ServiceError('REL_STORAGE', `${copyFinding.place}: ${copyFinding.what}`);
    if (copyReport.root !== head.root || copyReport.leaves !== head.size)
      throw new ServiceError('REL_STORAGE', `the copy holds ${copyReport.leaves} leaves of another root than the signed head`);
  }

  #reportCopyProgress(): void {
    this.#copyMeans.onProgress?.(this.#copiedBytes + this.#readBackBytes, this.#copyBytesTotal);
  }
}

function openedKeys({ active, dataKeys, publicKeys }: HandedKeys): VerifyKeys {
  const openedDataKeys = new Map(dataKeys);
  const openDataKey = (dataKeyId: number): KeyObject => {
    const dataKey = openedDataKeys.get(dataKeyId);
    if (!dataKey) throw new ServiceError('REL_STORAGE', `data key ${dataKeyId} is not there`);
    return dataKey;
  };
  return { activeDataKey: active, open: openDataKey, publicKeys, subjects: noSubjects };
}
