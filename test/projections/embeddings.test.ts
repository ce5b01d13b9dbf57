/** Vectors that a model gave, saved a piece at a time, as they were when a checkpoint was captured, and counted in the budget of rows. */
import { expect, test, vi } from 'vitest';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import { Embeddings } from '../../src/projections/embeddings/projection.ts';
import { freshProjections } from './store.ts';

const dims = 256;
const rows = 64;
const entries = 40;

const timeline = { positionAt: (instant: bigint) => Number(instant), positionAfter: (instant: bigint) => Number(instant) };

function filled(): Embeddings {
  const embeddings = new Embeddings(timeline);
  for (let entry = 0; entry < entries; entry++) {
    const positions = Float64Array.from({ length: rows }, (_, row) => entry * rows + row);
    const vectors = Float32Array.from({ length: rows * dims }, (_, i) => entry + i / 7);
    const content = { model: 'm', digest: 'd', type: 'Doc', columns: ['text'], dims, dropped: 0, positions, vectors };
    apply(embeddings, { kind: 'embedding', content }, 10_000 + entry);
  }
  return embeddings;
}

function apply(embeddings: Embeddings, body: unknown, position: number, context = { branch: 'main', path: 'acme' }): void {
  embeddings.apply({ body, position, context } as CommittedEntry);
}

type Sections = Map<string, Uint8Array | (() => Uint8Array)>;

function captured(embeddings: Embeddings): Sections {
  const sections: Sections = new Map();
  void embeddings.checkpoint({ section: (name, bytes) => void sections.set(name, bytes), file: () => undefined });
  return sections;
}

async function restored(sections: Sections): Promise<Embeddings> {
  const written = new Map([...sections].map(([name, bytes]) => [name, typeof bytes === 'function' ? bytes() : bytes]));
  const embeddings = new Embeddings(timeline);
  await embeddings.restore({ section: (name) => written.get(name) });
  return embeddings;
}

test('no turn saves more than some of them, and all come back', async () => {
  const embeddings = filled();
  const sections = captured(embeddings);
  const sizes = [...sections.values()].map((bytes) => (typeof bytes === 'function' ? bytes() : bytes).length);
  expect(sizes.length).toBeGreaterThan(3);
  expect(Math.max(...sizes)).toBeLessThan(1.2 * 2 ** 20);
  const back = await restored(captured(embeddings));
  expect([back.digest(), back.bytes]).toEqual([embeddings.digest(), embeddings.bytes]);
  expect(embeddings.bytes).toBeGreaterThan(entries * rows * dims * 4);
});

test.each([
  ['a removal', { kind: 'removal', positions: [3, 64, 65, 2_000] }],
  ['an erasure', { kind: 'erasure', change: 'intended', versions: [{ positions: [3, 64, 65, 2_000] }] }],
  ['all of an entry', { kind: 'removal', positions: Array.from({ length: rows }, (_, row) => 2 * rows + row) }],
  ['all of a tenant', { kind: 'tenant', change: 'purged', tenant: { id: 'acme' } }],
])('a checkpoint is of when it was captured, and the next one of what %s left', async (_, body) => {
  const embeddings = filled();
  const before = embeddings.digest();
  const sections = captured(embeddings);
  apply(embeddings, body, 20_000);
  expect((await restored(sections)).digest()).toBe(before);
  const after = await restored(captured(embeddings));
  expect([after.digest(), after.bytes]).toEqual([embeddings.digest(), after.bytes]);
  expect(embeddings.digest()).not.toBe(before);
  expect(after.bytes).toBeLessThanOrEqual(embeddings.bytes);
  // What is begun anew meanwhile was there all the same.
  const again = captured(embeddings);
  const held = embeddings.digest();
  embeddings.reset();
  expect((await restored(again)).digest()).toBe(held);
  expect(embeddings.bytes).toBe(0);
});

test('a branch of the store goes without that of a tenant which has its name', async () => {
  const embeddings = new Embeddings(timeline);
  const branch = { kind: 'branch', name: 'b', source: 'main', shares: 'everything' };
  const embed = (position: number, path: string): void => {
    const content = { model: 'm', digest: 'd', type: 'Doc', columns: ['text'], dims: 1, dropped: 0 };
    const only = { positions: Float64Array.of(position - 100), vectors: Float32Array.of(1) };
    apply(embeddings, { kind: 'embedding', content: { ...content, ...only } }, position, { branch: 'b', path });
  };
  const counts = (of: Embeddings): number[] => [1, 2, 3].map((position) => of.countOf([position]));
  apply(embeddings, { ...branch, change: 'forked' }, 10);
  apply(embeddings, { ...branch, change: 'forked', own: true }, 11);
  embed(101, 'acme');
  embed(102, 'globex');
  const back = await restored(captured(embeddings));
  for (const each of [embeddings, back]) {
    apply(each, { ...branch, change: 'deleted' }, 103);
    expect(counts(each)).toEqual([1, 0, 0]);
    apply(each, { ...branch, change: 'deleted', own: true }, 104);
    expect(counts(each)).toEqual([0, 0, 0]);
  }
  // The name is the store's again to this tenant.
  apply(embeddings, { ...branch, change: 'forked' }, 105);
  embed(103, 'acme');
  apply(embeddings, { ...branch, change: 'deleted' }, 106);
  expect(counts(embeddings)).toEqual([0, 0, 0]);
});

test('the budget of rows counts them', () => {
  const { rows: stored, embeddings } = freshProjections();
  const before = stored.bytes;
  vi.spyOn(embeddings, 'bytes', 'get').mockReturnValue(1_000_000);
  expect(stored.bytes - before).toBe(1_000_000);
});
