import { describe, expect, test } from 'vitest';
import { decodeBody, encodeBody, kindNumber } from '../../../src/log/entries/body-codec.ts';
import { ByteWriter } from '../../../src/log/bytes/byte-stream.ts';
import type {
  AgreementRecord,
  EntryBody,
  PropertyDefinition,
  TenantRecord,
  TypeDefinition,
} from '../../../src/log/entries/entry.ts';
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
  const encoded = (body: EntryBody): Uint8Array => {
    const target = new ByteWriter();
    encodeBody(body, null, target);
    return target.take();
  };
  const typed = (definition: TypeDefinition): Uint8Array => encoded({ kind: 'type', definition });

  test('is 1 for a type that has neither guard nor reference', () => {
    const bytes = typed(plain);
    expect([...bytes.subarray(0, 7)]).toEqual([1, 5, 1, 0, 0, 0, 0x54]);
  });

  test.each([
    ['protected', { ...plain, guard: { protected: true, accessScope: false } }, [1, 0, 0]],
    ['scoped', { ...plain, guard: { protected: false, accessScope: true } }, [2, 0, 0]],
    ['referring', { ...plain, properties: { a: property, b: { ...property, references: 'S' } } }, [0, 0, 1, 1, 0, 0, 0, 0x53]],
  ])('is 2 for a type that is %s, and what is new follows what version 1 has', (_, definition, more) => {
    const bytes = typed(definition);
    expect(bytes[0]).toBe(2);
    expect([...bytes.subarray(1, -more.length)]).toEqual([...typed(plain).subarray(1)]);
    expect([...bytes.subarray(-more.length)]).toEqual(more);
    expect(decodeBody(bytes).body).toEqual({ kind: 'type', definition });
  });

  test('2 is refused where nothing is guarded, with a guard of unknown kind, and for anything but a type', () => {
    const bare = Uint8Array.from([...typed(plain), 0, 0, 0]).fill(2, 0, 1);
    expect(() => decodeBody(bare)).toThrow(malformed);
    const unknown = Uint8Array.from([...typed(plain), 4, 0, 0]).fill(2, 0, 1);
    expect(() => decodeBody(unknown)).toThrow(malformed);
    const view = encoded({ kind: 'view', name: 'v', sql: 's', refreshSecs: 1 }).fill(2, 0, 1);
    expect(() => decodeBody(view)).toThrow(malformed);
    expect(() => decodeBody(typed(plain).fill(3, 0, 1))).toThrow(malformed);
  });

  test('4 is that of names that are a tenant’s, and of the end of a view; nothing else has it', () => {
    const forked = { kind: 'branch', change: 'forked', name: 'b', source: 'main', shares: 'everything' } as const;
    const view = { kind: 'view', name: 'v', sql: '', refreshSecs: 0 } as const;
    const guarded = { ...plain, guard: { protected: true, accessScope: false } };
    for (const [body, marked] of [
      [forked, { ...forked, own: true }],
      [view, { ...view, dropped: true }],
    ] as const) {
      const bytes = encoded(marked);
      expect([encoded(body)[0], bytes[0]]).toEqual([1, 4]);
      expect(bytes.subarray(1)).toEqual(encoded(body).subarray(1));
      expect([decodeBody(encoded(body)).body, decodeBody(bytes).body]).toEqual([body, marked]);
    }
    for (const definition of [plain, guarded]) {
      const bytes = encoded({ kind: 'type', definition, own: true });
      expect([bytes[0], decodeBody(bytes).body]).toEqual([4, { kind: 'type', definition, own: true }]);
    }
    const genesis = encoded({ kind: 'genesis', logId: '', origin: '', engineVersion: '' }).fill(4, 0, 1);
    expect(() => decodeBody(genesis)).toThrow(malformed);
  });

  test('1 is that of policies, tenants and agreements, whose numbers are 12, 13 and 14', () => {
    expect([kindNumber.policy, kindNumber.tenant, kindNumber.agreement]).toEqual([12, 13, 14]);
    const bytes = encoded({ kind: 'tenant', change: 'created', manner: null, tenant });
    expect([...bytes.subarray(0, 2)]).toEqual([1, 13]);
    expect(Buffer.from(bytes.subarray(6)).toString()).toBe(tenantText);
    expect(Buffer.from(bytes).readUInt32LE(2)).toBe(bytes.length - 6);
  });
});
