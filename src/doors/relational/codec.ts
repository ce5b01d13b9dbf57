/**
 * Messages of a client of the Postgres protocol (version 3). The first messages have no type byte; after them each is
 *
 *   type [1] · length of what follows, itself included [4] · body
 */
import { ServiceError } from '../../errors.ts';
import type { Codec, Decoded } from '../shared/codec.ts';
import { utf8 } from '../shared/utf8.ts';

export type Frontend =
  | { readonly kind: 'ssl-request' }
  | { readonly kind: 'gss-request' }
  | { readonly kind: 'cancel'; readonly process: number; readonly secret: number }
  | { readonly kind: 'startup'; readonly minor: number; readonly parameters: ReadonlyMap<string, string> }
  /** Password or SASL: which one, the session knows. */
  | { readonly kind: 'password'; readonly body: Buffer }
  | { readonly kind: 'query'; readonly text: string }
  | { readonly kind: 'parse'; readonly name: string; readonly text: string; readonly types: readonly number[] }
  | {
      readonly kind: 'bind';
      readonly portal: string;
      readonly statement: string;
      readonly formats: readonly number[];
      readonly values: readonly (Buffer | null)[];
      readonly resultFormats: readonly number[];
    }
  | { readonly kind: 'describe'; readonly what: 'statement' | 'portal'; readonly name: string }
  | { readonly kind: 'close'; readonly what: 'statement' | 'portal'; readonly name: string }
  | { readonly kind: 'execute'; readonly portal: string; readonly rowsMax: number }
  | { readonly kind: 'copy-data'; readonly body: Buffer }
  | { readonly kind: 'copy-fail'; readonly reason: string }
  | { readonly kind: 'sync' | 'flush' | 'terminate' | 'copy-done' };

/** `starting`: no type byte yet; `proving`: so many messages of the SASL exchange are to come. */
export type DecodeState =
  | { readonly at: 'starting' }
  | { readonly at: 'proving'; readonly left: number }
  | { readonly at: 'open' };

const startupBytesMax = 10_000;
const requests = { cancel: 80_877_102, ssl: 80_877_103, gss: 80_877_104 } as const;
const starting: DecodeState = { at: 'starting' };
const open: DecodeState = { at: 'open' };
const terminate = Buffer.from([0x58, 0, 0, 0, 4]);

/** Texts are decoded whole; values that are bound, at most 65,535 for each of three lists, are cut out. */
export const relationalCodec: Codec<DecodeState, Frontend> = {
  start: starting,
  cost: { part: 20, byte: 0.25 },
  partsInTurn: 3 * 65_535,
  decode,
};

function decode(state: DecodeState, bytes: Buffer): Decoded<DecodeState, Frontend> {
  if (state.at === 'starting') return decodeStart(bytes);
  if (bytes.length < 5) return { needs: 5 };
  const type = bytes[0]!;
  const length = bytes.readInt32BE(1);
  const proving = state.at === 'proving';
  if (proving && type !== letter.p && type !== letter.X) throw refusal('a password message is expected');
  if (length < 4) throw refusal('a message states an invalid length');
  const taken = length + 1;
  if (bytes.length < taken) return { needs: taken };
  const message = decodeBody(type, new Body(bytes.subarray(5, taken)));
  return { message, taken, state: proving && state.left > 1 ? { at: 'proving', left: state.left - 1 } : open };
}

function decodeStart(bytes: Buffer): Decoded<DecodeState, Frontend> {
  // A client that gives up says so by the first message that has a type.
  if (terminate.subarray(0, bytes.length).equals(bytes.subarray(0, terminate.length))) {
    if (bytes.length < terminate.length) return { needs: terminate.length };
    return { message: { kind: 'terminate' }, taken: terminate.length, state: starting };
  }
  if (bytes.length < 8) return { needs: 8 };
  const length = bytes.readInt32BE(0);
  if (length < 8 || length > startupBytesMax) throw refusal('this is no startup message of the Postgres protocol');
  if (bytes.length < length) return { needs: length };
  const code = bytes.readInt32BE(4);
  const body = new Body(bytes.subarray(8, length));
  const next = (message: Frontend, state: DecodeState): Decoded<DecodeState, Frontend> => ({ message, state, taken: length });
  switch (code) {
    case requests.ssl:
      return next({ kind: 'ssl-request' }, starting);
    case requests.gss:
      return next({ kind: 'gss-request' }, starting);
    case requests.cancel:
      return next({ kind: 'cancel', process: body.int32(), secret: body.int32() }, starting);
  }
  if (code >> 16 !== 3) throw refusal('this server speaks version 3 of the Postgres protocol');
  const parameters = new Map<string, string>();
  for (let name = body.text(); name !== ''; name = body.text()) parameters.set(name, body.text());
  return next({ kind: 'startup', minor: code & 0xffff, parameters }, { at: 'proving', left: 2 });
}

