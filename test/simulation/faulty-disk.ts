/**
 * A disk that keeps two truths: what programs see now, and what would be left if the power went. Every call is one
 * numbered step, at which a test may take a crash point, raise an error, shorten a write or switch the power off.
 *
 * - A file's bytes become durable by its sync alone; a name becomes durable by a sync of its directory alone. A sync is of
 *   what was written before it was asked for: what is written while it is under way waits for the next one.
 * - Each change waiting for a sync is kept, in order, so that `crash-image.ts` can lose, tear and reorder it.
 * - A failed sync drops what was pending, still shows it to readers, and the next sync of that file "succeeds".
 */
import { dirname, normalize } from 'node:path/posix';
import type { Disk, DiskFile, NoRoom } from '../../src/log/disk/disk.ts';
import { DiskError } from '../../src/log/disk/memory-disk.ts';
import type { Seeded } from './seeded.ts';
import { applied, type Change, tornFile } from './torn-file.ts';

export type StepKind =
  | 'open'
  | 'create'
  | 'read'
  | 'write'
  | 'sync'
  | 'truncate'
  | 'rename'
  | 'unlink'
  | 'list'
  | 'makeDirectory'
  | 'removeDirectory'
  | 'syncDirectory'
  | 'size'
  | 'lock';

export interface Step {
  readonly index: number;
  readonly kind: StepKind;
  readonly path: string;
  /** Of a write or a read. */
  readonly bytes: number;
}

export type Fault =
  /** The call fails; of a write, `bytes` have been taken already; of a sync, `torn` decides what reached the medium. */
  | { readonly kind: 'error'; readonly code: 'EIO' | NoRoom; readonly bytes?: number; readonly torn?: Seeded }
  /** A write takes this many bytes only, and says so. */
  | { readonly kind: 'short'; readonly bytes: number }
  /** A write lands at another offset of the same file and reports success. */
  | { readonly kind: 'misdirected'; readonly offset: number }
  /** A read returns what was last synced. */
  | { readonly kind: 'stale' };

export interface World {
  /** Runs before the step takes effect; a returned fault replaces the effect. */
  readonly beforeStep?: (step: Step) => Fault | undefined;
  /** Decides when the step takes effect. Without it, at once. */
  readonly turn?: (step: Step) => Promise<void>;
}

export type NameChange =
  | { readonly kind: 'link'; readonly directory: string; readonly path: string; readonly inode: number }
  | { readonly kind: 'unlink'; readonly directory: string; readonly path: string }
  | { readonly kind: 'rename'; readonly directory: string; readonly from: string; readonly path: string };

/** What a dead machine holds: every name and its bytes. */
export interface Image {
  readonly directories: ReadonlySet<string>;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

interface FileState {
  readonly durable: Uint8Array;
  readonly pending: readonly Change[];
  /** What programs see, where a failed sync has made it differ from `durable` and `pending`. */
  readonly cache: Uint8Array | null;
}

/** The disk at one instant. Holds references only: nothing that it points at changes afterwards. */
export interface DiskState {
  readonly directories: ReadonlySet<string>;
  readonly files: ReadonlyMap<number, FileState>;
  readonly names: ReadonlyMap<string, number>;
  readonly nameChanges: readonly NameChange[];
}

const empty = new Uint8Array(0);

export class FaultyDisk implements Disk {
  readonly #world: World;
  readonly #directories: Set<string>;
  readonly #inodes = new Map<number, Inode>();
  readonly #names = new Map<string, number>();
  readonly #locks = new Set<string>();
  #durableNames: Map<string, number>;
  #nameChanges: NameChange[] = [];
  #inodeNext = 1;
  #powered = true;

  /** Steps taken so far. */
  steps = 0;
  /** Rises whenever a crash could leave something else than before. */
  version = 0;
  /** Syncs of a file asked for after one of them had failed: must stay 0. */
  syncsAfterFailure = 0;

  constructor(world: World = {}, image?: Image) {
    this.#world = world;
    this.#directories = new Set(image?.directories ?? ['/', '.']);
    for (const [path, bytes] of image?.files ?? []) this.#names.set(path, this.#add(new Inode(bytes)));
    this.#durableNames = new Map(this.#names);
  }

