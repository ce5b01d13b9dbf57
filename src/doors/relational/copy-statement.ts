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

type CopyOptions = { -readonly [name in keyof CopyFormat]?: CopyFormat[name] };

export function* copyOf(copyText: string): Steps<Copy> {
  const lexemes = yield* Lexemes.read(copyText);
  lexemes.expect('COPY');
  const isCopyQuery = lexemes.next.text === '(' && lexemes.next.kind === 'sign';
  const query = isCopyQuery ? lexemes.textInParentheses() : null;
  const table = isCopyQuery ? null : lexemes.tableName();
  const columns = !isCopyQuery && lexemes.next.text === '(' ? lexemes.list(() => lexemes.name('a column')) : null;
  const direction = lexemes.skip('TO') ? 'out' : 'in';
  if (direction === 'in') {
    lexemes.expect('FROM');
    if (isCopyQuery) throw lexemes.refusal('a query is copied TO');
  }
  if (!lexemes.skip(direction === 'in' ? 'STDIN' : 'STDOUT'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'COPY of files and programs is not implemented: COPY FROM STDIN and TO STDOUT are',
    );
  lexemes.skip('WITH');
  const copyOptions: CopyOptions = {};
  if (lexemes.next.text === '(') lexemes.list(() => readCopyOption(lexemes, copyOptions));
  else while (readOldCopyOption(lexemes, copyOptions));
  if (direction === 'in' && lexemes.skip('WHERE'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'WHERE of COPY is not implemented: copy all rows, or send those that are wanted',
    );
  lexemes.expectEnd();
  return { direction, table, query, columns, ...withCopyDefaults(copyOptions) };
}

function withCopyDefaults(copyOptions: CopyOptions): CopyFormat {
  const { format = 'text' } = copyOptions;
  const isCsv = format === 'csv';
  const quote = copyOptions.quote ?? '"';
  const copyFormat: CopyFormat = {
    format,
    delimiter: copyOptions.delimiter ?? (isCsv ? ',' : '\t'),
    quote,
    escape: copyOptions.escape ?? quote,
    nullText: copyOptions.nullText ?? (isCsv ? '' : '\\N'),
    header: copyOptions.header ?? false,
  };
  if (format === 'binary' && Object.keys(copyOptions).some((optionName) => optionName !== 'format'))
    throw new ServiceError('REL_INVALID', 'COPY in binary takes no other options');
  if (!isCsv && (copyOptions.quote ?? copyOptions.escape) !== undefined)
    throw new ServiceError('REL_INVALID', 'QUOTE and ESCAPE are of the format csv');
  const csvMarks = isCsv ? [copyFormat.delimiter, copyFormat.quote, copyFormat.escape] : [copyFormat.delimiter];
  if (
    csvMarks.some(
      (csvMark) => csvMark.length !== 1 || csvMark === '\0' || csvMark > '\x7f' || csvMark === '\n' || csvMark === '\r',
    )
  )
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'DELIMITER, QUOTE and ESCAPE are one ASCII character each');
  if (copyFormat.delimiter === copyFormat.quote || (format === 'text' && /[\\.a-z0-9]/i.test(copyFormat.delimiter)))
    throw new ServiceError('REL_INVALID', `the delimiter can't be ${JSON.stringify(copyFormat.delimiter)}`);
  return copyFormat;
}

/** `NAME value` within parentheses. */
function readCopyOption(lexemes: Lexemes, copyOptions: CopyOptions): void {
  const optionName = lexemes.name('an option').toUpperCase();
  switch (optionName) {
    case 'FORMAT': {
      const format = lexemes.take().text.toLowerCase();
      if (format !== 'text' && format !== 'csv' && format !== 'binary')
        throw new ServiceError('REL_INVALID', 'the formats of COPY are text, csv and binary');
      copyOptions.format = format;
      return;
    }
    case 'DELIMITER':
      copyOptions.delimiter = lexemes.string('a character');
      return;
    case 'NULL':
      copyOptions.nullText = lexemes.string('a text');
      return;
    case 'QUOTE':
      copyOptions.quote = lexemes.string('a character');
      return;
    case 'ESCAPE':
      copyOptions.escape = lexemes.string('a character');
      return;
    case 'HEADER':
      copyOptions.header = readCopySwitch(lexemes);
      return;
    case 'FREEZE':
      readCopySwitch(lexemes);
      return;
    case 'ENCODING':
      if (/^utf-?8$/i.test(lexemes.string('an encoding'))) return;
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'texts are UTF-8');
    default:
      throw new ServiceError('REL_NOT_IMPLEMENTED', `the option ${optionName} of COPY is not implemented`);
  }
}

/** The words of before Postgres 9; false where none is left. */
function readOldCopyOption(lexemes: Lexemes, copyOptions: CopyOptions): boolean {
  if (lexemes.skip('CSV')) copyOptions.format = 'csv';
  else if (lexemes.skip('BINARY')) copyOptions.format = 'binary';
  else if (lexemes.skip('HEADER')) copyOptions.header = true;
  else if (lexemes.skip('DELIMITER') || lexemes.skip('DELIMITERS'))
    copyOptions.delimiter = (lexemes.skip('AS'), lexemes.string('a character'));
  else if (lexemes.skip('NULL')) copyOptions.nullText = (lexemes.skip('AS'), lexemes.string('a text'));
  else if (lexemes.skip('QUOTE')) copyOptions.quote = (lexemes.skip('AS'), lexemes.string('a character'));
  else if (lexemes.skip('ESCAPE')) copyOptions.escape = (lexemes.skip('AS'), lexemes.string('a character'));
  else return false;
  return true;
}

function readCopySwitch(lexemes: Lexemes): boolean {
  const { kind: switchKind, text: switchText } = lexemes.next;
  if (switchKind !== 'word' && switchKind !== 'text') return true;
  lexemes.take();
  if (/^(true|on|1)$/i.test(switchText)) return true;
  if (/^(false|off|0)$/i.test(switchText)) return false;
  throw lexemes.refusal('expected on or off before this');
}
