/**
 * Every setting once: name, type, default and one line of help. Environment over config file over default; anything
 * malformed or unknown stops the start. README's table, `/config` and the boot checks read this same table.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type * as Toml from 'smol-toml';
import { ConfigError, didYouMean } from './errors.ts';

interface Setting<T> {
  readonly help: string;
  /** The built-in default as documentation prints it. */
  readonly defaultText: string;
  readonly default: T;
  /** Throws a ConfigError that names what is accepted. */
  readonly parse: (textSetting: string) => T;
  readonly secret: boolean;
}

const text = (defaultValue: string, help: string): Setting<string> => ({
  help,
  default: defaultValue,
  defaultText: defaultValue,
  parse: parseNonEmpty,
  secret: false,
});

const optionalTextSetting = (help: string, secret = false): Setting<string | null> => ({
  help,
  default: null,
  defaultText: 'unset',
  parse: parseNonEmpty,
  secret,
});

const choiceSetting = <const T extends string>(settingChoices: readonly T[], fallback: T, help: string): Setting<T> => ({
  help: `${help} (${settingChoices.join(', ')})`,
  default: fallback,
  defaultText: fallback,
  secret: false,
  parse: (given) => {
    const listedValue = settingChoices.find((value) => value === given);
    if (listedValue === undefined) throw new ConfigError(`expected one of ${settingChoices.join(', ')}`);
    return listedValue;
  },
});

const integerSetting = (fallback: number, min: number, max: number, help: string): Setting<number> => ({
  help,
  default: fallback,
  // By hand: the first number that Intl writes takes 10 ms of a start.
  defaultText: String(fallback).replaceAll(/\B(?=(\d{3})+$)/g, ' '),
  secret: false,
  parse: (given) => {
    const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
    if (!(value >= min && value <= max)) throw new ConfigError(`expected an integer from ${min} to ${max}`);
    return value;
  },
});

const portSetting = (fallback: number, help: string): Setting<number> => ({
  ...integerSetting(fallback, 0, 65_535, help),
  defaultText: String(fallback),
});

const booleanSetting = (fallback: boolean, help: string): Setting<boolean> => ({
  help,
  default: fallback,
  defaultText: String(fallback),
  parse: parseBoolean,
  secret: false,
});

const optionalBooleanSetting = (help: string, defaultText = 'unset'): Setting<boolean | null> => ({
  help,
  default: null,
  defaultText,
  parse: parseBoolean,
  secret: false,
});

const listSetting = (
  fallback: readonly string[] | null,
  help: string,
  defaultText = fallback?.join(',') || 'empty',
): Setting<readonly string[] | null> => ({
  help,
  default: fallback,
  defaultText,
  secret: false,
  parse: (given) =>
    given
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
});

/** Languages whose words have stems by Snowball's rules; `none`: each word is its own stem. */
export const textLanguages: readonly string[] =
  'none arabic armenian basque catalan czech danish dutch english finnish french german hungarian irish italian norwegian porter portuguese romanian russian slovene spanish swedish tamil turkish'.split(
    ' ',
  );

