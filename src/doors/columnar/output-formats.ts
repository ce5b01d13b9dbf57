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

const outputPieceBytes = 65_536;
const jsonMediaType = 'application/json; charset=UTF-8';
const ndjsonMediaType = 'application/x-ndjson; charset=UTF-8';
const csvMediaType = 'text/csv; charset=UTF-8; header=absent';
const csvHeaderMediaType = 'text/csv; charset=UTF-8; header=present';
const tsvMediaType = 'text/tab-separated-values; charset=UTF-8';

type Column = CellColumn;
type OutputRowText = (columns: readonly Column[], row: number) => string;
type DocumentPart = (columns: readonly Column[], rows: FormattedRows) => string;

/** `headPart` before all rows, `betweenRows` two of them, and `tailPart` behind all. */
function textOutputForm(
  mediaType: string,
  rowText: OutputRowText,
  betweenRows: string,
  headPart: DocumentPart,
  tailPart: DocumentPart,
): OutputForm {
  return {
    mediaType,
    writer: () =>
      Promise.resolve((rows, cellOptions) =>
        textOutputPieces(rows, cellOptions, { row: rowText, between: betweenRows, head: headPart, tail: tailPart }),
      ),
  };
}

interface OutputTexts {
  readonly row: OutputRowText;
  readonly between: string;
  readonly head: DocumentPart;
  readonly tail: DocumentPart;
}

function* textOutputPieces(
  outputRows: FormattedRows,
  cellOptions: CellOptions,
  { row: rowText, between: betweenRows, head: headPart, tail: tailPart }: OutputTexts,
): OutputPieces {
  const cellColumns = outputRows.columns.map((cellColumn) => new CellColumn(cellColumn, cellOptions));
  let outputText = headPart(cellColumns, outputRows);
  let isFirstRow = true;
  for (const { columns: outputVectors, selection, first, count: batchRowCount } of outputRows.batches) {
    cellColumns.forEach((cellColumn, i) => cellColumn.open(outputVectors[i]!));
    for (let i = 0; i < batchRowCount; i++) {
      outputText += (isFirstRow ? '' : betweenRows) + rowText(cellColumns, selection === null ? first + i : selection[i]!);
      isFirstRow = false;
      if (outputText.length < outputPieceBytes) continue;
      yield Buffer.from(outputText);
      outputText = '';
    }
  }
  yield Buffer.from(outputText + tailPart(cellColumns, outputRows));
}

const noPart = (): string => '';
const lastLineEnd: DocumentPart = (_, { rowCount: outputRowCount }) => (outputRowCount > 0 ? '\n' : '');
const quotedColumnName = (cellColumn: Column): string => JSON.stringify(cellColumn.name);

const rowAsObject: OutputRowText = (cellColumns, outputRow) =>
  `{${cellColumns.map((cellColumn) => `${quotedColumnName(cellColumn)}:${cellColumn.json(outputRow)}`).join(',')}}`;
const rowAsArray: OutputRowText = (cellColumns, outputRow) =>
  `[${cellColumns.map((cellColumn) => cellColumn.json(outputRow)).join(',')}]`;
const rowAsCsv: OutputRowText = (cellColumns, outputRow) => cellColumns.map((cellColumn) => cellColumn.csv(outputRow)).join(',');
const rowAsTsv: OutputRowText = (cellColumns, outputRow) => cellColumns.map((cellColumn) => cellColumn.tsv(outputRow)).join('\t');

/** JSON with its columns before the rows, and how many there are behind them. */
function jsonDocumentForm(rowText: OutputRowText): OutputForm {
  const documentHead: DocumentPart = (cellColumns) =>
    `{"meta":[${cellColumns.map((cellColumn) => `{"name":${quotedColumnName(cellColumn)},"type":${JSON.stringify(cellColumn.type)}}`).join(',')}],\n"data":[`;
  const documentTail: DocumentPart = (_, { rowCount, processingTimeMs }) =>
    `],\n"rows":${rowCount},\n"statistics":{"elapsed":${processingTimeMs / 1000},"rows_read":${rowCount},"bytes_read":0}}\n`;
  return textOutputForm(jsonMediaType, rowText, ',\n', documentHead, documentTail);
}

