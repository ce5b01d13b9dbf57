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

/** `startingState`: no type byte yet; `proving`: so many messages of the SASL exchange are to come. */
export type DecodeState =
  | { readonly at: 'starting' }
  | { readonly at: 'proving'; readonly left: number }
  | { readonly at: 'open' };

const startupBytesMax = 10_000;
const startupCodes = { cancel: 80_877_102, ssl: 80_877_103, gss: 80_877_104 } as const;
const startingState: DecodeState = { at: 'starting' };
const openState: DecodeState = { at: 'open' };
const terminateMessage = Buffer.from([0x58, 0, 0, 0, 4]);

/** Texts are decoded whole; values that are bound, at most 65,535 for each of three lists, are cut out. */
export const relationalCodec: Codec<DecodeState, Frontend> = {
  start: startingState,
  cost: { part: 20, byte: 0.25 },
  partsInTurn: 3 * 65_535,
  decode: decodeFrontend,
};

function decodeFrontend(sessionState: DecodeState, frontendBytes: Buffer): Decoded<DecodeState, Frontend> {
  if (sessionState.at === 'starting') return decodeStartup(frontendBytes);
  if (frontendBytes.length < 5) return { needs: 5 };
  const messageType = frontendBytes[0]!;
  const messageLength = frontendBytes.readInt32BE(1);
  const isProving = sessionState.at === 'proving';
  if (isProving && messageType !== messageLetter.p && messageType !== messageLetter.X)
    throw messageRefusal('a password message is expected');
  if (messageLength < 4) throw messageRefusal('a message states an invalid length');
  const messageBytes = messageLength + 1;
  if (frontendBytes.length < messageBytes) return { needs: messageBytes };
  const frontendMessage = decodeMessageBody(messageType, new MessageBody(frontendBytes.subarray(5, messageBytes)));
  return {
    message: frontendMessage,
    taken: messageBytes,
    state: isProving && sessionState.left > 1 ? { at: 'proving', left: sessionState.left - 1 } : openState,
  };
}

function decodeStartup(startupBytes: Buffer): Decoded<DecodeState, Frontend> {
  // A client that gives up says so by the first message that has a type.
  if (terminateMessage.subarray(0, startupBytes.length).equals(startupBytes.subarray(0, terminateMessage.length))) {
    if (startupBytes.length < terminateMessage.length) return { needs: terminateMessage.length };
    return { message: { kind: 'terminate' }, taken: terminateMessage.length, state: startingState };
  }
  if (startupBytes.length < 8) return { needs: 8 };
  const startupLength = startupBytes.readInt32BE(0);
  if (startupLength < 8 || startupLength > startupBytesMax)
    throw messageRefusal('this is no startup message of the Postgres protocol');
  if (startupBytes.length < startupLength) return { needs: startupLength };
  const protocolCode = startupBytes.readInt32BE(4);
  const startupBody = new MessageBody(startupBytes.subarray(8, startupLength));
  const decodedStartup = (startupMessage: Frontend, nextState: DecodeState): Decoded<DecodeState, Frontend> => ({
    message: startupMessage,
    state: nextState,
    taken: startupLength,
  });
  switch (protocolCode) {
    case startupCodes.ssl:
      return decodedStartup({ kind: 'ssl-request' }, startingState);
    case startupCodes.gss:
      return decodedStartup({ kind: 'gss-request' }, startingState);
    case startupCodes.cancel:
      return decodedStartup({ kind: 'cancel', process: startupBody.int32(), secret: startupBody.int32() }, startingState);
  }
  if (protocolCode >> 16 !== 3) throw messageRefusal('this server speaks version 3 of the Postgres protocol');
  const startupParameters = new Map<string, string>();
  for (let parameterName = startupBody.text(); parameterName !== ''; parameterName = startupBody.text())
    startupParameters.set(parameterName, startupBody.text());
  return decodedStartup(
    { kind: 'startup', minor: protocolCode & 0xffff, parameters: startupParameters },
    { at: 'proving', left: 2 },
  );
}

