/** What the rows that were written say a reader of a path is shown: paths compared here once more, in other words. */
import type { Written } from './stage.ts';

/** Questions whose answers are known without the server. */
export const references = {
  'all current rows': 'SELECT id, namespace_path, amount, note FROM Deal AS OF CURRENT ORDER BY id, namespace_path',
  'all stored versions': 'SELECT COUNT(*) AS n FROM Deal',
  'current rows by note': 'SELECT note, COUNT(*) AS n FROM Deal AS OF CURRENT GROUP BY note ORDER BY note',
  'all parties': 'SELECT id, namespace_path, name FROM Party AS OF CURRENT ORDER BY id, namespace_path',
} as const;

export function referenceRows(
  question: string,
  rows: readonly Written[],
  path: string | null,
  shares: (row: Written) => boolean,
): unknown {
  const seen = rows.flatMap((row) => (below(path, row.path) ? [row] : shares(row) ? [{ ...row, versions: 1 }] : []));
  const current = seen.filter(({ ended }) => !ended);
  const of = (type: string): Written[] =>
    current.filter((row) => row.type === type).sort((a, b) => order(a.id, b.id) || order(a.path ?? '', b.path ?? ''));
  switch (question as keyof typeof references) {
    case 'all current rows':
      return of('Deal').map(({ id, path: namespace_path, cells }) => ({
        id,
        namespace_path,
        amount: cells['amount'] ?? null,
        note: cells['note'] ?? null,
      }));
    case 'all stored versions':
      return [{ n: seen.filter(({ type }) => type === 'Deal').reduce((sum, { versions }) => sum + versions, 0) }];
    case 'current rows by note': {
      const counts = new Map<string, number>();
      for (const { cells } of of('Deal')) counts.set(cells['note'] as string, (counts.get(cells['note'] as string) ?? 0) + 1);
      return [...counts].sort(([a], [b]) => order(a, b)).map(([note, n]) => ({ note, n }));
    }
    case 'all parties':
      return of('Party').map(({ id, path: namespace_path, cells }) => ({ id, namespace_path, name: cells['name'] }));
  }
}

/** Segment by segment. */
function below(reader: string | null, path: string | null): boolean {
  if (reader === null || path === null) return reader === path;
  const [mine, theirs] = [reader.split('/'), path.split('/')];
  return mine.every((segment, i) => theirs[i] === segment);
}

const order = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
