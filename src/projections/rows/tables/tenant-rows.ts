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
  readonly #branchLayer: BranchLayer;
  readonly #rowsTenant: string | null;
  readonly #rowsCatalog: CatalogReader;
  /** Reads the rows below a position. */
  readonly reader: (basis: number) => RowReader;
  /** First position after an instant. */
  readonly positionAfter: (instant: bigint) => number;

  /** `catalog` is that of the tenant on the branch. */
  constructor(
    branchLayer: BranchLayer,
    tenant: string | null,
    scopes: OrganisationCodes,
    catalog: CatalogReader,
    timeline: Timeline,
    reader: (basis: number) => RowReader,
  ) {
    this.#branchLayer = branchLayer;
    this.#rowsTenant = tenant;
    this.scopes = scopes;
    this.#rowsCatalog = catalog;
    this.positionAfter = (instant) => timeline.positionAfter(instant);
    this.reader = reader;
  }

  /** Undefined when no row of the type was ever written. */
  versions(type: string): StoredVersions | undefined {
    const branchLayer = this.#branchLayer;
    if (branchLayer.lower.length === 0) return branchLayer.table(this.#rowsTenant, type);
    const typesDeclared = declaredTypes(this.#rowsCatalog, type);
    const tableLayers = branchLayer.layersOf(this.#rowsTenant, type, typesDeclared);
    if (tableLayers.length === 0) return undefined;
    return new LineageTable(tableLayers, typesDeclared, Object.keys(this.#rowsCatalog.type(type)?.properties ?? {}));
  }

  /** Tells of keys whether something was written under them at or after a position. */
  writtenSince(position: number): (type: string, path: string | null, key: string) => boolean {
    const versionsByType = new Map<string, StoredVersions | undefined>();
    return (type, path, key) => {
      if (!versionsByType.has(type)) versionsByType.set(type, this.versions(type));
      const typeVersions = versionsByType.get(type);
      const pathCode = this.scopes.codeOf(path);
      const newestOfKey = typeVersions === undefined || pathCode < 0 ? -1 : typeVersions.newestOf(pathCode, key);
      return newestOfKey >= 0 && typeVersions!.positionOf(newestOfKey) >= position;
    };
  }

  wasWritten(type: string): boolean {
    return this.#layersDeclared(type).some(({ table }) => table.segments.length > 0);
  }

  integersFitNumber(type: string, name: string): boolean {
    return this.#layersDeclared(type).every(({ table, inherited }) =>
      table.segments.every((segment) => {
        if (!inherited) return segment.column(name)?.integersFitNumber() ?? true;
        const rowsInherited = segment.rowAtOrAfter(inherited.end);
        return segment.columnAs(name, 'integer', rowsInherited)?.integersFitNumber(rowsInherited) ?? true;
      }),
    );
  }

  #layersDeclared(type: string): readonly TableLayer[] {
    return this.#branchLayer.layersMeant(this.#rowsTenant, type, declaredTypes(this.#rowsCatalog, type));
  }
}
