/** The options of a planner: its limits, and the parts of the store that it may use beside the gate. */
import type { Clock, Random } from '../clock.ts';
import type { JobRunner } from '../governance/jobs/job-runner.ts';
import type { WorkerKeeper } from '../log/threads/worker-keeper.ts';
import type { RankingRule } from './binding/ranking.ts';
import type { ContinuousServices } from './control/control-request.ts';
import type { Embedder, EmbeddingWishes } from '../governance/embedding/embedder.ts';
import type { Reranker } from './embedding/reranker.ts';
import type { Pass } from './passes/pass.ts';
import type { typoPresets } from '../governance/text-search/text-query.ts';

export interface PlannerLimits {
  readonly timeoutMs: number;
  readonly resultRowsMax: number;
  readonly scannedRowsMax: number;
  readonly memoryBytesMax: number;
  /** Rows that a function that ranks may yield; 0: any number. */
  readonly vectorRowsMax?: number;
  /** Visible rows up to which nearest vectors are found by a look at all of them. */
  readonly vectorExactRows?: number;
  /** Looks at edges of a graph up to which a question is answered where it was asked; the work of more is done by a worker. */
  readonly looksBesideMin?: number;
  /** Rows that operators exchange at once. */
  readonly blockRows?: number;
}

export interface PlannerOptions {
  readonly clock: Clock;
  /** The source of `random()` and `gen_random_uuid()`, which are refused without it. */
  readonly random?: Random;
  /** Version of this program, as recipes of exhibits name it. */
  readonly version?: string;
  readonly limits?: Partial<PlannerLimits>;
  /** Gives other work a turn; a queue of its own, unless the store has one for all. */
  readonly yieldTurn?: () => Promise<void>;
  /** The same for questions that go behind others; as for all, unless the store has it. */
  readonly yieldBackground?: () => Promise<void>;
  /** Standing queries and what else outlives its statement; without it these statements are refused. */
  readonly continuous?: ContinuousServices;
  /** Names of branches whose plans no other branch's may push out. */
  readonly pinnedBranches?: readonly string[];
  /** Columns that are sketched, in every type that has them. */
  readonly sketchColumns?: readonly string[];
  /** Keys of nodes and edges that CREATE makes without one. */
  readonly newKey?: () => string;
  /** The listing of long statements over a graph, by which they can be cancelled. */
  readonly jobs?: JobRunner;
  /** Workers beside the event loop; without them everything is done in its turns. */
  readonly workers?: WorkerKeeper | null;
  /** The model that texts are given to; without one their vectors are hashed. */
  readonly embedder?: Embedder | null;
  /** Learns which types were searched by the model. */
  readonly embeddings?: EmbeddingWishes;
  /** The model that orders what HYBRID_SEARCH … RERANK found. */
  readonly reranker?: Reranker | null;
  /** The preset of searches that say nothing of typos; `exact` where this is absent. */
  readonly searchPreset?: keyof typeof typoPresets;
  /** By type: the ranking rules of searches without RANK BY. */
  readonly rankings?: ReadonlyMap<string, readonly RankingRule[]>;
  /** Fewer passes give the same answers, only slower; the first one can't be left out. */
  readonly passes?: readonly Pass[];
  /** False: every question has its plan made. The same answers, only slower. */
  readonly keepPlans?: boolean;
}

/** Source: specification, "Limits". */
export const defaultLimits: Required<PlannerLimits> = {
  timeoutMs: 30_000,
  resultRowsMax: 1_000_000,
  scannedRowsMax: 10_000_000,
  memoryBytesMax: 512 * 1024 * 1024,
  vectorRowsMax: 1_000,
  vectorExactRows: 250_000,
  looksBesideMin: 1 << 20,
  blockRows: 8_192,
};
