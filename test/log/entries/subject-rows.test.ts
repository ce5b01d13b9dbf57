/**
 * Rows that are sealed by subject inside of a body: with all keys the body is what was written, without some exactly the rows
 * under them are missing, and no hash changes.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { type DecodedBody, decodeBody, subjectKeysOf } from '../../../src/log/entries/body-codec.ts';
import { saltsOfRows } from '../../../src/log/entries/rows-codec.ts';
import { subjectBody } from '../../../src/log/entries/body-sealer.ts';
import type { Dictionary, RowBatch, Vector } from '../../../src/log/values/columns.ts';
import type { RowsBody } from '../../../src/log/entries/entry.ts';
import {
  decodeEntry,
  decodeEntryWithSecrets,
  decodeLeaf,
  decodeOpened,
  EntrySealer,
  noPreviousHash,
  openPayload,
} from '../../../src/log/entries/entry-codec.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { rowLeafHashes, rowsRoot } from '../../../src/log/entries/row-leaf.ts';
import { sectionsOf } from '../../../src/log/entries/subject-sections.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import { bodyCells, rowsBodyOf } from '../arbitrary.ts';
import { MemorySubjectKeys } from '../memory-subject-keys.ts';
import { type OwnedRows, ownedRows, rowsOfSubjects, subjectDraft, subjectsOf } from '../subjects.ts';
import { context, keyringOf, rowsDraft, SeededRandom, worldOn } from '../world.ts';

const path = 'acme/eu';
const nonce = new Uint8Array(12).fill(0xa5);
const seed = new Uint8Array(32).fill(9);

interface Sealed {
  readonly bytes: Uint8Array;
  readonly root: Uint8Array;
  readonly keys: MemorySubjectKeys;
}

function sealed(body: RowsBody, keys = new MemorySubjectKeys()): Sealed {
  const sections = sectionsOf(body, (subject) => keys.sealing('acme', subject));
  const { body: bytes, root } = subjectBody(body, path, sections!, nonce, seed);
  return { bytes, root, keys };
}

const somebodys = ownedRows(40).filter(({ subjects }) => subjects.some((subject) => subject !== null));

function rootOf({ parts: [rows] }: DecodedBody): Uint8Array {
  const { body, secrets } = rows!;
  const dropped = secrets.salts === 'explicit' ? secrets.dropped : undefined;
  return rowsRoot(body, path, saltsOfRows(secrets, body.ops.length), dropped);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Everything of the rows but whose they are. */
function told(body: RowsBody): unknown {
  const { subjects: _, ...rest } = body;
  return bodyCells(rest);
}

test('with all keys a body is what was written, and its rows give the root that its leaf commits to', () => {
  fc.assert(
    fc.property(somebodys, ({ body }) => {
      const { bytes, root, keys } = sealed(body);
      const decoded = decodeBody(bytes, keys);
      expect(bodyCells(decoded.body)).toEqual(told(body));
      expect(hex(rootOf(decoded))).toBe(hex(root));
    }),
    { numRuns: 300 },
  );
});

test('without a key exactly its rows are missing: the root holds, their hashes are kept, nothing of them is left', () => {
  const cases = somebodys.chain((owned) =>
    fc.tuple(
      fc.constant(owned),
      fc.subarray(
        owned.subjects.filter((subject) => subject !== null),
        { minLength: 1 },
      ),
    ),
  );
  fc.assert(
    fc.property(cases, ([{ body, subjects }, gone]) => {
      const { bytes, root, keys } = sealed(body);
      const before = decodeBody(bytes, keys);
      const hashes = rowLeafHashes(before.body as RowsBody, path, saltsOfRows(before.parts[0]!.secrets, subjects.length));
      for (const subject of new Set(gone)) void keys.destroy(keys.idsOf('acme', subject), 'r');
      const decoded = decodeBody(bytes, keys);
      const rows = decoded.body as RowsBody;
      const missing = rowsOfSubjects(subjects, new Set(gone));
      expect(rows.dropped).toEqual(missing);
      expect(hex(rootOf(decoded))).toBe(hex(root));
      const { secrets } = decoded.parts[0]!;
      if (secrets.salts !== 'explicit') throw new Error('salts are given one by one');
      expect([...secrets.dropped].map(([row, hash]) => [row, hex(hash)])).toEqual(
        missing.map((row) => [row, hex(hashes.subarray(row * 32, row * 32 + 32))]),
      );
      expect(secrets.bytes).toHaveLength((subjects.length - missing.length) * 16);
      const isMissing = new Set(missing);
      for (const [found, written] of [
        [rows.keys, body.keys],
        [rows.cells, body.cells],
      ] as const) {
        const expected = rowsOf(written);
        rowsOf(found).forEach((row, i) => {
          if (isMissing.has(i)) expect(Object.values(row).every((cell) => cell === null)).toBe(true);
          else expect(row).toEqual(expected[i]);
        });
      }
    }),
    { numRuns: 200 },
  );
});

