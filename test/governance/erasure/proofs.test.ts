/** Proofs that were taken before an erasure hold after it, and so does the log as a whole. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { proofJson } from '../../../src/doors/http/proof-document.ts';
import type { Invocation, ProofRequest } from '../../../src/governance/gate-contract.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { acme, ErasureWorld } from './erasure-world.ts';

interface Verifier {
  verifyProof(proof: string, key: string, held?: string | null): string[];
}

const { verifyProof } = (await import(fileURLToPath(new URL('../../../verify/annals-verify.mjs', import.meta.url)))) as Verifier;

test('of the erased row, of others of its entry, and of the log that was', async () => {
  const world = await (await new ErasureWorld().open()).fill();
  const proofOf = (request: ProofRequest): Promise<string> =>
    world.store.service.gate.invoke(
      acme,
      { action: 'audit', purpose: null, correlationId: 'c' },
      async (invocation: Invocation) => JSON.stringify(proofJson(await invocation.proofs().entry(request))),
    );
  const [first] = await world.store.rows("SELECT system_from FROM Person WHERE id = 'p1'", acme);
  const systemFrom = first!['system_from'] as bigint;
  const before = [await proofOf({ systemFrom, row: 'p1' }), await proofOf({ systemFrom: systemFrom + 1n, row: 'p2' })];
  const { checkpoint, tree_size: size } = JSON.parse(before[0]!) as { checkpoint: string; tree_size: number };

  await world.erase();
  await world.restart();

  // Whoever kept them has them: hashes of then are those of now.
  for (const proof of before) expect(verifyProof(proof, world.logKey).length).toBeGreaterThan(2);
  const now = await proofOf({ systemFrom: systemFrom + 1n, row: 'p2', from: size });
  expect(verifyProof(now, world.logKey, checkpoint).join('\n')).toContain(
    `all ${size} entries of the checkpoint that you hold, unchanged`,
  );
  expect(verifyProof(await proofOf({ systemFrom }), world.logKey).length).toBeGreaterThan(1);
  await expect(proofOf({ systemFrom, row: 'p1' })).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });

  const { keyring } = world.store.service.store;
  await world.store.service.store.log.seal();
  const { findings } = await verifyDirectory({ disk: world.disk, directory: '/data', keyring });
  expect(findings).toEqual([]);
  await world.store.close();
});
