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

export type ColumnarStatement = StatementEnding &
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

interface StatementEnding {
  /** The name behind FORMAT; null without one. */
  readonly format: string | null;
  /** The settings behind SETTINGS. */
  readonly settings: ReadonlyMap<string, string>;
}

/** ClickHouse's statements that have no counterpart here: other doors do their work. */
const unsupportedVerbs = new Set(
  'ALTER ATTACH BACKUP CHECK CREATE DELETE DETACH DROP EXCHANGE GRANT MOVE OPTIMIZE RENAME REPLACE RESTORE REVOKE SYSTEM TRUNCATE UNDROP UPDATE'.split(
    ' ',
  ),
);

/**
 * `statementText` may end inside an INSERT whose data follows: null where it ends before its data can begin, and `isTextWhole` is false.
 * Throws REL_PARSE for text that is no statement, REL_NOT_IMPLEMENTED for an unsupported statement.
 */
export function statementOf(
  statementText: string,
  statementFacts: StatementContext,
  isTextWhole = true,
): ColumnarStatement | null {
  try {
    return allAtOnce(statementSteps(statementText, statementFacts, isTextWhole));
  } catch (statementError) {
    if (statementError instanceof Unended && !isTextWhole) return null;
    throw statementError;
  }
}

/** Translates in steps: a query may have hundreds of thousands of words. */
export function statementSteps(
  statementText: string,
  statementFacts: StatementContext,
  isTextWhole = true,
): Steps<ColumnarStatement> {
  return new StatementReader(statementText, statementFacts, isTextWhole).statement();
}

/** Whether the text begins with INSERT; null: more bytes are needed. Any other statement has to be read as a whole. */
export function beginsInsert(statementText: string): boolean | null {
  try {
    const [firstToken] = lexemesIn(statementText);
    // A word at the very end may go on, and so may a sign that a comment begins with.
    if (firstToken === undefined || firstToken.end === statementText.length) return null;
    return firstToken.kind === 'word' && firstToken.text.toUpperCase() === 'INSERT';
  } catch (lexerError) {
    if (lexerError instanceof Unended) return null;
    throw lexerError;
  }
}

class StatementReader {
  readonly #statementText: string;
  readonly #statementFacts: StatementContext;
  readonly #isTextWhole: boolean;
  readonly #statementTokens: Iterator<Lexeme, void>;
  readonly #statementSettings = new Map<string, string>();
  readonly #boundParameters: (Literal | TypedValue)[] = [];
  readonly #parameterNumbers = new Map<string, number>();
  #nextToken: Lexeme | null = null;

  constructor(statementText: string, statementFacts: StatementContext, isTextWhole: boolean) {
    this.#statementText = statementText;
    this.#statementFacts = statementFacts;
    this.#isTextWhole = isTextWhole;
    this.#statementTokens = lexemesIn(statementText);
    this.#advance();
  }

  *statement(): Steps<ColumnarStatement> {
    const statementVerb = this.#nextToken?.kind === 'word' ? this.#nextToken.text.toUpperCase() : (this.#nextToken?.text ?? '');
    switch (statementVerb) {
      case 'SELECT':
      case 'WITH':
      case 'EXPLAIN':
      case '(':
        return yield* this.#readQuestion();
      case 'INSERT':
        return this.#readInsert();
      case 'SHOW':
        return this.#readShow();
      case 'DESCRIBE':
      case 'DESC':
        return this.#readDescribe();
      case 'EXISTS':
        return this.#readExists();
      case 'KILL':
        return this.#readKillQuery();
      case 'SET':
        this.#advance();
        this.#readSettings();
        return this.#withEnding({ kind: 'set' as const });
      case 'USE':
        this.#advance();
        return this.#withEnding({ kind: 'use' as const, database: this.#readName('a database') });
      case '':
        throw refusedAs('empty', new ServiceError('REL_PARSE', 'Empty query'));
      default:
        if (unsupportedVerbs.has(statementVerb))
          throw new ServiceError(
            'REL_NOT_IMPLEMENTED',
            `${statementVerb} is not supported: columnar doors read, and insert over HTTP`,
          );
        throw this.#syntaxRefusal('a statement');
    }
  }

