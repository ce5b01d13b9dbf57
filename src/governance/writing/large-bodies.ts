/**
 * Bodies that are too large for rows, as one invocation uses them: a row holds a reference in one of its cells, and a caller who
 * sees the cell may read the body. Invariants:
 *
 * - a reference is good in the row that it was made for and in no other, so no caller reads a body by a row of its own making;
 * - a written body belongs to the caller's tenant, and is admitted as a row of the type is, with its later bytes;
 * - a body that no row names yet is held until the invocation that means to is over, and is removed then if none came to name it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import type { BlobName, BlobReader, Blobs, BlobWriter, Part, PartWriter } from '../../log/blobs/blobs.ts';
import { tenantOf } from '../../log/values/value.ts';

export interface BodyDesk {
  /** A body of a row of the type that is about to come, of so many bytes; `madeOf`: of bytes that were let in before, as parts. */
  begin(type: string, size: number, madeOf?: 'parts'): Promise<BodyWriter>;
  /** A piece of one; it is lost with the process. */
  part(type: string, size: number): Promise<PartWriter>;
  /** The cell that refers to the body, for the row of this key on the caller's own path. */
  refer(body: StoredBody, row: Pick<BodyRow, 'type' | 'key'>): string;
  /** The body that a cell of this row refers to. Throws REL_UNPROCESSABLE if the reference was made for another row. */
  bodyOf(cell: string, row: BodyRow): StoredBody;
  /** Throws REL_STORAGE where it is gone. It goes on when the invocation is over. */
  open(body: StoredBody): Promise<BlobReader>;
}

export interface BodyRow {
  readonly type: string;
  readonly key: string;
  readonly path: string | null;
}

export interface StoredBody extends BlobName {
  readonly size: number;
}

export type BodyWriter = BlobWriter;
export type { Part };

export interface LargeBodiesDependencies {
  readonly blobs: Blobs;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

const bodyReferencePattern = /^body:1:([0-9a-f]{64}):(\d{1,15}):([0-9a-f]{64})$/;

/** Digest of the body that a cell refers to, in any row; null where it refers to none. */
export const referredTo = (cell: string): string | null => bodyReferencePattern.exec(cell)?.[1] ?? null;

/** Lets in bytes of a body. Throws REL_STORAGE_CAP. */
export interface BodyAdmission {
  /** Before the body, of so many bytes; returns what gives them back. `madeOf`: they were let in before. */
  begin(type: string, size: number, madeOf?: 'parts'): () => void;
  /** While it comes: others store too. */
  goOn(): void;
}

/** Bytes after which it is asked whether there still is room. */
const bytesPerAdmission = 1 << 20;

export class LargeBodies implements BodyDesk {
  readonly #largeBodyParts: LargeBodiesDependencies;
  readonly #bodyPath: string | null;
  readonly #bodyAdmission: BodyAdmission;
  /** By address, what gives back the bytes that were let in for it; null: none were. */
  readonly #heldBlobs: (readonly [address: string, giveBack: (() => void) | null])[] = [];
  readonly #referredBlobs = new Set<string>();

  constructor(parts: LargeBodiesDependencies, path: string | null, admission: BodyAdmission) {
    this.#largeBodyParts = parts;
    this.#bodyPath = path;
    this.#bodyAdmission = admission;
  }

