/** What a protocol's bytes are to the frame. Pure: the same bytes give the same messages, wherever they were cut. */

/** A message of any protocol is at most as long as this; its length is checked before its bytes are kept. */
export const messageBytesMax = 16 << 20;
/** From here on each step takes a turn of its own: joining and reading a message, making rows of it, storing them. */
export const longBytes = 1 << 20;

export type Decoded<S, M> =
  | { readonly message: M; readonly taken: number; readonly state: S }
  /** So many bytes are needed before it is worth looking again: more than were given. */
  | { readonly needs: number };

export interface Codec<S, M> {
  readonly start: S;
  /** The message that the bytes begin with. Throws a ServiceError for what can't become one: the connection ends by it. */
  decode(state: S, bytes: Buffer): Decoded<S, M>;
}
