/**
 * What likeness by hashing is worth beside words, where there is no model: for several weights, how good the fused ranking of the rows
 * that words find is. `hashedWeight` is the best of them that is nowhere below words alone.
 */
import { addHashed, cosineOf, hashedDims } from '../../src/planner/embedding/hashing.ts';
import { analyst, TestStore } from '../harness.ts';
import { type Collection, ndcg } from './collection.ts';
import { conversations } from './conversations.ts';

export const weights: readonly number[] = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 1];

/** By weight, of one set of questions. */
export type Worth = ReadonlyMap<number, number>;

interface Hit {
  readonly id: string;
  readonly words: number;
  readonly likeness: number;
}

const caller = { ...analyst, path: 'acme', tenant: 'acme' };
/** As recall and HYBRID_SEARCH look at them. */
const [rowsMost, medianOf] = [200, 50];

/** Hits of a question, best first, as they stand with a weight. */
function ranked(hits: readonly Hit[], weight: number): readonly string[] {
  const half = hits[Math.floor((Math.min(hits.length, medianOf) - 1) / 2)]?.words ?? 1;
  const score = ({ words, likeness }: Hit): number => words / (words + half) + weight * likeness;
  return [...hits].sort((a, b) => score(b) - score(a)).map(({ id }) => id);
}

async function hitsOf(store: TestStore, sql: string, question: string): Promise<readonly Hit[]> {
  const rows = await store.rows(`${sql} ORDER BY _score DESC LIMIT ${rowsMost}`, caller);
  const sought = vectorOf(question);
  return rows.map(({ id, body, _score: words }) => ({
    id: String(id),
    words: Number(words),
    likeness: Math.max(0, cosineOf(sought, vectorOf(String(body)))),
  }));
}

function vectorOf(text: string): Float64Array {
  const sum = new Float64Array(hashedDims);
  addHashed(text, sum);
  return sum;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Mean nDCG@10. */
export async function worthOnCollection({ documents, queries, grades }: Collection): Promise<Worth> {
  const store = await TestStore.open('2024-01-01');
  try {
    await store.register('Doc', { id: 'string', body: 'string' }, 'id');
    await store.put(
      'Doc',
      documents.map(({ id, title, text }) => ({ id, body: `${title}\n${text}` })),
      caller,
    );
    const sums = new Map(weights.map((weight) => [weight, 0]));
    for (const { id, text } of queries) {
      const sql = `SELECT id, body, _score FROM Doc AS OF CURRENT WHERE MATCH(body, ${quoted(text)}, STEMMED)`;
      const hits = await hitsOf(store, sql, text);
      for (const weight of weights)
        sums.set(weight, sums.get(weight)! + ndcg(ranked(hits, weight), grades.get(id) ?? new Map()) / queries.length);
    }
    return sums;
  } finally {
    await store.close();
  }
}

/** Share of questions that one of the first five answers, of what is believed now. */
export async function worthOnConversations(half: 1 | 2, seed: number): Promise<Worth> {
  const { turns, questions } = conversations(half, seed);
  const superseded = new Set(turns.map(({ corrects }) => corrects));
  const live = turns.filter(({ id }) => !superseded.has(id));
  const asked = questions.filter(({ at }) => at === undefined);
  const store = await TestStore.open('2024-01-01');
  try {
    await store.register('Turn', { id: 'string', body: 'string' }, 'id');
    await store.put(
      'Turn',
      live.map(({ id, text }) => ({ id, body: text })),
      caller,
    );
    const sums = new Map(weights.map((weight) => [weight, 0]));
    for (const { text, turn } of asked) {
      const sql = `SELECT id, body, _score FROM Turn AS OF CURRENT WHERE MATCH(body, ${quoted(text)}, STEMMED)`;
      const hits = await hitsOf(store, sql, text);
      for (const weight of weights)
        if (ranked(hits, weight).slice(0, 5).includes(turn)) sums.set(weight, sums.get(weight)! + 1 / asked.length);
    }
    return sums;
  } finally {
    await store.close();
  }
}