  async begin(type: string, size: number, madeOf?: 'parts'): Promise<BodyWriter> {
    const giveStorageBack = this.#bodyAdmission.begin(type, size, madeOf);
    const { blobs } = this.#largeBodyParts;
    const bodyWriter = await blobs.begin(this.#blobScope);
    const finishBody = async (): ReturnType<BodyWriter['finish']> => {
      const body = await bodyWriter.finish();
      this.#heldBlobs.push([blobs.address(body), giveStorageBack]);
      return body;
    };
    const abandonBody = (): Promise<void> => {
      giveStorageBack();
      return bodyWriter.abandon();
    };
    return {
      write: madeOf === undefined ? this.#admittingWrite(bodyWriter) : bodyWriter.write,
      finish: finishBody,
      abandon: abandonBody,
    };
  }

  async part(type: string, size: number): Promise<PartWriter> {
    const giveStorageBack = this.#bodyAdmission.begin(type, size);
    const partWriter = await this.#largeBodyParts.blobs.part();
    const finishPart = async (): Promise<Part> => {
      const part = await partWriter.finish();
      const drop = (): Promise<void> => {
        giveStorageBack();
        return part.drop();
      };
      return { ...part, drop };
    };
    const abandonPart = (): Promise<void> => {
      giveStorageBack();
      return partWriter.abandon();
    };
    return { write: this.#admittingWrite(partWriter), finish: finishPart, abandon: abandonPart };
  }

  #admittingWrite(writer: Pick<PartWriter, 'write'>): PartWriter['write'] {
    let bytesSinceAdmission = 0;
    return (bodyChunk) => {
      bytesSinceAdmission += bodyChunk.length;
      if (bytesSinceAdmission >= bytesPerAdmission) {
        this.#bodyAdmission.goOn();
        bytesSinceAdmission = 0;
      }
      return writer.write(bodyChunk);
    };
  }

  refer({ scope, sha256, size }: StoredBody, { type, key }: Pick<BodyRow, 'type' | 'key'>): string {
    if (scope !== this.#blobScope) throw new ServiceError('REL_XORG', 'a body of another tenant cannot be referenced: copy it');
    this.#referredBlobs.add(this.#largeBodyParts.blobs.address({ scope, sha256 }));
    return `body:1:${sha256}:${size}:${bodyReferenceMac(this.#largeBodyParts.key, sha256, size, { type, key, path: this.#bodyPath }).toString('hex')}`;
  }

  bodyOf(cell: string, row: BodyRow): StoredBody {
    const body = bodyNamed(this.#largeBodyParts.key, cell, row);
    if (body === null)
      throw new ServiceError('REL_UNPROCESSABLE', 'the row’s body reference is invalid: it was made for another row');
    return body;
  }

  async open(body: StoredBody): Promise<BlobReader> {
    const { blobs } = this.#largeBodyParts;
    const blobAddress = blobs.address(body);
    blobs.hold(blobAddress);
    this.#heldBlobs.push([blobAddress, null]);
    const bodyReader = await blobs.open(body);
    if (bodyReader === undefined || bodyReader.size !== body.size)
      throw new ServiceError('REL_STORAGE', 'the body of the row is gone');
    return bodyReader;
  }

  /** The invocation is over. `wrote`: rows name by now what they are to name; else nothing that it stored is named. */
  end(wrote: boolean): Promise<unknown> | null {
    const { blobs } = this.#largeBodyParts;
    if (wrote) for (const address of this.#referredBlobs) blobs.name(address);
    const blobRemovals: Promise<void>[] = [];
    for (const [address, giveBack] of this.#heldBlobs.splice(0)) {
      if (!wrote) giveBack?.();
      const blobRemoval = blobs.release(address);
      if (blobRemoval !== null) blobRemovals.push(blobRemoval);
    }
    return blobRemovals.length === 0 ? null : Promise.all(blobRemovals);
  }

  get #blobScope(): string {
    return tenantOf(this.#bodyPath) ?? '';
  }
}

/** The body that a cell names in its row; null where it names none, or was not made for the row. */
export function bodyNamed(secret: Uint8Array, cell: string, row: BodyRow): StoredBody | null {
  const referenceMatch = bodyReferencePattern.exec(cell);
  if (referenceMatch === null) return null;
  const [, sha256, size, referenceMac] = referenceMatch as unknown as [string, string, string, string];
  if (!timingSafeEqual(Buffer.from(referenceMac, 'hex'), bodyReferenceMac(secret, sha256, Number(size), row))) return null;
  return { scope: tenantOf(row.path) ?? '', sha256, size: Number(size) };
}

function bodyReferenceMac(secret: Uint8Array, sha256: string, size: number, { type, key, path }: BodyRow): Buffer {
  const referencedBody = JSON.stringify(['body', type, key, path, sha256, size]);
  return createHmac('sha256', secret).update(referencedBody).digest();
}
