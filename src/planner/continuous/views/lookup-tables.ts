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
  read(path: string, bytesMax: number): Promise<Uint8Array>;
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
const rowsMax = 1_000_000;
const tablesPerTenantMax = 64;
const fieldsMax = 256;
const refreshMinutesMax = 525_600;
const chunkBytes = 64 * 1024;

export class LookupTables {
  /** Rises with every definition and its end: plans that named a table by then are bound anew. */
  epoch = 0;
  readonly #dependencies: LookupTablesDependencies;
  /** By owner's path, then name. */
  readonly #tables = new Map<string | null, Map<string, Table>>();

  constructor(dependencies: LookupTablesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Reads the file, then puts the table in the place of an earlier one of the same name and owner. */
  async register(definition: LookupDefinition, owner: string | null): Promise<LookupStatus> {
    check(definition);
    const { files, clock } = this.#dependencies;
    if (files === null) {
      throw new ServiceError('REL_ACL', 'lookup files are off: SERVICE_LOOKUP_ROOT names the directory that they are read from');
    }
    this.#admit(definition.name, owner);
    const table = new Table(definition, files, clock);
    await table.load();
    const owned = this.#tables.get(owner) ?? new Map<string, Table>();
    owned.get(definition.name)?.stop();
    this.#tables.set(owner, owned.set(definition.name, table));
    this.epoch++;
    void table.refresh();
    return table.status();
  }

  /** Throws REL_NOT_FOUND where this path has no such table, even if another path has one. */
  drop(name: string, owner: string | null): void {
    const owned = this.#tables.get(owner);
    const table = owned?.get(name);
    if (table === undefined) {
      throw new ServiceError('REL_NOT_FOUND', `there is no lookup table ${JSON.stringify(name)} of this organisation path`);
    }
    table.stop();
    owned!.delete(name);
    if (owned!.size === 0) this.#tables.delete(owner);
    this.epoch++;
  }

  /** The table that a caller of this path means by a name. */
  table(path: string | null, name: string): LookupTable | undefined {
    return this.#nearest(path, name);
  }

  #nearest(path: string | null, name: string): Table | undefined {
    let nearest: { readonly owner: string | null; readonly table: Table } | undefined;
    for (const [owner, owned] of this.#tables) {
      const table = owned.get(name);
      if (table === undefined || !isVisible(owner, path)) continue;
      if (nearest === undefined || (owner ?? '').length > (nearest.owner ?? '').length) nearest = { owner, table };
    }
    return nearest?.table;
  }

  /** Keys of the table that a caller of this path means by a name; null where there is none. */
  keys(path: string | null, name: string): readonly string[] | null {
    return this.#nearest(path, name)?.keys() ?? null;
  }

