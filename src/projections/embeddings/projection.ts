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
const BYTES_A_TURN = 1 << 20;
/** Bytes of a version beside its vector: its position, and its slot among those of all versions. */
const BYTES_A_ROW = 120;

/** The remaining rows of one entry. */
interface Stored extends Pick<Embedded, 'model' | 'digest' | 'type' | 'columns' | 'dims'> {
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
  #stored = new Map<number, Stored>();
  /** By position of the version: the oldest first. */
  #of = new Map<number, Stored[]>();
  /** Branches that tenants have of their own: one may be called what a branch of the store is called. */
  readonly #own = new TenantNames<{ readonly name: string; readonly owner: string }>();
  /** Entries of which some rows went. */
  #thinned = new WeakSet<Stored>();
  /**
   * Entries that the newest checkpoint has yet to write, with the earlier state of those that changed since: checkpoints are
   * written one after the other.
   */
  #captured = new Map<Stored, Stored | null>();
  #bytes = 0;

  constructor(timeline: Pick<Timeline, 'positionAt' | 'positionAfter'>) {
    this.#timeline = timeline;
  }

  apply(entry: CommittedEntry): void {
    const { body, position, context } = entry;
    if (isOpen(body) && isEmbedded(body.content)) {
      const owner = this.#own.get(context.branch, tenantOf(context.path))?.owner ?? null;
      return this.#add(storedOf(body.content, position, context, owner));
    }
    if (body.kind === 'removal') this.#drop(body.positions);
    if (body.kind === 'erasure') for (const { positions } of body.versions) this.#drop(positions);
    if (body.kind === 'tenant' && body.change === 'purged') this.#dropAll(({ tenant }) => tenant === body.tenant.id);
    if (body.kind !== 'branch') return;
    const { name } = body;
    const owner = scopeOfName(entry, body);
    if (body.change === 'deleted') this.#dropAll((each) => each.branch === name && each.owner === owner);
    if (owner === null) return;
    if (body.change === 'deleted') this.#own.delete(name, owner);
    else this.#own.set(name, owner, { name, owner });
  }

