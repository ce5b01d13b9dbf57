/** Specification, "States and transitions" (License, Storage) and "Limits" (Storage cap, Tenants): what a licence file says, and when. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import nacl from 'tweetnacl';
import { loadSettings } from '../../src/config.ts';
import { ConfigError } from '../../src/errors.ts';
import type { Command } from '../../src/projections/command.ts';
import { LicenceTerm, licenceOf, type Licence } from '../../src/governance/tenancy/licence.ts';
import { readLicence } from '../../src/governance/tenancy/licence-file.ts';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import { canonicalJson, type Json } from '../../src/log/values/canonical-json.ts';
import { parseInstant } from '../../src/log/values/timestamp.ts';
import { checkBoot } from '../../src/service.ts';
import { analyst, TestClock, TestStore } from '../harness.ts';
import { refusalOf } from './world.ts';

const directory = mkdtempSync(join(tmpdir(), 'annals-licence-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const rawKey = Buffer.from(publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)).toString('hex');

const sold = {
  tier: 'cluster',
  max_tenants: 3,
  storage_max_gb: 2,
  capabilities: ['graph', 'search'],
  expires_unix_secs: Number(parseInstant('2024-06-01') / 1_000_000_000n),
  licensee: 'Acme Inc.',
};

let files = 0;
function fileOf(content: string | object, key = privateKey): string {
  const path = join(directory, `${++files}.json`);
  if (typeof content === 'string') writeFileSync(path, content);
  else {
    const signature = sign(null, Buffer.from(canonicalJson(content as Json)), key).toString('base64');
    writeFileSync(path, JSON.stringify({ ...content, signature }, null, 2));
  }
  return path;
}

const settingsOf = (path: string, more: Record<string, string> = {}): Record<string, string> => ({
  SERVICE_PROFILE: 'cluster',
  SERVICE_PURPOSES: 'analytics,test',
  SERVICE_LICENSE_FILE: path,
  SERVICE_LICENSE_PUBLIC_KEY: rawKey,
  ...more,
});

const load = (env: Record<string, string>) => loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
const read = (env: Record<string, string>): Licence => readLicence(load(env));

describe('a licence file', () => {
  test('says what may be stored, how many tenants there may be, and until when', () => {
    const expiresAt = parseInstant('2024-06-01');
    expect(read(settingsOf(fileOf(sold)))).toEqual({
      tier: 'cluster',
      storageBytesMax: 2_000_000_000,
      tenantsMax: 3,
      capabilities: ['graph', 'search'],
      expiresAt,
      graceEndsAt: parseInstant('2024-06-08'),
    });
    const longer = read(settingsOf(fileOf(sold), { SERVICE_LICENSE_GRACE_DAYS: '30' }));
    expect(longer.graceEndsAt).toBe(parseInstant('2024-07-01'));
    expect(read(settingsOf(fileOf({ ...sold, expires_unix_secs: null })))).toMatchObject({ expiresAt: null, graceEndsAt: null });
    expect(read(settingsOf(fileOf({ ...sold, max_tenants: 0, storage_max_gb: 0 })))).toMatchObject({
      tenantsMax: 0,
      storageBytesMax: 0,
    });
  });

  test('is verified as another implementation signs it, with the key from a file', () => {
    const pair = nacl.sign.keyPair.fromSeed(new Uint8Array(32).fill(5));
    const signature = Buffer.from(nacl.sign.detached(Buffer.from(canonicalJson(sold)), pair.secretKey)).toString('base64');
    const key = join(directory, 'key');
    writeFileSync(key, `${Buffer.from(pair.publicKey).toString('base64')}\n`);
    const { SERVICE_LICENSE_PUBLIC_KEY: _, ...env } = settingsOf(fileOf(JSON.stringify({ signature, ...sold })));
    expect(read({ ...env, SERVICE_LICENSE_PUBLIC_KEY_FILE: key }).tenantsMax).toBe(3);
  });

  test.each([
    ['a tenant ceiling that settings lower', 3, '2', 2],
    ['one that they can’t raise', 3, '9', 3],
    ['one that they leave', 3, '0', 3],
    ['none, which they lower', 0, '4', 4],
    ['none, which they leave', 0, '0', 0],
  ])('has %s', (_, licensed, lowered, tenantsMax) => {
    const env = settingsOf(fileOf({ ...sold, max_tenants: licensed }), { SERVICE_MAX_TENANTS: lowered });
    expect(read(env).tenantsMax).toBe(tenantsMax);
  });

  test('of a server has room for one tenant, whatever it says', () => {
    const env = settingsOf(fileOf({ ...sold, tier: 'server', max_tenants: 50 }), { SERVICE_PROFILE: 'server' });
    expect(read(env)).toMatchObject({ tier: 'server', tenantsMax: 1, storageBytesMax: 2_000_000_000 });
  });

  const stranger = generateKeyPairSync('ed25519').privateKey;
  const other = { ...sold, max_tenants: 4 };
  const signatureOf = (content: object): string =>
    sign(null, Buffer.from(canonicalJson(content as Json)), privateKey).toString('base64');
  test.each<[string, () => string, RegExp]>([
    ['is signed by somebody else', () => fileOf(sold, stranger), /signature/],
    ['was changed after it was signed', () => fileOf(JSON.stringify({ ...sold, signature: signatureOf(other) })), /signature/],
    ['has no signature', () => fileOf(JSON.stringify(sold)), /signature/],
    ['has half a signature', () => fileOf(JSON.stringify({ ...sold, signature: signatureOf(sold).slice(0, 40) })), /signature/],
    ['is empty', () => fileOf(''), /not JSON/],
    ['is a list', () => fileOf('[]'), /JSON object/],
    ['holds what can’t be signed', () => fileOf(`{"licensee":"\\ud800","signature":"${'A'.repeat(86)}=="}`), /cannot represent/],
    ['is not there', () => join(directory, 'none.json'), /cannot read/],
    ['is of another tier', () => fileOf({ ...sold, tier: 'server' }), /tier is "server"/],
    ['names nobody', () => fileOf({ ...sold, licensee: '' }), /licensee/],
    ['asks for more than is known', () => fileOf({ ...sold, max_users: 3 }), /max_users/],
    ['has fewer tenants than none', () => fileOf({ ...sold, max_tenants: -1 }), /max_tenants/],
    ['has half a gigabyte', () => fileOf({ ...sold, storage_max_gb: 0.5 }), /storage_max_gb/],
    ['ends some day', () => fileOf({ ...sold, expires_unix_secs: 'soon' }), /expires_unix_secs/],
    ['has capabilities that are no texts', () => fileOf({ ...sold, capabilities: [1] }), /capabilities/],
  ])('that %s stops the start', (_, file, why) => {
    const env = settingsOf(file());
    expect(() => read(env)).toThrow(ConfigError);
    expect(() => read(env)).toThrow(why);
    expect(() => read(env)).toThrow(/^SERVICE_LICENSE_FILE\b[^\n]*$/);
  });

  test('needs the key that it is verified with, and a profile that is sold', async () => {
    const { SERVICE_LICENSE_PUBLIC_KEY: _, ...keyless } = settingsOf(fileOf(sold));
    expect(() => read(keyless)).toThrow(/SERVICE_LICENSE_PUBLIC_KEY/);
    expect(() => read({ ...keyless, SERVICE_LICENSE_PUBLIC_KEY: 'short' })).toThrow(
      /SERVICE_LICENSE_PUBLIC_KEY: expected 32 bytes/,
    );
    expect(() => read(settingsOf(fileOf(sold), { SERVICE_PROFILE: 'free' }))).toThrow(/free profile/);
    await expect(TestStore.open('2024-01-01', settingsOf(fileOf(sold, stranger)))).rejects.toThrow(/signature/);
  });

  test('of one tenant does not go with many', () => {
    const key = 'ab'.repeat(32);
    const server = {
      SERVICE_HTTP_BIND: '127.0.0.1',
      SERVICE_BEARER_TOKEN: 's',
      SERVICE_ERASURE_SIGNING_KEY: key,
      SERVICE_KEK: key,
    };
    const multi = { ...server, SERVICE_TENANCY_MODE: 'multi' };
    expect(() => checkBoot(load(settingsOf(fileOf({ ...sold, max_tenants: 1 }), multi)))).toThrow(/SERVICE_TENANCY_MODE=multi/);
    expect(() => checkBoot(load(settingsOf(fileOf(sold), multi)))).not.toThrow();
    expect(() => checkBoot(load(settingsOf(fileOf(sold, stranger), server)))).toThrow(/signature/);
  });
});

describe('without a licence file', () => {
  test('the profile says it: 10 GB and one tenant on free, one tenant on server, no ceiling on cluster', () => {
    const of = (profile: string) => read({ SERVICE_PROFILE: profile });
    expect(['free', 'server', 'cluster'].map((profile) => [of(profile).storageBytesMax, of(profile).tenantsMax])).toEqual([
      [10_000_000_000, 1],
      [0, 1],
      [0, 0],
    ]);
  });
});

const admin = tenantlessCaller('admin', 'admin', 'test');

/** What is refused, and what not, once the licence and its grace are over. */
const commands: readonly (readonly [Command, boolean])[] = [
  [{ kind: 'register-type', name: 'New', properties: {}, primaryKey: null, graphTriggers: [] }, false],
  [{ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' }, false],
  [{ kind: 'create-view', name: 'v', sql: 'SELECT id FROM T', refreshSecs: 5 }, false],
  [{ kind: 'drop-view', name: 'kept' }, true],
  [{ kind: 'delete-rows', type: 'T', keys: ['a'] }, false],
  [{ kind: 'create-tenant', id: 'new', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 }, false],
  [{ kind: 'remove-rows', type: 'T', keys: ['a'] }, true],
  [{ kind: 'suspend-tenant', id: 'acme' }, true],
  [{ kind: 'reactivate-tenant', id: 'acme' }, true],
  [{ kind: 'put-policy', id: 'p', text: 'permit(principal, action, resource);' }, true],
  [{ kind: 'delete-policy', id: 'p' }, true],
  [{ kind: 'delete-tenant', id: 'acme', manner: 'purge' }, true],
  [{ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 10 }, true],
];

describe('License', () => {
  test('valid, expiry passes: grace, with a loud warning; then writes are refused while reads stay available', async () => {
    const said: string[] = [];
    const store = await TestStore.open('2024-05-31', settingsOf(fileOf(sold)), { say: (line) => said.push(line) });
    const { gate } = store.service;
    const act = (command: Command) => {
      const by = command.kind.includes('tenant') || command.kind.includes('policy') ? admin : analyst;
      const request = { action: 'administer', purpose: null, correlationId: 'c' } as const;
      return gate.invoke(by, request, (invocation) => invocation.submit(command));
    };
    await act({ kind: 'create-tenant', id: 'acme', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });
    await store.put('T', [{ id: 'a' }]);
    await act({ kind: 'create-view', name: 'kept', sql: 'SELECT id FROM T', refreshSecs: 5 });
    store.clock.set('2024-06-07T23:59:59');
    await store.put('T', [{ id: 'b' }]);

    store.clock.set('2024-06-08');
    const refused = await refusalOf(store.put('T', [{ id: 'c' }]));
    expect([refused.code, refused.status]).toEqual(['REL_LICENSE_EXPIRED', 402]);
    expect(await store.rows('SELECT id FROM T ORDER BY id')).toEqual([{ id: 'a' }, { id: 'b' }]);
    for (const [command, allowed] of commands) {
      if (allowed) await act(command);
      else expect((await refusalOf(act(command))).code, command.kind).toBe('REL_LICENSE_EXPIRED');
    }
    await store.close();
  });

  test('warnings come at the expiry, every day of the grace, at its end, and every day after', async () => {
    const clock = new TestClock('2024-05-30T12:00:00');
    const said: string[] = [];
    const sleeps: number[] = [];
    const stop = new AbortController();
    clock.sleep = async (ms) => {
      sleeps.push(ms);
      clock.wallNs += BigInt(ms) * 1_000_000n;
      if (sleeps.length === 6) stop.abort();
    };
    const expiresAt = parseInstant('2024-06-01');
    const term = new LicenceTerm({ expiresAt, graceEndsAt: parseInstant('2024-06-03T00:00:00.000000001Z') }, (line) =>
      said.push(line),
    );
    await term.watch(clock, stop.signal);
    const day = 86_400_000;
    expect(sleeps).toEqual([day, day / 2, day, day, 1, day]);
    expect(said.map((line) => line.includes('its grace is over'))).toEqual([false, false, false, true]);
    for (const line of said) expect(line).toMatch(/^THE LICENCE HAS EXPIRED on 2024-06-01T00:00:00Z/);
    expect([expiresAt - 1n, expiresAt].map((at) => term.stateAt(at))).toEqual(['valid', 'grace']);
  });

  test('an expired one is warned of at every start', async () => {
    const said: string[] = [];
    const store = await TestStore.open('2024-06-02', settingsOf(fileOf(sold)), { say: (line) => said.push(line) });
    store.service.tend();
    expect(said).toEqual([expect.stringMatching(/^THE LICENCE HAS EXPIRED .*writes are refused from 2024-06-08T00:00:00Z/)]);
    await store.close();
  });

  test('that never expires is never spoken of', async () => {
    const said: string[] = [];
    await new LicenceTerm(licenceOf('free'), (line) => said.push(line)).watch(
      new TestClock('2024-01-01'),
      new AbortController().signal,
    );
    expect(said).toEqual([]);
  });
});

describe('Storage', () => {
  test('at or above 100 % of what was licensed, ingest: rejected with 402', async () => {
    const store = await TestStore.open('2024-01-01', settingsOf(fileOf({ ...sold, storage_max_gb: 1 })));
    expect(read(settingsOf(fileOf({ ...sold, storage_max_gb: 1 }))).storageBytesMax).toBe(1_000_000_000);
    const status = store.service.store.log.status.bind(store.service.store.log);
    store.service.store.log.status = () => ({ ...status(), bytes: 1_000_000_000 });
    const refused = await refusalOf(store.put('T', [{ id: 'a' }]));
    expect([refused.code, refused.status]).toEqual(['REL_STORAGE_CAP', 402]);
    store.service.store.log.status = () => ({ ...status(), bytes: 999_999_999 });
    await store.put('T', [{ id: 'a' }]);
    await store.close();
  });
});

describe('Tenants', () => {
  test('are as many as the licence says, whatever a command claims', async () => {
    const store = await TestStore.open('2024-01-01', settingsOf(fileOf(sold)));
    const create = (id: string) =>
      store.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
        invocation.submit({ kind: 'create-tenant', id, name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 }),
      );
    for (const id of ['a', 'b', 'c']) expect(await create(id)).toMatchObject({ changed: true });
    expect((await refusalOf(create('d'))).code).toBe('REL_TENANT_CAP');
    expect(await create('a')).toMatchObject({ changed: false });
    await store.close();
  });
});
