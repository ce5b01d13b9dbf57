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
const sparqlTokensMax = 512;
const sparqlDepthMax = 32;
const sparqlCharactersMax = 1 << 16;

/** Known without being declared; a declaration comes first. */
const sparqlPrefixes: Readonly<Record<string, string>> = {
  prov: 'http://www.w3.org/ns/prov#',
  rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
  rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
  xsd: 'http://www.w3.org/2001/XMLSchema#',
};

/** Throws REL_PARSE for syntax beyond the language or the supported subset, and REL_READ_ONLY for updates. */
export function readSparql(sparqlText: string): SparqlQuery {
  return new SparqlStatementMaker(sparqlText).make(parseQuery(sparqlText));
}

type SparqlTree = ReturnType<Parser['parse']>;
type SparqlSelect = Extract<SparqlTree, { subType: 'select' }>;
type BasicPattern = Extract<SparqlSelect['where']['patterns'][number], { subType: 'bgp' }>;
type Triple = Extract<BasicPattern['triples'][number], { type: 'triple' }>;
type TripleNode = Triple['predicate'] | Triple['object'];

/** Making one takes a tenth of a second. */
let sparqlParser: Parser | null = null;

function makeSparqlParser(): Parser {
  // The library's own patterns try every way to part a run of blanks, and of n blanks there are 2^n.
  const blankPattern = '(?:[\\t\\n\\r ]|#[^\\n]*\\n)+';
  for (const [clauseToken, firstKeyword, secondKeyword] of [
    [lex.insertDataClause, 'insert', 'data'],
    [lex.deleteDataClause, 'delete', 'data'],
    [lex.deleteWhereClause, 'delete', 'where'],
  ] as const)
    clauseToken.PATTERN = new RegExp(firstKeyword + blankPattern + secondKeyword, 'i');
  const parserOptions = {
    defaultContext: { astFactory: new AstFactory({ tracksSourceLocation: true }), prefixes: { ...sparqlPrefixes } },
    lexerConfig: { positionTracking: 'full' },
    // This handler keeps the offset; the default message counts lines differently.
    errorHandler: ([first]: readonly { readonly token: { readonly startOffset: number } }[]) => {
      throw new UnexpectedLexeme(first!.token.startOffset);
    },
  } as const;
  return new Parser(parserOptions);
}

class UnexpectedLexeme extends Error {
  /** NaN at the end of the text. */
  readonly offset: number;

  constructor(offset: number) {
    super('a token is not expected');
    this.offset = offset;
  }
}

function parseQuery(sparqlText: string): SparqlTree {
  checkText(sparqlText, 'the query');
  checkExtent(sparqlText);
  sparqlParser ??= makeSparqlParser();
  try {
    return sparqlParser.parse(sparqlText);
  } catch (error) {
    if (error instanceof RangeError) throw new ServiceError('REL_PARSE', 'the query nests too deeply');
    if (error instanceof UnexpectedLexeme) throw unexpectedToken(sparqlText, error.offset);
    // The library throws nothing else, and nothing but Errors.
    const { message: parserMessage } = error as Error;
    const errorOffset = /at offset: (\d+)/.exec(parserMessage)?.[1];
    if (errorOffset !== undefined)
      throw errorAt('REL_PARSE', 'this character is not expected here', locationAt(sparqlText, Number(errorOffset)));
    const unknownPrefix = /^Unknown prefix: (.*)$/s.exec(parserMessage)?.[1];
    if (unknownPrefix !== undefined)
      throw errorAt(
        'REL_PARSE',
        `the prefix ${unknownPrefix}: is not declared`,
        locationAt(sparqlText, sparqlText.indexOf(`${unknownPrefix}:`)),
      );
    throw new ServiceError('REL_PARSE', parserMessage.split('\n', 1)[0]!.slice(0, 200));
  }
}

function unexpectedToken(sparqlText: string, offset: number): ServiceError {
  if (Number.isNaN(offset)) return errorAt('REL_PARSE', 'the query ends too early', locationAt(sparqlText, sparqlText.length));
  const [lexemeText = ''] = sparqlText.slice(offset).match(sparqlLexeme) ?? [];
  return errorAt('REL_PARSE', `${JSON.stringify(lexemeText.slice(0, 40))} is not expected here`, locationAt(sparqlText, offset));
}

