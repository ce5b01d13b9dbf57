/** Rows of one link type that a command writes: edge by edge, each key with what is open of it. Pure. */
import { assert } from '../../../errors.ts';
import { rowOp, type RowsBody, type TypeDefinition } from '../../../log/entries/entry.ts';
import { ownSubject } from '../../../log/keys/joint-subject.ts';
import type { RowBatch } from '../../../log/values/columns.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { Cell } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import type { DecideContext, RowTest } from '../../decision.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import { edgeColumns } from '../../catalog/edge-columns.ts';
import { RowCells } from '../cells/row-cells.ts';
import { notPermitted, testRows, refusedKeys } from '../checks/row-check.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';
import { subjectsOf } from '../checks/row-subjects.ts';
import { boundVector, keyColumns, textVector, type Written } from '../checks/version-columns.ts';

/** An open version of an edge. */
export interface OpenEdge {
  /** Its position where it is stored; -1 - its number where this command makes it. */
  readonly position: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly op: number;
  readonly derivedFrom: string | null;
  readonly subject: string | null;
  /** Stored version with cells that others wrote to the edge; -1: none. */
  readonly base: number;
}

/** A version of an edge to be. */
export interface EdgeRow extends Omit<OpenEdge, 'position'> {
  readonly key: string;
  readonly source: string;
  readonly target: string;
  readonly closes: readonly OpenEdge[];
}

export interface LinkContext {
  /** As it stands once the edges are written, and as it stood. */
  readonly definition: TypeDefinition;
  readonly known: TypeDefinition | undefined;
  readonly rows: TenantRows;
  readonly context: DecideContext;
  readonly at: NextPosition;
}

export class LinkRows {
  readonly definition: TypeDefinition;
  readonly isNew: boolean;
  readonly #context: LinkContext;
  readonly #table: StoredVersions | undefined;
  readonly #path: number;
  readonly #stored: RowCells;
  readonly #subject: string | null;
  readonly #rows: EdgeRow[] = [];
  readonly #open = new Map<string, readonly OpenEdge[]>();
  /** Row checks for edges as they would be stored, and for those that they supersede. */
  readonly #test: RowTest | 'none' | null;
  readonly #ofStored: RowTest | 'none' | null;

  constructor(linkContext: LinkContext) {
    const { definition, known, rows, context } = linkContext;
    this.#context = linkContext;
    this.definition = definition;
    this.isNew = definition !== known;
    this.#table = rows.versions(definition.name);
    this.#path = rows.scopes.codeOf(context.entry.path);
    this.#stored = new RowCells(definition, null, this.#table);
    this.#subject = subjectProperty(definition);
    this.#test = context.rowCheck?.testFor(definition) ?? null;
    this.#ofStored = known === undefined ? null : (context.rowCheck?.testFor(known) ?? null);
  }

  get name(): string {
    return this.definition.name;
  }

  get length(): number {
    return this.#rows.length;
  }

