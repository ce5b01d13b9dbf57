/**
 * The library of GraphQL, loaded with the first document: its hundred modules would block the event loop if loaded at once. They
 * come in portions, dependencies first.
 */
type LibraryPortions = readonly (() => Promise<unknown>)[];

const readingPortions: LibraryPortions = [
  () => import('graphql/error/GraphQLError.js'),
  () => import('graphql/language/visitor.js'),
  () => import('graphql/language/parser.js'),
  () => import('graphql/utilities/separateOperations.js'),
];

const schemaPortions: LibraryPortions = [
  () => import('graphql/type/definition.js'),
  () => import('graphql/type/directives.js'),
  () => import('graphql/type/schema.js'),
  () => import('graphql/type/introspection.js'),
  () => import('graphql/execution/values.js'),
  () => import('graphql/utilities/TypeInfo.js'),
  () => import('graphql/type/validate.js'),
  () => import('graphql/validation/rules/FieldsOnCorrectTypeRule.js'),
  () => import('graphql/validation/rules/OverlappingFieldsCanBeMergedRule.js'),
  () => import('graphql/validation/specifiedRules.js'),
  () => import('graphql/validation/validate.js'),
];

export async function loadReading(yieldTurn: () => Promise<void>) {
  await loadPortions(readingPortions, yieldTurn);
  return import('./graphql.ts');
}

export async function loadSchemas(yieldTurn: () => Promise<void>) {
  await loadPortions(schemaPortions, yieldTurn);
  return { ...(await import('./graphql-introspection.ts')), ...(await import('./graphql-schema.ts')) };
}

const loadedPortions = new WeakSet<LibraryPortions>();

async function loadPortions(libraryPortions: LibraryPortions, yieldTurn: () => Promise<void>): Promise<void> {
  if (loadedPortions.has(libraryPortions)) return;
  for (const importPortion of libraryPortions) {
    await importPortion();
    await yieldTurn();
  }
  loadedPortions.add(libraryPortions);
}
