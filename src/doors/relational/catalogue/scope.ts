/** What expressions are compiled against: sources in scope, one frame of their rows, and the bounds of a run. */
import { ServiceError } from '../../../errors.ts';
import { didYouMean } from '../../../errors.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { misread } from './tokens.ts';
import type { FunctionContext } from './functions.ts';
import type { Row } from '../../../planner/virtual/maker.ts';
import type { Relation } from '../../../planner/virtual/relations.ts';
import type { Path, Select } from './trees.ts';
import type { Value } from '../../../planner/virtual/types.ts';

export interface PlanColumn {
  readonly name: string;
  readonly type: string;
}

export interface Plan {
  readonly columns: readonly PlanColumn[];
  /** Whether it reads rows of the questions around it. */
  readonly isCorrelated: () => boolean;
  /** Yields where others may have their turn. */
  rows(outer: Frame | null): Pausing<Row[]>;
}

export type Pausing<T> = Generator<void, T, void>;

/** One row of each source, by its slot; null: of the far side of a LEFT JOIN there is none. */
export interface Frame {
  readonly rows: (Row | null)[];
  /** What aggregates, windows and sets came to, by the slot that they were given. */
  readonly extras: Value[];
  readonly outer: Frame | null;
}

export interface Expression {
  readonly type: string;
  of(frame: Frame): Value;
  /** A literal, or the number of a parameter, whose type is what stands beside it. */
  readonly open?: { readonly text: string | null } | { readonly parameter: number };
  /** It is nothing but a column of a source of its own scope. */
  readonly column?: { readonly slot: number; readonly index: number };
}

export interface Source {
  readonly slot: number;
  readonly alias: string;
  readonly columns: readonly PlanColumn[];
  /** Columns that USING has merged into those of another source. */
  readonly merged: Set<string>;
  /** Number of the relation that it is: each of its rows has it as `tableoid`. */
  readonly relation: number | null;
}

/** Bits of slots: one of a number's 31 each. */
export const sourcesMax = 30;

/** The sources of one SELECT, within those around it. */
export class Scope {
  readonly sources: Source[] = [];
  readonly outer: Scope | null;
  /** Questions that WITH has named, and those around them. */
  readonly named: ReadonlyMap<string, NamedPlan>;
  /** Slots of sources that were looked at since it was last set. */
  touched = 0;
  /** Something in it reads a row of a scope around it. */
  isCorrelated = false;
  extras = 0;

  constructor(outer: Scope | null, named: ReadonlyMap<string, NamedPlan>) {
    this.outer = outer;
    this.named = named;
  }

  add(alias: string, columns: readonly PlanColumn[], relation: number | null = null): Source {
    if (this.sources.length === sourcesMax)
      throw new ServiceError('REL_TOO_LARGE', `a question of the catalogue has at most ${sourcesMax} sources in one FROM`);
    const source = { slot: this.sources.length, alias, columns, merged: new Set<string>(), relation };
    this.sources.push(source);
    return source;
  }

  /** Reads rows that change while the scope stays. */
  changesWithin(scope: Scope | null): void {
    for (const each of this.#outwards()) {
      if (each === scope) return;
      each.isCorrelated = true;
    }
  }

  /** Finds a column, here or in the scopes around. */
  column(path: Path, at: number, text: string): Expression {
    const name = path.at(-1)!;
    const of = path.length > 1 ? path.at(-2)! : null;
    const around = [...this.#outwards()];
    for (const [depth, scope] of around.entries()) {
      const found = scope.#find(of, name, at, text);
      if (!found) continue;
      scope.touched |= 1 << found.slot;
      for (const inner of around.slice(0, depth)) inner.isCorrelated = true;
      return reading(found, depth);
    }
    const { relation } = (name === 'tableoid' && this.sources.find((each) => each.alias === of)) || { relation: null };
    if (relation !== null) return { type: 'oid', of: () => relation };
    const known = this.sources.flatMap(({ alias, columns }) =>
      of === null || alias === of ? columns.map((each) => each.name) : [],
    );
    throw refusal(
      'REL_UNKNOWN_COLUMN',
      `there is no column ${JSON.stringify(path.join('.'))}${didYouMean(name, known)}`,
      at,
      text,
    );
  }

  /** Itself, and those around it from the nearest on. */
  *#outwards(): Generator<Scope> {
    yield this;
    if (this.outer) yield* this.outer.#outwards();
  }

