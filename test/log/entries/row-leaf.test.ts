import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeBody, encodeBody } from '../../../src/log/entries/body-codec.ts';
import { type RowSecrets, saltsOfRows } from '../../../src/log/entries/rows-codec.ts';
import { ByteWriter } from '../../../src/log/bytes/byte-stream.ts';
import type { NamedColumn, Vector } from '../../../src/log/values/columns.ts';
import type { RowsBody } from '../../../src/log/entries/entry.ts';
import { decodeEntry, decodeLeaf, EntrySealer, noPreviousHash } from '../../../src/log/entries/entry-codec.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { completeNodes, inclusionProof, rootOf, verifyInclusion } from '../../../src/log/tree/merkle-tree.ts';
import { rowLeafHashes, rowsRoot, SALT_BYTES, saltsOf } from '../../../src/log/entries/row-leaf.ts';
import { rowsBody } from '../arbitrary.ts';
import { keyringOf, rowsDraft, SeededRandom, worldOn } from '../world.ts';

const salt = new Uint8Array(SALT_BYTES).fill(0xaa);

function leavesOf(body: RowsBody, path: string | null, salts: Uint8Array): Uint8Array[] {
  const hashes = rowLeafHashes(body, path, salts);
  return Array.from({ length: body.ops.length }, (_, i) => hashes.slice(i * 32, i * 32 + 32));
}

function withCells(columns: readonly NamedColumn[]): RowsBody {
  const body = rowsDraft(['k']).body as RowsBody;
  return { ...body, cells: { length: 1, columns } };
}

function hashOf(body: RowsBody): string {
  return Buffer.from(rowsRoot(body, 'acme', salt)).toString('hex');
}

test('a row is the bytes that the format draws', () => {
  const body: RowsBody = {
    ...withCells([
      { name: 'z', type: 'boolean', vector: { kind: 'bool', values: Uint8Array.of(1), nulls: null } },
      { name: 'n', type: 'integer', vector: { kind: 'i32', values: Int32Array.of(-2), nulls: null } },
      { name: 'gone', type: 'integer', vector: { kind: 'i32', values: Int32Array.of(5), nulls: Uint8Array.of(1) } },
      { name: 'never', type: 'string', vector: { kind: 'null' } },
    ]),
    type: 'T',
    ops: Uint8Array.of(2),
    closeOffsets: Uint32Array.of(0, 1),
    closes: Float64Array.of(2 ** 40 + 3),
    provenance: { source: 's', method: 'm', confidence: 0.5, derivedFrom: null },
  };
  const u32 = (n: number): Buffer => Buffer.from([n >>> 24, n >>> 16, n >>> 8, n]);
  const text = (value: string): Buffer => Buffer.concat([u32(value.length), Buffer.from(value)]);
  const row = Buffer.concat([
    Buffer.of(0),
    salt,
    Buffer.of(1, 1),
    text('acme'),
    text('T'),
    text('s'),
    text('m'),
    Buffer.from('3fe0000000000000', 'hex'),
    Buffer.of(0),
    Buffer.of(2),
    text('k'),
    Buffer.of(0, 0),
    u32(1),
    Buffer.from('0000010000000003', 'hex'),
    Buffer.from([0, 1]),
    Buffer.from('n'),
    Buffer.of(1),
    Buffer.from('fffffffffffffffe', 'hex'),
    Buffer.from([0, 1]),
    Buffer.from('z'),
    Buffer.of(3, 1),
  ]);
  expect(hashOf(body)).toBe(createHash('sha256').update(row).digest('hex'));
});

test('an integer is the same row whatever layout it rests in', () => {
  const layouts: Vector[] = [
    { kind: 'i32', values: Int32Array.of(-7), nulls: null },
    { kind: 'f64', values: Float64Array.of(-7), nulls: null },
    { kind: 'i64', values: BigInt64Array.of(-7n), nulls: null },
  ];
  const hashes = layouts.map((vector) => hashOf(withCells([{ name: 'n', type: 'integer', vector }])));
  expect(new Set(hashes).size).toBe(1);
  const wide = [-(2 ** 53), -1, 0, 2 ** 53];
  for (const value of wide) {
    const f64 = hashOf(
      withCells([{ name: 'n', type: 'integer', vector: { kind: 'f64', values: Float64Array.of(value), nulls: null } }]),
    );
    const i64 = hashOf(
      withCells([{ name: 'n', type: 'integer', vector: { kind: 'i64', values: BigInt64Array.of(BigInt(value)), nulls: null } }]),
    );
    expect(f64).toBe(i64);
  }
});

