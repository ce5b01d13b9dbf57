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
interface WaitingStep {
  readonly command: WaitingCommand;
  /** Keys that were made for rows that brought none: the client has them already, so a later decision makes the same. */
  readonly keys: readonly string[];
  readonly drafts: readonly EntryDraft[];
  readonly rows: number;
  readonly bytes: number;
  readonly statement: StatementDetails;
}

interface BegunTransaction {
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
class TouchedRowSet {
  readonly #touchedByType = new Map<string, TouchedRows & { readonly keys: Set<string> }>();
  size = 0;

  constructor(others?: TouchedRowSet) {
    for (const { type, path, keys } of others?.rows() ?? []) this.add(type, path, keys);
  }

  add(type: string, path: string | null, keys: Iterable<string>): void {
    // A control character can't occur in a path.
    const touchedName = `${path ?? '\0'}\0${type}`;
    let touchedRows = this.#touchedByType.get(touchedName);
    if (touchedRows === undefined) this.#touchedByType.set(touchedName, (touchedRows = { type, path, keys: new Set() }));
    const keysBefore = touchedRows.keys.size;
    for (const key of keys) touchedRows.keys.add(key);
    this.size += touchedRows.keys.size - keysBefore;
  }

  rows(): Iterable<TouchedRows> {
    return this.#touchedByType.values();
  }

  clear(): void {
    this.#touchedByType.clear();
    this.size = 0;
  }
}

export class OpenTransaction implements Transaction {
  readonly id: string;
  readonly caller: Caller;
  readonly openedMs: number;
  readonly #transactionParts: TransactionDependencies;
  #lastUsedMs: number;
  /** From the first statement on. */
  #begunTransaction: BegunTransaction | null = null;
  #waitingSteps: WaitingStep[] = [];
  readonly #waitingSize = { rows: 0, bytes: 0 };
  readonly #savepoints: Savepoint[] = [];
  /** Keys of rows that must stand at the commit as they were read, beside those that are written. */
  readonly #lockedRows = new TouchedRowSet();
  #hasEnded = false;
  /** The error that ended it; null: its client did. */
  #endError: ServiceError | null = null;
  /** Rows in which it met a conflict. */
  #conflictingKeys: ReadonlySet<string> | null = null;

  constructor(id: string, caller: Caller, parts: TransactionDependencies) {
    this.id = id;
    this.caller = caller;
    this.#transactionParts = parts;
    this.openedMs = this.#lastUsedMs = parts.nowMs();
  }

