/** What of a type says what its rows are about. */
import type { TypeDefinition } from '../../log/entry.ts';
import { embeddingPrefix } from '../../log/value.ts';

/** `_emb_` columns where there are any, else all columns of vectors. */
export function vectorColumns({ properties }: TypeDefinition): readonly string[] {
  const all = Object.keys(properties).filter((name) => properties[name]!.type === 'vector');
  const embeddings = all.filter((name) => name.startsWith(embeddingPrefix));
  return embeddings.length > 0 ? embeddings : all;
}

/** Keys and ids say nothing of what a row is about. */
export function textColumns({ properties, primaryKey }: TypeDefinition): readonly string[] {
  return Object.keys(properties).filter((name) => properties[name]!.type === 'string' && name !== primaryKey && name !== 'id');
}
