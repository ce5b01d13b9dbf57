/**
 * Authenticates a connection from its startup message on: SCRAM-SHA-256, the organisation in the user name, the branch as
 * database.
 */
import { ServiceError } from '../../errors.ts';
import type { Authenticator } from '../../governance/authentication/authenticator.ts';
import { type ScramExchange, scramMechanism } from '../../governance/authentication/scram.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Random } from '../../clock.ts';
import { checkOrganization, organizationOf } from '../shared/credentials.ts';
import { utf8 } from '../shared/utf8.ts';
import type { PostgresReplies } from './replies.ts';

export const doorName = 'relational';

export interface LoginDependencies {
  readonly authenticator: Pick<Authenticator, 'scram' | 'provenCaller'>;
  readonly random: Random;
  readonly organizationRequired: boolean;
}

export class Login {
  readonly user: string;
  readonly database: string;
  /** Settings that it states, by name. */
  readonly settings: ReadonlyMap<string, string>;
  readonly #loginParts: LoginDependencies;
  readonly #clientIp: string | null;
  #scramExchange: ScramExchange | null = null;

  /** Throws REL_INVALID for startup parameters that can't be taken. */
  constructor(loginParts: LoginDependencies, startupParameters: ReadonlyMap<string, string>, clientIp: string | null) {
    this.#loginParts = loginParts;
    this.#clientIp = clientIp;
    const loginUser = startupParameters.get('user') ?? '';
    if (loginUser === '') throw new ServiceError('REL_INVALID', 'the startup message names no user');
    if (startupParameters.has('replication') && !/^(false|off|no|0)$/i.test(startupParameters.get('replication')!))
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'replication is not implemented');
    this.user = loginUser;
    this.database = startupParameters.get('database') || loginUser;
    this.settings = new Map([
      ...[...startupParameters].filter(
        ([parameterName]) => !reservedParameters.has(parameterName) && !parameterName.startsWith('_pq_.'),
      ),
      ...startupOptions(startupParameters.get('options') ?? ''),
    ]);
  }

  begin(loginReplies: PostgresReplies): void {
    this.#scramExchange = this.#loginParts.authenticator.scram(this.#loginParts.random);
    loginReplies.authentication(authenticationCodes.sasl, Buffer.from(`${scramMechanism}\0\0`));
  }

  /** The caller once the second message has proven it. Throws REL_UNAUTHENTICATED or REL_INVALID. */
  proceed(passwordBody: Buffer, loginReplies: PostgresReplies): Caller | null {
    const scramExchange = this.#scramExchange!;
    if (!this.#isChallenged) {
      const mechanismEnd = passwordBody.indexOf(0);
      const saslMechanism = passwordBody.subarray(0, Math.max(0, mechanismEnd)).toString('latin1');
      if (saslMechanism !== scramMechanism)
        throw new ServiceError('REL_INVALID', `clients authenticate by ${scramMechanism}, and by nothing else`);
      const scramLength = passwordBody.length >= mechanismEnd + 5 ? passwordBody.readInt32BE(mechanismEnd + 1) : -1;
      if (scramLength < 0 || passwordBody.length !== mechanismEnd + 5 + scramLength)
        throw new ServiceError('REL_INVALID', `malformed ${scramMechanism} message`);
      loginReplies.authentication(
        authenticationCodes.challenge,
        Buffer.from(scramExchange.challenge(utf8(passwordBody.subarray(mechanismEnd + 5)))),
      );
      this.#isChallenged = true;
      return null;
    }
    const serverFinal = scramExchange.verify(utf8(passwordBody));
    const provenCaller = this.#loginParts.authenticator.provenCaller(scramExchange, {
      door: doorName,
      clientIp: this.#clientIp,
      organization: organizationOf(this.user),
    });
    checkOrganization(this.#loginParts, provenCaller);
    loginReplies.authentication(authenticationCodes.proven, Buffer.from(serverFinal));
    loginReplies.authentication(authenticationCodes.ok);
    return { ...provenCaller, branch: this.#databaseBranch };
  }

  #isChallenged = false;

  /** Tools connect to a default database where the user names none: it means main. */
  get #databaseBranch(): string {
    const { database, user: loginUser } = this;
    const mainBranchNames = ['annals', 'postgres', loginUser, loginUser.slice(0, Math.max(0, loginUser.lastIndexOf('@')))];
    return mainBranchNames.includes(database) ? 'main' : database;
  }
}

const authenticationCodes = { ok: 0, sasl: 10, challenge: 11, proven: 12 } as const;
const reservedParameters: ReadonlySet<string> = new Set(['user', 'database', 'options', 'replication']);

/** `-c name=value` and `--name=value`; a backslash escapes a space within a word. */
function startupOptions(optionsText: string): [string, string][] {
  const optionWords = (optionsText.match(/(?:\\.|[^\s\\])+/gs) ?? []).map((optionWord) => optionWord.replaceAll(/\\(.)/gs, '$1'));
  const startupSettings: [string, string][] = [];
  for (let i = 0; i < optionWords.length; i++) {
    const optionWord = optionWords[i]!;
    const statedOption = optionWord === '-c' ? (optionWords[++i] ?? '') : optionWord.replace(/^(-c|--)/, '');
    const equalsOffset = statedOption.indexOf('=');
    if (equalsOffset < 1 || (statedOption === optionWord && optionWords[i - 1] !== '-c'))
      throw new ServiceError('REL_INVALID', 'options are written -c name=value');
    startupSettings.push([statedOption.slice(0, equalsOffset).replaceAll('-', '_'), statedOption.slice(equalsOffset + 1)]);
  }
  return startupSettings;
}
