/** Texts of an entry of an open kind, in which a subject may be found. */
import type { Json } from '../../log/values/canonical-json.ts';
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import type { OpenBody } from '../../log/entries/entry.ts';

/** JSON as it stands, and its texts without their escapes; bytes as if they were text. */
export function textsOf({ content }: OpenBody): string {
  // Vectors say no word, and those of a subject are found by their versions.
  if (isEmbedded(content)) return '';
  if (typeof content !== 'string') return Buffer.from(content).toString();
  const texts = [content];
  const open: Json[] = [JSON.parse(content) as Json];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) {
      texts.push(...Object.keys(value));
      open.push(...Object.values(value));
    }
  }
  return texts.join('\n');
}
