/**
 * COPY FROM STDIN: rows of a client written in batches, all within one invocation. Invariants: a batch is written whole or not at
 * all, in the order of the rows; the first row that is refused ends the copy, and its error says how many rows before it are
 * written. Data of one batch is one append; data of a transaction waits for its commit.
 */
import { assert, didYouMean, ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { RowBatch } from '../../log/values/columns.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { PutRows } from '../../projections/command.ts';
import { leasedPieces } from '../shared/stream-lease.ts';
import type { CopyColumn } from './copy-batch.ts';
import { CopyReader } from './copy-reader.ts';
import type { Copy } from './copy-statement.ts';
import type { DoorDependencies } from '../shared/door-dependencies.ts';

export interface CopyInSetup extends Pick<DoorDependencies, 'authenticator' | 'gate' | 'clock' | 'yieldTurn'> {
  readonly caller: Caller;
  readonly copy: Copy;
  readonly sync: boolean;
  /** Aborts when the client cancels it, or is gone. */
  readonly signal: AbortSignal;
  /** Its rows are written by the transaction that it is in, all of them or none. */
  readonly isWithin: boolean;
  /** Runs a function in an invocation of its own. */
  readonly invoke: <T>(run: (invocation: Invocation) => Promise<T>) => Promise<T>;
}

/** Batches that may wait for their acknowledgement while the next is being read. */
const batchesInFlightMax = 4;
/** Bytes of a long message read in one turn of the event loop. */
const copyTurnBytes = 1 << 18;

export class CopyIn {
  readonly #copySetup: CopyInSetup;
  readonly #copyChunks = new CopyChunks();
  #copyColumns: readonly CopyColumn[] = [];
  #writtenRows = 0;
  #copyDone: Promise<number> = Promise.resolve(0);

  constructor(copySetup: CopyInSetup) {
    this.#copySetup = copySetup;
  }

  /** The columns that the client is to send; throws the error that refuses the copy before any row. */
  async begin(): Promise<readonly CopyColumn[]> {
    await new Promise<void>((onColumns, onRefused) => {
      this.#copyDone = this.#copySetup.invoke((invocation) => this.#runCopy(invocation, onColumns));
      this.#copyDone.catch(onRefused);
    });
    return this.#copyColumns;
  }

  /** Takes bytes at the pace of the writing. Throws the error that has ended the copy. */
  async push(copyBytes: Buffer): Promise<void> {
    await Promise.race([this.#copyChunks.put(copyBytes), this.#copyDone]);
  }

  /** Rows that were written, once all of them are. */
  finish(): Promise<number> {
    this.#copyChunks.end(null);
    return this.#copyDone;
  }

  /** The client gives up, or is gone. */
  async fail(copyError: ServiceError): Promise<number> {
    this.#copyChunks.end(copyError);
    return this.#copyDone;
  }

  async #runCopy(invocation: Invocation, onColumns: () => void): Promise<number> {
    const { copy: copyStatement, signal: copySignal } = this.#copySetup;
    invocation.describe({ template: 'COPY ? FROM STDIN', objectType: copyStatement.table! });
    const cancelCopy = (): void => this.#copyChunks.end(new ServiceError('REL_CANCELLED', 'the COPY was cancelled'));
    copySignal.addEventListener('abort', cancelCopy, { once: true });
    try {
      return await this.#writeBatches(invocation, onColumns);
    } finally {
      copySignal.removeEventListener('abort', cancelCopy);
    }
  }

  async #writeBatches(invocation: Invocation, onColumns: () => void): Promise<number> {
    const { copy: copyStatement, caller, yieldTurn } = this.#copySetup;
    const copiedType = copiedTypeOf(invocation, copyStatement.table!);
    this.#copyColumns = columnsOf(copiedType, copyStatement.columns);
    onColumns();
    const copyReader = new CopyReader(copyStatement, this.#copyColumns);
    const batchesInFlight: Promise<void>[] = [];
    try {
      for await (const copyBytes of leasedPieces(this.#copySetup, caller, this.#copyChunks)) {
        for (let turnOffset = 0; turnOffset < copyBytes.length; turnOffset += copyTurnBytes) {
          if (turnOffset > 0) await yieldTurn();
          copyReader.push(copyBytes.subarray(turnOffset, turnOffset + copyTurnBytes) as Buffer);
          for (let copyBatch = copyReader.batch(false); copyBatch !== null; copyBatch = copyReader.batch(false))
            await this.#submitBatch(invocation, copyBatch, batchesInFlight);
        }
      }
      for (let batch = copyReader.batch(true); batch !== null; batch = copyReader.batch(true))
        await this.#submitBatch(invocation, batch, batchesInFlight);
      await Promise.all(batchesInFlight);
    } catch (copyError) {
      // Batches submitted before may be written: the error says how many rows are.
      await Promise.allSettled(batchesInFlight);
      throw this.#withWrittenCount(copyError);
    }
    invocation.describe({ rowCount: this.#writtenRows });
    return this.#writtenRows;
  }

  async #submitBatch(invocation: Invocation, rows: RowBatch, batchesInFlight: Promise<void>[]): Promise<void> {
    const { copy: copyStatement, sync, isWithin } = this.#copySetup;
    const putCommand: PutRows = {
      kind: 'put-rows',
      type: copyStatement.table!,
      rows,
      atomic: true,
      createType: false,
      when: 'absent',
      provenance: { source: invocation.caller.door, method: 'copy', confidence: 1, derivedFrom: null },
      idsMax: 0,
    };
    const batchWritten = invocation
      .submit(putCommand, { sync, waits: true })
      .then(({ accepted }) => void (this.#writtenRows += accepted));
    // A later await handles the rejection.
    batchWritten.catch(() => undefined);
    batchesInFlight.push(batchWritten);
    if (isWithin || batchesInFlight.length >= batchesInFlightMax) await batchesInFlight.shift();
  }

  #withWrittenCount(copyError: unknown): unknown {
    if (!(copyError instanceof ServiceError) || this.#writtenRows === 0 || this.#copySetup.isWithin) return copyError;
    return new ServiceError(
      copyError.code,
      `${copyError.message} (${this.#writtenRows} rows before are written, in batches)`,
      copyError.facts,
    );
  }
}

function copiedTypeOf(invocation: Invocation, copiedTable: string): TypeDefinition {
  const { catalog, offers } = invocation.snapshot();
  const copiedType = catalog.type(copiedTable);
  if (copiedType !== undefined) return copiedType;
  const offeredTypes = catalog.types().flatMap((type) => (offers(type.name) ? type.name : []));
  throw new ServiceError(
    'REL_UNKNOWN_TYPE',
    `type ${JSON.stringify(copiedTable)} is not registered${didYouMean(copiedTable, offeredTypes)}`,
  );
}

/** The named columns, or all properties; for an open type unknown names are texts. */
export function columnsOf(copiedType: TypeDefinition, namedColumns: readonly string[] | null): readonly CopyColumn[] {
  const { properties } = copiedType;
  const copiedNames = namedColumns ?? Object.keys(properties);
  if (copiedNames.length === 0)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(copiedType.name)} has no columns yet: name those that are copied`);
  if (new Set(copiedNames).size < copiedNames.length)
    throw new ServiceError('REL_INVALID', 'COPY names a column twice', { reason: 'named-twice' });
  return copiedNames.map((name) => {
    const copiedProperty = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (copiedProperty !== undefined) return { name, type: copiedProperty.type, dims: copiedProperty.dims };
    if (name === 'valid_from' || name === 'valid_to') return { name, type: 'timestamp', dims: 0 };
    if (name === '_pk' || name === 'id' || (copiedType.open && !name.startsWith('_'))) return { name, type: 'string', dims: 0 };
    const nameGuess = didYouMean(name, Object.keys(properties));
    throw new ServiceError(
      'REL_UNKNOWN_COLUMN',
      `type ${JSON.stringify(copiedType.name)} has no column ${JSON.stringify(name)}${nameGuess}`,
    );
  });
}

/** Passes one piece at a time from the producer to the consumer. */
class CopyChunks implements AsyncIterable<Uint8Array> {
  #copyChunk: Buffer | null = null;
  #copyEnd: { readonly error: ServiceError | null } | null = null;
  #wakeCopyReader = (): void => undefined;
  #wakeCopyWriter = (): void => undefined;

  /** Resolves once it is worked off. */
  put(copyBytes: Buffer): Promise<void> {
    assert(this.#copyChunk === null, 'one piece at a time');
    this.#copyChunk = copyBytes;
    this.#wakeCopyReader();
    return new Promise((resolve) => (this.#wakeCopyWriter = resolve));
  }

  end(copyError: ServiceError | null): void {
    this.#copyEnd ??= { error: copyError };
    this.#wakeCopyReader();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      while (this.#copyChunk === null && this.#copyEnd === null)
        await new Promise<void>((resolve) => (this.#wakeCopyReader = resolve));
      if (this.#copyChunk !== null) {
        yield this.#copyChunk;
        this.#copyChunk = null;
        this.#wakeCopyWriter();
        continue;
      }
      if (this.#copyEnd!.error !== null) throw this.#copyEnd!.error;
      return;
    }
  }
}
