/** Specification, "Door enabling". */
import { describe, expect, test } from 'vitest';
import { loadSettings } from '../../src/config.ts';
import { ConfigError } from '../../src/errors.ts';
import { isEnabled } from '../../src/doors/door.ts';
import { doors, doorStatuses } from '../../src/doors/doors.ts';

const settings = (env: Record<string, string>): ReturnType<typeof loadSettings> =>
  loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });

describe('doors', () => {
  test('every door of the specification is in the list, with its default port', () => {
    const defaults = settings({});
    expect(Object.fromEntries(doors.map((door) => [door.name, defaults[door.port]]))).toEqual({
      http: 9090,
      grpc: 50051,
      flight: 8815,
      object: 9191,
      relational: 5433,
      'columnar-http': 8123,
      'columnar-native': 9000,
      'graph-http': 7474,
      'graph-binary': 7687,
      kv: 6379,
      document: 27017,
    });
  });

  test('Arrow Flight opens where it is asked for, and by no token alone', () => {
    const stateOf = (env: Record<string, string>): string | undefined =>
      doorStatuses(settings(env)).find((door) => door.name === 'flight')?.state;
    const enabled = { SERVICE_FLIGHT_ENABLE: 'true' };
    expect([{}, { SERVICE_BEARER_TOKEN: 'x' }, { ...enabled, SERVICE_FLIGHT_ENABLE: 'false' }].map(stateOf)).toEqual([
      'off',
      'off',
      'off',
    ]);
    expect(stateOf(enabled)).toBe('listening');
    expect(stateOf({ ...enabled, SERVICE_GRPC_PLAINTEXT_OK: 'true' })).toBe('off');
    const server = { SERVICE_PROFILE: 'server', SERVICE_ERASURE_SIGNING_KEY: 'x' };
    expect(() => doorStatuses(settings({ ...enabled, ...server }))).toThrow(ConfigError);
  });

  test('gRPC is closed where strict mode is asked for plain text', () => {
    const stateOf = (mode: string): string | undefined =>
      doorStatuses(settings({ SERVICE_BEARER_TOKEN: 'x', SERVICE_SECURITY_MODE: mode, SERVICE_GRPC_PLAINTEXT_OK: 'true' })).find(
        (door) => door.name === 'grpc',
      )?.state;
    expect([stateOf('strict'), stateOf('open')]).toEqual(['off', 'listening']);
  });

  test('the HTTP door is always on', () => {
    expect(doorStatuses(settings({ SERVICE_PORT: '0' }))[0]).toEqual({ name: 'http', port: 0, state: 'listening' });
  });
});

describe('door enabling', () => {
  const facts = { explicit: null, bearerToken: false, profile: 'free' } as const;

  test('a door follows the bearer token', () => {
    expect(isEnabled('kv', facts)).toBe(false);
    expect(isEnabled('kv', { ...facts, bearerToken: true })).toBe(true);
  });

  test('an explicit setting overrides', () => {
    expect(isEnabled('kv', { ...facts, explicit: true })).toBe(true);
    expect(isEnabled('kv', { ...facts, bearerToken: true, explicit: false })).toBe(false);
  });

  test('an explicit enable without a token is fatal on server and cluster', () => {
    for (const profile of ['server', 'cluster'] as const) {
      expect(() => isEnabled('kv', { ...facts, profile, explicit: true })).toThrow(ConfigError);
      expect(isEnabled('kv', { profile, bearerToken: true, explicit: true })).toBe(true);
    }
  });
});
