/**
 * The look at everything that can be read now, after a subject was erased: what is still readable of it anywhere forbids the
 * certificate. In slices: others have their turn in between.
 */
import { isBlank } from '../../log/entries/text-redaction.ts';
import { type ErasedVersions, isOpen, type OpenBody, rowBodiesOf, tenantOfErased } from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { LogStore, StoredEntry } from '../../log/log-store.ts';
import type { SubjectKeys } from '../../log/keys/subject-keys.ts';
import type { ExhibitView, PathCodes } from '../../projections/access-paths.ts';
import type { Erasure } from '../../projections/erasures/projection.ts';
import type { OpenEntry } from '../../projections/open-entries/projection.ts';
import type { StoredTexts } from '../../projections/rows/erasure/stored-texts.ts';
import { sealedTextIn } from '../../projections/sealed-definitions.ts';
import { covers } from '../caller.ts';
import { isEmbedded, withoutVectors } from '../../log/entries/embedded-vectors.ts';
import type { Blobs } from '../../log/blobs/blobs.ts';
import { referredTo } from '../writing/large-bodies.ts';
import { named, textAt } from './blob-sweep.ts';
import type { ErasedWords, WordSearch } from './erased-words.ts';
import { textsOf } from './open-entry-texts.ts';
import type { ResidualHit } from './erasure-receipt.ts';
import type { KeyedTextSeals } from './text-seals.ts';
import type { ScanTarget } from './scan-target.ts';
import { currentBranches, type BranchesRead } from './current-branches.ts';
import type { TextStore } from './text-store.ts';

export interface ScanDependencies {
  readonly state: BranchesRead & {
    readonly rows: {
      readonly scopes: PathCodes;
      texts(paths: ReadonlySet<number>): Iterable<StoredTexts>;
      derivable(tenant: string | null): ReadonlySet<string>;
    };
    readonly exhibits: { all(): Iterable<ExhibitView> };
    readonly openEntries: { searchable(): Iterable<OpenEntry> };
    readonly embeddings: { countOf(positions: Iterable<number>): number };
  };
  readonly log: Pick<LogStore, 'proofs'>;
  readonly keys: Pick<SubjectKeys, 'opening'>;
  readonly seals: Pick<KeyedTextSeals, 'open'>;
  readonly stores: readonly TextStore[];
  readonly bodies: Pick<Blobs, 'open'>;
  /** Leaves of exhibits' links that the search for mentions looked at, under the same name: no text of a link ever changes. */
  readonly links: ReadonlySet<number>;
  /** Words of what was erased. */
  readonly words: Pick<ErasedWords, 'search'>;
  /** Names of derived files of before the erasure that are on disk still. */
  readonly staleFiles: () => Promise<readonly string[]>;
  readonly yieldTurn: () => Promise<void>;
}

export interface ScanResult {
  readonly hits: readonly ResidualHit[];
  /** How much of what was looked at. */
  readonly lookedAt: Readonly<Record<string, number>>;
}

export async function residualScan(erasure: Erasure, scanTarget: ScanTarget, scanParts: ScanDependencies): Promise<ScanResult> {
  const residualsScan = new ResidualScan(scanParts);
  const { keys, versions, mentions, tenant, intended } = erasure;
  residualsScan.keys(keys);
  for (const { type, positions } of versions) await residualsScan.entries(type, positions);
  for (const erasedVersions of versions) await residualsScan.versions(erasedVersions);
  const erasedPositions = new Set(versions.flatMap(({ positions }) => positions));
  for (const position of mentions) await residualsScan.mention(position, erasedPositions);
  await residualsScan.exhibits(tenant, scanTarget);
  await residualsScan.openEntries(tenant, scanTarget);
  await residualsScan.cells(tenant, scanTarget, intended.time);
  await residualsScan.words(tenant);
  residualsScan.texts(tenant, scanTarget);
  await residualsScan.files();
  return residualsScan.result();
}

