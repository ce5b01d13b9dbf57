/** Hashes of a batch's keys, computed once for who decides and who applies; texts coded by their words. */
import { describe, expect, test } from 'vitest';
import { hashBytes } from '../../../../src/projections/rows/cells/byte-hash.ts';
import { ByteDictionary } from '../../../../src/projections/rows/cells/byte-dictionary.ts';
import { hashKeys, takeHashes } from '../../../../src/projections/rows/keys/key-hashes.ts';

const encoder = new TextEncoder();

function texts(cells: readonly string[]): { kind: 'text'; heap: Uint8Array; offsets: Uint32Array; nulls: null } {
  const parts = cells.map((cell) => encoder.encode(cell));
  const offsets = new Uint32Array(cells.length + 1);
  parts.forEach((part, i) => (offsets[i + 1] = offsets[i]! + part.length));
  return { kind: 'text', heap: Uint8Array.from(parts.flatMap((part) => [...part])), offsets, nulls: null };
}

describe('hashes of the latest batch', () => {
  test('are of every key and its path, and are given once, for these very keys in this path', () => {
    const keys = texts(['a', 'bc', '', 'def']);
    const hashes = hashKeys(keys, 4, 7);
    expect([...hashes]).toEqual([0, 1, 2, 3].map((i) => hashBytes(keys.heap, keys.offsets[i]!, keys.offsets[i + 1]!, 7)));
    expect(takeHashes(keys, 4, 7)).toBe(hashes);
    expect(takeHashes(keys, 4, 7)).toBeNull();
    for (const [other, length, path] of [
      [texts(['a', 'bc', '', 'def']), 4, 7] as const,
      [keys, 3, 7] as const,
      [keys, 4, 8] as const,
    ]) {
      hashKeys(keys, 4, 7);
      expect(takeHashes(other, length, path)).toBeNull();
    }
  });
});

describe('a dictionary of bytes', () => {
  test('knows texts of every length apart by any byte, wherever they lie', () => {
    const dictionary = new ByteDictionary();
    const cells: string[] = [''];
    for (let size = 1; size <= 20; size++) {
      for (let at = 0; at < size; at++)
        for (const letter of 'xy') cells.push('a'.repeat(at) + letter + 'a'.repeat(size - at - 1));
    }
    const column = texts(cells);
    const codes = new Int32Array(cells.length + 2);
    dictionary.encodeCells(column, 0, cells.length, codes, 2);
    expect(dictionary.size).toBe(cells.length);
    expect([...codes.subarray(2)]).toEqual(cells.map((_, i) => i));
    cells.forEach((cell, i) => {
      expect([dictionary.text(i), dictionary.codeOf(cell)]).toEqual([cell, i]);
      expect(dictionary.encode(encoder.encode(`<${cell}>`), 1, 1 + cell.length)).toBe(i);
    });
    expect(dictionary.codeOf('b')).toBe(-1);
    const nulls = Uint8Array.from([0, 1, 0]);
    dictionary.encodeCells({ ...texts(['x', '', 'xa']), nulls }, 0, 3, codes, 0);
    expect([...codes.subarray(0, 3)]).toEqual([dictionary.codeOf('x'), 0, dictionary.codeOf('xa')]);
  });
});
