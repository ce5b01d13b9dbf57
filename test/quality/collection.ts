/** A judged collection: documents, questions, and how well each of some documents answers a question. Files of NDJSON. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const dataFolder = process.env['ANNALS_DATA_DIR'] ?? join(import.meta.dirname, '../../../shared/data');

export interface Collection {
  readonly documents: readonly { readonly id: string; readonly title: string; readonly text: string }[];
  readonly queries: readonly { readonly id: string; readonly text: string }[];
  /** By query: grade by document. */
  readonly grades: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

/** null where it is not there. */
export function collectionIn(folder: string, name: string): Collection | null {
  if (!existsSync(join(folder, name, 'docs.ndjson'))) return null;
  const read = <T>(file: string): T[] =>
    readFileSync(join(folder, name, file), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as T);
  const grades = new Map<string, Map<string, number>>();
  for (const { query, doc, grade } of read<{ query: string; doc: string; grade: number }>('qrels.ndjson')) {
    const own = grades.get(query) ?? new Map<string, number>();
    grades.set(query, own.set(doc, grade));
  }
  return { documents: read('docs.ndjson'), queries: read('queries.ndjson'), grades };
}

/** Of the ids of one answer, best first. */
export function ndcg(ids: readonly string[], grades: ReadonlyMap<string, number>, depth = 10): number {
  const gains = ids.slice(0, depth).map((id) => grades.get(id) ?? 0);
  const best = [...grades.values()].sort((a, b) => b - a).slice(0, depth);
  const sum = (list: readonly number[]): number => list.reduce((total, gain, i) => total + gain / Math.log2(i + 2), 0);
  return best.length === 0 ? 0 : sum(gains) / sum(best);
}
