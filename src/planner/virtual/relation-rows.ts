/**
 * Rows of one relation as one caller sees them, made piece by piece while they are first read, and the columns of them that
 * questions read. Nothing of a question stays in it.
 */
import { bytesOfCells, type Vector } from '../../log/values/columns.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { VirtualColumn } from '../logical-plan.ts';
import type { CatalogueContents, TableColumn } from './catalogue-contents.ts';
import type { Relation } from './relations.ts';
import { type Cells, type ColumnOwner, type OwnedColumns, type OwnRelation, ownColumns } from './row-maker.ts';
import { type Names, textOf, type Value } from './types.ts';

/** Rows, each as its cells, or as a column and the owner of it. */
class Rows {
  readonly cells: (Cells | TableColumn)[] = [];
  /** Null of a row that is cells. */
  readonly owners: (ColumnOwner | null)[] = [];

  push(cells: Cells): void {
    this.cells.push(cells);
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

  /** Takes the first rows out. */
  takeFirst(count: number): Rows {
    const first = new Rows();
    first.cells.push(...this.cells.splice(0, count));
    first.owners.push(...this.owners.splice(0, count));
    return first;
  }
}

interface Piece {
  readonly rows: Rows;
  /** By place of the column. */
  readonly columns: Map<number, Vector>;
}

export interface PieceRead {
  readonly columns: readonly Vector[];
  readonly count: number;
}

/** Pieces in turn; undefined: call again, others may have a turn before. */
export type PiecesRead = Generator<PieceRead | undefined, void, void>;

const rowsPerPiece = 8_192;
/** So many rows are made, or tables without any gone through, in one step; so many cells of a column; so many of those that take long. */
const rowsPerStep = 512;
const cellsPerStep = 4_096;
const lateCellsPerStep = 128;
/** Memory of a row before there are columns of it. */
const bytesPerRow = 48;
/** Memory of a text in a map. */
const bytesPerText = 64;

export class RelationRows {
  readonly #relation: Relation;
  readonly #shown: readonly OwnRelation[];
  readonly #pieces: Piece[] = [];
  /** Rows of the piece to come. */
  readonly #pending = new Rows();
  #nextTable = 0;
  #nextRelation = 0;
  #hasAll = false;
  #isWhole = false;
  readonly #distinct = new Set<Value>();
  /** By place of the column. */
  readonly #texts = new Map<number, ColumnTexts>();
  readonly #constants = new Map<number, Vector>();
  #bytes = 0;

  /** `shown` are the relations that the catalogue lists. */
  constructor(relation: Relation, shown: readonly OwnRelation[]) {
    this.#relation = relation;
    this.#shown = shown;
  }

