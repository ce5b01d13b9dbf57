/** The codec of a wire protocol, as its connections use it. The same bytes give the same messages, wherever they were cut. */

/** A message of any protocol is at most as long as this, where SERVICE_WIRE_MESSAGE_MB says nothing else. */
export const messageBytesMax = 16 << 20;
/** From here on each step takes a turn of its own: joining and reading a message, making rows of it, storing them. */
export const longBytes = 1 << 20;

export type Decoded<S, M> =
  | { readonly message: M; readonly taken: number; readonly state: S }
  /**
   * Resumes from `state` once so many bytes are there, earlier ones included: no byte is decoded twice. Absent: only a head of a
   * few bytes was decoded. Where so many are there already, the work is long, and others have a turn first.
   */
  | { readonly needs: number; readonly state?: S };

/** Nanoseconds for each part (a word, a key, a row, a document) and each byte. */
export interface WireCost {
  readonly part: number;
  readonly byte: number;
}

/**
 * The cost of a command. Commands that may take longer than `turnMost` within their limits run in steps, with turns for other
 * work in between.
 */
export interface CommandCost extends WireCost {
  readonly inSteps: boolean;
}

export interface Codec<S, M> {
  readonly start: S;
  /** The cost of one decoding and the parts of a message that it covers, as far as it reads the message's content. */
  readonly cost: WireCost;
  readonly partsInTurn: number;
  /**
   * The message with which the bytes begin. Throws a ServiceError for bytes that can't become one: it ends the connection. The
   * connection limits the length of messages: it refuses one that needs, or takes, too much.
   */
  decode(state: S, bytes: Buffer): Decoded<S, M>;
}
