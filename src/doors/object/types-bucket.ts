/** The bucket `types`: every row of every type that the caller may see, as `<Type>/<percent-encoded key>.json`; read-only. */
import { ServiceError } from '../../errors.ts';
import { classifiedTypes } from '../../projections/catalog/builtin-types.ts';
import type { Cell } from '../../log/values/value.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { quote, type VerbRow } from '../verbs/verb-rows.ts';
import { contentRange, isKnown, byteRangeOf } from './preconditions.ts';
import type { S3Exchange } from './exchange.ts';
import { Collector, lastOf, type ListedObject, listReply, listRequestOf } from './list-objects.ts';
import { ObjectReader, hexHash, instantMs, quotedTag } from './object-rows.ts';
import { writtenHeaders } from './object-metadata.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import type { S3Reply } from './reply.ts';

const typePageRows = 1_000;
/** Most types that one page reads. */
const listedTypesMax = 200;

export function getRow(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: objectRequest } = s3Exchange;
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'GetObject');
    const rowKeyMatch = /^([^/]+)\/([^/]+)\.json$/.exec(objectRequest.key);
    const rowPk = rowKeyMatch === null ? null : decodeRowKey(rowKeyMatch[2]!);
    if (rowKeyMatch === null || rowPk === null) throw s3Refusals.noSuchKey();
    const typeName = rowKeyMatch[1]!;
    refuseClassifiedType(typeName);
    if (objectReader.snapshot.catalog.type(typeName) === undefined || !objectReader.snapshot.offers(typeName))
      throw s3Refusals.noSuchKey();
    const typeRow = await objectReader.byKey('*', quote(typeName), rowPk);
    if (typeRow === null) throw s3Refusals.noSuchKey();
    invocation.describe({ rowCount: 1 });
    const rowContent = rowDocument(objectReader, typeName, typeRow);
    const rowHash = hexHash(rowContent);
    const modifiedMs = instantMs(typeRow);
    const rowHeaders = {
      etag: quotedTag(rowHash),
      'last-modified': new Date(modifiedMs).toUTCString(),
      'accept-ranges': 'bytes',
      'content-type': 'application/json',
      ...writtenHeaders(typeRow['system_from'] as bigint),
    };
    if (isKnown(objectRequest, { hash: rowHash, modifiedMs })) return { status: 304, headers: rowHeaders };
    const rowRange = byteRangeOf(objectRequest, { hash: rowHash, modifiedMs }, rowContent.length);
    const shownBytes = rowRange === null ? rowContent : rowContent.subarray(rowRange.from, rowRange.to);
    const rangeHeader = rowRange === null ? {} : { 'content-range': contentRange(rowRange, rowContent.length) };
    return {
      status: rowRange === null ? 200 : 206,
      headers: { ...rowHeaders, ...rangeHeader },
      body: shownBytes,
      overtaken: objectReader.overtaken,
    };
  });
}

/** In the order of types, and of the keys of their rows as they are stored; a page ends with its rows. */
export function listRows(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: objectRequest } = s3Exchange;
  const listRequest = listRequestOf(objectRequest);
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'ListObjects');
    const listingCollector = new Collector(listRequest);
    let lookedTypes = 0;
    let typeBefore = '';
    for (const typeName of listedTypesOf(objectReader)) {
      if (listingCollector.isFull) break;
      const typePrefix = `${typeName}/`;
      const isBelowType = listRequest.prefix.startsWith(typePrefix);
      if (!isBelowType && !typePrefix.startsWith(listRequest.prefix)) continue;
      if (listRequest.after !== '' && !listRequest.after.startsWith(typePrefix) && listRequest.after >= typePrefix) continue;
      if (!isBelowType && listRequest.delimiter === '/') {
        if (listRequest.after !== typePrefix) listingCollector.take([{ key: typePrefix, size: 0, hash: null, modifiedMs: 0 }]);
        continue;
      }
      if (lookedTypes++ === listedTypesMax) {
        listingCollector.stopBehind(lastOf(typeBefore));
        break;
      }
      typeBefore = typePrefix;
      try {
        await takeTypeRows(
          objectReader,
          typeName,
          listRequest.after.startsWith(typePrefix) ? listRequest.after : '',
          listRequest.prefix,
          listingCollector,
        );
      } catch (typeError) {
        // Among all types, one whose rows may not be read, or not without a reason, has none.
        if (isBelowType || !(typeError instanceof ServiceError) || typeError.kind !== 'forbidden') throw typeError;
      }
    }
    const rowListing = listingCollector.listing(false);
    invocation.describe({ rowCount: rowListing.objects.length });
    return { ...listReply(objectRequest, listRequest, rowListing), overtaken: objectReader.overtaken };
  });
}

