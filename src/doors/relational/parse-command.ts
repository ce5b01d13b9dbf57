/** Splits a text into statements, and recognises those that the session answers by itself. */
import { type AdvisoryLockCall, advisoryLockCallIn } from './advisory-lock-call.ts';
import { ServiceError } from '../../errors.ts';
import { type Spread, spreadsIn, withListsWritten } from './any-lists.ts';
import { stripComments } from './strip-comments.ts';
import { type Copy, copyOf } from './copy-statement.ts';
import { type CreateTable, createTableOf } from './create-table.ts';
import { type Drop, dropOf } from './drop-statement.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { checkLength } from '../../planner/languages/sql-lexer.ts';
import { ProtocolRefusal } from './errors.ts';
import { Lexemes } from './lexer.ts';

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

const statementsMax = 1_000;
/** Quotes, comments and semicolons that are found in one step. */
const marksPerStep = 8_192;

/** Statements in order, without the semicolons between them; blank ones are left out. Linear in the text, in steps. */
export function* splitStatements(text: string): Steps<string[]> {
  const statements: string[] = [];
  let marks = 0;
  const pattern = /['"`;$]|--|\/\*/g;
  let from = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    if (++marks % marksPerStep === 0) yield;
    if (match[0] !== ';') {
      const end = endOfQuoted(text, match.index, match[0]);
      if (end < 0) break;
      pattern.lastIndex = end;
      continue;
    }
    add(text.slice(from, match.index));
    from = match.index + 1;
  }
  add(text.slice(from));
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
function endOfQuoted(text: string, at: number, opening: string): number {
  const closing = opening === '$' ? dollarTagAt(text, at) : closings[opening]!;
  if (closing === null) return at + 1;
  const from = at + (opening === '$' ? closing.length : opening.length);
  if (opening === "'" && /^[eE]$|[^\p{L}\p{N}_$][eE]$/u.test(text.slice(Math.max(0, at - 2), at)))
    return endOfEscaped(text, from);
  const end = text.indexOf(closing, from);
  return end < 0 ? -1 : end + closing.length;
}

/** `$tag$` or `$$`, where no name goes on with it. */
function dollarTagAt(text: string, at: number): string | null {
  if (/[\p{L}\p{N}_$]/u.test(text.charAt(at - 1))) return null;
  dollarTag.lastIndex = at;
  return dollarTag.exec(text)?.[0] ?? null;
}

/** A quote behind a backslash does not end the text. */
function endOfEscaped(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const letter = text.charAt(at);
    if (letter === '\\') at++;
    else if (letter === "'") return at + 1;
  }
  return -1;
}

const dollarTag = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;
const closings: Readonly<Record<string, string>> = { "'": "'", '"': '"', '`': '`', '--': '\n', '/*': '*/' };

/** The first words of a bare text, in upper case; names in quotes as written. */
function wordsOf(bareText: string, most: number): string[] {
  const words: string[] = [];
  const pattern = /\s*("[^"]*"|[\p{L}_][\p{L}\p{N}_$]*|[^\s])/uy;
  for (let match = pattern.exec(bareText); match && words.length < most; match = pattern.exec(bareText))
    words.push(match[1]!.startsWith('"') ? match[1]! : match[1]!.toUpperCase());
  return words;
}

