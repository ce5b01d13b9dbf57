/**
 * A position in the tokens of one statement, with the operations of a recursive-descent parser. Recursion goes through `nest`
 * and left-deep chains through `countLink`, so that no tree is too deep for the recursion of later passes.
 */
import type { ErrorReason, ServiceError } from '../../errors.ts';
import type { AsOf, Dialect, OrderItem, Location, Query, Slot, Window } from '../syntax/statement.ts';
import { type LexedStatement, parseError, type Token } from './sql-lexer.ts';

const nestingMax = 200;
const linksMax = 500;
const subqueriesMax = 40;
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
  readonly #tokens: readonly Token[];
  /** Reads a whole query, for expressions that hold one. */
  readonly #readQuery: (cursor: TokenCursor) => Query;
  /** Reads the items of ORDER BY. */
  readonly readOrder: (cursor: TokenCursor) => OrderItem[];
  #at = 0;
  #nesting = 0;
  #links = 0;
  #subqueries = 0;
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
    this.#tokens = lexed.tokens;
    this.#readQuery = readQuery;
    this.readOrder = readOrder;
  }

  get token(): Token {
    return this.#tokens[this.#at]!;
  }

  /** The key of the token `ahead` of this one. */
  key(ahead = 0): string {
    return this.peek(ahead).key;
  }

  peek(ahead: number): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)]!;
  }

  get location(): Location {
    return this.lexed.locationAt(this.token.start);
  }

  next(): Token {
    const token = this.token;
    if (token.kind !== 'end') this.#at++;
    return token;
  }

  /** Reads what stands behind the next such word of this query, and comes back; null where there is none. */
  ahead<T>(key: string, read: () => T): T | null {
    const from = this.#at;
    for (let at = from, depth = 0; at < this.#tokens.length; at++) {
      const word = this.#tokens[at]!.key;
      if (word === '(') depth++;
      else if (word === ')') depth--;
      else if (word === key && depth <= 0) {
        this.#at = at + 1;
        const result = read();
        this.#at = from;
        return result;
      }
    }
    return null;
  }

  accept(key: string): boolean {
    if (this.token.key !== key) return false;
    this.#at++;
    return true;
  }

  /** Two words that only mean something together. */
  acceptPair(first: string, second: string): boolean {
    if (this.token.key !== first || this.key(1) !== second) return false;
    this.#at += 2;
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
    const value = this.lexed.parameters[slot.slot];
    return typeof value === 'string' ? value : String(value);
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

  nest<T>(read: () => T): T {
    if (this.#nesting === nestingMax) throw this.error(`nested deeper than ${nestingMax} levels`);
    this.#nesting++;
    const value = read();
    this.#nesting--;
    return value;
  }

  countLink(): void {
    if (++this.#links > linksMax) throw this.error(`more than ${linksMax} arithmetic operators, joins and set operations`);
  }

  /** A query inside the statement's own: in FROM, in IN, in WITH. */
  subquery(): Query {
    if (this.#subqueries === subqueriesMax) throw this.error(`subqueries nested deeper than ${subqueriesMax}`);
    const aggregates = this.aggregates;
    this.#subqueries++;
    const query = this.#readQuery(this);
    this.#subqueries--;
    this.aggregates = aggregates;
    return query;
  }

  /** The query of a statement that is about a query. */
  query(): Query {
    return this.#readQuery(this);
  }

  get inSubquery(): boolean {
    return this.#subqueries > 0;
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
