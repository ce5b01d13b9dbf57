/** What a protocol's bytes are to the frame. The same bytes give the same messages, wherever they were cut. */

/** A message of any protocol is at most as long as this, where SERVICE_WIRE_MESSAGE_MB says nothing else. */
export const messageBytesMax = 16 << 20;
/** From here on each step takes a turn of its own: joining and reading a message, making rows of it, storing them. */
export const longBytes = 1 << 20;

export type Decoded<S, M> =
  | { readonly message: M; readonly taken: number; readonly state: S }
  /**
   * Goes on from `state` once so many bytes are there, those that were given among them: no byte is looked at twice. Absent: what
   * was looked at is a head of a few bytes. Where so many were given, the work is long, and others have a turn first.
   */
  | { readonly needs: number; readonly state?: S };

export interface Codec<S, M> {
  readonly start: S;
  /**
   * The message that the bytes begin with. Throws a ServiceError for what can't become one: the connection ends by it. How long a
   * message may be is the frame's business: it refuses one that needs, or takes, too much.
   */
  decode(state: S, bytes: Buffer): Decoded<S, M>;
}
