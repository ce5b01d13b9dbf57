/** Rows that a client sends, in the forms that INSERT names: each becomes lines of JSON or CSV, which one reader takes for all doors. */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { endOfQuoted } from '../../log/values/quoted-text.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { IngestOptions } from '../../planner/formats/ingest-batch.ts';
import { refusedAs } from './errors.ts';
import { instantOf, unescapeText } from './parameters.ts';
import { isBlank, type Lexeme, lexemesIn } from './lexer.ts';

export type Bytes = AsyncIterable<Uint8Array>;

export interface InputColumn {
  readonly name: string;
  /** Null: the type has no declaration for it. */
  readonly type: ColumnType | null;
}

export interface InputForm {
  /** Options of the ingest reader for these rows. */
  readonly options: (columns: readonly InputColumn[]) => Pick<IngestOptions, 'columns' | 'nullText'>;
  /** Where whole rows end: at the ends of lines, but for those within these quotes, or behind brackets. */
  readonly rows: 'lines' | 'quoted lines' | 'tuples';
  /** Converts whole rows, one text after the other, for the reader. Null: no conversion is needed. */
  readonly converter: (columns: readonly InputColumn[]) => ((text: string) => string) | null;
  /** Rows name no columns. */
  readonly needsColumns: boolean;
}

const noIngestOptions = (): Pick<IngestOptions, 'columns'> => ({});
const withNullText = (): Pick<IngestOptions, 'nullText'> => ({ nullText: '\\N' });
const withNamedColumns = (formatColumns: readonly InputColumn[]): Pick<IngestOptions, 'columns' | 'nullText'> => ({
  columns: formatColumns.map(({ name: columnName }) => columnName),
  ...withNullText(),
});

const inputFormats: Readonly<Record<string, InputForm>> = {
  JSONEachRow: { options: noIngestOptions, rows: 'lines', needsColumns: false, converter: objectConverter },
  JSONCompactEachRow: {
    options: noIngestOptions,
    rows: 'lines',
    needsColumns: true,
    converter: (formatColumns) => (rowsText) => convertCompactRows(rowsText, formatColumns),
  },
  CSV: {
    options: withNamedColumns,
    rows: 'quoted lines',
    needsColumns: true,
    converter: (formatColumns) => separatedConverter(formatColumns, ',', false),
  },
  CSVWithNames: {
    options: withNullText,
    rows: 'quoted lines',
    needsColumns: false,
    converter: (formatColumns) => separatedConverter(formatColumns, ',', true),
  },
  TabSeparated: {
    options: withNamedColumns,
    rows: 'lines',
    needsColumns: true,
    converter: (formatColumns) => separatedConverter(formatColumns, '\t', false),
  },
  TabSeparatedWithNames: {
    options: withNullText,
    rows: 'lines',
    needsColumns: false,
    converter: (formatColumns) => separatedConverter(formatColumns, '\t', true),
  },
  Values: {
    options: noIngestOptions,
    rows: 'tuples',
    needsColumns: true,
    converter: (formatColumns) => (rowsText) => convertTupleRows(rowsText, formatColumns),
  },
};

/** The bytes as the reader takes them. */
export async function* readRows(
  { converter: makeConverter, rows: rowShape }: InputForm,
  rowSource: Bytes,
  insertColumns: readonly InputColumn[],
): Bytes {
  const convertRows = makeConverter(insertColumns);
  if (convertRows === null) return yield* rowSource;
  for await (const rowsText of rowShape === 'tuples'
    ? wholeValueTuples(rowSource)
    : wholeRowLines(rowSource, rowShape === 'lines' ? null : 0x22)) {
    const lines = convertRows(rowsText);
    if (lines !== '') yield Buffer.from(lines);
  }
}

export function inputForm(formatName: string): InputForm {
  const fullFormatName =
    formatName === 'NDJSON' || formatName === 'JSONLines' ? 'JSONEachRow' : formatName.replace(/^TSV/, 'TabSeparated');
  if (Object.hasOwn(inputFormats, fullFormatName)) return inputFormats[fullFormatName]!;
  throw refusedAs(
    'format',
    new ServiceError(
      'REL_INVALID',
      `Unknown format ${formatName.slice(0, 100)} for input: there are ${Object.keys(inputFormats).join(', ')}`,
    ),
  );
}

