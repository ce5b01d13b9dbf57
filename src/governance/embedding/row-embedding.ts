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
const textsAtOnce = 64;
/** UTF-16 units of a row that the model is given. */
const unitsMost = 8_192;
const blockRows = 1_024;
const minute = 60_000_000_000n;
const doublingsMost = 6;
const hour = 60n * minute;

const lane = { runningMax: 1 };

/** One type of one tenant. */
interface Wanted {
  readonly tenant: string | null;
  readonly type: string;
}

/** How far a branch was looked through, and under which definition. */
interface BranchProgress {
  readonly definition: TypeDefinition;
  readonly masked: string;
  readonly after: bigint;
}

interface Pending {
  readonly position: number;
  readonly path: string | null;
  readonly text: string;
}

export class RowEmbedding {
  readonly #parts: RowEmbeddingDependencies;
  readonly #wanted = new Map<string, Wanted>();
  /** By type and branch. */
  readonly #branchProgress = new Map<string, BranchProgress>();
  readonly #running = new Map<string, Promise<void>>();
  /** Types whose job was cancelled, and until when they are left alone. */
  readonly #cancelled = new Map<string, bigint>();
  #failures = 0;
  #quietUntil = 0n;

  constructor(parts: RowEmbeddingDependencies) {
    this.#parts = parts;
  }

  /** A caller searched the type by the model: its rows are embedded from now on. */
  want(tenant: string | null, type: string): void {
    if (this.#parts.embedder === null) return;
    const wanted = { tenant, type };
    this.#wanted.set(keyOf(wanted), wanted);
    void this.#begin(wanted);
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#parts.embedder === null) return;
    await onceAMinute(this.#parts.clock, signal, () => this.round());
  }

  /** Everything that was asked about, by this process or an earlier one. */
  async round(): Promise<void> {
    const { embedder, state } = this.#parts;
    if (embedder === null) return;
    for (const wanted of state.embeddings.types()) this.#wanted.set(keyOf(wanted), wanted);
    for (const wanted of this.#wanted.values()) await this.#begin(wanted);
  }

  /** Resolves once nothing runs. */
  async whenIdle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Resolves when the type has been seen to, whatever came of it. */
  async #begin(wanted: Wanted): Promise<void> {
    const key = keyOf(wanted);
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const now = this.#parts.clock.now();
    if (now < this.#quietUntil || now < (this.#cancelled.get(key) ?? 0n)) return;
    const begun = this.#embed(wanted)
      .catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        if (error.code === 'REL_CANCELLED') this.#cancelled.set(key, this.#parts.clock.now() + hour);
      })
      .finally(() => this.#running.delete(key));
    this.#running.set(key, begun);
    await begun;
  }

  /** A job, where there is anything to do. */
  async #embed({ tenant, type }: Wanted): Promise<void> {
    const { embedder, gate, jobs, ids, state, yieldTurn } = this.#parts;
    // Suspended and deleted tenants are skipped.
    if (tenant !== null && (state.tenants.tenant(tenant)?.record.state ?? 'active') !== 'active') return;
    assert(embedder !== null, 'nothing is wanted without a model');
    const branches = [mainBranch, ...state.branches.listFor(tenant).map(({ name }) => name)];
    await yieldTurn();
    let isDue = false;
    for (const branch of branches) {
      for await (const pending of this.#pendingOn(branch, tenant, type)) {
        isDue = pending.length > 0;
        if (isDue) break;
      }
      if (isDue) break;
    }
    if (!isDue) return;
    // The tenant's administrators see the job.
    const caretaker = { ...tenantlessCaller('annals', 'operator', 'internal'), tenant, path: tenant };
    const run = (work: JobWork): Promise<void> => {
      const request = { action: 'administer', purpose: null, correlationId: ids.next() } as const;
      return gate.invoke(tenantlessCaller('annals', 'operator', 'internal'), request, async (invocation) => {
        let done = 0;
        for (const branch of branches) {
          for await (const pending of this.#pendingOn(branch, tenant, type, true)) {
            for (let from = 0; from < pending.length; from += textsAtOnce) {
              work.signal.throwIfAborted();
              const some = pending.slice(from, from + textsAtOnce);
              await this.#write(
                some,
                { embedder, branch, type, columns: this.#columnsOf(branch, tenant, type) },
                invocation,
                work,
              );
              work.progress((done += some.length), null);
            }
          }
        }
      });
    };
    await jobs.start({ kind: 'embedding', about: type, unit: 'rows', lane, onDrain: 'cancel', run }, caretaker).ended;
  }

  async #write(
    rows: readonly Pending[],
    about: { readonly embedder: Embedder; readonly branch: string; readonly type: string; readonly columns: readonly string[] },
    invocation: Pick<Invocation, 'submit'>,
    { signal }: JobWork,
  ): Promise<void> {
    const { embedder, branch, type, columns } = about;
    const asked = await this.#askModel(
      embedder,
      rows.map(({ text }) => text),
      signal,
    );
    const modelVectors = asked.flatMap((vector, i) => (vector === null ? [] : { row: rows[i]!, vector }));
    const dims = modelVectors[0]!.vector.length;
    const model = { name: embedder.name, digest: embedder.digest };
    for (const path of new Set(modelVectors.map(({ row }) => row.path))) {
      const own = modelVectors.filter(({ row, vector }) => row.path === path && vector.length === dims);
      const vectors = new Float32Array(own.length * dims);
      for (const [vectorIndex, { vector }] of own.entries()) vectors.set(vector, vectorIndex * dims);
      const positions = own.map(({ row }) => row.position);
      await invocation.submit({ kind: 'embed-rows', type, branch, path, model, columns, dims, positions, vectors });
    }
  }

  /** null of a text that the model gives nothing for, where it gives something for others. Throws where it does not answer. */
  async #askModel(embedder: Embedder, texts: readonly string[], signal: AbortSignal): Promise<readonly (Float32Array | null)[]> {
    try {
      const textVectors = await orDown(embedder.embedAll(texts, signal));
      const each = textVectors ?? (await oneByOne(embedder, texts, signal));
      this.#failures = 0;
      return each;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'REL_UNAVAILABLE') {
        this.#quietUntil = this.#parts.clock.now() + minute * 2n ** BigInt(Math.min(this.#failures, doublingsMost));
        this.#failures++;
      }
      throw error;
    }
  }

  /**
   * Rows without a vector, block after block; none where the branch or the type is gone. A block counts as done when the next one is
   * asked for: with `advance` whatever it had, else as far as nothing was pending.
   */
  async *#pendingOn(
    branch: string,
    tenant: string | null,
    type: string,
    advance = false,
  ): AsyncGenerator<readonly Pending[], void> {
    const { log, state, yieldTurn } = this.#parts;
    const paths = orNull(() => state.snapshot(log.basis(), branch, tenant));
    const definition = paths?.catalog.type(type);
    if (!paths || !definition) return;
    const columns = this.#columnsOf(branch, tenant, type);
    if (columns.length === 0) return;
    const masked = columns.join('\0');
    const key = JSON.stringify([tenant, type, paths.branchId]);
    const known = this.#branchProgress.get(key);
    const after = known?.definition === definition && known.masked === masked ? known.after : null;
    const vectors = vectorColumns(definition);
    const blocks = paths.rows.scan({
      type,
      columns: ['system_from', pathColumn, ...columns, ...vectors],
      time: { system: paths.instant, valid: 'all' },
      ...(after !== null && { after }),
      blockRows,
    });
    let isClear = true;
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      const block = step.value;
      const pending = this.#pendingIn(block, columns, paths);
      const last = lastOf(block);
      isClear &&= pending.length === 0;
      yield pending;
      if (last !== null && (advance || isClear)) this.#branchProgress.set(key, { definition, masked, after: last });
      await yieldTurn();
    }
  }

  #pendingIn({ columns, selection, first, count }: RowBlock, texts: readonly string[], paths: AccessPaths): Pending[] {
    const { embedder, state } = this.#parts;
    const [times, codes, ...cells] = columns;
    const pending: Pending[] = [];
    const names = new Set(texts);
    const scopes = paths.rows.pathCodes();
    for (let place = 0; place < count; place++) {
      const row = selection === null ? first + place : selection[place]!;
      if (cells.slice(texts.length).some((vector) => !isNullAt(vector, row))) continue;
      const shown = texts.flatMap((_, i) => cellAt(cells[i]!, 'string', row) ?? []);
      const text = shown.join('\n').slice(0, unitsMost);
      if (text.trim() === '') continue;
      const position = state.timeline.positionAt(cellAt(times!, 'timestamp', row) as bigint);
      if (embedder === null || state.embeddings.has(position, embedder, names)) continue;
      pending.push({ position, path: scopes.path(Number(cellAt(codes!, 'integer', row))), text });
    }
    return pending;
  }

  /** Texts that no definition of the type's lineage declares masked, or to name other rows; none of a type that is guarded. */
  #columnsOf(branch: string, tenant: string | null, type: string): readonly string[] {
    const { log, state } = this.#parts;
    const paths = orNull(() => state.snapshot(log.basis(), branch, tenant));
    const definition = paths?.catalog.type(type);
    if (!paths || !definition) return [];
    const { masked, references, ...guard } = paths.protection(type);
    if (guard.protected || guard.accessScope) return [];
    return textColumns(definition).filter((name) => !masked.has(name) && !references.has(name));
  }
}

