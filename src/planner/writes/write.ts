/**
 * Executes a statement that writes, from its tree to its result. Invariants:
 *
 * - the rows that it changes are found on one governed snapshot, as any query finds them, and the command that goes to the gate is
 *   decided in one turn against that snapshot: a row that was written since refuses the whole statement with REL_CONFLICT;
 * - nothing is worked out from a column that the caller sees masked: not a value, not a condition, not what is returned;
 * - UPDATE is a patch: cells that it does not set stay as they are stored, seen or not.
 */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation, SubmitOptions, WrittenRows } from '../../governance/gate-contract.ts';
import type { NamedColumn, RowBatch } from '../../log/values/columns.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, systemColumns } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import {
  type Batch,
  batchRowsMax,
  type DeleteRows,
  type Outcome,
  type PutRows,
  type RowOutcome,
  type SentCells,
} from '../../projections/command.ts';
import { smallAnswer } from '../execution/small-answer.ts';
import type { WorkingRows } from '../operators/operator.ts';
import { errorAt } from '../syntax/error-location.ts';
import { namesRead } from '../plans/plan-names.ts';
import type { Answer, Executed, OutputColumn, RowTaker, Written } from '../planner-contract.ts';
import type { ReadyPlan } from '../plans/plans.ts';
import type { DefaultTime, Literal, Location, Query } from '../syntax/statement.ts';
import type {
  Conflict,
  DeleteStatement,
  InsertStatement,
  MergeClause,
  MergeStatement,
  UpdateStatement,
  WriteStatement,
} from '../syntax/write-statement.ts';
import { RowsRead, vectorOf } from './rows-read.ts';
import { type AtOnce, type OtherColumns, maskedColumn, type Returned, Returning } from './returning.ts';
import { type BoundPortion, portionOf } from './valid-time-portion.ts';
import { conflictingRows, deletedRows, excludedRows, insertedRows, namedBeside, updatedRows } from './write-queries.ts';
import { pickedRows, portionsOf } from './command-portions.ts';
import { clauseRows, metQuery } from './merge-queries.ts';
import { refusedRow } from './refused-row.ts';
import { checkConflictKey, insertedColumns, setColumns, type TargetColumn, targetOf, withoutOwnKey } from './write-target.ts';
import { cellsFor } from './column-cells.ts';

/** The planner's services for a write. Queries are over the literals of the statement, NULL, the path, and then `extra`. */
export interface WriteHost {
  read(request: ReadRequest): Promise<Answer>;
  atOnce(query: Query, snapshot: GovernedSnapshot): AtOnce;
  /** Gives other work a turn. */
  turn(): Promise<void>;
  /** Value of a literal of the statement. */
  literal(slot: number): Literal;
  processingTimeMs(): number;
}

export interface ReadRequest {
  readonly query: Query;
  /** Distinguishes the queries of one statement; includes everything that the tree depends on beside its text. */
  readonly part: string;
  readonly snapshot: GovernedSnapshot;
  readonly rows: RowTaker;
  /** The time that it reads; current rows where this is absent. */
  readonly time?: DefaultTime | undefined;
  readonly extra?: readonly Literal[] | undefined;
  readonly given?: ReadonlyMap<string, WorkingRows> | undefined;
  /** Ends it, beside the caller's going away. */
  readonly signal?: AbortSignal;
  readonly onPlan: (ready: Pick<ReadyPlan, 'plan' | 'columns' | 'reads'>) => void;
}

export interface WriteRequest {
  readonly statement: WriteStatement;
  readonly invocation: Invocation;
  readonly host: WriteHost;
  readonly sync: boolean;
  /** Its names are known to name something. */
  readonly onKnown: () => void;
}

