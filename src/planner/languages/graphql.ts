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
const documentCharactersMax = 1 << 18;
const documentTokensMax = 10_000;
/** Source: specification, "Limits". */
const defaultRowLimit = 100n;

const introspectionFields: ReadonlySet<string> = new Set(['__schema', '__type', '__typename']);

/** Throws REL_PARSE for syntax beyond the language or the supported subset, REL_READ_ONLY for mutations, else REL_INVALID. */
export function readGraphql(graphqlRequest: GraphqlRequest, rowsMax: number): GraphqlDocument {
  const parsedDocument = parseDocument(graphqlRequest.query);
  const chosen = chosenOperation(parsedDocument, graphqlRequest.operationName);
  const fragments = parsedDocument.definitions.filter((documentDefinition) => documentDefinition.kind === 'FragmentDefinition');
  if (isAboutSchema(chosen, fragments)) {
    // Other operations of the document may hold what introspection does not know.
    const ownDocument = separateOperations(parsedDocument)[chosen.name?.value ?? '']!;
    return { kind: 'schema', document: ownDocument, operation: chosen };
  }
  const [firstFragment] = fragments;
  // Another operation may use the fragment.
  const isOnlyOperation = parsedDocument.definitions.length === fragments.length + 1;
  if (firstFragment && isOnlyOperation)
    throw errorAt('REL_PARSE', 'fragments are not supported, but in questions about the schema', locationOf(firstFragment));
  return { kind: 'rows', ...new GraphqlStatementMaker(graphqlRequest.variables, BigInt(rowsMax)).make(chosen) };
}

function parseDocument(documentText: string): DocumentNode {
  checkText(documentText, 'the document');
  if (documentText.length > documentCharactersMax)
    throw new ServiceError('REL_PARSE', `a document has at most ${documentCharactersMax} characters`);
  try {
    return parse(documentText, { maxTokens: documentTokensMax });
  } catch (error) {
    if (error instanceof RangeError) throw new ServiceError('REL_PARSE', 'the document nests too deeply');
    if (!(error instanceof GraphQLError)) throw error;
    const [sourceLocation] = error.locations ?? [];
    const syntaxDetail = error.message.replace(/^Syntax Error: /, '');
    throw sourceLocation ? errorAt('REL_PARSE', syntaxDetail, sourceLocation) : new ServiceError('REL_PARSE', syntaxDetail);
  }
}

/** Source: GraphQL, "Executing Requests", GetOperation, and the rules on names of operations. */
function chosenOperation({ definitions }: DocumentNode, operationName: string | null): OperationDefinitionNode {
  const operations: OperationDefinitionNode[] = [];
  for (const documentDefinition of definitions) {
    if (documentDefinition.kind === 'OperationDefinition') operations.push(documentDefinition);
    else if (documentDefinition.kind !== 'FragmentDefinition')
      throw errorAt('REL_PARSE', 'a document holds no definitions of types', locationOf(documentDefinition));
  }
  const operationNames = operations.flatMap((each) => each.name?.value ?? []);
  const namelessOperation = operations.find((each) => each.name === undefined);
  if (namelessOperation && operations.length > 1)
    throw errorAt('REL_INVALID', 'each of several operations needs a name', locationOf(namelessOperation));
  const repeatedOperation = operations.find((each, i) => each.name !== undefined && operationNames.indexOf(each.name.value) < i);
  if (repeatedOperation)
    throw errorAt('REL_INVALID', `two operations are called ${repeatedOperation.name!.value}`, locationOf(repeatedOperation));
  const [firstOperation, secondOperation] = operations;
  if (firstOperation === undefined) throw new ServiceError('REL_PARSE', 'the document holds no query');
  if (operationName === null && secondOperation) {
    throw errorAt(
      'REL_INVALID',
      `operationName says which of several operations: ${operationNames.join(', ')}`,
      locationOf(secondOperation),
    );
  }
  const namedOperation = operationName === null ? firstOperation : operations.find((each) => each.name?.value === operationName);
  if (namedOperation === undefined) {
    const operationGuess = didYouMean(operationName!, operationNames);
    throw new ServiceError('REL_INVALID', `operationName names no operation of the document${operationGuess}`);
  }
  if (namedOperation.operation === 'mutation') {
    throw errorAt('REL_READ_ONLY', 'mutations are not supported: write by POST /ingest', locationOf(namedOperation));
  }
  if (namedOperation.operation === 'subscription') {
    throw errorAt('REL_PARSE', 'subscriptions are not supported: WATCH of POST /query follows rows', locationOf(namedOperation));
  }
  return namedOperation;
}

