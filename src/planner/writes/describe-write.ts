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

interface Binding extends DescribeWrite {
  readonly invocation: Invocation;
  atOnce(query: Query, snapshot: GovernedSnapshot): AtOnce;
  bindQuery(query: Query, literals: readonly Literal[], snapshot: GovernedSnapshot): LogicalPlan;
}

export function describeWrite(request: Binding): Description {
  const { statement, invocation, lexed, stated } = request;
  invocation.describe({ action: readsRows(statement) ? 'query' : 'ingest' });
  const snapshot = invocation.snapshot('describe');
  const types = new Types(request, snapshot);
  const definition = targetOf(statement, snapshot);
  return { columns: types.columnsOf(statement, definition), parameters: markerTypes(lexed, stated, types.types) };
}

class Types {
  readonly types = new Map<number, ParameterType>();
  readonly #request: Binding;
  readonly #snapshot: GovernedSnapshot;
  readonly #open: ReadonlySet<number>;
  readonly #literals: readonly Literal[];

  constructor(request: Binding, snapshot: GovernedSnapshot) {
    this.#request = request;
    this.#snapshot = snapshot;
    this.#open = openSlots(request.lexed, request.stated);
    this.#literals = [...exampleValues(request.lexed), null, snapshot.caller.path];
  }

  columnsOf(statement: WriteStatement, definition: TypeDefinition): readonly OutputColumn[] {
    switch (statement.kind) {
      case 'insert':
        return this.#ofInsert(statement, definition);
      case 'update':
        return this.#ofUpdate(statement, definition);
      case 'delete':
        return this.#ofDelete(statement);
      case 'merge':
        this.#noteMerge(statement, definition);
        return [];
    }
  }

  #noteMerge(statement: MergeStatement, definition: TypeDefinition): void {
    this.#bindQuery(metQuery(statement));
    for (const clause of statement.clauses) {
      const { root } = this.#bindQuery(clauseRows(statement, clause, this.#snapshot.caller.path));
      if (clause.do === 'update') this.#noteSet(root, setColumns(clause.set, definition), 1);
      if (clause.do === 'insert') this.#noteSet(root, insertedColumns(clause, definition, clause.values.length), 0);
    }
  }

  #ofInsert(statement: InsertStatement, definition: TypeDefinition): readonly OutputColumn[] {
    const conflict = statement.conflict?.do === 'update' ? withoutOwnKey(statement.conflict, definition) : null;
    const { root } = this.#bindQuery(insertedRows(statement, definition));
    const { columns: given } = root;
    const columns = insertedColumns(statement, definition, given.length);
    for (const values of rowsOf(root)) columns.forEach((column, i) => this.#note(values[i], column));
    if (conflict !== null) {
      const set = setColumns(conflict.set, definition, columns);
      const excluded = columns.map(({ name, type }, i) => ({ name, type: type ?? given[i]!.type }));
      const rest = Object.entries(definition.properties).flatMap(([name, { type }]) =>
        excluded.some((column) => column.name === name) ? [] : [{ name, type }],
      );
      const there = this.#bindQuery(conflictingRows(statement, conflict, [...excluded, ...rest], 0, this.#snapshot.caller.path));
      this.#noteSet(there.root, set, 2);
    }
    return this.#returning(statement, definition, null);
  }

  #ofUpdate(statement: UpdateStatement, definition: TypeDefinition): readonly OutputColumn[] {
    const set = setColumns(statement.set, definition);
    const refs = namedBeside(statement);
    const { root, visible } = this.#bindQuery(updatedRows(statement, this.#snapshot.caller.path));
    const atSet = statement.portion === null ? 1 : 3;
    this.#noteSet(root, set, atSet);
    const first = atSet + set.length;
    const otherColumns = { rowsRead: new RowsRead(true), columns: root.columns.slice(first, visible), first, refs };
    return this.#returning(statement, definition, statement.from === null ? null : otherColumns);
  }

  #ofDelete(statement: DeleteStatement): readonly OutputColumn[] {
    const { root, visible } = this.#bindQuery(deletedRows(statement, this.#snapshot.caller.path));
    return root.columns.slice(1, visible);
  }

  #returning(...[statement, definition, otherColumns]: ReturningArguments): readonly OutputColumn[] {
    if (statement.returning === null) return [];
    const { atOnce } = this.#request;
    return new Returning(statement, this.#snapshot, (query) => atOnce(query, this.#snapshot), otherColumns).check(definition);
  }

  #bindQuery(query: Query): LogicalPlan {
    const plan = this.#request.bindQuery(query, this.#literals, this.#snapshot);
    for (const [slot, type] of inferredTypes(plan, this.#open)) if (!this.types.has(slot)) this.types.set(slot, type);
    return plan;
  }

  /** The values to set stand in the rows from `first` on. */
  #noteSet(root: PlanNode, columns: readonly TargetColumn[], first: number): void {
    for (const values of rowsOf(root)) columns.forEach((column, i) => this.#note(values[first + i], column));
  }

  /** A value of no type, by itself or in a sum, is of the type of the column that it goes to. */
  #note(value: Bound | undefined, { type }: TargetColumn): void {
    if (value?.kind === 'literal' && this.#open.has(value.slot) && type !== null) this.types.set(value.slot, type);
  }
}

type ReturningArguments = [
  statement: InsertStatement | UpdateStatement,
  definition: TypeDefinition,
  beside: ConstructorParameters<typeof Returning>[3],
];

/** The value lists of the rows: those of VALUES as written, else a single one that stands for all. */
function rowsOf(root: PlanNode): readonly (readonly Bound[])[] {
  if (root.kind !== 'project') return [];
  const { input, expressions } = root;
  return input.kind === 'values' && input.columns.length > 0 ? input.rows : [expressions];
}