/** Source: specification ("Deployment profiles", "Authentication", "Limits", "Other configuration") and its design. */
export const settingsTable = {
  SERVICE_PROFILE: choiceSetting(['free', 'server', 'cluster'], 'free', 'deployment profile'),
  SERVICE_CONFIG: optionalTextSetting('path of the config file; next in line are ./service.toml and the home directory’s'),
  SERVICE_DATA_DIR: text('./data/service', 'where the log, keys, blobs and derived files live'),
  SERVICE_BACKUP_DIR: { ...optionalTextSetting('where backups lie'), defaultText: '`backups` in the data directory' },
  SERVICE_IN_MEMORY: booleanSetting(false, 'keep everything in memory: nothing survives the process'),

  SERVICE_HTTP_BIND: {
    ...optionalTextSetting('address of the data listener'),
    defaultText: '127.0.0.1 on free, 0.0.0.0 elsewhere',
  },
  SERVICE_PORT: portSetting(9090, 'port of the data listener'),
  SERVICE_WORKBENCH_ENABLE: {
    ...optionalBooleanSetting('the page for questions at /workbench on the data listener'),
    defaultText: 'true on free, false elsewhere',
  },
  SERVICE_ADMIN_BIND: text('127.0.0.1:9091', 'loopback address and port of the admin listener'),
  SERVICE_PLAINTEXT_OK: optionalBooleanSetting('serve without TLS', 'true on a loopback bind only'),
  SERVICE_TLS_CERT: optionalTextSetting('PEM certificate chain of the data listener and of the doors beside it'),
  SERVICE_TLS_KEY: optionalTextSetting('its PEM private key'),
  SERVICE_ERRORS_BASE: text('urn:annals:errors', 'prefix of the type URI of problem records'),
  SERVICE_BODY_LIMIT_MB: integerSetting(
    64,
    1,
    4096,
    'largest atomic batch and body of an ingest task, MiB; other bodies of JSON have a cap of 4, questions of 8',
  ),

  SERVICE_SECURITY_MODE: choiceSetting(['strict', 'open'], 'strict', 'whether weak-security opt-outs are tolerated'),
  SERVICE_KMS_LOCAL_DEV: booleanSetting(
    false,
    'keep the key-encryption key in a file of the data directory (security mode open)',
  ),
  SERVICE_UNSAFE_LOCAL_FENCING: booleanSetting(false, 'cluster without a fencing lease (security mode open)'),
  SERVICE_GRPC_PLAINTEXT_OK: booleanSetting(false, 'gRPC and Flight without TLS (security mode open)'),
  SERVICE_OPEN_DEV_ALLOWED: booleanSetting(false, 'unauthenticated local development, under its five conditions'),
  SERVICE_BEARER_TOKEN: optionalTextSetting('bootstrap secret of gRPC, Flight, relational and compatibility doors', true),
  SERVICE_ADMIN_TOKEN: optionalTextSetting('credential of the admin listener; from the environment only', true),
  SERVICE_TOKEN_REGISTRY_MAX: integerSetting(1000, 0, 10_000_000, 'most registered tokens; 0 means the default'),
  SERVICE_KEK: optionalTextSetting('key-encryption key: 32 bytes as hex or base64', true),
  SERVICE_KEK_FILE: optionalTextSetting('file with the key-encryption key'),
  SERVICE_ESCROW_KEY: optionalTextSetting('secret that escrows of the keys are sealed under: 32 bytes as hex or base64', true),
  SERVICE_ESCROW_KEY_FILE: optionalTextSetting('file with that secret'),
  SERVICE_LOG_SIGNING_KEY: {
    ...optionalTextSetting('seed of the log’s Ed25519 key: 32 bytes as hex or base64', true),
    defaultText: 'made on free, derived from the erasure key elsewhere',
  },
  SERVICE_ERASURE_SIGNING_KEY: optionalTextSetting(
    'seed of the receipts’ Ed25519 key: 32 bytes as hex or base64; required on server and cluster',
    true,
  ),
  SERVICE_PURPOSE_MODE: choiceSetting(['strict', 'open'], 'strict', 'whether purposes must be registered'),
  SERVICE_PURPOSES: listSetting(null, 'registered purposes', 'analytics,test on free, empty elsewhere'),
  SERVICE_TENANCY_MODE: choiceSetting(['single', 'multi'], 'single', 'multi needs the cluster profile'),
  SERVICE_MAX_TENANTS: {
    ...integerSetting(0, 0, 1_000_000, 'lowers the licensed tenant ceiling; 0 leaves it'),
    defaultText: '0',
  },
  SERVICE_LICENSE_FILE: optionalTextSetting('licence of the server or cluster profile: signed JSON'),
  SERVICE_LICENSE_PUBLIC_KEY: optionalTextSetting('Ed25519 key that licences are signed with: 32 bytes as hex or base64'),
  SERVICE_LICENSE_PUBLIC_KEY_FILE: optionalTextSetting('file with that key'),
  SERVICE_LICENSE_GRACE_DAYS: integerSetting(7, 0, 365, 'days after its expiry for which a licence still takes writes'),
  SERVICE_DEMO_MODE: booleanSetting(false, 'say in /version and /status that this is a demonstration'),

  SERVICE_WAL_SYNC: choiceSetting(
    ['always', 'interval', 'off'],
    'interval',
    'when acknowledged writes are fsynced; only off may lose them',
  ),
  SERVICE_DURABILITY: choiceSetting(
    ['group', 'sync'],
    'group',
    'sync treats every write as if it carried X-Service-Durability: sync',
  ),
  SERVICE_LOG_ORIGIN: text('annals/log/main', 'origin line of signed tree heads'),
  SERVICE_DRAIN_TIMEOUT_SECS: integerSetting(30, 0, 86_400, 'longest graceful shutdown'),
  SERVICE_MEMORY_BUDGET_MB: {
    ...integerSetting(
      0,
      0,
      1_048_576,
      'memory for row columns, MiB; columns beyond it rest in files and are loaded when they are read',
    ),
    defaultText: 'half of what the machine has',
  },
  SERVICE_CHECKPOINT_LOG_MB: integerSetting(64, 1, 1_048_576, 'log after which projections are saved again, MiB'),
  SERVICE_VERIFY_ON_START: booleanSetting(
    false,
    'read and verify the whole log at each start instead of going on from what was saved',
  ),
  SERVICE_COMPACT_MAX_PARALLEL: integerSetting(4, 1, 64, 'compactions at once'),
  SERVICE_HYDRATE_MAX_PARALLEL: integerSetting(8, 1, 64, 'column loads at once'),
  SERVICE_TEMPORAL_INDEX_MAX_ENTRIES: integerSetting(
    4_000_000,
    0,
    1e12,
    'versions per type that are kept in the order of their ends, 2 bytes each, for AS OF over long histories; beyond it every end is compared',
  ),
  SERVICE_BLOOM_COLUMNS: listSetting(
    ['tenant_id', 'object_type'],
    'columns of any type whose segments keep a bloom filter; a tenant is known without one',
  ),
  SERVICE_SKETCH_COLUMNS: listSetting(
    [],
    'columns to estimate rows by, of any type: for sides of joins and EXPLAIN, never for answers',
  ),
  SERVICE_TEXT_LANGUAGE: choiceSetting(textLanguages, 'english', 'language whose stems MATCH(column, text, STEMMED) goes by'),
  SERVICE_PINNED_NAMESPACES: listSetting([], 'namespaces with a reserved cache slice'),

  SERVICE_QUERY_TIMEOUT_SECS: integerSetting(30, 1, 86_400, 'longest query'),
  SERVICE_MAX_RESULT_ROWS: integerSetting(1_000_000, 1, 1e12, 'largest result'),
  SERVICE_MAX_SCANNED_ROWS: integerSetting(10_000_000, 1, 1e15, 'versions that one query may look at'),
  SERVICE_QUERY_MEMORY_MB: integerSetting(512, 1, 1_048_576, 'memory that one query may hold, MiB'),
  SERVICE_MAX_INFLIGHT_QUERIES: integerSetting(10, 1, 1_000_000, 'queries at once per tenant'),
  SERVICE_MAX_RUNNING_QUERIES: integerSetting(32, 1, 1_000_000, 'queries at once in the whole store; others wait'),
  SERVICE_JOBS_MAX_PARALLEL: integerSetting(2, 1, 1_000, 'runs of scheduled jobs at once; others wait'),
  SERVICE_QUERY_QUEUE_MAX: integerSetting(256, 0, 1_000_000, 'queries that wait, in each of three lines by priority'),
  SERVICE_INGEST_QUEUE_MB: integerSetting(
    256,
    1,
    1_048_576,
    'rows taken in and not acknowledged yet, MiB; others wait or come again',
  ),
  SERVICE_QUERY_QUOTA: integerSetting(10_000, 1, 1e15, 'cost units per principal and period'),
  SERVICE_QUERY_QUOTA_PERIOD_SECS: integerSetting(60, 1, 31_536_000, 'period of the quota'),
  SERVICE_RATE_LIMIT_RPS: integerSetting(1000, 1, 1e9, 'writes per second and address'),
  SERVICE_READ_RATE_LIMIT_RPS: integerSetting(
    2000,
    1,
    1e9,
    'reads per second and address; a look-up by key counts as a hundredth',
  ),
  SERVICE_MEMORY_RATE_LIMIT_RPS: integerSetting(500, 1, 1e9, 'memory calls per second and address'),
  SERVICE_MAX_WATCH_SUBSCRIPTIONS: integerSetting(100, 0, 1_000_000, 'watch subscriptions per tenant'),
  SERVICE_LOOKUP_ROOT: optionalTextSetting('directory that CSV files of lookup tables are read from'),
  SERVICE_VECTOR_EXACT_ROWS: integerSetting(250_000, 0, 1_000_000_000, 'visible rows up to which all vectors are looked at'),
  SERVICE_MAX_VECTOR_K: integerSetting(1000, 0, 1_000_000, 'largest vector k; 0 disables'),
  SERVICE_MV_MAX_ROWS: integerSetting(1_000_000, 0, 1e12, 'cached rows of a materialized view'),
  SERVICE_SEARCH_PRESET: choiceSetting(
    ['exact', 'default', 'forgiving'],
    'default',
    'typos that searches overlook: none; 1 edit, 2 from 9 characters on; 1 edit from 3, 2 from 6',
  ),
  SERVICE_LLM_URL: optionalTextSetting(
    'OpenAI-compatible chat endpoint that turns plain questions into SQL; without it their forms decide',
  ),
  SERVICE_LLM_MODEL: text('gpt-4o-mini', 'model that SERVICE_LLM_URL is asked for'),
  SERVICE_LLM_KEY: optionalTextSetting('bearer token of SERVICE_LLM_URL', true),
  SERVICE_EMBED_URL: optionalTextSetting('OpenAI-compatible embeddings endpoint; without it texts are embedded by hashing'),
  SERVICE_EMBED_MODEL: text('text-embedding-3-small', 'model that SERVICE_EMBED_URL is asked for'),
  SERVICE_EMBED_REVISION: optionalTextSetting(
    'which model of that name it is, where its weights change: vectors of another one are not compared, and rows are embedded anew',
  ),
  SERVICE_EMBED_DIR: optionalTextSetting(
    'directory of an ONNX embedding model: needs a runtime that this build is without, so it refuses to start',
  ),
  SERVICE_EMBED_KEY: optionalTextSetting('bearer token of SERVICE_EMBED_URL', true),
  SERVICE_RERANK_URL: optionalTextSetting('reranker, as Cohere’s; without it HYBRID_SEARCH … RERANK is refused'),
  SERVICE_RERANK_MODEL: text('rerank-v3.5', 'model that SERVICE_RERANK_URL is asked for'),
  SERVICE_RERANK_KEY: optionalTextSetting('bearer token of SERVICE_RERANK_URL', true),
  SERVICE_RERANK_DIR: optionalTextSetting('directory of an ONNX reranker: as SERVICE_EMBED_DIR'),
  SERVICE_CLUSTER_DEAD_AFTER_SECS: integerSetting(90, 1, 86_400, 'silence after which a node counts as dead'),

  SERVICE_GRPC_PORT: portSetting(50_051, 'gRPC door'),
  SERVICE_GRPC_ENABLE: optionalBooleanSetting('gRPC door'),
  SERVICE_FLIGHT_PORT: portSetting(8815, 'Arrow Flight door'),
  SERVICE_FLIGHT_ENABLE: optionalBooleanSetting('Arrow Flight door'),
  SERVICE_OBJECT_PORT: portSetting(9191, 'object-storage door'),
  SERVICE_OBJECT_ENABLE: optionalBooleanSetting('object-storage door'),
  SERVICE_OBJECT_SECRET_KEY: optionalTextSetting('secret key of signed requests on the object door', true),
  SERVICE_OBJECT_BLOB_THRESHOLD_MB: integerSetting(4, 1, 4096, 'object bodies from here on go to the blob store, MiB'),
  SERVICE_RELATIONAL_PORT: portSetting(5433, 'relational wire door'),
  SERVICE_RELATIONAL_ENABLE: optionalBooleanSetting('relational wire door'),
  SERVICE_COLUMNAR_HTTP_PORT: portSetting(8123, 'columnar HTTP door'),
  SERVICE_COLUMNAR_HTTP_ENABLE: optionalBooleanSetting('columnar HTTP door'),
  SERVICE_COLUMNAR_NATIVE_PORT: portSetting(9000, 'columnar native door'),
  SERVICE_COLUMNAR_NATIVE_ENABLE: optionalBooleanSetting('columnar native door'),
  SERVICE_GRAPH_HTTP_PORT: portSetting(7474, 'graph HTTP door'),
  SERVICE_GRAPH_HTTP_ENABLE: optionalBooleanSetting('graph HTTP door'),
  SERVICE_GRAPH_BINARY_PORT: portSetting(7687, 'graph binary door'),
  SERVICE_GRAPH_BINARY_ENABLE: optionalBooleanSetting('graph binary door'),
  SERVICE_WIRE_MESSAGE_MB: integerSetting(
    16,
    1,
    16,
    'largest message of a client of the relational, key-value, document and native columnar doors (a value and its command), MiB',
  ),
  SERVICE_WIRE_MEMORY_MB: integerSetting(
    256,
    64,
    65_536,
    'bytes that all connections of these doors hold of requests and replies on their way, MiB',
  ),
  SERVICE_KV_PORT: portSetting(6379, 'key-value door'),
  SERVICE_KV_ENABLE: optionalBooleanSetting('key-value door'),
  SERVICE_DOCUMENT_PORT: portSetting(27_017, 'document door'),
  SERVICE_DOCUMENT_ENABLE: optionalBooleanSetting('document door'),
} as const satisfies Record<string, Setting<unknown>>;

