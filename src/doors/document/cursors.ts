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

const openCursorsMax = 10_000;
const cursorBytesMax = 64 << 20;
/** A reply stays well below the limit of a message. */
const cursorBatchBytes = 12 << 20;

export class OpenCursors {
  readonly #cursorRandom: Random;
  readonly #openCursors = new LRUCache<bigint, OpenCursor>({
    max: openCursorsMax,
    maxSize: cursorBytesMax,
    sizeCalculation: ({ rest: keptDocuments }) =>
      keptDocuments.reduce((encodedBytes, { bytes: bsonBytes }) => encodedBytes + bsonBytes.length, 1),
  });

  constructor(cursorRandom: Random) {
    this.#cursorRandom = cursorRandom;
  }

  /** 0: nothing is left. */
  keep(keptCursor: OpenCursor): bigint {
    if (keptCursor.rest.length === 0) return 0n;
    const cursorId = Buffer.from(this.#cursorRandom.fill(new Uint8Array(8))).readBigUInt64LE() >> 1n || 1n;
    this.#openCursors.set(cursorId, keptCursor);
    if (!this.#openCursors.has(cursorId))
      throw new DocumentRefusal(
        292,
        'more is left of the answer than the door keeps for later batches: use limit',
        'REL_MEMORY_CAP',
      );
    return cursorId;
  }

  take(cursorId: bigint, cursorNamespace: string, caller: Caller): OpenCursor {
    const openCursor = this.#openCursors.get(cursorId);
    if (openCursor === undefined || openCursor.of !== ownerOf(caller) || openCursor.namespace !== cursorNamespace)
      throw new DocumentRefusal(43, `cursor id ${cursorId} not found`, 'REL_NOT_FOUND');
    this.#openCursors.delete(cursorId);
    return openCursor;
  }

  /** Whether it was there. */
  kill(cursorId: bigint, caller: Caller): boolean {
    return this.#openCursors.peek(cursorId)?.of === ownerOf(caller) && this.#openCursors.delete(cursorId);
  }
}

export function ownerOf({ principal, tokenId, path, branch, sharedFrom }: Caller): string {
  return JSON.stringify([principal, tokenId, path, branch, sharedFrom]);
}

/** Bytes written in one turn. */
const encodedBytesPerTurn = 256 << 10;

export async function encodeAll(bsonDocuments: readonly StoredObject[], yieldTurn: () => Promise<void>): Promise<Encoded[]> {
  const encodedDocuments: Encoded[] = [];
  let turnBytesLeft = encodedBytesPerTurn;
  for (const bsonDocument of bsonDocuments) {
    const writeBsonSteps = writeSteps(bsonDocument);
    const { done: isWritten, value: writtenBytes } = writeBsonSteps.next();
    const encodedBytes = isWritten === true ? writtenBytes : await inTurns(writeBsonSteps, yieldTurn);
    encodedDocuments.push(new Encoded(encodedBytes));
    turnBytesLeft -= encodedBytes.length;
    if (turnBytesLeft <= 0) {
      await yieldTurn();
      turnBytesLeft = encodedBytesPerTurn;
    }
  }
  return encodedDocuments;
}

/** The next documents, and the remaining ones. */
export function batchOf(
  encodedDocuments: readonly Encoded[],
  batchCountMax: number,
): { readonly batch: Encoded[]; readonly rest: readonly Encoded[] } {
  let batchBytesSum = 0;
  let batchCount = 0;
  while (batchCount < encodedDocuments.length && batchCount < batchCountMax) {
    batchBytesSum += encodedDocuments[batchCount]!.bytes.length;
    if (batchCount > 0 && batchBytesSum > cursorBatchBytes) break;
    batchCount++;
  }
  return { batch: encodedDocuments.slice(0, batchCount), rest: encodedDocuments.slice(batchCount) };
}