/** Whether all root fields, those of fragments included, are about the schema. */
function isAboutSchema({ selectionSet }: OperationDefinitionNode, definitions: readonly FragmentDefinitionNode[]): boolean {
  const fragmentsByName = new Map(definitions.map((openSelection) => [openSelection.name.value, openSelection]));
  const openSelections: SelectionNode[] = [...selectionSet.selections];
  for (let each = openSelections.pop(); each !== undefined; each = openSelections.pop()) {
    if (each.kind === 'Field') {
      if (!introspectionFields.has(each.name.value)) return false;
    } else if (each.kind === 'InlineFragment') {
      openSelections.push(...each.selectionSet.selections);
    } else {
      const spreadFragment = fragmentsByName.get(each.name.value);
      // Each one once: a fragment may name itself.
      fragmentsByName.delete(each.name.value);
      if (spreadFragment) openSelections.push(...spreadFragment.selectionSet.selections);
    }
  }
  return true;
}

class GraphqlStatementMaker {
  readonly #graphqlVariables: GraphqlRequest['variables'];
  readonly #rowLimitMax: bigint;
  readonly #literalParameters: Literal[] = [];
  readonly #locations: Location[] = [];

  constructor(variables: GraphqlRequest['variables'], rowsMax: bigint) {
    this.#graphqlVariables = variables;
    this.#rowLimitMax = rowsMax;
  }

  make({ selectionSet, directives }: OperationDefinitionNode): { readonly type: string; readonly question: ParsedQuery } {
    refuseDirectives(directives);
    const [rootField, secondRootField] = selectionSet.selections.map(requirePlainField);
    if (secondRootField)
      throw errorAt('REL_INVALID', 'a request has one root field: ask for each type by itself', locationOf(secondRootField));
    const location = locationOf(rootField!);
    const rootType = rootField!.name.value;
    const { where, limit } = rootArguments(rootField!);
    const whereCondition = where ? this.#whereConditions(where.value) : { all: [], text: '' };
    const rowLimit = this.#limitSlot(limit?.value, location);
    const fieldProjection = this.#projectFields(rootField!, rootType);
    const rootTable = { kind: 'table', name: rootType, alias: null, location } as const;
    const selectBody = selectOf({
      projection: fieldProjection.items,
      from: rootTable,
      where: allOf(whereCondition.all),
      location,
    });
    const graphqlQuestion: ParsedQuery = {
      language: 'graphql',
      template: `{ ${rootType}(${whereCondition.text}limit: ?i) { ${fieldProjection.text} } }`,
      statement: { kind: 'query', purpose: null, query: queryOf(selectBody, rowLimit), withProvenance: false },
      parameters: this.#literalParameters,
      locationOf: (slot) => this.#locations[slot]!,
    };
    return { type: rootType, question: graphqlQuestion };
  }

