/**
 * Translates a statement of the columnar doors into Annals' words. Its words, quotes, parameters and the clauses FORMAT and
 * SETTINGS are ClickHouse's; the rest of a query is the planner's SQL. Source: specification, "Compatibility doors".
 */
import { ServiceError } from '../../errors.ts';
import { refusedAs } from './errors.ts';
import { parameterOf } from './parameters.ts';
import { serverVersion } from './column-types.ts';
import { type Lexeme, lexemesIn, Unended } from './lexer.ts';
import { allAtOnce, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { statementCharactersMax } from '../../planner/languages/sql-lexer.ts';
import type { Literal, TypedValue } from '../../planner/syntax/statement.ts';

/** The context that a client sends beside the text. */
export interface StatementContext {
  /** The branch that it asks, as it names it. */
  readonly database: string;
  readonly user: string;
  /** Parameters, by the names in braces. */
  readonly parameters: ReadonlyMap<string, string>;
}

export type ColumnarStatement = Stated &
  (
    | {
        readonly kind: 'question';
        readonly sql: string;
        readonly parameters: readonly (Literal | TypedValue)[];
        /** The table whose columns it lists: there is none where it lists none. */
        readonly describes: string | null;
      }
    | { readonly kind: 'insert'; readonly type: string; readonly columns: readonly string[] | null; readonly dataAt: number }
    | { readonly kind: 'kill'; readonly queryId: string }
    | { readonly kind: 'set' }
    | { readonly kind: 'use'; readonly database: string }
  );

interface Stated {
  /** The name behind FORMAT; null without one. */
  readonly format: string | null;
  /** The settings behind SETTINGS. */
  readonly settings: ReadonlyMap<string, string>;
}

/** ClickHouse's statements that have no counterpart here: other doors do their work. */
const notHere = new Set(
  'ALTER ATTACH BACKUP CHECK CREATE DELETE DETACH DROP EXCHANGE GRANT MOVE OPTIMIZE RENAME REPLACE RESTORE REVOKE SYSTEM TRUNCATE UNDROP UPDATE'.split(
    ' ',
  ),
);

/**
 * `text` may end inside an INSERT whose data follows: null where it ends before its data can begin, and `isWhole` is false.
 * Throws REL_PARSE for text that is no statement, REL_NOT_IMPLEMENTED for an unsupported statement.
 */
export function statementOf(text: string, facts: StatementContext, isWhole = true): ColumnarStatement | null {
  try {
    return allAtOnce(statementSteps(text, facts, isWhole));
  } catch (error) {
    if (error instanceof Unended && !isWhole) return null;
    throw error;
  }
}

/** Translates in steps: a query may have hundreds of thousands of words. */
export function statementSteps(text: string, facts: StatementContext, isWhole = true): Steps<ColumnarStatement> {
  return new StatementReader(text, facts, isWhole).statement();
}

/** Whether the text begins with INSERT; null: more bytes are needed. Any other statement has to be read as a whole. */
export function beginsInsert(text: string): boolean | null {
  try {
    const [first] = lexemesIn(text);
    // A word at the very end may go on, and so may a sign that a comment begins with.
    if (first === undefined || first.end === text.length) return null;
    return first.kind === 'word' && first.text.toUpperCase() === 'INSERT';
  } catch (error) {
    if (error instanceof Unended) return null;
    throw error;
  }
}

class StatementReader {
  readonly #text: string;
  readonly #facts: StatementContext;
  readonly #isWhole: boolean;
  readonly #tokens: Iterator<Lexeme, void>;
  readonly #settings = new Map<string, string>();
  readonly #parameters: (Literal | TypedValue)[] = [];
  readonly #numbers = new Map<string, number>();
  #next: Lexeme | null = null;

  constructor(text: string, facts: StatementContext, isWhole: boolean) {
    this.#text = text;
    this.#facts = facts;
    this.#isWhole = isWhole;
    this.#tokens = lexemesIn(text);
    this.#advance();
  }

  *statement(): Steps<ColumnarStatement> {
    const verb = this.#next?.kind === 'word' ? this.#next.text.toUpperCase() : (this.#next?.text ?? '');
    switch (verb) {
      case 'SELECT':
      case 'WITH':
      case 'EXPLAIN':
      case '(':
        return yield* this.#question();
      case 'INSERT':
        return this.#insert();
      case 'SHOW':
        return this.#show();
      case 'DESCRIBE':
      case 'DESC':
        return this.#describe();
      case 'EXISTS':
        return this.#exists();
      case 'KILL':
        return this.#kill();
      case 'SET':
        this.#advance();
        this.#pairs();
        return this.#withEnding({ kind: 'set' as const });
      case 'USE':
        this.#advance();
        return this.#withEnding({ kind: 'use' as const, database: this.#name('a database') });
      case '':
        throw refusedAs('empty', new ServiceError('REL_PARSE', 'Empty query'));
      default:
        if (notHere.has(verb))
          throw new ServiceError('REL_NOT_IMPLEMENTED', `${verb} is not supported: columnar doors read, and insert over HTTP`);
        throw this.#syntax('a statement');
    }
  }

  *#question(): Steps<ColumnarStatement> {
    if (this.#text.length > statementCharactersMax)
      throw new ServiceError('REL_PARSE', `the statement is longer than ${statementCharactersMax} characters`);
    let sql = '';
    let words = 0;
    let end = this.#next?.at ?? 0;
    let before: Lexeme | null = null;
    for (let lexeme = this.#next; lexeme !== null && !this.#isClause(lexeme); lexeme = this.#next) {
      if (++words % wordsInTurn === 0) yield;
      if (lexeme.kind === 'mark' && lexeme.text === ';') {
        this.#advance();
        if (this.#next !== null) throw refusedAs('several', this.#syntax('one statement'));
        break;
      }
      this.#advance();
      const said = this.#translate(lexeme, before);
      // The planner reads E'…' otherwise than a word and a text, and backslashes in it.
      const isApart = lexeme.at > end || (lexeme.kind === 'text' && before?.kind === 'word');
      before = lexeme;
      if (said === null) continue;
      sql += `${isApart ? ' ' : ''}${said}`;
      end = lexeme.end;
    }
    return this.#withEnding({ kind: 'question' as const, sql, parameters: this.#parameters, describes: null });
  }

  /** A token as the planner's SQL writes it; null: it says nothing there. */
  #translate(lexeme: Lexeme, before: Lexeme | null): string | null {
    switch (lexeme.kind) {
      case 'text':
        return textOf(lexeme.text);
      case 'name':
        return this.#isOwnDatabase(lexeme) ? null : nameOf(lexeme.text);
      case 'parameter':
        return this.#parameter(lexeme.text);
      case 'mark':
        if (lexeme.text === '==') return '=';
        if (lexeme.text === '.' && before !== null && this.#skipped === before) return null;
        return lexeme.text;
      case 'word':
        if (this.#isOwnDatabase(lexeme)) return null;
        return this.#next?.text === '(' && this.#next.kind === 'mark' ? this.#call(lexeme) : lexeme.text;
      default:
        return lexeme.text;
    }
  }

  #skipped: Lexeme | null = null;

  /** `default.T` is T: only the current database can be read. */
  #isOwnDatabase(lexeme: Lexeme): boolean {
    if (lexeme.text !== this.#facts.database || this.#next?.text !== '.') return false;
    this.#skipped = lexeme;
    return true;
  }

  /** Functions that the planner lacks, or spells otherwise. */
  #call(lexeme: Lexeme): string {
    const name = lexeme.text.toLowerCase();
    const isBare = (): boolean => this.#text.slice(this.#next!.end).trimStart().startsWith(')');
    const value = {
      version: serverVersion,
      currentdatabase: this.#facts.database,
      database: this.#facts.database,
      currentuser: this.#facts.user,
      user: this.#facts.user,
      timezone: 'UTC',
      hostname: 'annals',
    }[name];
    if (value !== undefined && isBare()) {
      this.#advance();
      this.#advance();
      return textOf(value);
    }
    if (name === 'count' && isBare()) {
      this.#advance();
      this.#advance();
      return 'COUNT(*)';
    }
    return lexeme.text;
  }

  #parameter(text: string): string {
    const match = /^(\w+)\s*:\s*(\S.*)$/s.exec(text.trim());
    if (match === null)
      throw refusedAs('syntax', new ServiceError('REL_PARSE', `{${text.slice(0, 100)}} is no parameter: write {name:Type}`));
    const [, name, type] = match as unknown as [string, string, string];
    const given = this.#facts.parameters.get(name);
    if (given === undefined)
      throw refusedAs(
        'parameter',
        new ServiceError('REL_INVALID', `Substitution \`${name}\` is not set: send it as param_${name}`),
      );
    if (type === 'Identifier') return nameOf(given);
    const known = this.#numbers.get(text);
    if (known !== undefined) return `$${known}`;
    this.#parameters.push(parameterOf(given, type, name));
    this.#numbers.set(text, this.#parameters.length);
    return `$${this.#parameters.length}`;
  }

  #insert(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('INTO')) this.#advance();
    if (this.#isWord('TABLE')) this.#advance();
    if (this.#isWord('FUNCTION')) throw new ServiceError('REL_NOT_IMPLEMENTED', 'INSERT INTO FUNCTION is not supported');
    const type = this.#table();
    const columns = this.#next?.text === '(' ? this.#list() : null;
    if (this.#isWord('SETTINGS')) {
      this.#advance();
      this.#pairs();
    }
    const clause: Lexeme | null = this.#next;
    if (clause === null) throw this.#syntax('the rest of INSERT');
    if (this.#isWord('VALUES')) {
      return { kind: 'insert', type, columns, format: 'Values', settings: this.#settings, dataAt: clause.end };
    }
    if (this.#isWord('SELECT') || this.#isWord('WITH') || clause.text === '(')
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'INSERT … SELECT is not here: send the rows');
    if (!this.#isWord('FORMAT')) throw this.#syntax('VALUES or FORMAT');
    this.#advance();
    const format = this.#next as Lexeme | null;
    if (format?.kind !== 'word') throw this.#syntax('a format');
    return { kind: 'insert', type, columns, format: format.text, settings: this.#settings, dataAt: this.#lineAfter(format) };
  }

  /** Rows begin on the next line, or on this one behind its blanks: an empty line after that is a row. */
  #lineAfter({ end }: Lexeme): number {
    let at = end;
    while (at < this.#text.length && ' \t\r\f'.includes(this.#text[at]!)) at++;
    if (at === this.#text.length && !this.#isWhole) throw new Unended('REL_PARSE', 'the rows of INSERT are missing');
    return this.#text[at] === '\n' ? at + 1 : at;
  }

  #show(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('TEMPORARY')) this.#advance();
    const what = this.#next?.text.toUpperCase();
    this.#advance();
    switch (what) {
      case 'DATABASES':
        return this.#listStatement('SELECT name FROM system.databases', 'name');
      case 'TABLES':
        return this.#listStatement('SELECT name FROM system.tables', 'name', `database = ${textOf(this.#databaseShown())}`);
      case 'SETTINGS':
        return this.#listStatement('SELECT name, type, value FROM system.settings', 'name');
      case 'FUNCTIONS':
        return this.#listStatement('SELECT * FROM system.functions', 'name');
      case 'CREATE':
      case 'PROCESSLIST':
      case 'GRANTS':
        throw new ServiceError('REL_NOT_IMPLEMENTED', `SHOW ${what} is not supported`);
      default:
        throw this.#syntax('DATABASES, TABLES, SETTINGS or FUNCTIONS');
    }
  }

  #databaseShown(): string {
    if (!this.#isWord('FROM') && !this.#isWord('IN')) return this.#facts.database;
    this.#advance();
    const name = this.#name('a database');
    this.#checkDatabase(name);
    return name;
  }

  #listStatement(sql: string, name: string, among = 'true'): ColumnarStatement {
    let where = ` WHERE ${among}`;
    const negated = this.#isWord('NOT');
    if (negated) this.#advance();
    if (this.#isWord('LIKE') || this.#isWord('ILIKE')) {
      const operator = this.#next!.text.toUpperCase();
      this.#advance();
      if (this.#next?.kind !== 'text') throw this.#syntax('a pattern');
      where += ` AND ${name} ${negated ? 'NOT ' : ''}${operator} ${textOf(this.#next.text)}`;
      this.#advance();
    }
    return this.#catalogue(`${sql}${where} ORDER BY ${name}`);
  }

  #describe(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('TABLE')) this.#advance();
    const table = this.#table();
    return this.#catalogue(
      'SELECT name, type, default_kind AS default_type, default_expression, comment, ' +
        `'' AS codec_expression, '' AS ttl_expression FROM system.columns WHERE ${this.#isTable(table, '"table"')} ORDER BY position`,
      table,
    );
  }

  #exists(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('TEMPORARY')) this.#advance();
    const isDatabase = this.#isWord('DATABASE');
    if (isDatabase || this.#isWord('TABLE')) this.#advance();
    if (isDatabase)
      return this.#catalogue(`SELECT COUNT(*) AS result FROM system.databases WHERE name = ${textOf(this.#name('a database'))}`);
    return this.#catalogue(`SELECT COUNT(*) AS result FROM system.tables WHERE ${this.#isTable(this.#table(), 'name')}`);
  }

  /** The condition that selects a table from the catalogue. */
  #isTable(table: string, column: string): string {
    const [database, name] = table.startsWith('system.') ? ['system', table.slice(7)] : [this.#facts.database, table];
    return `database = ${textOf(database)} AND ${column} = ${textOf(name)}`;
  }

  #catalogue(sql: string, describes: string | null = null): ColumnarStatement {
    return this.#withEnding({ kind: 'question' as const, sql, parameters: [], describes });
  }

  #kill(): ColumnarStatement {
    this.#advance();
    if (!this.#isWord('QUERY')) throw new ServiceError('REL_NOT_IMPLEMENTED', 'only KILL QUERY is supported');
    this.#advance();
    const [where, column, equals, id] = [this.#takeText(), this.#takeText(), this.#takeText(), this.#takeText()];
    if (where?.toUpperCase() !== 'WHERE' || column !== 'query_id' || (equals !== '=' && equals !== '==') || id === undefined)
      throw new ServiceError('REL_NOT_IMPLEMENTED', "KILL QUERY ends one of your own: WHERE query_id = '…'");
    for (const mode of ['SYNC', 'ASYNC', 'TEST']) if (this.#isWord(mode)) this.#advance();
    return this.#withEnding({ kind: 'kill' as const, queryId: id });
  }

  #takeText(): string | undefined {
    const text = this.#next?.text;
    this.#advance();
    return text;
  }

  /** FORMAT and SETTINGS, in either order, and the end. */
  #withEnding<T extends object>(statement: T): T & Stated {
    let format: string | null = null;
    for (;;) {
      if (this.#isWord('FORMAT')) {
        this.#advance();
        format = this.#name('a format');
      } else if (this.#isWord('SETTINGS')) {
        this.#advance();
        this.#pairs();
      } else break;
    }
    while (this.#next?.kind === 'mark' && this.#next.text === ';') this.#advance();
    if (this.#next !== null) throw this.#syntax('the end of the statement');
    return { ...statement, format, settings: this.#settings };
  }

  #isClause(lexeme: Lexeme): boolean {
    if (lexeme.kind !== 'word' || lexeme.depth > 0) return false;
    const word = lexeme.text.toUpperCase();
    if (word !== 'FORMAT' && word !== 'SETTINGS') return false;
    // A column may be called so: a clause is followed by a name, and nothing but clauses by that.
    const rest = this.#text.slice(lexeme.end);
    return word === 'FORMAT' ? /^\s+\w+\s*(;|$|SETTINGS\b)/i.test(rest) : /^\s+\w+\s*=/.test(rest);
  }

  #pairs(): void {
    for (;;) {
      const name = this.#name('a setting');
      if ((this.#next as Lexeme | null)?.text !== '=') throw this.#syntax('=');
      this.#advance();
      const value = this.#next as Lexeme | null;
      let sign = '';
      if (value?.text === '-') {
        sign = '-';
        this.#advance();
      }
      const given = this.#next as Lexeme | null;
      if (given === null || given.kind === 'mark') throw this.#syntax('a value');
      this.#settings.set(name, sign + given.text);
      this.#advance();
      if ((this.#next as Lexeme | null)?.text !== ',') return;
      this.#advance();
    }
  }

  #table(): string {
    const first = this.#name('a table');
    if (this.#next?.text !== '.') return first;
    this.#advance();
    const second = this.#name('a table');
    if (first === this.#facts.database) return second;
    return `${first}.${second}`;
  }

  #checkDatabase(name: string): void {
    if (name === this.#facts.database || name === 'system') return;
    throw refusedAs('database', new ServiceError('REL_NOT_FOUND', `Database ${name} is not the current one`));
  }

  #name(what: string): string {
    const lexeme = this.#next;
    if (lexeme?.kind === 'parameter') {
      this.#advance();
      const said = this.#parameter(lexeme.text);
      if (!said.startsWith('"')) throw this.#syntax(what);
      return said.slice(1, -1).replaceAll('""', '"');
    }
    if (lexeme === null || (lexeme.kind !== 'word' && lexeme.kind !== 'name')) throw this.#syntax(what);
    this.#advance();
    return lexeme.text;
  }

  /** Names in brackets. */
  #list(): string[] {
    this.#advance();
    const names: string[] = [];
    for (;;) {
      names.push(this.#name('a column'));
      const mark = this.#next?.text;
      if (mark !== ',' && mark !== ')') throw this.#syntax(', or )');
      this.#advance();
      if (mark === ')') return names;
    }
  }

  #isWord(word: string): boolean {
    return this.#next?.kind === 'word' && this.#next.text.toUpperCase() === word;
  }

  #advance(): void {
    const step = this.#tokens.next();
    // A token at the very end may continue in the bytes to come.
    if (!this.#isWhole && (step.done === true || step.value.end === this.#text.length))
      throw new Unended('REL_PARSE', 'the statement goes on');
    this.#next = step.done === true ? null : step.value;
  }

  #syntax(wanted: string): ServiceError {
    const lexeme = this.#next;
    const where =
      lexeme === null ? 'the end' : `position ${lexeme.at + 1} (${JSON.stringify(this.#text.slice(lexeme.at, lexeme.at + 40))})`;
    return new ServiceError('REL_PARSE', `Syntax error: failed at ${where}: ${wanted} is expected`);
  }
}

/** Words per turn, a millisecond or two of work. */
const wordsInTurn = 2_048;

const textOf = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const nameOf = (text: string): string => `"${text.replaceAll('"', '""')}"`;