/** Row by row; of a column that is NULL throughout NULL as well. */
function rowsOf(batch: RowBatch): Record<string, unknown>[] {
  return Array.from({ length: batch.length }, (_, row) =>
    Object.fromEntries(batch.columns.map(({ name, type, vector }) => [`=${name}`, cellAt(vector, type, row)])),
  );
}

test('rows of nobody and rows of one subject alone are sealed like others', () => {
  for (const subjects of [['ada'], ['ada', 'ada', 'ada'], [null, 'ada'], ['ada', null, null]]) {
    const body = subjectDraft(subjects).body as RowsBody;
    const { bytes, root, keys } = sealed(body);
    expect(bodyCells(decodeBody(bytes, keys).body)).toEqual(told(body));
    void keys.destroy(keys.idsOf('acme', 'ada'), 'r');
    const decoded = decodeBody(bytes, keys);
    expect((decoded.body as RowsBody).dropped).toEqual(rowsOfSubjects(subjects, new Set(['ada'])));
    expect(rootOf(decoded)).toEqual(root);
  }
  expect(sectionsOf(subjectDraft([null, null]).body as RowsBody, () => expect.fail('nobody has a key'))).toBeNull();
});

test('subjects are told apart in any layout, and no two of them have one key', () => {
  const keys = new MemorySubjectKeys();
  const texts = ['ada', 'bob', 'ada'];
  const dictionary: Dictionary = { size: 3, text: (code) => texts[code]!, codeOf: (text) => texts.indexOf(text) };
  const body = subjectDraft(['ada', 'bob', null, 'ada']).body as RowsBody;
  const nulls = Uint8Array.of(0, 0, 1, 0);
  // Two codes of one text.
  const coded: RowsBody = { ...body, subjects: { kind: 'dict', values: Int32Array.of(0, 1, 0, 2), dictionary, nulls } };
  expect(hex(sealed(coded, keys).bytes)).toBe(hex(sealed(body, keys).bytes));
  expect(() => sectionsOf(body, () => keys.sealing('acme', 'ada'))).toThrow('no key has two sections');
  for (const subjects of [subjectsOf(['ada', 'bob', 'eve']), { ...coded.subjects, values: Int32Array.of(0, 1, 0) }])
    expect(() => sealed({ ...body, subjects: subjects as Vector })).toThrow('of every row whose it is');
});

test('dictionary columns are sealed as the texts that they stand for', () => {
  const texts = ['zwei', 'eins', ''];
  const dictionary: Dictionary = { size: 3, text: (code) => texts[code]!, codeOf: (text) => texts.indexOf(text) };
  const { cells, ...rest } = subjectDraft(['ada', 'bob', null, 'ada']).body as RowsBody;
  const nulls = Uint8Array.of(0, 1, 0, 0);
  const coded = {
    name: 'd',
    type: 'string',
    vector: { kind: 'dict', values: Int32Array.of(1, 0, 0, 2), dictionary, nulls },
  } as const;
  const plain = { name: 'd', type: 'string', vector: subjectsOf(['eins', null, 'zwei', '']) } as const;
  const of = (column: typeof coded | typeof plain): RowsBody => ({
    ...rest,
    cells: { ...cells, columns: [...cells.columns, column] },
  });
  expect(hex(sealed(of(coded)).bytes)).toBe(hex(sealed(of(plain)).bytes));
});

