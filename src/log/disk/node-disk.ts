/**
 * The disk of a running process. Small writes are made in the calling turn: they only reach the page cache, and a hop through the
 * thread pool would cost more than the copy. Large transfers never block the event loop, and a sync does so only if its caller
 * says that no other work waits.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { ServiceError } from '../../errors.ts';
import type { Disk, DiskFile } from './disk.ts';

const writeInTurnBytesMax = 128 * 1024;
const readInTurnBytesMax = 16 * 1024;

/** Everything in a data directory is private to its owner; keys and bodies lie in it. */
const storeFileMode = 0o600;
const storeDirectoryMode = 0o700;

const openFlags = { read: 'r', write: 'r+', create: 'wx+' } as const;
const openFd = promisify(fs.open);
const closeFd = promisify(fs.close);
const fsyncFd = promisify(fs.fsync);
const fdatasyncFd = promisify(fs.fdatasync);
const ftruncateFd = promisify(fs.ftruncate);
const fstatFd = promisify(fs.fstat);

export const nodeDisk: Disk = {
  async open(openedPath, openMode) {
    return new NodeFile(openedPath, await openFd(openedPath, openFlags[openMode], storeFileMode));
  },

  async readFile(path) {
    return await undefinedIfAbsent(fsp.readFile(path));
  },

  async replaceFile(replacedPath, replacingContent, fileModeBits = storeFileMode) {
    const temporaryPath = `${replacedPath}.tmp`;
    // A crash can leave an older temporary file behind, with whatever permissions it had then.
    await undefinedIfAbsent(fsp.unlink(temporaryPath));
    const temporaryFd = await openFd(temporaryPath, 'wx', fileModeBits);
    try {
      for (let contentOffset = 0; contentOffset < replacingContent.length; )
        contentOffset += await writeDiskBytes(temporaryFd, replacingContent.subarray(contentOffset), contentOffset);
      await fsyncFd(temporaryFd);
    } finally {
      await closeFd(temporaryFd);
    }
    await fsp.rename(temporaryPath, replacedPath);
    await this.syncDirectory(dirname(replacedPath));
  },

  rename: (from, to) => fsp.rename(from, to),

  unlink: (path) => fsp.unlink(path),

  async list(listedDirectory) {
    const fileNames = (await undefinedIfAbsent(fsp.readdir(listedDirectory))) ?? [];
    return fileNames.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  },

  async makeDirectory(madePath) {
    const firstNewDirectory = await fsp.mkdir(madePath, { recursive: true, mode: storeDirectoryMode });
    // An existing directory may have been made by a process that died before its name was durable.
    if (firstNewDirectory === undefined) return await this.syncDirectory(dirname(madePath));
    for (let created = madePath; ; created = dirname(created)) {
      await this.syncDirectory(dirname(created));
      if (created === firstNewDirectory || created === dirname(created)) return;
    }
  },

  removeDirectory: (path) => fsp.rmdir(path),

  async syncDirectory(syncedPath) {
    const directoryFd = await openFd(syncedPath, 'r');
    try {
      await fsyncFd(directoryFd);
    } finally {
      await closeFd(directoryFd);
    }
  },

  async size(path) {
    return (await undefinedIfAbsent(fsp.stat(path)))?.size;
  },

  async freeBytes(path) {
    try {
      const { bavail, bsize } = await fsp.statfs(path);
      return bavail * bsize;
    } catch {
      return null;
    }
  },

  async lock(lockFilePath) {
    const lockFd = await openFd(lockFilePath, fs.constants.O_RDWR | fs.constants.O_CREAT, storeFileMode);
    try {
      const lockHolder = await fsp.readFile(lockFilePath, 'utf8');
      if (!takeDirectoryLock(lockFd, lockHolder)) {
        const [holderPid = ''] = lockHolder.split(' ');
        const lockHolderText = /^\d+$/.test(holderPid) ? `process ${holderPid}` : 'another process';
        throw new ServiceError('REL_STORAGE', `${dirname(lockFilePath)} is in use by ${lockHolderText}`);
      }
      await ftruncateFd(lockFd, 0);
      await writeDiskBytes(lockFd, Buffer.from(`${process.pid} ${processStartTime(process.pid) ?? ''}\n`), 0);
    } catch (error) {
      await closeFd(lockFd);
      throw error;
    }
    return {
      async release() {
        // The file stays: removing it would let two processes lock two files of one name.
        await ftruncateFd(lockFd, 0);
        await closeFd(lockFd);
      },
    };
  },
};

