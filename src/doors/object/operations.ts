/** Which operation a request is of, by its method, what it names and its query. */
import { copyObject, putObject } from './put-object.ts';
import { createBucket, deleteBucket, getLocation, headBucket, listBuckets } from './buckets.ts';
import { deleteObject, deleteObjects } from './delete-objects.ts';
import { getObject } from './get-object.ts';
import { listObjects } from './list-objects.ts';
import { abortUpload, completeUpload, createUpload, listParts, uploadPart } from './multipart.ts';
import { ObjectRefusal, refusals } from './refusal.ts';
import type { Operation } from './reply.ts';
import type { ObjectRequest } from './request.ts';
import { typesBucket } from './object-facts.ts';
import { getRow, listRows } from './type-rows.ts';

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
  const asked = subresources.find((name) => query.has(name));
  if (asked !== undefined) throw refusals.notImplemented(`?${asked}`);
  if (bucket === '') return only(method, { GET: listBuckets });
  if (bucket === typesBucket) {
    if (key !== '') return only(method, { GET: getRow, HEAD: getRow }, refusals.readOnly);
    return only(method, { GET: query.has('location') ? getLocation : listRows, HEAD: headBucket }, refusals.readOnly);
  }
  return key === '' ? ofBucket(request) : ofObject(request);
}

function ofBucket({ method, query }: ObjectRequest): Operation {
  if (query.has('uploads')) throw refusals.notImplemented('?uploads');
  const post = query.has('delete') ? { POST: deleteObjects } : {};
  const get = query.has('location') ? getLocation : listObjects;
  return only(method, { GET: get, HEAD: headBucket, PUT: createBucket, DELETE: deleteBucket, ...post });
}

function ofObject({ method, query, header }: ObjectRequest): Operation {
  if (query.has('uploads')) return only(method, { POST: createUpload });
  if (query.has('uploadId')) {
    if (method === 'PUT' && header('x-amz-copy-source') !== null) throw refusals.notImplemented('UploadPartCopy');
    return only(method, { PUT: uploadPart, POST: completeUpload, DELETE: abortUpload, GET: listParts });
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
