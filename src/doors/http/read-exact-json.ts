/** JSON with i64 integers that a JavaScript number would change: they come out as bigint, everything else as usual. */

/** Texts and numbers, each whole: digits behind a point are no integer. */
const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const longInteger = /^-?\d{16,}$/;

export function parseExactJson(text: string): unknown {
  // Integers travel through JSON.parse as marked strings; the mark is one that the text does not hold.
  let mark = 'i64:';
  while (text.includes(mark)) mark = `_${mark}`;
  const quoted = text.replace(token, (found) => (longInteger.test(found) ? `"${mark}${found}"` : found));
  return JSON.parse(quoted, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}