export type SettingName = keyof typeof settingsTable;

type ParsedSettings = { readonly [K in SettingName]: (typeof settingsTable)[K] extends Setting<infer T> ? T : never };

/** Parsed settings with the defaults that depend on other settings filled in. */
export interface Settings
  extends Omit<ParsedSettings, 'SERVICE_HTTP_BIND' | 'SERVICE_PLAINTEXT_OK' | 'SERVICE_PURPOSES' | 'SERVICE_WORKBENCH_ENABLE'> {
  readonly SERVICE_HTTP_BIND: string;
  readonly SERVICE_PLAINTEXT_OK: boolean;
  readonly SERVICE_PURPOSES: readonly string[];
  readonly SERVICE_WORKBENCH_ENABLE: boolean;
  /** `SERVICE_RANKING_<Type>`: rule:field:value[,rule:field:value]. */
  readonly rankings: Readonly<Record<string, string>>;
  /** Where each setting came from, for `/config`. */
  readonly sources: Readonly<Record<string, 'environment' | 'file' | 'default'>>;
  readonly configFile: string | null;
}

export interface ConfigInputs {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--config` of the command line. */
  readonly configPath?: string | undefined;
  /** Settings given by other flags (`--data-dir`): over everything. */
  readonly overrides?: Readonly<Partial<Record<SettingName, string>>>;
  readonly workingDirectory?: string;
  readonly homeDirectory?: string;
}

const rankingPrefix = 'SERVICE_RANKING_';

/** Reads environment and config file. Throws ConfigError with one clear line. */
export function loadSettings(configInputs: ConfigInputs): Settings {
  const configFile = findConfigFile(configInputs);
  const fileSettings = configFile === null ? {} : readConfigFile(configFile);
  const parsedSettings: Record<string, unknown> = {};
  const settingSources: Record<string, 'environment' | 'file' | 'default'> = {};
  const rankings: Record<string, string> = {};

  const givenSettings: Record<string, string> = {};
  for (const [settingName, settingText] of Object.entries(fileSettings)) takeSetting(settingName, settingText, 'file');
  for (const [name, value] of Object.entries(configInputs.env)) {
    if (name.startsWith('SERVICE_') && value !== undefined) takeSetting(name, value, 'environment');
  }
  for (const [name, value] of Object.entries(configInputs.overrides ?? {})) takeSetting(name, value, 'environment');

  for (const [name, setting] of Object.entries<Setting<unknown>>(settingsTable)) {
    if (givenSettings[name] === undefined) {
      parsedSettings[name] = setting.default;
      settingSources[name] = 'default';
      continue;
    }
    try {
      parsedSettings[name] = setting.parse(givenSettings[name]);
    } catch (settingError) {
      if (!(settingError instanceof ConfigError)) throw settingError;
      const shownSetting = setting.secret ? 'the value given' : JSON.stringify(givenSettings[name]);
      const legacyHint =
        name === 'SERVICE_PROFILE' && givenSettings[name] === 'lite' ? ' (the profile lite was removed: use free)' : '';
      throw new ConfigError(`${name}: ${shownSetting} is malformed: ${settingError.message}${legacyHint}`);
    }
  }

  const loadedSettings = parsedSettings as unknown as ParsedSettings;
  const isFreeProfile = loadedSettings.SERVICE_PROFILE === 'free';
  const httpBind = loadedSettings.SERVICE_HTTP_BIND ?? (isFreeProfile ? '127.0.0.1' : '0.0.0.0');
  return {
    ...loadedSettings,
    SERVICE_HTTP_BIND: httpBind,
    SERVICE_PLAINTEXT_OK: loadedSettings.SERVICE_PLAINTEXT_OK ?? isLoopback(httpBind),
    SERVICE_PURPOSES: loadedSettings.SERVICE_PURPOSES ?? (isFreeProfile ? ['analytics', 'test'] : []),
    SERVICE_WORKBENCH_ENABLE: loadedSettings.SERVICE_WORKBENCH_ENABLE ?? isFreeProfile,
    SERVICE_TOKEN_REGISTRY_MAX: loadedSettings.SERVICE_TOKEN_REGISTRY_MAX || settingsTable.SERVICE_TOKEN_REGISTRY_MAX.default,
    rankings,
    sources: settingSources,
    configFile,
  };

  function takeSetting(takenName: string, takenText: string, settingSource: 'environment' | 'file'): void {
    if (takenName.startsWith(rankingPrefix) && takenName.length > rankingPrefix.length) {
      rankings[takenName.slice(rankingPrefix.length)] = checkRankingSetting(takenName, takenText);
      return;
    }
    if (!(takenName in settingsTable)) {
      throw new ConfigError(
        `${takenName} is not a setting of this version${didYouMean(takenName, Object.keys(settingsTable))}; remove it (\`annals serve --help\` lists all)`,
      );
    }
    if (takenName === 'SERVICE_ADMIN_TOKEN' && settingSource === 'file') {
      throw new ConfigError('SERVICE_ADMIN_TOKEN is read from the environment only; remove it from the config file');
    }
    givenSettings[takenName] = takenText;
    settingSources[takenName] = settingSource;
  }
}

