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

const conditionsMax = 256;
const valuesMax = 1_000;

export interface SearchStatement {
  readonly question: ParsedQuery;
  /** Values of its last column are `system_from`. */
  readonly hasVersion: boolean;
}

/** Throws REL_UNKNOWN_TYPE, REL_UNKNOWN_COLUMN, REL_MASKED_COLUMN, REL_TENANT_MISMATCH and REL_INVALID. */
export function searchStatement(
  query: SearchQuery,
  snapshot: GovernedSnapshot,
  { offset, withVersion }: { readonly offset: number; readonly withVersion: boolean },
): SearchStatement {
  return { question: new StatementMaker(query, snapshot).make(offset, withVersion), hasVersion: withVersion };
}

/** A node and how the template has it. */
interface Piece {
  readonly node: Expression;
  readonly text: string;
}

class StatementMaker {
  readonly #query: SearchQuery;
  readonly #snapshot: GovernedSnapshot;
  /** The type's name in the statement. */
  readonly #type: string;
  readonly #definition: TypeDefinition;
  readonly #columns: ReadonlySet<string>;
  readonly #parameters: Literal[] = [];
  #conditions = 0;

  constructor(query: SearchQuery, snapshot: GovernedSnapshot) {
    const { catalog } = snapshot;
    checkIdentifier(query.type, 'type');
    this.#query = query;
    this.#snapshot = snapshot;
    this.#type = nameOf(query.type, snapshot);
    const definition = catalog.type(this.#type);
    if (!definition) {
      const names = catalog.types().flatMap(({ name }) => (snapshot.offers(name) ? name : []));
      const text = `type ${JSON.stringify(query.type)} is not registered${didYouMean(query.type, names)}`;
      throw new ServiceError('REL_UNKNOWN_TYPE', text);
    }
    this.#definition = definition;
    this.#columns = new Set(readableColumns(definition).map(({ name }) => name));
  }

  make(offset: number, withVersion: boolean): ParsedQuery {
    const { ranking, compute, facets, limit } = this.#query;
    if (ranking !== null && ranking.by !== 'words' && (facets.length > 0 || offset > 0)) {
      throw new ServiceError(
        'REL_INVALID',
        'facets and cursors are of searches by words or filters: by vectors every row matches',
      );
    }
    const from = this.#source();
    const match = ranking?.by === 'words' ? this.#match(ranking) : null;
    const where = joinPieces('and', [match, this.#ownTenant(), this.#query.where && this.#condition(this.#query.where)]);
    const projection = this.#projection(withVersion);
    const computed = compute.map(({ label, expression }) => this.#compute(label, expression));
    const order = match === null ? [] : [{ ...plainOrder, expression: column(scoreName) }];
    const facetColumns = facets.map((name) => this.#column(name));
    const limited = this.#slot(BigInt(limit));
    const skipped = offset === 0 ? null : this.#slot(BigInt(offset));
    const select: Select = {
      kind: 'select',
      distinct: false,
      projection: projection.items,
      from: from.node,
      where: where?.node ?? null,
      groupBy: [],
      window: null,
      having: null,
      rankBy: [],
      compute: computed.map(({ label, node }) => ({ label, expression: node })),
      location: nowhere,
    };
    const statement: Query = {
      with: [],
      body: select,
      asOf: null,
      orderBy: order,
      limit: limited,
      offset: skipped,
      after: null,
      facets: facetColumns,
      location: nowhere,
    };
    const template = [
      `SELECT ${projection.text} FROM ${from.text}`,
      ...(where ? [`WHERE ${where.text}`] : []),
      ...(computed.length > 0 ? [`COMPUTE ${computed.map(({ text }) => text).join(', ')}`] : []),
      ...(match ? [`ORDER BY ${scoreName} DESC`] : []),
      `LIMIT ?i${skipped ? ' OFFSET ?i' : ''}`,
      ...(facets.length > 0 ? [`FACETS ${facets.map(quoteIdentifier).join(', ')}`] : []),
    ].join(' ');
    return {
      language: 'search',
      template,
      statement: { kind: 'query', purpose: null, query: statement, withProvenance: false },
      parameters: this.#parameters,
      locationOf: () => nowhere,
    };
  }

  #source(): { readonly node: Source; readonly text: string } {
    const { ranking } = this.#query;
    const name = quoteIdentifier(this.#type);
    if (ranking === null || ranking.by === 'words')
      return { node: { kind: 'table', name: this.#type, alias: null, location: nowhere }, text: name };
    const type: FunctionArgument = { name: 'TYPE', value: column(this.#type) };
    if (ranking.by === 'vector') {
      const vector = { name: 'VECTOR', value: this.#literal(JSON.stringify(ranking.vector)).node };
      return { node: functionSource('SIMILAR', [type, vector]), text: `SIMILAR(${name}, VECTOR => ?s)` };
    }
    checkText(ranking.text, 'the query');
    const text = { name: 'QUERY', value: this.#literal(ranking.text).node };
    const fusion = { name: 'FUSION', value: column('likeness') };
    return {
      node: functionSource('HYBRID_SEARCH', [type, text, fusion]),
      text: `HYBRID_SEARCH(${name}, ?s, FUSION => likeness)`,
    };
  }

  #match({ text, mode, columns, weights, boosts }: Extract<SearchRanking, { by: 'words' }>): Piece {
    checkText(text, 'the query');
    for (const name of [...Object.keys(weights), ...Object.keys(boosts)]) this.#column(name);
    const names = columns ?? this.#texts();
    const list: FunctionArgument[] = [];
    let template = '';
    for (const name of names) {
      list.push({ name: null, value: this.#column(name) });
      template += `${quoteIdentifier(name)}, `;
      for (const [clauseWord, numbers] of [['WEIGHT', weights] as const, ['BOOST', boosts] as const]) {
        if (!Object.hasOwn(numbers, name)) continue;
        list.push({ name: clauseWord, value: this.#literal(numbers[name]!).node });
        template += `${clauseWord} => ?n, `;
      }
    }
    const sought = this.#literal(text);
    list.push({ name: null, value: sought.node });
    if (mode !== 'ANY') list.push({ name: 'MODE', value: column(mode) });
    const matchCall = `MATCH(${template}${sought.text}${mode === 'ANY' ? '' : `, ${mode}`})`;
    return { node: { kind: 'call', name: 'MATCH', arguments: list, location: nowhere }, text: matchCall };
  }

  /** The text columns that are searched where the search names none. */
  #texts(): readonly string[] {
    const { properties } = this.#definition;
    const names = Object.keys(properties).filter((name) => holdsTexts(properties[name]!.type));
    const shown = names.filter((name) => !this.#snapshot.hides(this.#type, name));
    if (shown.length > 0) return shown;
    throw new ServiceError('REL_INVALID', `type ${JSON.stringify(this.#query.type)} has no text column that can be searched`);
  }

  /** Where rows of several tenants are in reach, a search is about the caller's own, unless it names a tenant's type or visits one. */
  #ownTenant(): Piece | null {
    const { caller } = this.#snapshot;
    const isNamed = splitTypeName(this.#type) !== null || caller.sharedFrom !== null;
    if (isNamed || !this.#snapshot.shares(this.#type)) return null;
    return this.#compare('=', 'tenant_id', tenantOf(caller.path));
  }

  #condition(condition: SearchCondition): Piece {
    if (++this.#conditions > conditionsMax) {
      throw new ServiceError('REL_INVALID', `a search has at most ${conditionsMax} filters`);
    }
    if ('all' in condition) return this.#several('and', condition.all);
    if ('any' in condition) return this.#several('or', condition.any);
    const { field, op, value } = condition;
    const operand = this.#column(field);
    this.#checkTenant(condition);
    const isList = op === 'in' || op === 'between';
    if (isList !== Array.isArray(value)) {
      const takes = op === 'in' ? 'a list of values' : op === 'between' ? 'a list of two values' : 'one value';
      throw new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: ${op} takes ${takes}`);
    }
    if (isList) return this.#inList(field, op, value as readonly FilterValue[]);
    const single = value as FilterValue;
    if (single === null) return this.#compare(op === 'eq' ? '=' : op === 'ne' ? '!=' : null, field, null);
    const vectorPiece = this.#literal(literalOf(single));
    if (op === 'ilike') {
      const list = [operand, vectorPiece.node].map((each): FunctionArgument => ({ name: null, value: each }));
      return {
        node: { kind: 'call', name: 'ILIKE', arguments: list, location: nowhere },
        text: `${quoteIdentifier(field)} ILIKE ${vectorPiece.text}`,
      };
    }
    const word = op === 'like' ? 'like' : symbols[op as keyof typeof symbols];
    return binary(word, { node: operand, text: quoteIdentifier(field) }, vectorPiece);
  }

  #several(op: 'and' | 'or', conditions: readonly SearchCondition[]): Piece {
    const pieces = joinPieces(
      op,
      conditions.map((each) => this.#condition(each)),
    );
    if (pieces) return pieces;
    throw new ServiceError('REL_INVALID', `${op} in filters takes at least one of them`);
  }

  #inList(field: string, op: string, values: readonly FilterValue[]): Piece {
    if (values.includes(null)) throw noNull(field, op);
    if (values.length > valuesMax) throw new ServiceError('REL_INVALID', `in takes at most ${valuesMax} values`);
    const operand = this.#column(field);
    const items = values.map((each) => this.#literal(literalOf(each!)));
    if (op === 'in') {
      if (items.length === 0)
        throw new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: in takes at least one value`);
      const list = items.map(({ node }) => node);
      const text = `${quoteIdentifier(field)} IN (${items.map(({ text: each }) => each).join(', ')})`;
      return { node: { kind: 'in-list', operand, items: list, negated: false, location: nowhere }, text };
    }
    const [low, high, ...more] = items;
    if (!low || !high || more.length > 0) {
      throw new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: between takes a list of two values`);
    }
    const node: Expression = { kind: 'between', operand, low: low.node, high: high.node, negated: false, location: nowhere };
    return { node, text: `${quoteIdentifier(field)} BETWEEN ${low.text} AND ${high.text}` };
  }

  /** Compares with null by IS NULL, and with other values by the operator. */
  #compare(op: '=' | '!=' | null, field: string, value: string | null): Piece {
    const operand: Piece = { node: this.#column(field), text: quoteIdentifier(field) };
    if (value !== null && op !== null) return binary(op, operand, this.#literal(value));
    if (op === null) throw noNull(field, 'this operator');
    const negated = op === '!=';
    const node: Expression = { kind: 'is-null', operand: operand.node, negated, location: nowhere };
    return { node, text: `${operand.text} IS ${negated ? 'NOT ' : ''}NULL` };
  }

  #checkTenant({ field, op, value }: Extract<SearchCondition, { field: string }>): void {
    if (field !== 'tenant_id' || (op !== 'eq' && op !== 'in')) return;
    const { caller } = this.#snapshot;
    const own = splitTypeName(this.#type)?.tenant ?? tenantOf(caller.sharedFrom ?? caller.path);
    if ([value].flat().every((each) => each === own)) return;
    throw new ServiceError('REL_TENANT_MISMATCH', 'the filter on "tenant_id" names another tenant than that of the caller');
  }

  #projection(withVersion: boolean): { readonly items: readonly ProjectionItem[]; readonly text: string } {
    const { attributes, ranking, compute } = this.#query;
    const items: ProjectionItem[] = [];
    const names: string[] = [];
    const add = (expression: Expression, alias: string | null = null): void => {
      items.push({ kind: 'expression', expression, alias, location: nowhere });
    };
    if (attributes === null) {
      items.push({ kind: 'star', table: null, location: nowhere });
      names.push('*');
    }
    for (const name of new Set(attributes)) {
      if (name === scoreName && ranking !== null) continue;
      add(this.#column(name));
      names.push(quoteIdentifier(name));
    }
    // Functions that rank have it among their columns.
    if (ranking !== null && (ranking.by === 'words' || attributes !== null)) {
      add(column(scoreName));
      names.push(scoreName);
    }
    const labels = new Set<string>([scoreName, ...(attributes ?? this.#columns)]);
    for (const { label } of compute) {
      checkIdentifier(label, 'a label of compute_attributes');
      if (labels.has(label) || label.startsWith('#'))
        throw new ServiceError('REL_INVALID', `compute_attributes: the label ${JSON.stringify(label)} is taken`);
      labels.add(label);
    }
    if (withVersion) {
      add(column('system_from'), versionName);
      names.push(quoteIdentifier(versionName));
    }
    return { items, text: names.join(', ') };
  }

  #compute(label: string, expression: string): Piece & { readonly label: string } {
    const parsed = parseRankExpression(expression);
    const node = shiftSlots(parsed.expression, this.#parameters.length);
    this.#parameters.push(...parsed.parameters);
    return { label, node, text: `${quoteIdentifier(label)} AS ${parsed.template}` };
  }

  #column(name: string): ColumnRef {
    if (this.#columns.has(name)) return column(name);
    checkText(name, 'the name of a column');
    const text = `type ${JSON.stringify(this.#query.type)} has no column ${JSON.stringify(name)}`;
    const guess = this.#snapshot.offers(this.#type) ? didYouMean(name, this.#columns) : '';
    throw new ServiceError('REL_UNKNOWN_COLUMN', `${text}${guess}`);
  }

  #literal(value: Exclude<Literal, null>): Piece {
    const { slot, location } = this.#slot(value);
    return { node: { kind: 'literal', slot, location }, text: `?${letters[typeof value as keyof typeof letters]}` };
  }

  #slot(value: Literal): Slot {
    if (typeof value === 'string') checkText(value, 'a value');
    return { slot: this.#parameters.push(value) - 1, location: nowhere };
  }
}

const plainOrder = { descending: true, collate: 'codepoint', nullsFirst: false } as const;
const letters = { string: 's', bigint: 'i', number: 'n', boolean: 'b' } as const;
const symbols = { eq: '=', ne: '!=', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** `acme.Parcel` names the rows of one tenant alone, where no type is called so. */
function nameOf(type: string, { catalog }: GovernedSnapshot): string {
  const dot = type.indexOf('.');
  if (dot < 0 || catalog.type(type)) return type;
  return tenantTypeName(type.slice(0, dot), type.slice(dot + 1));
}

function column(name: string): ColumnRef {
  return { kind: 'column', table: null, name, location: nowhere };
}

function functionSource(name: string, list: readonly FunctionArgument[]): Source {
  return { kind: 'function', name, arguments: list, alias: null, location: nowhere };
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function noNull(field: string, op: string): ServiceError {
  return new ServiceError('REL_INVALID', `the filter on ${JSON.stringify(field)}: only eq and ne take null, not ${op}`);
}

function binary(op: '=' | '!=' | '>' | '>=' | '<' | '<=' | 'like' | 'and' | 'or', left: Piece, right: Piece): Piece {
  const text = `${left.text} ${op.toUpperCase()} ${right.text}`;
  return { node: { kind: 'binary', op, left: left.node, right: right.node, location: nowhere }, text };
}

/** A balanced tree: many conditions don't nest deep. */
function joinPieces(op: 'and' | 'or', pieces: readonly (Piece | null)[]): Piece | null {
  const given = pieces.filter((piece) => piece !== null);
  if (given.length < 2) return given[0] ?? null;
  const half = Math.ceil(given.length / 2);
  const { node, text } = binary(op, joinPieces(op, given.slice(0, half))!, joinPieces(op, given.slice(half))!);
  return { node, text: `(${text})` };
}

/** A whole number that is exact is an integer. */
export function literalOf(value: Exclude<FilterValue, null>): Exclude<Literal, null> {
  if (typeof value === 'bigint') return value >= I64_MIN && value <= I64_MAX ? value : Number(value);
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
}
