/** Views of a file through a window that reads ahead: the file's bytes, whatever is asked for in whatever order. */
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { DiskFile } from '../../../src/log/disk/disk.ts';
import { FileWindow } from '../../../src/log/proofs/verify-frames.ts';

const length = 1000;
const bytes = Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8)) & 0xff);

/** Gives few bytes at a time, as disks may; fails where it is told to. */
class File {
  readonly path = 'file';
  readonly asked: number[] = [];
  failures = new Set<number>();
  reading = 0;

  async read(target: Uint8Array, offset: number): Promise<number> {
    this.asked.push(offset);
    this.reading++;
    await new Promise((resolve) => setImmediate(resolve));
    this.reading--;
    if (this.failures.delete(this.asked.length)) throw new Error('no such sector');
    const part = bytes.subarray(offset, offset + Math.min(target.length, 70));
    target.set(part);
    return part.length;
  }
}

const opened = (file: File): DiskFile => file as unknown as DiskFile;

describe('a window over a file', () => {
  it('shows the bytes of the file, and leaves earlier views as they are', async () => {
    const view = fc.tuple(fc.nat(length - 1), fc.integer({ min: 1, max: 150 }));
    const forwards = fc.array(fc.tuple(fc.constant(-1), fc.integer({ min: 1, max: 150 })), { maxLength: 20 });
    const asked = fc.oneof(forwards, fc.array(fc.oneof(view, fc.tuple(fc.constant(-1), fc.integer({ min: 1, max: 150 })))));
    await fc.assert(
      fc.asyncProperty(asked, fc.integer({ min: 1, max: 200 }), fc.boolean(), async (views, windowBytes, shared) => {
        const window = new FileWindow(opened(new File()), length, { shared, windowBytes });
        const seen: [Uint8Array, Uint8Array][] = [];
        let end = 0;
        for (const [from, most] of views) {
          const at = from < 0 ? end % length : from;
          const size = Math.min(most, length - at);
          end = at + size;
          const found = await window.view(at, size);
          expect(found.buffer instanceof SharedArrayBuffer).toBe(shared);
          seen.push([found, bytes.slice(at, end)]);
        }
        for (const [found, expected] of seen) expect(Uint8Array.from(found)).toEqual(expected);
        await window.settle();
      }),
    );
  });

  it('reads each part once, one window ahead', async () => {
    const file = new File();
    const window = new FileWindow(opened(file), length, { windowBytes: 60 });
    for (let at = 0; at + 12 <= length; at += 12) await window.view(at, 12);
    expect(file.asked).toEqual(Array.from({ length: Math.ceil(length / 60) }, (_, i) => i * 60));
    const other = new File();
    const cut = new FileWindow(opened(other), length, { windowBytes: 60 });
    for (let at = 0; at + 13 <= length; at += 13) await cut.view(at, 13);
    expect(other.asked).toEqual(file.asked);
  });

  it('reads again what could not be read ahead, and then fails where that is asked for', async () => {
    const file = new File();
    file.failures = new Set([2]);
    const window = new FileWindow(opened(file), length, { windowBytes: 60 });
    expect(await window.view(0, 10)).toEqual(bytes.slice(0, 10));
    expect(await window.view(60, 10)).toEqual(bytes.slice(60, 70));
    expect(file.asked.slice(0, 3)).toEqual([0, 60, 60]);
    await window.settle();
    file.failures = new Set([file.asked.length + 1]);
    await expect(window.view(500, 10)).rejects.toThrow('no such sector');
  });

  it('reads into memory that was released, and never into memory that it shows or reads ahead into', async () => {
    const window = new FileWindow(opened(new File()), length, { windowBytes: 60 });
    const memories = new Set<ArrayBufferLike>();
    let last: Uint8Array | null = null;
    for (let at = 0; at + 13 <= length; at += 13) {
      const view = await window.view(at, 13);
      memories.add(view.buffer);
      if (last && last.buffer !== view.buffer && window.release(last.buffer)) new Uint8Array(last.buffer).fill(0xdd);
      last = view;
      expect(window.release(view.buffer)).toBe(false);
      expect(Uint8Array.from(view)).toEqual(bytes.slice(at, at + 13));
    }
    // The first is a carry shorter than those that are read ahead.
    expect(memories.size).toBe(4);
    await window.settle();
  });

  it('has settled when nothing is being read', async () => {
    const file = new File();
    const window = new FileWindow(opened(file), length, { windowBytes: 300 });
    await window.view(0, 10);
    expect(file.reading).toBe(1);
    await window.settle();
    expect(file.reading).toBe(0);
  });
});
