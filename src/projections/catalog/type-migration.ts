/** Registering and evolving several types at once: each step is decided on what those before it made. Pure. */
import type { EntryDraft, TypeDefinition } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import type { CatalogReader } from '../access-paths.ts';
import type { MigrateTypes } from '../command.ts';
import { type DecideContext, type Decision, outcomeLimits } from '../decision.ts';
import { decideEvolve, decideRegister, type StoredColumns } from './commands.ts';

export function decideMigrate(
  command: MigrateTypes,
  catalog: CatalogReader,
  storedColumns: StoredColumns,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const draftedTypes = new Map<string, TypeDefinition>();
  const typeDrafts: EntryDraft[] = [];
  const migratingCatalog: CatalogReader = {
    type: (name) => draftedTypes.get(name) ?? catalog.type(name),
    isOwn: (name) => draftedTypes.has(name) || catalog.isOwn(name),
    types: () => catalog.types(),
    get ontologyVersion() {
      return catalog.ontologyVersion + typeDrafts.length;
    },
  };
  for (const migrationStep of command.steps) {
    // One position a definition.
    const stepPosition = { position: next.position + typeDrafts.length, time: next.time + BigInt(typeDrafts.length) };
    const stepDecision =
      migrationStep.kind === 'register-type'
        ? decideRegister(migrationStep, migratingCatalog, storedColumns, context, stepPosition)
        : decideEvolve(migrationStep, migratingCatalog, storedColumns, context, stepPosition);
    for (const typeDraft of stepDecision.drafts) {
      typeDrafts.push(typeDraft);
      if (typeDraft.body.kind === 'type') draftedTypes.set(typeDraft.body.definition.name, typeDraft.body.definition);
    }
  }
  const changed = typeDrafts.length > 0;
  return {
    drafts: typeDrafts,
    outcome: {
      kind: 'migrate-types',
      accepted: typeDrafts.length,
      rejected: 0,
      errors: [],
      ids: [...draftedTypes.keys()].slice(0, outcomeLimits.idsListed),
      idsTruncated: draftedTypes.size > outcomeLimits.idsListed,
      systemFrom: changed ? next.time : 0n,
      systemFromLast: changed ? next.time + BigInt(typeDrafts.length - 1) : 0n,
      changed,
    },
  };
}
