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
  const definition = catalog.type(type);
  const versions = rows.versions(type);
  const own = definition && subjectProperty(definition);
  const nobodys: number[] = [];
  const owned: number[] = [];
  const subjects: string[] = [];
  for (const [row, position] of positions.entries()) {
    const version = versions?.versionAt(position) ?? -1;
    if (!definition || !versions || version < 0) continue;
    const subject = own ? subjectText(versions.cellOf(version, own)) : null;
    if (subject === null) nobodys.push(row);
    else {
      owned.push(row);
      subjects.push(subject);
    }
  }
  const about = { model: model.name, digest: model.digest, type, columns, dims, dropped: 0 };
  const embeddedOf = (chosen: readonly number[]): Embedded => {
    const own = new Float32Array(chosen.length * dims);
    for (const [i, row] of chosen.entries()) own.set(vectors.subarray(row * dims, (row + 1) * dims), i * dims);
    return { ...about, positions: Float64Array.from(chosen, (row) => positions[row]!), vectors: own };
  };
  const entry = { ...context.entry, branch, tenant: tenantOf(path), path };
  const drafts: EntryDraft[] = [];
  if (nobodys.length > 0) drafts.push({ context: entry, body: { kind: 'embedding', content: embeddedOf(nobodys) } });
  if (owned.length > 0) drafts.push({ context: entry, body: { kind: 'embedding', content: { ...embeddedOf(owned), subjects } } });
  const decision = decideOne('embed-rows', type, drafts, next);
  return { ...decision, outcome: { ...decision.outcome, accepted: nobodys.length + owned.length } };
}
