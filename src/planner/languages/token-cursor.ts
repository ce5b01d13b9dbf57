/**
 * A position in the tokens of one statement, with the operations of a recursive-descent parser. Recursion goes through `nest`
 * and left-deep chains through `countLink`, so that no tree is too deep for the recursion of later passes.
 */
import type { ErrorReason, ServiceError } from '../../errors.ts';
import type { AsOf, Dialect, OrderItem, Location, Query, Slot, Window } from '../syntax/statement.ts';
import { type LexedStatement, parseError, type Token } from './sql-lexer.ts';

const statementNestingMax = 200;
const chainedLinksMax = 500;
const nestedSubqueriesMax = 40;
/** Arguments of a call, expressions in GROUP BY or in ORDER BY: each is code, or a table, of its own. */
export const itemsMax = 1_024;

/** Readers of wholes, for expressions that hold one. */
export interface Readers {
  readonly readQuery: (cursor: TokenCursor) => Query;
  readonly readOrder: (cursor: TokenCursor) => OrderItem[];
}

const lockWords: ReadonlySet<string> = new Set(['UPDATE', 'SHARE', 'NO', 'KEY']);

export class TokenCursor {
  readonly lexed: LexedStatement;
  readonly dialect: Exclude<Dialect, 'graph'>;
  /** An entity that is returned alone is one value. */
  readonly isGraph: boolean;
  readonly #statementTokens: readonly Token[];
  /** Reads a whole query, for expressions that hold one. */
  readonly #readNestedQuery: (cursor: TokenCursor) => Query;
  /** Reads the items of ORDER BY. */
  readonly readOrder: (cursor: TokenCursor) => OrderItem[];
  #tokenIndex = 0;
  #nestingDepth = 0;
  #linkCount = 0;
  #subqueryDepth = 0;
  /** The one AS OF of the statement. */
  asOf: AsOf | null = null;
  /** Some expression stands in several places of the tree. */
  repeats = false;
  /** Values in lists of rows that are compared. */
  listed = 0;
  /** The statement is a write, in which RETURNING is no name. */
  writes = false;
  /** The meaning of SUM and MAX here: in RANK BY and COMPUTE they are functions of several values. */
  aggregates: 'allowed' | 'refused' | 'within' | 'functions' = 'refused';

  /** The windows of the SELECT whose clause of them was read last; null where it is still to come. */
  windows: ReadonlyMap<string, Window> | null = null;

  constructor(lexed: LexedStatement, { readQuery, readOrder }: Readers, dialect: Dialect) {
    this.lexed = lexed;
    this.dialect = dialect === 'graph' ? 'wide' : dialect;
    this.isGraph = dialect === 'graph';
    this.#statementTokens = lexed.tokens;
    this.#readNestedQuery = readQuery;
    this.readOrder = readOrder;
  }

  get token(): Token {
    return this.#statementTokens[this.#tokenIndex]!;
  }

  /** The key of the token `ahead` of this one. */
  key(ahead = 0): string {
    return this.peek(ahead).key;
  }

  peek(ahead: number): Token {
    return this.#statementTokens[Math.min(this.#tokenIndex + ahead, this.#statementTokens.length - 1)]!;
  }

  get location(): Location {
    return this.lexed.locationAt(this.token.start);
  }

  next(): Token {
    const currentToken = this.token;
    if (currentToken.kind !== 'end') this.#tokenIndex++;
    return currentToken;
  }

  /** Reads what stands behind the next such word of this query, and comes back; null where there is none. */
  ahead<T>(wantedKey: string, readAheadClause: () => T): T | null {
    const currentIndex = this.#tokenIndex;
    for (let aheadIndex = currentIndex, bracketDepth = 0; aheadIndex < this.#statementTokens.length; aheadIndex++) {
      const aheadKey = this.#statementTokens[aheadIndex]!.key;
      if (aheadKey === '(') bracketDepth++;
      else if (aheadKey === ')') bracketDepth--;
      else if (aheadKey === wantedKey && bracketDepth <= 0) {
        this.#tokenIndex = aheadIndex + 1;
        const result = readAheadClause();
        this.#tokenIndex = currentIndex;
        return result;
      }
    }
    return null;
  }

