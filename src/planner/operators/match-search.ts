/**
 * Rows of a type with the result of MATCH for each. The first pass goes over all visible cells of the searched columns, by index:
 * it gives the figures for scores, and the rows that match. The second pass reads those rows, or all of them where rows without a
 * match are needed too. Both passes see only rows that the gate lets out; for blocks without an index, one is made on the fly.
 */
import { ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { type GovernedBlock, indexTexts, type SearchableTexts } from '../../governance/text-search/visible-texts.ts';
import type { Candidates, SegmentRows, ScanRequest } from '../../projections/access-paths.ts';
import type { SearchNode } from '../logical-plan.ts';
import { parseTextQuery, rarestOf, type TextQuery } from '../../governance/text-search/text-query.ts';
import { TopScores } from '../../governance/text-search/top-scores.ts';
import { type BlockMatches, matchOf, noScores, noMatches, scoreOf } from './block-matches.ts';
import {
  bitCount,
  eachBit,
  type Matching,
  rowsIn,
  type Scoring,
  type BlockSearch,
} from '../../governance/text-search/block-search.ts';
import { ResultColumns } from './match-columns.ts';
import { type Batch, emptyBatch, type Execution, firstRows, type Operator } from './operator.ts';
import { type ScanBatch, ScanOperator } from './scan.ts';

/** Rows that are indexed in one go where they come without an index. */
const blockRows = 512;
/** Best rows beyond which all that match are read. */
const bestMax = 10_000;
/** Beyond this many words, results are dropped and found again when needed. */
const leavesKept = 16;
/**
 * Scores of one segment's block, shared between searches and used within one turn only: arrays per search would keep the garbage
 * collector busy. Zeros between turns.
 */
const sums = new Float64Array(65_536);
/** Matching rows of one block, shared likewise. */
const matchingRows = new Int32Array(65_536);

/** The indexed rows of one block, with the searches over their texts. */
interface SearchBlock {
  /** Number of the first row of its indexes at its place. */
  readonly base: number;
  readonly rows: number;
  /** The search of each match. */
  readonly searches: readonly BlockSearch[];
  matches: BlockMatches | null;
}

export class SearchOperator implements Operator {
  readonly #node: SearchNode;
  readonly #execution: Execution;
  /** The queries, by match and column. */
  readonly #queries: readonly (readonly TextQuery[])[];
  /** Columns that are searched, by number in the scan. */
  readonly #searched: readonly number[];
  readonly #work: Generator<Batch, void>;
  readonly #blocksOfSegment = new Map<object, SearchBlock[]>();
  /** By match: the figures for scores. */
  readonly #scorings: Writable<Scoring>[];
  /** The boosts, by match and column. */
  readonly #boosts: readonly (readonly (number | null)[])[];
  /** The language whose stems are sought, where the indexes have those of another. */
  readonly #language: string | null;
  /** By match: how its words combine. Which of them is the rarest is known after the first pass. */
  #shapes: readonly TextQuery['shape'][];
  readonly #results: ResultColumns;
  #scan: ScanOperator | null = null;
  #first: Iterator<GovernedBlock, void> | null = null;
  #heldBytes = 0;
  /** Scores of a block that takes more than one turn: the shared array must not be held across turns. */
  #sums: Float64Array | null = null;

  constructor(node: SearchNode, execution: Execution) {
    this.#node = node.ranks && execution.prepared === null ? { ...node, required: [0] } : node;
    this.#execution = execution;
    const { snapshot } = execution;
    for (const { columns } of node.matches) {
      for (const { name } of columns.map((column) => node.input.columns[column]!)) {
        if (!node.input.masked.has(name) || !snapshot.hides(node.input.type, name)) continue;
        throw new ServiceError('REL_MASKED_COLUMN', `column ${JSON.stringify(name)} is masked: MATCH can't search it`);
      }
    }
    const { rules } = execution.kernels;
    const textRules = rules.rulesFor(snapshot.catalog.type(node.input.type));
    this.#language = textRules.language === textRules.indexed ? null : textRules.language;
    this.#queries = node.matches.map(({ columns, slot, mode }) =>
      columns.map((column) => {
        const typo = rules.typo(node.input.columns[column]!.name);
        return parseTextQuery(String(execution.literals[slot] ?? ''), { mode, typo, rules: textRules });
      }),
    );
    this.#searched = [...new Set(node.matches.flatMap(({ columns }) => columns))];
    this.#scorings = node.matches.map(({ columns, weights }, i) => ({
      rows: 0,
      frequencies: this.#queries[i]![0]!.leaves.map(() => 0),
      averages: columns.map(() => 0),
      weights: weights.map((slot, k) => this.#factor(slot) ?? this.#weight(columns[k]!)),
      tables: [],
    }));
    this.#boosts = node.matches.map(({ boosts }) => boosts.map((slot) => this.#factor(slot)));
    this.#shapes = this.#queries.map(([query]) => query!.shape);
    this.#results = new ResultColumns(node.matches.length, node.scored);
    this.#work = this.#run();
  }

  next(): Batch | null {
    const step = this.#work.next();
    return step.done === true ? null : step.value;
  }

  close(): void {
    this.#work.return();
    this.#first?.return?.();
    this.#scan?.close();
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, 0);
  }

  #weight(column: number): number {
    const { input } = this.#node;
    return this.#execution.kernels.rules.weight(input.type, input.columns[column]!.name) ?? 1;
  }

  #factor(slot: number | null): number | null {
    return slot === null ? null : Number(this.#execution.literals[slot]);
  }

  *#run(): Generator<Batch, void> {
    const isWhole = yield* this.#look();
    const best = this.#best();
    const candidates = !isWhole || this.#node.required.length === 0 ? null : best ? yield* this.#among(best) : this.#asComeTo();
    const { input, unread, matches, required } = this.#node;
    // Where every row read is known to match, its texts need not be read.
    const isKnown = candidates !== null && this.#isTold && required.length === matches.length;
    const columns = isKnown ? input.columns.filter((_, i) => !unread.includes(i)) : input.columns;
    this.#scan = new ScanOperator({ ...input, columns }, this.#execution, 0, { placed: true, ...(candidates && { candidates }) });
    for (let batch = this.#scan.next(); batch !== null; batch = this.#scan.next()) {
      yield batch.count === 0 ? emptyBatch : isKnown ? yield* this.#matching(batch) : yield* this.#addResults(batch);
    }
  }

  /** Whether no search excludes words: a row without a text, which no index has, can then match nothing. */
  get #isTold(): boolean {
    return !this.#queries.some(([query]) => query!.scores.includes(false));
  }

  /** Goes through all that may be seen. False where some of it has no place to come back to. */
  *#look(): Generator<Batch, boolean> {
    const { input, scored, matches } = this.#node;
    const { snapshot, time, pinned } = this.#execution;
    const names = this.#searched.map((column) => input.columns[column]!.name);
    const request: ScanRequest = {
      type: input.type,
      columns: pinned === null ? names : [...names, 'system_from'],
      time,
      blockRows,
      indexed: names,
      ...(this.#goesByBuilt && { builtOnly: 'begun' as const }),
    };
    /** By match and column: terms of all rows that are shown. */
    const totals = matches.map(({ columns }) => columns.map(() => ({ held: 0, total: 0 })));
    let isWhole = true;
    /** Places of which some rows came without an index: all of their rows are judged by their own texts. */
    const unindexed = new Set<object>();
    const isCounted = scored || this.#shapes.includes('rarest');
    this.#first = snapshot.rows.scan(request);
    for (let step = this.#first.next(); step.done !== true; step = this.#first.next()) {
      const block = pinned === null ? step.value : writtenBefore(step.value, pinned);
      if (block.count > 0) {
        const { placed, texts } = block;
        if (texts?.isComing && this.#goesByBuilt) {
          this.#leaveOut();
          yield emptyBatch;
          continue;
        }
        const indexed = texts?.open(names, block.count) ?? null;
        const searched = indexed ?? (yield* this.#makeTexts(block, block.columns));
        if (this.#language !== null && this.#node.matches.some(({ mode }) => mode === 'STEMMED')) {
          for (const _ of searched.stem(this.#language)) yield emptyBatch;
        }
        const searchBlock = this.#searchBlock(searched, texts?.base ?? 0);
        if (isCounted) {
          yield* this.#seek(searchBlock);
          this.#count(searchBlock, totals);
        }
        if (indexed !== null) this.#keep(placed!.segmentKey, searchBlock);
        else {
          isWhole = false;
          if (placed) unindexed.add(placed.segmentKey);
        }
      }
      yield emptyBatch;
    }
    this.#first = null;
    for (const segment of unindexed) this.#blocksOfSegment.delete(segment);
    for (const [i, scoring] of this.#scorings.entries()) {
      scoring.averages = totals[i]!.map(({ held, total }) => (held === 0 ? 1 : total / held));
    }
    this.#shapes = this.#shapes.map((shape, i) => (shape === 'rarest' ? rarestOf(this.#scorings[i]!.frequencies) : shape));
    return isWhole;
  }

  /** Rows that all required matches hold for are sought among those indexed by now. */
  get #goesByBuilt(): boolean {
    return this.#node.required.length > 0 && this.#execution.unbuilt.has(this.#node.input.type);
  }

  #leaveOut(): void {
    const { counters, notices } = this.#execution;
    if (counters.leftOut++ > 0) return;
    notices.push(`the texts of ${this.#node.input.type} are being indexed: rows that are not indexed yet are left out`);
  }

  #searchBlock(texts: SearchableTexts, base: number): SearchBlock {
    const { input, matches } = this.#node;
    const searches = matches.map(({ columns }, i) =>
      texts.search(
        columns.map((column) => input.columns[column]!.name),
        this.#queries[i]!,
      ),
    );
    return { base, rows: searches[0]!.rows, searches, matches: null };
  }

  #keep(segment: object, block: SearchBlock): void {
    const known = this.#blocksOfSegment.get(segment);
    if (known) known.push(block);
    else this.#blocksOfSegment.set(segment, [block]);
  }

  /** Adds up the figures for scores from one block. */
  #count(block: SearchBlock, totals: readonly (readonly { held: number; total: number }[])[]): void {
    for (const [i, search] of block.searches.entries()) {
      const scoring = this.#scorings[i]!;
      const { rows, fields } = search.figures();
      scoring.rows += rows;
      fields.forEach(({ held, total }, field) => {
        totals[i]![field]!.held += held;
        totals[i]![field]!.total += total;
      });
      scoring.frequencies = scoring.frequencies.map((sum, leaf) => sum + search.frequency(leaf));
    }
    this.#release(block);
  }

  /** Makes the indexes of a block that has none: row k is at place k. Vectors are by searched column. */
  *#makeTexts(rows: Pick<Batch, 'selection' | 'first' | 'count'>, vectors: readonly Vector[]): Generator<Batch, SearchableTexts> {
    const columns = this.#searched.map((column, i) => ({ ...this.#node.input.columns[column]!, vector: vectors[i]! }));
    const steps = indexTexts(columns, rows, this.#execution.snapshot.textLanguage);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) yield emptyBatch;
    return step.value;
  }

  /** The best scores, where only the best rows are wanted. */
  #best(): TopScores | null {
    const { best, scored } = this.#node;
    if (best === null || !scored || !this.#isTold) return null;
    const wanted = firstRows(best.limit, best.offset, this.#execution);
    return wanted <= bestMax ? new TopScores(wanted) : null;
  }

  /** Rows that match every required MATCH, found as the reader gets to their place: the first rows don't wait for the others. */
  #asComeTo(): Candidates {
    const known = new Map<object, Int32Array>();
    const working = new Map<object, Generator<Batch, Int32Array>>();
    const findIn = (segment: object, blocks: readonly SearchBlock[]): Int32Array | null => {
      let work = working.get(segment);
      if (!work) working.set(segment, (work = this.#requiredOf(blocks)));
      const step = work.next();
      if (step.done !== true) return null;
      known.set(segment, step.value);
      return step.value;
    };
    return {
      get: (segment) => {
        const blocks = this.#blocksOfSegment.get(segment);
        return blocks && (known.get(segment) ?? findIn(segment, blocks));
      },
    };
  }

  *#requiredOf(blocks: readonly SearchBlock[]): Generator<Batch, Int32Array> {
    let all: Int32Array = new Int32Array(0);
    for (const block of blocks) {
      const { rows } = yield* this.#findRequired(block, null);
      this.#hold(rows);
      all = all.length === 0 ? rowIdsInSegment(rows, block) : concatenate(all, rowIdsInSegment(rows, block));
      yield emptyBatch;
    }
    return all;
  }

  #hold(rows: Int32Array): void {
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#heldBytes + rows.length * 12);
  }

  /** The best of all rows that the required matches hold of. */
  *#among(best: TopScores): Generator<Batch, Candidates> {
    const { counters } = this.#execution;
    const bestBlocks: {
      readonly segment: object;
      readonly block: SearchBlock;
      readonly rows: Int32Array;
      readonly scores: Float64Array;
    }[] = [];
    let total = 0;
    for (const [segment, blocks] of this.#blocksOfSegment) {
      for (const block of blocks) {
        const { rows, scores, matching } = this.#requiredOfFew(block, best) ?? (yield* this.#findRequired(block, best));
        total += matching;
        if (rows.length > 0) bestBlocks.push({ segment, block, rows, scores });
        this.#hold(rows);
        yield emptyBatch;
      }
    }
    const candidates = new Map<object, Int32Array>();
    let left = 0;
    for (const { segment, block, rows, scores } of bestBlocks) {
      const among = rowIdsInSegment(
        rows.filter((_, i) => scores[i]! >= best.least),
        block,
      );
      left += among.length;
      if (among.length === 0) continue;
      const before = candidates.get(segment);
      candidates.set(segment, before ? concatenate(before, among) : among);
    }
    counters.hits += total - left;
    return candidates;
  }

  /** Rows of a block that match every required MATCH; with scores, only those that may be among the best. */
  *#findRequired(block: SearchBlock, best: TopScores | null): Generator<Batch, Matching> {
    const { required, scored } = this.#node;
    yield* this.#seek(block);
    const matches = this.#matches(block);
    const bits = matches[required[0]!]!.slice();
    for (const match of required.slice(1)) for (let i = 0; i < bits.length; i++) bits[i]! &= matches[match]![i]!;
    const matching = bitCount(bits);
    if (!scored) {
      this.#release(block);
      block.matches = { matches, scores: null };
      return { rows: rowsIn(bits, matching), scores: noScores, matching };
    }
    if (best !== null) this.#leave(bits, block, best.least);
    // Shared arrays must not be held across turns.
    const isSlow = block.searches.some((search) => search.isSlow);
    const into = isSlow ? (this.#sums ??= new Float64Array(sums.length)) : sums;
    if (isSlow) yield* this.#scoreSlowly(block, into, bits);
    else block.searches.forEach((search, i) => this.#score(search, i, into, bits));
    let count = 0;
    eachBit(bits, (row) => {
      if (best === null || best.take(into[row]!)) matchingRows[count++] = row;
      else into[row] = 0;
    });
    const rows = matchingRows.slice(0, count);
    const scores = new Float64Array(count);
    rows.forEach((row, i) => {
      scores[i] = into[row]!;
      into[row] = 0;
    });
    this.#release(block);
    block.matches = { matches, scores: { rows, scores } };
    return { rows, scores, matching };
  }

  /** The same for few plain words, the most common search; null where it is not applicable. */
  #requiredOfFew(block: SearchBlock, best: TopScores): Matching | null {
    const [search, ...others] = block.searches;
    if (others.length > 0 || this.#boosts[0]!.some((boost) => boost !== null)) return null;
    const few = search!.scoreFew(this.#scorings[0]!, best);
    if (few !== null) block.matches = few.rows.length === 0 ? noMatches : { matches: null, scores: few };
    return few;
  }

  /** Keeps only the rows that may reach this score, where that can be bounded before scoring. */
  #leave(bits: Int32Array, { searches }: SearchBlock, least: number): void {
    const [search, ...others] = searches;
    if (least === -Infinity || others.length > 0 || this.#boosts[0]!.some((boost) => boost !== null)) return;
    const reaching = search!.reaching(this.#scorings[0]!, least);
    if (reaching !== null) for (let i = 0; i < bits.length; i++) bits[i]! &= reaching[i]!;
  }

  #matches(block: SearchBlock): readonly Int32Array[] {
    return block.searches.map((search, i) => search.matching(this.#shapes[i]));
  }

  #find(block: SearchBlock): BlockMatches {
    if (block.matches) return block.matches;
    const scores = this.#node.scored ? new Float64Array(block.rows) : null;
    if (scores) block.searches.forEach((search, i) => this.#score(search, i, scores, null));
    return (block.matches = { matches: this.#matches(block), scores });
  }

  /** Finds the terms of a block, where that takes more than one turn. */
  *#seek({ searches }: SearchBlock): Generator<Batch, void> {
    for (const search of searches) {
      for (let leaf = 0; leaf < search.query.leaves.length && search.isSlow; leaf++) {
        search.seek(leaf);
        yield emptyBatch;
      }
    }
  }

  #release({ searches }: SearchBlock): void {
    for (const search of searches) if (search.query.leaves.length > leavesKept) search.release();
  }

  /** Searches and scores a block, where that takes more than a turn. */
  *#findSlowly(block: SearchBlock): Generator<Batch, void> {
    const { searches } = block;
    if (block.matches || !(searches.length > searchesInTurn || searches.some((search) => search.isSlow))) return;
    yield* this.#seek(block);
    const matches: Int32Array[] = [];
    for (const [i, search] of searches.entries()) {
      matches.push(search.matching(this.#shapes[i]));
      if (i % searchesInTurn === searchesInTurn - 1) yield emptyBatch;
    }
    const scores = this.#node.scored ? new Float64Array(block.rows) : null;
    if (scores) yield* this.#scoreSlowly(block, scores, null);
    this.#release(block);
    block.matches = { matches, scores };
  }

  /** Scores like `#score`, one word a turn. */
  *#scoreSlowly({ searches }: SearchBlock, into: Float64Array, only: Int32Array | null): Generator<Batch, void> {
    for (const [i, search] of searches.entries()) {
      const own = searches.length > 1 ? new Float64Array(search.rows) : into;
      for (let leaf = 0; leaf < search.query.leaves.length; leaf++) {
        search.scoreLeaf(leaf, this.#scorings[i]!, own, only);
        yield emptyBatch;
      }
      if (this.#boosts[i]!.some((boost) => boost !== null)) search.raise(this.#boosts[i]!, own);
      if (own !== into) for (let row = 0; row < search.rows; row++) into[row]! += own[row]!;
    }
  }

  /** Boosts raise the scores of their own MATCH only. */
  #score(search: BlockSearch, match: number, into: Float64Array, only: Int32Array | null): void {
    const boosts = this.#boosts[match]!;
    const isRaised = boosts.some((boost) => boost !== null);
    const own = isRaised && this.#boosts.length > 1 ? new Float64Array(search.rows) : into;
    search.score(this.#scorings[match]!, own, only);
    if (isRaised) search.raise(boosts, own);
    if (own !== into) for (let row = 0; row < search.rows; row++) into[row]! += own[row]!;
  }

  /** A batch of rows that all matches hold of. */
  *#matching(batch: ScanBatch): Generator<Batch, Batch> {
    const { selection, first, count, placed } = batch;
    const { scored, unread } = this.#node;
    const columns = [...batch.columns];
    for (const column of unread) columns.splice(column, 0, { kind: 'null' });
    yield* this.#results.reach(selection === null ? first + count : selection[count - 1]! + 1);
    if (scored) {
      const blocks = this.#blocksOfSegment.get(placed!.segmentKey)!;
      for (let k = 0; k < count; k++) {
        const row = selection === null ? first + k : selection[k]!;
        const [matches, at] = this.#matchesAt(blocks, numberAt(placed!, row));
        this.#results.scores[row] = matches ? scoreOf(matches, at) : 0;
      }
    }
    return { columns: [...columns, ...this.#results.allMatching()], selection, first, count };
  }

  /** Adds the results of the search to the batch, as columns. */
  *#addResults(batch: ScanBatch): Generator<Batch, Batch> {
    const { columns, selection, first, count, placed } = batch;
    const { matches, scored } = this.#node;
    const blocks = placed && this.#blocksOfSegment.get(placed.segmentKey);
    const ownBlock = blocks
      ? null
      : this.#searchBlock(
          yield* this.#makeTexts(
            batch,
            this.#searched.map((column) => columns[column]!),
          ),
          0,
        );
    for (const block of blocks ?? [ownBlock!]) yield* this.#findSlowly(block);
    const ownMatches = ownBlock && this.#find(ownBlock);
    yield* this.#results.reach(selection === null ? first + count : selection[count - 1]! + 1);
    const { matched, absent, scores } = this.#results;
    let hasAbsent = false;
    const rowsInTurn = Math.ceil(cellsInTurn / matches.length);
    for (let k = 0; k < count; k++) {
      if (k % rowsInTurn === rowsInTurn - 1) yield emptyBatch;
      const row = selection === null ? first + k : selection[k]!;
      const [of, at] = ownMatches ? [ownMatches, k] : this.#matchesAt(blocks!, numberAt(placed!, row));
      for (let i = 0; i < matches.length; i++) {
        const hasNoText = matches[i]!.columns.every((column) => isAbsent(columns[column]!, row)) ? 1 : 0;
        absent[i]![row] = hasNoText;
        hasAbsent ||= hasNoText === 1;
        matched[i]![row] = of ? matchOf(of, i, at) : 0;
      }
      if (scored) scores[row] = of ? scoreOf(of, at) : 0;
    }
    return { columns: [...columns, ...this.#results.vectors(hasAbsent)], selection, first, count };
  }

  /** The search results that hold a row of a place, and the row's number in them. */
  #matchesAt(blocks: readonly SearchBlock[], number: number): readonly [BlockMatches | null, number] {
    let low = 0;
    let high = blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (blocks[middle]!.base <= number) low = middle + 1;
      else high = middle;
    }
    const block = blocks[low - 1];
    if (!block || number >= block.base + block.rows) return [null, 0];
    return [this.#find(block), number - block.base];
  }
}

/** Searches of a block, and cells added, within one turn. */
const searchesInTurn = 16;
const cellsInTurn = 65_536;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Number of a row of a block at its place. */
function numberAt({ rows: lies }: SegmentRows, row: number): number {
  return lies === null ? row : lies.selection === null ? lies.first + row : lies.selection[row]!;
}

function isAbsent(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

/** Rows come in the order of system_from, which is the last column. */
function writtenBefore(block: GovernedBlock, pinned: bigint): GovernedBlock {
  const times = block.columns.at(-1);
  if (block.count === 0 || times?.kind !== 'i64') return block;
  let { count } = block;
  const rowAt = (k: number): number => (block.selection === null ? block.first + k : block.selection[k]!);
  while (count > 0 && times.values[rowAt(count - 1)]! > pinned) count--;
  return { ...block, count };
}

/** Rows of a block as row ids of its segment. */
function rowIdsInSegment(rows: Int32Array, { base }: SearchBlock): Int32Array {
  return base === 0 ? rows : rows.map((row) => row + base);
}

function concatenate(a: Int32Array, b: Int32Array): Int32Array {
  const both = new Int32Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