const lineEnd = /\r\n|\n|\r/;
const sparqlLexeme =
  /#[^\n\r]*|"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|<[^<>"{}|^`\\\s]*>|(?:[?$:\w\-.]|\\.)+|\S/g;

/** Refuses queries so large that parsing them would block other requests. */
function checkExtent(sparqlText: string): void {
  if (sparqlText.length > sparqlCharactersMax)
    throw new ServiceError('REL_PARSE', `a query has at most ${sparqlCharactersMax} characters`);
  let lexemeCount = 0;
  let bracketDepth = 0;
  for (const { 0: lexemeText, index } of sparqlText.matchAll(sparqlLexeme)) {
    if (lexemeText.startsWith('#')) continue;
    if (++lexemeCount > sparqlTokensMax)
      throw errorAt('REL_PARSE', `a query has at most ${sparqlTokensMax} words and signs`, locationAt(sparqlText, index));
    if ('{[('.includes(lexemeText) && ++bracketDepth > sparqlDepthMax) {
      throw errorAt('REL_PARSE', `a query nests at most ${sparqlDepthMax} levels`, locationAt(sparqlText, index));
    }
    if ('}])'.includes(lexemeText)) bracketDepth--;
  }
}

function locationAt(text: string, offset: number): Location {
  const before = text.slice(0, Math.max(0, offset)).split(lineEnd);
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

/** A text of SQL, with slots where values stand. */
type SqlPiece = string | { readonly slot: number };

interface TripleTable {
  readonly alias: string;
  readonly source: Source;
  /** The conditions that join it to the tables before it. */
  readonly on: Expression[];
  readonly text: SqlPiece[];
  readonly onText: SqlPiece[][];
}

/** A column of the answer, and the same in SQL. */
interface AnsweredVariable {
  readonly name: string;
  readonly item: ProjectionItem;
  readonly text: string;
}

const tripleType = 'KnowledgeTriple';
const provenanceType = 'ProvenanceTriple';
const triplePositions = ['subject', 'predicate', 'object'] as const;
const provenanceIris: ReadonlySet<string> = new Set(Object.values(provenancePredicates));

class SparqlStatementMaker {
  readonly #sparqlText: string;
  readonly #sparqlParameters: Literal[] = [];
  readonly #locations: Location[] = [];
  readonly #tripleTables: TripleTable[] = [];
  readonly #sqlConditions: Expression[] = [];
  readonly #sqlConditionTexts: SqlPiece[][] = [];
  /** Where each variable and blank node stands first; blank nodes under a name that no variable has. */
  readonly #boundVariables = new Map<string, ColumnRef>();
  readonly #resourceVariables = new Set<string>();
  readonly #declaredPrefixes = new Map(Object.entries(sparqlPrefixes));
  #baseIri: string | null = null;

  constructor(text: string) {
    this.#sparqlText = text;
  }

  make(sparqlTree: SparqlTree): SparqlQuery {
    const sparqlSelect = this.#requireSelect(sparqlTree);
    this.#readPrologue(sparqlSelect);
    for (const wherePattern of sparqlSelect.where.patterns) {
      if (wherePattern.type !== 'pattern' || wherePattern.subType !== 'bgp')
        throw this.#unsupportedError(patternKindName(wherePattern), wherePattern);
      for (const tripleEntry of wherePattern.triples) this.#addTriples(tripleEntry);
    }
    const location = this.#locationOf(sparqlSelect.where);
    const answeredVariables = this.#projectVariables(sparqlSelect);
    const rowLimit = this.#limitSlot(sparqlSelect);
    // No pattern at all has one solution, which binds nothing.
    const emptySource: Source = { kind: 'values', rows: [[]], location };
    const tripleJoin = this.#tripleTables.reduce<Source | null>((joinedSource, { source, on }) => {
      if (joinedSource === null) return source;
      return { kind: 'join', type: 'inner', left: joinedSource, right: source, on: allOf(on), using: null, location };
    }, null);
    const sqlSelect = selectOf({
      projection: answeredVariables.map(({ item }) => item),
      from: tripleJoin ?? emptySource,
      where: allOf(this.#sqlConditions),
      location,
    });
    const sqlQuery: Query = queryOf(sqlSelect, rowLimit);
    const sqlPieces = this.#sqlPieces(answeredVariables, rowLimit);
    return {
      question: {
        language: 'sparql',
        template: sqlPieces
          .map((sqlPiece) => (typeof sqlPiece === 'string' ? sqlPiece : `?${this.#isIntegerSlot(sqlPiece) ? 'i' : 's'}`))
          .join(''),
        statement: { kind: 'query', purpose: null, query: sqlQuery, withProvenance: false },
        parameters: this.#sparqlParameters,
        locationOf: (slot) => this.#locations[slot]!,
      },
      sql: sqlPieces.map((sqlPiece) => (typeof sqlPiece === 'string' ? sqlPiece : this.#sqlLiteral(sqlPiece))).join(''),
      resources: this.#resourceVariables,
    };
  }

  #requireSelect(sparqlTree: SparqlTree): SparqlSelect {
    if (sparqlTree.type === 'update') throw new ServiceError('REL_READ_ONLY', 'updates are not supported: write by POST /ingest');
    if (sparqlTree.subType !== 'select') throw this.#unsupportedError(sparqlTree.subType.toUpperCase(), sparqlTree);
    const { distinct, reduced, datasets, solutionModifiers, values } = sparqlTree;
    if (distinct) throw this.#unsupportedError('DISTINCT', sparqlTree);
    if (reduced) throw this.#unsupportedError('REDUCED', sparqlTree);
    const [firstDataset] = datasets.clauses;
    if (firstDataset) throw this.#unsupportedError('FROM', firstDataset.value);
    const { order, group, having, limitOffset } = solutionModifiers;
    if (order) throw this.#unsupportedError('ORDER BY', order);
    if (group) throw this.#unsupportedError('GROUP BY', group);
    if (having) throw this.#unsupportedError('HAVING', having);
    if (limitOffset?.offset !== undefined) throw this.#unsupportedError('OFFSET', limitOffset);
    if (values) throw this.#unsupportedError('VALUES', values);
    return sparqlTree;
  }

  #readPrologue({ context }: SparqlSelect): void {
    for (const prologueEntry of context) {
      if (prologueEntry.subType === 'base') this.#baseIri = this.#absoluteIri(prologueEntry.value.value);
      else this.#declaredPrefixes.set(prologueEntry.key, this.#absoluteIri(prologueEntry.value.value));
    }
  }

  #absoluteIri(iri: string): string {
    if (this.#baseIri === null || /^[a-z][a-z0-9+.-]*:/i.test(iri)) return iri;
    try {
      return new URL(iri, this.#baseIri).href;
    } catch {
      throw new ServiceError('REL_PARSE', 'BASE must be an absolute IRI');
    }
  }

  #addTriples(tripleEntry: BasicPattern['triples'][number]): void {
    if (tripleEntry.type === 'tripleCollection') {
      for (const innerTriple of tripleEntry.triples) this.#addTriples(innerTriple);
      return;
    }
    // Triples in brackets describe their own node.
    for (const tripleNode of [tripleEntry.subject, tripleEntry.object])
      if (tripleNode.type === 'tripleCollection') this.#addTriples(tripleNode);
    this.#addTriplePattern(tripleEntry);
  }

  #addTriplePattern(triple: Triple): void {
    const tripleAlias = `t${this.#tripleTables.length + 1}`;
    const location = this.#locationOf(triple);
    const constantPredicate = this.#constantText(triple.predicate);
    const isProvenance = constantPredicate !== null && provenanceIris.has(constantPredicate);
    const tripleColumns = 'subject, predicate, object';
    const tripleTable: TripleTable = {
      alias: tripleAlias,
      source: isProvenance
        ? triplesAndProvenance(tripleAlias, location)
        : { kind: 'table', name: tripleType, alias: tripleAlias, location },
      on: [],
      text: [
        isProvenance
          ? `(SELECT ${tripleColumns} FROM ${tripleType} UNION ALL SELECT ${tripleColumns} FROM ${provenanceType}) ${tripleAlias}`
          : `${tripleType} ${tripleAlias}`,
      ],
      onText: [],
    };
    this.#tripleTables.push(tripleTable);
    for (const triplePosition of triplePositions) this.#addTripleTerm(tripleTable, triplePosition, triple[triplePosition]);
  }

  #addTripleTerm(tripleTable: TripleTable, position: (typeof triplePositions)[number], termNode: TripleNode): void {
    const location = this.#locationOf(termNode);
    const tripleColumn = columnOf(position, location, tripleTable.alias);
    const constantTerm = this.#constantText(termNode);
    if (constantTerm !== null) {
      const constantSlot = this.#addSlot(constantTerm, location);
      this.#sqlConditions.push(equal(tripleColumn, { kind: 'literal', ...constantSlot }));
      this.#sqlConditionTexts.push([`${tripleTable.alias}.${position} = `, constantSlot]);
      return;
    }
    const variableName = this.#variableName(termNode);
    if (position !== 'object') this.#resourceVariables.add(variableName);
    const boundColumn = this.#boundVariables.get(variableName);
    if (boundColumn === undefined) {
      this.#boundVariables.set(variableName, tripleColumn);
      return;
    }
    // The first table joins nothing.
    const isFirstTable = this.#tripleTables.length === 1;
    (isFirstTable ? this.#sqlConditions : tripleTable.on).push(equal(boundColumn, tripleColumn));
    (isFirstTable ? this.#sqlConditionTexts : tripleTable.onText).push([
      `${boundColumn.table}.${boundColumn.name} = ${tripleTable.alias}.${position}`,
    ]);
  }

  /** The text that a row has to have; null for a variable. */
  #constantText(termNode: TripleNode): string | null {
    if (termNode.type === 'path') throw this.#unsupportedError('a property path', termNode);
    if (termNode.type !== 'term' || termNode.subType === 'variable' || termNode.subType === 'blankNode') return null;
    if (termNode.subType === 'namedNode') {
      if (!('prefix' in termNode)) return this.#absoluteIri(termNode.value);
      // A local name has a backslash before the signs that would end it. Source: SPARQL 1.1, PN_LOCAL_ESC.
      return `${this.#declaredPrefixes.get(termNode.prefix) ?? ''}${termNode.value.replaceAll(/\\(.)/g, '$1')}`;
    }
    const { value: literalText, langOrIri } = termNode;
    if (typeof langOrIri === 'string') {
      throw errorAt('REL_PARSE', 'language tags are not supported: a text is stored without one', this.#locationOf(termNode));
    }
    return literalText;
  }

  #variableName(termNode: TripleNode): string {
    if (termNode.type === 'tripleCollection') return this.#variableName(termNode.identifier);
    if (termNode.type === 'term' && termNode.subType === 'blankNode') return `_:${termNode.label}`;
    if (termNode.type === 'term' && termNode.subType === 'variable') return termNode.value;
    throw this.#unsupportedError('this term', termNode);
  }

  #projectVariables({ variables, where }: SparqlSelect): readonly AnsweredVariable[] {
    const answeredNames = variables.flatMap((selectedVariable) => {
      if (selectedVariable.type === 'wildcard') return [...this.#boundVariables.keys()].filter((name) => !name.startsWith('_:'));
      if (selectedVariable.type !== 'term') throw this.#unsupportedError('an expression with AS', selectedVariable);
      return [selectedVariable.value];
    });
    return answeredNames.map((name) => {
      const boundColumn = this.#boundVariables.get(name);
      if (boundColumn === undefined) return this.#unboundVariable(name, this.#locationOf(where));
      const { table, name: boundColumnName, location } = boundColumn;
      const variableItem: ProjectionItem = {
        kind: 'expression',
        expression: columnOf(boundColumnName, location, table),
        alias: name,
        location,
      };
      return { name, item: variableItem, text: `${table}.${boundColumnName} AS "${name}"` };
    });
  }

  /** A variable of no pattern is bound to nothing. */
  #unboundVariable(name: string, location: Location): AnsweredVariable {
    const nullLiteral: Expression = { kind: 'literal', ...this.#addSlot(null, location) };
    return { name, item: { kind: 'expression', expression: nullLiteral, alias: name, location }, text: `NULL AS "${name}"` };
  }

  #limitSlot({ solutionModifiers: { limitOffset } }: SparqlSelect): Slot | null {
    if (limitOffset?.limit === undefined) return null;
    return this.#addSlot(BigInt(Math.min(limitOffset.limit, Number.MAX_SAFE_INTEGER)), this.#locationOf(limitOffset));
  }

  #sqlPieces(answeredVariables: readonly { readonly text: string }[], limitSlot: Slot | null): readonly SqlPiece[] {
    const conditionPieces = joinSqlConditions(this.#sqlConditionTexts);
    // SQL has no row without a column.
    const selectedColumns = answeredVariables.length === 0 ? '1' : answeredVariables.map(({ text }) => text).join(', ');
    if (this.#tripleTables.length === 0)
      return [`SELECT ${selectedColumns}`, ...(limitSlot === null ? [] : [' LIMIT ', limitSlot])];
    return [
      `SELECT ${selectedColumns} FROM `,
      ...this.#tripleTables.flatMap(({ text, onText }, i): SqlPiece[] => {
        if (i === 0) return text;
        return onText.length === 0 ? [' CROSS JOIN ', ...text] : [' JOIN ', ...text, ' ON ', ...joinSqlConditions(onText)];
      }),
      ' AS OF CURRENT',
      ...(conditionPieces.length > 0 ? [' WHERE ', ...conditionPieces] : []),
      ...(limitSlot === null ? [] : [' LIMIT ', limitSlot]),
    ];
  }

  #isIntegerSlot({ slot }: { readonly slot: number }): boolean {
    return typeof this.#sparqlParameters[slot] === 'bigint';
  }

  #sqlLiteral({ slot }: { readonly slot: number }): string {
    const parameterValue = this.#sparqlParameters[slot]!;
    return typeof parameterValue === 'string' ? `'${parameterValue.replaceAll("'", "''")}'` : String(parameterValue);
  }

  #addSlot(parameterValue: Literal, location: Location): Slot {
    if (typeof parameterValue === 'string') checkText(parameterValue, 'a value');
    this.#locations.push(location);
    return { slot: this.#sparqlParameters.push(parameterValue) - 1, location };
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
    return locationAt(this.#sparqlText, Math.min(start ?? 0, this.#sparqlText.length));
  }
}

