/** What every measure is given. */
import type { DataSets } from './datasets.ts';
import type { Postgres } from './peers/postgres.ts';
import type { Sqlite } from './peers/sqlite.ts';
import type { Report } from './report.ts';

export interface BenchContext {
  readonly report: Report;
  /** Emptied when the bench ends. */
  readonly directory: string;
  readonly postgres: Postgres | null;
  readonly sqlite: Sqlite | null;
  readonly datasets: DataSets;
  /** Rows of the loads that are measured. */
  readonly rows: number;
  /** Rows of the stores that are only read: ten times as many. */
  readonly largeRows: number;
  readonly repeats: number;
  /** Of one closed loop. */
  readonly seconds: number;
  /** A free TCP port, another one each time, with its neighbour above free as well. */
  port(): number;
}

export type Measure = (context: BenchContext) => Promise<void>;