function decodeMessageBody(messageType: number, messageBody: MessageBody): Frontend {
  switch (messageType) {
    case messageLetter.Q:
      return { kind: 'query', text: messageBody.text() };
    case messageLetter.P:
      return {
        kind: 'parse',
        name: messageBody.text(),
        text: messageBody.text(),
        types: messageBody.list(() => messageBody.int32() >>> 0),
      };
    case messageLetter.B: {
      const portal = messageBody.text();
      const statement = messageBody.text();
      const formats = messageBody.list(() => messageBody.format());
      const values = messageBody.list(() => messageBody.value());
      return { kind: 'bind', portal, statement, formats, values, resultFormats: messageBody.list(() => messageBody.format()) };
    }
    case messageLetter.D:
    case messageLetter.C: {
      const describedLetter = messageBody.byte();
      if (describedLetter !== messageLetter.S && describedLetter !== messageLetter.P)
        throw messageRefusal('Describe and Close take a statement or a portal');
      const kind = messageType === messageLetter.D ? 'describe' : 'close';
      return { kind, what: describedLetter === messageLetter.S ? 'statement' : 'portal', name: messageBody.text() };
    }
    case messageLetter.E:
      return { kind: 'execute', portal: messageBody.text(), rowsMax: Math.max(0, messageBody.int32()) };
    case messageLetter.S:
      return { kind: 'sync' };
    case messageLetter.H:
      return { kind: 'flush' };
    case messageLetter.X:
      return { kind: 'terminate' };
    case messageLetter.p:
      return { kind: 'password', body: messageBody.rest() };
    case messageLetter.d:
      return { kind: 'copy-data', body: messageBody.rest() };
    case messageLetter.c:
      return { kind: 'copy-done' };
    case messageLetter.f:
      return { kind: 'copy-fail', reason: messageBody.text() };
    case messageLetter.F:
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'the function call protocol is not implemented: send a statement');
    default:
      throw messageRefusal(`unknown message type ${messageType}`);
  }
}

class MessageBody {
  readonly #messageBytes: Buffer;
  #messageOffset = 0;

  constructor(messageBytes: Buffer) {
    this.#messageBytes = messageBytes;
  }

  byte(): number {
    return this.#messageBytes[this.#takeBytes(1)]!;
  }

  int16(): number {
    return this.#messageBytes.readInt16BE(this.#takeBytes(2));
  }

  int32(): number {
    return this.#messageBytes.readInt32BE(this.#takeBytes(4));
  }

  /** UTF-8 up to a NUL. */
  text(): string {
    const terminatorOffset = this.#messageBytes.indexOf(0, this.#messageOffset);
    if (terminatorOffset < 0) throw shortMessage();
    const textOffset = this.#messageOffset;
    this.#messageOffset = terminatorOffset + 1;
    if (textOffset === terminatorOffset) return '';
    return isAsciiText(this.#messageBytes, textOffset, terminatorOffset)
      ? this.#messageBytes.toString('latin1', textOffset, terminatorOffset)
      : utf8(this.#messageBytes.subarray(textOffset, terminatorOffset));
  }

  format(): number {
    const formatCode = this.int16();
    if (formatCode !== 0 && formatCode !== 1) throw messageRefusal('a format is 0 for text or 1 for binary');
    return formatCode;
  }

  value(): Buffer | null {
    const parameterLength = this.int32();
    if (parameterLength === -1) return null;
    const parameterOffset = this.#takeBytes(parameterLength);
    return this.#messageBytes.subarray(parameterOffset, parameterOffset + parameterLength);
  }

  list<T>(readItem: () => T): T[] {
    // The count is unsigned: up to 65,535.
    const itemCount = this.int16() & 0xffff;
    const messageItems: T[] = [];
    while (messageItems.length < itemCount) messageItems.push(readItem());
    return messageItems;
  }

  rest(): Buffer {
    return this.#messageBytes.subarray(this.#takeBytes(this.#messageBytes.length - this.#messageOffset));
  }

  #takeBytes(takenLength: number): number {
    const takenOffset = this.#messageOffset;
    if (takenLength < 0 || takenOffset + takenLength > this.#messageBytes.length) throw shortMessage();
    this.#messageOffset = takenOffset + takenLength;
    return takenOffset;
  }
}

/** A short one: nearly all are, and a decoder takes longer to be called than to decode them. */
function isAsciiText(messageBytes: Buffer, textOffset: number, textEnd: number): boolean {
  if (textEnd - textOffset > 512) return false;
  for (let byteOffset = textOffset; byteOffset < textEnd; byteOffset++) if (messageBytes[byteOffset]! > 0x7f) return false;
  return true;
}

const messageLetter = {
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

const messageRefusal = (refusalReason: string): ServiceError => new ServiceError('REL_INVALID', refusalReason);
const shortMessage = (): ServiceError => messageRefusal('a message is shorter than its content');
