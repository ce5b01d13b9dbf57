/** Characters of texts are code points; texts are in code units. */

/** Half of a surrogate pair never stands alone in stored text, so only texts without any have one unit a character. */
export const plain = /^[^\ud800-\udfff]*$/;

/** How many characters a text has. */
export function lengthOf(codePointText: string): number {
  if (plain.test(codePointText)) return codePointText.length;
  let codePointCount = 0;
  for (let unitIndex = 0; unitIndex < codePointText.length; unitIndex++)
    if ((codePointText.charCodeAt(unitIndex) & 0xfc00) !== 0xdc00) codePointCount++;
  return codePointCount;
}

/** The offset in code units of the character that comes this many code points behind another. */
export function unitAfter(codePointText: string, start: number, count: number): number {
  let unitIndex = start;
  for (let codePointsLeft = count; codePointsLeft > 0 && unitIndex < codePointText.length; codePointsLeft--)
    unitIndex += unitsOf(codePointText.codePointAt(unitIndex)!);
  return unitIndex;
}

export function unitsOf(codePoint: number): number {
  return codePoint > 0xffff ? 2 : 1;
}
