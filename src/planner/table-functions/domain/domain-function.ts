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

const domainColumnsBefore: readonly PlanColumn[] = [
  { name: 'nodeId', type: 'string' },
  { name: 'type', type: 'string' },
];
const domainColumnsBehind: readonly PlanColumn[] = [
  { name: 'score', type: 'number' },
  { name: 'method', type: 'string' },
  { name: 'evidence', type: 'json' },
];

export function domainFunction(definition: DomainFunction): TableFunction {
  const { name, summary, roles: roleUses, areAlternatives = false, everyType } = definition;
  const hasSource = roleUses.length > 0 || everyType === true;
  const sourceArgument: ArgumentSpec = {
    name: 'SOURCE',
    kind: 'type',
    summary: everyType
      ? 'the one type whose rows are read; every type by default'
      : `the one type that plays the role ${(areAlternatives ? roleUses : roleUses.slice(0, 1)).map((use) => use.role).join(' or ')}; every such type by default`,
  };
  return {
    name,
    summary,
    arguments: hasSource ? [...definition.arguments, sourceArgument] : definition.arguments,
    action: definition.action ?? 'query',
    units: 1,
    deterministic: true,
    mistyped: 'REL_INVALID',
    types: (scope) => domainTypesRead(definition, scope),
    columns: (scope) => {
      if (roleUses.length > 0) checkRoles(scope, roleUses, areAlternatives);
      else checkDomainSource(scope);
      return [...domainColumnsBefore, ...definition.columns, ...domainColumnsBehind];
    },
    bind: (scope): DomainBinding => ({
      types: [...roleTypes(scope, roleUses, areAlternatives), ...domainTypesBeside(definition, scope)],
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

function checkDomainSource({ words, catalog }: BoundScope): void {
  const sourceType = words.word('SOURCE');
  if (sourceType === undefined || catalog.type(sourceType) !== undefined) return;
  throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(sourceType)} of SOURCE is not registered`, words.locationOf('SOURCE'));
}

function domainTypesRead(definition: DomainFunction, domainScope: FunctionScope): readonly string[] {
  const { roles: roleUses, areAlternatives = false, everyType = false } = definition;
  const sourceType = domainScope.words.word('SOURCE');
  if (domainScope.catalog === null) return sourceType === undefined ? [] : [sourceType];
  if (everyType && sourceType === undefined) return domainScope.catalog.types().map(({ name }) => name);
  const contextTypes = domainTypesBeside(definition, domainScope).map(({ type }) => type);
  const roleTypesRead = everyType ? [sourceType!] : roleTypes(domainScope, roleUses, areAlternatives).map(({ type }) => type);
  return [...new Set([...roleTypesRead, ...contextTypes])];
}

function domainTypesBeside({ beside }: Pick<DomainFunction, 'beside'>, { catalog }: FunctionScope): readonly RoleType[] {
  return beside === undefined ? [] : rolePlayers(catalog?.types() ?? [], beside);
}

/** The parts of a call that don't depend on its values. */
interface DomainBinding {
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
  readonly #domainOpening: Opening;
  readonly #domainBinding: DomainBinding;
  #domainLooks = 0;
  #heldBytes = 0;

  constructor(definition: DomainFunction, domainOpening: Opening) {
    this.#definition = definition;
    this.#domainOpening = domainOpening;
    this.#domainBinding = domainOpening.node.bound as DomainBinding;
    this.execution = { ...domainOpening.execution, time: atOneInstant(domainOpening.execution) };
  }

  /** The types that play a role in this call. */
  typesOf(role: RoleName): readonly RoleType[] {
    return this.#domainBinding.types.filter((boundRole) => boundRole.role === role);
  }

  /**
   * Hands the rows of a role to `takeRoleBatch`, a batch each step; `columns` are names of the role. `wantedRows` are rows whose column is one
   * of a few texts: those of `_pk` are looked up.
   */
  rows(
    role: RoleName,
    columns: readonly string[],
    takeRoleBatch: (batch: RoleBatch) => void,
    wantedRows?: RowsWanted,
  ): Steps<void> {
    return scanRoles(this.execution, this.typesOf(role), columns, takeRoleBatch, wantedRows);
  }

  /**
   * Gives what `makeReused` makes of the visible rows of some roles, or what an earlier call made of them where they say the same: `what` names
   * it among all that are made of the same types, and `makeReused` says how many bytes it holds on to.
   */
  reuse<T>(
    pieceName: string,
    roles: readonly RoleName[],
    makeReused: () => Steps<{ readonly value: T; readonly bytes: number }>,
  ): Steps<T> {
    const { types: boundRoleTypes, pieces } = this.#domainBinding;
    let reusedPiece = pieces.get(pieceName);
    if (reusedPiece === undefined) {
      const reusedTypes = boundRoleTypes.filter(({ role }) => roles.includes(role));
      const reuseKey = JSON.stringify([
        pieceName,
        reusedTypes.map(({ role, type, columns, isNamed }) => [role, type, isNamed, ...columns]),
      ]);
      pieces.set(pieceName, (reusedPiece = { types: [...new Set(reusedTypes.map(({ type }) => type))], key: reuseKey }));
    }
    return this.execution.services.basisCache.find(this.execution, reusedPiece.types, reusedPiece.key, makeReused);
  }

  /** As `kept`, of what is made of the rows of one type. */
  keptOf<T>(pieceName: string, type: string, makeKept: () => Steps<{ readonly value: T; readonly bytes: number }>): Steps<T> {
    return this.execution.services.basisCache.find(this.execution, [type], pieceName, makeKept);
  }

  /** Every type, or the one of SOURCE, of a function that reads rows of any. */
  types(): readonly TypeDefinition[] {
    const { source: sourceType } = this.#domainBinding;
    return this.execution.snapshot.catalog.types().filter(({ name }) => sourceType === undefined || name === sourceType);
  }

  /** As `rows`, of one type, by the names of its own columns; rows without any of the identifiers may be left out. */
  rowsOf(
    type: string,
    columns: readonly string[],
    takeRoleBatch: (batch: RoleBatch) => void,
    wantedRows?: RowsWanted,
    identifiers?: readonly IdentifierPredicate[],
  ): Steps<void> {
    const isNamed = type === this.#domainBinding.source;
    const readRole = { type, columns: new Map(columns.map((name) => [name, name])), isNamed };
    return scanRoles(this.execution, [readRole], columns, takeRoleBatch, wantedRows, identifiers);
  }

  /** A word argument as it was chosen. */
  word(name: string): string | undefined {
    return this.#domainBinding.words.get(name);
  }

  text(name: string): string | undefined {
    return this.#domainOpening.values.text(name, this.execution.kernels);
  }

  boolean(name: string): boolean | undefined {
    return this.#domainOpening.values.boolean(name, this.execution.kernels);
  }

  /** A number or integer within the bounds of its argument: REL_INVALID names the argument where it is not. */
  number(name: string): number | undefined;
  number(name: string, defaultNumber: number): number;
  number(name: string, defaultNumber?: number): number | undefined {
    const { values } = this.#domainOpening;
    const argumentNumber = values.number(name, this.execution.kernels);
    if (argumentNumber === undefined) return defaultNumber;
    const { least: argumentLeast = -Infinity, most: argumentMost = Infinity } = this.#definition.arguments.find(
      (each) => each.name === name,
    )!;
    if (argumentNumber >= argumentLeast && argumentNumber <= argumentMost) return argumentNumber;
    throw this.refuse(name, `is ${argumentBounds(argumentLeast, argumentMost)}, not ${argumentNumber}`);
  }

  /** REL_INVALID about an argument, at its place: `THRESHOLD of F is from 0 to 1`. */
  refuse(name: string, detail: string): ServiceError {
    const { values } = this.#domainOpening;
    const refusalText = `${name} of ${this.#definition.name} ${detail}`;
    return values.has(name)
      ? errorAt('REL_INVALID', refusalText, values.locationOf(name))
      : new ServiceError('REL_INVALID', refusalText);
  }

  /** Counts work beyond the reading of rows: a look takes about 20 ns. Throws REL_SCAN_CAP where it is too much. */
  look(count: number): void {
    this.#domainLooks += count;
    const { counters } = this.execution;
    const { scannedRowsMax } = this.execution.limits;
    counters.looks += count;
    if (this.#domainLooks > looksOfScan * scannedRowsMax) {
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
  *wait<T>(awaitedLoading: Promise<T>): Steps<T> {
    let loadingEnd: { readonly value: T } | { readonly error: unknown } | null = null;
    this.execution.wait.until = awaitedLoading.then(
      (value) => void (loadingEnd = { value }),
      (error: unknown) => void (loadingEnd = { error }),
    );
    for (;;) {
      yield;
      const endedLoading = loadingEnd as { readonly value: T } | { readonly error: unknown } | null;
      if (endedLoading === null) continue;
      if ('error' in endedLoading) throw endedLoading.error;
      return endedLoading.value;
    }
  }
}

function argumentBounds(boundLeast: number, boundMost: number): string {
  if (boundMost === Infinity) return `at least ${boundLeast}`;
  return boundLeast === -Infinity ? `at most ${boundMost}` : `from ${boundLeast} to ${boundMost}`;
}

/** A function is about one instant, wherever it stands: now, on each axis that is not named. */
function atOneInstant({ time: { system, valid }, kernels: { instant } }: Execution): Execution['time'] {
  const systemInstant = system === 'all' ? instant : system;
  return { system: systemInstant, valid: valid === 'all' ? systemInstant : valid };
}

const domainOutputRows = 1_024;
/** Letters of texts that are written in one step, unless one row has more. */
const domainOutputLetters = 1 << 18;

/** The number of rows, of `count` from `firstDomainRow` on, that are written at once. */
function domainRowsWithin(domainRows: readonly DomainRow[], firstDomainRow: number, count: number): number {
  let letterCount = 0;
  for (let i = 0; i < count; i++) {
    for (const cell of domainRows[firstDomainRow + i]!.cells) if (typeof cell === 'string') letterCount += cell.length;
    if (letterCount > domainOutputLetters) return i + 1;
  }
  return count;
}

class DomainOperator extends PiecesOperator {
  readonly #definition: DomainFunction;
  readonly #domainOpening: Opening;
  #domainSteps: ReturnType<DomainFunction['run']> | null = null;

  constructor(definition: DomainFunction, domainOpening: Opening) {
    super();
    this.#definition = definition;
    this.#domainOpening = domainOpening;
  }

  close(): void {
    // Lets a scan that is under way go.
    this.#domainSteps?.return([]);
  }

  protected *pieces(): Pieces {
    const domainCall = new DomainCall(this.#definition, this.#domainOpening);
    const domainSteps = this.#definition.run(domainCall);
    this.#domainSteps = domainSteps;
    let domainStep = domainSteps.next();
    for (; !domainStep.done; domainStep = domainSteps.next()) yield emptyBatch;
    let resultRows = domainStep.value;
    if ('length' in resultRows && !this.#definition.isOrdered) {
      const rowSorting = sortItemsInSteps(resultRows, compareDomainRows);
      let sortedRows = rowSorting.next();
      for (; !sortedRows.done; sortedRows = rowSorting.next()) yield emptyBatch;
      resultRows = sortedRows.value;
    }
    const { node, execution } = this.#domainOpening;
    const answerLength = 'length' in resultRows ? resultRows.length : resultRows.count;
    if (node.limit !== null) execution.counters.hits += answerLength;
    for (let firstDomainRow = 0, outputCount; firstDomainRow < answerLength; firstDomainRow += outputCount) {
      outputCount = Math.min(domainOutputRows, answerLength - firstDomainRow);
      if ('length' in resultRows) outputCount = domainRowsWithin(resultRows, firstDomainRow, outputCount);
      yield 'length' in resultRows
        ? this.#batchOfRows(resultRows.slice(firstDomainRow, firstDomainRow + outputCount))
        : this.#batchOfColumns(resultRows, firstDomainRow, outputCount);
    }
    domainCall.hold(0);
  }

  #batchOfColumns(resultColumns: DomainColumns, first: number, count: number): Batch {
    const { nodeId, type, cells, score } = resultColumns.vectors(first, count);
    const evidenceTexts = repeatedText(canonicalJson(resultColumns.evidence), count);
    const domainVectors = [nodeId, type, ...cells, score, repeatedText(this.#definition.method, count), evidenceTexts];
    return { columns: domainVectors, selection: null, first: 0, count };
  }

  #batchOfRows(domainRows: readonly DomainRow[]): Batch {
    const { columns: ownColumns, method } = this.#definition;
    const domainVectors = [
      domainColumnOf('string', domainRows, (row) => row.nodeId),
      domainRows.every(({ type }) => type !== null && type === domainRows[0]!.type)
        ? repeatedText(domainRows[0]!.type!, domainRows.length)
        : domainColumnOf('string', domainRows, (row) => row.type),
      ...ownColumns.map(({ type }, i) => domainColumnOf(type, domainRows, (row) => row.cells[i] ?? null)),
      domainColumnOf('number', domainRows, (row) => row.score),
      domainRows.some((row) => row.method !== undefined)
        ? domainColumnOf('string', domainRows, (row) => row.method ?? method)
        : repeatedText(method, domainRows.length),
      evidenceVector(domainRows),
    ];
    return { columns: domainVectors, selection: null, first: 0, count: domainRows.length };
  }
}

/** Rows that share their evidence share its text. */
function evidenceVector(domainRows: readonly DomainRow[]): Vector {
  const firstEvidence = domainRows[0]?.evidence ?? null;
  if (domainRows.every(({ evidence }) => evidence === firstEvidence))
    return repeatedText(canonicalJson(firstEvidence), domainRows.length);
  let [lastEvidence, evidenceText]: [Json, string] = [null, 'null'];
  return domainColumnOf('json', domainRows, ({ evidence }) => {
    if (evidence !== lastEvidence) [lastEvidence, evidenceText] = [evidence, canonicalJson(evidence)];
    return evidenceText;
  });
}

function domainColumnOf(
  type: PlanColumn['type'],
  domainRows: readonly DomainRow[],
  domainCell: (domainRow: DomainRow) => Cell,
): Vector {
  const domainColumnBuilder = new VectorBuilder(type, Math.max(1, domainRows.length));
  for (const domainRow of domainRows) domainColumnBuilder.append(domainCell(domainRow));
  return domainColumnBuilder.build();
}

/** One text, `count` times. */
export function repeatedText(text: string, count: number): Vector {
  const repeatedBytes = Buffer.from(text);
  const repeatedHeap = new Uint8Array(repeatedBytes.length * count);
  const offsets = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) {
    repeatedHeap.set(repeatedBytes, i * repeatedBytes.length);
    offsets[i + 1] = (i + 1) * repeatedBytes.length;
  }
  return { kind: 'text', offsets, heap: repeatedHeap, nulls: null };
}

/** Best score first, rows without one last; then by node, and by system_from. */
function compareDomainRows(oneRow: DomainRow, otherRow: DomainRow): number {
  if (oneRow.score !== otherRow.score)
    return oneRow.score === null ? 1 : otherRow.score === null ? -1 : otherRow.score - oneRow.score;
  const nodeOrder = compareText(oneRow.nodeId ?? '', otherRow.nodeId ?? '');
  if (nodeOrder !== 0) return nodeOrder;
  const [oneSystemFrom, otherSystemFrom] = [oneRow.systemFrom ?? 0n, otherRow.systemFrom ?? 0n];
  return oneSystemFrom < otherSystemFrom ? -1 : oneSystemFrom > otherSystemFrom ? 1 : 0;
}
