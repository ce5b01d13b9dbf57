/**
 * A log whose rows are sealed by subject, on its real keys, while keys are destroyed and data keys rotated; the machine dies
 * before each disk call. Every row that was acknowledged is there with its cells, or as a hash where its subject was erased.
 */
import { expect, test } from 'vitest';
import type { RowsBody } from '../../src/log/entries/entry.ts';
import { type KeyStore, openKeyring } from '../../src/log/keys/keys.ts';
import { verifyDirectory } from '../../src/log/proofs/verify.ts';
import { crashImage, sameImage } from '../simulation/crash-image.ts';
import { type DiskState, FaultyDisk, type Image } from '../simulation/faulty-disk.ts';
import { Seeded } from '../simulation/seeded.ts';
import { subjectDraft } from './subjects.ts';
import { directory, kek, openLog, SeededRandom, worldOn } from './world.ts';

/** Of one acknowledged entry. */
interface Row {
  readonly position: number;
  readonly subject: string;
}

interface Promised {
  readonly state: DiskState;
  readonly rows: readonly Row[];
  readonly erasing: ReadonlySet<string>;
  readonly erased: ReadonlySet<string>;
}

const open = (disk: FaultyDisk, seed: string): Promise<KeyStore> =>
  openKeyring({ disk, random: new SeededRandom(seed), directory, kek });

async function lives(): Promise<Promised[]> {
  const points: Promised[] = [];
  const rows: Row[] = [];
  const erasing = new Set<string>();
  const erased = new Set<string>();
  const note = (): number =>
    points.push({ state: disk.state(), rows: [...rows], erasing: new Set(erasing), erased: new Set(erased) });
  let watching = false;
  const disk: FaultyDisk = new FaultyDisk({
    beforeStep: () => {
      if (watching) note();
      return undefined;
    },
  });
  await disk.makeDirectory(directory);
  const keyring = await open(disk, 'life');
  const { log } = await openLog(worldOn(disk, 'life'), { keyring });
  watching = true;
  const append = async (subject: string): Promise<void> => {
    const { entries, acknowledged } = log.append([subjectDraft([subject, subject])]);
    await acknowledged;
    rows.push({ position: entries[0]!.position, subject });
  };
  const erase = async (subject: string): Promise<void> => {
    erasing.add(subject);
    await keyring.subjects.destroy(keyring.subjects.idsOf('acme', subject), `receipt of ${subject}`);
    erased.add(subject);
  };
  await append('ada');
  await Promise.all([append('bob'), append('cleo'), append('ada')]);
  await erase('bob');
  await Promise.all([append('dora'), keyring.rotate(), append('emil')]);
  await Promise.all([erase('cleo'), append('fred'), erase('dora'), append('gina')]);
  await append('hans');
  note();
  return points;
}

test('a crash before any disk call loses no row that was acknowledged, and brings none back that was erased', async () => {
  const points = await lives();
  expect(points.length).toBeGreaterThan(40);
  let found = 0;
  let dropped = 0;
  for (const [step, { state, rows, erasing, erased }] of points.entries()) {
    const seen: Image[] = [];
    for (const survivors of ['none', 'all', new Seeded(step), new Seeded(step + 1000)] as const) {
      const image = crashImage(state, survivors);
      if (seen.some((other) => sameImage(other, image))) continue;
      seen.push(image);
      const disk = new FaultyDisk({}, image);
      const keyring = await open(disk, `crash ${step}`);
      const { replayed, log } = await openLog(worldOn(disk, `crash ${step}`), { keyring });
      const bodies = new Map(replayed.map(({ position, body }) => [position, body as RowsBody]));
      for (const { position, subject } of rows) {
        const body = bodies.get(position);
        expect(body?.kind, `step ${step}: ${subject} at ${position}`).toBe('rows');
        const gone = (body!.dropped ?? []).length;
        if (erased.has(subject)) expect(gone).toBe(2);
        else if (!erasing.has(subject)) expect(gone).toBe(0);
        if (gone > 0) dropped++;
        else found++;
      }
      await log.append([subjectDraft(['ida', 'ada'])]).acknowledged;
      await log.close();
      expect(await verifyDirectory({ disk, directory, keyring })).toMatchObject({ ok: true, findings: [] });
    }
  }
  expect([found > 100, dropped > 100]).toEqual([true, true]);
});