class ResidualScan {
  readonly #scanParts: ScanDependencies;
  readonly #residualHits = new Map<string, ResidualHit>();
  /** By hash, the earliest position of a sentence that a body repeats. */
  readonly #sinceByBody = new Map<string, number>();
  readonly #lookedAtCounts: Record<string, number> = {
    keys: 0,
    entries: 0,
    versions: 0,
    mentions: 0,
    links: 0,
    open_entries: 0,
    cells: 0,
    words: 0,
    stores: 0,
  };

  constructor(parts: ScanDependencies) {
    this.#scanParts = parts;
  }

  result(): ScanResult {
    return { hits: [...this.#residualHits.values()], lookedAt: this.#lookedAtCounts };
  }

  keys(ids: readonly string[]): void {
    for (const id of ids) {
      this.#lookedAtCounts['keys']!++;
      if (this.#scanParts.keys.opening(id) !== null) this.#addResidualHit('key', null, 1);
    }
  }

  /** The log’s own entries: rows of the subject lie under keys that are gone, or are gone themselves. */
  async entries(type: string, positions: readonly number[]): Promise<void> {
    const { log, yieldTurn } = this.#scanParts;
    let nextPosition = 0;
    const rowsBelow = (positionEnd: number, firstPosition: number): number[] => {
      const entryRows: number[] = [];
      for (; nextPosition < positions.length && positions[nextPosition]! < positionEnd; nextPosition++)
        entryRows.push(positions[nextPosition]! - firstPosition);
      return entryRows;
    };
    // Positions that no entry covers are not known to be unreadable.
    let openRowCount = 0;
    for await (const storedEntry of log.proofs.entries(positions)) {
      await yieldTurn();
      this.#lookedAtCounts['entries']!++;
      const { position, positions: count } = storedEntry.facts;
      openRowCount += rowsBelow(position, 0).length;
      openRowCount += this.#openRowCount(storedEntry, rowsBelow(position + count, position));
    }
    openRowCount += positions.length - nextPosition;
    if (openRowCount > 0) this.#addResidualHit('log', type, openRowCount);
  }

  /** How many of these rows of an entry can be read. */
  #openRowCount(storedEntry: StoredEntry, rows: readonly number[]): number {
    const rowKeys = storedEntry.rowKeys();
    const openByKeyId = new Map<string, boolean>();
    const isOpen = (openedKeyId: string): boolean => {
      let isKeyOpen = openByKeyId.get(openedKeyId);
      if (isKeyOpen === undefined) openByKeyId.set(openedKeyId, (isKeyOpen = this.#scanParts.keys.opening(openedKeyId) !== null));
      return isKeyOpen;
    };
    let droppedRowIds: ReadonlySet<number> | null = null;
    return rows.filter((row) => {
      const subjectKeyId = rowKeys?.keyIdOf(row) ?? null;
      if (subjectKeyId !== null) return isOpen(subjectKeyId);
      droppedRowIds ??= droppedRows(storedEntry);
      return !droppedRowIds.has(row);
    }).length;
  }

  /** Tables of all branches. */
  async versions({ type, paths, positions }: ErasedVersions): Promise<void> {
    for (const { rows } of currentBranches(this.#scanParts.state, tenantOfErased({ paths }))) {
      await this.#scanParts.yieldTurn();
      const versions = rows.versions(type);
      let readableRows = 0;
      for (const position of positions) {
        this.#lookedAtCounts['versions']!++;
        if ((versions?.versionAt(position) ?? -1) >= 0) readableRows++;
        if (this.#lookedAtCounts['versions']! % 1024 === 0) await this.#scanParts.yieldTurn();
      }
      if (readableRows > 0) this.#addResidualHit('rows', type, readableRows);
    }
    const residualVectors = this.#scanParts.state.embeddings.countOf(positions);
    if (residualVectors > 0) this.#addResidualHit('embeddings', type, residualVectors);
  }

  /** Texts of exhibits, views and removals that named the subject. */
  async mention(position: number, erased: ReadonlySet<number>): Promise<void> {
    await this.#scanParts.yieldTurn();
    this.#lookedAtCounts['mentions']!++;
    const mentioningBody = (await this.#scanParts.log.proofs.entry({ position }))?.open().entry.body;
    if (mentioningBody?.kind === 'exhibit' && this.#scanParts.seals.open(mentioningBody.recipe) !== null)
      this.#addResidualHit('exhibit', mentioningBody.exhibit, 1);
    if (mentioningBody?.kind === 'view' && this.#scanParts.seals.open(mentioningBody.sql) !== null)
      this.#addResidualHit('view', mentioningBody.name, 1);
    if (mentioningBody !== undefined && isOpen(mentioningBody) && this.#stillHoldsText(mentioningBody, erased))
      this.#addResidualHit('entry', mentioningBody.kind, 1);
    if (mentioningBody?.kind === 'removal' && mentioningBody.keys.length > 0)
      this.#addResidualHit('removal', mentioningBody.type, 1);
  }

  /** Whether an entry holds anything of what was erased: of vectors, those of these versions; of a definition, what was sealed. */
  #stillHoldsText(body: OpenBody, erased: ReadonlySet<number>): boolean {
    if (isEmbedded(body.content)) return withoutVectors(body.content, (position) => erased.has(position)) !== null;
    const sealedText = sealedTextIn(body);
    return sealedText === null ? !isBlank(body) : this.#scanParts.seals.open(sealedText) !== null;
  }

  /** Scans recipes and notes on all exhibits of the tenant, including those since the mentions were found. */
  async exhibits(tenant: string | null, scanTarget: ScanTarget): Promise<void> {
    const { state, log, seals, yieldTurn, links: linksLookedAt } = this.#scanParts;
    for (const { id, links } of state.exhibits.all()) {
      for (const { leaf, path } of links) {
        if (tenantOf(path) !== tenant) continue;
        this.#lookedAtCounts['links']!++;
        if (linksLookedAt.has(leaf)) continue;
        await yieldTurn();
        const exhibitBody = (await log.proofs.entry({ leaf }))?.open().entry.body;
        const openedRecipe = exhibitBody?.kind === 'exhibit' ? seals.open(exhibitBody.recipe) : null;
        if (openedRecipe !== null && scanTarget.isIn(openedRecipe)) this.#addResidualHit('exhibit', id, 1);
      }
    }
  }

  /** Entries of kinds that no reader of this release knows, since the mentions were found too. */
  async openEntries(tenant: string | null, scanTarget: ScanTarget): Promise<void> {
    const { state, log, seals, yieldTurn, links: linksLookedAt } = this.#scanParts;
    for (const { leaf, path } of state.openEntries.searchable()) {
      if (tenantOf(path) !== tenant) continue;
      this.#lookedAtCounts['open_entries']!++;
      if (linksLookedAt.has(leaf)) continue;
      await yieldTurn();
      const openBody = (await log.proofs.entry({ leaf }))?.open().entry.body;
      if (openBody !== undefined && isOpen(openBody) && scanTarget.isIn(textsOf(openBody, (text) => seals.open(text))))
        this.#addResidualHit('entry', openBody.kind, 1);
    }
  }

  /** Rows of others that say the subject in a cell of their own; its own that came after the intent are for another erasure. */
  async cells(tenant: string | null, scanTarget: ScanTarget, intended: bigint): Promise<void> {
    const { state, yieldTurn } = this.#scanParts;
    const paths = pathCodesOfTenant(tenant, state.rows.scopes);
    let [testedColumn, cellTestOf] = ['', scanTarget.column('string')];
    for (const storedTexts of state.rows.texts(paths)) {
      const columnName = `${storedTexts.type}.${storedTexts.column}`;
      if (columnName !== testedColumn) [testedColumn, cellTestOf] = [columnName, scanTarget.column(storedTexts.of)];
      const saysSubject = cellTestOf(storedTexts.vector);
      const cellsPerTurn =
        storedTexts.of === 'json' ? Math.min(scanTarget.cellsPerTurn, jsonCellsPerTurn) : scanTarget.cellsPerTurn;
      for (let cellsFrom = 0; cellsFrom < storedTexts.length; cellsFrom += cellsPerTurn) {
        const cellsEnd = Math.min(storedTexts.length, cellsFrom + cellsPerTurn);
        for (let row = cellsFrom; row < cellsEnd; row++)
          if (saysSubject(row) && storedTexts.stands(row)) this.#countCellHit(storedTexts, columnName, row, scanTarget, intended);
        this.#lookedAtCounts['cells']! += cellsEnd - cellsFrom;
        await yieldTurn();
      }
    }
  }

  /** Rows without a subject that repeat words of erased rows. */
  async words(tenant: string | null): Promise<void> {
    const { state, words, yieldTurn } = this.#scanParts;
    const wordSearch = words.search();
    if (wordSearch === null) return;
    const derivable = state.rows.derivable(tenant);
    for (const storedTexts of state.rows.texts(pathCodesOfTenant(tenant, state.rows.scopes))) {
      const isDerivable = derivable.has(storedTexts.type);
      const erasedSinceOf = erasedSinceReader(storedTexts, wordSearch);
      const isBodyColumn = storedTexts.type === named.type && storedTexts.column === named.column;
      for (let row = 0, wordsBudget = wordBytesPerTurn; row < storedTexts.length; row++) {
        this.#lookedAtCounts['words']!++;
        const bodySha256 =
          isBodyColumn && storedTexts.stands(row) && storedTexts.subjectOf(row) === null
            ? referredTo(textAt(storedTexts.vector, row))
            : null;
        const { since: erasedSince, looked: lookedAtBytes } =
          bodySha256 === null
            ? erasedSinceOf(row)
            : { since: await this.#erasedSinceInBody(tenant, bodySha256, wordSearch), looked: 1 };
        const isAfterErasure = erasedSince !== Infinity && (isDerivable || storedTexts.positionOf(row) > erasedSince);
        if (isAfterErasure && storedTexts.stands(row) && storedTexts.subjectOf(row) === null)
          this.#addResidualHit('words', `${storedTexts.type}.${storedTexts.column}`, 1);
        wordsBudget -= lookedAtBytes;
        if (wordsBudget > 0) continue;
        wordsBudget = wordBytesPerTurn;
        await yieldTurn();
      }
      await yieldTurn();
    }
  }

  /** A body that rests beside the log, some of it a turn. */
  async #erasedSinceInBody(tenant: string | null, sha256: string, search: WordSearch): Promise<number> {
    const knownSince = this.#sinceByBody.get(sha256);
    if (knownSince !== undefined) return knownSince;
    const bodyReader = await this.#scanParts.bodies.open({ scope: tenant ?? '', sha256 });
    let erasedSince = Infinity;
    if (bodyReader !== undefined) {
      try {
        // A sentence may begin in one piece and go on in the next: in UTF-16 it is longer.
        let windowTail: Uint8Array = new Uint8Array(0);
        for await (const bodyChunk of bodyReader.read(0, bodyReader.size)) {
          const bodyWindow = Buffer.concat([windowTail, bodyChunk]);
          erasedSince = Math.min(erasedSince, search.sinceInBytes(bodyWindow));
          windowTail = bodyWindow.subarray(Math.max(0, bodyWindow.length - 2 * search.longest));
          await this.#scanParts.yieldTurn();
        }
      } finally {
        await bodyReader.close();
      }
    }
    this.#sinceByBody.set(sha256, erasedSince);
    return erasedSince;
  }

  #countCellHit(
    { type, subjectOf, systemFrom }: StoredTexts,
    name: string,
    row: number,
    scanTarget: ScanTarget,
    intendedInstant: bigint,
  ): void {
    const cellSubject = subjectOf(row);
    if (cellSubject === null || !scanTarget.is(String(cellSubject))) this.#addResidualHit('cells', name, 1);
    else if (systemFrom(row) < intendedInstant) this.#addResidualHit('rows', type, 1);
  }

  texts(tenant: string | null, sought: ScanTarget): void {
    for (const store of this.#scanParts.stores) {
      this.#lookedAtCounts['stores']!++;
      for (const { where, what, count } of store.search?.(sought, tenant) ?? []) this.#addResidualHit(where, what, count);
    }
  }

  async files(): Promise<void> {
    const staleFiles = await this.#scanParts.staleFiles();
    if (staleFiles.length > 0) this.#addResidualHit('files', null, staleFiles.length);
  }

  #addResidualHit(where: string, what: string | null, count: number): void {
    const hitName = `${where}\0${what}`;
    this.#residualHits.set(hitName, { where, what, count: (this.#residualHits.get(hitName)?.count ?? 0) + count });
  }
}

/** Cells of JSON that are tested within a turn. */
const jsonCellsPerTurn = 256;
/** Bytes that are looked through for words within a turn; a cell counts for some. */
const wordBytesPerTurn = 1 << 18;
const wordCellBytes = 64;

/** The earliest position of a sentence that a row repeats, and how much was looked at for that. */
function erasedSinceReader(
  { vector, column, of }: StoredTexts,
  search: WordSearch,
): (row: number) => { since: number; looked: number } {
  const noneErased = { since: Infinity, looked: 1 };
  if (vector.kind === 'dict') {
    const sinceByCode = new Map<number, number>();
    return (row) => {
      const code = vector.values[row]!;
      if (vector.nulls?.[row] === 1) return noneErased;
      const knownSince = sinceByCode.get(code);
      if (knownSince !== undefined) return { since: knownSince, looked: 1 };
      const text = vector.dictionary.text(code);
      const erasedSince = erasedSinceInCell(Buffer.from(text, 'utf8'), { column, of }, search);
      sinceByCode.set(code, erasedSince);
      return { since: erasedSince, looked: wordCellBytes + text.length };
    };
  }
  const { heap, offsets, nulls } = vector;
  return (row) => {
    if (nulls?.[row] === 1) return noneErased;
    const bytes = heap.subarray(offsets[row]!, offsets[row + 1]!);
    return { since: erasedSinceInCell(bytes, { column, of }, search), looked: wordCellBytes + bytes.length };
  };
}

/** Rows of an entry, numbered on over its parts, of which only the leaf hash is left. */
function droppedRows(stored: StoredEntry): ReadonlySet<number> {
  const droppedRowIds = new Set<number>();
  let firstRow = 0;
  for (const { ops, dropped = [] } of rowBodiesOf(stored.open().entry.body)) {
    for (const row of dropped) droppedRowIds.add(firstRow + row);
    firstRow += ops.length;
  }
  return droppedRowIds;
}

/** JSON may spell letters by numbers, and bytes that are no text rest in base64. */
function erasedSinceInCell(bytes: Uint8Array, { column, of }: Pick<StoredTexts, 'column' | 'of'>, search: WordSearch): number {
  const sinceAsWritten = search.sinceIn(bytes);
  if (of === 'json')
    return bytes.includes(backslash) ? Math.min(sinceAsWritten, search.sinceInText(respellJson(bytes))) : sinceAsWritten;
  if (!column.endsWith('_base64') && !(column === named.column && isBase64(bytes))) return sinceAsWritten;
  return Math.min(sinceAsWritten, search.sinceInBytes(Buffer.from(residualDecoder.decode(bytes), 'base64')));
}

const backslash = '\\'.charCodeAt(0);
const residualDecoder = new TextDecoder();

function respellJson(bytes: Uint8Array): string {
  const jsonText = residualDecoder.decode(bytes);
  try {
    return JSON.stringify(JSON.parse(jsonText));
  } catch {
    return jsonText;
  }
}

const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/;

function isBase64(bytes: Uint8Array): boolean {
  return bytes.length % 4 === 0 && base64Pattern.test(residualDecoder.decode(bytes));
}

function pathCodesOfTenant(tenant: string | null, scopes: PathCodes): Set<number> {
  const pathCodes = new Set<number>();
  for (let code = 0; code < scopes.size; code++) {
    const path = scopes.path(code);
    if (tenant === null ? path === null : path !== null && covers(tenant, path)) pathCodes.add(code);
  }
  return pathCodes;
}