  accept(key: string): boolean {
    if (this.token.key !== key) return false;
    this.#tokenIndex++;
    return true;
  }

  /** Two words that only mean something together. */
  acceptPair(first: string, second: string): boolean {
    if (this.token.key !== first || this.key(1) !== second) return false;
    this.#tokenIndex += 2;
    return true;
  }

  expect(key: string): void {
    if (!this.accept(key)) throw this.expectedError(key);
  }

  isName(): boolean {
    return !this.token.reserved && !(this.writes && this.token.key === 'RETURNING') && !this.locks();
  }

  /** FOR UPDATE and the like stand here. */
  locks(): boolean {
    return this.token.key === 'FOR' && this.dialect === 'wide' && lockWords.has(this.key(1));
  }

  name(expected: string): string {
    if (!this.isName()) throw this.expectedError(expected);
    return this.next().text;
  }

  /** A value of which no type is known is of any. */
  isLiteral(type: 's' | 'i' | 'b' | 'timestamp' | 'date'): boolean {
    return this.token.kind === 'literal' && (this.token.text === type || this.token.text === 'u');
  }

  literal(type: 's' | 'i', expected: string): Slot {
    if (!this.isLiteral(type)) throw this.expectedError(expected);
    if (this.token.text === 'u') this.lexed.settle(this.token.slot, type);
    return this.anyLiteral(expected);
  }

  anyLiteral(expected: string): Slot {
    if (this.token.kind !== 'literal') throw this.expectedError(expected);
    const location = this.location;
    return { slot: this.next().slot, location };
  }

  textOf(slot: Slot): string {
    const slotValue = this.lexed.parameters[slot.slot];
    return typeof slotValue === 'string' ? slotValue : String(slotValue);
  }

  expectedError(expected: string): ServiceError {
    return this.error(`expected ${expected}, found ${describeToken(this.token)}`);
  }

  error(message: string, location: Location = this.location, reason?: ErrorReason): ServiceError {
    return parseError(location, message, reason);
  }

  notImplemented(feature: string, location: Location = this.location): ServiceError {
    return parseError(location, `${feature} is not implemented`, 'not-implemented');
  }

  /** Refuses features that rule 10 of the specification lists as not implemented, except in the wide dialect. */
  wideOnly(feature: string, location: Location = this.location): void {
    if (this.dialect === 'spec') throw this.notImplemented(feature, location);
  }

  nest<T>(readNested: () => T): T {
    if (this.#nestingDepth === statementNestingMax) throw this.error(`nested deeper than ${statementNestingMax} levels`);
    this.#nestingDepth++;
    const nestedTree = readNested();
    this.#nestingDepth--;
    return nestedTree;
  }

  countLink(): void {
    if (++this.#linkCount > chainedLinksMax)
      throw this.error(`more than ${chainedLinksMax} arithmetic operators, joins and set operations`);
  }

  /** A query inside the statement's own: in FROM, in IN, in WITH. */
  subquery(): Query {
    if (this.#subqueryDepth === nestedSubqueriesMax) throw this.error(`subqueries nested deeper than ${nestedSubqueriesMax}`);
    const outerAggregates = this.aggregates;
    this.#subqueryDepth++;
    const nestedQuery = this.#readNestedQuery(this);
    this.#subqueryDepth--;
    this.aggregates = outerAggregates;
    return nestedQuery;
  }

  /** The query of a statement that is about a query. */
  query(): Query {
    return this.#readNestedQuery(this);
  }

  get inSubquery(): boolean {
    return this.#subqueryDepth > 0;
  }
}

/** A token as an error names it. Never the value of a literal: errors reach logs. */
export function describeToken(token: Token): string {
  switch (token.kind) {
    case 'end':
      return token.text;
    case 'literal':
      return literalNames[token.text] ?? `a ${token.text}`;
    case 'quoted':
      return `the name "${token.text}"`;
    default:
      return `'${token.text}'`;
  }
}

const literalNames: Readonly<Record<string, string>> = {
  s: 'a string',
  i: 'an integer',
  n: 'a number',
  b: 'a boolean',
  u: 'a parameter',
  null: 'NULL',
};
