/** Positions of SCANs: Redis clients carry only a number, so the position behind each of the latest numbers is kept here. */
import { LRUCache } from 'lru-cache';
import type { Caller } from '../../governance/caller.ts';

interface HeldCursor {
  readonly position: string;
  readonly of: string;
}

const scanCursorsMax = 10_000;

export class ScanCursors {
  readonly #held = new LRUCache<string, HeldCursor>({ max: scanCursorsMax });
  #last = 0;

  /** `scanPosition` pins the snapshot. */
  open(scanPosition: string, scanningCaller: Caller): string {
    const cursorNumber = String(++this.#last);
    this.#held.set(cursorNumber, { position: scanPosition, of: cursorOwnerOf(scanningCaller) });
    return cursorNumber;
  }

  /** Undefined for a number never given out, one of another caller, or an old one. May be read again. */
  position(cursorNumber: string, scanningCaller: Caller): string | undefined {
    const heldCursor = this.#held.get(cursorNumber);
    return heldCursor?.of === cursorOwnerOf(scanningCaller) ? heldCursor.position : undefined;
  }
}

function cursorOwnerOf({ principal, tokenId, path, branch, sharedFrom }: Caller): string {
  return JSON.stringify([principal, tokenId, path, branch, sharedFrom]);
}