test('nothing of a subject can be read without its key: no cell, no key, no salt', () => {
  const body = subjectDraft(['ada', 'bob', 'ada', null]).body as RowsBody;
  const { bytes, keys } = sealed(body);
  const decoded = decodeBody(bytes, keys);
  const text = Buffer.from(bytes).toString('latin1');
  for (const word of ['ada', 'bob', 'name of ada']) expect(text).not.toContain(word);
  expect(text).toContain('name of nobody');
  const salts = saltsOfRows(decoded.parts[0]!.secrets, 4);
  for (let row = 0; row < 4; row++)
    expect(text).not.toContain(Buffer.from(salts.subarray(row * 16, row * 16 + 16)).toString('latin1'));
});

test('no two sections, and no two bodies, are sealed under the same stream', () => {
  // The same cells of two subjects in one body, and again in another.
  const same = rowsDraft(['same', 'same']).body as RowsBody;
  const cells = { length: 2, columns: same.cells.columns.filter(({ name }) => name === 'name') };
  const body: RowsBody = { ...same, cells, subjects: subjectsOf(['ada', 'bob']) };
  const keys = new MemorySubjectKeys();
  const sections = sectionsOf(body, (subject) => keys.sealing('acme', subject))!;
  const found = [nonce, new Uint8Array(12).fill(0xb6)].flatMap((each) => {
    const bytes = Buffer.from(subjectBody(body, path, sections, each, seed).body);
    const size = bytes.readUInt32LE(tablesOf(bytes, each).sizes);
    return [bytes.subarray(-size), bytes.subarray(-2 * size, -size)].map(hex);
  });
  expect(new Set(found).size).toBe(4);
});

test('a key that is lost is no erasure', () => {
  const { bytes, keys } = sealed(subjectDraft(['ada', 'bob']).body as RowsBody);
  const [id] = keys.idsOf('acme', 'ada');
  expect(() => decodeBody(bytes, new MemorySubjectKeys())).toThrow(`subject key ${id!} is not here, and was not erased`);
  expect(() => decodeBody(bytes)).toThrow(`the key ${id!} of a subject was not handed over`);
});

test('every cut of a body is refused, with its keys and without them', () => {
  const subjects = ['ada', 'bob', null, 'ada'];
  const { bytes, keys } = sealed(subjectDraft(subjects).body as RowsBody);
  for (const destroyed of [false, true]) {
    if (destroyed) for (const subject of ['ada', 'bob']) void keys.destroy(keys.idsOf('acme', subject), 'r');
    for (let length = 0; length < bytes.length; length++)
      expect(() => decodeBody(bytes.subarray(0, length), keys), `cut to ${length}`).toThrow(ServiceError);
    expect(() => decodeBody(Buffer.concat([bytes, Buffer.of(0)]), keys)).toThrow('bytes after the end');
  }
});

test('a byte changed anywhere is refused or says something else', async () => {
  const { bytes, keys } = sealed(subjectDraft(['ada', 'bob', null, 'ada']).body as RowsBody);
  const before = decodeBody(bytes, keys);
  for (let at = 0; at < bytes.length; at++) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const changed = bytes.slice();
      changed[at]! ^= flip;
      let decoded: DecodedBody;
      try {
        decoded = decodeBody(changed, keys);
      } catch (error) {
        expect(error, `byte ${at}`).toBeInstanceOf(ServiceError);
        continue;
      }
      const said = ({ parts: [rows] }: DecodedBody): unknown => [rows!.secrets, bodyCells(rows!.body), rows!.sealed];
      expect(said(decoded), `byte ${at}`).not.toEqual(said(before));
    }
  }
});

