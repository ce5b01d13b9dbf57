import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lastInstantOf } from '../../src/log/files/hash-chain.ts';
import { openCheckpoint } from '../../src/log/tree/checkpoint-note.ts';
import type { CommittedEntry, EntryDraft } from '../../src/log/entries/entry.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import { Gate, RecordingDisk } from './recording-disk.ts';
import { accessDraft, all, context, openLog, origin, plain, rowsDraft, settle, worldOn } from './world.ts';

const kindsOf = (entries: readonly CommittedEntry[]): string[] => entries.map(({ body }) => body.kind);

test('what was acknowledged is replayed after a close, in order and byte for byte', async () => {
  const world = worldOn(new MemoryDisk());
  const first = await openLog(world);
  expect(kindsOf(first.replayed)).toEqual(['genesis']);
  const a = first.log.append([rowsDraft(['a', 'b', 'c'])]);
  const b = first.log.append([accessDraft('ada', 'bob'), rowsDraft(['d'])]);
  expect(await a.acknowledged).toBe('synced');
  expect(await b.acknowledged).toBe('synced');
  const read = await all(first.log.read(0));
  await first.log.close();
  const second = await openLog(world);
  expect(kindsOf(second.replayed)).toEqual(['genesis', 'rows', 'access', 'rows', 'seal']);
  expect(second.replayed.map(({ position }) => position)).toEqual([0, 1, 4, 4, 5]);
  expect(second.replayed.map(({ leaf }) => leaf)).toEqual([0, 1, 2, 3, 4]);
  expect(plain(second.replayed.slice(0, 4))).toEqual(plain(read));
  expect(plain(second.replayed.slice(1, 4))).toEqual(plain([...a.entries, ...b.entries]));
  expect(second.log.status().recovery).toEqual({ cutBytes: 0, cutFrom: null, replayedLeaves: 5 });
  expect(second.log.status()).toMatchObject({
    state: 'open',
    leaves: 5,
    positions: 5,
    durableLeaves: 5,
    files: 1,
    failure: null,
  });
  await second.log.close();
});

test('next() is exactly what the append of this turn gets, whatever the clock does in between', async () => {
  const { log } = await openLog(worldOn(new MemoryDisk()));
  const next = log.next();
  log.basis();
  const { entries } = log.append([rowsDraft(['a', 'b'])], { at: next });
  expect(entries[0]).toMatchObject(next);
  expect(log.next()).toEqual({ position: next.position + 2, time: next.time + 2n });
});

test('a place that lies ahead is free until a reader holds its instant', async () => {
  const world = worldOn(new MemoryDisk());
  const { log } = await openLog(world);
  const { position, time } = log.next();
  const ahead = { position, time: time + 1000n };
  log.append([accessDraft('ada')]);
  log.basis();
  expect(log.claim(ahead)).toBe(true);
  world.clock.nanoseconds = ahead.time;
  // Whoever claims a place writes there within the turn: readers wait behind it until then.
  expect(log.basis().instant).toBe(ahead.time - 1n);
  await Promise.resolve();
  expect(log.basis().instant).toBe(ahead.time);
  expect(log.claim(ahead)).toBe(false);
});

test('an append at a place that is gone fails an assertion and leaves no trace', async () => {
  const { log } = await openLog(worldOn(new MemoryDisk()));
  const stale = log.next();
  log.append([rowsDraft(['a'])]);
  const before = log.status().leaves;
  expect(() => log.append([rowsDraft(['b'])], { at: stale })).toThrow(/the log has moved on/);
  expect(log.status().leaves).toBe(before);
});

test('a draft that cannot be encoded leaves no trace, not even of the drafts before it', async () => {
  const world = worldOn(new MemoryDisk());
  const { log } = await openLog(world);
  const bad: EntryDraft = { context: { ...context, principal: '\ud800' }, body: rowsDraft(['b']).body };
  const next = log.next();
  expect(() => log.append([rowsDraft(['a']), bad])).toThrow(expect.objectContaining({ code: 'REL_INVALID' }));
  expect(log.next()).toEqual(next);
  await log.append([rowsDraft(['c'])]).acknowledged;
  expect(kindsOf(await all(log.read(0)))).toEqual(['genesis', 'rows']);
});

type Action = { do: 'append'; rows: number } | { do: 'access' } | { do: 'basis' } | { do: 'jump'; by: bigint } | { do: 'settle' };
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constant('append' as const), rows: fc.integer({ min: 1, max: 5 }) }),
  fc.constant({ do: 'access' as const }),
  fc.constant({ do: 'basis' as const }),
  fc.record({ do: fc.constant('jump' as const), by: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 9n }) }),
  fc.record({ do: fc.constant('jump' as const), by: fc.bigInt({ min: -5n, max: 5n }) }),
  fc.constant({ do: 'settle' as const }),
);

