/** Decodes texts of wire protocols, which have to be valid UTF-8. */
import { ServiceError } from '../../errors.ts';

const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws REL_INVALID for bytes that are no UTF-8. */
export function utf8(utf8Bytes: Uint8Array): string {
  try {
    return utf8Decoder.decode(utf8Bytes);
  } catch {
    throw new ServiceError('REL_INVALID', 'a text is not UTF-8', { reason: 'not-utf8' });
  }
}
