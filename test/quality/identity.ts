/** How well rows that are one thing are told from look-alikes: F1 of pairs, asked row by row as a caller would ask. */
import { TestStore } from '../harness.ts';
import { type LabelledSet, offers, papers, persons, restaurants } from './identity-sets.ts';

export interface IdentityFigures {
  readonly set: string;
  readonly rows: number;
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
  /** By weights that were trained of the rows. */
  readonly trainedF1: number;
  /** Of token Jaccard at its best threshold. */
  readonly jaccardF1: number;
  readonly p95Ms: number;
}

export async function identityFigures(seed: number, now: () => number): Promise<IdentityFigures[]> {
  const figures: IdentityFigures[] = [];
  for (const make of [persons, papers, restaurants, offers]) figures.push(await figuresOf(make(seed), now));
  return figures;
}

async function figuresOf({ name, properties, rows }: LabelledSet, now: () => number): Promise<IdentityFigures> {
  const store = await TestStore.open('2024-01-01');
  try {
    await store.register('Thing', { id: 'string', ...properties }, 'id');
    const things = new Map(rows.map(({ thing }, i) => [`r${i}`, thing]));
    await store.put(
      'Thing',
      rows.map(({ row }, i) => ({ id: `r${i}`, ...row })),
    );
    const took: number[] = [];
    const pairs = async (): Promise<ReadonlySet<string>> => {
      const found = new Set<string>();
      for (const id of things.keys()) {
        const started = now();
        const members = await store.column(`SELECT * FROM RESOLVE_IDENTITY('${id}', SOURCE => 'Thing')`);
        took.push(now() - started);
        for (const other of members.map(String)) if (other !== id) found.add([id, other].sort().join(' '));
      }
      return found;
    };
    const found = await pairs();
    const [model] = await store.rows("SELECT * FROM TRAIN_IDENTITIES(SOURCE => 'Thing')");
    await store.register('IdentityModel', { id: 'string', of_type: 'string', weights: 'json' }, 'id');
    await store.put('IdentityModel', [{ id: 'Thing', of_type: 'Thing', weights: String(model!['weights']) }]);
    const trained = await pairs();
    const isOne = (pair: string): boolean => {
      const [a, b] = pair.split(' ');
      return things.get(a!) === things.get(b!);
    };
    const hits = [...found].filter(isOne).length;
    const counts = new Map<number, number>();
    for (const thing of things.values()) counts.set(thing, (counts.get(thing) ?? 0) + 1);
    const all = [...counts.values()].reduce((sum, count) => sum + (count * (count - 1)) / 2, 0);
    took.sort((a, b) => a - b);
    return {
      set: name,
      rows: rows.length,
      precision: hits / Math.max(1, found.size),
      recall: hits / all,
      f1: (2 * hits) / (found.size + all),
      trainedF1: (2 * [...trained].filter(isOne).length) / (trained.size + all),
      jaccardF1: bestJaccard(rows, all),
      p95Ms: took[Math.floor(took.length * 0.95)]!,
    };
  } finally {
    await store.close();
  }
}

function bestJaccard(rows: LabelledSet['rows'], all: number): number {
  const words = rows.map(
    ({ row }) =>
      new Set(
        Object.values(row).flatMap(
          (cell) =>
            String(cell ?? '')
              .toLowerCase()
              .match(/[a-z\d]+/g) ?? [],
        ),
      ),
  );
  const steps = 50;
  const [hits, wrong] = [new Float64Array(steps + 1), new Float64Array(steps + 1)];
  words.forEach((left, i) => {
    for (let j = i + 1; j < words.length; j++) {
      const right = words[j]!;
      let shared = 0;
      for (const word of left) if (right.has(word)) shared++;
      const step = Math.floor((steps * shared) / (left.size + right.size - shared));
      if (rows[i]!.thing === rows[j]!.thing) hits[step]!++;
      else wrong[step]!++;
    }
  });
  let [hit, miss, best] = [0, 0, 0];
  for (let step = steps; step >= 0; step--) {
    hit += hits[step]!;
    miss += wrong[step]!;
    best = Math.max(best, (2 * hit) / (hit + miss + all));
  }
  return best;
}
