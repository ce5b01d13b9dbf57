/**
 * A transaction: one caller's writes to a branch in memory, over the snapshot of its first statement, until a commit decides all
 * of it again on the state of then. Invariants:
 *
 * - nothing of it is in the log, an index, a change set or another caller's answer before the commit;
 * - it holds no lock, no slot and no fsync: of two that write the same rows the first to commit wins, and the other is refused as
 *   stale; the next one of its client then waits for others that write the same (`./conflict-queue.ts`);
 * - it is its opener's alone, and what governs rows now governs its own rows at every statement.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { EntryContext, EntryDraft } from '../../log/entries/entry.ts';
import type { Basis } from '../../log/log-store.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { AccessPaths } from '../../projections/access-paths.ts';
import type { Batch, DeleteRows, PutRows } from '../../projections/command.ts';
import type { Decision, WriteChecks } from '../../projections/decision.ts';
import type { TransactionBranch } from '../../projections/transaction-branch.ts';
import { partsOf } from '../authorization/action-names.ts';
import { bytesOfRows } from '../admission/ingest-backlog.ts';
import type { Caller } from '../caller.ts';
import type { StatementDetails, Transaction } from '../gate-contract.ts';
import type { QueueTicket } from './conflict-queue.ts';

/** A command that waits for the commit. */
export type WaitingCommand = PutRows | DeleteRows | Batch;

export interface TransactionBounds {
  readonly rowsMax: number;
  readonly bytesMax: number;
  /** Milliseconds without a statement after which it is over. */
  readonly idleMs: number;
}

/** One command, decided once. */
interface Step {
  readonly command: WaitingCommand;
  /** Keys that were made for rows that brought none: the client has them already, so a later decision makes the same. */
  readonly keys: readonly string[];
  readonly drafts: readonly EntryDraft[];
  readonly rows: number;
  readonly bytes: number;
  readonly statement: StatementDetails;
}

interface Begun {
  readonly basis: Basis;
  readonly removals: number;
  branch: TransactionBranch;
}

interface Savepoint {
  readonly name: string;
  readonly steps: number;
}

/** The part of the projections that transactions use. */
export interface ForkedState {
  snapshot(basis: Basis, branch: string, tenant: string | null): AccessPaths;
  privately(basis: Basis, branch: string, tenant: string | null): TransactionBranch;
  /** Rises when rows of a path or below it are removed for good. */
  removals(path: string | null): number;
}

interface TransactionDependencies {
  readonly state: ForkedState;
  readonly basis: () => Basis;
  readonly nowMs: () => number;
  readonly bounds: TransactionBounds;
  /** In line with those that write rows of which its client met a conflict. */
  readonly ticket: QueueTicket | null;
  /** It waits there no longer than a statement may take. */
  readonly waitMsMax: number;
  readonly onEnd: () => void;
}

export interface TouchedRows {
  readonly type: string;
  readonly path: string | null;
  readonly keys: ReadonlySet<string>;
}

export interface ConflictingRow {
  readonly type: string;
  readonly path: string | null;
  readonly key: string;
}

/** Rows by type, path and key. */
class Touched {
  readonly #rows = new Map<string, TouchedRows & { readonly keys: Set<string> }>();
  size = 0;

  constructor(others?: Touched) {
    for (const { type, path, keys } of others?.rows() ?? []) this.add(type, path, keys);
  }

  add(type: string, path: string | null, keys: Iterable<string>): void {
    // A control character can't occur in a path.
    const name = `${path ?? '\0'}\0${type}`;
    let rows = this.#rows.get(name);
    if (rows === undefined) this.#rows.set(name, (rows = { type, path, keys: new Set() }));
    const before = rows.keys.size;
    for (const key of keys) rows.keys.add(key);
    this.size += rows.keys.size - before;
  }

  rows(): Iterable<TouchedRows> {
    return this.#rows.values();
  }

  clear(): void {
    this.#rows.clear();
    this.size = 0;
  }
}

export class OpenTransaction implements Transaction {
  readonly id: string;
  readonly caller: Caller;
  readonly openedMs: number;
  readonly #parts: TransactionDependencies;
  #usedMs: number;
  /** From the first statement on. */
  #begun: Begun | null = null;
  #steps: Step[] = [];
  readonly #size = { rows: 0, bytes: 0 };
  readonly #savepoints: Savepoint[] = [];
  /** Keys of rows that must stand at the commit as they were read, beside those that are written. */
  readonly #locked = new Touched();
  #isOver = false;
  /** The error that ended it; null: its client did. */
  #over: ServiceError | null = null;
  /** Rows in which it met a conflict. */
  #met: ReadonlySet<string> | null = null;

  constructor(id: string, caller: Caller, parts: TransactionDependencies) {
    this.id = id;
    this.caller = caller;
    this.#parts = parts;
    this.openedMs = this.#usedMs = parts.nowMs();
  }