/** Where the tables of this body lie: behind the nonce. */
function tablesOf(
  bytes: Uint8Array,
  of = nonce,
): { sections: number; ids: number; counts: number; sizes: number; rows: number; hashes: number } {
  const at = Buffer.from(bytes).indexOf(Buffer.from(of));
  const sections = at + 12;
  const count = Buffer.from(bytes).readUInt32LE(sections);
  const ids = sections + 4;
  const counts = ids + count * 16;
  const sizes = counts + count * 4;
  const rows = sizes + count * 4;
  const total = Array.from({ length: count }, (_, s) => Buffer.from(bytes).readUInt32LE(counts + s * 4)).reduce((a, b) => a + b);
  return { sections, ids, counts, sizes, rows, hashes: rows + total * 4 };
}

test('tables that lie are refused, each in its own words', () => {
  const subjects = ['ada', 'bob', null, 'ada', 'bob'];
  const whole = sealed(subjectDraft(subjects).body as RowsBody);
  const at = tablesOf(whole.bytes);
  const changed = (change: (bytes: Buffer) => void): (() => unknown) => {
    const bytes = Buffer.from(whole.bytes);
    change(bytes);
    return () => decodeBody(bytes, whole.keys);
  };
  const rowsAre = (...rows: number[]) =>
    changed((bytes) => rows.forEach((row, i) => void bytes.writeUInt32LE(row, at.rows + i * 4)));
  expect(rowsAre(0, 3, 1, 4)).not.toThrow();
  expect(rowsAre(3, 0, 1, 4)).toThrow('out of order');
  expect(rowsAre(1, 4, 0, 3)).toThrow('out of order');
  expect(rowsAre(0, 3, 3, 4)).toThrow('in two sections');
  expect(rowsAre(0, 3, 1, 1)).toThrow('out of order');
  expect(rowsAre(0, 3, 1, 5)).toThrow('not there');
  expect(changed((bytes) => bytes.writeUInt32LE(0, at.sections))).toThrow('without a section');
  expect(changed((bytes) => bytes.writeUInt32LE(0xffff_ffff, at.sections))).toThrow('beyond the end');
  expect(changed((bytes) => bytes.copy(bytes, at.ids + 16, at.ids, at.ids + 16))).toThrow('two sections under one key');
  expect(changed((bytes) => bytes.writeUInt32LE(0, at.counts))).toThrow('without a row');
  expect(changed((bytes) => bytes.writeUInt32LE(6, at.counts))).toThrow('more rows in sections');
  expect(changed((bytes) => bytes.writeUInt32LE(1, at.counts))).toThrow(ServiceError);
  const size = Buffer.from(whole.bytes).readUInt32LE(at.sizes);
  for (const [first, message] of [
    [size - 1, ServiceError],
    [size + 1, ServiceError],
    [3, 'too short for its rows'],
    [0xffff_ffff, 'the end came early'],
  ] as const)
    expect(changed((bytes) => bytes.writeUInt32LE(first, at.sizes))).toThrow(message);
  // One byte more, and the last section says so.
  const longer = Buffer.concat([whole.bytes, Buffer.of(0)]);
  longer.writeUInt32LE(longer.readUInt32LE(at.sizes + 4) + 1, at.sizes + 4);
  expect(() => decodeBody(longer, whole.keys)).toThrow('bytes after its end');
});

test('a destroyed key excuses nothing but its cells', () => {
  const whole = sealed(subjectDraft(['ada', 'bob']).body as RowsBody);
  for (const subject of ['ada', 'bob']) void whole.keys.destroy(whole.keys.idsOf('acme', subject), 'r');
  const at = tablesOf(whole.bytes);
  const bytes = Buffer.from(whole.bytes);
  // The sizes of two sections that are not opened: as much too short as the other is too long.
  const sizes = [0, 1].map((s) => bytes.readUInt32LE(at.sizes + s * 4));
  bytes.writeUInt32LE(5, at.sizes);
  bytes.writeUInt32LE(sizes[0]! + sizes[1]! - 5, at.sizes + 4);
  expect(() => decodeBody(bytes, whole.keys)).toThrow('too short for its rows');
});

const keyring = await keyringOf(worldOn(new MemoryDisk()));

