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

const deletedKeysMax = 1_000;
const deleteXmlBytesMax = 2 << 20;

export async function deleteObject(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: objectRequest, sync } = s3Exchange;
  refuseVersionDelete(objectRequest.query.get('versionId'));
  await s3Exchange.invoke('delete', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'DeleteObject');
    const statedCondition = objectRequest.header('if-match') === null ? null : await conditionOf(s3Exchange, objectReader);
    if (statedCondition === 'absent') throw s3Refusals.notImplemented('deleting what is not there');
    const deletedKeys = [objectKey(objectRequest.bucket, objectRequest.key)];
    const deleteOutcome = await invocation.submit(
      { kind: 'delete-rows', type: objectType, keys: deletedKeys, ...(statedCondition !== null && { when: statedCondition }) },
      { sync, waits: true },
    );
    const [deleteRefusal] = deleteOutcome.errors;
    if (deleteRefusal?.code === 'REL_CONFLICT' && statedCondition !== null) throw s3Refusals.preconditionFailed('If-Match');
    // Deleting a missing object succeeds, but its bucket must exist.
    if (deleteRefusal?.code === 'REL_NOT_FOUND') await objectReader.bucket();
    else requireAccepted(deleteOutcome);
  });
  return { status: 204, headers: {} };
}

export async function deleteObjects(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: objectRequest, sync } = s3Exchange;
  const deleteXml = (await s3Exchange.incoming().collect(deleteXmlBytesMax)).toString('utf8');
  const keyCountText = `1 to ${deletedKeysMax} objects are named`;
  const deleteMembers = xmlMembers(deleteXml, 'Delete', { element: 'Object', most: deletedKeysMax, otherwise: keyCountText });
  const isQuiet = memberText(deleteMembers, 'Quiet')?.trim() === 'true';
  const listedObjects = (deleteMembers['Object'] ?? []) as readonly unknown[];
  if (listedObjects.length === 0 || listedObjects.length > deletedKeysMax) throw s3Refusals.malformedXml(keyCountText);
  const deletedKeys = listedObjects.map((listedObject) => {
    if (typeof listedObject !== 'object' || listedObject === null) throw s3Refusals.malformedXml('<Object> names a <Key>');
    const namedObject = listedObject as Readonly<Record<string, unknown>>;
    refuseVersionDelete(memberText(namedObject, 'VersionId') ?? undefined);
    const deletedKey = memberText(namedObject, 'Key');
    if (deletedKey === null || deletedKey === '') throw s3Refusals.malformedXml('<Object> names a <Key>');
    return deletedKey;
  });
  const errorByKey = await s3Exchange.invoke('delete', async (invocation) => {
    await new ObjectReader(s3Exchange, invocation, 'DeleteObjects').bucket();
    const namedObject = [...new Set(deletedKeys)];
    const deleteOutcome = await invocation.submit(
      {
        kind: 'delete-rows',
        type: objectType,
        keys: namedObject.map((deletedKey) => objectKey(objectRequest.bucket, deletedKey)),
      },
      { sync, waits: true },
    );
    const rowRefusals = deleteOutcome.errors.filter(({ code }) => code !== 'REL_NOT_FOUND');
    return new Map<string, RowRejection>(rowRefusals.map((listedObject) => [namedObject[listedObject.index]!, listedObject]));
  });
  const deleteResults: (readonly [string, Node])[] = [];
  for (const key of deletedKeys) {
    const keyError = errorByKey.get(key);
    if (keyError !== undefined)
      deleteResults.push([
        'Error',
        [
          ['Key', key],
          ['Code', errorCodesOf(keyError.code as ErrorCode).object],
          ['Message', keyError.detail],
        ],
      ]);
    else if (!isQuiet) deleteResults.push(['Deleted', [['Key', key]]]);
  }
  return xmlReply(xmlDocument('DeleteResult', deleteResults));
}

function refuseVersionDelete(versionId: string | undefined): void {
  if (versionId === undefined || versionId === '' || versionId === 'null') return;
  throw s3Refusals.notImplemented(
    'deleting one version: an object is deleted as a whole, and DELETE /types/…?hard=true removes it for good',
  );
}
