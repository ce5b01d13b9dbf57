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

const pageRows = 1_000;
/** Most types that one page reads. */
const typesMax = 200;

export function getRow(exchange: S3Exchange): Promise<S3Reply> {
  const { request } = exchange;
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'GetObject');
    const named = /^([^/]+)\/([^/]+)\.json$/.exec(request.key);
    const pk = named === null ? null : decodeKey(named[2]!);
    if (named === null || pk === null) throw s3Refusals.noSuchKey();
    const type = named[1]!;
    refuseClassified(type);
    if (objectReader.snapshot.catalog.type(type) === undefined || !objectReader.snapshot.offers(type))
      throw s3Refusals.noSuchKey();
    const row = await objectReader.byKey('*', quote(type), pk);
    if (row === null) throw s3Refusals.noSuchKey();
    invocation.describe({ rowCount: 1 });
    const content = documentOf(objectReader, type, row);
    const hash = hexHash(content);
    const modifiedMs = instantMs(row);
    const headers = {
      etag: quotedTag(hash),
      'last-modified': new Date(modifiedMs).toUTCString(),
      'accept-ranges': 'bytes',
      'content-type': 'application/json',
      ...writtenHeaders(row['system_from'] as bigint),
    };
    if (isKnown(request, { hash, modifiedMs })) return { status: 304, headers };
    const span = byteRangeOf(request, { hash, modifiedMs }, content.length);
    const shownBytes = span === null ? content : content.subarray(span.from, span.to);
    const rangeHeader = span === null ? {} : { 'content-range': contentRange(span, content.length) };
    return {
      status: span === null ? 200 : 206,
      headers: { ...headers, ...rangeHeader },
      body: shownBytes,
      overtaken: objectReader.overtaken,
    };
  });
}

/** In the order of types, and of the keys of their rows as they are stored; a page ends with its rows. */
export function listRows(exchange: S3Exchange): Promise<S3Reply> {
  const { request } = exchange;
  const listRequest = listRequestOf(request);
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'ListObjects');
    const collector = new Collector(listRequest);
    let looked = 0;
    let before = '';
    for (const type of typesOf(objectReader)) {
      if (collector.isFull) break;
      const start = `${type}/`;
      const isBelow = listRequest.prefix.startsWith(start);
      if (!isBelow && !start.startsWith(listRequest.prefix)) continue;
      if (listRequest.after !== '' && !listRequest.after.startsWith(start) && listRequest.after >= start) continue;
      if (!isBelow && listRequest.delimiter === '/') {
        if (listRequest.after !== start) collector.take([{ key: start, size: 0, hash: null, modifiedMs: 0 }]);
        continue;
      }
      if (looked++ === typesMax) {
        collector.stopBehind(lastOf(before));
        break;
      }
      before = start;
      try {
        await takeRows(
          objectReader,
          type,
          listRequest.after.startsWith(start) ? listRequest.after : '',
          listRequest.prefix,
          collector,
        );
      } catch (error) {
        // Among all types, one whose rows may not be read, or not without a reason, has none.
        if (isBelow || !(error instanceof ServiceError) || error.kind !== 'forbidden') throw error;
      }
    }
    const listing = collector.listing(false);
    invocation.describe({ rowCount: listing.objects.length });
    return { ...listReply(request, listRequest, listing), overtaken: objectReader.overtaken };
  });
}

function typesOf({ snapshot }: ObjectReader): string[] {
  return snapshot.catalog
    .types()
    .map(({ name }) => name)
    .filter((name) => !name.includes('/') && !classifiedTypes.has(name) && snapshot.offers(name))
    .sort((a, b) => (`${a}/` < `${b}/` ? -1 : 1));
}

async function takeRows(
  objectReader: ObjectReader,
  type: string,
  after: string,
  prefix: string,
  collector: Collector,
): Promise<void> {
  let last = pkOf(after, type) ?? '';
  while (!collector.isFull) {
    const sql = `SELECT * FROM ${quote(type)} WHERE _pk > $1 ORDER BY _pk, namespace_path LIMIT ${pageRows}`;
    const rows = await objectReader.ask(sql, [last]);
    const { path } = objectReader.invocation.caller;
    const byKey = new Map<string, VerbRow>();
    for (const row of rows) {
      const pk = row['_pk'] as string;
      if (!byKey.has(pk) || row['namespace_path'] === path) byKey.set(pk, row);
    }
    const objects: ListedObject[] = [];
    for (const [pk, row] of byKey) {
      const key = `${type}/${encodeURIComponent(pk)}.json`;
      if (!key.startsWith(prefix)) continue;
      const content = documentOf(objectReader, type, row);
      objects.push({ key, size: content.length, hash: hexHash(content), modifiedMs: instantMs(row) });
    }
    collector.take(objects);
    if (rows.length < pageRows) return;
    last = rows.at(-1)!['_pk'] as string;
  }
}

function pkOf(key: string, type: string): string | null {
  const rest = key.startsWith(`${type}/`) ? key.slice(type.length + 1) : null;
  return rest === null ? null : decodeKey(rest.replace(/\.json$/, ''));
}

function decodeKey(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function refuseClassified(type: string): void {
  if (classifiedTypes.has(type)) throw new ObjectRefusal('AccessDenied', 403, 'REL_HUMINT', 'the type is classified');
}

/** JSON cells appear as JSON, vectors as lists. */
function documentOf({ snapshot }: ObjectReader, type: string, row: VerbRow): Buffer {
  const properties = snapshot.catalog.type(type)?.properties ?? {};
  const members = Object.entries(row).map(([name, cell]) => {
    const isJson = Object.hasOwn(properties, name) && properties[name]!.type === 'json' && isJsonText(cell);
    const value = cell instanceof Float32Array ? [...cell] : cell;
    return `${JSON.stringify(name)}:${isJson ? (cell as string) : exactJson(value)}`;
  });
  return Buffer.from(`{${members.join(',')}}`);
}

/** A masked cell may show something else. */
function isJsonText(cell: Cell | undefined): boolean {
  if (typeof cell !== 'string') return false;
  try {
    JSON.parse(cell);
    return true;
  } catch {
    return false;
  }
}
