/**
 * The versions of a subject one by one, wherever they lie: for what has to be known of them before they go. Ungoverned: whoever
 * reads them here shows them to nobody.
 */
import { mainBranch, type ErasedVersions, type TypeDefinition } from '../../log/entry.ts';
import type { CatalogReader, RowReader } from '../../projections/access-paths.ts';
import type { Branches } from '../../projections/branches/projection.ts';
import type { BranchRows } from '../../projections/rows/branch-rows.ts';
import type { StoredVersions } from '../../projections/rows/stored-versions.ts';

export interface BranchesRead {
  readonly branches: Pick<Branches, 'list'>;
  readonly catalog: { on(branch: number): CatalogReader };
  readonly rows: { on(branch: number, catalog: CatalogReader): BranchRows };
}

/** A branch that stands, as all of it is now. */
export interface BranchNow {
  /** Nanosecond of its fork: what it wrote itself came after it. Of main 0. */
  readonly since: bigint;
  readonly types: CatalogReader;
  readonly rows: BranchRows;
}

/** Main first. */
export function branchesNow({ branches, catalog, rows }: BranchesRead): BranchNow[] {
  const forks = [{ name: mainBranch, fork: 0, instant: 0n }, ...branches.list()];
  return forks.map(({ fork, instant }) => {
    const types = catalog.on(fork);
    return { since: instant, types, rows: rows.on(fork, types) };
  });
}

/** All that was placed, whether it is visible yet or not. */
export function allRows({ rows }: BranchNow): RowReader {
  return rows.reader(Number.MAX_SAFE_INTEGER);
}

export interface SubjectVersion {
  readonly type: TypeDefinition;
  readonly versions: StoredVersions;
  readonly version: number;
}

/** Each once, on the first branch that reads it. */
export function* subjectVersions(state: BranchesRead, erased: readonly ErasedVersions[]): Generator<SubjectVersion, void> {
  const branches = branchesNow(state);
  for (const { type: name, positions } of erased) {
    let left = positions;
    for (const { types, rows } of branches) {
      const [type, versions] = [types.type(name), rows.versions(name)];
      if (type === undefined || versions === undefined || left.length === 0) continue;
      const elsewhere: number[] = [];
      for (const position of left) {
        const version = versions.at(position);
        if (version >= 0) yield { type, versions, version };
        else elsewhere.push(position);
      }
      left = elsewhere;
    }
  }
}

/** Properties whose cells are texts. */
export function textProperties({ properties }: TypeDefinition): string[] {
  return Object.keys(properties).filter((name) => properties[name]!.type === 'string' || properties[name]!.type === 'json');
}
