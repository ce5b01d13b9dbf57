/** Between finding that a bucket is empty and deleting it nothing is put into it, and nothing into one that is being deleted. */
import { ObjectRefusal } from './refusal.ts';

export class BucketTraffic {
  readonly #writing = new Map<string, number>();
  readonly #deleting = new Set<string>();

  async writing<T>(bucket: string, write: () => Promise<T>): Promise<T> {
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

  async deleting<T>(bucket: string, remove: () => Promise<T>): Promise<T> {
    if (this.#deleting.has(bucket) || this.#writing.has(bucket)) throw busy();
    this.#deleting.add(bucket);
    try {
      return await remove();
    } finally {
      this.#deleting.delete(bucket);
    }
  }
}

const busy = (): ObjectRefusal =>
  new ObjectRefusal('OperationAborted', 409, 'REL_CONFLICT', 'the bucket is written to and deleted at once: try again');
