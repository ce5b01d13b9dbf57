/**
 * What every kind of index of segments keeps to: it is a pure function of the cells that a segment holds by now, wherever it was made,
 * however often it left memory, and whatever became of its file.
 */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { DerivedFile } from '../../../src/log/blobs/derived-file.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { inlineWorker, threadWorker } from '../../../src/log/threads/workers.ts';
import type { Segment } from '../../../src/projections/rows/segments/segment.ts';
import { forgetIndexes } from '../../../src/projections/rows/indexes/segment-indexes.ts';
import { INDEX_SHARE } from '../../../src/memory-budget.ts';
import { INDEX_PREFIX } from '../../../src/projections/rows/store/index-files.ts';
import { Draw } from '../../planner/document-world.ts';
import { analyst, TestClock, TestRandom, TestStore } from '../../harness.ts';
import { digest, dims, type Document, type Kind, kinds, textCells } from './kinds.ts';
import { finishSteps } from '../../../src/log/threads/stepping-job.ts';
import { buildTextIndex } from '../../../src/projections/rows/indexes/text/text-builder.ts';
import { TextIndex } from '../../../src/projections/rows/indexes/text/text-index.ts';

const folder = '/data/projections';
const segmentRows = 64;
const sealed = 3;
const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
const tenant = { ...analyst, tenant: 'acme', path: 'acme' };
const words = ['harbour', 'lighthouse', 'sailing', 'fishing', 'boats', 'Naïve', 'camelCase', '東京都'];

/** A word of a row's own, and one of a subject's: letters alone, as words end at digits. */
const own = (row: number): string => `own${inLetters(row)}z`;
const subjects = (subject: number): string => `subjects${inLetters(subject)}z`;
const inLetters = (number: number): string => String(number).replace(/\d/g, (digit) => 'abcdefghij'[Number(digit)]!);

class World {
  readonly disk = new MemoryDisk();
  readonly clock = new TestClock('2024-01-01');
  readonly said: string[] = [];
  store!: TestStore;
  /** In the order in which they were written. */
  documents: Document[] = [];
  #starts = 0;

  async start(settings: Readonly<Record<string, string>> = {}, budgetBytes?: number): Promise<void> {
    const files = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data', ...settings };
    this.store = await TestStore.open('2024-01-01', files, {
      disk: this.disk,
      clock: this.clock,
      derived: { machineBytes: 1 << 30, segmentRows, ...(budgetBytes && { budgetBytes }) },
      random: new TestRandom(++this.#starts * 41),
      startKept: inlineWorker,
      say: (line) => this.said.push(line),
    });
    await this.store.service.settle();
  }

  async restart(settings?: Readonly<Record<string, string>>): Promise<void> {
    await this.store.close();
    await this.start(settings);
  }

  async fill(): Promise<void> {
    const properties = {
      id: 'string',
      who: { ...plain, type: 'string', subject: true },
      body: 'string',
      n: 'integer',
      v: { ...plain, type: 'vector', dims },
    } as const;
    await this.store.register('Doc', properties, 'id');
    const draw = new Draw(7);
    const rows = Array.from({ length: segmentRows * sealed + 20 }, (_, i) => ({
      id: `d${i}`,
      who: `subject-${i % 9}`,
      body: `${words[draw.upTo(words.length)]!} ${words[draw.upTo(words.length)]!} ${own(i)} ${subjects(i % 9)}`,
      n: i * 7,
      v: Array.from({ length: dims }, () => Math.fround(draw.upTo(2_001) / 1_000 - 1)),
    }));
    await this.store.put('Doc', rows, tenant);
    this.documents = rows.map(({ body, v }) => ({ body, v }));
    await this.store.service.store.columns!.whenIdle();
  }

  get #rows() {
    return this.store.service.store.projections.rows;
  }

  get files() {
    return this.#rows.indexes.files!;
  }

  segments(): readonly Segment[] {
    return this.#rows.table('acme', 'Doc')!.segments.slice(0, sealed);
  }

  rowsOf(number: number): readonly Document[] {
    return this.documents.slice(number * segmentRows, (number + 1) * segmentRows);
  }

