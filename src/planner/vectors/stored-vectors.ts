/** Vectors that the model gave for rows of a type, as they were on record at the instant that is asked about. */
import type { Cell } from '../../log/values/value.ts';
import type { EmbeddingReader } from '../../projections/access-paths.ts';
import type { Execution } from '../operators/operator.ts';

/** Embeddings of each of these text columns; null without a model, and where rows of other tenants are read. */
export function storedVectors(
  type: string,
  texts: readonly string[],
  { services: { embedder }, snapshot, time }: Pick<Execution, 'services' | 'snapshot' | 'time'>,
): EmbeddingReader | null {
  if (embedder === null) return null;
  return snapshot.embeddingsOf(type, embedder, time.system === 'all' ? snapshot.instant : time.system, texts);
}

/** Whether a cell says anything that could be embedded. */
export function hasText(cell: Cell): boolean {
  return typeof cell === 'string' && cell.trim() !== '';
}