/** The answer of `/config`: every setting, secrets as whether they are set. */
export function redactedSettings(settings: Settings): Record<string, { value: unknown; source: string }> {
  const redacted: Record<string, { value: unknown; source: string }> = {};
  for (const [settingName, setting] of Object.entries<Setting<unknown>>(settingsTable)) {
    const settingValue = settings[settingName as SettingName];
    redacted[settingName] = {
      value: setting.secret ? (settingValue === null ? null : '<redacted>') : settingValue,
      source: settings.sources[settingName] ?? 'default',
    };
  }
  for (const [type, value] of Object.entries(settings.rankings))
    redacted[rankingPrefix + type] = { value, source: 'environment' };
  return redacted;
}

/** `host:port`, `[::1]:port`. Throws ConfigError. */
export function parseBind(name: string, bindText: string): { host: string; port: number } {
  const bindMatch = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(bindText);
  const parsedPort = Number(bindMatch?.[3]);
  if (!bindMatch || parsedPort > 65_535)
    throw new ConfigError(`${name}: ${JSON.stringify(bindText)} is malformed: expected host:port`);
  return { host: (bindMatch[1] ?? bindMatch[2])!, port: parsedPort };
}

export function isLoopback(host: string): boolean {
  const bareHost = host.replace(/^\[|\]$/g, '');
  return bareHost === 'localhost' || bareHost === '::1' || /^127(\.\d{1,3}){3}$/.test(bareHost);
}