test('the order of columns and NULL cells do not change a row; its type, path, cells and salt do', () => {
  const a: NamedColumn = { name: 'a', type: 'number', vector: { kind: 'f64', values: Float64Array.of(1), nulls: null } };
  const b: NamedColumn = { name: 'b', type: 'number', vector: { kind: 'f64', values: Float64Array.of(2), nulls: null } };
  const empty: NamedColumn = { name: 'c', type: 'string', vector: { kind: 'null' } };
  expect(hashOf(withCells([b, empty, a]))).toBe(hashOf(withCells([a, b])));
  const swapped = withCells([
    { ...a, name: 'b' },
    { ...b, name: 'a' },
  ]);
  expect(hashOf(swapped)).not.toBe(hashOf(withCells([a, b])));
  expect(hashOf({ ...withCells([a]), type: 'Other' })).not.toBe(hashOf(withCells([a])));
  expect(rowsRoot(withCells([a]), null, salt)).not.toEqual(rowsRoot(withCells([a]), 'acme', salt));
  expect(rowsRoot(withCells([a]), 'acme', new Uint8Array(SALT_BYTES))).not.toEqual(rowsRoot(withCells([a]), 'acme', salt));
});

test('the rows root is the RFC 9162 tree of the row leaves, and any row is proven without its neighbours', () => {
  fc.assert(
    fc.property(rowsBody, (body) => {
      const rows = body.ops.length;
      const salts = saltsOf(new Uint8Array(32), rows);
      const leaves = leavesOf(body, 'acme', salts);
      const nodes = completeNodes(leaves);
      const root = rowsRoot(body, 'acme', salts);
      expect(root).toEqual(rootOf(rows, nodes));
      const row = rows >> 1;
      expect(verifyInclusion(leaves[row]!, row, rows, inclusionProof(row, rows, nodes), root)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test('rows longer than any scratch buffer hash like short ones', () => {
  const long = 'x'.repeat(300_000);
  const body = rowsDraft(['a', long, 'b']).body as RowsBody;
  const salts = saltsOf(new Uint8Array(32), 3);
  const before = leavesOf(body, null, salts);
  expect(leavesOf(body, null, salts)).toEqual(before);
  const alone = rowsDraft(['b']).body as RowsBody;
  expect(before[2]).not.toEqual(leavesOf(alone, null, salts.slice(32))[0]);
});

test('an entry of which a row was dropped still verifies, and no longer holds the row', async () => {
  const keyring = await keyringOf(worldOn(new MemoryDisk()));
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const draft = rowsDraft(['keep-1', 'forget-me', 'keep-2']);
  const body = draft.body as RowsBody;
  const encoded = sealer.encode(draft, { leaf: 0, position: 0, time: 1n }, noPreviousHash);
  const facts = decodeLeaf(encoded.leaf);

  // What dropping row 1 leaves: its keys and cells empty, the salts of the others, its leaf hash.
  const target = new ByteWriter();
  const salts = saltsOf(new Uint8Array(32).fill(9), 3);
  const hashes = leavesOf(body, draft.context.path, salts);
  const root = rowsRoot(body, draft.context.path, salts);
  const survivors = rowsDraft(['keep-1', '', 'keep-2']).body as RowsBody;
  const secrets: RowSecrets = {
    salts: 'explicit',
    bytes: Buffer.concat([salts.subarray(0, 16), salts.subarray(32, 48)]),
    dropped: new Map([[1, hashes[1]!]]),
  };
  encodeBody(survivors, [secrets], target);
  const decoded = decodeBody(target.take()).parts[0]!;
  expect(decoded.body.dropped).toEqual([1]);
  const dropped = decoded.secrets.salts === 'explicit' ? decoded.secrets.dropped : undefined;
  const again = rowsRoot(decoded.body, draft.context.path, saltsOfRows(decoded.secrets, 3), dropped);
  expect(again).toEqual(root);
  expect(Buffer.from(target.take()).toString('latin1')).not.toContain('forget-me');

  // A whole payload passes both checks; one that claims to be redacted must give the same root.
  expect(() => decodeEntry(facts, encoded.payload, keyring, { redacted: true, rows: false })).not.toThrow();
  const lied = { ...facts, rowsRoot: root };
  expect(() => decodeEntry(lied, encoded.payload, keyring, { redacted: true, rows: false })).toThrow(/rows do not give the root/);
});
