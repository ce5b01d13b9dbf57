/**
 * The head of a plain request: the few shapes in which nearly every question and every small write arrives, read in one
 * pass. What must hold: whatever is read here, Node's own parser reads the same way; what it might read differently, or
 * what changes how a body ends, is not plain. null is never a verdict on a request, only “not here”.
 */

export interface PlainHead {
  readonly target: string;
  /** By lower-case name; each was sent once. */
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
    const found = headerLine.exec(line);
    if (found === null) return null;
    const name = found[1]!.toLowerCase();
    if (name in headers || notPlain.has(name)) return null;
    headers[name] = found[2]!;
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

/** What frames a body in another way, asks for an answer before it, or is about routes that are not here. */
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
