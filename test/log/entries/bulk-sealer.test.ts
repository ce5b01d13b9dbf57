/**
 * Bodies sealed beside the event loop: the same leaves, payloads and files as in the calling turn, in the same order,
 * whoever seals them and however long it takes.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SealRequest } from '../../../src/log/entries/body-sealer.ts';
import { type BulkOptions, BulkSealer } from '../../../src/log/entries/bulk-sealer.ts';
import type { EntryDraft, RowsBody } from '../../../src/log/entries/entry.ts';
import type { LocalLog } from '../../../src/log/log.ts';
import { inlineWorker, type StartWorker, threadWorker } from '../../../src/log/threads/workers.ts';
import { partsBody, rowsBody } from '../arbitrary.ts';
import { RecordingDisk } from '../recording-disk.ts';
import { partsDraft } from '../parts.ts';
import { accessDraft, all, context, directory, openLog, plain, rowsDraft, settle, worldOn } from '../world.ts';

const keys = (count: number, prefix = 'k'): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/** A worker whose replies come when the test says so, in order. */
class HeldWorker {
  readonly asked: SealRequest[] = [];
  readonly #replies: (() => void)[] = [];
  ended = false;

  readonly start: StartWorker = (job, data) => {
    const inner = inlineWorker(job, data);
    return {
      ask: (request) => {
        this.asked.push(request as SealRequest);
        return new Promise((resolve, reject) => {
          this.#replies.push(() => void inner.ask(request).then(resolve, reject));
          this.#failures.push(reject);
        });
      },
      end: async () => {
        this.ended = true;
      },
    };
  };
  readonly #failures: ((cause: unknown) => void)[] = [];

  reply(): void {
    this.#failures.shift();
    this.#replies.shift()!();
  }

  fail(cause: unknown): void {
    this.#replies.shift();
    this.#failures.shift()!(cause);
  }
}

async function files(disk: RecordingDisk): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of await disk.list(`${directory}/log`))
    found[name] = Buffer.from((await disk.readFile(`${directory}/log/${name}`))!).toString('latin1');
  return found;
}

/** One append after the other, each acknowledged before the next; what the disk holds in the end. */
async function lived(appends: readonly (readonly EntryDraft[])[], bulk?: BulkOptions): Promise<Record<string, string>> {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), bulk ? { bulk } : {});
  for (const drafts of appends) await log.append(drafts, { sync: true }).acknowledged;
  await log.close();
  return files(disk);
}

