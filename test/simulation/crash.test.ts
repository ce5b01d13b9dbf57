/**
 * No crash loses an acknowledged entry. `npm run simulate` goes further with the same states. The canaries are logs that
 * break one promise each: a simulation that lets them pass shows nothing.
 */
import { describe, expect, it } from 'vitest';
import type { Disk } from '../../src/log/disk/disk.ts';
import type { Appended, LogStore } from '../../src/log/log-store.ts';
import { CrashSimulation } from './crash.ts';
import { expectNoLoss } from './crash-states.ts';
import { FaultyDisk } from './faulty-disk.ts';
import { directory, openLocalLog } from './subject.ts';
import type { OpenLog } from './workload.ts';

describe('a log that was stopped anywhere', () => {
  it('opens with all that was acknowledged and nothing that was refused: odd seeds', { timeout: 900_000 }, () => expectNoLoss(1));

  it('lives the same life again under the same seed', async () => {
    const run = async (): Promise<unknown> => {
      const simulation = new CrashSimulation({ openLog: openLocalLog, directory });
      await simulation.run(3, 300);
      return { states: simulation.states, points: simulation.crashPoints, marks: simulation.marks };
    };
    expect(await run()).toEqual(await run());
  });
});

describe('canaries: broken logs that the simulation must catch', () => {
  it('one that acknowledges before the fsync', async () => {
    await expectCaught(async (world) => {
      const log = await openLocalLog(world);
      return overriding(log, {
        append: (drafts, options): Appended => ({ ...log.append(drafts, options), acknowledged: Promise.resolve('synced') }),
      });
    });
  });

  it('one whose directories are never synced', async () => {
    await expectCaught((world) => openLocalLog({ ...world, disk: withoutStep(world.disk, 'syncDirectory') }));
  });

  it('one that shows what is not durable', async () => {
    await expectCaught(async (world) => {
      const log = await openLocalLog(world);
      let tell: ((basis: ReturnType<LogStore['basis']>) => void) | null = null;
      return overriding(log, {
        onVisible: (listener) => void (tell = listener),
        append: (drafts, options): Appended => {
          const appended = log.append(drafts, options);
          const last = appended.entries.at(-1)!;
          void appended.written.then(() => tell?.({ position: last.position + last.positions, instant: last.time }));
          return appended;
        },
      });
    });
  });

  it('one that hands out entries that nobody submitted', async () => {
    await expectCaught(async (world) => {
      const log = await openLocalLog(world);
      return overriding(log, {
        read: async function* (fromLeaf) {
          for await (const entry of log.read(fromLeaf)) {
            yield entry;
            if (entry.body.kind === 'rows') yield entry;
          }
        },
      });
    });
  });
});

async function expectCaught(openLog: OpenLog): Promise<void> {
  const simulation = new CrashSimulation({ openLog, directory });
  for (let seed = 1; seed < 20 && simulation.failures.length === 0; seed++) await simulation.run(seed, 5000);
  expect(simulation.failures).not.toEqual([]);
}

function overriding(log: LogStore, methods: Partial<LogStore>): LogStore {
  return {
    status: () => log.status(),
    next: () => log.next(),
    claim: (place) => log.claim(place),
    basis: () => log.basis(),
    append: (drafts, options) => log.append(drafts, options),
    read: (fromLeaf) => log.read(fromLeaf),
    onVisible: (listener) => log.onVisible(listener),
    head: () => log.head(),
    proofs: log.proofs,
    seal: () => log.seal(),
    get acknowledged() {
      return log.acknowledged;
    },
    savedState: () => log.savedState(),
    durable: (leaves) => log.durable(leaves),
    redact: (...asked) => log.redact(...asked),
    close: () => log.close(),
    ...methods,
  };
}

/** The same disk, on which one kind of call does nothing. */
function withoutStep(disk: FaultyDisk, method: keyof Disk): FaultyDisk {
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === method) return () => Promise.resolve();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
