/**
 * Keeps pieces that were made of rows for the next question over the same rows. A piece is used again only under the grant, branch and types
 * that it was made for, and only where these rows say the same at the instant that is asked about: nothing was written, ended,
 * removed or erased in between, and nothing began or ended to be true. All pieces together take no more than the budget; what
 * was not asked about for longest goes first.
 */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TimeBounds } from '../../projections/access-paths.ts';
import { readAgain, type ReadAt, readAt } from './edge-changes.ts';
import type { Steps } from './stepped-sort.ts';

interface CachedPiece {
  readonly value: unknown;
  readonly bytes: number;
  readonly read: ReadAt;
  readonly isErased: () => boolean;
}

/** Instants for which one piece is kept under one grant. */
const basisInstantsMax = 4;

export class BasisCache {
  readonly #basisBytesMax: number;
  /** By key, the one asked about last at the end. */
  readonly #pieces = new Map<string, readonly CachedPiece[]>();
  #basisGeneration = 0;

  constructor(basisBytesMax: number) {
    this.#basisBytesMax = basisBytesMax;
  }

  clear(): void {
    this.#basisGeneration++;
    this.#pieces.clear();
  }

  /** `what` says how the piece is made of the rows of `types`; `makeValue` gives it with the bytes that it holds on to. */
  *find<T>(
    { snapshot, time }: { readonly snapshot: GovernedSnapshot; readonly time: TimeBounds },
    types: readonly string[],
    pieceName: string,
    makeValue: () => Steps<{ readonly value: T; readonly bytes: number }>,
  ): Steps<T> {
    if (snapshot.isPrivate || snapshot.pinned) return (yield* makeValue()).value;
    const basisKey = JSON.stringify([snapshot.grantKey, snapshot.branchId, snapshot.catalog.ontologyVersion, types, pieceName]);
    const basisGeneration = this.#basisGeneration;
    const isBasisErased = snapshot.erasing(types);
    let cachedPiece: CachedPiece | undefined;
    let readAgainAt: ReadAt | null = null;
    for (const piece of this.#pieces.get(basisKey) ?? []) {
      if (!piece.isErased()) readAgainAt = yield* readAgain(piece.read, { snapshot, types, time });
      if (readAgainAt === null) continue;
      cachedPiece = piece;
      break;
    }
    const currentPiece = cachedPiece ?? (yield* makeValue());
    if (basisGeneration === this.#basisGeneration && !isBasisErased()) {
      const { value, bytes } = currentPiece;
      const otherValues = (this.#pieces.get(basisKey) ?? []).filter((each) => each !== cachedPiece);
      this.#pieces.delete(basisKey);
      this.#pieces.set(
        basisKey,
        [{ value, bytes, read: readAgainAt ?? readAt(time, snapshot), isErased: isBasisErased }, ...otherValues].slice(
          0,
          basisInstantsMax,
        ),
      );
      this.#evictOldestValues();
    }
    return currentPiece.value as T;
  }

  #evictOldestValues(): void {
    let cachedBytes = 0;
    for (const valuesOfKey of this.#pieces.values()) for (const cachedValue of valuesOfKey) cachedBytes += cachedValue.bytes;
    for (const [basisKey, all] of this.#pieces) {
      if (cachedBytes <= this.#basisBytesMax) return;
      this.#pieces.delete(basisKey);
      for (const each of all) cachedBytes -= each.bytes;
    }
  }
}
