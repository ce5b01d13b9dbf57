/** DeleteObject and DeleteObjects: rows end now, and earlier versions stay readable. */
import type { ErrorCode } from '../../errors.ts';
import type { RowRejection } from '../../projections/command.ts';
import { errorCodesOf } from '../error-codes.ts';
import type { S3Exchange } from './exchange.ts';
import { requireAccepted, ObjectReader, objectKey, objectType } from './object-rows.ts';
import { conditionOf } from './put-object.ts';
import { s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import { memberText, type Node, xmlDocument, xmlMembers } from './xml.ts';

const keysMax = 1_000;
const documentBytesMax = 2 << 20;

export async function deleteObject(exchange: S3Exchange): Promise<S3Reply> {
  const { request, sync } = exchange;
  refuseVersion(request.query.get('versionId'));
  await exchange.invoke('delete', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'DeleteObject');
    const stated = request.header('if-match') === null ? null : await conditionOf(exchange, objectReader);
    if (stated === 'absent') throw s3Refusals.notImplemented('deleting what is not there');
    const keys = [objectKey(request.bucket, request.key)];
    const outcome = await invocation.submit(
      { kind: 'delete-rows', type: objectType, keys, ...(stated !== null && { when: stated }) },
      { sync, waits: true },
    );
    const [refused] = outcome.errors;
    if (refused?.code === 'REL_CONFLICT' && stated !== null) throw s3Refusals.preconditionFailed('If-Match');
    // Deleting a missing object succeeds, but its bucket must exist.
    if (refused?.code === 'REL_NOT_FOUND') await objectReader.bucket();
    else requireAccepted(outcome);
  });
  return { status: 204, headers: {} };
}

export async function deleteObjects(exchange: S3Exchange): Promise<S3Reply> {
  const { request, sync } = exchange;
  const text = (await exchange.incoming().collect(documentBytesMax)).toString('utf8');
  const otherwise = `1 to ${keysMax} objects are named`;
  const members = xmlMembers(text, 'Delete', { element: 'Object', most: keysMax, otherwise });
  const quiet = memberText(members, 'Quiet')?.trim() === 'true';
  const listed = (members['Object'] ?? []) as readonly unknown[];
  if (listed.length === 0 || listed.length > keysMax) throw s3Refusals.malformedXml(otherwise);
  const keys = listed.map((each) => {
    if (typeof each !== 'object' || each === null) throw s3Refusals.malformedXml('<Object> names a <Key>');
    const named = each as Readonly<Record<string, unknown>>;
    refuseVersion(memberText(named, 'VersionId') ?? undefined);
    const key = memberText(named, 'Key');
    if (key === null || key === '') throw s3Refusals.malformedXml('<Object> names a <Key>');
    return key;
  });
  const errors = await exchange.invoke('delete', async (invocation) => {
    await new ObjectReader(exchange, invocation, 'DeleteObjects').bucket();
    const named = [...new Set(keys)];
    const outcome = await invocation.submit(
      { kind: 'delete-rows', type: objectType, keys: named.map((key) => objectKey(request.bucket, key)) },
      { sync, waits: true },
    );
    const refused = outcome.errors.filter(({ code }) => code !== 'REL_NOT_FOUND');
    return new Map<string, RowRejection>(refused.map((each) => [named[each.index]!, each]));
  });
  const results: (readonly [string, Node])[] = [];
  for (const key of keys) {
    const error = errors.get(key);
    if (error !== undefined)
      results.push([
        'Error',
        [
          ['Key', key],
          ['Code', errorCodesOf(error.code as ErrorCode).object],
          ['Message', error.detail],
        ],
      ]);
    else if (!quiet) results.push(['Deleted', [['Key', key]]]);
  }
  return xmlReply(xmlDocument('DeleteResult', results));
}

function refuseVersion(versionId: string | undefined): void {
  if (versionId === undefined || versionId === '' || versionId === 'null') return;
  throw s3Refusals.notImplemented(
    'deleting one version: an object is deleted as a whole, and DELETE /types/…?hard=true removes it for good',
  );
}
