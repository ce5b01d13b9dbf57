/** Vectors that the model gave for rows of a type, as they were on record at the instant that is asked about. */
import type { Cell } from '../../log/values/value.ts';
import type { EmbeddingReader } from '../../projections/access-paths.ts';
import type { Execution } from '../operators/operator.ts';

/** Embeddings of each of these text columns; null without a model, and where rows of other tenants are read. */
export function storedVectors(
  embeddedType: string,
  textColumns: readonly string[],
  { services: { embedder }, snapshot, time }: Pick<Execution, 'services' | 'snapshot' | 'time'>,
): EmbeddingReader | null {
  if (embedder === null) return null;
  return snapshot.embeddingsOf(embeddedType, embedder, time.system === 'all' ? snapshot.instant : time.system, textColumns);
}

/** Whether a cell says anything that could be embedded. */
export function hasText(textCell: Cell): boolean {
  return typeof textCell === 'string' && textCell.trim() !== '';
}
