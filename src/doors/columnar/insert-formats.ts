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

const bare = (): Pick<IngestOptions, 'columns'> => ({});
const withNull = (): Pick<IngestOptions, 'nullText'> => ({ nullText: '\\N' });
const asNamed = (columns: readonly InputColumn[]): Pick<IngestOptions, 'columns' | 'nullText'> => ({
  columns: columns.map(({ name }) => name),
  ...withNull(),
});

const forms: Readonly<Record<string, InputForm>> = {
  JSONEachRow: { options: bare, rows: 'lines', needsColumns: false, converter: objects },
  JSONCompactEachRow: {
    options: bare,
    rows: 'lines',
    needsColumns: true,
    converter: (columns) => (text) => compactRows(text, columns),
  },
  CSV: {
    options: asNamed,
    rows: 'quoted lines',
    needsColumns: true,
    converter: (columns) => separatedConverter(columns, ',', false),
  },
  CSVWithNames: {
    options: withNull,
    rows: 'quoted lines',
    needsColumns: false,
    converter: (columns) => separatedConverter(columns, ',', true),
  },
  TabSeparated: {
    options: asNamed,
    rows: 'lines',
    needsColumns: true,
    converter: (columns) => separatedConverter(columns, '\t', false),
  },
  TabSeparatedWithNames: {
    options: withNull,
    rows: 'lines',
    needsColumns: false,
    converter: (columns) => separatedConverter(columns, '\t', true),
  },
  Values: { options: bare, rows: 'tuples', needsColumns: true, converter: (columns) => (text) => tupleRows(text, columns) },
};

/** The bytes as the reader takes them. */
export async function* readRows({ converter, rows }: InputForm, source: Bytes, columns: readonly InputColumn[]): Bytes {
  const convert = converter(columns);
  if (convert === null) return yield* source;
  for await (const text of rows === 'tuples' ? wholeTuples(source) : wholeLines(source, rows === 'lines' ? null : 0x22)) {
    const lines = convert(text);
    if (lines !== '') yield Buffer.from(lines);
  }
}

export function inputForm(name: string): InputForm {
  const full = name === 'NDJSON' || name === 'JSONLines' ? 'JSONEachRow' : name.replace(/^TSV/, 'TabSeparated');
  if (Object.hasOwn(forms, full)) return forms[full]!;
  throw refusedAs(
    'format',
    new ServiceError('REL_INVALID', `Unknown format ${name.slice(0, 100)} for input: there are ${Object.keys(forms).join(', ')}`),
  );
}

/** Columns of the rows: those that INSERT names, or all of the type, in its order. REL_INVALID where neither is known. */
export function inputColumns(
  named: readonly string[] | null,
  definition: TypeDefinition | null,
  needed: boolean,
): readonly InputColumn[] {
  const properties = definition?.properties ?? {};
  const typeOf = (name: string): ColumnType | null =>
    name === 'valid_from' || name === 'valid_to' ? 'timestamp' : Object.hasOwn(properties, name) ? properties[name]!.type : null;
  const names = named ?? Object.keys(properties);
  if (names.length === 0 && needed)
    throw refusedAs(
      'data',
      new ServiceError('REL_INVALID', 'the table has no columns yet: name those of the rows, INSERT INTO t (a, b)'),
    );
  return names.map((name) => ({ name, type: typeOf(name) }));
}

const rowBytesMax = 16 << 20;
const decoder = new TextDecoder('utf-8', { fatal: true });
const newline = 0x0a;

/** Whole lines, and the rest behind the last. A quoted field may hold line ends: `isOpen` tells whether one is open. */
async function* wholeLines(source: Bytes, quote: number | null): AsyncGenerator<string, void> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  let quotes = 0;
  for await (const piece of source) {
    let cut = quote === null ? piece.lastIndexOf(newline) : -1;
    for (let i = 0; quote !== null && i < piece.length; i++) {
      if (piece[i] === quote) quotes ^= 1;
      else if (piece[i] === newline && quotes === 0) cut = i;
    }
    if (cut < 0) {
      held.push(piece.slice());
      bytes += piece.length;
      if (bytes > rowBytesMax) throw new ServiceError('REL_TOO_LARGE', `a row has at most ${rowBytesMax} bytes`);
      continue;
    }
    yield decodeUtf8(Buffer.concat([...held, piece.subarray(0, cut + 1)]));
    held = [piece.slice(cut + 1)];
    bytes = held[0]!.length;
  }
  const rest = Buffer.concat(held);
  if (rest.length > 0) yield decodeUtf8(rest);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw notUtf8();
  }
}