function joinSqlConditions(conditionTexts: readonly (readonly SqlPiece[])[]): readonly SqlPiece[] {
  return conditionTexts.flatMap((conditionPieces, i) => (i === 0 ? conditionPieces : [' AND ', ...conditionPieces]));
}

/** Both tables of triples, one behind the other. */
function triplesAndProvenance(alias: string, location: Location): Source {
  const tripleProjection = triplePositions.map(
    (name): ProjectionItem => ({ kind: 'expression', expression: columnOf(name, location), alias: null, location }),
  );
  const selectTriplesFrom = (name: string) =>
    selectOf({ projection: tripleProjection, from: { kind: 'table', name, alias: null, location }, where: null, location });
  const unionOfTriples = {
    kind: 'set-operation',
    op: 'union all',
    left: selectTriplesFrom(tripleType),
    right: selectTriplesFrom(provenanceType),
    location,
  } as const;
  return { kind: 'subquery', query: queryOf(unionOfTriples, null), alias, columns: [], location };
}

const patternKindNames: Readonly<Record<string, string>> = {
  group: 'a group in a group',
  bind: 'BIND',
  values: 'VALUES',
  select: 'a subquery',
};

function patternKindName(pattern: { readonly type: string; readonly subType: string }): string {
  return patternKindNames[pattern.subType] ?? pattern.subType.toUpperCase();
}