  /** Vectors of a model that were on record at an instant; of texts of these columns alone. */
  reader(model: EmbeddingModel, basis: number, instant: bigint, columns: ReadonlySet<string>): EmbeddingReader {
    const bound = Math.min(basis, this.#timeline.positionAfter(instant));
    return {
      vectorAt: (systemFrom) => {
        const position = this.#timeline.positionAt(systemFrom);
        const storedVector = this.#find(position, model, bound);
        if (storedVector === null || storedVector.columns.some((column) => !columns.has(column))) return null;
        return vectorOf(storedVector, position);
      },
    };
  }

  /** Whether a version has a vector of the model that is of no other columns than these. */
  has(position: number, model: EmbeddingModel, columns: ReadonlySet<string>): boolean {
    const storedVector = this.#find(position, model, Number.POSITIVE_INFINITY);
    return storedVector !== null && storedVector.columns.every((column) => columns.has(column));
  }

  /** How many of these versions have a vector of any model. */
  countOf(positions: Iterable<number>): number {
    let count = 0;
    for (const position of positions) if (this.#of.has(position)) count++;
    return count;
  }

  /** Types that were embedded, by tenant: a caller searched them by a model once. */
  types(): readonly { readonly tenant: string | null; readonly type: string }[] {
    const known = new Map<string, { readonly tenant: string | null; readonly type: string }>();
    for (const { tenant, type } of this.#stored.values()) known.set(JSON.stringify([tenant, type]), { tenant, type });
    return [...known.values()];
  }

  /** Positions, ascending, of entries that hold vectors of these versions which are not sealed by subject. */
  entriesOf(positions: Iterable<number>): readonly number[] {
    const entries = new Set<number>();
    for (const position of positions) {
      for (const each of this.#of.get(position) ?? []) if (!each.sealed) entries.add(each.position);
    }
    return [...entries].sort((a, b) => a - b);
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const captured = new Map<Stored, Stored | null>();
    this.#captured = captured;
    let pieces = 0;
    let piece: Stored[] = [];
    let bytes = 0;
    const close = (): void => {
      if (piece.length === 0) return;
      const whole = piece;
      target.section(`piece ${pieces++}`, () => {
        const saved = serialize(whole.map((each) => captured.get(each) ?? this.#remaining(each)));
        for (const each of whole) captured.delete(each);
        return saved;
      });
      piece = [];
      bytes = 0;
    };
    for (const each of this.#stored.values()) {
      captured.set(each, null);
      piece.push(each);
      bytes += each.vectors.byteLength;
      if (bytes >= BYTES_A_TURN) close();
    }
    close();
    target.section('pieces', serialize(pieces));
    target.section('branches', serialize([...this.#own.values()]));
  }

  async restore(source: CheckpointReader): Promise<void> {
    this.reset();
    for (const each of read(source, 'branches') as { name: string; owner: string }[]) this.#own.set(each.name, each.owner, each);
    const pieces = read(source, 'pieces') as number;
    // Copies: nothing of the checkpoint's bytes stays behind them.
    for (let number = 0; number < pieces; number++) {
      for (const each of read(source, `piece ${number}`) as Stored[]) this.#add(rowsOf(each, [...each.positions.keys()]));
    }
  }

  reset(): void {
    // A checkpoint under way still writes the state that it captured.
    for (const [each, before] of this.#captured) if (before === null) this.#captured.set(each, this.#remaining(each));
    this.#own.clear();
    this.#stored = new Map();
    this.#of = new Map();
    this.#thinned = new WeakSet();
    this.#captured = new Map();
    this.#bytes = 0;
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const each of this.#stored.values()) {
      const { vectors, positions, ...facts } = this.#remaining(each);
      hash.value(facts);
      hash.numbers(positions, 0, positions.length);
      hash.numbers(vectors, 0, vectors.length);
    }
    return hash.hex();
  }

  #add(stored: Stored): void {
    if (stored.positions.length === 0) return;
    this.#stored.set(stored.position, stored);
    this.#bytes += bytesOf(stored);
    for (const position of stored.positions) {
      const known = this.#of.get(position);
      if (known === undefined) this.#of.set(position, [stored]);
      else known.push(stored);
    }
  }

  #find(position: number, { name, digest }: EmbeddingModel, bound: number): Stored | null {
    const all = this.#of.get(position);
    for (let i = (all?.length ?? 0) - 1; i >= 0; i--) {
      const each = all![i]!;
      if (each.position < bound && each.model === name && each.digest === digest) return each;
    }
    return null;
  }

  #dropAll(isGone: (stored: Stored) => boolean): void {
    for (const each of [...this.#stored.values()].filter(isGone)) this.#drop(each.positions, each);
  }

  /** Vectors of these versions, of one entry or of all: no number of them stays. */
  #drop(positions: readonly number[] | Float64Array, only: Stored | null = null): void {
    const touched = new Set<Stored>();
    for (const position of positions) {
      for (const each of this.#of.get(position) ?? []) if (only === null || each === only) touched.add(each);
    }
    for (const each of touched) {
      if (this.#captured.get(each) === null) this.#captured.set(each, rowsOf(each, this.#rowsLeft(each)));
    }
    for (const position of positions) {
      const all = this.#of.get(position);
      if (all === undefined) continue;
      const gone = only === null ? all : all.filter((each) => each === only);
      for (const each of gone) {
        const row = rowOf(each, position);
        each.vectors.fill(0, row * each.dims, (row + 1) * each.dims);
      }
      const left = all.filter((each) => !gone.includes(each));
      if (left.length > 0) this.#of.set(position, left);
      else this.#of.delete(position);
    }
    for (const each of touched) {
      this.#thinned.add(each);
      if (this.#rowsLeft(each).length > 0) continue;
      this.#stored.delete(each.position);
      this.#bytes -= bytesOf(each);
    }
  }

  #rowsLeft(stored: Stored): number[] {
    const rows: number[] = [];
    for (const [row, position] of stored.positions.entries()) if (this.#of.get(position)?.includes(stored)) rows.push(row);
    return rows;
  }

  #remaining(stored: Stored): Stored {
    return this.#thinned.has(stored) ? rowsOf(stored, this.#rowsLeft(stored)) : stored;
  }
}

function bytesOf({ vectors, positions }: Stored): number {
  return vectors.byteLength + positions.length * BYTES_A_ROW;
}

function read(source: CheckpointReader, section: string): unknown {
  const bytes = source.section(section);
  assert(bytes, 'a checkpoint of embeddings has all of them');
  return deserialize(bytes);
}

function storedOf(content: Embedded, position: number, { branch, path }: EntryContext, owner: string | null): Stored {
  const { model, digest, type, columns, dims, positions, vectors } = content;
  const sealed = content.subjects !== undefined || content.isSealed === true;
  const all = { model, digest, type, columns, dims, position, branch, owner, tenant: tenantOf(path), sealed, positions, vectors };
  return rowsOf(
    all,
    [...positions.keys()].sort((a, b) => positions[a]! - positions[b]!),
  );
}

/** A copy: the appended arrays belong to their writer. */
function rowsOf(stored: Stored, rows: readonly number[]): Stored {
  const { dims } = stored;
  const vectors = new Float32Array(rows.length * dims);
  for (const [i, row] of rows.entries()) vectors.set(stored.vectors.subarray(row * dims, (row + 1) * dims), i * dims);
  return { ...stored, positions: Float64Array.from(rows, (row) => stored.positions[row]!), vectors };
}

function vectorOf(stored: Stored, position: number): EmbeddedVector {
  return { values: stored.vectors, at: rowOf(stored, position) * stored.dims, dims: stored.dims };
}

function rowOf({ positions }: Stored, position: number): number {
  let [low, high] = [0, positions.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle]! < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