  #find(of: string | null, name: string, at: number, text: string): { slot: number; index: number; type: string } | null {
    let found: { slot: number; index: number; type: string } | null = null;
    for (const { alias, columns, slot, merged } of this.sources) {
      if (of !== null && alias !== of) continue;
      if (of === null && merged.has(name)) continue;
      const index = columns.findIndex((each) => each.name === name);
      if (index < 0) continue;
      if (found) throw refusal('REL_PARSE', `${JSON.stringify(name)} is a column of several sources: say of which`, at, text);
      found = { slot, index, type: columns[index]!.type };
    }
    return found;
  }
}

function reading({ slot, index, type }: { slot: number; index: number; type: string }, depth: number): Expression {
  if (depth === 0) return { type, of: ({ rows }) => rows[slot]?.[index] ?? null, column: { slot, index } };
  return {
    type,
    of: (frame) => {
      let at = frame;
      for (let i = 0; i < depth; i++) at = at.outer!;
      return at.rows[slot]?.[index] ?? null;
    },
  };
}

export function refusal(
  code: 'REL_UNKNOWN_COLUMN' | 'REL_PARSE' | 'REL_NOT_IMPLEMENTED' | 'REL_TYPE_MISMATCH',
  what: string,
  at: number,
  text: string,
): ServiceError {
  const { line, column } = misread(text, at, what).facts;
  return new ServiceError(code, what, { line: line!, column: column! });
}

export interface NamedPlan {
  readonly columns: readonly PlanColumn[];
  /** Its rows are others from one time to the next: whatever reads it inside of this scope has to be asked anew. */
  readonly changesWithin: () => Scope | null | false;
  rows(): Pausing<readonly Row[]>;
}

/** What all parts of one question share. */
export interface Environment extends FunctionContext {
  /** The question, for the places of what is wrong in it. */
  readonly text: string;
  readonly work: Work;
  readonly parameters: Parameters;
  select(select: Select, outer: Scope | null, named: ReadonlyMap<string, NamedPlan>): Plan;
}

/** `$1`, `$2` …: values, and the types that what stands beside them says. */
export class Parameters {
  readonly stated: readonly (ColumnType | null)[];
  readonly values: readonly Value[];
  readonly found: (string | undefined)[] = [];
  count = 0;

  constructor(stated: readonly (ColumnType | null)[], values: readonly Value[]) {
    this.stated = stated;
    this.values = values;
  }
}

const stepsMax = 5_000_000;
/** For a question within an expression that reads the row at hand, which is answered in one go. */
const innerStepsMax = 30_000;
const turnSteps = 1_024;
const rowsMax = 500_000;

/** Bounds of one run, and rows of relations that were read before. */
export class Work {
  #steps = 0;
  #turnBegan = 0;
  /** A row is being evaluated that can be evaluated anew. */
  #mayWait = false;
  #drains = 0;
  readonly #rows = new Map<Relation, readonly Row[]>();
  readonly #scans = new Map<Relation, number>();
  readonly #indexes = new Map<string, ReadonlyMap<Value, readonly Row[]>>();
  readonly #context: FunctionContext;

  constructor(context: FunctionContext) {
    this.#context = context;
  }

  get steps(): number {
    return this.#steps;
  }

