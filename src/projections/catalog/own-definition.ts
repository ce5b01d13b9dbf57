/** Definitions as catalogs keep them: thousands in a store of many tenants, most of their properties alike. */
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';

/** By what they say, but for those that name a type: a tenant's names go with the tenant. */
const known = new Map<string, PropertyDefinition>();

/** One shape, whatever it was read from: an object that is spread from another may take a hidden class of its own. */
export function ownDefinition(
  {
    name,
    open,
    primaryKey,
    graphTriggers,
    ontologyVersion,
    guard,
    edge,
    role,
    roleColumns,
    identifier,
    identifierKinds,
    language,
  }: Omit<TypeDefinition, 'properties'>,
  properties: Iterable<readonly [string, PropertyDefinition]>,
): TypeDefinition {
  const own = { name, properties: ownProperties(properties), open, primaryKey, graphTriggers, ontologyVersion };
  const isPlain = [guard, edge, role, roleColumns, identifier, identifierKinds, language].every((each) => each === undefined);
  if (isPlain) return own;
  return {
    ...own,
    ...(guard && { guard }),
    ...(edge && { edge }),
    ...(role !== undefined && { role }),
    ...(roleColumns && { roleColumns }),
    ...(identifier && { identifier }),
    ...(identifierKinds && { identifierKinds }),
    ...(language !== undefined && { language }),
  };
}

/** A record without a prototype: a property called `constructor` is then absent unless it was declared. */
function ownProperties(properties: Iterable<readonly [string, PropertyDefinition]>): Record<string, PropertyDefinition> {
  const own: Record<string, PropertyDefinition> = Object.create(null);
  for (const [name, definition] of properties) own[name] = intern(definition);
  return own;
}

function intern(definition: PropertyDefinition): PropertyDefinition {
  if (definition.references !== undefined) return definition;
  const { type, required, masked, indexed, subject, dims } = definition;
  const text = JSON.stringify([type, required, masked, indexed, subject, dims]);
  const ownProperty = known.get(text);
  if (ownProperty) return ownProperty;
  const first = Object.freeze({ type, required, masked, indexed, subject, dims });
  known.set(text, first);
  return first;
}
