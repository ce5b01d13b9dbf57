/**
 * Nothing can be changed unseen. A bit that was turned in a frame is looked for in that frame, and of some in the whole log;
 * `npm run tamper -- --bytes 65536` turns every bit of a longer log, and verifies all of it each time.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { hasTurn, whole } from '../runner/turn.ts';
import { FaultyDisk } from './faulty-disk.ts';
import { rename, rewritten } from './forgery.ts';
import { Seeded } from './seeded.ts';
import { openLocalLog } from './subject.ts';
import { check, flipEveryBit, framesOf, logFilesOf, type SealedLog, sealedLog, tamperings, withFile } from './tampering.ts';
import { SimulatedClock } from './world.ts';

describe('a closed log', () => {
  let log: SealedLog;
  let other: SealedLog;
  let later: SealedLog;

  beforeAll(async () => {
    log = await sealedLog(1, 8192);
    const keys = new Map([...log.image.files].filter(([path]) => path.includes('/keys/')));
    other = await sealedLog(2, 8192, { directories: log.image.directories, files: keys });
    later = await sealedLog(3, 16_384, log.image);
  });

  it('is intact, with keys and without, and contains the head that somebody kept of it', async () => {
    for (const keys of [true, false]) {
      const report = await check(log.image, log, { keys, held: [log.checkpoint] });
      expect(report.findings).toEqual([]);
      expect(report.bodiesOpened).toBe(keys ? report.leaves : 0);
      expect(report.files).toBeGreaterThan(2);
    }
    const grown = await check(later.image, later, { keys: true, held: [log.checkpoint, later.checkpoint] });
    expect(grown.findings).toEqual([]);
  });

  it('shows every single bit that was turned, and where', { timeout: 600_000 }, async () => {
    const figures = await flipEveryBit(log, { sample: { of: whole ? 40 : 80, first: seedBase } });
    tell(`every bit turned; the whole log verified for ${figures.whole} of ${figures.bits} (npm run tamper)`);
    expect(figures.missed).toEqual([]);
    expect(figures.misplaced).toEqual([]);
    expect(figures.bits).toBeGreaterThan(65_536);
    expect(figures.whole).toBeGreaterThan(figures.bits / (whole ? 42 : 84));
  });

  it('shows a bit of each frame where bodies are opened too, here and beside', async () => {
    const random = new Seeded(seedBase);
    for (const [path, bytes] of logFilesOf(log.image).filter(([each]) => each.endsWith('.log'))) {
      for (const [from, to] of framesOf(path, bytes)) {
        const turned = bytes.slice();
        const at = from + random.below(to - from);
        turned[at]! ^= 1 << random.below(8);
        const { ok } = await check(withFile(log.image, path, turned), log, { keys: true });
        expect([path, at, ok]).toEqual([path, at, false]);
      }
    }
  });

  it('shows cuts, removals, repetitions, swaps, splices and rollbacks', { timeout: 600_000 }, async () => {
    const missed: string[] = [];
    let [tried, cuts] = [0, 0];
    for (const { name, image, held, tailOnly } of tamperings(log, other, later)) {
      if (name.includes('cut to') && !hasTurn(cuts++, 4)) continue;
      tried++;
      const report = await check(image, log, { keys: false, held: held ?? [] });
      if (tailOnly) expect(report.notes.join()).toContain(`${name.slice(0, name.indexOf(':'))}@`);
      else if (report.ok) missed.push(name);
    }
    expect(missed).toEqual([]);
    expect(tried).toBeGreaterThan(whole ? 8192 : 2048);
  });

  it('is not opened when it was tampered with', async () => {
    const opened: string[] = [];
    let i = 0;
    for (const { name, image, held, tailOnly } of tamperings(log, other, later)) {
      if (held || tailOnly || (name.includes('cut to') && i++ % 97 !== 0)) continue;
      const disk = new FaultyDisk({}, image);
      const world = { disk, clock: new SimulatedClock(), random: new Seeded(i), walSync: 'interval', fileBytes: 4096 } as const;
      await openLocalLog(world).then(
        () => opened.push(name),
        () => undefined,
      );
    }
    expect(opened).toEqual([]);
  });
});

describe('a log that nobody has sealed yet', () => {
  let log: SealedLog;

  beforeAll(async () => {
    log = await sealedLog(5, 4096, undefined, 'unsealed');
    expect((await check(log.image, log, { keys: true })).findings).toEqual([]);
  });

  it('shows a leaf that was changed by the link of the next one', async () => {
    let changed = -1;
    const image = rewritten(log.image, ({ leaf: bytes }, leaf) => {
      if (changed < 0 && rename(bytes, 'writer-1', 'writer-9')) changed = leaf;
    });
    const { findings } = await check(image, log, { keys: 'none' });
    expect(findings).toContainEqual(expect.objectContaining({ leaf: changed + 1, what: 'does not link to the leaf before it' }));
  });

  it('shows a payload that was changed by the digest in its leaf', async () => {
    const image = rewritten(log.image, ({ payload }, leaf) => {
      if (leaf === 4) payload[payload.length - 20] = payload[payload.length - 20]! ^ 1;
    });
    const { findings } = await check(image, log, { keys: 'none' });
    expect(findings).toMatchObject([{ leaf: 4, what: 'the payload does not match its digest' }]);
  });
});
