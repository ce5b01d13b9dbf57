/** The scan: plants, erases every other subject, and searches: while the store runs, after a restart, and in a backup of before. */
import { ErasedStore, inRows } from './erased-store.ts';
import type { Found } from './haystack.ts';
import { searched } from './search.ts';

export interface ScanReport {
  readonly subjects: number;
  readonly erased: number;
  readonly bytes: number;
  readonly files: number;
  readonly entries: number;
  /** Canaries of the erased that were found anywhere, in any encoding. */
  readonly hits: readonly Found[];
  /** Canaries of anybody that lie in the clear on the disk, or were said. */
  readonly inTheClear: readonly Found[];
  /** Canaries of the control that no reader finds: a scan that does not see them would see no others. */
  readonly unseen: readonly { readonly subject: number; readonly plant: string }[];
  /** Canaries of the control that indexes of texts, of vectors, and graphs hold on files: in the round that has the fewest. */
  readonly inTexts: number;
  readonly inVectors: number;
  readonly inGraphs: number;
  /** What verifying the whole log found: after the first round of erasures, the second, the fourth, the eighth …, the last, and in each search. */
  readonly damage: readonly string[];
  readonly eraseMsMedian: number;
  readonly eraseMsMax: number;
}

export async function scan(
  subjects: number,
  options: { readonly seed?: number; readonly say?: (line: string) => void } = {},
): Promise<ScanReport> {
  const { seed = 1, say = () => undefined } = options;
  const store = new ErasedStore(subjects, seed);
  const all = Array.from({ length: subjects }, (_, i) => i);
  const erased = all.filter((i) => i % 2 === 0);
  const control = all.filter((i) => i % 2 === 1);
  const needles = [...store.needles(all)];
  await store.open();
  await store.prepare();
  for (const subject of all) {
    // A branch inherits the rows of one half.
    if (subject === subjects >> 1) await store.fork('half');
    await store.plant(subject);
  }
  say(`planted ${needles.length} canaries of ${subjects} subjects`);
  for (const subject of all) await store.automate(subject);
  const backup = await store.admin('POST', '/admin/backup', {});
  if (backup.status >= 300) throw new Error(`no backup: ${backup.text}`);

  const times: number[] = [];
  const damage: string[] = [];
  // Each goes through all that is there: of few each by itself, of many so many beside each other that there are as many rounds.
  const beside = Math.ceil(erased.length / roundsMost);
  for (let i = 0, round = 1; i < erased.length; i += beside, round++) {
    const began = performance.now();
    await store.erase(erased.slice(i, i + beside));
    times.push(performance.now() - began);
    // The whole log each time, so not after each: what an erasure breaks in the chain of hashes stays broken.
    if (isPowerOfTwo(round) || i + beside >= erased.length) damage.push(...(await store.verified()));
  }
  say(`erased ${erased.length}`);

  const isErased = new Set(erased);
  const found: Found[] = [];
  const inTheClear: Found[] = [];
  const seen = new Set<string>();
  const unseen: { subject: number; plant: string }[] = [];
  let [bytes, files, entries] = [0, 0, 0];
  let [inTexts, inVectors, inGraphs] = [Infinity, Infinity, Infinity];
  for (const round of ['running', 'restarted', 'restored'] as const) {
    if (round === 'restarted') {
      await store.close();
      await store.open();
    }
    if (round === 'restored') {
      const body = { backup: backup.json['backup'], target_dir: '/restored' };
      const reply = await store.admin('POST', '/admin/restore', body);
      if (reply.status >= 300) throw new Error(`not restored: ${reply.text}`);
      await store.close();
      await store.open('/restored');
    }
    const { raw, decoded, ...counts } = await searched(store, needles);
    const inherited = await store.exported('half');
    for (const subject of control) {
      if (subject >= subjects >> 1 || inherited.includes(store.planted(subject, 'name'))) continue;
      unseen.push({ subject, plant: `name on a branch, ${round}` });
    }
    const automated = `${await store.automated()}\n${await store.exported('main')}`;
    for (const subject of control) {
      const told = `told-${store.planted(subject, 'key')}`;
      if (!automated.includes(told)) unseen.push({ subject, plant: `a row of a run, ${round}` });
      if (!automated.includes(`of ${store.planted(subject, 'key')}`))
        unseen.push({ subject, plant: `a rule and a job, ${round}` });
      if (!automated.includes(`who = '${store.planted(subject, 'subject')}' AND n`))
        unseen.push({ subject, plant: `a view, ${round}` });
    }
    damage.push(...(await store.verified()));
    ({ files, entries } = counts);
    bytes += raw.bytes + decoded.bytes;
    inTheClear.push(...raw.found);
    const foundIn = (place: string): number => decoded.found.filter(({ where }) => where === `derived, index, ${place}`).length;
    [inTexts, inVectors] = [Math.min(inTexts, foundIn('text')), Math.min(inVectors, foundIn('coarse'))];
    inGraphs = Math.min(inGraphs, foundIn('graph'));
    found.push(...[...raw.found, ...decoded.found].filter(({ subject }) => isErased.has(subject)));
    for (const { subject, canary, encoding } of decoded.found) if (encoding === 'UTF-8') seen.add(`${subject} ${canary}`);
    say(`${round}: ${raw.bytes + decoded.bytes} bytes in ${files} files and ${entries} entries`);
  }
  for (const subject of control) {
    for (const plant of inRows) if (!seen.has(`${subject} ${store.planted(subject, plant)}`)) unseen.push({ subject, plant });
  }
  await store.close();
  times.sort((a, b) => a - b);
  return {
    subjects,
    erased: erased.length,
    bytes,
    files,
    entries,
    hits: found,
    inTheClear,
    unseen,
    inTexts,
    inVectors,
    inGraphs,
    damage,
    eraseMsMedian: Math.round(times[times.length >> 1] ?? 0),
    eraseMsMax: Math.round(times.at(-1) ?? 0),
  };
}

const roundsMost = 8;

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}
