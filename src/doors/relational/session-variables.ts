/**
 * Variables that a session sets with SET and reads with SHOW: `annals.*`, and those that clients of Postgres expect. A setting
 * that would change nothing is taken only at the value that is in force; all else is refused, never ignored.
 */
import { ServiceError } from '../../errors.ts';
import { FOREVER, parseZonedInstant } from '../../log/values/timestamp.ts';
import { checkText } from '../../log/values/value.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import type { InstantStyle } from '../../planner/system-catalogue/client-session.ts';
import { ProtocolRefusal } from './errors.ts';

interface Variable {
  readonly start: string;
  /** Gives the value to keep, or throws. */
  readonly takes: (value: string) => string;
  /** The name under which clients get it at the start, and when it changes. */
  readonly reported?: string;
  readonly about: string;
}

const any = (value: string): string => value;
const invalid = (why: string): ServiceError => new ServiceError('REL_INVALID', why);

/** The value without case, spaces and quotes. */
const plainOf = (value: string): string => value.toLowerCase().replaceAll(/[\s"]/g, '');

/** Only these values are true of this server; `possible`: what Postgres would take, anything else is no value at all. */
const only =
  (known: readonly string[], possible: RegExp = /^/) =>
  (value: string): string => {
    const plain = plainOf(value);
    if (known.some((each) => plainOf(each) === plain)) return value;
    throw elsewhere(known[0]!, possible.test(plain));
  };

const elsewhere = (known: string, isPossible: boolean): ServiceError =>
  new ServiceError(isPossible ? 'REL_NOT_IMPLEMENTED' : 'REL_INVALID', `the only value here is ${known}`);

/** Takes only the value that the variable has. */
const constant =
  (known: string) =>
  (value: string): string => {
    if (plainOf(value) === plainOf(known)) return value;
    throw new ProtocolRefusal('55P02', 'REL_INVALID', 'it can not be changed');
  };

const instantOf = (value: string): string => {
  if (value !== '') parseZonedInstant(value);
  return value;
};

const encodings =
  /^(latin\d+|iso8859\d+|win\d+|sqlascii|mulinternal|euc\w+|koi8\w*|big5|gb\w+|sjis|shiftjis\w*|johab|uhc|abc|tcvn\d*|vscii|alt|mskanji|windows\d+)$/;

/** Case and punctuation of a name of an encoding say nothing. */
const utf8Only = (value: string): string => {
  const plain = value.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  if (['utf8', 'unicode', 'auto'].includes(plain)) return 'UTF8';
  throw elsewhere('UTF8', encodings.test(plain));
};

const utcNames: ReadonlySet<string> = new Set('utc uct zulu z universal gmt gmt0 gmt+0 gmt-0 greenwich'.split(' '));

function isZone(name: string): boolean {
  if (/^(interval\b|[+-]?\d|<|[a-z]{3,}[+-]?\d)/i.test(name)) return true;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format() !== '';
  } catch {
    return false;
  }
}

/** Every name of UTC, and each way to write an offset of nothing. */
const utcOnly = (value: string): string => {
  const plain = value
    .trim()
    .toLowerCase()
    .replace(/^etc\//, '');
  const offset = /^(?:interval\s*)?'?([+-]?)(0{1,2}(?::00){0,2})'?(?:\s+hour(?:\s+to\s+(?:minute|second))?)?$/.test(plain);
  if (utcNames.has(plain) || offset || /^<[+-]00>-00$/.test(plain)) return 'UTC';
  throw elsewhere('UTC', isZone(value.trim()));
};

const wholeBetween =
  (least: number, most: number) =>
  (value: string): string => {
    const number = /^\d{1,10}$/.test(value) ? Number(value) : -1;
    if (number < least || number > most) throw invalid(`takes a whole number from ${least} to ${most}`);
    return String(number);
  };

const oneOf =
  (...known: readonly string[]) =>
  (value: string): string => {
    const plain = value.toLowerCase();
    if (!known.includes(plain)) throw invalid(`takes ${known.join(', ')}`);
    return plain;
  };

const dateStyles = /^(iso|sql|postgres|german|default)?,?(dmy|mdy|ymd|us|euro(pean)?|noneuro(pean)?)?$/;
const switches = /^(on|off|true|false|yes|no|1|0)$/;
const zeroOnly = only(['0', '0s', '0ms'], /^\d+(\.\d+)?(us|ms|s|min|h|d)?$/);
/** Milliseconds, or a number with its unit; Postgres shows it in the largest unit that fits exactly. */
const duration = (value: string): string => {
  const parts = /^(\d{1,10}(?:\.\d{1,3})?)\s*(us|ms|s|min|h|d)?$/.exec(value.trim());
  const ms = parts === null ? Number.NaN : Math.round(Number(parts[1]) * msOf[parts[2] ?? 'ms']!);
  if (!(ms <= 2_147_483_647)) throw invalid('takes milliseconds, or a number with one of the units us, ms, s, min, h, d');
  const unit = Object.keys(msOf).findLast((each) => ms > 0 && ms % msOf[each]! === 0);
  return unit === undefined ? '0' : `${ms / msOf[unit]!}${unit}`;
};
const msOf: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
const onlyOn = only(['on', 'true', '1', 'yes'], switches);
/** Weaker isolation levels get the one level there is. */
const isolation = (value: string): string => {
  if (/^(repeatable read|read (un)?committed)$/i.test(value.trim())) return 'repeatable read';
  throw elsewhere('repeatable read', /^serializable$/i.test(value.trim()));
};
const parseSwitch = (value: string): string => {
  if (/^(on|true|1|yes)$/i.test(value)) return 'on';
  if (/^(off|false|0|no)$/i.test(value)) return 'off';
  throw invalid('takes on or off');
};

const variable = (start: string, takes: Variable['takes'], about: string, reported?: string): Variable => ({
  start,
  takes,
  about,
  ...(reported === undefined ? {} : { reported }),
});

const variables: Readonly<Record<string, Variable>> = {
  'annals.as_of': variable(
    'current',
    (value) => (value === 'current' || value === 'all' ? value : instantOf(value)),
    'when it is true what questions are about: current, all (every version), or an instant',
  ),
  'annals.as_of_system': variable('', instantOf, 'what was known at an instant; empty: now'),
  'annals.purpose': variable('', any, 'why is asked; it stands in the access record'),
  'annals.break_glass': variable('', any, 'why a protected type is to be opened'),
  'annals.access_scope_ref': variable('', any, 'the access scope that the reader was cleared for'),
  'annals.timestamps': variable(
    'timestamptz',
    (value) => {
      if (value === 'timestamptz' || value === 'int8') return value;
      throw invalid('annals.timestamps takes timestamptz or int8');
    },
    'how instants of properties are shown: timestamptz, or int8 nanoseconds',
  ),
  'annals.timestamp_digits': variable(
    '6',
    (value) => {
      if (value === '6' || value === '9') return value;
      throw invalid('annals.timestamp_digits takes 6 or 9');
    },
    'digits of a fraction of a second in text: 6, as clients read them, or 9',
  ),
  'annals.durability': variable(
    '',
    (value) => {
      if (value === '' || value === 'sync') return value;
      throw invalid('annals.durability takes sync, or nothing');
    },
    'sync: a write is fsynced before it is acknowledged, whatever the settings say',
  ),
  application_name: variable('', any, 'as the client calls itself', 'application_name'),
  bytea_output: variable('hex', only(['hex'], /^escape$/), 'there is no bytea'),
  client_encoding: variable('UTF8', utf8Only, 'texts are UTF-8', 'client_encoding'),
  client_min_messages: variable(
    'notice',
    only(['notice', 'info', 'log', 'warning', 'error'], /^debug[1-5]?$/),
    'notices are sent',
  ),
  datestyle: variable(
    'ISO, MDY',
    only(['ISO', 'ISO, MDY', 'ISO, DMY', 'ISO, YMD'], dateStyles),
    'instants are ISO 8601',
    'DateStyle',
  ),
  default_transaction_isolation: variable('repeatable read', isolation, 'see transaction_isolation'),
  default_transaction_read_only: variable('off', parseSwitch, 'on: no transaction takes a write that does not say READ WRITE'),
  extra_float_digits: variable('1', only(['1', '2', '3', '0'], /^-(\d|1[0-5])$/), 'numbers are shown by their shortest text'),
  idle_in_transaction_session_timeout: variable('0', zeroOnly, 'no such time-out'),
  integer_datetimes: variable('on', constant('on'), 'instants are integers', 'integer_datetimes'),
  intervalstyle: variable(
    'postgres',
    only(['postgres', 'iso_8601'], /^(postgres_verbose|sql_standard)$/),
    'no column is an interval',
    'IntervalStyle',
  ),
  is_superuser: variable('off', constant('off'), 'nobody is', 'is_superuser'),
  lock_timeout: variable('0', zeroOnly, 'nothing is locked'),
  row_security: variable('on', onlyOn, 'policies are always in force'),
  search_path: variable('public', only(['public', '"$user", public', 'public, pg_catalog', 'pg_catalog']), 'one schema'),
  server_encoding: variable('UTF8', constant('UTF8'), 'texts are UTF-8', 'server_encoding'),
  server_version: variable('15.0', constant('15.0'), 'what this server is taken for', 'server_version'),
  server_version_num: variable('150000', constant('150000'), 'the same as a number'),
  session_authorization: variable('', only(['']), 'the user of the connection', 'session_authorization'),
  standard_conforming_strings: variable('on', onlyOn, 'a backslash is a character', 'standard_conforming_strings'),
  statement_timeout: variable(
    '0',
    duration,
    'a statement that runs longer is cancelled; 0: SERVICE_QUERY_TIMEOUT_SECS alone ends it',
  ),
  synchronous_commit: variable('on', onlyOn, 'SERVICE_WAL_SYNC says when a write is acknowledged'),
  timezone: variable('UTC', utcOnly, 'times are UTC', 'TimeZone'),
  transaction_isolation: variable(
    'repeatable read',
    isolation,
    'a transaction reads what stood at its first statement, and what it wrote',
  ),
  transaction_read_only: variable('off', parseSwitch, 'on: this transaction takes no write'),
  'hnsw.ef_search': variable('40', wholeBetween(1, 1_000), 'nearest vectors are exact, whatever it is'),
  'hnsw.iterative_scan': variable(
    'off',
    oneOf('off', 'strict_order', 'relaxed_order'),
    'nearest vectors are exact, whatever it is',
  ),
  'hnsw.max_scan_tuples': variable('20000', wholeBetween(1, 2_147_483_647), 'nearest vectors are exact, whatever it is'),
  'ivfflat.probes': variable('1', wholeBetween(1, 32_768), 'nearest vectors are exact, whatever it is'),
  xmloption: variable('content', only(['content'], /^document$/), 'there is no XML'),
};

/** Startup parameters that are taken with any value: instants leave in UTC, each with its offset. */
const startIgnored: ReadonlySet<string> = new Set(['timezone', 'datestyle', 'extra_float_digits', 'search_path']);

export class SessionVariables {
  readonly #values = new Map<string, string>();
  readonly #defaults = new Map<string, string>();
  /** Values before SET LOCAL; null: no transaction is open. */
  #before: Map<string, string> | null = null;
  readonly #report: (name: string, value: string) => void;

  constructor(report: (name: string, value: string) => void) {
    this.#report = report;
  }

  /** Startup parameters and `-c name=value` options. */
  begin(stated: ReadonlyMap<string, string>, user: string): void {
    this.#defaults.set('session_authorization', user);
    for (const [name, value] of stated) {
      const key = name.toLowerCase();
      if (startIgnored.has(key)) {
        const known = variables[key]!;
        try {
          this.#defaults.set(key, known.takes(value));
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
        }
      } else this.#defaults.set(key, this.#checkValue(key, value));
    }
    for (const [name, { reported }] of Object.entries(variables))
      if (reported !== undefined) this.#report(reported, this.show(name));
  }

  set(name: string, value: string | null, local: boolean): void {
    if (value === null) return this.reset(name);
    const taken = this.#checkValue(name, value);
    if (local) {
      if (this.#before === null) return;
      if (!this.#before.has(name)) this.#before.set(name, this.show(name));
    }
    this.#change(name, taken);
  }

  reset(name: string): void {
    if (name === 'all') {
      for (const each of this.#values.keys()) this.reset(each);
      return;
    }
    this.#variable(name);
    this.#values.delete(name);
    this.#tell(name);
  }

  show(name: string): string {
    const { start } = this.#variable(name);
    if (name === 'transaction_read_only' && !this.#values.has(name)) return this.show('default_transaction_read_only');
    return this.#values.get(name) ?? this.#defaults.get(name) ?? start;
  }

  all(): { readonly name: string; readonly value: string; readonly about: string }[] {
    return Object.entries(variables).map(([name, { about }]) => ({ name, value: this.show(name), about }));
  }

  transactionBegins(): void {
    this.#before = new Map();
  }

  transactionEnds(): void {
    for (const [name, value] of this.#before ?? []) this.#change(name, value);
    this.#before = null;
    this.#values.delete('transaction_read_only');
  }

  /** The default time of a query without AS OF. */
  get time(): DefaultTime {
    const valid = this.show('annals.as_of');
    const system = this.show('annals.as_of_system');
    if (system === '' && (valid === 'current' || valid === 'all')) return valid;
    const systemAxis = system === '' ? (valid === 'all' ? {} : { system: beforeForever }) : { system: parseZonedInstant(system) };
    if (valid === 'all') return systemAxis;
    // With a system instant, current valid time means that instant.
    return { ...systemAxis, valid: valid === 'current' ? parseZonedInstant(system) : parseZonedInstant(valid) };
  }

  get instants(): InstantStyle {
    return this.show('annals.timestamps') as InstantStyle;
  }

  /** 0: there is none. */
  get statementTimeoutMs(): number {
    const [, number, unit] = /^(\d+)(\D*)$/.exec(this.show('statement_timeout'))!;
    return Number(number) * (msOf[unit!] ?? 1);
  }

  get timestampDigits(): number {
    return Number(this.show('annals.timestamp_digits'));
  }

  /** The term; null where it is not stated. */
  statedTerm(name: 'annals.purpose' | 'annals.break_glass' | 'annals.access_scope_ref' | 'annals.durability'): string | null {
    return this.show(name) || null;
  }

  #variable(name: string): Variable {
    const known = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (known === undefined)
      throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(name)}; SHOW ALL lists them`);
    return known;
  }

  #checkValue(name: string, value: string): string {
    const known = this.#variable(name);
    checkText(value, name);
    if (value.length > 1_024) throw invalid(`${name} has at most 1,024 characters`);
    try {
      return known.takes(value);
    } catch (error) {
      if (error instanceof ServiceError) {
        const detail = `${name}: ${error.message}`;
        throw error instanceof ProtocolRefusal
          ? new ProtocolRefusal(error.sqlstate, error.code, detail)
          : new ServiceError(error.code, detail);
      }
      throw error;
    }
  }

  #change(name: string, value: string): void {
    this.#values.set(name, value);
    this.#tell(name);
  }

  #tell(name: string): void {
    const { reported } = this.#variable(name);
    if (reported !== undefined) this.#report(reported, this.show(name));
  }
}

const beforeForever = FOREVER - 1n;
