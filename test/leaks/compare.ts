/** Whether two replies are the same bytes, and if not, where they part. */
import type { Heard } from './lab.ts';

/** What a reply is made of besides the moment: two labs make all of it alike, correlation ids and times included. */
export interface Compared {
  /** Members of JSON that tell of the log as a whole: blanked, on the surfaces that show positions by design. */
  readonly blank?: RegExp;
  /** The same, of what differs between two particular worlds. */
  readonly moves?: RegExp;
  /** Nothing but status and headers can be the same. */
  readonly bodyless?: true;
}

/** Dates are of the wall clock; framing headers follow from the rest. */
const ofTheMoment = new Set(['date', 'connection', 'keep-alive']);

/** Null where they are equal, otherwise what differs, in one line. */
export function difference(first: Heard, second: Heard, { blank, moves, bodyless }: Compared = {}): string | null {
  if (first.status !== second.status)
    return `status ${first.status} and ${second.status}: ${excerpt(first.body, 0)} | ${excerpt(second.body, 0)}`;
  const blanked = [blank, moves].filter((each) => each !== undefined);
  const anyLength = blanked.length > 0 || bodyless === true;
  const [headers, others] = [headersOf(first, anyLength), headersOf(second, anyLength)];
  if (headers !== others) return `headers ${headers} | ${others}`;
  if (bodyless === true) return null;
  const [body, other] = [bodyOf(first, blanked), bodyOf(second, blanked)];
  if (body.equals(other)) return null;
  let at = 0;
  while (at < body.length && body[at] === other[at]) at++;
  return `byte ${at}: ${excerpt(body, at)} | ${excerpt(other, at)}`;
}

/** `anyLength`: of a body that is not compared as it is. */
const headersOf = ({ headers }: Heard, anyLength: boolean): string =>
  headers
    .filter(([name]) => !ofTheMoment.has(name.toLowerCase()) && !(anyLength && name.toLowerCase() === 'content-length'))
    .map(([name, value]) => `${name}: ${value}`)
    .join('; ');

function bodyOf({ body }: Heard, blanked: readonly RegExp[]): Buffer {
  let text: string | null = null;
  for (const each of blanked) text = (text ?? body.toString('latin1')).replaceAll(each, '$1');
  return text === null ? body : Buffer.from(text, 'latin1');
}

function excerpt(bytes: Buffer, at: number): string {
  return JSON.stringify(bytes.subarray(Math.max(0, at - 60), at + 60).toString());
}
