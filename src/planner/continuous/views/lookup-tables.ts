/**
 * Lookup tables: CSV files that projections and conditions read by key, until the next restart. Source: specification,
 * "Lookup table" and the operator REGISTER LOOKUP.
 *
 * - A table belongs to the organisation path of who registered it: that path and those below it see it. Of two by one name
 *   the nearer one counts.
 * - A file is read whole or not at all, and a refresh replaces the table whole: a question sees one state or the other.
 *   A refresh that fails leaves the table as it was, and the listing says why.
 * - One key has one row: a file that names a key twice is refused. Fields are text; what is not there is NULL.
 */
import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { parse } from 'csv-parse';
import type { Clock } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import { covers } from '../../../governance/caller.ts';
import type { ResidualHit } from '../../../governance/erasure/erasure-receipt.ts';
import type { ScanTarget } from '../../../governance/erasure/scan-target.ts';
import { type Cell, checkIdentifier, checkText, tenantOf } from '../../../log/values/value.ts';
import type { LookupTable } from '../../expressions/lookup-table.ts';

export interface LookupFiles {
  /** The file's bytes. Throws REL_INVALID for any path that is not a regular file below the root, REL_TOO_LARGE. */
  read(path: string, lookupFileBytesMax: number): Promise<Uint8Array>;
}

export interface LookupDefinition {
  readonly name: string;
  /** Path of the CSV file, below the root. */
  readonly path: string;
  /** Column whose text is looked up. */
  readonly key: string;
  readonly fields: readonly string[];
  readonly refreshMinutes: number | null;
}

export interface LookupStatus extends LookupDefinition {
  readonly rows: number;
  /** ns at which the rows in use were read. */
  readonly loadedAt: bigint;
  /** Why the last refresh changed nothing; null when it succeeded. */
  readonly failure: string | null;
}

export interface LookupTablesDependencies {
  /** null: no root is set. */
  readonly files: LookupFiles | null;
  readonly clock: Clock;
}

const bytesMax = 16 * 1024 * 1024;
const lookupRowsMax = 1_000_000;
const tablesPerTenantMax = 64;
const lookupFieldsMax = 256;
const lookupRefreshMax = 525_600;
const lookupChunkBytes = 64 * 1024;

export class LookupTables {
  /** Rises with every definition and its end: plans that named a table by then are bound anew. */
  epoch = 0;
  readonly #dependencies: LookupTablesDependencies;
  /** By owner's path, then name. */
  readonly #tablesByOwner = new Map<string | null, Map<string, LoadedLookupTable>>();

  constructor(dependencies: LookupTablesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Reads the file, then puts the table in the place of an earlier one of the same name and owner. */
  async register(lookupDefinition: LookupDefinition, owner: string | null): Promise<LookupStatus> {
    checkLookupTable(lookupDefinition);
    const { files, clock } = this.#dependencies;
    if (files === null) {
      throw new ServiceError('REL_ACL', 'lookup files are off: SERVICE_LOOKUP_ROOT names the directory that they are read from');
    }
    this.#admitLookupTable(lookupDefinition.name, owner);
    const lookupTable = new LoadedLookupTable(lookupDefinition, files, clock);
    await lookupTable.load();
    const ownedTables = this.#tablesByOwner.get(owner) ?? new Map<string, LoadedLookupTable>();
    ownedTables.get(lookupDefinition.name)?.stop();
    this.#tablesByOwner.set(owner, ownedTables.set(lookupDefinition.name, lookupTable));
    this.epoch++;
    void lookupTable.refresh();
    return lookupTable.status();
  }

  /** Throws REL_NOT_FOUND where this path has no such table, even if another path has one. */
  drop(name: string, owner: string | null): void {
    const ownedTables = this.#tablesByOwner.get(owner);
    const droppedTable = ownedTables?.get(name);
    if (droppedTable === undefined) {
      throw new ServiceError('REL_NOT_FOUND', `there is no lookup table ${JSON.stringify(name)} of this organisation path`);
    }
    droppedTable.stop();
    ownedTables!.delete(name);
    if (ownedTables!.size === 0) this.#tablesByOwner.delete(owner);
    this.epoch++;
  }

  /** The table that a caller of this path means by a name. */
  table(path: string | null, name: string): LookupTable | undefined {
    return this.#nearestTable(path, name);
  }

  #nearestTable(path: string | null, name: string): LoadedLookupTable | undefined {
    let nearestLookup: { readonly owner: string | null; readonly table: LoadedLookupTable } | undefined;
    for (const [owner, ownedTables] of this.#tablesByOwner) {
      const lookupTable = ownedTables.get(name);
      if (lookupTable === undefined || !isLookupVisible(owner, path)) continue;
      if (nearestLookup === undefined || (owner ?? '').length > (nearestLookup.owner ?? '').length)
        nearestLookup = { owner, table: lookupTable };
    }
    return nearestLookup?.table;
  }

