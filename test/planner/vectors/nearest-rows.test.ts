/** Nearest vectors by graphs of full segments: how many of the nearest are found, whose rows a graph holds, and where none is asked. */
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import type { Answer, QueryOptions } from '../../../src/planner/planner-contract.ts';
import { analyst, rowsOf, TestRandom, TestStore } from '../../harness.ts';
import { Draw } from '../document-world.ts';

const dims = 16;
const segmentRows = 1_200;
const best = 10;

const at = (path: string): Caller => ({ ...analyst, path, tenant: 'acme' });
const own = at('acme/a');
const other = at('acme/b');

interface World {
  readonly store: TestStore;
  readonly sought: readonly number[][];
  ask(vector: readonly number[], more?: string, options?: QueryOptions): Promise<Answer>;
}

function openOn(disk: MemoryDisk, settings: Readonly<Record<string, string>> = {}, seed = 1): Promise<TestStore> {
  const parts = { derived: { machineBytes: 1 << 30, segmentRows }, startKept: inlineWorker, disk, random: new TestRandom(seed) };
  const files = { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data', SERVICE_PURPOSES: 'test', ...settings };
  return TestStore.open('2024-01-01', files, parts);
}

/** Rows of two paths in turn: `hidden` says what rows of the other one hold. */
async function opened(
  hidden: number,
  settings: Readonly<Record<string, string>> = {},
  disk: MemoryDisk = new MemoryDisk(),
): Promise<World> {
  const store = await openOn(disk, settings);
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
  const properties = {
    id: 'string',
    who: { ...plain, type: 'string', subject: true },
    v: { ...plain, type: 'vector', dims },
  } as const;
  await store.register('Doc', properties, 'id');
  const draw = new Draw(7);
  const number = (): number => draw.upTo(2_001) / 1_000 - 1;
  const centres = Array.from({ length: 12 }, () => Array.from({ length: dims }, number));
  const vector = (): number[] => centres[draw.upTo(centres.length)]!.map((each) => each + number() / 2);
  for (let first = 0; first < 3_000; first += 300) {
    const rows = Array.from({ length: 300 }, (_, i) => ({ id: `d${first + i}`, who: `s${(first + i) % 7}`, v: vector() }));
    await store.put('Doc', rows, own);
    const theirs = rows.map(({ id, v }) => ({ id: `x${id}`, who: 'nobody', v: v.map((each) => each + hidden) }));
    await store.put('Doc', theirs.slice(0, 150), other);
  }
  return { store, sought: Array.from({ length: 20 }, vector), ask: askerOf(store) };
}

function askerOf(store: TestStore): World['ask'] {
  return (sought, more = '', options = { consistency: 'eventual' }) =>
    store.invoke(own, 'query', (invocation) =>
      store.service.planner.query(invocation, {
        sql: `SELECT * FROM SIMILAR('Doc', v, ARRAY[${sought.join(', ')}]) ${more} LIMIT ${best}`,
        ...options,
      }),
    );
}

const told = (answer: Answer): unknown[] => rowsOf(answer).map((row) => [row['id'], row['_score']]);

/** Asks once, so that graphs are begun, and waits for them. */
async function made({ store, sought, ask }: World): Promise<void> {
  const first = await ask(sought[0]!);
  expect([first.isApproximate, first.notices?.length]).toEqual([undefined, 1]);
  await store.service.store.projections.rows.indexes.graphs!.whenIdle();
}

test('graphs find nearly all that are nearest, of whom it may be, and say so; what others have changes no answer', async () => {
  const worlds = [await opened(0.01), await opened(-0.02)];
  const answers = await Promise.all(
    worlds.map(async (world) => {
      await made(world);
      const found: unknown[] = [];
      let [hits, wanted] = [0, 0];
      for (const each of world.sought) {
        const answer = await world.ask(each);
        const exact = await world.ask(each, '', {});
        expect([answer.isApproximate, exact.isApproximate, answer.rowCount, exact.rowCount]).toEqual([
          true,
          undefined,
          best,
          best,
        ]);
        const nearest = new Set(rowsOf(exact).map((row) => row['id']));
        hits += rowsOf(answer).filter((row) => nearest.has(row['id'])).length;
        wanted += best;
        found.push(told(answer));
      }
      expect(hits / wanted).toBeGreaterThanOrEqual(0.98);
      return found;
    }),
  );
  expect(answers[0]).toEqual(answers[1]);
  for (const { store } of worlds) await store.close();
});

test('after a start graphs are read and not made, and what they say is the same', async () => {
  const disk = new MemoryDisk();
  const world = await opened(0.01, {}, disk);
  await world.store.service.store.columns!.whenIdle();
  await made(world);
  const { store, sought } = world;
  const before = [];
  for (const each of sought) before.push(told(await world.ask(each)));
  expect(store.service.store.projections.rows.indexes.graphs!.counts).toEqual({ built: 3, read: 0 });
  await store.close();
  const again = await openOn(disk, {}, 2);
  const ask = askerOf(again);
  await made({ store: again, sought, ask });
  const after = [];
  for (const each of sought) after.push(told(await ask(each)));
  expect(after).toEqual(before);
  expect(again.service.store.projections.rows.indexes.graphs!.counts).toEqual({ built: 0, read: 3 });
  await again.close();
});

test('a condition, a recipe and a basis with few of the rows have all of them looked at; closed and erased rows are never found', async () => {
  const world = await opened(0.01);
  const { store, ask } = world;
  await made(world);
  const [sought] = world.sought;
  expect((await ask(sought!, "WHERE who > 's3'")).isApproximate).toBe(undefined);
  expect((await ask(sought!, '', { consistency: 'exact' })).isApproximate).toBe(undefined);
  const nearest = rowsOf(await ask(sought!, '', {})).map((row) => String(row['id']));
  store.clock.set('2024-01-02');
  await store.delete('Doc', nearest, own);
  const left = await ask(sought!);
  expect([left.isApproximate, left.rowCount]).toEqual([true, best]);
  expect(rowsOf(left).filter((row) => nearest.includes(String(row['id'])))).toEqual([]);
  const before = await ask(sought!, "AS OF SYSTEM TIME '2024-01-01T12:00:00Z'");
  expect(rowsOf(before).map((row) => row['id'])).toEqual(nearest);
  await store.invoke(at('acme'), 'query', (invocation) =>
    store.service.planner.query(invocation, { sql: "ERASE SUBJECT 's1' REASON 'asked' CERTIFY" }),
  );
  const erased = await ask(sought!);
  expect(erased.isApproximate).toBe(undefined);
  await store.service.store.projections.rows.indexes.graphs!.whenIdle();
  const again = await ask(sought!);
  expect([again.isApproximate, again.rowCount]).toEqual([true, best]);
  expect(rowsOf(again).filter((row) => row['who'] === 's1')).toEqual([]);
  await store.close();
});

test('a plan says which way is taken, and why', async () => {
  const { store } = await opened(0.01, { SERVICE_VECTOR_EXACT_ROWS: '1500' });
  const plan = async (caller: Caller, more = '', limit = 'LIMIT 3'): Promise<string> => {
    const vector = Array.from({ length: dims }, () => 1).join(', ');
    const answer = await store.answer(`EXPLAIN SELECT * FROM SIMILAR('Doc', v, ARRAY[${vector}]) ${more} ${limit}`, caller);
    return answer.plan!;
  };
  expect(await plan(own)).toContain('approximate, by graphs of full stretches, as more than 1500 rows are visible');
  // Of the other path there are 1,500.
  expect(await plan(other)).toContain('exact, without an index of vectors, as at most 1500 rows are visible');
  expect(await plan(own, "WHERE who > 's3'")).toContain('as there is a condition');
  expect(await plan(own, '', '')).toContain('as there is no LIMIT');
  const seeded = await store.answer("EXPLAIN SIMILAR TO Doc WHERE id = 'd1' LIMIT 3", own);
  expect(seeded.plan).toContain('as a seed is compared in all of its columns');
  await store.close();
});

test('a strong read asks graphs where more rows are visible than a setting says', async () => {
  const world = await opened(0.01, { SERVICE_VECTOR_EXACT_ROWS: '2500' });
  const [sought] = world.sought;
  const exact = await world.ask(sought!, '', {});
  expect(exact.notices).toHaveLength(1);
  await world.store.service.store.projections.rows.indexes.graphs!.whenIdle();
  expect((await world.ask(sought!, '', {})).isApproximate).toBe(true);
  await world.store.close();
});