export async function runWrite(request: WriteRequest): Promise<Executed> {
  const { statement, invocation } = request;
  // A write that reads nothing needs no permission to read.
  invocation.describe({
    action: readsRows(statement) ? 'query' : 'ingest',
    act: { action: statement.kind === 'delete' ? 'delete' : 'ingest' },
    objectType: statement.target.type,
  });
  const writeSnapshot = invocation.snapshot();
  const targetDefinition = targetOf(statement, writeSnapshot);
  request.onKnown();
  return new WriteRun(request, writeSnapshot, targetDefinition).run();
}

/** Whether it asks for anything that is stored. */
export function readsRows(statement: WriteStatement): boolean {
  if (statement.kind !== 'insert' || statement.returning !== null || statement.conflict?.do === 'update') return true;
  const { tables, calls } = namesRead(statement.source);
  return calls || tables.length > 0;
}

class WriteRun {
  readonly #writeRequest: WriteRequest;
  readonly #writeSnapshot: GovernedSnapshot;
  readonly #targetDefinition: TypeDefinition;
  readonly #typesWritten = new Set<string>();
  readonly #columnsComputedFrom = new Set<string>();
  readonly #isOvertaken: () => boolean;
  #returnedRows: Returned = { columns: [], batches: [], rowCount: 0 };

  constructor(request: WriteRequest, snapshot: GovernedSnapshot, definition: TypeDefinition) {
    this.#writeRequest = request;
    this.#writeSnapshot = snapshot;
    this.#targetDefinition = definition;
    this.#typesWritten.add(request.statement.target.type);
    this.#isOvertaken = snapshot.erasing([definition.name]);
  }

  run(): Promise<Executed> {
    const { statement } = this.#writeRequest;
    switch (statement.kind) {
      case 'insert':
        return this.#runInsert(statement);
      case 'update':
        return this.#runUpdate(statement);
      case 'delete':
        return this.#runDelete(statement);
      case 'merge':
        return this.#runMerge(statement);
    }
  }

