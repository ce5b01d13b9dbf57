/**
 * The common part of the domain functions: the roles that they read, arguments within bounds, and answers that name their method
 * and evidence, best score first. Each function is a `DomainFunction`; `domainFunction` makes a table function of it. README.md
 * shows one whole.
 */
import { ServiceError } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { canonicalJson, type Json } from '../../../log/values/canonical-json.ts';
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { type Cell, compareText } from '../../../log/values/value.ts';
import { VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { IdentifierPredicate } from '../../../projections/access-paths.ts';
import { looksOfScan } from '../../graph/graph-limits.ts';
import { sortItemsInSteps, type Steps } from '../../graph/stepped-sort.ts';
import type { PlanColumn } from '../../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, type Pieces, PiecesOperator } from '../../operators/operator.ts';
import { errorAt } from '../../syntax/error-location.ts';
import type { ArgumentSpec } from '../../calls/argument-spec.ts';
import type { BoundScope, FunctionScope, Opening, TableFunction } from '../../calls/table-function.ts';
import { type RoleBatch, type RowsWanted, scanRoles } from './role-rows.ts';
import { checkRoles, type RoleName, rolePlayers, type RoleType, type RoleUse, roleTypes } from './roles.ts';

/** An argument; a number may have bounds, both of which it may be. */
export interface DomainArgument extends ArgumentSpec {
  readonly least?: number;
  readonly most?: number;
}

/** One row of an answer. `cells` are those of the function's own columns, in their order. */
export interface DomainRow {
  /** `_pk` of the row's subject. */
  readonly nodeId: string | null;
  readonly type: string | null;
  readonly cells: readonly Cell[];
  /** Null where there is too little evidence: `evidence` says why. */
  readonly score: number | null;
  readonly evidence: Json;
  /** Instead of the function's method. */
  readonly method?: string;
  /** Tells rows of one score and node apart. */
  readonly systemFrom?: bigint | null;
}

/** An answer that is made by columns, in the order of its rows. They share their evidence. */
export interface DomainColumns {
  readonly count: number;
  readonly evidence: Json;
  /** The vectors of `count` rows from `first` on. */
  vectors(first: number, count: number): DomainVectors;
}

export interface DomainVectors {
  readonly nodeId: Vector;
  readonly type: Vector;
  /** The function's own columns, in their order. */
  readonly cells: readonly Vector[];
  readonly score: Vector;
}

export interface DomainFunction {
  /** The name, in upper case. */
  readonly name: string;
  readonly summary: string;
  /** `name/version` of how the answer comes about: it rises with any change of scores. */
  readonly method: string;
  readonly arguments: readonly DomainArgument[];
  /** The roles that it reads. The first is the one that SOURCE narrows. */
  readonly roles: readonly RoleUse[];
  /** Any one of the roles is enough, and SOURCE may be a type of any of them. */
  readonly areAlternatives?: boolean;
  /** The function reads rows of every type, beside those of its roles. */
  readonly everyType?: boolean;
  /** A role that it reads besides, if some type plays it, whatever SOURCE says. */
  readonly beside?: RoleName;
  /** Its own columns, between `type` and `score`. */
  readonly columns: readonly PlanColumn[];
  /** Rows stay in the order in which they are given. */
  readonly isOrdered?: boolean;
  readonly action?: 'query' | 'search';
  run(call: DomainCall): Steps<readonly DomainRow[] | DomainColumns>;
}

const commonBefore: readonly PlanColumn[] = [
  { name: 'nodeId', type: 'string' },
  { name: 'type', type: 'string' },
];
const commonBehind: readonly PlanColumn[] = [
  { name: 'score', type: 'number' },
  { name: 'method', type: 'string' },
  { name: 'evidence', type: 'json' },
];

export function domainFunction(definition: DomainFunction): TableFunction {
  const { name, summary, roles: uses, areAlternatives = false, everyType } = definition;
  const narrows = uses.length > 0 || everyType === true;
  const source: ArgumentSpec = {
    name: 'SOURCE',
    kind: 'type',
    summary: everyType
      ? 'the one type whose rows are read; every type by default'
      : `the one type that plays the role ${(areAlternatives ? uses : uses.slice(0, 1)).map((use) => use.role).join(' or ')}; every such type by default`,
  };
  return {
    name,
    summary,
    arguments: narrows ? [...definition.arguments, source] : definition.arguments,
    action: definition.action ?? 'query',
    units: 1,
    deterministic: true,
    mistyped: 'REL_INVALID',
    types: (scope) => typesRead(definition, scope),
    columns: (scope) => {
      if (uses.length > 0) checkRoles(scope, uses, areAlternatives);
      else checkSource(scope);
      return [...commonBefore, ...definition.columns, ...commonBehind];
    },
    bind: (scope): Binding => ({
      types: [...roleTypes(scope, uses, areAlternatives), ...typesBeside(definition, scope)],
      source: scope.words.word('SOURCE'),
      words: new Map(
        definition.arguments.flatMap((each) =>
          scope.words.word(each.name) === undefined ? [] : [[each.name, scope.words.word(each.name)!]],
        ),
      ),
      pieces: new Map(),
    }),
    open: (opening) => new DomainOperator(definition, opening),
  };
}

function checkSource({ words, catalog }: BoundScope): void {
  const source = words.word('SOURCE');
  if (source === undefined || catalog.type(source) !== undefined) return;
  throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(source)} of SOURCE is not registered`, words.locationOf('SOURCE'));
}

function typesRead(definition: DomainFunction, scope: FunctionScope): readonly string[] {
  const { roles: uses, areAlternatives = false, everyType = false } = definition;
  const source = scope.words.word('SOURCE');
  if (scope.catalog === null) return source === undefined ? [] : [source];
  if (everyType && source === undefined) return scope.catalog.types().map(({ name }) => name);
  const contextTypes = typesBeside(definition, scope).map(({ type }) => type);
  const read = everyType ? [source!] : roleTypes(scope, uses, areAlternatives).map(({ type }) => type);
  return [...new Set([...read, ...contextTypes])];
}

function typesBeside({ beside }: Pick<DomainFunction, 'beside'>, { catalog }: FunctionScope): readonly RoleType[] {
  return beside === undefined ? [] : rolePlayers(catalog?.types() ?? [], beside);
}

/** The parts of a call that don't depend on its values. */
interface Binding {
  readonly types: readonly RoleType[];
  /** The type that SOURCE names. */
  readonly source: string | undefined;
  readonly words: ReadonlyMap<string, string>;
  /** Keys of what is kept of rows, by name: made with the first call of a plan. */
  readonly pieces: Map<string, { readonly types: readonly string[]; readonly key: string }>;
}

/** The context of a function: its rows and arguments. */
export class DomainCall {
  readonly execution: Execution;
  readonly #definition: DomainFunction;
  readonly #opening: Opening;
  readonly #bound: Binding;
  #looks = 0;
  #heldBytes = 0;

  constructor(definition: DomainFunction, opening: Opening) {
    this.#definition = definition;
    this.#opening = opening;
    this.#bound = opening.node.bound as Binding;
    this.execution = { ...opening.execution, time: oneInstant(opening.execution) };
  }

  /** The types that play a role in this call. */
  typesOf(role: RoleName): readonly RoleType[] {
    return this.#bound.types.filter((each) => each.role === role);
  }

  /**
   * Hands the rows of a role to `take`, a batch each step; `columns` are names of the role. `wanted` are rows whose column is one
   * of a few texts: those of `_pk` are looked up.
   */
  rows(role: RoleName, columns: readonly string[], take: (batch: RoleBatch) => void, wanted?: RowsWanted): Steps<void> {
    return scanRoles(this.execution, this.typesOf(role), columns, take, wanted);
  }

  /**
   * Gives what `make` makes of the visible rows of some roles, or what an earlier call made of them where they say the same: `what` names
   * it among all that are made of the same types, and `make` says how many bytes it holds on to.
   */
  reuse<T>(
    pieceName: string,
    roles: readonly RoleName[],
    make: () => Steps<{ readonly value: T; readonly bytes: number }>,
  ): Steps<T> {
    const { types: all, pieces } = this.#bound;
    let piece = pieces.get(pieceName);
    if (piece === undefined) {
      const types = all.filter(({ role }) => roles.includes(role));
      const key = JSON.stringify([pieceName, types.map(({ role, type, columns, isNamed }) => [role, type, isNamed, ...columns])]);
      pieces.set(pieceName, (piece = { types: [...new Set(types.map(({ type }) => type))], key }));
    }
    return this.execution.services.basisCache.find(this.execution, piece.types, piece.key, make);
  }

  /** As `kept`, of what is made of the rows of one type. */
  keptOf<T>(pieceName: string, type: string, make: () => Steps<{ readonly value: T; readonly bytes: number }>): Steps<T> {
    return this.execution.services.basisCache.find(this.execution, [type], pieceName, make);
  }

  /** Every type, or the one of SOURCE, of a function that reads rows of any. */
  types(): readonly TypeDefinition[] {
    const { source } = this.#bound;
    return this.execution.snapshot.catalog.types().filter(({ name }) => source === undefined || name === source);
  }

  /** As `rows`, of one type, by the names of its own columns; rows without any of the identifiers may be left out. */
  rowsOf(
    type: string,
    columns: readonly string[],
    take: (batch: RoleBatch) => void,
    wanted?: RowsWanted,
    identifiers?: readonly IdentifierPredicate[],
  ): Steps<void> {
    const isNamed = type === this.#bound.source;
    const read = { type, columns: new Map(columns.map((name) => [name, name])), isNamed };
    return scanRoles(this.execution, [read], columns, take, wanted, identifiers);
  }

  /** A word argument as it was chosen. */
  word(name: string): string | undefined {
    return this.#bound.words.get(name);
  }

  text(name: string): string | undefined {
    return this.#opening.values.text(name, this.execution.kernels);
  }

  boolean(name: string): boolean | undefined {
    return this.#opening.values.boolean(name, this.execution.kernels);
  }

  /** A number or integer within the bounds of its argument: REL_INVALID names the argument where it is not. */
  number(name: string): number | undefined;
  number(name: string, otherwise: number): number;
  number(name: string, otherwise?: number): number | undefined {
    const { values } = this.#opening;
    const value = values.number(name, this.execution.kernels);
    if (value === undefined) return otherwise;
    const { least = -Infinity, most = Infinity } = this.#definition.arguments.find((each) => each.name === name)!;
    if (value >= least && value <= most) return value;
    throw this.refuse(name, `is ${bounds(least, most)}, not ${value}`);
  }

  /** REL_INVALID about an argument, at its place: `THRESHOLD of F is from 0 to 1`. */
  refuse(name: string, detail: string): ServiceError {
    const { values } = this.#opening;
    const text = `${name} of ${this.#definition.name} ${detail}`;
    return values.has(name) ? errorAt('REL_INVALID', text, values.locationOf(name)) : new ServiceError('REL_INVALID', text);
  }

  /** Counts work beyond the reading of rows: a look takes about 20 ns. Throws REL_SCAN_CAP where it is too much. */
  look(count: number): void {
    this.#looks += count;
    const { counters } = this.execution;
    const { scannedRowsMax } = this.execution.limits;
    counters.looks += count;
    if (this.#looks > looksOfScan * scannedRowsMax) {
      throw new ServiceError(
        'REL_SCAN_CAP',
        `${this.#definition.name} looks at more than ${looksOfScan * scannedRowsMax} things: ask for less`,
      );
    }
  }

  /** Says how many bytes the call holds on to by now; REL_MEMORY_CAP where they are too many. */
  hold(bytes: number): void {
    this.#heldBytes = this.execution.memory.change(this.#heldBytes, bytes);
  }

  /** Awaits something loaded on first use, such as a library. Must resolve to the same value at any time. */
  *wait<T>(loading: Promise<T>): Steps<T> {
    let over: { readonly value: T } | { readonly error: unknown } | null = null;
    this.execution.wait.until = loading.then(
      (value) => void (over = { value }),
      (error: unknown) => void (over = { error }),
    );
    for (;;) {
      yield;
      const ended = over as { readonly value: T } | { readonly error: unknown } | null;
      if (ended === null) continue;
      if ('error' in ended) throw ended.error;
      return ended.value;
    }
  }
}

