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

/** `headText`: the bytes before the empty line, each as one character. */
export function readPlainHead(headText: string): PlainHead | null {
  const headLines = headText.split('\r\n');
  const requestTarget = requestLinePattern.exec(headLines[0]!)?.[1];
  if (requestTarget === undefined) return null;
  const plainHeaders = Object.create(null) as Record<string, string>;
  for (let i = 1; i < headLines.length; i++) {
    const headLine = headLines[i]!;
    const headerMatch = headerLinePattern.exec(headLine);
    if (headerMatch === null) return null;
    const headerName = headerMatch[1]!.toLowerCase();
    if (headerName in plainHeaders || notPlainHeaders.has(headerName)) return null;
    plainHeaders[headerName] = headerMatch[2]!;
  }
  const { host: hostHeader, connection: connectionHeader, 'content-length': contentLength } = plainHeaders;
  if (hostHeader === undefined || contentLength === undefined || !contentLengthPattern.test(contentLength)) return null;
  if (connectionHeader !== undefined && connectionHeader.toLowerCase() !== 'keep-alive') return null;
  return { target: requestTarget, headers: plainHeaders, contentLength: Number(contentLength) };
}

const requestLinePattern = /^POST (\/[A-Za-z0-9/._~?=&-]*) HTTP\/1\.1$/;
/** One space, then visible ASCII: no folding, no padding to trim, no byte that two parsers may see differently. */
const headerLinePattern = /^([A-Za-z][A-Za-z0-9-]*): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;
const contentLengthPattern = /^(?:0|[1-9][0-9]{0,8})$/;

/** Headers that frame a body differently, expect an interim response, or concern other routes. */
const notPlainHeaders: ReadonlySet<string> = new Set([
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