  /** Tables by name; of equal names the nearer owner's first. */
  list(path: string | null): readonly LookupStatus[] {
    const seen = [...this.#tables].filter(([owner]) => isVisible(owner, path));
    seen.sort(([a], [b]) => (b ?? '').length - (a ?? '').length);
    const tables = seen.flatMap(([, owned]) => [...owned.values()].map((table) => table.status()));
    return tables.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  /** Tables of the tenant that were loaded with this text: the file is its owner’s to change. */
  search(sought: ScanTarget, tenant: string | null): readonly ResidualHit[] {
    const hits: ResidualHit[] = [];
    for (const [owner, owned] of this.#tables) {
      if (tenantOf(owner) !== tenant) continue;
      for (const [name, table] of owned) {
        const count = table.rowsSaying(sought);
        if (count > 0) hits.push({ where: 'lookup', what: name, count });
      }
    }
    return hits;
  }

  /** Ends the refreshing. */
  close(): void {
    for (const owned of this.#tables.values()) for (const table of owned.values()) table.stop();
  }

  #admit(name: string, owner: string | null): void {
    if (this.#tables.get(owner)?.has(name)) return;
    let tenantTables = 0;
    for (const [path, owned] of this.#tables) if (tenantOf(path) === tenantOf(owner)) tenantTables += owned.size;
    if (tenantTables >= tablesPerTenantMax)
      throw new ServiceError('REL_QUOTA', `a tenant has at most ${tablesPerTenantMax} lookup tables`);
  }
}

class Table implements LookupTable {
  readonly #definition: LookupDefinition;
  readonly #files: LookupFiles;
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  #rows = new Map<string, readonly (string | null)[]>();
  #loadedAt = 0n;
  #failure: string | null = null;

  constructor(definition: LookupDefinition, files: LookupFiles, clock: Clock) {
    this.#definition = definition;
    this.#files = files;
    this.#clock = clock;
  }

  get fields(): readonly string[] {
    return this.#definition.fields;
  }

  fieldType = (field: string): 'string' | undefined => (this.#definition.fields.includes(field) ? 'string' : undefined);

  value = (field: string, key: Cell): Cell => {
    if (key === null || key instanceof Float32Array) return null;
    return this.#rows.get(String(key))?.[this.#definition.fields.indexOf(field)] ?? null;
  };

  async load(): Promise<void> {
    const bytes = await this.#files.read(this.#definition.path, bytesMax);
    this.#rows = await readRows(bytes, this.#definition);
    this.#loadedAt = this.#clock.now();
    this.#failure = null;
  }

  /** Until it is stopped; at once where the table is not to be refreshed. */
  async refresh(): Promise<void> {
    const { refreshMinutes } = this.#definition;
    while (refreshMinutes !== null && !this.#stopped.signal.aborted) {
      await this.#clock.sleep(refreshMinutes * 60_000, this.#stopped.signal);
      if (this.#stopped.signal.aborted) return;
      try {
        await this.load();
      } catch (error) {
        this.#failure = error instanceof ServiceError ? error.message : 'the file could not be read';
      }
    }
  }

  keys(): readonly string[] {
    return [...this.#rows.keys()];
  }

  rowsSaying(sought: ScanTarget): number {
    let count = 0;
    for (const [key, fields] of this.#rows) {
      if (sought.is(key) || fields.some((field) => field !== null && sought.is(field))) count++;
    }
    return count;
  }

  stop(): void {
    this.#stopped.abort();
  }

  status(): LookupStatus {
    return { ...this.#definition, rows: this.#rows.size, loadedAt: this.#loadedAt, failure: this.#failure };
  }
}

/** A table is visible to the path that owns it and to paths below; one without an owner to callers without a path. */
function isVisible(owner: string | null, path: string | null): boolean {
  return owner === null || path === null ? owner === path : covers(owner, path);
}

function check({ name, path, key, fields, refreshMinutes }: LookupDefinition): void {
  checkIdentifier(name, 'the name of a lookup table');
  checkText(path, 'the path');
  checkIdentifier(key, 'the key');
  for (const field of fields) checkIdentifier(field, 'a field');
  if (fields.length === 0 || fields.length > fieldsMax || new Set(fields).size !== fields.length) {
    throw new ServiceError('REL_INVALID', `a lookup table has 1 to ${fieldsMax} fields, each named once`);
  }
  if (
    refreshMinutes !== null &&
    !(Number.isInteger(refreshMinutes) && refreshMinutes >= 1 && refreshMinutes <= refreshMinutesMax)
  ) {
    throw new ServiceError('REL_INVALID', `REFRESH EVERY takes 1 to ${refreshMinutesMax} minutes`);
  }
}

/** RFC 4180 with a header, read in pieces so that others have their turn. */
async function readRows(bytes: Uint8Array, { key, fields }: LookupDefinition): Promise<Map<string, readonly (string | null)[]>> {
  if (!isUtf8(bytes)) throw new ServiceError('REL_INVALID', 'the lookup file is not UTF-8');
  const rows = new Map<string, readonly (string | null)[]>();
  let headerColumns: { readonly key: number; readonly fields: readonly number[] } | null = null;
  const parser = parse({
    bom: true,
    skip_empty_lines: true,
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
  });
  try {
    for await (const record of Readable.from(pieces(bytes)).pipe(parser) as AsyncIterable<(string | null)[]>) {
      if (headerColumns === null) {
        headerColumns = columnsOfHeader(record, key, fields);
        continue;
      }
      const at = record[headerColumns.key];
      if (at === null || at === undefined) throw refusal(rows.size + 1, 'has no key');
      if (rows.has(at)) throw refusal(rows.size + 1, 'has the key of an earlier one');
      if (rows.size === rowsMax) throw new ServiceError('REL_TOO_LARGE', `a lookup table has at most ${rowsMax} rows`);
      rows.set(
        at,
        headerColumns.fields.map((field) => record[field] ?? null),
      );
    }
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw refusal(rows.size + 1, 'is not well-formed CSV');
  }
  if (headerColumns === null) throw new ServiceError('REL_INVALID', 'the lookup file has no header');
  return rows;
}

function* pieces(bytes: Uint8Array): Generator<Buffer, void> {
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    const piece = bytes.subarray(start, start + chunkBytes);
    yield Buffer.from(piece.buffer, piece.byteOffset, piece.length);
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
function refusal(row: number, problem: string): ServiceError {
  return new ServiceError('REL_INVALID', `row ${row} of the lookup file ${problem}`);
}
