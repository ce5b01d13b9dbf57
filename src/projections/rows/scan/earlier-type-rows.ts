/**
 * Rows under the column types of an earlier catalog. A column that was widened since is stored in its wider type; earlier cells
 * read back as they were written, value for value: JSON text as the scalar that it was made from.
 */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { becomesText, type Cell, type ColumnType } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type {
  CatalogReader,
  PathCodes,
  Preparation,
  RowBlock,
  RowProvenance,
  RowReader,
  RowWindow,
  ScanEstimate,
  ScanRequest,
} from '../../access-paths.ts';
import { columnTypeOf } from '../../catalog/projection.ts';

/** The former and the stored type of a column; null where the vectors are the same. */
type TypeChange = { readonly was: ColumnType; readonly is: ColumnType } | null;

export class EarlierTypeRows implements RowReader {
  readonly #currentRows: RowReader;
  readonly #catalogThen: CatalogReader;
  readonly #typeNow: (type: string, column: string) => ColumnType | undefined;

  constructor(
    currentRows: RowReader,
    catalogThen: CatalogReader,
    typeNow: (type: string, column: string) => ColumnType | undefined,
  ) {
    this.#currentRows = currentRows;
    this.#catalogThen = catalogThen;
    this.#typeNow = typeNow;
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    return this.#currentRows.prepare?.(type, columns) ?? null;
  }

  scan(scanRequest: ScanRequest): Iterator<RowBlock, void> {
    const typeChanges = scanRequest.columns.map((column) => this.#convertingChange(scanRequest.type, column));
    const currentBlocks = this.#currentRows.scan(this.#withoutChangedZones(scanRequest));
    const furtherChange = scanRequest.further ? (column: string) => this.#convertingChange(scanRequest.type, column) : null;
    return furtherChange === null && typeChanges.every((typeChange) => typeChange === null)
      ? currentBlocks
      : blocksOfEarlierType(currentBlocks, typeChanges, furtherChange);
  }

  estimate(scanRequest: ScanRequest): ScanEstimate {
    return this.#currentRows.estimate(this.#withoutChangedZones(scanRequest));
  }

  pathCodes(): PathCodes {
    return this.#currentRows.pathCodes();
  }

  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
    return this.#currentRows.provenanceOf(type, systemFrom, paths);
  }

  /** Zones and identifiers of a column that changed its type say nothing about values of the old one. */
  #withoutChangedZones(scanRequest: ScanRequest): ScanRequest {
    const { type, identifiers } = scanRequest;
    if (identifiers?.some(({ column }) => this.#typeChangeOf(type, column) !== null)) {
      return this.#withoutChangedZones({ ...scanRequest, identifiers: undefined });
    }
    const unchangedZones = scanRequest.zones?.filter(({ column }) => this.#typeChangeOf(type, column) === null);
    return unchangedZones === undefined ? scanRequest : { ...scanRequest, zones: unchangedZones };
  }

  #typeChangeOf(type: string, column: string): TypeChange {
    const definitionThen = this.#catalogThen.type(type);
    const was = definitionThen && columnTypeOf(definitionThen, column);
    const is = this.#typeNow(type, column);
    return was === undefined || is === undefined || was === is ? null : { was, is };
  }

  #convertingChange(type: string, column: string): TypeChange {
    const typeChange = this.#typeChangeOf(type, column);
    // An integer that rests as a double is a form in which integers rest anyway.
    return typeChange !== null && typeChange.was === 'integer' && typeChange.is === 'number' ? null : typeChange;
  }
}

function* blocksOfEarlierType(
  currentBlocks: Iterator<RowBlock, void>,
  typeChanges: readonly TypeChange[],
  furtherChange: ((column: string) => TypeChange) | null,
): Generator<RowBlock, void> {
  try {
    for (let currentBlock = currentBlocks.next(); currentBlock.done !== true; currentBlock = currentBlocks.next()) {
      const blockThen = columnsOfEarlierType(currentBlock.value, typeChanges);
      const { further: furtherColumns } = blockThen;
      // Facts about all cells of a block hold for the cells as stored.
      if (!furtherColumns || !furtherChange) yield blockThen;
      else
        yield {
          ...blockThen,
          further: { rows: (names) => columnsOfEarlierType(furtherColumns.rows(names), names.map(furtherChange)) },
        };
    }
  } finally {
    currentBlocks.return?.();
  }
}

function columnsOfEarlierType<T extends RowWindow>(rowWindow: T, typeChanges: readonly TypeChange[]): T {
  const columnsThen = rowWindow.columns.map((vector, i) => {
    const typeChange = typeChanges[i] ?? null;
    return typeChange === null ? vector : vectorOfEarlierType(vector, typeChange, rowWindow);
  });
  return { ...rowWindow, columns: columnsThen };
}

/** In the row numbers of the block; rows that it does not select are NULL. */
function vectorOfEarlierType(
  vectorNow: Vector,
  { was, is }: Exclude<TypeChange, null>,
  { selection, first, count }: RowWindow,
): Vector {
  if (vectorNow.kind === 'null' || count === 0) return vectorNow;
  const vectorThen = new VectorBuilder(was, count);
  let row = 0;
  for (let k = 0; k < count; k++) {
    const windowRow = selection === null ? first + k : selection[k]!;
    for (; row < windowRow; row++) vectorThen.appendNull();
    const cellNow = cellAt(vectorNow, is, windowRow);
    vectorThen.append(cellNow === null ? null : cellOfEarlierType(cellNow, was, is));
    row++;
  }
  return vectorThen.build();
}

function cellOfEarlierType(cellNow: Exclude<Cell, null>, was: ColumnType, is: ColumnType): Cell {
  assert(is === 'json' || (is === 'string' && becomesText(was)), `${was} does not become ${is}`);
  const cellText = String(cellNow);
  switch (was) {
    case 'integer':
    case 'timestamp':
      return BigInt(cellText);
    case 'vector':
      return Float32Array.from(JSON.parse(cellText) as number[]);
    case 'string':
    case 'number':
    case 'boolean':
      return JSON.parse(cellText) as string | number | boolean;
    case 'json':
      return cellText;
  }
}