const headerPart =
  (headerSeparator: string, columnNameOf: (headerColumn: Column) => string, hasTypes: boolean): DocumentPart =>
  (headerColumns) => {
    const headerNames = headerColumns.map((headerColumn) => columnNameOf(headerColumn)).join(headerSeparator);
    if (!hasTypes) return `${headerNames}\n`;
    const areTypesQuoted = columnNameOf(headerColumns[0] ?? ({ name: '' } as Column)).startsWith('"');
    return `${headerNames}\n${headerColumns.map(({ type }) => (areTypesQuoted ? `"${type}"` : type)).join(headerSeparator)}\n`;
  };
const csvColumnName = ({ name: columnName }: Column): string => `"${columnName.replaceAll('"', '""')}"`;
const tsvColumnName = ({ name: columnName }: Column): string => escapeText(columnName);
const jsonNamesRow: DocumentPart = (cellColumns) => `[${cellColumns.map(quotedColumnName).join(',')}]\n`;
const jsonTypesRow: DocumentPart = (cellColumns) => `[${cellColumns.map(({ type }) => JSON.stringify(type)).join(',')}]\n`;

const tabSeparatedForm = (headPart: DocumentPart): OutputForm =>
  textOutputForm(tsvMediaType, rowAsTsv, '\n', headPart, lastLineEnd);
const commaSeparatedForm = (mediaType: string, headPart: DocumentPart): OutputForm =>
  textOutputForm(mediaType, rowAsCsv, '\n', headPart, lastLineEnd);
const jsonLinesForm = (rowText: OutputRowText, headPart: DocumentPart): OutputForm =>
  textOutputForm(ndjsonMediaType, rowText, '\n', headPart, lastLineEnd);

const outputFormats: Readonly<Record<string, OutputForm>> = {
  JSON: jsonDocumentForm(rowAsObject),
  JSONCompact: jsonDocumentForm(rowAsArray),
  JSONEachRow: jsonLinesForm(rowAsObject, noPart),
  JSONCompactEachRow: jsonLinesForm(rowAsArray, noPart),
  JSONCompactEachRowWithNames: jsonLinesForm(rowAsArray, jsonNamesRow),
  JSONCompactEachRowWithNamesAndTypes: jsonLinesForm(rowAsArray, (...given) => jsonNamesRow(...given) + jsonTypesRow(...given)),
  CSV: commaSeparatedForm(csvMediaType, noPart),
  CSVWithNames: commaSeparatedForm(csvHeaderMediaType, headerPart(',', csvColumnName, false)),
  CSVWithNamesAndTypes: commaSeparatedForm(csvHeaderMediaType, headerPart(',', csvColumnName, true)),
  TabSeparated: tabSeparatedForm(noPart),
  TabSeparatedWithNames: tabSeparatedForm(headerPart('\t', tsvColumnName, false)),
  TabSeparatedWithNamesAndTypes: tabSeparatedForm(headerPart('\t', tsvColumnName, true)),
  Native: {
    mediaType: 'application/octet-stream',
    writer: async () => {
      const { writeNativePieces } = await import('./native-blocks.ts');
      return (outputRows) => writeNativePieces(outputRows, everyType);
    },
  },
  ArrowStream: {
    mediaType: outputForms.arrow.mediaType,
    writer: async () => {
      const writeForm = await outputForms.arrow.writer();
      return (outputRows) => writeForm(outputRows, new Map());
    },
  },
  Arrow: {
    mediaType: 'application/vnd.apache.arrow.file',
    writer: async () => {
      const { writeArrowPieces } = await import('../../planner/formats/arrow-rows.ts');
      return (outputRows) => writeArrowPieces(outputRows, new Map(), { shape: 'file' });
    },
  },
  Parquet: {
    mediaType: outputForms.parquet.mediaType,
    writer: async () => {
      const writeForm = await outputForms.parquet.writer();
      return (outputRows) => writeForm(outputRows, new Map());
    },
  },
};

const formatAliases: Readonly<Record<string, string>> = { TSV: 'TabSeparated', NDJSON: 'JSONEachRow', JSONLines: 'JSONEachRow' };

/** Finds a form by its name or an alias. Throws ClickHouse's error for an unknown one. */
export function outputForm(formatName: string): { readonly name: string; readonly form: OutputForm } {
  const fullFormatName = formatAliases[formatName] ?? formatName.replace(/^TSV(?=With)/, 'TabSeparated');
  if (Object.hasOwn(outputFormats, fullFormatName)) return { name: fullFormatName, form: outputFormats[fullFormatName]! };
  throw refusedAs(
    'format',
    new ServiceError(
      'REL_INVALID',
      `Unknown format ${formatName.slice(0, 100)}: there are ${Object.keys(outputFormats).join(', ')}`,
    ),
  );
}
