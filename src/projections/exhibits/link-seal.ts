/**
 * The seal of a link: it makes an exhibit a chain. Pure; every room may name it.
 *
 *   seal = SHA-256( 0x02
 *                 | u16 length of the exhibit id in bytes | exhibit id, UTF-8
 *                 | u64 link number
 *                 | previous seal [32]     zeros for link 0
 *                 | SHA-256(recipe) [32]   recipe and result: RFC 8785 JSON in UTF-8
 *                 | SHA-256(result) [32] )
 *
 * Integers are big-endian. 0x02 keeps a seal apart from the leaves (0x00) and nodes (0x01) of the log's tree. Link 0
 * opens an exhibit and seals its title; links count from 1. Changing this needs another first byte and a fixture.
 */
import { createHash } from 'node:crypto';
import { assert } from '../../errors.ts';

export interface Sealed {
  readonly exhibit: string;
  readonly link: number;
  /** Lower-case hex, like the hashes. */
  readonly previousSeal: string;
  readonly recipeHash: string;
  readonly resultHash: string;
}

/** The previous seal of link 0. */
export const noSeal = '0'.repeat(64);

/** Lower-case hex. */
export function sealOf(sealed: Sealed): string {
  const id = Buffer.from(sealed.exhibit, 'utf8');
  assert(id.length > 0 && id.length <= 0xffff, 'an exhibit id has 1 to 65535 bytes');
  const head = Buffer.alloc(3 + id.length + 8);
  head.writeUInt8(0x02, 0);
  head.writeUInt16BE(id.length, 1);
  id.copy(head, 3);
  head.writeBigUInt64BE(BigInt(sealed.link), 3 + id.length);
  return createHash('sha256')
    .update(head)
    .update(bytesOf(sealed.previousSeal))
    .update(bytesOf(sealed.recipeHash))
    .update(bytesOf(sealed.resultHash))
    .digest('hex');
}

/** Hash of a recipe or result in its canonical text. */
export function textHash(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

const hashText = /^[0-9a-f]{64}$/;

function bytesOf(hash: string): Buffer {
  assert(hashText.test(hash), 'a hash is 64 lower-case hex digits');
  return Buffer.from(hash, 'hex');
}
