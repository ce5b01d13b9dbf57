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
  stored: StoredColumns,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const draftedTypes = new Map<string, TypeDefinition>();
  const drafts: EntryDraft[] = [];
  const growing: CatalogReader = {
    type: (name) => draftedTypes.get(name) ?? catalog.type(name),
    isOwn: (name) => draftedTypes.has(name) || catalog.isOwn(name),
    types: () => catalog.types(),
    get ontologyVersion() {
      return catalog.ontologyVersion + drafts.length;
    },
  };
  for (const step of command.steps) {
    // One position a definition.
    const at = { position: next.position + drafts.length, time: next.time + BigInt(drafts.length) };
    const decision =
      step.kind === 'register-type'
        ? decideRegister(step, growing, stored, context, at)
        : decideEvolve(step, growing, stored, context, at);
    for (const draft of decision.drafts) {
      drafts.push(draft);
      if (draft.body.kind === 'type') draftedTypes.set(draft.body.definition.name, draft.body.definition);
    }
  }
  const changed = drafts.length > 0;
  return {
    drafts,
    outcome: {
      kind: 'migrate-types',
      accepted: drafts.length,
      rejected: 0,
      errors: [],
      ids: [...draftedTypes.keys()].slice(0, outcomeLimits.idsListed),
      idsTruncated: draftedTypes.size > outcomeLimits.idsListed,
      systemFrom: changed ? next.time : 0n,
      systemFromLast: changed ? next.time + BigInt(drafts.length - 1) : 0n,
      changed,
    },
  };
}
