/** A disk that forgets: `SERVICE_IN_MEMORY`, and tests. Same refusals as the real one, by the same error codes. */
import { dirname, normalize } from 'node:path/posix';
import type { Disk, DiskFile } from './disk.ts';

/** Carries `code` as the errors of `node:fs` do, so that callers tell absence from failure in one way. */
export class DiskError extends Error {
  readonly code: string;
  /** As those errors name the call, where that makes a difference: `fsync`. */
  readonly syscall: string | undefined;

  constructor(errnoCode: string, diskOperation: string, syscall?: string) {
    super(`${errnoCode}: ${diskOperation}`);
    this.name = 'DiskError';
    this.code = errnoCode;
    this.syscall = syscall;
  }
}

export class MemoryDisk implements Disk {
  readonly #memoryFiles = new Map<string, MemoryContent>();
  readonly #memoryDirectories = new Set<string>(['/', '.']);
  readonly #lockedPaths = new Set<string>();

  async open(openedPath: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile> {
    const memoryPath = normalize(openedPath);
    let memoryContent = this.#memoryFiles.get(memoryPath);
    if (mode === 'create') {
      if (memoryContent) throw new DiskError('EEXIST', `open ${memoryPath}`);
      this.#requireDirectory(memoryPath);
      this.#memoryFiles.set(memoryPath, (memoryContent = new MemoryContent()));
    }
    if (!memoryContent) throw new DiskError('ENOENT', `open ${memoryPath}`);
    return new MemoryFile(memoryPath, memoryContent, mode !== 'read');
  }

  async readFile(path: string): Promise<Uint8Array | undefined> {
    return this.#memoryFiles.get(normalize(path))?.copy();
  }

  async replaceFile(replacedPath: string, replacingBytes: Uint8Array): Promise<void> {
    const memoryPath = normalize(replacedPath);
    this.#requireDirectory(memoryPath);
    const memoryContent = new MemoryContent();
    memoryContent.write(replacingBytes, 0);
    this.#memoryFiles.set(memoryPath, memoryContent);
  }

  async rename(oldPath: string, newPath: string): Promise<void> {
    const memoryContent = this.#memoryFiles.get(normalize(oldPath));
    if (!memoryContent) throw new DiskError('ENOENT', `rename ${oldPath}`);
    this.#requireDirectory(normalize(newPath));
    this.#memoryFiles.delete(normalize(oldPath));
    this.#memoryFiles.set(normalize(newPath), memoryContent);
  }

  async unlink(unlinkedPath: string): Promise<void> {
    if (!this.#memoryFiles.delete(normalize(unlinkedPath))) throw new DiskError('ENOENT', `unlink ${unlinkedPath}`);
  }

  async list(listedDirectory: string): Promise<string[]> {
    const parentDirectory = normalize(listedDirectory).replace(/(?<=.)\/$/, '');
    const memoryFileNames: string[] = [];
    for (const memoryPath of [...this.#memoryFiles.keys(), ...this.#memoryDirectories]) {
      if (dirname(memoryPath) === parentDirectory && memoryPath !== parentDirectory)
        memoryFileNames.push(memoryPath.slice(memoryPath.lastIndexOf('/') + 1));
    }
    return memoryFileNames.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }

  async makeDirectory(madePath: string): Promise<void> {
    for (let newDirectory = normalize(madePath); !this.#memoryDirectories.has(newDirectory); newDirectory = dirname(newDirectory))
      this.#memoryDirectories.add(newDirectory);
  }

  async removeDirectory(removedPath: string): Promise<void> {
    const directoryPath = normalize(removedPath);
    if ((await this.list(directoryPath)).length > 0) throw new DiskError('ENOTEMPTY', `remove ${directoryPath}`);
    if (!this.#memoryDirectories.delete(directoryPath)) throw new DiskError('ENOENT', `remove ${directoryPath}`);
  }

  async syncDirectory(path: string): Promise<void> {
    if (!this.#memoryDirectories.has(normalize(path))) throw new DiskError('ENOENT', `sync ${path}`);
  }

  async size(path: string): Promise<number | undefined> {
    return this.#memoryFiles.get(normalize(path))?.length;
  }

  async freeBytes(): Promise<number | null> {
    return null;
  }

  async lock(lockedPath: string): Promise<{ release(): Promise<void> }> {
    const lockPath = normalize(lockedPath);
    if (this.#lockedPaths.has(lockPath)) throw new DiskError('EWOULDBLOCK', `lock ${lockPath}`);
    this.#lockedPaths.add(lockPath);
    return {
      release: async () => {
        this.#lockedPaths.delete(lockPath);
      },
    };
  }

  #requireDirectory(path: string): void {
    if (!this.#memoryDirectories.has(dirname(path))) throw new DiskError('ENOENT', `no directory ${dirname(path)}`);
  }
}

class MemoryFile implements DiskFile {
  readonly path: string;
  readonly #memoryContent: MemoryContent;
  readonly #isWritable: boolean;
  #isFileOpen = true;

  constructor(path: string, memoryContent: MemoryContent, isWritable: boolean) {
    this.path = path;
    this.#memoryContent = memoryContent;
    this.#isWritable = isWritable;
  }

  async size(): Promise<number> {
    this.#checkDescriptor(false);
    return this.#memoryContent.length;
  }

  async read(readBuffer: Uint8Array, contentOffset: number): Promise<number> {
    this.#checkDescriptor(false);
    return this.#memoryContent.read(readBuffer, contentOffset);
  }

  readNow(readBuffer: Uint8Array, contentOffset: number): number {
    this.#checkDescriptor(false);
    return this.#memoryContent.read(readBuffer, contentOffset);
  }

  async write(bytesToWrite: Uint8Array, contentOffset: number): Promise<number> {
    this.#checkDescriptor(true);
    this.#memoryContent.write(bytesToWrite, contentOffset);
    return bytesToWrite.length;
  }

  async sync(): Promise<void> {
    this.#checkDescriptor(false);
  }

  async truncate(truncatedLength: number): Promise<void> {
    this.#checkDescriptor(true);
    this.#memoryContent.truncate(truncatedLength);
  }

  async close(): Promise<void> {
    this.#checkDescriptor(false);
    this.#isFileOpen = false;
  }

  #checkDescriptor(isWriting: boolean): void {
    if (!this.#isFileOpen || (isWriting && !this.#isWritable)) throw new DiskError('EBADF', this.path);
  }
}

const memoryPieceBytes = 1 << 20;

/**
 * Bytes of one file, in pieces of which the last may be shorter: a file that grows is not copied. Outlives its name while a handle is
 * open, as on a real disk.
 */
class MemoryContent {
  /** Bytes beyond the end are zero. */
  readonly #memoryPieces: Uint8Array[] = [];
  length = 0;

  read(readBuffer: Uint8Array, contentOffset: number): number {
    const readCount = Math.max(0, Math.min(readBuffer.length, this.length - contentOffset));
    for (let readBytes = 0; readBytes < readCount; ) {
      const pieceOffset = (contentOffset + readBytes) % memoryPieceBytes;
      const pieceCount = Math.min(readCount - readBytes, memoryPieceBytes - pieceOffset);
      readBuffer.set(
        this.#memoryPieces[Math.floor((contentOffset + readBytes) / memoryPieceBytes)]!.subarray(
          pieceOffset,
          pieceOffset + pieceCount,
        ),
        readBytes,
      );
      readBytes += pieceCount;
    }
    return readCount;
  }

  write(bytesToWrite: Uint8Array, contentOffset: number): void {
    this.#reserveMemory(contentOffset + bytesToWrite.length);
    for (let writtenBytes = 0; writtenBytes < bytesToWrite.length; ) {
      const pieceOffset = (contentOffset + writtenBytes) % memoryPieceBytes;
      const pieceCount = Math.min(bytesToWrite.length - writtenBytes, memoryPieceBytes - pieceOffset);
      this.#memoryPieces[Math.floor((contentOffset + writtenBytes) / memoryPieceBytes)]!.set(
        bytesToWrite.subarray(writtenBytes, writtenBytes + pieceCount),
        pieceOffset,
      );
      writtenBytes += pieceCount;
    }
    this.length = Math.max(this.length, contentOffset + bytesToWrite.length);
  }

  truncate(truncatedLength: number): void {
    this.#reserveMemory(truncatedLength);
    if (truncatedLength < this.length) {
      this.#memoryPieces.length = Math.ceil(truncatedLength / memoryPieceBytes);
      if (truncatedLength % memoryPieceBytes > 0) this.#memoryPieces.at(-1)!.fill(0, truncatedLength % memoryPieceBytes);
    }
    this.length = truncatedLength;
  }

  copy(): Uint8Array {
    const contentCopy = new Uint8Array(this.length);
    this.read(contentCopy, 0);
    return contentCopy;
  }

  #reserveMemory(reservedLength: number): void {
    for (;;) {
      const pieceCount = this.#memoryPieces.length;
      const lastPiece = this.#memoryPieces.at(-1);
      const neededPieceBytes = Math.min(memoryPieceBytes, reservedLength - Math.max(0, pieceCount - 1) * memoryPieceBytes);
      if (lastPiece !== undefined && lastPiece.length < neededPieceBytes) {
        const grownPiece = new Uint8Array(Math.min(memoryPieceBytes, Math.max(neededPieceBytes, lastPiece.length * 2)));
        grownPiece.set(lastPiece);
        this.#memoryPieces[pieceCount - 1] = grownPiece;
      } else if (reservedLength > pieceCount * memoryPieceBytes) {
        this.#memoryPieces.push(new Uint8Array(Math.min(memoryPieceBytes, reservedLength - pieceCount * memoryPieceBytes)));
      } else return;
    }
  }
}
