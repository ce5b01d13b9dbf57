/** Answers questions of the catalogue, within the invocation that they are asked in. */
import type { Clock } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { smallAnswer } from '../../../planner/answers.ts';
import type { Answer, Description, OutputColumn, PlannerDoor } from '../../../planner/planner-contract.ts';
import type { Literal } from '../../../planner/statement.ts';
import type { WiredColumn } from '../../../planner/virtual/wire-types.ts';
import { type Facts, factsOf } from '../../../planner/virtual/facts.ts';
import type { Session } from '../../../planner/virtual/session.ts';
import { relationsOf } from './question.ts';
import { Parameters, type Pausing, type PlanColumn } from './scope.ts';
import { planQuestion } from './select.ts';
import type { Select } from './trees.ts';
import { cellMaker, columnType } from '../../../planner/virtual/cells.ts';
import { isReference, type Value, wireOf } from '../../../planner/virtual/types.ts';

export interface Inspection {
  readonly invocation: Invocation;
  readonly session: Session;
  readonly planner: Pick<PlannerDoor, 'describe'>;
  readonly clock: Clock;
  readonly yieldTurn: () => Promise<void>;
  readonly signal: AbortSignal;
}

export interface CatalogueAsked {
  readonly text: string;
  readonly select: Select;
  /** Types of `$1`, `$2` …, as far as somebody has said them. */
  readonly stated: readonly (ColumnType | null)[];
}

const sliceMs = 2;

export async function inspected(inspection: Inspection, asked: CatalogueAsked, values: readonly Literal[]): Promise<Answer> {
  const { clock, invocation } = inspection;
  const startedMs = clock.monotonicMs();
  const { plan, env, instant } = await planned(inspection, asked, values);
  if (env.parameters.count > values.length)
    throw new ServiceError('REL_INVALID', `the question takes ${env.parameters.count} parameters, ${values.length} are given`);
  const rows = await finished(inspection, plan.rows(null));
  const makers = plan.columns.map(({ type }) => cellMaker(type, env.names));
  const answer = smallAnswer(
    plan.columns.map(outputColumn),
    rows.map((row) => row.map((value, i) => makers[i]!(value))),
    { asOfSystem: instant, costUnits: 0, processingTimeMs: clock.monotonicMs() - startedMs },
  );
  invocation.describe({
    template: templateOf(asked.select),
    objectType: '',
    literals: undefined,
    rowCount: rows.length,
    costUnits: 0,
  });
  return answer;
}

export async function describedCatalogue(inspection: Inspection, asked: CatalogueAsked): Promise<Description> {
  const { plan, env } = await planned(inspection, asked, []);
  inspection.invocation.describe({
    template: templateOf(asked.select),
    objectType: '',
    literals: undefined,
    rowCount: 0,
    costUnits: 0,
  });
  const parameters = Array.from({ length: env.parameters.count }, (_, i): ColumnType => {
    const found = env.parameters.found[i];
    return asked.stated[i] ?? (found === undefined || isReference(found) ? 'string' : columnType(found));
  });
  return { columns: plan.columns.map(outputColumn), parameters };
}

/** Names what is read, and no text of the question. */
const templateOf = (select: Select): string => `SELECT … FROM ${relationsOf(select).join(', ') || 'nothing'}`;

async function planned(inspection: Inspection, asked: CatalogueAsked, values: readonly Literal[]) {
  const { facts, instant } = await gathered(inspection, asked.select);
  const given = values.map((value) => (typeof value === 'bigint' ? Number(value) : (value as Value)));
  return { ...planQuestion(facts, asked, new Parameters(asked.stated, given)), instant };
}

async function gathered(inspection: Inspection, select: Select): Promise<{ facts: Facts; instant: bigint }> {
  const { invocation, session } = inspection;
  const snapshot = invocation.snapshot();
  const wantsColumns = relationsOf(select).includes('pg_catalog.pg_attribute');
  const columns = wantsColumns ? await viewColumns(inspection) : null;
  return {
    facts: factsOf(session, snapshot, invocation.branches(), columns && ((view) => columns.get(view) ?? [])),
    instant: snapshot.instant,
  };
}

/** Columns of views are those of their queries, as the reader would be given them. One that can't be asked has none. */
async function viewColumns({
  invocation,
  planner,
  yieldTurn,
}: Inspection): Promise<ReadonlyMap<string, readonly OutputColumn[]>> {
  const found = new Map<string, readonly OutputColumn[]>();
  for (const { name } of invocation.snapshot().views) {
    if (found.has(name)) continue;
    try {
      const sql = `SELECT * FROM "${name.replaceAll('"', '""')}"`;
      found.set(name, (await planner.describe(invocation, { sql, dialect: 'wide', time: 'current' })).columns);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') throw error;
      found.set(name, []);
    }
    await yieldTurn();
  }
  return found;
}

async function finished<T>({ clock, yieldTurn, signal }: Inspection, run: Pausing<T>): Promise<T> {
  let sliceStart = clock.monotonicMs();
  for (;;) {
    const { done, value } = run.next();
    if (done) return value;
    if (clock.monotonicMs() - sliceStart < sliceMs) continue;
    await yieldTurn();
    if (signal.aborted) throw new ServiceError('REL_CANCELLED', 'the question was cancelled');
    sliceStart = clock.monotonicMs();
  }
}

export function outputColumn({ name, type }: PlanColumn): WiredColumn {
  return { name, type: columnType(type), wire: wireOf(type) };
}
