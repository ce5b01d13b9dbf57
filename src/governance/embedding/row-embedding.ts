/**
 * Vectors of rows, from a model, computed in the background: of versions that are true now, on every branch, of types that a
 * caller has searched by a model once. They are entries of the log, so a start continues where the last one stopped, replay asks
 * no model, and an earlier basis does not see them. A row with a vector from its writer is left alone.
 *
 * The model gets a row's texts as stored, except columns that any definition of the type declares masked, or that name other
 * rows. Guarded types are not embedded: their readers must state why they read. Reads decide who sees a vector: a caller that
 * sees every text that it was made from (`governed-snapshot.ts`).
 *
 * A model that does not answer is left alone for a minute, and for twice as long each time, up to an hour; so is a type whose job
 * was cancelled.
 */
import type { Clock } from '../../clock.ts';
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { mainBranch, type TypeDefinition } from '../../log/entries/entry.ts';
import type { Basis, LogStore } from '../../log/log-store.ts';
import type { Timeline } from '../../log/values/timeline.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { type AccessPaths, pathColumn, type RowBlock } from '../../projections/access-paths.ts';
import type { Branches } from '../../projections/branches/projection.ts';
import type { Embeddings } from '../../projections/embeddings/projection.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import { tenantlessCaller } from '../caller.ts';
import type { GateContract, Invocation } from '../gate-contract.ts';
import type { JobRunner, JobWork } from '../jobs/job-runner.ts';
import { onceAMinute } from '../jobs/minute-rounds.ts';
import { textColumns, vectorColumns } from './embedded-columns.ts';
import type { Embedder } from './embedder.ts';

export interface RowEmbeddingDependencies {
  /** Null: nothing is embedded. */
  readonly embedder: Embedder | null;
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly log: Pick<LogStore, 'basis'>;
  readonly state: {
    readonly branches: Pick<Branches, 'listFor'>;
    readonly embeddings: Pick<Embeddings, 'has' | 'types'>;
    readonly timeline: Pick<Timeline, 'positionAt'>;
    readonly tenants: Pick<Tenants, 'tenant'>;
    snapshot(basis: Basis, branch: string, tenant: string | null): AccessPaths;
  };
  readonly jobs: Pick<JobRunner, 'start'>;
  readonly clock: Clock;
  readonly ids: { next(): string };
  readonly yieldTurn: () => Promise<void>;
}

/** Texts sent to the model at a time: rows of one entry at most, and the loss of one failure. */
const textsPerModelCall = 64;
/** UTF-16 units of a row that the model is given. */
const embeddedTextMax = 8_192;
const embeddingBlockRows = 1_024;
const minuteNs = 60_000_000_000n;
const backoffDoublingsMax = 6;
const hourNs = 60n * minuteNs;

const embeddingLane = { runningMax: 1 };

/** One type of one tenant. */
interface WantedEmbedding {
  readonly tenant: string | null;
  readonly type: string;
}

/** How far a branch was looked through, and under which definition. */
interface BranchProgress {
  readonly definition: TypeDefinition;
  readonly masked: string;
  readonly after: bigint;
}

interface PendingRow {
  readonly position: number;
  readonly path: string | null;
  readonly text: string;
}

export class RowEmbedding {
  readonly #embeddingParts: RowEmbeddingDependencies;
  readonly #wantedEmbeddings = new Map<string, WantedEmbedding>();
  /** By type and branch. */
  readonly #branchProgress = new Map<string, BranchProgress>();
  readonly #runningEmbeddings = new Map<string, Promise<void>>();
  /** Types whose job was cancelled, and until when they are left alone. */
  readonly #cancelledUntil = new Map<string, bigint>();
  #modelFailures = 0;
  #modelQuietUntil = 0n;

  constructor(parts: RowEmbeddingDependencies) {
    this.#embeddingParts = parts;
  }