/** 32 bytes as 64 hex digits or base64. Throws ConfigError without showing the value. */
export function parseKey(keySettingName: string, keySettingText: string): Uint8Array {
  const keyText = keySettingText.trim();
  const keyBytes = /^[0-9a-fA-F]{64}$/.test(keyText)
    ? Buffer.from(keyText, 'hex')
    : /^[A-Za-z0-9+/_-]{43}=?$/.test(keyText)
      ? Buffer.from(keyText, 'base64')
      : null;
  if (keyBytes?.length !== 32) throw new ConfigError(`${keySettingName}: expected 32 bytes as 64 hex digits or base64`);
  return new Uint8Array(keyBytes);
}

/** Whole text of a file that a setting names. */
export function readSettingFile(name: string, settingFilePath: string): string {
  try {
    return readFileSync(settingFilePath, 'utf8');
  } catch (readError) {
    throw new ConfigError(
      `${name}: cannot read ${settingFilePath}: ${(readError as NodeJS.ErrnoException).code ?? 'unknown error'}`,
    );
  }
}

function findConfigFile(configInputs: ConfigInputs): string | null {
  const namedConfigFile = configInputs.configPath ?? configInputs.env['SERVICE_CONFIG'];
  if (namedConfigFile !== undefined && namedConfigFile !== '') {
    if (!existsSync(namedConfigFile)) throw new ConfigError(`config file ${namedConfigFile} does not exist`);
    return namedConfigFile;
  }
  const localConfigFile = join(configInputs.workingDirectory ?? process.cwd(), 'service.toml');
  const homeConfigFile = join(configInputs.homeDirectory ?? homedir(), '.config', 'annals', 'service.toml');
  return [localConfigFile, homeConfigFile].find((configFilePath) => existsSync(configFilePath)) ?? null;
}

