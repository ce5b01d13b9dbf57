/** Error replies of the key-value door: Redis's word to branch on, then a sentence. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';

/** An error that Redis itself has, in its own words. */
export class RespRefusal extends ServiceError {
  readonly word: string;

  constructor(word: string, detail: string, code: ErrorCode = 'REL_INVALID') {
    super(code, detail);
    this.word = word;
  }
}

export function errorText(error: ServiceError): string {
  if (error instanceof RespRefusal) return `${error.word} ${error.message}`;
  if (error.message.startsWith('Protocol error')) return `ERR ${error.message}`;
  return `${errorCodesOf(error.code, error.facts.stale).resp} ${error.message} (${error.code})`;
}

const err = (detail: string, code?: ErrorCode): RespRefusal => new RespRefusal('ERR', detail, code);

export const respRefusals = {
  noAuth: () => new RespRefusal('NOAUTH', 'Authentication required.', 'REL_UNAUTHENTICATED'),
  wrongPass: () => new RespRefusal('WRONGPASS', 'invalid username-password pair or user is disabled.', 'REL_UNAUTHENTICATED'),
  noProtocol: () => new RespRefusal('NOPROTO', 'unsupported protocol version'),
  wrongType: () => new RespRefusal('WRONGTYPE', 'Operation against a key holding the wrong kind of value', 'REL_TYPE_MISMATCH'),
  arity: (name: string) => err(`wrong number of arguments for '${name}' command`),
  syntax: () => err('syntax error'),
  notInteger: () => err('value is not an integer or out of range'),
  notFloat: () => err('value is not a valid float'),
  notFinite: () => err('increment would produce NaN or Infinity'),
  decrementOverflow: () => err('decrement would overflow'),
  expireOptions: (one: string, others: string) => err(`${one} and ${others} options at the same time are not compatible`),
  expireOption: (option: string) => err(`Unsupported option ${option.slice(0, 128)}`),
  overflow: () => err('increment or decrement would overflow'),
  expireTime: (name: string) => err(`invalid expire time in '${name}' command`),
  cursor: () => err('invalid cursor'),
  dbIndex: () => err('DB index is out of range'),
  keyText: () => err('keys and channels are UTF-8 texts of 1 to 1,024 bytes here'),
  unknown: (name: string, words: readonly string[]) =>
    err(
      `unknown command '${name.slice(0, 128)}', with args beginning with: ${words.map((word) => `'${word}' `).join('')}`.trimEnd(),
      'REL_NOT_IMPLEMENTED',
    ),
  subcommand: (container: string, name: string) =>
    err(`unknown subcommand '${name.slice(0, 128)}'. Try ${container} HELP.`, 'REL_NOT_IMPLEMENTED'),
  notRead: (name: string) => err(`ANNALS.AT takes a command that reads, not '${name.slice(0, 128)}'`),
  onlySubscribing: (name: string) =>
    err(`Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`),
} as const;
