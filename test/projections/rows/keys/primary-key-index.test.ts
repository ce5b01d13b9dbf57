/** The index against a map: growth in pieces, removals, hashes that collide by design, and what a key takes. */
import { describe, expect, test } from 'vitest';
import { ColumnMemory } from '../../../../src/log/values/column-memory.ts';
import { ColumnSpace } from '../../../../src/projections/rows/cells/column-extents.ts';
import { PrimaryKeyIndex } from '../../../../src/projections/rows/keys/primary-key-index.ts';

/** Keys are numbers of 32 bits, and a row's key is what was put under its number. */
class World {
  readonly memory = new ColumnMemory({ memoryBytes: 64 * 1024 * 1024, poison: true });
  readonly #later: (() => void)[] = [];
  readonly keys: number[] = [];
  readonly index = new PrimaryKeyIndex(
    { matches: (row, _heap, start) => this.keys[row] === start },
    new ColumnSpace(this.memory, (task) => void this.#later.push(task)).extents(),
  );
  readonly #hash: (key: number) => number;

  constructor(hash: (key: number) => number) {
    this.#hash = hash;
  }

  put(key: number): number {
    const row = this.keys.push(key) - 1;
    const before = this.index.put(nothing, key, 0, 0, this.#hash(key), row);
    for (const task of this.#later.splice(0)) task();
    return before;
  }

  find(key: number): number {
    return this.index.find(nothing, key, 0, 0, this.#hash(key));
  }

  remove(key: number): void {
    this.index.pass(this.#hash(key), this.find(key), -1);
  }
}

const nothing = new Uint8Array(0);
const mixed = (key: number): number => {
  let hash = Math.imul(key ^ (key >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
};

describe('the primary-key index', () => {
  test.each([
    ['hashes as they fall', mixed, 120_000],
    ['hashes that share their top bits', (key: number) => mixed(key) & 0xffff, 60_000],
    ['hashes that share their low bits', (key: number) => mixed(key) & ~0xffff, 4000],
    ['few hashes', (key: number) => mixed(key) & 0x80000f80, 3000],
  ])('finds the newest row of each key and no other: %s', (_, hash, count) => {
    const world = new World(hash);
    const newest = new Map<number, number>();
    for (let i = 0; i < count; i++) {
      // Every fifth is an update, every seventh goes, and some of those come back.
      const key = i % 5 === 4 ? i - 3 : i;
      if (world.put(key) !== (newest.get(key) ?? -1)) throw new Error(`key ${key} follows another row`);
      newest.set(key, i);
      if (i % 7 === 0) {
        world.remove(key);
        newest.delete(key);
      }
    }
    expect(world.index.size).toBe(newest.size);
    for (let key = 0; key < count; key++) if (world.find(key) !== (newest.get(key) ?? -1)) throw new Error(`key ${key} is lost`);
    expect(world.find(count + 1)).toBe(-1);
  });

  test('a place goes from its own row to an older one, and from no other', () => {
    const world = new World(() => 7);
    const rows = [1, 2, 1].map((key) => world.keys.push(key) - 1);
    for (const row of rows) world.index.put(nothing, world.keys[row]!, 0, 0, 7, row);
    world.index.pass(7, rows[0]!, -1);
    expect([world.find(1), world.find(2)]).toEqual([rows[2], rows[1]]);
    world.index.pass(7, rows[2]!, rows[0]!);
    expect([world.find(1), world.find(2), world.index.size]).toEqual([rows[0], rows[1], 2]);
    world.index.pass(7, rows[0]!, -1);
    world.index.pass(7, rows[0]!, -1);
    expect([world.find(1), world.find(2), world.index.size]).toEqual([-1, rows[1], 1]);
  });

  test('keys that are known to be new go in without a comparison', () => {
    const world = new World(mixed);
    for (let key = 0; key < 50_000; key++) {
      world.keys.push(key);
      world.index.enter(mixed(key), key);
    }
    for (let key = 0; key < 50_000; key++) if (world.find(key) !== key) throw new Error(`key ${key} is lost`);
  });

  test('takes at most 20 bytes a key at any size, and moves few keys at once', () => {
    const world = new World(mixed);
    let most = 0;
    for (let key = 0; key < 400_000; key++) {
      const used = world.memory.used;
      world.put(key);
      // One part is all that a put ever makes anew.
      if (key > 20_000) most = Math.max(most, world.memory.used - used);
      if (key > 50_000 && key % 1000 === 0) expect(world.index.bytes / key).toBeLessThan(20);
    }
    expect(most).toBeLessThanOrEqual(8192 * 8);
  });
});
