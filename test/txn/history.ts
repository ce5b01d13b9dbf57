/** What clients of transactions did and saw, as a checker reads it. */

/** One thing that a transaction did. Elements of one key are never appended twice, values of one register never written twice. */
export type Step =
  | { readonly kind: 'append'; readonly key: string; readonly element: number }
  | { readonly kind: 'list'; readonly key: string; readonly saw: readonly number[] }
  | { readonly kind: 'write'; readonly key: string; readonly value: number }
  /** 0: what stands before the first write. */
  | { readonly kind: 'read'; readonly key: string; readonly saw: number }
  /** Every account, read by one statement. */
  | { readonly kind: 'balances'; readonly saw: ReadonlyMap<string, number> };

/** `unknown`: the connection ended while COMMIT was on its way. */
export type End = 'committed' | 'aborted' | 'unknown';

export interface Transacted {
  readonly client: number;
  readonly steps: readonly Step[];
  readonly end: End;
  /** Moments of one clock, in milliseconds: before its first statement was sent, and after its end was known. */
  readonly began: number;
  readonly ended: number;
}

export interface History {
  readonly transactions: readonly Transacted[];
  /** What stands in each list once all is over; absent: nobody looked. */
  readonly lists?: ReadonlyMap<string, readonly number[]>;
  readonly registers?: ReadonlyMap<string, number>;
  /** Sum of all balances, at any moment. */
  readonly total?: number;
}