function decodeBody(type: number, body: Body): Frontend {
  switch (type) {
    case letter.Q:
      return { kind: 'query', text: body.text() };
    case letter.P:
      return { kind: 'parse', name: body.text(), text: body.text(), types: body.list(() => body.int32() >>> 0) };
    case letter.B: {
      const portal = body.text();
      const statement = body.text();
      const formats = body.list(() => body.format());
      const values = body.list(() => body.value());
      return { kind: 'bind', portal, statement, formats, values, resultFormats: body.list(() => body.format()) };
    }
    case letter.D:
    case letter.C: {
      const what = body.byte();
      if (what !== letter.S && what !== letter.P) throw refusal('Describe and Close take a statement or a portal');
      const kind = type === letter.D ? 'describe' : 'close';
      return { kind, what: what === letter.S ? 'statement' : 'portal', name: body.text() };
    }
    case letter.E:
      return { kind: 'execute', portal: body.text(), rowsMax: Math.max(0, body.int32()) };
    case letter.S:
      return { kind: 'sync' };
    case letter.H:
      return { kind: 'flush' };
    case letter.X:
      return { kind: 'terminate' };
    case letter.p:
      return { kind: 'password', body: body.rest() };
    case letter.d:
      return { kind: 'copy-data', body: body.rest() };
    case letter.c:
      return { kind: 'copy-done' };
    case letter.f:
      return { kind: 'copy-fail', reason: body.text() };
    case letter.F:
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'the function call protocol is not implemented: send a statement');
    default:
      throw refusal(`unknown message type ${type}`);
  }
}

class Body {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.#take(2));
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.#take(4));
  }

  /** UTF-8 up to a NUL. */
  text(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end < 0) throw short();
    const from = this.#at;
    this.#at = end + 1;
    if (from === end) return '';
    return isAscii(this.#bytes, from, end) ? this.#bytes.toString('latin1', from, end) : utf8(this.#bytes.subarray(from, end));
  }

  format(): number {
    const format = this.int16();
    if (format !== 0 && format !== 1) throw refusal('a format is 0 for text or 1 for binary');
    return format;
  }

  value(): Buffer | null {
    const length = this.int32();
    if (length === -1) return null;
    const from = this.#take(length);
    return this.#bytes.subarray(from, from + length);
  }

  list<T>(each: () => T): T[] {
    // The count is unsigned: up to 65,535.
    const count = this.int16() & 0xffff;
    const list: T[] = [];
    while (list.length < count) list.push(each());
    return list;
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#take(this.#bytes.length - this.#at));
  }

  #take(length: number): number {
    const from = this.#at;
    if (length < 0 || from + length > this.#bytes.length) throw short();
    this.#at = from + length;
    return from;
  }
}

/** A short one: nearly all are, and a decoder takes longer to be called than to decode them. */
function isAscii(bytes: Buffer, from: number, end: number): boolean {
  if (end - from > 512) return false;
  for (let at = from; at < end; at++) if (bytes[at]! > 0x7f) return false;
  return true;
}

const letter = {
  B: 0x42,
  C: 0x43,
  D: 0x44,
  E: 0x45,
  F: 0x46,
  H: 0x48,
  P: 0x50,
  Q: 0x51,
  S: 0x53,
  X: 0x58,
  c: 0x63,
  d: 0x64,
  f: 0x66,
  p: 0x70,
} as const;

const refusal = (why: string): ServiceError => new ServiceError('REL_INVALID', why);
const short = (): ServiceError => refusal('a message is shorter than its content');
