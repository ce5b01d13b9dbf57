/**
 * Answers a document about the schema, piece by piece: the library's own definitions of `__Schema` and `__Type` say what a field
 * is, and here is only how a selection is walked. It works for milliseconds at a time, however many types there are.
 */
import type {
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLOutputType,
  GraphQLResolveInfo,
  OperationDefinitionNode,
  SelectionSetNode,
} from 'graphql';
import { getArgumentValues, getDirectiveValues, getVariableValues } from 'graphql/execution/values.js';
import {
  getNamedType,
  getNullableType,
  GraphQLObjectType,
  isLeafType,
  isListType,
  isObjectType,
} from 'graphql/type/definition.js';
import { GraphQLIncludeDirective, GraphQLSkipDirective } from 'graphql/type/directives.js';
import { SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef } from 'graphql/type/introspection.js';
import { GraphQLString } from 'graphql/type/scalars.js';
import { GraphQLSchema } from 'graphql/type/schema.js';
import { validate } from 'graphql/validation/validate.js';
import { ServiceError } from '../../errors.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { SchemaView } from './graphql-schema.ts';

/** Most fields of a document after its fragments are expanded: common clients ask for some 300. */
const introspectionFieldsMax = 1_000;
const introspectionDepthMax = 32;
const documentAliasesMax = 16;

/** A schema with any types: whether a document about the schema is valid does not depend on them. */
const placeholderSchema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { any: { type: GraphQLString } } }),
});
const rootMetaFields = new Map([SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].map((field) => [field.name, field]));

export interface SchemaDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Checks at once, and then gives the JSON text of `data`. Throws REL_PARSE for an invalid document, REL_INVALID for one too large. */
export function introspect(schemaQuestion: SchemaDocument): (schema: SchemaView) => Generator<string, void> {
  const { document, operation } = schemaQuestion;
  const documentFragments = new Map(
    document.definitions.flatMap((documentDefinition) =>
      documentDefinition.kind === 'FragmentDefinition' ? [[documentDefinition.name.value, documentDefinition] as const] : [],
    ),
  );
  new DocumentExtent(documentFragments).check(operation.selectionSet);
  const [validationError] = validate(placeholderSchema, document, undefined, { maxErrors: 1 });
  if (validationError) {
    const [sourceLocation] = validationError.locations ?? [];
    throw sourceLocation
      ? errorAt('REL_PARSE', validationError.message, sourceLocation)
      : new ServiceError('REL_PARSE', validationError.message);
  }
  const variableValues = getVariableValues(placeholderSchema, operation.variableDefinitions ?? [], schemaQuestion.variables, {
    maxErrors: 1,
  });
  if (variableValues.errors) throw new ServiceError('REL_INVALID', variableValues.errors[0]!.message);
  return (schema) => new SchemaWalk(schema, documentFragments, variableValues.coerced).root(operation.selectionSet);
}

/** How large a document is, fragments unfolded: one may double with every line. */
class DocumentExtent {
  readonly #documentFragments: ReadonlyMap<string, FragmentDefinitionNode>;
  #fieldCount = 0;
  #aliasCount = 0;

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#documentFragments = fragments;
  }

  check({ selections }: SelectionSetNode, selectionDepth = 1): void {
    if (selectionDepth > introspectionDepthMax)
      throw new ServiceError('REL_INVALID', `a document nests at most ${introspectionDepthMax} levels`);
    for (const selection of selections) {
      if (++this.#fieldCount > introspectionFieldsMax) {
        throw new ServiceError(
          'REL_INVALID',
          `a document asks for at most ${introspectionFieldsMax} fields, those of fragments included`,
        );
      }
      if (selection.kind === 'FragmentSpread') {
        const spreadFragment = this.#documentFragments.get(selection.name.value);
        if (spreadFragment) this.check(spreadFragment.selectionSet, selectionDepth + 1);
        continue;
      }
      if (selection.kind === 'Field' && selection.alias && ++this.#aliasCount > documentAliasesMax) {
        throw new ServiceError('REL_INVALID', `a document has at most ${documentAliasesMax} aliases`);
      }
      if (selection.selectionSet) this.check(selection.selectionSet, selectionDepth + 1);
    }
  }
}

