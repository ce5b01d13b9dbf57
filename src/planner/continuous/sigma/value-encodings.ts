/** Encodings of values (modifiers `base64`, `base64offset`, `utf16le`, `utf16be`, `utf16`, `wide`). */

/** Each byte as the character of its number: how a text column shows bytes. */
const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');

export type WideEncoding = 'utf16le' | 'utf16be' | 'utf16';

export function encodeWide(text: string, encoding: WideEncoding): string {
  const bytes = Buffer.from(encoding === 'utf16' ? `\ufeff${text}` : text, 'utf16le');
  return latin1(encoding === 'utf16be' ? bytes.swap16() : bytes);
}

/** `isBytes`: characters of the text are bytes already, so that UTF-8 must not encode them again. */
const bytesOf = (text: string, isBytes: boolean): Buffer => Buffer.from(text, isBytes ? 'latin1' : 'utf8');

export const encodeBase64 = (text: string, isBytes: boolean): string => bytesOf(text, isBytes).toString('base64');

/** The parts that a text has at each of the three positions inside longer encoded bytes, whatever stands before and behind it. */
export function encodeBase64Offsets(text: string, isBytes: boolean): readonly string[] {
  const bytes = bytesOf(text, isBytes);
  const starts = [0, 2, 3];
  const ends = [0, 3, 2];
  return starts.map((start, offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return encoded.slice(start, encoded.length - ends[(bytes.length + offset) % 3]!);
  });
}
