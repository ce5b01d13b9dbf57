/** A log of rows that are sealed by subject: written by whoever seals, replayed by whoever opens, before and after an erasure. */
import { expect, test } from 'vitest';
import type { SealRequest } from '../../src/log/entries/body-sealer.ts';
import type { BulkOptions } from '../../src/log/entries/bulk-sealer.ts';
import type { RowsBody } from '../../src/log/entries/entry.ts';
import type { Keyring } from '../../src/log/keys/keys.ts';
import type { LocalLog, LocalLogOptions } from '../../src/log/log.ts';
import { proveRow, type RowProof } from '../../src/log/proofs/row-proof.ts';
import { hexOf, sha256 } from '../../src/log/bytes/sha256.ts';
import { verifyDirectory } from '../../src/log/proofs/verify.ts';
import { inlineWorker, type StartWorker, threadWorker } from '../../src/log/threads/workers.ts';
import { textOf } from '../simulation/drafts.ts';
import { verifierPath } from '../proofs/judges.ts';
import { MemorySubjectKeys } from './memory-subject-keys.ts';
import { RecordingDisk } from './recording-disk.ts';
import { partsDraft } from './parts.ts';
import { rowsOfSubjects, subjectDraft } from './subjects.ts';
import { accessDraft, directory, keyringOf, openLog, rowsDraft, worldOn } from './world.ts';

const verifier = (await import(verifierPath)) as {
  rootFromPath(leaf: Buffer, index: number, size: number, path: Buffer[]): Uint8Array | null;
};

/** Whose the rows of each entry are: a few, many, one in thousands, none. */
const owners: readonly (readonly (string | null)[])[] = [
  ['ada', 'bob', null, 'ada'],
  [null, null],
  ['ada'],
  Array.from({ length: 400 }, (_, i) => (i % 5 === 0 ? null : `s${i % 37}`)),
  Array.from({ length: 300 }, (_, i) => (i === 7 ? 'ada' : `t${i}`)),
  Array.from({ length: 3000 }, () => 'bob'),
];
const lastOwners = Array.from({ length: 300 }, (_, i) => (i % 2 === 0 ? 'cy' : `u${i % 5}`));
const limits = { fileBytesMax: 60_000, preallocateBytes: 512 };
const rowsOfAda = owners.reduce((sum, subjects) => sum + rowsOfSubjects(subjects, new Set(['ada'])).length, 0);

async function fill(log: LocalLog): Promise<void> {
  for (const [i, subjects] of owners.entries()) {
    await log.append([subjectDraft(subjects, i), accessDraft(`p${i}`)]).acknowledged;
  }
  await log.append([partsDraft(rowsDraft(['last']), subjectDraft(['cy', null, 'cy'], 7), subjectDraft(lastOwners, 8))])
    .acknowledged;
}

async function lived(bulk?: BulkOptions): Promise<RecordingDisk> {
  const disk = new RecordingDisk();
  const { log, keyring } = await openLog(worldOn(disk), { limits, ...(bulk ? { bulk } : {}) });
  await fill(log);
  await log.close();
  await keyring.close();
  return disk;
}

async function filesOf(disk: RecordingDisk): Promise<Record<string, string>> {
  const names = await disk.list(`${directory}/log`);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, hexOf(sha256(await disk.bytes(`${directory}/log/${name}`)))])),
  );
}

test('the same files, whoever seals', async () => {
  const expected = await filesOf(await lived());
  for (const startWorker of [null, inlineWorker, threadWorker])
    expect(await filesOf(await lived({ startWorker, rowsMin: 256 }))).toEqual(expected);
  expect(await filesOf(await lived({ startWorker: null, rowsMin: 1 }))).toEqual(expected);
});

test('keys do not stay with what was sealed under them', async () => {
  const asked: SealRequest[] = [];
  const startWorker: StartWorker = (job, data) => {
    const inner = inlineWorker(job, data);
    return { ...inner, ask: (request) => (asked.push(request as SealRequest), inner.ask(request)) };
  };
  await lived({ startWorker, rowsMin: 256 });
  const secrets = asked.flatMap(({ seals }) => seals.flatMap(({ sections }) => [...(sections?.secrets ?? [])]));
  expect(secrets.length).toBeGreaterThan(32 * 300);
  expect(secrets.every((byte) => byte === 0)).toBe(true);
});

/** What a start sees of a log under these keys. */
async function replayed(disk: RecordingDisk, startWorker: StartWorker | null, keyring?: Keyring): Promise<readonly string[]> {
  const seen: string[] = [];
  const replay: LocalLogOptions['replay'] = (entry, leafHash) => void seen.push(`${hexOf(leafHash)} ${textOf(entry)}`);
  const openBeside = startWorker && { startWorker, bytesMin: 0, windowBytes: 30_000, poison: true };
  try {
    const options = { replay, limits, ...(openBeside ? { openBeside } : {}), ...(keyring ? { keyring } : {}) };
    const { log } = await openLog(worldOn(disk, 'successor'), options);
    await log.close();
    return seen;
  } catch (cause) {
    return [...seen, String(cause)];
  }
}

async function erase(disk: RecordingDisk, ...subjects: readonly string[]): Promise<void> {
  const keyring = await keyringOf(worldOn(disk, 'eraser'));
  await keyring.subjects.destroy(
    subjects.flatMap((subject) => keyring.subjects.idsOf('acme', subject)),
    'r-1',
  );
  await keyring.close();
}

