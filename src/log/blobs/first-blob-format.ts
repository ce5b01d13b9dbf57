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
const HEAD_BYTES = 20;
const TAG_BYTES = 16;

/** Whether the file holds what its name says. */
export function isFirstBlob(bytes: Buffer, name: string, open: (dataKey: number) => KeyObject): boolean {
  if (bytes.length < HEAD_BYTES + TAG_BYTES) return false;
  const nonce = bytes.subarray(8, HEAD_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', open(bytes.readUInt32LE(4)), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(name, 'hex'));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const content = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()]);
    return sha256Hex(content) === name;
  } catch {
    return false;
  }
}
