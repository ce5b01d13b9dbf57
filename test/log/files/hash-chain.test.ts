import { expect, test } from 'vitest';
import { HashChain } from '../../../src/log/files/hash-chain.ts';
import { noteSigner, signCheckpoint } from '../../../src/log/tree/checkpoint-note.ts';
import type { EntryDraft } from '../../../src/log/entries/entry.ts';
import { decodeEntry, decodeLeaf, type EncodedEntry, EntrySealer, noPreviousHash } from '../../../src/log/entries/entry-codec.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { accessDraft, context, keyringOf, openLog, origin, rowsDraft, SeededRandom, type World, worldOn } from '../world.ts';

const keyring = await keyringOf(worldOn(new MemoryDisk()));
const sealer = new EntrySealer(keyring, new SeededRandom());

interface Claim {
  readonly leaf?: number;
  readonly position?: number;
  readonly time?: bigint;
  readonly previous?: Uint8Array;
}

/** A chain of two whole entries, and a third that claims something else than what belongs there. */
function third(draft: EntryDraft, claim: Claim = {}): { chain: HashChain; entry: EncodedEntry } {
  const chain = new HashChain({ keyring, origin, rows: true });
  let previous = noPreviousHash;
  for (const [leaf, key] of ['a', 'b'].entries()) {
    const entry = sealer.encode(rowsDraft([key, `${key}2`]), { leaf, position: leaf * 2, time: BigInt(leaf * 10) }, previous);
    chain.follow({ leaf: entry.leaf, payload: entry.payload, redacted: false });
    previous = entry.leafHash;
  }
  const place = { leaf: claim.leaf ?? 2, position: claim.position ?? 4, time: claim.time ?? 12n };
  return { chain, entry: sealer.encode(draft, place, claim.previous ?? previous) };
}

const follow = ({ chain, entry }: { chain: HashChain; entry: EncodedEntry }): unknown =>
  chain.follow({ leaf: entry.leaf, payload: entry.payload, redacted: false });

test('an entry that fits is followed, and what it leaves is where the next one belongs', () => {
  const made = third(rowsDraft(['c', 'd', 'e']));
  expect(follow(made)).toMatchObject({ leaf: 2, position: 4, positions: 3, time: 12n });
  expect(made.chain).toMatchObject({ leaves: 3, position: 7, lastInstant: 14n, seals: 0, sealed: 0 });
  expect(made.chain.previousHash).toEqual(made.entry.leafHash);
});

test.each([
  ['another leaf number', { leaf: 3 }, 'leaf 3 where 2 belongs'],
  ['another position', { position: 5 }, 'position 5 where 4 belongs'],
  ['no link to the entry before', { previous: noPreviousHash }, 'does not link'],
  ['a time that the last row of the entry before has', { time: 11n }, 'does not rise'],
] as [string, Claim, string][])('an entry with %s is refused, though its key and checksum are right', (_, claim, reason) => {
  expect(() => follow(third(accessDraft('ada'), claim))).toThrow(reason);
});

const seal = (treeSize: number, checkpoint: string): EntryDraft => ({ context, body: { kind: 'seal', treeSize, checkpoint } });

test('a seal is followed when it is signed and names the tree before it', () => {
  const { chain } = third(accessDraft('ada'));
  const note = signCheckpoint(origin, { size: 2, root: chain.tree.root() }, keyring.signer);
  const made = third(seal(2, note));
  // The two chains were sealed apart: each has its own root.
  expect(() => follow(made)).toThrow(/another root/);
  const own = sealer.encode(seal(2, note), { leaf: 2, position: 4, time: 12n }, chain.previousHash);
  expect(follow({ chain, entry: own })).toMatchObject({ body: { kind: 'seal' } });
  expect(chain).toMatchObject({ leaves: 3, sealed: 3, seals: 1 });
});

test.each([
  ['of another size', (root: Uint8Array) => seal(1, signCheckpoint(origin, { size: 1, root }, keyring.signer)), 'another size'],
  [
    'of another size than its own note',
    (root: Uint8Array) => seal(2, signCheckpoint(origin, { size: 1, root }, keyring.signer)),
    'another size',
  ],
  [
    'of another log',
    (root: Uint8Array) => seal(2, signCheckpoint('elsewhere', { size: 2, root }, keyring.signer)),
    'no key of this log',
  ],
  [
    'signed by a stranger',
    (root: Uint8Array) => seal(2, signCheckpoint(origin, { size: 2, root }, noteSigner(new Uint8Array(32).fill(9)))),
    'no key of this log',
  ],
] as [string, (root: Uint8Array) => EntryDraft, string][])('a seal %s is refused', (_, make, reason) => {
  const { chain } = third(accessDraft('ada'));
  const entry = sealer.encode(make(chain.tree.root()), { leaf: 2, position: 4, time: 12n }, chain.previousHash);
  expect(() => follow({ chain, entry })).toThrow(reason);
});

test('a leaf that says another kind or number of rows than its payload holds is refused', () => {
  const { leaf, payload } = sealer.encode(rowsDraft(['a', 'b']), { leaf: 0, position: 0, time: 1n }, noPreviousHash);
  const facts = decodeLeaf(leaf);
  const whole = { redacted: false, rows: true };
  expect(() => decodeEntry({ ...facts, kind: 'access' }, payload, keyring, whole)).toThrow('another kind');
  expect(() => decodeEntry({ ...facts, positions: 3 }, payload, keyring, whole)).toThrow('another length');
  expect(() => decodeEntry({ ...facts, rowsRoot: noPreviousHash }, payload, keyring, whole)).toThrow('do not give the root');
  const access = sealer.encode(accessDraft('ada'), { leaf: 0, position: 0, time: 1n }, noPreviousHash);
  expect(() => decodeEntry(decodeLeaf(access.leaf), access.payload, keyring, { redacted: true, rows: true })).toThrow(
    'nothing was dropped',
  );
});

test('a log written anew by someone who has the data key but not the signing key does not pass for the old one', async () => {
  const disk = new MemoryDisk();
  const world: World = worldOn(disk);
  const first = await openLog(world);
  await first.log.append([rowsDraft(['true'])]).acknowledged;
  await first.log.close();
  const checkpoint = (await disk.readFile('/data/log/checkpoint'))!;
  for (const name of await disk.list('/data/log')) await disk.unlink(`/data/log/${name}`);
  const forger = { ...first.keyring, activeDataKey: 1, open: (id: number) => first.keyring.open(id) };
  const forged = {
    ...forger,
    signer: noteSigner(new Uint8Array(32).fill(9)),
    publicKeys: [noteSigner(new Uint8Array(32).fill(9)).publicKey],
  };
  const second = await openLog(worldOn(disk, 'forger'), { keyring: { ...forged, hmacKey: first.keyring.hmacKey } });
  await second.log.append([rowsDraft(['false'])]).acknowledged;
  await second.log.append([rowsDraft(['more'])]).acknowledged;
  await second.log.close();
  const honest = (): Promise<unknown> => openLog(worldOn(disk), { keyring: first.keyring });
  await expect(honest()).rejects.toMatchObject({ code: 'REL_STORAGE', message: expect.stringContaining('checkpoint') });
  await disk.replaceFile('/data/log/checkpoint', checkpoint);
  await expect(honest()).rejects.toMatchObject({ code: 'REL_STORAGE' });
});