  #projectFields(rootField: FieldNode, rootType: string): { readonly items: readonly ProjectionItem[]; readonly text: string } {
    const selectedFields = rootField.selectionSet?.selections;
    if (!selectedFields) throw errorAt('REL_INVALID', `select its fields: ${rootType} { … }`, locationOf(rootField));
    const projectedItems = new Map<string, ProjectionItem>();
    for (const selectedField of selectedFields.map(requirePlainField)) {
      const [fieldName, location] = [selectedField.name.value, locationOf(selectedField)];
      const [fieldArgument] = selectedField.arguments ?? [];
      if (fieldArgument) throw errorAt('REL_INVALID', `field ${fieldName} takes no arguments`, locationOf(fieldArgument));
      if (selectedField.selectionSet)
        throw errorAt('REL_INVALID', `field ${fieldName} has no fields of its own`, locationOf(selectedField.selectionSet));
      // Clients ask every object for its type.
      const isTypename = fieldName === '__typename';
      const expression: Expression = isTypename ? this.#literalExpression(rootType, location) : columnOf(fieldName, location);
      projectedItems.set(fieldName, { kind: 'expression', expression, alias: isTypename ? fieldName : null, location });
    }
    return { items: [...projectedItems.values()], text: [...projectedItems.keys()].join(' ') };
  }

  /** Source: specification, "GraphQL": one equality, or an object from a variable, of which all must hold. */
  #whereConditions(whereNode: ValueNode): { readonly all: readonly Expression[]; readonly text: string } {
    const whereEqualities = whereNode.kind === 'Variable' ? this.#variableEqualities(whereNode) : [this.#onlyEquality(whereNode)];
    const equalityExpressions = whereEqualities.map(([name, value, location]) =>
      equal(columnOf(name, location), this.#literalExpression(value, location)),
    );
    const equalityTexts = whereEqualities.map(
      ([name, value]) => `${name}: ?${literalLetters[typeof value as keyof typeof literalLetters]}`,
    );
    return { all: equalityExpressions, text: `where: { ${equalityTexts.join(', ')} }, ` };
  }

  #onlyEquality(whereNode: ValueNode): WhereEquality {
    if (whereNode.kind !== 'ObjectValue')
      throw errorAt('REL_INVALID', 'where takes an object: where: { field: value }', locationOf(whereNode));
    const [equalityField, secondField] = (whereNode satisfies ObjectValueNode).fields;
    if (!equalityField) throw errorAt('REL_INVALID', 'where names a field: where: { field: value }', locationOf(whereNode));
    if (secondField) {
      throw errorAt('REL_INVALID', 'where takes one equality; several come as an object in a variable', locationOf(secondField));
    }
    return [equalityField.name.value, this.#literalValue(equalityField.value), locationOf(equalityField.value)];
  }

  #variableEqualities(variableNode: VariableNode): readonly WhereEquality[] {
    const [variableName, location] = [variableNode.name.value, locationOf(variableNode)];
    const filterObject = this.#variableValue(variableNode);
    if (typeof filterObject !== 'object' || Array.isArray(filterObject)) {
      throw errorAt('REL_INVALID', `$${variableName} is a filter: an object of fields and values`, location);
    }
    return Object.entries(filterObject as object).map(([filterField, value]): WhereEquality => {
      if (!/^[A-Za-z0-9_]+$/.test(filterField)) {
        throw errorAt('REL_INVALID', `$${variableName} names a field by other than letters, digits and underscores`, location);
      }
      return [filterField, scalarVariable(value, `$${variableName}.${filterField}`, location), location];
    });
  }

  /** Rows beyond the most that an answer may have are left out, not refused. */
  #limitSlot(limitNode: ValueNode | undefined, root: Location): Slot {
    const location = limitNode ? locationOf(limitNode) : root;
    const askedLimit = limitNode ? this.#literalValue(limitNode) : defaultRowLimit;
    if (typeof askedLimit !== 'bigint' || askedLimit < 0n)
      throw errorAt('REL_INVALID', 'limit takes a whole number of at least 0', location);
    return this.#addSlot(askedLimit < this.#rowLimitMax ? askedLimit : this.#rowLimitMax, location);
  }

  #literalValue(valueNode: ValueNode): GraphqlValue {
    const location = locationOf(valueNode);
    switch (valueNode.kind) {
      case 'Variable':
        return scalarVariable(this.#variableValue(valueNode), `$${valueNode.name.value}`, location);
      case 'IntValue':
        return graphqlInteger(BigInt(valueNode.value), 'a number', location);
      case 'FloatValue':
        return scalarVariable(Number(valueNode.value), 'a number', location);
      case 'StringValue':
      case 'BooleanValue':
        return valueNode.value;
      case 'NullValue':
        throw errorAt('REL_INVALID', 'null equals nothing', location);
      case 'EnumValue':
        throw errorAt('REL_INVALID', `texts stand in double quotes: "${valueNode.value}"`, location);
      default:
        throw errorAt('REL_INVALID', 'a text, a number or a boolean is expected here', location);
    }
  }

  /** Definitions of variables are not read, so neither are their types and defaults. */
  #variableValue(variableNode: VariableNode): NonNullable<unknown> {
    const variableName = variableNode.name.value;
    const variableValue = Object.hasOwn(this.#graphqlVariables, variableName) ? this.#graphqlVariables[variableName] : undefined;
    if (variableValue !== undefined && variableValue !== null) return variableValue;
    throw errorAt(
      'REL_INVALID',
      `variables has no value for $${variableName}: each that is used needs one`,
      locationOf(variableNode),
    );
  }

  #literalExpression(value: GraphqlValue, location: Location): Expression {
    return { kind: 'literal', ...this.#addSlot(value, location) };
  }

  #addSlot(literalValue: GraphqlValue, location: Location): Slot {
    this.#locations.push(location);
    return { slot: this.#literalParameters.push(literalValue) - 1, location };
  }
}