  /** Throws what ended it, and where the caller is another one. */
  enter(caller: Caller): void {
    const { principal, path, branch } = this.caller;
    if (caller.principal !== principal || caller.path !== path || caller.branch !== branch)
      throw new ServiceError('REL_NOT_FOUND', 'no such transaction');
    this.checkIdle();
    this.#checkTransactionOpen();
    this.#lastUsedMs = this.#transactionParts.nowMs();
    const begunTransaction = this.#begunTransaction;
    if (begunTransaction !== null && begunTransaction.removals !== this.#transactionParts.state.removals(path))
      throw this.#endWith(stale('rows were removed for good since the transaction began'));
  }

  /** See `Transaction`. */
  waits(gone: AbortSignal | undefined): Promise<void> | null {
    const { ticket, nowMs, waitMsMax } = this.#transactionParts;
    if (this.#hasEnded || this.#begunTransaction !== null || ticket === null) return null;
    return ticket.enter({ gone, untilMs: nowMs() + waitMsMax });
  }

  /** It met others, or may have by the time that it leaves the line. */
  get met(): boolean {
    return this.#conflictingKeys !== null || this.#transactionParts.ticket !== null;
  }

  /** Rows for which the client's next transaction should stand in line; null: none. */
  get contended(): ReadonlySet<string> | null {
    const { ticket } = this.#transactionParts;
    return this.#conflictingKeys ?? (ticket?.isContended === true ? ticket.keys : null);
  }

  /** Ends it where it was left alone for too long. */
  checkIdle(): void {
    const { nowMs, bounds } = this.#transactionParts;
    if (!this.#hasEnded && nowMs() - this.#lastUsedMs > bounds.idleMs)
      this.#endWith(
        new ServiceError('REL_TIMEOUT', `the transaction was idle for more than ${bounds.idleMs / 1000} s`, {
          reason: 'idle-transaction',
        }),
      );
  }

  get isOver(): boolean {
    return this.#hasEnded;
  }

  /** Null before the first statement. */
  get basis(): Basis | null {
    return this.#begunTransaction?.basis ?? null;
  }

  /** See `Transaction`. */
  fix(): Basis {
    return this.#enterBranch().basis;
  }

  get usedMs(): number {
    return this.#lastUsedMs;
  }

  get idleMs(): number {
    return this.#transactionParts.bounds.idleMs;
  }

  get isEmpty(): boolean {
    return this.#waitingSteps.length === 0;
  }

  get rowsMax(): number {
    return this.#transactionParts.bounds.rowsMax;
  }

  /** Rows written, each as often as it was. */
  get rows(): number {
    return this.#waitingSize.rows;
  }

  /** Memory of what was given for them. */
  get bytes(): number {
    return this.#waitingSize.bytes;
  }

  get pinnedBytes(): number {
    return this.#begunTransaction === null ? 0 : this.#begunTransaction.branch.bytes + this.#waitingSize.bytes;
  }

  get steps(): readonly WaitingStep[] {
    return this.#waitingSteps;
  }

  /** The data that its caller reads in it, ungoverned. */
  paths(): AccessPaths {
    const { basis, branch } = this.#enterBranch();
    const { state } = this.#transactionParts;
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
      readonly before: (decision: Decision, branchNext: TransactionBranch['next']) => void;
    },
  ): Decision {
    const { branch } = this.#enterBranch();
    const writtenBytes = partsOf(command).reduce((sum, part) => sum + (part.kind === 'put-rows' ? bytesOfRows(part.rows) : 0), 0);
    let writtenRowCount = 0;
    const branchNext = branch.next;
    const { decision, keys } = branch.write(listingKeptRows(command), context, {
      checks,
      before: (decided) => {
        writtenRowCount = decided.drafts.reduce((sum, { body }) => sum + (body.kind === 'rows' ? body.ops.length : 0), 0);
        this.#checkRoom(writtenRowCount, writtenBytes);
        before(decided, branchNext);
      },
    });
    this.#lockKept(command, decision);
    if (decision.drafts.length > 0)
      this.#addStep({ command, keys, drafts: decision.drafts, rows: writtenRowCount, bytes: writtenBytes, statement });
    return decision;
  }

  #addStep(waitingStep: WaitingStep): void {
    this.#waitingSteps.push(waitingStep);
    this.#waitingSize.rows += waitingStep.rows;
    this.#waitingSize.bytes += waitingStep.bytes;
  }

  #checkRoom(rows: number, bytes: number): void {
    const { rowsMax, bytesMax } = this.#transactionParts.bounds;
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
    this.#lockedRows.add(type, path, keys);
    const { rowsMax } = this.#transactionParts.bounds;
    if (this.#lockedRows.size > rowsMax)
      throw new ServiceError('REL_TOO_LARGE', `a transaction locks at most ${rowsMax} rows`, { reason: 'transaction-full' });
  }