  /** A caller searched the type by the model: its rows are embedded from now on. */
  want(tenant: string | null, type: string): void {
    if (this.#embeddingParts.embedder === null) return;
    const wantedEmbedding = { tenant, type };
    this.#wantedEmbeddings.set(wantedKeyOf(wantedEmbedding), wantedEmbedding);
    void this.#beginEmbedding(wantedEmbedding);
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#embeddingParts.embedder === null) return;
    await onceAMinute(this.#embeddingParts.clock, signal, () => this.round());
  }

  /** Everything that was asked about, by this process or an earlier one. */
  async round(): Promise<void> {
    const { embedder, state } = this.#embeddingParts;
    if (embedder === null) return;
    for (const wantedEmbedding of state.embeddings.types())
      this.#wantedEmbeddings.set(wantedKeyOf(wantedEmbedding), wantedEmbedding);
    for (const wanted of this.#wantedEmbeddings.values()) await this.#beginEmbedding(wanted);
  }

  /** Resolves once nothing runs. */
  async whenIdle(): Promise<void> {
    while (this.#runningEmbeddings.size > 0) await Promise.all(this.#runningEmbeddings.values());
  }

  /** Resolves when the type has been seen to, whatever came of it. */
  async #beginEmbedding(wantedEmbedding: WantedEmbedding): Promise<void> {
    const wantedKey = wantedKeyOf(wantedEmbedding);
    const runningEmbedding = this.#runningEmbeddings.get(wantedKey);
    if (runningEmbedding !== undefined) return runningEmbedding;
    const now = this.#embeddingParts.clock.now();
    if (now < this.#modelQuietUntil || now < (this.#cancelledUntil.get(wantedKey) ?? 0n)) return;
    const begunEmbedding = this.#embedRows(wantedEmbedding)
      .catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        if (error.code === 'REL_CANCELLED') this.#cancelledUntil.set(wantedKey, this.#embeddingParts.clock.now() + hourNs);
      })
      .finally(() => this.#runningEmbeddings.delete(wantedKey));
    this.#runningEmbeddings.set(wantedKey, begunEmbedding);
    await begunEmbedding;
  }

  /** A job, where there is anything to do. */
  async #embedRows({ tenant, type }: WantedEmbedding): Promise<void> {
    const { embedder, gate, jobs, ids, state, yieldTurn } = this.#embeddingParts;
    // Suspended and deleted tenants are skipped.
    if (tenant !== null && (state.tenants.tenant(tenant)?.record.state ?? 'active') !== 'active') return;
    assert(embedder !== null, 'nothing is wanted without a model');
    const embeddedBranches = [mainBranch, ...state.branches.listFor(tenant).map(({ name }) => name)];
    await yieldTurn();
    let isEmbeddingDue = false;
    for (const branch of embeddedBranches) {
      for await (const pendingRows of this.#pendingRowsOn(branch, tenant, type)) {
        isEmbeddingDue = pendingRows.length > 0;
        if (isEmbeddingDue) break;
      }
      if (isEmbeddingDue) break;
    }
    if (!isEmbeddingDue) return;
    // The tenant's administrators see the job.
    const embeddingCaretaker = { ...tenantlessCaller('annals', 'operator', 'internal'), tenant, path: tenant };
    const runEmbeddingJob = (work: JobWork): Promise<void> => {
      const request = { action: 'administer', purpose: null, correlationId: ids.next() } as const;
      return gate.invoke(tenantlessCaller('annals', 'operator', 'internal'), request, async (invocation) => {
        let embeddedRowCount = 0;
        for (const branch of embeddedBranches) {
          for await (const pendingRows of this.#pendingRowsOn(branch, tenant, type, true)) {
            for (let textsFrom = 0; textsFrom < pendingRows.length; textsFrom += textsPerModelCall) {
              work.signal.throwIfAborted();
              const textsChunk = pendingRows.slice(textsFrom, textsFrom + textsPerModelCall);
              await this.#writeVectors(
                textsChunk,
                { embedder, branch, type, columns: this.#embeddedColumnsOf(branch, tenant, type) },
                invocation,
                work,
              );
              work.progress((embeddedRowCount += textsChunk.length), null);
            }
          }
        }
      });
    };
    await jobs.start(
      { kind: 'embedding', about: type, unit: 'rows', lane: embeddingLane, onDrain: 'cancel', run: runEmbeddingJob },
      embeddingCaretaker,
    ).ended;
  }

  async #writeVectors(
    rows: readonly PendingRow[],
    embeddingTarget: {
      readonly embedder: Embedder;
      readonly branch: string;
      readonly type: string;
      readonly columns: readonly string[];
    },
    invocation: Pick<Invocation, 'submit'>,
    { signal }: JobWork,
  ): Promise<void> {
    const { embedder, branch, type, columns } = embeddingTarget;
    const vectorRequests = await this.#embedTexts(
      embedder,
      rows.map(({ text }) => text),
      signal,
    );
    const modelVectors = vectorRequests.flatMap((vector, i) => (vector === null ? [] : { row: rows[i]!, vector }));
    const vectorDims = modelVectors[0]!.vector.length;
    const embeddingModel = { name: embedder.name, digest: embedder.digest };
    for (const path of new Set(modelVectors.map(({ row }) => row.path))) {
      const pathRows = modelVectors.filter(({ row, vector }) => row.path === path && vector.length === vectorDims);
      const vectors = new Float32Array(pathRows.length * vectorDims);
      for (const [vectorIndex, { vector }] of pathRows.entries()) vectors.set(vector, vectorIndex * vectorDims);
      const positions = pathRows.map(({ row }) => row.position);
      await invocation.submit({
        kind: 'embed-rows',
        type,
        branch,
        path,
        model: embeddingModel,
        columns,
        dims: vectorDims,
        positions,
        vectors,
      });
    }
  }