type GraphqlValue = Exclude<Literal, null>;
type WhereEquality = readonly [field: string, value: GraphqlValue, location: Location];

const literalLetters = { string: 's', bigint: 'i', number: 'n', boolean: 'b' } as const;

function requirePlainField(selectionNode: SelectionNode): FieldNode {
  if (selectionNode.kind !== 'Field')
    throw errorAt('REL_PARSE', 'fragments are not supported, but in questions about the schema', locationOf(selectionNode));
  refuseDirectives(selectionNode.directives);
  if (selectionNode.alias)
    throw errorAt(
      'REL_INVALID',
      'aliases are not supported: a field has the name of its column',
      locationOf(selectionNode.alias),
    );
  return selectionNode;
}

function refuseDirectives(directives: FieldNode['directives']): void {
  const [directive] = directives ?? [];
  if (directive) throw errorAt('REL_PARSE', 'directives are not supported', locationOf(directive));
}

function rootArguments(rootField: FieldNode): { readonly where?: ArgumentNode; readonly limit?: ArgumentNode } {
  const filterArguments: { where?: ArgumentNode; limit?: ArgumentNode } = {};
  for (const rootArgument of rootField.arguments ?? []) {
    const argumentName = rootArgument.name.value;
    if (argumentName !== 'where' && argumentName !== 'limit') {
      throw errorAt('REL_INVALID', `a type takes where and limit, not ${argumentName}`, locationOf(rootArgument));
    }
    if (filterArguments[argumentName]) throw errorAt('REL_INVALID', `${argumentName} is given twice`, locationOf(rootArgument));
    filterArguments[argumentName] = rootArgument;
  }
  return filterArguments;
}

function scalarVariable(variableValue: unknown, argumentName: string, location: Location): GraphqlValue {
  if (typeof variableValue === 'boolean') return variableValue;
  if (typeof variableValue === 'bigint') return graphqlInteger(variableValue, argumentName, location);
  if (typeof variableValue === 'number' && Number.isFinite(variableValue))
    return Number.isSafeInteger(variableValue) ? BigInt(variableValue) : variableValue;
  if (typeof variableValue === 'string') {
    checkText(variableValue, argumentName);
    return variableValue;
  }
  throw errorAt('REL_INVALID', `${argumentName} is no text, no number and no boolean`, location);
}

function graphqlInteger(wholeNumber: bigint, argumentName: string, location: Location): bigint {
  if (wholeNumber >= I64_MIN && wholeNumber <= I64_MAX) return wholeNumber;
  throw errorAt('REL_INVALID', `${argumentName} is out of range: integers have 64 bits`, location);
}

function locationOf({ loc }: { readonly loc?: DocumentNode['loc'] }): Location {
  const { line, column } = loc!.startToken;
  return { line, column };
}
