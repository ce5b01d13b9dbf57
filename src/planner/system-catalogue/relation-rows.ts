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
}

/** The subject of rows: a table, a relation of the catalogue itself, or neither. */
type Subject = 'none' | Table | OwnRelation;

const isTable = (subject: Subject): subject is Table => subject !== 'none' && 'references' in subject;

/** Tables that the rows about a table may tell of too. */
function* targetsOf(subject: Subject, { tables }: CatalogueContents): Iterable<Table | undefined> {
  if (isTable(subject)) for (const { references } of subject.references) yield tables.tableNamed(references!.table);
}

/** Consecutive rows. */
class Piece {
  readonly rows = new Rows();
  readonly subjects: Subject[] = [];
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
const rowsPerPiece = 1_024;
const rowsPerPieceMin = rowsPerPiece / 4;
/** Rows made in one step, or tables passed that have none; cells of a column; cells that take long. */
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
  /** The piece to come. */
  #pending = new Piece();
  /** Number of the subject whose rows come next. */
  #next = 0;
  #isWhole = false;
  readonly #distinct = new Set<Value>();
  /** By place of the column. */
  readonly #texts: Map<number, ColumnTexts>;
  readonly #constants: Map<number, { readonly vector: Vector; readonly rows: number }>;
  /** Pieces that were made before a type changed, by their first subject. */
  #before: ReadonlyMap<Subject, Piece>;

  /** `shown` are the relations that the catalogue lists; `before` are rows of the same relation and the same view, of other tables. */
  constructor(relation: Relation, shown: readonly OwnRelation[], before: RelationRows | null = null) {
    this.#relation = relation;
    this.#shown = shown;
    // Which rows are new depends on all that come before.
    const canStay = before !== null && relation.maker?.distinct === undefined;
    this.#before = new Map(canStay ? before.#pieces.map((piece) => [piece.subjects[0]!, piece]) : []);
    this.#texts = canStay ? before.#texts : new Map();
    this.#constants = canStay ? before.#constants : new Map();
  }

  get bytes(): number {
    let bytes = 0;
    for (const piece of this.#pieces) bytes += piece.bytes;
    for (const texts of this.#texts.values()) bytes += texts.bytes;
    for (const { vector, rows } of this.#constants.values()) bytes += bytesOfCells(vector, rows);
    return bytes;
  }

  *read(columns: readonly VirtualColumn[], facts: CatalogueContents, names: Names): PiecesRead {
    // A look at what a table refers to takes all of them.
    if (this.#before.size > 0) while (facts.tables.makeSome()) yield;
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
    for (let i = 0, rowsMade = 0; i < rowsPerStep && rowsMade < rowsPerStep; i++) {
      const subject = this.#subjectAt(this.#next, facts);
      if (subject === undefined) {
        this.#end();
        this.#isWhole = true;
        this.#before = new Map();
        return;
      }
      const cachedPiece = this.#before.get(subject);
      const { length } = this.#pending.rows;
      if (cachedPiece && (length === 0 || length >= rowsPerPieceMin) && this.#isAsBefore(cachedPiece, facts)) {
        this.#end();
        this.#pieces.push(cachedPiece);
        this.#next += cachedPiece.subjects.length;
        return;
      }
      this.#makeRows(subject, facts);
      this.#next++;
      rowsMade += this.#pending.rows.length - length;
      if (this.#pending.rows.length >= (this.#before.size === 0 ? rowsPerPiece : 2 * rowsPerPiece)) this.#end();
    }
  }

  /** Undefined: there are no more. */
  #subjectAt(n: number, { tables }: CatalogueContents): Subject | undefined {
    const { all, ofTable, ofRelation, ofColumns } = this.#relation.maker ?? {};
    let rest = n;
    if (all && rest-- === 0) return 'none';
    if (ofTable || ofColumns) {
      const table = tables.tableAt(rest);
      if (table) return table;
      rest -= tables.count;
    }
    return ofRelation || ofColumns?.hasOwn ? this.#shown[rest] : undefined;
  }

  /** Whether the rows to come are those of a piece: about the same subjects, which refer to the same tables. */
  #isAsBefore({ subjects, targets }: Piece, facts: CatalogueContents): boolean {
    if (!subjects.every((subject, i) => this.#subjectAt(this.#next + i, facts) === subject)) return false;
    if (this.#relation.maker?.refers !== true) return true;
    let next = 0;
    for (const subject of subjects) for (const target of targetsOf(subject, facts)) if (targets[next++] !== target) return false;
    return true;
  }

  #end(): void {
    if (this.#pending.subjects.length === 0) return;
    this.#pending.bytes += this.#pending.rows.length * bytesPerRow;
    this.#pieces.push(this.#pending);
    this.#pending = new Piece();
  }

  /** All of them are made before the first is taken. */
  #makeRows(subject: Subject, facts: CatalogueContents): void {
    const { all, ofTable, ofRelation, ofColumns, refers } = this.#relation.maker!;
    let cells: Iterable<Cells> | undefined;
    let owned: readonly OwnedColumns[] = [];
    if (subject === 'none') cells = all!(facts);
    else if (isTable(subject)) {
      cells = ofTable?.(subject, facts);
      owned = ofColumns?.ofTable(subject, facts) ?? [];
    } else {
      cells = ofRelation?.(subject, facts);
      if (ofColumns) owned = [[subject, ownColumns(subject)]];
    }
    const { rows, subjects, targets } = this.#pending;
    for (const each of Array.isArray(cells) ? (cells as readonly Cells[]) : [...(cells ?? [])])
      if (this.#isNew(each)) rows.push(each);
    for (const each of owned) rows.pushColumns(each);
    subjects.push(subject);
    if (refers) targets.push(...targetsOf(subject, facts));
  }

  #isNew(cells: Cells): boolean {
    const { distinct } = this.#relation.maker!;
    if (distinct === undefined) return true;
    const { size } = this.#distinct;
    return this.#distinct.add(cells[distinct]!).size > size;
  }

  *#vectorOf(piece: Piece, column: VirtualColumn, facts: CatalogueContents, names: Names): Generator<undefined, Vector, void> {
    const known = piece.columns.get(column.relationColumn) ?? this.#constantOf(column, piece.rows.length, names);
    if (known) return known;
    let texts = this.#texts.get(column.relationColumn);
    if (texts === undefined) this.#texts.set(column.relationColumn, (texts = new ColumnTexts()));
    const vector = yield* vectorOf(this.#relation, piece.rows, column, { facts, names, texts });
    piece.columns.set(column.relationColumn, vector);
    piece.bytes += bytesOfCells(vector, piece.rows.length);
    return vector;
  }

  /** The column of a piece with this many rows, where all cells are equal. */
  #constantOf(column: VirtualColumn, rows: number, names: Names): Vector | undefined {
    const { name, relationColumn: columnIndex } = column;
    const { base } = this.#relation.maker ?? {};
    if (base === undefined || !Object.hasOwn(base, name)) return undefined;
    let known = this.#constants.get(columnIndex);
    if (known === undefined || known.rows < rows) {
      const length = Math.max(rows, rowsPerPiece);
      const builder = new ColumnBuilder(column, length, names, new ColumnTexts());
      for (let i = 0; i < length; i++) builder.append(base[name]!);
      this.#constants.set(columnIndex, (known = { vector: builder.build(), rows: length }));
    }
    return known.vector;
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
