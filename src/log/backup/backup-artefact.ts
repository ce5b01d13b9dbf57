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

const BACKUP_SIGNED_AS = 'annals backup 1\n';

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
export function openArtefact(artefactBytes: Uint8Array, publicKeys: readonly Uint8Array[]): Artefact {
  const { signature, ...unsignedFields } = readArtefactJson(artefactBytes);
  const artefactSignature = typeof signature === 'string' ? Buffer.from(signature, 'base64') : Buffer.alloc(0);
  const signedMessage = attemptRead(() => signedBytes(unsignedFields));
  if (!publicKeys.some((signingKey) => verifySignature(signingKey, signedMessage, artefactSignature))) {
    throw refusal('is not signed by a key of this log, or was edited since');
  }
  const artefact = readArtefactFields(unsignedFields);
  const backupHead = attemptRead(() => openCheckpoint(artefact.head, artefact.origin, publicKeys));
  if (backupHead.size !== artefact.tree_size || hexOf(backupHead.root) !== artefact.root) {
    throw refusal('has a signed head of another tree');
  }
  if ((artefact.digest_tree_size ?? 0) > artefact.tree_size) throw refusal('has digests of more leaves than it holds');
  return artefact;
}

/** Entries at which the projections were digested; null where they were not. */
export function digestedAt({ projections, digest_tree_size: digestedSize, tree_size: artefactSize }: Artefact): number | null {
  return projections && (digestedSize ?? artefactSize);
}

export function bytesOf({ files, blobs }: Artefact): number {
  return [...files, ...blobs].reduce((artefactBytes, { length }) => artefactBytes + length, 0);
}

function signedBytes(artefact: object): Uint8Array {
  return Buffer.from(`${BACKUP_SIGNED_AS}${canonicalJson(artefact as Json)}`);
}

/** Turns an error of any reader into a refusal of the backup. */
function attemptRead<T>(readArtefactPart: () => T): T {
  try {
    return readArtefactPart();
  } catch (cause) {
    throw refusal(`does not read: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

export function refusal(backupFault: string, cause?: unknown): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `the backup ${backupFault}`, { cause });
}

type ArtefactFields = Readonly<Record<string, unknown>>;

/** Checks the version first: a later one may give its members another meaning, and sign them differently. */
function readArtefactJson(artefactBytes: Uint8Array): ArtefactFields {
  let artefactDocument: unknown;
  try {
    artefactDocument = JSON.parse(Buffer.from(artefactBytes).toString('utf8'));
  } catch (cause) {
    throw refusal('is no JSON document', cause);
  }
  if (typeof artefactDocument !== 'object' || artefactDocument === null || Array.isArray(artefactDocument))
    throw refusal('is without members');
  const { schema_version: artefactVersion } = artefactDocument as ArtefactFields;
  if (typeof artefactVersion !== 'number') throw refusal('is without a schema_version');
  if (artefactVersion !== ARTEFACT_VERSION) {
    throw refusal(`is of schema_version ${artefactVersion}; this version reads ${ARTEFACT_VERSION}`);
  }
  return artefactDocument as ArtefactFields;
}

function readArtefactFields(artefactFields: ArtefactFields): Artefact {
  const artefactText = (name: string): string => {
    const fieldText = artefactFields[name];
    if (typeof fieldText !== 'string') throw refusal(`is without ${name}`);
    return fieldText;
  };
  const artefactCount = (name: string): number => readCount(artefactFields[name], name);
  const files = readFileList(artefactFields['files'], /^log\/(\d{8}(\.[1-9]\d{0,8})?\.log|manifest|checkpoint)$/);
  const fileNames = new Set(files.map(({ name }) => name));
  if (!fileNames.has('log/manifest') || !fileNames.has('log/checkpoint')) throw refusal('is without a manifest and a head');
  return {
    schema_version: ARTEFACT_VERSION,
    id: artefactText('id'),
    created_at: artefactText('created_at'),
    engine_version: artefactText('engine_version'),
    log_id: artefactText('log_id'),
    origin: artefactText('origin'),
    tree_size: artefactCount('tree_size'),
    root: artefactText('root'),
    head: artefactText('head'),
    files,
    blobs: readFileList(artefactFields['blobs'], /^blobs\/([0-9a-f]{2})\/\1[0-9a-f]{62}$/),
    key_ids: readArtefactList(artefactFields['key_ids'], 'key_ids').map((id) => readCount(id, 'key_ids')),
    erased_keys: artefactCount('erased_keys'),
    projections: readProjectionDigests(artefactFields['projections']),
    ...(artefactFields['digest_tree_size'] !== undefined && { digest_tree_size: artefactCount('digest_tree_size') }),
  };
}

/** Only names of the layout: nothing is ever read or written anywhere else. */
function readFileList(fileList: unknown, fileNamePattern: RegExp): CopiedFile[] {
  const seenFileNames = new Set<string>();
  return readArtefactList(fileList, 'files').map((listedFile) => {
    const { name, length, sha256 } = (listedFile ?? {}) as ArtefactFields;
    if (typeof name !== 'string' || !fileNamePattern.test(name) || seenFileNames.has(name))
      throw refusal('lists a file with an invalid name');
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) throw refusal('lists a file without a digest');
    seenFileNames.add(name);
    return { name, length: readCount(length, name), sha256 };
  });
}

function readProjectionDigests(digestField: unknown): Readonly<Record<string, string>> | null {
  if (digestField === null) return null;
  if (typeof digestField !== 'object') throw refusal('is without projections');
  const digests = Object.entries(digestField as ArtefactFields);
  if (!digests.every(([, digest]) => typeof digest === 'string')) throw refusal('has a malformed digest');
  return Object.fromEntries(digests) as Record<string, string>;
}

function readArtefactList(listField: unknown, listName: string): readonly unknown[] {
  if (!Array.isArray(listField)) throw refusal(`is without ${listName}`);
  return listField;
}

function readCount(countField: unknown, countName: string): number {
  if (!Number.isSafeInteger(countField) || (countField as number) < 0) throw refusal(`has a malformed ${countName}`);
  return countField as number;
}
