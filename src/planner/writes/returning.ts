/**
 * RETURNING of INSERT and UPDATE: expressions over rows as they are about to be stored, and over rows read beside them. It runs
 * in the turn that stores them: an error refuses the statement, and nothing was written.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, WrittenRows } from '../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { RowOutcome } from '../../projections/command.ts';
import { readableColumns } from '../binding/source-binder.ts';
import { columnsIn } from '../expressions/bound-expression.ts';
import { type LogicalPlan, nodesOf } from '../logical-plan.ts';
import type { WorkingRows } from '../operators/operator.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { OutputBatch, OutputColumn } from '../planner-contract.ts';
import type { ColumnRef, ProjectionItem, Query, Source } from '../syntax/statement.ts';
import type { InsertStatement, UpdateStatement } from '../syntax/write-statement.ts';
import { withColumns } from './column-refs.ts';
import { type RowsRead, vectorOf } from './rows-read.ts';
import { capturedName, namesOf, readFrom, starOf } from './write-queries.ts';

/** Columns of other tables that were read with the rows: from `first` on. */
export interface OtherColumns {
  readonly rowsRead: RowsRead;
  readonly columns: readonly OutputColumn[];
  readonly first: number;
  readonly refs: readonly ColumnRef[];
}

/** A query over given rows that is run where it stands. */
export interface AtOnce {
  readonly plan: LogicalPlan;
  run(given: ReadonlyMap<string, WorkingRows>): readonly OutputBatch[];
}

export interface Returned {
  readonly columns: readonly OutputColumn[];
  readonly batches: readonly OutputBatch[];
  readonly rowCount: number;
}

/** Over the columns of a type as they stood; `used`: those of them that it names. */
interface BoundReturning {
  readonly definition: TypeDefinition;
  readonly plan: AtOnce;
  readonly used: ReadonlySet<number>;
}

const writtenRows = 'written';
const besideTable = '\0beside';

export class Returning {
  readonly #statement: InsertStatement | UpdateStatement;
  readonly #snapshot: GovernedSnapshot;
  readonly #atOnce: (query: Query) => AtOnce;
  readonly #otherColumns: OtherColumns | null;
  #bound: BoundReturning | null = null;

  constructor(
    statement: InsertStatement | UpdateStatement,
    snapshot: GovernedSnapshot,
    atOnce: (query: Query) => AtOnce,
    otherColumns: OtherColumns | null,
  ) {
    this.#statement = statement;
    this.#snapshot = snapshot;
    this.#atOnce = atOnce;
    this.#otherColumns = otherColumns;
  }

  /** Reports errors before anything is decided. */
  check(definition: TypeDefinition): readonly OutputColumn[] {
    const { plan } = this.#boundOver(definition).plan;
    return plan.root.columns.slice(0, plan.visible);
  }

