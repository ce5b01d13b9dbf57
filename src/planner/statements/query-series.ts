/**
 * Several queries on one snapshot, in one invocation, with one access record. Invariants:
 *
 * - every question reads the snapshot that the first one took: the same basis, grant and purpose;
 * - the record tells of every question that was asked, answered or not: its template, types and rows;
 * - a single question that no verb asks is recorded as itself.
 */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation, InvocationDetails, StatementDetails } from '../../governance/gate-contract.ts';
import type { Answer, QuerySeries, QueryRequest, SeriesVerb } from '../planner-contract.ts';

/** The part of an invocation that a query needs. */
export interface QueryInvocation {
  readonly caller: Invocation['caller'];
  describe(details: InvocationDetails): void;
  snapshot(): GovernedSnapshot;
  branches: Invocation['branches'];
  checkInspects: Invocation['checkInspects'];
  explainPolicy: Invocation['explainPolicy'];
  /** The invocation itself, for a statement that is no question. Throws REL_INVALID where only questions may be asked. */
  control(): Invocation;
}

export type RunQuery = (invocation: QueryInvocation, request: QueryRequest) => Promise<Answer>;

/** Each is a line of the record, and records of one turn share an entry of the log. */
const seriesQueriesMax = 256;

export class SnapshotQueries implements QuerySeries {
  readonly #seriesInvocation: Invocation;
  readonly #seriesVerb: SeriesVerb | null;
  readonly #runQuery: RunQuery;
  readonly #statementRecords: { -readonly [K in keyof StatementDetails]: StatementDetails[K] }[] = [];
  /** The facts of the first query, until a second one comes: most sessions have one. */
  #factsOfOnlyOne: InvocationDetails[] | null = [];
  readonly #seriesAnswers: Answer[] = [];
  #seriesSnapshot: GovernedSnapshot | null = null;
  #hasControl = false;

  constructor(invocation: Invocation, verb: SeriesVerb | null, ask: RunQuery) {
    this.#seriesInvocation = invocation;
    this.#seriesVerb = verb;
    this.#runQuery = ask;
  }

  async query(request: QueryRequest): Promise<Answer> {
    const statementOrdinal = this.#statementRecords.length;
    if (this.#hasControl)
      throw new ServiceError('REL_INVALID', 'a session with a statement other than a query takes nothing else');
    if (statementOrdinal === seriesQueriesMax)
      throw new ServiceError('REL_INVALID', `a session takes at most ${seriesQueriesMax} questions`);
    this.#statementRecords.push({});
    if (statementOrdinal === 1) {
      const [firstRecord, firstFacts] = [this.#statementRecords[0]!, this.#factsOfOnlyOne ?? []];
      for (const details of firstFacts) noteStatementFacts(firstRecord, details);
      this.#factsOfOnlyOne = null;
    }
    const statementAnswer = await this.#runQuery(this.#readingFor(statementOrdinal), request);
    this.#seriesAnswers.push(statementAnswer);
    return statementAnswer;
  }

  snapshot(): GovernedSnapshot {
    return (this.#seriesSnapshot ??= this.#seriesInvocation.snapshot());
  }

  overtaken(): boolean {
    return this.#seriesAnswers.some((answer) => answer.overtaken());
  }

  #readingFor(number: number): QueryInvocation {
    return {
      caller: this.#seriesInvocation.caller,
      describe: (details) => this.#describeStatement(number, details),
      snapshot: () => this.snapshot(),
      branches: () => this.#seriesInvocation.branches(),
      checkInspects: () => this.#seriesInvocation.checkInspects(),
      explainPolicy: (type, at) => this.#seriesInvocation.explainPolicy(type, at),
      control: () => {
        if (this.#seriesVerb !== null || this.#statementRecords.length > 1) {
          throw new ServiceError('REL_INVALID', 'a session of several queries takes no other statements');
        }
        this.#hasControl = true;
        return this.#seriesInvocation;
      },
    };
  }

  #describeStatement(number: number, details: InvocationDetails): void {
    const { purpose } = details;
    if (purpose !== undefined && this.#seriesSnapshot !== null && number > 0 && purpose !== this.#seriesSnapshot.purpose) {
      throw new ServiceError('REL_INVALID', 'the questions of a session have one purpose: the first one states it');
    }
    if (this.#seriesVerb === null && this.#factsOfOnlyOne !== null) {
      this.#factsOfOnlyOne.push(details);
      return this.#seriesInvocation.describe(details);
    }
    noteStatementFacts(this.#statementRecords[number]!, details);
    this.#seriesInvocation.describe({ ...details, ...this.#seriesSummary() });
  }

  /** The facts of all queries together, for the access record. */
  #seriesSummary(): InvocationDetails {
    const statementRecords = this.#statementRecords;
    const statementTypes = statementRecords.flatMap(({ objectType }) => objectType?.split(',') ?? []);
    const sumOfStatements = (figureOf: (statement: StatementDetails) => number | undefined): number =>
      statementRecords.reduce((total, statement) => total + (figureOf(statement) ?? 0), 0);
    return {
      template: this.#seriesVerb?.template,
      literals: this.#seriesVerb?.literals,
      statements: statementRecords,
      rowCount: sumOfStatements(({ rowCount }) => rowCount),
      costUnits: sumOfStatements(({ costUnits }) => costUnits),
      ...(statementTypes.length > 0 ? { objectType: [...new Set(statementTypes)].join(',') } : {}),
    };
  }
}

function noteStatementFacts(
  statement: { -readonly [K in keyof StatementDetails]: StatementDetails[K] },
  { template, literals, objectType, rowCount, costUnits }: InvocationDetails,
): void {
  if (template !== undefined) statement.template = template;
  if (literals !== undefined) statement.literals = literals;
  if (objectType !== undefined) statement.objectType = objectType;
  if (rowCount !== undefined) statement.rowCount = rowCount;
  if (costUnits !== undefined) statement.costUnits = costUnits;
}
