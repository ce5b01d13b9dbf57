/**
 * Turns a search into a statement: the same tree as for SQL, made node by node beside its template. Rank expressions are the only
 * input that is parsed as SQL. Types and columns are those of the snapshot: a template names no others.
 */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { checkIdentifier, checkText, holdsTexts, I64_MAX, I64_MIN, tenantOf } from '../../log/values/value.ts';
import { splitTypeName, tenantTypeName } from '../../projections/access-paths.ts';
import { shiftSlots } from '../binding/environment.ts';
import { scoreName } from '../binding/match-columns.ts';
import { readableColumns } from '../binding/source-binder.ts';
import { nowhere } from '../syntax/error-location.ts';
import type { FilterValue, SearchCondition, SearchQuery, SearchRanking } from './search-request.ts';
import type {
  ColumnRef,
  Expression,
  FunctionArgument,
  Literal,
  ParsedQuery,
  ProjectionItem,
  Query,
  Select,
  Slot,
  Source,
} from '../syntax/statement.ts';
import { parseRankExpression } from './sql-parser.ts';

/** The version of each row, behind the requested columns, for fusing answers. */
export const versionName = '#version';

const searchConditionsMax = 256;
const searchValuesMax = 1_000;

export interface SearchStatement {
  readonly question: ParsedQuery;
  /** Values of its last column are `system_from`. */
  readonly hasVersion: boolean;
}

/** Throws REL_UNKNOWN_TYPE, REL_UNKNOWN_COLUMN, REL_MASKED_COLUMN, REL_TENANT_MISMATCH and REL_INVALID. */
export function searchStatement(
  searchQuery: SearchQuery,
  snapshot: GovernedSnapshot,
  { offset, withVersion }: { readonly offset: number; readonly withVersion: boolean },
): SearchStatement {
  return { question: new SearchStatementMaker(searchQuery, snapshot).make(offset, withVersion), hasVersion: withVersion };
}

/** A node and how the template has it. */
interface SearchPiece {
  readonly node: Expression;
  readonly text: string;
}

class SearchStatementMaker {
  readonly #searchQuery: SearchQuery;
  readonly #searchSnapshot: GovernedSnapshot;
  /** The type's name in the statement. */
  readonly #searchedType: string;
  readonly #typeDefinition: TypeDefinition;
  readonly #readableColumns: ReadonlySet<string>;
  readonly #searchParameters: Literal[] = [];
  #conditionCount = 0;

