/**
 * How good rankings are, on judged collections: mean nDCG@10 over all queries, gains by grade.
 *
 *   npm run quality -- cranfield [--data <folder>]        ANNALS_DATA_DIR, or ../shared/data, by default
 *
 * A line a way of searching, then one of JSON; exit code 1 where plain BM25 is below what it has to reach.
 */
import { parseArgs } from 'node:util';
import { collectionIn, dataFolder } from './collection.ts';
import { measured } from './measure.ts';

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: { data: { type: 'string' } } });
const name = positionals[0] ?? 'cranfield';
const collection = collectionIn(options.data ?? dataFolder, name);
if (collection === null) {
  console.log(`no collection ${name} in ${options.data ?? dataFolder} (--data, ANNALS_DATA_DIR)`);
  process.exit(1);
}

/** Two independent implementations of BM25 give 0.488 and 0.491. */
const least = 0.485;

const figures = await measured(collection);
for (const { way, ndcg } of figures) console.log(`${ndcg.toFixed(4)}  ${way}`);
console.log(JSON.stringify({ collection: name, queries: collection.queries.length, figures }));
process.exit(figures[0]!.ndcg >= least ? 0 : 1);
