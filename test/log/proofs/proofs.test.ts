/** What a log offers to proofs: entries found by leaf and position, heads that are stored before they are handed out. */
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { openCheckpoint } from '../../../src/log/tree/checkpoint-note.ts';
import type { EntryDraft, RowsBody } from '../../../src/log/entries/entry.ts';
import type { DecodedRows, RowSecrets } from '../../../src/log/entries/rows-codec.ts';
import { leafHashOf } from '../../../src/log/entries/entry-codec.ts';
import type { LocalLog } from '../../../src/log/log.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { proveRow } from '../../../src/log/proofs/row-proof.ts';
import { verifierPath } from '../../proofs/judges.ts';
import { accessDraft, directory, openLog, origin, rowsDraft, worldOn } from '../world.ts';

const verifier = (await import(verifierPath)) as {
  rootFromPath(leaf: Buffer, index: number, size: number, path: Buffer[]): Uint8Array | null;
};
const limits = { fileBytesMax: 4096, preallocateBytes: 512 };
const checkpoint = `${directory}/log/checkpoint`;

/** Entries of every width, access records between them. */
const drafts: readonly EntryDraft[] = Array.from({ length: 60 }, (_, i) =>
  i % 4 === 3 ? accessDraft('ada') : rowsDraft(Array.from({ length: 1 + (i % 6) }, (__, row) => `k${i}.${row}`)),
);

async function fill(log: LocalLog): Promise<void> {
  for (const draft of drafts) await log.append([draft], { sync: true }).acknowledged;
}

async function expectFound(log: LocalLog): Promise<void> {
  const { leaves, positions } = log.status();
  let position = 0;
  for (let leaf = 0; leaf < leaves; leaf++) {
    const stored = (await log.proofs.entry({ leaf }))!;
    expect([stored.facts.leaf, stored.facts.position]).toEqual([leaf, position]);
    expect(leafHashOf(stored.leaf)).toEqual(new Uint8Array(log.proofs.leafHash(leaf)));
    for (let i = 0; i < stored.facts.positions; i++) {
      expect((await log.proofs.entry({ position: position + i }))!.facts.leaf).toBe(leaf);
    }
    expect(stored.open().entry.leaf).toBe(leaf);
    position += stored.facts.positions;
  }
  expect(position).toBe(positions);
  expect(await log.proofs.entry({ leaf: leaves })).toBeUndefined();
  expect(await log.proofs.entry({ position: positions })).toBeUndefined();
}

describe('an entry', () => {
  test('is found by its leaf and by each of its positions, over many files, live and after a restart', async () => {
    const world = worldOn(new MemoryDisk());
    const { log } = await openLog(world, { limits });
    await fill(log);
    expect(log.status().files).toBeGreaterThan(3);
    await expectFound(log);
    await log.close();
    const { log: again } = await openLog(world, { limits });
    await again.append([rowsDraft(['after'])]).acknowledged;
    await expectFound(again);
    await again.close();
  });

  test('in a large file is reached without reading what lies before', async () => {
    const disk = new MemoryDisk();
    let read = 0;
    const counting = new Proxy(disk, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        if (name !== 'open') return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        return async (...args: Parameters<MemoryDisk['open']>) => {
          const file = await target.open(...args);
          return new Proxy(file, {
            get(inner, method) {
              const call = Reflect.get(inner, method) as unknown;
              if (method !== 'read') return typeof call === 'function' ? (call.bind(inner) as unknown) : call;
              return async (into: Uint8Array, offset: number) => {
                const bytes = await inner.read(into, offset);
                read += bytes;
                return bytes;
              };
            },
          });
        };
      },
    });
    const { log } = await openLog(worldOn(counting));
    const wide = rowsDraft(Array.from({ length: 40 }, (_, i) => `a key of some length ${i}`));
    for (let i = 0; i < 400; i++) await log.append([wide]).acknowledged;
    expect(log.status().bytes).toBeGreaterThan(600_000);
    read = 0;
    expect((await log.proofs.entry({ leaf: 350 }))!.facts.leaf).toBe(350);
    expect(read).toBeLessThan(300_000);
    await log.close();
  });
});

