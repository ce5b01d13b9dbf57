/**
 * A statement in any language on its way to a plan: a key by which its tree and its plans are found, the values of its slots, and
 * their locations in the text. And the facts of a query that are known before it is bound.
 */
import { ServiceError } from '../../errors.ts';
import type { InvocationDetails } from '../../governance/gate-contract.ts';
import type { LexedStatement } from '../languages/sql-lexer.ts';
import { parseLexed } from '../languages/sql-parser.ts';
import { parseGraphWrite } from '../languages/graph-writes.ts';
import { parseWrite } from '../languages/sql-writes.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { QueryOptions } from '../planner-contract.ts';
import type { Dialect, Literal, ParsedQuery, Location, Query, QueryBody, Source, Statement } from '../syntax/statement.ts';
import type { GraphWrite, WriteStatement } from '../syntax/write-statement.ts';

/** Trees and plans take some hundred bytes a token of their text: a caller's long texts must not pile up. In characters. */
export const byText = {
  maxSize: 4 << 20,
  maxEntrySize: 64 << 10,
  sizeCalculation: (_: unknown, text: string): number => text.length + 1,
};

export interface StatementSource {
  /**
   * Statements of one key have one tree: everything that the tree depends on is in the key. Values of slots are not, their types
   * are.
   */
  readonly key: string;
  /** The template for the access record. */
  readonly template: string;
  /** The template that may be recorded before its names are known to exist. */
  readonly guardedTemplate: string;
  readonly parameters: readonly Literal[];
  readonly dialect: Dialect;
  locationOf(slot: number): Location;
  /** The tree of this very statement: its places are those of the text at hand. */
  parse(): Statement;
  /** The text, for statements that are kept as they were written. REL_INVALID where there is none, or not all of it. */
  text(): string;
}

export class TextSource implements StatementSource {
  readonly dialect: Dialect;
  readonly #lexedStatement: LexedStatement;

  constructor(lexed: LexedStatement, dialect: Dialect) {
    this.#lexedStatement = lexed;
    this.dialect = dialect;
  }

  get key(): string {
    const { template } = this.#lexedStatement;
    return this.dialect === 'spec' ? template : `\0${this.dialect}\0${template}`;
  }

  get template(): string {
    return this.#lexedStatement.template;
  }

  get guardedTemplate(): string {
    return this.#lexedStatement.guardedTemplate;
  }

  get parameters(): readonly Literal[] {
    return this.#lexedStatement.parameters;
  }

  locationOf(slot: number): Location {
    return this.#lexedStatement.locationOf(slot);
  }

