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

export const objectKey = (bucketName: string, objectName: string): string => `${bucketName}/${objectName}`;
export const provenance = (s3Method: string): Provenance => ({
  source: 'object',
  method: s3Method,
  confidence: 1,
  derivedFrom: null,
});

/** Cost units of finding a row by its key. */
const keyLookupUnits = 0.01;

/** Questions of one request, on one snapshot, recorded as the operation. */
export class ObjectReader {
  readonly invocation: Invocation;
  readonly #exchange: S3Exchange;
  readonly #session: QuerySeries;

  constructor(s3Exchange: S3Exchange, invocation: Invocation, s3Operation: string) {
    const { bucket: bucketName, key: objectName } = s3Exchange.request;
    this.invocation = invocation;
    this.#exchange = s3Exchange;
    const operationVerb = { template: `${s3Operation} ?`, literals: [objectKey(bucketName, objectName)] };
    invocation.describe(operationVerb);
    this.#session = s3Exchange.parts.planner.querySeries(invocation, operationVerb);
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

  async ask(
    objectSql: string,
    objectParameters: readonly Literal[],
    time: DefaultTime = this.#exchange.time,
  ): Promise<VerbRow[]> {
    const { signal, request: objectRequest } = this.#exchange;
    const statedPurpose = objectRequest.header('x-service-purpose');
    const seriesOptions = { time, dialect: 'wide', queriesOnly: true, purpose: statedPurpose, signal } as const;
    return rowsOf(
      await this.#session.query({
        sql: objectSql,
        ...seriesOptions,
        ...(objectParameters.length > 0 && { parameters: objectParameters }),
      }),
    );
  }

  /** The row of a key: where the caller sees several organisations' rows, its own, else the first. */
  async byKey(
    wantedColumns: string,
    objectTypeName: string,
    objectPk: string,
    objectVersion: bigint | null = null,
  ): Promise<VerbRow | null> {
    const versionCondition = objectVersion === null ? '' : ' AND system_from = $2';
    const selectedColumns = wantedColumns === '*' ? '*' : `${wantedColumns}, system_from, namespace_path`;
    const keySql = `SELECT ${selectedColumns} FROM ${objectTypeName} WHERE _pk = $1${versionCondition} ORDER BY namespace_path`;
    const keyRows = await (objectVersion === null
      ? this.ask(keySql, [objectPk])
      : this.ask(keySql, [objectPk, objectVersion], { system: objectVersion }));
    this.invocation.describe({ costUnits: keyLookupUnits });
    const { path: callerPath } = this.invocation.caller;
    return keyRows.find((keyRow) => keyRow['namespace_path'] === callerPath) ?? keyRows[0] ?? null;
  }

  /** Throws NoSuchBucket; `mustBeOwn`: also where it is of an organisation below, for that is read and not written. */
  async bucket(mustBeOwn = false): Promise<VerbRow> {
    const { bucket: bucketName } = this.#exchange.request;
    const bucketRow = await this.byKey('name', bucketType, bucketName);
    if (bucketRow === null || (mustBeOwn && bucketRow['namespace_path'] !== this.invocation.caller.path))
      throw s3Refusals.noSuchBucket(bucketName);
    return bucketRow;
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
  async object(
    objectColumns: string,
    bucketName: string,
    objectName: string,
    versionId: string | undefined,
  ): Promise<VerbRow | null> {
    const objectPk = objectKey(bucketName, objectName);
    if (versionId === undefined) return this.byKey(objectColumns, objectType, objectPk);
    if (!/^\d{1,19}$/.test(versionId) || BigInt(versionId) > 9_223_372_036_854_775_807n) throw s3Refusals.noSuchVersion();
    const objectRow = await this.byKey(objectColumns, objectType, objectPk, BigInt(versionId));
    if (objectRow === null) throw s3Refusals.noSuchVersion();
    return objectRow;
  }
}

/** A row that is about to be put: null cells are left out. */
export function oneRow(objectCells: Readonly<Record<string, readonly [ColumnType, Cell]>>): RowBatch {
  const objectColumns: NamedColumn[] = [];
  for (const [columnName, [columnType, objectCell]] of Object.entries(objectCells)) {
    if (objectCell === null) continue;
    const cellBuilder = new VectorBuilder(columnType, 1, typeof objectCell === 'string' ? objectCell.length : 0);
    cellBuilder.append(objectCell);
    objectColumns.push({ name: columnName, type: columnType, vector: cellBuilder.build() });
  }
  return { length: 1, columns: objectColumns };
}

/** The cells of a body in its row: text as it is, other bytes in base64, and a reference where it is large. */
export interface BodyCells {
  readonly size: number;
  readonly sha256: string;
  readonly body: string;
  readonly as: 'text' | 'base64' | 'blob';
}

export function cellsOf(objectContent: Buffer, sha256 = hexHash(objectContent)): BodyCells {
  const isUtf8Text = isUtf8(objectContent);
  return {
    size: objectContent.length,
    sha256,
    body: objectContent.toString(isUtf8Text ? 'utf8' : 'base64'),
    as: isUtf8Text ? 'text' : 'base64',
  };
}

export const blobCells = (invocation: Invocation, storedBody: StoredBody, objectPk: string): BodyCells => ({
  size: storedBody.size,
  sha256: storedBody.sha256,
  body: invocation.bodies().refer(storedBody, { type: objectType, key: objectPk }),
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
export function bodyOf({ snapshot, invocation }: ObjectReader, objectRow: VerbRow, objectPk: string): ShownBody {
  const bodyText = textOf(objectRow['body']) ?? '';
  const mayBodyBeMasked = snapshot.masksOf(objectType).has('body');
  if (objectRow['body_as'] === 'blob') {
    try {
      return {
        stored: invocation
          .bodies()
          .bodyOf(bodyText, { type: objectType, key: objectPk, path: textOf(objectRow['namespace_path']) }),
      };
    } catch (bodyError) {
      throw mayBodyBeMasked && bodyError instanceof ServiceError && bodyError.code === 'REL_UNPROCESSABLE'
        ? maskedBodyError()
        : bodyError;
    }
  }
  const objectContent = Buffer.from(bodyText, objectRow['body_as'] === 'base64' ? 'base64' : 'utf8');
  if (mayBodyBeMasked && hexHash(objectContent) !== objectRow['content_hash']) throw maskedBodyError();
  return { content: objectContent };
}

const maskedBodyError = (): ServiceError => s3Refusals.accessDenied('the body of the object is masked');

export const hexHash = (hashedContent: Uint8Array): string => createHash('sha256').update(hashedContent).digest('hex');

/** Throws what refused the only row of a write. */
export function requireAccepted(putOutcome: Pick<Outcome, 'errors' | 'systemFrom'>): bigint {
  const [rowRefusal] = putOutcome.errors;
  if (rowRefusal !== undefined) throw new ServiceError(rowRefusal.code as ErrorCode, rowRefusal.detail);
  return putOutcome.systemFrom;
}

export const quotedTag = (objectHash: string): string => `"${objectHash}"`;
export const instantMs = (objectRow: VerbRow): number => Number((objectRow['system_from'] as bigint) / 1_000_000n);
