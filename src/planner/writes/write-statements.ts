/** Statements that write, between the planner and `write.ts`: their trees, kept by template, and the queries that they are made of. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { JobRunner } from '../../governance/jobs/job-runner.ts';
import { runAtOnce } from '../execution/executor.ts';
import type { LogicalPlan } from '../logical-plan.ts';
import type { Execution } from '../operators/operator.ts';
import type { Answer, Description, Executed, ExecuteOptions, ParsedWrite, QueryRequest } from '../planner-contract.ts';
import type { Plans } from '../plans/plans.ts';
import {
  byText,
  type StatementSource,
  QuerySource,
  TextSource,
  TreeSource,
  queryStatementOf,
  statedPurpose,
} from '../statements/statement-source.ts';
import type { QueryInvocation } from '../statements/query-series.ts';
import type { DefaultTime, Literal, ParsedQuery, Query, Statement } from '../syntax/statement.ts';
import type { GraphWrite, WriteStatement } from '../syntax/write-statement.ts';
import { describeWrite, type DescribeWrite } from './describe-write.ts';
import { readsPattern, runPatternWrite } from './graph-write.ts';
import { LockedRows, lockingQuery } from './locked-rows.ts';
import { runScoreWrite } from './score-write.ts';
import { type ReadRequest, readsRows, runWrite, type WriteHost } from './write.ts';

/** Options for a query that is part of a write. */
export type InternalQuery = Partial<Pick<ReadRequest, 'given' | 'onPlan'>> & {
  /** It is part of work that is listed: it is not listed by itself. */
  readonly isListed?: boolean;
};

export interface WriteDependencies {
  readonly clock: Clock;
  /** Gives other work a turn. */
  readonly turn: () => Promise<void>;
  readonly plans: Plans;
  /** A key that nothing has yet; null: nodes and edges are written with theirs. */
  readonly newKey: (() => string) | null;
  /** The list that long writes are in, where there is one. */
  readonly jobs: JobRunner | null;
  ask(invocation: QueryInvocation, request: QueryRequest, own: InternalQuery): Promise<Answer>;
  executionOf(plan: LogicalPlan, query: Query, source: StatementSource, snapshot: GovernedSnapshot): Execution;
}

/** Longer statements are not kept on record. */
const keptStatementMax = 16_384;

export class WriteStatements {
  readonly #dependencies: WriteDependencies;
  readonly #writesByKey = new LRUCache<string, { readonly write: WriteStatement | null }>({ max: 1_024, ...byText });

  constructor(dependencies: WriteDependencies) {
    this.#dependencies = dependencies;
  }

  clear(): void {
    this.#writesByKey.clear();
  }

  knows(key: string): boolean {
    return this.#writesByKey.has(key);
  }

  /** Parses a write; null where it is no INSERT, UPDATE or DELETE. */
  statementOf(source: StatementSource): WriteStatement | null {
    if (!(source instanceof TextSource)) return null;
    let knownWrite = this.#writesByKey.get(source.key);
    if (knownWrite === undefined) this.#writesByKey.set(source.key, (knownWrite = { write: source.write() }));
    return knownWrite.write;
  }

