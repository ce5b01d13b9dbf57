/**
 * Vectors of stored versions, as models gave them: by position of the version, each from the entry on that brought it, so that an
 * earlier basis does not see a later one. Visibility is decided elsewhere: a reader asks only for versions that it may see.
 * Vectors of versions that were removed for good, or erased, go with them.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import { type CommittedEntry, type Embedded, type EntryContext, isOpen, scopeOfName } from '../../log/entries/entry.ts';
import { TenantNames } from '../../log/values/tenant-names.ts';
import type { Timeline } from '../../log/values/timeline.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { EmbeddedVector, EmbeddingModel, EmbeddingReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

/** Bytes of vectors that are saved in one turn. */
const EMBEDDING_BYTES_A_TURN = 1 << 20;
/** Bytes of a version beside its vector: its position, and its slot among those of all versions. */
const EMBEDDING_BYTES_A_ROW = 120;

/** The remaining rows of one entry. */
interface StoredEmbedding extends Pick<Embedded, 'model' | 'digest' | 'type' | 'columns' | 'dims'> {
  /** Where the entry stands. */
  readonly position: number;
  readonly branch: string;
  /** The tenant whose own the branch is; null: it is the store's. */
  readonly owner: string | null;
  readonly tenant: string | null;
  /** Rows are sealed by subject in the log. */
  readonly sealed: boolean;
  /** Positions of the versions, ascending. */
  readonly positions: Float64Array;
  readonly vectors: Float32Array;
}

export class Embeddings implements Projection {
  readonly name = 'embeddings';
  readonly formatVersion = 3;
  readonly #timeline: Pick<Timeline, 'positionAt' | 'positionAfter'>;
  /** By position of the entry, in order. */
  #storedEmbeddings = new Map<number, StoredEmbedding>();
  /** By position of the version: the oldest first. */
  #embeddingsByRow = new Map<number, StoredEmbedding[]>();
  /** Branches that tenants have of their own: one may be called what a branch of the store is called. */
  readonly #tenantBranches = new TenantNames<{ readonly name: string; readonly owner: string }>();
  /** Entries of which some rows went. */
  #thinnedEmbeddings = new WeakSet<StoredEmbedding>();
  /**
   * Entries that the newest checkpoint has yet to write, with the earlier state of those that changed since: checkpoints are
   * written one after the other.
   */
  #capturedEmbeddings = new Map<StoredEmbedding, StoredEmbedding | null>();
  #embeddingBytes = 0;

  constructor(timeline: Pick<Timeline, 'positionAt' | 'positionAfter'>) {
    this.#timeline = timeline;
  }

  apply(embeddingEntry: CommittedEntry): void {
    const { body, position, context } = embeddingEntry;
    if (isOpen(body) && isEmbedded(body.content)) {
      const owner = this.#tenantBranches.get(context.branch, tenantOf(context.path))?.owner ?? null;
      return this.#addEmbedding(storedEmbeddingFrom(body.content, position, context, owner));
    }
    if (body.kind === 'removal') this.#dropEmbeddedRows(body.positions);
    if (body.kind === 'erasure') for (const { positions } of body.versions) this.#dropEmbeddedRows(positions);
    if (body.kind === 'tenant' && body.change === 'purged') this.#dropEmbeddings(({ tenant }) => tenant === body.tenant.id);
    if (body.kind !== 'branch') return;
    const { name: branchName } = body;
    const owner = scopeOfName(embeddingEntry, body);
    if (body.change === 'deleted')
      this.#dropEmbeddings((storedEmbedding) => storedEmbedding.branch === branchName && storedEmbedding.owner === owner);
    if (owner === null) return;
    if (body.change === 'deleted') this.#tenantBranches.delete(branchName, owner);
    else this.#tenantBranches.set(branchName, owner, { name: branchName, owner });
  }