  /** null of a text that the model gives nothing for, where it gives something for others. Throws where it does not answer. */
  async #embedTexts(
    embedder: Embedder,
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (Float32Array | null)[]> {
    try {
      const textVectors = await vectorsOrDown(embedder.embedAll(texts, signal));
      const each = textVectors ?? (await embedOneByOne(embedder, texts, signal));
      this.#modelFailures = 0;
      return each;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'REL_UNAVAILABLE') {
        this.#modelQuietUntil =
          this.#embeddingParts.clock.now() + minuteNs * 2n ** BigInt(Math.min(this.#modelFailures, backoffDoublingsMax));
        this.#modelFailures++;
      }
      throw error;
    }
  }

  /**
   * Rows without a vector, block after block; none where the branch or the type is gone. A block counts as done when the next one is
   * asked for: with `advance` whatever it had, else as far as nothing was pending.
   */
  async *#pendingRowsOn(
    branch: string,
    tenant: string | null,
    type: string,
    advance = false,
  ): AsyncGenerator<readonly PendingRow[], void> {
    const { log, state, yieldTurn } = this.#embeddingParts;
    const accessPaths = nullIfNotFound(() => state.snapshot(log.basis(), branch, tenant));
    const definition = accessPaths?.catalog.type(type);
    if (!accessPaths || !definition) return;
    const columns = this.#embeddedColumnsOf(branch, tenant, type);
    if (columns.length === 0) return;
    const embeddedColumnsKey = columns.join('\0');
    const progressKey = JSON.stringify([tenant, type, accessPaths.branchId]);
    const branchProgress = this.#branchProgress.get(progressKey);
    const embeddedAfter =
      branchProgress?.definition === definition && branchProgress.masked === embeddedColumnsKey ? branchProgress.after : null;
    const embeddingColumns = vectorColumns(definition);
    const rowBlocks = accessPaths.rows.scan({
      type,
      columns: ['system_from', pathColumn, ...columns, ...embeddingColumns],
      time: { system: accessPaths.instant, valid: 'all' },
      ...(embeddedAfter !== null && { after: embeddedAfter }),
      blockRows: embeddingBlockRows,
    });
    let isFullyEmbedded = true;
    for (let step = rowBlocks.next(); step.done !== true; step = rowBlocks.next()) {
      const rowBlock = step.value;
      const pendingRows = this.#pendingRowsIn(rowBlock, columns, accessPaths);
      const lastInstant = lastSystemFrom(rowBlock);
      isFullyEmbedded &&= pendingRows.length === 0;
      yield pendingRows;
      if (lastInstant !== null && (advance || isFullyEmbedded))
        this.#branchProgress.set(progressKey, { definition, masked: embeddedColumnsKey, after: lastInstant });
      await yieldTurn();
    }
  }

  #pendingRowsIn(
    { columns, selection, first, count }: RowBlock,
    embeddedTexts: readonly string[],
    paths: AccessPaths,
  ): PendingRow[] {
    const { embedder, state } = this.#embeddingParts;
    const [systemTimes, pathCodes, ...embeddedCells] = columns;
    const pendingRows: PendingRow[] = [];
    const embeddedNames = new Set(embeddedTexts);
    const pathScopes = paths.rows.pathCodes();
    for (let vectorIndex = 0; vectorIndex < count; vectorIndex++) {
      const row = selection === null ? first + vectorIndex : selection[vectorIndex]!;
      if (embeddedCells.slice(embeddedTexts.length).some((vector) => !isNullAt(vector, row))) continue;
      const rowTexts = embeddedTexts.flatMap((_, i) => cellAt(embeddedCells[i]!, 'string', row) ?? []);
      const rowText = rowTexts.join('\n').slice(0, embeddedTextMax);
      if (rowText.trim() === '') continue;
      const position = state.timeline.positionAt(cellAt(systemTimes!, 'timestamp', row) as bigint);
      if (embedder === null || state.embeddings.has(position, embedder, embeddedNames)) continue;
      pendingRows.push({ position, path: pathScopes.path(Number(cellAt(pathCodes!, 'integer', row))), text: rowText });
    }
    return pendingRows;
  }

  /** Texts that no definition of the type's lineage declares masked, or to name other rows; none of a type that is guarded. */
  #embeddedColumnsOf(branch: string, tenant: string | null, type: string): readonly string[] {
    const { log, state } = this.#embeddingParts;
    const accessPaths = nullIfNotFound(() => state.snapshot(log.basis(), branch, tenant));
    const definition = accessPaths?.catalog.type(type);
    if (!accessPaths || !definition) return [];
    const { masked, references, ...typeGuard } = accessPaths.protection(type);
    if (typeGuard.protected || typeGuard.accessScope) return [];
    return textColumns(definition).filter((name) => !masked.has(name) && !references.has(name));
  }
}

