/** Vectors that a model gave for stored versions: a command to entries. Pure. */
import { assert } from '../../errors.ts';
import type { Embedded, EntryDraft } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import { subjectProperty } from '../catalog/subject-property.ts';
import type { EmbedRows } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { TenantRows } from '../rows/tables/tenant-rows.ts';
import { subjectText } from '../rows/checks/row-subjects.ts';

/** Versions that are gone by now get no vector: their subject may have been erased while the model was asked. */
export function decideEmbed(
  command: EmbedRows,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { type, model, columns, dims, branch, path, positions, vectors } = command;
  assert(vectors.length === positions.length * dims, 'each row has its vector');
  const embeddedType = catalog.type(type);
  const embeddedVersions = rows.versions(type);
  const own = embeddedType && subjectProperty(embeddedType);
  const unsealedRows: number[] = [];
  const subjectRows: number[] = [];
  const subjects: string[] = [];
  for (const [row, position] of positions.entries()) {
    const embeddedVersion = embeddedVersions?.versionAt(position) ?? -1;
    if (!embeddedType || !embeddedVersions || embeddedVersion < 0) continue;
    const subject = own ? subjectText(embeddedVersions.cellOf(embeddedVersion, own)) : null;
    if (subject === null) unsealedRows.push(row);
    else {
      subjectRows.push(row);
      subjects.push(subject);
    }
  }
  const embeddingHead = { model: model.name, digest: model.digest, type, columns, dims, dropped: 0 };
  const embeddedOf = (chosen: readonly number[]): Embedded => {
    const own = new Float32Array(chosen.length * dims);
    for (const [i, row] of chosen.entries()) own.set(vectors.subarray(row * dims, (row + 1) * dims), i * dims);
    return { ...embeddingHead, positions: Float64Array.from(chosen, (row) => positions[row]!), vectors: own };
  };
  const embeddingContext = { ...context.entry, branch, tenant: tenantOf(path), path };
  const embeddingDrafts: EntryDraft[] = [];
  if (unsealedRows.length > 0)
    embeddingDrafts.push({ context: embeddingContext, body: { kind: 'embedding', content: embeddedOf(unsealedRows) } });
  if (subjectRows.length > 0)
    embeddingDrafts.push({
      context: embeddingContext,
      body: { kind: 'embedding', content: { ...embeddedOf(subjectRows), subjects } },
    });
  const embedDecision = decideOne('embed-rows', type, embeddingDrafts, next);
  return { ...embedDecision, outcome: { ...embedDecision.outcome, accepted: unsealedRows.length + subjectRows.length } };
}