  /** Vectors of a model that were on record at an instant; of texts of these columns alone. */
  reader(model: EmbeddingModel, basis: number, instant: bigint, columns: ReadonlySet<string>): EmbeddingReader {
    const positionBound = Math.min(basis, this.#timeline.positionAfter(instant));
    return {
      vectorAt: (systemFrom) => {
        const position = this.#timeline.positionAt(systemFrom);
        const storedVector = this.#findEmbedding(position, model, positionBound);
        if (storedVector === null || storedVector.columns.some((column) => !columns.has(column))) return null;
        return embeddedVectorOf(storedVector, position);
      },
    };
  }

  /** Whether a version has a vector of the model that is of no other columns than these. */
  has(position: number, model: EmbeddingModel, columns: ReadonlySet<string>): boolean {
    const storedVector = this.#findEmbedding(position, model, Number.POSITIVE_INFINITY);
    return storedVector !== null && storedVector.columns.every((embeddedColumn) => columns.has(embeddedColumn));
  }

  /** How many of these versions have a vector of any model. */
  countOf(positions: Iterable<number>): number {
    let embeddedCount = 0;
    for (const position of positions) if (this.#embeddingsByRow.has(position)) embeddedCount++;
    return embeddedCount;
  }

  /** Types that were embedded, by tenant: a caller searched them by a model once. */
  types(): readonly { readonly tenant: string | null; readonly type: string }[] {
    const embeddedTypes = new Map<string, { readonly tenant: string | null; readonly type: string }>();
    for (const { tenant, type } of this.#storedEmbeddings.values())
      embeddedTypes.set(JSON.stringify([tenant, type]), { tenant, type });
    return [...embeddedTypes.values()];
  }

  /** Positions, ascending, of entries that hold vectors of these versions which are not sealed by subject. */
  entriesOf(positions: Iterable<number>): readonly number[] {
    const embeddingEntries = new Set<number>();
    for (const position of positions) {
      for (const storedEmbedding of this.#embeddingsByRow.get(position) ?? [])
        if (!storedEmbedding.sealed) embeddingEntries.add(storedEmbedding.position);
    }
    return [...embeddingEntries].sort((a, b) => a - b);
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#embeddingBytes;
  }

  async checkpoint(embeddingCheckpoint: CheckpointWriter): Promise<void> {
    const capturedEmbeddings = new Map<StoredEmbedding, StoredEmbedding | null>();
    this.#capturedEmbeddings = capturedEmbeddings;
    let embeddingPieces = 0;
    let openPiece: StoredEmbedding[] = [];
    let openPieceBytes = 0;
    const closePiece = (): void => {
      if (openPiece.length === 0) return;
      const closedPiece = openPiece;
      embeddingCheckpoint.section(`piece ${embeddingPieces++}`, () => {
        const savedPiece = serialize(
          closedPiece.map(
            (storedEmbedding) => capturedEmbeddings.get(storedEmbedding) ?? this.#remainingEmbedding(storedEmbedding),
          ),
        );
        for (const each of closedPiece) capturedEmbeddings.delete(each);
        return savedPiece;
      });
      openPiece = [];
      openPieceBytes = 0;
    };
    for (const each of this.#storedEmbeddings.values()) {
      capturedEmbeddings.set(each, null);
      openPiece.push(each);
      openPieceBytes += each.vectors.byteLength;
      if (openPieceBytes >= EMBEDDING_BYTES_A_TURN) closePiece();
    }
    closePiece();
    embeddingCheckpoint.section('pieces', serialize(embeddingPieces));
    embeddingCheckpoint.section('branches', serialize([...this.#tenantBranches.values()]));
  }

  async restore(embeddingCheckpoint: CheckpointReader): Promise<void> {
    this.reset();
    for (const savedEmbedding of readEmbeddingSection(embeddingCheckpoint, 'branches') as { name: string; owner: string }[])
      this.#tenantBranches.set(savedEmbedding.name, savedEmbedding.owner, savedEmbedding);
    const embeddingPieces = readEmbeddingSection(embeddingCheckpoint, 'pieces') as number;
    // Copies: nothing of the checkpoint's bytes stays behind them.
    for (let pieceNumber = 0; pieceNumber < embeddingPieces; pieceNumber++) {
      for (const each of readEmbeddingSection(embeddingCheckpoint, `piece ${pieceNumber}`) as StoredEmbedding[])
        this.#addEmbedding(embeddingOfRows(each, [...each.positions.keys()]));
    }
  }

  reset(): void {
    // A checkpoint under way still writes the state that it captured.
    for (const [capturedEmbedding, rowsAtCapture] of this.#capturedEmbeddings)
      if (rowsAtCapture === null) this.#capturedEmbeddings.set(capturedEmbedding, this.#remainingEmbedding(capturedEmbedding));
    this.#tenantBranches.clear();
    this.#storedEmbeddings = new Map();
    this.#embeddingsByRow = new Map();
    this.#thinnedEmbeddings = new WeakSet();
    this.#capturedEmbeddings = new Map();
    this.#embeddingBytes = 0;
  }

  digest(): string {
    const embeddingsHash = new CanonicalHash();
    for (const storedEmbedding of this.#storedEmbeddings.values()) {
      const { vectors, positions, ...embeddingFacts } = this.#remainingEmbedding(storedEmbedding);
      embeddingsHash.value(embeddingFacts);
      embeddingsHash.numbers(positions, 0, positions.length);
      embeddingsHash.numbers(vectors, 0, vectors.length);
    }
    return embeddingsHash.hex();
  }

  #addEmbedding(storedEmbedding: StoredEmbedding): void {
    if (storedEmbedding.positions.length === 0) return;
    this.#storedEmbeddings.set(storedEmbedding.position, storedEmbedding);
    this.#embeddingBytes += embeddingBytesOf(storedEmbedding);
    for (const position of storedEmbedding.positions) {
      const embeddingsOfRow = this.#embeddingsByRow.get(position);
      if (embeddingsOfRow === undefined) this.#embeddingsByRow.set(position, [storedEmbedding]);
      else embeddingsOfRow.push(storedEmbedding);
    }
  }

  #findEmbedding(position: number, { name, digest }: EmbeddingModel, positionBound: number): StoredEmbedding | null {
    const embeddingsOfRow = this.#embeddingsByRow.get(position);
    for (let i = (embeddingsOfRow?.length ?? 0) - 1; i >= 0; i--) {
      const storedEmbedding = embeddingsOfRow![i]!;
      if (storedEmbedding.position < positionBound && storedEmbedding.model === name && storedEmbedding.digest === digest)
        return storedEmbedding;
    }
    return null;
  }

  #dropEmbeddings(isEmbeddingGone: (stored: StoredEmbedding) => boolean): void {
    for (const storedEmbedding of [...this.#storedEmbeddings.values()].filter(isEmbeddingGone))
      this.#dropEmbeddedRows(storedEmbedding.positions, storedEmbedding);
  }

  /** Vectors of these versions, of one entry or of all: no number of them stays. */
  #dropEmbeddedRows(positions: readonly number[] | Float64Array, onlyEmbedding: StoredEmbedding | null = null): void {
    const thinnedEmbeddings = new Set<StoredEmbedding>();
    for (const position of positions) {
      for (const storedEmbedding of this.#embeddingsByRow.get(position) ?? [])
        if (onlyEmbedding === null || storedEmbedding === onlyEmbedding) thinnedEmbeddings.add(storedEmbedding);
    }
    for (const each of thinnedEmbeddings) {
      if (this.#capturedEmbeddings.get(each) === null)
        this.#capturedEmbeddings.set(each, embeddingOfRows(each, this.#remainingEmbeddedRows(each)));
    }
    for (const position of positions) {
      const embeddingsOfRow = this.#embeddingsByRow.get(position);
      if (embeddingsOfRow === undefined) continue;
      const goneEmbeddings =
        onlyEmbedding === null ? embeddingsOfRow : embeddingsOfRow.filter((storedEmbedding) => storedEmbedding === onlyEmbedding);
      for (const each of goneEmbeddings) {
        const embeddedRow = embeddedRowOf(each, position);
        each.vectors.fill(0, embeddedRow * each.dims, (embeddedRow + 1) * each.dims);
      }
      const remainingEmbeddings = embeddingsOfRow.filter((storedEmbedding) => !goneEmbeddings.includes(storedEmbedding));
      if (remainingEmbeddings.length > 0) this.#embeddingsByRow.set(position, remainingEmbeddings);
      else this.#embeddingsByRow.delete(position);
    }
    for (const each of thinnedEmbeddings) {
      this.#thinnedEmbeddings.add(each);
      if (this.#remainingEmbeddedRows(each).length > 0) continue;
      this.#storedEmbeddings.delete(each.position);
      this.#embeddingBytes -= embeddingBytesOf(each);
    }
  }

  #remainingEmbeddedRows(storedEmbedding: StoredEmbedding): number[] {
    const remainingRows: number[] = [];
    for (const [row, position] of storedEmbedding.positions.entries())
      if (this.#embeddingsByRow.get(position)?.includes(storedEmbedding)) remainingRows.push(row);
    return remainingRows;
  }

  #remainingEmbedding(storedEmbedding: StoredEmbedding): StoredEmbedding {
    return this.#thinnedEmbeddings.has(storedEmbedding)
      ? embeddingOfRows(storedEmbedding, this.#remainingEmbeddedRows(storedEmbedding))
      : storedEmbedding;
  }
}

function embeddingBytesOf({ vectors, positions }: StoredEmbedding): number {
  return vectors.byteLength + positions.length * EMBEDDING_BYTES_A_ROW;
}

function readEmbeddingSection(embeddingCheckpoint: CheckpointReader, embeddingSection: string): unknown {
  const sectionBytes = embeddingCheckpoint.section(embeddingSection);
  assert(sectionBytes, 'a checkpoint of embeddings has all of them');
  return deserialize(sectionBytes);
}

function storedEmbeddingFrom(
  embeddedContent: Embedded,
  position: number,
  { branch, path }: EntryContext,
  owner: string | null,
): StoredEmbedding {
  const { model, digest, type, columns, dims, positions, vectors } = embeddedContent;
  const isEmbeddingSealed = embeddedContent.subjects !== undefined || embeddedContent.isSealed === true;
  const unsortedEmbedding = {
    model,
    digest,
    type,
    columns,
    dims,
    position,
    branch,
    owner,
    tenant: tenantOf(path),
    sealed: isEmbeddingSealed,
    positions,
    vectors,
  };
  return embeddingOfRows(
    unsortedEmbedding,
    [...positions.keys()].sort((a, b) => positions[a]! - positions[b]!),
  );
}

/** A copy: the appended arrays belong to their writer. */
function embeddingOfRows(storedEmbedding: StoredEmbedding, embeddedRows: readonly number[]): StoredEmbedding {
  const { dims } = storedEmbedding;
  const vectors = new Float32Array(embeddedRows.length * dims);
  for (const [i, embeddedRow] of embeddedRows.entries())
    vectors.set(storedEmbedding.vectors.subarray(embeddedRow * dims, (embeddedRow + 1) * dims), i * dims);
  return { ...storedEmbedding, positions: Float64Array.from(embeddedRows, (row) => storedEmbedding.positions[row]!), vectors };
}

function embeddedVectorOf(storedEmbedding: StoredEmbedding, position: number): EmbeddedVector {
  return {
    values: storedEmbedding.vectors,
    at: embeddedRowOf(storedEmbedding, position) * storedEmbedding.dims,
    dims: storedEmbedding.dims,
  };
}

function embeddedRowOf({ positions }: StoredEmbedding, position: number): number {
  let [low, high] = [0, positions.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle]! < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
