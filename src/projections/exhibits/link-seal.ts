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
export function sealOf(sealedLink: Sealed): string {
  const exhibitId = Buffer.from(sealedLink.exhibit, 'utf8');
  assert(exhibitId.length > 0 && exhibitId.length <= 0xffff, 'an exhibit id has 1 to 65535 bytes');
  const sealHead = Buffer.alloc(3 + exhibitId.length + 8);
  sealHead.writeUInt8(0x02, 0);
  sealHead.writeUInt16BE(exhibitId.length, 1);
  exhibitId.copy(sealHead, 3);
  sealHead.writeBigUInt64BE(BigInt(sealedLink.link), 3 + exhibitId.length);
  return createHash('sha256')
    .update(sealHead)
    .update(hashBytesOf(sealedLink.previousSeal))
    .update(hashBytesOf(sealedLink.recipeHash))
    .update(hashBytesOf(sealedLink.resultHash))
    .digest('hex');
}

/** Hash of a recipe or result in its canonical text. */
export function textHash(recipeText: string): string {
  return createHash('sha256').update(recipeText, 'utf8').digest('hex');
}

const linkHashPattern = /^[0-9a-f]{64}$/;

function hashBytesOf(linkHash: string): Buffer {
  assert(linkHashPattern.test(linkHash), 'a hash is 64 lower-case hex digits');
  return Buffer.from(linkHash, 'hex');
}