  parse(): Statement {
    return parseLexed(this.#lexedStatement, this.dialect).statement;
  }

  /** The write; null where it is no INSERT, UPDATE or DELETE. */
  write(): WriteStatement | null {
    return parseWrite(this.#lexedStatement, this.dialect);
  }

  /** The graph write; null where it is none. */
  graphWrite(): GraphWrite | null {
    return parseGraphWrite(this.#lexedStatement, this.dialect);
  }

  /** Whether values came apart from the text. */
  get takesParameters(): boolean {
    return this.#lexedStatement.markers.size > 0;
  }

  text(): string {
    if (this.takesParameters) {
      throw new ServiceError(
        'REL_INVALID',
        'this statement is stored as text and takes no parameters: write the values in place of $1',
      );
    }
    return this.#lexedStatement.text;
  }
}

/** A tree that another language has parsed or built, with its values apart. */
export abstract class TreeSource<P extends Pick<ParsedQuery, 'template' | 'parameters' | 'locationOf'>>
  implements StatementSource
{
  abstract readonly key: string;
  readonly dialect: Dialect;
  protected readonly parsed: P;

  constructor(parsed: P, dialect: Dialect) {
    this.parsed = parsed;
    this.dialect = dialect;
  }

  get template(): string {
    return this.parsed.template;
  }

  get guardedTemplate(): string {
    return this.parsed.template;
  }

  get parameters(): readonly Literal[] {
    return this.parsed.parameters;
  }

  locationOf(slot: number): Location {
    return this.parsed.locationOf(slot);
  }

  abstract parse(): Statement;

  text(): string {
    throw new ServiceError('REL_INVALID', 'this statement is stored as text: send it as SQL');
  }
}

export class QuerySource extends TreeSource<ParsedQuery> {
  readonly key: string;

  constructor(parsed: ParsedQuery, dialect: Dialect) {
    super(parsed, dialect);
    const parameterTypes = parsed.parameters.map((value) => (value === null ? 'z' : typeof value)).join();
    this.key = `\0${parsed.language}\0${dialect}\0${parsed.template}\0${parameterTypes}`;
  }

  parse(): Statement {
    return this.parsed.statement;
  }
}

/** The part of a statement that runs, and how. */
export interface QueryStatement {
  readonly query: Query;
  readonly withProvenance: boolean;
  readonly purposeSlot: number | null;
  readonly mode: 'run' | 'plan' | 'analyze' | 'policy';
  /** EXPLAIN's plan comes as one text of JSON. */
  readonly asJson?: true;
  /** Facts for the access record. */
  readonly details: InvocationDetails;
}

/** Throws REL_READ_ONLY for writes and REL_NOT_IMPLEMENTED for statements that are only recognised. */
export function queryStatementOf(statement: Statement): QueryStatement {
  switch (statement.kind) {
    case 'query':
      return {
        query: statement.query,
        withProvenance: statement.withProvenance,
        purposeSlot: statement.purpose?.slot ?? null,
        mode: 'run',
        details: objectTypeFacts(statement.query),
      };
    case 'explain': {
      const explained = queryStatementOf(statement.statement);
      return { ...explained, mode: statement.mode, ...(statement.asJson && { asJson: true }) };
    }
    case 'control':
      throw errorAt('REL_PARSE', 'EXPLAIN takes a query', statement.location);
    case 'write':
      const writeInstead = statement.verb.startsWith('CALL ') ? 'the relational door runs it' : 'use ingest';
      throw errorAt('REL_READ_ONLY', `${statement.verb}: /query is read-only, ${writeInstead}`, statement.location);
    case 'unimplemented':
      throw errorAt('REL_NOT_IMPLEMENTED', `${statement.verb} is not implemented: use ${statement.instead}`, statement.location);
  }
}

/** A PURPOSE clause agrees with the purpose of the request, or stands alone. */
export function statedPurpose(purposeSlot: number | null, source: StatementSource, request: QueryOptions): { purpose?: string } {
  if (purposeSlot === null) return {};
  const purposeText = String(source.parameters[purposeSlot]);
  if (request.purpose !== undefined && request.purpose !== null && request.purpose !== purposeText) {
    throw errorAt('REL_INVALID', 'PURPOSE disagrees with the purpose of the request', source.locationOf(purposeSlot));
  }
  return { purpose: purposeText };
}

/** The record names the types whether or not they can be read. */
function objectTypeFacts(query: Query): { objectType?: string } {
  const types = typesNamed(query);
  return types.length > 0 ? { objectType: types.join(',') } : {};
}

/** The types named in FROM, as they are written, subqueries behind IN aside. */
export function typesNamed(query: Query): readonly string[] {
  const typeNames = new Set<string>();
  const commonNames = new Set<string>();
  const collectSource = (fromSource: Source): void => {
    if (fromSource.kind === 'table') typeNames.add(fromSource.name);
    else if (fromSource.kind === 'subquery') collectQuery(fromSource.query);
    else if (fromSource.kind === 'walk') {
      collectSource(fromSource.input);
      for (const type of fromSource.types) typeNames.add(type);
    } else if (fromSource.kind === 'entities' || fromSource.kind === 'unwind') collectSource(fromSource.input);
    else if (fromSource.kind === 'join') {
      collectSource(fromSource.left);
      collectSource(fromSource.right);
    }
  };
  const collectBody = (each: QueryBody): void => {
    if (each.kind === 'select') return collectSource(each.from);
    collectBody(each.left);
    collectBody(each.right);
  };
  const collectQuery = (each: Query): void => {
    for (const table of each.with) {
      commonNames.add(table.name);
      collectQuery(table.query);
    }
    collectBody(each.body);
  };
  collectQuery(query);
  return [...typeNames].filter((name) => !commonNames.has(name));
}
