/** Builds the entry that removes rows for good. Pure. */
import type { RemovalBody, TypeDefinition } from '../../../log/entries/entry.ts';
import { ownSubject } from '../../../log/keys/joint-subject.ts';
import { tenantOf } from '../../../log/values/value.ts';
import { namesIn, namingColumns } from '../../catalog/naming-columns.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import type { TextSeals } from '../../decision.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';

/** The chain from a subject to rows made from a row that was removed for good: a removal holds it sealed. */
export interface RemovedSource {
  readonly key: string;
  /** Null: no cell said whose it was; it was made from the rows that it names. */
  readonly subject: string | null;
  /** Keys of the rows that it was made from. */
  readonly names: readonly string[];
}

/** How what removed rows leave for an erasure is sealed. */
export interface SourceSealing {
  readonly seals: TextSeals;
  /** Whether one of these names a row that has a subject, was made from one, or was removed. */
  readonly leadsToSomebody: (names: readonly string[]) => boolean;
}

/**
 * Names the keys to remove. A key that was some version's subject is in its rows only, where its seal covers it. Without
 * `sealing` no link to the subjects is left: a purge of a tenant also removes everything made from its rows. `madeFrom` has keys
 * of edges, which no cell of these names: keys of the rows that the edges go with.
 */
export function removalOf(
  type: TypeDefinition,
  keys: readonly string[],
  path: string | null,
  rows: TenantRows,
  sealing: SourceSealing | null,
  madeFrom?: ReadonlyMap<string, ReadonlySet<string>>,
): RemovalBody {
  const storedVersions = rows.versions(type.name)!;
  const pathCode = rows.scopes.codeOf(path);
  const subjectColumn = subjectProperty(type);
  const namingColumnList = namingColumns(type.name, storedVersions.columnTypes());
  const removedKeys: string[] = [];
  const removedPositions: number[] = [];
  const removedSources: string[] = [];
  for (const removedKey of keys) {
    const removedVersions = storedVersions.allVersions(storedVersions.newestOf(pathCode, removedKey));
    for (const removedVersion of removedVersions) removedPositions.push(storedVersions.positionOf(removedVersion));
    const subjects = new Set<string>();
    const sourceNames = new Set(madeFrom?.get(removedKey));
    for (const version of removedVersions) {
      const subject = subjectColumn === null ? null : storedVersions.cellOf(version, subjectColumn);
      if (subject !== null) subjects.add(String(subject));
      for (const column of namingColumnList)
        for (const sourceName of namesIn(storedVersions.cellOf(version, column))) sourceNames.add(sourceName);
    }
    if (subjects.size === 0) removedKeys.push(removedKey);
    if (sealing !== null)
      removedSources.push(...sealedSources(type.name, path, { key: removedKey, subjects, names: [...sourceNames] }, sealing));
  }
  return {
    kind: 'removal',
    type: type.name,
    keys: removedKeys,
    positions: Float64Array.from(removedPositions).sort(),
    ...(removedSources.length > 0 && { sources: removedSources }),
  };
}

function sealedSources(
  type: string,
  path: string | null,
  {
    key,
    subjects,
    names: sourceNames,
  }: { readonly key: string; readonly subjects: ReadonlySet<string>; readonly names: readonly string[] },
  { seals, leadsToSomebody }: SourceSealing,
): readonly string[] {
  const tenant = tenantOf(path);
  const sealSource = (subject: string | null, owner: string): string =>
    seals.sealFor(tenant, owner, JSON.stringify({ key, subject, names: sourceNames } satisfies RemovedSource));
  if (subjects.size > 0) return [...subjects].map((subject) => sealSource(subject, subject));
  if (sourceNames.length === 0) return [];
  const ownSealSubject = ownSubject(type, path, key);
  return seals.hasKey(tenant, ownSealSubject) || leadsToSomebody(sourceNames) ? [sealSource(null, ownSealSubject)] : [];
}
