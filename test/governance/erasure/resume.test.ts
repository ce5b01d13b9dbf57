/** The power goes at every call of the disk of an erasure: what was begun comes to its end after the next start, or never began. */
import { expect, test } from 'vitest';
import { crashImage, sameImage, type Survivors } from '../../simulation/crash-image.ts';
import { type DiskState, FaultyDisk, type Image } from '../../simulation/faulty-disk.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { textKeysOf } from '../../../src/projections/sealed-definitions.ts';
import { TestRandom } from '../../harness.ts';
import { acme, ErasureWorld, globex, verifyReceipt } from './erasure-world.ts';

let opened = 0;
async function worldOn(disk: FaultyDisk): Promise<ErasureWorld> {
  const world = new ErasureWorld(disk);
  world.clock.wallNs += BigInt(++opened) * 60_000_000_000n;
  return world.open({ random: new TestRandom(opened * 7 + 1), sealIdleMs: 0 });
}

function* imagesOf(states: readonly DiskState[]): Generator<{ readonly image: Image; readonly what: string }> {
  for (const [i, state] of states.entries()) {
    const survivors: Survivors[] = ['none', 'all', new Seeded(i + 1)];
    const seen: Image[] = [];
    for (const survivor of survivors) {
      const image = crashImage(state, survivor);
      if (seen.some((other) => sameImage(other, image))) continue;
      seen.push(image);
      yield { image, what: `crash ${i}, image ${seen.length}` };
    }
  }
}

test('nothing is half-erased, whenever the power goes', { timeout: 300_000 }, async () => {
  const states: DiskState[] = [];
  const watching = { on: false, version: -1 };
  const disk: FaultyDisk = new FaultyDisk({
    beforeStep: () => {
      if (watching.on && disk.version !== watching.version) states.push(disk.state());
      watching.version = disk.version;
      return undefined;
    },
  });
  const before = await (await worldOn(disk)).fill();
  const view = "SELECT name FROM Person WHERE who = 'alice'";
  await before.store.execute(`CREATE MATERIALIZED VIEW Seen AS ${view} REFRESH INCREMENTAL EVERY 60`, [], acme);
  await before.store.service.store.log.seal();
  await before.store.service.store.checkpoints!.take();
  watching.on = true;
  const { receipt: whole } = await before.erase();
  watching.on = false;
  states.push(disk.state());
  expect(whole).not.toBeNull();

  const ends = { never: 0, resumed: 0, ended: 0 };
  for (const { image, what } of imagesOf(states)) {
    const world = await worldOn(new FaultyDisk({}, image));
    const { erasures } = world.store.service.store.projections;
    const found = erasures.all().map(({ completed }) => completed !== null);
    const views = world.store.service.store.projections.views.viewsOn(0).map(({ sql }) => sql);
    expect([what, views]).toEqual([what, found.length === 0 ? [view] : []]);
    if (found.length === 0) {
      ends.never++;
      expect([what, await world.names()]).toEqual([what, ['Alice Canary', 'Bob', 'Nobody', 'Alice Married']]);
    } else {
      // From the intent on, whatever came of the rest of it.
      expect([what, await world.names()]).toEqual([what, ['Bob', 'Nobody']]);
      ends[found[0] ? 'ended' : 'resumed']++;
      await world.store.service.upkeep.erasures.resume();
      expect([what, world.said, erasures.openErasures()]).toEqual([what, [], []]);
    }
    const { receipt, certified, key } = await world.erase();
    expect([what, certified]).toEqual([what, true]);
    expect([what, await keysOfTexts(world)]).toEqual([what, [null]]);
    expect(verifyReceipt(JSON.stringify(receipt), world.logKey, key).length).toBeGreaterThan(3);
    expect([what, await world.names(), await world.names(globex)]).toEqual([what, ['Bob', 'Nobody'], ['Alice Elsewhere']]);
    await world.restart();
    expect([what, await world.names(acme)]).toEqual([what, ['Bob', 'Nobody']]);
    await world.store.close();
  }
  expect(ends.never).toBeGreaterThan(0);
  expect(ends.resumed).toBeGreaterThan(10);
  expect(ends.ended).toBeGreaterThan(0);
});

/** The keys of the texts in the log that rest under keys of their own; null: destroyed. */
async function keysOfTexts({ store }: ErasureWorld): Promise<readonly unknown[]> {
  const { log, keyring } = store.service.store;
  const keys: unknown[] = [];
  for await (const { body } of log.read(0)) keys.push(...textKeysOf(body).map((id) => keyring.subjects.opening(id)));
  return keys;
}

test('what is written of a subject before its erasure is gone on with is not erased with it', async () => {
  const states: DiskState[] = [];
  let watching = false;
  const disk: FaultyDisk = new FaultyDisk({ beforeStep: () => (watching ? void states.push(disk.state()) : undefined) });
  const before = await (await worldOn(disk)).fill();
  watching = true;
  await before.erase();
  const cutOff = states.map((state) => crashImage(state, 'none'));
  for (const image of cutOff) {
    const world = await worldOn(new FaultyDisk({}, image));
    const { erasures } = world.store.service.store.projections;
    if (erasures.openErasures().length === 0) {
      await world.store.close();
      continue;
    }
    await world.store.put('Person', [{ id: 'p9', who: 'alice', name: 'Alice Again', age: 32 }], acme);
    await world.store.service.upkeep.erasures.resume();
    await world.store.close();
    // What is not saved beside the log is read from it.
    for (const name of await world.disk.list('/data/projections')) await world.disk.unlink(`/data/projections/${name}`);
    await world.open();
    expect(await world.names()).toEqual(['Bob', 'Nobody', 'Alice Again']);
    expect((await world.erase()).certified).toBe(true);
    expect(await world.names()).toEqual(['Bob', 'Nobody']);
    await world.store.close();
    return;
  }
  throw new Error('no crash left an erasure standing');
});
