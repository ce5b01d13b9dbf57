/** Frames of HTTP/2 (RFC 9113) as a client that means harm would write them: by hand, since no library sends them. */

const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, window: 8, continuation: 9 } as const;
const endHeaders = 4;

export const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame('settings', 0, 0)]);

export function frame(
  type: keyof typeof frameTypes,
  flags: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = frameTypes[type];
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Header fields that no table has: each says its name and its value. */
function fields(named: Readonly<Record<string, string>>): Buffer {
  const texts = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
  return Buffer.concat(
    Object.entries(named).map(([name, value]) => Buffer.concat([Buffer.from([0]), texts(name), texts(value)])),
  );
}

/** Begins a call: `method` with the service that it is of. `isWhole`: its headers end here. */
export function callBegun(stream: number, method: string, secret: string, isWhole = true): Buffer {
  const block = fields({
    ':method': 'POST',
    ':scheme': 'http',
    ':path': `/${method}`,
    ':authority': 'a',
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-encoding': 'gzip',
    authorization: `Bearer ${secret}`,
  });
  return frame('headers', isWhole ? endHeaders : 0, stream, block);
}

/** A message of a call, and the end of what its client sends. */
export function messageSent(stream: number, message: Buffer, isPacked: boolean): Buffer {
  const head = Buffer.alloc(5);
  head[0] = isPacked ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return frame('data', 1, stream, Buffer.concat([head, message]));
}

/** The message of `Query`: field 1 is the statement. */
export function queryMessage(sql: string): Buffer {
  const text = Buffer.from(sql);
  return Buffer.concat([Buffer.from([0x0a, text.length]), text]);
}
