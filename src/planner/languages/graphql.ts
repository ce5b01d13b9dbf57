/**
 * A GraphQL document to a statement: one root field is a type, its selection the columns, `where` and `limit` the rest. Source:
 * specification, "GraphQL". Values, written or from variables, become parameters; no text is made of them.
 *
 *   query ($city: String) { Person(where: { city: $city }, limit: 5) { name age } }
 *
 * A document about the schema alone (`__schema`, `__type`, `__typename`) is handed on as it is: `graphql-introspection.ts`.
 */
import type {
  ArgumentNode,
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  ObjectValueNode,
  OperationDefinitionNode,
  SelectionNode,
  ValueNode,
  VariableNode,
} from 'graphql';
import { GraphQLError } from 'graphql/error/GraphQLError.js';
import { parse } from 'graphql/language/parser.js';
import { separateOperations } from 'graphql/utilities/separateOperations.js';
import { didYouMean, ServiceError } from '../../errors.ts';
import { checkText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Literal, ParsedQuery, Location, ProjectionItem, Slot } from '../syntax/statement.ts';
import { allOf, columnOf, equal, queryOf, selectOf } from './tree-builders.ts';

export interface GraphqlRequest {
  readonly query: string;
  readonly operationName: string | null;
  /** JSON; integers that a double would change are bigints. */
  readonly variables: Readonly<Record<string, unknown>>;
}

export type GraphqlDocument =
  | { readonly kind: 'rows'; readonly type: string; readonly question: ParsedQuery }
  | { readonly kind: 'schema'; readonly document: DocumentNode; readonly operation: OperationDefinitionNode };

/** The parser works in one turn: documents are bounded before it and in it. */
const charactersMax = 1 << 18;
const tokensMax = 10_000;
/** Source: specification, "Limits". */
const limitByDefault = 100n;

const schemaFields: ReadonlySet<string> = new Set(['__schema', '__type', '__typename']);

/** Throws REL_PARSE for syntax beyond the language or the supported subset, REL_READ_ONLY for mutations, else REL_INVALID. */
export function readGraphql(request: GraphqlRequest, rowsMax: number): GraphqlDocument {
  const document = parseDocument(request.query);
  const operation = operationOf(document, request.operationName);
  const fragments = document.definitions.filter((each) => each.kind === 'FragmentDefinition');
  if (isAboutSchema(operation, fragments)) {
    // Other operations of the document may hold what introspection does not know.
    const own = separateOperations(document)[operation.name?.value ?? '']!;
    return { kind: 'schema', document: own, operation };
  }
  const [fragment] = fragments;
  // Another operation may use the fragment.
  const isAlone = document.definitions.length === fragments.length + 1;
  if (fragment && isAlone)
    throw errorAt('REL_PARSE', 'fragments are not supported, but in questions about the schema', locationOf(fragment));
  return { kind: 'rows', ...new StatementMaker(request.variables, BigInt(rowsMax)).make(operation) };
}

function parseDocument(text: string): DocumentNode {
  checkText(text, 'the document');
  if (text.length > charactersMax) throw new ServiceError('REL_PARSE', `a document has at most ${charactersMax} characters`);
  try {
    return parse(text, { maxTokens: tokensMax });
  } catch (error) {
    if (error instanceof RangeError) throw new ServiceError('REL_PARSE', 'the document nests too deeply');
    if (!(error instanceof GraphQLError)) throw error;
    const [sourceLocation] = error.locations ?? [];
    const detail = error.message.replace(/^Syntax Error: /, '');
    throw sourceLocation ? errorAt('REL_PARSE', detail, sourceLocation) : new ServiceError('REL_PARSE', detail);
  }
}

/** Source: GraphQL, "Executing Requests", GetOperation, and the rules on names of operations. */
function operationOf({ definitions }: DocumentNode, name: string | null): OperationDefinitionNode {
  const operations: OperationDefinitionNode[] = [];
  for (const each of definitions) {
    if (each.kind === 'OperationDefinition') operations.push(each);
    else if (each.kind !== 'FragmentDefinition')
      throw errorAt('REL_PARSE', 'a document holds no definitions of types', locationOf(each));
  }
  const names = operations.flatMap((each) => each.name?.value ?? []);
  const nameless = operations.find((each) => each.name === undefined);
  if (nameless && operations.length > 1)
    throw errorAt('REL_INVALID', 'each of several operations needs a name', locationOf(nameless));
  const again = operations.find((each, i) => each.name !== undefined && names.indexOf(each.name.value) < i);
  if (again) throw errorAt('REL_INVALID', `two operations are called ${again.name!.value}`, locationOf(again));
  const [first, second] = operations;
  if (first === undefined) throw new ServiceError('REL_PARSE', 'the document holds no query');
  if (name === null && second) {
    throw errorAt('REL_INVALID', `operationName says which of several operations: ${names.join(', ')}`, locationOf(second));
  }
  const operation = name === null ? first : operations.find((each) => each.name?.value === name);
  if (operation === undefined) {
    const known = didYouMean(name!, names);
    throw new ServiceError('REL_INVALID', `operationName names no operation of the document${known}`);
  }
  if (operation.operation === 'mutation') {
    throw errorAt('REL_READ_ONLY', 'mutations are not supported: write by POST /ingest', locationOf(operation));
  }
  if (operation.operation === 'subscription') {
    throw errorAt('REL_PARSE', 'subscriptions are not supported: WATCH of POST /query follows rows', locationOf(operation));
  }
  return operation;
}

