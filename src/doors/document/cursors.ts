/**
 * The remaining documents of answers, for later batches: kept at the door, since a client may fetch them by another connection.
 */
import { LRUCache } from 'lru-cache';
import type { Random } from '../../clock.ts';
import type { Caller } from '../../governance/caller.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import type { StoredObject } from '../../planner/expressions/documents/document-values.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import type { Terms } from '../shared/session-terms.ts';
import { Encoded, writeSteps } from './bson.ts';
import { DocumentRefusal } from './errors.ts';

export interface OpenCursor {
  readonly namespace: string;
  readonly rest: readonly Encoded[];
  readonly terms: Terms;
  readonly answers: readonly Pick<Answer, 'overtaken'>[];
  readonly of: string;
}

const cursorsMax = 10_000;
const bytesMax = 64 << 20;
/** A reply stays well below the limit of a message. */
const batchBytes = 12 << 20;

export class OpenCursors {
  readonly #random: Random;
  readonly #open = new LRUCache<bigint, OpenCursor>({
    max: cursorsMax,
    maxSize: bytesMax,
    sizeCalculation: ({ rest }) => rest.reduce((sum, { bytes }) => sum + bytes.length, 1),
  });

  constructor(random: Random) {
    this.#random = random;
  }

  /** 0: nothing is left. */
  keep(cursor: OpenCursor): bigint {
    if (cursor.rest.length === 0) return 0n;
    const id = Buffer.from(this.#random.fill(new Uint8Array(8))).readBigUInt64LE() >> 1n || 1n;
    this.#open.set(id, cursor);
    if (!this.#open.has(id))
      throw new DocumentRefusal(
        292,
        'more is left of the answer than the door keeps for later batches: use limit',
        'REL_MEMORY_CAP',
      );
    return id;
  }

  take(id: bigint, namespace: string, caller: Caller): OpenCursor {
    const openCursor = this.#open.get(id);
    if (openCursor === undefined || openCursor.of !== ownerOf(caller) || openCursor.namespace !== namespace)
      throw new DocumentRefusal(43, `cursor id ${id} not found`, 'REL_NOT_FOUND');
    this.#open.delete(id);
    return openCursor;
  }

  /** Whether it was there. */
  kill(id: bigint, caller: Caller): boolean {
    return this.#open.peek(id)?.of === ownerOf(caller) && this.#open.delete(id);
  }
}

export function ownerOf({ principal, tokenId, path, branch, sharedFrom }: Caller): string {
  return JSON.stringify([principal, tokenId, path, branch, sharedFrom]);
}

/** Bytes written in one turn. */
const bytesPerTurn = 256 << 10;

export async function encodeAll(documents: readonly StoredObject[], yieldTurn: () => Promise<void>): Promise<Encoded[]> {
  const encodedDocuments: Encoded[] = [];
  let turn = bytesPerTurn;
  for (const bsonDocument of documents) {
    const steps = writeSteps(bsonDocument);
    const { done, value } = steps.next();
    const bytes = done === true ? value : await inTurns(steps, yieldTurn);
    encodedDocuments.push(new Encoded(bytes));
    turn -= bytes.length;
    if (turn <= 0) {
      await yieldTurn();
      turn = bytesPerTurn;
    }
  }
  return encodedDocuments;
}

/** The next documents, and the remaining ones. */
export function batchOf(
  rest: readonly Encoded[],
  most: number,
): { readonly batch: Encoded[]; readonly rest: readonly Encoded[] } {
  let bytes = 0;
  let n = 0;
  while (n < rest.length && n < most) {
    bytes += rest[n]!.bytes.length;
    if (n > 0 && bytes > batchBytes) break;
    n++;
  }
  return { batch: rest.slice(0, n), rest: rest.slice(n) };
}
