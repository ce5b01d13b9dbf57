/**
 * Blobs as they were written first, each whole in memory and named by the hash of its content; they are checked still, for backups
 * hold some. Nothing reads or writes them any more.
 *
 *   +------------+----------------+------------+--------+----------+
 *   | "ABLB" u32 | data key u32   | nonce [12] | sealed | tag [16] |
 *   +------------+----------------+------------+--------+----------+
 */
import { createDecipheriv, type KeyObject } from 'node:crypto';
import { sha256Hex } from '../bytes/sha256.ts';

export const firstBlobMagic = Buffer.from('ABLB', 'latin1');
const FIRST_BLOB_HEAD_BYTES = 20;
const FIRST_BLOB_TAG_BYTES = 16;

/** Whether the file holds what its name says. */
export function isFirstBlob(firstBlobBytes: Buffer, blobAddress: string, openDataKey: (dataKey: number) => KeyObject): boolean {
  if (firstBlobBytes.length < FIRST_BLOB_HEAD_BYTES + FIRST_BLOB_TAG_BYTES) return false;
  const blobNonce = firstBlobBytes.subarray(8, FIRST_BLOB_HEAD_BYTES);
  const blobDecipher = createDecipheriv('aes-256-gcm', openDataKey(firstBlobBytes.readUInt32LE(4)), blobNonce, {
    authTagLength: FIRST_BLOB_TAG_BYTES,
  });
  blobDecipher.setAAD(Buffer.from(blobAddress, 'hex'));
  blobDecipher.setAuthTag(firstBlobBytes.subarray(-FIRST_BLOB_TAG_BYTES));
  try {
    const blobContent = Buffer.concat([
      blobDecipher.update(firstBlobBytes.subarray(FIRST_BLOB_HEAD_BYTES, -FIRST_BLOB_TAG_BYTES)),
      blobDecipher.final(),
    ]);
    return sha256Hex(blobContent) === blobAddress;
  } catch {
    return false;
  }
}
