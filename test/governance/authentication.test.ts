/** Who asks: registry tokens, the two secrets of settings, and development without credentials. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Ids } from '../../src/clock.ts';
import { Authenticator, type AuthenticatorDependencies } from '../../src/governance/authentication/authenticator.ts';
import { draftRotation, draftToken, verifyToken } from '../../src/governance/authentication/bearer-tokens.ts';
import { openDevelopment, type OpenDevelopmentConditions } from '../../src/governance/authentication/open-development.ts';
import { isSharedSecret, verifyAdmin } from '../../src/governance/authentication/shared-secret.ts';
import { TokenRegistry } from '../../src/governance/authentication/token-registry.ts';
import type { AgreementTerms, AgreementState, TokenRecord } from '../../src/log/entries/entry.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import { Tenants } from '../../src/projections/tenants/projection.ts';
import { termsOf } from '../projections/histories.ts';
import { Seeded } from '../simulation/seeded.ts';
import { ManualClock, refusalOf, registered, tokenRecord } from './world.ts';

const clock = new ManualClock();
const random = new Seeded(1);
const ids = new Ids(clock, random);
const now = clock.wallNs;

const draft = (request = {}) => draftToken(request, ids, random, now);
const holding = (...records: TokenRecord[]) => ({ token: (id: string) => records.find((record) => record.id === id) });
const codeOf = async (work: () => unknown): Promise<string> => (await refusalOf(work)).code;

describe('registry tokens', () => {
  test('a minted token verifies, and the record holds its SHA-256 and nothing of the secret', () => {
    const { record, token } = draft({
      principal: 'ada',
      tenant: 'acme',
      organization: 'acme/eu',
      roles: ['r'],
      attributes: { a: 1 },
    });
    expect(verifyToken(token, holding(record), now)).toBe(record);
    expect(record).toMatchObject({ principal: 'ada', tenant: 'acme', organization: 'acme/eu', roles: ['r'], expiresAt: FOREVER });
    expect(record.secretHash).toBe(createHash('sha256').update(token).digest('hex'));
    const secret = token.slice(-43);
    expect(Buffer.from(secret, 'base64url').length).toBe(32);
    expect(JSON.stringify({ ...record, expiresAt: '' })).not.toContain(secret);
    expect(token.startsWith(`ann_${record.id}_`)).toBe(true);
  });

  test('two tokens never share id or secret', () => {
    const drafted = Array.from({ length: 100 }, () => draft());
    expect(new Set(drafted.map(({ token }) => token.slice(-43))).size).toBe(100);
    expect(new Set(drafted.map(({ record }) => record.id)).size).toBe(100);
  });

  test.each<[string, (token: string, other: string) => string]>([
    ['another secret under a known id', (token, other) => token.slice(0, -43) + other.slice(-43)],
    ['a last character changed', (token) => token.slice(0, -2) + (token.at(-2) === 'A' ? 'B' : 'A') + token.at(-1)],
    ['a cut token', (token) => token.slice(0, -1)],
    ['a longer token', (token) => `${token}A`],
    ['the id alone', (token) => token.slice(4, 40)],
    ['another prefix', (token) => `bnn${token.slice(3)}`],
    ['an unknown id', (_, other) => other],
    ['nothing', () => ''],
    ['the hash itself', (token) => createHash('sha256').update(token).digest('hex')],
    ['upper case', (token) => token.toUpperCase()],
  ])('%s is refused', async (_, spoil) => {
    const mine = draft();
    const refused = await refusalOf(() => verifyToken(spoil(mine.token, draft().token), holding(mine.record), now));
    expect([refused.code, refused.message]).toEqual(['REL_UNAUTHENTICATED', 'missing or invalid credential']);
  });

  test('a record whose hash is damaged lets nobody in', async () => {
    const { record, token } = draft();
    for (const secretHash of ['', 'zz', record.secretHash.slice(2)]) {
      expect(await codeOf(() => verifyToken(token, holding({ ...record, secretHash }), now))).toBe('REL_UNAUTHENTICATED');
    }
  });

  test('a token is valid until just before its expiry', async () => {
    const { record, token } = draft({ expiresInSecs: 60 });
    const end = now + 60_000_000_000n;
    expect(record.expiresAt).toBe(end);
    expect(verifyToken(token, holding(record), end - 1n)).toBe(record);
    expect(await codeOf(() => verifyToken(token, holding(record), end))).toBe('REL_UNAUTHENTICATED');
  });

  test('rotation changes id and secret and nothing else', () => {
    const { record, token } = draft({ principal: 'ada', tenant: 'acme', purposes: ['fraud'], expiresInSecs: 60 });
    const rotated = draftRotation(record, ids, random);
    expect({ ...rotated.record, id: '', secretHash: '' }).toEqual({ ...record, id: '', secretHash: '' });
    expect(rotated.record.id).not.toBe(record.id);
    expect(rotated.token).not.toBe(token);
    expect(verifyToken(rotated.token, holding(rotated.record), now)).toBe(rotated.record);
  });

  test.each([
    [{ tenant: 'acme/' }],
    [{ organization: '' }],
    [{ tenant: 'acme', organization: 'acme-evil' }],
    [{ tenant: 'acme/eu', organization: 'acme' }],
    [{ principal: '' }],
    [{ roles: ['\u0001'] }],
    [{ purposes: [''] }],
    [{ expiresInSecs: 0 }],
    [{ expiresInSecs: 1.5 }],
    [{ expiresInSecs: 1e12 }],
  ])('minting %j is refused', async (request) => {
    expect(await codeOf(() => draft(request))).toBe('REL_INVALID');
  });

  test('revoked and rotated tokens are as if never made, yet count as having been there', () => {
    const standing = tokenRecord({ id: 'a' });
    const ended = tokenRecord({ id: 'b' });
    const tokens = [registered(standing), registered(ended, 5n)];
    const registry = new TokenRegistry({
      token: (id) => tokens.find(({ record }) => record.id === id),
      tokens: () => tokens,
      size: 2,
    });
    expect(registry.token('a')).toBe(standing);
    expect(registry.token('b')).toBeUndefined();
    expect(registry.token('c')).toBeUndefined();
    expect(registry.tokens()).toEqual([standing]);
    expect(registry.tokenCount).toBe(2);
  });
});

describe('secrets of settings', () => {
  const none = { SERVICE_PROFILE: 'free', SERVICE_ADMIN_TOKEN: null, SERVICE_BEARER_TOKEN: null } as const;
  const both = { SERVICE_PROFILE: 'server', SERVICE_ADMIN_TOKEN: 'admin-secret', SERVICE_BEARER_TOKEN: 'bearer-secret' } as const;

  test('the admin credential opens the admin surface, nothing else does', async () => {
    verifyAdmin(both, 'admin-secret');
    for (const presented of [null, '', 'bearer-secret', 'admin-secre', 'admin-secret ', 'Admin-secret']) {
      expect(await codeOf(() => verifyAdmin(both, presented))).toBe('REL_UNAUTHENTICATED');
    }
  });

  test('unset, it is the bearer token on free, 401 without either, and 503 on server and cluster', async () => {
    const bearerOnly = { ...none, SERVICE_BEARER_TOKEN: 'bearer-secret' };
    verifyAdmin(bearerOnly, 'bearer-secret');
    expect(await codeOf(() => verifyAdmin(bearerOnly, 'x'))).toBe('REL_UNAUTHENTICATED');
    expect((await refusalOf(() => verifyAdmin(none, 'x'))).status).toBe(401);
    for (const SERVICE_PROFILE of ['server', 'cluster'] as const) {
      expect((await refusalOf(() => verifyAdmin({ ...bearerOnly, SERVICE_PROFILE }, 'bearer-secret'))).status).toBe(503);
    }
  });

  test('the bootstrap secret verifies whole and only when set', async () => {
    expect(['bearer-secret', 'bearer', null].map((word) => isSharedSecret(both, word))).toEqual([true, false, false]);
    expect(isSharedSecret(none, '')).toBe(false);
  });
});

describe('development without credentials', () => {
  const open: OpenDevelopmentConditions = {
    settings: {
      SERVICE_OPEN_DEV_ALLOWED: true,
      SERVICE_BEARER_TOKEN: null,
      SERVICE_ADMIN_TOKEN: null,
      SERVICE_PROFILE: 'free',
    },
    registeredTokens: 0,
    boundToLoopback: true,
  };

  test('is open only while every condition holds', () => {
    expect(openDevelopment(open)).toBe(true);
    const spoiled: OpenDevelopmentConditions[] = [
      { ...open, settings: { ...open.settings, SERVICE_OPEN_DEV_ALLOWED: false } },
      { ...open, settings: { ...open.settings, SERVICE_BEARER_TOKEN: 'x' } },
      { ...open, settings: { ...open.settings, SERVICE_ADMIN_TOKEN: 'x' } },
      { ...open, settings: { ...open.settings, SERVICE_PROFILE: 'server' } },
      { ...open, registeredTokens: 1 },
      { ...open, boundToLoopback: false },
    ];
    expect(spoiled.map(openDevelopment)).toEqual(spoiled.map(() => false));
  });
});

describe('callers', () => {
  const { record, token } = draft({ principal: 'ada', tenant: 'acme', organization: 'acme/eu', purposes: ['fraud'] });
  const tenants = new Tenants();
  const parts = (over: Partial<AuthenticatorDependencies['settings']> = {}, records = [record]): AuthenticatorDependencies => ({
    directory: {
      token: (id) => records.map((token) => registered(token)).find((token) => token.record.id === id),
      tokens: () => records.map((token) => registered(token)),
      size: records.length,
    },
    tenants,
    clock,
    boundToLoopback: true,
    settings: {
      SERVICE_PROFILE: 'free',
      SERVICE_ADMIN_TOKEN: 'admin-secret',
      SERVICE_BEARER_TOKEN: 'bearer-secret',
      SERVICE_OPEN_DEV_ALLOWED: false,
      SERVICE_TENANCY_MODE: 'single',
      ...over,
    },
  });
  const authenticator = new Authenticator(parts());
  const credentials = (authorization: string | undefined, organization?: string) => ({
    authorization,
    organization,
    door: 'http',
  });

  test('a token’s caller is who the registry says, at the path in force', () => {
    expect(authenticator.dataCaller(credentials(`Bearer ${token}`))).toEqual({
      principal: 'ada',
      credential: 'token',
      tokenId: record.id,
      tenant: 'acme',
      path: 'acme/eu',
      roles: [],
      attributes: {},
      purposes: ['fraud'],
      door: 'http',
      branch: 'main',
      clientIp: null,
      sharedFrom: null,
    });
    expect(authenticator.dataCaller(credentials(`bearer ${token}`, 'acme/us')).path).toBe('acme/us');
  });

  test('data routes take neither the bootstrap secret nor the admin credential', async () => {
    for (const secret of ['bearer-secret', 'admin-secret']) {
      expect(await codeOf(() => authenticator.dataCaller(credentials(`Bearer ${secret}`)))).toBe('REL_UNAUTHENTICATED');
    }
  });

  test.each([undefined, '', 'Bearer', `Basic ${token}`, token, `Bearer ${token}, Bearer ${token}`, `Bearer ${token} x`])(
    'authorization %j is refused',
    async (authorization) => {
      expect(await codeOf(() => authenticator.dataCaller(credentials(authorization)))).toBe('REL_UNAUTHENTICATED');
    },
  );

  test('a valid token does not outweigh a header that names another tenant or is malformed', async () => {
    expect(await codeOf(() => authenticator.dataCaller(credentials(`Bearer ${token}`, 'acme-evil')))).toBe('REL_XORG');
    expect(await codeOf(() => authenticator.dataCaller(credentials(`Bearer ${token}`, 'acme/')))).toBe('REL_INVALID');
    expect(await codeOf(() => authenticator.dataCaller(credentials(undefined, 'acme/')))).toBe('REL_UNAUTHENTICATED');
  });

  test('a foreign path is let through where an agreement in force shares it, and no longer', async () => {
    const sharing = (assigner: string, assignee: string, state: AgreementState, more: Partial<AgreementTerms> = {}): Tenants => {
      const shared = new Tenants();
      const terms = termsOf(assigner, assignee, { validFrom: now, validTo: now + 10n, ...more });
      const agreement = { ...terms, id: 'g', state, createdAt: now, activatedAt: now };
      const context = {
        branch: 'main',
        tenant: null,
        path: null,
        principal: '',
        door: '',
        purpose: null,
        correlationId: '',
        policyDigest: '',
      };
      shared.apply({
        body: { kind: 'agreement', change: 'activated', agreement },
        context,
        leaf: 0,
        position: 0,
        positions: 1,
        time: now,
      });
      return shared;
    };
    const asked = (shared: Tenants, header: string): unknown => {
      const { path, sharedFrom } = new Authenticator({ ...parts(), tenants: shared }).dataCaller(
        credentials(`Bearer ${token}`, header),
      );
      return [path, sharedFrom];
    };
    // The token is acme's, at acme/eu.
    expect(asked(sharing('globex', 'acme', 'active'), 'globex')).toEqual(['acme/eu', 'globex']);
    expect(asked(sharing('globex/x', 'acme/eu', 'active'), 'globex')).toEqual(['acme/eu', 'globex']);
    expect(asked(sharing('globex', 'acme', 'active'), 'globex/x/y')).toEqual(['acme/eu', 'globex/x/y']);
    expect(asked(sharing('globex', 'acme', 'active'), 'acme/us')).toEqual(['acme/us', null]);
    for (const [shared, header] of [
      [sharing('globex', 'acme', 'suspended'), 'globex'],
      [sharing('globex', 'acme', 'revoked'), 'globex'],
      [sharing('globex', 'acme', 'active', { validFrom: now + 1n }), 'globex'],
      [sharing('globex', 'acme', 'active', { validTo: now }), 'globex'],
      [sharing('globex', 'acme/us', 'active'), 'globex'],
      [sharing('globex/x', 'acme', 'active'), 'globex/y'],
      [sharing('globex', 'acme', 'active'), 'globex-evil'],
      [sharing('acme', 'globex', 'active'), 'globex'],
    ] as const) {
      expect(await codeOf(() => asked(shared, header))).toBe('REL_XORG');
    }
    const before = new Authenticator({ ...parts(), tenants: sharing('globex', 'acme', 'active') });
    const visitor = before.dataCaller(credentials(`Bearer ${token}`, 'globex'));
    expect(before.renew(visitor)).toBe(visitor);
    const after = new Authenticator({ ...parts(), tenants: sharing('globex', 'acme', 'revoked') });
    expect(await codeOf(() => after.renew(visitor))).toBe('REL_XORG');
  });

  test('the administrator has no tenant and no path', () => {
    const admin = authenticator.adminCaller(credentials('Bearer admin-secret'));
    expect(admin).toMatchObject({ principal: 'admin', credential: 'admin', tenant: null, path: null, tokenId: null });
  });

  test('a registry token does not administer', async () => {
    expect(await codeOf(() => authenticator.adminCaller(credentials(`Bearer ${token}`)))).toBe('REL_UNAUTHENTICATED');
    expect(await codeOf(() => authenticator.adminCaller(credentials(undefined)))).toBe('REL_UNAUTHENTICATED');
  });

  test('who comes again is who he was, as the registry has him by now', () => {
    const caller = authenticator.dataCaller(credentials(`Bearer ${token}`));
    expect(authenticator.renew(caller)).toEqual(caller);
    for (const change of [{ roles: ['auditor'] }, { attributes: { desk: 'fx' } }, { purposes: ['audit'] }]) {
      const changed = new Authenticator(parts({}, [{ ...record, ...change }]));
      expect(changed.renew(caller)).toEqual({ ...caller, ...change });
    }
    expect(() => new Authenticator(parts({}, [])).renew(caller)).toThrow();
  });

  test('a compatibility door’s caller has the bootstrap secret', async () => {
    const facts = { door: 'kv', clientIp: null, organization: 'acme' };
    expect(authenticator.passwordCaller('bearer-secret', facts)).toMatchObject({
      credential: 'shared-secret',
      path: 'acme',
      door: 'kv',
    });
    expect(await codeOf(() => authenticator.passwordCaller('another-secret', facts))).toBe('REL_UNAUTHENTICATED');
  });

  test('in open development nobody needs a credential, but a wrong one is still wrong', async () => {
    const openSettings = { SERVICE_OPEN_DEV_ALLOWED: true, SERVICE_ADMIN_TOKEN: null, SERVICE_BEARER_TOKEN: null };
    const open = new Authenticator(parts(openSettings, []));
    expect(open.dataCaller(credentials(undefined, 'acme'))).toMatchObject({ credential: 'none', path: 'acme' });
    expect(open.adminCaller(credentials(undefined)).credential).toBe('admin');
    expect(await codeOf(() => open.dataCaller(credentials(`Bearer ${token}`)))).toBe('REL_UNAUTHENTICATED');
    const closed = new Authenticator(parts(openSettings));
    expect(await codeOf(() => closed.dataCaller(credentials(undefined)))).toBe('REL_UNAUTHENTICATED');
    expect(await codeOf(() => closed.adminCaller(credentials(undefined)))).toBe('REL_UNAUTHENTICATED');
  });
});
