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

interface SessionVariable {
  readonly start: string;
  /** Gives the value to keep, or throws. */
  readonly takes: (value: string) => string;
  /** The name under which clients get it at the start, and when it changes. */
  readonly reported?: string;
  readonly about: string;
}

const anyValue = (value: string): string => value;
const invalidVariable = (invalidReason: string): ServiceError => new ServiceError('REL_INVALID', invalidReason);

/** The value without case, spaces and quotes. */
const plainVariableValue = (variableValue: string): string => variableValue.toLowerCase().replaceAll(/[\s"]/g, '');

/** Only these values are true of this server; `possibleValues`: what Postgres would take, anything else is no value at all. */
const onlyValues =
  (knownValues: readonly string[], possibleValues: RegExp = /^/) =>
  (variableValue: string): string => {
    const plainValue = plainVariableValue(variableValue);
    if (knownValues.some((knownValue) => plainVariableValue(knownValue) === plainValue)) return variableValue;
    throw valueNotSupported(knownValues[0]!, possibleValues.test(plainValue));
  };

const valueNotSupported = (supportedValue: string, isPossible: boolean): ServiceError =>
  new ServiceError(isPossible ? 'REL_NOT_IMPLEMENTED' : 'REL_INVALID', `the only value here is ${supportedValue}`);

/** Takes only the value that the variable has. */
const constantValue =
  (constantText: string) =>
  (variableValue: string): string => {
    if (plainVariableValue(variableValue) === plainVariableValue(constantText)) return variableValue;
    throw new ProtocolRefusal('55P02', 'REL_INVALID', 'it can not be changed');
  };

const instantValue = (instantText: string): string => {
  if (instantText !== '') parseZonedInstant(instantText);
  return instantText;
};

const knownEncodings =
  /^(latin\d+|iso8859\d+|win\d+|sqlascii|mulinternal|euc\w+|koi8\w*|big5|gb\w+|sjis|shiftjis\w*|johab|uhc|abc|tcvn\d*|vscii|alt|mskanji|windows\d+)$/;

/** Case and punctuation of a name of an encoding say nothing. */
const utf8Encoding = (encodingName: string): string => {
  const plainEncoding = encodingName.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  if (['utf8', 'unicode', 'auto'].includes(plainEncoding)) return 'UTF8';
  throw valueNotSupported('UTF8', knownEncodings.test(plainEncoding));
};

const utcNames: ReadonlySet<string> = new Set('utc uct zulu z universal gmt gmt0 gmt+0 gmt-0 greenwich'.split(' '));

function isKnownTimeZone(zoneName: string): boolean {
  if (/^(interval\b|[+-]?\d|<|[a-z]{3,}[+-]?\d)/i.test(zoneName)) return true;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zoneName }).format() !== '';
  } catch {
    return false;
  }
}