  /** Of each sealed segment, what a kind has. */
  async read(kind: Kind): Promise<readonly string[]> {
    const found: string[] = [];
    for (const segment of this.segments()) found.push(await kind.read(this.#rows.indexes, segment));
    await this.saved();
    return found;
  }

  async expectMade(kind: Kind, language = 'english'): Promise<void> {
    const expected: string[] = [];
    for (let number = 0; number < sealed; number++) expected.push(await kind.made(this.rowsOf(number), language));
    expect(await this.read(kind)).toEqual(expected);
  }

  /** All indexes of sealed segments that there are rest on files. */
  async saved(): Promise<void> {
    await this.store.service.store.columns!.whenIdle();
    await this.store.service.settle();
    await this.files.whenWritten();
  }

  async names(): Promise<readonly string[]> {
    return (await this.disk.list(folder)).filter((name) => name.startsWith(INDEX_PREFIX));
  }

  /** All index files in the clear. */
  async plainFiles(): Promise<string> {
    let all = '';
    for (const name of await this.names()) {
      const { keyring } = this.store.service.store;
      const file = (await DerivedFile.open({ disk: this.disk, keyring, directory: folder, logId: null }, name))!;
      for (const chunk of file.chunks()) all += Buffer.from(file.readNow(chunk)).toString('latin1');
      await file.close();
    }
    return all;
  }

  async spoil(change: (bytes: Uint8Array, number: number) => Uint8Array): Promise<number> {
    const names = await this.names();
    for (const [i, name] of names.entries()) {
      await this.disk.replaceFile(`${folder}/${name}`, change((await this.disk.readFile(`${folder}/${name}`))!, i));
    }
    return names.length;
  }

  gone(which: (row: number) => boolean): void {
    this.documents = this.documents.map((document, row) => (which(row) ? null : document));
  }
}

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
  await world.fill();
});