const notUtf8 = (): ServiceError => refusedAs('data', new ServiceError('REL_INVALID', 'the rows are not UTF-8'));

const emptyArray = /\[\s*\]/y;
const bareWord = /[^\s"[\]{},:]+/y;

/** Strings of JSON, arrays of nothing, marks, numbers and words, and where each stands: blanks lie between. A string that never ends goes to the end. */
function* jsonTokens(text: string): Generator<[token: string, at: number], void> {
  for (let at = 0; at < text.length; ) {
    if (isBlank(text, at)) {
      at++;
      continue;
    }
    const token = text[at] === '"' ? text.slice(at, endOfQuoted(text, at) ?? text.length) : wordAt(text, at);
    yield [token, at];
    at += token.length;
  }
}

/** A mark, an array of nothing, or a word. */
function wordAt(text: string, at: number): string {
  const pattern = text[at] === '[' ? emptyArray : bareWord;
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? text[at]!;
}

/** How a value begins that stands in JSON otherwise than the column takes it. */
const unlike: { readonly [type in ColumnType]?: string } = {
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
function objects(columns: readonly InputColumn[]): ((text: string) => string) | null {
  const types = new Map(columns.map(({ name, type }) => [name, type]));
  const cells = [...types].flatMap(([name, type]) => {
    const begins = type === null ? undefined : unlike[type];
    return begins === undefined ? [] : `${JSON.stringify(name).slice(1, -1).replace(/\W/g, '\\$&')}"\\s*:\\s*${begins}`;
  });
  if (cells.length === 0) return null;
  // A letter of a name may be written by its number: such rows are looked at one by one.
  const mayDiffer = new RegExp(`"(?:${cells.join('|')})|\\\\[u/]`);
  return (text) => (mayDiffer.test(text) ? objectRows(text, types) : text);
}

function objectRows(text: string, types: ReadonlyMap<string, ColumnType | null>): string {
  let depth = 0;
  let key: string | null = null;
  let last = '';
  const jsonCell = (token: string): string => {
    const before = last;
    last = token;
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth === 1) {
      if (before === ':') return cellOf(token, (key === null ? undefined : types.get(key)) ?? null);
      if (token.startsWith('"')) key = keyOf(token);
    }
    return token;
  };
  let rows = '';
  let from = 0;
  for (const [token, at] of jsonTokens(text)) {
    const cell = jsonCell(token);
    if (cell === token) continue;
    rows += text.slice(from, at) + cell;
    from = at + token.length;
  }
  return rows + text.slice(from);
}

/** A key that is no text of JSON is for the reader to refuse. */
function keyOf(token: string): string | null {
  try {
    return JSON.parse(token) as string;
  } catch {
    return null;
  }
}

function compactRows(text: string, columns: readonly InputColumn[]): string {
  const rows: string[] = [];
  let depth = 0;
  let cells: string[] = [];
  let cell = '';
  for (const [token] of jsonTokens(text)) {
    if (token === '[' || token === '{') {
      if (++depth > 1) cell += token;
    } else if (depth === 0 && token.startsWith('[')) {
      rows.push(rowOf([], columns));
    } else if (token === ']' || token === '}') {
      if (--depth > 0) cell += token;
      else if (token === ']') {
        if (cell !== '' || cells.length > 0) cells.push(cell);
        rows.push(rowOf(cells, columns));
        cells = [];
        cell = '';
      }
    } else if (token === ',' && depth <= 1) {
      if (depth === 1) {
        cells.push(cell);
        cell = '';
      }
    } else if (depth === 0) throw refusedAs('data', new ServiceError('REL_INVALID', `a row is an array: ${token.slice(0, 40)}`));
    else cell += token;
  }
  if (depth !== 0) throw refusedAs('data', new ServiceError('REL_INVALID', 'a row does not end on its line'));
  return `${rows.join('\n')}\n`;
}

function rowOf(cells: readonly string[], columns: readonly InputColumn[]): string {
  if (cells.length !== columns.length) throw otherWidth(cells.length, columns.length);
  return `{${cells.map((cell, i) => `${JSON.stringify(columns[i]!.name)}:${cellOf(cell, columns[i]!.type)}`).join(',')}}`;
}

/** A cell of JSON in the form for its column: a quoted value may be a number, an instant or JSON. */
function cellOf(token: string, type: ColumnType | null): string {
  switch (type) {
    case 'vector':
      return /^\[\s*\]$/.test(token) ? 'null' : token;
    case 'boolean':
      return booleanOf(token.startsWith('"') ? token.slice(1, -1) : token) ?? token;
    case 'integer':
    case 'number':
      return /^"-?\d+(\.\d+)?(e[+-]?\d+)?"$/i.test(token) ? token.slice(1, -1) : token;
    case 'timestamp': {
      const instant = token.startsWith('"') ? instantOf(token.slice(1, -1)) : null;
      return instant === null ? token : String(instant);
    }
    case 'json':
      return jsonOf(token);
    default:
      return token;
  }
}

const booleanOf = (text: string): string | null =>
  text === '1' || text === 'true' ? 'true' : text === '0' || text === 'false' ? 'false' : null;

/** A column of JSON is a String to ClickHouse: its text is the JSON. Text that is not JSON stays text. */
function jsonOf(token: string): string {
  if (!token.startsWith('"')) return token;
  try {
    const text: unknown = JSON.parse(token);
    if (typeof text !== 'string') return token;
    JSON.parse(text);
    return text.replace(/[\r\n]/g, ' ');
  } catch {
    return token;
  }
}

/**
 * Fields with a mark between them, as the reader's CSV has them: NULL is `\N`, everything else that is text stands in quotes, and an
 * empty field of TabSeparated is an empty text.
 */
function separatedConverter(columns: readonly InputColumn[], mark: ',' | '\t', hasHeader: boolean): (text: string) => string {
  let names: readonly InputColumn[] | null = hasHeader ? null : columns;
  return (text) => {
    let out = '';
    for (const { fields, inQuotes } of rowsOf(text, mark)) {
      const isBlank = fields.length === 1 && fields[0] === '';
      if (names === null) {
        if (isBlank) continue;
        const types = new Map(columns.map(({ name, type }) => [name, type]));
        names = fields.map((field) => ({ name: field ?? '', type: types.get(field ?? '') ?? null }));
        out += `${fields.map((field) => quote(field ?? '')).join(',')}\n`;
        continue;
      }
      const known: readonly InputColumn[] = names;
      // An empty line is a row where there is one column.
      if (isBlank && known.length !== 1) continue;
      if (fields.length !== known.length) throw otherWidth(fields.length, known.length);
      out += `${fields.map((field, i) => fieldOf(field, known[i]!.type, inQuotes[i])).join(',')}\n`;
    }
    return out;
  };
}

function otherWidth(values: number, columns: number): ServiceError {
  return refusedAs('data', new ServiceError('REL_INVALID', `a row has ${values} values, and there are ${columns} columns`));
}

interface Fields {
  /** The fields of a row; null: NULL. */
  readonly fields: (string | null)[];
  /** Fields that stood in quotes: always texts, even if they look like numbers. */
  readonly inQuotes: boolean[];
}

function* rowsOf(text: string, mark: ',' | '\t'): Generator<Fields, void> {
  if (mark === '\t') {
    for (const line of (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')) {
      const row = line.endsWith('\r') ? line.slice(0, -1) : line;
      yield { fields: row.split('\t').map((field) => (field === '\\N' ? null : unescapeText(field))), inQuotes: [] };
    }
    return;
  }
  let fields: (string | null)[] = [];
  let inQuotes: boolean[] = [];
  let at = 0;
  while (at < text.length) {
    let field: string | null;
    inQuotes.push(text[at] === '"');
    if (text[at] === '"') {
      let end = text.indexOf('"', at + 1);
      while (end >= 0 && text[end + 1] === '"') end = text.indexOf('"', end + 2);
      if (end < 0) throw refusedAs('data', new ServiceError('REL_INVALID', 'a field in quotes does not end'));
      field = text.slice(at + 1, end).replaceAll('""', '"');
      at = end + 1;
    } else {
      const match = /[^,\r\n]*/y;
      match.lastIndex = at;
      const raw = match.exec(text)![0];
      at += raw.length;
      const trimmed = raw.trim();
      field = trimmed === '\\N' ? null : trimmed;
    }
    fields.push(field);
    if (text[at] === ',') {
      at++;
      if (at === text.length) {
        fields.push('');
        inQuotes.push(false);
      }
      continue;
    }
    if (text[at] === '\r') at++;
    if (text[at] === '\n' || at >= text.length) {
      at++;
      yield { fields, inQuotes };
      fields = [];
      inQuotes = [];
    } else
      throw refusedAs(
        'data',
        new ServiceError('REL_INVALID', 'a comma or the end of the row is expected behind a field in quotes'),
      );
  }
  if (fields.length > 0) yield { fields, inQuotes };
}

/** `isText`: whether it stood in quotes; undefined where no field does. */
function fieldOf(field: string | null, type: ColumnType | null, isText: boolean | undefined): string {
  // A field of CSV that is empty has the default of its column.
  if (field === null || (field === '' && isText === false)) return '\\N';
  if (type === null && isText === true) return quote(field);
  if (type === 'vector' && /^\[\s*\]$/.test(field)) return '\\N';
  if (type === 'boolean') return booleanOf(field) ?? quote(field);
  if (type === 'timestamp') {
    const instant = instantOf(field);
    if (instant !== null) return String(instant);
  }
  // A number without quotes may be meant as one, for an undeclared column.
  if (type !== 'string' && type !== 'json' && /^[\w.+-]+$/.test(field)) return field;
  return quote(field);
}

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** Whole rows in brackets, and the text between them. */
async function* wholeTuples(source: Bytes): AsyncGenerator<string, void> {
  let held = '';
  const text = new TextDecoder('utf-8', { fatal: true });
  const decode = (piece?: Uint8Array): string => {
    try {
      return piece === undefined ? text.decode() : text.decode(piece, { stream: true });
    } catch {
      throw notUtf8();
    }
  };
  const scan = new TupleScan();
  const rowsIn = (): string => {
    const end = scan.end(held);
    const rows = held.slice(0, end);
    held = held.slice(end);
    return rows;
  };
  for await (const piece of source) {
    held += decode(piece);
    const rows = rowsIn();
    if (rows !== '') yield rows;
    if (held.length > rowBytesMax) throw new ServiceError('REL_TOO_LARGE', `a row has at most ${rowBytesMax} bytes`);
  }
  held += decode();
  const rows = rowsIn();
  if (rows !== '') yield rows;
  if (!/^[\s,;]*$/.test(held)) throw refusedAs('data', new ServiceError('REL_INVALID', 'a row does not end'));
}

/** Looks for ends of rows, at each letter once. */
class TupleScan {
  #at = 0;
  #depth = 0;
  #inText = false;

  /** The offset behind the last bracket that closes a row, where the next call starts; 0: there is none yet. */
  end(text: string): number {
    let end = 0;
    let i = this.#at;
    for (; i < text.length; i++) {
      const letter = text[i]!;
      if (this.#inText) {
        if (letter === '\\') {
          // The escaped character has not arrived yet.
          if (i + 1 === text.length) break;
          i++;
        } else if (letter === "'") this.#inText = false;
      } else if (letter === "'") this.#inText = true;
      else if (letter === '(' || letter === '[') this.#depth++;
      else if ((letter === ')' || letter === ']') && --this.#depth === 0) end = i + 1;
    }
    this.#at = i - end;
    return end;
  }
}

function tupleRows(text: string, columns: readonly InputColumn[]): string {
  const rows: string[] = [];
  let cells: string[] | null = null;
  let words: Lexeme[] = [];
  for (const lexeme of lexemesIn(text)) {
    const isMark = lexeme.kind === 'mark';
    if (lexeme.depth === 0) {
      if (isMark && lexeme.text === '(') cells = [];
      else if (!isMark || (lexeme.text !== ',' && lexeme.text !== ';'))
        throw refusedAs(
          'data',
          new ServiceError('REL_INVALID', `a row begins with (, and not with ${JSON.stringify(lexeme.text.slice(0, 40))}`),
        );
    } else if (lexeme.depth === 1 && isMark && (lexeme.text === ',' || lexeme.text === ')')) {
      cells!.push(literalOf(words));
      words = [];
      if (lexeme.text === ')') rows.push(rowOf(cells!, columns));
    } else words.push(lexeme);
  }
  return rows.length === 0 ? '' : `${rows.join('\n')}\n`;
}

/** A literal as JSON. */
function literalOf(words: readonly Lexeme[]): string {
  const [first, second] = words;
  const sign = first?.kind === 'mark' && (first.text === '-' || first.text === '+') ? first.text.replace('+', '') : null;
  if (sign !== null && words.length === 2 && second!.kind === 'number') return numberOf(sign + second!.text);
  if (words.length === 1) {
    if (first!.kind === 'text') return JSON.stringify(first!.text);
    if (first!.kind === 'number') return numberOf(first!.text);
    const word = first!.text.toLowerCase();
    if (first!.kind === 'word' && ['null', 'true', 'false'].includes(word)) return word;
  }
  if (first?.text === '[') return words.map(({ text }) => text).join('');
  throw refusedAs(
    'data',
    new ServiceError('REL_NOT_IMPLEMENTED', 'values of a row are literals: numbers, texts, NULL, true, false, arrays'),
  );
}

function numberOf(text: string): string {
  return text.replace(/^(-?)\./, '$10.').replace(/\.(?=$|e)/i, '.0');
}
