/** Every start that the specification refuses, cell by cell, and the starts that it allows. */
import { describe, expect, test } from 'vitest';
import { loadSettings } from '../../src/config.ts';
import { ConfigError } from '../../src/errors.ts';
import { bootRefusals, optionalDoors, type OptionalDoor } from '../../src/governance/tenancy/profile-rules.ts';

const key = 'ab'.repeat(32);
const server = {
  SERVICE_PROFILE: 'server',
  SERVICE_HTTP_BIND: '127.0.0.1',
  SERVICE_BEARER_TOKEN: 'secret',
  SERVICE_ERASURE_SIGNING_KEY: key,
  SERVICE_KEK: key,
  SERVICE_PURPOSES: 'analytics',
};
const cluster = { ...server, SERVICE_PROFILE: 'cluster' };
const tls = { SERVICE_TLS_CERT: '/cert.pem', SERVICE_TLS_KEY: '/key.pem' };

function refusals(env: Record<string, string>, builtDoors: readonly OptionalDoor[] = []): string[] {
  return bootRefusals(loadSettings({ env, workingDirectory: '/nonexistent', homeDirectory: '/nonexistent' }), { builtDoors });
}

const without = (env: Record<string, string>, ...names: string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

describe('starts', () => {
  test.each<[string, Record<string, string>]>([
    ['free with nothing set', {}],
    ['server with what it needs', server],
    ['cluster with what it needs', cluster],
    ['free on all addresses with TLS', { SERVICE_HTTP_BIND: '0.0.0.0', ...tls }],
    ['free on all addresses behind a proxy', { SERVICE_HTTP_BIND: '0.0.0.0', SERVICE_PLAINTEXT_OK: 'true' }],
    ['server on all addresses with TLS', { ...without(server, 'SERVICE_HTTP_BIND'), ...tls }],
    ['free on IPv6 loopback', { SERVICE_HTTP_BIND: '::1', SERVICE_ADMIN_BIND: '[::1]:9091' }],
    ['free with another loopback address', { SERVICE_ADMIN_BIND: '127.0.0.53:1' }],
    [
      'local keys in open mode',
      { SERVICE_SECURITY_MODE: 'open', SERVICE_KMS_LOCAL_DEV: 'true', SERVICE_UNSAFE_LOCAL_FENCING: 'true' },
    ],
    [
      'server with local keys in open mode',
      { ...without(server, 'SERVICE_KEK'), SERVICE_SECURITY_MODE: 'open', SERVICE_KMS_LOCAL_DEV: 'true' },
    ],
    ['server with a key file', { ...without(server, 'SERVICE_KEK'), SERVICE_KEK_FILE: '/kek' }],
    ['server without purposes in open purpose mode', { ...without(server, 'SERVICE_PURPOSES'), SERVICE_PURPOSE_MODE: 'open' }],
    ['many tenants on cluster', { ...cluster, SERVICE_TENANCY_MODE: 'multi' }],
    ['plaintext gRPC under strict: the door stays shut instead', { SERVICE_GRPC_PLAINTEXT_OK: 'true' }],
    ['doors that follow the bearer token and are not built', { SERVICE_BEARER_TOKEN: 'secret' }],
    ['a door switched off that is not built', { SERVICE_KV_ENABLE: 'false' }],
  ])('%s', (_, env) => {
    expect(refusals(env)).toEqual([]);
  });
});

describe('refuses to start', () => {
  test.each<[string, Record<string, string>, string]>([
    ['free on all addresses in plaintext', { SERVICE_HTTP_BIND: '0.0.0.0' }, 'SERVICE_TLS_CERT'],
    ['server’s default bind in plaintext', without(server, 'SERVICE_HTTP_BIND'), 'SERVICE_TLS_CERT'],
    ['a certificate without its key', { SERVICE_TLS_CERT: '/cert.pem' }, 'SERVICE_TLS_KEY'],
    ['a key without its certificate', { SERVICE_TLS_KEY: '/key.pem' }, 'SERVICE_TLS_CERT'],
    ['loopback told to serve TLS without a certificate', { SERVICE_PLAINTEXT_OK: 'false' }, 'SERVICE_PLAINTEXT_OK'],
    ['an admin listener for everybody', { SERVICE_ADMIN_BIND: '0.0.0.0:9091' }, 'SERVICE_ADMIN_BIND'],
    ['an admin listener for the network', { SERVICE_ADMIN_BIND: '10.0.0.1:9091' }, 'SERVICE_ADMIN_BIND'],
    ['an admin listener by a name', { SERVICE_ADMIN_BIND: '127.evil.example:9091' }, 'SERVICE_ADMIN_BIND'],
    ['an admin listener without a port', { SERVICE_ADMIN_BIND: '127.0.0.1' }, 'SERVICE_ADMIN_BIND'],
    ['local keys under strict', { SERVICE_KMS_LOCAL_DEV: 'true' }, 'SERVICE_KMS_LOCAL_DEV'],
    ['unfenced cluster under strict', { SERVICE_UNSAFE_LOCAL_FENCING: 'true' }, 'SERVICE_UNSAFE_LOCAL_FENCING'],
    ['server without a bearer token', without(server, 'SERVICE_BEARER_TOKEN'), 'SERVICE_BEARER_TOKEN'],
    ['cluster without a bearer token', without(cluster, 'SERVICE_BEARER_TOKEN'), 'SERVICE_BEARER_TOKEN'],
    ['server without a signing key', without(server, 'SERVICE_ERASURE_SIGNING_KEY'), 'SERVICE_ERASURE_SIGNING_KEY'],
    ['cluster without a signing key', without(cluster, 'SERVICE_ERASURE_SIGNING_KEY'), 'SERVICE_ERASURE_SIGNING_KEY'],
    ['server without a key-encryption key', without(server, 'SERVICE_KEK'), 'SERVICE_KEK'],
    ['server without purposes', without(server, 'SERVICE_PURPOSES'), 'SERVICE_PURPOSES'],
    ['free with its purposes taken away', { SERVICE_PURPOSES: ',' }, 'SERVICE_PURPOSES'],
    ['many tenants on free', { SERVICE_TENANCY_MODE: 'multi' }, 'SERVICE_TENANCY_MODE'],
    ['many tenants on server', { ...server, SERVICE_TENANCY_MODE: 'multi' }, 'SERVICE_TENANCY_MODE'],
    [
      'many tenants under a ceiling of one',
      { ...cluster, SERVICE_TENANCY_MODE: 'multi', SERVICE_MAX_TENANTS: '1' },
      'SERVICE_MAX_TENANTS',
    ],
  ])('%s', (_, env, named) => {
    const lines = refusals(env);
    expect(lines.length).toBe(1);
    expect(lines[0]).toContain(named);
    expect(lines[0]).not.toContain('\n');
  });

  test('a server with local keys under strict names both what is not allowed and what is missing', () => {
    const env = { ...without(server, 'SERVICE_KEK'), SERVICE_KMS_LOCAL_DEV: 'true' };
    expect(refusals(env).map((line) => line.split(/[ =]/)[0])).toEqual(['SERVICE_KMS_LOCAL_DEV', 'SERVICE_KEK']);
  });

  test('nothing given on server: every reason at once', () => {
    expect(refusals({ SERVICE_PROFILE: 'server' }).length).toBe(5);
  });

  test.each(['lite', 'FREE', 'enterprise', ''])('the profile %j', (profile) => {
    expect(() => refusals({ SERVICE_PROFILE: profile })).toThrow(ConfigError);
  });

  test.each(optionalDoors)('a switched-on %s door that is not built, and one that lacks what it needs', (door) => {
    const enable = { [`SERVICE_${door}_ENABLE`]: 'true' };
    expect(refusals(enable).length).toBe(1);
    expect(refusals(enable)[0]).toContain(`SERVICE_${door}_ENABLE`);
    expect(refusals(enable, [door])).toEqual(
      door === 'RELATIONAL' ? [`SERVICE_${door}_ENABLE=true needs SERVICE_BEARER_TOKEN`] : [],
    );
    expect(refusals({ ...enable, SERVICE_BEARER_TOKEN: 'secret' }, [door])).toEqual([]);
    const tokenless = refusals({ ...without(server, 'SERVICE_BEARER_TOKEN'), ...enable }, [door]);
    expect(tokenless).toContain(`SERVICE_${door}_ENABLE=true needs SERVICE_BEARER_TOKEN`);
    expect(refusals({ ...cluster, ...enable, SERVICE_TENANCY_MODE: 'multi' }, [door])).toEqual([]);
  });
});
