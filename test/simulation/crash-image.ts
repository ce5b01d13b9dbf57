/** From a disk's state at the instant of a crash to one of the disks that a restart may find. */
import { applyNameChange, type DiskState, type Image, type NameChange } from './faulty-disk.ts';
import type { Seeded } from './seeded.ts';
import { applied, type Change, tornFile } from './torn-file.ts';

/** `none`: only what was synced. `all`: everything. A generator: each file and directory decides for itself. */
export type Survivors = 'none' | 'all' | Seeded;

export function crashImage(state: DiskState, survivors: Survivors): Image {
  const names = new Map(state.names);
  for (const change of survivingNames(state.nameChanges, survivors)) applyNameChange(names, change);
  const files = new Map<string, Uint8Array>();
  for (const [path, inode] of names) {
    const file = state.files.get(inode);
    if (file) files.set(path, content(file.durable, file.pending, survivors));
  }
  return { directories: state.directories, files };
}

/** Whether anything could be lost: otherwise every image of this state is the same. */
export function isSettled(state: DiskState): boolean {
  if (state.nameChanges.length > 0) return false;
  for (const file of state.files.values()) if (file.pending.length > 0) return false;
  return true;
}

export function sameImage(a: Image, b: Image): boolean {
  if (a.files.size !== b.files.size) return false;
  for (const [path, bytes] of a.files) {
    const other = b.files.get(path);
    if (!other || (other !== bytes && Buffer.compare(other, bytes) !== 0)) return false;
  }
  return true;
}

function content(durable: Uint8Array, pending: readonly Change[], survivors: Survivors): Uint8Array {
  if (pending.length === 0 || survivors === 'none') return durable;
  return survivors === 'all' ? applied(durable, pending) : tornFile(durable, pending, survivors);
}

/** A directory keeps its changes in order: some of the first ones survive. */
function survivingNames(changes: readonly NameChange[], survivors: Survivors): NameChange[] {
  if (survivors === 'none' || changes.length === 0) return [];
  if (survivors === 'all') return [...changes];
  const kept = new Map<string, number>();
  for (const { directory } of changes) kept.set(directory, (kept.get(directory) ?? 0) + 1);
  for (const [directory, count] of kept) kept.set(directory, survivors.below(count + 1));
  return changes.filter(({ directory }) => {
    const left = kept.get(directory)!;
    kept.set(directory, left - 1);
    return left > 0;
  });
}
