/**
 * CREATE and MERGE of a pattern: the rows that a MATCH in front finds, then everything that is made for each of them in one batch.
 * Every thing is an upsert of its key: CREATE puts a row as it is sent, MERGE the cells that are sent. An edge that MERGE gives no key is
 * looked for between its ends; it and a node of CREATE without a key get one here, so that edges can name them. A type that nobody
 * has registered is registered first, open, under the action `schema`.
 */
import { createHash } from 'node:crypto';
import { assert, type ErrorCode, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { EdgeColumns, TypeDefinition } from '../../log/entries/entry.ts';
import { defaultEnds, endsOf } from '../../projections/catalog/edge-columns.ts';
import type { Batch, Outcome, PutRows } from '../../projections/command.ts';
import { smallAnswer } from '../answers.ts';
import { BodyReader } from '../formats/ingest-reader.ts';
import { columnOf, equal, allOf, queryOf, selectOf } from '../languages/trees.ts';
import { at } from '../places.ts';
import type { Executed } from '../planner-contract.ts';
import type { Expression, Literal, Query } from '../statement.ts';
import type { GraphWrite, MadeEdge, MadeNode, MadeThing } from '../write-statement.ts';
import { FoundRows } from './found-rows.ts';
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
export function readsPattern({ matched, things }: PatternWrite): boolean {
  return matched !== null || things.some(({ kind, how }) => kind === 'edge' && how === 'merge');
}

type Cells = Map<string, Literal>;

/** Rows of one type, by key. */
interface Step {
  readonly type: string;
  readonly patches: boolean;
  readonly rows: Map<string, Cells>;
}

class Making {
  readonly #request: GraphWriteRequest<PatternWrite>;
  readonly #snapshot: GovernedSnapshot;
  readonly #steps = new Map<string, Step>();
  /** By type: columns that what is written was chosen by. */
  readonly #read = new Map<string, Set<string>>();

  constructor(request: GraphWriteRequest<PatternWrite>, snapshot: GovernedSnapshot) {
    this.#request = request;
    this.#snapshot = snapshot;
  }

  async run(types: readonly string[]): Promise<Executed> {
    const { statement } = this.#request;
    const { things, returned } = statement;
    const rows: Map<string, string>[] = await this.#matched();
    for (const thing of things) {
      if (thing.kind === 'node') for (const row of rows) row.set(thing.name, this.#node(thing));
      else await this.#edges(thing, rows);
    }
    const steps = [...this.#steps.values()].map((step) => this.#put(step));
    const outcome = steps.length === 0 ? null : await this.#submit(types, steps);
    return this.#executed(
      outcome,
      rows.map((row) => (returned ?? []).map(({ of, place }) => named(row, of, place))),
    );
  }

  /** Ids of what was matched, by name: one row of nothing where nothing had to be. */
  async #matched(): Promise<Map<string, string>[]> {
    const { matched } = this.#request.statement;
    if (matched === null) return [new Map()];
    const found = new FoundRows(false);
    await this.#ask(matched.query, 'matched', found);
    // What an OPTIONAL MATCH did not find can't be an end of anything.
    return found.numbers().map((row) => {
      const cells = matched.names.map((name, i) => [name, found.cell(row, i)] as const);
      return new Map(cells.flatMap(([name, cell]) => (cell === null ? [] : [[name, String(cell)] as const])));
    });
  }

  /** What the graph calls it. */
  #node(node: MadeNode): string {
    const { type, how, place } = node;
    const definition = this.#type(type);
    const cells = this.#cells(node);
    const keyName = definition?.primaryKey ?? 'id';
    let key = keyIn(cells, definition);
    if (key === null) {
      if (how === 'merge' || this.#request.newKey === null)
        throw at('REL_INVALID', `a node of ${JSON.stringify(type)} is known by its key: (:${type} {${keyName}: …})`, place);
      key = this.#request.newKey();
      cells.set(keyName, key);
    }
    this.#add(type, how === 'merge', key, cells);
    const id = cells.get('id') ?? null;
    if (id === null && how === 'merge' && definition !== undefined && Object.hasOwn(definition.properties, 'id'))
      throw at('REL_INVALID', `the graph calls a node of ${JSON.stringify(type)} by its id: name it beside its key`, place);
    return id === null ? key : String(id);
  }

  async #edges(edge: MadeEdge, rows: readonly Map<string, string>[]): Promise<void> {
    const { type, how, place } = edge;
    const definition = this.#type(type);
    const ends = definition === undefined ? defaultEnds : (endsOf(definition) ?? defaultEnds);
    if (definition !== undefined && endsOf(definition) === null && Object.keys(definition.properties).length > 0)
      throw at('REL_INVALID', `rows of ${JSON.stringify(type)} are no edges`, place);
    const taken = edge.cells.find(({ name }) => name === ends.from || name === ends.to);
    if (taken) throw at('REL_INVALID', `${taken.name} is an end of the edge: the pattern says which`, taken.place);
    const pairs = rows.map((row) => [named(row, edge.from, place), named(row, edge.to, place)] as const);
    const there = how === 'merge' && definition !== undefined ? await this.#standing(edge, ends, pairs) : noEdges;
    for (const [i, [from, to]] of pairs.entries()) {
      const cells = this.#cells(edge).set(ends.from, from).set(ends.to, to);
      const own = keyIn(cells, definition);
      const known = own === null ? there.get(JSON.stringify([from, to])) : undefined;
      if (known !== undefined) {
        rows[i]!.set(edge.name, known);
        continue;
      }
      const key = own ?? this.#keyOf(edge, from, to);
      if (own === null) cells.set(definition?.primaryKey ?? '_pk', key);
      // A row that is its own end keeps what else is known of it.
      const isEnd = definition?.primaryKey === ends.from || definition?.primaryKey === ends.to;
      this.#add(type, how === 'merge' || isEnd, key, cells);
      rows[i]!.set(edge.name, key);
    }
  }

  /** The same edge is the same row, whoever merges it. */
  #keyOf({ how, type, place }: MadeEdge, from: string, to: string): string {
    if (how === 'merge')
      return createHash('sha256')
        .update(JSON.stringify([type, from, to]))
        .digest('hex')
        .slice(0, 32);
    const { newKey } = this.#request;
    if (newKey === null) throw at('REL_INVALID', 'an edge has a key of its own here: [:TYPE {id: …}]', place);
    return newKey();
  }

  /** Keys of edges that are there already, by their ends. */
  async #standing(
    edge: MadeEdge,
    ends: EdgeColumns,
    pairs: readonly (readonly [string, string])[],
  ): Promise<ReadonlyMap<string, string>> {
    const { nullSlot } = this.#request.statement;
    const { type, cells, place } = edge;
    const column = (name: string): Expression => columnOf(name, place, type);
    const sources = [...new Set(pairs.map(([from]) => from))];
    if (sources.length === 0) return noEdges;
    // Behind NULL and the path.
    const items = sources.map((_, i): Expression => ({ kind: 'literal', slot: nullSlot + 2 + i, place }));
    const where = allOf([
      { kind: 'in-list', operand: column(ends.from), items, negated: false, place },
      ...cells.map(({ name, slot }) => equal(column(name), { kind: 'literal', slot, place })),
    ]);
    const projection = ['_pk', ends.from, ends.to].map(
      (name) => ({ kind: 'expression', expression: column(name), alias: null, place }) as const,
    );
    const from = { kind: 'table', name: type, alias: null, place } as const;
    const query: Query = {
      ...queryOf(selectOf({ projection, from, where, place }), null),
      orderBy: [{ expression: column('_pk'), descending: true, collate: 'codepoint', nullsFirst: false }],
    };
    const found = new FoundRows(false);
    await this.#ask(query, `standing ${this.#request.statement.things.indexOf(edge)} ${sources.length}`, found, sources);
    // The least key of several.
    return new Map(
      found.numbers().map((row) => [JSON.stringify([found.cell(row, 1), found.cell(row, 2)]), String(found.cell(row, 0))]),
    );
  }

  /** What is read may be masked nowhere: which rows there are becomes cells. */
  async #ask(query: Query, part: string, found: FoundRows, extra: readonly Literal[] = []): Promise<void> {
    await this.#request.host.read({
      query,
      part,
      found,
      extra,
      snapshot: this.#snapshot,
      onPlan: ({ reads }) => {
        for (const { type, columns } of reads) {
          const masks = this.#snapshot.masked(type);
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

  #cells({ cells }: MadeThing): Cells {
    return new Map(cells.map(({ name, slot }) => [name, this.#request.host.literal(slot)]));
  }

  /** A key that is written twice is written once: what comes later counts. */
  #add(type: string, patches: boolean, key: string, cells: Cells): void {
    const name = `${type}\0${patches}`;
    let step = this.#steps.get(name);
    if (step === undefined) this.#steps.set(name, (step = { type, patches, rows: new Map() }));
    const before = patches ? (step.rows.get(key) ?? []) : [];
    step.rows.set(key, new Map([...before, ...cells]));
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
    reader.push(Buffer.from(`[${[...rows.values()].map(jsonOf).join(',')}]`));
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

  #executed(outcome: Outcome | null, returned: readonly (readonly string[])[]): Executed {
    const { host, statement } = this.#request;
    const facts = { asOfSystem: this.#snapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
    const columns = (statement.returned ?? []).map(({ name }) => ({ name, type: 'string' }) as const);
    const rows = outcome === null ? [] : (outcome.steps ?? [outcome]).flatMap((step) => step.rows ?? []);
    const count = (which: string): number => rows.filter(({ became }) => became === which).length;
    return {
      answer: smallAnswer(columns, columns.length === 0 ? [] : returned, facts),
      written: {
        verb: 'insert',
        inserted: count('created'),
        updated: count('updated'),
        deleted: 0,
        kept: 0,
        systemFrom: outcome?.systemFrom ?? 0n,
        systemFromLast: outcome?.systemFromLast ?? 0n,
        durability: outcome?.durability ?? 'synced',
      },
    };
  }
}

const noEdges: ReadonlyMap<string, string> = new Map();

function named(row: ReadonlyMap<string, string>, name: string, place: MadeThing['place']): string {
  const id = row.get(name);
  if (id !== undefined) return id;
  throw at('REL_INVALID', `${JSON.stringify(name)} stands for nothing here: an edge joins what is there`, place);
}

function keyIn(cells: Cells, definition: TypeDefinition | undefined): string | null {
  const primaryKey = definition?.primaryKey ?? null;
  const names = primaryKey === null ? ['_pk', 'id'] : [primaryKey];
  const key = names.map((name) => cells.get(name) ?? null).find((cell) => cell !== null);
  return key === undefined ? null : String(key);
}

/** Integers as they are, whatever a number could hold of them. */
function jsonOf(cells: Cells): string {
  const members = [...cells].map(
    ([name, cell]) => `${JSON.stringify(name)}:${typeof cell === 'bigint' ? cell : JSON.stringify(cell)}`,
  );
  return `{${members.join(',')}}`;
}
