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
  const snapshot = invocation.snapshot();
  const definition = targetOf(statement, snapshot);
  request.onKnown();
  return new Write(request, snapshot, definition).run();
}

/** Whether it asks for anything that is stored. */
export function readsRows(statement: WriteStatement): boolean {
  if (statement.kind !== 'insert' || statement.returning !== null || statement.conflict?.do === 'update') return true;
  const { tables, calls } = namesRead(statement.source);
  return calls || tables.length > 0;
}

class Write {
  readonly #request: WriteRequest;
  readonly #snapshot: GovernedSnapshot;
  readonly #definition: TypeDefinition;
  readonly #types = new Set<string>();
  readonly #computedFrom = new Set<string>();
  readonly #overtaken: () => boolean;
  #returned: Returned = { columns: [], batches: [], rowCount: 0 };

  constructor(request: WriteRequest, snapshot: GovernedSnapshot, definition: TypeDefinition) {
    this.#request = request;
    this.#snapshot = snapshot;
    this.#definition = definition;
    this.#types.add(request.statement.target.type);
    this.#overtaken = snapshot.erasing([definition.name]);
  }

  run(): Promise<Executed> {
    const { statement } = this.#request;
    switch (statement.kind) {
      case 'insert':
        return this.#insert(statement);
      case 'update':
        return this.#update(statement);
      case 'delete':
        return this.#delete(statement);
      case 'merge':
        return this.#merge(statement);
    }
  }

  async #insert(statement: InsertStatement): Promise<Executed> {
    const { conflict } = statement;
    if (conflict !== null) checkConflictKey(conflict.key, this.#definition);
    const rowsRead = new RowsRead(false, this.#rowsMax);
    let columns: readonly TargetColumn[] = [];
    const answer = await this.#read(insertedRows(statement, this.#definition), 'source', rowsRead, {
      onPlan: (ready) => (columns = insertedColumns(statement, this.#definition, ready.columns.length)),
    });
    const all = rowsRead.numbers();
    const cells = columns.map((column, i) => cellsFor(rowsRead, i, answer.columns[i]!.type, column, all));
    const returning = this.#returning(statement, null);
    returning?.check(withNewColumns(this.#definition, cells));
    if (conflict?.do === 'update')
      return this.#upsert(statement, withoutOwnKey(conflict, this.#definition), {
        columns,
        cells,
        returning,
        length: all.length,
      });
    const put = this.#put({ length: all.length, columns: cells }, { when: 'absent', listsRows: returning ? true : undefined });
    const outcome = await this.#submit(conflict === null ? put : { ...put, keepsPresent: true }, (rows, writtenRows) =>
      this.#take(returning, rows.rows ?? [], writtenRows),
    );
    return this.#resultOf(outcome, { inserted: outcome.accepted, kept: all.length - outcome.accepted });
  }