const tables: ReadonlySet<string> = new Set(['TABLE', 'UNLOGGED', 'TEMP', 'TEMPORARY', 'GLOBAL', 'LOCAL']);
const questions: ReadonlySet<string> = new Set(['SELECT', 'VALUES', 'TABLE', 'EXPLAIN', '(']);
/** Texts, and words that are names. */
const noWords = /'(?:[^']|'')*'|\bAS\s+(?:INSERT|UPDATE|DELETE)\b/gi;
const writes = /\b(INSERT|UPDATE|DELETE)\b/i;
/** A procedure that writes says so behind its name. */
const callWrites = /^\s*(PURPOSE\s+'[^']*'\s*)?CALL\s+\w+\s*\.\s*\w+\s*\.\s*write\b/i;

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
export function* commandOf(statement: string): Steps<SqlCommand> {
  checkLength(statement);
  const advisory = /advisory/i.test(statement) ? advisoryLockCallIn(stripComments(statement)) : null;
  if (advisory !== null) return { ...plainSelect, text: statement, advisory };
  const text = yield* withListsWritten(yield* withoutSchema(statement));
  const bareText = stripComments(text);
  // Nearly all texts are of these, and no further word of one matters.
  const words = /^SELECT[\s(*]/i.test(bareText) ? ['SELECT'] : wordsOf(bareText.replace(/^PURPOSE\s+'[^']*'/i, ''), 12);
  const ownCommand = transactionCommand(words) ?? settingCommand(words, bareText) ?? (yield* tableCommand(words, bareText, text));
  return ownCommand ?? (yield* plannerCommand(words, bareText, text));
}

function transactionCommand(words: readonly string[]): SqlCommand | null {
  const [first, second] = words;
  switch (first) {
    case 'BEGIN':
      return begin(words.slice(1), 'BEGIN');
    case 'START':
      return second === 'TRANSACTION' ? begin(words.slice(2), 'START TRANSACTION') : null;
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
      return set(bareText);
    case 'RESET':
      return { kind: 'reset', name: variableName(bareText.slice(first.length)) };
    case 'SHOW':
      if (second === '') throw new ServiceError('REL_PARSE', 'SHOW takes the name of a setting, or ALL');
      return { kind: 'show', name: variableName(bareText.slice(first.length)) };
    case 'DISCARD':
      return { kind: 'discard', name: second };
    case 'CLOSE':
      if (second === 'ALL') return { kind: 'nothing', tag: 'CLOSE CURSOR ALL', notice: null };
      throw noCursor(words[1] ?? '');
    case 'UNLISTEN':
      return { kind: 'nothing', tag: 'UNLISTEN', notice: null };
    case 'DEALLOCATE':
      return { kind: 'deallocate', name: unquote(words[second === 'PREPARE' ? 2 : 1] ?? '') };
    case 'FETCH':
    case 'MOVE':
      throw noCursor(words.at(-1) ?? '');
    case 'EXECUTE':
      throw new ProtocolRefusal(
        '26000',
        'REL_NOT_FOUND',
        `no statement ${JSON.stringify(unquote(second))} is prepared by PREPARE, which is not implemented`,
      );
  }
  return null;
}

/** Statements about types as tables, and COPY. */
function* tableCommand(words: readonly string[], bareText: string, text: string): Steps<SqlCommand | null> {
  const [first, second = ''] = words;
  switch (first) {
    case 'TRUNCATE':
      return yield* truncate(text);
    case 'CREATE':
      if (second === 'EXTENSION') return extension(words);
      if (second === 'INDEX') return yield* createIndex(bareText);
      if (second === 'UNIQUE') throw notImplemented('UNIQUE is not implemented: only the primary key is unique');
      if (second === 'SCHEMA') return yield* createSchema(bareText);
      return tables.has(second) ? { kind: 'create-table', ...(yield* createTableOf(bareText)) } : null;
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
  const callsWrite = first === 'CALL' && callWrites.test(bareText);
  const mayWrite =
    first === 'CALL' ? callsWrite : questions.has(first) ? false : first !== 'WITH' || writes.test(text.replaceAll(noWords, ''));
  const verb = /^[\p{L}]/u.test(first) ? first : 'SELECT';
  return {
    kind: 'ask',
    text,
    mayWrite,
    verb: verb === 'WITH' ? 'SELECT' : verb,
    tag: viewTag(words),
    returns: /\bRETURNING\b/i.test(text),
    spreads: yield* spreadsIn(text),
  };
}

/** The tag of a statement that makes a view; null of any other. */
function viewTag([first, ...words]: readonly string[]): string | null {
  if (first !== 'CREATE') return null;
  if (words[0] === 'MATERIALIZED' && words[1] === 'VIEW') return 'CREATE MATERIALIZED VIEW';
  return words[0] === 'VIEW' || (words[0] === 'OR' && words[2] === 'VIEW') ? 'CREATE VIEW' : null;
}

/** Spaces in place of `public.`, the one schema there is: places of errors stay those of the text that was sent. */
function* withoutSchema(text: string): Steps<string> {
  if (!/\bpublic"?\s*\./i.test(text)) return text;
  const lexemes = yield* Lexemes.read(text);
  let bare = '';
  let at = 0;
  for (let { from, text: name, kind } = lexemes.next; kind !== 'end'; { from, text: name, kind } = lexemes.next) {
    yield* lexemes.pause();
    lexemes.take();
    const isSchema = name === 'public' && (kind === 'word' || kind === 'name') && lexemes.next.text === '.';
    if (!isSchema) continue;
    const { to } = lexemes.take();
    bare += text.slice(at, from) + ' '.repeat(to - from);
    at = to;
  }
  return bare + text.slice(at);
}

function begin(modes: readonly string[], tag: string): SqlCommand {
  const bareText = modes.join(' ');
  if (!transactionModes.test(bareText))
    throw new ServiceError('REL_PARSE', `no such mode of a transaction: ${bareText.toLowerCase()}`);
  if (/SERIALIZABLE/.test(bareText)) throw notImplemented('SERIALIZABLE is not implemented: a transaction is REPEATABLE READ');
  return { kind: 'begin', tag, readOnly: readOnlyOf(bareText) };
}

const mode = '(?:ISOLATION LEVEL (?:SERIALIZABLE|REPEATABLE READ|READ (?:UN)?COMMITTED)|READ (?:ONLY|WRITE)|(?:NOT )?DEFERRABLE)';
const transactionModes = new RegExp(`^(?:WORK|TRANSACTION)?(?: ?${mode}(?: ,)?)*$`);

/** The name behind SAVEPOINT, a word that may be left out. */
function savepointName(words: readonly string[]): string {
  const [name, more] = words[0] === 'SAVEPOINT' && words.length > 1 ? words.slice(1) : words;
  if (name === undefined || more !== undefined || !/^(".+"|[\p{L}_][\p{L}\p{N}_$]*)$/su.test(name))
    throw new ServiceError('REL_PARSE', 'expected the name of a savepoint');
  return name.startsWith('"') ? unquote(name) : name.toLowerCase();
}

/** Whether the modes make a transaction read-only; null: they don't say. */
function readOnlyOf(modes: string): boolean | null {
  const stated = /READ (ONLY|WRITE)/.exec(modes);
  return stated === null ? null : stated[1] === 'ONLY';
}

const noCursor = (name: string): ServiceError =>
  new ProtocolRefusal(
    '34000',
    'REL_NOT_FOUND',
    `there is no cursor ${JSON.stringify(unquote(name))}: cursors of SQL are not implemented`,
  );

function* createSchema(bareText: string): Steps<SqlCommand> {
  const lexemes = yield* Lexemes.read(bareText);
  lexemes.expect('CREATE', 'SCHEMA');
  const ifNotExists = lexemes.skip('IF', 'NOT', 'EXISTS');
  const name = lexemes.name('the name of a schema');
  if (name !== 'public') throw notImplemented('there is one schema, public');
  return { kind: 'create-schema', name, ifNotExists };
}

/** TRUNCATE [TABLE] [ONLY] t, … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]: there are no sequences, and no keys of other tables. */
function* truncate(bareText: string): Steps<SqlCommand> {
  const lexemes = yield* Lexemes.read(bareText);
  lexemes.expect('TRUNCATE');
  lexemes.skip('TABLE');
  const tables: string[] = [];
  do {
    yield* lexemes.pause();
    lexemes.skip('ONLY');
    tables.push(lexemes.tableName());
    lexemes.skip('*');
  } while (lexemes.skip(','));
  if (!lexemes.skip('RESTART', 'IDENTITY')) lexemes.skip('CONTINUE', 'IDENTITY');
  if (!lexemes.skip('CASCADE')) lexemes.skip('RESTRICT');
  lexemes.expectEnd();
  return { kind: 'truncate', tables: [...new Set(tables)] };
}

function* createIndex(bareText: string): Steps<SqlCommand> {
  const lexemes = yield* Lexemes.read(bareText);
  lexemes.expect('CREATE', 'INDEX');
  lexemes.skip('CONCURRENTLY');
  lexemes.skip('IF', 'NOT', 'EXISTS');
  if (!lexemes.skip('ON')) {
    lexemes.name('the name of an index');
    lexemes.expect('ON');
  }
  lexemes.skip('ONLY');
  const table = lexemes.tableName();
  if (lexemes.skip('USING')) lexemes.name('a method');
  const columns: string[] = [];
  lexemes.list(() => {
    const { kind, text } = lexemes.next;
    // An expression reads columns too, but says so in a grammar of its own.
    if (kind === 'sign') return void lexemes.textInParentheses();
    lexemes.take();
    if (lexemes.next.text === '(') lexemes.textInParentheses();
    else columns.push(text);
    while (lexemes.next.text !== ',' && lexemes.next.text !== ')') {
      if (lexemes.next.kind === 'end') throw lexemes.refusal('expected )');
      if (lexemes.next.text === '(') lexemes.textInParentheses();
      else lexemes.take();
    }
  });
  return { kind: 'create-index', table, columns };
}

const planned: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE', 'SELECT']);

/** Runs at once, and has no columns before it has run. */
export function isControl({ mayWrite, verb }: Extract<SqlCommand, { readonly kind: 'ask' }>): boolean {
  return mayWrite && !planned.has(verb);
}

function extension(words: readonly string[]): SqlCommand {
  const name = unquote(words[words[2] === 'IF' ? 5 : 2] ?? '');
  if (name.toLowerCase() !== 'vector') throw notImplemented('the only extension is vector, and it is always there');
  return { kind: 'nothing', tag: 'CREATE EXTENSION', notice: 'vectors are always there: nothing was created' };
}

const variableTextMax = 4_096;

function set(bareText: string): SqlCommand {
  if (bareText.length > variableTextMax)
    throw new ServiceError('REL_TOO_LARGE', `SET takes at most ${variableTextMax} characters`);
  const scope = /^SET\s*(?:(SESSION|LOCAL)\s+)?/i.exec(bareText)!;
  const local = scope[1]?.toUpperCase() === 'LOCAL';
  const rest = bareText.slice(scope[0].length);
  const modes = /^(CHARACTERISTICS\s+AS\s+)?(TRANSACTION\b.*)$/is.exec(rest);
  if (modes) {
    const begun = begin(wordsOf(modes[2]!, 12), '');
    const readOnly = begun.kind === 'begin' ? begun.readOnly : null;
    if (readOnly === null) return { kind: 'nothing', tag: 'SET', notice: null };
    const value = readOnly ? 'on' : 'off';
    return modes[1] === undefined
      ? { kind: 'set', name: 'transaction_read_only', value, local: true }
      : { kind: 'set', name: 'default_transaction_read_only', value, local: false };
  }
  const special = /^(TIME\s+ZONE|NAMES)\s+/i.exec(rest);
  if (special) {
    const name = /^N/i.test(rest) ? 'client_encoding' : 'timezone';
    return { kind: 'set', name, value: valueOf(rest.slice(special[0].length)), local };
  }
  const named = /^([\w.]+|"[^"]+")\s*(?:=|\bTO\b)/i.exec(rest);
  if (!named) throw new ServiceError('REL_PARSE', 'SET takes a name, = or TO, and a value');
  return { kind: 'set', name: variableName(named[1]!), value: valueOf(rest.slice(named[0].length)), local };
}

/** A text in quotes, or words and numbers as they are; null: DEFAULT. */
function valueOf(text: string): string | null {
  const trimmed = text.trim();
  if (/^DEFAULT$/i.test(trimmed)) return null;
  if (/^'(?:[^']|'')*'$/.test(trimmed)) return trimmed.slice(1, -1).replaceAll("''", "'");
  return trimmed
    .split(',')
    .map((part) => unquote(part.trim().replace(/^'(.*)'$/s, '$1')))
    .join(', ');
}

function variableName(text: string): string {
  const trimmed = text.trim();
  if (/^TIME\s+ZONE$/i.test(trimmed)) return 'timezone';
  if (/^TRANSACTION\s+ISOLATION\s+LEVEL$/i.test(trimmed)) return 'transaction_isolation';
  return unquote(trimmed).toLowerCase();
}

const unquote = (word: string): string => (/^".*"$/s.test(word) ? word.slice(1, -1).replaceAll('""', '"') : word);
const notImplemented = (why: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', why);
