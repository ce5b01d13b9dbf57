/** JSON text of small replies, with bigints as bare integers: 9223372036854775807 keeps all its digits. */

/** Like `JSON.stringify` for plain data; `undefined` fields are left out, non-finite numbers are null. */
export function exactJson(jsonValue: unknown): string {
  switch (typeof jsonValue) {
    case 'bigint':
      return jsonValue.toString();
    case 'string':
    case 'number':
    case 'boolean':
      return JSON.stringify(jsonValue);
    case 'object':
      break;
    default:
      return 'null';
  }
  if (jsonValue === null) return 'null';
  if (Array.isArray(jsonValue)) return `[${jsonValue.map(exactJson).join(',')}]`;
  let jsonText = '';
  for (const [memberName, memberValue] of Object.entries(jsonValue)) {
    if (memberValue === undefined) continue;
    jsonText += `${jsonText === '' ? '' : ','}${JSON.stringify(memberName)}:${exactJson(memberValue)}`;
  }
  return `{${jsonText}}`;
}