test('time rises strictly and never reaches an instant that a reader holds, however the clock jumps', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (actions) => {
      const world = worldOn(new MemoryDisk());
      const { log } = await openLog(world);
      const held: { position: number; instant: bigint; placed: number }[] = [];
      const placed: CommittedEntry[] = [];
      for (const step of actions) {
        if (step.do === 'append') {
          placed.push(...log.append([rowsDraft(Array.from({ length: step.rows }, (_, i) => `k${i}`))]).entries);
        } else if (step.do === 'access') placed.push(...log.append([accessDraft('ada')]).entries);
        else if (step.do === 'basis') held.push({ ...log.basis(), placed: placed.length });
        else if (step.do === 'jump') world.clock.nanoseconds += step.by;
        else await settle();
      }
      for (let i = 1; i < placed.length; i++) expect(placed[i]!.time).toBeGreaterThan(lastInstantOf(placed[i - 1]!));
      held.reduce((last, { instant }) => {
        expect(instant).toBeGreaterThanOrEqual(last);
        return instant;
      }, 0n);
      for (const { position, instant, placed: count } of held) {
        // Visible entries are at or below the instant, all others, present and to come, above it.
        for (const [i, entry] of placed.entries()) {
          if (entry.positions > 0 && entry.position < position) expect(lastInstantOf(entry)).toBeLessThanOrEqual(instant);
          if (i >= count || (entry.positions > 0 && entry.position >= position)) expect(entry.time).toBeGreaterThan(instant);
        }
      }
      await log.close();
    }),
    { numRuns: 60 },
  );
});

test('a snapshot sees whole durable entries only, and listeners hear of each step in the turn in which it is true', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk));
  const heard: number[] = [];
  log.onVisible(({ position }) => {
    expect(log.basis().position).toBe(position);
    heard.push(position);
  });
  const gate = new Gate();
  disk.before = (step) => (step.startsWith('fsync') ? gate.wait() : undefined);
  const { entries, acknowledged } = log.append([rowsDraft(['a', 'b', 'c'])]);
  await gate.arrived;
  expect(log.basis()).toEqual({ position: 1, instant: entries[0]!.time - 1n });
  expect(heard).toEqual([]);
  gate.release();
  await acknowledged;
  expect(heard).toEqual([4]);
  expect(log.basis().instant).toBeGreaterThanOrEqual(entries[0]!.time + 2n);
});

test('after a restart with the clock set back, time goes on from the last entry', async () => {
  const world = worldOn(new MemoryDisk());
  const first = await openLog(world);
  const { entries } = first.log.append([rowsDraft(['a', 'b'])]);
  await first.log.close();
  world.clock.nanoseconds -= 3_600_000_000_000n;
  const { log } = await openLog(world);
  expect(log.next().time).toBeGreaterThan(entries[0]!.time + 1n);
  expect(log.next().time).toBeLessThan(entries[0]!.time + 100n);
});

test('a clock at the end of time fails an assertion instead of reaching FOREVER', async () => {
  const world = worldOn(new MemoryDisk());
  const { log } = await openLog(world);
  world.clock.nanoseconds = FOREVER - 1n;
  expect(() => log.append([rowsDraft(['a', 'b'])])).toThrow(/out of time/);
});

test('the log seals itself after a second without writes, once, and signs what it sealed', async () => {
  const world = worldOn(new MemoryDisk());
  const own: CommittedEntry[] = [];
  const { log, keyring } = await openLog(world, { onEntry: (entry) => own.push(entry) });
  await log.append([rowsDraft(['a'])]).acknowledged;
  await world.clock.advance(600);
  await log.append([rowsDraft(['b'])]).acknowledged;
  await world.clock.advance(600);
  expect(own).toEqual([]);
  await world.clock.advance(400);
  expect(own.map(({ body, leaf }) => [body.kind, leaf])).toEqual([['seal', 3]]);
  const note = Buffer.from((await world.disk.readFile('/data/log/checkpoint'))!).toString();
  expect(openCheckpoint(note, origin, keyring.publicKeys)).toEqual(log.head());
  await world.clock.advance(10_000);
  expect(own.length).toBe(1);
  await log.close();
  expect(own.length).toBe(1);
});

test('close drains, seals and refuses what comes after', async () => {
  const world = worldOn(new MemoryDisk());
  const { log } = await openLog(world);
  const pending = log.append([rowsDraft(['a'])]);
  const closed = log.close();
  expect(log.status().state).toBe('draining');
  expect(() => log.append([rowsDraft(['b'])])).toThrow(expect.objectContaining({ code: 'REL_UNAVAILABLE' }));
  await closed;
  expect(await pending.acknowledged).toBe('synced');
  expect(log.status().state).toBe('closed');
  expect(kindsOf(await all(log.read(0)))).toEqual(['genesis', 'rows', 'seal']);
});

test('read gives what was written when it was called, from the leaf asked for', async () => {
  const { log } = await openLog(worldOn(new MemoryDisk()));
  for (const key of ['a', 'b', 'c']) await log.append([rowsDraft([key])]).acknowledged;
  const source = log.read(2);
  await log.append([rowsDraft(['d'])]).acknowledged;
  expect((await all(source)).map(({ leaf }) => leaf)).toEqual([2, 3]);
  expect(await all(log.read(99))).toEqual([]);
});

test('heads of one log are consistent: a later one covers what an earlier one did', async () => {
  const world = worldOn(new MemoryDisk());
  const { log } = await openLog(world);
  await log.append([rowsDraft(['a'])]).acknowledged;
  const before = log.head();
  await log.close();
  const { log: again } = await openLog(world);
  expect(again.head().size).toBe(before.size + 1);
  expect(again.head()).toEqual(log.head());
});