  async #runInsert(statement: InsertStatement): Promise<Executed> {
    const { conflict } = statement;
    if (conflict !== null) checkConflictKey(conflict.key, this.#targetDefinition);
    const rowsRead = new RowsRead(false, this.#writtenRowsMax);
    let insertTargets: readonly TargetColumn[] = [];
    const sourceAnswer = await this.#readForWrite(insertedRows(statement, this.#targetDefinition), 'source', rowsRead, {
      onPlan: (ready) => (insertTargets = insertedColumns(statement, this.#targetDefinition, ready.columns.length)),
    });
    const sourceRowIds = rowsRead.numbers();
    const insertedCells = insertTargets.map((column, i) =>
      cellsFor(rowsRead, i, sourceAnswer.columns[i]!.type, column, sourceRowIds),
    );
    const returning = this.#returningOf(statement, null);
    returning?.check(withNewColumns(this.#targetDefinition, insertedCells));
    if (conflict?.do === 'update')
      return this.#runUpsert(statement, withoutOwnKey(conflict, this.#targetDefinition), {
        columns: insertTargets,
        cells: insertedCells,
        returning,
        length: sourceRowIds.length,
      });
    const putAbsent = this.#putRowsOf(
      { length: sourceRowIds.length, columns: insertedCells },
      { when: 'absent', listsRows: returning ? true : undefined },
    );
    const insertOutcome = await this.#submitPortions(
      conflict === null ? putAbsent : { ...putAbsent, keepsPresent: true },
      (rows, writtenRows) => this.#takeReturned(returning, rows.rows ?? [], writtenRows),
    );
    return this.#executedOf(insertOutcome, {
      inserted: insertOutcome.accepted,
      kept: sourceRowIds.length - insertOutcome.accepted,
    });
  }

  /** Rows whose key is there are patched, the others put: each on what stood at the snapshot, all of them or none. */
  async #runUpsert(statement: InsertStatement, conflict: ConflictUpdate, rows: InsertedRows): Promise<Executed> {
    const { columns, cells, returning } = rows;
    const conflictSet = setColumns(conflict.set, this.#targetDefinition, columns);
    const insertedKeys = this.#keysOfCells(cells, rows.length);
    const remainingKeys = new Set(insertedKeys);
    remainingKeys.delete(null);
    if (remainingKeys.size < insertedKeys.filter((key) => key !== null).length) {
      throw severalRowsError('ON CONFLICT DO UPDATE meets a key twice', conflict.location);
    }
    const conflictRows = new RowsRead(false, this.#writtenRowsMax);
    const {
      query,
      given: excludedGiven,
      part: conflictPart,
    } = this.#conflictingQuery(statement, conflict, cells, insertedKeys, remainingKeys.size);
    const { columns: conflictColumns } = await this.#readForWrite(query, conflictPart, conflictRows, {
      extra: [...remainingKeys],
      given: new Map([[excludedRows, excludedGiven]]),
    });
    const matchedRows = new Set<number>();
    const conflictUpdates: { readonly row: number; readonly existingRow: number }[] = [];
    for (let i = 0; i < conflictRows.rows; i++) {
      const row = Number(conflictRows.cell(i, 0));
      matchedRows.add(row);
      if (conflictRows.cell(i, 1) === true) conflictUpdates.push({ row, existingRow: i });
    }
    const unmatchedRows = [...insertedKeys.keys()].filter((row) => !matchedRows.has(row));
    const listsRows = returning ? true : undefined;
    const insertedBatch = { length: unmatchedRows.length, columns: cells.map((column) => pickedRows(column, unmatchedRows)) };
    const putUnmatched = this.#putRowsOf(insertedBatch, { when: 'absent', listsRows });
    const existingRows = conflictUpdates.map(({ existingRow }) => existingRow);
    const patchMatched = this.#patchRowsOf(
      conflictUpdates.map(({ row }) => insertedKeys[row]!),
      conflictSet.map((column, i) => cellsFor(conflictRows, i + 2, conflictColumns[i + 2]!.type, column, existingRows)),
      listsRows,
    );
    const upsertSteps: PutRows[] = [patchMatched, putUnmatched].filter(({ rows: { length } }) => length > 0);
    const sourceRowOf = (step: PutRows, index: number): number =>
      step.patch ? conflictUpdates[index]!.row : unmatchedRows[index]!;
    const upsertCommand =
      upsertSteps.length === 1
        ? upsertSteps[0]!
        : upsertSteps.length === 0
          ? putUnmatched
          : ({ kind: 'batch', steps: upsertSteps } satisfies Batch);
    const upsertOutcome = await this.#submitPortions(upsertCommand, (decided, writtenRows) => {
      const decidedSteps = decided.steps ?? [decided];
      const rowOutcomes = decidedSteps.flatMap((step, s) =>
        (step.rows ?? []).map((row) => ({ ...row, index: sourceRowOf(upsertSteps[s]!, row.index) })),
      );
      this.#takeReturned(
        returning,
        rowOutcomes.sort((a, b) => a.index - b.index),
        writtenRows,
      );
    });
    const updatedCount = conflictUpdates.length;
    return this.#executedOf(upsertOutcome, {
      inserted: upsertOutcome.accepted - updatedCount,
      updated: updatedCount,
      kept: matchedRows.size - updatedCount,
    });
  }

  #conflictingQuery(
    statement: InsertStatement,
    conflict: ConflictUpdate,
    cells: readonly NamedColumn[],
    keys: readonly (string | null)[],
    keyCount: number,
  ): { readonly query: Query; readonly given: WorkingRows; readonly part: string } {
    const keyCells = { name: '_pk', type: 'string', vector: vectorOf(keys, 'string') } as const;
    const otherColumns = Object.entries(this.#targetDefinition.properties).map(
      ([name, { type }]): NamedColumn => ({
        name,
        type,
        vector: { kind: 'null' },
      }),
    );
    const ownCells = [...cells.filter(({ name }) => name !== '_pk'), keyCells];
    const excludedCells = [...ownCells, ...otherColumns.filter(({ name }) => !ownCells.some((column) => column.name === name))];
    const rowNumbers = vectorOf(
      keys.map((_, row) => BigInt(row)),
      'integer',
    );
    const query = conflictingRows(statement, conflict, excludedCells.map(nameAndTypeOf), keyCount, this.#callerPath);
    return {
      query,
      part: `conflict ${JSON.stringify([keyCount, excludedCells.map(nameAndTypeOf)])}`,
      given: [{ columns: [rowNumbers, keyCells.vector, ...excludedCells.map(({ vector }) => vector)], count: keys.length }],
    };
  }

  /** Text of the key of each row; null where the store makes one. */
  #keysOfCells(cells: readonly NamedColumn[], length: number): (string | null)[] {
    const { primaryKey } = this.#targetDefinition;
    const keyNames = primaryKey === null ? ['_pk', 'id'] : [primaryKey];
    const keySources = keyNames.flatMap((name) => cells.filter((column) => column.name === name));
    return Array.from({ length }, (_, row) => {
      for (const { vector, type } of keySources) {
        const keyCell = cellAt(vector, type, row);
        if (keyCell !== null) return String(keyCell);
      }
      return null;
    });
  }

  async #runUpdate(statement: UpdateStatement): Promise<Executed> {
    const updateTargets = setColumns(statement.set, this.#targetDefinition);
    const timeBound = updateTargets.find(({ name }) => isValidTimeBound(name));
    if (timeBound !== undefined && (statement.portion !== null || updateTargets.every(({ name }) => isValidTimeBound(name)))) {
      throw errorAt(
        'REL_INVALID',
        `${timeBound.name} sets the time of other values: SET one of them too, or DELETE to end rows`,
        timeBound.location,
      );
    }
    const timePortion = this.#timePortionOf(statement);
    const besideRefs = namedBeside(statement);
    const rowsRead = new RowsRead(timePortion === null, this.#writtenRowsMax);
    const updateQuery = updatedRows(statement, this.#callerPath);
    const { columns } = await this.#readForWrite(updateQuery, 'rows', rowsRead, timePortion?.read);
    const [setStart, firstBeside] = timePortion === null ? [1, 1 + updateTargets.length] : [3, 3 + updateTargets.length];
    const otherColumns =
      statement.from === null ? null : { rowsRead, columns: columns.slice(firstBeside), first: firstBeside, refs: besideRefs };
    const returning = this.#returningOf(statement, otherColumns);
    returning?.check(this.#targetDefinition);
    const updatedRowIds = rowsRead.numbers();
    const updatePatch = this.#patchRowsOf(
      updatedRowIds.map((row) => String(rowsRead.cell(row, 0))),
      [
        ...updateTargets.map((column, i) => cellsFor(rowsRead, setStart + i, columns[setStart + i]!.type, column, updatedRowIds)),
        ...(timePortion === null ? [] : timePortion.boundsOf(rowsRead)),
      ],
      returning ? true : undefined,
    );
    const updateOutcome = await this.#submitPortions(updatePatch, (decided, writtenRows) =>
      this.#takeReturned(returning, decided.rows ?? [], writtenRows),
    );
    return this.#executedOf(updateOutcome, { updated: updateOutcome.accepted });
  }

  /** Null where the statement writes rows as of now. */
  #timePortionOf(statement: UpdateStatement | DeleteStatement): BoundPortion | null {
    const { portion } = statement;
    if (portion === null) return null;
    const otherSource = statement.kind === 'update' ? statement.from : statement.using;
    const { tables, calls } = namesRead(updatedOrDeleted(statement, this.#callerPath));
    if (otherSource !== null || calls || tables.length > 1) {
      throw errorAt(
        'REL_NOT_IMPLEMENTED',
        'FOR PORTION OF VALID_TIME reads the rows that it writes, and no other table',
        portion.location,
      );
    }
    return portionOf(portion, this.#writeRequest.host.literal, this.#writeSnapshot.instant);
  }

  async #runDelete(statement: DeleteStatement): Promise<Executed> {
    const timePortion = this.#timePortionOf(statement);
    const rowsRead = new RowsRead(timePortion === null, this.#writtenRowsMax);
    const { columns } = await this.#readForWrite(deletedRows(statement, this.#callerPath), 'rows', rowsRead, timePortion?.read);
    const returnedColumns = columns.slice(1);
    if (statement.returning !== null) {
      const returnedVectors = returnedColumns.map(({ type }, i) => rowsRead.vector(i + 1, type));
      const returnedBatches =
        rowsRead.rows === 0 ? [] : [{ columns: returnedVectors, selection: null, first: 0, count: rowsRead.rows }];
      this.#returnedRows = { columns: returnedColumns, batches: returnedBatches, rowCount: rowsRead.rows };
    }
    const deleteRows = this.#deleteRowsOf([...new Set(rowsRead.numbers().map((row) => String(rowsRead.cell(row, 0))))]);
    const deleteCommand: DeleteRows = { ...deleteRows, ...(timePortion && { within: timePortion.within }) };
    const deleteOutcome = await this.#submitPortions(deleteCommand, () => undefined);
    return this.#executedOf(deleteOutcome, { deleted: deleteOutcome.accepted });
  }

  /** All clauses read the rows as they stood before the statement. */
  async #runMerge(statement: MergeStatement): Promise<Executed> {
    const { host } = this.#writeRequest;
    host.atOnce(metQuery(statement), this.#writeSnapshot);
    const mergeSteps: (PutRows | DeleteRows)[] = [];
    const counts = { inserted: 0, updated: 0, deleted: 0 };
    const targetKeys = new Set<string>();
    const insertedKeys: string[] = [];
    for (const [i, mergeClause] of statement.clauses.entries()) {
      if (mergeClause.do === 'nothing') continue;
      const rowsBefore = counts.inserted + counts.updated + counts.deleted;
      const rowsRead = new RowsRead(false, this.#writtenRowsMax, rowsBefore);
      const { columns } = await this.#readForWrite(clauseRows(statement, mergeClause, this.#callerPath), `clause ${i}`, rowsRead);
      if (rowsRead.rows === 0) continue;
      const clauseStep = this.#stepOfClause(mergeClause, rowsRead, columns);
      mergeSteps.push(clauseStep);
      counts[countOfClause[mergeClause.do]] += rowsRead.rows;
      if (!mergeClause.matched) {
        if (clauseStep.kind === 'put-rows')
          insertedKeys.push(
            ...this.#keysOfCells(clauseStep.rows.columns, clauseStep.rows.length).filter((insertedKey) => insertedKey !== null),
          );
        continue;
      }
      for (const row of rowsRead.numbers()) targetKeys.add(String(rowsRead.cell(row, 0)));
      if (targetKeys.size < counts.updated + counts.deleted)
        throw severalRowsError('MERGE meets a row of the target twice', statement.location);
    }
    for (const key of insertedKeys) {
      if (targetKeys.has(key))
        throw errorAt(
          'REL_CONFLICT',
          `the key ${JSON.stringify(key)} is there already, or is inserted twice`,
          statement.location,
        );
      targetKeys.add(key);
    }
    const mergeCommand =
      mergeSteps.length === 1
        ? mergeSteps[0]!
        : mergeSteps.length === 0
          ? this.#deleteRowsOf([])
          : ({ kind: 'batch', steps: mergeSteps } satisfies Batch);
    return this.#executedOf(await this.#submitPortions(mergeCommand, () => undefined), counts);
  }

  /** The step of a clause that writes the rows found for it. */
  #stepOfClause(clause: WritingClause, rowsRead: RowsRead, columnsRead: readonly OutputColumn[]): PutRows | DeleteRows {
    const clauseRowIds = rowsRead.numbers();
    if (clause.do === 'insert') {
      const columns = insertedColumns(clause, this.#targetDefinition, clause.values.length);
      const clauseCells = columns.map((column, i) => cellsFor(rowsRead, i, columnsRead[i]!.type, column, clauseRowIds));
      return this.#putRowsOf({ length: clauseRowIds.length, columns: clauseCells }, { when: 'absent' });
    }
    const clauseKeys = clauseRowIds.map((row) => String(rowsRead.cell(row, 0)));
    if (clause.do === 'delete') return this.#deleteRowsOf(clauseKeys);
    const clauseSet = setColumns(clause.set, this.#targetDefinition);
    return this.#patchRowsOf(
      clauseKeys,
      clauseSet.map((column, i) => cellsFor(rowsRead, i + 1, columnsRead[i + 1]!.type, column, clauseRowIds)),
      undefined,
    );
  }

  #deleteRowsOf(keys: readonly string[]): DeleteRows {
    return {
      kind: 'delete-rows',
      type: this.#targetDefinition.name,
      keys,
      when: { unchangedSince: this.#writeSnapshot.instant },
      computedFrom: [...this.#columnsComputedFrom],
    };
  }

  /** In a transaction a statement is written in batches; its result comes from one. */
  get #writtenRowsMax(): number {
    const { invocation, statement } = this.#writeRequest;
    return invocation.transaction === null || statement.returning !== null ? batchRowsMax : invocation.transaction.rowsMax;
  }

  get #callerPath(): string | null {
    return this.#writeSnapshot.caller.path;
  }

  /** Runs a query of the statement. It must not read masked columns: its rows, and the choice of them, become cells. */
  async #readForWrite(
    query: Query,
    queryPart: string,
    rowsRead: RowsRead,
    moreOfRead: Partial<ReadRequest> = {},
  ): Promise<Answer> {
    return this.#writeRequest.host.read({
      query,
      part: queryPart,
      rows: rowsRead,
      snapshot: this.#writeSnapshot,
      time: moreOfRead.time,
      extra: moreOfRead.extra,
      given: moreOfRead.given,
      onPlan: (ready) => {
        for (const { type, columns } of ready.reads) {
          this.#typesWritten.add(type);
          const masks = this.#writeSnapshot.masksOf(type);
          const masked = columns.find((name) => masks.has(name));
          if (masked !== undefined) throw maskedColumn(type, masked);
          if (type === this.#targetDefinition.name) for (const name of columns) this.#columnsComputedFrom.add(name);
        }
        moreOfRead.onPlan?.(ready);
      },
    });
  }

  #returningOf(statement: InsertStatement | UpdateStatement, otherColumns: OtherColumns | null): Returning | null {
    if (statement.returning === null) return null;
    const { caller, mayShow } = this.#writeSnapshot;
    if (!mayShow(statement.target.type, caller.path)) {
      throw errorAt(
        'REL_ACL',
        `rows of ${JSON.stringify(statement.target.type)} may not be read: RETURNING shows them`,
        statement.location,
      );
    }
    const { host } = this.#writeRequest;
    return new Returning(statement, this.#writeSnapshot, (query) => host.atOnce(query, this.#writeSnapshot), otherColumns);
  }

  /** Keeps the returned values of the rows that were written. */
  #takeReturned(returning: Returning | null, outcomes: readonly RowOutcome[], writtenRows: () => readonly WrittenRows[]): void {
    if (returning === null) return;
    const storedOutcomes = outcomes.filter(({ became }) => became === 'created' || became === 'updated');
    this.#returnedRows = returning.rows(storedOutcomes, writtenRows(), ({ index }) => index, this.#targetDefinition.name);
  }

  #putRowsOf(rows: RowBatch, { when, patch, listsRows }: Pick<PutRows, 'when' | 'patch' | 'listsRows'>): PutRows {
    const { statement, invocation } = this.#writeRequest;
    const provenance = { source: invocation.caller.door, method: statement.kind, confidence: 1, derivedFrom: null };
    return {
      kind: 'put-rows',
      type: this.#targetDefinition.name,
      rows,
      atomic: false,
      createType: false,
      provenance,
      computedFrom: [...this.#columnsComputedFrom],
      when,
      patch,
      listsRows,
    };
  }

  /** Sets these columns in the rows of these keys, as they were found. */
  #patchRowsOf(keys: readonly string[], setColumnCells: readonly NamedColumn[], listsRows: true | undefined): PutRows {
    const sentCells = new Uint8Array(keys.length).fill(1);
    const patchColumns = [{ name: '_pk', type: 'string', vector: vectorOf(keys, 'string') } as const, ...setColumnCells];
    const sentByColumn: SentCells = new Map(
      setColumnCells.flatMap(({ name }) => (isValidTimeBound(name) ? [] : [[name, sentCells] as const])),
    );
    const unchangedCondition = { unchangedSince: this.#writeSnapshot.instant, exceptOwn: true as const };
    return this.#putRowsOf(
      { length: keys.length, columns: patchColumns },
      { when: unchangedCondition, patch: sentByColumn, listsRows },
    );
  }

  /** Submits all rows or none: the first refused row refuses the statement. */
  async #submitPortions(
    command: PutRows | DeleteRows | Batch,
    takeWritten: (decided: DecidedWrite, writtenRows: () => readonly WrittenRows[]) => void,
  ): Promise<WriteOutcome> {
    const { invocation } = this.#writeRequest;
    invocation.describe({ action: isDeletion(command) ? 'delete' : 'ingest' });
    const commandPortions = portionsOf(command);
    const { transaction } = invocation;
    try {
      if (commandPortions.length === 1) return await this.#submitPortion(command, takeWritten);
      // A transaction takes all of a statement or nothing of it.
      transaction!.savepoint(statementSavepoint);
      let allPortions: WriteOutcome | null = null;
      for (const portion of commandPortions) {
        const portionOutcome = await this.#submitPortion(portion, takeWritten);
        allPortions =
          allPortions === null
            ? portionOutcome
            : { ...portionOutcome, accepted: allPortions.accepted + portionOutcome.accepted, systemFrom: allPortions.systemFrom };
        await this.#writeRequest.host.turn();
      }
      transaction!.release(statementSavepoint);
      return allPortions!;
    } catch (error) {
      if (commandPortions.length > 1) transaction!.rollbackTo(statementSavepoint);
      throw error;
    } finally {
      invocation.describe({ objectType: [...this.#typesWritten].join(',') });
    }
  }

  async #submitPortion(
    command: PutRows | DeleteRows | Batch,
    takeWritten: (decided: DecidedWrite, writtenRows: () => readonly WrittenRows[]) => void,
  ): Promise<WriteOutcome> {
    const { invocation, statement, sync } = this.#writeRequest;
    const submitOptions: SubmitOptions = {
      sync,
      before: (decided, writtenRows) => {
        const [refusedRejection] = decided.errors;
        if (refusedRejection !== undefined) {
          const refusedRowText = statement.kind === 'insert' ? `row ${refusedRejection.index}: ` : '';
          const singleStep = command.kind === 'batch' ? null : command;
          const isStaleRefusal = refusedRejection.code === 'REL_CONFLICT' && singleStep !== null && this.#isStale(singleStep);
          throw new ServiceError(refusedRejection.code as ErrorCode, refusedRowText + refusedRejection.detail, {
            ...(isStaleRefusal && { stale: true }),
            ...(singleStep && { refused: refusedRow(singleStep, this.#targetDefinition.primaryKey, refusedRejection) }),
          });
        }
        takeWritten(decided, writtenRows);
      },
    };
    try {
      return await invocation.submit(command, submitOptions);
    } catch (error) {
      const refusedStep = error instanceof ServiceError && error.code === 'REL_CONFLICT' ? error.facts.step : undefined;
      const isStale = refusedStep !== undefined && command.kind === 'batch' && this.#isStale(command.steps[refusedStep]!);
      throw isStale ? new ServiceError('REL_CONFLICT', (error as ServiceError).message, { stale: true }) : error;
    }
  }

  /** Whether a conflict of this step comes of a row that was written meanwhile, and not of a key that is sent. */
  #isStale(step: PutRows | DeleteRows): boolean {
    const { statement } = this.#writeRequest;
    if (statement.kind === 'merge') return step.kind === 'delete-rows' || step.when !== 'absent';
    return statement.kind !== 'insert' || statement.conflict?.do === 'update';
  }

  #executedOf(
    outcome: WriteOutcome,
    writtenCounts: Partial<Pick<Written, 'inserted' | 'updated' | 'deleted' | 'kept'>>,
  ): Executed {
    const { host, statement } = this.#writeRequest;
    const { systemFrom, systemFromLast, durability } = outcome;
    const answerFigures = { asOfSystem: this.#writeSnapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
    const { columns, batches, rowCount } = this.#returnedRows;
    const overtaken = this.#isOvertaken;
    return {
      // All returned rows are there: these replace the answer's.
      answer: { ...smallAnswer(columns, [], answerFigures), batches, rowCount, estimatedTotalHits: rowCount, overtaken },
      written: {
        verb: statement.kind,
        inserted: writtenCounts.inserted ?? 0,
        updated: writtenCounts.updated ?? 0,
        deleted: writtenCounts.deleted ?? 0,
        kept: writtenCounts.kept ?? 0,
        systemFrom,
        systemFromLast,
        durability,
      },
    };
  }
}

function updatedOrDeleted(statement: UpdateStatement | DeleteStatement, path: string | null): Query {
  return statement.kind === 'update' ? updatedRows(statement, path) : deletedRows(statement, path);
}

function isDeletion(command: PutRows | DeleteRows | Batch): boolean {
  const commandSteps = command.kind === 'batch' ? command.steps : [command];
  return commandSteps.every(({ kind }) => kind === 'delete-rows');
}

const severalRowsError = (clauseName: string, location: Location): ServiceError =>
  errorAt('REL_INVALID', `${clauseName}: a statement writes each row once`, location, 'several-rows');

type WritingClause = Exclude<MergeClause, { do: 'nothing' }>;
const countOfClause = { insert: 'inserted', update: 'updated', delete: 'deleted' } as const;

type ConflictUpdate = Extract<Conflict, { do: 'update' }>;
type WriteOutcome = Pick<Outcome, 'accepted' | 'systemFrom' | 'systemFromLast' | 'durability'>;
type DecidedWrite = Omit<Outcome, 'durability' | 'replayed'>;

interface InsertedRows {
  readonly columns: readonly TargetColumn[];
  readonly cells: readonly NamedColumn[];
  readonly length: number;
  readonly returning: Returning | null;
}

/** No client can name it. */
const statementSavepoint = '\0statement';

function isValidTimeBound(name: string): boolean {
  return name === 'valid_from' || name === 'valid_to';
}

function nameAndTypeOf({ name, type }: NamedColumn): { readonly name: string; readonly type: ColumnType } {
  return { name, type };
}

/** The definition of an open type with the new columns of these rows. */
function withNewColumns(definition: TypeDefinition, cells: readonly NamedColumn[]): TypeDefinition {
  const plainProperty = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const newColumns = cells.filter(
    ({ name }) => !Object.hasOwn(definition.properties, name) && !Object.hasOwn(systemColumns, name),
  );
  if (newColumns.length === 0) return definition;
  const addedProperties = newColumns.map(({ name, type }) => [name, { ...plainProperty, type }] as const);
  return { ...definition, properties: { ...definition.properties, ...Object.fromEntries(addedProperties) } };
}
