/**
 * The head of a plain request: the few shapes in which nearly every query and every small write arrives, read in one pass.
 * Invariants: Node's own parser would read the same; a head that it might read differently, or that changes how the body ends, is
 * not plain. Null never refuses a request, it only passes it on.
 */

export interface PlainHead {
  readonly target: string;
  /** Headers by lower-case name; each was sent once. */
  readonly headers: Readonly<Record<string, string>>;
  readonly contentLength: number;
}

/** `head`: the bytes before the empty line, each as one character. */
export function readPlainHead(head: string): PlainHead | null {
  const lines = head.split('\r\n');
  const target = requestLine.exec(lines[0]!)?.[1];
  if (target === undefined) return null;
  const headers = Object.create(null) as Record<string, string>;
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    const headerMatch = headerLine.exec(line);
    if (headerMatch === null) return null;
    const name = headerMatch[1]!.toLowerCase();
    if (name in headers || notPlain.has(name)) return null;
    headers[name] = headerMatch[2]!;
  }
  const { host, connection, 'content-length': length } = headers;
  if (host === undefined || length === undefined || !wholeNumber.test(length)) return null;
  if (connection !== undefined && connection.toLowerCase() !== 'keep-alive') return null;
  return { target, headers, contentLength: Number(length) };
}

const requestLine = /^POST (\/[A-Za-z0-9/._~?=&-]*) HTTP\/1\.1$/;
/** One space, then visible ASCII: no folding, no padding to trim, no byte that two parsers may see differently. */
const headerLine = /^([A-Za-z][A-Za-z0-9-]*): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;
const wholeNumber = /^(?:0|[1-9][0-9]{0,8})$/;

/** Headers that frame a body differently, expect an interim response, or concern other routes. */
const notPlain: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'trailer',
  'te',
  'upgrade',
  'expect',
  'keep-alive',
  'proxy-connection',
  'http2-settings',
  'content-encoding',
  'idempotency-key',
]);
