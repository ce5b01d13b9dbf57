/** JSON with i64 integers that a JavaScript number would change: they come out as bigint, everything else as usual. */

const token = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;

export function parseExactJson(text: string): unknown {
  // Integers travel through JSON.parse as marked strings; the mark is one that the text does not hold.
  let mark = 'i64:';
  while (text.includes(mark)) mark = `_${mark}`;
  const quoted = text.replace(token, (found) => (found.startsWith('"') ? found : `"${mark}${found}"`));
  return JSON.parse(quoted, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}
