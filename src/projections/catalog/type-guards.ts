/**
 * The guards of a type, wherever its rows are read. Types fork with rows, but guards must not stay behind: a branch that was
 * forked before a guard was raised reads the same rows. So a guard holds as soon as any definition of the lineage asks for it.
 */
import type { GraphTrigger, TypeDefinition } from '../../log/entries/entry.ts';
import { edgeColumns } from './edge-columns.ts';
import { subjectProperty } from './subject-property.ts';

export interface Protection {
  /** A reader states a reason (break-glass). */
  readonly protected: boolean;
  /** A reader states the scope that he was cleared for. */
  readonly accessScope: boolean;
  /** Masked properties. */
  readonly masked: ReadonlySet<string>;
  /** Types that a property references. */
  readonly references: ReadonlyMap<string, ReadonlySet<string>>;
}

/** A type whose rows have edges, and the trigger that makes those of one link type. */
export interface EdgeSource {
  readonly definition: TypeDefinition;
  readonly triggers: readonly GraphTrigger[];
}

/**
 * The protection by all of the definitions, and by those of the types whose rows have these edges: an edge repeats cells of its
 * row, so a guard or mask of that type holds for earlier edges, too. Pure.
 */
export function protectionOf(definitions: readonly TypeDefinition[], sources: readonly EdgeSource[] = []): Protection {
  const masked = new Set<string>();
  const references = new Map<string, Set<string>>();
  for (const { properties } of definitions) {
    for (const [name, property] of Object.entries(properties)) {
      if (property.masked) masked.add(name);
      if (property.references !== undefined) references.set(name, (references.get(name) ?? new Set()).add(property.references));
    }
  }
  for (const { definition, triggers } of sources) {
    for (const { sourceField, targetField } of triggers) {
      for (const [column, field] of [
        [edgeColumns.source, sourceField],
        [edgeColumns.target, targetField],
      ] as const) {
        const property = Object.hasOwn(definition.properties, field) ? definition.properties[field] : undefined;
        if (property?.references !== undefined)
          references.set(column, (references.get(column) ?? new Set()).add(property.references));
      }
    }
    const whose = subjectProperty(definition);
    if (whose === null || !definition.properties[whose]!.masked) continue;
    for (const each of definitions) {
      const own = subjectProperty(each);
      if (own !== null) masked.add(own);
    }
  }
  const all = [...definitions, ...sources.map(({ definition }) => definition)];
  return {
    protected: all.some(({ guard }) => guard?.protected === true),
    accessScope: all.some(({ guard }) => guard?.accessScope === true),
    masked,
    references,
  };
}

/** True when a definition asks of readers what the one before it asked. Pure. */
export function guardsAlike(before: TypeDefinition | undefined, after: TypeDefinition): boolean {
  return JSON.stringify(guardTerms(before)) === JSON.stringify(guardTerms(after));
}

function guardTerms(definition: TypeDefinition | undefined): unknown {
  const entries = Object.entries(definition?.properties ?? {}).filter(
    ([, { masked, references }]) => masked || references !== undefined,
  );
  const subject = definition === undefined ? null : subjectProperty(definition);
  const edges = definition?.graphTriggers ?? [];
  return [
    definition?.guard ?? null,
    subject,
    edges,
    entries.map(([name, { masked, references }]) => [name, masked, references ?? null]),
  ];
}