function listedTypesOf({ snapshot: typesSnapshot }: ObjectReader): string[] {
  return typesSnapshot.catalog
    .types()
    .map(({ name: typeName }) => typeName)
    .filter((typeName) => !typeName.includes('/') && !classifiedTypes.has(typeName) && typesSnapshot.offers(typeName))
    .sort((a, b) => (`${a}/` < `${b}/` ? -1 : 1));
}

async function takeTypeRows(
  objectReader: ObjectReader,
  typeName: string,
  afterKey: string,
  listPrefix: string,
  listingCollector: Collector,
): Promise<void> {
  let lastPk = rowPkOf(afterKey, typeName) ?? '';
  while (!listingCollector.isFull) {
    const pageSql = `SELECT * FROM ${quote(typeName)} WHERE _pk > $1 ORDER BY _pk, namespace_path LIMIT ${typePageRows}`;
    const typeRows = await objectReader.ask(pageSql, [lastPk]);
    const { path: callerPath } = objectReader.invocation.caller;
    const rowByPk = new Map<string, VerbRow>();
    for (const typeRow of typeRows) {
      const rowPk = typeRow['_pk'] as string;
      if (!rowByPk.has(rowPk) || typeRow['namespace_path'] === callerPath) rowByPk.set(rowPk, typeRow);
    }
    const listedObjects: ListedObject[] = [];
    for (const [pk, row] of rowByPk) {
      const objectName = `${typeName}/${encodeURIComponent(pk)}.json`;
      if (!objectName.startsWith(listPrefix)) continue;
      const rowContent = rowDocument(objectReader, typeName, row);
      listedObjects.push({ key: objectName, size: rowContent.length, hash: hexHash(rowContent), modifiedMs: instantMs(row) });
    }
    listingCollector.take(listedObjects);
    if (typeRows.length < typePageRows) return;
    lastPk = typeRows.at(-1)!['_pk'] as string;
  }
}

function rowPkOf(objectName: string, typeName: string): string | null {
  const rowFileName = objectName.startsWith(`${typeName}/`) ? objectName.slice(typeName.length + 1) : null;
  return rowFileName === null ? null : decodeRowKey(rowFileName.replace(/\.json$/, ''));
}

function decodeRowKey(encodedKey: string): string | null {
  try {
    return decodeURIComponent(encodedKey);
  } catch {
    return null;
  }
}

function refuseClassifiedType(typeName: string): void {
  if (classifiedTypes.has(typeName)) throw new ObjectRefusal('AccessDenied', 403, 'REL_HUMINT', 'the type is classified');
}

/** JSON cells appear as JSON, vectors as lists. */
function rowDocument({ snapshot: typesSnapshot }: ObjectReader, typeName: string, typeRow: VerbRow): Buffer {
  const typeProperties = typesSnapshot.catalog.type(typeName)?.properties ?? {};
  const documentMembers = Object.entries(typeRow).map(([columnName, rowCell]) => {
    const isJson =
      Object.hasOwn(typeProperties, columnName) && typeProperties[columnName]!.type === 'json' && isJsonCell(rowCell);
    const cellValue = rowCell instanceof Float32Array ? [...rowCell] : rowCell;
    return `${JSON.stringify(columnName)}:${isJson ? (rowCell as string) : exactJson(cellValue)}`;
  });
  return Buffer.from(`{${documentMembers.join(',')}}`);
}

/** A masked cell may show something else. */
function isJsonCell(jsonCell: Cell | undefined): boolean {
  if (typeof jsonCell !== 'string') return false;
  try {
    JSON.parse(jsonCell);
    return true;
  } catch {
    return false;
  }
}