/** Keys are the settings' own names, or the same in lower case without the prefix: `wal_sync = "always"`. */
function readConfigFile(configFilePath: string): Record<string, string> {
  // Most have no such file.
  const { parse, TomlError } = createRequire(import.meta.url)('smol-toml') as typeof Toml;
  let tomlContent: Record<string, unknown>;
  try {
    tomlContent = parse(readFileSync(configFilePath, 'utf8'), { integersAsBigInt: true });
  } catch (tomlError) {
    if (tomlError instanceof TomlError)
      throw new ConfigError(`${configFilePath}:${tomlError.line}:${tomlError.column}: ${tomlError.message.split('\n')[0]}`);
    throw new ConfigError(`cannot read config file ${configFilePath}: ${(tomlError as Error).message}`);
  }
  const fileSettings: Record<string, string> = {};
  for (const [tomlKey, tomlValue] of Object.entries(tomlContent)) {
    const settingName = tomlKey.startsWith('SERVICE_') ? tomlKey : `SERVICE_${tomlKey.toUpperCase()}`;
    const isScalar = typeof tomlValue === 'string' || typeof tomlValue === 'bigint' || typeof tomlValue === 'boolean';
    if (isScalar) fileSettings[settingName] = String(tomlValue);
    else if (Array.isArray(tomlValue) && tomlValue.every((listItem) => typeof listItem === 'string'))
      fileSettings[settingName] = tomlValue.join(',');
    else throw new ConfigError(`${configFilePath}: ${tomlKey} must be a string, an integer, a boolean or a list of strings`);
  }
  return fileSettings;
}

