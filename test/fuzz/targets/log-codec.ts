/**
 * Everything that reads bytes of the log, on any bytes. The first byte chooses the reader; checksums and seals are made
 * to fit, so that what lies behind them is reached. What must hold: REL_STORAGE or a value, and a value encodes to bytes
 * that decode to it again.
 */
import * as crypto from 'node:crypto';
import { assert, ServiceError } from '../../../src/errors.ts';
import { decodeBody, encodeBody } from '../../../src/log/entries/body-codec.ts';
import { ByteReader, ByteWriter } from '../../../src/log/bytes/byte-stream.ts';
import { noteSigner, openCheckpoint, signCheckpoint } from '../../../src/log/tree/checkpoint-note.ts';
import { decodeBatch, encodeBatch } from '../../../src/log/entries/column-codec.ts';
import { decodeEntry, decodeLeaf, EntrySealer, noPreviousHash, openPayload } from '../../../src/log/entries/entry-codec.ts';
import type { EntryBody, EntryDraft } from '../../../src/log/entries/entry.ts';
import type { Keyring } from '../../../src/log/keys/keys.ts';
import {
  decodeFileHeader,
  decodeFrameHeader,
  encodeFileHeader,
  encodeFrame,
  FRAME_HEADER_BYTES,
  frameEntries,
  frameIsWhole,
} from '../../../src/log/files/log-file.ts';
import { formatManifest, type Manifest, parseManifest } from '../../../src/log/files/manifest.ts';
import { MemorySubjectKeys } from '../../log/memory-subject-keys.ts';
import { partsDraft } from '../../log/parts.ts';
import { subjectDraft } from '../../log/subjects.ts';
import { accessDraft, context, rowsDraft, SeededRandom } from '../../log/world.ts';

export const name = 'log-codec';

const subjects = new MemorySubjectKeys();
const dataKey = crypto.createSecretKey(new Uint8Array(32).fill(1));
const signer = noteSigner(new Uint8Array(32).fill(2));
const origin = 'fuzz/log';
const keyring: Keyring = {
  activeDataKey: 1,
  dataKeyIds: [1],
  open: (id) => {
    if (id !== 1) throw new ServiceError('REL_STORAGE', 'no such key');
    return dataKey;
  },
  signer,
  publicKeys: [signer.publicKey],
  hmacKey: new Uint8Array(32),
  subjects,
  close: () => Promise.resolve(),
};
const longText = 'ab'.repeat(1500);
const drafts: readonly EntryDraft[] = [
  subjectDraft(['ada']),
  subjectDraft(['ada', 'bob', null, 'gone', 'ada']),
  rowsDraft(['a']),
  rowsDraft(['a', 'b', 'c', 'é', longText]),
  partsDraft(rowsDraft(['a']), subjectDraft(['ada', null, 'gone']), rowsDraft(['b', 'c'])),
  accessDraft('ada', 'bob'),
  vectorsDraft(),
  vectorsDraft(['ada', 'gone', 'ada']),
  ...controls().map((body) => ({ context, body })),
];
const rowsRows = 5;

const readers: readonly ((bytes: Uint8Array) => void)[] = [
  readBody,
  readLeaf,
  readFrame,
  readPayload,
  readManifest,
  readNote,
  readBatch,
  readFile,
];

