/**
 * The context of generated kernels for one execution: the statement's constants in every form that a kernel may need, and a table
 * per dictionary that remembers a predicate's verdict on each code, so that each text is tested once.
 */
import { assert } from '../../errors.ts';
import type { Dictionary } from '../../log/values/columns.ts';
import type { Cell } from '../../log/values/value.ts';
import { noSearchConfig } from '../../projections/tenants/search-config.ts';
import { SearchRules } from './search-rules.ts';
import type { Literal, Location } from '../syntax/statement.ts';
import { type Bound, childrenOf, literalAt, partsOf } from './bound-expression.ts';
import { type CellSet, evaluate } from './evaluate.ts';
import type { Catalogue } from './functions/scalar-function.ts';
import { LikePattern } from './like.ts';
import { LookupField } from './lookup-table.ts';
import { TextInterner } from './text-interner.ts';
import { work } from './expression-cost.ts';

const encoder = new TextEncoder();
const noBytes = new Uint8Array(0);
/** Nanoseconds of each part of a verdict, besides what its functions count. */
const partCost = 250;

/** One constant. `letter` is part of a kernel's signature: null, int (exact in a double), big, number, text, boolean. */
export interface Parameter {
  readonly cell: Cell;
  readonly letter: 'z' | 'i' | 'b' | 'n' | 's' | 'o';
  /** An integer within 2^53 as a double, a boolean as 0 or 1, else the cell. */
  readonly narrow: Cell;
  readonly big: bigint;
  readonly bytes: Uint8Array;
}

/** Verdict of a predicate on one dictionary code: 0 not asked yet, else 4 plus 1 (true) or 2 (false). */
export interface TruthTable {
  bytes: Uint8Array;
  /** Verdict on NULL, asked for when a row has it. */
  readonly ofNull: number;
  fill(code: number): number;
}

/** Items of an IN list in the form that is asked for: of a hundred thousand, no other form is made. */
export class ConstantSet {
  readonly hasNull: boolean;
  readonly #cells: readonly Cell[];
  #numbers: Set<number> | null = null;
  #bigs: Set<bigint> | null = null;
  #texts: TextInterner | null = null;
  #strings: Set<Cell> | null = null;

  constructor(cells: readonly Cell[]) {
    this.#cells = cells;
    this.hasNull = cells.includes(null);
  }

