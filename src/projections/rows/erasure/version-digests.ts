/**
 * Digests of the live versions of a type, before an erasure and after it. A version is named by its position, and the log
 * committed to its content there; so a permanent digest reveals no erased data, and folding the log (rows in, removals and
 * erasures out) gives the same one, with the subjects' keys or without.
 *
 *   block  = SHA-256 over runs of standing positions within 65,536 of them, as long as they can be: first, count
 *   digest = SHA-256 over the type, then of each branch that has some, main first: its fork, and of each block number and hash
 *
 * Numbers are doubles, big-endian; texts are UTF-8 behind their length as such a number; hashes are texts of 64 hex digits.
 */
import { type ErasedVersions, tenantOfErased } from '../../../log/entries/entry.ts';
import { CanonicalHash } from '../../canonical-hash.ts';
import type { BranchLayer } from '../tables/branch-layer.ts';
import type { Segment } from '../segments/segment.ts';

export interface StandingDigests {
  readonly type: string;
  /** Lower-case hex. */
  readonly before: string;
  readonly after: string;
}

const BLOCK = 65_536;
const RUNS_BYTES = 1 << 14;

interface Block {
  readonly number: number;
  /** Segments with positions of the block, in order. */
  readonly segments: readonly Segment[];
}

/** Digest of a block; null where no version is open. */
interface Hashed {
  /** Rises with any change of the segments. */
  readonly stamp: number;
  readonly erased: number;
  readonly before: string | null;
  readonly after: string | null;
}

/** For one erasure. */
export class LiveVersionDigests {
  readonly #layers: () => readonly BranchLayer[];
  readonly #known = new Map<string, Hashed>();

  /** Main first. */
  constructor(layers: () => readonly BranchLayer[]) {
    this.#layers = layers;
  }

  /** Hashes blocks, one a step, so that `digests` has only those left that change meanwhile. Positions ascend. */
  *expect(versions: readonly ErasedVersions[]): Generator<undefined, void> {
    for (const each of versions) {
      for (const { id, blocks } of this.#blocksOf(each)) {
        for (const block of blocks) {
          this.#hash(each, id, block);
          yield;
        }
      }
    }
  }

  /** As things stand in this turn, and as they will without these versions. Positions ascend. */
  digests(versions: readonly ErasedVersions[]): StandingDigests[] {
    return versions.map((each) => {
      const { type } = each;
      const [before, after] = [new CanonicalHash(), new CanonicalHash()];
      before.text(type);
      after.text(type);
      for (const { id, blocks } of this.#blocksOf(each)) {
        const hashed = [...blocks].map((block) => ({ block, hashes: this.#hash(each, id, block) }));
        const add = (hash: CanonicalHash, side: 'before' | 'after'): void => {
          const liveHashes = hashed.flatMap(({ block: { number }, hashes }) => {
            const of = hashes[side];
            return of === null ? [] : [{ number, of }];
          });
          if (liveHashes.length > 0) hash.number(id);
          for (const { number, of } of liveHashes) {
            hash.number(number);
            hash.text(of);
          }
        };
        add(before, 'before');
        add(after, 'after');
      }
      return { type, before: before.hex(), after: after.hex() };
    });
  }

  #blocksOf(versions: ErasedVersions): { readonly id: number; readonly blocks: Iterable<Block> }[] {
    return this.#layers().flatMap((layer) => {
      const table = layer.table(tenantOfErased(versions), versions.type);
      return table ? [{ id: layer.id, blocks: blocksOf(table.segments) }] : [];
    });
  }

  #hash({ type, positions }: ErasedVersions, layer: number, block: Block): Hashed {
    const name = `${layer} ${block.number} ${type}`;
    const known = this.#known.get(name);
    const stamp = block.segments.reduce((sum, { length, removals }) => sum + length + removals, 0);
    const [from, to] = [block.number, block.number + 1].map((number) => firstAtOrAfter(positions, number * BLOCK));
    const erased = to! - from!;
    if (known?.stamp === stamp && known.erased === erased) return known;
    const hashed = { stamp, erased, ...hashBlock(block, positions.slice(from, to)) };
    this.#known.set(name, hashed);
    return hashed;
  }
}

function* blocksOf(segments: readonly Segment[]): Generator<Block, void> {
  const last = segments.at(-1);
  if (last === undefined) return;
  let first = 0;
  for (let number = Math.floor(segments[0]!.base / BLOCK); number * BLOCK <= last.positionOf(last.length - 1); number++) {
    while (segments[first]!.positionOf(segments[first]!.length - 1) < number * BLOCK) first++;
    let end = first;
    while (end < segments.length && segments[end]!.base < (number + 1) * BLOCK) end++;
    if (end > first) yield { number, segments: segments.slice(first, end) };
  }
}

function hashBlock({ number, segments }: Block, erased: readonly number[]): Pick<Hashed, 'before' | 'after'> {
  const [before, after] = [new Runs(), new Runs()];
  let next = 0;
  for (const segment of segments) {
    const [first, end] = [number, number + 1].map((each) => segment.rowAtOrAfter(each * BLOCK)) as [number, number];
    let removed = segment.removedAtOrAfter(first);
    for (let row = first; row < end; ) {
      if (row === removed) {
        removed = segment.removedAtOrAfter(++row);
        continue;
      }
      const position = segment.positionOf(row);
      while (next < erased.length && erased[next]! < position) next++;
      const isErased = erased[next] === position;
      const untilErased = (erased[next] ?? Infinity) - position;
      // Only where positions are those of rows do they follow each other.
      const count = isErased || segment.deltas !== null ? 1 : Math.min(end, removed, row + untilErased) - row;
      before.add(position, count);
      if (!isErased) after.add(position, count);
      row += count;
    }
  }
  const hash = before.hex();
  return { before: hash, after: erased.length === 0 ? hash : after.hex() };
}

/** Positions as runs that are as long as they can be. */
class Runs {
  readonly #hash = new CanonicalHash(RUNS_BYTES);
  #first = 0;
  #count = 0;
  #isEmpty = true;

  add(first: number, count: number): void {
    if (count === 0) return;
    if (first !== this.#first + this.#count) {
      this.#flush();
      this.#first = first;
    }
    this.#count += count;
  }

  hex(): string | null {
    this.#flush();
    return this.#isEmpty ? null : this.#hash.hex();
  }

  #flush(): void {
    if (this.#count === 0) return;
    this.#isEmpty = false;
    this.#hash.number(this.#first);
    this.#hash.number(this.#count);
    this.#count = 0;
  }
}

function firstAtOrAfter(positions: readonly number[], position: number): number {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (positions[middle]! < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
