import { describe, expect, test } from 'vitest';
import { decodeBody, encodeBody, kindNumber } from '../../../src/log/entries/body-codec.ts';
import { ByteWriter } from '../../../src/log/bytes/byte-stream.ts';
import type {
  AccessRecord,
  AgreementRecord,
  PropertyDefinition,
  TenantRecord,
  TypeBody,
  TypeDefinition,
} from '../../../src/log/entries/entry.ts';
import { encodeFixed, type FixedBody } from '../../../src/log/entries/fixed-fields.ts';
import { isShallow, recordOf, recordText } from '../../../src/log/entries/record-codec.ts';

const malformed = expect.objectContaining({ code: 'REL_STORAGE' });

const tenant: TenantRecord = {
  id: 'acme',
  name: 'Acme',
  tier: 'gold',
  state: 'active',
  quota: { queryUnits: 1, inFlight: null, storageBytes: null, subscriptions: null, requestsPerSecond: null },
  search: {},
  members: [
    { principal: 'ada', role: 'owner' },
    { principal: 'bob', role: 'reader' },
  ],
  createdAt: 1n,
  changedAt: 2n ** 63n - 1n,
};
const agreement: AgreementRecord = {
  id: 'g',
  assigner: 'acme',
  assignee: 'globex',
  types: ['T'],
  where: null,
  columns: null,
  permission: ['query'],
  purposes: [],
  validFrom: -(2n ** 63n),
  validTo: 9n,
  history: 'full',
  masking: { a: 'year' },
  onwardSharing: false,
  aggregateMinGroup: null,
  termsDigest: null,
  state: 'proposed',
  createdAt: 1n,
  activatedAt: null,
};
const tenantText = recordText({ kind: 'tenant', change: 'created', manner: null, tenant });
const agreementText = recordText({ kind: 'agreement', change: 'proposed', agreement });

describe('a record', () => {
  test('is canonical JSON with 64-bit integers as texts', () => {
    expect(recordText({ kind: 'policy', change: 'installed', id: 'p', text: 't"', digest: 'd' })).toBe(
      '{"change":"installed","digest":"d","id":"p","text":"t\\""}',
    );
    expect(tenantText).toContain('"changedAt":"9223372036854775807"');
    expect(tenantText).toContain('"createdAt":"1","id":"acme","members":[{"principal":"ada","role":"owner"}');
    expect(recordOf('tenant', tenantText)).toEqual({ kind: 'tenant', change: 'created', manner: null, tenant });
    expect(recordOf('agreement', agreementText)).toEqual({ kind: 'agreement', change: 'proposed', agreement });
  });

  test.each([
    ['no JSON', tenantText.slice(1)],
    ['a blank more', tenantText.replace('":', '": ')],
    ['an escape where none is needed', tenantText.replace('Acme', '\\u0041cme')],
    ['a lone surrogate', tenantText.replace('Acme', '\\ud800')],
    [
      'members of a record in another order',
      tenantText.replace('"change":"created","manner":null', '"manner":null,"change":"created"'),
    ],
    ['a member twice', tenantText.replace('"name":"Acme"', '"name":"Acme","name":"Acme"')],
    ['a member missing', tenantText.replace('"name":"Acme",', '')],
    ['a member too many', tenantText.replace('"name":"Acme"', '"name":"Acme","nameless":1')],
    ['a number for a text', tenantText.replace('"Acme"', '5')],
    ['an unknown state', tenantText.replace('"active"', '"idle"')],
    ['an unknown change', tenantText.replace('"created"', '"made"')],
    ['an unknown manner', tenantText.replace('"manner":null', '"manner":"hard"')],
    ['a quota below zero', tenantText.replace('"queryUnits":1', '"queryUnits":-1')],
    ['a quota that is no whole number', tenantText.replace('"queryUnits":1', '"queryUnits":1.5')],
    ['a quota of a name that there is not', tenantText.replace('"queryUnits"', '"quantity"')],
    ['an instant above 64 bits', tenantText.replace('9223372036854775807', '9223372036854775808')],
    ['an instant with a leading zero', tenantText.replace('"createdAt":"1"', '"createdAt":"01"')],
    ['an instant that is a number', tenantText.replace('"createdAt":"1"', '"createdAt":1')],
    ['members of a tenant in another order', tenantText.replace('"ada"', '"cy"')],
    ['a member twice among a tenant’s', tenantText.replace('"bob"', '"ada"')],
    ['a list for a search', tenantText.replace('"search":{}', '"search":[]')],
    ['a search nested too deep', tenantText.replace('"search":{}', `"search":{"a":${'['.repeat(70)}${']'.repeat(70)}}`)],
    [
      'a search nested without end',
      tenantText.replace('"search":{}', `"search":{"a":${'['.repeat(99_999)}${']'.repeat(99_999)}}`),
    ],
  ])('with %s is refused', (_, text) => {
    expect(text).not.toBe(tenantText);
    expect(() => recordOf('tenant', text)).toThrow(malformed);
  });

  test.each([
    ['an unknown mask', agreementText.replace('"year"', '"month"')],
    ['an unknown history', agreementText.replace('"full"', '"half"')],
    ['an unknown state', agreementText.replace('"state":"proposed"', '"state":"open"')],
    ['a text for a flag', agreementText.replace('"onwardSharing":false', '"onwardSharing":"no"')],
    ['a number among types', agreementText.replace('["T"]', '[1]')],
    ['a text for types', agreementText.replace('["T"]', '"T"')],
    ['another’s members', tenantText],
    ['a member too many', agreementText.replace('"where":null', '"where":null,"zeal":1')],
  ])('of an agreement with %s is refused', (_, text) => {
    expect(text).not.toBe(agreementText);
    expect(() => recordOf('agreement', text)).toThrow(malformed);
  });

  test('may have a search as deep as JSON may be', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
    expect(isShallow(nested(64), 64)).toBe(true);
    expect(isShallow(nested(65), 64)).toBe(false);
    const deep = { ...tenant, search: nested(64) as TenantRecord['search'] };
    const body = { kind: 'tenant', change: 'changed', manner: null, tenant: deep } as const;
    expect(recordOf('tenant', recordText(body))).toEqual(body);
  });
});

