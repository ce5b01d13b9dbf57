import { expect, test } from 'vitest';
import { ColumnMemory, memoryOf, workspaceIn } from '../../../src/log/values/column-memory.ts';
import { Seeded } from '../../simulation/seeded.ts';

test('extents are aligned, apart, and know their memory', () => {
  const memory = new ColumnMemory({ memoryBytes: 65_536 });
  const first = memory.allocate(100)!;
  const second = memory.allocate(1)!;
  expect([first.byteOffset % 64, second.byteOffset % 64]).toEqual([0, 0]);
  expect(second.byteOffset).toBeGreaterThanOrEqual(first.byteOffset + first.length);
  expect(memoryOf(first)).toBeInstanceOf(WebAssembly.Memory);
  expect(memoryOf(new Int32Array(first.buffer, first.byteOffset, 25))).toBe(memoryOf(second));
  expect(memoryOf(new Uint8Array(8))).toBeUndefined();
  expect(memory.used).toBe(128 + 64);
});

test('what is longer than a memory gets none; a full one is followed by another', () => {
  const memory = new ColumnMemory({ memoryBytes: 65_536 });
  expect(memory.allocate(65_537)).toBeNull();
  const first = memory.allocate(65_536)!;
  const second = memory.allocate(64)!;
  expect(second.buffer).not.toBe(first.buffer);
});

test('a workspace lies in the memory of a column, or there is none', () => {
  const memory = new ColumnMemory({ memoryBytes: 65_536 });
  const column = memory.allocate(60_000)!;
  const other = memory.allocate(60_000)!;
  expect(workspaceIn(memoryOf(column)!, 8_192)).toBeNull();
  const workspace = workspaceIn(memoryOf(other)!, 4_096)!;
  expect([workspace.bytes.buffer, workspace.bytes.length]).toEqual([other.buffer, 4_096]);
  workspace.release();
  expect(workspaceIn(memoryOf(other)!, 5_000)!.bytes.byteOffset).toBe(workspace.bytes.byteOffset);
});

test('whole words of rows can be read at the end of a memory', () => {
  const column = new ColumnMemory({ memoryBytes: 65_536 }).allocate(65_536)!;
  expect(column.buffer.byteLength).toBeGreaterThanOrEqual(65_536 + 32 * 8);
});

test('an extent can be released once', () => {
  const memory = new ColumnMemory({ memoryBytes: 65_536, poison: true });
  const extent = memory.allocate(64)!;
  memory.release(new Int32Array(extent.buffer, extent.byteOffset, 16));
  expect([...extent.subarray(0, 2)]).toEqual([0xdd, 0xdd]);
  expect(() => memory.release(extent)).toThrow('once');
  expect(() => memory.release(new Uint8Array(64))).toThrow('allocated here');
});

test('what lies behind the part of an extent that is kept is used again', () => {
  const memory = new ColumnMemory({ memoryBytes: 65_536, poison: true });
  const extent = memory.allocate(60_000)!;
  expect(memory.allocate(30_000)).not.toBe(null);
  extent.fill(1);
  memory.shorten(new Int32Array(extent.buffer, extent.byteOffset, 15_000), 20_004);
  expect([extent[20_003], extent[20_031], extent[20_032]]).toEqual([1, 1, 0xdd]);
  const next = memory.allocate(30_000)!;
  expect(next.buffer === extent.buffer && next.byteOffset - extent.byteOffset).toBe(20_032);
  expect(memory.used).toBe(20_032 + 2 * 30_016);
  expect(() => memory.shorten(new Uint8Array(64), 1)).toThrow('allocated here');
});

test('random histories: nobody gets bytes that somebody has, and what is given back joins up again', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = new Seeded(seed);
    const memory = new ColumnMemory({ memoryBytes: 1 << 20 });
    const held: { view: Uint8Array; mark: number }[] = [];
    for (let step = 0; step < 500; step++) {
      const some = held[random.below(Math.max(1, held.length))];
      if (some && random.below(100) < 20) {
        const kept = 1 + random.below(some.view.length);
        memory.shorten(some.view, kept);
        some.view = some.view.subarray(0, kept);
      } else if (held.length > 0 && random.below(100) < 45) {
        const [{ view, mark }] = held.splice(random.below(held.length), 1) as [{ view: Uint8Array; mark: number }];
        expect(view.every((byte) => byte === mark)).toBe(true);
        memory.release(view);
      } else {
        const view = memory.allocate(1 + random.below(20_000))!;
        const mark = step & 0xff;
        view.fill(mark);
        held.push({ view, mark });
      }
    }
    const [one] = held;
    for (const { view } of held) memory.release(view);
    expect(memory.used).toBe(0);
    // Whole again: the longest possible extent fits the memory that the first one was in. Nothing lies at 0.
    if (one) expect(memory.allocate(1 << 20)!.byteOffset).toBe(64);
  }
});

test('a memory full of columns has room for those who work on them, and takes no column there', () => {
  const memory = new ColumnMemory({ memoryBytes: 64 * 65_536 });
  const column = memory.allocate(64 * 65_536)!;
  const own = memoryOf(column)!;
  const workspace = workspaceIn(own, 65_536)!;
  expect(workspace.bytes.buffer).toBe(column.buffer);
  expect(workspace.bytes.byteOffset).toBeGreaterThanOrEqual(column.byteOffset + column.byteLength);
  expect(memory.used).toBe(65 * 65_536);
  workspace.release();
  expect(memory.used).toBe(64 * 65_536);
  // Another memory, not what is spare in the first.
  expect(memory.allocate(64)!.buffer).not.toBe(column.buffer);
  const [first, second] = [workspaceIn(own, 65_536)!, workspaceIn(own, 65_536)!];
  expect(first.bytes.byteOffset).not.toBe(second.bytes.byteOffset);
  first.release();
  second.release();
  memory.release(column);
  expect(memory.allocate(64 * 65_536)!.buffer).toBe(column.buffer);
});
