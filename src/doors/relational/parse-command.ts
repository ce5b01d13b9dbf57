/** Splits a text into statements, and recognises those that the session answers by itself. */
import { type AdvisoryLockCall, advisoryLockCallIn } from './advisory-lock-call.ts';
import { ServiceError } from '../../errors.ts';
import { type Spread, spreadsIn, withListsWritten } from './any-lists.ts';
import { type Copy, copyOf } from './copy-statement.ts';
import { type CreateTable, createTableOf } from './create-table.ts';
import { type Drop, dropOf } from './drop-statement.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { checkLength } from '../../planner/languages/sql-lexer.ts';
import { ProtocolRefusal } from './errors.ts';
import { StatementTokens } from './statement-tokens.ts';

export type SqlCommand =
  | { readonly kind: 'begin'; readonly tag: string; readonly readOnly: boolean | null }
  | { readonly kind: 'commit' | 'rollback' }
  | { readonly kind: 'set'; readonly name: string; readonly value: string | null; readonly local: boolean }
  | { readonly kind: 'reset'; readonly name: string }
  | { readonly kind: 'show'; readonly name: string }
  | { readonly kind: 'discard' | 'deallocate'; readonly name: string }
  | { readonly kind: 'nothing'; readonly tag: string; readonly notice: string | null }
  | { readonly kind: 'savepoint' | 'release' | 'rollback-to'; readonly name: string }
  | { readonly kind: 'truncate'; readonly tables: readonly string[] }
  | ({ readonly kind: 'create-table' } & CreateTable)
  | ({ readonly kind: 'drop' } & Drop)
  /** Makes nothing; the columns that it names must exist. */
  | { readonly kind: 'create-index'; readonly table: string; readonly columns: readonly string[] }
  | { readonly kind: 'create-schema'; readonly name: string; readonly ifNotExists: boolean }
  | { readonly kind: 'copy'; readonly copy: Copy; readonly text: string }
  /** A statement for the planner: it may write, or only reads. */
  | {
      readonly kind: 'ask';
      readonly text: string;
      readonly mayWrite: boolean;
      readonly verb: string;
      readonly returns: boolean;
      /** The command tag of the reply, in place of the rows that other doors show; null: rows. */
      readonly tag: string | null;
      /** Parameters that are lists. */
      readonly spreads: readonly Spread[];
      /** The advisory lock that it takes or frees; it reads nothing. */
      readonly advisory?: AdvisoryLockCall;
    };

const plainSelect = {
  kind: 'ask',
  mayWrite: false,
  verb: 'SELECT',
  returns: true,
  tag: null,
  spreads: [],
} as const;

/** Strips leading comments and spaces, and the final semicolon. */
function stripComments(commentedSql: string): string {
  let strippedSql = commentedSql.trim();
  for (;;) {
    const commentClosing = strippedSql.startsWith('--') ? '\n' : strippedSql.startsWith('/*') ? '*/' : null;
    if (commentClosing === null) break;
    const commentEnd = strippedSql.indexOf(commentClosing);
    strippedSql = commentEnd < 0 ? '' : strippedSql.slice(commentEnd + commentClosing.length).trimStart();
  }
  return strippedSql.endsWith(';') ? strippedSql.slice(0, -1).trimEnd() : strippedSql;
}

const statementsMax = 1_000;
/** Quotes, comments and semicolons that are found in one step. */
const quoteMarksPerStep = 8_192;

