/** The entry that removes rows for good. Pure. */
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
  const versions = rows.versions(type.name)!;
  const code = rows.scopes.codeOf(path);
  const property = subjectProperty(type);
  const naming = namingColumns(type.name, versions.columnTypes());
  const removedKeys: string[] = [];
  const positions: number[] = [];
  const sources: string[] = [];
  for (const key of keys) {
    const all = versions.allVersions(versions.newestOf(code, key));
    for (const version of all) positions.push(versions.positionOf(version));
    const subjects = new Set<string>();
    const names = new Set(madeFrom?.get(key));
    for (const version of all) {
      const subject = property === null ? null : versions.cellOf(version, property);
      if (subject !== null) subjects.add(String(subject));
      for (const column of naming) for (const name of namesIn(versions.cellOf(version, column))) names.add(name);
    }
    if (subjects.size === 0) removedKeys.push(key);
    if (sealing !== null) sources.push(...sealedSources(type.name, path, { key, subjects, names: [...names] }, sealing));
  }
  return {
    kind: 'removal',
    type: type.name,
    keys: removedKeys,
    positions: Float64Array.from(positions).sort(),
    ...(sources.length > 0 && { sources }),
  };
}

function sealedSources(
  type: string,
  path: string | null,
  { key, subjects, names }: { readonly key: string; readonly subjects: ReadonlySet<string>; readonly names: readonly string[] },
  { seals, leadsToSomebody }: SourceSealing,
): readonly string[] {
  const tenant = tenantOf(path);
  const seal = (subject: string | null, owner: string): string =>
    seals.sealFor(tenant, owner, JSON.stringify({ key, subject, names } satisfies RemovedSource));
  if (subjects.size > 0) return [...subjects].map((subject) => seal(subject, subject));
  if (names.length === 0) return [];
  const own = ownSubject(type, path, key);
  return seals.hasKey(tenant, own) || leadsToSomebody(names) ? [seal(null, own)] : [];
}
