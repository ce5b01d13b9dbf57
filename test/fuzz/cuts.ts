/** Bytes of a connection, whole and in pieces: the same messages come out of both, or the same refusal at the same place. */
import type { Codec } from '../../src/doors/shared/codec.ts';
import { ReceivedBytes, pause } from '../../src/doors/shared/received-bytes.ts';
import { assert, ServiceError } from '../../src/errors.ts';

/** The messages that the bytes begin with. */
export function checkCuts<S, M>(codec: Codec<S, M>, bytes: Uint8Array): readonly M[] {
  const whole = read(codec, [Buffer.from(bytes)]);
  const cuts = bytes.length < 4_096 ? 1 : 97;
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += cuts) pieces.push(Buffer.from(bytes.subarray(at, at + cuts)));
  const cut = read(codec, pieces);
  assert(text(cut) === text(whole), 'the same messages, however the bytes are cut');
  return whole.messages;
}

const text = (read: unknown): string =>
  JSON.stringify(read, (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : Number.isNaN(value) ? 'NaN' : value,
  );

function read<S, M>(codec: Codec<S, M>, pieces: readonly Buffer[]): { readonly messages: M[]; readonly refusal: string | null } {
  const received = new ReceivedBytes(codec);
  const messages: M[] = [];
  try {
    for (const piece of pieces) {
      received.push(piece);
      for (let message = received.next(); message !== null; message = received.next())
        if (message !== pause) messages.push(message);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { messages, refusal: `${error.code} ${error.message}` };
  }
  return { messages, refusal: null };
}
