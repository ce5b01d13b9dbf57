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

export async function residualScan(erasure: Erasure, sought: ScanTarget, parts: ScanDependencies): Promise<ScanResult> {
  const scan = new Scan(parts);
  const { keys, versions, mentions, tenant, intended } = erasure;
  scan.keys(keys);
  for (const { type, positions } of versions) await scan.entries(type, positions);
  for (const each of versions) await scan.versions(each);
  const erased = new Set(versions.flatMap(({ positions }) => positions));
  for (const position of mentions) await scan.mention(position, erased);
  await scan.exhibits(tenant, sought);
  await scan.openEntries(tenant, sought);
  await scan.cells(tenant, sought, intended.time);
  await scan.words(tenant);
  scan.texts(tenant, sought);
  await scan.files();
  return scan.result();
}

class Scan {
  readonly #parts: ScanDependencies;
  readonly #hits = new Map<string, ResidualHit>();
  /** By hash, the earliest position of a sentence that a body repeats. */
  readonly #bodies = new Map<string, number>();
  readonly #looked: Record<string, number> = {
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
    this.#parts = parts;
  }

  result(): ScanResult {
    return { hits: [...this.#hits.values()], lookedAt: this.#looked };
  }

  keys(ids: readonly string[]): void {
    for (const id of ids) {
      this.#looked['keys']!++;
      if (this.#parts.keys.opening(id) !== null) this.#hit('key', null, 1);
    }
  }

  /** The log’s own entries: rows of the subject lie under keys that are gone, or are gone themselves. */
  async entries(type: string, positions: readonly number[]): Promise<void> {
    const { log, yieldTurn } = this.#parts;
    let next = 0;
    const rowsBelow = (end: number, first: number): number[] => {
      const rows: number[] = [];
      for (; next < positions.length && positions[next]! < end; next++) rows.push(positions[next]! - first);
      return rows;
    };
    // Positions that no entry covers are not known to be unreadable.
    let open = 0;
    for await (const stored of log.proofs.entries(positions)) {
      await yieldTurn();
      this.#looked['entries']!++;
      const { position, positions: count } = stored.facts;
      open += rowsBelow(position, 0).length;
      open += this.#openRows(stored, rowsBelow(position + count, position));
    }
    open += positions.length - next;
    if (open > 0) this.#hit('log', type, open);
  }

  /** How many of these rows of an entry can be read. */
  #openRows(stored: StoredEntry, rows: readonly number[]): number {
    const keys = stored.rowKeys();
    const known = new Map<string, boolean>();
    const isOpen = (id: string): boolean => {
      let open = known.get(id);
      if (open === undefined) known.set(id, (open = this.#parts.keys.opening(id) !== null));
      return open;
    };
    let dropped: ReadonlySet<number> | null = null;
    return rows.filter((row) => {
      const key = keys?.keyIdOf(row) ?? null;
      if (key !== null) return isOpen(key);
      dropped ??= droppedRows(stored);
      return !dropped.has(row);
    }).length;
  }

  /** Tables of all branches. */
  async versions({ type, paths, positions }: ErasedVersions): Promise<void> {
    for (const { rows } of currentBranches(this.#parts.state, tenantOfErased({ paths }))) {
      await this.#parts.yieldTurn();
      const versions = rows.versions(type);
      let readableRows = 0;
      for (const position of positions) {
        this.#looked['versions']!++;
        if ((versions?.versionAt(position) ?? -1) >= 0) readableRows++;
        if (this.#looked['versions']! % 1024 === 0) await this.#parts.yieldTurn();
      }
      if (readableRows > 0) this.#hit('rows', type, readableRows);
    }
    const vectors = this.#parts.state.embeddings.countOf(positions);
    if (vectors > 0) this.#hit('embeddings', type, vectors);
  }

  /** Texts of exhibits, views and removals that named the subject. */
  async mention(position: number, erased: ReadonlySet<number>): Promise<void> {
    await this.#parts.yieldTurn();
    this.#looked['mentions']!++;
    const body = (await this.#parts.log.proofs.entry({ position }))?.open().entry.body;
    if (body?.kind === 'exhibit' && this.#parts.seals.open(body.recipe) !== null) this.#hit('exhibit', body.exhibit, 1);
    if (body?.kind === 'view' && this.#parts.seals.open(body.sql) !== null) this.#hit('view', body.name, 1);
    if (body !== undefined && isOpen(body) && this.#holds(body, erased)) this.#hit('entry', body.kind, 1);
    if (body?.kind === 'removal' && body.keys.length > 0) this.#hit('removal', body.type, 1);
  }

  /** Whether an entry holds anything of what was erased: of vectors, those of these versions; of a definition, what was sealed. */
  #holds(body: OpenBody, erased: ReadonlySet<number>): boolean {
    if (isEmbedded(body.content)) return withoutVectors(body.content, (position) => erased.has(position)) !== null;
    const sealed = sealedTextIn(body);
    return sealed === null ? !isBlank(body) : this.#parts.seals.open(sealed) !== null;
  }

  /** Scans recipes and notes on all exhibits of the tenant, including those since the mentions were found. */
  async exhibits(tenant: string | null, sought: ScanTarget): Promise<void> {
    const { state, log, seals, yieldTurn, links: known } = this.#parts;
    for (const { id, links } of state.exhibits.all()) {
      for (const { leaf, path } of links) {
        if (tenantOf(path) !== tenant) continue;
        this.#looked['links']!++;
        if (known.has(leaf)) continue;
        await yieldTurn();
        const body = (await log.proofs.entry({ leaf }))?.open().entry.body;
        const recipe = body?.kind === 'exhibit' ? seals.open(body.recipe) : null;
        if (recipe !== null && sought.isIn(recipe)) this.#hit('exhibit', id, 1);
      }
    }
  }

  /** Entries of kinds that no reader of this release knows, since the mentions were found too. */
  async openEntries(tenant: string | null, sought: ScanTarget): Promise<void> {
    const { state, log, seals, yieldTurn, links: known } = this.#parts;
    for (const { leaf, path } of state.openEntries.searchable()) {
      if (tenantOf(path) !== tenant) continue;
      this.#looked['open_entries']!++;
      if (known.has(leaf)) continue;
      await yieldTurn();
      const body = (await log.proofs.entry({ leaf }))?.open().entry.body;
      if (body !== undefined && isOpen(body) && sought.isIn(textsOf(body, (text) => seals.open(text))))
        this.#hit('entry', body.kind, 1);
    }
  }

  /** Rows of others that say the subject in a cell of their own; its own that came after the intent are for another erasure. */
  async cells(tenant: string | null, sought: ScanTarget, intended: bigint): Promise<void> {
    const { state, yieldTurn } = this.#parts;
    const paths = pathsOf(tenant, state.rows.scopes);
    let [of, testOf] = ['', sought.column('string')];
    for (const texts of state.rows.texts(paths)) {
      const name = `${texts.type}.${texts.column}`;
      if (name !== of) [of, testOf] = [name, sought.column(texts.of)];
      const says = testOf(texts.vector);
      const perTurn = texts.of === 'json' ? Math.min(sought.cellsPerTurn, jsonPerTurn) : sought.cellsPerTurn;
      for (let from = 0; from < texts.length; from += perTurn) {
        const end = Math.min(texts.length, from + perTurn);
        for (let row = from; row < end; row++)
          if (says(row) && texts.stands(row)) this.#countHit(texts, name, row, sought, intended);
        this.#looked['cells']! += end - from;
        await yieldTurn();
      }
    }
  }

  /** Rows without a subject that repeat words of erased rows. */
  async words(tenant: string | null): Promise<void> {
    const { state, words, yieldTurn } = this.#parts;
    const search = words.search();
    if (search === null) return;
    const derivable = state.rows.derivable(tenant);
    for (const texts of state.rows.texts(pathsOf(tenant, state.rows.scopes))) {
      const isMade = derivable.has(texts.type);
      const sinceOf = sinceReader(texts, search);
      const holdsBodies = texts.type === named.type && texts.column === named.column;
      for (let row = 0, budget = wordsPerTurn; row < texts.length; row++) {
        this.#looked['words']!++;
        const body =
          holdsBodies && texts.stands(row) && texts.subjectOf(row) === null ? referredTo(textAt(texts.vector, row)) : null;
        const { since, looked } =
          body === null ? sinceOf(row) : { since: await this.#sinceInBody(tenant, body, search), looked: 1 };
        const isLater = since !== Infinity && (isMade || texts.positionOf(row) > since);
        if (isLater && texts.stands(row) && texts.subjectOf(row) === null) this.#hit('words', `${texts.type}.${texts.column}`, 1);
        budget -= looked;
        if (budget > 0) continue;
        budget = wordsPerTurn;
        await yieldTurn();
      }
      await yieldTurn();
    }
  }

  /** A body that rests beside the log, some of it a turn. */
  async #sinceInBody(tenant: string | null, sha256: string, search: WordSearch): Promise<number> {
    const known = this.#bodies.get(sha256);
    if (known !== undefined) return known;
    const reader = await this.#parts.bodies.open({ scope: tenant ?? '', sha256 });
    let since = Infinity;
    if (reader !== undefined) {
      try {
        // A sentence may begin in one piece and go on in the next: in UTF-16 it is longer.
        let last: Uint8Array = new Uint8Array(0);
        for await (const piece of reader.read(0, reader.size)) {
          const window = Buffer.concat([last, piece]);
          since = Math.min(since, search.sinceInBytes(window));
          last = window.subarray(Math.max(0, window.length - 2 * search.longest));
          await this.#parts.yieldTurn();
        }
      } finally {
        await reader.close();
      }
    }
    this.#bodies.set(sha256, since);
    return since;
  }

  #countHit({ type, subjectOf, systemFrom }: StoredTexts, name: string, row: number, sought: ScanTarget, intended: bigint): void {
    const subject = subjectOf(row);
    if (subject === null || !sought.is(String(subject))) this.#hit('cells', name, 1);
    else if (systemFrom(row) < intended) this.#hit('rows', type, 1);
  }

  texts(tenant: string | null, sought: ScanTarget): void {
    for (const store of this.#parts.stores) {
      this.#looked['stores']!++;
      for (const { where, what, count } of store.search?.(sought, tenant) ?? []) this.#hit(where, what, count);
    }
  }

  async files(): Promise<void> {
    const stale = await this.#parts.staleFiles();
    if (stale.length > 0) this.#hit('files', null, stale.length);
  }

  #hit(where: string, what: string | null, count: number): void {
    const name = `${where}\0${what}`;
    this.#hits.set(name, { where, what, count: (this.#hits.get(name)?.count ?? 0) + count });
  }
}

/** Cells of JSON that are tested within a turn. */
const jsonPerTurn = 256;
/** Bytes that are looked through for words within a turn; a cell counts for some. */
const wordsPerTurn = 1 << 18;
const cellBytes = 64;

/** The earliest position of a sentence that a row repeats, and how much was looked at for that. */
function sinceReader(
  { vector, column, of }: StoredTexts,
  search: WordSearch,
): (row: number) => { since: number; looked: number } {
  const nothing = { since: Infinity, looked: 1 };
  if (vector.kind === 'dict') {
    const known = new Map<number, number>();
    return (row) => {
      const code = vector.values[row]!;
      if (vector.nulls?.[row] === 1) return nothing;
      const before = known.get(code);
      if (before !== undefined) return { since: before, looked: 1 };
      const text = vector.dictionary.text(code);
      const since = sinceInCell(Buffer.from(text, 'utf8'), { column, of }, search);
      known.set(code, since);
      return { since, looked: cellBytes + text.length };
    };
  }
  const { heap, offsets, nulls } = vector;
  return (row) => {
    if (nulls?.[row] === 1) return nothing;
    const bytes = heap.subarray(offsets[row]!, offsets[row + 1]!);
    return { since: sinceInCell(bytes, { column, of }, search), looked: cellBytes + bytes.length };
  };
}

/** Rows of an entry, numbered on over its parts, of which only the leaf hash is left. */
function droppedRows(stored: StoredEntry): ReadonlySet<number> {
  const rows = new Set<number>();
  let first = 0;
  for (const { ops, dropped = [] } of rowBodiesOf(stored.open().entry.body)) {
    for (const row of dropped) rows.add(first + row);
    first += ops.length;
  }
  return rows;
}

/** JSON may spell letters by numbers, and bytes that are no text rest in base64. */
function sinceInCell(bytes: Uint8Array, { column, of }: Pick<StoredTexts, 'column' | 'of'>, search: WordSearch): number {
  const asItIs = search.sinceIn(bytes);
  if (of === 'json') return bytes.includes(backslash) ? Math.min(asItIs, search.sinceInText(respell(bytes))) : asItIs;
  if (!column.endsWith('_base64') && !(column === named.column && isBase64(bytes))) return asItIs;
  return Math.min(asItIs, search.sinceInBytes(Buffer.from(decoder.decode(bytes), 'base64')));
}

const backslash = '\\'.charCodeAt(0);
const decoder = new TextDecoder();

function respell(bytes: Uint8Array): string {
  const json = decoder.decode(bytes);
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

function isBase64(bytes: Uint8Array): boolean {
  return bytes.length % 4 === 0 && base64.test(decoder.decode(bytes));
}

function pathsOf(tenant: string | null, scopes: PathCodes): Set<number> {
  const codes = new Set<number>();
  for (let code = 0; code < scopes.size; code++) {
    const path = scopes.path(code);
    if (tenant === null ? path === null : path !== null && covers(tenant, path)) codes.add(code);
  }
  return codes;
}
