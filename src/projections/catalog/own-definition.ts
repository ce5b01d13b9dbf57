/** Definitions as catalogs keep them: thousands in a store of many tenants, most of their properties alike. */
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';

/** By what they say, but for those that name a type: a tenant's names go with the tenant. */
const internedProperties = new Map<string, PropertyDefinition>();

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
  const ownType = { name, properties: internProperties(properties), open, primaryKey, graphTriggers, ontologyVersion };
  const hasNoMeaning = [guard, edge, role, roleColumns, identifier, identifierKinds, language].every(
    (meaningMember) => meaningMember === undefined,
  );
  if (hasNoMeaning) return ownType;
  return {
    ...ownType,
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
function internProperties(properties: Iterable<readonly [string, PropertyDefinition]>): Record<string, PropertyDefinition> {
  const ownedProperties: Record<string, PropertyDefinition> = Object.create(null);
  for (const [name, definition] of properties) ownedProperties[name] = internProperty(definition);
  return ownedProperties;
}

function internProperty(propertyDefinition: PropertyDefinition): PropertyDefinition {
  if (propertyDefinition.references !== undefined) return propertyDefinition;
  const { type, required, masked, indexed, subject, dims } = propertyDefinition;
  const propertyJson = JSON.stringify([type, required, masked, indexed, subject, dims]);
  const ownProperty = internedProperties.get(propertyJson);
  if (ownProperty) return ownProperty;
  const frozenProperty = Object.freeze({ type, required, masked, indexed, subject, dims });
  internedProperties.set(propertyJson, frozenProperty);
  return frozenProperty;
}