  *#readQuestion(): Steps<ColumnarStatement> {
    if (this.#statementText.length > statementCharactersMax)
      throw new ServiceError('REL_PARSE', `the statement is longer than ${statementCharactersMax} characters`);
    let questionSql = '';
    let wordCount = 0;
    let lastTokenEnd = this.#nextToken?.at ?? 0;
    let tokenBefore: Lexeme | null = null;
    for (let lexeme = this.#nextToken; lexeme !== null && !this.#isClause(lexeme); lexeme = this.#nextToken) {
      if (++wordCount % sqlWordsInTurn === 0) yield;
      if (lexeme.kind === 'mark' && lexeme.text === ';') {
        this.#advance();
        if (this.#nextToken !== null) throw refusedAs('several', this.#syntaxRefusal('one statement'));
        break;
      }
      this.#advance();
      const translatedToken = this.#translateToken(lexeme, tokenBefore);
      // The planner reads E'…' otherwise than a word and a text, and backslashes in it.
      const isTokenApart = lexeme.at > lastTokenEnd || (lexeme.kind === 'text' && tokenBefore?.kind === 'word');
      tokenBefore = lexeme;
      if (translatedToken === null) continue;
      questionSql += `${isTokenApart ? ' ' : ''}${translatedToken}`;
      lastTokenEnd = lexeme.end;
    }
    return this.#withEnding({ kind: 'question' as const, sql: questionSql, parameters: this.#boundParameters, describes: null });
  }

  /** A token as the planner's SQL writes it; null: it says nothing there. */
  #translateToken(lexeme: Lexeme, tokenBefore: Lexeme | null): string | null {
    switch (lexeme.kind) {
      case 'text':
        return sqlTextOf(lexeme.text);
      case 'name':
        return this.#isOwnDatabase(lexeme) ? null : sqlNameOf(lexeme.text);
      case 'parameter':
        return this.#bindParameter(lexeme.text);
      case 'mark':
        if (lexeme.text === '==') return '=';
        if (lexeme.text === '.' && tokenBefore !== null && this.#skippedDatabase === tokenBefore) return null;
        return lexeme.text;
      case 'word':
        if (this.#isOwnDatabase(lexeme)) return null;
        return this.#nextToken?.text === '(' && this.#nextToken.kind === 'mark' ? this.#translateCall(lexeme) : lexeme.text;
      default:
        return lexeme.text;
    }
  }

  #skippedDatabase: Lexeme | null = null;

  /** `default.T` is T: only the current database can be read. */
  #isOwnDatabase(lexeme: Lexeme): boolean {
    if (lexeme.text !== this.#statementFacts.database || this.#nextToken?.text !== '.') return false;
    this.#skippedDatabase = lexeme;
    return true;
  }

  /** Functions that the planner lacks, or spells otherwise. */
  #translateCall(lexeme: Lexeme): string {
    const calledFunction = lexeme.text.toLowerCase();
    const isCallWithoutArgs = (): boolean => this.#statementText.slice(this.#nextToken!.end).trimStart().startsWith(')');
    const constantValue = {
      version: serverVersion,
      currentdatabase: this.#statementFacts.database,
      database: this.#statementFacts.database,
      currentuser: this.#statementFacts.user,
      user: this.#statementFacts.user,
      timezone: 'UTC',
      hostname: 'annals',
    }[calledFunction];
    if (constantValue !== undefined && isCallWithoutArgs()) {
      this.#advance();
      this.#advance();
      return sqlTextOf(constantValue);
    }
    if (calledFunction === 'count' && isCallWithoutArgs()) {
      this.#advance();
      this.#advance();
      return 'COUNT(*)';
    }
    return lexeme.text;
  }

  #bindParameter(parameterText: string): string {
    const parameterMatch = /^(\w+)\s*:\s*(\S.*)$/s.exec(parameterText.trim());
    if (parameterMatch === null)
      throw refusedAs(
        'syntax',
        new ServiceError('REL_PARSE', `{${parameterText.slice(0, 100)}} is no parameter: write {name:Type}`),
      );
    const [, parameterName, parameterType] = parameterMatch as unknown as [string, string, string];
    const statedParameter = this.#statementFacts.parameters.get(parameterName);
    if (statedParameter === undefined)
      throw refusedAs(
        'parameter',
        new ServiceError('REL_INVALID', `Substitution \`${parameterName}\` is not set: send it as param_${parameterName}`),
      );
    if (parameterType === 'Identifier') return sqlNameOf(statedParameter);
    const knownNumber = this.#parameterNumbers.get(parameterText);
    if (knownNumber !== undefined) return `$${knownNumber}`;
    this.#boundParameters.push(parameterOf(statedParameter, parameterType, parameterName));
    this.#parameterNumbers.set(parameterText, this.#boundParameters.length);
    return `$${this.#boundParameters.length}`;
  }

