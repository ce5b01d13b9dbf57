/** Encodings of values (modifiers `base64`, `base64offset`, `utf16le`, `utf16be`, `utf16`, `wide`). */

/** Each byte as the character of its number: how a text column shows bytes. */
const latin1Text = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');

export type WideEncoding = 'utf16le' | 'utf16be' | 'utf16';

export function encodeWide(text: string, encoding: WideEncoding): string {
  const wideBytes = Buffer.from(encoding === 'utf16' ? `\ufeff${text}` : text, 'utf16le');
  return latin1Text(encoding === 'utf16be' ? wideBytes.swap16() : wideBytes);
}

/** `isBytes`: characters of the text are bytes already, so that UTF-8 must not encode them again. */
const encodableBytes = (text: string, isBytes: boolean): Buffer => Buffer.from(text, isBytes ? 'latin1' : 'utf8');

export const encodeBase64 = (text: string, isBytes: boolean): string => encodableBytes(text, isBytes).toString('base64');

/** The parts that a text has at each of the three positions inside longer encoded bytes, whatever stands before and behind it. */
export function encodeBase64Offsets(text: string, isBytes: boolean): readonly string[] {
  const valueBytes = encodableBytes(text, isBytes);
  const base64Starts = [0, 2, 3];
  const base64Ends = [0, 3, 2];
  return base64Starts.map((start, offset) => {
    const base64Text = Buffer.concat([Buffer.alloc(offset), valueBytes]).toString('base64');
    return base64Text.slice(start, base64Text.length - base64Ends[(valueBytes.length + offset) % 3]!);
  });
}
