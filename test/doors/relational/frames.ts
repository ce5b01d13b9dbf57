/** Messages of the Postgres protocol as a client frames them. */

export const framed = (type: string, body: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

export function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const body = Buffer.from(`${Object.entries(parameters).flat().join('\0')}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(body.length + 8, 0);
  head.writeInt32BE(3 << 16, 4);
  return Buffer.concat([head, body]);
}

/** Replies as they stand in bytes: type and body. */
export function repliesIn(bytes: Buffer): { readonly type: string; readonly body: Buffer }[] {
  const replies: { readonly type: string; readonly body: Buffer }[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    if (end > bytes.length) break;
    replies.push({ type: String.fromCharCode(bytes[at]!), body: bytes.subarray(at + 5, end) });
    at = end;
  }
  return replies;
}

/** Cells of a data row. */
export function cellsOf(body: Buffer): (Buffer | null)[] {
  let at = 2;
  return Array.from({ length: body.readInt16BE(0) }, () => {
    const length = body.readInt32BE(at);
    at += 4;
    if (length < 0) return null;
    at += length;
    return body.subarray(at - length, at);
  });
}
