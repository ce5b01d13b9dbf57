/** Chooses the operation of a request by its method, its path and its query. */
import { copyObject, putObject } from './put-object.ts';
import { createBucket, deleteBucket, getBucketTagging, getLocation, getVersioning, headBucket, listBuckets } from './buckets.ts';
import { deleteObject, deleteObjects } from './delete-objects.ts';
import { getObject, getObjectTagging } from './get-object.ts';
import { listObjects } from './list-objects.ts';
import { abortUpload, completeUpload, copyPart, createUpload, listParts, listUploads, uploadPart } from './multipart-upload.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import type { Operation } from './reply.ts';
import type { ObjectRequest } from './request-path.ts';
import { typesBucket } from './object-metadata.ts';
import { getRow, listRows } from './types-bucket.ts';

/** Parts of a bucket or of an object that S3 has, and this store has not. */
const subresources = [
  'accelerate',
  'acl',
  'analytics',
  'attributes',
  'cors',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'lifecycle',
  'logging',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'renameObject',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'select',
  'tagging',
  'torrent',
  'versioning',
  'versions',
  'website',
];

export function operationOf(request: ObjectRequest): Operation {
  const { method, bucket, key, query } = request;
  const asked = subresources.find((name) => query.has(name) && !isAnswered(request, name));
  if (asked !== undefined) throw s3Refusals.notImplemented(`?${asked}`);
  if (bucket === '') return only(method, { GET: listBuckets });
  if (bucket === typesBucket) {
    if (key !== '') return only(method, { GET: getRow, HEAD: getRow }, s3Refusals.readOnly);
    return only(method, { GET: query.has('location') ? getLocation : listRows, HEAD: headBucket }, s3Refusals.readOnly);
  }
  return key === '' ? ofBucket(request) : ofObject(request);
}

/** Subresources that clients only probe: none exist, and the answer is the same for all callers. */
function isAnswered({ method, bucket, key }: ObjectRequest, subresource: string): boolean {
  if (method !== 'GET' || bucket === '' || bucket === typesBucket) return false;
  return subresource === 'tagging' || (subresource === 'versioning' && key === '');
}

function ofBucket({ method, query }: ObjectRequest): Operation {
  if (query.has('uploads')) return only(method, { GET: listUploads });
  if (query.has('versioning')) return getVersioning;
  if (query.has('tagging')) return getBucketTagging;
  const post = query.has('delete') ? { POST: deleteObjects } : {};
  const get = query.has('location') ? getLocation : listObjects;
  return only(method, { GET: get, HEAD: headBucket, PUT: createBucket, DELETE: deleteBucket, ...post });
}

function ofObject({ method, query, header }: ObjectRequest): Operation {
  if (query.has('tagging')) return getObjectTagging;
  if (query.has('uploads')) return only(method, { POST: createUpload });
  if (query.has('uploadId')) {
    const put = header('x-amz-copy-source') === null ? uploadPart : copyPart;
    return only(method, { PUT: put, POST: completeUpload, DELETE: abortUpload, GET: listParts });
  }
  const put = header('x-amz-copy-source') === null ? putObject : copyObject;
  return only(method, { GET: getObject, HEAD: getObject, PUT: put, DELETE: deleteObject });
}

function only(method: string, operations: Readonly<Record<string, Operation>>, otherwise = notAllowed): Operation {
  const operation = Object.hasOwn(operations, method) ? operations[method] : undefined;
  if (operation === undefined) throw otherwise();
  return operation;
}

const notAllowed = (): ObjectRefusal =>
  new ObjectRefusal('MethodNotAllowed', 405, 'REL_METHOD', 'the method is not allowed against this resource');
