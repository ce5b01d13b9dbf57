/**
 * Writes a stream of row batches through one invocation, for every door that takes rows in bulk. Invariants: batches are
 * submitted in the order of the body, a few at once; every row is accepted, rejected by index, or (in an atomic batch) none is;
 * an error on the way says what had been accepted. Under an idempotency key every batch has a receipt, and the reply is made of
 * receipts alone, so that it is the same whenever it is given.
 */
import { assert, didYouMean, type ErrorCode, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { Provenance, TypeDefinition } from '../../log/entries/entry.ts';
import type { IngestBatch } from '../../planner/formats/ingest-batch.ts';
import type { BatchReceipt, Outcome, PutRows, RowRejection, WriteCondition } from '../../projections/command.ts';
import type { BodyDigest } from './body-digest.ts';

/** Batches that may wait for their acknowledgement while the next is being read: as many as the log keeps room for to seal. */
const inFlightMax = 4;
export const listedMax = { ids: 1_000, errors: 1_000 } as const;

/**
 * Sizes of batches for `readIngest`. A batch is decided and applied in one turn of the event loop, which others wait for some
 * three milliseconds: larger ones cost little less a row, and wait longer for their seals. `crowded` is for a body beside
 * queries: its turns are about as long as theirs. Under an idempotency key receipts are by batch, so a body that was begun in
 * batches of one size has to go on in them; `bulk` is for bulk under such a key alone.
 */
export const batchSizes = {
  stream: { batchRows: 3_072, batchBytes: 3 << 18 },
  crowded: { batchRows: 768, batchBytes: 3 << 16 },
  bulk: { batchRows: 4_096, batchBytes: 1 << 20 },
} as const;

/** The result of an ingest. */
export interface IngestReply {
  readonly type: string;
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly { readonly index: number; readonly code: string; readonly detail: string }[];
  /** System time of the first row; null when no row was written. */
  readonly system_from: bigint | null;
  readonly system_from_last: bigint | null;
  readonly ids: readonly string[];
  /** `ids` or `errors` are not complete. */
  readonly truncated: boolean;
  readonly durability: 'synced' | 'buffered';
  /** Notices about values that were stored otherwise than sent. */
  readonly notices?: readonly string[];
}

export interface IngestRequest {
  readonly type: string;
  readonly atomic: boolean;
  readonly sync: boolean;
  readonly createType: boolean;
  /** The way rows are put; absent: as they were sent, unconditionally. */
  readonly patch?: boolean;
  readonly replace?: boolean;
  readonly when?: WriteCondition | null;
  /** It has been promised: it waits for room, where a body that is here as a whole is refused otherwise. */
  readonly waits?: boolean;
  /** Provenance of rows that bring none of their own. */
  readonly provenance: Provenance;
  /** Under an idempotency key: its digest, and that of the body. */
  readonly once?: { readonly key: string; readonly body: BodyDigest };
}

export class Ingest {
  readonly #invocation: Invocation;
  readonly #request: IngestRequest;
  readonly #ids: string[] = [];
  readonly #mixed = new Set<string>();
  readonly #errors: { index: number; code: string; detail: string }[] = [];
  /** Receives the number of rows accepted or rejected so far. */
  onTaken: ((rows: number) => void) | null = null;
  #accepted = 0;
  #rejected = 0;
  #systemFrom: bigint | null = null;
  #systemFromLast: bigint | null = null;
  #truncated = false;
  #durability: 'synced' | 'buffered' = 'synced';
  /** Batches submitted, and how many of them had been done before. */
  #batches = 0;
  #replayed = 0;

  constructor(invocation: Invocation, request: IngestRequest) {
    this.#invocation = invocation;
    this.#request = request;
  }

  /** The type as it stands; null when it is to be made. Throws REL_UNKNOWN_TYPE before any byte of the body is read. */
  definition(): TypeDefinition | null {
    const { type, createType } = this.#request;
    const { catalog, offers } = this.#invocation.snapshot();
    const definition = catalog.type(type);
    if (definition === undefined && !createType) {
      const guess = didYouMean(
        type,
        catalog.types().flatMap(({ name }) => (offers(name) ? name : [])),
      );
      throw new ServiceError('REL_UNKNOWN_TYPE', `the type ${JSON.stringify(type.slice(0, 128))} is not registered${guess}`);
    }
    return definition ?? null;
  }

  get accepted(): number {
    return this.#accepted;
  }

  get rejected(): number {
    return this.#rejected;
  }

  /** Every batch had been done before: nothing was written. */
  get replayed(): boolean {
    return this.#batches > 0 && this.#replayed === this.#batches;
  }

  async run(batches: AsyncIterable<IngestBatch>): Promise<IngestReply> {
    try {
      if (this.#request.atomic) await this.#writeAtOnce(batches);
      else await this.#writeStreaming(batches);
    } catch (error) {
      throw this.#withProgress(error);
    }
    return this.#reply();
  }

  /** A body that is one batch: the same without a stream. */
  async runOne(batch: IngestBatch): Promise<IngestReply> {
    assert(this.#request.once === undefined, 'under a key a batch has its receipt');
    this.#take(batch, await this.#submit(batch, true, this.#request.waits));
    return this.#reply();
  }

  async #writeAtOnce(batches: AsyncIterable<IngestBatch>): Promise<void> {
    const read: IngestBatch[] = [];
    for await (const batch of batches) {
      const first = batch.rejections[0];
      if (first !== undefined) throw new ServiceError(first.code as ErrorCode, `row ${first.index}: ${first.detail}`);
      read.push(batch);
    }
    // Without a limit on its size the batch is the whole body.
    for await (const { batch, last } of this.#withLast(from(read)))
      this.#take(batch, await this.#submit(batch, last, this.#request.waits));
  }

  async #writeStreaming(batches: AsyncIterable<IngestBatch>): Promise<void> {
    const inFlight: Promise<void>[] = [];
    // A batch with a receipt may come later than one without: replies keep the order of the body.
    let taken = Promise.resolve();
    let failed: { readonly error: unknown } | null = null;
    try {
      for await (const { batch, last } of this.#withLast(batches)) {
        if (this.#request.once === undefined) {
          this.#reject(batch.rejections);
          if (batch.rows.length === 0) continue;
        }
        // Nothing more is read of the body while it waits: its sender is held back.
        const outcome = this.#submit(batch, last, true);
        taken = Promise.allSettled([outcome, taken]).then(([ended]) => {
          if (ended.status === 'fulfilled') this.#take(batch, ended.value);
          else failed ??= { error: ended.reason };
        });
        inFlight.push(taken);
        if (inFlight.length >= inFlightMax) await inFlight.shift();
        if (failed !== null) break;
      }
    } finally {
      await Promise.all(inFlight);
    }
    if (failed !== null) throw (failed as { readonly error: unknown }).error;
  }

  /** Under a key the last batch is known as such, which takes reading one ahead, and a body without rows has one too. */
  async *#withLast(batches: AsyncIterable<IngestBatch>): AsyncGenerator<{ batch: IngestBatch; last: boolean }, void> {
    if (this.#request.once === undefined) {
      for await (const batch of batches) yield { batch, last: false };
      return;
    }
    let held: IngestBatch | null = null;
    let failed: { readonly error: unknown } | null = null;
    try {
      for await (const batch of batches) {
        if (held !== null) yield { batch: held, last: false };
        held = batch;
      }
    } catch (error) {
      failed = { error };
    }
    if (held !== null || failed === null) yield { batch: held ?? emptyBatch, last: failed === null };
    if (failed !== null) throw failed.error;
  }

  #submit(batch: IngestBatch, last: boolean, waits = false): Promise<Outcome> {
    const { type, atomic, createType, sync, provenance } = this.#request;
    const receipt = this.#receipt(batch, last);
    // Running batches may yield more ids than are missing, never fewer.
    const idsMax = receipt === undefined ? listedMax.ids - this.#ids.length : listedMax.ids;
    const command = {
      kind: 'put-rows' as const,
      type,
      rows: batch.rows,
      atomic,
      createType,
      provenance,
      idsMax,
      ...this.#how(batch),
    };
    return this.#invocation.submit(receipt === undefined ? command : { ...command, receipt }, { sync, waits });
  }

  #how({ sent }: IngestBatch): Pick<PutRows, 'patch' | 'replace' | 'when'> {
    const { patch, replace, when } = this.#request;
    if (patch) assert(sent, 'a body of patches is read for what it sends');
    return { ...(patch && { patch: sent! }), ...(replace && { replace }), ...(when && { when }) };
  }

  #receipt(batch: IngestBatch, last: boolean): BatchReceipt | undefined {
    const { once } = this.#request;
    if (once === undefined) return undefined;
    return {
      key: once.key,
      batch: this.#batches++,
      request: once.body.upTo(last ? Infinity : batch.endOffset),
      last,
      firstIndex: batch.firstIndex,
      indexes: batch.indexes,
      refused: batch.rejections,
    };
  }

  #take(batch: IngestBatch, outcome: Outcome): void {
    if (outcome.replayed) this.#replayed++;
    for (const column of batch.mixed) this.#mixed.add(column);
    this.#accepted += outcome.accepted;
    const { indexes, firstIndex } = batch;
    // Receipts speak of the whole stream already.
    const inStream = (index: number): number =>
      this.#request.once === undefined ? (indexes?.[index] ?? firstIndex + index) : index;
    this.#reject(outcome.errors.map((error) => ({ ...error, index: inStream(error.index) })));
    this.#rejected += outcome.rejected - outcome.errors.length;
    if (outcome.idsTruncated) this.#truncated = true;
    for (const id of outcome.ids) {
      if (this.#ids.length < listedMax.ids) this.#ids.push(id);
      else this.#truncated = true;
    }
    if (outcome.accepted > 0) {
      this.#systemFrom ??= outcome.systemFrom;
      this.#systemFromLast = outcome.systemFromLast;
    }
    if (outcome.durability === 'buffered') this.#durability = 'buffered';
    this.onTaken?.(this.#accepted + this.#rejected);
  }

  #reject(rejections: IngestBatch['rejections']): void {
    this.#rejected += rejections.length;
    for (const rejection of rejections) {
      if (this.#errors.length < listedMax.errors) this.#errors.push({ ...rejection });
      else this.#truncated = true;
    }
  }

  #reply(): IngestReply {
    this.#invocation.describe({ rowCount: this.#accepted });
    return {
      type: this.#request.type,
      accepted: this.#accepted,
      rejected: this.#rejected,
      errors: this.#errors.sort((a, b) => a.index - b.index),
      system_from: this.#systemFrom,
      system_from_last: this.#systemFromLast,
      ids: this.#ids,
      truncated: this.#truncated,
      durability: this.#durability,
      ...(this.#mixed.size === 0
        ? {}
        : { notices: [...this.#mixed].map((name) => `${name}: text, numbers or booleans in one column, stored as text`) }),
    };
  }

  /** Batches before an error are written and stay: its problem record says so. */
  #withProgress(error: unknown): unknown {
    if (!(error instanceof ServiceError) || this.#accepted === 0) return error;
    const { type, accepted, rejected, system_from, system_from_last, durability } = this.#reply();
    const extras = { type_name: type, accepted, rejected, system_from, system_from_last, durability };
    return new ServiceError(error.code, error.message, { ...error.facts, extras });
  }
}

/** A row that is refused ends the body, with the error that is made of it: for clients that look at nothing but whether it went well. */
export async function* untilRefused(
  batches: AsyncIterable<IngestBatch>,
  refuse: (row: RowRejection) => ServiceError,
): AsyncGenerator<IngestBatch, void> {
  for await (const batch of batches) {
    const [first] = batch.rejections;
    if (first !== undefined) throw refuse(first);
    yield batch;
  }
}

/** `written`: rows of the body before it that are. */
export function rowRefusal({ index, code, detail }: RowRejection, written: number): ServiceError {
  const before = written === 0 ? '' : ` (${written} rows are written, in batches)`;
  return new ServiceError(code as ErrorCode, `row ${index + 1}: ${detail}${before}`);
}

const emptyBatch: IngestBatch = {
  rows: { length: 0, columns: [] },
  firstIndex: 0,
  indexes: null,
  rejections: [],
  endOffset: 0,
  mixed: [],
  sent: new Map(),
};

async function* from<T>(items: readonly T[]): AsyncGenerator<T, void> {
  yield* items;
}