test('an entry: whole under its keys, its erased rows dropped, a hash that lies refused while it can be told', async () => {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const draft = subjectDraft(['ada', 'bob', null, 'ada']);
  const { leaf, payload } = sealer.encode(draft, { leaf: 0, position: 0, time: 1n }, noPreviousHash);
  const facts = decodeLeaf(leaf);
  const whole = { redacted: false, rows: true };
  expect(bodyCells(decodeEntry(facts, payload, keyring, whole).body)).toEqual(told(draft.body as RowsBody));
  const plain = openPayload(payload, keyring);
  expect(hex(subjectKeysOf(plain))).toBe(['ada', 'bob'].map((subject) => keyring.subjects.idsOf('acme', subject)[0]).join(''));
  const lied = Buffer.from(plain);
  const hashOf = Buffer.from(
    rowLeafHashes(
      draft.body as RowsBody,
      context.path,
      saltsOfRows(decodeEntryWithSecrets(facts, payload, keyring, whole).parts[0]!.secrets, 4),
    ),
  );
  lied[lied.indexOf(hashOf.subarray(3 * 32))]! ^= 1;
  expect(() => decodeOpened(facts, lied, whole, keyring.subjects)).toThrow('of another hash than its body states');
  expect(() => decodeOpened(facts, lied, { redacted: false, rows: false }, keyring.subjects)).not.toThrow();
  await keyring.subjects.destroy(keyring.subjects.idsOf('acme', 'ada'), 'r-1');
  expect(() => decodeOpened(facts, lied, whole, keyring.subjects)).toThrow('do not give the root');
  for (const check of [whole, { redacted: false, rows: false }]) {
    expect((decodeEntry(facts, payload, keyring, check).body as RowsBody).dropped).toEqual([0, 3]);
  }
  expect(() => decodeEntry({ ...facts, rowsRoot: noPreviousHash }, payload, keyring, whole)).toThrow('do not give the root');
});

test('rows without subjects are written as ever, whatever layout says that they are nobody’s', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }).chain(rowsBodyOf), (body) => {
      const rows = body.ops.length;
      const payloads = [
        body,
        { ...body, subjects: { kind: 'null' } as const },
        { ...body, subjects: subjectsOf(Array(rows).fill(null)) },
      ].map((each) =>
        hex(
          new EntrySealer(keyring, new SeededRandom()).encode(
            { context, body: each },
            { leaf: 0, position: 0, time: 1n },
            noPreviousHash,
          ).payload,
        ),
      );
      expect(new Set(payloads).size).toBe(1);
    }),
    { numRuns: 50 },
  );
});

test('rows belong to the subject within the tenant of their path', () => {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const idOf = (tenant: string | null, organisation: string | null): string => {
    const entry = { ...subjectDraft(['zoe']), context: { ...context, tenant, path: organisation } };
    const { payload } = sealer.encode(entry, { leaf: 0, position: 0, time: 1n }, noPreviousHash);
    return hex(subjectKeysOf(openPayload(payload, keyring)));
  };
  expect([idOf(null, 'acme/eu'), idOf('acme', 'acme'), idOf(null, 'acme')]).toEqual(
    Array(3).fill(keyring.subjects.idsOf('acme', 'zoe')[0]),
  );
  expect(idOf(null, null)).toBe(keyring.subjects.idsOf(null, 'zoe')[0]);
  expect(idOf(null, 'acme-2')).toBe(keyring.subjects.idsOf('acme-2', 'zoe')[0]);
});

test('bodies of thousands of rows, of one subject and of many', () => {
  const of = (rows: number, each: number): OwnedRows => {
    const subjects = Array.from({ length: rows }, (_, i) => (i % 7 === 0 ? null : `s${Math.floor(i / each)}`));
    return { body: subjectDraft(subjects).body as RowsBody, subjects };
  };
  for (const [rows, each] of [
    [20_000, 20_000],
    [3_000, 1],
    [5_000, 10],
  ] as const) {
    const { body } = of(rows, each);
    const { bytes, root, keys } = sealed(body);
    const decoded = decodeBody(bytes, keys);
    expect(hex(rootOf(decoded))).toBe(hex(root));
    expect(bodyCells(decoded.body)).toEqual(told(body));
  }
});
