/** Types that play a role to the functions of the domain, their own rows, and the hidden ones: the same ids, so that they would join. */
import type { Canaries } from './canaries.ts';

interface DomainType {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Columns of a hidden row that hold a canary; the others are those of the first row. */
  readonly hidden: readonly string[];
}

const text = 'string';

export const domainTypes: Readonly<Record<string, DomainType>> = {
  Account: {
    properties: {
      platform: text,
      handle: text,
      name: text,
      bio: text,
      followers: 'integer',
      phone: { type: text, masked: true },
    },
    rows: [
      {
        id: 'a1',
        platform: 'chat',
        handle: 'ann',
        name: 'Ann',
        bio: 'ann@example.org',
        followers: 900,
        phone: '+44 20 7946 0018',
      },
      { id: 'a2', platform: 'post', handle: 'ann', name: 'Ann B', bio: 'news', followers: 20_000, phone: '+44 20 7946 0019' },
    ],
    hidden: ['handle', 'name', 'bio', 'phone'],
  },
  Post: {
    properties: { account: text, platform: text, text, at: 'timestamp', object: text, reply_to: text },
    rows: [
      { id: 't1', account: 'a1', platform: 'chat', text: 'this is a good day', at: '2024-03-01', object: 'u1' },
      { id: 't2', account: 'a2', platform: 'post', text: 'this is a bad day', at: '2024-03-02', object: 'u1' },
    ],
    hidden: ['text', 'object'],
  },
  Ownership: {
    properties: { owner: text, owned: text, pct: 'number' },
    rows: [{ id: 'o1', owner: 'p1', owned: 'p2', pct: 60 }],
    hidden: ['owner'],
  },
  Listing: {
    properties: { name: text, kind: text, aliases: 'json', birth_date: text, country: text, program: text, list: text },
    rows: [{ id: 'l1', name: 'Robert Tomb', aliases: ['Bob Tomb'], program: 'test', list: 'one' }],
    hidden: ['name', 'program', 'list'],
  },
  Transfer: {
    properties: { from: text, to: text, amount: 'number', currency: text, at: 'timestamp', txid: text, channel: text },
    rows: [
      { id: 'f1', from: 'w1', to: 'w2', amount: 100, currency: 'EUR', at: '2024-03-01', txid: 'x1', channel: 'wire' },
      { id: 'f2', from: 'w2', to: 'w3', amount: 99, currency: 'EUR', at: '2024-03-02', txid: 'x2', channel: 'wire' },
    ],
    hidden: ['to', 'txid'],
  },
  Sighting: {
    properties: { subject: text, lat: 'number', lon: 'number', at: 'timestamp' },
    rows: [
      { id: 's1', subject: 'AB12 CDE', lat: 51.5, lon: -0.1, at: '2024-03-01T10:00:00Z' },
      { id: 's2', subject: 'AB12 CDE', lat: 51.6, lon: -0.1, at: '2024-03-01T11:00:00Z' },
    ],
    hidden: [],
  },
  Incident: {
    properties: { kind: text, lat: 'number', lon: 'number', at: 'timestamp', severity: 'number', mo: text, status: text },
    rows: [{ id: 'i1', kind: 'theft', lat: 51.5, lon: -0.1, at: '2024-03-01', severity: 0.5, mo: 'window', status: 'open' }],
    hidden: ['mo'],
  },
  Unit: {
    properties: { lat: 'number', lon: 'number', status: text },
    rows: [{ id: 'u1', lat: 51.5, lon: -0.2, status: 'free' }],
    hidden: [],
  },
  Case: {
    properties: { title: text, status: text, subjects: 'json' },
    rows: [{ id: 'k1', title: 'Pier', status: 'open', subjects: ['a1'] }],
    hidden: ['title'],
  },
  CaseNote: {
    properties: { case_id: text, text, author: text, exhibit_id: text },
    rows: [{ id: 'n1', case_id: 'k1', text: 'a red boat', author: 'ann' }],
    hidden: ['text', 'author'],
  },
  IdentityModel: {
    properties: { of_type: text, weights: 'json' },
    rows: [{ id: 'm1', of_type: 'Account', weights: { name: { m: 0.9, u: 0.01 } } }],
    hidden: ['of_type'],
  },
};

export const domainDefinitions: readonly object[] = Object.entries(domainTypes).map(([name, { properties }]) => ({
  name,
  primary_key: 'id',
  properties: { id: text, ...properties },
}));

/** By type, a row that only its owner may see. */
export function hiddenDomainRows(canaries: Canaries): readonly (readonly [string, Readonly<Record<string, unknown>>])[] {
  return Object.entries(domainTypes).map(([type, { rows, hidden }]) => {
    const cells = hidden.map((column) => [column, canaries.text('rows of the victim', `${type}.${column}`)]);
    return [type, { ...rows[0], id: 'x1', ...Object.fromEntries(cells) }];
  });
}