  async execute(
    invocation: Invocation,
    source: StatementSource,
    statement: WriteStatement,
    request: ExecuteOptions,
    startedMs: number,
  ): Promise<Executed> {
    invocation.describe({ template: source.guardedTemplate, literals: source.parameters.map(String) });
    invocation.describe(statedPurpose(statement.purpose?.slot ?? null, source, request));
    const writeHost = this.#writeHostOf({
      source,
      statement,
      reads: readsRows(statement),
      invocation,
      signal: request.signal,
      startedMs,
    });
    const onKnown = (): void => {
      if (source.guardedTemplate !== source.template) invocation.describe({ template: source.template });
    };
    const { sync = false } = request;
    return invocation.retryConflicts(statement.target.type, () =>
      runWrite({ statement, invocation, host: writeHost, sync, onKnown }),
    );
  }

  /** Executes a write of the graph doors: a pattern, or scores. */
  async executeGraph(
    invocation: Invocation,
    source: StatementSource,
    statement: GraphWrite,
    request: ExecuteOptions,
    startedMs: number,
  ): Promise<Executed> {
    invocation.describe({ template: source.guardedTemplate, literals: source.parameters.map(String) });
    invocation.describe(statedPurpose(statement.purpose?.slot ?? null, source, request));
    const readsGraph = statement.kind === 'scores' || readsPattern(statement);
    const graphHost = this.#writeHostOf({ source, statement, reads: readsGraph, invocation, signal: request.signal, startedMs });
    const onKnown = (): void => {
      if (source.guardedTemplate !== source.template) invocation.describe({ template: source.template });
    };
    const { newKey, jobs } = this.#dependencies;
    const graphRequest = { invocation, host: graphHost, sync: request.sync === true, onKnown, newKey };
    if (statement.kind === 'pattern') return runPatternWrite({ ...graphRequest, statement });
    const keptText = textToKeep(source, invocation);
    const { purpose = null, as } = request;
    const statementText = keptText === null ? {} : { statement: { sql: keptText, dialect: source.dialect, purpose } };
    return runScoreWrite({ ...graphRequest, statement, work: { ...as, ...statementText } }, jobs);
  }

  /**
   * Reads the rows of a locking query, and adds them to the transaction's conditions; outside of one there is nothing to lock.
   */
  async lock(
    invocation: Invocation,
    source: StatementSource,
    query: Query,
    { signal }: ExecuteOptions,
    time: DefaultTime,
    startedMs: number,
  ): Promise<void> {
    const { transaction } = invocation;
    if (transaction === null) return;
    const snapshot = invocation.snapshot();
    const rowLocking = lockingQuery(query, snapshot);
    const statement = { nullSlot: source.parameters.length, location: query.location };
    const lockHost = this.#writeHostOf({ source, statement, reads: true, invocation, signal, startedMs });
    const lockedRows = new LockedRows(rowLocking.tables, transaction);
    await lockHost.read({ query: rowLocking.query, part: 'lock', snapshot, rows: lockedRows, time, onPlan: () => undefined });
  }

  /** The columns of RETURNING, and the parameters of the statement. Nothing is read or written. */
  describe(invocation: Invocation, request: DescribeWrite): Description {
    const { source, statement, purpose } = request;
    invocation.describe(statedPurpose(statement.purpose?.slot ?? null, source, { purpose: purpose ?? null }));
    const describeHost = this.#writeHostOf({
      source,
      statement,
      reads: readsRows(statement),
      invocation,
      signal: undefined,
      startedMs: this.#dependencies.clock.monotonicMs(),
    });
    const { plans } = this.#dependencies;
    const description = describeWrite({
      ...request,
      invocation,
      atOnce: (query, snapshot) => describeHost.atOnce(query, snapshot),
      bindQuery: (query, literals, snapshot) => {
        const wanted = { query, withProvenance: false } as const;
        return plans.bindQuestion(wanted, source, snapshot, null, literals);
      },
    });
    invocation.describe({ template: source.template, objectType: statement.target.type, rowCount: 0 });
    return description;
  }

  #writeHostOf(runningWrite: RunningWrite): WriteHost {
    const { clock, plans, ask, executionOf } = this.#dependencies;
    const { source, reads, invocation, signal, startedMs } = runningWrite;
    const { dialect } = source;
    return {
      processingTimeMs: () => clock.monotonicMs() - startedMs,
      turn: this.#dependencies.turn,
      literal: (slot) => source.parameters[slot] ?? null,
      read: ({ query, part, snapshot, rows, time = 'current', extra = [], given, onPlan, signal: own }) => {
        const reading: QueryInvocation = {
          caller: invocation.caller,
          // The statement is recorded as itself.
          describe: ({ costUnits }) => {
            if (reads && costUnits !== undefined) invocation.describe({ costUnits });
          },
          snapshot: () => snapshot,
          branches: () => invocation.branches(),
          checkInspects: () => invocation.checkInspects(),
          explainPolicy: (type, instant) => invocation.explainPolicy(type, instant),
          control: () => refuseControl(),
        };
        const parsed = writePartOf(runningWrite, query, part, extra);
        const either = own === undefined || signal === undefined ? (own ?? signal) : AbortSignal.any([own, signal]);
        const request = { parsed, dialect, time, rows: rows, signal: either };
        return ask(reading, request, { onPlan, given, isListed: own !== undefined });
      },
      atOnce: (query, snapshot) => {
        const own = new QuerySource(writePartOf(runningWrite, query, 'returning', []), dialect);
        const plan = plans.atOnce(queryStatementOf(own.parse()), own, snapshot);
        return {
          plan,
          run: (working) => runAtOnce(plan, { ...executionOf(plan, query, own, snapshot), working }),
        };
      },
    };
  }
}

interface RunningWrite {
  readonly source: StatementSource;
  readonly statement: Pick<WriteStatement, 'nullSlot' | 'location'>;
  /** Whether the statement reads rows: the costs of its queries are then its own. */
  readonly reads: boolean;
  readonly invocation: Pick<Invocation, 'caller' | 'describe' | 'explainPolicy' | 'branches' | 'checkInspects'>;
  readonly signal: AbortSignal | undefined;
  readonly startedMs: number;
}

/** A query of a write, over its literals and the added ones. */
function writePartOf(
  { source, statement, invocation }: RunningWrite,
  query: Query,
  partName: string,
  extra: readonly Literal[],
): ParsedQuery {
  const partStatement: Statement = { kind: 'query', purpose: null, query, withProvenance: false };
  return {
    language: 'write',
    template: `${source.key}\0${partName}`,
    statement: partStatement,
    parameters: [...source.parameters, null, invocation.caller.path, ...extra],
    locationOf: (slot) => (slot < statement.nullSlot ? source.locationOf(slot) : statement.location),
  };
}

/** The text of a statement that may be run again from its record; null: values that it was given apart, or its transaction, are gone then. */
function textToKeep(source: StatementSource, { transaction }: Invocation): string | null {
  if (!(source instanceof TextSource) || source.takesParameters || transaction !== null) return null;
  const statementText = source.text();
  return statementText.length > keptStatementMax ? null : statementText;
}

function refuseControl(): never {
  throw new ServiceError('REL_INVALID', 'a write is made of queries');
}

/** A write that came as a tree. */
export class WriteSource extends TreeSource<ParsedWrite> {
  get key(): string {
    return `\0${this.parsed.language}\0${this.parsed.template}`;
  }

  parse(): Statement {
    throw new ServiceError('REL_INVALID', 'a write is no question');
  }
}
