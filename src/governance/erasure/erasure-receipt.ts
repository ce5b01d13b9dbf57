/**
 * The receipt of an erasure: the erased rows, the checks, and a proof that the log says so, signed. Pure.
 *
 *   envelope  = { payload: base64(receipt), payloadType, signatures: [{ keyid, sig: base64 }] }      DSSE 1.0
 *   signature = Ed25519 over "DSSEv1" SP length(payloadType) SP payloadType SP length(receipt) SP receipt
 *   receipt   = RFC 8785 JSON: the statement that the completion's entry holds, and where in the log that entry is
 *
 * The statement is written before its entry has a place; the proof can only be made afterwards. Both follow from the log, so a
 * receipt that is asked for again is the same to the byte, as long as the log and the erasure key are.
 */
import { createHmac } from 'node:crypto';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import type { NoteSigner } from '../../log/tree/checkpoint-note.ts';
import { KeyedHash, sha256Hex } from '../../log/bytes/sha256.ts';
import type { LiveDigests } from '../../projections/rows/erasure/version-digests.ts';

export const receiptType = 'application/vnd.annals.erasure-receipt+json';

/** A remainder somewhere, and why it is unreadable. */
export interface Remainder {
  readonly where: string;
  readonly state: 'undecryptable' | 'absent';
}

/** Copies that still hold the rows, under keys that are destroyed. */
export function sealedCopies(backups: number): readonly Remainder[] {
  return backups === 0 ? [] : [{ where: `${backups} backups taken before`, state: 'undecryptable' }];
}

/** A place where the scan found something that is still readable. */
export interface ResidualHit {
  /** `cells`, `keys`, `log`, `lookup`, … */
  readonly where: string;
  /** Type and column of cells, name of a lookup table or view; null where the place says it all. */
  readonly what: string | null;
  readonly count: number;
}

/** Rows of one type. Digests are of which versions stand: see `rows/erasure/version-digests.ts`; earlier erasures have none. */
export interface TouchedProjection {
  readonly name: string;
  readonly versions_erased: number;
  readonly digest_before?: string;
  readonly digest_after?: string;
}

/** The statement of an intent: RFC 8785 JSON; empty of earlier erasures. */
export interface IntentStatement {
  readonly projections: readonly { readonly name: string; readonly digest_before: string; readonly digest_after: string }[];
  /**
   * Words that the scan looks for, sealed under a key of the run, which its end destroys. Absent where there are none, and of
   * earlier erasures.
   */
  readonly words?: string;
}

/** The statement of a completion. Names of the members are part of the signed text. */
export interface ErasureStatement {
  readonly version: 1;
  readonly receipt_id: string;
  /** Lower-case hex HMAC-SHA-256 of the subject in UTF-8 under the salt that the requester got. */
  readonly subject_commitment: string;
  readonly reason: string;
  readonly requested_by: string;
  readonly tenant: string | null;
  readonly purpose: string | null;
  readonly policy_digest: string;
  /** Position of the intent; from there on the rows were unreadable. */
  readonly intent_seq: number;
  readonly keys_destroyed: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly projections: readonly TouchedProjection[];
  readonly verification: {
    readonly method: string;
    readonly looked_at: Readonly<Record<string, number>>;
    readonly residual_hits: 0;
  };
  readonly residuals: readonly Remainder[];
}

/** Where the completion's entry is, and the proof of it. */
export interface CompletionProof {
  readonly position: number;
  /** RFC 3339 with nanoseconds: the time of the entry. */
  readonly issuedAt: string;
  /** C2SP tlog-proof of the entry, its leaf included. */
  readonly proof: string;
}

export interface Envelope {
  readonly payloadType: string;
  readonly payload: string;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** Digests of both sides of an intent, by type. */
export function intentText(digests: readonly LiveDigests[], sealedWords: string | null): string {
  const intentStatement: IntentStatement = {
    projections: digests.map(({ type, before, after }) => ({
      name: rowsProjectionName(type),
      digest_before: before,
      digest_after: after,
    })),
    ...(sealedWords !== null && { words: sealedWords }),
  };
  return canonicalJson(intentStatement as unknown as Json);
}

/** The sealed words that an intent holds; null: none. */
export function wordsIn(intent: string): string | null {
  return intent === '' ? null : ((JSON.parse(intent) as IntentStatement).words ?? null);
}

/** The projections that an erasure changed, with the digests that its intent states. */
export function touchedBy(
  erasedCounts: readonly { readonly type: string; readonly versions: number }[],
  intent: string,
): TouchedProjection[] {
  const { projections } = (intent === '' ? { projections: [] } : JSON.parse(intent)) as IntentStatement;
  const digestsByProjection = new Map(projections.map((standingDigest) => [standingDigest.name, standingDigest]));
  return erasedCounts.map(({ type, versions }) => ({
    ...digestsByProjection.get(rowsProjectionName(type)),
    name: rowsProjectionName(type),
    versions_erased: versions,
  }));
}

const rowsProjectionName = (type: string): string => `rows:${type}`;

export function statementText(statement: ErasureStatement): string {
  return canonicalJson(statement as unknown as Json);
}

export function receiptOf(statement: string, { position, issuedAt, proof }: CompletionProof, signer: NoteSigner): Envelope {
  const erasureStatement = JSON.parse(statement) as { readonly [name: string]: Json };
  const receiptPayload = Buffer.from(
    canonicalJson({ ...erasureStatement, complete_seq: position, issued_at: issuedAt, proof }),
    'utf8',
  );
  const receiptSignature = Buffer.from(signer.sign(preAuthenticatedText(receiptType, receiptPayload))).toString('base64');
  return {
    payloadType: receiptType,
    payload: receiptPayload.toString('base64'),
    signatures: [{ keyid: keyIdOf(signer.publicKey), sig: receiptSignature }],
  };
}

/** First half of the SHA-256 of the public key, in hex. */
export function keyIdOf(publicKey: Uint8Array): string {
  return sha256Hex(publicKey).slice(0, 32);
}

/** Lower-case hex. */
export function commitmentOf(salt: Uint8Array, subject: string): string {
  return createHmac('sha256', salt).update(subject, 'utf8').digest('hex');
}

/**
 * Salt of a subject's commitment: the same for each of its erasures, and impossible to compute without the store's own key. So a
 * repeated request finds its erasure without the subject being kept anywhere.
 */
export function saltOf(hmacKey: Uint8Array, tenant: string | null, subject: string): Uint8Array {
  const saltHmac = createHmac('sha256', hmacKey).update(saltScope(tenant), 'utf8').update(subject, 'utf8');
  return new Uint8Array(saltHmac.digest());
}

/** Whether a text is the subject of a commitment: the two above, without what is the same of every text. */
export function commitmentTest(hmacKey: Uint8Array, tenant: string | null, commitment: string): (text: string) => boolean {
  const saltHash = new KeyedHash(hmacKey);
  const commitmentHash = new KeyedHash(hmacKey);
  const commitmentScope = saltScope(tenant);
  const wantedCommitment = Buffer.from(commitment, 'hex');
  return (text) => {
    commitmentHash.rekey(saltHash.digest(commitmentScope + text));
    return wantedCommitment.equals(commitmentHash.digest(text));
  };
}

function saltScope(tenant: string | null): string {
  return `annals erasure salt\0${tenant === null ? '' : `/${tenant}`}\0`;
}

/** DSSE's pre-authentication encoding. */
function preAuthenticatedText(type: string, payload: Uint8Array): Uint8Array {
  const dsseHead = `DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `;
  return Buffer.concat([Buffer.from(dsseHead, 'utf8'), payload]);
}