/** Columns of the rows: those that INSERT names, or all of the type, in its order. REL_INVALID where neither is known. */
export function inputColumns(
  namedColumns: readonly string[] | null,
  typeDefinition: TypeDefinition | null,
  areColumnsNeeded: boolean,
): readonly InputColumn[] {
  const typeProperties = typeDefinition?.properties ?? {};
  const typeOf = (columnName: string): ColumnType | null =>
    columnName === 'valid_from' || columnName === 'valid_to'
      ? 'timestamp'
      : Object.hasOwn(typeProperties, columnName)
        ? typeProperties[columnName]!.type
        : null;
  const columnNames = namedColumns ?? Object.keys(typeProperties);
  if (columnNames.length === 0 && areColumnsNeeded)
    throw refusedAs(
      'data',
      new ServiceError('REL_INVALID', 'the table has no columns yet: name those of the rows, INSERT INTO t (a, b)'),
    );
  return columnNames.map((columnName) => ({ name: columnName, type: typeOf(columnName) }));
}

const insertRowBytesMax = 16 << 20;
const rowDecoder = new TextDecoder('utf-8', { fatal: true });
const newlineByte = 0x0a;

/** Whole lines, and the rest behind the last. A quoted field may hold line ends: `isOpen` tells whether one is open. */
async function* wholeRowLines(rowSource: Bytes, quoteByte: number | null): AsyncGenerator<string, void> {
  let heldPieces: Uint8Array[] = [];
  let heldBytes = 0;
  let openQuotes = 0;
  for await (const rowPiece of rowSource) {
    let lastRowEnd = quoteByte === null ? rowPiece.lastIndexOf(newlineByte) : -1;
    for (let i = 0; quoteByte !== null && i < rowPiece.length; i++) {
      if (rowPiece[i] === quoteByte) openQuotes ^= 1;
      else if (rowPiece[i] === newlineByte && openQuotes === 0) lastRowEnd = i;
    }
    if (lastRowEnd < 0) {
      heldPieces.push(rowPiece.slice());
      heldBytes += rowPiece.length;
      if (heldBytes > insertRowBytesMax) throw new ServiceError('REL_TOO_LARGE', `a row has at most ${insertRowBytesMax} bytes`);
      continue;
    }
    yield decodeUtf8(Buffer.concat([...heldPieces, rowPiece.subarray(0, lastRowEnd + 1)]));
    heldPieces = [rowPiece.slice(lastRowEnd + 1)];
    heldBytes = heldPieces[0]!.length;
  }
  const lastRows = Buffer.concat(heldPieces);
  if (lastRows.length > 0) yield decodeUtf8(lastRows);
}

function decodeUtf8(rowBytes: Uint8Array): string {
  try {
    return rowDecoder.decode(rowBytes);
  } catch {
    throw rowsNotUtf8();
  }
}

const rowsNotUtf8 = (): ServiceError => refusedAs('data', new ServiceError('REL_INVALID', 'the rows are not UTF-8'));

