/** Entries of kinds that have no design yet: an erasure finds them, a backup carries them, and every check passes with them. */
import { expect, test } from 'vitest';
import { type CommittedEntry, isOpen, mainBranch, type OpenBody } from '../../../src/log/entries/entry.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { acme, ErasureWorld, verifyReceipt } from './erasure-world.ts';

let world: ErasureWorld;

async function append(tenant: string, ...bodies: readonly OpenBody[]): Promise<void> {
  const { log, projections } = world.store.service.store;
  const context = {
    branch: mainBranch,
    tenant,
    path: `${tenant}/eu`,
    principal: 'ada',
    door: 'http',
    purpose: null,
    correlationId: 'c',
    policyDigest: '',
  };
  const { entries, acknowledged } = log.append(
    bodies.map((body) => ({ context, body })),
    { sync: true },
  );
  for (const entry of entries) projections.apply(entry);
  await acknowledged;
}

async function contents(): Promise<readonly unknown[]> {
  const found: CommittedEntry[] = [];
  for await (const entry of world.store.service.store.log.read(0)) found.push(entry);
  return found.flatMap(({ body }) => (isOpen(body) ? [[body.kind, body.content]] : []));
}

test('what repeats the subject leaves the log, what does not stays, and a backup has both as they are', async () => {
  world = await (await new ErasureWorld().open()).fill();
  const bytes = new Uint8Array([1, 2, 3]);
  const none = new Uint8Array(0);
  await append(
    'acme',
    { kind: 'judgement', content: '{"of":["alice","bob"],"same":false}' },
    { kind: 'rule', content: '{"if":"\\"alice\\" says"}' },
    { kind: 'embedding', content: Buffer.from('model x of alice') },
    { kind: 'run', content: bytes },
    { kind: 'search', content: '{"language":"de"}' },
  );
  await append('globex', { kind: 'judgement', content: '{"of":["alice","bob"],"same":true}' });
  const erased = await world.erase();
  expect(erased.certified).toBe(true);
  expect(verifyReceipt(JSON.stringify(erased.receipt), world.logKey, erased.key)).not.toEqual([]);
  const left = [
    ['judgement', none],
    ['rule', none],
    ['embedding', none],
    ['run', bytes],
    ['search', '{"language":"de"}'],
    ['judgement', '{"of":["alice","bob"],"same":true}'],
  ];
  expect(await contents()).toEqual(left);

  const { service } = world.store;
  const { backup } = await service.upkeep.backups.create();
  const digests = service.store.projections.digests();
  await world.restart();
  expect(await contents()).toEqual(left);
  expect(world.store.service.store.projections.digests()['open-entries']).toBe(digests['open-entries']);
  const { disk } = world;
  const { keyring } = world.store.service.store;
  expect(await verifyDirectory({ disk, directory: '/data', keyring })).toMatchObject({ ok: true, findings: [] });
  const report = await world.store.service.upkeep.backups.restore(backup, '/restored');
  expect(report.projections.find(({ name }) => name === 'open-entries')).toMatchObject({ match: true });
  expect(await verifyDirectory({ disk, directory: '/restored', keyring })).toMatchObject({ ok: true, findings: [] });
  await world.store.close();
});

test('a judgement about a row of the subject leaves the log with it, though its key is too short to be looked for', async () => {
  world = await (await new ErasureWorld().open()).fill();
  await world.store.rows("FUSE_IDENTITIES('p1', 'p2', 'one voice')", acme);
  await world.store.rows("SPLIT_IDENTITIES('p2', 'p3')", acme);
  expect((await world.erase()).certified).toBe(true);
  const { judgements } = world.store.service.store.projections;
  expect(judgements.judgementsOn(0).map(({ a, b }) => [a.key, b.key])).toEqual([['p2', 'p3']]);
  expect((await contents()).map((each) => String(each))).toEqual(['judgement,', expect.stringContaining('"p3"')]);
  await world.restart();
  expect(world.store.service.store.projections.judgements.judgementsOn(0)).toEqual(judgements.judgementsOn(0));
  await world.store.close();
});
