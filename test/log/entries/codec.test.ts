import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { type DecodedBody, decodeBody, encodeBody, kindNumber } from '../../../src/log/entries/body-codec.ts';
import { type RowSecrets } from '../../../src/log/entries/rows-codec.ts';
import { ByteReader, ByteWriter } from '../../../src/log/bytes/byte-stream.ts';
import { decodeBatch, encodeBatch } from '../../../src/log/entries/column-codec.ts';
import type { Dictionary } from '../../../src/log/values/columns.ts';
import { type EntryBody, rowBodiesOf, type RowsBody } from '../../../src/log/entries/entry.ts';
import {
  decodeEntry,
  decodeLeaf,
  EntrySealer,
  leafHashOf,
  noPreviousHash,
  openPayload,
} from '../../../src/log/entries/entry-codec.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { batch, batchCells, bodyCells, controlBody, partsBody, rowsBody, vectorCells } from '../arbitrary.ts';
import { context, keyringOf, rowsDraft, SeededRandom, worldOn } from '../world.ts';

const world = worldOn(new MemoryDisk());
const keyring = await keyringOf(world);
const seed: RowSecrets = { salts: 'seed', seed: new Uint8Array(32).fill(3) };

function bytesOf(body: EntryBody, secrets: readonly RowSecrets[] = rowBodiesOf(body).map(() => seed)): Uint8Array {
  const target = new ByteWriter();
  encodeBody(body, secrets, target);
  return target.take();
}

const secretsOf = ({ parts }: DecodedBody): readonly RowSecrets[] => parts.map(({ secrets }) => secrets);

function decodedOrRefused(bytes: Uint8Array): DecodedBody | ServiceError {
  try {
    return decodeBody(bytes);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

test('every batch of columns reads back cell for cell, and encodes to the same bytes again', () => {
  fc.assert(
    fc.property(batch, (rows) => {
      const target = new ByteWriter();
      encodeBatch(rows, target);
      const decoded = decodeBatch(new ByteReader(target.take()), rows.length);
      expect(batchCells(decoded)).toEqual(batchCells(rows));
      const again = new ByteWriter();
      encodeBatch(decoded, again);
      expect(again.take()).toEqual(target.take());
    }),
    { numRuns: 300 },
  );
});

test('every body reads back as it was written', () => {
  fc.assert(
    fc.property(fc.oneof(rowsBody, partsBody, controlBody), (body) => {
      const decoded = decodeBody(bytesOf(body));
      expect(bodyCells(decoded.body)).toEqual(bodyCells(body));
      expect(bytesOf(decoded.body, secretsOf(decoded))).toEqual(bytesOf(body));
    }),
    { numRuns: 500 },
  );
});

test('a dictionary column is written as the text it stands for', () => {
  const texts = ['zwei', 'eins'];
  const dictionary: Dictionary = { size: 2, text: (code) => texts[code]!, codeOf: (text) => texts.indexOf(text) };
  const vector = {
    kind: 'dict',
    values: Int32Array.of(1, 0, 0, 1, 99),
    dictionary,
    nulls: Uint8Array.of(0, 0, 1, 0, 0),
  } as const;
  const target = new ByteWriter();
  encodeBatch({ length: 4, columns: [{ name: 'n', type: 'string', vector }] }, target);
  const decoded = decodeBatch(new ByteReader(target.take()), 4).columns[0]!.vector;
  const hex = (text: string): string => Buffer.from(text).toString('hex');
  const values = [hex('eins'), hex('zwei'), '', hex('eins')];
  expect(vectorCells(decoded, 4)).toEqual({ kind: 'text', nulls: [false, false, true, false], values });
});

test('columns that start at odd addresses decode to the same cells', () => {
  fc.assert(
    fc.property(batch, fc.integer({ min: 1, max: 7 }), (rows, shift) => {
      const target = new ByteWriter();
      encodeBatch(rows, target);
      const shifted = new Uint8Array(target.length + shift);
      shifted.set(target.view(), shift);
      expect(batchCells(decodeBatch(new ByteReader(shifted.subarray(shift)), rows.length))).toEqual(batchCells(rows));
    }),
    { numRuns: 100 },
  );
});

test('every cut of a body is refused', () => {
  const whole = bytesOf(rowsDraft(['a', 'b', 'c']).body);
  for (let length = 0; length < whole.length; length++) {
    expect(() => decodeBody(whole.subarray(0, length)), `cut to ${length}`).toThrow(ServiceError);
  }
});

test.each([
  ['one part', rowsDraft(['a', 'b', 'c']).body],
  ['parts', { kind: 'parts', parts: [rowsDraft(['a']).body as RowsBody, rowsDraft(['b', 'c']).body as RowsBody] }],
] as const)('a body of %s with any byte changed is refused or says something else: one value has one encoding', (_, body) => {
  const whole = bytesOf(body);
  const before = decodeBody(whole);
  let refused = 0;
  for (let at = 0; at < whole.length; at++) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const bytes = whole.slice();
      bytes[at]! ^= flip;
      const decoded = decodedOrRefused(bytes);
      if (decoded instanceof ServiceError) refused++;
      else
        expect([secretsOf(decoded), bodyCells(decoded.body)], `byte ${at}`).not.toEqual([
          secretsOf(before),
          bodyCells(before.body),
        ]);
    }
  }
  expect(refused).toBeGreaterThan(whole.length / 2);
});