  /** `outcomes`: in the order in which rows are returned. `rowOf`: number of the row read beside an outcome. */
  rows(
    outcomes: readonly RowOutcome[],
    written: readonly WrittenRows[],
    rowOf: (outcome: RowOutcome) => number,
    type: string,
  ): Returned {
    const bodies = written.filter(({ definition }) => definition.name === type);
    const last = bodies.at(-1);
    const { plan: made, used } = last === undefined ? this.#bound! : this.#boundOver(last.definition);
    const { plan } = made;
    const columns = plan.root.columns.slice(0, plan.visible);
    if (last === undefined || outcomes.length === 0) return { columns, batches: [], rowCount: 0 };
    const own = readableColumns(last.definition);
    const stored = bodies.map((body) => own.map(({ name }, i) => (used.has(i) ? body.column(name) : null)));
    const outcomeRows = outcomes.map((outcome) => {
      const body = bodies.findIndex(
        ({ systemFrom, length }) => outcome.systemFrom >= systemFrom && outcome.systemFrom < systemFrom + BigInt(length),
      );
      assert(body >= 0, 'a row that was accepted is among those written');
      return { body, row: Number(outcome.systemFrom - bodies[body]!.systemFrom) };
    });
    const vectors = own.map(({ type: of }, i) => {
      if (!used.has(i)) return { kind: 'null' } as const;
      return vectorOf(
        outcomeRows.map(({ body, row }) => cellAt(stored[body]![i]!, of, row)),
        of,
      );
    });
    const others = (this.#otherColumns?.columns ?? []).map(({ type: of }, i) => {
      const { rowsRead, first } = this.#otherColumns!;
      return vectorOf(
        outcomes.map((outcome) => rowsRead.cell(rowOf(outcome), first + i)),
        of,
      );
    });
    const rows = new Map([[writtenRows, [{ columns: [...vectors, ...others], count: outcomes.length }]]]);
    return { columns, batches: made.run(rows), rowCount: outcomes.length };
  }

  #boundOver(definition: TypeDefinition): BoundReturning {
    if (this.#bound !== null && sameColumns(this.#bound.definition, definition)) return this.#bound;
    const { target, returning, location } = this.#statement;
    const own = readableColumns(definition);
    const otherColumns = this.#otherColumns;
    const tables = [
      { name: target.name, columns: own },
      ...(otherColumns === null ? [] : [{ name: besideTable, columns: otherColumns.columns, apart: true } as const]),
    ];
    const from: Source = { kind: 'given', rows: writtenRows, tables, location };
    const boundPlan = this.#atOnce(readFrom(from, this.#items(returning!, own), location));
    const { plan } = boundPlan;
    const used = new Set<number>();
    for (const node of nodesOf(plan)) {
      if (node.kind === 'project') for (const expression of node.expressions) columnsIn(expression, used);
      else if (node.kind !== 'working' || plan.subqueries.length > 0) {
        throw errorAt('REL_NOT_IMPLEMENTED', 'RETURNING takes expressions over the row that was written: no queries', location);
      }
    }
    const masks = this.#snapshot.masksOf(target.type);
    const masked = own.find(({ name }, i) => used.has(i) && masks.has(name));
    if (masked !== undefined) throw maskedColumn(target.type, masked.name);
    return (this.#bound = { definition, plan: boundPlan, used });
  }

  /** Columns of other tables, by the names under which they were read. */
  #items(returning: readonly ProjectionItem[], own: readonly { readonly name: string }[]): readonly ProjectionItem[] {
    const otherColumns = this.#otherColumns;
    if (otherColumns === null) return returning;
    const { target } = this.#statement;
    const isOwn = ({ table, name }: ColumnRef): boolean =>
      table === target.name || (table === null && own.some((column) => column.name === name));
    const other = (reference: ColumnRef): ColumnRef => {
      if (isOwn(reference)) return { ...reference, table: target.name };
      const index = otherColumns.refs.findIndex(({ table, name }) => table === reference.table && name === reference.name);
      return index < 0 ? reference : { ...reference, table: besideTable, name: capturedName(index) };
    };
    return returning.flatMap((item): readonly ProjectionItem[] => {
      if (item.kind === 'star') return this.#star(item, otherColumns);
      const { expression } = item;
      const alias = item.alias ?? (expression.kind === 'column' ? expression.name : null);
      return [{ ...item, expression: withColumns(expression, other), alias }];
    });
  }

  #star(item: Extract<ProjectionItem, { kind: 'star' }>, { columns }: OtherColumns): readonly ProjectionItem[] {
    const { target, location } = this.#statement;
    const from = this.#statement.kind === 'update' ? this.#statement.from : null;
    const tables = item.table === null ? [target.name, ...(from === null ? [] : namesOf(from))] : [item.table];
    return tables.flatMap((table): ProjectionItem[] => {
      if (table === target.name) return [{ kind: 'star', table, location: item.location }];
      const first = columns.findIndex(({ name }) => name === starOf(table)) + 1;
      const rest = columns.slice(first);
      const end = rest.findIndex(({ name }) => name.startsWith('\0'));
      return (end < 0 ? rest : rest.slice(0, end)).map(({ name }) => ({
        kind: 'expression',
        expression: { kind: 'column', table: besideTable, name, location },
        alias: name,
        location: item.location,
      }));
    });
  }
}

function sameColumns(one: TypeDefinition, other: TypeDefinition): boolean {
  if (one === other) return true;
  const [a, b] = [readableColumns(one), readableColumns(other)];
  return a.length === b.length && a.every(({ name, type }, i) => name === b[i]!.name && type === b[i]!.type);
}

export function maskedColumn(type: string, column: string): ServiceError {
  const name = `column ${JSON.stringify(column)} of ${JSON.stringify(type)}`;
  return new ServiceError('REL_MASKED_COLUMN', `${name} is masked: a write cannot read it, filter by it or return it`);
}
