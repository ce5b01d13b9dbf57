/** How a text may hide in bytes: the encodings in which a scan looks for a canary. Source: `reliability.md`, B10. Pure. */
import { createHash } from 'node:crypto';
import xxhash from 'xxhash-wasm';

const { h64Raw } = await xxhash();

/** At least 8 bytes each: what is shorter would be found by chance. */
export const encodings: Readonly<Record<string, (canary: string) => readonly Uint8Array[]>> = {
  'UTF-8': (text) => [utf8(text)],
  'UTF-16LE': (text) => [Buffer.from(text, 'utf16le')],
  'UTF-16BE': (text) => [Buffer.from(text, 'utf16le').swap16()],
  'Latin-1': (text) => [Buffer.from(text, 'latin1')],
  'lower case': (text) => [utf8(text.toLowerCase())],
  'upper case': (text) => [utf8(text.toUpperCase())],
  NFD: (text) => [utf8(text.normalize('NFD'))],
  'JSON-escaped': (text) => [utf8(text.replaceAll(/[^\x20-\x7e]/g, (sign) => `\\u${hex4(sign)}`))],
  'URL-encoded': (text) => [utf8(encodeURIComponent(text)), utf8(encodeURIComponent(text).toLowerCase())],
  hex: (text) => [utf8(utf8(text).toString('hex'))],
  'hex, upper case': (text) => [utf8(utf8(text).toString('hex').toUpperCase())],
  'base64 at 0': (text) => [base64At(text, 0)],
  'base64 at 1': (text) => [base64At(text, 1)],
  'base64 at 2': (text) => [base64At(text, 2)],
  reversed: (text) => [utf8(Array.from(text).toReversed().join(''))],
  'SHA-256': (text) => [sha256(text)],
  'SHA-256 in hex': (text) => [utf8(sha256(text).toString('hex'))],
  'SHA-256 in base64': (text) => [utf8(sha256(text).toString('base64'))],
  xxh64: (text) => bothEnds(h64Raw(utf8(text))),
  'xxh64 in hex': (text) => [utf8(h64Raw(utf8(text)).toString(16).padStart(16, '0'))],
};

function utf8(text: string): Buffer {
  return Buffer.from(text, 'utf8');
}

function hex4(sign: string): string {
  return sign.charCodeAt(0).toString(16).padStart(4, '0');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/** What stands in base64 whatever comes before and after: whole groups of the text alone. */
function base64At(text: string, offset: number): Uint8Array {
  const bytes = utf8(text);
  const skipped = (3 - offset) % 3;
  return utf8(bytes.subarray(skipped, skipped + Math.floor((bytes.length - skipped) / 3) * 3).toString('base64'));
}

function bothEnds(value: bigint): readonly Uint8Array[] {
  const [big, little] = [Buffer.alloc(8), Buffer.alloc(8)];
  big.writeBigUInt64BE(value);
  little.writeBigUInt64LE(value);
  return [big, little];
}
