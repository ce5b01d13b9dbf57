/** Parses COPY: its source or target, its direction, and its format. */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { Lexemes } from './lexer.ts';

export interface CopyFormat {
  readonly format: 'text' | 'csv' | 'binary';
  /** Delimiter, quote and escape, one byte each. */
  readonly delimiter: string;
  readonly quote: string;
  readonly escape: string;
  readonly nullText: string;
  /** The first line names columns. */
  readonly header: boolean;
}

export interface Copy extends CopyFormat {
  readonly direction: 'in' | 'out';
  /** The table; null where a query is copied. */
  readonly table: string | null;
  readonly query: string | null;
  /** The named columns; null: all of them. */
  readonly columns: readonly string[] | null;
}

type Options = { -readonly [name in keyof CopyFormat]?: CopyFormat[name] };

export function* copyOf(text: string): Steps<Copy> {
  const lexemes = yield* Lexemes.read(text);
  lexemes.expect('COPY');
  const isQuery = lexemes.next.text === '(' && lexemes.next.kind === 'sign';
  const query = isQuery ? lexemes.textInParentheses() : null;
  const table = isQuery ? null : lexemes.tableName();
  const columns = !isQuery && lexemes.next.text === '(' ? lexemes.list(() => lexemes.name('a column')) : null;
  const direction = lexemes.skip('TO') ? 'out' : 'in';
  if (direction === 'in') {
    lexemes.expect('FROM');
    if (isQuery) throw lexemes.refusal('a query is copied TO');
  }
  if (!lexemes.skip(direction === 'in' ? 'STDIN' : 'STDOUT'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'COPY of files and programs is not implemented: COPY FROM STDIN and TO STDOUT are',
    );
  lexemes.skip('WITH');
  const options: Options = {};
  if (lexemes.next.text === '(') lexemes.list(() => option(lexemes, options));
  else while (oldOption(lexemes, options));
  if (direction === 'in' && lexemes.skip('WHERE'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'WHERE of COPY is not implemented: copy all rows, or send those that are wanted',
    );
  lexemes.expectEnd();
  return { direction, table, query, columns, ...withDefaults(options) };
}

function withDefaults(options: Options): CopyFormat {
  const { format = 'text' } = options;
  const isCsv = format === 'csv';
  const quote = options.quote ?? '"';
  const copyFormat: CopyFormat = {
    format,
    delimiter: options.delimiter ?? (isCsv ? ',' : '\t'),
    quote,
    escape: options.escape ?? quote,
    nullText: options.nullText ?? (isCsv ? '' : '\\N'),
    header: options.header ?? false,
  };
  if (format === 'binary' && Object.keys(options).some((name) => name !== 'format'))
    throw new ServiceError('REL_INVALID', 'COPY in binary takes no other options');
  if (!isCsv && (options.quote ?? options.escape) !== undefined)
    throw new ServiceError('REL_INVALID', 'QUOTE and ESCAPE are of the format csv');
  const marks = isCsv ? [copyFormat.delimiter, copyFormat.quote, copyFormat.escape] : [copyFormat.delimiter];
  if (marks.some((mark) => mark.length !== 1 || mark === '\0' || mark > '\x7f' || mark === '\n' || mark === '\r'))
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'DELIMITER, QUOTE and ESCAPE are one ASCII character each');
  if (copyFormat.delimiter === copyFormat.quote || (format === 'text' && /[\\.a-z0-9]/i.test(copyFormat.delimiter)))
    throw new ServiceError('REL_INVALID', `the delimiter can't be ${JSON.stringify(copyFormat.delimiter)}`);
  return copyFormat;
}

/** `NAME value` within parentheses. */
function option(lexemes: Lexemes, options: Options): void {
  const name = lexemes.name('an option').toUpperCase();
  switch (name) {
    case 'FORMAT': {
      const format = lexemes.take().text.toLowerCase();
      if (format !== 'text' && format !== 'csv' && format !== 'binary')
        throw new ServiceError('REL_INVALID', 'the formats of COPY are text, csv and binary');
      options.format = format;
      return;
    }
    case 'DELIMITER':
      options.delimiter = lexemes.string('a character');
      return;
    case 'NULL':
      options.nullText = lexemes.string('a text');
      return;
    case 'QUOTE':
      options.quote = lexemes.string('a character');
      return;
    case 'ESCAPE':
      options.escape = lexemes.string('a character');
      return;
    case 'HEADER':
      options.header = readSwitch(lexemes);
      return;
    case 'FREEZE':
      readSwitch(lexemes);
      return;
    case 'ENCODING':
      if (/^utf-?8$/i.test(lexemes.string('an encoding'))) return;
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'texts are UTF-8');
    default:
      throw new ServiceError('REL_NOT_IMPLEMENTED', `the option ${name} of COPY is not implemented`);
  }
}

/** The words of before Postgres 9; false where none is left. */
function oldOption(lexemes: Lexemes, options: Options): boolean {
  if (lexemes.skip('CSV')) options.format = 'csv';
  else if (lexemes.skip('BINARY')) options.format = 'binary';
  else if (lexemes.skip('HEADER')) options.header = true;
  else if (lexemes.skip('DELIMITER') || lexemes.skip('DELIMITERS'))
    options.delimiter = (lexemes.skip('AS'), lexemes.string('a character'));
  else if (lexemes.skip('NULL')) options.nullText = (lexemes.skip('AS'), lexemes.string('a text'));
  else if (lexemes.skip('QUOTE')) options.quote = (lexemes.skip('AS'), lexemes.string('a character'));
  else if (lexemes.skip('ESCAPE')) options.escape = (lexemes.skip('AS'), lexemes.string('a character'));
  else return false;
  return true;
}

function readSwitch(lexemes: Lexemes): boolean {
  const { kind, text } = lexemes.next;
  if (kind !== 'word' && kind !== 'text') return true;
  lexemes.take();
  if (/^(true|on|1)$/i.test(text)) return true;
  if (/^(false|off|0)$/i.test(text)) return false;
  throw lexemes.refusal('expected on or off before this');
}
