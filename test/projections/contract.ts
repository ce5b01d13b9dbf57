/** What every projection must keep, whatever it derives. All of them are replayed together, and compared one by one. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { LogStatus } from '../../src/log/log-store.ts';
import { DerivedFileError } from '../../src/log/blobs/derived-file.ts';
import { inlineWorker } from '../../src/log/threads/workers.ts';
import { Checkpoint } from '../../src/projections/checkpoint.ts';
import type { Projector } from '../../src/projections/projector.ts';
import type { RowStorageOptions } from '../../src/projections/rows/tables/row-storage.ts';
import { withoutKeys } from './histories.ts';
import { SavedState } from './saved-state.ts';
import { recut } from './store.ts';

export interface Subject {
  /** A projector that holds the projections, all empty. */
  fresh(rows?: RowStorageOptions): Projector;
  /** Committed histories that exercise them. */
  readonly histories: fc.Arbitrary<readonly CommittedEntry[]>;
  /** The same, with erasures in most of them. */
  readonly erased: fc.Arbitrary<readonly CommittedEntry[]>;
}

type Digests = Readonly<Record<string, string>>;

export function projectionContract(subject: Subject): void {
  const { fresh, histories, erased } = subject;
  const { names } = fresh();
  const digestsAfter = (entries: readonly CommittedEntry[]): Digests => {
    const projector = fresh();
    for (const entry of entries) projector.apply(entry);
    return projector.digests();
  };

  describe('every projection', () => {
    test('has the digest of one that was reset while it is empty', () => {
      const projector = fresh();
      const empty = projector.digests();
      for (const name of names) projector.projection(name).reset();
      expect(projector.digests()).toEqual(empty);
    });

    test('reset and replay give the state that live applying gave', () =>
      fc.assert(
        fc.asyncProperty(histories, async (entries) => {
          const projector = fresh();
          for (const entry of entries) projector.apply(entry);
          const live = projector.digests();
          await projector.rebuild(projector.names, iterate(entries));
          expect(projector.digests()).toEqual(live);
          expect(digestsAfter(entries)).toEqual(live);
        }),
      ));

    test('a worker that helps with digests gives the same ones', () =>
      fc.assert(
        fc.asyncProperty(histories, fc.integer({ min: 1, max: 20 }), async (entries, segmentRows) => {
          const projector = fresh({ settings: { segmentRows } });
          for (const entry of entries) projector.apply(entry);
          expect(await projector.digestsBeside(inlineWorker)).toEqual(projector.digests());
          expect(projector.digests()).toEqual(digestsAfter(entries));
        }),
      ));

    test('entries of other sizes give the same state', () =>
      fc.assert(
        fc.property(histories, fc.integer({ min: 1, max: 4 }), (entries, rows) => {
          expect(digestsAfter(recut(entries, rows))).toEqual(digestsAfter(recut(entries, 1000)));
        }),
      ));

    test('a checkpoint and the entries after it give the same state', () =>
      fc.assert(
        fc.asyncProperty(histories, share, async (entries, part) => {
          const cut = Math.floor(part * entries.length);
          const saved = await SavedState.make();
          const before = fresh();
          for (const entry of entries.slice(0, cut)) before.apply(entry);
          await saved.save(before);
          const after = fresh();
          expect((await saved.restore(after)).position).toMatchObject({ leaves: cut });
          expect(after.watermark).toBe(cut);
          expect(after.digests()).toEqual(before.digests());
          // Everything again: what the checkpoint covers must be passed over, the rest applied.
          for (const entry of entries) after.apply(entry);
          expect(after.digests()).toEqual(digestsAfter(entries));
        }),
      ));

    test('segments that come and go, are saved, packed and restored hold the same state', () =>
      fc.assert(
        fc.asyncProperty(histories, share, fc.boolean(), async (entries, part, compacted) => {
          const cut = Math.floor(part * entries.length);
          const saved = await SavedState.make();
          const rows = saved.resting();
          const before = fresh(rows);
          for (let i = 0; i < entries.length; i++) {
            // What is applied while a checkpoint is written is not in it.
            if (i === cut) await saved.save(before, rows.store, () => before.apply(entries[i]!));
            else before.apply(entries[i]!);
            if (i % 3 === 0) await rows.store.whenIdle();
            rows.store.trim();
            if (compacted && i % 5 === 0) await rows.store.compact();
          }
          if (cut === entries.length) await saved.save(before, rows.store);
          const expected = digestsAfter(entries);
          expect(before.digests()).toEqual(expected);
          // The process dies here: what it wrote since is nobody's.
          const again = saved.resting();
          const after = fresh(again);
          await saved.restore(after);
          for (const entry of entries) after.apply(entry);
          await again.store.whenIdle();
          again.store.trim();
          expect(after.digests()).toEqual(expected);
          expect(saved.said).toEqual([]);
          for (const store of [rows.store, again.store]) await store.close();
        }),
      ));

    test('state after an erasure is that of a rebuild, with the keys of the subject and without them', () =>
      fc.assert(
        fc.asyncProperty(erased, share, async (entries, part) => {
          const live = digestsAfter(entries);
          const dropped = withoutKeys(entries);
          expect(digestsAfter(dropped)).toEqual(live);
          // Saved before, when the rows were still there; gone on with afterwards, when they are not.
          const cut = Math.floor(part * entries.length);
          const saved = await SavedState.make();
          const before = fresh();
          for (const entry of entries.slice(0, cut)) before.apply(entry);
          await saved.save(before);
          const after = fresh();
          await saved.restore(after);
          for (const entry of dropped) after.apply(entry);
          expect(after.digests()).toEqual(live);
        }),
      ));

    test('writing a checkpoint changes nothing', () =>
      fc.assert(
        fc.asyncProperty(histories, async (entries) => {
          const saved = await SavedState.make();
          const projector = fresh();
          for (const entry of entries) {
            projector.apply(entry);
            await saved.save(projector);
          }
          expect(projector.digests()).toEqual(digestsAfter(entries));
        }),
        { numRuns: 20 },
      ));

    test('a checkpoint with a flipped bit or cut short is refused; of another format, each is rebuilt beside the others', async () => {
      const [entries] = fc.sample(histories, { numRuns: 1, seed: 7 });
      const saved = await SavedState.make();
      const projector = fresh();
      for (const entry of entries!) projector.apply(entry);
      await saved.save(projector);
      const empty = fresh().digests();
      const refuses = async (): Promise<void> => {
        const target = fresh();
        await expect(saved.restore(target)).rejects.toThrow(DerivedFileError);
        expect(target.digests()).toEqual(empty);
        expect(target.watermark).toBe(0);
      };
      const path = '/d/p/checkpoint';
      const file = (await saved.disk.readFile(path))!;
      for (const at of [0, 9, 40, file.length >>> 2, file.length - 40, file.length - 1]) {
        const flipped = file.slice();
        flipped[at]! ^= 1;
        await saved.disk.replaceFile(path, flipped);
        await refuses();
      }
      await saved.disk.replaceFile(path, file.subarray(0, file.length - 1));
      await refuses();
      await saved.disk.replaceFile(path, file);
      await saved.restore(fresh());
      for (const name of names) {
        const target = fresh();
        Object.defineProperty(target.projection(name), 'formatVersion', { value: 999 });
        await saved.restore(target);
        expect(target.behind).toEqual(names.filter((each) => each === name || target.projection(each).restsOn?.includes(name)));
        const leaves = entries!.length;
        const status = (): LogStatus => ({ leaves }) as LogStatus;
        await target.catchUp({ status, durable: () => Promise.resolve(), read: (from) => iterate(entries!.slice(from)) });
        expect([target.behind, target.watermark, target.digests()]).toEqual([[], leaves, projector.digests()]);
      }
      await expect(Checkpoint.open({ ...saved.home, logId: 'log-2' })).rejects.toThrow('it belongs to another log');
    });
  });
}

const share = fc.integer({ min: 0, max: 1000 }).map((n) => n / 1000);

async function* iterate(entries: readonly CommittedEntry[]): AsyncGenerator<CommittedEntry> {
  yield* entries;
}
