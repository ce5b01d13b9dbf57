/**
 * A stream of row batches written through one invocation: what every door that takes rows in bulk does. What must
 * hold: batches are submitted in the order of the body, a few at once; every row is accepted, rejected by index, or
 * (in an atomic batch) none is; an error on the way says what had been accepted.
 */
import { type ErrorCode, ServiceError } from '../errors.ts';
import type { Invocation } from '../governance/gate-contract.ts';
import type { TypeDefinition } from '../log/entry.ts';
import type { IngestBatch } from '../planner/formats/ingest-reader.ts';
import type { Outcome } from '../projections/command.ts';

/** Batches that may wait for their acknowledgement while the next is being read. */
const inFlightMax = 4;
export const listedMax = { ids: 1_000, errors: 1_000 } as const;

/** Sizes of batches for `readIngest`. */
export const batchSizes = {
  stream: { batchRows: 4_096, batchBytes: 1 << 20 },
  bulk: { batchRows: 65_536, batchBytes: 1 << 23 },
} as const;

/** What became of a body of rows. */
export interface IngestReply {
  readonly type: string;
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly { readonly index: number; readonly code: string; readonly detail: string }[];
  /** null when no row was written. */
  readonly system_from: bigint | null;
  readonly system_from_last: bigint | null;
  readonly ids: readonly string[];
  /** `ids` or `errors` are not complete. */
  readonly truncated: boolean;
  readonly durability: 'synced' | 'buffered';
}

export interface IngestRequest {
  readonly type: string;
  readonly atomic: boolean;
  readonly sync: boolean;
  readonly createType: boolean;
  /** What provenance names as where the rows came from. */
  readonly source: string;
}

export class Ingest {
  readonly #invocation: Invocation;
  readonly #request: IngestRequest;
  readonly #ids: string[] = [];
  readonly #errors: { index: number; code: string; detail: string }[] = [];
  #accepted = 0;
  #rejected = 0;
  #systemFrom: bigint | null = null;
  #systemFromLast: bigint | null = null;
  #truncated = false;
  #durability: 'synced' | 'buffered' = 'synced';

  constructor(invocation: Invocation, request: IngestRequest) {
    this.#invocation = invocation;
    this.#request = request;
  }

  /** Of the type as it stands; null when it is to be made. Throws REL_UNKNOWN_TYPE before any byte of the body is read. */
  definition(): TypeDefinition | null {
    const { type, createType } = this.#request;
    const definition = this.#invocation.snapshot().catalog.type(type);
    if (definition === undefined && !createType) {
      throw new ServiceError('REL_UNKNOWN_TYPE', `the type ${JSON.stringify(type.slice(0, 128))} is not registered`);
    }
    return definition ?? null;
  }

  async run(batches: AsyncIterable<IngestBatch>): Promise<IngestReply> {
    try {
      if (this.#request.atomic) await this.#writeAtOnce(batches);
      else await this.#writeStreaming(batches);
    } catch (error) {
      throw this.#explained(error);
    }
    return this.#reply();
  }

  async #writeAtOnce(batches: AsyncIterable<IngestBatch>): Promise<void> {
    const read: IngestBatch[] = [];
    for await (const batch of batches) {
      const first = batch.rejections[0];
      if (first !== undefined) throw new ServiceError(first.code as ErrorCode, `row ${first.index}: ${first.detail}`);
      read.push(batch);
    }
    // Without a bound on its size a batch is the body.
    for (const batch of read) this.#take(batch, await this.#submit(batch));
  }

  async #writeStreaming(batches: AsyncIterable<IngestBatch>): Promise<void> {
    const inFlight: Promise<void>[] = [];
    let failed: { readonly error: unknown } | null = null;
    try {
      for await (const batch of batches) {
        this.#reject(batch.rejections);
        if (batch.rows.length === 0) continue;
        const written = this.#submit(batch).then(
          (outcome) => this.#take(batch, outcome),
          (error: unknown) => {
            failed ??= { error };
          },
        );
        inFlight.push(written);
        if (inFlight.length >= inFlightMax) await inFlight.shift();
        if (failed !== null) break;
      }
    } finally {
      await Promise.all(inFlight);
    }
    if (failed !== null) throw (failed as { readonly error: unknown }).error;
  }

  #submit(batch: IngestBatch): Promise<Outcome> {
    const { type, atomic, createType, sync, source } = this.#request;
    const provenance = { source, method: 'ingest', confidence: 1, derivedFrom: null };
    return this.#invocation.submit({ kind: 'put-rows', type, rows: batch.rows, atomic, createType, provenance }, { sync });
  }

  #take(batch: IngestBatch, outcome: Outcome): void {
    this.#accepted += outcome.accepted;
    this.#reject(
      outcome.errors.map((error) => ({ ...error, index: batch.indexes?.[error.index] ?? batch.firstIndex + error.index })),
    );
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
    };
  }

  /** Batches before an error are written and stay: its problem record says so. */
  #explained(error: unknown): unknown {
    if (!(error instanceof ServiceError) || this.#accepted === 0) return error;
    const { type, accepted, rejected, system_from, system_from_last, durability } = this.#reply();
    const extras = { type_name: type, accepted, rejected, system_from, system_from_last, durability };
    return new ServiceError(error.code, error.message, { ...error.facts, extras });
  }
}
