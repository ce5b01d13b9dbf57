/** How many bytes one call copies or decodes, whatever the machine does meanwhile: what grows is not copied as a whole, and texts stay bytes. */
import { afterEach, expect, test, vi } from 'vitest';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { TestStore } from '../harness.ts';

const piece = 1 << 20;

afterEach(() => vi.restoreAllMocks());

/** Bytes that the largest copy since took. */
function largestCopy(): () => number {
  let most = 0;
  // oxlint-disable-next-line typescript/unbound-method
  const { set } = Uint8Array.prototype;
  vi.spyOn(Uint8Array.prototype, 'set').mockImplementation(function (this: Uint8Array, from, at) {
    most = Math.max(most, from.length);
    return set.call(this, from, at);
  });
  return () => most;
}

test('a file in memory grows piece by piece', async () => {
  const disk = new MemoryDisk();
  const file = await disk.open('/log', 'create');
  const most = largestCopy();
  for (let at = 0; at < 40 * piece; at += piece / 2 + 7) await file.write(new Uint8Array(piece / 2 + 7).fill(at % 251), at);
  expect(most()).toBeLessThanOrEqual(piece);
  await file.truncate(3 * piece + 5);
  await file.truncate(5 * piece);
  const bytes = (await disk.readFile('/log'))!;
  expect(bytes).toHaveLength(5 * piece);
  for (const at of [0, piece / 2 + 6, piece / 2 + 7, 3 * piece + 4]) expect(bytes[at]).toBe((at - (at % (piece / 2 + 7))) % 251);
  expect(bytes.subarray(3 * piece + 5).every((byte) => byte === 0)).toBe(true);
});

test('rows of long texts end a segment before its texts are too many to copy', async () => {
  const store = await TestStore.open('2024-01-01');
  try {
    await store.register('Note', { id: 'string', text: 'json' }, 'id');
    const most = largestCopy();
    for (let i = 0; i < 80; i++) await store.put('Note', [{ id: `n${i}`, text: JSON.stringify('x'.repeat(piece)) }]);
    expect(most()).toBeLessThanOrEqual(24 * piece);
    vi.restoreAllMocks();
    expect(await store.rows('SELECT COUNT(*) AS n, SUM(LENGTH(CAST(text AS TEXT))) AS long FROM Note')).toEqual([
      { n: 80n, long: BigInt(80 * (piece + 6)) },
    ]);
    expect(store.service.store.projections.rows.table(null, 'Note')!.segments.length).toBeGreaterThan(3);
  } finally {
    await store.close();
  }
});

test('a long text that a patch leaves as it is does not become a string on its way', async () => {
  const store = await TestStore.open('2024-01-01');
  try {
    await store.register('Note', { id: 'string', text: 'json', n: 'integer' }, 'id');
    await store.put('Note', [{ id: 'n1', text: JSON.stringify('é'.repeat(piece)), n: 1 }]);
    let decoded = 0;
    // oxlint-disable-next-line typescript/unbound-method
    const { decode } = TextDecoder.prototype;
    vi.spyOn(TextDecoder.prototype, 'decode').mockImplementation(function (
      this: InstanceType<typeof TextDecoder>,
      bytes,
      options,
    ) {
      decoded += bytes?.byteLength ?? 0;
      return decode.call(this, bytes, options);
    });
    await store.execute("UPDATE Note SET n = 2 WHERE id = 'n1'");
    vi.restoreAllMocks();
    expect(decoded).toBeLessThan(piece);
    expect(await store.rows("SELECT n, LENGTH(CAST(text AS TEXT)) AS long FROM Note AS OF CURRENT WHERE id = 'n1'")).toEqual([
      { n: 2n, long: BigInt(piece + 6) },
    ]);
  } finally {
    await store.close();
  }
});