test.each([
  ['a count of columns that the bytes cannot hold', (b: Buffer) => b.writeUInt32LE(0xffffffff, 4)],
  ['a count of rows that the entry does not have', (b: Buffer) => b.writeUInt32LE(0xffffffff, 0)],
  ['a name longer than the bytes', (b: Buffer) => b.writeUInt32LE(0x7fffffff, 8)],
])('%s is refused before anything is allocated', (_, lie) => {
  const target = new ByteWriter();
  encodeBatch(
    { length: 2, columns: [{ name: 'n', type: 'integer', vector: { kind: 'i32', values: Int32Array.of(1, 2), nulls: null } }] },
    target,
  );
  const bytes = Buffer.from(target.take());
  lie(bytes);
  const before = process.memoryUsage().arrayBuffers;
  expect(() => decodeBatch(new ByteReader(bytes), 2)).toThrow(ServiceError);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20);
});

test.each([
  ['fall', [0, 3, 2]],
  ['start late', [1, 2, 3]],
  ['end early', [0, 1, 2]],
  ['split a character', [0, 1, 3]],
])('text offsets that %s are refused', (_, offsets) => {
  const target = new ByteWriter();
  const heap = Buffer.from('é.');
  encodeBatch(
    {
      length: 2,
      columns: [{ name: 'n', type: 'string', vector: { kind: 'text', offsets: Uint32Array.of(0, 2, 3), heap, nulls: null } }],
    },
    target,
  );
  const bytes = Buffer.from(target.take());
  const at = bytes.length - heap.length - 12;
  expect([bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8)]).toEqual([0, 2, 3]);
  offsets.forEach((offset, i) => bytes.writeUInt32LE(offset, at + i * 4));
  expect(() => decodeBatch(new ByteReader(bytes), 2)).toThrow(ServiceError);
});

test('a text with a lone surrogate is refused, not changed', () => {
  const body = { ...rowsDraft(['a']).body, type: 'x\ud800' } as EntryBody;
  expect(() => bytesOf(body)).toThrow(expect.objectContaining({ code: 'REL_INVALID' }));
});

test('an entry reads back from its leaf and payload, and the leaf hash covers every bit of both', () => {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const place = { leaf: 5, position: 17, time: 123_456_789_012_345_678n };
  const { entry, leaf, payload, leafHash } = sealer.encode(rowsDraft(['a', 'b']), place, noPreviousHash);
  const facts = decodeLeaf(leaf);
  const whole = { redacted: false, rows: true };
  expect(decodeEntry(facts, payload, keyring, whole)).toMatchObject({ ...place, positions: 2, context: entry.context });
  expect(leafHashOf(leaf)).toEqual(leafHash);
  for (let bit = 0; bit < payload.length * 8; bit++) {
    const bytes = Uint8Array.from(payload);
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    expect(() => decodeEntry(facts, bytes, keyring, whole), `payload bit ${bit}`).toThrow(ServiceError);
    // The digest aside, the seal alone finds it as well.
    expect(() => openPayload(bytes, keyring), `sealed bit ${bit}`).toThrow(ServiceError);
  }
});

test('a leaf shows nothing of a row: neither keys nor cells', () => {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const { leaf, payload } = sealer.encode(rowsDraft(['secret-key']), { leaf: 0, position: 0, time: 1n }, noPreviousHash);
  const bytes = Buffer.concat([leaf, payload]).toString('latin1');
  expect(bytes).not.toContain('secret-key');
  expect(bytes).not.toContain('name of');
  expect(bytes).not.toContain('Person');
  expect(bytes).toContain('acme/eu');
});

