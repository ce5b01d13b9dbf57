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

const writtenRowsName = 'written';
const besideTableName = '\0beside';

export class Returning {
  readonly #returningStatement: InsertStatement | UpdateStatement;
  readonly #returningSnapshot: GovernedSnapshot;
  readonly #bindAtOnce: (query: Query) => AtOnce;
  readonly #otherColumns: OtherColumns | null;
  #boundReturning: BoundReturning | null = null;

  constructor(
    statement: InsertStatement | UpdateStatement,
    snapshot: GovernedSnapshot,
    atOnce: (query: Query) => AtOnce,
    otherColumns: OtherColumns | null,
  ) {
    this.#returningStatement = statement;
    this.#returningSnapshot = snapshot;
    this.#bindAtOnce = atOnce;
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
    const writtenBodies = written.filter(({ definition }) => definition.name === type);
    const lastBody = writtenBodies.at(-1);
    const { plan: made, used: usedColumns } =
      lastBody === undefined ? this.#boundReturning! : this.#boundOver(lastBody.definition);
    const { plan } = made;
    const returnedColumns = plan.root.columns.slice(0, plan.visible);
    if (lastBody === undefined || outcomes.length === 0) return { columns: returnedColumns, batches: [], rowCount: 0 };
    const ownColumns = readableColumns(lastBody.definition);
    const storedVectors = writtenBodies.map((bodyIndex) =>
      ownColumns.map(({ name }, i) => (usedColumns.has(i) ? bodyIndex.column(name) : null)),
    );
    const outcomeRows = outcomes.map((outcome) => {
      const bodyIndex = writtenBodies.findIndex(
        ({ systemFrom, length }) => outcome.systemFrom >= systemFrom && outcome.systemFrom < systemFrom + BigInt(length),
      );
      assert(bodyIndex >= 0, 'a row that was accepted is among those written');
      return { body: bodyIndex, row: Number(outcome.systemFrom - writtenBodies[bodyIndex]!.systemFrom) };
    });
    const ownVectors = ownColumns.map(({ type: of }, i) => {
      if (!usedColumns.has(i)) return { kind: 'null' } as const;
      return vectorOf(
        outcomeRows.map(({ body: bodyIndex, row }) => cellAt(storedVectors[bodyIndex]![i]!, of, row)),
        of,
      );
    });
    const besideVectors = (this.#otherColumns?.columns ?? []).map(({ type: of }, i) => {
      const { rowsRead, first } = this.#otherColumns!;
      return vectorOf(
        outcomes.map((outcome) => rowsRead.cell(rowOf(outcome), first + i)),
        of,
      );
    });
    const returnedRows = new Map([[writtenRowsName, [{ columns: [...ownVectors, ...besideVectors], count: outcomes.length }]]]);
    return { columns: returnedColumns, batches: made.run(returnedRows), rowCount: outcomes.length };
  }

  #boundOver(definition: TypeDefinition): BoundReturning {
    if (this.#boundReturning !== null && haveSameColumns(this.#boundReturning.definition, definition))
      return this.#boundReturning;
    const { target, returning, location } = this.#returningStatement;
    const ownColumns = readableColumns(definition);
    const otherColumns = this.#otherColumns;
    const givenTables = [
      { name: target.name, columns: ownColumns },
      ...(otherColumns === null ? [] : [{ name: besideTableName, columns: otherColumns.columns, apart: true } as const]),
    ];
    const givenSource: Source = { kind: 'given', rows: writtenRowsName, tables: givenTables, location };
    const boundPlan = this.#bindAtOnce(readFrom(givenSource, this.#returnedItems(returning!, ownColumns), location));
    const { plan } = boundPlan;
    const usedColumns = new Set<number>();
    for (const node of nodesOf(plan)) {
      if (node.kind === 'project') for (const expression of node.expressions) columnsIn(expression, usedColumns);
      else if (node.kind !== 'working' || plan.subqueries.length > 0) {
        throw errorAt('REL_NOT_IMPLEMENTED', 'RETURNING takes expressions over the row that was written: no queries', location);
      }
    }
    const targetMasks = this.#returningSnapshot.masksOf(target.type);
    const maskedUse = ownColumns.find(({ name }, i) => usedColumns.has(i) && targetMasks.has(name));
    if (maskedUse !== undefined) throw maskedColumn(target.type, maskedUse.name);
    return (this.#boundReturning = { definition, plan: boundPlan, used: usedColumns });
  }

  /** Columns of other tables, by the names under which they were read. */
  #returnedItems(
    returning: readonly ProjectionItem[],
    ownColumns: readonly { readonly name: string }[],
  ): readonly ProjectionItem[] {
    const otherColumns = this.#otherColumns;
    if (otherColumns === null) return returning;
    const { target } = this.#returningStatement;
    const isOfTarget = ({ table, name }: ColumnRef): boolean =>
      table === target.name || (table === null && ownColumns.some((column) => column.name === name));
    const otherReference = (reference: ColumnRef): ColumnRef => {
      if (isOfTarget(reference)) return { ...reference, table: target.name };
      const besideIndex = otherColumns.refs.findIndex(({ table, name }) => table === reference.table && name === reference.name);
      return besideIndex < 0 ? reference : { ...reference, table: besideTableName, name: capturedName(besideIndex) };
    };
    return returning.flatMap((item): readonly ProjectionItem[] => {
      if (item.kind === 'star') return this.#starItems(item, otherColumns);
      const { expression } = item;
      const itemAlias = item.alias ?? (expression.kind === 'column' ? expression.name : null);
      return [{ ...item, expression: withColumns(expression, otherReference), alias: itemAlias }];
    });
  }

  #starItems(item: Extract<ProjectionItem, { kind: 'star' }>, { columns }: OtherColumns): readonly ProjectionItem[] {
    const { target, location } = this.#returningStatement;
    const updateFrom = this.#returningStatement.kind === 'update' ? this.#returningStatement.from : null;
    const starTables = item.table === null ? [target.name, ...(updateFrom === null ? [] : namesOf(updateFrom))] : [item.table];
    return starTables.flatMap((table): ProjectionItem[] => {
      if (table === target.name) return [{ kind: 'star', table, location: item.location }];
      const firstOfTable = columns.findIndex(({ name }) => name === starOf(table)) + 1;
      const columnsFromTable = columns.slice(firstOfTable);
      const tableEnd = columnsFromTable.findIndex(({ name }) => name.startsWith('\0'));
      return (tableEnd < 0 ? columnsFromTable : columnsFromTable.slice(0, tableEnd)).map(({ name }) => ({
        kind: 'expression',
        expression: { kind: 'column', table: besideTableName, name, location },
        alias: name,
        location: item.location,
      }));
    });
  }
}

function haveSameColumns(oneType: TypeDefinition, otherType: TypeDefinition): boolean {
  if (oneType === otherType) return true;
  const [oneColumns, otherColumns] = [readableColumns(oneType), readableColumns(otherType)];
  return (
    oneColumns.length === otherColumns.length &&
    oneColumns.every(({ name, type }, i) => name === otherColumns[i]!.name && type === otherColumns[i]!.type)
  );
}

export function maskedColumn(type: string, column: string): ServiceError {
  const name = `column ${JSON.stringify(column)} of ${JSON.stringify(type)}`;
  return new ServiceError('REL_MASKED_COLUMN', `${name} is masked: a write cannot read it, filter by it or return it`);
}