test('the same files, whoever seals, on any history', async () => {
  const draft = fc.oneof(
    fc.oneof(rowsBody, partsBody).map((body): EntryDraft => ({ context, body })),
    fc.constantFrom(accessDraft('ada'), accessDraft('bob', 'eve')),
  );
  const history = fc.array(fc.array(draft, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(history, async (appends) => {
      const expected = await lived(appends);
      expect(await lived(appends, { startWorker: null, rowsMin: 1 })).toEqual(expected);
      expect(await lived(appends, { startWorker: inlineWorker, rowsMin: 2 })).toEqual(expected);
    }),
    { numRuns: 40 },
  );
});

test('the same files from a thread, bodies of any size', async () => {
  const appends = [300, 1, 20_000, 256, 255, 3_000].map((count, i) => [rowsDraft(keys(count), i)]);
  appends.push([partsDraft(rowsDraft(keys(3)), rowsDraft(keys(2_000)), rowsDraft(keys(300)))]);
  const expected = await lived(appends);
  expect(await lived(appends, { startWorker: threadWorker, rowsMin: 256 })).toEqual(expected);
  expect(await lived(appends, { startWorker: null, rowsMin: 256 })).toEqual(expected);
});

test('a few rows are sealed beside the event loop where their cells are large', () => {
  const sealer = new BulkSealer(
    { startWorker: null, rowsMin: 256 },
    () => undefined,
    () => undefined,
  );
  const body = (keys: readonly string[]): RowsBody => rowsDraft(keys).body as RowsBody;
  expect(sealer.takes(body(['k']))).toBe(false);
  expect(sealer.takes(body(['x'.repeat(600_000)]))).toBe(true);
  expect(sealer.takes(body(keys(256)))).toBe(true);
});

test('the same entries when all are under way at once, small ones between large ones', async () => {
  const appends = Array.from({ length: 24 }, (_, i) => [
    i % 3 === 0 ? rowsDraft(keys(300 + i * 7, `${i}-`)) : i % 3 === 1 ? rowsDraft([`${i}`]) : accessDraft(`p${i}`),
  ]);
  const leavesOf = async (bulk?: BulkOptions): Promise<unknown> => {
    const { log } = await openLog(worldOn(new RecordingDisk()), bulk ? { bulk } : {});
    const order: number[] = [];
    const all = appends.map((drafts, i) => log.append(drafts).acknowledged.then(() => order.push(i)));
    await Promise.all(all);
    expect(order).toEqual(order.map((_, i) => i));
    const hashes = Array.from({ length: log.status().leaves }, (_, leaf) => hex(log.proofs.leafHash(leaf)));
    await log.close();
    return [hashes, hex(log.lastLeafHash)];
  };
  const expected = await leavesOf();
  for (const startWorker of [null, inlineWorker, threadWorker])
    expect(await leavesOf({ startWorker, rowsMin: 256 })).toEqual(expected);
});

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

async function held(): Promise<{ log: LocalLog; worker: HeldWorker; disk: RecordingDisk }> {
  const disk = new RecordingDisk();
  const worker = new HeldWorker();
  const { log } = await openLog(worldOn(disk), { bulk: { startWorker: worker.start, rowsMin: 2 } });
  disk.take();
  return { log, worker, disk };
}

test('a small entry waits for the large one before it, and is neither written nor visible meanwhile', async () => {
  const { log, worker, disk } = await held();
  const settled: string[] = [];
  const large = log.append([rowsDraft(['a', 'b'])]).acknowledged.then(() => settled.push('large'));
  const small = log.append([rowsDraft(['c'])]).acknowledged.then(() => settled.push('small'));
  await settle();
  expect([settled, disk.take(), log.basis().position, log.status().leaves]).toEqual([[], [], 1, 3]);
  worker.reply();
  await Promise.all([large, small]);
  expect([settled, log.basis().position]).toEqual([['large', 'small'], 4]);
});

test('what comes before a large entry does not wait for it', async () => {
  const { log, worker } = await held();
  const small = log.append([rowsDraft(['c'])]);
  const large = log.append([rowsDraft(['a', 'b'])]);
  expect(await small.acknowledged).toBe('synced');
  expect(log.basis().position).toBe(2);
  worker.reply();
  expect(await large.acknowledged).toBe('synced');
});

test('a worker that fails fails the log: nothing after it is written, all that wait are refused', async () => {
  const { log, worker, disk } = await held();
  const before = log.append([rowsDraft(['x'])]);
  const appends = [log.append([rowsDraft(['a', 'b'])]), log.append([rowsDraft(['c'])]), log.append([rowsDraft(['d', 'e'])])];
  await before.acknowledged;
  disk.take();
  worker.fail(new Error('the thread is gone'));
  for (const { acknowledged, written } of appends) {
    await expect(acknowledged).rejects.toThrow('the log has failed');
    await expect(written).rejects.toThrow('the log has failed');
  }
  expect(log.status()).toMatchObject({ state: 'failed', failure: 'the thread is gone', durableLeaves: 2 });
  expect(() => log.append([rowsDraft(['f'])])).toThrow('the log has failed');
  await log.close();
  expect(disk.take()).toEqual([expect.stringContaining('close')]);
  expect(worker.ended).toBe(true);
});

test('a seal does not wait for ever: what is still being sealed is then sealed in its turn', async () => {
  const { log, worker } = await held();
  const first = log.append([rowsDraft(['a', 'b'])]);
  const sealing = log.seal();
  await settle();
  // Comes while the seal waits for the first.
  const second = log.append([rowsDraft(['c', 'd'])]);
  worker.reply();
  await sealing;
  expect(await Promise.all([first.acknowledged, second.acknowledged])).toEqual(['synced', 'synced']);
  expect(worker.asked.length).toBe(2);
  worker.reply();
  await settle();
  expect(plain(await all(log.read(0))).length).toBe(4);
  await log.close();
});

test('a head and the hash of a leaf are of all that was placed, sealed or not', async () => {
  const { log, worker } = await held();
  const { log: inTurn } = await openLog(worldOn(new RecordingDisk()));
  const appended = log.append([rowsDraft(['a', 'b'])]);
  inTurn.append([rowsDraft(['a', 'b'])]);
  expect(hex(log.proofs.leafHash(1))).toBe(hex(inTurn.proofs.leafHash(1)));
  expect(log.head()).toEqual(inTurn.head());
  expect(await appended.acknowledged).toBe('synced');
  // The reply that comes too late changes nothing.
  worker.reply();
  await settle();
  expect(log.head()).toEqual(inTurn.head());
  await log.append([rowsDraft(['c'])]).acknowledged;
  await log.close();
});

test('an append that can not be encoded leaves no trace, large bodies in it neither', async () => {
  const { log, worker } = await held();
  const before = log.head();
  const bad = rowsDraft(['x']);
  const drafts = [rowsDraft(['a', 'b']), { ...bad, context: { ...context, principal: 'x'.repeat(70_000) } }];
  expect(() => log.append(drafts)).toThrow('exceed 64 KiB');
  expect([log.head(), worker.asked]).toEqual([before, []]);
  const appended = log.append([rowsDraft(['a', 'b'])]);
  worker.reply();
  expect(await appended.acknowledged).toBe('synced');
});

test('slots are used again once their payload is written, and never while somebody works in them', async () => {
  const { log, worker } = await held();
  const appended = Array.from({ length: 3 }, (_, i) => log.append([rowsDraft(keys(2, `${i}`))]));
  expect(new Set(worker.asked.map(({ body }) => body.buffer)).size).toBe(3);
  for (let i = 0; i < 3; i++) worker.reply();
  await Promise.all(appended.map(({ acknowledged }) => acknowledged));
  const again = log.append([rowsDraft(keys(2))]);
  expect(worker.asked.slice(0, 3).map(({ body }) => body.buffer)).toContain(worker.asked[3]!.body.buffer);
  // Sealed in this turn while the worker still has it: the slot stays with the worker.
  log.head();
  await again.acknowledged;
  const slots = Array.from({ length: 4 }, () => log.append([rowsDraft(keys(2))]));
  expect(worker.asked.slice(4).map(({ body }) => body.buffer)).not.toContain(worker.asked[3]!.body.buffer);
  for (let i = 0; i < 5; i++) worker.reply();
  await Promise.all(slots.map(({ acknowledged }) => acknowledged));
  await log.close();
});

test('without a worker no slice of a large body is long', async () => {
  const { log } = await openLog(worldOn(new RecordingDisk()), { bulk: { startWorker: null, rowsMin: 256 } });
  const draft = rowsDraft(keys(60_000));
  let turns = 0;
  let over = false;
  const count = (): void => {
    turns++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  await log.append([draft]).acknowledged;
  over = true;
  // 60,000 rows in slices of 1,024.
  expect(turns).toBeGreaterThan(55);
  await log.close();
});

test('slices of a large body are not disturbed by what is sealed between them', async () => {
  const large = rowsDraft(keys(5_000));
  const small = rowsDraft(['x']);
  const other = { context: { ...context, path: null }, body: { ...small.body, type: 'another type with a longer name' } };
  const hashes = async (bulk?: BulkOptions): Promise<string[]> => {
    const { log } = await openLog(worldOn(new RecordingDisk()), bulk ? { bulk } : {});
    const appended = [log.append([large])];
    for (let i = 0; i < 4; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      appended.push(log.append([other as EntryDraft]));
    }
    await Promise.all(appended.map(({ acknowledged }) => acknowledged));
    return Array.from({ length: 6 }, (_, leaf) => hex(log.proofs.leafHash(leaf)));
  };
  expect(await hashes({ startWorker: null, rowsMin: 256 })).toEqual(await hashes());
});

test('a crash while a large body is being sealed loses only what was not acknowledged', async () => {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const worker = new HeldWorker();
  const { log, keyring } = await openLog(world, { bulk: { startWorker: worker.start, rowsMin: 2 } });
  await log.append([rowsDraft(['x'])]).acknowledged;
  void log.append([rowsDraft(['a', 'b'])]).acknowledged.catch(() => undefined);
  await settle();
  const { replayed, log: again } = await openLog(world, { keyring });
  expect(replayed.map(({ body }) => body.kind)).toEqual(['genesis', 'rows']);
  await again.close();
});

test('a disk that fails while a body is being sealed fails the log once', async () => {
  const { log, worker, disk } = await held();
  disk.before = (step) => {
    if (step.startsWith('fsync')) throw new Error('no more');
  };
  const small = log.append([rowsDraft(['x'])]);
  const large = log.append([rowsDraft(['a', 'b'])]);
  await expect(small.acknowledged).rejects.toThrow('the log has failed');
  await expect(large.acknowledged).rejects.toThrow('the log has failed');
  worker.reply();
  await settle();
  expect(log.status()).toMatchObject({ state: 'failed', failure: 'no more' });
  await log.close();
});
