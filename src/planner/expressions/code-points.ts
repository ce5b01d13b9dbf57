/** Characters of texts are code points; texts are in code units. */

/** Half of a surrogate pair never stands alone in stored text, so only texts without any have one unit a character. */
export const plain = /^[^\ud800-\udfff]*$/;

/** How many characters a text has. */
export function lengthOf(of: string): number {
  if (plain.test(of)) return of.length;
  let count = 0;
  for (let at = 0; at < of.length; at++) if ((of.charCodeAt(at) & 0xfc00) !== 0xdc00) count++;
  return count;
}

/** The offset in code units of the character that comes this many code points behind another. */
export function unitAfter(of: string, start: number, count: number): number {
  let at = start;
  for (let left = count; left > 0 && at < of.length; left--) at += unitsOf(of.codePointAt(at)!);
  return at;
}

export function unitsOf(point: number): number {
  return point > 0xffff ? 2 : 1;
}
