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
  readonly #linkTable: StoredVersions | undefined;
  readonly #linkPathCode: number;
  readonly #storedLinkCells: RowCells;
  readonly #linkSubject: string | null;
  readonly #edgeRows: EdgeRow[] = [];
  readonly #openEdgesByKey = new Map<string, readonly OpenEdge[]>();
  /** Row checks for edges as they would be stored, and for those that they supersede. */
  readonly #linkRowTest: RowTest | 'none' | null;
  readonly #storedLinkRowTest: RowTest | 'none' | null;

  constructor(linkContext: LinkContext) {
    const { definition, known, rows, context } = linkContext;
    this.#context = linkContext;
    this.definition = definition;
    this.isNew = definition !== known;
    this.#linkTable = rows.versions(definition.name);
    this.#linkPathCode = rows.scopes.codeOf(context.entry.path);
    this.#storedLinkCells = new RowCells(definition, null, this.#linkTable);
    this.#linkSubject = subjectProperty(definition);
    this.#linkRowTest = context.rowCheck?.testFor(definition) ?? null;
    this.#storedLinkRowTest = known === undefined ? null : (context.rowCheck?.testFor(known) ?? null);
  }

  get name(): string {
    return this.definition.name;
  }

  get length(): number {
    return this.#edgeRows.length;
  }

  /** Open versions of an edge, those of this command included. */
  open(edgeKey: string): readonly OpenEdge[] {
    const knownEdges = this.#openEdgesByKey.get(edgeKey);
    if (knownEdges !== undefined) return knownEdges;
    const linkTable = this.#linkTable;
    const newestEdge = linkTable && this.#linkPathCode >= 0 ? linkTable.newestOf(this.#linkPathCode, edgeKey) : NO_ROW;
    const openEdges =
      newestEdge === NO_ROW ? [] : linkTable!.openVersions(newestEdge).map((version) => this.#storedEdge(linkTable!, version));
    this.#openEdgesByKey.set(edgeKey, openEdges);
    return openEdges;
  }

  /** Why these can't be written; null: they can. */
  refusalOf(edgeRows: readonly EdgeRow[]): string | null {
    const { context, rows, at } = this.#context;
    const writeContext = { path: context.entry.path, rows, at };
    if (this.#linkRowTest === 'none') return notPermitted;
    if (this.#linkRowTest !== null) {
      const edgeBatch = {
        definition: this.definition,
        length: edgeRows.length,
        cells: this.#edgeRowColumns(edgeRows),
        keys: edgeKeysOf(edgeRows),
        validFrom: boundVector(edgeRows.map(({ from }) => from)),
        validTo: boundVector(edgeRows.map(({ to }) => to)),
      };
      if (testRows(this.#linkRowTest, edgeBatch, writeContext).includes(0)) return notPermitted;
    }
    const supersededEdges = edgeRows.filter(({ closes }) => closes.some(({ position }) => position >= 0)).map(({ key }) => key);
    if (this.#storedLinkRowTest === null || supersededEdges.length === 0) return null;
    return refusedKeys(this.#storedLinkRowTest, this.name, supersededEdges, writeContext, 'open').size === 0
      ? null
      : notPermitted;
  }

  add(edgeRow: EdgeRow): void {
    const { key, closes, from, to, op, derivedFrom, subject, base } = edgeRow;
    const addedEdge = { position: -1 - this.#edgeRows.length, from, to, op, derivedFrom, subject, base };
    this.#openEdgesByKey.set(key, [addedEdge, ...this.open(key).filter((openEdge) => !closes.includes(openEdge))]);
    this.#edgeRows.push(edgeRow);
  }

  /** All of them, the first at `position`. `sealedVersions`: versions of rows that are sealed by themselves. */
  bodyAt(position: number, sealedVersions: ReadonlySet<string>): Written & Pick<RowsBody, 'subjects'> {
    const edgeRows = this.#edgeRows;
    const closeOffsets = new Uint32Array(edgeRows.length + 1);
    const closes: number[] = [];
    edgeRows.forEach((edgeRow, i) => {
      for (const closedEdge of edgeRow.closes)
        closes.push(closedEdge.position >= 0 ? closedEdge.position : position - 1 - closedEdge.position);
      closeOffsets[i + 1] = closes.length;
    });
    const edgeCells = { length: edgeRows.length, columns: this.#edgeRowColumns(edgeRows) };
    const edgesFrom = boundVector(edgeRows.map((edgeRow) => edgeRow.from));
    const edgesTo = boundVector(
      edgeRows.map((edgeRow) => (edgeRow.to === FOREVER && edgeRow.op === rowOp.put ? null : edgeRow.to)),
    );
    return {
      ops: Uint8Array.from(edgeRows, ({ op }) => op),
      keys: keyColumns(edgeRows.length, edgeKeysOf(edgeRows), edgesFrom, edgesTo),
      closeOffsets,
      closes: Float64Array.from(closes),
      cells: edgeCells,
      ...this.#edgeSubjects(edgeCells, sealedVersions),
    };
  }

  #edgeSubjects(cells: RowBatch, sealed: ReadonlySet<string>): Pick<RowsBody, 'subjects'> {
    const statedSubjects = subjectsOf(cells, this.#linkSubject);
    const isEdgeSealed = ({ derivedFrom }: EdgeRow): boolean => derivedFrom !== null && sealed.has(derivedFrom);
    if (!this.#edgeRows.some(isEdgeSealed)) return statedSubjects;
    const { path } = this.#context.context.entry;
    const subjectBuilder = new VectorBuilder('string', this.#edgeRows.length);
    for (const [i, edgeRow] of this.#edgeRows.entries()) {
      const edgeSubject = statedSubjects.subjects === undefined ? null : cellAt(statedSubjects.subjects, 'string', i);
      subjectBuilder.append(edgeSubject ?? (isEdgeSealed(edgeRow) ? ownSubject(this.name, path, edgeRow.key) : null));
    }
    return { subjects: subjectBuilder.build() };
  }

  #edgeRowColumns(edgeRows: readonly EdgeRow[]) {
    const { source, target, derivedFrom } = edgeColumns;
    const edgeColumnCells = new Map<string, (edgeRow: EdgeRow) => Cell>([
      [source, (edgeRow) => edgeRow.source],
      [target, (edgeRow) => edgeRow.target],
      [derivedFrom, (edgeRow) => edgeRow.derivedFrom],
    ]);
    if (this.#linkSubject !== null) edgeColumnCells.set(this.#linkSubject, (edgeRow) => edgeRow.subject);
    const edgeColumnNames = new Set([...edgeColumnCells.keys(), ...this.#storedLinkCells.types.keys()]);
    return [...edgeColumnNames]
      .map((name) => {
        const type = edgeColumnCells.has(name) ? 'string' : this.#storedLinkCells.types.get(name)!;
        const edgeBuilder = new VectorBuilder(type, Math.max(1, edgeRows.length));
        const edgeCellOf =
          edgeColumnCells.get(name) ??
          ((edgeRow: EdgeRow): Cell => (edgeRow.base < 0 ? null : this.#storedLinkCells.cell(edgeRow.base, name)));
        for (const row of edgeRows) edgeBuilder.append(edgeCellOf(row));
        return { name, type, vector: edgeBuilder.build() };
      })
      .filter(({ vector }) => vector.kind !== 'null');
  }

  #storedEdge(table: StoredVersions, edgeVersion: number): OpenEdge {
    const edgeText = (name: string | null): string | null => {
      const edgeCell = name === null ? null : this.#storedLinkCells.cell(edgeVersion, name);
      return edgeCell === null ? null : String(edgeCell);
    };
    return {
      position: table.positionOf(edgeVersion),
      from: table.validFromOf(edgeVersion),
      to: table.validToOf(edgeVersion),
      op: table.opOf(edgeVersion),
      derivedFrom: edgeText(edgeColumns.derivedFrom),
      subject: edgeText(this.#linkSubject),
      base: edgeVersion,
    };
  }
}

/** The value of an edge's `derived_from` that names the version it comes from. */
export function versionName(systemFrom: bigint): string {
  return BigInt.asUintN(64, systemFrom).toString(16).padStart(16, '0');
}

function edgeKeysOf(edgeRows: readonly EdgeRow[]) {
  const edgeKeys = textVector(edgeRows.map(({ key }) => key));
  assert(edgeKeys.kind === 'text', 'edges have keys');
  return edgeKeys;
}
