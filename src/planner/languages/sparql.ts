/**
 * A SPARQL query to a statement: each triple pattern is a table of triples, what two patterns share joins them, and constants are
 * parameters. Source: specification, "SPARQL": SELECT over triple patterns and LIMIT; all else is refused by name.
 *
 *   SELECT ?who WHERE { <acme> <employs> ?who . ?who <livesIn> "Lyon" } LIMIT 10
 *
 * Triples are rows of KnowledgeTriple. A pattern with one of the four predicates of provenance asks where rows come from, too
 * (`table-functions/provenance-triples.ts`). An IRI equals the text that is stored, and so does a literal.
 */
import { Parser } from '@traqula/parser-sparql-1-1';
import { AstFactory, lex } from '@traqula/rules-sparql-1-1';
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import { provenancePredicates } from '../table-functions/provenance-triples.ts';
import { errorAt } from '../syntax/error-location.ts';
import type {
  ColumnRef,
  Expression,
  Literal,
  ParsedQuery,
  Location,
  ProjectionItem,
  Query,
  Slot,
  Source,
} from '../syntax/statement.ts';
import { allOf, columnOf, equal, queryOf, selectOf } from './tree-builders.ts';

export interface SparqlQuery {
  readonly question: ParsedQuery;
  /** The same query in SQL, over current rows. */
  readonly sql: string;
  /** Variables that stand for a subject or a predicate somewhere. */
  readonly resources: ReadonlySet<string>;
}

/** The parser takes some 0.2 ms a triple, in one turn. */
const tokensMax = 512;
const depthMax = 32;
const charactersMax = 1 << 16;

/** Known without being declared; a declaration comes first. */
const knownPrefixes: Readonly<Record<string, string>> = {
  prov: 'http://www.w3.org/ns/prov#',
  rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
  rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
  xsd: 'http://www.w3.org/2001/XMLSchema#',
};

/** Throws REL_PARSE for syntax beyond the language or the supported subset, and REL_READ_ONLY for updates. */
export function readSparql(text: string): SparqlQuery {
  return new StatementMaker(text).make(parseQuery(text));
}

type Ast = ReturnType<Parser['parse']>;
type Select = Extract<Ast, { subType: 'select' }>;
type Basic = Extract<Select['where']['patterns'][number], { subType: 'bgp' }>;
type Triple = Extract<Basic['triples'][number], { type: 'triple' }>;
type Node = Triple['predicate'] | Triple['object'];

/** Making one takes a tenth of a second. */
let parser: Parser | null = null;

function makeParser(): Parser {
  // The library's own patterns try every way to part a run of blanks, and of n blanks there are 2^n.
  const blanks = '(?:[\\t\\n\\r ]|#[^\\n]*\\n)+';
  for (const [token, first, second] of [
    [lex.insertDataClause, 'insert', 'data'],
    [lex.deleteDataClause, 'delete', 'data'],
    [lex.deleteWhereClause, 'delete', 'where'],
  ] as const)
    token.PATTERN = new RegExp(first + blanks + second, 'i');
  const options = {
    defaultContext: { astFactory: new AstFactory({ tracksSourceLocation: true }), prefixes: { ...knownPrefixes } },
    lexerConfig: { positionTracking: 'full' },
    // This handler keeps the offset; the default message counts lines differently.
    errorHandler: ([first]: readonly { readonly token: { readonly startOffset: number } }[]) => {
      throw new NotExpected(first!.token.startOffset);
    },
  } as const;
  return new Parser(options);
}

class NotExpected extends Error {
  /** NaN at the end of the text. */
  readonly offset: number;

  constructor(offset: number) {
    super('a token is not expected');
    this.offset = offset;
  }
}

function parseQuery(text: string): Ast {
  checkText(text, 'the query');
  checkExtent(text);
  parser ??= makeParser();
  try {
    return parser.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw new ServiceError('REL_PARSE', 'the query nests too deeply');
    if (error instanceof NotExpected) throw unexpectedToken(text, error.offset);
    // The library throws nothing else, and nothing but Errors.
    const { message } = error as Error;
    const offset = /at offset: (\d+)/.exec(message)?.[1];
    if (offset !== undefined) throw errorAt('REL_PARSE', 'this character is not expected here', locationAt(text, Number(offset)));
    const prefix = /^Unknown prefix: (.*)$/s.exec(message)?.[1];
    if (prefix !== undefined)
      throw errorAt('REL_PARSE', `the prefix ${prefix}: is not declared`, locationAt(text, text.indexOf(`${prefix}:`)));
    throw new ServiceError('REL_PARSE', message.split('\n', 1)[0]!.slice(0, 200));
  }
}