  savepoint(name: string): void {
    if (this.#savepoints.length >= savepointsMax)
      throw new ServiceError('REL_TOO_LARGE', `a transaction has at most ${savepointsMax} savepoints`, {
        reason: 'transaction-full',
      });
    this.#savepoints.push({ name, steps: this.#waitingSteps.length });
  }

  /** False where no savepoint has the name. Later writes stay. */
  release(name: string): boolean {
    const savepointIndex = this.#savepoints.findLastIndex((savepoint) => savepoint.name === name);
    if (savepointIndex < 0) return false;
    this.#savepoints.length = savepointIndex;
    return true;
  }

  /** False where there is none of the name. It is as it was there, and the savepoint stays. */
  rollbackTo(name: string): boolean {
    const savepointIndex = this.#savepoints.findLastIndex((savepoint) => savepoint.name === name);
    if (savepointIndex < 0) return false;
    this.#savepoints.length = savepointIndex + 1;
    const { steps: stepsAtSavepoint } = this.#savepoints[savepointIndex]!;
    if (stepsAtSavepoint === this.#waitingSteps.length) return true;
    const remainingSteps = this.#waitingSteps.slice(0, stepsAtSavepoint);
    this.#clearSteps();
    const begunTransaction = this.#begunTransaction!;
    begunTransaction.branch = this.#privateBranchAt(begunTransaction.basis);
    for (const step of remainingSteps) {
      begunTransaction.branch.take(step.drafts);
      this.#addStep(step);
    }
    return true;
  }

  /** Drops all of it. Others in line for its rows go on when `commitShown` is settled: its commit is readable by then. */
  end(commitShown: Promise<unknown> | null = null): void {
    if (!this.#hasEnded) this.#endTransaction(commitShown);
  }

  /** Notes rows that others have written; returns the conflict. */
  meets(rows: readonly ConflictingRow[]): ServiceError {
    const { branch } = this.caller;
    this.#conflictingKeys = new Set(rows.map(({ type, path, key }) => JSON.stringify([branch, path, type, key])));
    return stale(`a row of ${JSON.stringify(rows[0]!.type)} was written since the transaction began`);
  }

  /** Rows that must be unchanged at the commit since its basis: those it wrote, left as they were, or locked. */
  touchedRows(): Iterable<TouchedRows> {
    const touchedRows = new TouchedRowSet(this.#lockedRows);
    for (const { command, drafts } of this.#waitingSteps) {
      const commandTypes = new Set(partsOf(command).map((part) => ('type' in part ? part.type : null)));
      for (const { body } of drafts)
        if (body.kind === 'rows' && commandTypes.has(body.type)) touchedRows.add(body.type, this.caller.path, draftKeysOf(body));
    }
    return touchedRows.rows();
  }

  #enterBranch(): BegunTransaction {
    this.#checkTransactionOpen();
    if (this.#begunTransaction !== null) return this.#begunTransaction;
    const transactionBasis = this.#transactionParts.basis();
    const removals = this.#transactionParts.state.removals(this.caller.path);
    return (this.#begunTransaction = { basis: transactionBasis, removals, branch: this.#privateBranchAt(transactionBasis) });
  }

  #clearSteps(): void {
    this.#waitingSteps = [];
    this.#waitingSize.rows = this.#waitingSize.bytes = 0;
  }

  #privateBranchAt(basis: Basis): TransactionBranch {
    return this.#transactionParts.state.privately(basis, this.caller.branch, tenantOf(this.caller.path));
  }

  #checkTransactionOpen(): void {
    if (this.#hasEnded) throw this.#endError ?? new ServiceError('REL_NOT_FOUND', 'no such transaction');
  }

  #endWith(endingError: ServiceError): ServiceError {
    this.#endError = endingError;
    this.#endTransaction(null);
    return endingError;
  }

  #endTransaction(commitShown: Promise<unknown> | null): void {
    this.#hasEnded = true;
    this.#begunTransaction = null;
    this.#clearSteps();
    this.#savepoints.length = 0;
    this.#lockedRows.clear();
    const { ticket, onEnd } = this.#transactionParts;
    const leaveQueue = (): void => ticket?.leave();
    if (commitShown === null) leaveQueue();
    else commitShown.then(leaveQueue, leaveQueue);
    onEnd();
  }
}

/** The transaction that an invocation is in, as the gate made it. */
export function openOf({ transaction }: { readonly transaction?: Transaction | undefined }): OpenTransaction | undefined {
  assert(transaction === undefined || transaction instanceof OpenTransaction, 'a gate makes its transactions itself');
  return transaction;
}

const savepointsMax = 1_000;

function listingKeptRows(command: WaitingCommand): WaitingCommand {
  if (command.kind === 'batch')
    return { ...command, steps: command.steps.map((step) => listingKeptRows(step) as PutRows | DeleteRows) };
  return command.kind === 'put-rows' && command.keepsPresent === true ? { ...command, listsRows: true } : command;
}

/** The transaction may be run again, and may then go through. */
export function stale(detail: string): ServiceError {
  return new ServiceError('REL_CONFLICT', detail, { stale: true });
}

const keyDecoder = new TextDecoder();

function* draftKeysOf(body: Extract<EntryDraft['body'], { readonly kind: 'rows' }>): Generator<string> {
  const { vector } = body.keys.columns[0]!;
  if (vector.kind !== 'text') return;
  const { heap, offsets } = vector;
  for (let row = 0; row < body.ops.length; row++) yield keyDecoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!));
}