/** One text of several may be what the model does not take; of two that it takes neither of, it is taken to be down. */
async function oneByOne(embedder: Embedder, texts: readonly string[], signal: AbortSignal): Promise<(Float32Array | null)[]> {
  const embeddedTexts: (Float32Array | null)[] = [];
  for (const text of texts) {
    const vectors = await orDown(embedder.embedAll([text], signal));
    embeddedTexts.push(vectors?.[0] ?? null);
    const isDown = embeddedTexts.length === Math.min(2, texts.length) && embeddedTexts.every((vector) => vector === null);
    if (isDown) throw new ServiceError('REL_UNAVAILABLE', `the embedding model ${embedder.name} does not answer`);
  }
  return embeddedTexts;
}

/** null where the model does not answer. */
async function orDown<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_UNAVAILABLE') return null;
    throw error;
  }
}

function keyOf({ tenant, type }: Wanted): string {
  return JSON.stringify([tenant, type]);
}

/** A branch that was deleted meanwhile has nothing that is to be embedded. */
function orNull<T>(get: () => T): T | null {
  try {
    return get();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_NOT_FOUND') return null;
    throw error;
  }
}

function lastOf({ columns, selection, first, count }: RowBlock): bigint | null {
  if (count === 0) return null;
  return cellAt(columns[0]!, 'timestamp', selection === null ? first + count - 1 : selection[count - 1]!) as bigint;
}

function isNullAt(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}
