/** Settings of a question, by the query's parameters, by SETTINGS, or by SET in a session. Unlisted settings are refused. */
import { ServiceError } from '../../errors.ts';
import { noTerms, type Terms, withTerm } from '../shared/session-terms.ts';
import { refusedAs } from './errors.ts';

interface Setting {
  readonly about: string;
  readonly value: string;
}

const setting = (value: string, about: string): Setting => ({ value, about });
const ignored = 'taken and without effect here';

/** Settings by name, with their defaults. */
export const columnarSettings: Readonly<Record<string, Setting>> = {
  annals_as_of: setting('', 'what was true then'),
  annals_as_of_system: setting('', 'what was believed then'),
  annals_purpose: setting('', 'why is asked'),
  annals_break_glass: setting('', 'what opens a protected type'),
  annals_access_scope_ref: setting('', 'what opens a type with an access scope'),
  annals_durability: setting('', 'sync: writes are fsynced before they are acknowledged'),
  output_format_json_quote_64bit_integers: setting('1', '64-bit integers of JSON in quotes'),
  enable_http_compression: setting('0', 'answers are compressed as Accept-Encoding says'),
  max_execution_time: setting('0', 'seconds after which a question ends; 0: SERVICE_QUERY_TIMEOUT_SECS alone'),
  max_result_rows: setting('0', 'rows beyond which an answer is refused; 0: any'),
  readonly: setting('0', '1: refuses INSERT'),
  ...Object.fromEntries(
    [
      'async_insert',
      'wait_for_async_insert',
      'async_insert_busy_timeout_ms',
      'add_http_cors_header',
      'cancel_http_readonly_queries_on_client_close',
      'connect_timeout',
      'date_time_input_format',
      'date_time_output_format',
      'extremes',
      'http_headers_progress_interval_ms',
      'http_zlib_compression_level',
      'input_format_defaults_for_omitted_fields',
      'input_format_import_nested_json',
      'input_format_null_as_default',
      'input_format_skip_unknown_fields',
      'joined_subquery_requires_alias',
      'load_balancing',
      'log_comment',
      'log_queries',
      'max_block_size',
      'max_insert_block_size',
      'max_memory_usage',
      'max_threads',
      'network_compression_method',
      'output_format_json_named_tuples_as_objects',
      'output_format_json_quote_denormals',
      'receive_timeout',
      'replace_running_query',
      'send_progress_in_http_headers',
      'send_timeout',
      'strict_insert_defaults',
      'use_client_time_zone',
      'use_uncompressed_cache',
      'wait_end_of_query',
    ].map((name) => [name, setting('0', ignored)]),
  ),
};

export class ColumnarSettings {
  readonly #given: Map<string, string>;

  constructor(others: ColumnarSettings | null = null) {
    this.#given = new Map(others === null ? [] : others.#given);
  }

  /** Throws for an unknown setting. */
  set(name: string, value: string): void {
    if (!Object.hasOwn(columnarSettings, name))
      throw refusedAs('setting', new ServiceError('REL_INVALID', `Unknown setting ${name.slice(0, 100)}`));
    this.#given.set(name, value);
  }

  setAll(given: ReadonlyMap<string, string>): void {
    for (const [name, value] of given) this.set(name, value);
  }

  get(name: string): string {
    return this.#given.get(name) ?? columnarSettings[name]!.value;
  }

  flag(name: string): boolean {
    return !/^(0|false|)$/i.test(this.get(name));
  }

  /** A whole number that is not negative. */
  count(name: string): number {
    const value = this.get(name);
    if (!/^\d{1,15}$/.test(value)) throw new ServiceError('REL_INVALID', `${name} is a whole number`);
    return Number(value);
  }

  /** Seconds, of which there may be a fraction. */
  seconds(name: string): number {
    const value = this.get(name);
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(value)) throw new ServiceError('REL_INVALID', `${name} is a number of seconds`);
    return Number(value);
  }

  /** Throws REL_INVALID for an instant that is none. */
  terms(branch: string | null): Terms {
    let terms: Terms = { ...noTerms, branch };
    for (const [name, value] of this.#given)
      if (name.startsWith('annals_')) terms = withTerm(terms, name.slice('annals_'.length), value);
    return terms;
  }

  /** The settings as rows of `system.settings`. */
  all(): readonly { readonly name: string; readonly value: string; readonly about: string }[] {
    return Object.entries(columnarSettings).map(([name, { about }]) => ({ name, value: this.get(name), about }));
  }
}