describe('entries', () => {
  class CountingDisk extends MemoryDisk {
    reads = 0;

    override open(...args: Parameters<MemoryDisk['open']>): ReturnType<MemoryDisk['open']> {
      if (args[1] === 'read') this.reads++;
      return super.open(...args);
    }
  }

  async function leavesOf(log: LocalLog, positions: readonly number[]): Promise<number[]> {
    const leaves: number[] = [];
    for await (const { facts, leaf, open } of log.proofs.entries(positions)) {
      expect(leafHashOf(leaf)).toEqual(new Uint8Array(log.proofs.leafHash(facts.leaf)));
      expect(open().entry.leaf).toBe(facts.leaf);
      leaves.push(facts.leaf);
    }
    return leaves;
  }

  test('that cover positions come once each, in order, over many files, however they lie in frames', async () => {
    const { log } = await openLog(worldOn(new MemoryDisk()), { limits });
    for (let i = 0; i < drafts.length; ) {
      const end = i + 1 + (i % 7);
      await log.append(drafts.slice(i, end), { sync: true }).acknowledged;
      i = end;
    }
    const { positions, files } = log.status();
    expect(files).toBeGreaterThan(3);
    for (const step of [1, 2, 3, 7, 50, positions]) {
      for (const from of [0, 1, step - 1]) {
        const asked: number[] = [];
        for (let position = from; position < positions; position += step) asked.push(position);
        const expected: number[] = [];
        for (const position of asked) {
          const { leaf } = (await log.proofs.entry({ position }))!.facts;
          if (expected.at(-1) !== leaf) expected.push(leaf);
        }
        expect(await leavesOf(log, asked)).toEqual(expected);
      }
    }
    // What was never written is passed over.
    const last = (await log.proofs.entry({ position: positions - 1 }))!.facts.leaf;
    expect(await leavesOf(log, [positions - 1, positions, positions + 9])).toEqual([last]);
    expect(await leavesOf(log, [positions])).toEqual([]);
    await log.close();
  });

  test('of one frame are read together', async () => {
    const disk = new CountingDisk();
    const { log } = await openLog(worldOn(disk));
    await log.append(drafts, { sync: true }).acknowledged;
    disk.reads = 0;
    const rows = drafts.filter(({ body }) => body.kind === 'rows');
    const { positions } = log.status();
    const all = Array.from({ length: positions - 1 }, (_, i) => i + 1);
    // The first position is the log’s own.
    expect(await leavesOf(log, all)).toHaveLength(rows.length);
    expect(disk.reads).toBe(1);
    await log.close();
  });
});

