/** Values, figures and the number of a hundred thousand rows that match a word, in the bench's own process. */
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { summary } from '../report.ts';
import { Texts } from './text.ts';

const matching = 100_000;
/** Rows that do not match, for each that does. */
const others = 1;
const kinds = 50;
const rounds = 60;
const warmUp = 20;

export async function facets({ report }: BenchContext): Promise<void> {
  const store = await AnnalsStore.open();
  try {
    await store.register('Doc', { id: 'string', kind: 'string', price: 'number', text: 'string' }, 'id');
    await store.ingest('Doc', lines(new Texts()));
    const ask = (): ReturnType<AnnalsStore['query']> =>
      store.query("SELECT id FROM Doc AS OF CURRENT WHERE MATCH(text, 'sought') LIMIT 10 FACETS kind, price");
    const { facets: found, estimatedTotalHits } = await ask();
    const counted = [...(found?.counts.get('kind')?.values() ?? [])].reduce((sum, count) => sum + count, 0);
    if (counted !== matching || estimatedTotalHits !== matching) throw new Error(`${counted} of ${matching} rows have a kind`);
    const times: number[] = [];
    for (let round = 0; round < rounds + warmUp; round++) {
      const start = performance.now();
      await ask();
      if (round >= warmUp) times.push(performance.now() - start);
    }
    const measure = `facets of ${matching.toLocaleString('en')} rows that match`;
    report.add({ measure, product: 'annals', unit: 'ms', better: 'smaller', samples: times, note: 'search and total included' });
    report.figure('facets.time', summary(times));
  } finally {
    await store.close();
  }
}

function* lines(texts: Texts): Generator<Buffer> {
  for (let first = 0; first < matching * (1 + others); first += 2_000) {
    const piece = Array.from({ length: 2_000 }, (_, i) => {
      const row = first + i;
      const text = `${texts.document()}${row % (1 + others) === 0 ? ' sought' : ''}`;
      return `{"id":"d${row}","kind":"k${(row >> 1) % kinds}","price":${(row % 9_973) / 4},"text":"${text}"}\n`;
    });
    yield Buffer.from(piece.join(''));
  }
}