  get bytes(): number {
    let bytes = this.#bytes;
    for (const texts of this.#texts.values()) bytes += texts.bytes;
    return bytes;
  }

  *read(columns: readonly VirtualColumn[], facts: CatalogueContents, names: Names): PiecesRead {
    for (let n = 0; ; n++) {
      while (this.#pieces.length <= n && !this.#isWhole) {
        this.#make(facts);
        yield;
      }
      const piece = this.#pieces[n];
      if (piece === undefined) return;
      const vectors: Vector[] = [];
      for (const column of columns) vectors.push(yield* this.#vectorOf(piece, column, facts, names));
      yield { columns: vectors, count: piece.rows.length };
    }
  }

  /** A step of making rows. One that throws leaves everything as it was. */
  #make(facts: CatalogueContents): void {
    const before = this.#pending.length;
    for (let i = 0; i < rowsPerStep && this.#pending.length - before < rowsPerStep; i++) {
      if (this.#makeNext(facts)) continue;
      this.#isWhole = true;
      break;
    }
    while (this.#pending.length >= rowsPerPiece || (this.#isWhole && this.#pending.length > 0)) {
      const rows = this.#pending.takeFirst(rowsPerPiece);
      this.#pieces.push({ rows, columns: new Map() });
      this.#bytes += rows.length * bytesPerRow;
    }
  }

  /** Makes the rows of the next object; false: there is none. */
  #makeNext(facts: CatalogueContents): boolean {
    const { all, ofTable, ofRelation, ofColumns } = this.#relation.maker ?? {};
    if (all && !this.#hasAll) {
      this.#take(all(facts));
      this.#hasAll = true;
      return true;
    }
    const table = ofTable || ofColumns ? facts.tables.at(this.#nextTable) : undefined;
    if (table) {
      if (ofTable) this.#take(ofTable(table, facts));
      for (const owned of ofColumns?.ofTable(table, facts) ?? []) this.#pending.pushColumns(owned);
      this.#nextTable++;
      return true;
    }
    const relation = ofRelation || ofColumns?.hasOwn ? this.#shown[this.#nextRelation] : undefined;
    if (!relation) return false;
    if (ofRelation) this.#take(ofRelation(relation, facts));
    if (ofColumns) this.#pending.pushColumns([relation, ownColumns(relation)]);
    this.#nextRelation++;
    return true;
  }

  /** All of them are made before the first is taken. */
  #take(rows: Iterable<Cells>): void {
    for (const cells of Array.isArray(rows) ? (rows as readonly Cells[]) : [...rows])
      if (this.#isNew(cells)) this.#pending.push(cells);
  }

  #isNew(cells: Cells): boolean {
    const { distinct } = this.#relation.maker!;
    if (distinct === undefined) return true;
    const { size } = this.#distinct;
    return this.#distinct.add(cells[distinct]!).size > size;
  }

  *#vectorOf(piece: Piece, column: VirtualColumn, facts: CatalogueContents, names: Names): Generator<undefined, Vector, void> {
    const known = piece.columns.get(column.place) ?? this.#constantOf(column, names);
    if (known) return known;
    let texts = this.#texts.get(column.place);
    if (texts === undefined) this.#texts.set(column.place, (texts = new ColumnTexts()));
    const vector = yield* vectorOf(this.#relation, piece.rows, column, { facts, names, texts });
    piece.columns.set(column.place, vector);
    this.#bytes += bytesOfCells(vector, piece.rows.length);
    return vector;
  }

  /** The column of any piece, where all cells are alike. */
  #constantOf(column: VirtualColumn, names: Names): Vector | undefined {
    const { name, place } = column;
    const { base } = this.#relation.maker ?? {};
    if (base === undefined || !Object.hasOwn(base, name)) return undefined;
    let vector = this.#constants.get(place);
    if (vector === undefined) {
      const builder = new ColumnBuilder(column, rowsPerPiece, names, new ColumnTexts());
      for (let i = 0; i < rowsPerPiece; i++) builder.append(base[name]!);
      this.#constants.set(place, (vector = builder.build()));
      this.#bytes += bytesOfCells(vector, rowsPerPiece);
    }
    return vector;
  }
}

/** Rows that were found by a value of them, as pieces. */
export function* readFound(
  relation: Relation,
  rows: Iterable<Cells>,
  columns: readonly VirtualColumn[],
  facts: CatalogueContents,
  names: Names,
): PiecesRead {
  let pending = new Rows();
  const piece = function* (): PiecesRead {
    const vectors: Vector[] = [];
    for (const column of columns)
      vectors.push(yield* vectorOf(relation, pending, column, { facts, names, texts: new ColumnTexts() }));
    yield { columns: vectors, count: pending.length };
    pending = new Rows();
  };
  for (const cells of rows) {
    pending.push(cells);
    if (pending.length === rowsPerStep) yield* piece();
  }
  if (pending.length > 0) yield* piece();
}

function* vectorOf(
  { maker }: Relation,
  { cells: rows, owners }: Rows,
  column: VirtualColumn,
  { facts, names, texts }: { readonly facts: CatalogueContents; readonly names: Names; readonly texts: ColumnTexts },
): Generator<undefined, Vector, void> {
  const { name } = column;
  const late = maker?.late?.[name];
  const ofColumn = maker?.ofColumns?.cells[name];
  const otherwise = maker?.base?.[name] ?? null;
  const builder = new ColumnBuilder(column, rows.length, names, texts);
  const step = late ? lateCellsPerStep : cellsPerStep;
  for (let i = 0; i < rows.length; i++) {
    const owner = owners[i]!;
    if (owner !== null) builder.append(ofColumn ? ofColumn(rows[i] as TableColumn, owner, facts) : otherwise);
    else {
      const cells = rows[i] as Cells;
      builder.append((late ? late(cells, facts) : cells[name]) ?? otherwise);
    }
    if (i % step === step - 1) yield;
  }
  return builder.build();
}

/** Texts of a column, most of which are there already: their codes are found without a look at their bytes. */
class ColumnTexts extends TextInterner {
  readonly #codes = new Map<string, number>();

  override get bytes(): number {
    return super.bytes + this.#codes.size * bytesPerText;
  }

  codeFor(text: string): number {
    let code = this.#codes.get(text);
    if (code === undefined) this.#codes.set(text, (code = this.ofText(text)));
    return code;
  }
}

/** Values of a column as cells: texts by their code, the same text only once. */
class ColumnBuilder {
  readonly #wire: string;
  readonly #names: Names;
  readonly #texts: ColumnTexts;
  readonly #cells: VectorBuilder;
  readonly #codes: Int32Array | null;
  #nulls: Uint8Array | null = null;
  #count = 0;
  #hasValue = false;

  constructor({ type, wire }: VirtualColumn, rows: number, names: Names, texts: ColumnTexts) {
    this.#wire = wire!;
    this.#names = names;
    this.#texts = texts;
    this.#codes = type === 'string' ? new Int32Array(rows) : null;
    this.#cells = new VectorBuilder(type, this.#codes ? 1 : rows);
  }

  append(value: Value): void {
    if (this.#codes) this.#appendText(value);
    else if (value === null) this.#cells.appendNull();
    else if (typeof value === 'boolean') this.#cells.appendBoolean(value);
    else if (typeof value !== 'number') this.#cells.appendString(this.#textOf(value));
    else if (this.#cells.type === 'integer') this.#cells.appendInteger(Math.round(value));
    else this.#cells.appendNumber(value);
  }

  build(): Vector {
    if (this.#codes === null) return this.#cells.build();
    if (!this.#hasValue) return { kind: 'null' };
    return { kind: 'dict', values: this.#codes, dictionary: this.#texts, nulls: this.#nulls };
  }

  #appendText(value: Value): void {
    const row = this.#count++;
    if (value === null) {
      this.#nulls ??= new Uint8Array(this.#codes!.length);
      this.#nulls[row] = 1;
      return;
    }
    this.#hasValue = true;
    const text = this.#textOf(value);
    this.#codes![row] = this.#texts.codeFor(text);
  }

  #textOf(value: Exclude<Value, null>): string {
    return typeof value === 'string' ? value : textOf(value, this.#wire, this.#names);
  }
}
