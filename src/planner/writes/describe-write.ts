/**
 * Columns of RETURNING, and types of `$1`, `$2` … in a statement that writes: a value gets the type of the column that it is for.
 */
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { exampleValues, inferredTypes, markerTypes, openSlots } from '../statements/infer-types.ts';
import type { LexedStatement } from '../languages/sql-lexer.ts';
import type { LogicalPlan, PlanNode } from '../logical-plan.ts';
import type { Description, OutputColumn } from '../planner-contract.ts';
import type { StatementSource } from '../statements/statement-source.ts';
import type { Literal, ParameterType, Query } from '../syntax/statement.ts';
import type {
  DeleteStatement,
  InsertStatement,
  MergeStatement,
  UpdateStatement,
  WriteStatement,
} from '../syntax/write-statement.ts';
import { clauseRows, metQuery } from './merge-queries.ts';
import { RowsRead } from './rows-read.ts';
import { type AtOnce, Returning } from './returning.ts';
import { readsRows } from './write.ts';
import { conflictingRows, deletedRows, insertedRows, namedBeside, updatedRows } from './write-queries.ts';
import { insertedColumns, setColumns, type TargetColumn, targetOf, withoutOwnKey } from './write-target.ts';

export interface DescribeWrite {
  readonly source: StatementSource;
  readonly lexed: LexedStatement;
  readonly stated: readonly (ParameterType | null)[];
  readonly statement: WriteStatement;
  readonly purpose: string | null | undefined;
}

interface DescribeBinding extends DescribeWrite {
  readonly invocation: Invocation;
  atOnce(query: Query, snapshot: GovernedSnapshot): AtOnce;
  bindQuery(query: Query, literals: readonly Literal[], snapshot: GovernedSnapshot): LogicalPlan;
}

export function describeWrite(request: DescribeBinding): Description {
  const { statement, invocation, lexed, stated } = request;
  invocation.describe({ action: readsRows(statement) ? 'query' : 'ingest' });
  const describeSnapshot = invocation.snapshot('describe');
  const writeTypes = new WriteTypes(request, describeSnapshot);
  const targetDefinition = targetOf(statement, describeSnapshot);
  return { columns: writeTypes.columnsOf(statement, targetDefinition), parameters: markerTypes(lexed, stated, writeTypes.types) };
}

class WriteTypes {
  readonly types = new Map<number, ParameterType>();
  readonly #bindRequest: DescribeBinding;
  readonly #describeSnapshot: GovernedSnapshot;
  readonly #openParameterSlots: ReadonlySet<number>;
  readonly #exampleLiterals: readonly Literal[];

  constructor(request: DescribeBinding, snapshot: GovernedSnapshot) {
    this.#bindRequest = request;
    this.#describeSnapshot = snapshot;
    this.#openParameterSlots = openSlots(request.lexed, request.stated);
    this.#exampleLiterals = [...exampleValues(request.lexed), null, snapshot.caller.path];
  }

  columnsOf(statement: WriteStatement, definition: TypeDefinition): readonly OutputColumn[] {
    switch (statement.kind) {
      case 'insert':
        return this.#columnsOfInsert(statement, definition);
      case 'update':
        return this.#columnsOfUpdate(statement, definition);
      case 'delete':
        return this.#columnsOfDelete(statement);
      case 'merge':
        this.#noteMergeTypes(statement, definition);
        return [];
    }
  }

