import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isLoopback, loadSettings, parseBind, parseKey, redactedSettings, settingsTable } from '../src/config.ts';
import { ConfigError } from '../src/errors.ts';

const home = mkdtempSync(join(tmpdir(), 'annals-config-'));
afterAll(() => rmSync(home, { recursive: true }));

const nowhere = mkdtempSync(join(home, 'nowhere-'));
const load = (env: Record<string, string>, more: Partial<Parameters<typeof loadSettings>[0]> = {}) =>
  loadSettings({ env, workingDirectory: nowhere, homeDirectory: nowhere, ...more });

function file(content: string): string {
  const directory = mkdtempSync(join(home, 'file-'));
  writeFileSync(join(directory, 'service.toml'), content);
  return directory;
}

describe('precedence', () => {
  test('built-in defaults are those of the specification', () => {
    const settings = load({});
    expect(settings.SERVICE_PROFILE).toBe('free');
    expect(settings.SERVICE_PORT).toBe(9090);
    expect(settings.SERVICE_HTTP_BIND).toBe('127.0.0.1');
    expect(settings.SERVICE_PLAINTEXT_OK).toBe(true);
    expect(settings.SERVICE_ADMIN_BIND).toBe('127.0.0.1:9091');
    expect(settings.SERVICE_WAL_SYNC).toBe('interval');
    expect(settings.SERVICE_PURPOSES).toEqual(['analytics', 'test']);
    expect(settings.SERVICE_DATA_DIR).toBe('./data/service');
  });

  test('server and cluster bind every address, need TLS there, and know no purposes', () => {
    const settings = load({ SERVICE_PROFILE: 'server' });
    expect(settings.SERVICE_HTTP_BIND).toBe('0.0.0.0');
    expect(settings.SERVICE_PLAINTEXT_OK).toBe(false);
    expect(settings.SERVICE_PURPOSES).toEqual([]);
  });

  test('environment over file over default', () => {
    const workingDirectory = file('port = 1234\nwal_sync = "always"\npurposes = ["a", "b"]\n');
    const settings = load({ SERVICE_PORT: '4321' }, { workingDirectory });
    expect(settings.SERVICE_PORT).toBe(4321);
    expect(settings.SERVICE_WAL_SYNC).toBe('always');
    expect(settings.SERVICE_PURPOSES).toEqual(['a', 'b']);
    expect(settings.sources).toMatchObject({ SERVICE_PORT: 'environment', SERVICE_WAL_SYNC: 'file', SERVICE_PROFILE: 'default' });
  });

  test('config file order: flag, SERVICE_CONFIG, working directory, home', () => {
    const flag = join(file('port = 1'), 'service.toml');
    const named = join(file('port = 2'), 'service.toml');
    const workingDirectory = file('port = 3');
    const homeDirectory = mkdtempSync(join(home, 'home-'));
    mkdirSync(join(homeDirectory, '.config/annals'), { recursive: true });
    writeFileSync(join(homeDirectory, '.config/annals/service.toml'), 'port = 4');
    const port = (env: Record<string, string>, more: object) => load(env, more).SERVICE_PORT;
    expect(port({ SERVICE_CONFIG: named }, { configPath: flag, workingDirectory, homeDirectory })).toBe(1);
    expect(port({ SERVICE_CONFIG: named }, { workingDirectory, homeDirectory })).toBe(2);
    expect(port({}, { workingDirectory, homeDirectory })).toBe(3);
    expect(port({}, { homeDirectory })).toBe(4);
  });
});

describe('a bad setting stops the start with one line that names it', () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ['malformed integer', { SERVICE_PORT: '90x' }, /^SERVICE_PORT: "90x" is malformed: expected an integer from 0 to 65535$/],
    ['integer out of range', { SERVICE_PORT: '70000' }, /SERVICE_PORT/],
    ['malformed boolean', { SERVICE_DEMO_MODE: 'yes' }, /SERVICE_DEMO_MODE: "yes" is malformed: expected true or false/],
    ['unknown name', { SERVICE_WALL_SYNC: 'off' }, /SERVICE_WALL_SYNC is not a setting.*did you mean SERVICE_WAL_SYNC\?/],
    ['unknown profile', { SERVICE_PROFILE: 'pro' }, /expected one of free, server, cluster/],
    ['the legacy profile lite', { SERVICE_PROFILE: 'lite' }, /lite.*removed/],
    ['empty value', { SERVICE_DATA_DIR: '' }, /SERVICE_DATA_DIR/],
    ['malformed ranking', { SERVICE_RANKING_Person: 'exact' }, /SERVICE_RANKING_Person/],
    ['missing config file', { SERVICE_CONFIG: '/nonexistent/service.toml' }, /does not exist/],
  ];
  test.each(cases)('%s', (_, env, message) => {
    expect(() => load(env)).toThrow(ConfigError);
    expect(() => load(env)).toThrow(message);
  });

  test('a syntax error in the file has its line and column', () => {
    expect(() => load({}, { workingDirectory: file('port = = 1') })).toThrow(/service\.toml:1:\d+:/);
  });

  test('the admin credential is refused from a file', () => {
    expect(() => load({}, { workingDirectory: file('admin_token = "x"') })).toThrow(/environment only/);
  });

  test('a secret never shows in a message', () => {
    expect(() => load({ SERVICE_BEARER_TOKEN: '' })).not.toThrow(/hunter2/);
    expect(() => parseKey('SERVICE_KEK', 'hunter2')).toThrow(/^SERVICE_KEK: expected 32 bytes as 64 hex digits or base64$/);
  });
});

test('/config shows every setting and no secret', () => {
  const shown = redactedSettings(
    load({ SERVICE_BEARER_TOKEN: 'hunter2', SERVICE_ADMIN_TOKEN: 'hunter3', SERVICE_KEK: 'hunter4' }),
  );
  expect(Object.keys(shown)).toEqual(Object.keys(settingsTable));
  expect(JSON.stringify(shown)).not.toContain('hunter');
  expect(shown['SERVICE_BEARER_TOKEN']).toEqual({ value: '<redacted>', source: 'environment' });
});

test('a bind address is host:port, IPv6 in brackets', () => {
  expect(parseBind('X', '127.0.0.1:9091')).toEqual({ host: '127.0.0.1', port: 9091 });
  expect(parseBind('X', '[::1]:1')).toEqual({ host: '::1', port: 1 });
  for (const bad of ['127.0.0.1', ':1', '::1:1', 'a:99999', 'a b']) expect(() => parseBind('X', bad)).toThrow(ConfigError);
});

test('only 127/8, ::1 and localhost are loopback', () => {
  expect(['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost'].every(isLoopback)).toBe(true);
  expect(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', '1127.0.0.1'].some(isLoopback)).toBe(false);
});

test('a key is 32 bytes in hex or base64', () => {
  const bytes = new Uint8Array(32).fill(7);
  expect(parseKey('K', Buffer.from(bytes).toString('hex'))).toEqual(bytes);
  expect(parseKey('K', `${Buffer.from(bytes).toString('base64')}\n`)).toEqual(bytes);
});
