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
export function protectionOf(protectedTypes: readonly TypeDefinition[], edgeSources: readonly EdgeSource[] = []): Protection {
  const maskedColumns = new Set<string>();
  const referencesByColumn = new Map<string, Set<string>>();
  for (const { properties } of protectedTypes) {
    for (const [name, property] of Object.entries(properties)) {
      if (property.masked) maskedColumns.add(name);
      if (property.references !== undefined)
        referencesByColumn.set(name, (referencesByColumn.get(name) ?? new Set()).add(property.references));
    }
  }
  for (const { definition, triggers } of edgeSources) {
    for (const { sourceField, targetField } of triggers) {
      for (const [column, triggerField] of [
        [edgeColumns.source, sourceField],
        [edgeColumns.target, targetField],
      ] as const) {
        const property = Object.hasOwn(definition.properties, triggerField) ? definition.properties[triggerField] : undefined;
        if (property?.references !== undefined)
          referencesByColumn.set(column, (referencesByColumn.get(column) ?? new Set()).add(property.references));
      }
    }
    const sourceSubject = subjectProperty(definition);
    if (sourceSubject === null || !definition.properties[sourceSubject]!.masked) continue;
    for (const protectedType of protectedTypes) {
      const ownSubject = subjectProperty(protectedType);
      if (ownSubject !== null) maskedColumns.add(ownSubject);
    }
  }
  const guardedTypes = [...protectedTypes, ...edgeSources.map(({ definition }) => definition)];
  return {
    protected: guardedTypes.some(({ guard }) => guard?.protected === true),
    accessScope: guardedTypes.some(({ guard }) => guard?.accessScope === true),
    masked: maskedColumns,
    references: referencesByColumn,
  };
}

/** True when a definition asks of readers what the one before it asked. Pure. */
export function guardsAlike(earlierType: TypeDefinition | undefined, laterType: TypeDefinition): boolean {
  return JSON.stringify(guardTerms(earlierType)) === JSON.stringify(guardTerms(laterType));
}

function guardTerms(guardedType: TypeDefinition | undefined): unknown {
  const guardedProperties = Object.entries(guardedType?.properties ?? {}).filter(
    ([, { masked, references }]) => masked || references !== undefined,
  );
  const guardedSubject = guardedType === undefined ? null : subjectProperty(guardedType);
  const edgeTriggers = guardedType?.graphTriggers ?? [];
  return [
    guardedType?.guard ?? null,
    guardedSubject,
    edgeTriggers,
    guardedProperties.map(([name, { masked, references }]) => [name, masked, references ?? null]),
  ];
}
