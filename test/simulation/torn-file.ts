/**
 * What one file may look like after the power went: every 512-byte sector holds one of the contents that it had since
 * the last sync, or a mix of two neighbours of these; the length is one of the lengths that the file had. Sectors
 * choose independently, so writes are lost, torn and reordered. Bytes that a longer length promises and that never
 * arrived are zeros, or now and then whatever lay there before.
 */
import type { Seeded } from './seeded.ts';

export type Change =
  | { readonly kind: 'write'; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly length: number };

const sectorBytes = 512;

type Style = 'prefix' | 'mixed' | 'lengthOnly' | 'dataOnly';
const styles: readonly Style[] = ['prefix', 'prefix', 'mixed', 'mixed', 'mixed', 'lengthOnly', 'dataOnly'];

export function tornFile(durable: Uint8Array, changes: readonly Change[], random: Seeded): Uint8Array {
  if (changes.length === 0) return durable;
  const style = random.pick(styles);
  if (style === 'prefix') return tornPrefix(durable, changes, random);

  const { sectors, lengths } = history(durable, changes);
  const length = style === 'lengthOnly' ? lengths.at(-1)! : style === 'dataOnly' ? lengths[0]! : random.pick(lengths);
  const survival = random.pick([0.1, 0.5, 0.9]);
  const result = new Uint8Array(length);
  result.set(durable.subarray(0, Math.min(length, durable.length)));
  if (style !== 'lengthOnly') {
    for (const [sector, versions] of sectors) {
      const chosen = chooseVersion(versions, survival, random);
      const start = sector * sectorBytes;
      if (start < length) result.set(chosen.subarray(0, length - start), start);
    }
  }
  if (length > durable.length && random.chance(0.15)) leaveGarbage(result, durable.length, sectors, random);
  return result;
}

/** `durable` with every change applied in order. */
export function applied(durable: Uint8Array, changes: readonly Change[]): Uint8Array {
  let result: Uint8Array = durable.slice();
  for (const change of changes) result = step(result, change);
  return result;
}

/** The changes up to one of them, the last one cut short at any byte. */
function tornPrefix(durable: Uint8Array, changes: readonly Change[], random: Seeded): Uint8Array {
  const count = random.below(changes.length + 1);
  const whole = applied(durable, changes.slice(0, count));
  const last = changes[count];
  if (last?.kind !== 'write') return whole;
  return applied(whole, [{ ...last, bytes: last.bytes.subarray(0, random.below(last.bytes.length + 1)) }]);
}

function chooseVersion(versions: readonly Uint8Array[], survival: number, random: Seeded): Uint8Array {
  const last = versions.length - 1;
  const index = random.chance(survival) ? last : random.below(last + 1);
  const chosen = versions[index]!;
  if (index === 0 || random.chance(0.8)) return chosen;
  const torn = versions[index - 1]!.slice();
  const cut = random.below(sectorBytes);
  torn.set(chosen.subarray(0, cut));
  return torn;
}

/** Contents of every sector that changed, oldest first, and every length the file had. */
function history(durable: Uint8Array, changes: readonly Change[]): { sectors: Map<number, Uint8Array[]>; lengths: number[] } {
  const sectors = new Map<number, Uint8Array[]>();
  const lengths = [durable.length];
  let current: Uint8Array = durable.slice();
  for (const change of changes) {
    const before = current;
    current = step(current, change);
    if (current.length !== lengths.at(-1)) lengths.push(current.length);
    const start = change.kind === 'write' ? change.offset : Math.min(before.length, current.length);
    const end = change.kind === 'write' ? change.offset + change.bytes.length : Math.max(before.length, current.length);
    for (let sector = Math.floor(start / sectorBytes); sector * sectorBytes < end; sector++) {
      let versions = sectors.get(sector);
      if (!versions) sectors.set(sector, (versions = [sectorOf(durable, sector)]));
      versions.push(sectorOf(current, sector));
    }
  }
  return { sectors, lengths };
}

function sectorOf(content: Uint8Array, sector: number): Uint8Array {
  const result = new Uint8Array(sectorBytes);
  result.set(content.subarray(sector * sectorBytes, (sector + 1) * sectorBytes));
  return result;
}

/** Sectors past the old end that never arrived show what the medium held: noise, or older bytes of this very file. */
function leaveGarbage(result: Uint8Array, from: number, sectors: Map<number, Uint8Array[]>, random: Seeded): void {
  const first = Math.ceil(from / sectorBytes);
  for (let sector = first; sector * sectorBytes < result.length; sector++) {
    const start = sector * sectorBytes;
    const end = Math.min(start + sectorBytes, result.length);
    const arrived = (sectors.get(sector)?.length ?? 0) > 0 && random.chance(0.5);
    if (arrived) continue;
    if (first > 0 && random.chance(0.5)) {
      const source = random.below(first) * sectorBytes;
      result.copyWithin(start, source, source + (end - start));
    } else {
      random.fill(result.subarray(start, end));
    }
  }
}

function step(content: Uint8Array, change: Change): Uint8Array {
  const length = change.kind === 'write' ? Math.max(content.length, change.offset + change.bytes.length) : change.length;
  const result = new Uint8Array(length);
  result.set(content.subarray(0, length));
  if (change.kind === 'write') result.set(change.bytes, change.offset);
  return result;
}
