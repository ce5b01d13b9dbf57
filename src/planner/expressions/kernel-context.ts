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

const parameterEncoder = new TextEncoder();
const noParameterBytes = new Uint8Array(0);
/** Nanoseconds of each part of a verdict, besides what its functions count. */
const truthPartCost = 250;

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
  readonly #constantCells: readonly Cell[];
  #numberSet: Set<number> | null = null;
  #bigintSet: Set<bigint> | null = null;
  #internedTexts: TextInterner | null = null;
  #stringSet: Set<Cell> | null = null;

  constructor(cells: readonly Cell[]) {
    this.#constantCells = cells;
    this.hasNull = cells.includes(null);
  }

  /** The items that a double holds exactly. */
  get numbers(): Set<number> {
    if (this.#numberSet) return this.#numberSet;
    const constantNumbers = new Set<number>();
    for (const cell of this.#constantCells) {
      if (typeof cell === 'number') constantNumbers.add(cell);
      else if (typeof cell === 'bigint') {
        const constantNumber = Number(cell);
        if (Number.isSafeInteger(constantNumber) || BigInt(constantNumber) === cell) constantNumbers.add(constantNumber);
      }
    }
    return (this.#numberSet = constantNumbers);
  }

  /** The items that are whole numbers. */
  get bigs(): Set<bigint> {
    if (this.#bigintSet) return this.#bigintSet;
    const constantBigints = new Set<bigint>();
    for (const cell of this.#constantCells) {
      if (typeof cell === 'bigint') constantBigints.add(cell);
      else if (typeof cell === 'number' && Number.isInteger(cell)) constantBigints.add(BigInt(cell));
    }
    return (this.#bigintSet = constantBigints);
  }

  has(cell: Cell): boolean {
    if (typeof cell === 'number') return this.numbers.has(cell);
    if (typeof cell === 'bigint') return this.bigs.has(cell);
    return (this.#stringSet ??= new Set(this.#constantCells)).has(cell);
  }

  get texts(): TextInterner {
    if (this.#internedTexts) return this.#internedTexts;
    const constantTexts = new TextInterner();
    for (const cell of this.#constantCells) if (typeof cell === 'string') constantTexts.ofText(cell);
    return (this.#internedTexts = constantTexts);
  }
}

/** Codes by code, made as they are asked for. */
export class CodeTable {
  readonly #makeVerdict: (code: number) => number;
  readonly #makeNullVerdict: () => number;
  #verdictsByCode = new Int32Array(64);
  #nullVerdict: number | null = null;

  constructor(makeVerdict: (code: number) => number, makeNullVerdict: () => number) {
    this.#makeVerdict = makeVerdict;
    this.#makeNullVerdict = makeNullVerdict;
  }

  get ofNull(): number {
    return (this.#nullVerdict ??= this.#makeNullVerdict());
  }

  verdictOf(code: number): number {
    const knownVerdict = code < this.#verdictsByCode.length ? this.#verdictsByCode[code]! : 0;
    if (knownVerdict !== 0) return knownVerdict - 2;
    const verdict = this.#makeVerdict(code);
    if (code >= this.#verdictsByCode.length) {
      const grownVerdicts = new Int32Array(Math.max(2 * this.#verdictsByCode.length, code + 1));
      grownVerdicts.set(this.#verdictsByCode);
      this.#verdictsByCode = grownVerdicts;
    }
    this.#verdictsByCode[code] = verdict + 2;
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
  readonly #contextRequest: ContextRequest;
  readonly #parameterCells: Cell[];
  /** Most expressions search no text. */
  readonly #searchRulesOf = (): SearchRules => this.rules;
  // Made when they are asked for: most executions have no use for any.
  #searchRules: SearchRules | null = null;
  #truthTables: Map<Bound, Map<Dictionary, TruthTable>> | null = null;
  #constantSets: Map<Bound, ConstantSet> | null = null;
  #textInterners: Map<Bound, TextInterner> | null = null;
  #likePatterns: Map<Bound, LikePattern> | null = null;
  #lookupFields: Map<Bound, LookupField> | null = null;
  readonly #subquerySets: CellSet[] = [];
  readonly #subqueryResults: Cell[] = [];
  /** Parameters that wait for the results of subqueries: the number of the last one each, and their own. */
  readonly #waitingParameters: { readonly last: number; readonly index: number }[] = [];

  constructor(contextRequest: ContextRequest) {
    this.#contextRequest = contextRequest;
    this.instant = contextRequest.instant;
    work.done = 0;
    this.#parameterCells = contextRequest.parameters.map((bound, index) => {
      const lastSubqueryIndex = lastSubquery(bound);
      if (lastSubqueryIndex < 0) return this.#evaluateBound(bound, null, []);
      this.#waitingParameters.push({ last: lastSubqueryIndex, index });
      return null;
    });
    this.parameters = this.#parameterCells.map(parameterOf);
  }

  /** How texts are searched. */
  get rules(): SearchRules {
    return (this.#searchRules ??= this.#contextRequest.rules?.() ?? noSearchRules);
  }

  get catalogue(): Catalogue {
    assert(this.#contextRequest.catalogue, 'what asks of the catalogue runs where there is one');
    return this.#contextRequest.catalogue();
  }

  /** Whether a constant is known before any subquery has run. */
  isKnown(bound: Bound): boolean {
    return bound.kind !== 'parameter' || !this.#waitingParameters.some(({ index }) => index === bound.index);
  }

  /** The value of a column-free expression of the plan. */
  constant(bound: Bound): Cell {
    return this.#evaluateBound(bound, null, this.#parameterCells);
  }

  /** Each value of a list. */
  constants(constantItems: readonly Bound[]): Cell[] {
    const constantCells: Cell[] = [];
    for (const constantItem of constantItems) {
      if (constantItem.kind !== 'literals') constantCells.push(this.constant(constantItem));
      else if (constantItem.first.kind === 'literal' && constantItem.first.as === 'value')
        for (let i = 0; i < constantItem.count; i++) constantCells.push(this.#contextRequest.literals[constantItem.slot + i]!);
      else for (let i = 0; i < constantItem.count; i++) constantCells.push(this.constant(literalAt(constantItem, i)));
    }
    return constantCells;
  }

  /** `site` is a predicate over one column; `rowCount` is how many rows will ask, so that a few don't pay for a large table. */
  truthTable(site: Bound, dictionary: Dictionary, rowCount: number): TruthTable {
    let siteTables = this.#truthTables?.get(site);
    if (!siteTables) (this.#truthTables ??= new Map()).set(site, (siteTables = new Map()));
    let dictionaryTable = siteTables.get(dictionary);
    if (!dictionaryTable) {
      const ofNull = (): number => verdictOfCell(this.#evaluateBound(site, null, this.#parameterCells));
      const verdictCost = truthPartCost * partsOf(site);
      let knownNullVerdict = 0;
      const truthTable: TruthTable = {
        bytes: noParameterBytes,
        get ofNull() {
          return (knownNullVerdict ||= ofNull());
        },
        fill: (code) => {
          work.done += verdictCost;
          const verdictCode = verdictOfCell(this.#evaluateBound(site, dictionary.text(code), this.#parameterCells));
          if (code < truthTable.bytes.length) truthTable.bytes[code] = verdictCode;
          return verdictCode;
        },
      };
      dictionaryTable = truthTable;
      siteTables.set(dictionary, dictionaryTable);
    }
    if (dictionaryTable.bytes.length < dictionary.size && rowCount * 16 >= dictionary.size) {
      const grownVerdicts = new Uint8Array(dictionary.size);
      grownVerdicts.set(dictionaryTable.bytes);
      dictionaryTable.bytes = grownVerdicts;
    }
    return dictionaryTable;
  }

  /** `site` yields a text of the one column that it reads: a dictionary's codes to those of its own texts, -1 for NULL. */
  codeTable(site: Bound, dictionary: Dictionary, interner: TextInterner): CodeTable {
    const codeOfCell = (cell: Cell): number => {
      const verdictCell = this.#evaluateBound(site, cell, this.#parameterCells);
      return verdictCell === null ? -1 : interner.ofText(String(verdictCell));
    };
    return new CodeTable(
      (dictionaryCode) => codeOfCell(dictionary.text(dictionaryCode)),
      () => codeOfCell(null),
    );
  }

  /** Made once, and not for each text that a condition is judged on. */
  readonly #likePatternOf = (likeExpression: Bound, text: string): LikePattern => {
    let likePattern = (this.#likePatterns ??= new Map()).get(likeExpression);
    if (!likePattern)
      this.#likePatterns.set(
        likeExpression,
        (likePattern = new LikePattern(text, likeExpression.kind === 'like' && likeExpression.escapes === true)),
      );
    return likePattern;
  };

  readonly #constantSetOf = (list: Bound): ConstantSet => this.constantSet(list);

  constantSet(site: Bound): ConstantSet {
    let siteSet = this.#constantSets?.get(site);
    if (!siteSet) {
      assert(site.kind === 'in', 'sets belong to IN lists');
      (this.#constantSets ??= new Map()).set(site, (siteSet = new ConstantSet(this.constants(site.items))));
    }
    return siteSet;
  }

  /** The rows of a subquery behind IN; they are there before anything runs that asks for them. */
  subquerySet(index: number): CellSet {
    return this.#subquerySets[index]!;
  }

  /** The next subquery's rows, as far as they are a set. */
  addSubquerySet(set: CellSet): void {
    this.#subquerySets.push(set);
    this.#subqueryResults.push(null);
    this.#settleParameters();
  }

  /** Adds the result of the next subquery. */
  addSubqueryResult(cell: Cell): void {
    this.#subquerySets.push(noSubquerySet);
    this.#subqueryResults.push(cell);
    this.#settleParameters();
  }

  #settleParameters(): void {
    const settledSubquery = this.#subqueryResults.length - 1;
    for (const { last: awaitedSubquery, index } of this.#waitingParameters) {
      if (awaitedSubquery !== settledSubquery) continue;
      work.done = 0;
      this.#parameterCells[index] = this.#evaluateBound(this.#contextRequest.parameters[index]!, null, this.#parameterCells);
      this.parameters[index] = parameterOf(this.#parameterCells[index]!);
    }
  }

  /** A field of a lookup table, for one expression of this execution. */
  lookupField(site: Bound): LookupField {
    let siteField = this.#lookupFields?.get(site);
    if (!siteField) {
      assert(site.kind === 'lookup', 'fields belong to lookups');
      (this.#lookupFields ??= new Map()).set(site, (siteField = new LookupField(site.table, site.field)));
    }
    return siteField;
  }

  /** Texts that an expression of this execution yields, by code. */
  interner(site: Bound): TextInterner {
    let interner = this.#textInterners?.get(site);
    if (!interner) (this.#textInterners ??= new Map()).set(site, (interner = new TextInterner()));
    return interner;
  }

  #evaluateBound(bound: Bound, cell: Cell, parameters: readonly Cell[]): Cell {
    if (bound.kind === 'parameter') return parameters[bound.index]!;
    const { literals, locationOf, instant } = this.#contextRequest;
    const [sets, results] = [this.#subquerySets, this.#subqueryResults];
    const catalogue = (): Catalogue => this.catalogue;
    return evaluate(bound, {
      catalogue,
      valuesOf: this.#constantSetOf,
      patternOf: this.#likePatternOf,
      literals,
      locationOf,
      instant,
      rules: this.#searchRulesOf,
      parameters,
      sets,
      results,
      cell,
    });
  }
}

const noSearchRules = new SearchRules(noSearchConfig, 'none', null);

const noSubquerySet: CellSet = { isEmpty: true, hasNull: false, has: () => false };

/** -1 where the expression asks for none. */
function lastSubquery(bound: Bound): number {
  let lastIndex = bound.kind === 'subquery' ? bound.index : -1;
  for (const childBound of childrenOf(bound)) lastIndex = Math.max(lastIndex, lastSubquery(childBound));
  return lastIndex;
}

function verdictOfCell(evaluatedCell: Cell): number {
  return evaluatedCell === null ? 4 : evaluatedCell === true ? 5 : 6;
}

class ParameterValue implements Parameter {
  readonly cell: Cell;
  readonly letter: Parameter['letter'];
  readonly narrow: Cell;
  #encodedText: Uint8Array | null = null;

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
    return (this.#encodedText ??= typeof this.cell === 'string' ? parameterEncoder.encode(this.cell) : noParameterBytes);
  }
}

function parameterOf(cell: Cell): Parameter {
  if (cell === null) return new ParameterValue(cell, 'z', null);
  switch (typeof cell) {
    case 'bigint': {
      const isSafeInteger = cell <= 9_007_199_254_740_991n && cell >= -9_007_199_254_740_991n;
      return new ParameterValue(cell, isSafeInteger ? 'i' : 'b', isSafeInteger ? Number(cell) : cell);
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
