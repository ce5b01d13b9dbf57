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

const ED25519_KEY_TYPE = 0x01;
const HEAD_NOTE_BYTES_MAX = 65_536;
/** As JSON Web Keys: OpenSSL takes a millisecond to find out what a key in DER is. */
const ed25519Jwk = { kty: 'OKP', crv: 'Ed25519' };

export interface NoteSigner {
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/** Ed25519 (RFC 8032) from its 32-byte seed. */
export function noteSigner(seed: Uint8Array): NoteSigner {
  // The public half follows from the seed: what a key says of it is not read.
  const signingKey = crypto.createPrivateKey({ key: { ...ed25519Jwk, d: base64url(seed), x: '' }, format: 'jwk' });
  return {
    publicKey: new Uint8Array(Buffer.from(signingKey.export({ format: 'jwk' }).x!, 'base64url')),
    sign: (message) => crypto.sign(null, message, signingKey),
  };
}

export function keyHash(keyName: string, publicKey: Uint8Array): Uint8Array {
  return sha256(Buffer.from(`${keyName}\n`), Uint8Array.of(ED25519_KEY_TYPE), publicKey).subarray(0, 4);
}

/** A key as C2SP signed notes write it for verifiers: `<name>+<hex key hash>+<base64 of 0x01 | public key>`. */
export function verifierKey(keyName: string, publicKey: Uint8Array): string {
  const keyHashHex = Buffer.from(keyHash(keyName, publicKey)).toString('hex');
  return `${keyName}+${keyHashHex}+${Buffer.concat([Uint8Array.of(ED25519_KEY_TYPE), publicKey]).toString('base64')}`;
}

/** Signed by the log itself: its key is named like its origin. */
export function signCheckpoint(origin: string, head: TreeHead, signer: NoteSigner): string {
  const checkpointText = `${origin}\n${head.size}\n${Buffer.from(head.root).toString('base64')}\n`;
  const signature = signer.sign(Buffer.from(checkpointText));
  const signatureLine = Buffer.concat([keyHash(origin, signer.publicKey), signature]).toString('base64');
  return `${checkpointText}\n— ${origin} ${signatureLine}\n`;
}

/** The head that a note commits to. Throws REL_STORAGE unless one of `publicKeys` has signed it, and rightly. */
export function openCheckpoint(note: string, origin: string, publicKeys: readonly Uint8Array[]): TreeHead {
  if (note.length > HEAD_NOTE_BYTES_MAX) throw malformedError('a checkpoint of more than 64 KiB');
  const signaturesOffset = note.indexOf('\n\n');
  if (signaturesOffset < 0 || !note.endsWith('\n')) throw malformedError('a checkpoint without signatures');
  const checkpointText = note.slice(0, signaturesOffset + 1);
  const knownKeys = publicKeys.map((publicKey) => ({ publicKey, hash: keyHash(origin, publicKey) }));
  let verifiedCount = 0;
  for (const signatureLine of note.slice(signaturesOffset + 2, -1).split('\n')) {
    const signatureMatch = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(signatureLine);
    if (!signatureMatch) throw malformedError('a checkpoint with a line that is no signature');
    const signatureBytes = Buffer.from(signatureMatch[2]!, 'base64');
    if (signatureBytes.toString('base64') !== signatureMatch[2])
      throw malformedError('a checkpoint with a signature that is not canonical base64');
    const signerKey = signatureMatch[1] === origin && knownKeys.find(({ hash }) => signatureBytes.subarray(0, 4).equals(hash));
    if (!signerKey) continue;
    if (!verifySignature(signerKey.publicKey, Buffer.from(checkpointText), signatureBytes.subarray(4)))
      throw malformedError('a checkpoint with a signature that does not verify');
    verifiedCount++;
  }
  if (verifiedCount === 0) throw malformedError('a checkpoint that no key of this log has signed');
  return parseTreeHead(checkpointText, origin);
}

export function verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return signature.length === 64 && crypto.verify(null, message, verifierKeyOf(publicKey), signature);
}

const base64url = (keyBytes: Uint8Array): string => Buffer.from(keyBytes).toString('base64url');

const verifierKeys = new Map<string, crypto.KeyObject>();

/** A log has few keys and many seals; importing a key costs as much as a verification. */
function verifierKeyOf(publicKey: Uint8Array): crypto.KeyObject {
  const verifierName = Buffer.from(publicKey).toString('latin1');
  let verifierKeyObject = verifierKeys.get(verifierName);
  if (!verifierKeyObject) {
    verifierKeyObject = crypto.createPublicKey({ key: { ...ed25519Jwk, x: base64url(publicKey) }, format: 'jwk' });
    if (verifierKeys.size >= 64) verifierKeys.clear();
    verifierKeys.set(verifierName, verifierKeyObject);
  }
  return verifierKeyObject;
}

function parseTreeHead(checkpointText: string, origin: string): TreeHead {
  const checkpointLines = checkpointText.split('\n');
  const [originLine, sizeLine, root64] = checkpointLines;
  if (checkpointLines.length !== 4 || originLine !== origin) throw malformedError('a checkpoint of another log');
  if (!/^(0|[1-9]\d{0,15})$/.test(sizeLine!)) throw malformedError('a checkpoint with a malformed size');
  const rootHash = Buffer.from(root64!, 'base64');
  if (rootHash.length !== 32 || rootHash.toString('base64') !== root64)
    throw malformedError('a checkpoint with a malformed root');
  return { size: Number(sizeLine), root: new Uint8Array(rootHash) };
}
