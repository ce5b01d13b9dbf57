/** A client that holds one checkpoint against a server that lies. `npm run lying -- --steps n` goes on for longer. */
import { beforeAll, expect, test } from 'vitest';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { whole } from '../runner/turn.ts';
import { convicts, HoldingClient, LyingServer, runLyingServer } from './lying-server.ts';
import type { ProofWorld } from './world.ts';

/** Of those that meet lies; half as many meet none. */
const steps = whole ? 3_000 : 900;
tell(`${steps} steps, seed ${seedBase} (npm run lying)`);

let histories: readonly ProofWorld[];
beforeAll(async () => {
  histories = await LyingServer.histories();
});

test('is never believed on two values of one place, and convicts itself', async () => {
  const sum = await runLyingServer(histories, seedBase + 1, steps);
  expect(sum.believed).toBeGreaterThan(steps / 5);
  expect(sum.refused).toBeGreaterThan(steps / 10);
  expect(sum.convicted).toBeGreaterThan(0);
});

test('an honest one is always believed, and never accused', async () => {
  const sum = await runLyingServer(histories, seedBase + 2, steps / 2, false);
  expect([sum.believed, sum.refused, sum.convicted]).toEqual([steps / 2, 0, 0]);
});

test('evidence is two signed heads; either altered, it convicts nobody', async () => {
  const [honest, , other] = histories as [ProofWorld, ProofWorld, ProofWorld];
  const client = new HoldingClient(honest.key);
  client.receive(await honest.prove({ leaf: 3, treeSize: 40 }));
  client.receive(await other.prove({ leaf: 3, treeSize: 50, from: 40 }));
  expect([client.believed, client.refused]).toEqual([1, 1]);
  const evidence = client.evidence!;
  expect(convicts(evidence, honest.key)).toBe(true);
  expect(convicts({ ...evidence, held: evidence.held.replace('\n40\n', '\n41\n') }, honest.key)).toBe(false);
  expect(convicts({ ...evidence, held: await other.headAt(40) }, honest.key)).toBe(false);
  expect(
    convicts(
      { ...evidence, proof: { ...evidence.proof, root_hash: evidence.proof['leaf_hash'] } as typeof evidence.proof },
      honest.key,
    ),
  ).toBe(false);
  expect(convicts({ ...evidence, proof: await honest.prove({ leaf: 3, treeSize: 50, from: 40 }) }, honest.key)).toBe(false);
});
