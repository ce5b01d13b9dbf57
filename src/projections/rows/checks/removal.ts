/** The entry that removes rows for good. Pure. */
import type { RemovalBody, TypeDefinition } from '../../../log/entries/entry.ts';
import { subjectProperty } from '../../catalog/subject.ts';
import type { BranchRows } from '../tables/branch-rows.ts';

/** Names the keys to remove. A key that was some version's subject is in its rows only, where its seal covers it. */
export function removalOf(type: TypeDefinition, keys: readonly string[], path: string | null, rows: BranchRows): RemovalBody {
  const versions = rows.versions(type.name)!;
  const code = rows.scopes.codeOf(path);
  const subject = subjectProperty(type);
  const told: string[] = [];
  const positions: number[] = [];
  for (const key of keys) {
    const all = versions.allVersions(versions.newestOf(code, key));
    if (subject === null || all.every((version) => versions.cellOf(version, subject) === null)) told.push(key);
    for (const version of all) positions.push(versions.positionOf(version));
  }
  return { kind: 'removal', type: type.name, keys: told, positions: Float64Array.from(positions).sort() };
}
