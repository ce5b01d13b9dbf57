/** A disk that forgets: `SERVICE_IN_MEMORY`, and tests. Same refusals as the real one, by the same error codes. */
import { dirname, normalize } from 'node:path/posix';
import type { Disk, DiskFile } from './disk.ts';

/** Carries `code` as the errors of `node:fs` do, so that callers tell absence from failure in one way. */
export class DiskError extends Error {
  readonly code: string;
  /** As those errors name the call, where that makes a difference: `fsync`. */
  readonly syscall: string | undefined;

  constructor(code: string, what: string, syscall?: string) {
    super(`${code}: ${what}`);
    this.name = 'DiskError';
    this.code = code;
    this.syscall = syscall;
  }
}

export class MemoryDisk implements Disk {
  readonly #files = new Map<string, Content>();
  readonly #directories = new Set<string>(['/', '.']);
  readonly #locks = new Set<string>();

  async open(path: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile> {
    const name = normalize(path);
    let content = this.#files.get(name);
    if (mode === 'create') {
      if (content) throw new DiskError('EEXIST', `open ${name}`);
      this.#requireParent(name);
      this.#files.set(name, (content = new Content()));
    }
    if (!content) throw new DiskError('ENOENT', `open ${name}`);
    return new MemoryFile(name, content, mode !== 'read');
  }

  async readFile(path: string): Promise<Uint8Array | undefined> {
    return this.#files.get(normalize(path))?.copy();
  }

  async replaceFile(path: string, bytes: Uint8Array): Promise<void> {
    const name = normalize(path);
    this.#requireParent(name);
    const content = new Content();
    content.write(bytes, 0);
    this.#files.set(name, content);
  }

  async rename(from: string, to: string): Promise<void> {
    const content = this.#files.get(normalize(from));
    if (!content) throw new DiskError('ENOENT', `rename ${from}`);
    this.#requireParent(normalize(to));
    this.#files.delete(normalize(from));
    this.#files.set(normalize(to), content);
  }

  async unlink(path: string): Promise<void> {
    if (!this.#files.delete(normalize(path))) throw new DiskError('ENOENT', `unlink ${path}`);
  }

  async list(directory: string): Promise<string[]> {
    const parent = normalize(directory).replace(/(?<=.)\/$/, '');
    const names: string[] = [];
    for (const path of [...this.#files.keys(), ...this.#directories]) {
      if (dirname(path) === parent && path !== parent) names.push(path.slice(path.lastIndexOf('/') + 1));
    }
    return names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }

  async makeDirectory(path: string): Promise<void> {
    for (let name = normalize(path); !this.#directories.has(name); name = dirname(name)) this.#directories.add(name);
  }

  async removeDirectory(path: string): Promise<void> {
    const name = normalize(path);
    if ((await this.list(name)).length > 0) throw new DiskError('ENOTEMPTY', `remove ${name}`);
    if (!this.#directories.delete(name)) throw new DiskError('ENOENT', `remove ${name}`);
  }

  async syncDirectory(path: string): Promise<void> {
    if (!this.#directories.has(normalize(path))) throw new DiskError('ENOENT', `sync ${path}`);
  }

  async size(path: string): Promise<number | undefined> {
    return this.#files.get(normalize(path))?.length;
  }

  async freeBytes(): Promise<number | null> {
    return null;
  }

  async lock(path: string): Promise<{ release(): Promise<void> }> {
    const name = normalize(path);
    if (this.#locks.has(name)) throw new DiskError('EWOULDBLOCK', `lock ${name}`);
    this.#locks.add(name);
    return {
      release: async () => {
        this.#locks.delete(name);
      },
    };
  }

  #requireParent(path: string): void {
    if (!this.#directories.has(dirname(path))) throw new DiskError('ENOENT', `no directory ${dirname(path)}`);
  }
}

class MemoryFile implements DiskFile {
  readonly path: string;
  readonly #content: Content;
  readonly #writable: boolean;
  #open = true;

  constructor(path: string, content: Content, writable: boolean) {
    this.path = path;
    this.#content = content;
    this.#writable = writable;
  }

  async size(): Promise<number> {
    this.#check(false);
    return this.#content.length;
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    this.#check(false);
    return this.#content.read(target, offset);
  }

  readNow(target: Uint8Array, offset: number): number {
    this.#check(false);
    return this.#content.read(target, offset);
  }

  async write(source: Uint8Array, offset: number): Promise<number> {
    this.#check(true);
    this.#content.write(source, offset);
    return source.length;
  }

  async sync(): Promise<void> {
    this.#check(false);
  }

  async truncate(length: number): Promise<void> {
    this.#check(true);
    this.#content.truncate(length);
  }

  async close(): Promise<void> {
    this.#check(false);
    this.#open = false;
  }

  #check(writing: boolean): void {
    if (!this.#open || (writing && !this.#writable)) throw new DiskError('EBADF', this.path);
  }
}

const pieceBytes = 1 << 20;

/**
 * Bytes of one file, in pieces of which the last may be shorter: a file that grows is not copied. Outlives its name while a handle is
 * open, as on a real disk.
 */
class Content {
  /** Bytes beyond the end are zero. */
  readonly #pieces: Uint8Array[] = [];
  length = 0;

  read(target: Uint8Array, offset: number): number {
    const count = Math.max(0, Math.min(target.length, this.length - offset));
    for (let done = 0; done < count; ) {
      const at = (offset + done) % pieceBytes;
      const part = Math.min(count - done, pieceBytes - at);
      target.set(this.#pieces[Math.floor((offset + done) / pieceBytes)]!.subarray(at, at + part), done);
      done += part;
    }
    return count;
  }

  write(source: Uint8Array, offset: number): void {
    this.#reserve(offset + source.length);
    for (let done = 0; done < source.length; ) {
      const at = (offset + done) % pieceBytes;
      const part = Math.min(source.length - done, pieceBytes - at);
      this.#pieces[Math.floor((offset + done) / pieceBytes)]!.set(source.subarray(done, done + part), at);
      done += part;
    }
    this.length = Math.max(this.length, offset + source.length);
  }

  truncate(length: number): void {
    this.#reserve(length);
    if (length < this.length) {
      this.#pieces.length = Math.ceil(length / pieceBytes);
      if (length % pieceBytes > 0) this.#pieces.at(-1)!.fill(0, length % pieceBytes);
    }
    this.length = length;
  }

  copy(): Uint8Array {
    const bytes = new Uint8Array(this.length);
    this.read(bytes, 0);
    return bytes;
  }

  #reserve(length: number): void {
    for (;;) {
      const count = this.#pieces.length;
      const last = this.#pieces.at(-1);
      const needed = Math.min(pieceBytes, length - Math.max(0, count - 1) * pieceBytes);
      if (last !== undefined && last.length < needed) {
        const grown = new Uint8Array(Math.min(pieceBytes, Math.max(needed, last.length * 2)));
        grown.set(last);
        this.#pieces[count - 1] = grown;
      } else if (length > count * pieceBytes) {
        this.#pieces.push(new Uint8Array(Math.min(pieceBytes, length - count * pieceBytes)));
      } else return;
    }
  }
}