/** Statements in order, without the semicolons between them; blank ones are left out. Linear in the text, in steps. */
export function* splitStatements(queryText: string): Steps<string[]> {
  const statements: string[] = [];
  let quoteMarkCount = 0;
  const quoteMark = /['"`;$]|--|\/\*/g;
  let statementStart = 0;
  for (let markMatch = quoteMark.exec(queryText); markMatch; markMatch = quoteMark.exec(queryText)) {
    if (++quoteMarkCount % quoteMarksPerStep === 0) yield;
    if (markMatch[0] !== ';') {
      const quotedEnd = endOfQuotedSql(queryText, markMatch.index, markMatch[0]);
      if (quotedEnd < 0) break;
      quoteMark.lastIndex = quotedEnd;
      continue;
    }
    add(queryText.slice(statementStart, markMatch.index));
    statementStart = markMatch.index + 1;
  }
  add(queryText.slice(statementStart));
  return statements;

  function add(statement: string): void {
    const bareText = stripComments(statement);
    if (bareText === '') return;
    if (statements.length === statementsMax)
      throw new ServiceError('REL_TOO_LARGE', `a query holds at most ${statementsMax} statements: send more queries`);
    statements.push(statement);
  }
}

/** The offset behind the text, name or comment that begins here; -1 where it does not end. */
function endOfQuotedSql(queryText: string, openingOffset: number, openingQuote: string): number {
  const closingQuote = openingQuote === '$' ? dollarTagAt(queryText, openingOffset) : quoteClosings[openingQuote]!;
  if (closingQuote === null) return openingOffset + 1;
  const quotedStart = openingOffset + (openingQuote === '$' ? closingQuote.length : openingQuote.length);
  if (openingQuote === "'" && /^[eE]$|[^\p{L}\p{N}_$][eE]$/u.test(queryText.slice(Math.max(0, openingOffset - 2), openingOffset)))
    return endOfEscapedText(queryText, quotedStart);
  const closingOffset = queryText.indexOf(closingQuote, quotedStart);
  return closingOffset < 0 ? -1 : closingOffset + closingQuote.length;
}

/** `$tag$` or `$$`, where no name goes on with it. */
function dollarTagAt(queryText: string, dollarOffset: number): string | null {
  if (/[\p{L}\p{N}_$]/u.test(queryText.charAt(dollarOffset - 1))) return null;
  dollarTagPattern.lastIndex = dollarOffset;
  return dollarTagPattern.exec(queryText)?.[0] ?? null;
}

/** A quote behind a backslash does not end the text. */
function endOfEscapedText(queryText: string, escapedStart: number): number {
  for (let escapedOffset = escapedStart; escapedOffset < queryText.length; escapedOffset++) {
    const escapedLetter = queryText.charAt(escapedOffset);
    if (escapedLetter === '\\') escapedOffset++;
    else if (escapedLetter === "'") return escapedOffset + 1;
  }
  return -1;
}

const dollarTagPattern = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;
const quoteClosings: Readonly<Record<string, string>> = { "'": "'", '"': '"', '`': '`', '--': '\n', '/*': '*/' };

/** The first words of a bare text, in upper case; names in quotes as written. */
function sqlWordsOf(bareText: string, wordsMax: number): string[] {
  const sqlWords: string[] = [];
  const sqlWord = /\s*("[^"]*"|[\p{L}_][\p{L}\p{N}_$]*|[^\s])/uy;
  for (let wordMatch = sqlWord.exec(bareText); wordMatch && sqlWords.length < wordsMax; wordMatch = sqlWord.exec(bareText))
    sqlWords.push(wordMatch[1]!.startsWith('"') ? wordMatch[1]! : wordMatch[1]!.toUpperCase());
  return sqlWords;
}

const createTableWords: ReadonlySet<string> = new Set(['TABLE', 'UNLOGGED', 'TEMP', 'TEMPORARY', 'GLOBAL', 'LOCAL']);
const readVerbs: ReadonlySet<string> = new Set(['SELECT', 'VALUES', 'TABLE', 'EXPLAIN', '(']);
/** Texts, and words that are names. */
const quotedOrAliased = /'(?:[^']|'')*'|\bAS\s+(?:INSERT|UPDATE|DELETE)\b/gi;
const writeVerbs = /\b(INSERT|UPDATE|DELETE)\b/i;
/** A procedure that writes says so behind its name. */
const writingCall = /^\s*(PURPOSE\s+'[^']*'\s*)?CALL\s+\w+\s*\.\s*\w+\s*\.\s*write\b/i;

