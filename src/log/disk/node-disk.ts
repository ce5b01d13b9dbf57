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

const writeSyncBytesMax = 128 * 1024;
const readSyncBytesMax = 16 * 1024;

/** Everything in a data directory is private to its owner; keys and bodies lie in it. */
const fileMode = 0o600;
const directoryMode = 0o700;

const flags = { read: 'r', write: 'r+', create: 'wx+' } as const;
const openFd = promisify(fs.open);
const closeFd = promisify(fs.close);
const fsyncFd = promisify(fs.fsync);
const fdatasyncFd = promisify(fs.fdatasync);
const ftruncateFd = promisify(fs.ftruncate);
const fstatFd = promisify(fs.fstat);

export const nodeDisk: Disk = {
  async open(path, mode) {
    return new NodeFile(path, await openFd(path, flags[mode], fileMode));
  },

  async readFile(path) {
    return await unlessAbsent(fsp.readFile(path));
  },

  async replaceFile(path, content, mode = fileMode) {
    const temporary = `${path}.tmp`;
    // A crash can leave an older temporary file behind, with whatever permissions it had then.
    await unlessAbsent(fsp.unlink(temporary));
    const fd = await openFd(temporary, 'wx', mode);
    try {
      for (let at = 0; at < content.length; ) at += await writeAt(fd, content.subarray(at), at);
      await fsyncFd(fd);
    } finally {
      await closeFd(fd);
    }
    await fsp.rename(temporary, path);
    await this.syncDirectory(dirname(path));
  },

  rename: (from, to) => fsp.rename(from, to),

  unlink: (path) => fsp.unlink(path),

  async list(directory) {
    const names = (await unlessAbsent(fsp.readdir(directory))) ?? [];
    return names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  },

  async makeDirectory(path) {
    const first = await fsp.mkdir(path, { recursive: true, mode: directoryMode });
    // An existing directory may have been made by a process that died before its name was durable.
    if (first === undefined) return await this.syncDirectory(dirname(path));
    for (let created = path; ; created = dirname(created)) {
      await this.syncDirectory(dirname(created));
      if (created === first || created === dirname(created)) return;
    }
  },

  removeDirectory: (path) => fsp.rmdir(path),

  async syncDirectory(path) {
    const fd = await openFd(path, 'r');
    try {
      await fsyncFd(fd);
    } finally {
      await closeFd(fd);
    }
  },

  async size(path) {
    return (await unlessAbsent(fsp.stat(path)))?.size;
  },

  async freeBytes(path) {
    try {
      const { bavail, bsize } = await fsp.statfs(path);
      return bavail * bsize;
    } catch {
      return null;
    }
  },

  async lock(path) {
    const fd = await openFd(path, fs.constants.O_RDWR | fs.constants.O_CREAT, fileMode);
    try {
      const holder = await fsp.readFile(path, 'utf8');
      if (!takeFlock(fd, holder)) {
        const [pid = ''] = holder.split(' ');
        const who = /^\d+$/.test(pid) ? `process ${pid}` : 'another process';
        throw new ServiceError('REL_STORAGE', `${dirname(path)} is in use by ${who}`);
      }
      await ftruncateFd(fd, 0);
      await writeAt(fd, Buffer.from(`${process.pid} ${startOf(process.pid) ?? ''}\n`), 0);
    } catch (error) {
      await closeFd(fd);
      throw error;
    }
    return {
      async release() {
        // The file stays: removing it would let two processes lock two files of one name.
        await ftruncateFd(fd, 0);
        await closeFd(fd);
      },
    };
  },
};

class NodeFile implements DiskFile {
  readonly path: string;
  readonly #fd: number;
  #syncFailed = false;

  constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  async size(): Promise<number> {
    return (await fstatFd(this.#fd)).size;
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    if (target.length <= readSyncBytesMax) return fs.readSync(this.#fd, target, 0, target.length, offset);
    return await new Promise((resolve, reject) => {
      fs.read(this.#fd, target, 0, target.length, offset, (error, count) => (error ? reject(error) : resolve(count)));
    });
  }

  readNow(target: Uint8Array, offset: number): number {
    return fs.readSync(this.#fd, target, 0, target.length, offset);
  }

  write(source: Uint8Array, offset: number): Promise<number> {
    return writeAt(this.#fd, source, offset);
  }

  async sync(inTurn = false): Promise<void> {
    // The kernel reports a lost write once; asking again would say that all is well.
    if (this.#syncFailed) throw new Error(`${this.path}: sync after a failed sync`);
    try {
      if (inTurn) fs.fdatasyncSync(this.#fd);
      else await fdatasyncFd(this.#fd);
    } catch (error) {
      this.#syncFailed = true;
      throw error;
    }
  }

  truncate(length: number): Promise<void> {
    return ftruncateFd(this.#fd, length);
  }

  close(): Promise<void> {
    return closeFd(this.#fd);
  }
}

async function writeAt(fd: number, source: Uint8Array, offset: number): Promise<number> {
  if (source.length <= writeSyncBytesMax) return fs.writeSync(fd, source, 0, source.length, offset);
  return await new Promise((resolve, reject) => {
    fs.write(fd, source, 0, source.length, offset, (error, count) => (error ? reject(error) : resolve(count)));
  });
}

/**
 * flock(2) belongs to the open file, which a child shares: the lock that `flock -n 3` takes stays with us when the
 * child ends, and the kernel drops it when we do, however we die. Without that tool the recorded process is looked up.
 */
function takeFlock(fd: number, holder: string): boolean {
  const { status, error } = spawnSync('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  if (!error && (status === 0 || status === 1)) return status === 0;
  const [pid, start] = holder.trim().split(' ');
  if (!pid) return true;
  const processStart = startOf(Number(pid));
  return processStart === undefined || (start !== undefined && processStart !== start);
}

/** A token that tells a process from a later one with the same id; undefined when there is none. */
function startOf(pid: number): string | undefined {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the command in parentheses and may hold anything; start time is the 20th after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    try {
      process.kill(pid, 0);
      return 'alive';
    } catch {
      return undefined;
    }
  }
}

async function unlessAbsent<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