function unexpectedToken(text: string, offset: number): ServiceError {
  if (Number.isNaN(offset)) return errorAt('REL_PARSE', 'the query ends too early', locationAt(text, text.length));
  const [lexemeText = ''] = text.slice(offset).match(token) ?? [];
  return errorAt('REL_PARSE', `${JSON.stringify(lexemeText.slice(0, 40))} is not expected here`, locationAt(text, offset));
}

const lineEnd = /\r\n|\n|\r/;
const token =
  /#[^\n\r]*|"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|<[^<>"{}|^`\\\s]*>|(?:[?$:\w\-.]|\\.)+|\S/g;

/** Refuses queries so large that parsing them would block other requests. */
function checkExtent(text: string): void {
  if (text.length > charactersMax) throw new ServiceError('REL_PARSE', `a query has at most ${charactersMax} characters`);
  let tokens = 0;
  let depth = 0;
  for (const { 0: lexemeText, index } of text.matchAll(token)) {
    if (lexemeText.startsWith('#')) continue;
    if (++tokens > tokensMax)
      throw errorAt('REL_PARSE', `a query has at most ${tokensMax} words and signs`, locationAt(text, index));
    if ('{[('.includes(lexemeText) && ++depth > depthMax) {
      throw errorAt('REL_PARSE', `a query nests at most ${depthMax} levels`, locationAt(text, index));
    }
    if ('}])'.includes(lexemeText)) depth--;
  }
}

