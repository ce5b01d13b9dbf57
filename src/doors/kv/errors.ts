/** Error replies of the key-value door: Redis's word to branch on, then a sentence. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';

/** An error that Redis itself has, in its own words. */
export class RespRefusal extends ServiceError {
  readonly word: string;

  constructor(errorWord: string, detail: string, code: ErrorCode = 'REL_INVALID') {
    super(code, detail);
    this.word = errorWord;
  }
}

export function errorText(respError: ServiceError): string {
  if (respError instanceof RespRefusal) return `${respError.word} ${respError.message}`;
  if (respError.message.startsWith('Protocol error')) return `ERR ${respError.message}`;
  return `${errorCodesOf(respError.code, respError.facts.stale).resp} ${respError.message} (${respError.code})`;
}

const errRefusal = (errDetail: string, errCode?: ErrorCode): RespRefusal => new RespRefusal('ERR', errDetail, errCode);

export const respRefusals = {
  noAuth: () => new RespRefusal('NOAUTH', 'Authentication required.', 'REL_UNAUTHENTICATED'),
  wrongPass: () => new RespRefusal('WRONGPASS', 'invalid username-password pair or user is disabled.', 'REL_UNAUTHENTICATED'),
  noProtocol: () => new RespRefusal('NOPROTO', 'unsupported protocol version'),
  wrongType: () => new RespRefusal('WRONGTYPE', 'Operation against a key holding the wrong kind of value', 'REL_TYPE_MISMATCH'),
  arity: (commandName: string) => errRefusal(`wrong number of arguments for '${commandName}' command`),
  syntax: () => errRefusal('syntax error'),
  notInteger: () => errRefusal('value is not an integer or out of range'),
  notFloat: () => errRefusal('value is not a valid float'),
  notFinite: () => errRefusal('increment would produce NaN or Infinity'),
  decrementOverflow: () => errRefusal('decrement would overflow'),
  expireOptions: (expireOption: string, otherOptions: string) =>
    errRefusal(`${expireOption} and ${otherOptions} options at the same time are not compatible`),
  expireOption: (option: string) => errRefusal(`Unsupported option ${option.slice(0, 128)}`),
  overflow: () => errRefusal('increment or decrement would overflow'),
  expireTime: (commandName: string) => errRefusal(`invalid expire time in '${commandName}' command`),
  cursor: () => errRefusal('invalid cursor'),
  dbIndex: () => errRefusal('DB index is out of range'),
  keyText: () => errRefusal('keys and channels are UTF-8 texts of 1 to 1,024 bytes here'),
  unknown: (unknownCommand: string, argumentWords: readonly string[]) =>
    errRefusal(
      `unknown command '${unknownCommand.slice(0, 128)}', with args beginning with: ${argumentWords.map((argumentWord) => `'${argumentWord}' `).join('')}`.trimEnd(),
      'REL_NOT_IMPLEMENTED',
    ),
  subcommand: (containerCommand: string, subcommandName: string) =>
    errRefusal(`unknown subcommand '${subcommandName.slice(0, 128)}'. Try ${containerCommand} HELP.`, 'REL_NOT_IMPLEMENTED'),
  notRead: (commandName: string) => errRefusal(`ANNALS.AT takes a command that reads, not '${commandName.slice(0, 128)}'`),
  onlySubscribing: (commandName: string) =>
    errRefusal(
      `Can't execute '${commandName}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
    ),
} as const;
