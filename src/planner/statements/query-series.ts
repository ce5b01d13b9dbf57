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
const questionsMax = 256;

export class SnapshotQueries implements QuerySeries {
  readonly #invocation: Invocation;
  readonly #verb: SeriesVerb | null;
  readonly #run: RunQuery;
  readonly #statements: { -readonly [K in keyof StatementDetails]: StatementDetails[K] }[] = [];
  /** The facts of the first query, until a second one comes: most sessions have one. */
  #alone: InvocationDetails[] | null = [];
  readonly #answers: Answer[] = [];
  #snapshot: GovernedSnapshot | null = null;
  #isControl = false;

  constructor(invocation: Invocation, verb: SeriesVerb | null, ask: RunQuery) {
    this.#invocation = invocation;
    this.#verb = verb;
    this.#run = ask;
  }

  async query(request: QueryRequest): Promise<Answer> {
    const number = this.#statements.length;
    if (this.#isControl)
      throw new ServiceError('REL_INVALID', 'a session with a statement other than a query takes nothing else');
    if (number === questionsMax) throw new ServiceError('REL_INVALID', `a session takes at most ${questionsMax} questions`);
    this.#statements.push({});
    if (number === 1) {
      const [first, described] = [this.#statements[0]!, this.#alone ?? []];
      for (const details of described) note(first, details);
      this.#alone = null;
    }
    const answer = await this.#run(this.#reading(number), request);
    this.#answers.push(answer);
    return answer;
  }

  snapshot(): GovernedSnapshot {
    return (this.#snapshot ??= this.#invocation.snapshot());
  }

  overtaken(): boolean {
    return this.#answers.some((answer) => answer.overtaken());
  }

  #reading(number: number): QueryInvocation {
    return {
      caller: this.#invocation.caller,
      describe: (details) => this.#describe(number, details),
      snapshot: () => this.snapshot(),
      branches: () => this.#invocation.branches(),
      checkInspects: () => this.#invocation.checkInspects(),
      explainPolicy: (type, at) => this.#invocation.explainPolicy(type, at),
      control: () => {
        if (this.#verb !== null || this.#statements.length > 1) {
          throw new ServiceError('REL_INVALID', 'a session of several queries takes no other statements');
        }
        this.#isControl = true;
        return this.#invocation;
      },
    };
  }

  #describe(number: number, details: InvocationDetails): void {
    const { purpose } = details;
    if (purpose !== undefined && this.#snapshot !== null && number > 0 && purpose !== this.#snapshot.purpose) {
      throw new ServiceError('REL_INVALID', 'the questions of a session have one purpose: the first one states it');
    }
    if (this.#verb === null && this.#alone !== null) {
      this.#alone.push(details);
      return this.#invocation.describe(details);
    }
    note(this.#statements[number]!, details);
    this.#invocation.describe({ ...details, ...this.#summary() });
  }

  /** The facts of all queries together, for the access record. */
  #summary(): InvocationDetails {
    const statements = this.#statements;
    const types = statements.flatMap(({ objectType }) => objectType?.split(',') ?? []);
    const sum = (of: (statement: StatementDetails) => number | undefined): number =>
      statements.reduce((total, statement) => total + (of(statement) ?? 0), 0);
    return {
      template: this.#verb?.template,
      literals: this.#verb?.literals,
      statements,
      rowCount: sum(({ rowCount }) => rowCount),
      costUnits: sum(({ costUnits }) => costUnits),
      ...(types.length > 0 ? { objectType: [...new Set(types)].join(',') } : {}),
    };
  }
}

function note(
  statement: { -readonly [K in keyof StatementDetails]: StatementDetails[K] },
  { template, literals, objectType, rowCount, costUnits }: InvocationDetails,
): void {
  if (template !== undefined) statement.template = template;
  if (literals !== undefined) statement.literals = literals;
  if (objectType !== undefined) statement.objectType = objectType;
  if (rowCount !== undefined) statement.rowCount = rowCount;
  if (costUnits !== undefined) statement.costUnits = costUnits;
}
