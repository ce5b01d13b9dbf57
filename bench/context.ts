/** What every measure is given. */
import type { Postgres } from './peers/postgres.ts';
import type { Sqlite } from './peers/sqlite.ts';
import type { Report } from './report.ts';

export interface BenchContext {
  readonly report: Report;
  /** Emptied when the bench ends. */
  readonly directory: string;
  readonly postgres: Postgres | null;
  readonly sqlite: Sqlite | null;
  /** Rows of the large loads. */
  readonly rows: number;
  readonly repeats: number;
  /** Of one closed loop. */
  readonly seconds: number;
  /** A free TCP port, another one each time, with its neighbour above free as well. */
  port(): number;
}

export type Measure = (context: BenchContext) => Promise<void>;