  /** Keys of the table that a caller of this path means by a name; null where there is none. */
  keys(path: string | null, name: string): readonly string[] | null {
    return this.#nearestTable(path, name)?.keys() ?? null;
  }

  /** Tables by name; of equal names the nearer owner's first. */
  list(path: string | null): readonly LookupStatus[] {
    const visibleTables = [...this.#tablesByOwner].filter(([owner]) => isLookupVisible(owner, path));
    visibleTables.sort(([a], [b]) => (b ?? '').length - (a ?? '').length);
    const lookupStatuses = visibleTables.flatMap(([, ownedTables]) => [...ownedTables.values()].map((table) => table.status()));
    return lookupStatuses.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  /** Tables of the tenant that were loaded with this text: the file is its owner’s to change. */
  search(soughtSubject: ScanTarget, tenant: string | null): readonly ResidualHit[] {
    const lookupHits: ResidualHit[] = [];
    for (const [owner, ownedTables] of this.#tablesByOwner) {
      if (tenantOf(owner) !== tenant) continue;
      for (const [name, table] of ownedTables) {
        const lookupHitCount = table.rowsSaying(soughtSubject);
        if (lookupHitCount > 0) lookupHits.push({ where: 'lookup', what: name, count: lookupHitCount });
      }
    }
    return lookupHits;
  }

  /** Ends the refreshing. */
  close(): void {
    for (const ownedTables of this.#tablesByOwner.values()) for (const lookupTable of ownedTables.values()) lookupTable.stop();
  }

  #admitLookupTable(name: string, owner: string | null): void {
    if (this.#tablesByOwner.get(owner)?.has(name)) return;
    let tenantTables = 0;
    for (const [path, ownedTables] of this.#tablesByOwner)
      if (tenantOf(path) === tenantOf(owner)) tenantTables += ownedTables.size;
    if (tenantTables >= tablesPerTenantMax)
      throw new ServiceError('REL_QUOTA', `a tenant has at most ${tablesPerTenantMax} lookup tables`);
  }
}

class LoadedLookupTable implements LookupTable {
  readonly #lookupDefinition: LookupDefinition;
  readonly #lookupFiles: LookupFiles;
  readonly #lookupClock: Clock;
  readonly #refreshStopped = new AbortController();
  #lookupRows = new Map<string, readonly (string | null)[]>();
  #lookupLoadedAt = 0n;
  #refreshFailure: string | null = null;

  constructor(lookupDefinition: LookupDefinition, lookupFiles: LookupFiles, clock: Clock) {
    this.#lookupDefinition = lookupDefinition;
    this.#lookupFiles = lookupFiles;
    this.#lookupClock = clock;
  }

  get fields(): readonly string[] {
    return this.#lookupDefinition.fields;
  }

  fieldType = (field: string): 'string' | undefined => (this.#lookupDefinition.fields.includes(field) ? 'string' : undefined);

  value = (field: string, key: Cell): Cell => {
    if (key === null || key instanceof Float32Array) return null;
    return this.#lookupRows.get(String(key))?.[this.#lookupDefinition.fields.indexOf(field)] ?? null;
  };

  async load(): Promise<void> {
    const lookupFileBytes = await this.#lookupFiles.read(this.#lookupDefinition.path, bytesMax);
    this.#lookupRows = await readLookupRows(lookupFileBytes, this.#lookupDefinition);
    this.#lookupLoadedAt = this.#lookupClock.now();
    this.#refreshFailure = null;
  }

  /** Until it is stopped; at once where the table is not to be refreshed. */
  async refresh(): Promise<void> {
    const { refreshMinutes } = this.#lookupDefinition;
    while (refreshMinutes !== null && !this.#refreshStopped.signal.aborted) {
      await this.#lookupClock.sleep(refreshMinutes * 60_000, this.#refreshStopped.signal);
      if (this.#refreshStopped.signal.aborted) return;
      try {
        await this.load();
      } catch (error) {
        this.#refreshFailure = error instanceof ServiceError ? error.message : 'the file could not be read';
      }
    }
  }

  keys(): readonly string[] {
    return [...this.#lookupRows.keys()];
  }

  rowsSaying(soughtSubject: ScanTarget): number {
    let lookupRowCount = 0;
    for (const [key, lookupFields] of this.#lookupRows) {
      if (soughtSubject.is(key) || lookupFields.some((lookupField) => lookupField !== null && soughtSubject.is(lookupField)))
        lookupRowCount++;
    }
    return lookupRowCount;
  }

  stop(): void {
    this.#refreshStopped.abort();
  }

  status(): LookupStatus {
    return {
      ...this.#lookupDefinition,
      rows: this.#lookupRows.size,
      loadedAt: this.#lookupLoadedAt,
      failure: this.#refreshFailure,
    };
  }
}

/** A table is visible to the path that owns it and to paths below; one without an owner to callers without a path. */
function isLookupVisible(owner: string | null, path: string | null): boolean {
  return owner === null || path === null ? owner === path : covers(owner, path);
}

function checkLookupTable({ name, path, key, fields, refreshMinutes }: LookupDefinition): void {
  checkIdentifier(name, 'the name of a lookup table');
  checkText(path, 'the path');
  checkIdentifier(key, 'the key');
  for (const lookupField of fields) checkIdentifier(lookupField, 'a field');
  if (fields.length === 0 || fields.length > lookupFieldsMax || new Set(fields).size !== fields.length) {
    throw new ServiceError('REL_INVALID', `a lookup table has 1 to ${lookupFieldsMax} fields, each named once`);
  }
  if (
    refreshMinutes !== null &&
    !(Number.isInteger(refreshMinutes) && refreshMinutes >= 1 && refreshMinutes <= lookupRefreshMax)
  ) {
    throw new ServiceError('REL_INVALID', `REFRESH EVERY takes 1 to ${lookupRefreshMax} minutes`);
  }
}

/** RFC 4180 with a header, read in pieces so that others have their turn. */
async function readLookupRows(
  lookupFileBytes: Uint8Array,
  { key, fields }: LookupDefinition,
): Promise<Map<string, readonly (string | null)[]>> {
  if (!isUtf8(lookupFileBytes)) throw new ServiceError('REL_INVALID', 'the lookup file is not UTF-8');
  const lookupRows = new Map<string, readonly (string | null)[]>();
  let headerColumns: { readonly key: number; readonly fields: readonly number[] } | null = null;
  const lookupCsvParser = parse({
    bom: true,
    skip_empty_lines: true,
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
  });
  try {
    for await (const lookupRecord of Readable.from(lookupFileChunks(lookupFileBytes)).pipe(lookupCsvParser) as AsyncIterable<
      (string | null)[]
    >) {
      if (headerColumns === null) {
        headerColumns = columnsOfHeader(lookupRecord, key, fields);
        continue;
      }
      const lookupKey = lookupRecord[headerColumns.key];
      if (lookupKey === null || lookupKey === undefined) throw lookupRowError(lookupRows.size + 1, 'has no key');
      if (lookupRows.has(lookupKey)) throw lookupRowError(lookupRows.size + 1, 'has the key of an earlier one');
      if (lookupRows.size === lookupRowsMax)
        throw new ServiceError('REL_TOO_LARGE', `a lookup table has at most ${lookupRowsMax} rows`);
      lookupRows.set(
        lookupKey,
        headerColumns.fields.map((field) => lookupRecord[field] ?? null),
      );
    }
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw lookupRowError(lookupRows.size + 1, 'is not well-formed CSV');
  }
  if (headerColumns === null) throw new ServiceError('REL_INVALID', 'the lookup file has no header');
  return lookupRows;
}

function* lookupFileChunks(lookupFileBytes: Uint8Array): Generator<Buffer, void> {
  for (let chunkStart = 0; chunkStart < lookupFileBytes.length; chunkStart += lookupChunkBytes) {
    const fileChunk = lookupFileBytes.subarray(chunkStart, chunkStart + lookupChunkBytes);
    yield Buffer.from(fileChunk.buffer, fileChunk.byteOffset, fileChunk.length);
  }
}

function columnsOfHeader(
  header: readonly (string | null)[],
  key: string,
  fields: readonly string[],
): { key: number; fields: number[] } {
  const [first, ...rest] = [key, ...fields].map((name) => {
    const fieldIndex = header.indexOf(name);
    if (fieldIndex < 0) throw new ServiceError('REL_UNKNOWN_COLUMN', `the lookup file has no column ${JSON.stringify(name)}`);
    if (header.indexOf(name, fieldIndex + 1) >= 0)
      throw new ServiceError('REL_INVALID', `the lookup file names ${JSON.stringify(name)} twice`);
    return fieldIndex;
  });
  return { key: first!, fields: rest };
}

/** The error names the row by its number behind the header, and never shows its cells. */
function lookupRowError(row: number, problem: string): ServiceError {
  return new ServiceError('REL_INVALID', `row ${row} of the lookup file ${problem}`);
}
