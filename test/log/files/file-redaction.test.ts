import { expect, test } from 'vitest';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import type { CommittedEntry, EntryDraft } from '../../../src/log/entries/entry.ts';
import { openPayload } from '../../../src/log/entries/entry-codec.ts';
import { FILE_HEADER_BYTES, FrameScanner, frameEntries } from '../../../src/log/files/log-file.ts';
import type { LocalLog } from '../../../src/log/log.ts';
import { proveRow, type RowProof } from '../../../src/log/proofs/row-proof.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { crashImage } from '../../simulation/crash-image.ts';
import { FaultyDisk, type Image } from '../../simulation/faulty-disk.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { all, context, directory, keyringOf, openLog, rowsDraft, type World, worldOn } from '../world.ts';

const noTurn = (): Promise<void> => Promise.resolve();

const exhibit: EntryDraft = {
  context,
  body: {
    kind: 'exhibit',
    exhibit: 'ex-1',
    link: 1,
    act: 'query',
    recipe: '{"statement":"SELECT * FROM Person WHERE name = \'name of secret\'"}',
    resultHash: '11'.repeat(32),
    previousSeal: '22'.repeat(32),
    seal: '33'.repeat(32),
  },
};
const removal = (positions: readonly number[]): EntryDraft => ({
  context,
  body: { kind: 'removal', type: 'Person', keys: ['secret'], positions: Float64Array.from(positions) },
});

/** Two files and an open one: rows and an exhibit that say `secret`, and others around them. */
async function written(world: World): Promise<{ secret: number; exhibit: number; removal: number }> {
  const { log } = await openLog(world, { limits: { fileBytesMax: 4096, preallocateBytes: 512 } });
  for (let i = 0; i < 6; i++) await log.append([rowsDraft([`a${i}`, `b${i}`, `c${i}`])]).acknowledged;
  const rows = log.append([rowsDraft(['before', 'secret', 'after'])]);
  const link = log.append([exhibit]);
  await link.acknowledged;
  for (let i = 0; i < 6; i++) await log.append([rowsDraft([`d${i}`, `e${i}`, `f${i}`])]).acknowledged;
  const secret = rows.entries[0]!.position + 1;
  const removed = log.append([removal([secret])]);
  await removed.acknowledged;
  await log.close();
  return { secret, exhibit: link.entries[0]!.position, removal: removed.entries[0]!.position };
}

function keysOf({ body }: CommittedEntry): readonly (string | null)[] {
  if (body.kind !== 'rows') return [];
  const { vector, type } = body.keys.columns[0]!;
  return Array.from(body.ops, (_, row) => cellAt(vector, type, row) as string | null);
}

/** Everything that any payload of any file says once it is open. */
async function said({ disk, ...world }: World): Promise<string> {
  const { keyring, log } = await openLog({ disk, ...world });
  await log.close();
  let text = '';
  for (const name of await disk.list(`${directory}/log`)) {
    if (!name.endsWith('.log')) continue;
    const file = await disk.open(`${directory}/log/${name}`, 'read');
    const scanner = new FrameScanner(file, Number(name.slice(0, 8)), await file.size(), FILE_HEADER_BYTES);
    for (let next = await scanner.next(); next.result === 'frame'; next = await scanner.next()) {
      for (const { payload } of frameEntries(next.bytes, next.header))
        text += Buffer.from(openPayload(payload, keyring)).toString('latin1');
    }
    await file.close();
  }
  return text;
}