  #noteMergeTypes(statement: MergeStatement, definition: TypeDefinition): void {
    this.#bindWriteQuery(metQuery(statement));
    for (const mergeClause of statement.clauses) {
      const { root: clauseRoot } = this.#bindWriteQuery(clauseRows(statement, mergeClause, this.#describeSnapshot.caller.path));
      if (mergeClause.do === 'update') this.#noteSetTypes(clauseRoot, setColumns(mergeClause.set, definition), 1);
      if (mergeClause.do === 'insert')
        this.#noteSetTypes(clauseRoot, insertedColumns(mergeClause, definition, mergeClause.values.length), 0);
    }
  }

  #columnsOfInsert(statement: InsertStatement, definition: TypeDefinition): readonly OutputColumn[] {
    const conflict = statement.conflict?.do === 'update' ? withoutOwnKey(statement.conflict, definition) : null;
    const { root: insertRoot } = this.#bindWriteQuery(insertedRows(statement, definition));
    const { columns: sourceColumns } = insertRoot;
    const insertedTargets = insertedColumns(statement, definition, sourceColumns.length);
    for (const values of valueRowsOf(insertRoot)) insertedTargets.forEach((column, i) => this.#noteTargetType(values[i], column));
    if (conflict !== null) {
      const conflictSet = setColumns(conflict.set, definition, insertedTargets);
      const excludedColumns = insertedTargets.map(({ name, type }, i) => ({ name, type: type ?? sourceColumns[i]!.type }));
      const otherColumns = Object.entries(definition.properties).flatMap(([name, { type }]) =>
        excludedColumns.some((column) => column.name === name) ? [] : [{ name, type }],
      );
      const conflictPlan = this.#bindWriteQuery(
        conflictingRows(statement, conflict, [...excludedColumns, ...otherColumns], 0, this.#describeSnapshot.caller.path),
      );
      this.#noteSetTypes(conflictPlan.root, conflictSet, 2);
    }
    return this.#returnedColumns(statement, definition, null);
  }

  #columnsOfUpdate(statement: UpdateStatement, definition: TypeDefinition): readonly OutputColumn[] {
    const updatedTargets = setColumns(statement.set, definition);
    const besideRefs = namedBeside(statement);
    const { root: updateRoot, visible } = this.#bindWriteQuery(updatedRows(statement, this.#describeSnapshot.caller.path));
    const atSet = statement.portion === null ? 1 : 3;
    this.#noteSetTypes(updateRoot, updatedTargets, atSet);
    const firstBeside = atSet + updatedTargets.length;
    const otherColumns = {
      rowsRead: new RowsRead(true),
      columns: updateRoot.columns.slice(firstBeside, visible),
      first: firstBeside,
      refs: besideRefs,
    };
    return this.#returnedColumns(statement, definition, statement.from === null ? null : otherColumns);
  }

  #columnsOfDelete(statement: DeleteStatement): readonly OutputColumn[] {
    const { root, visible } = this.#bindWriteQuery(deletedRows(statement, this.#describeSnapshot.caller.path));
    return root.columns.slice(1, visible);
  }

  #returnedColumns(...[statement, definition, otherColumns]: ReturningArguments): readonly OutputColumn[] {
    if (statement.returning === null) return [];
    const { atOnce } = this.#bindRequest;
    return new Returning(statement, this.#describeSnapshot, (query) => atOnce(query, this.#describeSnapshot), otherColumns).check(
      definition,
    );
  }

  #bindWriteQuery(query: Query): LogicalPlan {
    const plan = this.#bindRequest.bindQuery(query, this.#exampleLiterals, this.#describeSnapshot);
    for (const [slot, type] of inferredTypes(plan, this.#openParameterSlots))
      if (!this.types.has(slot)) this.types.set(slot, type);
    return plan;
  }

  /** The values to set stand in the rows from `first` on. */
  #noteSetTypes(root: PlanNode, columns: readonly TargetColumn[], first: number): void {
    for (const values of valueRowsOf(root)) columns.forEach((column, i) => this.#noteTargetType(values[first + i], column));
  }

  /** A value of no type, by itself or in a sum, is of the type of the column that it goes to. */
  #noteTargetType(value: Bound | undefined, { type }: TargetColumn): void {
    if (value?.kind === 'literal' && this.#openParameterSlots.has(value.slot) && type !== null) this.types.set(value.slot, type);
  }
}

type ReturningArguments = [
  statement: InsertStatement | UpdateStatement,
  definition: TypeDefinition,
  beside: ConstructorParameters<typeof Returning>[3],
];

/** The value lists of the rows: those of VALUES as written, else a single one that stands for all. */
function valueRowsOf(root: PlanNode): readonly (readonly Bound[])[] {
  if (root.kind !== 'project') return [];
  const { input, expressions } = root;
  return input.kind === 'values' && input.columns.length > 0 ? input.rows : [expressions];
}
