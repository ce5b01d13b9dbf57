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
const unsupportedSubresources = [
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

export function operationOf(objectRequest: ObjectRequest): Operation {
  const { method: httpMethod, bucket: bucketName, key: objectName, query: s3Query } = objectRequest;
  const askedSubresource = unsupportedSubresources.find(
    (subresource) => s3Query.has(subresource) && !isAnsweredSubresource(objectRequest, subresource),
  );
  if (askedSubresource !== undefined) throw s3Refusals.notImplemented(`?${askedSubresource}`);
  if (bucketName === '') return operationOfMethod(httpMethod, { GET: listBuckets });
  if (bucketName === typesBucket) {
    if (objectName !== '') return operationOfMethod(httpMethod, { GET: getRow, HEAD: getRow }, s3Refusals.readOnly);
    return operationOfMethod(
      httpMethod,
      { GET: s3Query.has('location') ? getLocation : listRows, HEAD: headBucket },
      s3Refusals.readOnly,
    );
  }
  return objectName === '' ? bucketOperation(objectRequest) : objectOperation(objectRequest);
}

/** Subresources that clients only probe: none exist, and the answer is the same for all callers. */
function isAnsweredSubresource(
  { method: httpMethod, bucket: bucketName, key: objectName }: ObjectRequest,
  subresource: string,
): boolean {
  if (httpMethod !== 'GET' || bucketName === '' || bucketName === typesBucket) return false;
  return subresource === 'tagging' || (subresource === 'versioning' && objectName === '');
}

function bucketOperation({ method: httpMethod, query: bucketQuery }: ObjectRequest): Operation {
  if (bucketQuery.has('uploads')) return operationOfMethod(httpMethod, { GET: listUploads });
  if (bucketQuery.has('versioning')) return getVersioning;
  if (bucketQuery.has('tagging')) return getBucketTagging;
  const postOperations = bucketQuery.has('delete') ? { POST: deleteObjects } : {};
  const getOperation = bucketQuery.has('location') ? getLocation : listObjects;
  return operationOfMethod(httpMethod, {
    GET: getOperation,
    HEAD: headBucket,
    PUT: createBucket,
    DELETE: deleteBucket,
    ...postOperations,
  });
}

function objectOperation({ method: httpMethod, query: objectQuery, header: requestHeader }: ObjectRequest): Operation {
  if (objectQuery.has('tagging')) return getObjectTagging;
  if (objectQuery.has('uploads')) return operationOfMethod(httpMethod, { POST: createUpload });
  if (objectQuery.has('uploadId')) {
    const putOperation = requestHeader('x-amz-copy-source') === null ? uploadPart : copyPart;
    return operationOfMethod(httpMethod, { PUT: putOperation, POST: completeUpload, DELETE: abortUpload, GET: listParts });
  }
  const put = requestHeader('x-amz-copy-source') === null ? putObject : copyObject;
  return operationOfMethod(httpMethod, { GET: getObject, HEAD: getObject, PUT: put, DELETE: deleteObject });
}

function operationOfMethod(
  httpMethod: string,
  operationByMethod: Readonly<Record<string, Operation>>,
  otherwiseRefusal = methodNotAllowed,
): Operation {
  const s3Operation = Object.hasOwn(operationByMethod, httpMethod) ? operationByMethod[httpMethod] : undefined;
  if (s3Operation === undefined) throw otherwiseRefusal();
  return s3Operation;
}

const methodNotAllowed = (): ObjectRefusal =>
  new ObjectRefusal('MethodNotAllowed', 405, 'REL_METHOD', 'the method is not allowed against this resource');
