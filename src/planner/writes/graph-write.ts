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
  const types = [...new Set(statement.things.map(({ type }) => type))];
  invocation.describe({
    action: readsPattern(statement) ? 'query' : 'ingest',
    act: { action: 'ingest' },
    objectType: types.join(','),
  });
  const snapshot = invocation.snapshot();
  onKnown();
  return new Making(request, snapshot).run(types);
}

/** Whether it asks for anything that is stored. */
export function readsPattern({ matched, things, returned }: PatternWrite): boolean {
  return matched !== null || returned !== null || things.some(({ kind, how }) => kind === 'edge' && how === 'merge');
}

/** Cells by name, as JSON text: json values and integers keep their exact text. */
type Cells = Map<string, string>;

/** One matched row: the keys by which edges name its nodes, then keys of things made for it; and its number. */
interface Row {
  readonly ids: Map<string, string>;
  /** `_pk` of the things made. */
  readonly keys: Map<string, string>;
  readonly number: number;
}

/** Rows of one type, by key. */
interface Step {
  readonly type: string;
  readonly patches: boolean;
  readonly isEdges: boolean;
  readonly rows: Map<string, Cells>;
  /** By key: the number of cells that the statement sent, besides ends and keys that it did not name. */
  readonly sent: Map<string, number>;
}

class Making {
  readonly #request: GraphWriteRequest<PatternWrite>;
  readonly #snapshot: GovernedSnapshot;
  readonly #steps = new Map<string, Step>();
  /** The matched rows; their values stand behind the names. */
  readonly #rowsRead = new RowsRead(false);
  /** By type: columns whose values decided what is written. */
  readonly #read = new Map<string, Set<string>>();

  constructor(request: GraphWriteRequest<PatternWrite>, snapshot: GovernedSnapshot) {
    this.#request = request;
    this.#snapshot = snapshot;
  }