function checkRankingSetting(settingName: string, rankingText: string): string {
  rankingRules(rankingText, (rankingFault) => {
    throw new ConfigError(`${settingName}: ${JSON.stringify(rankingText)} is malformed: ${rankingFault}`);
  });
  return rankingText;
}

const rankingRulePattern = /^(recency|custom|exact):([^:]+):(-?\d+(?:\.\d+)?)$/;

/** Rules of a `SERVICE_RANKING_<Type>`, each as RANK BY has it. */
export function rankingRules(
  value: string,
  refuse: (ruleText: string) => never = () => {
    throw new ConfigError('a ranking was checked when it was read');
  },
): readonly { readonly rule: 'recency' | 'custom' | 'exact'; readonly field: string; readonly value: number }[] {
  return value.split(',').map((ruleText) => {
    const [, rule, rankedField, ruleAmount] = rankingRulePattern.exec(ruleText.trim()) ?? [];
    if (rule === undefined) return refuse('expected rule:field:value[,rule:field:value], a rule being recency, custom or exact');
    return { rule: rule as 'recency' | 'custom' | 'exact', field: rankedField!, value: Number(ruleAmount) };
  });
}

function parseNonEmpty(settingText: string): string {
  if (settingText === '') throw new ConfigError('expected a value, not an empty string');
  return settingText;
}

function parseBoolean(settingText: string): boolean {
  if (settingText === 'true') return true;
  if (settingText === 'false') return false;
  throw new ConfigError('expected true or false');
}
