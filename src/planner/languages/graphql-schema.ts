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

const writable = /^(?!__)[_A-Za-z][_0-9A-Za-z]*$/;

/** Fields of a type are made when they are first asked for: a schema of a thousand types is ready in a few milliseconds. */
export function schemaOf(definitions: readonly TypeDefinition[]): SchemaView {
  const shown = definitions.filter(({ name }) => writable.test(name));
  const names = new Names([...introspectionTypes, ...specifiedScalarTypes].map(({ name }) => name));
  const objects = shown.map((definition) => ({ definition, name: names.free(definition.name) }));
  const scalars = scalarsOf(names);
  const query = new GraphQLObjectType({
    name: names.free('Query'),
    description: 'A field for each type. A request asks for one of them, and its data is the array of rows.',
    fields: () => Object.fromEntries(fields),
  });
  const types: GraphQLNamedType[] = [query, scalars.long, scalars.json];
  const fields = objects.map(({ definition, name }): [string, GraphQLFieldConfig<unknown, unknown>] => {
    const columns = readableColumns(definition).filter((column) => writable.test(column.name));
    const row = new GraphQLObjectType({ name, fields: () => rowFields(columns, scalars) });
    const where = new GraphQLInputObjectType({
      name: names.free(`${name}Where`),
      description: 'One equality where it is written out; all of them must hold where it is a variable.',
      fields: () => filterFields(columns, scalars),
    });
    types.push(row, where);
    const args = { where: { type: where }, limit: { type: GraphQLInt, defaultValue: 100 } };
    return [definition.name, { type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(row))), args }];
  });
  return viewOf(query, [...types, ...specifiedScalarTypes, ...introspectionTypes]);
}

function viewOf(query: GraphQLObjectType, types: readonly GraphQLNamedType[]): SchemaView {
  const byName = new Map(types.map((type) => [type.name, type]));
  return {
    description: 'Rows as they are believed and true now.',
    getTypeMap: () => Object.fromEntries(byName),
    getType: (name) => byName.get(name),
    getQueryType: () => query,
    getMutationType: () => undefined,
    getSubscriptionType: () => undefined,
    getDirectives: () => specifiedDirectives,
    getPossibleTypes: () => [],
  };
}

interface Scalars {
  readonly long: GraphQLScalarType;
  readonly json: GraphQLScalarType;
}

/** Types may share names with scalars, and with generated types. */
function scalarsOf(names: Names): Scalars {
  return {
    long: new GraphQLScalarType({
      name: names.free('Long'),
      description: 'A whole number of 64 bits; instants are nanoseconds since 1970 UTC.',
    }),
    json: new GraphQLScalarType({ name: names.free('JSON'), description: 'A JSON value, as it was given.' }),
  };
}

interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

function rowFields(columns: readonly Column[], scalars: Scalars): GraphQLFieldConfigMap<unknown, unknown> {
  const shown: Readonly<Record<ColumnType, GraphQLOutputType>> = {
    string: GraphQLString,
    integer: scalars.long,
    timestamp: scalars.long,
    number: GraphQLFloat,
    boolean: GraphQLBoolean,
    json: scalars.json,
    vector: new GraphQLList(new GraphQLNonNull(GraphQLFloat)),
  };
  return Object.fromEntries(columns.map(({ name, type }) => [name, { type: shown[type] }]));
}

function filterFields(columns: readonly Column[], scalars: Scalars): Record<string, { type: GraphQLInputType }> {
  const compared: Readonly<Record<ColumnType, GraphQLInputType | null>> = {
    string: GraphQLString,
    integer: scalars.long,
    timestamp: scalars.long,
    number: GraphQLFloat,
    boolean: GraphQLBoolean,
    json: null,
    vector: null,
  };
  return Object.fromEntries(
    columns.flatMap(({ name, type }): [string, { type: GraphQLInputType }][] => {
      const input = compared[type];
      return input === null ? [] : [[name, { type: input }]];
    }),
  );
}

class Names {
  readonly #taken: Set<string>;

  constructor(taken: readonly string[]) {
    this.#taken = new Set(taken);
  }

  /** The name, or a variant of it that no other type has. */
  free(name: string): string {
    let free = name;
    while (this.#taken.has(free)) free += '_';
    this.#taken.add(free);
    return free;
  }
}
