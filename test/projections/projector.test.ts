import { describe, expect, test } from 'vitest';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { Projection } from '../../src/projections/projection.ts';
import { Projector } from '../../src/projections/projector.ts';
import { contextOf, START } from './store.ts';

class Recorder implements Projection {
  readonly formatVersion = 1;
  readonly name: string;
  readonly seen: number[] = [];
  constructor(name: string) {
    this.name = name;
  }
  apply(entry: CommittedEntry): void {
    this.seen.push(entry.leaf);
  }
  async checkpoint(): Promise<void> {}
  async restore(): Promise<void> {}
  reset(): void {
    this.seen.length = 0;
  }
  digest(): string {
    return this.seen.join();
  }
}

function entry(leaf: number): CommittedEntry {
  const body = { kind: 'access' as const, records: [] };
  return { context: contextOf(null), body, leaf, position: 0, positions: 0, time: START + BigInt(leaf) };
}

async function* entries(count: number): AsyncGenerator<CommittedEntry> {
  for (let leaf = 0; leaf < count; leaf++) yield entry(leaf);
}

describe('the projector', () => {
  test('feeds every projection in order and moves its watermark', () => {
    const [a, b] = [new Recorder('a'), new Recorder('b')];
    const projector = new Projector([a, b]);
    for (let leaf = 0; leaf < 3; leaf++) projector.apply(entry(leaf));
    expect(projector.watermark).toBe(3);
    expect(projector.digests()).toEqual({ a: '0,1,2', b: '0,1,2' });
  });

  test('passes over leaves that a restored projection holds already, and only over those', () => {
    const [a, b] = [new Recorder('a'), new Recorder('b')];
    const projector = new Projector([a, b]);
    projector.markRestored('a', 2);
    for (let leaf = 0; leaf < 4; leaf++) projector.apply(entry(leaf));
    expect(a.seen).toEqual([2, 3]);
    expect(b.seen).toEqual([0, 1, 2, 3]);
    projector.apply(entry(1));
    expect(a.seen).toEqual([2, 3]);
  });

  test('refuses an entry past a gap', () => {
    const projector = new Projector([new Recorder('a')]);
    projector.apply(entry(0));
    expect(() => projector.apply(entry(2))).toThrow(/leaf 1 next, not 2/);
  });

  test('rebuilds one projection and leaves the others alone', async () => {
    const [a, b] = [new Recorder('a'), new Recorder('b')];
    const projector = new Projector([a, b]);
    for await (const each of entries(3)) projector.apply(each);
    b.seen.push(99);
    const seen: number[] = [];
    await projector.rebuild(['b'], entries(3), (leaf) => seen.push(leaf));
    expect(a.seen).toEqual([0, 1, 2]);
    expect(b.seen).toEqual([0, 1, 2]);
    expect(seen).toEqual([0, 1, 2]);
  });

  test('wakes who waits for a leaf when the slowest projection has reached it', async () => {
    const projector = new Projector([new Recorder('a'), new Recorder('b')]);
    await projector.until(0);
    const woken: string[] = [];
    const two = projector.until(2).then(() => woken.push('two'));
    const one = projector.until(1).then(() => woken.push('one'));
    projector.apply(entry(0));
    await one;
    expect(woken).toEqual(['one']);
    projector.apply(entry(1));
    await two;
    expect(woken).toEqual(['one', 'two']);
  });
});
