/** Objects and buckets as rows: the reads within one invocation, and the cells of a row. */
import { createHash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { StoredBody } from '../../governance/writing/large-bodies.ts';
import type { NamedColumn, RowBatch } from '../../log/values/columns.ts';
import type { Provenance } from '../../log/entries/entry.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import type { QuerySeries } from '../../planner/planner-contract.ts';
import type { DefaultTime, Literal } from '../../planner/syntax/statement.ts';
import type { Outcome } from '../../projections/command.ts';
import { type VerbRow, rowsOf, textOf } from '../verbs/verb-rows.ts';
import type { S3Exchange } from './exchange.ts';
import { s3Refusals } from './errors.ts';

export const objectType = 'ObjectStoreObject';
export const bucketType = 'ObjectStoreBucket';

export const objectKey = (bucket: string, key: string): string => `${bucket}/${key}`;
export const provenance = (method: string): Provenance => ({ source: 'object', method, confidence: 1, derivedFrom: null });

/** Cost units of finding a row by its key. */
const lookupUnits = 0.01;

/** Questions of one request, on one snapshot, recorded as the operation. */
export class ObjectReader {
  readonly invocation: Invocation;
  readonly #exchange: S3Exchange;
  readonly #session: QuerySeries;

  constructor(exchange: S3Exchange, invocation: Invocation, operation: string) {
    const { bucket, key } = exchange.request;
    this.invocation = invocation;
    this.#exchange = exchange;
    const verb = { template: `${operation} ?`, literals: [objectKey(bucket, key)] };
    invocation.describe(verb);
    this.#session = exchange.parts.planner.querySeries(invocation, verb);
  }

  get request(): S3Exchange['request'] {
    return this.#exchange.request;
  }

  get snapshot(): GovernedSnapshot {
    return this.#session.snapshot();
  }

  /** Takes the snapshot, so that a caller who may read nothing is refused. */
  look(): void {
    this.#session.snapshot();
  }

  readonly overtaken = (): boolean => this.#session.overtaken();

  async ask(sql: string, parameters: readonly Literal[], time: DefaultTime = this.#exchange.time): Promise<VerbRow[]> {
    const { signal, request } = this.#exchange;
    const purpose = request.header('x-service-purpose');
    const options = { time, dialect: 'wide', queriesOnly: true, purpose, signal } as const;
    return rowsOf(await this.#session.query({ sql, ...options, ...(parameters.length > 0 && { parameters }) }));
  }

  /** The row of a key: where the caller sees several organisations' rows, its own, else the first. */
  async byKey(columns: string, type: string, key: string, version: bigint | null = null): Promise<VerbRow | null> {
    const which = version === null ? '' : ' AND system_from = $2';
    const all = columns === '*' ? '*' : `${columns}, system_from, namespace_path`;
    const sql = `SELECT ${all} FROM ${type} WHERE _pk = $1${which} ORDER BY namespace_path`;
    const rows = await (version === null ? this.ask(sql, [key]) : this.ask(sql, [key, version], { system: version }));
    this.invocation.describe({ costUnits: lookupUnits });
    const { path } = this.invocation.caller;
    return rows.find((row) => row['namespace_path'] === path) ?? rows[0] ?? null;
  }

  /** Throws NoSuchBucket; `own`: also where it is of an organisation below, for that is read and not written. */
  async bucket(own = false): Promise<VerbRow> {
    const { bucket } = this.#exchange.request;
    const row = await this.byKey('name', bucketType, bucket);
    if (row === null || (own && row['namespace_path'] !== this.invocation.caller.path)) throw s3Refusals.noSuchBucket(bucket);
    return row;
  }

  /** The bucket of an object; the access record names the object type in any case. */
  async bucketOfObject(): Promise<void> {
    try {
      await this.bucket(true);
    } finally {
      this.invocation.describe({ objectType });
    }
  }

  /** An object, or one version of it. Throws NoSuchVersion for a version that is not there; null where there is no object. */
  async object(columns: string, bucket: string, key: string, versionId: string | undefined): Promise<VerbRow | null> {
    const pk = objectKey(bucket, key);
    if (versionId === undefined) return this.byKey(columns, objectType, pk);
    if (!/^\d{1,19}$/.test(versionId) || BigInt(versionId) > 9_223_372_036_854_775_807n) throw s3Refusals.noSuchVersion();
    const row = await this.byKey(columns, objectType, pk, BigInt(versionId));
    if (row === null) throw s3Refusals.noSuchVersion();
    return row;
  }
}

/** A row that is about to be put: null cells are left out. */
export function oneRow(cells: Readonly<Record<string, readonly [ColumnType, Cell]>>): RowBatch {
  const columns: NamedColumn[] = [];
  for (const [name, [type, cell]] of Object.entries(cells)) {
    if (cell === null) continue;
    const builder = new VectorBuilder(type, 1, typeof cell === 'string' ? cell.length : 0);
    builder.append(cell);
    columns.push({ name, type, vector: builder.build() });
  }
  return { length: 1, columns };
}

/** The cells of a body in its row: text as it is, other bytes in base64, and a reference where it is large. */
export interface BodyCells {
  readonly size: number;
  readonly sha256: string;
  readonly body: string;
  readonly as: 'text' | 'base64' | 'blob';
}

export function cellsOf(content: Buffer, sha256 = hexHash(content)): BodyCells {
  const isText = isUtf8(content);
  return { size: content.length, sha256, body: content.toString(isText ? 'utf8' : 'base64'), as: isText ? 'text' : 'base64' };
}

export const blobCells = (invocation: Invocation, stored: StoredBody, pk: string): BodyCells => ({
  size: stored.size,
  sha256: stored.sha256,
  body: invocation.bodies().refer(stored, { type: objectType, key: pk }),
  as: 'blob',
});

/** A body as a row has it. */
export type ShownBody =
  | { readonly content: Buffer; readonly stored?: never }
  | { readonly stored: StoredBody; readonly content?: never };

/** Columns that tell the body of a row. */
export const bodyColumns = 'body, body_as, size, content_hash';

/**
 * Throws AccessDenied where the caller sees the body masked: a mask's rendering is no object. Where some cells are masked, the
 * others still match their hash.
 */
export function bodyOf({ snapshot, invocation }: ObjectReader, row: VerbRow, pk: string): ShownBody {
  const body = textOf(row['body']) ?? '';
  const mayBeMasked = snapshot.masksOf(objectType).has('body');
  if (row['body_as'] === 'blob') {
    try {
      return { stored: invocation.bodies().bodyOf(body, { type: objectType, key: pk, path: textOf(row['namespace_path']) }) };
    } catch (error) {
      throw mayBeMasked && error instanceof ServiceError && error.code === 'REL_UNPROCESSABLE' ? maskedError() : error;
    }
  }
  const content = Buffer.from(body, row['body_as'] === 'base64' ? 'base64' : 'utf8');
  if (mayBeMasked && hexHash(content) !== row['content_hash']) throw maskedError();
  return { content };
}

const maskedError = (): ServiceError => s3Refusals.accessDenied('the body of the object is masked');

export const hexHash = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

/** Throws what refused the only row of a write. */
export function requireAccepted(outcome: Pick<Outcome, 'errors' | 'systemFrom'>): bigint {
  const [refused] = outcome.errors;
  if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
  return outcome.systemFrom;
}

export const quotedTag = (hash: string): string => `"${hash}"`;
export const instantMs = (row: VerbRow): number => Number((row['system_from'] as bigint) / 1_000_000n);
