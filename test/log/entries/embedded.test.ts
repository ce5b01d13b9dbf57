/** Vectors that a model gave, in the log: whole with all keys, without exactly those of a subject whose key is destroyed. */
import { expect, test } from 'vitest';
import { decodeEntry, decodeLeaf, EntrySealer, noPreviousHash, openPayload } from '../../../src/log/entries/entry-codec.ts';
import { isEmbedded, withoutVectors } from '../../../src/log/entries/embedded-vectors.ts';
import { type Embedded, isOpen } from '../../../src/log/entries/entry.ts';
import type { Keyring } from '../../../src/log/keys/keys.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { MemorySubjectKeys } from '../memory-subject-keys.ts';
import { context, keyringOf, SeededRandom, worldOn } from '../world.ts';

const subjects = new MemorySubjectKeys();
const own = await keyringOf(worldOn(new MemoryDisk()));
const keyring: Keyring = {
  activeDataKey: own.activeDataKey,
  dataKeyIds: own.dataKeyIds,
  open: (id) => own.open(id),
  signer: own.signer,
  publicKeys: own.publicKeys,
  hmacKey: own.hmacKey,
  subjects,
  close: () => own.close(),
};
const vectors = Float32Array.of(1.25, 2.5, 3.75, 4.125, 5.5, 6.0625);
const content: Embedded = {
  model: 'small',
  digest: 'ab'.repeat(32),
  type: 'Doc',
  columns: ['text'],
  dims: 2,
  positions: Float64Array.of(7, 8, 9),
  vectors,
  dropped: 0,
};

function written(body: Embedded): { read(): Embedded; plain: Uint8Array } {
  const sealer = new EntrySealer(keyring, new SeededRandom());
  const place = { leaf: 1, position: 10, time: 5n };
  const { leaf, payload } = sealer.encode({ context, body: { kind: 'embedding', content: body } }, place, noPreviousHash);
  const read = (): Embedded => {
    const { body: found } = decodeEntry(decodeLeaf(leaf), payload, keyring, { redacted: false, rows: true });
    if (!isOpen(found) || !isEmbedded(found.content)) throw new Error('no vectors');
    return found.content;
  };
  return { read, plain: openPayload(payload, keyring) };
}

test("vectors of nobody's rows lie in the body as they are", () => {
  expect(written(content).read()).toEqual(content);
});

test('those of a subject are sealed inside it, and missing once the key is destroyed', async () => {
  const { read, plain } = written({ ...content, subjects: ['ada', 'bob', 'ada'] });
  const bytes = Buffer.from(plain).toString('hex');
  for (const value of vectors) expect(bytes).not.toContain(Buffer.from(Float32Array.of(value).buffer).toString('hex'));
  const { subjects: _, ...rest } = content as Embedded & { subjects?: unknown };
  const order = [0, 2, 1];
  const sorted = Float32Array.from(order.flatMap((row) => [...vectors.subarray(row * 2, row * 2 + 2)]));
  expect(read()).toEqual({ ...rest, positions: Float64Array.of(7, 9, 8), vectors: sorted, isSealed: true });
  await subjects.destroy(subjects.idsOf('acme', 'ada'), 'r-1');
  expect(read()).toEqual({ ...rest, positions: Float64Array.of(8), vectors: vectors.slice(2, 4), isSealed: true });
  await subjects.destroy(subjects.idsOf('acme', 'bob'), 'r-2');
  expect(read().positions).toHaveLength(0);
});

test('what is redacted leaves its number, and others as they were', () => {
  const left = withoutVectors(content, (position) => position === 8)!;
  expect(left).toMatchObject({ positions: Float64Array.of(7, 9), vectors: Float32Array.of(1.25, 2.5, 5.5, 6.0625), dropped: 1 });
  expect(withoutVectors(left, (position) => position === 8)).toBeNull();
  expect(withoutVectors({ ...content, isSealed: true }, () => true)).toBeNull();
  expect(written(left).read()).toEqual(left);
});
