/** Buckets: rows of ObjectStoreBucket, and the bucket `types`, which shows rows of all other types. */
import type { S3Exchange } from './exchange.ts';
import { requireAccepted, ObjectReader, bucketType, instantMs, objectType, oneRow, provenance } from './object-rows.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import { typesBucket } from './object-metadata.ts';
import { xmlDocument } from './xml.ts';

export function listBuckets(exchange: S3Exchange): Promise<S3Reply> {
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'ListBuckets');
    const rows = await objectReader.ask(
      `SELECT name, MAX(system_from) AS system_from FROM ${bucketType} GROUP BY name ORDER BY name`,
      [],
    );
    const bucketEntries = rows.map((row) => [row['name'] as string, new Date(instantMs(row)).toISOString()] as const);
    const all = [...bucketEntries, [typesBucket, new Date(0).toISOString()] as const].sort(([a], [b]) => (a < b ? -1 : 1));
    const document = xmlDocument('ListAllMyBucketsResult', [
      [
        'Owner',
        [
          ['ID', invocation.caller.path ?? ''],
          ['DisplayName', invocation.caller.principal],
        ],
      ],
      [
        'Buckets',
        all.map(
          ([name, date]) =>
            [
              'Bucket',
              [
                ['Name', name],
                ['CreationDate', date],
              ],
            ] as const,
        ),
      ],
    ]);
    return { ...xmlReply(document), overtaken: objectReader.overtaken };
  });
}

export function headBucket(exchange: S3Exchange): Promise<S3Reply> {
  return inBucket(exchange, 'HeadBucket', () => ({
    status: 200,
    headers: { 'x-amz-bucket-region': region, 'content-length': '0' },
  }));
}

export function getLocation(exchange: S3Exchange): Promise<S3Reply> {
  return inBucket(exchange, 'GetBucketLocation', () => xmlReply(xmlDocument('LocationConstraint', null)));
}

/** Not enabled: clients would list versions and delete them one by one, and this door has neither. */
export function getVersioning(exchange: S3Exchange): Promise<S3Reply> {
  return inBucket(exchange, 'GetBucketVersioning', () => xmlReply(xmlDocument('VersioningConfiguration', null)));
}

export function getBucketTagging(exchange: S3Exchange): Promise<S3Reply> {
  return inBucket(exchange, 'GetBucketTagging', () => {
    throw new ObjectRefusal('NoSuchTagSet', 404, 'REL_NOT_FOUND', 'the bucket has no tags');
  });
}

const region = 'us-east-1';

function inBucket(exchange: S3Exchange, operation: string, reply: () => S3Reply): Promise<S3Reply> {
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, operation);
    if (exchange.request.bucket === typesBucket) objectReader.look();
    else await objectReader.bucket();
    return reply();
  });
}

export async function createBucket(exchange: S3Exchange): Promise<S3Reply> {
  const { request, sync } = exchange;
  const { bucket } = request;
  const isName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) && !bucket.includes('..') && !/^\d+(\.\d+){3}$/.test(bucket);
  if (!isName)
    throw new ObjectRefusal(
      'InvalidBucketName',
      400,
      'REL_INVALID',
      'a bucket has 3 to 63 lower-case letters, digits, dots and hyphens, and begins and ends with a letter or a digit',
    );
  // The body names a region: there is one only, so it is ignored.
  await exchange.incoming().collect(65_536);
  const write = (): Promise<void> =>
    exchange.invoke('ingest', async (invocation) => {
      const rows = oneRow({ _pk: ['string', bucket], name: ['string', bucket] });
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
  await exchange.parts.traffic.writing(exchange.caller, bucket, write);
  return { status: 200, headers: { location: `/${bucket}` } };
}

export async function deleteBucket(exchange: S3Exchange): Promise<S3Reply> {
  const { sync, parts } = exchange;
  const { bucket } = exchange.request;
  const remove = (): Promise<void> =>
    exchange.invoke('delete', async (invocation) => {
      const objectReader = new ObjectReader(exchange, invocation, 'DeleteBucket');
      const bucketRow = await objectReader.bucket(true);
      const { path } = invocation.caller;
      const own = path === null ? 'namespace_path IS NULL' : 'namespace_path = $2';
      const sql = `SELECT key FROM ${objectType} WHERE bucket = $1 AND ${own} LIMIT 1`;
      const [held] = await objectReader.ask(sql, path === null ? [bucket] : [bucket, path]);
      if (held !== undefined) throw s3Refusals.bucketNotEmpty();
      const when = { unchangedSince: bucketRow['system_from'] as bigint };
      requireAccepted(
        await invocation.submit({ kind: 'delete-rows', type: bucketType, keys: [bucket], when }, { sync, waits: true }),
      );
    });
  await parts.traffic.deleting(exchange.caller, bucket, remove);
  return { status: 204, headers: {} };
}