export function seeds(): Uint8Array[] {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const encoded = drafts.map((draft, leaf) => sealer.encode(draft, { leaf, position: leaf, time: BigInt(leaf) }, noPreviousHash));
  const bodies = encoded.map(({ payload }) => openPayload(payload, keyring));
  void subjects.destroy(subjects.idsOf('acme', 'gone'), 'r-1');
  const frame = encodeFrame({ file: 0, offset: 64, durableThrough: 0 }, encoded, 16);
  const batch = new ByteWriter();
  const rows = rowsDraft(['a', 'b', 'c', 'd', 'e']).body;
  if (rows.kind === 'rows') encodeBatch(rows.cells, batch);
  const note = signCheckpoint(origin, { size: 7, root: new Uint8Array(32) }, signer);
  const header = encodeFileHeader({ file: 3, firstLeaf: 4, firstPosition: 5, logId: '0'.repeat(32) });
  return [
    ...bodies.map((body) => Buffer.concat([Buffer.of(0), body])),
    ...encoded.map(({ leaf }) => Buffer.concat([Buffer.of(1), leaf])),
    Buffer.concat([Buffer.of(2), frame]),
    ...bodies.map((body) => Buffer.concat([Buffer.of(3, 0, 0, 0, 0, 0), body])),
    ...encoded.map(({ payload }) => Buffer.concat([Buffer.of(3, 1, 0, 12, 0, 0), payload.subarray(24, -16)])),
    Buffer.concat([Buffer.of(4), Buffer.from(formatManifest(manifest), 'latin1')]),
    Buffer.concat([Buffer.of(5), Buffer.from(note)]),
    Buffer.concat([Buffer.of(6), batch.take()]),
    Buffer.concat([Buffer.of(7), header]),
  ].map((seed) => Uint8Array.from(seed));
}

export function run(bytes: Uint8Array): void {
  if (bytes.length === 0) return;
  readers[bytes[0]! % readers.length]!(bytes.subarray(1));
}

function readBody(bytes: Uint8Array): void {
  const once = reencoded(bytes);
  const twice = reencoded(once);
  assert(Buffer.from(once).equals(twice), 'a decoded body encodes to bytes that decode to it');
}

function reencoded(bytes: Uint8Array): Uint8Array {
  const { body, parts } = decodeBody(bytes, subjects);
  const target = new ByteWriter();
  encodeBody(
    body,
    parts.map(({ secrets }) => secrets),
    target,
  );
  return target.take();
}

function readLeaf(bytes: Uint8Array): void {
  const facts = decodeLeaf(bytes);
  decodeEntry(facts, sealed(bytes, 0, bytes.length), keyring, { redacted: true, rows: true });
}

/** Whole or not by its checksum, the entries inside must hold together or be refused. */
function readFrame(bytes: Uint8Array): void {
  const header = decodeFrameHeader(bytes, 0, 64);
  if (!header || FRAME_HEADER_BYTES + header.size > bytes.length) return;
  const frame = bytes.subarray(0, FRAME_HEADER_BYTES + header.size);
  frameIsWhole(frame);
  for (const { leaf, payload, redacted } of frameEntries(frame, header)) {
    decodeEntry(decodeLeaf(leaf), payload, keyring, { redacted, rows: true });
  }
}

/** flags u8, size u32, then what is sealed: a compressed body, as far as the flags say. */
function readPayload(bytes: Uint8Array): void {
  if (bytes.length < 5) return;
  const size = Buffer.from(bytes.subarray(1, 5)).readUInt32LE();
  decodeBody(openPayload(sealed(bytes.subarray(5), bytes[0]!, size), keyring), subjects);
}

function readManifest(bytes: Uint8Array): void {
  const text = Buffer.from(bytes).toString('latin1');
  assert(formatManifest(parseManifest(text)) === text, 'a manifest is written as it is read');
}

function readNote(bytes: Uint8Array): void {
  const head = openCheckpoint(Buffer.from(bytes).toString('utf8'), origin, keyring.publicKeys);
  assert(head.size === 7, 'only what was signed opens');
}

function readBatch(bytes: Uint8Array): void {
  const batch = decodeBatch(new ByteReader(bytes), rowsRows);
  const target = new ByteWriter();
  encodeBatch(batch, target);
  decodeBatch(new ByteReader(target.view()), rowsRows);
}

function readFile(bytes: Uint8Array): void {
  const header = decodeFileHeader(bytes);
  assert(Buffer.from(encodeFileHeader(header)).equals(bytes.subarray(0, 64)), 'a file header is written as it is read');
}

