/**
 * What guards the rows of a type wherever they are read. Types fork with rows, and what protects rows must not stay behind:
 * a branch that was forked before a guard was raised reads the same rows. So what any definition of a lineage asks for, holds.
 */
import type { TypeDefinition } from '../../log/entry.ts';

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

/** By any of the definitions. Pure. */
export function protectionOf(definitions: readonly TypeDefinition[]): Protection {
  const masked = new Set<string>();
  const references = new Map<string, Set<string>>();
  for (const { properties } of definitions) {
    for (const [name, property] of Object.entries(properties)) {
      if (property.masked) masked.add(name);
      if (property.references !== undefined) references.set(name, (references.get(name) ?? new Set()).add(property.references));
    }
  }
  return {
    protected: definitions.some(({ guard }) => guard?.protected === true),
    accessScope: definitions.some(({ guard }) => guard?.accessScope === true),
    masked,
    references,
  };
}

/** True when a definition asks of readers what the one before it asked. Pure. */
export function guardsAlike(before: TypeDefinition | undefined, after: TypeDefinition): boolean {
  return JSON.stringify(asked(before)) === JSON.stringify(asked(after));
}

function asked(definition: TypeDefinition | undefined): unknown {
  const entries = Object.entries(definition?.properties ?? {}).filter(
    ([, { masked, references }]) => masked || references !== undefined,
  );
  return [definition?.guard ?? null, entries.map(([name, { masked, references }]) => [name, masked, references ?? null])];
}
