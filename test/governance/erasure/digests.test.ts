/** The digests of a receipt: which versions stood before and after, as anybody finds who folds the log. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { type CommittedEntry, splitParts } from '../../../src/log/entries/entry.ts';
import type { ErasureStatement } from '../../../src/governance/erasure/erasure-receipt.ts';
import { acme, type Answered, ErasureWorld, globex } from './erasure-world.ts';

/** Written from the definition, not from the code: positions of acme's type by fork, as they stand before and after an intent. */
function folded(entries: readonly CommittedEntry[], id: string, type: string): [before: string, after: string] {
  const forks = new Map([['main', 0]]);
  const standing = new Map<number, Set<number>>();
  for (const { body, context, position } of entries.flatMap((entry) => [...splitParts(entry)])) {
    if (body.kind === 'branch' && body.change === 'forked') forks.set(body.name, position);
    if (body.kind === 'rows' && body.type === type && context.tenant === 'acme') {
      const fork = forks.get(context.branch)!;
      const own = standing.get(fork) ?? new Set();
      body.ops.forEach((_, i) => own.add(position + i));
      standing.set(fork, own);
    }
    const take = (positions: ArrayLike<number>): void => {
      for (const own of standing.values()) for (const each of Array.from(positions)) own.delete(each);
    };
    if (body.kind === 'removal' && body.type === type) take(body.positions);
    if (body.kind !== 'erasure') continue;
    const before = body.id === id && body.change === 'intended' ? digest(type, standing) : null;
    for (const each of body.versions) if (each.type === type) take(each.positions);
    if (before !== null) return [before, digest(type, standing)];
  }
  throw new Error('there is no such intent');
}

function digest(type: string, standing: ReadonlyMap<number, ReadonlySet<number>>): string {
  const parts = [text(type)];
  for (const [fork, positions] of [...standing].sort(([a], [b]) => a - b)) {
    if (positions.size > 0) parts.push(number(fork));
    const sorted = [...positions].sort((a, b) => a - b);
    for (const block of new Set(sorted.map((each) => Math.floor(each / 65_536)))) {
      const own = sorted.filter((each) => Math.floor(each / 65_536) === block);
      const firsts = own.filter((each, i) => own[i - 1] !== each - 1);
      const runs = firsts.map((first, i) => {
        const next = firsts[i + 1];
        const end = next === undefined ? own.length : own.indexOf(next);
        return Buffer.concat([number(first), number(end - own.indexOf(first))]);
      });
      parts.push(number(block), text(createHash('sha256').update(Buffer.concat(runs)).digest('hex')));
    }
  }
  return createHash('sha256').update(Buffer.concat(parts)).digest('hex');
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes;
}

const text = (value: string): Buffer => Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(value)]);

const projectionsOf = ({ receipt }: Answered): ErasureStatement['projections'] =>
  (JSON.parse(Buffer.from(receipt!.payload, 'base64').toString('utf8')) as ErasureStatement).projections;

async function entriesOf(world: ErasureWorld): Promise<CommittedEntry[]> {
  const entries: CommittedEntry[] = [];
  for await (const entry of world.store.service.store.log.read(0)) entries.push(entry);
  return entries;
}

test('follow from the log alone, on every branch, also when what they were of is gone', async () => {
  const world = await (await new ErasureWorld().open()).fill();
  await world.store.invoke(acme, 'schema', (invocation) =>
    invocation.submit({ kind: 'fork-branch', name: 'b', source: 'main', shares: 'everything' }),
  );
  // Positions of more than one block, with gaps: segments of the test are of 64 rows.
  await world.store.register('Other', { id: 'string' }, 'id');
  await world.store.put(
    'Other',
    Array.from({ length: 70_000 }, (_, i) => ({ id: `o${i}` })),
    acme,
  );
  const people = Array.from({ length: 300 }, (_, i) => ({ id: `q${i}`, who: i % 7 === 0 ? 'alice' : 'bob', name: `N${i}` }));
  await world.store.put('Person', people, acme);
  await world.store.put('Person', [{ id: 'p2', who: 'alice', name: 'Alice on b', age: 1 }], { ...acme, branch: 'b' });
  await world.store.invoke(acme, 'remove', (invocation) =>
    invocation.submit({ kind: 'remove-rows', type: 'Person', keys: ['q1', 'q2'] }),
  );
  const first = await world.erase();
  await world.store.put('Person', [{ id: 'p1', who: 'carol', name: 'Carol' }], globex);
  const second = await world.erase('bob');
  const entries = await entriesOf(world);
  for (const each of [first, second]) {
    const [before, after] = folded(entries, each.id, 'Person');
    expect(before).not.toBe(after);
    expect(projectionsOf(each)).toEqual([
      { name: 'rows:Person', versions_erased: Number(each.versions), digest_before: before, digest_after: after },
    ]);
  }
});

test('an erasure that follows another finds what that one left, after a rebuild as well', async () => {
  const world = await (await new ErasureWorld().open()).fill();
  const [first] = projectionsOf(await world.erase());
  for (const name of await world.disk.list('/data/projections')) await world.disk.unlink(`/data/projections/${name}`);
  await world.restart();
  const [second] = projectionsOf(await world.erase('bob'));
  expect(second!.digest_before).toBe(first!.digest_after);
  expect(second!.digest_after).not.toBe(first!.digest_after);
});

test('rows that come while the subject is looked for are in both digests', async () => {
  const world = await (await new ErasureWorld().open()).fill();
  const erasing = world.erase();
  const puts = Array.from({ length: 6 }, async (_, i) => {
    for (let turns = 0; turns < i; turns++) await new Promise((resolve) => setImmediate(resolve));
    await world.store.put('Person', [{ id: `late${i}`, who: i % 2 === 0 ? 'bob' : 'alice', name: 'late' }], acme);
  });
  const [erased] = await Promise.all([erasing, ...puts]);
  const [before, after] = folded(await entriesOf(world), erased.id, 'Person');
  expect(projectionsOf(erased)[0]).toMatchObject({ digest_before: before, digest_after: after });
});