describe('the version of a body', () => {
  const property: PropertyDefinition = {
    type: 'string',
    required: false,
    masked: false,
    indexed: false,
    subject: false,
    dims: 0,
  };
  const plain: TypeDefinition = {
    name: 'T',
    properties: { a: property, b: property },
    open: false,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 1,
  };
  /** As earlier releases wrote it: the fixed fields, and behind them what the version has. */
  const earlier = (version: number, body: FixedBody, more: readonly number[] = []): Uint8Array => {
    const target = new ByteWriter();
    target.u8(version);
    target.u8(kindNumber[body.kind]);
    encodeFixed(body, target);
    for (const byte of more) target.u8(byte);
    return target.take();
  };
  const typed = (definition: TypeDefinition): TypeBody => ({ kind: 'type', definition });
  const forked = { kind: 'branch', change: 'forked', name: 'b', source: 'main', shares: 'everything' } as const;
  const view = { kind: 'view', name: 'v', sql: '', refreshSecs: 0 } as const;
  const genesis = { kind: 'genesis', logId: '', origin: '', engineVersion: '' } as const;

  test('1 has the fixed fields of every kind', () => {
    const bytes = earlier(1, typed(plain));
    expect([...bytes.subarray(0, 7)]).toEqual([1, 5, 1, 0, 0, 0, 0x54]);
    for (const body of [typed(plain), forked, view, genesis]) expect(decodeBody(earlier(1, body)).body).toEqual(body);
  });

  test.each([
    ['protected', { ...plain, guard: { protected: true, accessScope: false } }, [1, 0, 0]],
    ['scoped', { ...plain, guard: { protected: false, accessScope: true } }, [2, 0, 0]],
    ['referring', { ...plain, properties: { a: property, b: { ...property, references: 'S' } } }, [0, 0, 1, 1, 0, 0, 0, 0x53]],
  ])('2 has what guards a type that is %s behind them, and 4 the same of a tenant’s', (_, definition, more) => {
    expect(decodeBody(earlier(2, typed(definition), more)).body).toEqual(typed(definition));
    expect(decodeBody(earlier(4, typed(definition), more)).body).toEqual({ ...typed(definition), own: true });
  });

  test('2 has of each access record what it stated', () => {
    const record: AccessRecord = {
      time: 1n,
      correlationId: 'c',
      principal: 'p',
      tenant: null,
      path: null,
      door: 'http',
      action: 'query',
      purpose: null,
      objectType: null,
      decision: 'allow',
      code: null,
      template: null,
      literalDigest: null,
      basis: 1n,
      rowCount: 0,
      costUnits: 0,
      durationMs: 0,
    };
    const body = { kind: 'access', records: [record, record] } as const;
    const stated = { breakGlass: 'x', accessScopeRef: null };
    const bytes = earlier(2, body, [0, 0, 1, 1, 0, 0, 0, 0x78, 0]);
    expect(decodeBody(bytes).body).toEqual({ kind: 'access', records: [record, { ...record, stated }] });
    expect(() => decodeBody(earlier(2, body, [0, 0, 0, 0]))).toThrow(malformed);
  });

  test('4 marks a branch that is a tenant’s, and the end of a view', () => {
    expect(decodeBody(earlier(4, forked)).body).toEqual({ ...forked, own: true });
    expect(decodeBody(earlier(4, view)).body).toEqual({ ...view, dropped: true });
  });

  test('any other is refused, and so is what a version does not have', () => {
    for (const bytes of [
      earlier(2, typed(plain), [0, 0, 0]),
      earlier(2, typed(plain), [4, 0, 0]),
      earlier(2, view),
      earlier(3, typed(plain)),
      earlier(4, genesis),
      earlier(5, typed(plain)),
      earlier(6, typed(plain), [0]),
    ]) {
      expect(() => decodeBody(bytes)).toThrow(malformed);
    }
  });

  test('what is written is 5: policies, tenants and agreements, whose numbers are 12, 13 and 14, are one text', () => {
    expect([kindNumber.policy, kindNumber.tenant, kindNumber.agreement]).toEqual([12, 13, 14]);
    const target = new ByteWriter();
    encodeBody({ kind: 'tenant', change: 'created', manner: null, tenant }, [], target);
    const bytes = Buffer.from(target.take());
    expect([...bytes.subarray(0, 2), bytes.at(-1)]).toEqual([5, 13, 0]);
    expect(bytes.subarray(6, -1).toString()).toBe(tenantText);
    expect(bytes.readUInt32LE(2)).toBe(bytes.length - 7);
  });
});
