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
const searchBlockRows = 512;
/** Best rows beyond which all that match are read. */
const bestRowsMax = 10_000;
/** Beyond this many words, results are dropped and found again when needed. */
const keptLeavesMax = 16;
/**
 * Scores of one segment's block, shared between searches and used within one turn only: arrays per search would keep the garbage
 * collector busy. Zeros between turns.
 */
const scoreSums = new Float64Array(65_536);
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
  readonly #searchNode: SearchNode;
  readonly #execution: Execution;
  /** The queries, by match and column. */
  readonly #textQueries: readonly (readonly TextQuery[])[];
  /** Columns that are searched, by number in the scan. */
  readonly #searchedColumns: readonly number[];
  readonly #searchWork: Generator<Batch, void>;
  readonly #blocksOfSegment = new Map<object, SearchBlock[]>();
  /** By match: the figures for scores. */
  readonly #matchScorings: Writable<Scoring>[];
  /** The boosts, by match and column. */
  readonly #matchBoosts: readonly (readonly (number | null)[])[];
  /** The language whose stems are sought, where the indexes have those of another. */
  readonly #stemLanguage: string | null;
  /** By match: how its words combine. Which of them is the rarest is known after the first pass. */
  #queryShapes: readonly TextQuery['shape'][];
  readonly #results: ResultColumns;
  #candidateScan: ScanOperator | null = null;
  #firstScan: Iterator<GovernedBlock, void> | null = null;
  #heldBytes = 0;
  /** Scores of a block that takes more than one turn: the shared array must not be held across turns. */
  #slowSums: Float64Array | null = null;

  constructor(node: SearchNode, execution: Execution) {
    this.#searchNode = node.ranks && execution.prepared === null ? { ...node, required: [0] } : node;
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
    this.#stemLanguage = textRules.language === textRules.indexed ? null : textRules.language;
    this.#textQueries = node.matches.map(({ columns, slot, mode }) =>
      columns.map((column) => {
        const typoTolerance = rules.typo(node.input.columns[column]!.name);
        return parseTextQuery(String(execution.literals[slot] ?? ''), { mode, typo: typoTolerance, rules: textRules });
      }),
    );
    this.#searchedColumns = [...new Set(node.matches.flatMap(({ columns }) => columns))];
    this.#matchScorings = node.matches.map(({ columns, weights }, i) => ({
      rows: 0,
      frequencies: this.#textQueries[i]![0]!.leaves.map(() => 0),
      averages: columns.map(() => 0),
      weights: weights.map((slot, k) => this.#literalFactor(slot) ?? this.#columnWeight(columns[k]!)),
      tables: [],
    }));
    this.#matchBoosts = node.matches.map(({ boosts }) => boosts.map((slot) => this.#literalFactor(slot)));
    this.#queryShapes = this.#textQueries.map(([textQuery]) => textQuery!.shape);
    this.#results = new ResultColumns(node.matches.length, node.scored);
    this.#searchWork = this.#runSearch();
  }

  next(): Batch | null {
    const searchStep = this.#searchWork.next();
    return searchStep.done === true ? null : searchStep.value;
  }

  close(): void {
    this.#searchWork.return();
    this.#firstScan?.return?.();
    this.#candidateScan?.close();
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, 0);
  }

  #columnWeight(column: number): number {
    const { input } = this.#searchNode;
    return this.#execution.kernels.rules.weight(input.type, input.columns[column]!.name) ?? 1;
  }

  #literalFactor(slot: number | null): number | null {
    return slot === null ? null : Number(this.#execution.literals[slot]);
  }

  *#runSearch(): Generator<Batch, void> {
    const isWholeIndexed = yield* this.#lookAtTexts();
    const bestScores = this.#bestScores();
    const searchCandidates =
      !isWholeIndexed || this.#searchNode.required.length === 0
        ? null
        : bestScores
          ? yield* this.#bestCandidates(bestScores)
          : this.#lazyCandidates();
    const { input, unread, matches, required } = this.#searchNode;
    // Where every row read is known to match, its texts need not be read.
    const isKnown = searchCandidates !== null && this.#decidesByIndex && required.length === matches.length;
    const readColumns = isKnown ? input.columns.filter((_, i) => !unread.includes(i)) : input.columns;
    this.#candidateScan = new ScanOperator({ ...input, columns: readColumns }, this.#execution, 0, {
      placed: true,
      ...(searchCandidates && { candidates: searchCandidates }),
    });
    for (let candidateBatch = this.#candidateScan.next(); candidateBatch !== null; candidateBatch = this.#candidateScan.next()) {
      yield candidateBatch.count === 0
        ? emptyBatch
        : isKnown
          ? yield* this.#markMatching(candidateBatch)
          : yield* this.#addResults(candidateBatch);
    }
  }

  /** Whether no search excludes words: a row without a text, which no index has, can then match nothing. */
  get #decidesByIndex(): boolean {
    return !this.#textQueries.some(([query]) => query!.scores.includes(false));
  }

  /** Goes through all that may be seen. False where some of it has no place to come back to. */
  *#lookAtTexts(): Generator<Batch, boolean> {
    const { input, scored, matches } = this.#searchNode;
    const { snapshot, time, pinned } = this.#execution;
    const searchedNames = this.#searchedColumns.map((column) => input.columns[column]!.name);
    const scanRequest: ScanRequest = {
      type: input.type,
      columns: pinned === null ? searchedNames : [...searchedNames, 'system_from'],
      time,
      blockRows: searchBlockRows,
      indexed: searchedNames,
      ...(this.#usesBuiltIndexes && { builtOnly: 'begun' as const }),
    };
    /** By match and column: terms of all rows that are shown. */
    const fieldTotals = matches.map(({ columns }) => columns.map(() => ({ held: 0, total: 0 })));
    let isWholeIndexed = true;
    /** Places of which some rows came without an index: all of their rows are judged by their own texts. */
    const unindexedPlaces = new Set<object>();
    const isCounted = scored || this.#queryShapes.includes('rarest');
    this.#firstScan = snapshot.rows.scan(scanRequest);
    for (let scanStep = this.#firstScan.next(); scanStep.done !== true; scanStep = this.#firstScan.next()) {
      const governedBlock = pinned === null ? scanStep.value : pinnedBlock(scanStep.value, pinned);
      if (governedBlock.count > 0) {
        const { placed, texts } = governedBlock;
        if (texts?.isComing && this.#usesBuiltIndexes) {
          this.#noteLeftOut();
          yield emptyBatch;
          continue;
        }
        const indexedTexts = texts?.open(searchedNames, governedBlock.count) ?? null;
        const searchableTexts = indexedTexts ?? (yield* this.#makeTexts(governedBlock, governedBlock.columns));
        if (this.#stemLanguage !== null && this.#searchNode.matches.some(({ mode }) => mode === 'STEMMED')) {
          for (const _ of searchableTexts.stem(this.#stemLanguage)) yield emptyBatch;
        }
        const searchBlock = this.#searchBlock(searchableTexts, texts?.base ?? 0);
        if (isCounted) {
          yield* this.#seekSlowLeaves(searchBlock);
          this.#countFigures(searchBlock, fieldTotals);
        }
        if (indexedTexts !== null) this.#keepSearched(placed!.segmentKey, searchBlock);
        else {
          isWholeIndexed = false;
          if (placed) unindexedPlaces.add(placed.segmentKey);
        }
      }
      yield emptyBatch;
    }
    this.#firstScan = null;
    for (const segment of unindexedPlaces) this.#blocksOfSegment.delete(segment);
    for (const [i, scoring] of this.#matchScorings.entries()) {
      scoring.averages = fieldTotals[i]!.map(({ held, total }) => (held === 0 ? 1 : total / held));
    }
    this.#queryShapes = this.#queryShapes.map((shape, i) =>
      shape === 'rarest' ? rarestOf(this.#matchScorings[i]!.frequencies) : shape,
    );
    return isWholeIndexed;
  }

  /** Rows that all required matches hold for are sought among those indexed by now. */
  get #usesBuiltIndexes(): boolean {
    return this.#searchNode.required.length > 0 && this.#execution.unbuilt.has(this.#searchNode.input.type);
  }

  #noteLeftOut(): void {
    const { counters, notices } = this.#execution;
    if (counters.leftOut++ > 0) return;
    notices.push(`the texts of ${this.#searchNode.input.type} are being indexed: rows that are not indexed yet are left out`);
  }

  #searchBlock(texts: SearchableTexts, base: number): SearchBlock {
    const { input, matches } = this.#searchNode;
    const searches = matches.map(({ columns }, i) =>
      texts.search(
        columns.map((column) => input.columns[column]!.name),
        this.#textQueries[i]!,
      ),
    );
    return { base, rows: searches[0]!.rows, searches, matches: null };
  }

  #keepSearched(segment: object, block: SearchBlock): void {
    const searchedBlocks = this.#blocksOfSegment.get(segment);
    if (searchedBlocks) searchedBlocks.push(block);
    else this.#blocksOfSegment.set(segment, [block]);
  }

  /** Adds up the figures for scores from one block. */
  #countFigures(block: SearchBlock, fieldTotals: readonly (readonly { held: number; total: number }[])[]): void {
    for (const [i, blockSearch] of block.searches.entries()) {
      const matchScoring = this.#matchScorings[i]!;
      const { rows, fields } = blockSearch.figures();
      matchScoring.rows += rows;
      fields.forEach(({ held, total }, fieldIndex) => {
        fieldTotals[i]![fieldIndex]!.held += held;
        fieldTotals[i]![fieldIndex]!.total += total;
      });
      matchScoring.frequencies = matchScoring.frequencies.map((frequencySum, leaf) => frequencySum + blockSearch.frequency(leaf));
    }
    this.#releaseSearches(block);
  }

  /** Makes the indexes of a block that has none: row k is at place k. Vectors are by searched column. */
  *#makeTexts(
    rows: Pick<Batch, 'selection' | 'first' | 'count'>,
    textVectors: readonly Vector[],
  ): Generator<Batch, SearchableTexts> {
    const textColumns = this.#searchedColumns.map((column, i) => ({
      ...this.#searchNode.input.columns[column]!,
      vector: textVectors[i]!,
    }));
    const indexingSteps = indexTexts(textColumns, rows, this.#execution.snapshot.textLanguage);
    let indexingStep = indexingSteps.next();
    for (; indexingStep.done !== true; indexingStep = indexingSteps.next()) yield emptyBatch;
    return indexingStep.value;
  }

  /** The best scores, where only the best rows are wanted. */
  #bestScores(): TopScores | null {
    const { best, scored } = this.#searchNode;
    if (best === null || !scored || !this.#decidesByIndex) return null;
    const wantedRows = firstRows(best.limit, best.offset, this.#execution);
    return wantedRows <= bestRowsMax ? new TopScores(wantedRows) : null;
  }

  /** Rows that match every required MATCH, found as the reader gets to their place: the first rows don't wait for the others. */
  #lazyCandidates(): Candidates {
    const knownCandidates = new Map<object, Int32Array>();
    const candidateWork = new Map<object, Generator<Batch, Int32Array>>();
    const findIn = (segment: object, blocks: readonly SearchBlock[]): Int32Array | null => {
      let placeWork = candidateWork.get(segment);
      if (!placeWork) candidateWork.set(segment, (placeWork = this.#requiredRows(blocks)));
      const workStep = placeWork.next();
      if (workStep.done !== true) return null;
      knownCandidates.set(segment, workStep.value);
      return workStep.value;
    };
    return {
      get: (segment) => {
        const blocks = this.#blocksOfSegment.get(segment);
        return blocks && (knownCandidates.get(segment) ?? findIn(segment, blocks));
      },
    };
  }

  *#requiredRows(blocks: readonly SearchBlock[]): Generator<Batch, Int32Array> {
    let requiredRows: Int32Array = new Int32Array(0);
    for (const block of blocks) {
      const { rows } = yield* this.#findRequired(block, null);
      this.#holdCandidates(rows);
      requiredRows =
        requiredRows.length === 0 ? rowIdsInSegment(rows, block) : concatenateRows(requiredRows, rowIdsInSegment(rows, block));
      yield emptyBatch;
    }
    return requiredRows;
  }

  #holdCandidates(candidateRows: Int32Array): void {
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#heldBytes + candidateRows.length * 12);
  }

  /** The best of all rows that the required matches hold of. */
  *#bestCandidates(bestScores: TopScores): Generator<Batch, Candidates> {
    const { counters } = this.#execution;
    const bestBlocks: {
      readonly segment: object;
      readonly block: SearchBlock;
      readonly rows: Int32Array;
      readonly scores: Float64Array;
    }[] = [];
    let matchingTotal = 0;
    for (const [segment, blocks] of this.#blocksOfSegment) {
      for (const block of blocks) {
        const { rows, scores, matching } =
          this.#scoreFewRequired(block, bestScores) ?? (yield* this.#findRequired(block, bestScores));
        matchingTotal += matching;
        if (rows.length > 0) bestBlocks.push({ segment, block, rows, scores });
        this.#holdCandidates(rows);
        yield emptyBatch;
      }
    }
    const bestCandidates = new Map<object, Int32Array>();
    let candidateTotal = 0;
    for (const { segment, block, rows, scores } of bestBlocks) {
      const blockCandidates = rowIdsInSegment(
        rows.filter((_, i) => scores[i]! >= bestScores.least),
        block,
      );
      candidateTotal += blockCandidates.length;
      if (blockCandidates.length === 0) continue;
      const placeCandidates = bestCandidates.get(segment);
      bestCandidates.set(segment, placeCandidates ? concatenateRows(placeCandidates, blockCandidates) : blockCandidates);
    }
    counters.hits += matchingTotal - candidateTotal;
    return bestCandidates;
  }

  /** Rows of a block that match every required MATCH; with scores, only those that may be among the best. */
  *#findRequired(block: SearchBlock, bestScores: TopScores | null): Generator<Batch, Matching> {
    const { required, scored } = this.#searchNode;
    yield* this.#seekSlowLeaves(block);
    const blockMatches = this.#matchBits(block);
    const requiredBits = blockMatches[required[0]!]!.slice();
    for (const match of required.slice(1))
      for (let i = 0; i < requiredBits.length; i++) requiredBits[i]! &= blockMatches[match]![i]!;
    const matchingCount = bitCount(requiredBits);
    if (!scored) {
      this.#releaseSearches(block);
      block.matches = { matches: blockMatches, scores: null };
      return { rows: rowsIn(requiredBits, matchingCount), scores: noScores, matching: matchingCount };
    }
    if (bestScores !== null) this.#leaveHopeless(requiredBits, block, bestScores.least);
    // Shared arrays must not be held across turns.
    const hasSlowSearch = block.searches.some((search) => search.isSlow);
    const requiredScores = hasSlowSearch ? (this.#slowSums ??= new Float64Array(scoreSums.length)) : scoreSums;
    if (hasSlowSearch) yield* this.#scoreSlowly(block, requiredScores, requiredBits);
    else block.searches.forEach((search, i) => this.#scoreSearch(search, i, requiredScores, requiredBits));
    let takenCount = 0;
    eachBit(requiredBits, (matchingRow) => {
      if (bestScores === null || bestScores.take(requiredScores[matchingRow]!)) matchingRows[takenCount++] = matchingRow;
      else requiredScores[matchingRow] = 0;
    });
    const takenRows = matchingRows.slice(0, takenCount);
    const takenScores = new Float64Array(takenCount);
    takenRows.forEach((matchingRow, i) => {
      takenScores[i] = requiredScores[matchingRow]!;
      requiredScores[matchingRow] = 0;
    });
    this.#releaseSearches(block);
    block.matches = { matches: blockMatches, scores: { rows: takenRows, scores: takenScores } };
    return { rows: takenRows, scores: takenScores, matching: matchingCount };
  }

  /** The same for few plain words, the most common search; null where it is not applicable. */
  #scoreFewRequired(block: SearchBlock, bestScores: TopScores): Matching | null {
    const [onlySearch, ...others] = block.searches;
    if (others.length > 0 || this.#matchBoosts[0]!.some((boost) => boost !== null)) return null;
    const fewScored = onlySearch!.scoreFew(this.#matchScorings[0]!, bestScores);
    if (fewScored !== null) block.matches = fewScored.rows.length === 0 ? noMatches : { matches: null, scores: fewScored };
    return fewScored;
  }

  /** Keeps only the rows that may reach this score, where that can be bounded before scoring. */
  #leaveHopeless(requiredBits: Int32Array, { searches }: SearchBlock, leastScore: number): void {
    const [onlySearch, ...others] = searches;
    if (leastScore === -Infinity || others.length > 0 || this.#matchBoosts[0]!.some((boost) => boost !== null)) return;
    const reachingBits = onlySearch!.reaching(this.#matchScorings[0]!, leastScore);
    if (reachingBits !== null) for (let i = 0; i < requiredBits.length; i++) requiredBits[i]! &= reachingBits[i]!;
  }

  #matchBits(block: SearchBlock): readonly Int32Array[] {
    return block.searches.map((blockSearch, i) => blockSearch.matching(this.#queryShapes[i]));
  }

  #findMatches(block: SearchBlock): BlockMatches {
    if (block.matches) return block.matches;
    const blockScores = this.#searchNode.scored ? new Float64Array(block.rows) : null;
    if (blockScores) block.searches.forEach((search, i) => this.#scoreSearch(search, i, blockScores, null));
    return (block.matches = { matches: this.#matchBits(block), scores: blockScores });
  }

  /** Finds the terms of a block, where that takes more than one turn. */
  *#seekSlowLeaves({ searches }: SearchBlock): Generator<Batch, void> {
    for (const blockSearch of searches) {
      for (let leaf = 0; leaf < blockSearch.query.leaves.length && blockSearch.isSlow; leaf++) {
        blockSearch.seek(leaf);
        yield emptyBatch;
      }
    }
  }

  #releaseSearches({ searches }: SearchBlock): void {
    for (const search of searches) if (search.query.leaves.length > keptLeavesMax) search.release();
  }

  /** Searches and scores a block, where that takes more than a turn. */
  *#findSlowly(block: SearchBlock): Generator<Batch, void> {
    const { searches } = block;
    if (block.matches || !(searches.length > searchesPerTurn || searches.some((search) => search.isSlow))) return;
    yield* this.#seekSlowLeaves(block);
    const slowMatches: Int32Array[] = [];
    for (const [i, search] of searches.entries()) {
      slowMatches.push(search.matching(this.#queryShapes[i]));
      if (i % searchesPerTurn === searchesPerTurn - 1) yield emptyBatch;
    }
    const slowScores = this.#searchNode.scored ? new Float64Array(block.rows) : null;
    if (slowScores) yield* this.#scoreSlowly(block, slowScores, null);
    this.#releaseSearches(block);
    block.matches = { matches: slowMatches, scores: slowScores };
  }

  /** Scores like `#scoreSearch`, one word a turn. */
  *#scoreSlowly({ searches }: SearchBlock, blockScores: Float64Array, onlyBits: Int32Array | null): Generator<Batch, void> {
    for (const [i, blockSearch] of searches.entries()) {
      const ownScores = searches.length > 1 ? new Float64Array(blockSearch.rows) : blockScores;
      for (let leaf = 0; leaf < blockSearch.query.leaves.length; leaf++) {
        blockSearch.scoreLeaf(leaf, this.#matchScorings[i]!, ownScores, onlyBits);
        yield emptyBatch;
      }
      if (this.#matchBoosts[i]!.some((boost) => boost !== null)) blockSearch.raise(this.#matchBoosts[i]!, ownScores);
      if (ownScores !== blockScores) for (let row = 0; row < blockSearch.rows; row++) blockScores[row]! += ownScores[row]!;
    }
  }

  /** Boosts raise the scores of their own MATCH only. */
  #scoreSearch(search: BlockSearch, matchIndex: number, blockScores: Float64Array, onlyBits: Int32Array | null): void {
    const searchBoosts = this.#matchBoosts[matchIndex]!;
    const isBoosted = searchBoosts.some((boost) => boost !== null);
    const ownScores = isBoosted && this.#matchBoosts.length > 1 ? new Float64Array(search.rows) : blockScores;
    search.score(this.#matchScorings[matchIndex]!, ownScores, onlyBits);
    if (isBoosted) search.raise(searchBoosts, ownScores);
    if (ownScores !== blockScores) for (let row = 0; row < search.rows; row++) blockScores[row]! += ownScores[row]!;
  }

  /** A batch of rows that all matches hold of. */
  *#markMatching(batch: ScanBatch): Generator<Batch, Batch> {
    const { selection, first, count, placed } = batch;
    const { scored, unread } = this.#searchNode;
    const columns = [...batch.columns];
    for (const column of unread) columns.splice(column, 0, { kind: 'null' });
    yield* this.#results.reach(selection === null ? first + count : selection[count - 1]! + 1);
    if (scored) {
      const blocks = this.#blocksOfSegment.get(placed!.segmentKey)!;
      for (let k = 0; k < count; k++) {
        const batchRow = selection === null ? first + k : selection[k]!;
        const [matches, searchedRow] = this.#matchesAt(blocks, searchedRowNumber(placed!, batchRow));
        this.#results.scores[batchRow] = matches ? scoreOf(matches, searchedRow) : 0;
      }
    }
    return { columns: [...columns, ...this.#results.allMatching()], selection, first, count };
  }

  /** Adds the results of the search to the batch, as columns. */
  *#addResults(batch: ScanBatch): Generator<Batch, Batch> {
    const { columns, selection, first, count, placed } = batch;
    const { matches, scored } = this.#searchNode;
    const blocks = placed && this.#blocksOfSegment.get(placed.segmentKey);
    const ownBlock = blocks
      ? null
      : this.#searchBlock(
          yield* this.#makeTexts(
            batch,
            this.#searchedColumns.map((column) => columns[column]!),
          ),
          0,
        );
    for (const block of blocks ?? [ownBlock!]) yield* this.#findSlowly(block);
    const ownMatches = ownBlock && this.#findMatches(ownBlock);
    yield* this.#results.reach(selection === null ? first + count : selection[count - 1]! + 1);
    const { matched, absent: isRowAbsent, scores } = this.#results;
    let hasAbsent = false;
    const rowsInTurn = Math.ceil(matchedCellsPerTurn / matches.length);
    for (let k = 0; k < count; k++) {
      if (k % rowsInTurn === rowsInTurn - 1) yield emptyBatch;
      const batchRow = selection === null ? first + k : selection[k]!;
      const [rowMatches, searchedRow] = ownMatches
        ? [ownMatches, k]
        : this.#matchesAt(blocks!, searchedRowNumber(placed!, batchRow));
      for (let i = 0; i < matches.length; i++) {
        const hasNoText = matches[i]!.columns.every((column) => isTextAbsent(columns[column]!, batchRow)) ? 1 : 0;
        isRowAbsent[i]![batchRow] = hasNoText;
        hasAbsent ||= hasNoText === 1;
        matched[i]![batchRow] = rowMatches ? matchOf(rowMatches, i, searchedRow) : 0;
      }
      if (scored) scores[batchRow] = rowMatches ? scoreOf(rowMatches, searchedRow) : 0;
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
    return [this.#findMatches(block), number - block.base];
  }
}

/** Searches of a block, and cells added, within one turn. */
const searchesPerTurn = 16;
const matchedCellsPerTurn = 65_536;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Number of a row of a block at its place. */
function searchedRowNumber({ rows: lies }: SegmentRows, row: number): number {
  return lies === null ? row : lies.selection === null ? lies.first + row : lies.selection[row]!;
}

function isTextAbsent(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}

/** Rows come in the order of system_from, which is the last column. */
function pinnedBlock(governedBlock: GovernedBlock, pinned: bigint): GovernedBlock {
  const systemFroms = governedBlock.columns.at(-1);
  if (governedBlock.count === 0 || systemFroms?.kind !== 'i64') return governedBlock;
  let { count } = governedBlock;
  const rowAt = (k: number): number => (governedBlock.selection === null ? governedBlock.first + k : governedBlock.selection[k]!);
  while (count > 0 && systemFroms.values[rowAt(count - 1)]! > pinned) count--;
  return { ...governedBlock, count };
}

/** Rows of a block as row ids of its segment. */
function rowIdsInSegment(rows: Int32Array, { base }: SearchBlock): Int32Array {
  return base === 0 ? rows : rows.map((row) => row + base);
}

function concatenateRows(leftRows: Int32Array, rightRows: Int32Array): Int32Array {
  const joinedRows = new Int32Array(leftRows.length + rightRows.length);
  joinedRows.set(leftRows);
  joinedRows.set(rightRows, leftRows.length);
  return joinedRows;
}