test('a row and a text are dropped from the files, and everything else, the root included, stays', async () => {
  const world = worldOn(new MemoryDisk());
  const places = await written(world);
  expect(await said(world)).toContain('secret');
  const { log, replayed } = await openLog(world);
  expect(log.status().files).toBeGreaterThan(2);
  const { root, size } = log.head();
  const proofBefore = await proofOf(log, places.secret - 1);
  const positions = [places.secret, places.exhibit, places.removal];
  expect(await log.redact(positions, noTurn)).toEqual({ rows: 1, texts: 2, kept: 0 });
  expect(await log.redact(positions, noTurn)).toEqual({ rows: 0, texts: 0, kept: 0 });

  const entries = await all(log.read(0));
  expect(entries.length).toBeGreaterThanOrEqual(replayed.length);
  const changed = entries.find(
    ({ position, positions: count }) => position <= places.secret && places.secret < position + count,
  )!;
  expect(keysOf(changed)).toEqual(['before', null, 'after']);
  expect(changed.body).toMatchObject({ kind: 'rows', dropped: [1] });
  expect(entries.flatMap(keysOf).filter((key) => key === 'secret')).toEqual([]);
  expect(entries.find(({ position, body }) => position === places.exhibit && body.kind === 'exhibit')!.body).toEqual({
    ...exhibit.body,
    recipe: '',
  });
  expect(Buffer.from(log.proofs.root(size))).toEqual(Buffer.from(root));
  expect(await proofOf(log, places.secret - 1)).toEqual(proofBefore);
  await expect(proofOf(log, places.secret)).resolves.toBeNull();
  await log.append([rowsDraft(['later'])]).acknowledged;
  await log.close();

  expect(await said(world)).not.toContain('secret');
  const { log: again, replayed: anew } = await openLog(world);
  expect(anew.flatMap(keysOf)).toEqual([...entries.flatMap(keysOf), 'later']);
  expect(Buffer.from(again.proofs.root(size))).toEqual(Buffer.from(root));
  await again.close();
  const { findings, rowsPruned } = await verifyDirectory({ disk: world.disk, directory, keyring: await keyringOf(world) });
  expect([findings, rowsPruned]).toEqual([[], 1]);
});

test('a row that is missing though no entry removed it is a finding', async () => {
  const world = worldOn(new MemoryDisk());
  const { secret } = await written(world);
  const { log, keyring } = await openLog(world);
  await log.redact([secret, secret + 1], noTurn);
  await log.close();
  const { findings } = await verifyDirectory({ disk: world.disk, directory, keyring });
  expect(findings.map(({ what }) => what)).toEqual([`the row at position ${secret + 1} is missing, and no entry removed it`]);
});

async function proofOf({ proofs }: LocalLog, position: number): Promise<RowProof | null> {
  const { facts, open } = (await proofs.entry({ position }))!;
  return await proveRow(facts, open().parts, position - facts.position);
}

test('a crash at any disk call of a redaction leaves all leaves, and doing it again ends it', async () => {
  const memory = worldOn(new FaultyDisk());
  const places = await written(memory);
  const start = crashImage((memory.disk as FaultyDisk).state(), 'all');
  const positions = [places.secret, places.exhibit, places.removal];
  const images: Image[] = [];
  let version = -1;
  const random = new Seeded(5);
  const disk: FaultyDisk = new FaultyDisk(
    {
      beforeStep: () => {
        if (disk.version === version) return undefined;
        version = disk.version;
        const state = disk.state();
        images.push(crashImage(state, 'none'), crashImage(state, 'all'), crashImage(state, random));
        return undefined;
      },
    },
    start,
  );
  const { log, replayed } = await openLog(worldOn(disk, 'redaction'));
  const { root, size } = log.head();
  await log.redact(positions, noTurn);
  images.push(crashImage(disk.state(), 'none'));
  expect(images.length).toBeGreaterThan(20);
  for (const image of images) {
    const world = worldOn(new FaultyDisk({}, image), 'after');
    const { log: found, replayed: entries, keyring } = await openLog(world);
    expect(Buffer.from(found.proofs.root(size))).toEqual(Buffer.from(root));
    expect(entries.slice(0, replayed.length).map(({ leaf, position }) => [leaf, position])).toEqual(
      replayed.map(({ leaf, position }) => [leaf, position]),
    );
    await found.redact(positions, noTurn);
    await found.close();
    expect(await said(world)).not.toContain('secret');
    const report = await verifyDirectory({ disk: world.disk, directory, keyring });
    expect(report.findings).toEqual([]);
  }
});

test('reading goes on over a file that is written anew meanwhile', async () => {
  const world = worldOn(new MemoryDisk());
  const places = await written(world);
  const { log, replayed } = await openLog(world);
  const reading = log.read(0)[Symbol.asyncIterator]();
  const before = log.read(0)[Symbol.asyncIterator]();
  const entries: CommittedEntry[] = [(await reading.next()).value as CommittedEntry];
  await log.redact([places.secret, places.exhibit, places.removal], noTurn);
  for (let next = await reading.next(); next.done !== true; next = await reading.next()) entries.push(next.value);
  expect(entries.map(({ leaf }) => leaf).slice(0, replayed.length)).toEqual(replayed.map(({ leaf }) => leaf));
  let count = 0;
  for (let next = await before.next(); next.done !== true; next = await before.next()) count++;
  expect(count).toBeGreaterThanOrEqual(replayed.length);
  await log.close();
});