  async run(types: readonly string[]): Promise<Executed> {
    const { things, returned } = this.#request.statement;
    if (returned !== null) this.#checkReadable(types);
    const rows = await this.#match();
    for (const thing of things) {
      if (thing.kind === 'node') for (const row of rows) row.ids.set(thing.name, this.#node(thing, row));
      else await this.#edges(thing, rows);
    }
    const steps = [...this.#steps.values()];
    const outcome =
      steps.length === 0
        ? null
        : await this.#submit(
            types,
            steps.map((step) => this.#put(step)),
          );
    const writtenCounts = this.#countWritten(outcome, steps);
    return { answer: await this.#answer(rows), written: writtenCounts };
  }

  /** RETURN reads rows back: refuses a caller that may not read them, before anything is written. */
  #checkReadable(types: readonly string[]): void {
    for (const type of types) {
      if (isClosedType(this.#snapshot, type))
        throw new ServiceError('REL_ACL', `rows of ${JSON.stringify(type)} may not be read: leave RETURN out`);
    }
  }

  /** A single empty row where nothing had to be matched. */
  async #match(): Promise<Row[]> {
    const { matched } = this.#request.statement;
    if (matched === null) return [{ ids: new Map(), keys: new Map(), number: 0 }];
    await this.#ask(matched.query, 'matched', this.#rowsRead);
    // A node that an OPTIONAL MATCH did not find can't be an end of an edge.
    return this.#rowsRead.numbers().map((number) => {
      const cells = matched.names.map((name, i) => [name, this.#rowsRead.cell(number, i)] as const);
      const ids = new Map(cells.flatMap(([name, cell]) => (cell === null ? [] : [[name, String(cell)] as const])));
      return { ids, keys: new Map(), number };
    });
  }

  /** Returns the key by which edges name the node. */
  #node(node: CreatedNode, row: Row): string {
    const { type, how, location } = node;
    const definition = this.#type(type);
    const cells = this.#cells(node, row);
    const sent = countOf(cells);
    const keyName = definition?.primaryKey ?? 'id';
    let key = keyIn(cells, definition);
    if (key === null) {
      if (how === 'merge' || this.#request.newKey === null)
        throw errorAt('REL_INVALID', `a node of ${JSON.stringify(type)} needs its key: (:${type} {${keyName}: …})`, location);
      key = this.#request.newKey();
      cells.set(keyName, JSON.stringify(key));
    }
    row.keys.set(node.name, key);
    this.#add({ type, patches: how === 'merge', isEdges: false }, key, cells, sent);
    const id = textOf(cells.get('id'));
    if (id === null && how === 'merge' && definition !== undefined && Object.hasOwn(definition.properties, 'id'))
      throw errorAt(
        'REL_INVALID',
        `edges name a node of ${JSON.stringify(type)} by its id: give the id beside the key`,
        location,
      );
    return id ?? key;
  }

  async #edges(edge: CreatedEdge, rows: readonly Row[]): Promise<void> {
    const { type, how, location } = edge;
    const definition = this.#type(type);
    const ends = definition === undefined ? defaultEnds : (endsOf(definition) ?? defaultEnds);
    if (definition !== undefined && endsOf(definition) === null && Object.keys(definition.properties).length > 0)
      throw errorAt('REL_INVALID', `rows of ${JSON.stringify(type)} are no edges`, location);
    const taken = edge.cells.find(({ name }) => name === ends.from || name === ends.to);
    if (taken) throw errorAt('REL_INVALID', `${taken.name} is an end of the edge: the pattern says which`, taken.location);
    const newRows = rows.map((row) => {
      const cells = this.#cells(edge, row);
      return { row, cells, from: nodeId(row, edge.from, location), to: nodeId(row, edge.to, location) };
    });
    const there = how === 'merge' && definition !== undefined ? await this.#standing(edge, ends, newRows) : noEdges;
    for (const { row, cells, from, to } of newRows) {
      const own = keyIn(cells, definition);
      const known = own === null ? there.get(edgeText(from, to, cells, definition)) : undefined;
      if (known !== undefined) {
        row.keys.set(edge.name, known);
        continue;
      }
      const sent = countOf(cells);
      cells.set(ends.from, JSON.stringify(from)).set(ends.to, JSON.stringify(to));
      const key = own ?? this.#keyOf(edge, from, to);
      if (own === null) cells.set(definition?.primaryKey ?? '_pk', JSON.stringify(key));
      // A row that is its own end keeps what else is known of it.
      const isEnd = definition?.primaryKey === ends.from || definition?.primaryKey === ends.to;
      this.#add({ type, patches: how === 'merge' || isEnd, isEdges: true }, key, cells, sent);
      row.keys.set(edge.name, key);
    }
  }

  /** Equal edges get equal keys, so that merging one again, by any caller, is the same row. */
  #keyOf({ how, type, location }: CreatedEdge, from: string, to: string): string {
    if (how === 'merge')
      return createHash('sha256')
        .update(JSON.stringify([type, from, to]))
        .digest('hex')
        .slice(0, 32);
    const { newKey } = this.#request;
    if (newKey === null) throw errorAt('REL_INVALID', 'an edge needs a key here: [:TYPE {id: …}]', location);
    return newKey();
  }

  /** Keys of edges that are there already, by their ends and by the cells that are sent. */
  async #standing(
    edge: CreatedEdge,
    ends: EdgeColumns,
    newEdges: readonly { readonly from: string }[],
  ): Promise<ReadonlyMap<string, string>> {
    const { nullSlot } = this.#request.statement;
    const { type, location } = edge;
    const definition = this.#type(type)!;
    const sources = [...new Set(newEdges.map(({ from }) => from))];
    if (sources.length === 0) return noEdges;
    const column = (name: string): Expression => columnOf(name, location, type);
    // The added literals stand behind NULL and the path.
    const items = sources.map((_, i): Expression => ({ kind: 'literal', slot: nullSlot + 2 + i, location }));
    const where: Expression = { kind: 'in-list', operand: column(ends.from), items, negated: false, location };
    const names = edge.cells.map(({ name }) => name).filter((name) => definition.properties[name] !== undefined);
    if (names.length < edge.cells.length) return noEdges;
    const projection = ['_pk', ends.from, ends.to, ...names].map(
      (name) => ({ kind: 'expression', expression: column(name), alias: null, location }) as const,
    );
    const from = { kind: 'table', name: type, alias: null, location } as const;
    const query: Query = {
      ...queryOf(selectOf({ projection, from, where, location }), null),
      orderBy: [{ expression: column('_pk'), descending: true, collate: 'codepoint', nullsFirst: false }],
    };
    const rowsRead = new RowsRead(false);
    await this.#ask(query, `standing ${this.#request.statement.things.indexOf(edge)} ${sources.length}`, rowsRead, sources);
    // The least key of several.
    return new Map(
      rowsRead.numbers().map((row) => {
        const cells = new Map(names.map((name, i) => [name, jsonText(rowsRead.cell(row, 3 + i), rowsRead.columns[3 + i]!.type)]));
        const [start, end] = [rowsRead.cell(row, 1), rowsRead.cell(row, 2)].map(String);
        return [edgeText(start!, end!, cells, definition), String(rowsRead.cell(row, 0))];
      }),
    );
  }