  #readInsert(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('INTO')) this.#advance();
    if (this.#isWord('TABLE')) this.#advance();
    if (this.#isWord('FUNCTION')) throw new ServiceError('REL_NOT_IMPLEMENTED', 'INSERT INTO FUNCTION is not supported');
    const insertedType = this.#readTableName();
    const insertColumns = this.#nextToken?.text === '(' ? this.#readColumnList() : null;
    if (this.#isWord('SETTINGS')) {
      this.#advance();
      this.#readSettings();
    }
    const insertClause: Lexeme | null = this.#nextToken;
    if (insertClause === null) throw this.#syntaxRefusal('the rest of INSERT');
    if (this.#isWord('VALUES')) {
      return {
        kind: 'insert',
        type: insertedType,
        columns: insertColumns,
        format: 'Values',
        settings: this.#statementSettings,
        dataAt: insertClause.end,
      };
    }
    if (this.#isWord('SELECT') || this.#isWord('WITH') || insertClause.text === '(')
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'INSERT … SELECT is not here: send the rows');
    if (!this.#isWord('FORMAT')) throw this.#syntaxRefusal('VALUES or FORMAT');
    this.#advance();
    const insertFormat = this.#nextToken as Lexeme | null;
    if (insertFormat?.kind !== 'word') throw this.#syntaxRefusal('a format');
    return {
      kind: 'insert',
      type: insertedType,
      columns: insertColumns,
      format: insertFormat.text,
      settings: this.#statementSettings,
      dataAt: this.#lineAfter(insertFormat),
    };
  }

  /** Rows begin on the next line, or on this one behind its blanks: an empty line after that is a row. */
  #lineAfter({ end: formatEnd }: Lexeme): number {
    let dataOffset = formatEnd;
    while (dataOffset < this.#statementText.length && ' \t\r\f'.includes(this.#statementText[dataOffset]!)) dataOffset++;
    if (dataOffset === this.#statementText.length && !this.#isTextWhole)
      throw new Unended('REL_PARSE', 'the rows of INSERT are missing');
    return this.#statementText[dataOffset] === '\n' ? dataOffset + 1 : dataOffset;
  }

  #readShow(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('TEMPORARY')) this.#advance();
    const shownThing = this.#nextToken?.text.toUpperCase();
    this.#advance();
    switch (shownThing) {
      case 'DATABASES':
        return this.#listStatement('SELECT name FROM system.databases', 'name');
      case 'TABLES':
        return this.#listStatement('SELECT name FROM system.tables', 'name', `database = ${sqlTextOf(this.#databaseShown())}`);
      case 'SETTINGS':
        return this.#listStatement('SELECT name, type, value FROM system.settings', 'name');
      case 'FUNCTIONS':
        return this.#listStatement('SELECT * FROM system.functions', 'name');
      case 'CREATE':
      case 'PROCESSLIST':
      case 'GRANTS':
        throw new ServiceError('REL_NOT_IMPLEMENTED', `SHOW ${shownThing} is not supported`);
      default:
        throw this.#syntaxRefusal('DATABASES, TABLES, SETTINGS or FUNCTIONS');
    }
  }

  #databaseShown(): string {
    if (!this.#isWord('FROM') && !this.#isWord('IN')) return this.#statementFacts.database;
    this.#advance();
    const shownDatabase = this.#readName('a database');
    this.#checkDatabase(shownDatabase);
    return shownDatabase;
  }

  #listStatement(listSql: string, listedColumn: string, listCondition = 'true'): ColumnarStatement {
    let listWhere = ` WHERE ${listCondition}`;
    const isNotLike = this.#isWord('NOT');
    if (isNotLike) this.#advance();
    if (this.#isWord('LIKE') || this.#isWord('ILIKE')) {
      const likeOperator = this.#nextToken!.text.toUpperCase();
      this.#advance();
      if (this.#nextToken?.kind !== 'text') throw this.#syntaxRefusal('a pattern');
      listWhere += ` AND ${listedColumn} ${isNotLike ? 'NOT ' : ''}${likeOperator} ${sqlTextOf(this.#nextToken.text)}`;
      this.#advance();
    }
    return this.#catalogueQuestion(`${listSql}${listWhere} ORDER BY ${listedColumn}`);
  }

  #readDescribe(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('TABLE')) this.#advance();
    const describedTable = this.#readTableName();
    return this.#catalogueQuestion(
      'SELECT name, type, default_kind AS default_type, default_expression, comment, ' +
        `'' AS codec_expression, '' AS ttl_expression FROM system.columns WHERE ${this.#tableCondition(describedTable, '"table"')} ORDER BY position`,
      describedTable,
    );
  }

