/**
 * CREATE and MERGE of a pattern: the rows that a MATCH in front finds, then everything that is made for each of them in one
 * batch. Every thing is an upsert of its key: CREATE puts a row as it is sent, MERGE the cells that are sent. An edge that MERGE
 * gives no key is looked for between its ends; it and a node of CREATE without a key get one here, so that edges can name them.
 * An unregistered type is registered first, open, under the action `schema`.
 */
import { createHash } from 'node:crypto';
import { assert, type ErrorCode, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { EdgeColumns, TypeDefinition } from '../../log/entries/entry.ts';
import { defaultEnds, endsOf } from '../../projections/catalog/edge-columns.ts';
import type { Batch, Outcome, PutRows } from '../../projections/command.ts';
import { smallAnswer } from '../execution/small-answer.ts';
import { BodyReader } from '../formats/ingest-reader.ts';
import { isClosedType } from '../graph/node-and-edge-types.ts';
import { columnOf, queryOf, selectOf } from '../languages/tree-builders.ts';
import { errorAt } from '../syntax/error-location.ts';
import { madeRows, returnedQuery } from '../languages/pattern-query.ts';
import type { Answer, Executed, OutputColumn, Written } from '../planner-contract.ts';
import type { Expression, Literal, Query, StatedType } from '../syntax/statement.ts';
import type { GraphWrite, CreatedEdge, CreatedNode, CreatedElement } from '../syntax/write-statement.ts';
import { parseInstant } from '../../log/values/timestamp.ts';
import { type Cell, type ColumnType, compareText } from '../../log/values/value.ts';
import { RowsRead, vectorOf } from './rows-read.ts';
import { maskedColumn } from './returning.ts';
import type { WriteHost } from './write.ts';

export type PatternWrite = Extract<GraphWrite, { kind: 'pattern' }>;

export interface GraphWriteRequest<S extends GraphWrite = GraphWrite> {
  readonly statement: S;
  readonly invocation: Invocation;
  readonly host: Pick<WriteHost, 'read' | 'literal' | 'processingTimeMs'>;
  readonly sync: boolean;
  /** Its names are known to name something. */
  readonly onKnown: () => void;
  /** A key that nothing has yet; null: keys have to be given. */
  readonly newKey: (() => string) | null;
}

export async function runPatternWrite(request: GraphWriteRequest<PatternWrite>): Promise<Executed> {
  const { statement, invocation, onKnown } = request;
  const madeTypes = [...new Set(statement.things.map(({ type }) => type))];
  invocation.describe({
    action: readsPattern(statement) ? 'query' : 'ingest',
    act: { action: 'ingest' },
    objectType: madeTypes.join(','),
  });
  const snapshot = invocation.snapshot();
  onKnown();
  return new PatternMaking(request, snapshot).run(madeTypes);
}

/** Whether it asks for anything that is stored. */
export function readsPattern({ matched, things, returned }: PatternWrite): boolean {
  return matched !== null || returned !== null || things.some(({ kind, how }) => kind === 'edge' && how === 'merge');
}

/** Cells by name, as JSON text: json values and integers keep their exact text. */
type CellTexts = Map<string, string>;

/** One matched row: the keys by which edges name its nodes, then keys of things made for it; and its number. */
interface PatternRow {
  readonly ids: Map<string, string>;
  /** `_pk` of the things made. */
  readonly keys: Map<string, string>;
  readonly number: number;
}

/** Rows of one type, by key. */
interface GraphStep {
  readonly type: string;
  readonly patches: boolean;
  readonly isEdges: boolean;
  readonly rows: Map<string, CellTexts>;
  /** By key: the number of cells that the statement sent, besides ends and keys that it did not name. */
  readonly sent: Map<string, number>;
}

class PatternMaking {
  readonly #graphRequest: GraphWriteRequest<PatternWrite>;
  readonly #graphSnapshot: GovernedSnapshot;
  readonly #writeSteps = new Map<string, GraphStep>();
  /** The matched rows; their values stand behind the names. */
  readonly #rowsRead = new RowsRead(false);
  /** By type: columns whose values decided what is written. */
  readonly #columnsReadByType = new Map<string, Set<string>>();

  constructor(request: GraphWriteRequest<PatternWrite>, snapshot: GovernedSnapshot) {
    this.#graphRequest = request;
    this.#graphSnapshot = snapshot;
  }

  async run(types: readonly string[]): Promise<Executed> {
    const { things, returned } = this.#graphRequest.statement;
    if (returned !== null) this.#checkReadable(types);
    const patternRows = await this.#matchPattern();
    for (const madeThing of things) {
      if (madeThing.kind === 'node') for (const row of patternRows) row.ids.set(madeThing.name, this.#makeNode(madeThing, row));
      else await this.#makeEdges(madeThing, patternRows);
    }
    const writeSteps = [...this.#writeSteps.values()];
    const writeOutcome =
      writeSteps.length === 0
        ? null
        : await this.#submitSteps(
            types,
            writeSteps.map((step) => this.#putRowsOf(step)),
          );
    const writtenCounts = this.#countWritten(writeOutcome, writeSteps);
    return { answer: await this.#patternAnswer(patternRows), written: writtenCounts };
  }

  /** RETURN reads rows back: refuses a caller that may not read them, before anything is written. */
  #checkReadable(types: readonly string[]): void {
    for (const type of types) {
      if (isClosedType(this.#graphSnapshot, type))
        throw new ServiceError('REL_ACL', `rows of ${JSON.stringify(type)} may not be read: leave RETURN out`);
    }
  }

  /** A single empty row where nothing had to be matched. */
  async #matchPattern(): Promise<PatternRow[]> {
    const { matched } = this.#graphRequest.statement;
    if (matched === null) return [{ ids: new Map(), keys: new Map(), number: 0 }];
    await this.#askPattern(matched.query, 'matched', this.#rowsRead);
    // A node that an OPTIONAL MATCH did not find can't be an end of an edge.
    return this.#rowsRead.numbers().map((number) => {
      const matchedCells = matched.names.map((name, i) => [name, this.#rowsRead.cell(number, i)] as const);
      const matchedIds = new Map(matchedCells.flatMap(([name, cell]) => (cell === null ? [] : [[name, String(cell)] as const])));
      return { ids: matchedIds, keys: new Map(), number };
    });
  }

  /** Returns the key by which edges name the node. */
  #makeNode(node: CreatedNode, row: PatternRow): string {
    const { type, how, location } = node;
    const nodeType = this.#typeDefinition(type);
    const nodeCells = this.#madeCells(node, row);
    const sentCount = sentCellCount(nodeCells);
    const keyName = nodeType?.primaryKey ?? 'id';
    let nodeKey = keyAmongCells(nodeCells, nodeType);
    if (nodeKey === null) {
      if (how === 'merge' || this.#graphRequest.newKey === null)
        throw errorAt('REL_INVALID', `a node of ${JSON.stringify(type)} needs its key: (:${type} {${keyName}: …})`, location);
      nodeKey = this.#graphRequest.newKey();
      nodeCells.set(keyName, JSON.stringify(nodeKey));
    }
    row.keys.set(node.name, nodeKey);
    this.#addMadeRow({ type, patches: how === 'merge', isEdges: false }, nodeKey, nodeCells, sentCount);
    const nodeIdText = jsonCellText(nodeCells.get('id'));
    if (nodeIdText === null && how === 'merge' && nodeType !== undefined && Object.hasOwn(nodeType.properties, 'id'))
      throw errorAt(
        'REL_INVALID',
        `edges name a node of ${JSON.stringify(type)} by its id: give the id beside the key`,
        location,
      );
    return nodeIdText ?? nodeKey;
  }

  async #makeEdges(edge: CreatedEdge, rows: readonly PatternRow[]): Promise<void> {
    const { type, how, location } = edge;
    const edgeType = this.#typeDefinition(type);
    const edgeEnds = edgeType === undefined ? defaultEnds : (endsOf(edgeType) ?? defaultEnds);
    if (edgeType !== undefined && endsOf(edgeType) === null && Object.keys(edgeType.properties).length > 0)
      throw errorAt('REL_INVALID', `rows of ${JSON.stringify(type)} are no edges`, location);
    const endCell = edge.cells.find(({ name }) => name === edgeEnds.from || name === edgeEnds.to);
    if (endCell) throw errorAt('REL_INVALID', `${endCell.name} is an end of the edge: the pattern says which`, endCell.location);
    const newRows = rows.map((row) => {
      const edgeCells = this.#madeCells(edge, row);
      return { row, cells: edgeCells, from: matchedNodeId(row, edge.from, location), to: matchedNodeId(row, edge.to, location) };
    });
    const standingEdges =
      how === 'merge' && edgeType !== undefined ? await this.#findStandingEdges(edge, edgeEnds, newRows) : noEdges;
    for (const { row, cells, from, to } of newRows) {
      const ownKey = keyAmongCells(cells, edgeType);
      const standingKey = ownKey === null ? standingEdges.get(edgeCompareText(from, to, cells, edgeType)) : undefined;
      if (standingKey !== undefined) {
        row.keys.set(edge.name, standingKey);
        continue;
      }
      const sentCount = sentCellCount(cells);
      cells.set(edgeEnds.from, JSON.stringify(from)).set(edgeEnds.to, JSON.stringify(to));
      const edgeKey = ownKey ?? this.#newEdgeKey(edge, from, to);
      if (ownKey === null) cells.set(edgeType?.primaryKey ?? '_pk', JSON.stringify(edgeKey));
      // A row that is its own end keeps what else is known of it.
      const isKeyAnEnd = edgeType?.primaryKey === edgeEnds.from || edgeType?.primaryKey === edgeEnds.to;
      this.#addMadeRow({ type, patches: how === 'merge' || isKeyAnEnd, isEdges: true }, edgeKey, cells, sentCount);
      row.keys.set(edge.name, edgeKey);
    }
  }

  /** Equal edges get equal keys, so that merging one again, by any caller, is the same row. */
  #newEdgeKey({ how, type, location }: CreatedEdge, from: string, to: string): string {
    if (how === 'merge')
      return createHash('sha256')
        .update(JSON.stringify([type, from, to]))
        .digest('hex')
        .slice(0, 32);
    const { newKey } = this.#graphRequest;
    if (newKey === null) throw errorAt('REL_INVALID', 'an edge needs a key here: [:TYPE {id: …}]', location);
    return newKey();
  }

  /** Keys of edges that are there already, by their ends and by the cells that are sent. */
  async #findStandingEdges(
    edge: CreatedEdge,
    ends: EdgeColumns,
    newEdges: readonly { readonly from: string }[],
  ): Promise<ReadonlyMap<string, string>> {
    const { nullSlot } = this.#graphRequest.statement;
    const { type, location } = edge;
    const definition = this.#typeDefinition(type)!;
    const sourceIds = [...new Set(newEdges.map(({ from }) => from))];
    if (sourceIds.length === 0) return noEdges;
    const edgeColumn = (name: string): Expression => columnOf(name, location, type);
    // The added literals stand behind NULL and the path.
    const sourceItems = sourceIds.map((_, i): Expression => ({ kind: 'literal', slot: nullSlot + 2 + i, location }));
    const sourceCondition: Expression = {
      kind: 'in-list',
      operand: edgeColumn(ends.from),
      items: sourceItems,
      negated: false,
      location,
    };
    const comparedNames = edge.cells.map(({ name }) => name).filter((name) => definition.properties[name] !== undefined);
    if (comparedNames.length < edge.cells.length) return noEdges;
    const projection = ['_pk', ends.from, ends.to, ...comparedNames].map(
      (name) => ({ kind: 'expression', expression: edgeColumn(name), alias: null, location }) as const,
    );
    const from = { kind: 'table', name: type, alias: null, location } as const;
    const standingQuery: Query = {
      ...queryOf(selectOf({ projection, from, where: sourceCondition, location }), null),
      orderBy: [{ expression: edgeColumn('_pk'), descending: true, collate: 'codepoint', nullsFirst: false }],
    };
    const rowsRead = new RowsRead(false);
    await this.#askPattern(
      standingQuery,
      `standing ${this.#graphRequest.statement.things.indexOf(edge)} ${sourceIds.length}`,
      rowsRead,
      sourceIds,
    );
    // The least key of several.
    return new Map(
      rowsRead.numbers().map((row) => {
        const standingCells = new Map(
          comparedNames.map((name, i) => [name, jsonText(rowsRead.cell(row, 3 + i), rowsRead.columns[3 + i]!.type)]),
        );
        const [startId, endId] = [rowsRead.cell(row, 1), rowsRead.cell(row, 2)].map(String);
        return [edgeCompareText(startId!, endId!, standingCells, definition), String(rowsRead.cell(row, 0))];
      }),
    );
  }

  /** Must not read masked columns: the matched rows become cells. */
  async #askPattern(query: Query, queryPart: string, rowsRead: RowsRead, extra: readonly Literal[] = []): Promise<void> {
    await this.#graphRequest.host.read({
      query,
      part: queryPart,
      rows: rowsRead,
      extra,
      snapshot: this.#graphSnapshot,
      onPlan: ({ reads }) => {
        for (const { type, columns } of reads) {
          const masks = this.#graphSnapshot.masksOf(type);
          const masked = columns.find((name) => masks.has(name));
          if (masked !== undefined) throw maskedColumn(type, masked);
          const read = this.#columnsReadByType.get(type) ?? new Set();
          this.#columnsReadByType.set(type, read);
          for (const name of columns) read.add(name);
        }
      },
    });
  }

  #typeDefinition(name: string): TypeDefinition | undefined {
    return this.#graphSnapshot.catalog.type(name);
  }

  #madeCells({ cells }: CreatedElement, { number }: PatternRow): CellTexts {
    const { host, statement } = this.#graphRequest;
    const firstValue = statement.matched?.names.length ?? 0;
    return new Map(
      cells.map((cell): [string, string] => {
        if ('slot' in cell) return [cell.name, literalJson(host.literal(cell.slot), cell.typed)];
        const valueColumn = firstValue + cell.value;
        return [cell.name, jsonText(this.#rowsRead.cell(number, valueColumn), this.#rowsRead.columns[valueColumn]!.type)];
      }),
    );
  }

  /** A key that is written twice is written once: the later cells count. */
  #addMadeRow(
    { type, patches, isEdges }: Omit<GraphStep, 'rows' | 'sent'>,
    key: string,
    cells: CellTexts,
    sentCount: number,
  ): void {
    const stepName = `${type}\0${patches}`;
    let writeStep = this.#writeSteps.get(stepName);
    if (writeStep === undefined)
      this.#writeSteps.set(stepName, (writeStep = { type, patches, isEdges, rows: new Map(), sent: new Map() }));
    const earlierCells = patches ? (writeStep.rows.get(key) ?? []) : [];
    writeStep.rows.set(key, new Map([...earlierCells, ...cells]));
    writeStep.sent.set(key, sentCount);
  }

  /** The rows are read as an ingest of them would be. */
  #putRowsOf({ type, patches, rows }: GraphStep): PutRows {
    const { statement, invocation } = this.#graphRequest;
    const definition = this.#typeDefinition(type) ?? null;
    const bodyReader = new BodyReader({
      definition,
      batchRows: rows.size + 1,
      batchBytes: Infinity,
      predictBytesMin: Infinity,
      tracksSent: patches,
    });
    bodyReader.push(Buffer.from(`[${[...rows.values()].map(rowJson).join(',')}]`));
    const rowBatch = bodyReader.read(true);
    const [refusedRow] = rowBatch?.rejections ?? [];
    if (refusedRow !== undefined) throw new ServiceError(refusedRow.code as ErrorCode, refusedRow.detail);
    assert(rowBatch?.rows.length === rows.size, 'rows are read as they were written');
    const { door } = invocation.caller;
    return {
      kind: 'put-rows',
      type,
      rows: rowBatch.rows,
      atomic: true,
      createType: false,
      provenance: { source: door, method: statement.method, confidence: 1, derivedFrom: null },
      listsRows: true,
      computedFrom: [...(this.#columnsReadByType.get(type) ?? [])],
      ...(patches && { patch: rowBatch.sent! }),
    };
  }

  async #submitSteps(types: readonly string[], steps: readonly PutRows[]): Promise<Outcome> {
    const { invocation, sync } = this.#graphRequest;
    for (const name of types) {
      if (this.#typeDefinition(name) !== undefined) continue;
      invocation.describe({ action: 'schema' });
      await invocation.submit({ kind: 'register-type', name, properties: null, primaryKey: null, graphTriggers: [] });
    }
    invocation.describe({ action: 'ingest' });
    const graphCommand = steps.length === 1 ? steps[0]! : ({ kind: 'batch', steps } satisfies Batch);
    try {
      return await invocation.submit(graphCommand, { sync });
    } finally {
      invocation.describe({ objectType: [...new Set([...types, ...this.#columnsReadByType.keys()])].join(',') });
    }
  }

  #countWritten(outcome: Outcome | null, steps: readonly GraphStep[]): Written {
    const stepOutcomes = outcome === null ? [] : (outcome.steps ?? [outcome]);
    const rowsThatBecame = (which: string): number =>
      stepOutcomes.reduce((sum, { rows = [] }) => sum + rows.filter(({ became }) => became === which).length, 0);
    const graphCounts = { nodes: 0, relationships: 0, properties: 0 };
    for (const [i, { isEdges, sent }] of steps.entries()) {
      const sentCounts = [...sent.values()];
      for (const { index, became } of stepOutcomes[i]?.rows ?? []) {
        if (became !== 'created' && became !== 'updated') continue;
        if (became === 'created') graphCounts[isEdges ? 'relationships' : 'nodes']++;
        graphCounts.properties += sentCounts[index]!;
      }
    }
    return {
      verb: 'insert',
      inserted: rowsThatBecame('created'),
      updated: rowsThatBecame('updated'),
      deleted: 0,
      kept: 0,
      graph: graphCounts,
      systemFrom: outcome?.systemFrom ?? 0n,
      systemFromLast: outcome?.systemFromLast ?? 0n,
      durability: outcome?.durability ?? 'synced',
    };
  }

  /** RETURN, over the current rows. */
  async #patternAnswer(rows: readonly PatternRow[]): Promise<Answer> {
    const { host, statement, invocation } = this.#graphRequest;
    const { returned, things, matched } = statement;
    const answerFigures = { asOfSystem: this.#graphSnapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
    if (returned === null) return smallAnswer([], [], answerFigures);
    const firstValue = matched?.names.length ?? 0;
    const returnedValues = returned.shapes.map((shape, i) => ({
      type: this.#rowsRead.columns[firstValue + i]?.type ?? 'string',
      shape,
    }));
    const returnQuery = returnedQuery(returned.clause, things, returnedValues);
    const madeRowsGiven = {
      columns: [
        ...things.map(({ name }) =>
          vectorOf(
            rows.map(({ keys }) => keys.get(name) ?? null),
            'string',
          ),
        ),
        ...returnedValues.map(({ type }, i) =>
          vectorOf(
            rows.map(({ number }) => this.#rowsRead.cell(number, firstValue + i)),
            type,
          ),
        ),
      ],
      count: rows.length,
    };
    const answerSnapshot = invocation.snapshot();
    const returnedRows = new RowsRead(false);
    let columns: readonly OutputColumn[] = [];
    await host.read({
      query: returnQuery,
      part: `returned ${returnedValues.map(({ type }) => type).join()}`,
      snapshot: answerSnapshot,
      rows: returnedRows,
      given: new Map([[madeRows, [madeRowsGiven]]]),
      onPlan: (ready) => void (columns = ready.columns),
    });
    const returnedBatch = {
      columns: columns.map(({ type }, i) => returnedRows.vector(i, type)),
      selection: null,
      first: 0,
      count: returnedRows.rows,
    };
    const { instant: asOfSystem } = answerSnapshot;
    const answer = smallAnswer(columns, [], { ...answerFigures, asOfSystem, processingTimeMs: host.processingTimeMs() });
    return {
      ...answer,
      batches: returnedRows.rows === 0 ? [] : [returnedBatch],
      rowCount: returnedRows.rows,
      estimatedTotalHits: returnedRows.rows,
    };
  }
}

const noEdges: ReadonlyMap<string, string> = new Map();

function matchedNodeId({ ids }: PatternRow, name: string, location: CreatedElement['location']): string {
  const id = ids.get(name);
  if (id !== undefined) return id;
  throw errorAt('REL_INVALID', `${JSON.stringify(name)} was not matched: an edge needs both of its ends`, location);
}

function keyAmongCells(cells: CellTexts, definition: TypeDefinition | undefined): string | null {
  const primaryKey = definition?.primaryKey ?? null;
  const keyNames = primaryKey === null ? ['_pk', 'id'] : [primaryKey];
  return keyNames.map((name) => jsonCellText(cells.get(name))).find((cell) => cell !== null) ?? null;
}

/** A cell as keys and ids write it; null where it has none. */
function jsonCellText(json: string | undefined): string | null {
  if (json === undefined || json === 'null') return null;
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** The identity of a merged edge: its ends, and the cells sent, in a canonical form. */
function edgeCompareText(from: string, to: string, cells: CellTexts, definition: TypeDefinition | undefined): string {
  const sortedCells = [...cells].sort(([a], [b]) => compareText(a, b));
  const cellTexts = sortedCells.map(([name, cell]) => [name, comparableCell(cell, definition?.properties[name]?.type)]);
  return JSON.stringify([from, to, ...cellTexts]);
}

function comparableCell(json: string, type: ColumnType | undefined): string {
  if (type === 'timestamp' && json.startsWith('"')) return String(parseInstant(JSON.parse(json) as string));
  return type === 'number' && json !== 'null' ? String(Number(json)) : json;
}

function literalJson(literal: Literal, typed: StatedType | undefined): string {
  const isJson = typed !== undefined && typed !== 'unknown' && typed.type === 'json';
  if (typeof literal === 'string') return isJson ? literal : JSON.stringify(literal);
  return String(literal);
}

/** A cell as an ingest of JSON takes it. */
function jsonText(cell: Cell, type: ColumnType): string {
  if (cell === null) return 'null';
  if (typeof cell === 'string') return type === 'json' ? cell : JSON.stringify(cell);
  return cell instanceof Float32Array ? JSON.stringify([...cell]) : String(cell);
}

const sentCellCount = (cells: CellTexts): number => [...cells.values()].filter((cell) => cell !== 'null').length;

const rowJson = (cells: CellTexts): string =>
  `{${[...cells].map(([name, cell]) => `${JSON.stringify(name)}:${cell}`).join(',')}}`;
