/** Locks a bucket while it is deleted: no object may be written between the check that it is empty and its deletion. */
import type { Caller } from '../../governance/caller.ts';
import { ObjectRefusal } from './errors.ts';

/** The owner of a bucket: buckets of one name and different owners are different. */
type Owner = Pick<Caller, 'path' | 'branch'>;

export class BucketLocks {
  readonly #writing = new Map<string, number>();
  readonly #deleting = new Set<string>();

  async writing<T>(owner: Owner, name: string, write: () => Promise<T>): Promise<T> {
    const bucket = idOf(owner, name);
    if (this.#deleting.has(bucket)) throw busy();
    this.#writing.set(bucket, (this.#writing.get(bucket) ?? 0) + 1);
    try {
      return await write();
    } finally {
      const left = this.#writing.get(bucket)! - 1;
      if (left === 0) this.#writing.delete(bucket);
      else this.#writing.set(bucket, left);
    }
  }

  async deleting<T>(owner: Owner, name: string, remove: () => Promise<T>): Promise<T> {
    const bucket = idOf(owner, name);
    if (this.#deleting.has(bucket) || this.#writing.has(bucket)) throw busy();
    this.#deleting.add(bucket);
    try {
      return await remove();
    } finally {
      this.#deleting.delete(bucket);
    }
  }
}

const idOf = ({ path, branch }: Owner, name: string): string => JSON.stringify([path, branch, name]);

const busy = (): ObjectRefusal =>
  new ObjectRefusal(
    'OperationAborted',
    409,
    'REL_CONFLICT',
    'another request is writing to the bucket, or deleting it: try again',
  );
