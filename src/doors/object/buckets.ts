/** Buckets: rows of ObjectStoreBucket, and the bucket `types`, which shows rows of all other types. */
import type { S3Exchange } from './exchange.ts';
import { requireAccepted, ObjectReader, bucketType, instantMs, objectType, oneRow, provenance } from './object-rows.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import { typesBucket } from './object-metadata.ts';
import { xmlDocument } from './xml.ts';

export function listBuckets(s3Exchange: S3Exchange): Promise<S3Reply> {
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'ListBuckets');
    const bucketRows = await objectReader.ask(
      `SELECT name, MAX(system_from) AS system_from FROM ${bucketType} GROUP BY name ORDER BY name`,
      [],
    );
    const bucketEntries = bucketRows.map(
      (bucketRow) => [bucketRow['name'] as string, new Date(instantMs(bucketRow)).toISOString()] as const,
    );
    const allBuckets = [...bucketEntries, [typesBucket, new Date(0).toISOString()] as const].sort(([a], [b]) => (a < b ? -1 : 1));
    const bucketsXml = xmlDocument('ListAllMyBucketsResult', [
      [
        'Owner',
        [
          ['ID', invocation.caller.path ?? ''],
          ['DisplayName', invocation.caller.principal],
        ],
      ],
      [
        'Buckets',
        allBuckets.map(
          ([bucketName, creationDate]) =>
            [
              'Bucket',
              [
                ['Name', bucketName],
                ['CreationDate', creationDate],
              ],
            ] as const,
        ),
      ],
    ]);
    return { ...xmlReply(bucketsXml), overtaken: objectReader.overtaken };
  });
}

export function headBucket(s3Exchange: S3Exchange): Promise<S3Reply> {
  return replyInBucket(s3Exchange, 'HeadBucket', () => ({
    status: 200,
    headers: { 'x-amz-bucket-region': bucketRegion, 'content-length': '0' },
  }));
}

export function getLocation(s3Exchange: S3Exchange): Promise<S3Reply> {
  return replyInBucket(s3Exchange, 'GetBucketLocation', () => xmlReply(xmlDocument('LocationConstraint', null)));
}

/** Not enabled: clients would list versions and delete them one by one, and this door has neither. */
export function getVersioning(s3Exchange: S3Exchange): Promise<S3Reply> {
  return replyInBucket(s3Exchange, 'GetBucketVersioning', () => xmlReply(xmlDocument('VersioningConfiguration', null)));
}

export function getBucketTagging(s3Exchange: S3Exchange): Promise<S3Reply> {
  return replyInBucket(s3Exchange, 'GetBucketTagging', () => {
    throw new ObjectRefusal('NoSuchTagSet', 404, 'REL_NOT_FOUND', 'the bucket has no tags');
  });
}

const bucketRegion = 'us-east-1';

function replyInBucket(s3Exchange: S3Exchange, s3Operation: string, bucketReply: () => S3Reply): Promise<S3Reply> {
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, s3Operation);
    if (s3Exchange.request.bucket === typesBucket) objectReader.look();
    else await objectReader.bucket();
    return bucketReply();
  });
}

export async function createBucket(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: bucketRequest, sync } = s3Exchange;
  const { bucket: bucketName } = bucketRequest;
  const isBucketName =
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucketName) && !bucketName.includes('..') && !/^\d+(\.\d+){3}$/.test(bucketName);
  if (!isBucketName)
    throw new ObjectRefusal(
      'InvalidBucketName',
      400,
      'REL_INVALID',
      'a bucket has 3 to 63 lower-case letters, digits, dots and hyphens, and begins and ends with a letter or a digit',
    );
  // The body names a region: there is one only, so it is ignored.
  await s3Exchange.incoming().collect(65_536);
  const writeBucket = (): Promise<void> =>
    s3Exchange.invoke('ingest', async (invocation) => {
      const rows = oneRow({ _pk: ['string', bucketName], name: ['string', bucketName] });
      const outcome = await invocation.submit(
        {
          kind: 'put-rows',
          type: bucketType,
          rows,
          atomic: false,
          createType: false,
          provenance: provenance('CreateBucket'),
          when: 'absent',
        },
        { sync, waits: true },
      );
      if (outcome.errors[0]?.code === 'REL_CONFLICT') throw s3Refusals.bucketExists();
      requireAccepted(outcome);
    });
  await s3Exchange.parts.traffic.writing(s3Exchange.caller, bucketName, writeBucket);
  return { status: 200, headers: { location: `/${bucketName}` } };
}

export async function deleteBucket(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { sync, parts: objectParts } = s3Exchange;
  const { bucket: bucketName } = s3Exchange.request;
  const removeBucket = (): Promise<void> =>
    s3Exchange.invoke('delete', async (invocation) => {
      const objectReader = new ObjectReader(s3Exchange, invocation, 'DeleteBucket');
      const bucketRow = await objectReader.bucket(true);
      const { path } = invocation.caller;
      const own = path === null ? 'namespace_path IS NULL' : 'namespace_path = $2';
      const sql = `SELECT key FROM ${objectType} WHERE bucket = $1 AND ${own} LIMIT 1`;
      const [held] = await objectReader.ask(sql, path === null ? [bucketName] : [bucketName, path]);
      if (held !== undefined) throw s3Refusals.bucketNotEmpty();
      const when = { unchangedSince: bucketRow['system_from'] as bigint };
      requireAccepted(
        await invocation.submit({ kind: 'delete-rows', type: bucketType, keys: [bucketName], when }, { sync, waits: true }),
      );
    });
  await objectParts.traffic.deleting(s3Exchange.caller, bucketName, removeBucket);
  return { status: 204, headers: {} };
}
