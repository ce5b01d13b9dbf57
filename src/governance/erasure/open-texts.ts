/** Texts of an entry of an open kind, in which a subject may be found: of a definition what was sealed, and not what its order needs. */
import type { Json } from '../../log/values/canonical-json.ts';
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import type { OpenBody } from '../../log/entries/entry.ts';
import { type OpenText, sealedTextIn } from '../../projections/sealed-definitions.ts';

/** JSON as it stands, and its texts without their escapes; bytes as if they were text. */
export function textsOf(body: OpenBody, open: OpenText): string {
  const { content } = body;
  // Vectors say no word, and those of a subject are found by their versions.
  if (isEmbedded(content)) return '';
  if (typeof content !== 'string') return Buffer.from(content).toString();
  const sealed = sealedTextIn(body);
  return sealed === null ? textsIn(content) : textsIn(open(sealed) ?? '""');
}

function textsIn(json: string): string {
  const texts = [json];
  const inner: Json[] = [JSON.parse(json) as Json];
  for (let value = inner.pop(); value !== undefined; value = inner.pop()) {
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) {
      texts.push(...Object.keys(value));
      inner.push(...Object.values(value));
    }
  }
  return texts.join('\n');
}
