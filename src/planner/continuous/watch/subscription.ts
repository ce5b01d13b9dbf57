/** One standing query and the client that follows it. */
import { assert } from '../../../errors.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { RowReader } from '../../../projections/access-paths.ts';
import { writeNdjson } from '../../formats/json-rows.ts';
import type { Answer, OutputColumn, PlannerContract } from '../../planner-contract.ts';
import { snapshotInvocation } from './snapshot-invocation.ts';
import type { WatchEvent } from './watch-events.ts';
import type { WatchStatement } from './watch-statement.ts';

const matchingRowsAtOnce = 256;

/** The end of a stream that the door holds. */
export interface WatchClient {
  /** The caller as its credential is now. Throws REL_UNAUTHENTICATED once that is no longer good. */
  renew(): Caller;
  /**
   * Hands over events, in their order. Resolves once the connection takes more: true, or false where the client took too long or
   * has gone. Not called again before it has resolved.
   */
  write(events: readonly WatchEvent[]): Promise<boolean>;
  /**
   * Sends a last event, where there is one, and closes the connection; a write that still waits resolves to false. The
   * first call counts.
   */
  end(last: WatchEvent | null): void;
  readonly gone: AbortSignal;
}

export class Subscription {
  readonly id: string;
  readonly caller: Caller;
  readonly purpose: string;
  /** Statements of access to guarded types, used for every delivery as for the first. */
  readonly stated: { readonly breakGlass: string | null; readonly accessScopeRef: string | null };
  readonly statement: WatchStatement;
  /** The basis of the subscription: its rows are as of here, its events begin here. */
  readonly basis: bigint;
  /** Columns of the type that the query reads, learnt under one ontology version and grant. */
  columns: ReadonlySet<string> = new Set();
  ontologyVersion = -1;
  learntUnder: string | null = null;
  /** Whether a row of an organisation path may be visible, as far as was learnt. */
  shows: (path: string | null) => boolean = () => false;
  grantKey: string;
  state: 'waiting' | 'streaming' | 'ended' = 'waiting';
  /** While waiting: when it ends unless a client follows it. */
  expiresAtMs: number;

  constructor(subscriptionFields: {
    readonly id: string;
    readonly caller: Caller;
    readonly purpose: string;
    readonly statement: WatchStatement;
    readonly snapshot: GovernedSnapshot;
    readonly expiresAtMs: number;
  }) {
    this.id = subscriptionFields.id;
    this.caller = subscriptionFields.caller;
    this.purpose = subscriptionFields.purpose;
    this.stated = {
      breakGlass: subscriptionFields.snapshot.breakGlass,
      accessScopeRef: subscriptionFields.snapshot.accessScopeRef,
    };
    this.statement = subscriptionFields.statement;
    this.basis = subscriptionFields.snapshot.instant;
    this.grantKey = subscriptionFields.snapshot.grantKey;
    this.expiresAtMs = subscriptionFields.expiresAtMs;
  }

  /** Runs the query over no rows: reports its errors, and learns the columns that it reads. */
  async learn(planner: PlannerContract, snapshot: GovernedSnapshot): Promise<void> {
    const learnedColumns = new Set<string>();
    const { rows } = snapshot;
    const learningRows: RowReader = {
      // oxlint-disable-next-line require-yield
      *scan(request) {
        for (const column of request.columns) learnedColumns.add(column);
      },
      estimate: (request) => rows.estimate(request),
      pathCodes: () => rows.pathCodes(),
      provenanceOf: () => undefined,
    };
    const learningInvocation = snapshotInvocation(this.caller, { ...snapshot, rows: learningRows });
    // Runs the query as the client wrote it first, so that errors carry the locations of its own text.
    await planner.query(learningInvocation, { sql: this.statement.asked });
    await planner.query(learningInvocation, { sql: this.statement.sql });
    // Refuses a subscription with the error that reading these columns would meet.
    const storedColumns = [...learnedColumns].filter((readColumn) => !readColumn.startsWith('#'));
    rows.estimate({ type: this.statement.type, columns: storedColumns, time: { system: snapshot.instant, valid: 'all' } });
    this.columns = learnedColumns;
    this.ontologyVersion = snapshot.catalog.ontologyVersion;
    this.learntUnder = snapshot.grantKey;
    this.shows = (path) => snapshot.mayShow(this.statement.type, path);
  }

  /** The matching rows of the snapshot, each behind its system_from. */
  matching(planner: PlannerContract, snapshot: GovernedSnapshot): Promise<Answer> {
    return planner.query(snapshotInvocation(this.caller, snapshot), { sql: this.statement.sql });
  }

  /** Such rows as JSON text, in the order of the answer and a few at once: writing them takes its time. */
  *texts({ columns, batches }: Answer): Generator<readonly (readonly [bigint, string])[], void> {
    const visibleColumns = this.#visibleColumns(columns);
    for (const matchingBatch of batches) {
      for (let firstMatch = 0; firstMatch < matchingBatch.count; firstMatch += matchingRowsAtOnce) {
        const matchCount = Math.min(matchingRowsAtOnce, matchingBatch.count - firstMatch);
        const matchSelection =
          matchingBatch.selection === null ? null : matchingBatch.selection.subarray(firstMatch, firstMatch + matchCount);
        const first = matchSelection === null ? matchingBatch.first + firstMatch : 0;
        const [systemFroms, ...rowColumns] = matchingBatch.columns;
        assert(systemFroms?.kind === 'i64', 'system_from is the first column of a standing query');
        const ndjsonText = writeNdjson({
          columns: visibleColumns,
          batches: [{ columns: rowColumns, selection: matchSelection, first, count: matchCount }],
        }).toString('utf8');
        const ndjsonLines = ndjsonText.split('\n');
        yield Array.from(
          { length: matchCount },
          (_, i) => [systemFroms.values[matchSelection === null ? first + i : matchSelection[i]!]!, ndjsonLines[i]!] as const,
        );
      }
    }
  }

  #shownColumns: { readonly of: readonly OutputColumn[]; readonly columns: readonly OutputColumn[] } | null = null;

  /** One array per plan: writers cache by it. */
  #visibleColumns(columns: readonly OutputColumn[]): readonly OutputColumn[] {
    if (this.#shownColumns?.of !== columns) this.#shownColumns = { of: columns, columns: columns.slice(1) };
    return this.#shownColumns.columns;
  }
}
