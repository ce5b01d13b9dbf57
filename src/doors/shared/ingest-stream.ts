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
import type { BodyDigest } from '../http/body-digest.ts';

/** Batches that may wait for their acknowledgement while the next is being read: as many as the log keeps room for to seal. */
const batchesInFlightMax = 4;
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
  readonly #ingestInvocation: Invocation;
  readonly #ingestRequest: IngestRequest;
  readonly #ingestedIds: string[] = [];
  readonly #mixedColumns = new Set<string>();
  readonly #rowErrors: { index: number; code: string; detail: string }[] = [];
  /** Receives the number of rows accepted or rejected so far. */
  onTaken: ((rows: number) => void) | null = null;
  #acceptedRows = 0;
  #rejectedRows = 0;
  #firstSystemFrom: bigint | null = null;
  #lastSystemFrom: bigint | null = null;
  #isReplyTruncated = false;
  #ingestDurability: 'synced' | 'buffered' = 'synced';
  /** Batches submitted, and how many of them had been done before. */
  #receiptBatches = 0;
  #replayedBatches = 0;

  constructor(ingestInvocation: Invocation, ingestRequest: IngestRequest) {
    this.#ingestInvocation = ingestInvocation;
    this.#ingestRequest = ingestRequest;
  }

  /** The type as it stands; null when it is to be made. Throws REL_UNKNOWN_TYPE before any byte of the body is read. */
  definition(): TypeDefinition | null {
    const { type: ingestedType, createType: createsType } = this.#ingestRequest;
    const { catalog: typeCatalog, offers: offersType } = this.#ingestInvocation.snapshot();
    const typeDefinition = typeCatalog.type(ingestedType);
    if (typeDefinition === undefined && !createsType) {
      const typeGuess = didYouMean(
        ingestedType,
        typeCatalog.types().flatMap(({ name: typeName }) => (offersType(typeName) ? typeName : [])),
      );
      throw new ServiceError(
        'REL_UNKNOWN_TYPE',
        `the type ${JSON.stringify(ingestedType.slice(0, 128))} is not registered${typeGuess}`,
      );
    }
    return typeDefinition ?? null;
  }

  get accepted(): number {
    return this.#acceptedRows;
  }

  get rejected(): number {
    return this.#rejectedRows;
  }

  /** Every batch had been done before: nothing was written. */
  get replayed(): boolean {
    return this.#receiptBatches > 0 && this.#replayedBatches === this.#receiptBatches;
  }

  async run(ingestBatches: AsyncIterable<IngestBatch>): Promise<IngestReply> {
    try {
      if (this.#ingestRequest.atomic) await this.#writeAtomicIngest(ingestBatches);
      else await this.#writeIngestStream(ingestBatches);
    } catch (ingestError) {
      throw this.#withIngestProgress(ingestError);
    }
    return this.#ingestReply();
  }

  /** A body that is one batch: the same without a stream. */
  async runOne(ingestBatch: IngestBatch): Promise<IngestReply> {
    assert(this.#ingestRequest.once === undefined, 'under a key a batch has its receipt');
    this.#takeOutcome(ingestBatch, await this.#submitBatch(ingestBatch, true, this.#ingestRequest.waits));
    return this.#ingestReply();
  }

  async #writeAtomicIngest(ingestBatches: AsyncIterable<IngestBatch>): Promise<void> {
    const batchesRead: IngestBatch[] = [];
    for await (const ingestBatch of ingestBatches) {
      const firstRejection = ingestBatch.rejections[0];
      if (firstRejection !== undefined)
        throw new ServiceError(firstRejection.code as ErrorCode, `row ${firstRejection.index}: ${firstRejection.detail}`);
      batchesRead.push(ingestBatch);
    }
    // Without a limit on its size the batch is the whole body.
    for await (const { batch, last: isLastBatch } of this.#markLastBatch(asyncBatches(batchesRead)))
      this.#takeOutcome(batch, await this.#submitBatch(batch, isLastBatch, this.#ingestRequest.waits));
  }

  async #writeIngestStream(ingestBatches: AsyncIterable<IngestBatch>): Promise<void> {
    const batchesInFlight: Promise<void>[] = [];
    // A batch with a receipt may come later than one without: replies keep the order of the body.
    let outcomesTaken = Promise.resolve();
    let failedBatch: { readonly error: unknown } | null = null;
    try {
      for await (const { batch: ingestBatch, last: isLastBatch } of this.#markLastBatch(ingestBatches)) {
        if (this.#ingestRequest.once === undefined) {
          this.#rejectRows(ingestBatch.rejections);
          if (ingestBatch.rows.length === 0) continue;
        }
        // Nothing more is read of the body while it waits: its sender is held back.
        const batchOutcome = this.#submitBatch(ingestBatch, isLastBatch, true);
        outcomesTaken = Promise.allSettled([batchOutcome, outcomesTaken]).then(([settledOutcome]) => {
          if (settledOutcome.status === 'fulfilled') this.#takeOutcome(ingestBatch, settledOutcome.value);
          else failedBatch ??= { error: settledOutcome.reason };
        });
        batchesInFlight.push(outcomesTaken);
        if (batchesInFlight.length >= batchesInFlightMax) await batchesInFlight.shift();
        if (failedBatch !== null) break;
      }
    } finally {
      await Promise.all(batchesInFlight);
    }
    if (failedBatch !== null) throw (failedBatch as { readonly error: unknown }).error;
  }

  /** Under a key the last batch is known as such, which takes reading one ahead, and a body without rows has one too. */
  async *#markLastBatch(ingestBatches: AsyncIterable<IngestBatch>): AsyncGenerator<{ batch: IngestBatch; last: boolean }, void> {
    if (this.#ingestRequest.once === undefined) {
      for await (const ingestBatch of ingestBatches) yield { batch: ingestBatch, last: false };
      return;
    }
    let heldBatch: IngestBatch | null = null;
    let readFailure: { readonly error: unknown } | null = null;
    try {
      for await (const ingestBatch of ingestBatches) {
        if (heldBatch !== null) yield { batch: heldBatch, last: false };
        heldBatch = ingestBatch;
      }
    } catch (readError) {
      readFailure = { error: readError };
    }
    if (heldBatch !== null || readFailure === null) yield { batch: heldBatch ?? emptyIngestBatch, last: readFailure === null };
    if (readFailure !== null) throw readFailure.error;
  }

  #submitBatch(ingestBatch: IngestBatch, isLastBatch: boolean, waitsForRoom = false): Promise<Outcome> {
    const {
      type: ingestedType,
      atomic: isAtomic,
      createType: createsType,
      sync: isSyncIngest,
      provenance: ingestProvenance,
    } = this.#ingestRequest;
    const batchReceipt = this.#batchReceipt(ingestBatch, isLastBatch);
    // Running batches may yield more ids than are missing, never fewer.
    const idsListedMax = batchReceipt === undefined ? listedMax.ids - this.#ingestedIds.length : listedMax.ids;
    const putRowsCommand = {
      kind: 'put-rows' as const,
      type: ingestedType,
      rows: ingestBatch.rows,
      atomic: isAtomic,
      createType: createsType,
      provenance: ingestProvenance,
      idsMax: idsListedMax,
      ...this.#writeManner(ingestBatch),
    };
    return this.#ingestInvocation.submit(
      batchReceipt === undefined ? putRowsCommand : { ...putRowsCommand, receipt: batchReceipt },
      { sync: isSyncIngest, waits: waitsForRoom },
    );
  }

  #writeManner({ sent: sentCells }: IngestBatch): Pick<PutRows, 'patch' | 'replace' | 'when'> {
    const { patch: isPatch, replace: isReplace, when: ingestCondition } = this.#ingestRequest;
    if (isPatch) assert(sentCells, 'a body of patches is read for what it sends');
    return {
      ...(isPatch && { patch: sentCells! }),
      ...(isReplace && { replace: isReplace }),
      ...(ingestCondition && { when: ingestCondition }),
    };
  }

  #batchReceipt(ingestBatch: IngestBatch, isLastBatch: boolean): BatchReceipt | undefined {
    const { once: idempotentBody } = this.#ingestRequest;
    if (idempotentBody === undefined) return undefined;
    return {
      key: idempotentBody.key,
      batch: this.#receiptBatches++,
      request: idempotentBody.body.upTo(isLastBatch ? Infinity : ingestBatch.endOffset),
      last: isLastBatch,
      firstIndex: ingestBatch.firstIndex,
      indexes: ingestBatch.indexes,
      refused: ingestBatch.rejections,
    };
  }

  #takeOutcome(ingestBatch: IngestBatch, batchOutcome: Outcome): void {
    if (batchOutcome.replayed) this.#replayedBatches++;
    for (const mixedColumn of ingestBatch.mixed) this.#mixedColumns.add(mixedColumn);
    this.#acceptedRows += batchOutcome.accepted;
    const { indexes: batchIndexes, firstIndex: batchFirstIndex } = ingestBatch;
    // Receipts speak of the whole stream already.
    const rowInStream = (rowIndex: number): number =>
      this.#ingestRequest.once === undefined ? (batchIndexes?.[rowIndex] ?? batchFirstIndex + rowIndex) : rowIndex;
    this.#rejectRows(batchOutcome.errors.map((rowError) => ({ ...rowError, index: rowInStream(rowError.index) })));
    this.#rejectedRows += batchOutcome.rejected - batchOutcome.errors.length;
    if (batchOutcome.idsTruncated) this.#isReplyTruncated = true;
    for (const ingestedId of batchOutcome.ids) {
      if (this.#ingestedIds.length < listedMax.ids) this.#ingestedIds.push(ingestedId);
      else this.#isReplyTruncated = true;
    }
    if (batchOutcome.accepted > 0) {
      this.#firstSystemFrom ??= batchOutcome.systemFrom;
      this.#lastSystemFrom = batchOutcome.systemFromLast;
    }
    if (batchOutcome.durability === 'buffered') this.#ingestDurability = 'buffered';
    this.onTaken?.(this.#acceptedRows + this.#rejectedRows);
  }

  #rejectRows(rowRejections: IngestBatch['rejections']): void {
    this.#rejectedRows += rowRejections.length;
    for (const rowRejection of rowRejections) {
      if (this.#rowErrors.length < listedMax.errors) this.#rowErrors.push({ ...rowRejection });
      else this.#isReplyTruncated = true;
    }
  }

  #ingestReply(): IngestReply {
    this.#ingestInvocation.describe({ rowCount: this.#acceptedRows });
    return {
      type: this.#ingestRequest.type,
      accepted: this.#acceptedRows,
      rejected: this.#rejectedRows,
      errors: this.#rowErrors.sort((errorA, errorB) => errorA.index - errorB.index),
      system_from: this.#firstSystemFrom,
      system_from_last: this.#lastSystemFrom,
      ids: this.#ingestedIds,
      truncated: this.#isReplyTruncated,
      durability: this.#ingestDurability,
      ...(this.#mixedColumns.size === 0
        ? {}
        : {
            notices: [...this.#mixedColumns].map(
              (mixedColumn) => `${mixedColumn}: text, numbers or booleans in one column, stored as text`,
            ),
          }),
    };
  }

  /** Batches before an error are written and stay: its problem record says so. */
  #withIngestProgress(ingestError: unknown): unknown {
    if (!(ingestError instanceof ServiceError) || this.#acceptedRows === 0) return ingestError;
    const {
      type: ingestedType,
      accepted: acceptedRows,
      rejected: rejectedRows,
      system_from,
      system_from_last,
      durability,
    } = this.#ingestReply();
    const progressExtras = {
      type_name: ingestedType,
      accepted: acceptedRows,
      rejected: rejectedRows,
      system_from,
      system_from_last,
      durability,
    };
    return new ServiceError(ingestError.code, ingestError.message, { ...ingestError.facts, extras: progressExtras });
  }
}