class NodeFile implements DiskFile {
  readonly path: string;
  readonly #diskFileFd: number;
  #hasSyncFailed = false;

  constructor(path: string, diskFileFd: number) {
    this.path = path;
    this.#diskFileFd = diskFileFd;
  }

  async size(): Promise<number> {
    return (await fstatFd(this.#diskFileFd)).size;
  }

  async read(readBuffer: Uint8Array, diskOffset: number): Promise<number> {
    if (readBuffer.length <= readInTurnBytesMax)
      return fs.readSync(this.#diskFileFd, readBuffer, 0, readBuffer.length, diskOffset);
    return await new Promise((resolve, reject) => {
      fs.read(this.#diskFileFd, readBuffer, 0, readBuffer.length, diskOffset, (readError, readCount) =>
        readError ? reject(readError) : resolve(readCount),
      );
    });
  }

  readNow(readBuffer: Uint8Array, diskOffset: number): number {
    return fs.readSync(this.#diskFileFd, readBuffer, 0, readBuffer.length, diskOffset);
  }

  write(bytesToWrite: Uint8Array, diskOffset: number): Promise<number> {
    return writeDiskBytes(this.#diskFileFd, bytesToWrite, diskOffset);
  }

  async sync(inTurn = false): Promise<void> {
    // The kernel reports a lost write once; asking again would say that all is well.
    if (this.#hasSyncFailed) throw new Error(`${this.path}: sync after a failed sync`);
    try {
      if (inTurn) fs.fdatasyncSync(this.#diskFileFd);
      else await fdatasyncFd(this.#diskFileFd);
    } catch (error) {
      this.#hasSyncFailed = true;
      throw error;
    }
  }

  truncate(truncatedLength: number): Promise<void> {
    return ftruncateFd(this.#diskFileFd, truncatedLength);
  }

  close(): Promise<void> {
    return closeFd(this.#diskFileFd);
  }
}

async function writeDiskBytes(diskFileFd: number, bytesToWrite: Uint8Array, diskOffset: number): Promise<number> {
  if (bytesToWrite.length <= writeInTurnBytesMax)
    return fs.writeSync(diskFileFd, bytesToWrite, 0, bytesToWrite.length, diskOffset);
  return await new Promise((resolve, reject) => {
    fs.write(diskFileFd, bytesToWrite, 0, bytesToWrite.length, diskOffset, (error, writtenCount) =>
      error ? reject(error) : resolve(writtenCount),
    );
  });
}

/**
 * flock(2) belongs to the open file, which a child shares: the lock that `flock -n 3` takes stays with us when the
 * child ends, and the kernel drops it when we do, however we die. Without that tool the recorded process is looked up.
 */
function takeDirectoryLock(lockFd: number, lockHolder: string): boolean {
  const { status, error } = spawnSync('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', lockFd] });
  if (!error && (status === 0 || status === 1)) return status === 0;
  const [holderPid, holderStartTime] = lockHolder.trim().split(' ');
  if (!holderPid) return true;
  const processStart = processStartTime(Number(holderPid));
  return processStart === undefined || (holderStartTime !== undefined && processStart !== holderStartTime);
}

/** A token that tells a process from a later one with the same id; undefined when there is none. */
function processStartTime(holderPid: number): string | undefined {
  try {
    const procStat = fs.readFileSync(`/proc/${holderPid}/stat`, 'latin1');
    // The second field is the command in parentheses and may hold anything; start time is the 20th after it.
    return procStat.slice(procStat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    try {
      process.kill(holderPid, 0);
      return 'alive';
    } catch {
      return undefined;
    }
  }
}

async function undefinedIfAbsent<T>(diskResult: Promise<T>): Promise<T | undefined> {
  try {
    return await diskResult;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