  /** The same machine after its process was killed: what was pending is pending still. */
  static afterKill(state: DiskState, world: World = {}): FaultyDisk {
    const disk = new FaultyDisk(world, { directories: state.directories, files: new Map() });
    for (const [id, file] of state.files) {
      disk.#inodes.set(id, Inode.revived(file.durable, file.pending, file.cache));
      disk.#inodeNext = Math.max(disk.#inodeNext, id + 1);
    }
    disk.#durableNames = new Map(state.names);
    disk.#nameChanges = [...state.nameChanges];
    for (const [path, id] of state.names) disk.#names.set(path, id);
    for (const change of state.nameChanges) applyNameChange(disk.#names, change);
    return disk;
  }

  /** From now on every call fails and nothing changes, as for a process whose machine is off. */
  powerOff(): void {
    this.#powered = false;
  }

  state(): DiskState {
    const files = new Map<number, FileState>();
    for (const [id, inode] of this.#inodes) files.set(id, inode.state());
    return {
      directories: new Set(this.#directories),
      files,
      names: this.#durableNames,
      nameChanges: this.#nameChanges.slice(),
    };
  }

  /** Whether a file, bytes and name, would be there unchanged after a power cut. */
  isDurable(path: string): boolean {
    const id = this.#names.get(path);
    const inode = id === undefined ? undefined : this.#inodes.get(id);
    return inode !== undefined && this.#durableNames.get(path) === id && inode.state().pending.length === 0;
  }

  /** What programs see now, as if everything had been synced. */
  visible(): Image {
    const files = new Map<string, Uint8Array>();
    for (const [path, id] of this.#names) files.set(path, this.#inodes.get(id)!.copy());
    return { directories: new Set(this.#directories), files };
  }

  async open(path: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile> {
    const name = normalize(path);
    await this.#step(mode === 'create' ? 'create' : 'open', name);
    let id = this.#names.get(name);
    if (mode === 'create') {
      if (id !== undefined) throw new DiskError('EEXIST', name);
      id = this.#link(name, new Inode(empty));
    }
    if (id === undefined) throw new DiskError('ENOENT', name);
    return new FaultyFile(name, mode !== 'read', this.#inodes.get(id)!, this.#fileCalls);
  }

  async readFile(path: string): Promise<Uint8Array | undefined> {
    const name = normalize(path);
    const fault = await this.#step('read', name);
    const id = this.#names.get(name);
    if (id === undefined) return undefined;
    const inode = this.#inodes.get(id)!;
    return fault?.kind === 'stale' ? inode.durable.slice() : inode.copy();
  }

  /** The real disk's five calls, each a step of its own. */
  async replaceFile(path: string, content: Uint8Array): Promise<void> {
    const name = normalize(path);
    const temporary = `${name}.tmp`;
    if (this.#names.has(temporary)) await this.unlink(temporary);
    const file = await this.open(temporary, 'create');
    for (let at = 0; at < content.length; ) at += await file.write(content.subarray(at), at);
    await file.sync();
    await this.rename(temporary, name);
    await this.syncDirectory(dirname(name));
  }

  async rename(from: string, to: string): Promise<void> {
    const [source, target] = [normalize(from), normalize(to)];
    await this.#step('rename', target);
    const id = this.#names.get(source);
    if (id === undefined) throw new DiskError('ENOENT', source);
    if (dirname(source) !== dirname(target)) throw new DiskError('EXDEV', `${source} to ${target}`);
    this.#changeName({ kind: 'rename', directory: dirname(target), from: source, path: target });
  }

  async unlink(path: string): Promise<void> {
    const name = normalize(path);
    await this.#step('unlink', name);
    if (!this.#names.has(name)) throw new DiskError('ENOENT', name);
    this.#changeName({ kind: 'unlink', directory: dirname(name), path: name });
  }

  async list(directory: string): Promise<string[]> {
    const parent = normalize(directory).replace(/(?<=.)\/$/, '');
    await this.#step('list', parent);
    const names: string[] = [];
    for (const path of [...this.#names.keys(), ...this.#directories]) {
      if (path !== parent && dirname(path) === parent) names.push(path.slice(path.lastIndexOf('/') + 1));
    }
    return names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#step('makeDirectory', normalize(path));
    for (let name = normalize(path); !this.#directories.has(name); name = dirname(name)) this.#directories.add(name);
    this.version++;
  }

  async syncDirectory(path: string): Promise<void> {
    const directory = normalize(path);
    await this.#step('syncDirectory', directory);
    if (!this.#directories.has(directory)) throw new DiskError('ENOENT', directory);
    this.#settleNames(directory);
    this.version++;
  }

  /** A directory that is gone takes with it that its names were: no journal brings back names in a directory that it does not. */
  async removeDirectory(path: string): Promise<void> {
    const directory = normalize(path);
    await this.#step('removeDirectory', directory);
    if (!this.#directories.has(directory)) throw new DiskError('ENOENT', directory);
    const inside = [...this.#names.keys(), ...this.#directories].some(
      (name) => name !== directory && dirname(name) === directory,
    );
    if (inside) throw new DiskError('ENOTEMPTY', directory);
    this.#settleNames(directory);
    this.#directories.delete(directory);
    this.version++;
  }

  #settleNames(directory: string): void {
    const durable = new Map(this.#durableNames);
    const rest: NameChange[] = [];
    for (const change of this.#nameChanges) {
      if (change.directory === directory) applyNameChange(durable, change);
      else rest.push(change);
    }
    this.#durableNames = durable;
    this.#nameChanges = rest;
  }

  async size(path: string): Promise<number | undefined> {
    const name = normalize(path);
    await this.#step('size', name);
    const id = this.#names.get(name);
    return id === undefined ? undefined : this.#inodes.get(id)!.length;
  }

  async freeBytes(): Promise<number | null> {
    return null;
  }

  async lock(path: string): Promise<{ release(): Promise<void> }> {
    const name = normalize(path);
    await this.#step('lock', name);
    if (this.#locks.has(name)) throw new DiskError('EWOULDBLOCK', name);
    this.#locks.add(name);
    return { release: async () => void this.#locks.delete(name) };
  }

  #add(inode: Inode): number {
    this.#inodes.set(this.#inodeNext, inode);
    return this.#inodeNext++;
  }

  #link(path: string, inode: Inode): number {
    if (!this.#directories.has(dirname(path))) throw new DiskError('ENOENT', dirname(path));
    const id = this.#add(inode);
    this.#changeName({ kind: 'link', directory: dirname(path), path, inode: id });
    return id;
  }

  #changeName(change: NameChange): void {
    this.#nameChanges.push(change);
    applyNameChange(this.#names, change);
    this.version++;
  }

  readonly #fileCalls: FileCalls = {
    step: (kind, path, bytes) => this.#step(kind, path, bytes),
    changed: () => void this.version++,
    syncAfterFailure: () => void this.syncsAfterFailure++,
  };

  /** Throws what the world asks for; returns the faults that only bend the effect. */
  async #step(kind: StepKind, path: string, bytes = 0): Promise<Fault | undefined> {
    const step = { index: this.steps++, kind, path, bytes };
    if (this.#world.turn) await this.#world.turn(step);
    if (!this.#powered) throw new DiskError('EPOWER', `${kind} ${path}: the machine is off`);
    const fault = this.#world.beforeStep?.(step);
    if (!this.#powered) throw new DiskError('EPOWER', `${kind} ${path}: the machine is off`);
    // A failing write or sync still has a partial effect, which the file makes before it throws.
    if (fault?.kind === 'error' && kind !== 'write' && kind !== 'sync')
      throw new DiskError(fault.code, `${kind} ${path}`, kind === 'syncDirectory' ? 'fsync' : kind);
    return fault;
  }
}

interface FileCalls {
  step(kind: StepKind, path: string, bytes?: number): Promise<Fault | undefined>;
  changed(): void;
  syncAfterFailure(): void;
}

class FaultyFile implements DiskFile {
  readonly path: string;
  readonly #writable: boolean;
  readonly #inode: Inode;
  readonly #calls: FileCalls;
  #open = true;

  constructor(path: string, writable: boolean, inode: Inode, calls: FileCalls) {
    this.path = path;
    this.#writable = writable;
    this.#inode = inode;
    this.#calls = calls;
  }

  async size(): Promise<number> {
    this.#check(false);
    await this.#calls.step('size', this.path);
    return this.#inode.length;
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    this.#check(false);
    const fault = await this.#calls.step('read', this.path, target.length);
    return fault?.kind === 'stale' ? copyInto(target, this.#inode.durable, offset) : this.#inode.read(target, offset);
  }

  /** No step of its own: nothing is changed, and a turn can't be stopped in its middle. */
  readNow(target: Uint8Array, offset: number): number {
    this.#check(false);
    return this.#inode.read(target, offset);
  }

  async write(source: Uint8Array, offset: number): Promise<number> {
    this.#check(true);
    // The caller may reuse its buffer as soon as the promise resolves, and not before.
    const fault = await this.#calls.step('write', this.path, source.length);
    const partial =
      fault?.kind === 'short' || fault?.kind === 'error' ? Math.min(fault.bytes ?? 0, source.length) : source.length;
    if (partial > 0) {
      this.#inode.write(Uint8Array.from(source.subarray(0, partial)), fault?.kind === 'misdirected' ? fault.offset : offset);
      this.#calls.changed();
    }
    if (fault?.kind === 'error') throw new DiskError(fault.code, `write ${this.path}`);
    return partial;
  }

  async sync(): Promise<void> {
    this.#check(false);
    if (this.#inode.syncFailed) this.#calls.syncAfterFailure();
    const asked = this.#inode.changes;
    const fault = await this.#calls.step('sync', this.path);
    this.#calls.changed();
    if (fault?.kind === 'error') {
      this.#inode.failSync(fault.torn);
      throw new DiskError(fault.code, `sync ${this.path}`, 'fsync');
    }
    this.#inode.sync(asked);
  }

  async truncate(length: number): Promise<void> {
    this.#check(true);
    await this.#calls.step('truncate', this.path);
    this.#inode.truncate(length);
    this.#calls.changed();
  }

  async close(): Promise<void> {
    this.#check(false);
    this.#open = false;
  }

  #check(writing: boolean): void {
    if (!this.#open || (writing && !this.#writable)) throw new DiskError('EBADF', this.path);
  }
}

class Inode {
  durable: Uint8Array;
  length: number;
  /** In this process. */
  syncFailed = false;
  /** Pages that a failed sync dropped count as clean until the machine starts anew: they are shown, and never written. */
  #pagesDropped = false;
  #pending: Change[] = [];
  /** Changes before those that are pending. */
  #settled = 0;
  #bytes: Uint8Array;

  constructor(durable: Uint8Array) {
    this.durable = durable;
    this.length = durable.length;
    this.#bytes = durable.slice();
  }

  static revived(durable: Uint8Array, pending: readonly Change[], cache: Uint8Array | null): Inode {
    const inode = new Inode(durable);
    for (const change of pending) {
      if (change.kind === 'write') inode.write(change.bytes, change.offset);
      else inode.truncate(change.length);
    }
    if (cache) {
      inode.#pagesDropped = true;
      inode.#bytes = cache.slice();
      inode.length = cache.length;
    }
    return inode;
  }

  state(): FileState {
    return { durable: this.durable, pending: this.#pending.slice(), cache: this.#pagesDropped ? this.copy() : null };
  }

  /** So far. */
  get changes(): number {
    return this.#settled + this.#pending.length;
  }

  copy(): Uint8Array {
    return this.#bytes.slice(0, this.length);
  }

  read(target: Uint8Array, offset: number): number {
    return copyInto(target, this.#bytes.subarray(0, this.length), offset);
  }

  write(bytes: Uint8Array, offset: number): void {
    this.#reserve(offset + bytes.length);
    this.#bytes.set(bytes, offset);
    this.length = Math.max(this.length, offset + bytes.length);
    this.#pending.push({ kind: 'write', offset, bytes });
  }

  truncate(length: number): void {
    this.#reserve(length);
    if (length < this.length) this.#bytes.fill(0, length, this.length);
    this.length = length;
    this.#pending.push({ kind: 'truncate', length });
  }

  /** Makes the first `changes` durable. */
  sync(changes: number): void {
    const count = changes - this.#settled;
    if (count <= 0) return;
    const whole = count === this.#pending.length && !this.#pagesDropped;
    this.durable = whole ? this.copy() : applied(this.durable, this.#pending.slice(0, count));
    this.#pending = this.#pending.slice(count);
    this.#settled = changes;
  }

  failSync(torn?: Seeded): void {
    this.syncFailed = true;
    this.#pagesDropped = true;
    if (torn) this.durable = tornFile(this.durable, this.#pending, torn);
    // Lengths live in the journal, which no page that was dropped concerns.
    const kept = this.#pending.filter(({ kind }) => kind === 'truncate');
    this.#settled += this.#pending.length - kept.length;
    this.#pending = kept;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(length, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.length));
    this.#bytes = grown;
  }
}

export function applyNameChange(names: Map<string, number>, change: NameChange): void {
  if (change.kind === 'link') names.set(change.path, change.inode);
  else if (change.kind === 'unlink') names.delete(change.path);
  else {
    const id = names.get(change.from);
    names.delete(change.from);
    if (id !== undefined) names.set(change.path, id);
  }
}

function copyInto(target: Uint8Array, source: Uint8Array, offset: number): number {
  const count = Math.max(0, Math.min(target.length, source.length - offset));
  target.set(source.subarray(offset, offset + count));
  return count;
}