/** One text of several may be what the model does not take; of two that it takes neither of, it is taken to be down. */
async function embedOneByOne(
  embedder: Embedder,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<(Float32Array | null)[]> {
  const embeddedTexts: (Float32Array | null)[] = [];
  for (const text of texts) {
    const singleVectors = await vectorsOrDown(embedder.embedAll([text], signal));
    embeddedTexts.push(singleVectors?.[0] ?? null);
    const isDown = embeddedTexts.length === Math.min(2, texts.length) && embeddedTexts.every((vector) => vector === null);
    if (isDown) throw new ServiceError('REL_UNAVAILABLE', `the embedding model ${embedder.name} does not answer`);
  }
  return embeddedTexts;
}

/** null where the model does not answer. */
async function vectorsOrDown<T>(modelReply: Promise<T>): Promise<T | null> {
  try {
    return await modelReply;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_UNAVAILABLE') return null;
    throw error;
  }
}

function wantedKeyOf({ tenant, type }: WantedEmbedding): string {
  return JSON.stringify([tenant, type]);
}

/** A branch that was deleted meanwhile has nothing that is to be embedded. */
function nullIfNotFound<T>(readState: () => T): T | null {
  try {
    return readState();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_NOT_FOUND') return null;
    throw error;
  }
}

function lastSystemFrom({ columns, selection, first, count }: RowBlock): bigint | null {
  if (count === 0) return null;
  return cellAt(columns[0]!, 'timestamp', selection === null ? first + count - 1 : selection[count - 1]!) as bigint;
}

function isNullAt(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}
