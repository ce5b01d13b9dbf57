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
const fieldsMax = 1_000;
const depthMax = 32;
const aliasesMax = 16;

/** A schema with any types: whether a document about the schema is valid does not depend on them. */
const anySchema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { any: { type: GraphQLString } } }),
});
const rootFields = new Map([SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].map((field) => [field.name, field]));

export interface SchemaDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Checks at once, and then gives the JSON text of `data`. Throws REL_PARSE for an invalid document, REL_INVALID for one too large. */
export function introspect(question: SchemaDocument): (schema: SchemaView) => Generator<string, void> {
  const { document, operation } = question;
  const fragments = new Map(
    document.definitions.flatMap((each) => (each.kind === 'FragmentDefinition' ? [[each.name.value, each] as const] : [])),
  );
  new Extent(fragments).check(operation.selectionSet);
  const [error] = validate(anySchema, document, undefined, { maxErrors: 1 });
  if (error) {
    const [sourceLocation] = error.locations ?? [];
    throw sourceLocation ? errorAt('REL_PARSE', error.message, sourceLocation) : new ServiceError('REL_PARSE', error.message);
  }
  const given = getVariableValues(anySchema, operation.variableDefinitions ?? [], question.variables, { maxErrors: 1 });
  if (given.errors) throw new ServiceError('REL_INVALID', given.errors[0]!.message);
  return (schema) => new Walk(schema, fragments, given.coerced).root(operation.selectionSet);
}

/** How large a document is, fragments unfolded: one may double with every line. */
class Extent {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  #fields = 0;
  #aliases = 0;

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#fragments = fragments;
  }

  check({ selections }: SelectionSetNode, depth = 1): void {
    if (depth > depthMax) throw new ServiceError('REL_INVALID', `a document nests at most ${depthMax} levels`);
    for (const each of selections) {
      if (++this.#fields > fieldsMax) {
        throw new ServiceError('REL_INVALID', `a document asks for at most ${fieldsMax} fields, those of fragments included`);
      }
      if (each.kind === 'FragmentSpread') {
        const fragment = this.#fragments.get(each.name.value);
        if (fragment) this.check(fragment.selectionSet, depth + 1);
        continue;
      }
      if (each.kind === 'Field' && each.alias && ++this.#aliases > aliasesMax) {
        throw new ServiceError('REL_INVALID', `a document has at most ${aliasesMax} aliases`);
      }
      if (each.selectionSet) this.check(each.selectionSet, depth + 1);
    }
  }
}

/** The fields of one name in an answer: a document may write it several times. */
type Collected = Map<string, FieldNode[]>;

class Walk {
  /** The part of the resolve info that introspection reads. */
  readonly #info: GraphQLResolveInfo;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: Record<string, unknown>;

  constructor(schema: SchemaView, fragments: ReadonlyMap<string, FragmentDefinitionNode>, variables: Record<string, unknown>) {
    this.#fragments = fragments;
    this.#variables = variables;
    this.#info = { schema, parentType: schema.getQueryType() } as unknown as GraphQLResolveInfo;
  }

  root(selectionSet: SelectionSetNode): Generator<string, void> {
    return this.#object(this.#collect([selectionSet]), (name) => rootFields.get(name)!, undefined);
  }

  *#object(
    fields: Collected,
    definitionOf: (name: string) => typeof SchemaMetaFieldDef,
    source: unknown,
  ): Generator<string, void> {
    let between = '{';
    for (const [key, nodes] of fields) {
      yield `${between}${JSON.stringify(key)}:`;
      between = ',';
      const [node] = nodes;
      const definition = definitionOf(node!.name.value);
      const given = getArgumentValues(definition, node!, this.#variables);
      const value: unknown = definition.resolve!(source, given, undefined, this.#info);
      yield* this.#value(definition.type, value, nodes);
    }
    yield between === '{' ? '{}' : '}';
  }

  *#value(declared: GraphQLOutputType, value: unknown, nodes: readonly FieldNode[]): Generator<string, void> {
    const type = getNullableType(declared);
    if (value === null || value === undefined) {
      yield 'null';
    } else if (isListType(type)) {
      let between = '[';
      for (const item of value as Iterable<unknown>) {
        yield between;
        between = ',';
        yield* this.#value(type.ofType as GraphQLOutputType, item, nodes);
      }
      yield between === '[' ? '[]' : ']';
    } else if (isLeafType(type)) {
      yield JSON.stringify(type.serialize(value));
    } else {
      const named = getNamedType(type);
      const fields = isObjectType(named) ? named.getFields() : {};
      const collected = this.#collect(nodes.flatMap(({ selectionSet }) => selectionSet ?? []));
      const definitionOf = (name: string): typeof SchemaMetaFieldDef =>
        name === TypeNameMetaFieldDef.name ? { ...TypeNameMetaFieldDef, resolve: () => named.name } : fields[name]!;
      yield* this.#object(collected, definitionOf, value);
    }
  }

  #collect(sets: readonly SelectionSetNode[], into: Collected = new Map()): Collected {
    for (const { selections } of sets) {
      for (const each of selections) {
        if (getDirectiveValues(GraphQLSkipDirective, each, this.#variables)?.['if'] === true) continue;
        if (getDirectiveValues(GraphQLIncludeDirective, each, this.#variables)?.['if'] === false) continue;
        if (each.kind === 'Field') {
          const key = each.alias?.value ?? each.name.value;
          const known = into.get(key);
          if (known) known.push(each);
          else into.set(key, [each]);
        } else {
          // A valid document spreads fragments of the very type only: none of these has another.
          const fragment = each.kind === 'InlineFragment' ? each : this.#fragments.get(each.name.value)!;
          this.#collect([fragment.selectionSet], into);
        }
      }
    }
    return into;
  }
}
