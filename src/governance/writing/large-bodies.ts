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

const reference = /^body:1:([0-9a-f]{64}):(\d{1,15}):([0-9a-f]{64})$/;

/** Digest of the body that a cell refers to, in any row; null where it refers to none. */
export const referredTo = (cell: string): string | null => reference.exec(cell)?.[1] ?? null;

/** Lets in bytes of a body. Throws REL_STORAGE_CAP. */
export interface BodyAdmission {
  /** Before the body, of so many bytes; returns what gives them back. `madeOf`: they were let in before. */
  begin(type: string, size: number, madeOf?: 'parts'): () => void;
  /** While it comes: others store too. */
  goOn(): void;
}

/** Bytes after which it is asked whether there still is room. */
const admittedBytes = 1 << 20;

export class LargeBodies implements BodyDesk {
  readonly #parts: LargeBodiesDependencies;
  readonly #path: string | null;
  readonly #admission: BodyAdmission;
  /** By address, what gives back the bytes that were let in for it; null: none were. */
  readonly #held: (readonly [address: string, giveBack: (() => void) | null])[] = [];
  readonly #referred = new Set<string>();

  constructor(parts: LargeBodiesDependencies, path: string | null, admission: BodyAdmission) {
    this.#parts = parts;
    this.#path = path;
    this.#admission = admission;
  }

  async begin(type: string, size: number, madeOf?: 'parts'): Promise<BodyWriter> {
    const giveBack = this.#admission.begin(type, size, madeOf);
    const { blobs } = this.#parts;
    const writer = await blobs.begin(this.#scope);
    const finish = async (): ReturnType<BodyWriter['finish']> => {
      const body = await writer.finish();
      this.#held.push([blobs.address(body), giveBack]);
      return body;
    };
    const abandon = (): Promise<void> => {
      giveBack();
      return writer.abandon();
    };
    return { write: madeOf === undefined ? this.#admitting(writer) : writer.write, finish, abandon };
  }

  async part(type: string, size: number): Promise<PartWriter> {
    const giveBack = this.#admission.begin(type, size);
    const writer = await this.#parts.blobs.part();
    const finish = async (): Promise<Part> => {
      const part = await writer.finish();
      const drop = (): Promise<void> => {
        giveBack();
        return part.drop();
      };
      return { ...part, drop };
    };
    const abandon = (): Promise<void> => {
      giveBack();
      return writer.abandon();
    };
    return { write: this.#admitting(writer), finish, abandon };
  }

  #admitting(writer: Pick<PartWriter, 'write'>): PartWriter['write'] {
    let bytes = 0;
    return (piece) => {
      bytes += piece.length;
      if (bytes >= admittedBytes) {
        this.#admission.goOn();
        bytes = 0;
      }
      return writer.write(piece);
    };
  }

  refer({ scope, sha256, size }: StoredBody, { type, key }: Pick<BodyRow, 'type' | 'key'>): string {
    if (scope !== this.#scope) throw new ServiceError('REL_XORG', 'a body of another tenant cannot be referenced: copy it');
    this.#referred.add(this.#parts.blobs.address({ scope, sha256 }));
    return `body:1:${sha256}:${size}:${macOf(this.#parts.key, sha256, size, { type, key, path: this.#path }).toString('hex')}`;
  }

  bodyOf(cell: string, row: BodyRow): StoredBody {
    const body = bodyNamed(this.#parts.key, cell, row);
    if (body === null)
      throw new ServiceError('REL_UNPROCESSABLE', 'the row’s body reference is invalid: it was made for another row');
    return body;
  }

  async open(body: StoredBody): Promise<BlobReader> {
    const { blobs } = this.#parts;
    const address = blobs.address(body);
    blobs.hold(address);
    this.#held.push([address, null]);
    const reader = await blobs.open(body);
    if (reader === undefined || reader.size !== body.size) throw new ServiceError('REL_STORAGE', 'the body of the row is gone');
    return reader;
  }

  /** The invocation is over. `wrote`: rows name by now what they are to name; else nothing that it stored is named. */
  end(wrote: boolean): Promise<unknown> | null {
    const { blobs } = this.#parts;
    if (wrote) for (const address of this.#referred) blobs.name(address);
    const removals: Promise<void>[] = [];
    for (const [address, giveBack] of this.#held.splice(0)) {
      if (!wrote) giveBack?.();
      const removal = blobs.release(address);
      if (removal !== null) removals.push(removal);
    }
    return removals.length === 0 ? null : Promise.all(removals);
  }

  get #scope(): string {
    return tenantOf(this.#path) ?? '';
  }
}

/** The body that a cell names in its row; null where it names none, or was not made for the row. */
export function bodyNamed(secret: Uint8Array, cell: string, row: BodyRow): StoredBody | null {
  const match = reference.exec(cell);
  if (match === null) return null;
  const [, sha256, size, mac] = match as unknown as [string, string, string, string];
  if (!timingSafeEqual(Buffer.from(mac, 'hex'), macOf(secret, sha256, Number(size), row))) return null;
  return { scope: tenantOf(row.path) ?? '', sha256, size: Number(size) };
}

function macOf(secret: Uint8Array, sha256: string, size: number, { type, key, path }: BodyRow): Buffer {
  const said = JSON.stringify(['body', type, key, path, sha256, size]);
  return createHmac('sha256', secret).update(said).digest();
}
