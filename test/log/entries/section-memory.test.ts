/** The module that seals sections gives the stream that `node:crypto` gives, wherever bytes lie and however many they are. */
import { createCipheriv } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
// @ts-expect-error a script has no types
import { compiledModule } from '../../../scripts/kernels.mjs';
import { SectionMemory } from '../../../src/log/entries/section-memory.ts';

const bytesOf = (size: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: size, maxLength: size });

function expected(key: Uint8Array, nonce: Uint8Array, bytes: Uint8Array, block = 0): string {
  const iv = Buffer.alloc(16);
  iv.writeUInt32LE(block);
  iv.set(nonce, 4);
  return createCipheriv('chacha20', key, iv).update(bytes).toString('hex');
}

test('any bytes under any key and nonce, at any place, and again what they were', () => {
  const places = fc.record({ at: fc.nat(100), block: fc.nat(1 << 20) });
  fc.assert(
    fc.property(bytesOf(32), bytesOf(12), fc.uint8Array({ maxLength: 1500 }), places, (key, nonce, bytes, { at, block }) => {
      const memory = SectionMemory.acquire(2048);
      memory.key.set(key);
      memory.setNonce(nonce);
      memory.bytes.fill(0xee, 0, at);
      memory.bytes.set(bytes, at);
      memory.xor(at, at + bytes.length, block);
      expect(memory.bytes.toString('hex', at, at + bytes.length)).toBe(expected(key, nonce, bytes, block));
      expect(memory.bytes.subarray(0, at).every((byte) => byte === 0xee)).toBe(true);
      memory.xor(at, at + bytes.length, block);
      expect(memory.bytes.subarray(at, at + bytes.length).equals(bytes)).toBe(true);
      memory.giveBack();
    }),
    { numRuns: 300 },
  );
});

test('a stream goes on where a slice of it ends', () => {
  const key = new Uint8Array(32).fill(1);
  const nonce = new Uint8Array(12).fill(2);
  const memory = SectionMemory.acquire(100_000);
  memory.key.set(key);
  memory.setNonce(nonce);
  memory.bytes.fill(0, 0, 100_000);
  for (let at = 0; at < 100_000; at += 6400) memory.xor(at, Math.min(100_000, at + 6400), at / 64);
  expect(memory.bytes.toString('hex', 0, 100_000)).toBe(expected(key, nonce, new Uint8Array(100_000)));
});

test('a key is not left behind, and two bodies at once have two memories', () => {
  const memory = SectionMemory.acquire(500);
  memory.key.fill(7);
  memory.giveBack();
  const [first, second, third] = [400, 400, 400].map((size) => SectionMemory.acquire(size));
  // As a whole a memory is far too large to be compared or shown.
  expect([first, second, third].some((each) => each === memory)).toBe(true);
  expect(new Set([first, second, third]).size).toBe(3);
  expect(memory.key.every((byte) => byte === 0)).toBe(true);
  first!.giveBack();
  expect(SectionMemory.acquire(8 << 20).bytes.length).toBeGreaterThanOrEqual(8 << 20);
  const huge = SectionMemory.acquire(17 << 20);
  huge.giveBack();
  expect(SectionMemory.acquire(17 << 20) === huge).toBe(false);
});

test('the module is what its source compiles to', async () => {
  expect(readFileSync(new URL('../../../src/log/entries/chacha20-code.ts', import.meta.url), 'utf8')).toBe(
    await (compiledModule as (name: string) => Promise<string>)('chacha20'),
  );
});