function locationAt(text: string, offset: number): Location {
  const before = text.slice(0, Math.max(0, offset)).split(lineEnd);
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

/** A text of SQL, with slots where values stand. */
type Piece = string | { readonly slot: number };

interface Table {
  readonly alias: string;
  readonly source: Source;
  /** The conditions that join it to the tables before it. */
  readonly on: Expression[];
  readonly text: Piece[];
  readonly onText: Piece[][];
}

/** A column of the answer, and the same in SQL. */
interface Answered {
  readonly name: string;
  readonly item: ProjectionItem;
  readonly text: string;
}

const triples = 'KnowledgeTriple';
const provenance = 'ProvenanceTriple';
const positions = ['subject', 'predicate', 'object'] as const;
const provenanceIris: ReadonlySet<string> = new Set(Object.values(provenancePredicates));

class StatementMaker {
  readonly #text: string;
  readonly #parameters: Literal[] = [];
  readonly #locations: Location[] = [];
  readonly #tables: Table[] = [];
  readonly #where: Expression[] = [];
  readonly #whereText: Piece[][] = [];
  /** Where each variable and blank node stands first; blank nodes under a name that no variable has. */
  readonly #bound = new Map<string, ColumnRef>();
  readonly #resources = new Set<string>();
  readonly #prefixes = new Map(Object.entries(knownPrefixes));
  #base: string | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  make(ast: Ast): SparqlQuery {
    const select = this.#select(ast);
    this.#context(select);
    for (const pattern of select.where.patterns) {
      if (pattern.type !== 'pattern' || pattern.subType !== 'bgp') throw this.#unsupportedError(nameOf(pattern), pattern);
      for (const each of pattern.triples) this.#triples(each);
    }
    const location = this.#locationOf(select.where);
    const items = this.#projection(select);
    const limit = this.#limit(select);
    // No pattern at all has one solution, which binds nothing.
    const nothing: Source = { kind: 'values', rows: [[]], location };
    const from = this.#tables.reduce<Source | null>((left, { source, on }) => {
      if (left === null) return source;
      return { kind: 'join', type: 'inner', left, right: source, on: allOf(on), using: null, location };
    }, null);
    const body = selectOf({
      projection: items.map(({ item }) => item),
      from: from ?? nothing,
      where: allOf(this.#where),
      location,
    });
    const query: Query = queryOf(body, limit);
    const pieces = this.#sql(items, limit);
    return {
      question: {
        language: 'sparql',
        template: pieces.map((piece) => (typeof piece === 'string' ? piece : `?${this.#isInteger(piece) ? 'i' : 's'}`)).join(''),
        statement: { kind: 'query', purpose: null, query, withProvenance: false },
        parameters: this.#parameters,
        locationOf: (slot) => this.#locations[slot]!,
      },
      sql: pieces.map((piece) => (typeof piece === 'string' ? piece : this.#literalText(piece))).join(''),
      resources: this.#resources,
    };
  }

  #select(ast: Ast): Select {
    if (ast.type === 'update') throw new ServiceError('REL_READ_ONLY', 'updates are not supported: write by POST /ingest');
    if (ast.subType !== 'select') throw this.#unsupportedError(ast.subType.toUpperCase(), ast);
    const { distinct, reduced, datasets, solutionModifiers, values } = ast;
    if (distinct) throw this.#unsupportedError('DISTINCT', ast);
    if (reduced) throw this.#unsupportedError('REDUCED', ast);
    const [dataset] = datasets.clauses;
    if (dataset) throw this.#unsupportedError('FROM', dataset.value);
    const { order, group, having, limitOffset } = solutionModifiers;
    if (order) throw this.#unsupportedError('ORDER BY', order);
    if (group) throw this.#unsupportedError('GROUP BY', group);
    if (having) throw this.#unsupportedError('HAVING', having);
    if (limitOffset?.offset !== undefined) throw this.#unsupportedError('OFFSET', limitOffset);
    if (values) throw this.#unsupportedError('VALUES', values);
    return ast;
  }

  #context({ context }: Select): void {
    for (const each of context) {
      if (each.subType === 'base') this.#base = this.#absolute(each.value.value);
      else this.#prefixes.set(each.key, this.#absolute(each.value.value));
    }
  }

  #absolute(iri: string): string {
    if (this.#base === null || /^[a-z][a-z0-9+.-]*:/i.test(iri)) return iri;
    try {
      return new URL(iri, this.#base).href;
    } catch {
      throw new ServiceError('REL_PARSE', 'BASE must be an absolute IRI');
    }
  }

  #triples(each: Basic['triples'][number]): void {
    if (each.type === 'tripleCollection') {
      for (const inner of each.triples) this.#triples(inner);
      return;
    }
    // Triples in brackets describe their own node.
    for (const node of [each.subject, each.object]) if (node.type === 'tripleCollection') this.#triples(node);
    this.#pattern(each);
  }

  #pattern(triple: Triple): void {
    const alias = `t${this.#tables.length + 1}`;
    const location = this.#locationOf(triple);
    const predicate = this.#constant(triple.predicate);
    const isProvenance = predicate !== null && provenanceIris.has(predicate);
    const all = 'subject, predicate, object';
    const table: Table = {
      alias,
      source: isProvenance ? bothSources(alias, location) : { kind: 'table', name: triples, alias, location },
      on: [],
      text: [
        isProvenance
          ? `(SELECT ${all} FROM ${triples} UNION ALL SELECT ${all} FROM ${provenance}) ${alias}`
          : `${triples} ${alias}`,
      ],
      onText: [],
    };
    this.#tables.push(table);
    for (const position of positions) this.#term(table, position, triple[position]);
  }

  #term(table: Table, position: (typeof positions)[number], node: Node): void {
    const location = this.#locationOf(node);
    const column = columnOf(position, location, table.alias);
    const constant = this.#constant(node);
    if (constant !== null) {
      const slot = this.#slot(constant, location);
      this.#where.push(equal(column, { kind: 'literal', ...slot }));
      this.#whereText.push([`${table.alias}.${position} = `, slot]);
      return;
    }
    const name = this.#variable(node);
    if (position !== 'object') this.#resources.add(name);
    const known = this.#bound.get(name);
    if (known === undefined) {
      this.#bound.set(name, column);
      return;
    }
    // The first table joins nothing.
    const isOwn = this.#tables.length === 1;
    (isOwn ? this.#where : table.on).push(equal(known, column));
    (isOwn ? this.#whereText : table.onText).push([`${known.table}.${known.name} = ${table.alias}.${position}`]);
  }

  /** The text that a row has to have; null for a variable. */
  #constant(node: Node): string | null {
    if (node.type === 'path') throw this.#unsupportedError('a property path', node);
    if (node.type !== 'term' || node.subType === 'variable' || node.subType === 'blankNode') return null;
    if (node.subType === 'namedNode') {
      if (!('prefix' in node)) return this.#absolute(node.value);
      // A local name has a backslash before the signs that would end it. Source: SPARQL 1.1, PN_LOCAL_ESC.
      return `${this.#prefixes.get(node.prefix) ?? ''}${node.value.replaceAll(/\\(.)/g, '$1')}`;
    }
    const { value, langOrIri } = node;
    if (typeof langOrIri === 'string') {
      throw errorAt('REL_PARSE', 'language tags are not supported: a text is stored without one', this.#locationOf(node));
    }
    return value;
  }

  #variable(node: Node): string {
    if (node.type === 'tripleCollection') return this.#variable(node.identifier);
    if (node.type === 'term' && node.subType === 'blankNode') return `_:${node.label}`;
    if (node.type === 'term' && node.subType === 'variable') return node.value;
    throw this.#unsupportedError('this term', node);
  }

  #projection({ variables, where }: Select): readonly Answered[] {
    const names = variables.flatMap((each) => {
      if (each.type === 'wildcard') return [...this.#bound.keys()].filter((name) => !name.startsWith('_:'));
      if (each.type !== 'term') throw this.#unsupportedError('an expression with AS', each);
      return [each.value];
    });
    return names.map((name) => {
      const bound = this.#bound.get(name);
      if (bound === undefined) return this.#unbound(name, this.#locationOf(where));
      const { table, name: column, location } = bound;
      const item: ProjectionItem = { kind: 'expression', expression: columnOf(column, location, table), alias: name, location };
      return { name, item, text: `${table}.${column} AS "${name}"` };
    });
  }

  /** A variable of no pattern is bound to nothing. */
  #unbound(name: string, location: Location): Answered {
    const expression: Expression = { kind: 'literal', ...this.#slot(null, location) };
    return { name, item: { kind: 'expression', expression, alias: name, location }, text: `NULL AS "${name}"` };
  }

  #limit({ solutionModifiers: { limitOffset } }: Select): Slot | null {
    if (limitOffset?.limit === undefined) return null;
    return this.#slot(BigInt(Math.min(limitOffset.limit, Number.MAX_SAFE_INTEGER)), this.#locationOf(limitOffset));
  }

  #sql(items: readonly { readonly text: string }[], limit: Slot | null): readonly Piece[] {
    const conditions = joinConditions(this.#whereText);
    // SQL has no row without a column.
    const columns = items.length === 0 ? '1' : items.map(({ text }) => text).join(', ');
    if (this.#tables.length === 0) return [`SELECT ${columns}`, ...(limit === null ? [] : [' LIMIT ', limit])];
    return [
      `SELECT ${columns} FROM `,
      ...this.#tables.flatMap(({ text, onText }, i): Piece[] => {
        if (i === 0) return text;
        return onText.length === 0 ? [' CROSS JOIN ', ...text] : [' JOIN ', ...text, ' ON ', ...joinConditions(onText)];
      }),
      ' AS OF CURRENT',
      ...(conditions.length > 0 ? [' WHERE ', ...conditions] : []),
      ...(limit === null ? [] : [' LIMIT ', limit]),
    ];
  }

  #isInteger({ slot }: { readonly slot: number }): boolean {
    return typeof this.#parameters[slot] === 'bigint';
  }

  #literalText({ slot }: { readonly slot: number }): string {
    const value = this.#parameters[slot]!;
    return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
  }

  #slot(value: Literal, location: Location): Slot {
    if (typeof value === 'string') checkText(value, 'a value');
    this.#locations.push(location);
    return { slot: this.#parameters.push(value) - 1, location };
  }

  #unsupportedError(feature: string, node: { readonly loc?: unknown }): ServiceError {
    return errorAt(
      'REL_PARSE',
      `${feature} is not supported: a query is SELECT over triple patterns, with LIMIT`,
      this.#locationOf(node),
    );
  }

  #locationOf({ loc }: { readonly loc?: unknown }): Location {
    const { start } = (loc ?? {}) as { readonly start?: number };
    return locationAt(this.#text, Math.min(start ?? 0, this.#text.length));
  }
}

function joinConditions(conditions: readonly (readonly Piece[])[]): readonly Piece[] {
  return conditions.flatMap((condition, i) => (i === 0 ? condition : [' AND ', ...condition]));
}

/** Both tables of triples, one behind the other. */
function bothSources(alias: string, location: Location): Source {
  const projection = positions.map(
    (name): ProjectionItem => ({ kind: 'expression', expression: columnOf(name, location), alias: null, location }),
  );
  const selectFrom = (name: string) =>
    selectOf({ projection, from: { kind: 'table', name, alias: null, location }, where: null, location });
  const body = {
    kind: 'set-operation',
    op: 'union all',
    left: selectFrom(triples),
    right: selectFrom(provenance),
    location,
  } as const;
  return { kind: 'subquery', query: queryOf(body, null), alias, columns: [], location };
}

const names: Readonly<Record<string, string>> = {
  group: 'a group in a group',
  bind: 'BIND',
  values: 'VALUES',
  select: 'a subquery',
};

function nameOf(pattern: { readonly type: string; readonly subType: string }): string {
  return names[pattern.subType] ?? pattern.subType.toUpperCase();
}
