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
  const tokens = yield* Lexemes.read(text);
  tokens.expect('COPY');
  const isQuery = tokens.next.text === '(' && tokens.next.kind === 'sign';
  const query = isQuery ? tokens.textInParentheses() : null;
  const table = isQuery ? null : tokens.tableName();
  const columns = !isQuery && tokens.next.text === '(' ? tokens.list(() => tokens.name('a column')) : null;
  const direction = tokens.skip('TO') ? 'out' : 'in';
  if (direction === 'in') {
    tokens.expect('FROM');
    if (isQuery) throw tokens.refusal('a query is copied TO');
  }
  if (!tokens.skip(direction === 'in' ? 'STDIN' : 'STDOUT'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'COPY of files and programs is not implemented: COPY FROM STDIN and TO STDOUT are',
    );
  tokens.skip('WITH');
  const options: Options = {};
  if (tokens.next.text === '(') tokens.list(() => option(tokens, options));
  else while (oldOption(tokens, options));
  if (direction === 'in' && tokens.skip('WHERE'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'WHERE of COPY is not implemented: copy all rows, or send those that are wanted',
    );
  tokens.expectEnd();
  return { direction, table, query, columns, ...withDefaults(options) };
}

function withDefaults(options: Options): CopyFormat {
  const { format = 'text' } = options;
  const isCsv = format === 'csv';
  const quote = options.quote ?? '"';
  const made: CopyFormat = {
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
  const marks = isCsv ? [made.delimiter, made.quote, made.escape] : [made.delimiter];
  if (marks.some((mark) => mark.length !== 1 || mark === '\0' || mark > '\x7f' || mark === '\n' || mark === '\r'))
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'DELIMITER, QUOTE and ESCAPE are one ASCII character each');
  if (made.delimiter === made.quote || (format === 'text' && /[\\.a-z0-9]/i.test(made.delimiter)))
    throw new ServiceError('REL_INVALID', `the delimiter can't be ${JSON.stringify(made.delimiter)}`);
  return made;
}

/** `NAME value` within parentheses. */
function option(tokens: Lexemes, options: Options): void {
  const name = tokens.name('an option').toUpperCase();
  switch (name) {
    case 'FORMAT': {
      const format = tokens.take().text.toLowerCase();
      if (format !== 'text' && format !== 'csv' && format !== 'binary')
        throw new ServiceError('REL_INVALID', 'the formats of COPY are text, csv and binary');
      options.format = format;
      return;
    }
    case 'DELIMITER':
      options.delimiter = tokens.string('a character');
      return;
    case 'NULL':
      options.nullText = tokens.string('a text');
      return;
    case 'QUOTE':
      options.quote = tokens.string('a character');
      return;
    case 'ESCAPE':
      options.escape = tokens.string('a character');
      return;
    case 'HEADER':
      options.header = readSwitch(tokens);
      return;
    case 'FREEZE':
      readSwitch(tokens);
      return;
    case 'ENCODING':
      if (/^utf-?8$/i.test(tokens.string('an encoding'))) return;
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'texts are UTF-8');
    default:
      throw new ServiceError('REL_NOT_IMPLEMENTED', `the option ${name} of COPY is not implemented`);
  }
}

/** The words of before Postgres 9; false where none is left. */
function oldOption(tokens: Lexemes, options: Options): boolean {
  if (tokens.skip('CSV')) options.format = 'csv';
  else if (tokens.skip('BINARY')) options.format = 'binary';
  else if (tokens.skip('HEADER')) options.header = true;
  else if (tokens.skip('DELIMITER') || tokens.skip('DELIMITERS'))
    options.delimiter = (tokens.skip('AS'), tokens.string('a character'));
  else if (tokens.skip('NULL')) options.nullText = (tokens.skip('AS'), tokens.string('a text'));
  else if (tokens.skip('QUOTE')) options.quote = (tokens.skip('AS'), tokens.string('a character'));
  else if (tokens.skip('ESCAPE')) options.escape = (tokens.skip('AS'), tokens.string('a character'));
  else return false;
  return true;
}

function readSwitch(tokens: Lexemes): boolean {
  const { kind, text } = tokens.next;
  if (kind !== 'word' && kind !== 'text') return true;
  tokens.take();
  if (/^(true|on|1)$/i.test(text)) return true;
  if (/^(false|off|0)$/i.test(text)) return false;
  throw tokens.refusal('expected on or off before this');
}
