/** Positions of SCANs: Redis clients carry only a number, so the position behind each of the latest numbers is kept here. */
import { LRUCache } from 'lru-cache';
import type { Caller } from '../../governance/caller.ts';

interface Held {
  readonly position: string;
  readonly of: string;
}

const cursorsMax = 10_000;

export class ScanCursors {
  readonly #held = new LRUCache<string, Held>({ max: cursorsMax });
  #last = 0;

  /** `position` pins the snapshot. */
  open(position: string, caller: Caller): string {
    const number = String(++this.#last);
    this.#held.set(number, { position, of: ownerOf(caller) });
    return number;
  }

  /** Undefined for a number never given out, one of another caller, or an old one. May be read again. */
  position(number: string, caller: Caller): string | undefined {
    const held = this.#held.get(number);
    return held?.of === ownerOf(caller) ? held.position : undefined;
  }
}

function ownerOf({ principal, tokenId, path, branch, sharedFrom }: Caller): string {
  return JSON.stringify([principal, tokenId, path, branch, sharedFrom]);
}