const emptyArrayToken = /\[\s*\]/y;
const bareJsonWord = /[^\s"[\]{},:]+/y;

/** Strings of JSON, arrays of nothing, marks, numbers and words, and where each stands: blanks lie between. A string that never ends goes to the end. */
function* rowJsonTokens(rowsText: string): Generator<[token: string, at: number], void> {
  for (let tokenOffset = 0; tokenOffset < rowsText.length; ) {
    if (isBlank(rowsText, tokenOffset)) {
      tokenOffset++;
      continue;
    }
    const jsonToken =
      rowsText[tokenOffset] === '"'
        ? rowsText.slice(tokenOffset, endOfQuoted(rowsText, tokenOffset) ?? rowsText.length)
        : jsonWordAt(rowsText, tokenOffset);
    yield [jsonToken, tokenOffset];
    tokenOffset += jsonToken.length;
  }
}

/** A mark, an array of nothing, or a word. */
function jsonWordAt(rowsText: string, wordOffset: number): string {
  const wordPattern = rowsText[wordOffset] === '[' ? emptyArrayToken : bareJsonWord;
  wordPattern.lastIndex = wordOffset;
  return wordPattern.exec(rowsText)?.[0] ?? rowsText[wordOffset]!;
}

/** How a value begins that stands in JSON otherwise than the column takes it. */
const ambiguousCells: { readonly [type in ColumnType]?: string } = {
  integer: '"',
  number: '"',
  timestamp: '"',
  boolean: '[01"]',
  vector: '\\[\\s*\\]',
  json: '"',
};

/**
 * Rows of JSON, one after the other. What ClickHouse writes otherwise than Annals is put right in them: numbers in quotes, instants
 * with a blank, booleans of 0 and 1, JSON as a text, NULL of a vector as an array of nothing.
 */
function objectConverter(insertColumns: readonly InputColumn[]): ((rowsText: string) => string) | null {
  const typeByColumn = new Map(insertColumns.map(({ name: columnName, type: columnType }) => [columnName, columnType]));
  const ambiguousCellTexts = [...typeByColumn].flatMap(([columnName, columnType]) => {
    const ambiguousBegin = columnType === null ? undefined : ambiguousCells[columnType];
    return ambiguousBegin === undefined
      ? []
      : `${JSON.stringify(columnName).slice(1, -1).replace(/\W/g, '\\$&')}"\\s*:\\s*${ambiguousBegin}`;
  });
  if (ambiguousCellTexts.length === 0) return null;
  // A letter of a name may be written by its number: such rows are looked at one by one.
  const mayNeedConversion = new RegExp(`"(?:${ambiguousCellTexts.join('|')})|\\\\[u/]`);
  return (rowsText) => (mayNeedConversion.test(rowsText) ? convertObjectRows(rowsText, typeByColumn) : rowsText);
}

function convertObjectRows(rowsText: string, typeByColumn: ReadonlyMap<string, ColumnType | null>): string {
  let jsonDepth = 0;
  let jsonKey: string | null = null;
  let lastToken = '';
  const jsonCell = (token: string): string => {
    const before = lastToken;
    lastToken = token;
    if (token === '{' || token === '[') jsonDepth++;
    else if (token === '}' || token === ']') jsonDepth--;
    else if (jsonDepth === 1) {
      if (before === ':') return jsonCellOf(token, (jsonKey === null ? undefined : typeByColumn.get(jsonKey)) ?? null);
      if (token.startsWith('"')) jsonKey = jsonKeyOf(token);
    }
    return token;
  };
  let convertedRows = '';
  let copiedOffset = 0;
  for (const [jsonToken, tokenOffset] of rowJsonTokens(rowsText)) {
    const convertedCell = jsonCell(jsonToken);
    if (convertedCell === jsonToken) continue;
    convertedRows += rowsText.slice(copiedOffset, tokenOffset) + convertedCell;
    copiedOffset = tokenOffset + jsonToken.length;
  }
  return convertedRows + rowsText.slice(copiedOffset);
}

/** A key that is no text of JSON is for the reader to refuse. */
function jsonKeyOf(keyToken: string): string | null {
  try {
    return JSON.parse(keyToken) as string;
  } catch {
    return null;
  }
}

function convertCompactRows(rowsText: string, insertColumns: readonly InputColumn[]): string {
  const compactJsonRows: string[] = [];
  let jsonDepth = 0;
  let compactCells: string[] = [];
  let compactCell = '';
  for (const [jsonToken] of rowJsonTokens(rowsText)) {
    if (jsonToken === '[' || jsonToken === '{') {
      if (++jsonDepth > 1) compactCell += jsonToken;
    } else if (jsonDepth === 0 && jsonToken.startsWith('[')) {
      compactJsonRows.push(jsonRowOf([], insertColumns));
    } else if (jsonToken === ']' || jsonToken === '}') {
      if (--jsonDepth > 0) compactCell += jsonToken;
      else if (jsonToken === ']') {
        if (compactCell !== '' || compactCells.length > 0) compactCells.push(compactCell);
        compactJsonRows.push(jsonRowOf(compactCells, insertColumns));
        compactCells = [];
        compactCell = '';
      }
    } else if (jsonToken === ',' && jsonDepth <= 1) {
      if (jsonDepth === 1) {
        compactCells.push(compactCell);
        compactCell = '';
      }
    } else if (jsonDepth === 0)
      throw refusedAs('data', new ServiceError('REL_INVALID', `a row is an array: ${jsonToken.slice(0, 40)}`));
    else compactCell += jsonToken;
  }
  if (jsonDepth !== 0) throw refusedAs('data', new ServiceError('REL_INVALID', 'a row does not end on its line'));
  return `${compactJsonRows.join('\n')}\n`;
}

function jsonRowOf(rowCells: readonly string[], insertColumns: readonly InputColumn[]): string {
  if (rowCells.length !== insertColumns.length) throw rowWidthRefusal(rowCells.length, insertColumns.length);
  return `{${rowCells.map((rowCell, i) => `${JSON.stringify(insertColumns[i]!.name)}:${jsonCellOf(rowCell, insertColumns[i]!.type)}`).join(',')}}`;
}

/** A cell of JSON in the form for its column: a quoted value may be a number, an instant or JSON. */
function jsonCellOf(cellToken: string, columnType: ColumnType | null): string {
  switch (columnType) {
    case 'vector':
      return /^\[\s*\]$/.test(cellToken) ? 'null' : cellToken;
    case 'boolean':
      return booleanCellOf(cellToken.startsWith('"') ? cellToken.slice(1, -1) : cellToken) ?? cellToken;
    case 'integer':
    case 'number':
      return /^"-?\d+(\.\d+)?(e[+-]?\d+)?"$/i.test(cellToken) ? cellToken.slice(1, -1) : cellToken;
    case 'timestamp': {
      const instantNs = cellToken.startsWith('"') ? instantOf(cellToken.slice(1, -1)) : null;
      return instantNs === null ? cellToken : String(instantNs);
    }
    case 'json':
      return jsonTextOf(cellToken);
    default:
      return cellToken;
  }
}

const booleanCellOf = (booleanText: string): string | null =>
  booleanText === '1' || booleanText === 'true' ? 'true' : booleanText === '0' || booleanText === 'false' ? 'false' : null;

/** A column of JSON is a String to ClickHouse: its text is the JSON. Text that is not JSON stays text. */
function jsonTextOf(jsonToken: string): string {
  if (!jsonToken.startsWith('"')) return jsonToken;
  try {
    const jsonText: unknown = JSON.parse(jsonToken);
    if (typeof jsonText !== 'string') return jsonToken;
    JSON.parse(jsonText);
    return jsonText.replace(/[\r\n]/g, ' ');
  } catch {
    return jsonToken;
  }
}

/**
 * Fields with a mark between them, as the reader's CSV has them: NULL is `\N`, everything else that is text stands in quotes, and an
 * empty field of TabSeparated is an empty text.
 */
function separatedConverter(
  insertColumns: readonly InputColumn[],
  separator: ',' | '\t',
  hasHeader: boolean,
): (rowsText: string) => string {
  let headerColumns: readonly InputColumn[] | null = hasHeader ? null : insertColumns;
  return (rowsText) => {
    let convertedRows = '';
    for (const { fields: rowFields, inQuotes } of separatedRowsOf(rowsText, separator)) {
      const isBlankRow = rowFields.length === 1 && rowFields[0] === '';
      if (headerColumns === null) {
        if (isBlankRow) continue;
        const typeByColumn = new Map(insertColumns.map(({ name: columnName, type: columnType }) => [columnName, columnType]));
        headerColumns = rowFields.map((rowField) => ({ name: rowField ?? '', type: typeByColumn.get(rowField ?? '') ?? null }));
        convertedRows += `${rowFields.map((rowField) => quoteCsvField(rowField ?? '')).join(',')}\n`;
        continue;
      }
      const knownColumns: readonly InputColumn[] = headerColumns;
      // An empty line is a row where there is one column.
      if (isBlankRow && knownColumns.length !== 1) continue;
      if (rowFields.length !== knownColumns.length) throw rowWidthRefusal(rowFields.length, knownColumns.length);
      convertedRows += `${rowFields.map((rowField, i) => csvFieldOf(rowField, knownColumns[i]!.type, inQuotes[i])).join(',')}\n`;
    }
    return convertedRows;
  };
}

function rowWidthRefusal(valueCount: number, columnCount: number): ServiceError {
  return refusedAs(
    'data',
    new ServiceError('REL_INVALID', `a row has ${valueCount} values, and there are ${columnCount} columns`),
  );
}

interface SeparatedFields {
  /** The fields of a row; null: NULL. */
  readonly fields: (string | null)[];
  /** Fields that stood in quotes: always texts, even if they look like numbers. */
  readonly inQuotes: boolean[];
}

function* separatedRowsOf(rowsText: string, separator: ',' | '\t'): Generator<SeparatedFields, void> {
  if (separator === '\t') {
    for (const tsvLine of (rowsText.endsWith('\n') ? rowsText.slice(0, -1) : rowsText).split('\n')) {
      const tsvRow = tsvLine.endsWith('\r') ? tsvLine.slice(0, -1) : tsvLine;
      yield { fields: tsvRow.split('\t').map((csvField) => (csvField === '\\N' ? null : unescapeText(csvField))), inQuotes: [] };
    }
    return;
  }
  let csvFields: (string | null)[] = [];
  let quotedFields: boolean[] = [];
  let csvOffset = 0;
  while (csvOffset < rowsText.length) {
    let csvField: string | null;
    quotedFields.push(rowsText[csvOffset] === '"');
    if (rowsText[csvOffset] === '"') {
      let closingQuote = rowsText.indexOf('"', csvOffset + 1);
      while (closingQuote >= 0 && rowsText[closingQuote + 1] === '"') closingQuote = rowsText.indexOf('"', closingQuote + 2);
      if (closingQuote < 0) throw refusedAs('data', new ServiceError('REL_INVALID', 'a field in quotes does not end'));
      csvField = rowsText.slice(csvOffset + 1, closingQuote).replaceAll('""', '"');
      csvOffset = closingQuote + 1;
    } else {
      const csvFieldPattern = /[^,\r\n]*/y;
      csvFieldPattern.lastIndex = csvOffset;
      const rawField = csvFieldPattern.exec(rowsText)![0];
      csvOffset += rawField.length;
      const trimmedField = rawField.trim();
      csvField = trimmedField === '\\N' ? null : trimmedField;
    }
    csvFields.push(csvField);
    if (rowsText[csvOffset] === ',') {
      csvOffset++;
      if (csvOffset === rowsText.length) {
        csvFields.push('');
        quotedFields.push(false);
      }
      continue;
    }
    if (rowsText[csvOffset] === '\r') csvOffset++;
    if (rowsText[csvOffset] === '\n' || csvOffset >= rowsText.length) {
      csvOffset++;
      yield { fields: csvFields, inQuotes: quotedFields };
      csvFields = [];
      quotedFields = [];
    } else
      throw refusedAs(
        'data',
        new ServiceError('REL_INVALID', 'a comma or the end of the row is expected behind a field in quotes'),
      );
  }
  if (csvFields.length > 0) yield { fields: csvFields, inQuotes: quotedFields };
}

/** `isQuotedText`: whether it stood in quotes; undefined where no field does. */
function csvFieldOf(csvField: string | null, columnType: ColumnType | null, isQuotedText: boolean | undefined): string {
  // A field of CSV that is empty has the default of its column.
  if (csvField === null || (csvField === '' && isQuotedText === false)) return '\\N';
  if (columnType === null && isQuotedText === true) return quoteCsvField(csvField);
  if (columnType === 'vector' && /^\[\s*\]$/.test(csvField)) return '\\N';
  if (columnType === 'boolean') return booleanCellOf(csvField) ?? quoteCsvField(csvField);
  if (columnType === 'timestamp') {
    const instantNs = instantOf(csvField);
    if (instantNs !== null) return String(instantNs);
  }
  // A number without quotes may be meant as one, for an undeclared column.
  if (columnType !== 'string' && columnType !== 'json' && /^[\w.+-]+$/.test(csvField)) return csvField;
  return quoteCsvField(csvField);
}

const quoteCsvField = (fieldText: string): string => `"${fieldText.replaceAll('"', '""')}"`;

/** Whole rows in brackets, and the text between them. */
async function* wholeValueTuples(rowSource: Bytes): AsyncGenerator<string, void> {
  let heldTuples = '';
  const tupleDecoder = new TextDecoder('utf-8', { fatal: true });
  const decodePiece = (tuplePiece?: Uint8Array): string => {
    try {
      return tuplePiece === undefined ? tupleDecoder.decode() : tupleDecoder.decode(tuplePiece, { stream: true });
    } catch {
      throw rowsNotUtf8();
    }
  };
  const tupleScan = new TupleScan();
  const takeWholeTuples = (): string => {
    const wholeTuplesEnd = tupleScan.end(heldTuples);
    const wholeTupleTexts = heldTuples.slice(0, wholeTuplesEnd);
    heldTuples = heldTuples.slice(wholeTuplesEnd);
    return wholeTupleTexts;
  };
  for await (const rowPiece of rowSource) {
    heldTuples += decodePiece(rowPiece);
    const tupleTexts = takeWholeTuples();
    if (tupleTexts !== '') yield tupleTexts;
    if (heldTuples.length > insertRowBytesMax)
      throw new ServiceError('REL_TOO_LARGE', `a row has at most ${insertRowBytesMax} bytes`);
  }
  heldTuples += decodePiece();
  const rows = takeWholeTuples();
  if (rows !== '') yield rows;
  if (!/^[\s,;]*$/.test(heldTuples)) throw refusedAs('data', new ServiceError('REL_INVALID', 'a row does not end'));
}

/** Looks for ends of rows, at each letter once. */
class TupleScan {
  #scannedOffset = 0;
  #tupleDepth = 0;
  #isInTextLiteral = false;

  /** The offset behind the last bracket that closes a row, where the next call starts; 0: there is none yet. */
  end(tuplesText: string): number {
    let lastTupleEnd = 0;
    let scanOffset = this.#scannedOffset;
    for (; scanOffset < tuplesText.length; scanOffset++) {
      const tupleLetter = tuplesText[scanOffset]!;
      if (this.#isInTextLiteral) {
        if (tupleLetter === '\\') {
          // The escaped character has not arrived yet.
          if (scanOffset + 1 === tuplesText.length) break;
          scanOffset++;
        } else if (tupleLetter === "'") this.#isInTextLiteral = false;
      } else if (tupleLetter === "'") this.#isInTextLiteral = true;
      else if (tupleLetter === '(' || tupleLetter === '[') this.#tupleDepth++;
      else if ((tupleLetter === ')' || tupleLetter === ']') && --this.#tupleDepth === 0) lastTupleEnd = scanOffset + 1;
    }
    this.#scannedOffset = scanOffset - lastTupleEnd;
    return lastTupleEnd;
  }
}

function convertTupleRows(tuplesText: string, insertColumns: readonly InputColumn[]): string {
  const tupleJsonRows: string[] = [];
  let tupleCells: string[] | null = null;
  let literalTokens: Lexeme[] = [];
  for (const lexeme of lexemesIn(tuplesText)) {
    const isMarkToken = lexeme.kind === 'mark';
    if (lexeme.depth === 0) {
      if (isMarkToken && lexeme.text === '(') tupleCells = [];
      else if (!isMarkToken || (lexeme.text !== ',' && lexeme.text !== ';'))
        throw refusedAs(
          'data',
          new ServiceError('REL_INVALID', `a row begins with (, and not with ${JSON.stringify(lexeme.text.slice(0, 40))}`),
        );
    } else if (lexeme.depth === 1 && isMarkToken && (lexeme.text === ',' || lexeme.text === ')')) {
      tupleCells!.push(tupleLiteralOf(literalTokens));
      literalTokens = [];
      if (lexeme.text === ')') tupleJsonRows.push(jsonRowOf(tupleCells!, insertColumns));
    } else literalTokens.push(lexeme);
  }
  return tupleJsonRows.length === 0 ? '' : `${tupleJsonRows.join('\n')}\n`;
}

/** A literal as JSON. */
function tupleLiteralOf(literalTokens: readonly Lexeme[]): string {
  const [firstToken, secondToken] = literalTokens;
  const literalSign =
    firstToken?.kind === 'mark' && (firstToken.text === '-' || firstToken.text === '+') ? firstToken.text.replace('+', '') : null;
  if (literalSign !== null && literalTokens.length === 2 && secondToken!.kind === 'number')
    return jsonNumberOf(literalSign + secondToken!.text);
  if (literalTokens.length === 1) {
    if (firstToken!.kind === 'text') return JSON.stringify(firstToken!.text);
    if (firstToken!.kind === 'number') return jsonNumberOf(firstToken!.text);
    const literalWord = firstToken!.text.toLowerCase();
    if (firstToken!.kind === 'word' && ['null', 'true', 'false'].includes(literalWord)) return literalWord;
  }
  if (firstToken?.text === '[') return literalTokens.map(({ text: tokenText }) => tokenText).join('');
  throw refusedAs(
    'data',
    new ServiceError('REL_NOT_IMPLEMENTED', 'values of a row are literals: numbers, texts, NULL, true, false, arrays'),
  );
}

function jsonNumberOf(numberText: string): string {
  return numberText.replace(/^(-?)\./, '$10.').replace(/\.(?=$|e)/i, '.0');
}
