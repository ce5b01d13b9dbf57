/** A column of vectors, where a batch has one. */
import type { Vector } from '../../log/values/columns.ts';

export type VectorColumn = Extract<Vector, { readonly kind: 'vec' }>;
