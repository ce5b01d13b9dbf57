/**
 * Searches in the bench's own process: the same as of now, under a row policy that shows half of the rows, and on a branch; phrases and words
 * with typos at their slowest; and how large the indexes are.
 */
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { quotient, summary } from '../report.ts';
import { Texts } from './text.ts';

const questions = 24;
const rounds = 5;

export async function governedText({ report, rows }: BenchContext): Promise<void> {
  const texts = new Texts();
  const store = await AnnalsStore.open();
  try {
    await store.register('Doc', { id: 'string', half: 'integer', kind: 'string', text: 'string' }, 'id');
    let raw = 0;
    await store.ingest(
      'Doc',
      lines(texts, rows, (text) => (raw += text.length)),
    );
    const asked = Array.from({ length: questions }, (_, i) => texts.question(2 + (i % 3)));
    const search = (words: readonly string[], mode = '', branch = 'main'): Promise<number> =>
      timed(() =>
        store.query(
          `SELECT id, _score FROM Doc AS OF CURRENT WHERE MATCH(text, '${words.join(' ')}'${mode}) ORDER BY _score DESC LIMIT 10`,
          'all',
          { branch },
        ),
      );
    await search(asked[0]!);
    const bytes = store.indexBytes;
    const sample = async (mode = '', branch = 'main'): Promise<number[]> => {
      const times: number[] = [];
      for (let round = 0; round < rounds + 2; round++) {
        for (const words of asked) {
          const ms = await search(mode === '' ? words : words.slice(0, 2), mode, branch);
          if (round > 1) times.push(ms);
        }
      }
      return times.sort((a, b) => a - b);
    };
    const shape = { unit: 'ms', better: 'smaller', note: 'gate and planner in process' } as const;
    const measure = `search, best 10 and how many, ${rows.toLocaleString('en')} short documents`;
    const now = await sample();
    report.add({ ...shape, measure, product: 'annals', samples: now });
    for (const [mode, name] of [
      [', PHRASE', 'phrase'],
      [', FUZZY', 'fuzzy'],
    ] as const) {
      const times = await sample(mode);
      report.add({ ...shape, measure, product: `annals, ${name}`, samples: times });
      report.figure(`governed-text.${name}`, summary([times[Math.floor(times.length * 0.99)]!]));
    }
    await store.query('BRANCH beside FROM main');
    const branch = await sample('', 'beside');
    report.add({ ...shape, measure, product: 'annals, on a branch', samples: branch });
    report.figure('governed-text.branch', quotient(branch, now));
    await store.rule('half', 'permit(principal, action, resource is Doc) when { resource.half == 0 };');
    const ruled = await sample();
    report.add({ ...shape, measure, product: 'annals, half under a policy', samples: ruled });
    report.figure('governed-text.policy', quotient(ruled, now));
    report.figure('governed-text.bytes', quotient([bytes], [raw]));
  } finally {
    await store.close();
  }
}

function* lines(texts: Texts, count: number, seen: (text: string) => void): Generator<Buffer> {
  for (let first = 0; first < count; first += 2_000) {
    const piece = Array.from({ length: Math.min(2_000, count - first) }, (_, i) => {
      const text = texts.document();
      seen(text);
      return `{"id":"d${first + i}","half":${i % 2},"kind":"k${i % 50}","text":"${text}"}\n`;
    });
    yield Buffer.from(piece.join(''));
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