/** A row that is refused ends the body, with the error that is made of it: for clients that look at nothing but whether it went well. */
export async function* untilRefused(
  ingestBatches: AsyncIterable<IngestBatch>,
  refuseRow: (row: RowRejection) => ServiceError,
): AsyncGenerator<IngestBatch, void> {
  for await (const ingestBatch of ingestBatches) {
    const [firstRejection] = ingestBatch.rejections;
    if (firstRejection !== undefined) throw refuseRow(firstRejection);
    yield ingestBatch;
  }
}

/** `writtenRowCount`: rows of the body before it that are. */
export function rowRefusal(
  { index: rowIndex, code: rowErrorCode, detail: rowErrorDetail }: RowRejection,
  writtenRowCount: number,
): ServiceError {
  const writtenBefore = writtenRowCount === 0 ? '' : ` (${writtenRowCount} rows are written, in batches)`;
  return new ServiceError(rowErrorCode as ErrorCode, `row ${rowIndex + 1}: ${rowErrorDetail}${writtenBefore}`);
}

const emptyIngestBatch: IngestBatch = {
  rows: { length: 0, columns: [] },
  firstIndex: 0,
  indexes: null,
  rejections: [],
  endOffset: 0,
  mixed: [],
  sent: new Map(),
};

async function* asyncBatches<T>(readBatches: readonly T[]): AsyncGenerator<T, void> {
  yield* readBatches;
}
