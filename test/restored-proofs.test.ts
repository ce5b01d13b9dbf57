/** Whoever kept a proof or a head from before a backup has it still: the store that is restored is the same log, by the same key. */
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { proofJson } from '../src/doors/http/proof-document.ts';
import type { ProofRequest } from '../src/governance/gate-contract.ts';
import { acme, ErasureWorld, settings } from './governance/erasure/erasure-world.ts';
import { TestRandom, TestStore } from './harness.ts';

interface Verifier {
  verifyProof(proof: string, key: string, held?: string | null): string[];
}

/** The offline verifier’s own: throws what is not proven. */
const { verifyProof } = (await import(fileURLToPath(new URL('../verify/annals-verify.mjs', import.meta.url)))) as Verifier;

interface Document {
  readonly tree_size: number;
  readonly root_hash: string;
  readonly checkpoint: string;
  readonly [member: string]: unknown;
}

const proofOf = (store: TestStore, request: ProofRequest): Promise<Document> =>
  store.service.gate.invoke(acme, { action: 'audit', purpose: null, correlationId: 'c' }, async (invocation) =>
    proofJson(await invocation.proofs().entry(request)),
  ) as Promise<Document>;

const holds = (proof: Document, key: string, held?: string): string => verifyProof(JSON.stringify(proof), key, held).join('\n');

/** Newest access record: who read what. */
async function lastRecord({ service }: TestStore): Promise<number> {
  let last = -1;
  for await (const { leaf, body } of service.store.log.read(0)) if (body.kind === 'access') last = leaf;
  expect(last).toBeGreaterThan(0);
  return last;
}

describe('proofs from before a backup', () => {
  let world: ErasureWorld;
  let requests: { readonly row: ProofRequest; readonly neighbour: ProofRequest; readonly record: ProofRequest };
  let before: { readonly row: Document; readonly neighbour: Document; readonly record: Document };
  let key: string;
  let taken: { readonly backup: string; readonly tree_size: number; readonly root: string };

  beforeEach(async () => {
    world = await (await new ErasureWorld().open()).fill();
    const { store } = world;
    const [first] = await store.rows("SELECT system_from FROM Person WHERE id = 'p1'", acme);
    const systemFrom = first!['system_from'] as bigint;
    requests = {
      row: { systemFrom, row: 'p1' },
      neighbour: { systemFrom: systemFrom + 1n, row: 'p2' },
      record: { leaf: await lastRecord(store) },
    };
    before = {
      row: await proofOf(store, requests.row),
      neighbour: await proofOf(store, requests.neighbour),
      record: await proofOf(store, requests.record),
    };
    key = world.logKey;
    taken = await store.service.upkeep.backups.create();
  });

  const restored = async (): Promise<TestStore> => {
    const { root_match: rootMatch, log_id: logId } = await world.store.service.upkeep.backups.restore(taken.backup, '/restored');
    expect([rootMatch, logId]).toEqual([true, world.store.service.store.log.status().logId]);
    const { disk, clock } = world;
    return TestStore.open('2024-01-01', { ...settings, SERVICE_DATA_DIR: '/restored' }, { disk, clock });
  };

  it('verify offline, with the key and against the heads of the store that was restored', async () => {
    const store = await restored();
    const { log } = store.service.store;
    expect([log.proofs.key, log.status().logId]).toEqual([key, world.store.service.store.log.status().logId]);
    for (const proof of Object.values(before)) {
      expect(proof.tree_size).toBeLessThanOrEqual(taken.tree_size);
      expect(holds(proof, log.proofs.key)).toContain(`${proof.tree_size}`);
      // The very head that was handed out, byte for byte.
      expect((await log.proofs.headAt(proof.tree_size)).note).toBe(proof.checkpoint);
    }
    const head = await log.proofs.headAt(taken.tree_size);
    expect(Buffer.from(head.root).toString('hex')).toBe(taken.root);
    await store.close();
  });

  it('are made again by the store that was restored, and its log contains what the heads held before', async () => {
    const store = await restored();
    for (const name of ['row', 'neighbour', 'record'] as const) {
      const { tree_size: size, checkpoint } = before[name];
      expect(await proofOf(store, { ...requests[name], treeSize: size })).toEqual(before[name]);
      const now = await proofOf(store, { ...requests[name], from: size });
      expect(now.tree_size).toBeGreaterThan(size);
      expect(holds(now, key, checkpoint)).toContain(`all ${size} entries of the checkpoint that you hold, unchanged`);
    }
    await store.close();
  });

  it('and before an erasure that came between backup and restore', async () => {
    await world.erase();
    const store = await restored();
    expect(store.service.store.log.proofs.key).toBe(key);
    // The backup is from before: whose rows they were has no key in it.
    expect(await store.column('SELECT name FROM Person', acme)).toEqual(['Bob', 'Nobody']);
    for (const proof of Object.values(before)) expect(holds(proof, store.service.store.log.proofs.key)).not.toBe('');
    for (const name of ['neighbour', 'record'] as const) {
      const { tree_size: size, checkpoint } = before[name];
      expect(await proofOf(store, { ...requests[name], treeSize: size })).toEqual(before[name]);
      expect(holds(await proofOf(store, { ...requests[name], from: size }), key, checkpoint)).toContain('unchanged');
    }
    // Of the erased row its entry is proven as it was, and not the row.
    await expect(proofOf(store, requests.row)).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });
    const { row: _, ...entry } = before.row;
    const { systemFrom } = requests.row;
    expect(await proofOf(store, { systemFrom: systemFrom!, treeSize: before.row.tree_size })).toEqual(entry);
    await store.close();
  });

  it('fail under the key of another log', async () => {
    const other = await (await new ErasureWorld().open({ random: new TestRandom(3) })).fill();
    expect(other.logKey).not.toBe(key);
    for (const proof of Object.values(before)) expect(() => holds(proof, other.logKey)).toThrow(/key|sign/);
  });
});
