/** Locks a bucket while it is deleted: no object may be written between the check that it is empty and its deletion. */
import type { Caller } from '../../governance/caller.ts';
import { ObjectRefusal } from './errors.ts';

/** The owner of a bucket: buckets of one name and different owners are different. */
type BucketOwner = Pick<Caller, 'path' | 'branch'>;

export class BucketLocks {
  readonly #writing = new Map<string, number>();
  readonly #deleting = new Set<string>();

  async writing<T>(bucketOwner: BucketOwner, bucketName: string, writeObject: () => Promise<T>): Promise<T> {
    const bucketId = bucketIdOf(bucketOwner, bucketName);
    if (this.#deleting.has(bucketId)) throw busyBucket();
    this.#writing.set(bucketId, (this.#writing.get(bucketId) ?? 0) + 1);
    try {
      return await writeObject();
    } finally {
      const writersLeft = this.#writing.get(bucketId)! - 1;
      if (writersLeft === 0) this.#writing.delete(bucketId);
      else this.#writing.set(bucketId, writersLeft);
    }
  }

  async deleting<T>(bucketOwner: BucketOwner, bucketName: string, removeBucket: () => Promise<T>): Promise<T> {
    const bucketId = bucketIdOf(bucketOwner, bucketName);
    if (this.#deleting.has(bucketId) || this.#writing.has(bucketId)) throw busyBucket();
    this.#deleting.add(bucketId);
    try {
      return await removeBucket();
    } finally {
      this.#deleting.delete(bucketId);
    }
  }
}

const bucketIdOf = ({ path: ownerPath, branch }: BucketOwner, bucketName: string): string =>
  JSON.stringify([ownerPath, branch, bucketName]);

const busyBucket = (): ObjectRefusal =>
  new ObjectRefusal(
    'OperationAborted',
    409,
    'REL_CONFLICT',
    'another request is writing to the bucket, or deleting it: try again',
  );
