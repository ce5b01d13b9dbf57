/** Forms of answers, by the names that FORMAT and `default_format` say. Source: ClickHouse's documentation of formats. */
import { ServiceError } from '../../errors.ts';
import { outputForms } from '../../planner/formats/output-format.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { CellColumn, type CellOptions, escapeText } from './text-cells.ts';
import { refusedAs } from './errors.ts';
import { everyType } from './column-types.ts';

export type FormattedRows = Pick<Answer, 'columns' | 'batches' | 'rowCount' | 'processingTimeMs'>;
export type OutputPieces = Generator<Uint8Array, void>;

export interface OutputForm {
  readonly mediaType: string;
  /** Pieces of some 64 KiB, each made when it is asked for; an empty one stands where only work was done. */
  readonly writer: () => Promise<(rows: FormattedRows, options: CellOptions) => OutputPieces>;
}

const pieceBytes = 65_536;
const json = 'application/json; charset=UTF-8';
const lines = 'application/x-ndjson; charset=UTF-8';
const csv = 'text/csv; charset=UTF-8; header=absent';
const csvHeader = 'text/csv; charset=UTF-8; header=present';
const tsv = 'text/tab-separated-values; charset=UTF-8';

type Column = CellColumn;
type RowText = (columns: readonly Column[], row: number) => string;
type Part = (columns: readonly Column[], rows: FormattedRows) => string;

/** `head` before all rows, `between` two of them, and `tail` behind all. */
function textForm(mediaType: string, row: RowText, between: string, head: Part, tail: Part): OutputForm {
  return {
    mediaType,
    writer: () => Promise.resolve((rows, options) => textPieces(rows, options, { row, between, head, tail })),
  };
}

interface Texts {
  readonly row: RowText;
  readonly between: string;
  readonly head: Part;
  readonly tail: Part;
}

function* textPieces(rows: FormattedRows, options: CellOptions, { row, between, head, tail }: Texts): OutputPieces {
  const columns = rows.columns.map((column) => new CellColumn(column, options));
  let text = head(columns, rows);
  let isFirst = true;
  for (const { columns: vectors, selection, first, count } of rows.batches) {
    columns.forEach((column, i) => column.open(vectors[i]!));
    for (let i = 0; i < count; i++) {
      text += (isFirst ? '' : between) + row(columns, selection === null ? first + i : selection[i]!);
      isFirst = false;
      if (text.length < pieceBytes) continue;
      yield Buffer.from(text);
      text = '';
    }
  }
  yield Buffer.from(text + tail(columns, rows));
}

const none = (): string => '';
const endOfLines: Part = (_, { rowCount }) => (rowCount > 0 ? '\n' : '');
const quotedName = (column: Column): string => JSON.stringify(column.name);

const asObject: RowText = (columns, row) => `{${columns.map((column) => `${quotedName(column)}:${column.json(row)}`).join(',')}}`;
const asArray: RowText = (columns, row) => `[${columns.map((column) => column.json(row)).join(',')}]`;
const asCsv: RowText = (columns, row) => columns.map((column) => column.csv(row)).join(',');
const asTsv: RowText = (columns, row) => columns.map((column) => column.tsv(row)).join('\t');

/** JSON with its columns before the rows, and how many there are behind them. */
function document(row: RowText): OutputForm {
  const head: Part = (columns) =>
    `{"meta":[${columns.map((column) => `{"name":${quotedName(column)},"type":${JSON.stringify(column.type)}}`).join(',')}],\n"data":[`;
  const tail: Part = (_, { rowCount, processingTimeMs }) =>
    `],\n"rows":${rowCount},\n"statistics":{"elapsed":${processingTimeMs / 1000},"rows_read":${rowCount},"bytes_read":0}}\n`;
  return textForm(json, row, ',\n', head, tail);
}

const header =
  (separator: string, of: (column: Column) => string, types: boolean): Part =>
  (columns) => {
    const names = columns.map((column) => of(column)).join(separator);
    if (!types) return `${names}\n`;
    const quoted = of(columns[0] ?? ({ name: '' } as Column)).startsWith('"');
    return `${names}\n${columns.map(({ type }) => (quoted ? `"${type}"` : type)).join(separator)}\n`;
  };
const csvName = ({ name }: Column): string => `"${name.replaceAll('"', '""')}"`;
const tsvName = ({ name }: Column): string => escapeText(name);
const jsonNames: Part = (columns) => `[${columns.map(quotedName).join(',')}]\n`;
const jsonTypes: Part = (columns) => `[${columns.map(({ type }) => JSON.stringify(type)).join(',')}]\n`;

const tabSeparated = (head: Part): OutputForm => textForm(tsv, asTsv, '\n', head, endOfLines);
const commaSeparated = (mediaType: string, head: Part): OutputForm => textForm(mediaType, asCsv, '\n', head, endOfLines);
const linesOf = (row: RowText, head: Part): OutputForm => textForm(lines, row, '\n', head, endOfLines);

const forms: Readonly<Record<string, OutputForm>> = {
  JSON: document(asObject),
  JSONCompact: document(asArray),
  JSONEachRow: linesOf(asObject, none),
  JSONCompactEachRow: linesOf(asArray, none),
  JSONCompactEachRowWithNames: linesOf(asArray, jsonNames),
  JSONCompactEachRowWithNamesAndTypes: linesOf(asArray, (...given) => jsonNames(...given) + jsonTypes(...given)),
  CSV: commaSeparated(csv, none),
  CSVWithNames: commaSeparated(csvHeader, header(',', csvName, false)),
  CSVWithNamesAndTypes: commaSeparated(csvHeader, header(',', csvName, true)),
  TabSeparated: tabSeparated(none),
  TabSeparatedWithNames: tabSeparated(header('\t', tsvName, false)),
  TabSeparatedWithNamesAndTypes: tabSeparated(header('\t', tsvName, true)),
  Native: {
    mediaType: 'application/octet-stream',
    writer: async () => {
      const { writeNativePieces } = await import('./native-blocks.ts');
      return (rows) => writeNativePieces(rows, everyType);
    },
  },
  ArrowStream: {
    mediaType: outputForms.arrow.mediaType,
    writer: async () => {
      const write = await outputForms.arrow.writer();
      return (rows) => write(rows, new Map());
    },
  },
  Arrow: {
    mediaType: 'application/vnd.apache.arrow.file',
    writer: async () => {
      const { writeArrowPieces } = await import('../../planner/formats/arrow-rows.ts');
      return (rows) => writeArrowPieces(rows, new Map(), { shape: 'file' });
    },
  },
  Parquet: {
    mediaType: outputForms.parquet.mediaType,
    writer: async () => {
      const write = await outputForms.parquet.writer();
      return (rows) => write(rows, new Map());
    },
  },
};

const aliases: Readonly<Record<string, string>> = { TSV: 'TabSeparated', NDJSON: 'JSONEachRow', JSONLines: 'JSONEachRow' };

/** Finds a form by its name or an alias. Throws ClickHouse's error for an unknown one. */
export function outputForm(name: string): { readonly name: string; readonly form: OutputForm } {
  const full = aliases[name] ?? name.replace(/^TSV(?=With)/, 'TabSeparated');
  if (Object.hasOwn(forms, full)) return { name: full, form: forms[full]! };
  throw refusedAs(
    'format',
    new ServiceError('REL_INVALID', `Unknown format ${name.slice(0, 100)}: there are ${Object.keys(forms).join(', ')}`),
  );
}