/** Whether all root fields, those of fragments included, are about the schema. */
function isAboutSchema({ selectionSet }: OperationDefinitionNode, definitions: readonly FragmentDefinitionNode[]): boolean {
  const fragments = new Map(definitions.map((each) => [each.name.value, each]));
  const open: SelectionNode[] = [...selectionSet.selections];
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    if (each.kind === 'Field') {
      if (!schemaFields.has(each.name.value)) return false;
    } else if (each.kind === 'InlineFragment') {
      open.push(...each.selectionSet.selections);
    } else {
      const fragment = fragments.get(each.name.value);
      // Each one once: a fragment may name itself.
      fragments.delete(each.name.value);
      if (fragment) open.push(...fragment.selectionSet.selections);
    }
  }
  return true;
}

class StatementMaker {
  readonly #variables: GraphqlRequest['variables'];
  readonly #rowsMax: bigint;
  readonly #parameters: Literal[] = [];
  readonly #locations: Location[] = [];

  constructor(variables: GraphqlRequest['variables'], rowsMax: bigint) {
    this.#variables = variables;
    this.#rowsMax = rowsMax;
  }

  make({ selectionSet, directives }: OperationDefinitionNode): { readonly type: string; readonly question: ParsedQuery } {
    refuseDirectives(directives);
    const [root, second] = selectionSet.selections.map(plainField);
    if (second) throw errorAt('REL_INVALID', 'a request has one root field: ask for each type by itself', locationOf(second));
    const location = locationOf(root!);
    const type = root!.name.value;
    const { where, limit } = argumentsOf(root!);
    const condition = where ? this.#where(where.value) : { all: [], text: '' };
    const most = this.#limit(limit?.value, location);
    const projection = this.#projection(root!, type);
    const from = { kind: 'table', name: type, alias: null, location } as const;
    const body = selectOf({ projection: projection.items, from, where: allOf(condition.all), location });
    const question: ParsedQuery = {
      language: 'graphql',
      template: `{ ${type}(${condition.text}limit: ?i) { ${projection.text} } }`,
      statement: { kind: 'query', purpose: null, query: queryOf(body, most), withProvenance: false },
      parameters: this.#parameters,
      locationOf: (slot) => this.#locations[slot]!,
    };
    return { type, question };
  }