  /** Rows whose key is there are patched, the others put: each on what stood at the snapshot, all of them or none. */
  async #upsert(statement: InsertStatement, conflict: Update, rows: Inserted): Promise<Executed> {
    const { columns, cells, returning } = rows;
    const set = setColumns(conflict.set, this.#definition, columns);
    const keys = this.#keysOf(cells, rows.length);
    const remainingKeys = new Set(keys);
    remainingKeys.delete(null);
    if (remainingKeys.size < keys.filter((key) => key !== null).length) {
      throw severalRows('ON CONFLICT DO UPDATE meets a key twice', conflict.location);
    }
    const there = new RowsRead(false, this.#rowsMax);
    const { query, given, part } = this.#conflicting(statement, conflict, cells, keys, remainingKeys.size);
    const { columns: read } = await this.#read(query, part, there, {
      extra: [...remainingKeys],
      given: new Map([[excludedRows, given]]),
    });
    const matched = new Set<number>();
    const updates: { readonly row: number; readonly existingRow: number }[] = [];
    for (let i = 0; i < there.rows; i++) {
      const row = Number(there.cell(i, 0));
      matched.add(row);
      if (there.cell(i, 1) === true) updates.push({ row, existingRow: i });
    }
    const inserts = [...keys.keys()].filter((row) => !matched.has(row));
    const listsRows = returning ? true : undefined;
    const inserted = { length: inserts.length, columns: cells.map((column) => pickedRows(column, inserts)) };
    const put = this.#put(inserted, { when: 'absent', listsRows });
    const existingRows = updates.map(({ existingRow }) => existingRow);
    const patch = this.#patch(
      updates.map(({ row }) => keys[row]!),
      set.map((column, i) => cellsFor(there, i + 2, read[i + 2]!.type, column, existingRows)),
      listsRows,
    );
    const steps: PutRows[] = [patch, put].filter(({ rows: { length } }) => length > 0);
    const rowOf = (step: PutRows, index: number): number => (step.patch ? updates[index]!.row : inserts[index]!);
    const command = steps.length === 1 ? steps[0]! : steps.length === 0 ? put : ({ kind: 'batch', steps } satisfies Batch);
    const outcome = await this.#submit(command, (decided, writtenRows) => {
      const each = decided.steps ?? [decided];
      const outcomes = each.flatMap((step, s) =>
        (step.rows ?? []).map((row) => ({ ...row, index: rowOf(steps[s]!, row.index) })),
      );
      this.#take(
        returning,
        outcomes.sort((a, b) => a.index - b.index),
        writtenRows,
      );
    });
    const updated = updates.length;
    return this.#resultOf(outcome, { inserted: outcome.accepted - updated, updated, kept: matched.size - updated });
  }

  #conflicting(
    statement: InsertStatement,
    conflict: Update,
    cells: readonly NamedColumn[],
    keys: readonly (string | null)[],
    count: number,
  ): { readonly query: Query; readonly given: WorkingRows; readonly part: string } {
    const keyCells = { name: '_pk', type: 'string', vector: vectorOf(keys, 'string') } as const;
    const rest = Object.entries(this.#definition.properties).map(
      ([name, { type }]): NamedColumn => ({
        name,
        type,
        vector: { kind: 'null' },
      }),
    );
    const own = [...cells.filter(({ name }) => name !== '_pk'), keyCells];
    const excluded = [...own, ...rest.filter(({ name }) => !own.some((column) => column.name === name))];
    const numbers = vectorOf(
      keys.map((_, row) => BigInt(row)),
      'integer',
    );
    const query = conflictingRows(statement, conflict, excluded.map(typeOf), count, this.#path);
    return {
      query,
      part: `conflict ${JSON.stringify([count, excluded.map(typeOf)])}`,
      given: [{ columns: [numbers, keyCells.vector, ...excluded.map(({ vector }) => vector)], count: keys.length }],
    };
  }

  /** Text of the key of each row; null where the store makes one. */
  #keysOf(cells: readonly NamedColumn[], length: number): (string | null)[] {
    const { primaryKey } = this.#definition;
    const names = primaryKey === null ? ['_pk', 'id'] : [primaryKey];
    const sources = names.flatMap((name) => cells.filter((column) => column.name === name));
    return Array.from({ length }, (_, row) => {
      for (const { vector, type } of sources) {
        const cell = cellAt(vector, type, row);
        if (cell !== null) return String(cell);
      }
      return null;
    });
  }

  async #update(statement: UpdateStatement): Promise<Executed> {
    const set = setColumns(statement.set, this.#definition);
    const bound = set.find(({ name }) => isBound(name));
    if (bound !== undefined && (statement.portion !== null || set.every(({ name }) => isBound(name)))) {
      throw errorAt(
        'REL_INVALID',
        `${bound.name} sets the time of other values: SET one of them too, or DELETE to end rows`,
        bound.location,
      );
    }
    const portion = this.#portionOf(statement);
    const refs = namedBeside(statement);
    const rowsRead = new RowsRead(portion === null, this.#rowsMax);
    const query = updatedRows(statement, this.#path);
    const { columns } = await this.#read(query, 'rows', rowsRead, portion?.read);
    const [atSet, first] = portion === null ? [1, 1 + set.length] : [3, 3 + set.length];
    const otherColumns = statement.from === null ? null : { rowsRead, columns: columns.slice(first), first, refs };
    const returning = this.#returning(statement, otherColumns);
    returning?.check(this.#definition);
    const all = rowsRead.numbers();
    const patch = this.#patch(
      all.map((row) => String(rowsRead.cell(row, 0))),
      [
        ...set.map((column, i) => cellsFor(rowsRead, atSet + i, columns[atSet + i]!.type, column, all)),
        ...(portion === null ? [] : portion.boundsOf(rowsRead)),
      ],
      returning ? true : undefined,
    );
    const outcome = await this.#submit(patch, (decided, writtenRows) => this.#take(returning, decided.rows ?? [], writtenRows));
    return this.#resultOf(outcome, { updated: outcome.accepted });
  }

  /** Null where the statement writes rows as of now. */
  #portionOf(statement: UpdateStatement | DeleteStatement): BoundPortion | null {
    const { portion } = statement;
    if (portion === null) return null;
    const otherSource = statement.kind === 'update' ? statement.from : statement.using;
    const { tables, calls } = namesRead(updatedOrDeleted(statement, this.#path));
    if (otherSource !== null || calls || tables.length > 1) {
      throw errorAt(
        'REL_NOT_IMPLEMENTED',
        'FOR PORTION OF VALID_TIME reads the rows that it writes, and no other table',
        portion.location,
      );
    }
    return portionOf(portion, this.#request.host.literal, this.#snapshot.instant);
  }

  async #delete(statement: DeleteStatement): Promise<Executed> {
    const portion = this.#portionOf(statement);
    const rowsRead = new RowsRead(portion === null, this.#rowsMax);
    const { columns } = await this.#read(deletedRows(statement, this.#path), 'rows', rowsRead, portion?.read);
    const returned = columns.slice(1);
    if (statement.returning !== null) {
      const vectors = returned.map(({ type }, i) => rowsRead.vector(i + 1, type));
      const batches = rowsRead.rows === 0 ? [] : [{ columns: vectors, selection: null, first: 0, count: rowsRead.rows }];
      this.#returned = { columns: returned, batches, rowCount: rowsRead.rows };
    }
    const deletion = this.#deletion([...new Set(rowsRead.numbers().map((row) => String(rowsRead.cell(row, 0))))]);
    const command: DeleteRows = { ...deletion, ...(portion && { within: portion.within }) };
    const outcome = await this.#submit(command, () => undefined);
    return this.#resultOf(outcome, { deleted: outcome.accepted });
  }

  /** All clauses read the rows as they stood before the statement. */
  async #merge(statement: MergeStatement): Promise<Executed> {
    const { host } = this.#request;
    host.atOnce(metQuery(statement), this.#snapshot);
    const steps: (PutRows | DeleteRows)[] = [];
    const counts = { inserted: 0, updated: 0, deleted: 0 };
    const keys = new Set<string>();
    const inserted: string[] = [];
    for (const [i, clause] of statement.clauses.entries()) {
      if (clause.do === 'nothing') continue;
      const before = counts.inserted + counts.updated + counts.deleted;
      const rowsRead = new RowsRead(false, this.#rowsMax, before);
      const { columns } = await this.#read(clauseRows(statement, clause, this.#path), `clause ${i}`, rowsRead);
      if (rowsRead.rows === 0) continue;
      const step = this.#stepOf(clause, rowsRead, columns);
      steps.push(step);
      counts[wrote[clause.do]] += rowsRead.rows;
      if (!clause.matched) {
        if (step.kind === 'put-rows')
          inserted.push(...this.#keysOf(step.rows.columns, step.rows.length).filter((key) => key !== null));
        continue;
      }
      for (const row of rowsRead.numbers()) keys.add(String(rowsRead.cell(row, 0)));
      if (keys.size < counts.updated + counts.deleted)
        throw severalRows('MERGE meets a row of the target twice', statement.location);
    }
    for (const key of inserted) {
      if (keys.has(key))
        throw errorAt(
          'REL_CONFLICT',
          `the key ${JSON.stringify(key)} is there already, or is inserted twice`,
          statement.location,
        );
      keys.add(key);
    }
    const command =
      steps.length === 1 ? steps[0]! : steps.length === 0 ? this.#deletion([]) : ({ kind: 'batch', steps } satisfies Batch);
    return this.#resultOf(await this.#submit(command, () => undefined), counts);
  }

  /** The step of a clause that writes the rows found for it. */
  #stepOf(clause: WritingClause, rowsRead: RowsRead, read: readonly OutputColumn[]): PutRows | DeleteRows {
    const all = rowsRead.numbers();
    if (clause.do === 'insert') {
      const columns = insertedColumns(clause, this.#definition, clause.values.length);
      const cells = columns.map((column, i) => cellsFor(rowsRead, i, read[i]!.type, column, all));
      return this.#put({ length: all.length, columns: cells }, { when: 'absent' });
    }
    const keys = all.map((row) => String(rowsRead.cell(row, 0)));
    if (clause.do === 'delete') return this.#deletion(keys);
    const set = setColumns(clause.set, this.#definition);
    return this.#patch(
      keys,
      set.map((column, i) => cellsFor(rowsRead, i + 1, read[i + 1]!.type, column, all)),
      undefined,
    );
  }

  #deletion(keys: readonly string[]): DeleteRows {
    return {
      kind: 'delete-rows',
      type: this.#definition.name,
      keys,
      when: { unchangedSince: this.#snapshot.instant },
      computedFrom: [...this.#computedFrom],
    };
  }

  /** In a transaction a statement is written in batches; its result comes from one. */
  get #rowsMax(): number {
    const { invocation, statement } = this.#request;
    return invocation.transaction === null || statement.returning !== null ? batchRowsMax : invocation.transaction.rowsMax;
  }

  get #path(): string | null {
    return this.#snapshot.caller.path;
  }

  /** Runs a query of the statement. It must not read masked columns: its rows, and the choice of them, become cells. */
  async #read(query: Query, part: string, rowsRead: RowsRead, more: Partial<ReadRequest> = {}): Promise<Answer> {
    return this.#request.host.read({
      query,
      part,
      rows: rowsRead,
      snapshot: this.#snapshot,
      time: more.time,
      extra: more.extra,
      given: more.given,
      onPlan: (ready) => {
        for (const { type, columns } of ready.reads) {
          this.#types.add(type);
          const masks = this.#snapshot.masksOf(type);
          const masked = columns.find((name) => masks.has(name));
          if (masked !== undefined) throw maskedColumn(type, masked);
          if (type === this.#definition.name) for (const name of columns) this.#computedFrom.add(name);
        }
        more.onPlan?.(ready);
      },
    });
  }

  #returning(statement: InsertStatement | UpdateStatement, otherColumns: OtherColumns | null): Returning | null {
    if (statement.returning === null) return null;
    const { caller, mayShow } = this.#snapshot;
    if (!mayShow(statement.target.type, caller.path)) {
      throw errorAt(
        'REL_ACL',
        `rows of ${JSON.stringify(statement.target.type)} may not be read: RETURNING shows them`,
        statement.location,
      );
    }
    const { host } = this.#request;
    return new Returning(statement, this.#snapshot, (query) => host.atOnce(query, this.#snapshot), otherColumns);
  }

  /** Keeps the returned values of the rows that were written. */
  #take(returning: Returning | null, outcomes: readonly RowOutcome[], writtenRows: () => readonly WrittenRows[]): void {
    if (returning === null) return;
    const stored = outcomes.filter(({ became }) => became === 'created' || became === 'updated');
    this.#returned = returning.rows(stored, writtenRows(), ({ index }) => index, this.#definition.name);
  }

  #put(rows: RowBatch, { when, patch, listsRows }: Pick<PutRows, 'when' | 'patch' | 'listsRows'>): PutRows {
    const { statement, invocation } = this.#request;
    const provenance = { source: invocation.caller.door, method: statement.kind, confidence: 1, derivedFrom: null };
    return {
      kind: 'put-rows',
      type: this.#definition.name,
      rows,
      atomic: false,
      createType: false,
      provenance,
      computedFrom: [...this.#computedFrom],
      when,
      patch,
      listsRows,
    };
  }

  /** Sets these columns in the rows of these keys, as they were found. */
  #patch(keys: readonly string[], set: readonly NamedColumn[], listsRows: true | undefined): PutRows {
    const sent = new Uint8Array(keys.length).fill(1);
    const columns = [{ name: '_pk', type: 'string', vector: vectorOf(keys, 'string') } as const, ...set];
    const patch: SentCells = new Map(set.flatMap(({ name }) => (isBound(name) ? [] : [[name, sent] as const])));
    const when = { unchangedSince: this.#snapshot.instant, exceptOwn: true as const };
    return this.#put({ length: keys.length, columns }, { when, patch, listsRows });
  }

  /** Submits all rows or none: the first refused row refuses the statement. */
  async #submit(
    command: PutRows | DeleteRows | Batch,
    take: (decided: Decided, writtenRows: () => readonly WrittenRows[]) => void,
  ): Promise<CameTo> {
    const { invocation } = this.#request;
    invocation.describe({ action: deletes(command) ? 'delete' : 'ingest' });
    const portions = portionsOf(command);
    const { transaction } = invocation;
    try {
      if (portions.length === 1) return await this.#submitOne(command, take);
      // A transaction takes all of a statement or nothing of it.
      transaction!.savepoint(ofStatement);
      let all: CameTo | null = null;
      for (const portion of portions) {
        const came = await this.#submitOne(portion, take);
        all = all === null ? came : { ...came, accepted: all.accepted + came.accepted, systemFrom: all.systemFrom };
        await this.#request.host.turn();
      }
      transaction!.release(ofStatement);
      return all!;
    } catch (error) {
      if (portions.length > 1) transaction!.rollbackTo(ofStatement);
      throw error;
    } finally {
      invocation.describe({ objectType: [...this.#types].join(',') });
    }
  }

  async #submitOne(
    command: PutRows | DeleteRows | Batch,
    take: (decided: Decided, writtenRows: () => readonly WrittenRows[]) => void,
  ): Promise<CameTo> {
    const { invocation, statement, sync } = this.#request;
    const options: SubmitOptions = {
      sync,
      before: (decided, writtenRows) => {
        const [refused] = decided.errors;
        if (refused !== undefined) {
          const row = statement.kind === 'insert' ? `row ${refused.index}: ` : '';
          const step = command.kind === 'batch' ? null : command;
          const stale = refused.code === 'REL_CONFLICT' && step !== null && this.#isStale(step);
          throw new ServiceError(refused.code as ErrorCode, row + refused.detail, {
            ...(stale && { stale: true }),
            ...(step && { refused: refusedRow(step, this.#definition.primaryKey, refused) }),
          });
        }
        take(decided, writtenRows);
      },
    };
    try {
      return await invocation.submit(command, options);
    } catch (error) {
      const refused = error instanceof ServiceError && error.code === 'REL_CONFLICT' ? error.facts.step : undefined;
      const isStale = refused !== undefined && command.kind === 'batch' && this.#isStale(command.steps[refused]!);
      throw isStale ? new ServiceError('REL_CONFLICT', (error as ServiceError).message, { stale: true }) : error;
    }
  }

  /** Whether a conflict of this step comes of a row that was written meanwhile, and not of a key that is sent. */
  #isStale(step: PutRows | DeleteRows): boolean {
    const { statement } = this.#request;
    if (statement.kind === 'merge') return step.kind === 'delete-rows' || step.when !== 'absent';
    return statement.kind !== 'insert' || statement.conflict?.do === 'update';
  }

  #resultOf(outcome: CameTo, counts: Partial<Pick<Written, 'inserted' | 'updated' | 'deleted' | 'kept'>>): Executed {
    const { host, statement } = this.#request;
    const { systemFrom, systemFromLast, durability } = outcome;
    const facts = { asOfSystem: this.#snapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
    const { columns, batches, rowCount } = this.#returned;
    const overtaken = this.#overtaken;
    return {
      // All returned rows are there: these replace the answer's.
      answer: { ...smallAnswer(columns, [], facts), batches, rowCount, estimatedTotalHits: rowCount, overtaken },
      written: {
        verb: statement.kind,
        inserted: counts.inserted ?? 0,
        updated: counts.updated ?? 0,
        deleted: counts.deleted ?? 0,
        kept: counts.kept ?? 0,
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

function deletes(command: PutRows | DeleteRows | Batch): boolean {
  const steps = command.kind === 'batch' ? command.steps : [command];
  return steps.every(({ kind }) => kind === 'delete-rows');
}

const severalRows = (clauseName: string, location: Location): ServiceError =>
  errorAt('REL_INVALID', `${clauseName}: a statement writes each row once`, location, 'several-rows');

type WritingClause = Exclude<MergeClause, { do: 'nothing' }>;
const wrote = { insert: 'inserted', update: 'updated', delete: 'deleted' } as const;

type Update = Extract<Conflict, { do: 'update' }>;
type CameTo = Pick<Outcome, 'accepted' | 'systemFrom' | 'systemFromLast' | 'durability'>;
type Decided = Omit<Outcome, 'durability' | 'replayed'>;

interface Inserted {
  readonly columns: readonly TargetColumn[];
  readonly cells: readonly NamedColumn[];
  readonly length: number;
  readonly returning: Returning | null;
}

/** No client can name it. */
const ofStatement = '\0statement';

function isBound(name: string): boolean {
  return name === 'valid_from' || name === 'valid_to';
}

function typeOf({ name, type }: NamedColumn): { readonly name: string; readonly type: ColumnType } {
  return { name, type };
}

/** The definition of an open type with the new columns of these rows. */
function withNewColumns(definition: TypeDefinition, cells: readonly NamedColumn[]): TypeDefinition {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const fresh = cells.filter(({ name }) => !Object.hasOwn(definition.properties, name) && !Object.hasOwn(systemColumns, name));
  if (fresh.length === 0) return definition;
  const added = fresh.map(({ name, type }) => [name, { ...plain, type }] as const);
  return { ...definition, properties: { ...definition.properties, ...Object.fromEntries(added) } };
}
