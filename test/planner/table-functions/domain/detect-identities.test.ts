/** DETECT_IDENTITIES and the forms of identifiers, by numbers that their standards and issuers give as examples. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { detectIdentifiers } from '../../../../src/projections/entity-resolution/detect.ts';
import {
  canonicalIdentifier,
  identifiersIn,
  type IdentifierKind,
  kindOfName,
} from '../../../../src/projections/entity-resolution/identifiers.ts';
import { TestStore } from '../../../harness.ts';

const passport = 'P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10';

/** Two writings, and the form of both; a third that differs in one character is none. */
const examples: readonly (readonly [IdentifierKind, string, string, string, string])[] = [
  ['phone', '+44 20 7946 0018', '0044 (20) 7946-0018', '+442079460018', '+44 20 7946 001'],
  ['email', 'Ann.Lee@Example.ORG', 'mailto:ann.lee@example.org', 'ann.lee@example.org', 'ann..lee@example.org'],
  ['iban', 'GB29 NWBK 6016 1331 9268 19', 'gb29nwbk60161331926819', 'GB29NWBK60161331926819', 'GB29NWBK60161331926818'],
  ['bic', 'DEUTDEFF', 'deutdeffxxx', 'DEUTDEFF', 'DEUTQQFF'],
  ['imei', '490154203237518', '49-015420-323751-8', '490154203237518', '490154203237517'],
  ['ip', '2001:DB8::0:1', '2001:db8:0:0:0:0:0:1', '2001:db8::1', '2001:db8::1::2'],
  ['ip', '192.0.2.7', '::ffff:192.0.2.7', '192.0.2.7', '192.0.2.256'],
  ['mac', '00-1A-2B-3C-4D-5E', '001a.2b3c.4d5e', '00:1a:2b:3c:4d:5e', '00-1A-2B-3C-4D-5'],
  [
    'wallet',
    '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  ],
  [
    'wallet',
    'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5',
  ],
  [
    'wallet',
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
    ' 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa ',
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb',
  ],
  ['card', '4111 1111 1111 1111', '4111-1111-1111-1111', '4111111111111111', '4111 1111 1111 1112'],
  ['vin', '1M8GDM9AXKP042788', '1m8gdm9axkp042788', '1M8GDM9AXKP042788', '1M8GDM9A1KP042788'],
  ['imo', 'IMO 9074729', '9074729', '9074729', 'IMO 9074728'],
  ['mmsi', 'MMSI 366123456', '366123456', '366123456', '866123456'],
  ['lei', '529900T8BM49AURSDO55', '529900t8bm49aursdo55', '529900T8BM49AURSDO55', '529900T8BM49AURSDO56'],
  ['isin', 'US0378331005', 'us0378331005', 'US0378331005', 'US0378331006'],
  ['mrz', passport, passport.replace('\n', ' '), 'UTOL898902C3', passport.replace('7408122', '7408123')],
  ['domain', 'WWW.Example.com.', 'www.example.com', 'www.example.com', 'www.example.nosuch'],
  ['plate', 'ab12 cde', 'AB-12-CDE', 'AB12CDE', 'no plate'],
];

test.each(examples)('%s: %s', (kind, one, other, form, wrong) => {
  expect([one, other].map((value) => canonicalIdentifier(kind, value))).toEqual([form, form]);
  // The form of a passport is its issuer and number, without the lines.
  if (kind !== 'mrz') expect(canonicalIdentifier(kind, form)).toBe(form);
  expect(canonicalIdentifier(kind, wrong)).toBeNull();
});

test('a bech32m address, a national number with its country, an address of another script', () => {
  const taproot = 'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0';
  expect(canonicalIdentifier('wallet', taproot)).toBe(taproot);
  expect(canonicalIdentifier('phone', '020 7946 0018')).toBeNull();
  expect(canonicalIdentifier('phone', '020 7946 0018', 'gb')).toBe('+442079460018');
  expect(canonicalIdentifier('email', 'ann@bücher.de')).toBe('ann@xn--bcher-kva.de');
});

test('a value may be several kinds; names of columns say which one is meant', () => {
  expect(identifiersIn('490154203237518').map(([kind]) => kind)).toEqual(['imei', 'id']);
  const named = ['phone', 'home_phone', 'PhoneNumber', 'E-Mail', 'swift_code', 'srcIp', 'number_plate', 'name', 'recipient'];
  expect(named.map(kindOfName)).toEqual(['phone', 'phone', 'phone', 'email', 'bic', 'ip', 'plate', null, null]);
});

function found(text: string, region?: string): string[] {
  const steps = detectIdentifiers(text, region);
  for (let step = steps.next(); ; step = steps.next()) {
    if (!step.done) continue;
    for (const { value, start, end } of step.value) expect(Array.from(text).slice(start, end).join('')).toBe(value);
    const starts = step.value.map(({ start }) => start);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    return step.value.map(({ kind, canonical, value }) => `${kind} ${canonical ?? `(${value})`}`);
  }
}

describe('in a text', () => {
  test.each<[string, readonly string[]]>([
    ['', []],
    ['call +44 20 7946 0018 or mail Ann@example.org.', ['phone +442079460018', 'email ann@example.org']],
    ['😀 IBAN GB29 NWBK 6016 1331 9268 19 at DEUTDEFF', ['iban GB29NWBK60161331926819', 'bic DEUTDEFF']],
    ['GB29 NWBK 6016 1331 9268 18', ['iban (GB29 NWBK 6016 1331 9268 18)']],
    ['THIS IS ABSOLUTE NONSENSE', []],
    ['card 4111 1111 1111 1111, 4111 1111 1111 1112', ['card 4111111111111111', 'card (4111 1111 1111 1112)']],
    ['phone 490154203237518 from 192.0.2.7 and fe80::1', ['imei 490154203237518', 'ip 192.0.2.7', 'ip fe80::1']],
    ['on 2024-03-01 at 10:20:30, version 1.2.3', []],
    ['see https://www.example.org/path, file.txt and e.g. this', ['domain www.example.org']],
    ['from 00:1a:2b:3c:4d:5e', ['mac 00:1a:2b:3c:4d:5e']],
    ['IMO 9074729, MMSI: 366123456', ['imo 9074729', 'mmsi 366123456']],
    [
      'VIN 1M8GDM9AXKP042788 of 529900T8BM49AURSDO55 US0378331005',
      ['vin 1M8GDM9AXKP042788', 'lei 529900T8BM49AURSDO55', 'isin US0378331005'],
    ],
    [passport, ['mrz UTOL898902C3']],
    ['1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', ['wallet 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa']],
  ])('%s', (text, expected) => {
    expect(found(text)).toEqual(expected);
  });

  test('a national number is one of the region that is named', () => {
    expect(found('ring 020 7946 0018 today')).toEqual([]);
    expect(found('ring 020 7946 0018 today', 'GB')).toEqual(['phone +442079460018']);
    expect(found('020 7946 0018 020 7946 0019', 'GB')).toEqual(['phone +442079460018', 'phone +442079460019']);
  });
});

describe('as a function', () => {
  let store: TestStore;
  beforeAll(async () => {
    store = await TestStore.open();
  });
  afterAll(() => store.close());

  test('has a row for each', async () => {
    expect(await store.rows("SELECT * FROM DETECT_IDENTITIES('x@example.org')")).toEqual([
      {
        nodeId: null,
        type: null,
        kind: 'email',
        value: 'x@example.org',
        canonical: 'x@example.org',
        start: 0n,
        end: 13n,
        valid: true,
        score: 1,
        method: 'identifiers/1',
        evidence: '{"check":"form","kind":"email"}',
      },
    ]);
    const rows = await store.rows("SELECT * FROM DETECT_IDENTITIES('020 7946 0018', 'GB') WHERE valid");
    expect(rows.map((row) => row['canonical'])).toEqual(['+442079460018']);
  });

  test.each([
    ['DETECT_IDENTITIES()', 'TEXT'],
    ['DETECT_IDENTITIES(5)', 'TEXT'],
    ["DETECT_IDENTITIES('x', REGION => 'Atlantis')", 'REGION'],
  ])('%s', async (sql, named) => {
    expect(await store.refusal(sql)).toMatchObject({ code: 'REL_INVALID', message: expect.stringContaining(named) });
  });
});
