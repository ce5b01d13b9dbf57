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
const instantsMax = 4;

export class BasisCache {
  readonly #bytesMax: number;
  /** By key, the one asked about last at the end. */
  readonly #pieces = new Map<string, readonly CachedPiece[]>();
  #generation = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  clear(): void {
    this.#generation++;
    this.#pieces.clear();
  }

  /** `what` says how the piece is made of the rows of `types`; `make` gives it with the bytes that it holds on to. */
  *find<T>(
    { snapshot, time }: { readonly snapshot: GovernedSnapshot; readonly time: TimeBounds },
    types: readonly string[],
    pieceName: string,
    make: () => Steps<{ readonly value: T; readonly bytes: number }>,
  ): Steps<T> {
    if (snapshot.isPrivate || snapshot.pinned) return (yield* make()).value;
    const key = JSON.stringify([snapshot.grantKey, snapshot.branchId, snapshot.catalog.ontologyVersion, types, pieceName]);
    const generation = this.#generation;
    const isErased = snapshot.erasing(types);
    let cachedPiece: CachedPiece | undefined;
    let read: ReadAt | null = null;
    for (const piece of this.#pieces.get(key) ?? []) {
      if (!piece.isErased()) read = yield* readAgain(piece.read, { snapshot, types, time });
      if (read === null) continue;
      cachedPiece = piece;
      break;
    }
    const currentPiece = cachedPiece ?? (yield* make());
    if (generation === this.#generation && !isErased()) {
      const { value, bytes } = currentPiece;
      const others = (this.#pieces.get(key) ?? []).filter((each) => each !== cachedPiece);
      this.#pieces.delete(key);
      this.#pieces.set(key, [{ value, bytes, read: read ?? readAt(time, snapshot), isErased }, ...others].slice(0, instantsMax));
      this.#letGo();
    }
    return currentPiece.value as T;
  }

  #letGo(): void {
    let bytes = 0;
    for (const all of this.#pieces.values()) for (const each of all) bytes += each.bytes;
    for (const [key, all] of this.#pieces) {
      if (bytes <= this.#bytesMax) return;
      this.#pieces.delete(key);
      for (const each of all) bytes -= each.bytes;
    }
  }
}
