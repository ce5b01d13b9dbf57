/**
 * Bodies that are too large for rows, as one invocation is handed them: a row holds a reference in one of its cells, and whoever is
 * shown the cell may read the body. What must hold:
 *
 * - a reference is good in the row that it was made for and in no other, so nobody reads a body by a row of his own making;
 * - what is written belongs to the caller's tenant, and is let in as a row of the type is;
 * - a body that no row names yet is held until the invocation that means to is over.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import type { BlobName, BlobReader, Blobs, BlobWriter, Part, PartWriter } from '../log/blobs.ts';
import { tenantOf } from '../log/value.ts';

export interface BodyDesk {
  /** A body of a row of the type that is about to come, of so many bytes. */
  begin(type: string, size: number): Promise<BodyWriter>;
  /** A piece of one; it is lost with the process. */
  part(type: string, size: number): Promise<PartWriter>;
  /** What a cell of the row of this key is to hold, on the caller's own path. */
  refer(body: StoredBody, row: Pick<BodyRow, 'type' | 'key'>): string;
  /** What a cell refers to, as it was read from this row. Throws REL_UNPROCESSABLE for what was not made for it. */
  named(cell: string, row: BodyRow): StoredBody;
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

export interface LargeBodiesParts {
  readonly blobs: Blobs;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

const reference = /^body:1:([0-9a-f]{64}):(\d{1,15}):([0-9a-f]{64})$/;

/** Digest of the body that a cell refers to, whoever it was made for; null where it refers to none. */
export const referredTo = (cell: string): string | null => reference.exec(cell)?.[1] ?? null;

export class LargeBodies implements BodyDesk {
  readonly #parts: LargeBodiesParts;
  readonly #path: string | null;
  readonly #admit: (type: string, size: number) => void;
  readonly #held: string[] = [];

  constructor(parts: LargeBodiesParts, path: string | null, admit: (type: string, size: number) => void) {
    this.#parts = parts;
    this.#path = path;
    this.#admit = admit;
  }

  async begin(type: string, size: number): Promise<BodyWriter> {
    this.#admit(type, size);
    const { blobs } = this.#parts;
    const writer = await blobs.begin(this.#scope);
    const finish = async (): ReturnType<BodyWriter['finish']> => {
      const body = await writer.finish();
      this.#held.push(blobs.address(body));
      return body;
    };
    return { ...writer, finish };
  }

  part(type: string, size: number): Promise<PartWriter> {
    this.#admit(type, size);
    return this.#parts.blobs.part();
  }

  refer({ scope, sha256, size }: StoredBody, { type, key }: Pick<BodyRow, 'type' | 'key'>): string {
    if (scope !== this.#scope) throw new ServiceError('REL_XORG', 'a body of another tenant is copied, not referred to');
    return `body:1:${sha256}:${size}:${macOf(this.#parts.key, sha256, size, { type, key, path: this.#path }).toString('hex')}`;
  }

  named(cell: string, row: BodyRow): StoredBody {
    const body = bodyNamed(this.#parts.key, cell, row);
    if (body === null) throw new ServiceError('REL_UNPROCESSABLE', 'what the row has for a body was not made for it');
    return body;
  }

  async open(body: StoredBody): Promise<BlobReader> {
    const { blobs } = this.#parts;
    const address = blobs.address(body);
    blobs.hold(address);
    this.#held.push(address);
    const reader = await blobs.open(body);
    if (reader === undefined || reader.size !== body.size) throw new ServiceError('REL_STORAGE', 'the body of the row is gone');
    return reader;
  }

  /** The invocation is over: rows name by now what they are to name. */
  end(): void {
    for (const address of this.#held.splice(0)) this.#parts.blobs.release(address);
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
