/** What every projection must keep, whatever it derives: one suite, run once for each of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CommittedEntry } from '../../src/log/entry.ts';
import { MemoryDisk } from '../../src/log/memory-disk.ts';
import { type LogIdentity, restoreCheckpoint, writeCheckpoint } from '../../src/projections/checkpoint.ts';
import type { Projector } from '../../src/projections/projector.ts';
import { recut } from './store.ts';

export interface Subject {
  readonly name: string;
  /** A projector that holds the projection, and those that it reads, all empty. */
  fresh(): Projector;
  /** Committed histories that exercise it. */
  readonly histories: fc.Arbitrary<readonly CommittedEntry[]>;
}

const leafHash = (leaf: number): string => `hash of leaf ${leaf}`;
const log: LogIdentity = { logId: 'log-1', leafHash };

export function projectionContract(subject: Subject): void {
  const { name, fresh, histories } = subject;
  const digestAfter = (entries: readonly CommittedEntry[]): string => {
    const projector = fresh();
    for (const entry of entries) projector.apply(entry);
    return projector.digests()[name]!;
  };

  describe(`projection ${name}`, () => {
    test('an empty one has the digest of one that was reset', () => {
      const projector = fresh();
      const empty = projector.digests()[name];
      projector.projection(name).reset();
      expect(projector.digests()[name]).toBe(empty);
    });

    test('reset and replay give the state that live applying gave', () =>
      fc.assert(
        fc.asyncProperty(histories, async (entries) => {
          const projector = fresh();
          for (const entry of entries) projector.apply(entry);
          const live = projector.digests()[name];
          await projector.rebuild(projector.names, iterate(entries));
          expect(projector.digests()[name]).toBe(live);
          expect(digestAfter(entries)).toBe(live);
        }),
      ));

    test('entries of other sizes give the same state', () =>
      fc.assert(
        fc.property(histories, fc.integer({ min: 1, max: 4 }), (entries, rows) => {
          expect(digestAfter(recut(entries, rows))).toBe(digestAfter(recut(entries, 1000)));
        }),
      ));

    test('a checkpoint and the entries after it give the same state', () =>
      fc.assert(
        fc.asyncProperty(
          histories,
          fc.integer({ min: 0, max: 1000 }).map((n) => n / 1000),
          async (entries, share) => {
            const cut = Math.floor(share * entries.length);
            const disk = new MemoryDisk();
            await disk.makeDirectory('/p');
            const before = fresh();
            for (const entry of entries.slice(0, cut)) before.apply(entry);
            for (const each of before.names) await writeCheckpoint(disk, '/p', before, each, log);
            const after = fresh();
            for (const each of after.names) {
              expect(await restoreCheckpoint(disk, '/p', after, each, log)).toMatchObject({ leaves: cut });
            }
            expect(after.digests()[name]).toBe(before.digests()[name]);
            // Everything again: what the checkpoint covers must be passed over, the rest applied.
            for (const entry of entries) after.apply(entry);
            expect(after.digests()[name]).toBe(digestAfter(entries));
          },
        ),
      ));

    test('writing a checkpoint changes nothing', () =>
      fc.assert(
        fc.asyncProperty(histories, async (entries) => {
          const disk = new MemoryDisk();
          await disk.makeDirectory('/p');
          const projector = fresh();
          for (const entry of entries) {
            projector.apply(entry);
            await writeCheckpoint(disk, '/p', projector, name, log);
          }
          expect(projector.digests()[name]).toBe(digestAfter(entries));
        }),
        { numRuns: 20 },
      ));

    test('a checkpoint of another log, of a leaf that the log does not hold, or with a flipped bit is refused', async () => {
      const [entries] = fc.sample(histories, { numRuns: 1, seed: 7 });
      const disk = new MemoryDisk();
      await disk.makeDirectory('/p');
      const projector = fresh();
      for (const entry of entries!) projector.apply(entry);
      await writeCheckpoint(disk, '/p', projector, name, log);
      const empty = fresh().digests()[name];
      const refusal = async (identity: LogIdentity): Promise<unknown> => {
        const target = fresh();
        const answer = await restoreCheckpoint(disk, '/p', target, name, identity);
        expect(target.digests()[name]).toBe(empty);
        expect(target.watermarkOf(name)).toBe(0);
        return answer;
      };
      expect(await refusal({ ...log, logId: 'log-2' })).toBe('it belongs to another log');
      expect(await refusal({ ...log, leafHash: () => 'another' })).toBe('the log does not hold what it stands for');
      expect(await refusal({ ...log, leafHash: () => undefined })).toBe('the log does not hold what it stands for');
      const file = (await disk.readFile(`/p/${name}.checkpoint`))!;
      for (const at of [0, 9, 40, file.length - 40, file.length - 1]) {
        const flipped = file.slice();
        flipped[at]! ^= 1;
        await disk.replaceFile(`/p/${name}.checkpoint`, flipped);
        expect(typeof (await refusal(log))).toBe('string');
      }
    });
  });
}

async function* iterate(entries: readonly CommittedEntry[]): AsyncGenerator<CommittedEntry> {
  yield* entries;
}