  constructor(query: SearchQuery, snapshot: GovernedSnapshot) {
    const { catalog } = snapshot;
    checkIdentifier(query.type, 'type');
    this.#searchQuery = query;
    this.#searchSnapshot = snapshot;
    this.#searchedType = fullTypeName(query.type, snapshot);
    const searchedDefinition = catalog.type(this.#searchedType);
    if (!searchedDefinition) {
      const offeredTypes = catalog.types().flatMap(({ name }) => (snapshot.offers(name) ? name : []));
      const unknownType = `type ${JSON.stringify(query.type)} is not registered${didYouMean(query.type, offeredTypes)}`;
      throw new ServiceError('REL_UNKNOWN_TYPE', unknownType);
    }
    this.#typeDefinition = searchedDefinition;
    this.#readableColumns = new Set(readableColumns(searchedDefinition).map(({ name }) => name));
  }

  make(offset: number, withVersion: boolean): ParsedQuery {
    const { ranking, compute, facets, limit } = this.#searchQuery;
    if (ranking !== null && ranking.by !== 'words' && (facets.length > 0 || offset > 0)) {
      throw new ServiceError(
        'REL_INVALID',
        'facets and cursors are of searches by words or filters: by vectors every row matches',
      );
    }
    const searchSource = this.#searchSource();
    const matchPiece = ranking?.by === 'words' ? this.#matchPiece(ranking) : null;
    const wherePiece = joinPieces('and', [
      matchPiece,
      this.#ownTenantPiece(),
      this.#searchQuery.where && this.#conditionPiece(this.#searchQuery.where),
    ]);
    const searchProjection = this.#searchProjection(withVersion);
    const computedPieces = compute.map(({ label, expression }) => this.#computedPiece(label, expression));
    const scoreOrder = matchPiece === null ? [] : [{ ...scoreDescending, expression: searchColumnRef(scoreName) }];
    const facetColumns = facets.map((name) => this.#searchColumn(name));
    const limitSlot = this.#addSearchSlot(BigInt(limit));
    const offsetSlot = offset === 0 ? null : this.#addSearchSlot(BigInt(offset));
    const searchSelect: Select = {
      kind: 'select',
      distinct: false,
      projection: searchProjection.items,
      from: searchSource.node,
      where: wherePiece?.node ?? null,
      groupBy: [],
      window: null,
      having: null,
      rankBy: [],
      compute: computedPieces.map(({ label, node }) => ({ label, expression: node })),
      location: nowhere,
    };
    const searchTree: Query = {
      with: [],
      body: searchSelect,
      asOf: null,
      orderBy: scoreOrder,
      limit: limitSlot,
      offset: offsetSlot,
      after: null,
      facets: facetColumns,
      location: nowhere,
    };
    const template = [
      `SELECT ${searchProjection.text} FROM ${searchSource.text}`,
      ...(wherePiece ? [`WHERE ${wherePiece.text}`] : []),
      ...(computedPieces.length > 0 ? [`COMPUTE ${computedPieces.map(({ text }) => text).join(', ')}`] : []),
      ...(matchPiece ? [`ORDER BY ${scoreName} DESC`] : []),
      `LIMIT ?i${offsetSlot ? ' OFFSET ?i' : ''}`,
      ...(facets.length > 0 ? [`FACETS ${facets.map(quoteIdentifier).join(', ')}`] : []),
    ].join(' ');
    return {
      language: 'search',
      template,
      statement: { kind: 'query', purpose: null, query: searchTree, withProvenance: false },
      parameters: this.#searchParameters,
      locationOf: () => nowhere,
    };
  }

  #searchSource(): { readonly node: Source; readonly text: string } {
    const { ranking } = this.#searchQuery;
    const typeIdentifier = quoteIdentifier(this.#searchedType);
    if (ranking === null || ranking.by === 'words')
      return { node: { kind: 'table', name: this.#searchedType, alias: null, location: nowhere }, text: typeIdentifier };
    const typeArgument: FunctionArgument = { name: 'TYPE', value: searchColumnRef(this.#searchedType) };
    if (ranking.by === 'vector') {
      const vectorArgument = { name: 'VECTOR', value: this.#literalPiece(JSON.stringify(ranking.vector)).node };
      return {
        node: functionSource('SIMILAR', [typeArgument, vectorArgument]),
        text: `SIMILAR(${typeIdentifier}, VECTOR => ?s)`,
      };
    }
    checkText(ranking.text, 'the query');
    const queryArgument = { name: 'QUERY', value: this.#literalPiece(ranking.text).node };
    const fusionArgument = { name: 'FUSION', value: searchColumnRef('likeness') };
    return {
      node: functionSource('HYBRID_SEARCH', [typeArgument, queryArgument, fusionArgument]),
      text: `HYBRID_SEARCH(${typeIdentifier}, ?s, FUSION => likeness)`,
    };
  }

  #matchPiece({ text, mode, columns, weights, boosts }: Extract<SearchRanking, { by: 'words' }>): SearchPiece {
    checkText(text, 'the query');
    for (const columnName of [...Object.keys(weights), ...Object.keys(boosts)]) this.#searchColumn(columnName);
    const matchedColumns = columns ?? this.#textColumns();
    const matchArguments: FunctionArgument[] = [];
    let matchTemplate = '';
    for (const name of matchedColumns) {
      matchArguments.push({ name: null, value: this.#searchColumn(name) });
      matchTemplate += `${quoteIdentifier(name)}, `;
      for (const [clauseWord, columnNumbers] of [['WEIGHT', weights] as const, ['BOOST', boosts] as const]) {
        if (!Object.hasOwn(columnNumbers, name)) continue;
        matchArguments.push({ name: clauseWord, value: this.#literalPiece(columnNumbers[name]!).node });
        matchTemplate += `${clauseWord} => ?n, `;
      }
    }
    const soughtText = this.#literalPiece(text);
    matchArguments.push({ name: null, value: soughtText.node });
    if (mode !== 'ANY') matchArguments.push({ name: 'MODE', value: searchColumnRef(mode) });
    const matchCall = `MATCH(${matchTemplate}${soughtText.text}${mode === 'ANY' ? '' : `, ${mode}`})`;
    return { node: { kind: 'call', name: 'MATCH', arguments: matchArguments, location: nowhere }, text: matchCall };
  }

  /** The text columns that are searched where the search names none. */
  #textColumns(): readonly string[] {
    const { properties } = this.#typeDefinition;
    const textColumnNames = Object.keys(properties).filter((name) => holdsTexts(properties[name]!.type));
    const searchableNames = textColumnNames.filter((name) => !this.#searchSnapshot.hides(this.#searchedType, name));
    if (searchableNames.length > 0) return searchableNames;
    throw new ServiceError(
      'REL_INVALID',
      `type ${JSON.stringify(this.#searchQuery.type)} has no text column that can be searched`,
    );
  }

  /** Where rows of several tenants are in reach, a search is about the caller's own, unless it names a tenant's type or visits one. */
  #ownTenantPiece(): SearchPiece | null {
    const { caller } = this.#searchSnapshot;
    const namesTenant = splitTypeName(this.#searchedType) !== null || caller.sharedFrom !== null;
    if (namesTenant || !this.#searchSnapshot.shares(this.#searchedType)) return null;
    return this.#comparisonPiece('=', 'tenant_id', tenantOf(caller.path));
  }

  #conditionPiece(searchCondition: SearchCondition): SearchPiece {
    if (++this.#conditionCount > searchConditionsMax) {
      throw new ServiceError('REL_INVALID', `a search has at most ${searchConditionsMax} filters`);
    }
    if ('all' in searchCondition) return this.#joinedConditions('and', searchCondition.all);
    if ('any' in searchCondition) return this.#joinedConditions('or', searchCondition.any);
    const { field, op, value } = searchCondition;
    const filteredColumn = this.#searchColumn(field);
    this.#checkTenantFilter(searchCondition);
    const takesList = op === 'in' || op === 'between';
    if (takesList !== Array.isArray(value)) {
      const expectedOperand = op === 'in' ? 'a list of values' : op === 'between' ? 'a list of two values' : 'one value';
      throw new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: ${op} takes ${expectedOperand}`);
    }
    if (takesList) return this.#listPiece(field, op, value as readonly FilterValue[]);
    const filterValue = value as FilterValue;
    if (filterValue === null) return this.#comparisonPiece(op === 'eq' ? '=' : op === 'ne' ? '!=' : null, field, null);
    const vectorPiece = this.#literalPiece(literalOf(filterValue));
    if (op === 'ilike') {
      const ilikeArguments = [filteredColumn, vectorPiece.node].map(
        (ilikeOperand): FunctionArgument => ({ name: null, value: ilikeOperand }),
      );
      return {
        node: { kind: 'call', name: 'ILIKE', arguments: ilikeArguments, location: nowhere },
        text: `${quoteIdentifier(field)} ILIKE ${vectorPiece.text}`,
      };
    }
    const sqlOperator = op === 'like' ? 'like' : filterSymbols[op as keyof typeof filterSymbols];
    return binaryPiece(sqlOperator, { node: filteredColumn, text: quoteIdentifier(field) }, vectorPiece);
  }

  #joinedConditions(op: 'and' | 'or', conditions: readonly SearchCondition[]): SearchPiece {
    const conditionPieces = joinPieces(
      op,
      conditions.map((partCondition) => this.#conditionPiece(partCondition)),
    );
    if (conditionPieces) return conditionPieces;
    throw new ServiceError('REL_INVALID', `${op} in filters takes at least one of them`);
  }

  #listPiece(field: string, op: string, filterValues: readonly FilterValue[]): SearchPiece {
    if (filterValues.includes(null)) throw nullFilterError(field, op);
    if (filterValues.length > searchValuesMax)
      throw new ServiceError('REL_INVALID', `in takes at most ${searchValuesMax} values`);
    const operand = this.#searchColumn(field);
    const valuePieces = filterValues.map((filterValue) => this.#literalPiece(literalOf(filterValue!)));
    if (op === 'in') {
      if (valuePieces.length === 0)
        throw new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: in takes at least one value`);
      const inListNodes = valuePieces.map(({ node: betweenNode }) => betweenNode);
      const inListText = `${quoteIdentifier(field)} IN (${valuePieces.map(({ text: filterValue }) => filterValue).join(', ')})`;
      return { node: { kind: 'in-list', operand, items: inListNodes, negated: false, location: nowhere }, text: inListText };
    }
    const [lowPiece, highPiece, ...extraPieces] = valuePieces;
    if (!lowPiece || !highPiece || extraPieces.length > 0) {
      throw new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: between takes a list of two values`);
    }
    const node: Expression = {
      kind: 'between',
      operand,
      low: lowPiece.node,
      high: highPiece.node,
      negated: false,
      location: nowhere,
    };
    return { node, text: `${quoteIdentifier(field)} BETWEEN ${lowPiece.text} AND ${highPiece.text}` };
  }

  /** Compares with null by IS NULL, and with other values by the operator. */
  #comparisonPiece(op: '=' | '!=' | null, field: string, value: string | null): SearchPiece {
    const comparedPiece: SearchPiece = { node: this.#searchColumn(field), text: quoteIdentifier(field) };
    if (value !== null && op !== null) return binaryPiece(op, comparedPiece, this.#literalPiece(value));
    if (op === null) throw nullFilterError(field, 'this operator');
    const isNegated = op === '!=';
    const nullTestNode: Expression = { kind: 'is-null', operand: comparedPiece.node, negated: isNegated, location: nowhere };
    return { node: nullTestNode, text: `${comparedPiece.text} IS ${isNegated ? 'NOT ' : ''}NULL` };
  }

  #checkTenantFilter({ field, op, value }: Extract<SearchCondition, { field: string }>): void {
    if (field !== 'tenant_id' || (op !== 'eq' && op !== 'in')) return;
    const { caller } = this.#searchSnapshot;
    const ownTenant = splitTypeName(this.#searchedType)?.tenant ?? tenantOf(caller.sharedFrom ?? caller.path);
    if ([value].flat().every((askedTenant) => askedTenant === ownTenant)) return;
    throw new ServiceError('REL_TENANT_MISMATCH', 'the filter on "tenant_id" names another tenant than that of the caller');
  }

  #searchProjection(withVersion: boolean): { readonly items: readonly ProjectionItem[]; readonly text: string } {
    const { attributes, ranking, compute } = this.#searchQuery;
    const projectedItems: ProjectionItem[] = [];
    const projectedNames: string[] = [];
    const addProjected = (expression: Expression, alias: string | null = null): void => {
      projectedItems.push({ kind: 'expression', expression, alias, location: nowhere });
    };
    if (attributes === null) {
      projectedItems.push({ kind: 'star', table: null, location: nowhere });
      projectedNames.push('*');
    }
    for (const name of new Set(attributes)) {
      if (name === scoreName && ranking !== null) continue;
      addProjected(this.#searchColumn(name));
      projectedNames.push(quoteIdentifier(name));
    }
    // Functions that rank have it among their columns.
    if (ranking !== null && (ranking.by === 'words' || attributes !== null)) {
      addProjected(searchColumnRef(scoreName));
      projectedNames.push(scoreName);
    }
    const takenLabels = new Set<string>([scoreName, ...(attributes ?? this.#readableColumns)]);
    for (const { label } of compute) {
      checkIdentifier(label, 'a label of compute_attributes');
      if (takenLabels.has(label) || label.startsWith('#'))
        throw new ServiceError('REL_INVALID', `compute_attributes: the label ${JSON.stringify(label)} is taken`);
      takenLabels.add(label);
    }
    if (withVersion) {
      addProjected(searchColumnRef('system_from'), versionName);
      projectedNames.push(quoteIdentifier(versionName));
    }
    return { items: projectedItems, text: projectedNames.join(', ') };
  }

  #computedPiece(label: string, expression: string): SearchPiece & { readonly label: string } {
    const parsedRanking = parseRankExpression(expression);
    const computedNode = shiftSlots(parsedRanking.expression, this.#searchParameters.length);
    this.#searchParameters.push(...parsedRanking.parameters);
    return { label, node: computedNode, text: `${quoteIdentifier(label)} AS ${parsedRanking.template}` };
  }

  #searchColumn(name: string): ColumnRef {
    if (this.#readableColumns.has(name)) return searchColumnRef(name);
    checkText(name, 'the name of a column');
    const unknownColumn = `type ${JSON.stringify(this.#searchQuery.type)} has no column ${JSON.stringify(name)}`;
    const columnGuess = this.#searchSnapshot.offers(this.#searchedType) ? didYouMean(name, this.#readableColumns) : '';
    throw new ServiceError('REL_UNKNOWN_COLUMN', `${unknownColumn}${columnGuess}`);
  }

  #literalPiece(searchValue: Exclude<Literal, null>): SearchPiece {
    const { slot, location } = this.#addSearchSlot(searchValue);
    return {
      node: { kind: 'literal', slot, location },
      text: `?${literalLetters[typeof searchValue as keyof typeof literalLetters]}`,
    };
  }

  #addSearchSlot(searchValue: Literal): Slot {
    if (typeof searchValue === 'string') checkText(searchValue, 'a value');
    return { slot: this.#searchParameters.push(searchValue) - 1, location: nowhere };
  }
}

const scoreDescending = { descending: true, collate: 'codepoint', nullsFirst: false } as const;
const literalLetters = { string: 's', bigint: 'i', number: 'n', boolean: 'b' } as const;
const filterSymbols = { eq: '=', ne: '!=', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** `acme.Parcel` names the rows of one tenant alone, where no type is called so. */
function fullTypeName(searchedType: string, { catalog }: GovernedSnapshot): string {
  const tenantDot = searchedType.indexOf('.');
  if (tenantDot < 0 || catalog.type(searchedType)) return searchedType;
  return tenantTypeName(searchedType.slice(0, tenantDot), searchedType.slice(tenantDot + 1));
}

function searchColumnRef(name: string): ColumnRef {
  return { kind: 'column', table: null, name, location: nowhere };
}

function functionSource(name: string, sourceArguments: readonly FunctionArgument[]): Source {
  return { kind: 'function', name, arguments: sourceArguments, alias: null, location: nowhere };
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function nullFilterError(field: string, op: string): ServiceError {
  return new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: only eq and ne take null, not ${op}`);
}

function binaryPiece(
  op: '=' | '!=' | '>' | '>=' | '<' | '<=' | 'like' | 'and' | 'or',
  leftPiece: SearchPiece,
  rightPiece: SearchPiece,
): SearchPiece {
  const binaryText = `${leftPiece.text} ${op.toUpperCase()} ${rightPiece.text}`;
  return { node: { kind: 'binary', op, left: leftPiece.node, right: rightPiece.node, location: nowhere }, text: binaryText };
}

/** A balanced tree: many conditions don't nest deep. */
function joinPieces(op: 'and' | 'or', searchPieces: readonly (SearchPiece | null)[]): SearchPiece | null {
  const givenPieces = searchPieces.filter((searchPiece) => searchPiece !== null);
  if (givenPieces.length < 2) return givenPieces[0] ?? null;
  const middlePiece = Math.ceil(givenPieces.length / 2);
  const { node, text } = binaryPiece(
    op,
    joinPieces(op, givenPieces.slice(0, middlePiece))!,
    joinPieces(op, givenPieces.slice(middlePiece))!,
  );
  return { node, text: `(${text})` };
}

/** A whole number that is exact is an integer. */
export function literalOf(filterValue: Exclude<FilterValue, null>): Exclude<Literal, null> {
  if (typeof filterValue === 'bigint')
    return filterValue >= I64_MIN && filterValue <= I64_MAX ? filterValue : Number(filterValue);
  return typeof filterValue === 'number' && Number.isSafeInteger(filterValue) ? BigInt(filterValue) : filterValue;
}