function bounds(least: number, most: number): string {
  if (most === Infinity) return `at least ${least}`;
  return least === -Infinity ? `at most ${most}` : `from ${least} to ${most}`;
}

/** A function is about one instant, wherever it stands: now, on each axis that is not named. */
function oneInstant({ time: { system, valid }, kernels: { instant } }: Execution): Execution['time'] {
  const known = system === 'all' ? instant : system;
  return { system: known, valid: valid === 'all' ? known : valid };
}

const outputRows = 1_024;
/** Letters of texts that are written in one step, unless one row has more. */
const outputLetters = 1 << 18;

/** The number of rows, of `count` from `first` on, that are written at once. */
function rowsWithin(rows: readonly DomainRow[], first: number, count: number): number {
  let letters = 0;
  for (let i = 0; i < count; i++) {
    for (const cell of rows[first + i]!.cells) if (typeof cell === 'string') letters += cell.length;
    if (letters > outputLetters) return i + 1;
  }
  return count;
}

class DomainOperator extends PiecesOperator {
  readonly #definition: DomainFunction;
  readonly #opening: Opening;
  #steps: ReturnType<DomainFunction['run']> | null = null;

  constructor(definition: DomainFunction, opening: Opening) {
    super();
    this.#definition = definition;
    this.#opening = opening;
  }