  /** Open versions of an edge, those of this command included. */
  open(key: string): readonly OpenEdge[] {
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const table = this.#table;
    const newest = table && this.#path >= 0 ? table.newestOf(this.#path, key) : NO_ROW;
    const open = newest === NO_ROW ? [] : table!.openVersions(newest).map((version) => this.#storedEdge(table!, version));
    this.#open.set(key, open);
    return open;
  }

  /** Why these can't be written; null: they can. */
  refusalOf(edges: readonly EdgeRow[]): string | null {
    const { context, rows, at } = this.#context;
    const writeContext = { path: context.entry.path, rows, at };
    if (this.#test === 'none') return notPermitted;
    if (this.#test !== null) {
      const batch = {
        definition: this.definition,
        length: edges.length,
        cells: this.#columns(edges),
        keys: keysOf(edges),
        validFrom: boundVector(edges.map(({ from }) => from)),
        validTo: boundVector(edges.map(({ to }) => to)),
      };
      if (testRows(this.#test, batch, writeContext).includes(0)) return notPermitted;
    }
    const superseded = edges.filter(({ closes }) => closes.some(({ position }) => position >= 0)).map(({ key }) => key);
    if (this.#ofStored === null || superseded.length === 0) return null;
    return refusedKeys(this.#ofStored, this.name, superseded, writeContext, 'open').size === 0 ? null : notPermitted;
  }

  add(row: EdgeRow): void {
    const { key, closes, from, to, op, derivedFrom, subject, base } = row;
    const version = { position: -1 - this.#rows.length, from, to, op, derivedFrom, subject, base };
    this.#open.set(key, [version, ...this.open(key).filter((edge) => !closes.includes(edge))]);
    this.#rows.push(row);
  }

  /** All of them, the first at `position`. `sealed`: versions of rows that are sealed by themselves. */
  bodyAt(position: number, sealed: ReadonlySet<string>): Written & Pick<RowsBody, 'subjects'> {
    const rows = this.#rows;
    const closeOffsets = new Uint32Array(rows.length + 1);
    const closes: number[] = [];
    rows.forEach((row, i) => {
      for (const edge of row.closes) closes.push(edge.position >= 0 ? edge.position : position - 1 - edge.position);
      closeOffsets[i + 1] = closes.length;
    });
    const cells = { length: rows.length, columns: this.#columns(rows) };
    const from = boundVector(rows.map((row) => row.from));
    const to = boundVector(rows.map((row) => (row.to === FOREVER && row.op === rowOp.put ? null : row.to)));
    return {
      ops: Uint8Array.from(rows, ({ op }) => op),
      keys: keyColumns(rows.length, keysOf(rows), from, to),
      closeOffsets,
      closes: Float64Array.from(closes),
      cells,
      ...this.#subjects(cells, sealed),
    };
  }

  #subjects(cells: RowBatch, sealed: ReadonlySet<string>): Pick<RowsBody, 'subjects'> {
    const statedSubjects = subjectsOf(cells, this.#subject);
    const isSealed = ({ derivedFrom }: EdgeRow): boolean => derivedFrom !== null && sealed.has(derivedFrom);
    if (!this.#rows.some(isSealed)) return statedSubjects;
    const { path } = this.#context.context.entry;
    const builder = new VectorBuilder('string', this.#rows.length);
    for (const [i, row] of this.#rows.entries()) {
      const subject = statedSubjects.subjects === undefined ? null : cellAt(statedSubjects.subjects, 'string', i);
      builder.append(subject ?? (isSealed(row) ? ownSubject(this.name, path, row.key) : null));
    }
    return { subjects: builder.build() };
  }

  #columns(rows: readonly EdgeRow[]) {
    const { source, target, derivedFrom } = edgeColumns;
    const own = new Map<string, (row: EdgeRow) => Cell>([
      [source, (row) => row.source],
      [target, (row) => row.target],
      [derivedFrom, (row) => row.derivedFrom],
    ]);
    if (this.#subject !== null) own.set(this.#subject, (row) => row.subject);
    const names = new Set([...own.keys(), ...this.#stored.types.keys()]);
    return [...names]
      .map((name) => {
        const type = own.has(name) ? 'string' : this.#stored.types.get(name)!;
        const builder = new VectorBuilder(type, Math.max(1, rows.length));
        const cellOf = own.get(name) ?? ((row: EdgeRow): Cell => (row.base < 0 ? null : this.#stored.cell(row.base, name)));
        for (const row of rows) builder.append(cellOf(row));
        return { name, type, vector: builder.build() };
      })
      .filter(({ vector }) => vector.kind !== 'null');
  }

  #storedEdge(table: StoredVersions, version: number): OpenEdge {
    const text = (name: string | null): string | null => {
      const cell = name === null ? null : this.#stored.cell(version, name);
      return cell === null ? null : String(cell);
    };
    return {
      position: table.positionOf(version),
      from: table.validFromOf(version),
      to: table.validToOf(version),
      op: table.opOf(version),
      derivedFrom: text(edgeColumns.derivedFrom),
      subject: text(this.#subject),
      base: version,
    };
  }
}

/** The value of an edge's `derived_from` that names the version it comes from. */
export function versionName(systemFrom: bigint): string {
  return BigInt.asUintN(64, systemFrom).toString(16).padStart(16, '0');
}

function keysOf(rows: readonly EdgeRow[]) {
  const keys = textVector(rows.map(({ key }) => key));
  assert(keys.kind === 'text', 'edges have keys');
  return keys;
}