test('a replay is the same by a thread, its twin and in the turn, and after an erasure without exactly the erased rows', async () => {
  const disk = await lived();
  const whole = await replayed(disk, null);
  for (const worker of [inlineWorker, threadWorker]) expect(await replayed(disk, worker)).toEqual(whole);
  const before = await filesOf(disk);
  await erase(disk, 'ada', 's5');
  const left = await replayed(disk, null);
  for (const worker of [inlineWorker, threadWorker]) expect(await replayed(disk, worker)).toEqual(left);
  expect(await filesOf(disk)).toEqual(before);
  const dropped = left.map((text) => (JSON.parse(text.slice(65)) as { body: RowsBody }).body.dropped ?? []);
  const expected = owners.flatMap((subjects) => [rowsOfSubjects(subjects, new Set(['ada', 's5'])), []]);
  expect(dropped.filter((rows) => rows.length > 0)).toEqual(expected.filter((rows) => rows.length > 0));
  expect(left.filter((text) => /ada \d/.test(text))).toEqual([]);
  expect(whole.filter((text, i) => text === left[i])).toHaveLength(whole.length - 4);
});

test('a key that is lost stops an open, by name, whoever opens', async () => {
  const disk = await lived();
  const keyring = await keyringOf(worldOn(disk, 'other'));
  const [id] = keyring.subjects.idsOf('acme', 'ada');
  const without: Keyring = { ...fields(keyring), subjects: new MemorySubjectKeys() };
  const inTurn = await replayed(disk, null, without);
  expect(inTurn.at(-1)).toContain(id!);
  for (const worker of [inlineWorker, threadWorker]) expect(await replayed(disk, worker, without)).toEqual(inTurn);
  await keyring.close();
});

function fields(keyring: Keyring): Keyring {
  const { activeDataKey, dataKeyIds, signer, publicKeys, hmacKey, subjects } = keyring;
  return {
    activeDataKey,
    dataKeyIds,
    signer,
    publicKeys,
    hmacKey,
    subjects,
    open: (id) => keyring.open(id),
    close: () => keyring.close(),
  };
}

test('a check passes before and after, and says how many rows are erased', async () => {
  const disk = await lived();
  const reports = async (): Promise<unknown[]> => {
    const found: unknown[] = [];
    for (const startWorker of [null, inlineWorker, threadWorker]) {
      const keyring = await keyringOf(worldOn(disk, 'checker'));
      const openBeside = startWorker && { startWorker, bytesMin: 0, windowBytes: 30_000 };
      const report = await verifyDirectory({ disk, directory, keyring, ...(openBeside ? { openBeside } : {}) });
      const { ok, findings, rows, rowsErased, bodiesOpened, leaves, root } = report;
      expect({ ok, findings, bodiesOpened }).toEqual({ ok: true, findings: [], bodiesOpened: leaves });
      found.push({ rows, rowsErased, root });
      await keyring.close();
    }
    return found;
  };
  const before = (await reports()) as { rows: number; rowsErased: number; root: string }[];
  const total = owners.reduce((sum, { length }) => sum + length, 1 + 3 + lastOwners.length);
  expect(before).toEqual(Array(3).fill({ rows: total, rowsErased: 0, root: before[0]!.root }));
  await erase(disk, 'ada');
  expect(await reports()).toEqual(before.map((each) => ({ ...each, rowsErased: rowsOfAda })));
});

function holds({ row, salt, rowHash, index, path, rowsRoot }: RowProof, rows: number): boolean {
  const leaf = sha256(Uint8Array.of(0), salt, row);
  const root = verifier.rootFromPath(
    Buffer.from(leaf),
    index,
    rows,
    path.map((hash) => Buffer.from(hash)),
  );
  return hexOf(leaf) === hexOf(rowHash) && root !== null && hexOf(root) === hexOf(rowsRoot);
}

test('proofs taken before an erasure hold after it; an erased row has none, its neighbours the same as ever', async () => {
  const disk = await lived();
  const world = worldOn(disk, 'prover');
  const proofsOf = async (): Promise<(RowProof | null)[]> => {
    const { log, keyring } = await openLog(world, { limits });
    const stored = (await log.proofs.entry({ position: 1 }))!;
    const { parts } = stored.open();
    const proofs = await Promise.all([0, 1, 2, 3].map((row) => proveRow(stored.facts, parts, row)));
    await log.close();
    await keyring.close();
    return proofs;
  };
  const before = await proofsOf();
  expect(before.every((proof) => proof && holds(proof, 4))).toBe(true);
  await erase(disk, 'ada');
  const after = await proofsOf();
  expect(after).toEqual([null, before[1], before[2], null]);
  expect(before.every((proof) => proof && holds(proof, 4))).toBe(true);
});

test('a subject that comes back has another key, and what was erased stays erased', async () => {
  const disk = await lived();
  const world = worldOn(disk, 'again');
  const { log, keyring } = await openLog(world, { limits });
  const old = keyring.subjects.idsOf('acme', 'ada');
  await keyring.subjects.destroy(old, 'r-1');
  await log.append([subjectDraft(['ada'], 99)]).acknowledged;
  expect(keyring.subjects.idsOf('acme', 'ada')).toHaveLength(1);
  expect(keyring.subjects.idsOf('acme', 'ada')).not.toEqual(old);
  await log.close();
  await keyring.close();
  const left = await replayed(disk, null);
  const texts = left.filter((text) => text.includes('"kind":"rows"'));
  expect(texts.filter((text) => /ada \d/.test(text))).toHaveLength(1);
  expect(texts.at(-1)).toContain('ada 99-0');
});
