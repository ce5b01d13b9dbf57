/**
 * Rows of one relation as one caller sees them, made piece by piece while they are first read, and the columns of them that
 * questions read. Nothing of a question stays in it. A piece is about whole tables: when a type changes, the pieces about others stay.
 */
import { bytesOfCells, type Vector } from '../../log/values/columns.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { VirtualColumn } from '../logical-plan.ts';
import type { CatalogueContents, Table, TableColumn } from './catalogue-contents.ts';
import type { Relation } from './relations.ts';
import { type Cells, type ColumnOwner, type OwnedColumns, type OwnRelation, ownColumns } from './row-maker.ts';
import { type Names, textOf, type Value } from './catalogue-types.ts';

/** Rows, each as its cells, or as a column and the owner of it. */
class CatalogueRows {
  readonly cells: (Cells | TableColumn)[] = [];
  /** Null of a row that is cells. */
  readonly owners: (ColumnOwner | null)[] = [];

  push(rowCells: Cells): void {
    this.cells.push(rowCells);
    this.owners.push(null);
  }

  pushColumns([owner, columns]: OwnedColumns): void {
    for (const column of columns) {
      this.cells.push(column);
      this.owners.push(owner);
    }
  }

  get length(): number {
    return this.cells.length;
  }
}

/** The subject of rows: a table, a relation of the catalogue itself, or neither. */
type RowSubject = 'none' | Table | OwnRelation;

const isTableSubject = (subject: RowSubject): subject is Table => subject !== 'none' && 'references' in subject;

/** Tables that the rows about a table may tell of too. */
function* referenceTargets(rowSubject: RowSubject, { tables }: CatalogueContents): Iterable<Table | undefined> {
  if (isTableSubject(rowSubject)) for (const { references } of rowSubject.references) yield tables.tableNamed(references!.table);
}

/** Consecutive rows. */
class RelationPiece {
  readonly rows = new CatalogueRows();
  readonly subjects: RowSubject[] = [];
  /** Tables that its tables refer to, as they were when its rows were made; undefined: there was none. */
  readonly targets: (Table | undefined)[] = [];
  /** By place of the column. */
  readonly columns = new Map<number, Vector>();
  bytes = 0;
}

export interface PieceRead {
  readonly columns: readonly Vector[];
  readonly count: number;
}

/** Pieces in turn; undefined: call again, others may have a turn before. */
export type PiecesRead = Generator<PieceRead | undefined, void, void>;

/** Rows of a piece; up to twice as many where that keeps the next piece as it is. Small pieces are merged with their next. */
const relationRowsPerPiece = 1_024;
const relationPieceRowsMin = relationRowsPerPiece / 4;
/** Rows made in one step, or tables passed that have none; cells of a column; cells that take long. */
const relationRowsPerStep = 512;
const relationCellsPerStep = 4_096;
const lateRelationCells = 128;
/** Memory of a row before there are columns of it. */
const relationBytesPerRow = 48;
/** Memory of a text in a map. */
const relationBytesPerText = 64;

export class RelationRows {
  readonly #madeRelation: Relation;
  readonly #shownRelations: readonly OwnRelation[];
  readonly #relationPieces: RelationPiece[] = [];
  /** The piece to come. */
  #pendingPiece = new RelationPiece();
  /** Number of the subject whose rows come next. */
  #nextSubject = 0;
  #isRelationWhole = false;
  readonly #distinctValues = new Set<Value>();
  /** By place of the column. */
  readonly #columnTexts: Map<number, RelationColumnTexts>;
  readonly #constantColumns: Map<number, { readonly vector: Vector; readonly rows: number }>;
  /** Pieces that were made before a type changed, by their first subject. */
  #piecesBefore: ReadonlyMap<RowSubject, RelationPiece>;

  /** `shownRelations` are the relations that the catalogue lists; `rowsBefore` are rows of the same relation and the same view, of other tables. */
  constructor(relation: Relation, shownRelations: readonly OwnRelation[], rowsBefore: RelationRows | null = null) {
    this.#madeRelation = relation;
    this.#shownRelations = shownRelations;
    // Which rows are new depends on all that come before.
    const canPiecesStay = rowsBefore !== null && relation.maker?.distinct === undefined;
    this.#piecesBefore = new Map(canPiecesStay ? rowsBefore.#relationPieces.map((piece) => [piece.subjects[0]!, piece]) : []);
    this.#columnTexts = canPiecesStay ? rowsBefore.#columnTexts : new Map();
    this.#constantColumns = canPiecesStay ? rowsBefore.#constantColumns : new Map();
  }

