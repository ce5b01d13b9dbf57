/** Services that runs of a planner may use beside the rows of their snapshot: the same for all of them. */
import type { Embedder, EmbeddingWishes } from '../governance/embedding/embedder.ts';
import type { WorkerKeeper } from '../log/threads/worker-keeper.ts';
import type { Reranker } from './embedding/reranker.ts';
import type { BasisCache } from './graph/basis-cache.ts';
import type { GraphCache } from './graph/graph-cache.ts';

export interface Services {
  /** Graphs of earlier questions. */
  readonly graphs: GraphCache;
  /** Pieces that functions made of rows for earlier questions. */
  readonly basisCache: BasisCache;
  /** Where questions about a graph go on that look at more edges; null: they are answered in turns of the event loop. */
  readonly beside: { readonly workers: WorkerKeeper; readonly looksMin: number } | null;
  /** The model that texts are given to; null: their vectors are hashed. */
  readonly embedder: Embedder | null;
  /** Learns which types were searched by the model. */
  readonly embeddings: EmbeddingWishes | null;
  /** null: RERANK is refused. */
  readonly reranker: Reranker | null;
}
