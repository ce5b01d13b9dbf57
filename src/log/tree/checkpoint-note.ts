/**
 * A tree head as a C2SP signed note (c2sp.org/tlog-checkpoint, c2sp.org/signed-note):
 *
 *   <origin>\n<size>\n<base64 root>\n\n— <key name> <base64 of key hash[4] | Ed25519 signature[64]>\n
 *
 * Key hash = first four bytes of SHA-256(key name | \n | 0x01 | public key). The signature covers the text up to and
 * including the newline before the empty line. Lines of keys that we don't know are ignored; a line of a key that we
 * know and that does not verify spoils the note.
 */
import * as crypto from 'node:crypto';
import { malformedError } from '../bytes/byte-stream.ts';
import type { TreeHead } from './merkle-tree.ts';
import { sha256 } from '../bytes/sha256.ts';

const ED25519 = 0x01;
const NOTE_BYTES_MAX = 65_536;
/** As JSON Web Keys: OpenSSL takes a millisecond to find out what a key in DER is. */
const ed25519 = { kty: 'OKP', crv: 'Ed25519' };

export interface NoteSigner {
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/** Ed25519 (RFC 8032) from its 32-byte seed. */
export function noteSigner(seed: Uint8Array): NoteSigner {
  // The public half follows from the seed: what a key says of it is not read.
  const key = crypto.createPrivateKey({ key: { ...ed25519, d: base64url(seed), x: '' }, format: 'jwk' });
  return {
    publicKey: new Uint8Array(Buffer.from(key.export({ format: 'jwk' }).x!, 'base64url')),
    sign: (message) => crypto.sign(null, message, key),
  };
}

export function keyHash(name: string, publicKey: Uint8Array): Uint8Array {
  return sha256(Buffer.from(`${name}\n`), Uint8Array.of(ED25519), publicKey).subarray(0, 4);
}

/** A key as C2SP signed notes write it for verifiers: `<name>+<hex key hash>+<base64 of 0x01 | public key>`. */
export function verifierKey(name: string, publicKey: Uint8Array): string {
  const hash = Buffer.from(keyHash(name, publicKey)).toString('hex');
  return `${name}+${hash}+${Buffer.concat([Uint8Array.of(ED25519), publicKey]).toString('base64')}`;
}

/** Signed by the log itself: its key is named like its origin. */
export function signCheckpoint(origin: string, head: TreeHead, signer: NoteSigner): string {
  const text = `${origin}\n${head.size}\n${Buffer.from(head.root).toString('base64')}\n`;
  const signature = signer.sign(Buffer.from(text));
  const line = Buffer.concat([keyHash(origin, signer.publicKey), signature]).toString('base64');
  return `${text}\n— ${origin} ${line}\n`;
}

/** The head that a note commits to. Throws REL_STORAGE unless one of `publicKeys` has signed it, and rightly. */
export function openCheckpoint(note: string, origin: string, publicKeys: readonly Uint8Array[]): TreeHead {
  if (note.length > NOTE_BYTES_MAX) throw malformedError('a checkpoint of more than 64 KiB');
  const split = note.indexOf('\n\n');
  if (split < 0 || !note.endsWith('\n')) throw malformedError('a checkpoint without signatures');
  const text = note.slice(0, split + 1);
  const known = publicKeys.map((publicKey) => ({ publicKey, hash: keyHash(origin, publicKey) }));
  let verified = 0;
  for (const line of note.slice(split + 2, -1).split('\n')) {
    const match = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(line);
    if (!match) throw malformedError('a checkpoint with a line that is no signature');
    const bytes = Buffer.from(match[2]!, 'base64');
    if (bytes.toString('base64') !== match[2]) throw malformedError('a checkpoint with a signature that is not canonical base64');
    const signer = match[1] === origin && known.find(({ hash }) => bytes.subarray(0, 4).equals(hash));
    if (!signer) continue;
    if (!verifySignature(signer.publicKey, Buffer.from(text), bytes.subarray(4)))
      throw malformedError('a checkpoint with a signature that does not verify');
    verified++;
  }
  if (verified === 0) throw malformedError('a checkpoint that no key of this log has signed');
  return parseHead(text, origin);
}

export function verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return signature.length === 64 && crypto.verify(null, message, verifierOf(publicKey), signature);
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

const verifiers = new Map<string, crypto.KeyObject>();

/** A log has few keys and many seals; importing a key costs as much as a verification. */
function verifierOf(publicKey: Uint8Array): crypto.KeyObject {
  const name = Buffer.from(publicKey).toString('latin1');
  let key = verifiers.get(name);
  if (!key) {
    key = crypto.createPublicKey({ key: { ...ed25519, x: base64url(publicKey) }, format: 'jwk' });
    if (verifiers.size >= 64) verifiers.clear();
    verifiers.set(name, key);
  }
  return key;
}

function parseHead(text: string, origin: string): TreeHead {
  const lines = text.split('\n');
  const [first, size, root64] = lines;
  if (lines.length !== 4 || first !== origin) throw malformedError('a checkpoint of another log');
  if (!/^(0|[1-9]\d{0,15})$/.test(size!)) throw malformedError('a checkpoint with a malformed size');
  const root = Buffer.from(root64!, 'base64');
  if (root.length !== 32 || root.toString('base64') !== root64) throw malformedError('a checkpoint with a malformed root');
  return { size: Number(size), root: new Uint8Array(root) };
}