function sealed(plain: Uint8Array, flags: number, size: number): Uint8Array {
  const head = Buffer.alloc(12);
  head[0] = 1;
  head[1] = flags;
  head.writeUInt32LE(1, 4);
  head.writeUInt32LE(size, 8);
  const nonce = Buffer.alloc(12);
  const cipher = crypto.createCipheriv('aes-256-gcm', dataKey, nonce);
  cipher.setAAD(head);
  return Buffer.concat([head, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Vectors of three rows. */
function vectorsDraft(subjects?: readonly string[]): EntryDraft {
  const about = { model: 'm', digest: '00'.repeat(32), type: 'T', columns: ['a'], dims: 2, dropped: 0 };
  const rows = { positions: Float64Array.of(1, 2, 3), vectors: Float32Array.of(1, 2, 3, 4, 5, 6) };
  return { context, body: { kind: 'embedding', content: { ...about, ...rows, ...(subjects && { subjects }) } } };
}

function controls(): EntryBody[] {
  const property = { type: 'string', required: true, masked: false, indexed: true, subject: false, dims: 0 } as const;
  return [
    { kind: 'genesis', logId: '00', origin, engineVersion: '1' },
    { kind: 'seal', treeSize: 3, checkpoint: 'note' },
    { kind: 'removal', type: 'T', keys: ['a', 'b'], positions: Float64Array.of(1, 2), sources: ['s'] },
    {
      kind: 'type',
      definition: {
        name: 'T',
        properties: { a: property, __b: property },
        open: true,
        primaryKey: 'a',
        graphTriggers: [{ linkType: 'l', sourceField: 's', targetField: 't' }],
        ontologyVersion: 3,
      },
    },
    {
      kind: 'token',
      change: 'minted',
      token: {
        id: 'i',
        secretHash: 'h',
        principal: 'p',
        tenant: null,
        organization: 'o',
        roles: ['r'],
        attributes: { a: 'x', b: 1, c: true },
        purposes: ['q'],
        expiresAt: 5n,
      },
      replaces: null,
    },
    {
      kind: 'type',
      definition: {
        name: 'T',
        properties: { a: property, b: { ...property, references: 'S' } },
        open: false,
        primaryKey: null,
        graphTriggers: [],
        ontologyVersion: 4,
        guard: { protected: true, accessScope: false },
      },
    },
    {
      kind: 'type',
      own: true,
      definition: {
        name: 'T',
        properties: { a: property, b: { ...property, references: 'S' } },
        open: false,
        primaryKey: null,
        graphTriggers: [],
        ontologyVersion: 5,
        guard: { protected: true, accessScope: true },
        edge: { from: 'a', to: 'b' },
        role: 'r',
        identifier: ['a', 'b'],
        language: 'de',
      },
    },
    { kind: 'judgement', content: '{"of":["a","b"]}' },
    { kind: 'embedding', content: Uint8Array.of(1, 2, 3) },
    { kind: 'policy', change: 'installed', id: 'p', text: 'permit(principal, action, resource);', digest: '0a' },
    {
      kind: 'tenant',
      change: 'deleted',
      manner: 'purge',
      tenant: {
        id: 'acme',
        name: 'Acme',
        tier: 'gold',
        state: 'deleted',
        quota: { queryUnits: 5, inFlight: null, storageBytes: null, subscriptions: 0, requestsPerSecond: null },
        search: { fields: ['a', { b: [1, true, null] }] },
        members: [{ principal: 'ada', role: 'owner' }],
        createdAt: 5n,
        changedAt: -6n,
      },
    },
    {
      kind: 'agreement',
      change: 'activated',
      agreement: {
        id: 'g',
        assigner: 'acme',
        assignee: 'globex/eu',
        types: ['T'],
        where: 'resource.a == "x"',
        columns: ['a'],
        permission: ['query'],
        purposes: ['q'],
        validFrom: 1n,
        validTo: 9_223_372_036_854_775_807n,
        history: 'from_start',
        masking: { a: 'last4' },
        onwardSharing: false,
        aggregateMinGroup: 5,
        termsDigest: null,
        state: 'active',
        createdAt: 1n,
        activatedAt: null,
      },
    },
  ];
}

const manifest: Manifest = {
  logId: '0'.repeat(32),
  files: [
    { state: 'sealed', number: 0, firstLeaf: 0, firstPosition: 0, length: 99, leaves: 2, root: 'a'.repeat(64) },
    { state: 'open', number: 1, firstLeaf: 2, firstPosition: 9 },
  ],
};
