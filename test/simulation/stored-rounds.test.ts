/**
 * A store that is started again and again from its own checkpoints is what its log says, and holds nothing of what was
 * deleted for good. Each canary is a store with one mistake that the lives must catch.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { LocalLog } from '../../src/log/log.ts';
import { ByteDictionary } from '../../src/projections/rows/cells/byte-dictionary.ts';
import { Segment } from '../../src/projections/rows/segments/segment.ts';
import { SegmentColumns, type SegmentKeeper } from '../../src/projections/rows/segments/segment-columns.ts';
import { SegmentColumn } from '../../src/projections/rows/segments/segment-column.ts';
import type { RestingColumns, SegmentChanges } from '../../src/projections/rows/segments/segment-state.ts';
import { StoredRounds } from './stored-rounds.ts';

const seeds = Number(process.env['SIMULATION_ROUNDS_SEEDS'] ?? 2);

describe('a store that is started again and again', () => {
  it('is what its log says', { timeout: 600_000 }, async () => {
    const rounds = new StoredRounds();
    for (let seed = 1; seed <= seeds && rounds.failures.length === 0; seed++) await rounds.run(seed);
    expect(rounds.failures).toEqual([]);
    for (const [mark, count] of Object.entries(rounds.marks)) expect(count, mark).toBeGreaterThan(0);
    // Most starts go on from a checkpoint, and most of those from one that was taken after such a start.
    expect(rounds.marks.restored).toBeGreaterThan(rounds.starts / 2);
    expect(rounds.marks.chained).toBeGreaterThan(rounds.starts / 4);
    expect(rounds.marks.ahead).toBeGreaterThan(rounds.starts / 2);
  });
});

describe('canaries: broken stores that the lives must catch', { timeout: 600_000 }, () => {
  const undo: (() => void)[] = [];
  afterEach(() => {
    for (const each of undo.splice(0)) each();
  });

  /** One member of a class replaced until the test ends. */
  function plant<T extends object, K extends keyof T & string>(prototype: T, name: K, broken: (original: T[K]) => T[K]): void {
    const original = prototype[name];
    prototype[name] = broken(original);
    undo.push(() => void (prototype[name] = original));
  }

  async function caught(what: RegExp): Promise<void> {
    const rounds = new StoredRounds();
    for (let seed = 1; seed <= seeds && rounds.failures.length === 0; seed++) await rounds.run(seed);
    expect(rounds.failures.join()).toMatch(what);
  }

  it('a checkpoint becomes current before the log is durable', async () => {
    plant(LocalLog.prototype, 'durable', () => async () => undefined);
    // The log refuses it; where it was torn before the end that it looks at, the store stands beyond its log.
    await caught(/a healthy start said: the saved state is of no use|: position \d+ instead of/);
  });

  it('a checkpoint has the closings of an earlier one', async () => {
    const first = new WeakMap<Segment, SegmentChanges['closings']>();
    plant(Segment.prototype, 'capture', (capture) => {
      return function (this: Segment) {
        const changes = capture.call(this);
        if (!first.has(this)) first.set(this, changes.closings?.slice() ?? null);
        else changes.closings = first.get(this)!;
        return changes;
      };
    });
    await caught(/another answer|other digests/);
  });

  it('a checkpoint has the chains of open versions of an earlier one', async () => {
    const first = new WeakMap<Segment, SegmentChanges['nextLive']>();
    plant(Segment.prototype, 'capture', (capture) => {
      return function (this: Segment) {
        const changes = capture.call(this);
        if (!first.has(this)) first.set(this, { ...changes.nextLive, values: changes.nextLive.values?.slice() ?? null });
        else changes.nextLive = first.get(this)!;
        return changes;
      };
    });
    // Such a version is closed twice: the log of a store that does so takes nothing any more.
    await caught(/another answer|closed once|chain of open versions|could not be recorded/);
  });

  it('a segment counts as at rest after a hard delete', async () => {
    const rests = new WeakMap<SegmentColumns, Parameters<SegmentColumns['restOn']>>();
    plant(SegmentColumns.prototype, 'restOn', (restOn) => {
      return function (this: SegmentColumns, columns: RestingColumns, version, dictionaryOf, keeper: SegmentKeeper) {
        const deaf: SegmentKeeper = {
          onLoaded: (...loaded) => keeper.onLoaded(...loaded),
          onChanged: () => undefined,
          unreadable: (error) => keeper.unreadable(error),
        };
        rests.set(this, [columns, version, dictionaryOf, deaf]);
        restOn.call(this, columns, version, dictionaryOf, deaf);
      };
    });
    plant(SegmentColumns.prototype, 'clear', (clear) => {
      return function (this: SegmentColumns, row) {
        clear.call(this, row);
        const [columns, , dictionaryOf, keeper] = rests.get(this) ?? [];
        if (columns) this.restOn(columns, this.version, dictionaryOf!, keeper!);
      };
    });
    await caught(/was deleted for good, is still there/);
  });

  it('a start does not know what columns were widened to', async () => {
    plant(SegmentColumns.prototype, 'rest', (rest) => {
      return function (this: SegmentColumns, columns) {
        rest.call(this, columns, []);
      };
    });
    await caught(/another answer|other digests/);
  });

  it('a widened column comes back in its old type', async () => {
    const former = new WeakSet<SegmentColumn>();
    plant(SegmentColumns.prototype, 'adopt', () => () => undefined);
    const { fromSaved: restored } = SegmentColumn;
    SegmentColumn.fromSaved = (...of) => {
      const column = restored(...of);
      former.add(column);
      return column;
    };
    undo.push(() => void (SegmentColumn.fromSaved = restored));
    plant(SegmentColumn.prototype, 'widen', (widen) => {
      return function (this: SegmentColumn, type) {
        // Just read: nobody but who brings it back from its file has it yet.
        if (!former.has(this)) widen.call(this, type);
      };
    });
    plant(SegmentColumn.prototype, 'seal', (seal) => {
      return function (this: SegmentColumn, length) {
        former.delete(this);
        seal.call(this, length);
      };
    });
    await caught(/another answer|other digests/);
  });

  it('a dictionary is saved without its newest text', async () => {
    plant(ByteDictionary.prototype, 'savedState', (saved) => {
      return function (this: ByteDictionary) {
        const { offsets, heap, cells } = saved.call(this);
        const size = Math.max(1, offsets.length - 1);
        return { offsets: offsets.slice(0, size), heap: heap.slice(0, offsets[size - 1]), cells: cells.slice(0, size - 1) };
      };
    });
    await caught(/another answer|other digests/);
  });
});