  #projection(root: FieldNode, type: string): { readonly items: readonly ProjectionItem[]; readonly text: string } {
    const fields = root.selectionSet?.selections;
    if (!fields) throw errorAt('REL_INVALID', `select its fields: ${type} { … }`, locationOf(root));
    const items = new Map<string, ProjectionItem>();
    for (const each of fields.map(plainField)) {
      const [name, location] = [each.name.value, locationOf(each)];
      const [argument] = each.arguments ?? [];
      if (argument) throw errorAt('REL_INVALID', `field ${name} takes no arguments`, locationOf(argument));
      if (each.selectionSet)
        throw errorAt('REL_INVALID', `field ${name} has no fields of its own`, locationOf(each.selectionSet));
      // Clients ask every object for its type.
      const isType = name === '__typename';
      const expression: Expression = isType ? this.#literal(type, location) : columnOf(name, location);
      items.set(name, { kind: 'expression', expression, alias: isType ? name : null, location });
    }
    return { items: [...items.values()], text: [...items.keys()].join(' ') };
  }

  /** Source: specification, "GraphQL": one equality, or an object from a variable, of which all must hold. */
  #where(node: ValueNode): { readonly all: readonly Expression[]; readonly text: string } {
    const equalities = node.kind === 'Variable' ? this.#object(node) : [this.#only(node)];
    const all = equalities.map(([name, value, location]) => equal(columnOf(name, location), this.#literal(value, location)));
    const text = equalities.map(([name, value]) => `${name}: ?${letters[typeof value as keyof typeof letters]}`);
    return { all, text: `where: { ${text.join(', ')} }, ` };
  }

  #only(node: ValueNode): Equality {
    if (node.kind !== 'ObjectValue')
      throw errorAt('REL_INVALID', 'where takes an object: where: { field: value }', locationOf(node));
    const [field, second] = (node satisfies ObjectValueNode).fields;
    if (!field) throw errorAt('REL_INVALID', 'where names a field: where: { field: value }', locationOf(node));
    if (second) {
      throw errorAt('REL_INVALID', 'where takes one equality; several come as an object in a variable', locationOf(second));
    }
    return [field.name.value, this.#value(field.value), locationOf(field.value)];
  }

  #object(node: VariableNode): readonly Equality[] {
    const [name, location] = [node.name.value, locationOf(node)];
    const object = this.#variable(node);
    if (typeof object !== 'object' || Array.isArray(object)) {
      throw errorAt('REL_INVALID', `$${name} is a filter: an object of fields and values`, location);
    }
    return Object.entries(object as object).map(([field, value]): Equality => {
      if (!/^[A-Za-z0-9_]+$/.test(field)) {
        throw errorAt('REL_INVALID', `$${name} names a field by other than letters, digits and underscores`, location);
      }
      return [field, scalar(value, `$${name}.${field}`, location), location];
    });
  }

  /** Rows beyond the most that an answer may have are left out, not refused. */
  #limit(node: ValueNode | undefined, root: Location): Slot {
    const location = node ? locationOf(node) : root;
    const limit = node ? this.#value(node) : limitByDefault;
    if (typeof limit !== 'bigint' || limit < 0n)
      throw errorAt('REL_INVALID', 'limit takes a whole number of at least 0', location);
    return this.#slot(limit < this.#rowsMax ? limit : this.#rowsMax, location);
  }

  #value(node: ValueNode): Value {
    const location = locationOf(node);
    switch (node.kind) {
      case 'Variable':
        return scalar(this.#variable(node), `$${node.name.value}`, location);
      case 'IntValue':
        return integer(BigInt(node.value), 'a number', location);
      case 'FloatValue':
        return scalar(Number(node.value), 'a number', location);
      case 'StringValue':
      case 'BooleanValue':
        return node.value;
      case 'NullValue':
        throw errorAt('REL_INVALID', 'null equals nothing', location);
      case 'EnumValue':
        throw errorAt('REL_INVALID', `texts stand in double quotes: "${node.value}"`, location);
      default:
        throw errorAt('REL_INVALID', 'a text, a number or a boolean is expected here', location);
    }
  }

  /** Definitions of variables are not read, so neither are their types and defaults. */
  #variable(node: VariableNode): NonNullable<unknown> {
    const name = node.name.value;
    const value = Object.hasOwn(this.#variables, name) ? this.#variables[name] : undefined;
    if (value !== undefined && value !== null) return value;
    throw errorAt('REL_INVALID', `variables has no value for $${name}: each that is used needs one`, locationOf(node));
  }

  #literal(value: Value, location: Location): Expression {
    return { kind: 'literal', ...this.#slot(value, location) };
  }

  #slot(value: Value, location: Location): Slot {
    this.#locations.push(location);
    return { slot: this.#parameters.push(value) - 1, location };
  }
}

type Value = Exclude<Literal, null>;
type Equality = readonly [field: string, value: Value, location: Location];

const letters = { string: 's', bigint: 'i', number: 'n', boolean: 'b' } as const;

function plainField(node: SelectionNode): FieldNode {
  if (node.kind !== 'Field')
    throw errorAt('REL_PARSE', 'fragments are not supported, but in questions about the schema', locationOf(node));
  refuseDirectives(node.directives);
  if (node.alias)
    throw errorAt('REL_INVALID', 'aliases are not supported: a field has the name of its column', locationOf(node.alias));
  return node;
}

function refuseDirectives(directives: FieldNode['directives']): void {
  const [directive] = directives ?? [];
  if (directive) throw errorAt('REL_PARSE', 'directives are not supported', locationOf(directive));
}

function argumentsOf(root: FieldNode): { readonly where?: ArgumentNode; readonly limit?: ArgumentNode } {
  const filterArguments: { where?: ArgumentNode; limit?: ArgumentNode } = {};
  for (const each of root.arguments ?? []) {
    const name = each.name.value;
    if (name !== 'where' && name !== 'limit') {
      throw errorAt('REL_INVALID', `a type takes where and limit, not ${name}`, locationOf(each));
    }
    if (filterArguments[name]) throw errorAt('REL_INVALID', `${name} is given twice`, locationOf(each));
    filterArguments[name] = each;
  }
  return filterArguments;
}

function scalar(value: unknown, argumentName: string, location: Location): Value {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return integer(value, argumentName, location);
  if (typeof value === 'number' && Number.isFinite(value)) return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === 'string') {
    checkText(value, argumentName);
    return value;
  }
  throw errorAt('REL_INVALID', `${argumentName} is no text, no number and no boolean`, location);
}

function integer(value: bigint, argumentName: string, location: Location): bigint {
  if (value >= I64_MIN && value <= I64_MAX) return value;
  throw errorAt('REL_INVALID', `${argumentName} is out of range: integers have 64 bits`, location);
}

function locationOf({ loc }: { readonly loc?: DocumentNode['loc'] }): Location {
  const { line, column } = loc!.startToken;
  return { line, column };
}