  /** The items that a double holds exactly. */
  get numbers(): Set<number> {
    if (this.#numbers) return this.#numbers;
    const numbers = new Set<number>();
    for (const cell of this.#cells) {
      if (typeof cell === 'number') numbers.add(cell);
      else if (typeof cell === 'bigint') {
        const number = Number(cell);
        if (Number.isSafeInteger(number) || BigInt(number) === cell) numbers.add(number);
      }
    }
    return (this.#numbers = numbers);
  }

  /** The items that are whole numbers. */
  get bigs(): Set<bigint> {
    if (this.#bigs) return this.#bigs;
    const bigs = new Set<bigint>();
    for (const cell of this.#cells) {
      if (typeof cell === 'bigint') bigs.add(cell);
      else if (typeof cell === 'number' && Number.isInteger(cell)) bigs.add(BigInt(cell));
    }
    return (this.#bigs = bigs);
  }

  has(cell: Cell): boolean {
    if (typeof cell === 'number') return this.numbers.has(cell);
    if (typeof cell === 'bigint') return this.bigs.has(cell);
    return (this.#strings ??= new Set(this.#cells)).has(cell);
  }

  get texts(): TextInterner {
    if (this.#texts) return this.#texts;
    const texts = new TextInterner();
    for (const cell of this.#cells) if (typeof cell === 'string') texts.ofText(cell);
    return (this.#texts = texts);
  }
}

/** Codes by code, made as they are asked for. */
export class CodeTable {
  readonly #make: (code: number) => number;
  readonly #makeNull: () => number;
  #known = new Int32Array(64);
  #ofNull: number | null = null;

  constructor(make: (code: number) => number, makeNull: () => number) {
    this.#make = make;
    this.#makeNull = makeNull;
  }

  get ofNull(): number {
    return (this.#ofNull ??= this.#makeNull());
  }

  verdictOf(code: number): number {
    const known = code < this.#known.length ? this.#known[code]! : 0;
    if (known !== 0) return known - 2;
    const verdict = this.#make(code);
    if (code >= this.#known.length) {
      const grown = new Int32Array(Math.max(2 * this.#known.length, code + 1));
      grown.set(this.#known);
      this.#known = grown;
    }
    this.#known[code] = verdict + 2;
    return verdict;
  }
}

export interface ContextRequest {
  readonly literals: readonly Literal[];
  readonly locationOf: (slot: number) => Location;
  readonly instant: bigint;
  /** How texts are searched; absent: by their words alone. */
  readonly rules?: () => SearchRules;
  /** The catalogue that the caller sees; absent where no kernel needs it. */
  readonly catalogue?: () => Catalogue;
  /** Column-free expressions of the plan. */
  readonly parameters: readonly Bound[];
}

export class KernelContext {
  readonly parameters: Parameter[];
  readonly instant: bigint;
  readonly #request: ContextRequest;
  readonly #cells: Cell[];
  /** Most expressions search no text. */
  readonly #rulesOf = (): SearchRules => this.rules;
  // Made when they are asked for: most executions have no use for any.
  #rules: SearchRules | null = null;
  #tables: Map<Bound, Map<Dictionary, TruthTable>> | null = null;
  #sets: Map<Bound, ConstantSet> | null = null;
  #interners: Map<Bound, TextInterner> | null = null;
  #patterns: Map<Bound, LikePattern> | null = null;
  #lookups: Map<Bound, LookupField> | null = null;
  readonly #subquerySets: CellSet[] = [];
  readonly #results: Cell[] = [];
  /** Parameters that wait for the results of subqueries: the number of the last one each, and their own. */
  readonly #waiting: { readonly last: number; readonly index: number }[] = [];

  constructor(request: ContextRequest) {
    this.#request = request;
    this.instant = request.instant;
    work.done = 0;
    this.#cells = request.parameters.map((bound, index) => {
      const last = lastSubquery(bound);
      if (last < 0) return this.#evaluate(bound, null, []);
      this.#waiting.push({ last, index });
      return null;
    });
    this.parameters = this.#cells.map(parameterOf);
  }

  /** How texts are searched. */
  get rules(): SearchRules {
    return (this.#rules ??= this.#request.rules?.() ?? noRules);
  }

  get catalogue(): Catalogue {
    assert(this.#request.catalogue, 'what asks of the catalogue runs where there is one');
    return this.#request.catalogue();
  }

  /** Whether a constant is known before any subquery has run. */
  isKnown(bound: Bound): boolean {
    return bound.kind !== 'parameter' || !this.#waiting.some(({ index }) => index === bound.index);
  }

  /** The value of a column-free expression of the plan. */
  constant(bound: Bound): Cell {
    return this.#evaluate(bound, null, this.#cells);
  }

  /** Each value of a list. */
  constants(items: readonly Bound[]): Cell[] {
    const cells: Cell[] = [];
    for (const item of items) {
      if (item.kind !== 'literals') cells.push(this.constant(item));
      else if (item.first.kind === 'literal' && item.first.as === 'value')
        for (let i = 0; i < item.count; i++) cells.push(this.#request.literals[item.slot + i]!);
      else for (let i = 0; i < item.count; i++) cells.push(this.constant(literalAt(item, i)));
    }
    return cells;
  }

  /** `site` is a predicate over one column; `rows` is how many rows will ask, so that a few don't pay for a large table. */
  truthTable(site: Bound, dictionary: Dictionary, rows: number): TruthTable {
    let tables = this.#tables?.get(site);
    if (!tables) (this.#tables ??= new Map()).set(site, (tables = new Map()));
    let table = tables.get(dictionary);
    if (!table) {
      const ofNull = (): number => verdict(this.#evaluate(site, null, this.#cells));
      const cost = partCost * partsOf(site);
      let known = 0;
      const truthTable: TruthTable = {
        bytes: noBytes,
        get ofNull() {
          return (known ||= ofNull());
        },
        fill: (code) => {
          work.done += cost;
          const verdictCode = verdict(this.#evaluate(site, dictionary.text(code), this.#cells));
          if (code < truthTable.bytes.length) truthTable.bytes[code] = verdictCode;
          return verdictCode;
        },
      };
      table = truthTable;
      tables.set(dictionary, table);
    }
    if (table.bytes.length < dictionary.size && rows * 16 >= dictionary.size) {
      const bytes = new Uint8Array(dictionary.size);
      bytes.set(table.bytes);
      table.bytes = bytes;
    }
    return table;
  }

  /** `site` yields a text of the one column that it reads: a dictionary's codes to those of its own texts, -1 for NULL. */
  codeTable(site: Bound, dictionary: Dictionary, interner: TextInterner): CodeTable {
    const code = (cell: Cell): number => {
      const verdictCell = this.#evaluate(site, cell, this.#cells);
      return verdictCell === null ? -1 : interner.ofText(String(verdictCell));
    };
    return new CodeTable(
      (of) => code(dictionary.text(of)),
      () => code(null),
    );
  }

  /** Made once, and not for each text that a condition is judged on. */
  readonly #patternOf = (like: Bound, text: string): LikePattern => {
    let pattern = (this.#patterns ??= new Map()).get(like);
    if (!pattern) this.#patterns.set(like, (pattern = new LikePattern(text, like.kind === 'like' && like.escapes === true)));
    return pattern;
  };

  readonly #valuesOf = (list: Bound): ConstantSet => this.constantSet(list);

  constantSet(site: Bound): ConstantSet {
    let set = this.#sets?.get(site);
    if (!set) {
      assert(site.kind === 'in', 'sets belong to IN lists');
      (this.#sets ??= new Map()).set(site, (set = new ConstantSet(this.constants(site.items))));
    }
    return set;
  }

  /** The rows of a subquery behind IN; they are there before anything runs that asks for them. */
  subquerySet(index: number): CellSet {
    return this.#subquerySets[index]!;
  }

  /** The next subquery's rows, as far as they are a set. */
  addSubquerySet(set: CellSet): void {
    this.#subquerySets.push(set);
    this.#results.push(null);
    this.#settle();
  }

  /** Adds the result of the next subquery. */
  addSubqueryResult(cell: Cell): void {
    this.#subquerySets.push(noSet);
    this.#results.push(cell);
    this.#settle();
  }

  #settle(): void {
    const known = this.#results.length - 1;
    for (const { last, index } of this.#waiting) {
      if (last !== known) continue;
      work.done = 0;
      this.#cells[index] = this.#evaluate(this.#request.parameters[index]!, null, this.#cells);
      this.parameters[index] = parameterOf(this.#cells[index]!);
    }
  }

  /** A field of a lookup table, for one expression of this execution. */
  lookupField(site: Bound): LookupField {
    let field = this.#lookups?.get(site);
    if (!field) {
      assert(site.kind === 'lookup', 'fields belong to lookups');
      (this.#lookups ??= new Map()).set(site, (field = new LookupField(site.table, site.field)));
    }
    return field;
  }

  /** Texts that an expression of this execution yields, by code. */
  interner(site: Bound): TextInterner {
    let interner = this.#interners?.get(site);
    if (!interner) (this.#interners ??= new Map()).set(site, (interner = new TextInterner()));
    return interner;
  }

  #evaluate(bound: Bound, cell: Cell, parameters: readonly Cell[]): Cell {
    if (bound.kind === 'parameter') return parameters[bound.index]!;
    const { literals, locationOf, instant } = this.#request;
    const [sets, results] = [this.#subquerySets, this.#results];
    const catalogue = (): Catalogue => this.catalogue;
    return evaluate(bound, {
      catalogue,
      valuesOf: this.#valuesOf,
      patternOf: this.#patternOf,
      literals,
      locationOf,
      instant,
      rules: this.#rulesOf,
      parameters,
      sets,
      results,
      cell,
    });
  }
}

const noRules = new SearchRules(noSearchConfig, 'none', null);

const noSet: CellSet = { isEmpty: true, hasNull: false, has: () => false };

/** -1 where the expression asks for none. */
function lastSubquery(bound: Bound): number {
  let last = bound.kind === 'subquery' ? bound.index : -1;
  for (const child of childrenOf(bound)) last = Math.max(last, lastSubquery(child));
  return last;
}

function verdict(value: Cell): number {
  return value === null ? 4 : value === true ? 5 : 6;
}

class ParameterValue implements Parameter {
  readonly cell: Cell;
  readonly letter: Parameter['letter'];
  readonly narrow: Cell;
  #bytes: Uint8Array | null = null;

  constructor(cell: Cell, letter: Parameter['letter'], narrow: Cell) {
    this.cell = cell;
    this.letter = letter;
    this.narrow = narrow;
  }

  get big(): bigint {
    return typeof this.cell === 'bigint' ? this.cell : 0n;
  }

  /** Made when asked for: of a list of many thousands, nothing asks. */
  get bytes(): Uint8Array {
    return (this.#bytes ??= typeof this.cell === 'string' ? encoder.encode(this.cell) : noBytes);
  }
}

function parameterOf(cell: Cell): Parameter {
  if (cell === null) return new ParameterValue(cell, 'z', null);
  switch (typeof cell) {
    case 'bigint': {
      const safe = cell <= 9_007_199_254_740_991n && cell >= -9_007_199_254_740_991n;
      return new ParameterValue(cell, safe ? 'i' : 'b', safe ? Number(cell) : cell);
    }
    case 'number':
      return new ParameterValue(cell, 'n', cell);
    case 'string':
      return new ParameterValue(cell, 's', cell);
    case 'boolean':
      return new ParameterValue(cell, 'o', cell ? 1 : 0);
    default:
      assert(false, 'a constant is a scalar');
  }
}
