/** The rows of a branch that one snapshot reads. */
import type {
  CatalogReader,
  Near,
  NearRequest,
  PathCodes,
  Preparation,
  RowBlock,
  RowProvenance,
  RowReader,
  ScanEstimate,
  ScanRequest,
} from '../../access-paths.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import type { ColumnSpace } from '../cells/column-extents.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import type { SegmentIndexes } from '../indexes/segment-indexes.ts';
import { declaredTypes, type BranchLayer } from '../tables/branch-layer.ts';
import { provenanceOf } from './provenance-entry.ts';
import { rowsNearVector } from './near-vectors.ts';
import { estimateRows, scanRows } from './scan.ts';
import type { ScanSource } from './scan-source.ts';

/** State shared by the readers of all branches. */
export interface SharedRows {
  readonly timeline: Timeline;
  readonly scopes: OrganisationCodes;
  readonly space: ColumnSpace;
  readonly indexes: SegmentIndexes;
}

const noProperties = {};

export class SnapshotRows implements RowReader {
  readonly #rows: SharedRows;
  readonly #layer: BranchLayer;
  readonly #of: { readonly tenant: string | null; readonly catalog: CatalogReader };
  readonly #basis: number;
  readonly #then: CatalogReader;

  constructor(
    rows: SharedRows,
    layer: BranchLayer,
    of: { readonly tenant: string | null; readonly catalog: CatalogReader },
    basis: number,
    then: CatalogReader,
  ) {
    this.#rows = rows;
    this.#layer = layer;
    this.#of = of;
    this.#basis = basis;
    this.#then = then;
  }

  scan(request: ScanRequest): Iterator<RowBlock, void> {
    return this.#rows.space.read(scanRows(this.#source(request.type), request));
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    const { layers } = this.#source(type);
    for (const { table } of layers) table.noteSearched(columns);
    const segments = layers.flatMap(({ table }) => table.segments.filter(({ sealed }) => sealed));
    return this.#rows.indexes.prepare(segments, columns);
  }

  near(request: NearRequest): Promise<Near> {
    return rowsNearVector(this.#source(request.type), request);
  }

  estimate(request: ScanRequest): ScanEstimate {
    return estimateRows(this.#source(request.type), request);
  }

  pathCodes(): PathCodes {
    return this.#rows.scopes;
  }

  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
    return provenanceOf(this.#source(type), systemFrom, paths);
  }

  #source(type: string): ScanSource {
    const { timeline, scopes, indexes } = this.#rows;
    const basis = this.#basis;
    const { tenant, catalog } = this.#of;
    const idIsKey = !Object.hasOwn(this.#then.type(type)?.properties ?? noProperties, 'id');
    // Main's tables know their own types.
    if (this.#layer.id === 0) {
      const table = this.#layer.table(tenant, type);
      return { timeline, scopes, indexes, layers: table ? [{ table, inherited: null }] : [], basis, types: null, idIsKey };
    }
    const types = declaredTypes(catalog, type);
    return { timeline, scopes, indexes, layers: this.#layer.layersOf(tenant, type, types), basis, types, idIsKey };
  }
}
