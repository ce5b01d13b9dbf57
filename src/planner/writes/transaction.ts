/**
 * Writes of several statements that become one append when they are committed. What must hold:
 *
 * - nothing of it is written before the commit, and then all of it or nothing;
 * - every statement was worked out from what stood before the transaction: one that reads a type which an earlier one writes is refused.
 */
import { type RefusedRow, ServiceError } from '../../errors.ts';
import type { Invocation, SubmitOptions } from '../../governance/gate-contract.ts';
import { refusedRow } from './refused-row.ts';
import { batchRowsMax, type DeleteRows, type Outcome, type PutRows } from '../../projections/command.ts';

export class Transaction {
  readonly #steps: (PutRows | DeleteRows)[] = [];
  #rows = 0;
  readonly #written = new Set<string>();

  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  get stepCount(): number {
    return this.#steps.length;
  }

  /** The step that refused the last commit or check; null: none did. */
  refusedStep: number | null = null;

  /** Throws REL_NOT_IMPLEMENTED where one of these types is written by an earlier statement. */
  checkRead(types: Iterable<string>): void {
    for (const type of types) {
      if (!this.#written.has(type)) continue;
      throw new ServiceError(
        'REL_NOT_IMPLEMENTED',
        `${JSON.stringify(type)} is written by this transaction: read it before that, or after COMMIT`,
      );
    }
  }

  add(command: PutRows | DeleteRows | { readonly steps: readonly (PutRows | DeleteRows)[] }): void {
    const steps = 'steps' in command ? command.steps : [command];
    for (const step of steps) {
      const rows = rowsOf(step);
      if (rows === 0) continue;
      if (this.#rows + rows > batchRowsMax)
        throw new ServiceError('REL_TOO_LARGE', `a transaction writes at most ${batchRowsMax} rows: commit more often`);
      this.#rows += rows;
      this.#written.add(step.type);
      this.#steps.push(step);
    }
  }

  /** The outcome of the whole; null where there was nothing to write. The invocation is one of `ingest`. */
  async commit(invocation: Invocation, sync: boolean): Promise<Outcome | null> {
    if (this.isEmpty) return null;
    return this.#submit(invocation, 'COMMIT', { sync });
  }

  /** Decides all of it and writes nothing: throws what a commit would be refused with now. */
  async check(invocation: Invocation): Promise<void> {
    const decided = new Error('decided');
    const before = (): never => {
      throw decided;
    };
    try {
      await this.#submit(invocation, 'CHECK', { before });
    } catch (error) {
      if (error !== decided) throw error;
    }
  }

  async #submit(invocation: Invocation, template: string, options: SubmitOptions): Promise<Outcome> {
    invocation.describe({ template, objectType: [...this.#written].join(','), rowCount: this.#rows });
    this.refusedStep = null;
    try {
      return await invocation.submit({ kind: 'batch', steps: this.#steps }, options);
    } catch (error) {
      throw this.#explained(error, invocation);
    }
  }

  /** An INSERT meets a key that is there; all else that conflicts was written since it was read. */
  #explained(error: unknown, invocation: Pick<Invocation, 'snapshot'>): unknown {
    if (!(error instanceof ServiceError)) return error;
    const single = /^step (\d+): /.exec(error.message);
    const twice = single === null ? /^steps \d+ and (\d+) of the batch write the same row/.exec(error.message) : null;
    const number = single ?? twice;
    if (number === null) return error;
    this.refusedStep = Number(number[1]);
    const step = this.#steps[this.refusedStep]!;
    const inserts = step.when === 'absent';
    const refused = (index: number): RefusedRow => {
      const { column } = error.facts.refused ?? {};
      const primaryKey = invocation.snapshot().catalog.type(step.type)?.primaryKey ?? null;
      const { code } = twice === null ? error : { code: 'REL_CONFLICT' };
      return refusedRow(step, primaryKey, { index, code, ...(column !== undefined && { column }) });
    };
    if (twice !== null) {
      const detail = 'the row is there already: an earlier statement of the transaction writes it';
      return inserts
        ? new ServiceError('REL_CONFLICT', detail, { refused: refused(0) })
        : new ServiceError('REL_NOT_IMPLEMENTED', 'a transaction that writes a row twice is not implemented: write it once');
    }
    const stale = error.code === 'REL_CONFLICT' && !inserts;
    const detail = error.message.slice(number[0].length);
    return new ServiceError(error.code, detail, {
      ...error.facts,
      ...(stale && { stale: true }),
      ...(error.facts.refused && { refused: refused(error.facts.refused.index) }),
    });
  }
}

function rowsOf(step: PutRows | DeleteRows): number {
  return step.kind === 'put-rows' ? step.rows.length : step.keys.length;
}
