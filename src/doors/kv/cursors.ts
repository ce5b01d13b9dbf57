/** Where a SCAN goes on: Redis clients carry a number, so what it stands for is kept here, of the last ones that were given out. */
import { LRUCache } from 'lru-cache';
import type { Caller } from '../../governance/caller.ts';

interface Held {
  readonly position: string;
  readonly of: string;
}

const cursorsMax = 10_000;

export class Cursors {
  readonly #held = new LRUCache<string, Held>({ max: cursorsMax });
  #last = 0;

  /** `position` pins what is read. */
  open(position: string, caller: Caller): string {
    const number = String(++this.#last);
    this.#held.set(number, { position, of: ownerOf(caller) });
    return number;
  }

  /** undefined: of nobody, of somebody else, or of long ago. It may be asked for again. */
  position(number: string, caller: Caller): string | undefined {
    const held = this.#held.get(number);
    return held?.of === ownerOf(caller) ? held.position : undefined;
  }
}

function ownerOf({ principal, tokenId, path, branch, sharedFrom }: Caller): string {
  return JSON.stringify([principal, tokenId, path, branch, sharedFrom]);
}