  #readExists(): ColumnarStatement {
    this.#advance();
    if (this.#isWord('TEMPORARY')) this.#advance();
    const isDatabase = this.#isWord('DATABASE');
    if (isDatabase || this.#isWord('TABLE')) this.#advance();
    if (isDatabase)
      return this.#catalogueQuestion(
        `SELECT COUNT(*) AS result FROM system.databases WHERE name = ${sqlTextOf(this.#readName('a database'))}`,
      );
    return this.#catalogueQuestion(
      `SELECT COUNT(*) AS result FROM system.tables WHERE ${this.#tableCondition(this.#readTableName(), 'name')}`,
    );
  }

  /** The condition that selects a table from the catalogue. */
  #tableCondition(tableName: string, nameColumn: string): string {
    const [tableDatabase, bareTableName] = tableName.startsWith('system.')
      ? ['system', tableName.slice(7)]
      : [this.#statementFacts.database, tableName];
    return `database = ${sqlTextOf(tableDatabase)} AND ${nameColumn} = ${sqlTextOf(bareTableName)}`;
  }

  #catalogueQuestion(catalogueSql: string, describedTable: string | null = null): ColumnarStatement {
    return this.#withEnding({ kind: 'question' as const, sql: catalogueSql, parameters: [], describes: describedTable });
  }

  #readKillQuery(): ColumnarStatement {
    this.#advance();
    if (!this.#isWord('QUERY')) throw new ServiceError('REL_NOT_IMPLEMENTED', 'only KILL QUERY is supported');
    this.#advance();
    const [whereWord, killColumn, equalsMark, killedQueryId] = [
      this.#takeText(),
      this.#takeText(),
      this.#takeText(),
      this.#takeText(),
    ];
    if (
      whereWord?.toUpperCase() !== 'WHERE' ||
      killColumn !== 'query_id' ||
      (equalsMark !== '=' && equalsMark !== '==') ||
      killedQueryId === undefined
    )
      throw new ServiceError('REL_NOT_IMPLEMENTED', "KILL QUERY ends one of your own: WHERE query_id = '…'");
    for (const killMode of ['SYNC', 'ASYNC', 'TEST']) if (this.#isWord(killMode)) this.#advance();
    return this.#withEnding({ kind: 'kill' as const, queryId: killedQueryId });
  }

  #takeText(): string | undefined {
    const tokenText = this.#nextToken?.text;
    this.#advance();
    return tokenText;
  }

  /** FORMAT and SETTINGS, in either order, and the end. */
  #withEnding<T extends object>(endedStatement: T): T & StatementEnding {
    let statementFormat: string | null = null;
    for (;;) {
      if (this.#isWord('FORMAT')) {
        this.#advance();
        statementFormat = this.#readName('a format');
      } else if (this.#isWord('SETTINGS')) {
        this.#advance();
        this.#readSettings();
      } else break;
    }
    while (this.#nextToken?.kind === 'mark' && this.#nextToken.text === ';') this.#advance();
    if (this.#nextToken !== null) throw this.#syntaxRefusal('the end of the statement');
    return { ...endedStatement, format: statementFormat, settings: this.#statementSettings };
  }

  #isClause(lexeme: Lexeme): boolean {
    if (lexeme.kind !== 'word' || lexeme.depth > 0) return false;
    const clauseWord = lexeme.text.toUpperCase();
    if (clauseWord !== 'FORMAT' && clauseWord !== 'SETTINGS') return false;
    // A column may be called so: a clause is followed by a name, and nothing but clauses by that.
    const afterClause = this.#statementText.slice(lexeme.end);
    return clauseWord === 'FORMAT' ? /^\s+\w+\s*(;|$|SETTINGS\b)/i.test(afterClause) : /^\s+\w+\s*=/.test(afterClause);
  }

  #readSettings(): void {
    for (;;) {
      const settingName = this.#readName('a setting');
      if ((this.#nextToken as Lexeme | null)?.text !== '=') throw this.#syntaxRefusal('=');
      this.#advance();
      const settingToken = this.#nextToken as Lexeme | null;
      let settingSign = '';
      if (settingToken?.text === '-') {
        settingSign = '-';
        this.#advance();
      }
      const settingValue = this.#nextToken as Lexeme | null;
      if (settingValue === null || settingValue.kind === 'mark') throw this.#syntaxRefusal('a value');
      this.#statementSettings.set(settingName, settingSign + settingValue.text);
      this.#advance();
      if ((this.#nextToken as Lexeme | null)?.text !== ',') return;
      this.#advance();
    }
  }

  #readTableName(): string {
    const firstName = this.#readName('a table');
    if (this.#nextToken?.text !== '.') return firstName;
    this.#advance();
    const secondName = this.#readName('a table');
    if (firstName === this.#statementFacts.database) return secondName;
    return `${firstName}.${secondName}`;
  }

  #checkDatabase(databaseName: string): void {
    if (databaseName === this.#statementFacts.database || databaseName === 'system') return;
    throw refusedAs('database', new ServiceError('REL_NOT_FOUND', `Database ${databaseName} is not the current one`));
  }

  #readName(expectedName: string): string {
    const lexeme = this.#nextToken;
    if (lexeme?.kind === 'parameter') {
      this.#advance();
      const boundName = this.#bindParameter(lexeme.text);
      if (!boundName.startsWith('"')) throw this.#syntaxRefusal(expectedName);
      return boundName.slice(1, -1).replaceAll('""', '"');
    }
    if (lexeme === null || (lexeme.kind !== 'word' && lexeme.kind !== 'name')) throw this.#syntaxRefusal(expectedName);
    this.#advance();
    return lexeme.text;
  }

  /** Names in brackets. */
  #readColumnList(): string[] {
    this.#advance();
    const columnNames: string[] = [];
    for (;;) {
      columnNames.push(this.#readName('a column'));
      const listMark = this.#nextToken?.text;
      if (listMark !== ',' && listMark !== ')') throw this.#syntaxRefusal(', or )');
      this.#advance();
      if (listMark === ')') return columnNames;
    }
  }

  #isWord(sqlWord: string): boolean {
    return this.#nextToken?.kind === 'word' && this.#nextToken.text.toUpperCase() === sqlWord;
  }

  #advance(): void {
    const tokenStep = this.#statementTokens.next();
    // A token at the very end may continue in the bytes to come.
    if (!this.#isTextWhole && (tokenStep.done === true || tokenStep.value.end === this.#statementText.length))
      throw new Unended('REL_PARSE', 'the statement goes on');
    this.#nextToken = tokenStep.done === true ? null : tokenStep.value;
  }

  #syntaxRefusal(expectedSyntax: string): ServiceError {
    const lexeme = this.#nextToken;
    const failedPosition =
      lexeme === null
        ? 'the end'
        : `position ${lexeme.at + 1} (${JSON.stringify(this.#statementText.slice(lexeme.at, lexeme.at + 40))})`;
    return new ServiceError('REL_PARSE', `Syntax error: failed at ${failedPosition}: ${expectedSyntax} is expected`);
  }
}

/** Words per turn, a millisecond or two of work. */
const sqlWordsInTurn = 2_048;

const sqlTextOf = (sqlText: string): string => `'${sqlText.replaceAll("'", "''")}'`;
const sqlNameOf = (sqlName: string): string => `"${sqlName.replaceAll('"', '""')}"`;
