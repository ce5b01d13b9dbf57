/** The rows of one tenant on one branch, as `decide` functions read them. */
import type { Timeline } from '../../../log/values/timeline.ts';
import type { CatalogReader, RowReader } from '../../access-paths.ts';
import type { StoredColumns } from '../../catalog/commands.ts';
import { LineageTable, type TableLayer } from './lineage-table.ts';
import { declaredTypes, type BranchLayer } from './branch-layer.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';

export class TenantRows implements StoredColumns {
  readonly scopes: OrganisationCodes;
  readonly #layer: BranchLayer;
  readonly #tenant: string | null;
  readonly #catalog: CatalogReader;
  /** Reads the rows below a position. */
  readonly reader: (basis: number) => RowReader;
  /** First position after an instant. */
  readonly positionAfter: (instant: bigint) => number;

  /** `catalog` is that of the tenant on the branch. */
  constructor(
    layer: BranchLayer,
    tenant: string | null,
    scopes: OrganisationCodes,
    catalog: CatalogReader,
    timeline: Timeline,
    reader: (basis: number) => RowReader,
  ) {
    this.#layer = layer;
    this.#tenant = tenant;
    this.scopes = scopes;
    this.#catalog = catalog;
    this.positionAfter = (instant) => timeline.positionAfter(instant);
    this.reader = reader;
  }

  /** Undefined when no row of the type was ever written. */
  versions(type: string): StoredVersions | undefined {
    const layer = this.#layer;
    if (layer.lower.length === 0) return layer.table(this.#tenant, type);
    const types = declaredTypes(this.#catalog, type);
    const layers = layer.layersOf(this.#tenant, type, types);
    if (layers.length === 0) return undefined;
    return new LineageTable(layers, types, Object.keys(this.#catalog.type(type)?.properties ?? {}));
  }

  /** Tells of keys whether something was written under them at or after a position. */
  writtenSince(position: number): (type: string, path: string | null, key: string) => boolean {
    const known = new Map<string, StoredVersions | undefined>();
    return (type, path, key) => {
      if (!known.has(type)) known.set(type, this.versions(type));
      const versions = known.get(type);
      const code = this.scopes.codeOf(path);
      const newest = versions === undefined || code < 0 ? -1 : versions.newestOf(code, key);
      return newest >= 0 && versions!.positionOf(newest) >= position;
    };
  }

  wasWritten(type: string): boolean {
    return this.#declaredLayers(type).some(({ table }) => table.segments.length > 0);
  }

  integersFitNumber(type: string, name: string): boolean {
    return this.#declaredLayers(type).every(({ table, inherited }) =>
      table.segments.every((segment) => {
        if (!inherited) return segment.column(name)?.integersFitNumber() ?? true;
        const rows = segment.rowAtOrAfter(inherited.end);
        return segment.columnAs(name, 'integer', rows)?.integersFitNumber(rows) ?? true;
      }),
    );
  }

  #declaredLayers(type: string): readonly TableLayer[] {
    return this.#layer.layersMeant(this.#tenant, type, declaredTypes(this.#catalog, type));
  }
}