  close(): void {
    // Lets a scan that is under way go.
    this.#steps?.return([]);
  }

  protected *pieces(): Pieces {
    const call = new DomainCall(this.#definition, this.#opening);
    const steps = this.#definition.run(call);
    this.#steps = steps;
    let step = steps.next();
    for (; !step.done; step = steps.next()) yield emptyBatch;
    let resultRows = step.value;
    if ('length' in resultRows && !this.#definition.isOrdered) {
      const sorting = sortItemsInSteps(resultRows, compareRows);
      let sorted = sorting.next();
      for (; !sorted.done; sorted = sorting.next()) yield emptyBatch;
      resultRows = sorted.value;
    }
    const { node, execution } = this.#opening;
    const length = 'length' in resultRows ? resultRows.length : resultRows.count;
    if (node.limit !== null) execution.counters.hits += length;
    for (let first = 0, count; first < length; first += count) {
      count = Math.min(outputRows, length - first);
      if ('length' in resultRows) count = rowsWithin(resultRows, first, count);
      yield 'length' in resultRows
        ? this.#ofRows(resultRows.slice(first, first + count))
        : this.#ofColumns(resultRows, first, count);
    }
    call.hold(0);
  }

  #ofColumns(resultColumns: DomainColumns, first: number, count: number): Batch {
    const { nodeId, type, cells, score } = resultColumns.vectors(first, count);
    const evidence = repeatedText(canonicalJson(resultColumns.evidence), count);
    const columns = [nodeId, type, ...cells, score, repeatedText(this.#definition.method, count), evidence];
    return { columns, selection: null, first: 0, count };
  }

  #ofRows(rows: readonly DomainRow[]): Batch {
    const { columns: own, method } = this.#definition;
    const columns = [
      columnOf('string', rows, (row) => row.nodeId),
      rows.every(({ type }) => type !== null && type === rows[0]!.type)
        ? repeatedText(rows[0]!.type!, rows.length)
        : columnOf('string', rows, (row) => row.type),
      ...own.map(({ type }, i) => columnOf(type, rows, (row) => row.cells[i] ?? null)),
      columnOf('number', rows, (row) => row.score),
      rows.some((row) => row.method !== undefined)
        ? columnOf('string', rows, (row) => row.method ?? method)
        : repeatedText(method, rows.length),
      evidenceOf(rows),
    ];
    return { columns, selection: null, first: 0, count: rows.length };
  }
}

/** Rows that share their evidence share its text. */
function evidenceOf(rows: readonly DomainRow[]): Vector {
  const first = rows[0]?.evidence ?? null;
  if (rows.every(({ evidence }) => evidence === first)) return repeatedText(canonicalJson(first), rows.length);
  let [last, text]: [Json, string] = [null, 'null'];
  return columnOf('json', rows, ({ evidence }) => {
    if (evidence !== last) [last, text] = [evidence, canonicalJson(evidence)];
    return text;
  });
}

function columnOf(type: PlanColumn['type'], rows: readonly DomainRow[], cell: (row: DomainRow) => Cell): Vector {
  const builder = new VectorBuilder(type, Math.max(1, rows.length));
  for (const row of rows) builder.append(cell(row));
  return builder.build();
}

/** One text, `count` times. */
export function repeatedText(text: string, count: number): Vector {
  const bytes = Buffer.from(text);
  const heap = new Uint8Array(bytes.length * count);
  const offsets = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) {
    heap.set(bytes, i * bytes.length);
    offsets[i + 1] = (i + 1) * bytes.length;
  }
  return { kind: 'text', offsets, heap, nulls: null };
}

/** Best score first, rows without one last; then by node, and by system_from. */
function compareRows(a: DomainRow, b: DomainRow): number {
  if (a.score !== b.score) return a.score === null ? 1 : b.score === null ? -1 : b.score - a.score;
  const byNode = compareText(a.nodeId ?? '', b.nodeId ?? '');
  if (byNode !== 0) return byNode;
  const [before, after] = [a.systemFrom ?? 0n, b.systemFrom ?? 0n];
  return before < after ? -1 : before > after ? 1 : 0;
}