/** Every name of UTC, and each way to write an offset of nothing. */
const utcTimeZone = (zoneText: string): string => {
  const plainZone = zoneText
    .trim()
    .toLowerCase()
    .replace(/^etc\//, '');
  const zoneOffset = /^(?:interval\s*)?'?([+-]?)(0{1,2}(?::00){0,2})'?(?:\s+hour(?:\s+to\s+(?:minute|second))?)?$/.test(
    plainZone,
  );
  if (utcNames.has(plainZone) || zoneOffset || /^<[+-]00>-00$/.test(plainZone)) return 'UTC';
  throw valueNotSupported('UTC', isKnownTimeZone(zoneText.trim()));
};

const wholeNumberBetween =
  (leastNumber: number, mostNumber: number) =>
  (numberText: string): string => {
    const wholeNumber = /^\d{1,10}$/.test(numberText) ? Number(numberText) : -1;
    if (wholeNumber < leastNumber || wholeNumber > mostNumber)
      throw invalidVariable(`takes a whole number from ${leastNumber} to ${mostNumber}`);
    return String(wholeNumber);
  };

const oneOfValues =
  (...knownValues: readonly string[]) =>
  (variableValue: string): string => {
    const plainValue = variableValue.toLowerCase();
    if (!knownValues.includes(plainValue)) throw invalidVariable(`takes ${knownValues.join(', ')}`);
    return plainValue;
  };

const knownDateStyles = /^(iso|sql|postgres|german|default)?,?(dmy|mdy|ymd|us|euro(pean)?|noneuro(pean)?)?$/;
const switchValues = /^(on|off|true|false|yes|no|1|0)$/;
const zeroTimeout = onlyValues(['0', '0s', '0ms'], /^\d+(\.\d+)?(us|ms|s|min|h|d)?$/);
/** Milliseconds, or a number with its unit; Postgres shows it in the largest unit that fits exactly. */
const timeoutValue = (durationText: string): string => {
  const durationParts = /^(\d{1,10}(?:\.\d{1,3})?)\s*(us|ms|s|min|h|d)?$/.exec(durationText.trim());
  const durationMs =
    durationParts === null ? Number.NaN : Math.round(Number(durationParts[1]) * unitMilliseconds[durationParts[2] ?? 'ms']!);
  if (!(durationMs <= 2_147_483_647))
    throw invalidVariable('takes milliseconds, or a number with one of the units us, ms, s, min, h, d');
  const durationUnit = Object.keys(unitMilliseconds).findLast(
    (timeUnit) => durationMs > 0 && durationMs % unitMilliseconds[timeUnit]! === 0,
  );
  return durationUnit === undefined ? '0' : `${durationMs / unitMilliseconds[durationUnit]!}${durationUnit}`;
};
const unitMilliseconds: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const alwaysOn = onlyValues(['on', 'true', '1', 'yes'], switchValues);
/** Weaker isolation levels get the one level there is. */
const isolationLevel = (isolationText: string): string => {
  if (/^(repeatable read|read (un)?committed)$/i.test(isolationText.trim())) return 'repeatable read';
  throw valueNotSupported('repeatable read', /^serializable$/i.test(isolationText.trim()));
};
const parseSwitch = (switchText: string): string => {
  if (/^(on|true|1|yes)$/i.test(switchText)) return 'on';
  if (/^(off|false|0|no)$/i.test(switchText)) return 'off';
  throw invalidVariable('takes on or off');
};

const sessionVariable = (
  startValue: string,
  checkVariable: SessionVariable['takes'],
  aboutVariable: string,
  reportedName?: string,
): SessionVariable => ({
  start: startValue,
  takes: checkVariable,
  about: aboutVariable,
  ...(reportedName === undefined ? {} : { reported: reportedName }),
});

const sessionVariables: Readonly<Record<string, SessionVariable>> = {
  'annals.as_of': sessionVariable(
    'current',
    (value) => (value === 'current' || value === 'all' ? value : instantValue(value)),
    'when it is true what questions are about: current, all (every version), or an instant',
  ),
  'annals.as_of_system': sessionVariable('', instantValue, 'what was known at an instant; empty: now'),
  'annals.purpose': sessionVariable('', anyValue, 'why is asked; it stands in the access record'),
  'annals.break_glass': sessionVariable('', anyValue, 'why a protected type is to be opened'),
  'annals.access_scope_ref': sessionVariable('', anyValue, 'the access scope that the reader was cleared for'),
  'annals.timestamps': sessionVariable(
    'timestamptz',
    (value) => {
      if (value === 'timestamptz' || value === 'int8') return value;
      throw invalidVariable('annals.timestamps takes timestamptz or int8');
    },
    'how instants of properties are shown: timestamptz, or int8 nanoseconds',
  ),
  'annals.timestamp_digits': sessionVariable(
    '6',
    (value) => {
      if (value === '6' || value === '9') return value;
      throw invalidVariable('annals.timestamp_digits takes 6 or 9');
    },
    'digits of a fraction of a second in text: 6, as clients read them, or 9',
  ),
  'annals.durability': sessionVariable(
    '',
    (value) => {
      if (value === '' || value === 'sync') return value;
      throw invalidVariable('annals.durability takes sync, or nothing');
    },
    'sync: a write is fsynced before it is acknowledged, whatever the settings say',
  ),
  application_name: sessionVariable('', anyValue, 'as the client calls itself', 'application_name'),
  bytea_output: sessionVariable('hex', onlyValues(['hex'], /^escape$/), 'there is no bytea'),
  client_encoding: sessionVariable('UTF8', utf8Encoding, 'texts are UTF-8', 'client_encoding'),
  client_min_messages: sessionVariable(
    'notice',
    onlyValues(['notice', 'info', 'log', 'warning', 'error'], /^debug[1-5]?$/),
    'notices are sent',
  ),
  datestyle: sessionVariable(
    'ISO, MDY',
    onlyValues(['ISO', 'ISO, MDY', 'ISO, DMY', 'ISO, YMD'], knownDateStyles),
    'instants are ISO 8601',
    'DateStyle',
  ),
  default_transaction_isolation: sessionVariable('repeatable read', isolationLevel, 'see transaction_isolation'),
  default_transaction_read_only: sessionVariable(
    'off',
    parseSwitch,
    'on: no transaction takes a write that does not say READ WRITE',
  ),
  extra_float_digits: sessionVariable(
    '1',
    onlyValues(['1', '2', '3', '0'], /^-(\d|1[0-5])$/),
    'numbers are shown by their shortest text',
  ),
  idle_in_transaction_session_timeout: sessionVariable('0', zeroTimeout, 'no such time-out'),
  integer_datetimes: sessionVariable('on', constantValue('on'), 'instants are integers', 'integer_datetimes'),
  intervalstyle: sessionVariable(
    'postgres',
    onlyValues(['postgres', 'iso_8601'], /^(postgres_verbose|sql_standard)$/),
    'no column is an interval',
    'IntervalStyle',
  ),
  is_superuser: sessionVariable('off', constantValue('off'), 'nobody is', 'is_superuser'),
  lock_timeout: sessionVariable('0', zeroTimeout, 'nothing is locked'),
  row_security: sessionVariable('on', alwaysOn, 'policies are always in force'),
  search_path: sessionVariable(
    'public',
    onlyValues(['public', '"$user", public', 'public, pg_catalog', 'pg_catalog']),
    'one schema',
  ),
  server_encoding: sessionVariable('UTF8', constantValue('UTF8'), 'texts are UTF-8', 'server_encoding'),
  server_version: sessionVariable('15.0', constantValue('15.0'), 'what this server is taken for', 'server_version'),
  server_version_num: sessionVariable('150000', constantValue('150000'), 'the same as a number'),
  session_authorization: sessionVariable('', onlyValues(['']), 'the user of the connection', 'session_authorization'),
  standard_conforming_strings: sessionVariable('on', alwaysOn, 'a backslash is a character', 'standard_conforming_strings'),
  statement_timeout: sessionVariable(
    '0',
    timeoutValue,
    'a statement that runs longer is cancelled; 0: SERVICE_QUERY_TIMEOUT_SECS alone ends it',
  ),
  synchronous_commit: sessionVariable('on', alwaysOn, 'SERVICE_WAL_SYNC says when a write is acknowledged'),
  timezone: sessionVariable('UTC', utcTimeZone, 'times are UTC', 'TimeZone'),
  transaction_isolation: sessionVariable(
    'repeatable read',
    isolationLevel,
    'a transaction reads what stood at its first statement, and what it wrote',
  ),
  transaction_read_only: sessionVariable('off', parseSwitch, 'on: this transaction takes no write'),
  'hnsw.ef_search': sessionVariable('40', wholeNumberBetween(1, 1_000), 'nearest vectors are exact, whatever it is'),
  'hnsw.iterative_scan': sessionVariable(
    'off',
    oneOfValues('off', 'strict_order', 'relaxed_order'),
    'nearest vectors are exact, whatever it is',
  ),
  'hnsw.max_scan_tuples': sessionVariable(
    '20000',
    wholeNumberBetween(1, 2_147_483_647),
    'nearest vectors are exact, whatever it is',
  ),
  'ivfflat.probes': sessionVariable('1', wholeNumberBetween(1, 32_768), 'nearest vectors are exact, whatever it is'),
  xmloption: sessionVariable('content', onlyValues(['content'], /^document$/), 'there is no XML'),
};

/** Startup parameters that are taken with any value: instants leave in UTC, each with its offset. */
const lenientAtStartup: ReadonlySet<string> = new Set(['timezone', 'datestyle', 'extra_float_digits', 'search_path']);

export class SessionVariables {
  readonly #values = new Map<string, string>();
  readonly #defaults = new Map<string, string>();
  /** Values before SET LOCAL; null: no transaction is open. */
  #before: Map<string, string> | null = null;
  readonly #report: (name: string, value: string) => void;

  constructor(reportVariable: (name: string, value: string) => void) {
    this.#report = reportVariable;
  }

  /** Startup parameters and `-c name=value` options. */
  begin(startupSettings: ReadonlyMap<string, string>, sessionUser: string): void {
    this.#defaults.set('session_authorization', sessionUser);
    for (const [settingName, settingValue] of startupSettings) {
      const settingKey = settingName.toLowerCase();
      if (lenientAtStartup.has(settingKey)) {
        const lenientVariable = sessionVariables[settingKey]!;
        try {
          this.#defaults.set(settingKey, lenientVariable.takes(settingValue));
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
        }
      } else this.#defaults.set(settingKey, this.#checkValue(settingKey, settingValue));
    }
    for (const [name, { reported: reportedName }] of Object.entries(sessionVariables))
      if (reportedName !== undefined) this.#report(reportedName, this.show(name));
  }

  set(variableName: string, statedValue: string | null, isLocal: boolean): void {
    if (statedValue === null) return this.reset(variableName);
    const checkedValue = this.#checkValue(variableName, statedValue);
    if (isLocal) {
      if (this.#before === null) return;
      if (!this.#before.has(variableName)) this.#before.set(variableName, this.show(variableName));
    }
    this.#change(variableName, checkedValue);
  }

  reset(variableName: string): void {
    if (variableName === 'all') {
      for (const changedVariable of this.#values.keys()) this.reset(changedVariable);
      return;
    }
    this.#variable(variableName);
    this.#values.delete(variableName);
    this.#tell(variableName);
  }

  show(variableName: string): string {
    const { start: startValue } = this.#variable(variableName);
    if (variableName === 'transaction_read_only' && !this.#values.has(variableName))
      return this.show('default_transaction_read_only');
    return this.#values.get(variableName) ?? this.#defaults.get(variableName) ?? startValue;
  }

  all(): { readonly name: string; readonly value: string; readonly about: string }[] {
    return Object.entries(sessionVariables).map(([name, { about }]) => ({ name, value: this.show(name), about }));
  }

  transactionBegins(): void {
    this.#before = new Map();
  }

  transactionEnds(): void {
    for (const [localVariable, valueBefore] of this.#before ?? []) this.#change(localVariable, valueBefore);
    this.#before = null;
    this.#values.delete('transaction_read_only');
  }

  /** The default time of a query without AS OF. */
  get time(): DefaultTime {
    const validTime = this.show('annals.as_of');
    const systemTime = this.show('annals.as_of_system');
    if (systemTime === '' && (validTime === 'current' || validTime === 'all')) return validTime;
    const systemAxis =
      systemTime === '' ? (validTime === 'all' ? {} : { system: beforeForever }) : { system: parseZonedInstant(systemTime) };
    if (validTime === 'all') return systemAxis;
    // With a system instant, current valid time means that instant.
    return { ...systemAxis, valid: validTime === 'current' ? parseZonedInstant(systemTime) : parseZonedInstant(validTime) };
  }

  get instants(): InstantStyle {
    return this.show('annals.timestamps') as InstantStyle;
  }

  /** 0: there is none. */
  get statementTimeoutMs(): number {
    const [, timeoutNumber, timeoutUnit] = /^(\d+)(\D*)$/.exec(this.show('statement_timeout'))!;
    return Number(timeoutNumber) * (unitMilliseconds[timeoutUnit!] ?? 1);
  }

  get timestampDigits(): number {
    return Number(this.show('annals.timestamp_digits'));
  }

  /** The term; null where it is not stated. */
  statedTerm(termName: 'annals.purpose' | 'annals.break_glass' | 'annals.access_scope_ref' | 'annals.durability'): string | null {
    return this.show(termName) || null;
  }

  #variable(variableName: string): SessionVariable {
    const knownVariable = Object.hasOwn(sessionVariables, variableName) ? sessionVariables[variableName] : undefined;
    if (knownVariable === undefined)
      throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(variableName)}; SHOW ALL lists them`);
    return knownVariable;
  }

  #checkValue(variableName: string, statedValue: string): string {
    const knownVariable = this.#variable(variableName);
    checkText(statedValue, variableName);
    if (statedValue.length > 1_024) throw invalidVariable(`${variableName} has at most 1,024 characters`);
    try {
      return knownVariable.takes(statedValue);
    } catch (error) {
      if (error instanceof ServiceError) {
        const variableDetail = `${variableName}: ${error.message}`;
        throw error instanceof ProtocolRefusal
          ? new ProtocolRefusal(error.sqlstate, error.code, variableDetail)
          : new ServiceError(error.code, variableDetail);
      }
      throw error;
    }
  }

  #change(variableName: string, changedValue: string): void {
    this.#values.set(variableName, changedValue);
    this.#tell(variableName);
  }

  #tell(variableName: string): void {
    const { reported: reportedName } = this.#variable(variableName);
    if (reportedName !== undefined) this.#report(reportedName, this.show(variableName));
  }
}

const beforeForever = FOREVER - 1n;
