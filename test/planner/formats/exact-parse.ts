/** JSON text to values, independent of the code under test: integer tokens become bigint, `-0` and the rest numbers. */
export type Exact = null | boolean | bigint | number | string | Exact[] | Map<string, Exact>;

export function exactParse(text: string): Exact {
  const tokens = /\s*("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[[\]{},:])/gy;
  let token = '';
  const next = (): string => {
    const match = tokens.exec(text);
    if (!match) throw new Error(`no token in ${JSON.stringify(text.slice(0, 200))}`);
    return (token = match[1]!);
  };
  const value = (): Exact => {
    if (token === '[') {
      const items: Exact[] = [];
      if (next() === ']') return items;
      for (;;) {
        items.push(value());
        if (next() === ']') return items;
        next();
      }
    }
    if (token === '{') {
      const object = new Map<string, Exact>();
      if (next() === '}') return object;
      for (;;) {
        const name = JSON.parse(token) as string;
        next();
        next();
        object.set(name, value());
        if (next() === '}') return object;
        next();
      }
    }
    if (/^-?\d+$/.test(token) && token !== '-0') return BigInt(token);
    return JSON.parse(token) as null | boolean | number | string;
  };
  next();
  const result = value();
  if (text.slice(tokens.lastIndex).trim() !== '') throw new Error('text after the value');
  return result;
}
