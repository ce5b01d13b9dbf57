/** What the simulation once found, as short as it can be told. */
import { describe, expect, it } from 'vitest';
import type { Appended, LogStore } from '../../src/log/log-store.ts';
import { crashImage } from './crash-image.ts';
import { contextOf, draftsFor, rowsBody } from './drafts.ts';
import { FaultyDisk, type World } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';
import { directory, openLocalLog } from './subject.ts';
import { drive } from './workload.ts';
import { SimulatedClock, settle } from './world.ts';

const clock = new SimulatedClock();

function open(disk: FaultyDisk): Promise<LogStore> {
  return openLocalLog({ disk, clock, random: new Seeded(disk.steps), walSync: 'interval', fileBytes: 1 << 16 });
}

function appendRows(log: LogStore, number = 0): Appended {
  return log.append([{ context: contextOf(0, number), body: rowsBody(new Seeded(number), number) }]);
}

/** Of reads alone: it is written, and waits for the fsync of somebody else. */
function appendAccess(log: LogStore): Appended {
  const random = new Seeded(0);
  for (let i = 0; ; i++) {
    const drafts = draftsFor(random, 0, i);
    if (drafts.every(({ body }) => body.kind === 'access')) return log.append(drafts);
  }
}

describe('the log', { timeout: 10_000 }, () => {
  it('refuses an append that was being written when something else failed, instead of letting it wait for ever', async () => {
    let access: Promise<unknown> | null = null;
    let release!: () => void;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const world: World = {
      turn: async ({ kind, path }) => {
        if (access && kind === 'write' && path.endsWith('.log')) await held;
        if (kind !== 'create' || !path.endsWith('checkpoint.tmp') || !armed) return;
        access = appendAccess(log).acknowledged;
        for (let i = 0; i < 5; i++) await settle();
      },
      beforeStep: ({ path, kind }) =>
        armed && kind === 'create' && path.endsWith('checkpoint.tmp') ? { kind: 'error', code: 'EIO' } : undefined,
    };
    let armed = false;
    const log = await open(new FaultyDisk(world));
    await appendRows(log).acknowledged;
    armed = true;
    await expect(log.seal()).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    release();
    await expect(access).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  });

  it('seals what was written while a seal was', async () => {
    let late: Promise<unknown> | null = null;
    const world: World = {
      turn: async ({ kind, path }) => {
        if (kind !== 'rename' || !path.endsWith('checkpoint') || !armed) return;
        armed = false;
        const appended = appendAccess(log);
        late = appended.acknowledged;
        await appended.written;
      },
    };
    let armed = false;
    const log = await open(new FaultyDisk(world));
    await appendRows(log).acknowledged;
    armed = true;
    while (armed) {
      clock.advance();
      await settle();
    }
    expect(await drive(late!, clock)).toBe(true);
    await expect(late).resolves.toBe('synced');
  });

  it('keeps its keys when a process dies between naming their file and making the name durable', async () => {
    const first = new FaultyDisk({ beforeStep: ({ kind }) => void (kind === 'syncDirectory' && first.powerOff()) });
    await expect(open(first)).rejects.toMatchObject({ code: 'EPOWER' });
    const revived = FaultyDisk.afterKill(first.state());
    await appendRows(await open(revived)).acknowledged;
    const log = await open(new FaultyDisk({}, crashImage(revived.state(), 'none')));
    expect(log.next().position).toBeGreaterThan(1);
  });

  it('keeps a file that a dead process had listed and whose listing was not durable', async () => {
    const paths: string[] = [];
    const small = { clock, random: new Seeded(1), walSync: 'interval', fileBytes: 1500 } as const;
    const first: FaultyDisk = new FaultyDisk({
      beforeStep: ({ kind, path }) => {
        paths.push(path);
        // The manifest that names file 1 is renamed, and the directory not synced yet.
        const listed = paths.includes(`${directory}/log/00000001.log`) && paths.at(-2) === `${directory}/log/manifest`;
        if (kind === 'syncDirectory' && listed) first.powerOff();
      },
    });
    const log = await openLocalLog({ ...small, disk: first });
    let written = 0;
    while (written < 20 && log.status().state === 'open') {
      await appendRows(log, written++).acknowledged.catch(() => undefined);
      // With everything under a signed head, the next opening has no other reason to touch the directory.
      await log.seal().catch(() => undefined);
    }
    const revived = FaultyDisk.afterKill(first.state());
    const second = await openLocalLog({ ...small, disk: revived });
    await appendRows(second, 99).acknowledged;
    const { position } = second.next();
    const third = await openLocalLog({ ...small, disk: new FaultyDisk({}, crashImage(revived.state(), 'none')) });
    expect(third.status().files).toBeGreaterThan(1);
    expect(third.next().position).toBe(position);
  });

  it('writes again, before it goes on, what a failed fsync had dropped from the page cache', async () => {
    let failing = false;
    const first = new FaultyDisk({
      beforeStep: ({ kind, path }) =>
        failing && kind === 'sync' && path.endsWith('.log') ? { kind: 'error', code: 'EIO' } : undefined,
    });
    const log = await open(first);
    await appendRows(log).acknowledged;
    failing = true;
    await expect(appendRows(log, 1).acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    const revived = FaultyDisk.afterKill(first.state());
    const second = await open(revived);
    await appendRows(second, 2).acknowledged;
    const third = await open(new FaultyDisk({}, crashImage(revived.state(), 'none')));
    expect(third.next().position).toBe(second.next().position);
  });
});
