/** JSON text of small replies, with bigints as bare integers: 9223372036854775807 keeps all its digits. */

/** Like `JSON.stringify` for plain data; `undefined` fields are left out, non-finite numbers are null. */
export function exactJson(value: unknown): string {
  switch (typeof value) {
    case 'bigint':
      return value.toString();
    case 'string':
    case 'number':
    case 'boolean':
      return JSON.stringify(value);
    case 'object':
      break;
    default:
      return 'null';
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
  let text = '';
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${exactJson(item)}`;
  }
  return `{${text}}`;
}
