/** A memory disk that writes down every step, and lets a test hold or fail one. */
import type { Disk, DiskFile } from '../../src/log/disk/disk.ts';
import { DiskError, MemoryDisk } from '../../src/log/disk/memory-disk.ts';

export class RecordingDisk implements Disk {
  readonly inner = new MemoryDisk();
  /** One line a step that can change or persist something; reads, sizes and listings are left out. */
  readonly steps: string[] = [];
  /** Of every fsync: whether the turn might have been held for it. */
  readonly inTurn: boolean[] = [];
  /** Runs before the step takes effect: throws to fail it, returns a promise to hold it. */
  before: (step: string) => Promise<void> | void = () => undefined;

  /** Steps since the last call. */
  take(): string[] {
    return this.steps.splice(0);
  }

  async open(path: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile> {
    if (mode === 'create') await this.#step(`create ${path}`);
    const step = (text: string): Promise<void> => this.#step(text);
    return new RecordingFile(await this.inner.open(path, mode), step, this.inTurn);
  }

  readFile(path: string): Promise<Uint8Array | undefined> {
    return this.inner.readFile(path);
  }

  async replaceFile(path: string, content: Uint8Array): Promise<void> {
    await this.#step(`replace ${path}`);
    return this.inner.replaceFile(path, content);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step(`rename ${from} ${to}`);
    return this.inner.rename(from, to);
  }

  async unlink(path: string): Promise<void> {
    await this.#step(`unlink ${path}`);
    return this.inner.unlink(path);
  }

  list(directory: string): Promise<string[]> {
    return this.inner.list(directory);
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#step(`makeDirectory ${path}`);
    return this.inner.makeDirectory(path);
  }

  async removeDirectory(path: string): Promise<void> {
    await this.#step(`removeDirectory ${path}`);
    return this.inner.removeDirectory(path);
  }

  async syncDirectory(path: string): Promise<void> {
    await this.#step(`syncDirectory ${path}`);
    return this.inner.syncDirectory(path);
  }

  size(path: string): Promise<number | undefined> {
    return this.inner.size(path);
  }

  freeBytes(): Promise<number | null> {
    return this.inner.freeBytes();
  }

  lock(path: string): Promise<{ release(): Promise<void> }> {
    return this.inner.lock(path);
  }

  /** The whole file, to damage it. */
  async bytes(path: string): Promise<Buffer> {
    const bytes = await this.inner.readFile(path);
    if (!bytes) throw new DiskError('ENOENT', path);
    return Buffer.from(bytes);
  }

  async #step(step: string): Promise<void> {
    this.steps.push(step.replaceAll('/data/', ''));
    await this.before(step);
  }
}

class RecordingFile implements DiskFile {
  readonly path: string;
  readonly #inner: DiskFile;
  readonly #step: (step: string) => Promise<void>;
  readonly #inTurn: boolean[];

  constructor(inner: DiskFile, step: (step: string) => Promise<void>, inTurn: boolean[]) {
    this.path = inner.path;
    this.#inner = inner;
    this.#step = step;
    this.#inTurn = inTurn;
  }

  size(): Promise<number> {
    return this.#inner.size();
  }

  read(target: Uint8Array, offset: number): Promise<number> {
    return this.#inner.read(target, offset);
  }

  readNow(target: Uint8Array, offset: number): number {
    return this.#inner.readNow(target, offset);
  }

  async write(source: Uint8Array, offset: number): Promise<number> {
    await this.#step(`write ${this.path} ${source.length} bytes at ${offset}`);
    return this.#inner.write(source, offset);
  }

  async sync(inTurn = false): Promise<void> {
    this.#inTurn.push(inTurn);
    await this.#step(`fsync ${this.path}`);
    return this.#inner.sync();
  }

  async truncate(length: number): Promise<void> {
    await this.#step(`truncate ${this.path} to ${length}`);
    return this.#inner.truncate(length);
  }

  async close(): Promise<void> {
    await this.#step(`close ${this.path}`);
    return this.#inner.close();
  }
}

/** A step that waits until the test lets it go, or fails it. */
export class Gate {
  release!: () => void;
  fail!: (error: Error) => void;
  reached!: () => void;
  readonly arrived = new Promise<void>((resolve) => {
    this.reached = resolve;
  });
  readonly #passed = new Promise<void>((resolve, reject) => {
    this.release = resolve;
    this.fail = reject;
  });

  async wait(): Promise<void> {
    this.reached();
    await this.#passed;
  }
}
