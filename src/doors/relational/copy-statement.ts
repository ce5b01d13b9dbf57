/** Parses COPY: its source or target, its direction, and its format. */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { StatementTokens } from './statement-tokens.ts';

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
  const statementTokens = yield* StatementTokens.read(copyText);
  statementTokens.expect('COPY');
  const isCopyQuery = statementTokens.next.text === '(' && statementTokens.next.kind === 'sign';
  const query = isCopyQuery ? statementTokens.textInParentheses() : null;
  const table = isCopyQuery ? null : statementTokens.tableName();
  const columns =
    !isCopyQuery && statementTokens.next.text === '(' ? statementTokens.list(() => statementTokens.name('a column')) : null;
  const direction = statementTokens.skip('TO') ? 'out' : 'in';
  if (direction === 'in') {
    statementTokens.expect('FROM');
    if (isCopyQuery) throw statementTokens.refusal('a query is copied TO');
  }
  if (!statementTokens.skip(direction === 'in' ? 'STDIN' : 'STDOUT'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'COPY of files and programs is not implemented: COPY FROM STDIN and TO STDOUT are',
    );
  statementTokens.skip('WITH');
  const copyOptions: CopyOptions = {};
  if (statementTokens.next.text === '(') statementTokens.list(() => readCopyOption(statementTokens, copyOptions));
  else while (readOldCopyOption(statementTokens, copyOptions));
  if (direction === 'in' && statementTokens.skip('WHERE'))
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'WHERE of COPY is not implemented: copy all rows, or send those that are wanted',
    );
  statementTokens.expectEnd();
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
function readCopyOption(statementTokens: StatementTokens, copyOptions: CopyOptions): void {
  const optionName = statementTokens.name('an option').toUpperCase();
  switch (optionName) {
    case 'FORMAT': {
      const format = statementTokens.take().text.toLowerCase();
      if (format !== 'text' && format !== 'csv' && format !== 'binary')
        throw new ServiceError('REL_INVALID', 'the formats of COPY are text, csv and binary');
      copyOptions.format = format;
      return;
    }
    case 'DELIMITER':
      copyOptions.delimiter = statementTokens.string('a character');
      return;
    case 'NULL':
      copyOptions.nullText = statementTokens.string('a text');
      return;
    case 'QUOTE':
      copyOptions.quote = statementTokens.string('a character');
      return;
    case 'ESCAPE':
      copyOptions.escape = statementTokens.string('a character');
      return;
    case 'HEADER':
      copyOptions.header = readCopySwitch(statementTokens);
      return;
    case 'FREEZE':
      readCopySwitch(statementTokens);
      return;
    case 'ENCODING':
      if (/^utf-?8$/i.test(statementTokens.string('an encoding'))) return;
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'texts are UTF-8');
    default:
      throw new ServiceError('REL_NOT_IMPLEMENTED', `the option ${optionName} of COPY is not implemented`);
  }
}

/** The words of before Postgres 9; false where none is left. */
function readOldCopyOption(statementTokens: StatementTokens, copyOptions: CopyOptions): boolean {
  if (statementTokens.skip('CSV')) copyOptions.format = 'csv';
  else if (statementTokens.skip('BINARY')) copyOptions.format = 'binary';
  else if (statementTokens.skip('HEADER')) copyOptions.header = true;
  else if (statementTokens.skip('DELIMITER') || statementTokens.skip('DELIMITERS'))
    copyOptions.delimiter = (statementTokens.skip('AS'), statementTokens.string('a character'));
  else if (statementTokens.skip('NULL')) copyOptions.nullText = (statementTokens.skip('AS'), statementTokens.string('a text'));
  else if (statementTokens.skip('QUOTE')) copyOptions.quote = (statementTokens.skip('AS'), statementTokens.string('a character'));
  else if (statementTokens.skip('ESCAPE'))
    copyOptions.escape = (statementTokens.skip('AS'), statementTokens.string('a character'));
  else return false;
  return true;
}

function readCopySwitch(statementTokens: StatementTokens): boolean {
  const { kind: switchKind, text: switchText } = statementTokens.next;
  if (switchKind !== 'word' && switchKind !== 'text' && switchKind !== 'number') return true;
  statementTokens.take();
  if (/^(true|on|1)$/i.test(switchText)) return true;
  if (/^(false|off|0)$/i.test(switchText)) return false;
  throw statementTokens.refusal('expected on or off before this');
}