  get bytes(): number {
    let relationBytes = 0;
    for (const relationPiece of this.#relationPieces) relationBytes += relationPiece.bytes;
    for (const texts of this.#columnTexts.values()) relationBytes += texts.bytes;
    for (const { vector, rows } of this.#constantColumns.values()) relationBytes += bytesOfCells(vector, rows);
    return relationBytes;
  }

  *read(columns: readonly VirtualColumn[], facts: CatalogueContents, catalogueNames: Names): PiecesRead {
    // A look at what a table refers to takes all of them.
    if (this.#piecesBefore.size > 0) while (facts.tables.makeSome()) yield;
    for (let pieceOrdinal = 0; ; pieceOrdinal++) {
      while (this.#relationPieces.length <= pieceOrdinal && !this.#isRelationWhole) {
        this.#makePiece(facts);
        yield;
      }
      const relationPiece = this.#relationPieces[pieceOrdinal];
      if (relationPiece === undefined) return;
      const pieceVectors: Vector[] = [];
      for (const virtualColumn of columns)
        pieceVectors.push(yield* this.#pieceVectorOf(relationPiece, virtualColumn, facts, catalogueNames));
      yield { columns: pieceVectors, count: relationPiece.rows.length };
    }
  }

  /** A step of making rows. One that throws leaves everything as it was. */
  #makePiece(facts: CatalogueContents): void {
    for (let i = 0, rowsMade = 0; i < relationRowsPerStep && rowsMade < relationRowsPerStep; i++) {
      const rowSubject = this.#rowSubjectAt(this.#nextSubject, facts);
      if (rowSubject === undefined) {
        this.#endPiece();
        this.#isRelationWhole = true;
        this.#piecesBefore = new Map();
        return;
      }
      const cachedPiece = this.#piecesBefore.get(rowSubject);
      const { length: pendingRowCount } = this.#pendingPiece.rows;
      if (
        cachedPiece &&
        (pendingRowCount === 0 || pendingRowCount >= relationPieceRowsMin) &&
        this.#isPieceAsBefore(cachedPiece, facts)
      ) {
        this.#endPiece();
        this.#relationPieces.push(cachedPiece);
        this.#nextSubject += cachedPiece.subjects.length;
        return;
      }
      this.#makeSubjectRows(rowSubject, facts);
      this.#nextSubject++;
      rowsMade += this.#pendingPiece.rows.length - pendingRowCount;
      if (this.#pendingPiece.rows.length >= (this.#piecesBefore.size === 0 ? relationRowsPerPiece : 2 * relationRowsPerPiece))
        this.#endPiece();
    }
  }

  /** Undefined: there are no more. */
  #rowSubjectAt(subjectOrdinal: number, { tables }: CatalogueContents): RowSubject | undefined {
    const { all, ofTable, ofRelation, ofColumns } = this.#madeRelation.maker ?? {};
    let subjectsLeft = subjectOrdinal;
    if (all && subjectsLeft-- === 0) return 'none';
    if (ofTable || ofColumns) {
      const table = tables.tableAt(subjectsLeft);
      if (table) return table;
      subjectsLeft -= tables.count;
    }
    return ofRelation || ofColumns?.hasOwn ? this.#shownRelations[subjectsLeft] : undefined;
  }

  /** Whether the rows to come are those of a piece: about the same subjects, which refer to the same tables. */
  #isPieceAsBefore({ subjects, targets }: RelationPiece, facts: CatalogueContents): boolean {
    if (!subjects.every((rowSubject, i) => this.#rowSubjectAt(this.#nextSubject + i, facts) === rowSubject)) return false;
    if (this.#madeRelation.maker?.refers !== true) return true;
    let targetOrdinal = 0;
    for (const subject of subjects)
      for (const referenceTarget of referenceTargets(subject, facts))
        if (targets[targetOrdinal++] !== referenceTarget) return false;
    return true;
  }

  #endPiece(): void {
    if (this.#pendingPiece.subjects.length === 0) return;
    this.#pendingPiece.bytes += this.#pendingPiece.rows.length * relationBytesPerRow;
    this.#relationPieces.push(this.#pendingPiece);
    this.#pendingPiece = new RelationPiece();
  }

  /** All of them are made before the first is taken. */
  #makeSubjectRows(rowSubject: RowSubject, facts: CatalogueContents): void {
    const { all, ofTable, ofRelation, ofColumns, refers } = this.#madeRelation.maker!;
    let subjectCells: Iterable<Cells> | undefined;
    let ownedColumns: readonly OwnedColumns[] = [];
    if (rowSubject === 'none') subjectCells = all!(facts);
    else if (isTableSubject(rowSubject)) {
      subjectCells = ofTable?.(rowSubject, facts);
      ownedColumns = ofColumns?.ofTable(rowSubject, facts) ?? [];
    } else {
      subjectCells = ofRelation?.(rowSubject, facts);
      if (ofColumns) ownedColumns = [[rowSubject, ownColumns(rowSubject)]];
    }
    const { rows, subjects, targets } = this.#pendingPiece;
    for (const cellsOrColumns of Array.isArray(subjectCells) ? (subjectCells as readonly Cells[]) : [...(subjectCells ?? [])])
      if (this.#isNewRow(cellsOrColumns)) rows.push(cellsOrColumns);
    for (const each of ownedColumns) rows.pushColumns(each);
    subjects.push(rowSubject);
    if (refers) targets.push(...referenceTargets(rowSubject, facts));
  }

  #isNewRow(rowCells: Cells): boolean {
    const { distinct: distinctColumn } = this.#madeRelation.maker!;
    if (distinctColumn === undefined) return true;
    const { size } = this.#distinctValues;
    return this.#distinctValues.add(rowCells[distinctColumn]!).size > size;
  }

  *#pieceVectorOf(
    relationPiece: RelationPiece,
    virtualColumn: VirtualColumn,
    facts: CatalogueContents,
    names: Names,
  ): Generator<undefined, Vector, void> {
    const knownVector =
      relationPiece.columns.get(virtualColumn.relationColumn) ??
      this.#constantVectorOf(virtualColumn, relationPiece.rows.length, names);
    if (knownVector) return knownVector;
    let columnTexts = this.#columnTexts.get(virtualColumn.relationColumn);
    if (columnTexts === undefined) this.#columnTexts.set(virtualColumn.relationColumn, (columnTexts = new RelationColumnTexts()));
    const pieceVector = yield* relationVectorOf(this.#madeRelation, relationPiece.rows, virtualColumn, {
      facts,
      names,
      texts: columnTexts,
    });
    relationPiece.columns.set(virtualColumn.relationColumn, pieceVector);
    relationPiece.bytes += bytesOfCells(pieceVector, relationPiece.rows.length);
    return pieceVector;
  }

  /** The column of a piece with this many rows, where all cells are equal. */
  #constantVectorOf(virtualColumn: VirtualColumn, rowCount: number, names: Names): Vector | undefined {
    const { name, relationColumn: columnIndex } = virtualColumn;
    const { base } = this.#madeRelation.maker ?? {};
    if (base === undefined || !Object.hasOwn(base, name)) return undefined;
    let knownConstant = this.#constantColumns.get(columnIndex);
    if (knownConstant === undefined || knownConstant.rows < rowCount) {
      const constantLength = Math.max(rowCount, relationRowsPerPiece);
      const constantBuilder = new RelationColumnBuilder(virtualColumn, constantLength, names, new RelationColumnTexts());
      for (let i = 0; i < constantLength; i++) constantBuilder.append(base[name]!);
      this.#constantColumns.set(columnIndex, (knownConstant = { vector: constantBuilder.build(), rows: constantLength }));
    }
    return knownConstant.vector;
  }
}

/** Rows that were found by a value of them, as pieces. */
export function* readSelected(
  relation: Relation,
  rows: Iterable<Cells>,
  columns: readonly VirtualColumn[],
  facts: CatalogueContents,
  names: Names,
): PiecesRead {
  let pending = new CatalogueRows();
  const piece = function* (): PiecesRead {
    const foundVectors: Vector[] = [];
    for (const virtualColumn of columns)
      foundVectors.push(
        yield* relationVectorOf(relation, pending, virtualColumn, { facts, names, texts: new RelationColumnTexts() }),
      );
    yield { columns: foundVectors, count: pending.length };
    pending = new CatalogueRows();
  };
  for (const cells of rows) {
    pending.push(cells);
    if (pending.length === relationRowsPerStep) yield* piece();
  }
  if (pending.length > 0) yield* piece();
}

function* relationVectorOf(
  { maker }: Relation,
  { cells: rows, owners }: CatalogueRows,
  virtualColumn: VirtualColumn,
  { facts, names, texts }: { readonly facts: CatalogueContents; readonly names: Names; readonly texts: RelationColumnTexts },
): Generator<undefined, Vector, void> {
  const { name } = virtualColumn;
  const lateCell = maker?.late?.[name];
  const columnCell = maker?.ofColumns?.cells[name];
  const baseCell = maker?.base?.[name] ?? null;
  const columnBuilder = new RelationColumnBuilder(virtualColumn, rows.length, names, texts);
  const stepCells = lateCell ? lateRelationCells : relationCellsPerStep;
  for (let i = 0; i < rows.length; i++) {
    const rowOwner = owners[i]!;
    if (rowOwner !== null) columnBuilder.append(columnCell ? columnCell(rows[i] as TableColumn, rowOwner, facts) : baseCell);
    else {
      const rowCells = rows[i] as Cells;
      columnBuilder.append((lateCell ? lateCell(rowCells, facts) : rowCells[name]) ?? baseCell);
    }
    if (i % stepCells === stepCells - 1) yield;
  }
  return columnBuilder.build();
}

/** Texts of a column, most of which are there already: their codes are found without a look at their bytes. */
class RelationColumnTexts extends TextInterner {
  readonly #textCodes = new Map<string, number>();

  override get bytes(): number {
    return super.bytes + this.#textCodes.size * relationBytesPerText;
  }

  codeFor(text: string): number {
    let textCode = this.#textCodes.get(text);
    if (textCode === undefined) this.#textCodes.set(text, (textCode = this.ofText(text)));
    return textCode;
  }
}

/** Values of a column as cells: texts by their code, the same text only once. */
class RelationColumnBuilder {
  readonly #wireType: string;
  readonly #catalogueNames: Names;
  readonly #columnTexts: RelationColumnTexts;
  readonly #cellBuilder: VectorBuilder;
  readonly #textCodes: Int32Array | null;
  #textNulls: Uint8Array | null = null;
  #appendedCount = 0;
  #hasTextValue = false;

  constructor({ type, wire }: VirtualColumn, rowCount: number, catalogueNames: Names, columnTexts: RelationColumnTexts) {
    this.#wireType = wire!;
    this.#catalogueNames = catalogueNames;
    this.#columnTexts = columnTexts;
    this.#textCodes = type === 'string' ? new Int32Array(rowCount) : null;
    this.#cellBuilder = new VectorBuilder(type, this.#textCodes ? 1 : rowCount);
  }

  append(catalogueValue: Value): void {
    if (this.#textCodes) this.#appendCatalogueText(catalogueValue);
    else if (catalogueValue === null) this.#cellBuilder.appendNull();
    else if (typeof catalogueValue === 'boolean') this.#cellBuilder.appendBoolean(catalogueValue);
    else if (typeof catalogueValue !== 'number') this.#cellBuilder.appendString(this.#catalogueTextOf(catalogueValue));
    else if (this.#cellBuilder.type === 'integer') this.#cellBuilder.appendInteger(Math.round(catalogueValue));
    else this.#cellBuilder.appendNumber(catalogueValue);
  }

  build(): Vector {
    if (this.#textCodes === null) return this.#cellBuilder.build();
    if (!this.#hasTextValue) return { kind: 'null' };
    return { kind: 'dict', values: this.#textCodes, dictionary: this.#columnTexts, nulls: this.#textNulls };
  }

  #appendCatalogueText(catalogueValue: Value): void {
    const textRow = this.#appendedCount++;
    if (catalogueValue === null) {
      this.#textNulls ??= new Uint8Array(this.#textCodes!.length);
      this.#textNulls[textRow] = 1;
      return;
    }
    this.#hasTextValue = true;
    const cellText = this.#catalogueTextOf(catalogueValue);
    this.#textCodes![textRow] = this.#columnTexts.codeFor(cellText);
  }

  #catalogueTextOf(value: Exclude<Value, null>): string {
    return typeof value === 'string' ? value : textOf(value, this.#wireType, this.#catalogueNames);
  }
}