  /** Must not read masked columns: the matched rows become cells. */
  async #ask(query: Query, part: string, rowsRead: RowsRead, extra: readonly Literal[] = []): Promise<void> {
    await this.#request.host.read({
      query,
      part,
      rows: rowsRead,
      extra,
      snapshot: this.#snapshot,
      onPlan: ({ reads }) => {
        for (const { type, columns } of reads) {
          const masks = this.#snapshot.masksOf(type);
          const masked = columns.find((name) => masks.has(name));
          if (masked !== undefined) throw maskedColumn(type, masked);
          const read = this.#read.get(type) ?? new Set();
          this.#read.set(type, read);
          for (const name of columns) read.add(name);
        }
      },
    });
  }

  #type(name: string): TypeDefinition | undefined {
    return this.#snapshot.catalog.type(name);
  }

  #cells({ cells }: CreatedElement, { number }: Row): Cells {
    const { host, statement } = this.#request;
    const first = statement.matched?.names.length ?? 0;
    return new Map(
      cells.map((cell): [string, string] => {
        if ('slot' in cell) return [cell.name, literalText(host.literal(cell.slot), cell.typed)];
        const at = first + cell.value;
        return [cell.name, jsonText(this.#rowsRead.cell(number, at), this.#rowsRead.columns[at]!.type)];
      }),
    );
  }

  /** A key that is written twice is written once: the later cells count. */
  #add({ type, patches, isEdges }: Omit<Step, 'rows' | 'sent'>, key: string, cells: Cells, sent: number): void {
    const name = `${type}\0${patches}`;
    let step = this.#steps.get(name);
    if (step === undefined) this.#steps.set(name, (step = { type, patches, isEdges, rows: new Map(), sent: new Map() }));
    const before = patches ? (step.rows.get(key) ?? []) : [];
    step.rows.set(key, new Map([...before, ...cells]));
    step.sent.set(key, sent);
  }

  /** The rows are read as an ingest of them would be. */
  #put({ type, patches, rows }: Step): PutRows {
    const { statement, invocation } = this.#request;
    const definition = this.#type(type) ?? null;
    const reader = new BodyReader({
      definition,
      batchRows: rows.size + 1,
      batchBytes: Infinity,
      predictBytesMin: Infinity,
      tracksSent: patches,
    });
    reader.push(Buffer.from(`[${[...rows.values()].map(rowText).join(',')}]`));
    const batch = reader.read(true);
    const [refused] = batch?.rejections ?? [];
    if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
    assert(batch?.rows.length === rows.size, 'rows are read as they were written');
    const { door } = invocation.caller;
    return {
      kind: 'put-rows',
      type,
      rows: batch.rows,
      atomic: true,
      createType: false,
      provenance: { source: door, method: statement.method, confidence: 1, derivedFrom: null },
      listsRows: true,
      computedFrom: [...(this.#read.get(type) ?? [])],
      ...(patches && { patch: batch.sent! }),
    };
  }

  async #submit(types: readonly string[], steps: readonly PutRows[]): Promise<Outcome> {
    const { invocation, sync } = this.#request;
    for (const name of types) {
      if (this.#type(name) !== undefined) continue;
      invocation.describe({ action: 'schema' });
      await invocation.submit({ kind: 'register-type', name, properties: null, primaryKey: null, graphTriggers: [] });
    }
    invocation.describe({ action: 'ingest' });
    const command = steps.length === 1 ? steps[0]! : ({ kind: 'batch', steps } satisfies Batch);
    try {
      return await invocation.submit(command, { sync });
    } finally {
      invocation.describe({ objectType: [...new Set([...types, ...this.#read.keys()])].join(',') });
    }
  }

  #countWritten(outcome: Outcome | null, steps: readonly Step[]): Written {
    const outcomes = outcome === null ? [] : (outcome.steps ?? [outcome]);
    const count = (which: string): number =>
      outcomes.reduce((sum, { rows = [] }) => sum + rows.filter(({ became }) => became === which).length, 0);
    const graph = { nodes: 0, relationships: 0, properties: 0 };
    for (const [i, { isEdges, sent }] of steps.entries()) {
      const counts = [...sent.values()];
      for (const { index, became } of outcomes[i]?.rows ?? []) {
        if (became !== 'created' && became !== 'updated') continue;
        if (became === 'created') graph[isEdges ? 'relationships' : 'nodes']++;
        graph.properties += counts[index]!;
      }
    }
    return {
      verb: 'insert',
      inserted: count('created'),
      updated: count('updated'),
      deleted: 0,
      kept: 0,
      graph,
      systemFrom: outcome?.systemFrom ?? 0n,
      systemFromLast: outcome?.systemFromLast ?? 0n,
      durability: outcome?.durability ?? 'synced',
    };
  }

  /** RETURN, over the current rows. */
  async #answer(rows: readonly Row[]): Promise<Answer> {
    const { host, statement, invocation } = this.#request;
    const { returned, things, matched } = statement;
    const facts = { asOfSystem: this.#snapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
    if (returned === null) return smallAnswer([], [], facts);
    const first = matched?.names.length ?? 0;
    const values = returned.shapes.map((shape, i) => ({ type: this.#rowsRead.columns[first + i]?.type ?? 'string', shape }));
    const query = returnedQuery(returned.clause, things, values);
    const given = {
      columns: [
        ...things.map(({ name }) =>
          vectorOf(
            rows.map(({ keys }) => keys.get(name) ?? null),
            'string',
          ),
        ),
        ...values.map(({ type }, i) =>
          vectorOf(
            rows.map(({ number }) => this.#rowsRead.cell(number, first + i)),
            type,
          ),
        ),
      ],
      count: rows.length,
    };
    const snapshot = invocation.snapshot();
    const shown = new RowsRead(false);
    let columns: readonly OutputColumn[] = [];
    await host.read({
      query,
      part: `returned ${values.map(({ type }) => type).join()}`,
      snapshot,
      rows: shown,
      given: new Map([[madeRows, [given]]]),
      onPlan: (ready) => void (columns = ready.columns),
    });
    const batch = { columns: columns.map(({ type }, i) => shown.vector(i, type)), selection: null, first: 0, count: shown.rows };
    const { instant: asOfSystem } = snapshot;
    const answer = smallAnswer(columns, [], { ...facts, asOfSystem, processingTimeMs: host.processingTimeMs() });
    return { ...answer, batches: shown.rows === 0 ? [] : [batch], rowCount: shown.rows, estimatedTotalHits: shown.rows };
  }
}

const noEdges: ReadonlyMap<string, string> = new Map();

function nodeId({ ids }: Row, name: string, location: CreatedElement['location']): string {
  const id = ids.get(name);
  if (id !== undefined) return id;
  throw errorAt('REL_INVALID', `${JSON.stringify(name)} was not matched: an edge needs both of its ends`, location);
}

function keyIn(cells: Cells, definition: TypeDefinition | undefined): string | null {
  const primaryKey = definition?.primaryKey ?? null;
  const names = primaryKey === null ? ['_pk', 'id'] : [primaryKey];
  return names.map((name) => textOf(cells.get(name))).find((cell) => cell !== null) ?? null;
}

/** A cell as keys and ids write it; null where it has none. */
function textOf(json: string | undefined): string | null {
  if (json === undefined || json === 'null') return null;
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** The identity of a merged edge: its ends, and the cells sent, in a canonical form. */
function edgeText(from: string, to: string, cells: Cells, definition: TypeDefinition | undefined): string {
  const sent = [...cells].sort(([a], [b]) => compareText(a, b));
  const cellTexts = sent.map(([name, cell]) => [name, comparable(cell, definition?.properties[name]?.type)]);
  return JSON.stringify([from, to, ...cellTexts]);
}

function comparable(json: string, type: ColumnType | undefined): string {
  if (type === 'timestamp' && json.startsWith('"')) return String(parseInstant(JSON.parse(json) as string));
  return type === 'number' && json !== 'null' ? String(Number(json)) : json;
}

function literalText(literal: Literal, typed: StatedType | undefined): string {
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

const countOf = (cells: Cells): number => [...cells.values()].filter((cell) => cell !== 'null').length;

const rowText = (cells: Cells): string => `{${[...cells].map(([name, cell]) => `${JSON.stringify(name)}:${cell}`).join(',')}}`;