describe.each(kinds)('$name', (kind) => {
  test('is what its cells make it, here and in a thread, once and again', async () => {
    await world.expectMade(kind);
    const rows = world.rowsOf(1);
    expect(await kind.made(rows, 'english', threadWorker)).toBe(await kind.made(rows, 'english'));
    const other = new World();
    await other.start();
    await other.fill();
    expect(await other.read(kind)).toEqual(await world.read(kind));
  });

  test('is found again after a start, without being made', async () => {
    await world.expectMade(kind);
    expect(await world.names()).toHaveLength(sealed);
    await world.restart();
    await world.expectMade(kind);
    expect(world.files.counts).toEqual({ read: sealed, written: 0, refused: 0 });
    expect(await world.store.service.store.checkpoints!.strays()).toEqual([]);
  });

  test('leaves memory, and comes back', async () => {
    await world.expectMade(kind);
    await world.store.close();
    // There is room for all vectors as bytes, or for one index of texts, or for one graph.
    await world.start({}, INDEX_SHARE * kind.room);
    const { indexes } = world.store.service.store.projections.rows;
    for (let round = 0; round < 2; round++) {
      await world.expectMade(kind);
      await world.read(kinds[0]!);
      for (const segment of world.segments()) forgetIndexes(segment, 'body');
    }
    expect(indexes.bytes).toBeLessThanOrEqual(kind.room);
    expect(world.files.counts.refused).toBe(0);
    expect(world.files.counts.read).toBeGreaterThanOrEqual(sealed * 2);
    expect((await world.names()).length).toBe(kind.name === 'text' ? sealed : sealed * 2);
  });

  test('holds nothing of a row that was deleted for good', async () => {
    await world.expectMade(kind);
    const before = new Set(await world.names());
    await world.store.invoke(tenant, 'remove', (invocation) =>
      invocation.submit({ kind: 'remove-rows', type: 'Doc', keys: ['d70', 'd71'] }),
    );
    world.gone((row) => row === 70 || row === 71);
    await world.files.whenWritten();
    // Those of the other segments stay.
    expect((await world.names()).length).toBe(sealed - 1);
    await world.saved();
    await world.expectMade(kind);
    const after = await world.names();
    expect(after.filter((name) => !before.has(name))).toHaveLength(1);
    expect(after).toHaveLength(sealed);
    if (kind.name === 'text') expect(await world.plainFiles()).toContain(own(72));
    for (const row of [70, 71]) expect(await world.plainFiles()).not.toContain(own(row));
    await world.store.service.store.checkpoints!.take();
    await world.restart();
    await world.expectMade(kind);
  });

  test('holds nothing of an erased subject by the time that it is certified', async () => {
    await world.expectMade(kind);
    if (kind.name === 'text') expect(await world.plainFiles()).toContain(subjects(4));
    // No text is in a run of ends, erased or not.
    else for (const word of [subjects(4), own(72)]) expect(await world.plainFiles()).not.toContain(word);
    const answer = await world.store.invoke(tenant, 'query', (invocation) =>
      world.store.service.planner.query(invocation, { sql: "ERASE SUBJECT 'subject-4' REASON 'asked' CERTIFY" }),
    );
    expect(JSON.stringify(answer, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).toContain(
      'certif',
    );
    world.gone((row) => row % 9 === 4);
    // Every segment had some of it.
    expect(await world.names()).toEqual([]);
    expect(await world.store.service.store.checkpoints!.strays()).toEqual([]);
    await world.expectMade(kind);
    expect(await world.names()).toHaveLength(sealed);
    expect(await world.plainFiles()).not.toContain(subjects(4));
    await world.restart();
    await world.expectMade(kind);
    expect(world.files.counts.written).toBe(0);
  });

  test('outlives compaction', async () => {
    await world.expectMade(kind);
    const ids = Array.from({ length: segmentRows * 2 }, (_, i) => `d${i}`);
    await world.store.delete('Doc', ids, tenant);
    const { columns, checkpoints } = world.store.service.store;
    expect((await columns!.compact()).segments).toBe(2);
    await checkpoints!.take();
    await world.expectMade(kind);
    await world.restart();
    await world.expectMade(kind);
    expect(world.files.counts).toEqual({ read: sealed, written: 0, refused: 0 });
  });

  test('is made anew where its file is cut, spoiled, or of other cells', async () => {
    await world.expectMade(kind);
    await world.store.close();
    expect(
      await world.spoil((bytes, i) => {
        if (i === 0) return bytes.subarray(0, bytes.length >> 1);
        if (i === 1) return bytes.map((byte, at) => (at === bytes.length - 100 ? byte ^ 1 : byte));
        return bytes.map((byte, at) => (at === 200 ? byte ^ 1 : byte));
      }),
    ).toBe(sealed);
    await world.start();
    await world.expectMade(kind);
    expect(world.files.counts).toEqual({ read: 0, written: sealed, refused: sealed });
    expect(world.said.filter((line) => line.includes("an index can't be read from its file"))).toHaveLength(sealed);
    // One under the name of another.
    await world.store.close();
    const [first = '', second = ''] = await world.names();
    await world.disk.replaceFile(`${folder}/${first}`, (await world.disk.readFile(`${folder}/${second}`))!);
    await world.start();
    await world.expectMade(kind);
  });

  test('is not found by who makes it another way', async () => {
    await world.expectMade(kind);
    await world.restart({ SERVICE_TEXT_LANGUAGE: 'german' });
    await world.expectMade(kind, 'german');
    expect(world.files.counts.read).toBe(kind.name === 'text' ? 0 : sealed);
    expect(await world.names()).toHaveLength(sealed);
  });

  test('goes with its store when that is begun anew from the log', async () => {
    await world.expectMade(kind);
    const before = await world.names();
    await world.restart({ SERVICE_VERIFY_ON_START: 'true' });
    await world.expectMade(kind);
    expect((await world.names()).filter((name) => before.includes(name))).toEqual([]);
  });
});

test('a column that became text has the index of its texts', async () => {
  const { indexes } = world.store.service.store.projections.rows;
  const numbers = (number: number): string => {
    const rows = world.rowsOf(number).map((_, i) => ({ body: String((number * segmentRows + i) * 7), v: [] }));
    return digest(finishSteps(buildTextIndex(textCells(rows), 'english')));
  };
  await indexes.prepare(world.segments(), ['n'])?.ready;
  expect(world.segments().map((segment) => indexes.whole(segment, 'n')!.terms)).toEqual([0, 0, 0]);
  await world.saved();
  await world.store.invoke(tenant, 'schema', (invocation) =>
    invocation.submit({ kind: 'evolve-type', name: 'Doc', properties: { n: { ...plain, type: 'string' } } }),
  );
  const made = (): readonly string[] =>
    world.segments().map((segment) => digest(world.store.service.store.projections.rows.indexes.whole(segment, 'n')!.bytes));
  await indexes.prepare(world.segments(), ['n'])?.ready;
  expect(made()).toEqual([0, 1, 2].map(numbers));
  await world.saved();
  await world.store.service.store.checkpoints!.take();
  await world.restart();
  await world.store.service.store.projections.rows.indexes.prepare(world.segments(), ['n'])?.ready;
  expect(made()).toEqual([0, 1, 2].map(numbers));
  expect(world.files.counts.written).toBe(0);
});

test('an index that can’t be saved is told once, and answers all the same', async () => {
  const open = vi
    .spyOn(world.disk, 'open')
    .mockImplementation(() => Promise.reject(new Error('ENOSPC: no space left on device')));
  await world.expectMade(kinds[0]!);
  open.mockRestore();
  expect(world.said.filter((line) => line.includes("an index can't be saved"))).toHaveLength(1);
  expect(await world.names()).toEqual([]);
  await world.restart();
  await world.expectMade(kinds[0]!);
  expect(world.files.counts.written).toBe(sealed);
});

test('terms of a stem: those that have it, and itself unless it has another', () => {
  const rows = ['experimental experiment', 'experiments boat', 'boats'].map((body) => ({ body, v: [] }));
  const index = TextIndex.open(finishSteps(buildTextIndex(textCells(rows), 'english')));
  const terms = (stem: string): string[] => index.ofStem(stem).map((term) => index.term(term));
  expect(terms('experi')).toEqual(['experiment', 'experiments']);
  expect(terms('experiment')).toEqual(['experimental']);
  expect(terms('boat')).toEqual(['boat', 'boats']);
  expect(['boats', 'absent', ''].flatMap(terms)).toEqual([]);
});