  /** Throws what ended it, and where the caller is another one. */
  enter(caller: Caller): void {
    const { principal, path, branch } = this.caller;
    if (caller.principal !== principal || caller.path !== path || caller.branch !== branch)
      throw new ServiceError('REL_NOT_FOUND', 'no such transaction');
    this.checkIdle();
    this.#checkOpen();
    this.#usedMs = this.#parts.nowMs();
    const begun = this.#begun;
    if (begun !== null && begun.removals !== this.#parts.state.removals(path))
      throw this.#endWith(stale('rows were removed for good since the transaction began'));
  }

  /** See `Transaction`. */
  waits(gone: AbortSignal | undefined): Promise<void> | null {
    const { ticket, nowMs, waitMsMax } = this.#parts;
    if (this.#isOver || this.#begun !== null || ticket === null) return null;
    return ticket.enter({ gone, untilMs: nowMs() + waitMsMax });
  }

  /** It met others, or may have by the time that it leaves the line. */
  get met(): boolean {
    return this.#met !== null || this.#parts.ticket !== null;
  }

  /** Rows for which the client's next transaction should stand in line; null: none. */
  get contended(): ReadonlySet<string> | null {
    const { ticket } = this.#parts;
    return this.#met ?? (ticket?.isContended === true ? ticket.keys : null);
  }

  /** Ends it where it was left alone for too long. */
  checkIdle(): void {
    const { nowMs, bounds } = this.#parts;
    if (!this.#isOver && nowMs() - this.#usedMs > bounds.idleMs)
      this.#endWith(
        new ServiceError('REL_TIMEOUT', `the transaction was idle for more than ${bounds.idleMs / 1000} s`, {
          reason: 'idle-transaction',
        }),
      );
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Null before the first statement. */
  get basis(): Basis | null {
    return this.#begun?.basis ?? null;
  }

  /** See `Transaction`. */
  fix(): Basis {
    return this.#enter().basis;
  }

  get usedMs(): number {
    return this.#usedMs;
  }

  get idleMs(): number {
    return this.#parts.bounds.idleMs;
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  get rowsMax(): number {
    return this.#parts.bounds.rowsMax;
  }

  /** Rows written, each as often as it was. */
  get rows(): number {
    return this.#size.rows;
  }

  /** Memory of what was given for them. */
  get bytes(): number {
    return this.#size.bytes;
  }

  get pinnedBytes(): number {
    return this.#begun === null ? 0 : this.#begun.branch.bytes + this.#size.bytes;
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** The data that its caller reads in it, ungoverned. */
  paths(): AccessPaths {
    const { basis, branch } = this.#enter();
    const { state } = this.#parts;
    return branch.pathsOver(state.snapshot(basis, this.caller.branch, tenantOf(this.caller.path)));
  }

  /** Decides a command on the state of the transaction; the commit writes it. An error of `before` refuses the command. */
  write(
    command: WaitingCommand,
    context: EntryContext,
    {
      checks,
      statement,
      before,
    }: {
      readonly checks: WriteChecks;
      readonly statement: StatementDetails;
      readonly before: (decision: Decision, at: TransactionBranch['next']) => void;
    },
  ): Decision {
    const { branch } = this.#enter();
    const bytes = partsOf(command).reduce((sum, part) => sum + (part.kind === 'put-rows' ? bytesOfRows(part.rows) : 0), 0);
    let rows = 0;
    const at = branch.next;
    const { decision, keys } = branch.write(listingKept(command), context, {
      checks,
      before: (decided) => {
        rows = decided.drafts.reduce((sum, { body }) => sum + (body.kind === 'rows' ? body.ops.length : 0), 0);
        this.#checkRoom(rows, bytes);
        before(decided, at);
      },
    });
    this.#lockKept(command, decision);
    if (decision.drafts.length > 0) this.#push({ command, keys, drafts: decision.drafts, rows, bytes, statement });
    return decision;
  }

  #push(step: Step): void {
    this.#steps.push(step);
    this.#size.rows += step.rows;
    this.#size.bytes += step.bytes;
  }

  #checkRoom(rows: number, bytes: number): void {
    const { rowsMax, bytesMax } = this.#parts.bounds;
    // A batch may go beyond it once: a client's batches end somewhere in the last.
    if (this.rows >= rowsMax || rows > rowsMax)
      throw new ServiceError('REL_TOO_LARGE', `a transaction writes at most ${rowsMax} rows: commit more often`, {
        reason: 'transaction-full',
      });
    if (this.bytes + bytes > bytesMax)
      throw new ServiceError('REL_TOO_LARGE', `a transaction writes at most ${bytesMax} bytes: commit more often`, {
        reason: 'transaction-full',
      });
  }

  /** Rows that an INSERT left as they were must still exist at the commit. */
  #lockKept(command: WaitingCommand, { outcome }: Decision): void {
    for (const [i, part] of partsOf(command).entries()) {
      if (part.kind !== 'put-rows' || part.keepsPresent !== true) continue;
      const { rows = [] } = outcome.steps === undefined ? outcome : outcome.steps[i]!;
      this.lock(
        part.type,
        this.caller.path,
        rows.flatMap(({ became, key }) => (became === 'kept' && key !== null ? key : [])),
      );
    }
  }

  lock(type: string, path: string | null, keys: Iterable<string>): void {
    this.#locked.add(type, path, keys);
    const { rowsMax } = this.#parts.bounds;
    if (this.#locked.size > rowsMax)
      throw new ServiceError('REL_TOO_LARGE', `a transaction locks at most ${rowsMax} rows`, { reason: 'transaction-full' });
  }

  savepoint(name: string): void {
    if (this.#savepoints.length >= savepointsMax)
      throw new ServiceError('REL_TOO_LARGE', `a transaction has at most ${savepointsMax} savepoints`, {
        reason: 'transaction-full',
      });
    this.#savepoints.push({ name, steps: this.#steps.length });
  }

  /** False where no savepoint has the name. Later writes stay. */
  release(name: string): boolean {
    const index = this.#savepoints.findLastIndex((each) => each.name === name);
    if (index < 0) return false;
    this.#savepoints.length = index;
    return true;
  }

  /** False where there is none of the name. It is as it was there, and the savepoint stays. */
  rollbackTo(name: string): boolean {
    const index = this.#savepoints.findLastIndex((each) => each.name === name);
    if (index < 0) return false;
    this.#savepoints.length = index + 1;
    const { steps } = this.#savepoints[index]!;
    if (steps === this.#steps.length) return true;
    const remainingSteps = this.#steps.slice(0, steps);
    this.#clear();
    const begun = this.#begun!;
    begun.branch = this.#branchAt(begun.basis);
    for (const step of remainingSteps) {
      begun.branch.take(step.drafts);
      this.#push(step);
    }
    return true;
  }

  /** Drops all of it. Others in line for its rows go on when `shown` is settled: its commit is readable by then. */
  end(shown: Promise<unknown> | null = null): void {
    if (!this.#isOver) this.#end(shown);
  }

  /** Notes rows that others have written; returns the conflict. */
  meets(rows: readonly ConflictingRow[]): ServiceError {
    const { branch } = this.caller;
    this.#met = new Set(rows.map(({ type, path, key }) => JSON.stringify([branch, path, type, key])));
    return stale(`a row of ${JSON.stringify(rows[0]!.type)} was written since the transaction began`);
  }

  /** Rows that must be unchanged at the commit since its basis: those it wrote, left as they were, or locked. */
  touchedRows(): Iterable<TouchedRows> {
    const touched = new Touched(this.#locked);
    for (const { command, drafts } of this.#steps) {
      const types = new Set(partsOf(command).map((part) => ('type' in part ? part.type : null)));
      for (const { body } of drafts)
        if (body.kind === 'rows' && types.has(body.type)) touched.add(body.type, this.caller.path, keysOf(body));
    }
    return touched.rows();
  }

  #enter(): Begun {
    this.#checkOpen();
    if (this.#begun !== null) return this.#begun;
    const basis = this.#parts.basis();
    const removals = this.#parts.state.removals(this.caller.path);
    return (this.#begun = { basis, removals, branch: this.#branchAt(basis) });
  }

  #clear(): void {
    this.#steps = [];
    this.#size.rows = this.#size.bytes = 0;
  }

  #branchAt(basis: Basis): TransactionBranch {
    return this.#parts.state.privately(basis, this.caller.branch, tenantOf(this.caller.path));
  }

  #checkOpen(): void {
    if (this.#isOver) throw this.#over ?? new ServiceError('REL_NOT_FOUND', 'no such transaction');
  }

  #endWith(by: ServiceError): ServiceError {
    this.#over = by;
    this.#end(null);
    return by;
  }

  #end(shown: Promise<unknown> | null): void {
    this.#isOver = true;
    this.#begun = null;
    this.#clear();
    this.#savepoints.length = 0;
    this.#locked.clear();
    const { ticket, onEnd } = this.#parts;
    const leave = (): void => ticket?.leave();
    if (shown === null) leave();
    else shown.then(leave, leave);
    onEnd();
  }
}

/** The transaction that an invocation is in, as the gate made it. */
export function openOf({ transaction }: { readonly transaction?: Transaction | undefined }): OpenTransaction | undefined {
  assert(transaction === undefined || transaction instanceof OpenTransaction, 'a gate makes its transactions itself');
  return transaction;
}

const savepointsMax = 1_000;

function listingKept(command: WaitingCommand): WaitingCommand {
  if (command.kind === 'batch')
    return { ...command, steps: command.steps.map((step) => listingKept(step) as PutRows | DeleteRows) };
  return command.kind === 'put-rows' && command.keepsPresent === true ? { ...command, listsRows: true } : command;
}

/** The transaction may be run again, and may then go through. */
export function stale(detail: string): ServiceError {
  return new ServiceError('REL_CONFLICT', detail, { stale: true });
}

const decoder = new TextDecoder();

function* keysOf(body: Extract<EntryDraft['body'], { readonly kind: 'rows' }>): Generator<string> {
  const { vector } = body.keys.columns[0]!;
  if (vector.kind !== 'text') return;
  const { heap, offsets } = vector;
  for (let row = 0; row < body.ops.length; row++) yield decoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!));
}