  step(): void {
    if (++this.#steps > stepsMax) throw tooLarge();
  }

  /** Whether somebody else is to have a turn here: every few steps. */
  endsTurn(): boolean {
    if (this.#steps - this.#turnBegan < turnSteps) return false;
    this.#turnBegan = this.#steps;
    return true;
  }

  checkRows(count: number): void {
    if (count > rowsMax) throw tooLarge();
  }

  /** Rows of a relation; kept from the second time on. */
  *scan(relation: Relation): Pausing<Iterable<Row>> {
    const kept = this.#rows.get(relation);
    if (kept) return kept;
    const times = (this.#scans.get(relation) ?? 0) + 1;
    this.#scans.set(relation, times);
    return times === 1 ? relation.rows(this.#context.facts) : yield* this.#keep(relation);
  }

  *lookUp(relation: Relation, column: number, key: Value): Pausing<readonly Row[]> {
    if (key === null) return [];
    const name = `${relation.oid}.${column}`;
    let index = this.#indexes.get(name);
    const { facts } = this.#context;
    const found = index ? null : relation.found(facts, relation.columns[column]!.name, key);
    if (found) {
      const times = (this.#scans.get(relation) ?? 0) + 1;
      this.#scans.set(relation, times);
      // A few tables are asked for one by one; for many it is cheaper to have them all.
      if (times < 64) return [...found].map((cells) => relation.rowOf(cells)).filter((row) => row[column] === key);
    }
    if (!index) {
      index = indexed(yield* this.#keep(relation), column);
      this.#indexes.set(name, index);
    }
    return index.get(key) ?? [];
  }

  *#keep(relation: Relation): Pausing<readonly Row[]> {
    const known = this.#rows.get(relation);
    if (known) return known;
    this.needs(() => this.#keep(relation));
    const rows: Row[] = [];
    for (const row of relation.rows(this.#context.facts)) {
      this.step();
      rows.push(row);
      this.checkRows(rows.length);
      if (this.endsTurn()) yield;
    }
    this.#rows.set(relation, rows);
    return rows;
  }

  /** Evaluates something of a row. What has to be made first, for all rows, is made in turns; then it is evaluated anew. */
  *evaluated<T>(run: () => T): Pausing<T> {
    if (this.#drains > 0) return run();
    for (;;) {
      let needed: Needed;
      this.#mayWait = true;
      try {
        return run();
      } catch (error) {
        if (!(error instanceof Needed)) throw error;
        needed = error;
      } finally {
        this.#mayWait = false;
      }
      yield* needed.make();
    }
  }

  /** Called before something is made that is then kept: where that can wait for its own turns, nothing else is done here. */
  needs(make: () => Pausing<unknown>): void {
    if (this.#mayWait) throw new Needed(make);
  }

  /** Runs a question within an expression to its end. */
  drained<T>(run: Pausing<T>): T {
    const most = this.#steps + innerStepsMax;
    const turnBegan = this.#turnBegan;
    this.#drains++;
    try {
      for (;;) {
        const { done, value } = run.next();
        if (this.#steps > most) throw tooLarge();
        if (done) return value;
      }
    } finally {
      this.#drains--;
      // Nobody else had a turn: what was done here counts in the turn around it.
      this.#turnBegan = turnBegan;
    }
  }
}

/** Leaves the evaluation of a row. */
class Needed {
  readonly make: () => Pausing<unknown>;

  constructor(make: () => Pausing<unknown>) {
    this.make = make;
  }
}

export function indexed(rows: readonly Row[], column: number): ReadonlyMap<Value, readonly Row[]> {
  const index = new Map<Value, Row[]>();
  for (const row of rows) {
    const key = row[column]!;
    const known = index.get(key);
    if (known) known.push(row);
    else index.set(key, [row]);
  }
  return index;
}

function tooLarge(): ServiceError {
  return new ServiceError(
    'REL_TOO_LARGE',
    'the question of the catalogue looks at too many rows: name the tables that it is about',
  );
}
