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
  readonly #parts: LoginDependencies;
  readonly #clientIp: string | null;
  #exchange: ScramExchange | null = null;

  /** Throws REL_INVALID for startup parameters that can't be taken. */
  constructor(parts: LoginDependencies, parameters: ReadonlyMap<string, string>, clientIp: string | null) {
    this.#parts = parts;
    this.#clientIp = clientIp;
    const user = parameters.get('user') ?? '';
    if (user === '') throw new ServiceError('REL_INVALID', 'the startup message names no user');
    if (parameters.has('replication') && !/^(false|off|no|0)$/i.test(parameters.get('replication')!))
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'replication is not implemented');
    this.user = user;
    this.database = parameters.get('database') || user;
    this.settings = new Map([
      ...[...parameters].filter(([name]) => !notSettings.has(name) && !name.startsWith('_pq_.')),
      ...optionsOf(parameters.get('options') ?? ''),
    ]);
  }

  begin(replies: PostgresReplies): void {
    this.#exchange = this.#parts.authenticator.scram(this.#parts.random);
    replies.authentication(authentication.sasl, Buffer.from(`${scramMechanism}\0\0`));
  }

  /** The caller once the second message has proven it. Throws REL_UNAUTHENTICATED or REL_INVALID. */
  proceed(body: Buffer, replies: PostgresReplies): Caller | null {
    const exchange = this.#exchange!;
    if (!this.#challenged) {
      const end = body.indexOf(0);
      const mechanism = body.subarray(0, Math.max(0, end)).toString('latin1');
      if (mechanism !== scramMechanism)
        throw new ServiceError('REL_INVALID', `clients authenticate by ${scramMechanism}, and by nothing else`);
      const length = body.length >= end + 5 ? body.readInt32BE(end + 1) : -1;
      if (length < 0 || body.length !== end + 5 + length)
        throw new ServiceError('REL_INVALID', `malformed ${scramMechanism} message`);
      replies.authentication(authentication.challenge, Buffer.from(exchange.challenge(utf8(body.subarray(end + 5)))));
      this.#challenged = true;
      return null;
    }
    const final = exchange.verify(utf8(body));
    const caller = this.#parts.authenticator.provenCaller(exchange, {
      door: doorName,
      clientIp: this.#clientIp,
      organization: organizationOf(this.user),
    });
    checkOrganization(this.#parts, caller);
    replies.authentication(authentication.proven, Buffer.from(final));
    replies.authentication(authentication.ok);
    return { ...caller, branch: this.#branch };
  }

  #challenged = false;

  /** Tools connect to a default database where the user names none: it means main. */
  get #branch(): string {
    const { database, user } = this;
    const names = ['annals', 'postgres', user, user.slice(0, Math.max(0, user.lastIndexOf('@')))];
    return names.includes(database) ? 'main' : database;
  }
}

const authentication = { ok: 0, sasl: 10, challenge: 11, proven: 12 } as const;
const notSettings: ReadonlySet<string> = new Set(['user', 'database', 'options', 'replication']);

/** `-c name=value` and `--name=value`; a backslash escapes a space within a word. */
function optionsOf(text: string): [string, string][] {
  const words = (text.match(/(?:\\.|[^\s\\])+/gs) ?? []).map((word) => word.replaceAll(/\\(.)/gs, '$1'));
  const settings: [string, string][] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const stated = word === '-c' ? (words[++i] ?? '') : word.replace(/^(-c|--)/, '');
    const equals = stated.indexOf('=');
    if (equals < 1 || (stated === word && words[i - 1] !== '-c'))
      throw new ServiceError('REL_INVALID', 'options are written -c name=value');
    settings.push([stated.slice(0, equals).replaceAll('-', '_'), stated.slice(equals + 1)]);
  }
  return settings;
}
