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

export interface LiveDigests {
  readonly type: string;
  /** Lower-case hex. */
  readonly before: string;
  readonly after: string;
}

const BLOCK_POSITIONS = 65_536;
const RUNS_BYTES = 1 << 14;

interface VersionBlock {
  readonly number: number;
  /** Segments with positions of the block, in order. */
  readonly segments: readonly Segment[];
}

/** Digest of a block; null where no version is open. */
interface BlockHashes {
  /** Rises with any change of the segments. */
  readonly stamp: number;
  readonly erased: number;
  readonly before: string | null;
  readonly after: string | null;
}

/** For one erasure. */
export class LiveVersionDigests {
  readonly #branchLayers: () => readonly BranchLayer[];
  readonly #knownBlockHashes = new Map<string, BlockHashes>();

  /** Main first. */
  constructor(branchLayers: () => readonly BranchLayer[]) {
    this.#branchLayers = branchLayers;
  }

  /** Hashes blocks, one a step, so that `digests` has only those left that change meanwhile. Positions ascend. */
  *expect(versions: readonly ErasedVersions[]): Generator<undefined, void> {
    for (const erasedVersions of versions) {
      for (const { id, blocks } of this.#versionBlocksOf(erasedVersions)) {
        for (const versionBlock of blocks) {
          this.#hashVersionBlock(erasedVersions, id, versionBlock);
          yield;
        }
      }
    }
  }

  /** As things stand in this turn, and as they will without these versions. Positions ascend. */
  digests(versions: readonly ErasedVersions[]): LiveDigests[] {
    return versions.map((erasedVersions) => {
      const { type } = erasedVersions;
      const [digestBefore, digestAfter] = [new CanonicalHash(), new CanonicalHash()];
      digestBefore.text(type);
      digestAfter.text(type);
      for (const { id, blocks } of this.#versionBlocksOf(erasedVersions)) {
        const hashedBlocks = [...blocks].map((versionBlock) => ({
          block: versionBlock,
          hashes: this.#hashVersionBlock(erasedVersions, id, versionBlock),
        }));
        const addBlockHashes = (versionsHash: CanonicalHash, side: 'before' | 'after'): void => {
          const liveHashes = hashedBlocks.flatMap(({ block: { number }, hashes }) => {
            const blockHash = hashes[side];
            return blockHash === null ? [] : [{ number, of: blockHash }];
          });
          if (liveHashes.length > 0) versionsHash.number(id);
          for (const { number, of } of liveHashes) {
            versionsHash.number(number);
            versionsHash.text(of);
          }
        };
        addBlockHashes(digestBefore, 'before');
        addBlockHashes(digestAfter, 'after');
      }
      return { type, before: digestBefore.hex(), after: digestAfter.hex() };
    });
  }

  #versionBlocksOf(erasedVersions: ErasedVersions): { readonly id: number; readonly blocks: Iterable<VersionBlock> }[] {
    return this.#branchLayers().flatMap((branchLayer) => {
      const table = branchLayer.table(tenantOfErased(erasedVersions), erasedVersions.type);
      return table ? [{ id: branchLayer.id, blocks: versionBlocksOf(table.segments) }] : [];
    });
  }

  #hashVersionBlock({ type, positions }: ErasedVersions, layer: number, versionBlock: VersionBlock): BlockHashes {
    const blockName = `${layer} ${versionBlock.number} ${type}`;
    const knownHashes = this.#knownBlockHashes.get(blockName);
    const blockStamp = versionBlock.segments.reduce((sum, { length, removals }) => sum + length + removals, 0);
    const [erasedFrom, erasedTo] = [versionBlock.number, versionBlock.number + 1].map((number) =>
      firstAtOrAfter(positions, number * BLOCK_POSITIONS),
    );
    const erasedCount = erasedTo! - erasedFrom!;
    if (knownHashes?.stamp === blockStamp && knownHashes.erased === erasedCount) return knownHashes;
    const blockHashes = {
      stamp: blockStamp,
      erased: erasedCount,
      ...hashVersionBlock(versionBlock, positions.slice(erasedFrom, erasedTo)),
    };
    this.#knownBlockHashes.set(blockName, blockHashes);
    return blockHashes;
  }
}

function* versionBlocksOf(segments: readonly Segment[]): Generator<VersionBlock, void> {
  const lastSegment = segments.at(-1);
  if (lastSegment === undefined) return;
  let firstSegment = 0;
  for (
    let blockNumber = Math.floor(segments[0]!.base / BLOCK_POSITIONS);
    blockNumber * BLOCK_POSITIONS <= lastSegment.positionOf(lastSegment.length - 1);
    blockNumber++
  ) {
    while (segments[firstSegment]!.positionOf(segments[firstSegment]!.length - 1) < blockNumber * BLOCK_POSITIONS) firstSegment++;
    let segmentsEnd = firstSegment;
    while (segmentsEnd < segments.length && segments[segmentsEnd]!.base < (blockNumber + 1) * BLOCK_POSITIONS) segmentsEnd++;
    if (segmentsEnd > firstSegment) yield { number: blockNumber, segments: segments.slice(firstSegment, segmentsEnd) };
  }
}

function hashVersionBlock(
  { number, segments }: VersionBlock,
  erasedPositions: readonly number[],
): Pick<BlockHashes, 'before' | 'after'> {
  const [runsBefore, runsAfter] = [new PositionRuns(), new PositionRuns()];
  let nextErased = 0;
  for (const segment of segments) {
    const [blockFirstRow, blockEndRow] = [number, number + 1].map((blockNumber) =>
      segment.rowAtOrAfter(blockNumber * BLOCK_POSITIONS),
    ) as [number, number];
    let removedRow = segment.removedAtOrAfter(blockFirstRow);
    for (let row = blockFirstRow; row < blockEndRow; ) {
      if (row === removedRow) {
        removedRow = segment.removedAtOrAfter(++row);
        continue;
      }
      const position = segment.positionOf(row);
      while (nextErased < erasedPositions.length && erasedPositions[nextErased]! < position) nextErased++;
      const isErased = erasedPositions[nextErased] === position;
      const untilErased = (erasedPositions[nextErased] ?? Infinity) - position;
      // Only where positions are those of rows do they follow each other.
      const runLength = isErased || segment.deltas !== null ? 1 : Math.min(blockEndRow, removedRow, row + untilErased) - row;
      runsBefore.add(position, runLength);
      if (!isErased) runsAfter.add(position, runLength);
      row += runLength;
    }
  }
  const hashBefore = runsBefore.hex();
  return { before: hashBefore, after: erasedPositions.length === 0 ? hashBefore : runsAfter.hex() };
}

/** Positions as runs that are as long as they can be. */
class PositionRuns {
  readonly #positionRunsHash = new CanonicalHash(RUNS_BYTES);
  #runFirstPosition = 0;
  #runPositionCount = 0;
  #hasNoRuns = true;

  add(firstPosition: number, positionCount: number): void {
    if (positionCount === 0) return;
    if (firstPosition !== this.#runFirstPosition + this.#runPositionCount) {
      this.#flushPositionRun();
      this.#runFirstPosition = firstPosition;
    }
    this.#runPositionCount += positionCount;
  }

  hex(): string | null {
    this.#flushPositionRun();
    return this.#hasNoRuns ? null : this.#positionRunsHash.hex();
  }

  #flushPositionRun(): void {
    if (this.#runPositionCount === 0) return;
    this.#hasNoRuns = false;
    this.#positionRunsHash.number(this.#runFirstPosition);
    this.#positionRunsHash.number(this.#runPositionCount);
    this.#runPositionCount = 0;
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