const refusedStatements: Readonly<Record<string, string>> = {
  LISTEN: 'LISTEN is not implemented: WATCH on the HTTP door tells of changes',
  NOTIFY: 'NOTIFY is not implemented',
  DECLARE: 'cursors of SQL are not implemented: portals of the protocol fetch rows in parts',
  PREPARE: 'PREPARE is not implemented: prepare by the protocol',
  LOCK: 'LOCK is not implemented: a statement that meets a newer row is refused, run it again',
  GRANT: 'GRANT is not implemented: policies say who may do what',
  REVOKE: 'REVOKE is not implemented: policies say who may do what',
  VACUUM: 'VACUUM is not implemented: the store tends itself',
  ANALYZE: 'ANALYZE is not implemented: the store tends itself',
  REINDEX: 'REINDEX is not implemented: the store tends itself',
  CLUSTER: 'CLUSTER is not implemented: the store tends itself',
  DO: 'DO is not implemented',
  COMMENT: 'COMMENT is not implemented',
};

/** In steps. REL_PARSE for one that is longer than a statement may be. */
export function* commandOf(sqlStatement: string): Steps<SqlCommand> {
  checkLength(sqlStatement);
  const advisoryCall = /advisory/i.test(sqlStatement) ? advisoryLockCallIn(stripComments(sqlStatement)) : null;
  if (advisoryCall !== null) return { ...plainSelect, text: sqlStatement, advisory: advisoryCall };
  const commandText = yield* withListsWritten(yield* withoutPublicSchema(sqlStatement));
  const bareText = stripComments(commandText);
  // Nearly all texts are of these, and no further word of one matters.
  const commandWords = /^SELECT[\s(*]/i.test(bareText) ? ['SELECT'] : sqlWordsOf(bareText.replace(/^PURPOSE\s+'[^']*'/i, ''), 12);
  const ownCommand =
    transactionCommand(commandWords) ??
    settingCommand(commandWords, bareText) ??
    (yield* tableCommand(commandWords, bareText, commandText));
  return ownCommand ?? (yield* plannerCommand(commandWords, bareText, commandText));
}

function transactionCommand(words: readonly string[]): SqlCommand | null {
  const [first, second] = words;
  switch (first) {
    case 'BEGIN':
      return beginCommand(words.slice(1), 'BEGIN');
    case 'START':
      return second === 'TRANSACTION' ? beginCommand(words.slice(2), 'START TRANSACTION') : null;
    case 'COMMIT':
    case 'END':
      if (second === 'PREPARED') throw notImplemented('two-phase commit is not implemented');
      return { kind: 'commit' };
    case 'ROLLBACK':
    case 'ABORT':
      if (words.includes('TO')) return { kind: 'rollback-to', name: savepointName(words.slice(words.indexOf('TO') + 1)) };
      if (second === 'PREPARED') throw notImplemented('two-phase commit is not implemented');
      return { kind: 'rollback' };
    case 'SAVEPOINT':
      return { kind: 'savepoint', name: savepointName(words.slice(1)) };
    case 'RELEASE':
      return { kind: 'release', name: savepointName(words.slice(1)) };
  }
  return null;
}

/** Settings of the session, and what it keeps under a name: prepared statements, cursors, channels. */
function settingCommand(words: readonly string[], bareText: string): SqlCommand | null {
  const [first = '', second = ''] = words;
  switch (first) {
    case 'SET':
      return setCommand(bareText);
    case 'RESET':
      return { kind: 'reset', name: variableName(bareText.slice(first.length)) };
    case 'SHOW':
      if (second === '') throw new ServiceError('REL_PARSE', 'SHOW takes the name of a setting, or ALL');
      return { kind: 'show', name: variableName(bareText.slice(first.length)) };
    case 'DISCARD':
      return { kind: 'discard', name: second };
    case 'CLOSE':
      if (second === 'ALL') return { kind: 'nothing', tag: 'CLOSE CURSOR ALL', notice: null };
      throw cursorNotFound(words[1] ?? '');
    case 'UNLISTEN':
      return { kind: 'nothing', tag: 'UNLISTEN', notice: null };
    case 'DEALLOCATE':
      return { kind: 'deallocate', name: unquoteWord(words[second === 'PREPARE' ? 2 : 1] ?? '') };
    case 'FETCH':
    case 'MOVE':
      throw cursorNotFound(words.at(-1) ?? '');
    case 'EXECUTE':
      throw new ProtocolRefusal(
        '26000',
        'REL_NOT_FOUND',
        `no statement ${JSON.stringify(unquoteWord(second))} is prepared by PREPARE, which is not implemented`,
      );
  }
  return null;
}

/** Statements about types as tables, and COPY. */
function* tableCommand(words: readonly string[], bareText: string, text: string): Steps<SqlCommand | null> {
  const [first, second = ''] = words;
  switch (first) {
    case 'TRUNCATE':
      return yield* truncateCommand(text);
    case 'CREATE':
      if (second === 'EXTENSION') return extensionCommand(words);
      if (second === 'INDEX') return yield* createIndexCommand(bareText);
      if (second === 'UNIQUE') throw notImplemented('UNIQUE is not implemented: only the primary key is unique');
      if (second === 'SCHEMA') return yield* createSchemaCommand(bareText);
      return createTableWords.has(second) ? { kind: 'create-table', ...(yield* createTableOf(bareText)) } : null;
    case 'DROP':
      return second === 'LOOKUP' ? null : { kind: 'drop', ...(yield* dropOf(bareText)) };
    case 'COPY':
      return { kind: 'copy', copy: yield* copyOf(bareText), text: bareText };
  }
  return null;
}

function* plannerCommand(words: readonly string[], bareText: string, text: string): Steps<SqlCommand> {
  const [first = ''] = words;
  const refusal = refusedStatements[first];
  if (refusal !== undefined) throw notImplemented(refusal);
  const callsWrite = first === 'CALL' && writingCall.test(bareText);
  const mayWrite =
    first === 'CALL'
      ? callsWrite
      : readVerbs.has(first)
        ? false
        : first !== 'WITH' || writeVerbs.test(text.replaceAll(quotedOrAliased, ''));
  const verb = /^[\p{L}]/u.test(first) ? first : 'SELECT';
  return {
    kind: 'ask',
    text,
    mayWrite,
    verb: verb === 'WITH' ? 'SELECT' : verb,
    tag: viewCommandTag(words),
    returns: /\bRETURNING\b/i.test(text),
    spreads: yield* spreadsIn(text),
  };
}

/** The tag of a statement that makes a view; null of any other. */
function viewCommandTag([firstWord, ...viewWords]: readonly string[]): string | null {
  if (firstWord !== 'CREATE') return null;
  if (viewWords[0] === 'MATERIALIZED' && viewWords[1] === 'VIEW') return 'CREATE MATERIALIZED VIEW';
  return viewWords[0] === 'VIEW' || (viewWords[0] === 'OR' && viewWords[2] === 'VIEW') ? 'CREATE VIEW' : null;
}

/** Spaces in place of `public.`, the one schema there is: places of errors stay those of the text that was sent. */
function* withoutPublicSchema(qualifiedSql: string): Steps<string> {
  if (!/\bpublic"?\s*\./i.test(qualifiedSql)) return qualifiedSql;
  const statementTokens = yield* StatementTokens.read(qualifiedSql);
  let unqualifiedSql = '';
  let copiedOffset = 0;
  for (
    let { from: schemaStart, text: tokenText, kind: tokenKind } = statementTokens.next;
    tokenKind !== 'end';
    { from: schemaStart, text: tokenText, kind: tokenKind } = statementTokens.next
  ) {
    yield* statementTokens.pause();
    statementTokens.take();
    const isSchema =
      tokenText === 'public' && (tokenKind === 'word' || tokenKind === 'name') && statementTokens.next.text === '.';
    if (!isSchema) continue;
    const schemaEnd = statementTokens.take().from + '.'.length;
    unqualifiedSql += qualifiedSql.slice(copiedOffset, schemaStart) + ' '.repeat(schemaEnd - schemaStart);
    copiedOffset = schemaEnd;
  }
  return unqualifiedSql + qualifiedSql.slice(copiedOffset);
}

function beginCommand(transactionModeWords: readonly string[], beginTag: string): SqlCommand {
  const bareText = transactionModeWords.join(' ');
  if (!transactionModes.test(bareText))
    throw new ServiceError('REL_PARSE', `no such mode of a transaction: ${bareText.toLowerCase()}`);
  if (/SERIALIZABLE/.test(bareText)) throw notImplemented('SERIALIZABLE is not implemented: a transaction is REPEATABLE READ');
  return { kind: 'begin', tag: beginTag, readOnly: readOnlyMode(bareText) };
}

const transactionMode =
  '(?:ISOLATION LEVEL (?:SERIALIZABLE|REPEATABLE READ|READ (?:UN)?COMMITTED)|READ (?:ONLY|WRITE)|(?:NOT )?DEFERRABLE)';
const transactionModes = new RegExp(`^(?:WORK|TRANSACTION)?(?: ?${transactionMode}(?: ,)?)*$`);

/** The name behind SAVEPOINT, a word that may be left out. */
function savepointName(savepointWords: readonly string[]): string {
  const [savepoint, extraWord] =
    savepointWords[0] === 'SAVEPOINT' && savepointWords.length > 1 ? savepointWords.slice(1) : savepointWords;
  if (savepoint === undefined || extraWord !== undefined || !/^(".+"|[\p{L}_][\p{L}\p{N}_$]*)$/su.test(savepoint))
    throw new ServiceError('REL_PARSE', 'expected the name of a savepoint');
  return savepoint.startsWith('"') ? unquoteWord(savepoint) : savepoint.toLowerCase();
}

/** Whether the modes make a transaction read-only; null: they don't say. */
function readOnlyMode(statedModes: string): boolean | null {
  const readOnlyMatch = /READ (ONLY|WRITE)/.exec(statedModes);
  return readOnlyMatch === null ? null : readOnlyMatch[1] === 'ONLY';
}

const cursorNotFound = (cursorName: string): ServiceError =>
  new ProtocolRefusal(
    '34000',
    'REL_NOT_FOUND',
    `there is no cursor ${JSON.stringify(unquoteWord(cursorName))}: cursors of SQL are not implemented`,
  );

function* createSchemaCommand(bareText: string): Steps<SqlCommand> {
  const statementTokens = yield* StatementTokens.read(bareText);
  statementTokens.expect('CREATE', 'SCHEMA');
  const ifNotExists = statementTokens.skip('IF', 'NOT', 'EXISTS');
  const schemaName = statementTokens.name('the name of a schema');
  if (schemaName !== 'public') throw notImplemented('there is one schema, public');
  return { kind: 'create-schema', name: schemaName, ifNotExists };
}

/** TRUNCATE [TABLE] [ONLY] t, … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]: there are no sequences, and no keys of other tables. */
function* truncateCommand(bareText: string): Steps<SqlCommand> {
  const statementTokens = yield* StatementTokens.read(bareText);
  statementTokens.expect('TRUNCATE');
  statementTokens.skip('TABLE');
  const truncatedTables: string[] = [];
  do {
    yield* statementTokens.pause();
    statementTokens.skip('ONLY');
    truncatedTables.push(statementTokens.tableName());
    statementTokens.skip('*');
  } while (statementTokens.skip(','));
  if (!statementTokens.skip('RESTART', 'IDENTITY')) statementTokens.skip('CONTINUE', 'IDENTITY');
  if (!statementTokens.skip('CASCADE')) statementTokens.skip('RESTRICT');
  statementTokens.expectEnd();
  return { kind: 'truncate', tables: [...new Set(truncatedTables)] };
}

function* createIndexCommand(bareText: string): Steps<SqlCommand> {
  const statementTokens = yield* StatementTokens.read(bareText);
  statementTokens.expect('CREATE', 'INDEX');
  statementTokens.skip('CONCURRENTLY');
  statementTokens.skip('IF', 'NOT', 'EXISTS');
  if (!statementTokens.skip('ON')) {
    statementTokens.name('the name of an index');
    statementTokens.expect('ON');
  }
  statementTokens.skip('ONLY');
  const indexedTable = statementTokens.tableName();
  if (statementTokens.skip('USING')) statementTokens.name('a method');
  const indexedColumns: string[] = [];
  statementTokens.list(() => {
    const { kind: indexTokenKind, text: indexTokenText } = statementTokens.next;
    // An expression reads columns too, but says so in a grammar of its own.
    if (indexTokenKind === 'sign') return void statementTokens.textInParentheses();
    statementTokens.take();
    if (statementTokens.next.text === '(') statementTokens.textInParentheses();
    else indexedColumns.push(indexTokenText);
    while (statementTokens.next.text !== ',' && statementTokens.next.text !== ')') {
      if (statementTokens.next.kind === 'end') throw statementTokens.refusal('expected )');
      if (statementTokens.next.text === '(') statementTokens.textInParentheses();
      else statementTokens.take();
    }
  });
  return { kind: 'create-index', table: indexedTable, columns: indexedColumns };
}

const plannedVerbs: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE', 'SELECT']);

/** Runs at once, and has no columns before it has run. */
export function isControl({ mayWrite, verb: controlVerb }: Extract<SqlCommand, { readonly kind: 'ask' }>): boolean {
  return mayWrite && !plannedVerbs.has(controlVerb);
}

function extensionCommand(extensionWords: readonly string[]): SqlCommand {
  const extensionName = unquoteWord(extensionWords[extensionWords[2] === 'IF' ? 5 : 2] ?? '');
  if (extensionName.toLowerCase() !== 'vector') throw notImplemented('the only extension is vector, and it is always there');
  return { kind: 'nothing', tag: 'CREATE EXTENSION', notice: 'vectors are always there: nothing was created' };
}

const variableTextMax = 4_096;

function setCommand(bareText: string): SqlCommand {
  if (bareText.length > variableTextMax)
    throw new ServiceError('REL_TOO_LARGE', `SET takes at most ${variableTextMax} characters`);
  const setScope = /^SET\s*(?:(SESSION|LOCAL)\s+)?/i.exec(bareText)!;
  const isLocal = setScope[1]?.toUpperCase() === 'LOCAL';
  const afterScope = bareText.slice(setScope[0].length);
  const transactionClause = /^(CHARACTERISTICS\s+AS\s+)?(TRANSACTION\b.*)$/is.exec(afterScope);
  if (transactionClause) {
    const transactionBegin = beginCommand(sqlWordsOf(transactionClause[2]!, 12), '');
    const readOnly = transactionBegin.kind === 'begin' ? transactionBegin.readOnly : null;
    if (readOnly === null) return { kind: 'nothing', tag: 'SET', notice: null };
    const readOnlySwitch = readOnly ? 'on' : 'off';
    return transactionClause[1] === undefined
      ? { kind: 'set', name: 'transaction_read_only', value: readOnlySwitch, local: true }
      : { kind: 'set', name: 'default_transaction_read_only', value: readOnlySwitch, local: false };
  }
  const specialVariable = /^(TIME\s+ZONE|NAMES)\s+/i.exec(afterScope);
  if (specialVariable) {
    const specialName = /^N/i.test(afterScope) ? 'client_encoding' : 'timezone';
    return {
      kind: 'set',
      name: specialName,
      value: variableValueOf(afterScope.slice(specialVariable[0].length)),
      local: isLocal,
    };
  }
  const setVariable = /^([\w.]+|"[^"]+")\s*(?:=|\bTO\b)/i.exec(afterScope);
  if (!setVariable) throw new ServiceError('REL_PARSE', 'SET takes a name, = or TO, and a value');
  return {
    kind: 'set',
    name: variableName(setVariable[1]!),
    value: variableValueOf(afterScope.slice(setVariable[0].length)),
    local: isLocal,
  };
}

/** A text in quotes, or words and numbers as they are; null: DEFAULT. */
function variableValueOf(valueText: string): string | null {
  const trimmedValue = valueText.trim();
  if (/^DEFAULT$/i.test(trimmedValue)) return null;
  if (/^'(?:[^']|'')*'$/.test(trimmedValue)) return trimmedValue.slice(1, -1).replaceAll("''", "'");
  return trimmedValue
    .split(',')
    .map((valuePart) => unquoteWord(valuePart.trim().replace(/^'(.*)'$/s, '$1')))
    .join(', ');
}

function variableName(nameText: string): string {
  const trimmedName = nameText.trim();
  if (/^TIME\s+ZONE$/i.test(trimmedName)) return 'timezone';
  if (/^TRANSACTION\s+ISOLATION\s+LEVEL$/i.test(trimmedName)) return 'transaction_isolation';
  return unquoteWord(trimmedName).toLowerCase();
}

const unquoteWord = (quotedWord: string): string =>
  /^".*"$/s.test(quotedWord) ? quotedWord.slice(1, -1).replaceAll('""', '"') : quotedWord;
const notImplemented = (commandReason: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', commandReason);
