/** The document of a backup: what may be read of it is what was signed, whatever became of its bytes. */
import { expect, test } from 'vitest';
import { type Artefact, formatArtefact, openArtefact } from '../../../src/log/backup/backup-artefact.ts';
import { noteSigner, signCheckpoint } from '../../../src/log/tree/checkpoint-note.ts';
import { hexOf } from '../../../src/log/bytes/sha256.ts';

const signer = noteSigner(new Uint8Array(32).fill(3));
const root = new Uint8Array(32).fill(9);
const file = (name: string) => ({ name, length: 64, sha256: 'ab'.repeat(32) });
const artefact: Artefact = {
  schema_version: 1,
  id: '0011aabb-1',
  created_at: '2024-01-01T00:00:00Z',
  engine_version: '2.4.1',
  log_id: '0011aabb'.repeat(4),
  origin: 'test/log',
  tree_size: 7,
  root: hexOf(root),
  head: signCheckpoint('test/log', { size: 7, root }, signer),
  files: [file('log/00000000.2.log'), file('log/manifest'), file('log/checkpoint')],
  blobs: [file(`blobs/ab/ab${'0'.repeat(62)}`)],
  key_ids: [1, 3],
  erased_keys: 2,
  projections: { rows: 'cd'.repeat(32) },
};
const bytes = formatArtefact(artefact, signer);

/** What is read, or that it is refused. */
function read(changed: Uint8Array, keys = [signer.publicKey]): Artefact | 'refused' {
  try {
    return openArtefact(changed, keys);
  } catch (error) {
    expect((error as { code: string }).code).toBe('REL_UNPROCESSABLE');
    return 'refused';
  }
}

test('reads back as it was written', () => {
  expect(openArtefact(bytes, [new Uint8Array(32), signer.publicKey])).toEqual(artefact);
});

test('is refused or the same after any bit of it has turned', { timeout: 60_000 }, () => {
  let same = 0;
  for (let at = 0; at < bytes.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const turned = Buffer.from(bytes);
      turned[at]! ^= 1 << bit;
      const found = read(turned);
      if (found === 'refused') continue;
      expect([at, bit, found]).toEqual([at, bit, artefact]);
      same++;
    }
  }
  // Between members one blank is as good as another.
  expect(same).toBeLessThan(bytes.length / 4);
});

test('is refused after any cut', () => {
  // The last byte is the end of a line.
  for (let length = 0; length < bytes.length - 1; length++)
    expect([length, read(bytes.subarray(0, length))]).toEqual([length, 'refused']);
});

test('is refused of another signer, and with a head of another', () => {
  const other = noteSigner(new Uint8Array(32).fill(4));
  expect(read(bytes, [other.publicKey])).toBe('refused');
  expect(read(bytes, [])).toBe('refused');
  const head = signCheckpoint('test/log', { size: 7, root }, other);
  expect(read(formatArtefact({ ...artefact, head }, signer))).toBe('refused');
  expect(read(formatArtefact({ ...artefact, origin: 'test/other' }, signer))).toBe('refused');
});

test.each<[string, object]>([
  ['a strange name', { files: [file('log/../x'), ...artefact.files] }],
  ['a name twice', { files: [...artefact.files, file('log/manifest')] }],
  ['no manifest', { files: artefact.files.slice(0, 1) }],
  ['a blob in the wrong place', { blobs: [file(`blobs/ac/ab${'0'.repeat(62)}`)] }],
  ['a length below nothing', { files: [{ ...artefact.files[0], length: -1 }, ...artefact.files.slice(1)] }],
  ['a digest that is none', { files: [{ ...artefact.files[0], sha256: 'x' }, ...artefact.files.slice(1)] }],
  ['files that are none', { files: [null, ...artefact.files] }],
  ['no list of files', { files: {} }],
  ['a number as text', { tree_size: '7' }],
  ['a text as number', { origin: 1 }],
  ['a digest of a projection that is none', { projections: { rows: 1 } }],
  ['projections as text', { projections: 'rows' }],
  ['a key that is no number', { key_ids: ['1'] }],
])('is refused with %s, though it is signed', (_, change) => {
  expect(read(formatArtefact({ ...artefact, ...change } as Artefact, signer))).toBe('refused');
});
