/** Settings of a question, by the query's parameters, by SETTINGS, or by SET in a session. Unlisted settings are refused. */
import { ServiceError } from '../../errors.ts';
import { noTerms, type Terms, withTerm } from '../shared/session-terms.ts';
import { refusedAs } from './errors.ts';

interface ColumnarSetting {
  readonly about: string;
  readonly value: string;
}

const columnarSetting = (defaultValue: string, settingAbout: string): ColumnarSetting => ({
  value: defaultValue,
  about: settingAbout,
});
const ignoredSetting = 'taken and without effect here';

/** Settings by name, with their defaults. */
export const columnarSettings: Readonly<Record<string, ColumnarSetting>> = {
  annals_as_of: columnarSetting('', 'what was true then'),
  annals_as_of_system: columnarSetting('', 'what was believed then'),
  annals_purpose: columnarSetting('', 'why is asked'),
  annals_break_glass: columnarSetting('', 'what opens a protected type'),
  annals_access_scope_ref: columnarSetting('', 'what opens a type with an access scope'),
  annals_durability: columnarSetting('', 'sync: writes are fsynced before they are acknowledged'),
  output_format_json_quote_64bit_integers: columnarSetting('1', '64-bit integers of JSON in quotes'),
  enable_http_compression: columnarSetting('0', 'answers are compressed as Accept-Encoding says'),
  max_execution_time: columnarSetting('0', 'seconds after which a question ends; 0: SERVICE_QUERY_TIMEOUT_SECS alone'),
  max_result_rows: columnarSetting('0', 'rows beyond which an answer is refused; 0: any'),
  readonly: columnarSetting('0', '1: refuses INSERT'),
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
    ].map((name) => [name, columnarSetting('0', ignoredSetting)]),
  ),
};

export class ColumnarSettings {
  readonly #statedSettings: Map<string, string>;

  constructor(sessionSettings: ColumnarSettings | null = null) {
    this.#statedSettings = new Map(sessionSettings === null ? [] : sessionSettings.#statedSettings);
  }

  /** Throws for an unknown setting. */
  set(settingName: string, settingValue: string): void {
    if (!Object.hasOwn(columnarSettings, settingName))
      throw refusedAs('setting', new ServiceError('REL_INVALID', `Unknown setting ${settingName.slice(0, 100)}`));
    this.#statedSettings.set(settingName, settingValue);
  }

  setAll(settingPairs: ReadonlyMap<string, string>): void {
    for (const [settingName, settingValue] of settingPairs) this.set(settingName, settingValue);
  }

  get(settingName: string): string {
    return this.#statedSettings.get(settingName) ?? columnarSettings[settingName]!.value;
  }

  flag(settingName: string): boolean {
    return !/^(0|false|)$/i.test(this.get(settingName));
  }

  /** A whole number that is not negative. */
  count(settingName: string): number {
    const countText = this.get(settingName);
    if (!/^\d{1,15}$/.test(countText)) throw new ServiceError('REL_INVALID', `${settingName} is a whole number`);
    return Number(countText);
  }

  /** Seconds, of which there may be a fraction. */
  seconds(settingName: string): number {
    const secondsText = this.get(settingName);
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(secondsText))
      throw new ServiceError('REL_INVALID', `${settingName} is a number of seconds`);
    return Number(secondsText);
  }

  /** Throws REL_INVALID for an instant that is none. */
  terms(branch: string | null): Terms {
    let settingTerms: Terms = { ...noTerms, branch };
    for (const [settingName, settingValue] of this.#statedSettings)
      if (settingName.startsWith('annals_'))
        settingTerms = withTerm(settingTerms, settingName.slice('annals_'.length), settingValue);
    return settingTerms;
  }

  /** The settings as rows of `system.settings`. */
  all(): readonly { readonly name: string; readonly value: string; readonly about: string }[] {
    return Object.entries(columnarSettings).map(([settingName, { about }]) => ({
      name: settingName,
      value: this.get(settingName),
      about,
    }));
  }
}