/** The fields of one name in an answer: a document may write it several times. */
type CollectedFields = Map<string, FieldNode[]>;

class SchemaWalk {
  /** The part of the resolve info that introspection reads. */
  readonly #resolveInfo: GraphQLResolveInfo;
  readonly #documentFragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #queryVariables: Record<string, unknown>;

  constructor(schema: SchemaView, fragments: ReadonlyMap<string, FragmentDefinitionNode>, variables: Record<string, unknown>) {
    this.#documentFragments = fragments;
    this.#queryVariables = variables;
    this.#resolveInfo = { schema, parentType: schema.getQueryType() } as unknown as GraphQLResolveInfo;
  }

  root(selectionSet: SelectionSetNode): Generator<string, void> {
    return this.#writeObject(this.#collectFields([selectionSet]), (name) => rootMetaFields.get(name)!, undefined);
  }

  *#writeObject(
    collectedFields: CollectedFields,
    definitionOf: (name: string) => typeof SchemaMetaFieldDef,
    schemaSource: unknown,
  ): Generator<string, void> {
    let separator = '{';
    for (const [responseKey, fieldNodes] of collectedFields) {
      yield `${separator}${JSON.stringify(responseKey)}:`;
      separator = ',';
      const [firstFieldNode] = fieldNodes;
      const fieldDefinition = definitionOf(firstFieldNode!.name.value);
      const fieldArguments = getArgumentValues(fieldDefinition, firstFieldNode!, this.#queryVariables);
      const resolvedValue: unknown = fieldDefinition.resolve!(schemaSource, fieldArguments, undefined, this.#resolveInfo);
      yield* this.#writeValue(fieldDefinition.type, resolvedValue, fieldNodes);
    }
    yield separator === '{' ? '{}' : '}';
  }

  *#writeValue(declared: GraphQLOutputType, schemaValue: unknown, fieldNodes: readonly FieldNode[]): Generator<string, void> {
    const nullableType = getNullableType(declared);
    if (schemaValue === null || schemaValue === undefined) {
      yield 'null';
    } else if (isListType(nullableType)) {
      let separator = '[';
      for (const listItem of schemaValue as Iterable<unknown>) {
        yield separator;
        separator = ',';
        yield* this.#writeValue(nullableType.ofType as GraphQLOutputType, listItem, fieldNodes);
      }
      yield separator === '[' ? '[]' : ']';
    } else if (isLeafType(nullableType)) {
      yield JSON.stringify(nullableType.serialize(schemaValue));
    } else {
      const namedType = getNamedType(nullableType);
      const typeFields = isObjectType(namedType) ? namedType.getFields() : {};
      const subselection = this.#collectFields(fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []));
      const definitionOf = (name: string): typeof SchemaMetaFieldDef =>
        name === TypeNameMetaFieldDef.name ? { ...TypeNameMetaFieldDef, resolve: () => namedType.name } : typeFields[name]!;
      yield* this.#writeObject(subselection, definitionOf, schemaValue);
    }
  }

  #collectFields(selectionSets: readonly SelectionSetNode[], collectedFields: CollectedFields = new Map()): CollectedFields {
    for (const { selections } of selectionSets) {
      for (const selection of selections) {
        if (getDirectiveValues(GraphQLSkipDirective, selection, this.#queryVariables)?.['if'] === true) continue;
        if (getDirectiveValues(GraphQLIncludeDirective, selection, this.#queryVariables)?.['if'] === false) continue;
        if (selection.kind === 'Field') {
          const responseKey = selection.alias?.value ?? selection.name.value;
          const knownFields = collectedFields.get(responseKey);
          if (knownFields) knownFields.push(selection);
          else collectedFields.set(responseKey, [selection]);
        } else {
          // A valid document spreads fragments of the very type only: none of these has another.
          const spreadFragment =
            selection.kind === 'InlineFragment' ? selection : this.#documentFragments.get(selection.name.value)!;
          this.#collectFields([spreadFragment.selectionSet], collectedFields);
        }
      }
    }
    return collectedFields;
  }
}