test('large bodies are compressed before they are sealed, and a size that lies is refused', () => {
  const keys = Array.from({ length: 500 }, (_, i) => `key-${i}`);
  const draft = rowsDraft(keys);
  const { payload } = new EntrySealer(keyring, new SeededRandom()).encode(
    draft,
    { leaf: 0, position: 0, time: 1n },
    noPreviousHash,
  );
  expect(payload[1]).toBe(1);
  expect(payload.length).toBeLessThan(bytesOf(draft.body).length * 0.7);
  expect(bodyCells(decodeBody(openPayload(payload, keyring)).body)).toEqual(bodyCells(draft.body));
  for (const size of [0, 1, 0xfffffff0]) {
    const bytes = Buffer.from(payload);
    bytes.writeUInt32LE(size, 8);
    expect(() => openPayload(bytes, keyring)).toThrow(ServiceError);
  }
});

test('an entry whose names exceed a leaf is refused', () => {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const draft = { ...rowsDraft(['a']), context: { ...context, principal: 'p'.repeat(70_000) } };
  const encode = (): unknown => sealer.encode(draft, { leaf: 0, position: 0, time: 1n }, noPreviousHash);
  expect(encode).toThrow(expect.objectContaining({ code: 'REL_TOO_LARGE' }));
});

test('a body says its tagged fields in order, once each, and none that is not known', () => {
  const properties = { a: { type: 'string', required: false, masked: false, indexed: false, subject: false, dims: 0 } } as const;
  const definition = { name: 'T', properties, open: false, primaryKey: null, graphTriggers: [], ontologyVersion: 1 };
  const bare = Buffer.from(bytesOf({ kind: 'type', definition }));
  expect([bare[0], bare.at(-1)]).toEqual([5, 0]);
  const plain = bare.subarray(0, -1);
  const role = [5, 5, 0, 0, 0, 1, 0, 0, 0, 0x78];
  const refused = (bytes: Uint8Array) => decodedOrRefused(bytes);
  expect(refused(Buffer.concat([plain, Buffer.of(1, ...role)]))).toMatchObject({ body: { definition: { role: 'x' } } });
  for (const fields of [
    [],
    [2, ...role, ...role],
    [2, ...role, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [1, 5, 6, 0, 0, 0, 1, 0, 0, 0, 0x78],
    [1, ...role, 0],
  ]) {
    expect(refused(Buffer.concat([plain, Buffer.from(fields)]))).toMatchObject({ code: 'REL_STORAGE' });
  }
  const unknown = refused(Buffer.concat([plain, Buffer.of(2, ...role, 99, 0, 0, 0, 0)]));
  expect(unknown).toMatchObject({ message: expect.stringContaining('field 99, which this release does not know') as unknown });
});

test('a kind without fields refuses every tag', () => {
  const bytes = Buffer.from(bytesOf({ kind: 'receipt', key: 'k', batch: 1, request: 'r', outcome: 'o' }));
  expect([bytes[0], bytes.at(-1)]).toEqual([5, 0]);
  const tagged = Buffer.concat([bytes.subarray(0, -1), Buffer.of(1, 1, 0, 0, 0, 0)]);
  expect(decodedOrRefused(tagged)).toMatchObject({ code: 'REL_STORAGE' });
});

test('a kind of no design yet holds bytes, or JSON in its one spelling', () => {
  const kind = 'embedding';
  for (const content of ['{"a":[1,2],"b":"ü"}', 'null', new Uint8Array([0, 255]), new Uint8Array(0)]) {
    expect(decodeBody(bytesOf({ kind, content })).body).toEqual({ kind, content });
  }
  for (const text of ['{"b":1,"a":2}', '{ }', '{', '"\\ud800"', `${'['.repeat(70)}${']'.repeat(70)}`]) {
    const target = new ByteWriter();
    for (const byte of [5, kindNumber[kind], 1]) target.u8(byte);
    target.text(text);
    expect(decodedOrRefused(target.take()), text).toMatchObject({ code: 'REL_STORAGE' });
    expect(() => bytesOf({ kind, content: text }), text).toThrow();
  }
  const early = bytesOf({ kind, content: new Uint8Array(0) });
  early[0] = 1;
  expect(decodedOrRefused(early)).toMatchObject({ code: 'REL_STORAGE' });
});
