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
const inFlightMax = 4;
/** Bytes of a long message read in one turn of the event loop. */
const turnBytes = 1 << 18;

export class CopyIn {
  readonly #parts: CopyInSetup;
  readonly #chunks = new Chunks();
  #columns: readonly CopyColumn[] = [];
  #written = 0;
  #done: Promise<number> = Promise.resolve(0);

  constructor(parts: CopyInSetup) {
    this.#parts = parts;
  }

  /** The columns that the client is to send; throws the error that refuses the copy before any row. */
  async begin(): Promise<readonly CopyColumn[]> {
    await new Promise<void>((ready, refused) => {
      this.#done = this.#parts.invoke((invocation) => this.#run(invocation, ready));
      this.#done.catch(refused);
    });
    return this.#columns;
  }

  /** Takes bytes at the pace of the writing. Throws the error that has ended the copy. */
  async push(bytes: Buffer): Promise<void> {
    await Promise.race([this.#chunks.put(bytes), this.#done]);
  }

  /** Rows that were written, once all of them are. */
  finish(): Promise<number> {
    this.#chunks.end(null);
    return this.#done;
  }

  /** The client gives up, or is gone. */
  async fail(error: ServiceError): Promise<number> {
    this.#chunks.end(error);
    return this.#done;
  }

  async #run(invocation: Invocation, ready: () => void): Promise<number> {
    const { copy, signal } = this.#parts;
    invocation.describe({ template: 'COPY ? FROM STDIN', objectType: copy.table! });
    const cancel = (): void => this.#chunks.end(new ServiceError('REL_CANCELLED', 'the COPY was cancelled'));
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await this.#write(invocation, ready);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  async #write(invocation: Invocation, ready: () => void): Promise<number> {
    const { copy, caller, yieldTurn } = this.#parts;
    const definition = definitionOf(invocation, copy.table!);
    this.#columns = columnsOf(definition, copy.columns);
    ready();
    const reader = new CopyReader(copy, this.#columns);
    const inFlight: Promise<void>[] = [];
    try {
      for await (const bytes of leasedPieces(this.#parts, caller, this.#chunks)) {
        for (let at = 0; at < bytes.length; at += turnBytes) {
          if (at > 0) await yieldTurn();
          reader.push(bytes.subarray(at, at + turnBytes) as Buffer);
          for (let batch = reader.batch(false); batch !== null; batch = reader.batch(false))
            await this.#take(invocation, batch, inFlight);
        }
      }
      for (let batch = reader.batch(true); batch !== null; batch = reader.batch(true))
        await this.#take(invocation, batch, inFlight);
      await Promise.all(inFlight);
    } catch (error) {
      // Batches submitted before may be written: the error says how many rows are.
      await Promise.allSettled(inFlight);
      throw this.#withProgress(error);
    }
    invocation.describe({ rowCount: this.#written });
    return this.#written;
  }

  async #take(invocation: Invocation, rows: RowBatch, inFlight: Promise<void>[]): Promise<void> {
    const { copy, sync, isWithin } = this.#parts;
    const command: PutRows = {
      kind: 'put-rows',
      type: copy.table!,
      rows,
      atomic: true,
      createType: false,
      when: 'absent',
      provenance: { source: invocation.caller.door, method: 'copy', confidence: 1, derivedFrom: null },
      idsMax: 0,
    };
    const written = invocation.submit(command, { sync, waits: true }).then(({ accepted }) => void (this.#written += accepted));
    // A later await handles the rejection.
    written.catch(() => undefined);
    inFlight.push(written);
    if (isWithin || inFlight.length >= inFlightMax) await inFlight.shift();
  }

  #withProgress(error: unknown): unknown {
    if (!(error instanceof ServiceError) || this.#written === 0 || this.#parts.isWithin) return error;
    return new ServiceError(error.code, `${error.message} (${this.#written} rows before are written, in batches)`, error.facts);
  }
}

function definitionOf(invocation: Invocation, name: string): TypeDefinition {
  const { catalog, offers } = invocation.snapshot();
  const definition = catalog.type(name);
  if (definition !== undefined) return definition;
  const known = catalog.types().flatMap((type) => (offers(type.name) ? type.name : []));
  throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(name)} is not registered${didYouMean(name, known)}`);
}

/** The named columns, or all properties; for an open type unknown names are texts. */
export function columnsOf(definition: TypeDefinition, named: readonly string[] | null): readonly CopyColumn[] {
  const { properties } = definition;
  const names = named ?? Object.keys(properties);
  if (names.length === 0)
    throw new ServiceError('REL_INVALID', `${JSON.stringify(definition.name)} has no columns yet: name those that are copied`);
  if (new Set(names).size < names.length)
    throw new ServiceError('REL_INVALID', 'COPY names a column twice', { reason: 'named-twice' });
  return names.map((name) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property !== undefined) return { name, type: property.type, dims: property.dims };
    if (name === 'valid_from' || name === 'valid_to') return { name, type: 'timestamp', dims: 0 };
    if (name === '_pk' || name === 'id' || (definition.open && !name.startsWith('_'))) return { name, type: 'string', dims: 0 };
    const guess = didYouMean(name, Object.keys(properties));
    throw new ServiceError(
      'REL_UNKNOWN_COLUMN',
      `type ${JSON.stringify(definition.name)} has no column ${JSON.stringify(name)}${guess}`,
    );
  });
}

/** Passes one piece at a time from the producer to the consumer. */
class Chunks implements AsyncIterable<Uint8Array> {
  #piece: Buffer | null = null;
  #ended: { readonly error: ServiceError | null } | null = null;
  #wakeReader = (): void => undefined;
  #wakeWriter = (): void => undefined;

  /** Resolves once it is worked off. */
  put(bytes: Buffer): Promise<void> {
    assert(this.#piece === null, 'one piece at a time');
    this.#piece = bytes;
    this.#wakeReader();
    return new Promise((resolve) => (this.#wakeWriter = resolve));
  }

  end(error: ServiceError | null): void {
    this.#ended ??= { error };
    this.#wakeReader();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      while (this.#piece === null && this.#ended === null) await new Promise<void>((resolve) => (this.#wakeReader = resolve));
      if (this.#piece !== null) {
        yield this.#piece;
        this.#piece = null;
        this.#wakeWriter();
        continue;
      }
      if (this.#ended!.error !== null) throw this.#ended!.error;
      return;
    }
  }
}
