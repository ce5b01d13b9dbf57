/**
 * The types that a caller sees, as GraphiQL and generators of code read them: a root field for each type, a filter for each, and
 * scalars for what GraphQL has none. A type or column whose name GraphQL can't write can't be asked for, and is left out.
 */
import type {
  GraphQLDirective,
  GraphQLFieldConfig,
  GraphQLFieldConfigMap,
  GraphQLInputType,
  GraphQLNamedType,
  GraphQLOutputType,
} from 'graphql';
import {
  GraphQLInputObjectType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
} from 'graphql/type/definition.js';
import { specifiedDirectives } from 'graphql/type/directives.js';
import { introspectionTypes } from 'graphql/type/introspection.js';
import { GraphQLBoolean, GraphQLFloat, GraphQLInt, GraphQLString, specifiedScalarTypes } from 'graphql/type/scalars.js';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { readableColumns } from '../binding/source-binder.ts';

/** The part of a schema that introspection reads. */
export interface SchemaView {
  readonly description: string;
  getTypeMap(): Readonly<Record<string, GraphQLNamedType>>;
  getType(name: string): GraphQLNamedType | undefined;
  getQueryType(): GraphQLObjectType;
  getMutationType(): undefined;
  getSubscriptionType(): undefined;
  getDirectives(): readonly GraphQLDirective[];
  getPossibleTypes(): readonly [];
}

const graphqlNameForm = /^(?!__)[_A-Za-z][_0-9A-Za-z]*$/;

/** Fields of a type are made when they are first asked for: a schema of a thousand types is ready in a few milliseconds. */
export function schemaOf(definitions: readonly TypeDefinition[]): SchemaView {
  const nameableTypes = definitions.filter(({ name }) => graphqlNameForm.test(name));
  const freeNames = new FreeNames([...introspectionTypes, ...specifiedScalarTypes].map(({ name }) => name));
  const rowObjects = nameableTypes.map((definition) => ({ definition, name: freeNames.free(definition.name) }));
  const schemaScalars = extraScalars(freeNames);
  const queryObject = new GraphQLObjectType({
    name: freeNames.free('Query'),
    description: 'A field for each type. A request asks for one of them, and its data is the array of rows.',
    fields: () => Object.fromEntries(queryFields),
  });
  const schemaTypes: GraphQLNamedType[] = [queryObject, schemaScalars.long, schemaScalars.json];
  const queryFields = rowObjects.map(({ definition, name }): [string, GraphQLFieldConfig<unknown, unknown>] => {
    const rowColumns = readableColumns(definition).filter((column) => graphqlNameForm.test(column.name));
    const rowObject = new GraphQLObjectType({ name, fields: () => rowFields(rowColumns, schemaScalars) });
    const whereInput = new GraphQLInputObjectType({
      name: freeNames.free(`${name}Where`),
      description: 'One equality where it is written out; all of them must hold where it is a variable.',
      fields: () => filterFields(rowColumns, schemaScalars),
    });
    schemaTypes.push(rowObject, whereInput);
    const fieldArguments = { where: { type: whereInput }, limit: { type: GraphQLInt, defaultValue: 100 } };
    return [definition.name, { type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(rowObject))), args: fieldArguments }];
  });
  return schemaViewOf(queryObject, [...schemaTypes, ...specifiedScalarTypes, ...introspectionTypes]);
}

function schemaViewOf(queryObject: GraphQLObjectType, types: readonly GraphQLNamedType[]): SchemaView {
  const typesByName = new Map(types.map((type) => [type.name, type]));
  return {
    description: 'Rows as they are believed and true now.',
    getTypeMap: () => Object.fromEntries(typesByName),
    getType: (name) => typesByName.get(name),
    getQueryType: () => queryObject,
    getMutationType: () => undefined,
    getSubscriptionType: () => undefined,
    getDirectives: () => specifiedDirectives,
    getPossibleTypes: () => [],
  };
}

interface ExtraScalars {
  readonly long: GraphQLScalarType;
  readonly json: GraphQLScalarType;
}

/** Types may share names with scalars, and with generated types. */
function extraScalars(freeNames: FreeNames): ExtraScalars {
  return {
    long: new GraphQLScalarType({
      name: freeNames.free('Long'),
      description: 'A whole number of 64 bits; instants are nanoseconds since 1970 UTC.',
    }),
    json: new GraphQLScalarType({ name: freeNames.free('JSON'), description: 'A JSON value, as it was given.' }),
  };
}

interface ReadableColumn {
  readonly name: string;
  readonly type: ColumnType;
}

function rowFields(rowColumns: readonly ReadableColumn[], scalars: ExtraScalars): GraphQLFieldConfigMap<unknown, unknown> {
  const outputTypes: Readonly<Record<ColumnType, GraphQLOutputType>> = {
    string: GraphQLString,
    integer: scalars.long,
    timestamp: scalars.long,
    number: GraphQLFloat,
    boolean: GraphQLBoolean,
    json: scalars.json,
    vector: new GraphQLList(new GraphQLNonNull(GraphQLFloat)),
  };
  return Object.fromEntries(rowColumns.map(({ name, type }) => [name, { type: outputTypes[type] }]));
}

function filterFields(rowColumns: readonly ReadableColumn[], scalars: ExtraScalars): Record<string, { type: GraphQLInputType }> {
  const inputTypes: Readonly<Record<ColumnType, GraphQLInputType | null>> = {
    string: GraphQLString,
    integer: scalars.long,
    timestamp: scalars.long,
    number: GraphQLFloat,
    boolean: GraphQLBoolean,
    json: null,
    vector: null,
  };
  return Object.fromEntries(
    rowColumns.flatMap(({ name, type }): [string, { type: GraphQLInputType }][] => {
      const filterInput = inputTypes[type];
      return filterInput === null ? [] : [[name, { type: filterInput }]];
    }),
  );
}

class FreeNames {
  readonly #takenNames: Set<string>;

  constructor(taken: readonly string[]) {
    this.#takenNames = new Set(taken);
  }

  /** The name, or a variant of it that no other type has. */
  free(name: string): string {
    let freeName = name;
    while (this.#takenNames.has(freeName)) freeName += '_';
    this.#takenNames.add(freeName);
    return freeName;
  }
}