describe('a head', () => {
  test('is in the checkpoint file before anybody gets it, and covers nothing that is not durable', async () => {
    const disk = new MemoryDisk();
    const { log, keyring } = await openLog(worldOn(disk), { walSync: 'interval', sealIdleMs: 0 });
    await log.append([rowsDraft(['a'])]).acknowledged;
    const { leaves } = log.status();
    const head = await log.proofs.head(leaves);
    expect(openCheckpoint(head.note, origin, keyring.publicKeys)).toEqual({ size: leaves, root: log.proofs.root(leaves) });
    expect(Buffer.from((await disk.readFile(checkpoint))!).toString()).toBe(head.note);
    expect(await log.proofs.head(1)).toBe(head);

    // Access records are written and not fsynced: a head that covers one makes them durable first.
    await log.append([accessDraft('ada')]).written;
    expect(log.status().durableLeaves).toBe(leaves);
    const later = await log.proofs.head(leaves + 1);
    expect(later.size).toBeGreaterThan(leaves);
    expect(log.status().durableLeaves).toBe(later.size);
    expect(Buffer.from((await disk.readFile(checkpoint))!).toString()).toBe(later.note);
    await log.close();
  });

  test('leaves out what is written and not durable, unless it is asked to cover it', async () => {
    const { log } = await openLog(worldOn(new MemoryDisk()), { walSync: 'interval', sealIdleMs: 0 });
    await log.append([rowsDraft(['a'])]).acknowledged;
    await log.append([accessDraft('ada')]).written;
    expect([log.status().leaves, log.status().durableLeaves]).toEqual([3, 2]);
    expect((await log.proofs.head(2)).size).toBe(2);
    expect(log.status().durableLeaves).toBe(2);
    await log.close();
  });

  test('that was handed out is one that recovery holds the log to', async () => {
    const disk = new MemoryDisk();
    const world = worldOn(disk);
    const { log } = await openLog(world, { sealIdleMs: 0 });
    await log.append([rowsDraft(['a'])]).acknowledged;
    const before = log.status().bytes;
    await log.append([rowsDraft(['b'])]).acknowledged;
    await log.proofs.head(log.status().leaves);
    // The process dies; the last frame goes with it.
    const file = await disk.open(`${directory}/log/00000000.log`, 'write');
    await file.truncate(before);
    await expect(openLog(world)).rejects.toThrow(/the signed checkpoint covers 3 leaves/);
  });

  test('of many that ask at once is one', async () => {
    const { log } = await openLog(worldOn(new MemoryDisk()), { sealIdleMs: 0 });
    await log.append([rowsDraft(['a'])]).acknowledged;
    const heads = await Promise.all(Array.from({ length: 20 }, () => log.proofs.head(2)));
    expect(new Set(heads).size).toBe(1);
    await log.close();
  });

  test('never goes back: seals and demands take turns', async () => {
    const disk = new MemoryDisk();
    const { log } = await openLog(worldOn(disk), { sealIdleMs: 0 });
    let size = 0;
    for (let i = 0; i < 20; i++) {
      await log.append([rowsDraft([`k${i}`])]).acknowledged;
      const [head] = await Promise.all([log.proofs.head(log.status().leaves), log.seal()]);
      const stored = Number(
        Buffer.from((await disk.readFile(checkpoint))!)
          .toString()
          .split('\n')[1],
      );
      expect(head.size).toBeGreaterThan(size);
      expect(stored).toBeGreaterThanOrEqual(head.size);
      size = stored;
    }
    await log.close();
  });

  test('of an earlier size is that of the log as it was', async () => {
    const { log, keyring } = await openLog(worldOn(new MemoryDisk()), { sealIdleMs: 0 });
    await fill(log);
    for (const size of [1, 2, 17, 61]) {
      expect(openCheckpoint((await log.proofs.headAt(size)).note, origin, keyring.publicKeys)).toEqual({
        size,
        root: log.proofs.root(size),
      });
    }
    await log.close();
  });

  test('that can not be stored is not given, and the log stops', async () => {
    const disk = new MemoryDisk();
    let broken = false;
    const failing = new Proxy(disk, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        if (name === 'replaceFile' && broken) return () => Promise.reject(new Error('disk full'));
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const { log } = await openLog(worldOn(failing), { sealIdleMs: 0 });
    const known = await log.proofs.head(1);
    await log.append([rowsDraft(['a'])]).acknowledged;
    broken = true;
    await expect(log.proofs.head(2)).rejects.toThrow(ServiceError);
    expect(log.status().state).toBe('failed');
    await expect(log.proofs.head(2)).rejects.toThrow(/accepts no writes/);
    expect(await log.proofs.head(1)).toBe(known);
    await log.close();
  });
});

describe('a row', () => {
  test('of each width of entry is proven against the root in the leaf', async () => {
    const { log } = await openLog(worldOn(new MemoryDisk()), { sealIdleMs: 0 });
    for (const rows of [1, 2, 3, 8, 700]) {
      const { entries } = log.append([rowsDraft(Array.from({ length: rows }, (_, i) => `k${i}`))], { sync: true });
      await log.proofs.head(entries[0]!.leaf + 1);
      const stored = (await log.proofs.entry({ leaf: entries[0]!.leaf }))!;
      const { parts } = stored.open();
      for (const index of new Set([0, Math.floor(rows / 2), rows - 1])) {
        const proof = (await proveRow(stored.facts, parts, index))!;
        const root = verifier.rootFromPath(
          Buffer.from(proof.rowHash),
          index,
          rows,
          proof.path.map((hash) => Buffer.from(hash)),
        );
        expect([proof.pk, Array.from(root ?? [])]).toEqual([`k${index}`, Array.from(stored.facts.rowsRoot)]);
      }
    }
    await log.close();
  });

  test('beside dropped ones is proven all the same; a dropped one is not', async () => {
    const { log } = await openLog(worldOn(new MemoryDisk()), { sealIdleMs: 0 });
    const { entries } = log.append([rowsDraft(['a', 'b', 'c'])], { sync: true });
    await log.proofs.head(2);
    const stored = (await log.proofs.entry({ leaf: entries[0]!.leaf }))!;
    const { parts } = stored.open();
    const whole = (await proveRow(stored.facts, parts, 1))!;
    const salts = await Promise.all([0, 1, 2].map(async (row) => (await proveRow(stored.facts, parts, row))!));
    const without = {
      salts: 'explicit',
      bytes: Buffer.concat([salts[1]!.salt, salts[2]!.salt]),
      dropped: new Map([[0, new Uint8Array(salts[0]!.rowHash)]]),
    } as const;
    const body = { ...rowsDraft(['', 'b', 'c']).body, dropped: [0] } as RowsBody;
    const left = (secrets: RowSecrets): DecodedRows[] => [{ body, secrets, sealed: null }];
    expect(await proveRow(stored.facts, left(without), 1)).toEqual(whole);
    expect(await proveRow(stored.facts, left(without), 0)).toBeNull();
    const wrong = { ...without, dropped: new Map([[0, new Uint8Array(32)]]) };
    await expect(proveRow(stored.facts, left(wrong), 1)).rejects.toThrow(/do not give the root/);
    await log.close();
  });
});
