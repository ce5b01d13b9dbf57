/**
 * Rows of one relation as one caller sees them, made piece by piece while they are first read, and the columns of them that
 * questions read. Nothing of a question stays in it.
 */
import { bytesOfCells, type Vector } from '../../log/values/columns.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { VirtualColumn } from '../logical-plan.ts';
import type { CatalogueContents } from './catalogue-contents.ts';
import type { Relation } from './relations.ts';
import type { Cells, OwnRelation } from './row-maker.ts';
import { type Names, textOf, type Value } from './types.ts';

interface Piece {
  readonly rows: readonly Cells[];
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
const bytesPerRow = 64;

export class RelationRows {
  readonly #relation: Relation;
  readonly #shown: readonly OwnRelation[];
  readonly #pieces: Piece[] = [];
  /** Rows of the piece to come. */
  #pending: Cells[] = [];
  #nextTable = 0;
  #nextRelation = 0;
  #hasAll = false;
  #isWhole = false;
  readonly #distinct = new Set<Value>();
  /** By place of the column. */
  readonly #texts = new Map<number, TextInterner>();
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
      const rows = this.#nextRows(facts);
      if (rows === null) {
        this.#isWhole = true;
        break;
      }
      for (const cells of rows) if (this.#isNew(cells)) this.#pending.push(cells);
    }
    while (this.#pending.length >= rowsPerPiece || (this.#isWhole && this.#pending.length > 0)) {
      const rows = this.#pending.slice(0, rowsPerPiece);
      this.#pending = this.#pending.slice(rowsPerPiece);
      this.#pieces.push({ rows, columns: new Map() });
      this.#bytes += rows.length * bytesPerRow;
    }
  }

  /** Rows of the next object; null: there is none. */
  #nextRows(facts: CatalogueContents): readonly Cells[] | null {
    const { all, ofTable, ofRelation } = this.#relation.maker ?? {};
    if (all && !this.#hasAll) {
      const rows = [...all(facts)];
      this.#hasAll = true;
      return rows;
    }
    const table = ofTable && facts.tables.at(this.#nextTable);
    if (table) {
      const rows = ofTable(table, facts);
      // All of them, before the next table is turned to.
      const made = Array.isArray(rows) ? (rows as readonly Cells[]) : [...rows];
      this.#nextTable++;
      return made;
    }
    const relation = ofRelation && this.#shown[this.#nextRelation];
    if (!relation) return null;
    this.#nextRelation++;
    return [...ofRelation(relation, facts)];
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
    if (texts === undefined) this.#texts.set(column.place, (texts = new TextInterner()));
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
      const builder = new ColumnBuilder(column, rowsPerPiece, names, new TextInterner());
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
  let pending: Cells[] = [];
  const piece = function* (): PiecesRead {
    const vectors: Vector[] = [];
    for (const column of columns)
      vectors.push(yield* vectorOf(relation, pending, column, { facts, names, texts: new TextInterner() }));
    yield { columns: vectors, count: pending.length };
    pending = [];
  };
  for (const cells of rows) {
    pending.push(cells);
    if (pending.length === rowsPerStep) yield* piece();
  }
  if (pending.length > 0) yield* piece();
}

function* vectorOf(
  { maker }: Relation,
  rows: readonly Cells[],
  column: VirtualColumn,
  { facts, names, texts }: { readonly facts: CatalogueContents; readonly names: Names; readonly texts: TextInterner },
): Generator<undefined, Vector, void> {
  const { name } = column;
  const late = maker?.late?.[name];
  const otherwise = maker?.base?.[name] ?? null;
  const builder = new ColumnBuilder(column, rows.length, names, texts);
  const step = late ? lateCellsPerStep : cellsPerStep;
  for (let i = 0; i < rows.length; i++) {
    const cells = rows[i]!;
    builder.append((late ? late(cells, facts) : cells[name]) ?? otherwise);
    if (i % step === step - 1) yield;
  }
  return builder.build();
}

/** Values of a column as cells: texts by their code, the same text only once. */
class ColumnBuilder {
  readonly #wire: string;
  readonly #names: Names;
  readonly #texts: TextInterner;
  readonly #cells: VectorBuilder;
  readonly #codes: Int32Array | null;
  #nulls: Uint8Array | null = null;
  #count = 0;
  #hasValue = false;
  /** The last text and its code: rows of one object follow each other. */
  #last: { readonly text: string; readonly code: number } | null = null;

  constructor({ type, wire }: VirtualColumn, rows: number, names: Names, texts: TextInterner) {
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
    if (this.#last?.text !== text) this.#last = { text, code: this.#texts.ofText(text) };
    this.#codes![row] = this.#last!.code;
  }

  #textOf(value: Exclude<Value, null>): string {
    return typeof value === 'string' ? value : textOf(value, this.#wire, this.#names);
  }
}
