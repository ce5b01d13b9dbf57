/**
 * A backup as one JSON document, `<backups>/<id>/backup.json`, beside the bytes that it lists. It is written last, whole or
 * not at all, so a directory without it is no backup.
 *
 * - The log's key signs all of it but the signature, as RFC 8785 JSON behind a line that no signed note begins with: no name,
 *   length or digest can be edited without the key, and the head in it is a C2SP note that stands by itself.
 * - It names keys by number and holds none.
 */
import { ServiceError } from '../../errors.ts';
import { canonicalJson, type Json } from '../values/canonical-json.ts';
import { type NoteSigner, openCheckpoint, verifySignature } from '../tree/checkpoint-note.ts';
import { hexOf } from '../bytes/sha256.ts';

export const ARTEFACT_VERSION = 1;
export const ARTEFACT_NAME = 'backup.json';

const SIGNED_AS = 'annals backup 1\n';

/** A copied file: its path below the backup's directory, and below the data directory. */
export interface CopiedFile {
  readonly name: string;
  readonly length: number;
  /** Hex. */
  readonly sha256: string;
}

export interface Artefact {
  readonly schema_version: typeof ARTEFACT_VERSION;
  readonly id: string;
  readonly created_at: string;
  readonly engine_version: string;
  readonly log_id: string;
  readonly origin: string;
  readonly tree_size: number;
  /** Hex. */
  readonly root: string;
  /** Signed over `tree_size` and `root`: a C2SP note. */
  readonly head: string;
  readonly files: readonly CopiedFile[];
  readonly blobs: readonly CopiedFile[];
  /** Data keys that open it, by number. */
  readonly key_ids: readonly number[];
  /** How many keys of subjects had been destroyed by then. */
  readonly erased_keys: number;
  /** Digests of the projections at `digest_tree_size`; null until they are made, or where making them would hold others up. */
  readonly projections: Readonly<Record<string, string>> | null;
  /** Entries that the projections had applied: of `tree_size`, all of them where it is absent. */
  readonly digest_tree_size?: number;
}

/** The document, signed. */
export function formatArtefact(artefact: Artefact, signer: NoteSigner): Uint8Array {
  const signature = Buffer.from(signer.sign(signedBytes(artefact))).toString('base64');
  return Buffer.from(`${JSON.stringify({ ...artefact, signature }, null, 1)}\n`);
}

/**
 * Throws REL_UNPROCESSABLE for a document that is not whole, not of a version that is known here, or that none of `publicKeys` has
 * signed just so.
 */
export function openArtefact(bytes: Uint8Array, publicKeys: readonly Uint8Array[]): Artefact {
  const { signature, ...rest } = readDocument(bytes);
  const signed = typeof signature === 'string' ? Buffer.from(signature, 'base64') : Buffer.alloc(0);
  const message = attempt(() => signedBytes(rest));
  if (!publicKeys.some((key) => verifySignature(key, message, signed))) {
    throw refusal('is not signed by a key of this log, or was edited since');
  }
  const artefact = readArtefact(rest);
  const head = attempt(() => openCheckpoint(artefact.head, artefact.origin, publicKeys));
  if (head.size !== artefact.tree_size || hexOf(head.root) !== artefact.root) {
    throw refusal('has a signed head of another tree');
  }
  if ((artefact.digest_tree_size ?? 0) > artefact.tree_size) throw refusal('has digests of more leaves than it holds');
  return artefact;
}

/** Entries at which the projections were digested; null where they were not. */
export function digestedAt({ projections, digest_tree_size: size, tree_size: all }: Artefact): number | null {
  return projections && (size ?? all);
}

export function bytesOf({ files, blobs }: Artefact): number {
  return [...files, ...blobs].reduce((sum, { length }) => sum + length, 0);
}

function signedBytes(artefact: object): Uint8Array {
  return Buffer.from(`${SIGNED_AS}${canonicalJson(artefact as Json)}`);
}

/** Turns an error of any reader into a refusal of the backup. */
function attempt<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw refusal(`does not read: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

export function refusal(what: string, cause?: unknown): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `the backup ${what}`, { cause });
}

type Fields = Readonly<Record<string, unknown>>;

/** Checks the version first: a later one may give its members another meaning, and sign them differently. */
function readDocument(bytes: Uint8Array): Fields {
  let document: unknown;
  try {
    document = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw refusal('is no JSON document', cause);
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) throw refusal('is without members');
  const { schema_version: version } = document as Fields;
  if (typeof version !== 'number') throw refusal('is without a schema_version');
  if (version !== ARTEFACT_VERSION) {
    throw refusal(`is of schema_version ${version}; this version reads ${ARTEFACT_VERSION}`);
  }
  return document as Fields;
}

function readArtefact(fields: Fields): Artefact {
  const text = (name: string): string => {
    const value = fields[name];
    if (typeof value !== 'string') throw refusal(`is without ${name}`);
    return value;
  };
  const number = (name: string): number => count(fields[name], name);
  const files = readFiles(fields['files'], /^log\/(\d{8}(\.[1-9]\d{0,8})?\.log|manifest|checkpoint)$/);
  const names = new Set(files.map(({ name }) => name));
  if (!names.has('log/manifest') || !names.has('log/checkpoint')) throw refusal('is without a manifest and a head');
  return {
    schema_version: ARTEFACT_VERSION,
    id: text('id'),
    created_at: text('created_at'),
    engine_version: text('engine_version'),
    log_id: text('log_id'),
    origin: text('origin'),
    tree_size: number('tree_size'),
    root: text('root'),
    head: text('head'),
    files,
    blobs: readFiles(fields['blobs'], /^blobs\/([0-9a-f]{2})\/\1[0-9a-f]{62}$/),
    key_ids: readList(fields['key_ids'], 'key_ids').map((id) => count(id, 'key_ids')),
    erased_keys: number('erased_keys'),
    projections: readDigests(fields['projections']),
    ...(fields['digest_tree_size'] !== undefined && { digest_tree_size: number('digest_tree_size') }),
  };
}

/** Only names of the layout: nothing is ever read or written anywhere else. */
function readFiles(value: unknown, pattern: RegExp): CopiedFile[] {
  const seen = new Set<string>();
  return readList(value, 'files').map((item) => {
    const { name, length, sha256 } = (item ?? {}) as Fields;
    if (typeof name !== 'string' || !pattern.test(name) || seen.has(name)) throw refusal('lists a file with an invalid name');
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) throw refusal('lists a file without a digest');
    seen.add(name);
    return { name, length: count(length, name), sha256 };
  });
}

function readDigests(value: unknown): Readonly<Record<string, string>> | null {
  if (value === null) return null;
  if (typeof value !== 'object') throw refusal('is without projections');
  const digests = Object.entries(value as Fields);
  if (!digests.every(([, digest]) => typeof digest === 'string')) throw refusal('has a malformed digest');
  return Object.fromEntries(digests) as Record<string, string>;
}

function readList(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw refusal(`is without ${name}`);
  return value;
}

function count(value: unknown, name: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw refusal(`has a malformed ${name}`);
  return value as number;
}
