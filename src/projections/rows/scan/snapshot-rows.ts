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
  readonly #sharedRows: SharedRows;
  readonly #branchLayer: BranchLayer;
  readonly #snapshotScope: { readonly tenant: string | null; readonly catalog: CatalogReader };
  readonly #snapshotBasis: number;
  readonly #catalogThen: CatalogReader;

  constructor(
    sharedRows: SharedRows,
    branchLayer: BranchLayer,
    snapshotScope: { readonly tenant: string | null; readonly catalog: CatalogReader },
    basis: number,
    catalogThen: CatalogReader,
  ) {
    this.#sharedRows = sharedRows;
    this.#branchLayer = branchLayer;
    this.#snapshotScope = snapshotScope;
    this.#snapshotBasis = basis;
    this.#catalogThen = catalogThen;
  }

  scan(scanRequest: ScanRequest): Iterator<RowBlock, void> {
    return this.#sharedRows.space.read(scanRows(this.#scanSource(scanRequest.type), scanRequest));
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    const { layers } = this.#scanSource(type);
    for (const { table } of layers) table.noteSearched(columns);
    const sealedSegments = layers.flatMap(({ table }) => table.segments.filter(({ sealed }) => sealed));
    return this.#sharedRows.indexes.prepare(sealedSegments, columns);
  }

  near(nearRequest: NearRequest): Promise<Near> {
    return rowsNearVector(this.#scanSource(nearRequest.type), nearRequest);
  }

  estimate(scanRequest: ScanRequest): ScanEstimate {
    return estimateRows(this.#scanSource(scanRequest.type), scanRequest);
  }

  pathCodes(): PathCodes {
    return this.#sharedRows.scopes;
  }

  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
    return provenanceOf(this.#scanSource(type), systemFrom, paths);
  }

  #scanSource(type: string): ScanSource {
    const { timeline, scopes, indexes } = this.#sharedRows;
    const basis = this.#snapshotBasis;
    const { tenant, catalog } = this.#snapshotScope;
    const idIsKey = !Object.hasOwn(this.#catalogThen.type(type)?.properties ?? noProperties, 'id');
    // Main's tables know their own types.
    if (this.#branchLayer.id === 0) {
      const table = this.#branchLayer.table(tenant, type);
      return { timeline, scopes, indexes, layers: table ? [{ table, inherited: null }] : [], basis, types: null, idIsKey };
    }
    const typesDeclared = declaredTypes(catalog, type);
    return {
      timeline,
      scopes,
      indexes,
      layers: this.#branchLayer.layersOf(tenant, type, typesDeclared),
      basis,
      types: typesDeclared,
      idIsKey,
    };
  }
}
