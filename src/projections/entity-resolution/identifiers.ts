/**
 * Identifiers: what names a person, an account, a device or a thing outside of this store, brought to the one form in which two
 * writings of the same are equal. Pure: a value has the same forms in every process. Libraries are loaded when a value of
 * their kind is first looked at.
 */
import { createRequire } from 'node:module';
import { domainToASCII } from 'node:url';

/** In the order in which one wins over another where both fit a text. */
export const identifierKinds = [
  'phone',
  'email',
  'iban',
  'bic',
  'imei',
  'ip',
  'mac',
  'wallet',
  'card',
  'vin',
  'imo',
  'mmsi',
  'lei',
  'isin',
  'mrz',
  'domain',
] as const;

export type DetectedKind = (typeof identifierKinds)[number];

/** `plate` and `id` have no form of their own: only a column says that a text is one. */
export type IdentifierKind = DetectedKind | 'plate' | 'id';

export const declaredKinds: readonly IdentifierKind[] = [...identifierKinds, 'plate', 'id'];

/** Longer values name nothing. */
export const identifierLengthMax = 256;

/**
 * The one form of a value, or null where it is none of the kind: a check digit is wrong, or it has another shape. `region` is the
 * country (ISO 3166 alpha-2) that a phone number without a country code is of.
 */
export function canonicalIdentifier(kind: IdentifierKind, identifierText: string, region?: string): string | null {
  const trimmedIdentifier = identifierText.trim();
  if (trimmedIdentifier === '' || trimmedIdentifier.length > identifierLengthMax) return null;
  return identifierForms[kind](trimmedIdentifier, region);
}

/** How an index of identifiers names one: `phone +442079460018`. */
export function identifierForm(kind: IdentifierKind, canonical: string): string {
  return `${kind} ${canonical}`;
}

/** Every kind that a value is one of, with its form, in the order of the kinds. */
export function identifiersIn(identifierText: string, region?: string): readonly (readonly [IdentifierKind, string])[] {
  return declaredKinds.flatMap((kind) => {
    const form = canonicalIdentifier(kind, identifierText, region);
    return form === null ? [] : [[kind, form] as const];
  });
}

/** The kind that cells of a column of this name are, where they validate: `phone`, `home_phone` and `PhoneNumber` are phones. */
export function kindOfName(column: string): IdentifierKind | null {
  const columnWords = column
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  for (let i = columnWords.length - 1; i >= 0; i--) {
    const namedKind = namedKinds.get(columnWords[i]!);
    if (namedKind !== undefined) return namedKind;
  }
  return null;
}

const namedKinds: ReadonlyMap<string, IdentifierKind> = new Map([
  ...identifierKinds.map((kind) => [kind, kind] as const),
  ...(['tel', 'telephone', 'mobile', 'msisdn', 'fax', 'cell', 'whatsapp'] as const).map((name) => [name, 'phone'] as const),
  ...(['mail', 'emails'] as const).map((name) => [name, 'email'] as const),
  ['phones', 'phone'],
  ['swift', 'bic'],
  ['ipv4', 'ip'],
  ['ipv6', 'ip'],
  ['wallets', 'wallet'],
  ['pan', 'card'],
  ['passport', 'id'],
  ['plate', 'plate'],
  ['plates', 'plate'],
  ['licence', 'plate'],
  ['anpr', 'plate'],
  ['website', 'domain'],
  ['hostname', 'domain'],
]);

type IdentifierForm = (text: string, region?: string) => string | null;

const identifierForms: Readonly<Record<IdentifierKind, IdentifierForm>> = {
  phone: (text, region) => {
    if (!/^\+?[\d\s()./-]{5,30}(?:\s{0,3}(?:x|ext\.?)\s{0,3}\d{1,7})?$/i.test(text)) return null;
    const { parsePhoneNumberFromString } = phoneNumbers();
    const parsed = parsePhoneNumberFromString(text.replace(/^00(?=[1-9])/, '+'), phoneCountryOf(region));
    return parsed?.isValid() ? parsed.number : null;
  },
  email: (text) => {
    const match = /^(?:mailto:)?([a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64})@([^@\s]{3,253})$/i.exec(text);
    if (!match || /^\.|\.\.|\.$/.test(match[1]!)) return null;
    const host = hostFormOf(match[2]!);
    return host === null ? null : `${match[1]!.toLowerCase()}@${host}`;
  },
  iban: (text) => {
    const form = text.replaceAll(/[\s-]/g, '').toUpperCase();
    return /^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(form) && bankAccounts().isValidIBAN(form) ? form : null;
  },
  bic: (text) => {
    const form = text.toUpperCase();
    return /^[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/.test(form) && bankAccounts().isValidBIC(form)
      ? form.replace(/X{3}$/, '')
      : null;
  },
  imei: (text) => {
    const form = text.replaceAll(/[\s/.-]/g, '');
    // Numbers that begin with 34 or 37 are payment cards: no body that gives IMEI out has these numbers.
    return /^\d{15}$/.test(form) && !/^3[47]|^0{15}/.test(form) && isLuhn(form) ? form : null;
  },
  ip: (text) => {
    if (!/^[\da-f.:]{2,45}$/i.test(text)) return null;
    if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return isIpv4Address(text) ? text : null;
    const { IPv6 } = ipAddresses();
    if (!text.includes(':') || !IPv6.isValid(text)) return null;
    const parsed = IPv6.parse(text);
    return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : parsed.toRFC5952String();
  },
  mac: (text) => {
    const shape = /^(?:[\da-f]{2}([:-])(?:[\da-f]{2}\1){4}[\da-f]{2}|[\da-f]{4}\.[\da-f]{4}\.[\da-f]{4})$/i;
    if (!shape.test(text)) return null;
    const digits = text.replaceAll(/[:.-]/g, '').toLowerCase();
    return digits.match(/../g)!.join(':');
  },
  wallet: walletForm,
  card: (text) => {
    const form = text.replaceAll(/[\s-]/g, '');
    return /^\d{13,19}$/.test(form) && isIssued(form) && isLuhn(form) ? form : null;
  },
  vin: (text) => {
    const form = text.toUpperCase();
    return /^[A-HJ-NPR-Z\d]{8}[\dX][A-HJ-NPR-Z\d]{8}$/.test(form) && vinDigit(form) === form[8] ? form : null;
  },
  imo: (text) => {
    const [, form] = /^(?:imo[\s:#-]*)?(\d{7})$/i.exec(text) ?? [];
    if (form === undefined) return null;
    let sum = 0;
    for (let i = 0; i < 6; i++) sum += Number(form[i]) * (7 - i);
    return sum > 0 && sum % 10 === Number(form[6]) ? form : null;
  },
  mmsi: (text) => {
    const [, form] = /^(?:mmsi[\s:#-]*)?(\d{9})$/i.exec(text) ?? [];
    // Ships have a country code from 201 to 775.
    return form !== undefined && /^(?:2(?!00)|[3-6]|7[0-6]|77[0-5])/.test(form) ? form : null;
  },
  lei: (text) => {
    const form = text.toUpperCase();
    return /^[A-Z\d]{18}\d{2}$/.test(form) && /[A-Z]/.test(form) && leiRemainder97(form) === 1 ? form : null;
  },
  isin: (text) => {
    const form = text.toUpperCase();
    return /^[A-Z]{2}[A-Z\d]{9}\d$/.test(form) && isLuhn(form.replaceAll(/[A-Z]/g, (letter) => String(letterValue(letter))))
      ? form
      : null;
  },
  mrz: (text) => {
    const lines = text.toUpperCase().replaceAll(/\s+/g, '');
    return /^P[A-Z<][A-Z<]{42}[A-Z\d<]{9}\d[A-Z<]{3}\d{7}[MF<X]\d{7}[A-Z\d<]{14}[\d<]\d$/.test(lines) ? passportOf(lines) : null;
  },
  domain: (text) => (text.includes('@') || text.includes('/') ? null : hostFormOf(text)),
  plate: (text) => {
    const form = text
      .normalize('NFKC')
      .toUpperCase()
      .replaceAll(/[^\p{L}\p{N}]/gu, '');
    return /^(?=.*\p{N})[\p{L}\p{N}]{2,12}$/u.test(form) ? form : null;
  },
  id: (text) => text.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' '),
};

/** A host name in lower-case ASCII whose last label is a top-level domain; null for every other text. */
function hostFormOf(hostText: string): string | null {
  const asciiHost = domainToASCII(hostText.replace(/\.$/, '')).toLowerCase();
  if (asciiHost.length > 253 || !/^(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z\d-]{2,63}$/.test(asciiHost)) return null;
  const topLevelLabel = asciiHost.slice(asciiHost.lastIndexOf('.') + 1);
  return isTopLevel(topLevelLabel) ? asciiHost : null;
}

const topLevels: ReadonlySet<string> = new Set(
  (
    'com org net edu gov mil int info biz name pro aero coop museum mobi jobs travel tel asia cat post xxx arpa example test ' +
    'app dev page web site online store shop blog cloud tech xyz top club live life news media agency bank finance capital ' +
    'group global world london berlin paris amsterdam nyc tokyo email network systems solutions services digital studio design ' +
    'art music video games chat social space website host work company expert guru consulting legal law health care energy ' +
    'eu uk su'
  ).split(' '),
);

function isTopLevel(hostLabel: string): boolean {
  if (topLevels.has(hostLabel) || hostLabel.startsWith('xn--')) return true;
  return hostLabel.length === 2 && phoneNumbers().isSupportedCountry(hostLabel.toUpperCase());
}

function isIpv4Address(addressText: string): boolean {
  return addressText.split('.').every((addressByte) => Number(addressByte) <= 255 && String(Number(addressByte)) === addressByte);
}

/** Check digit by Luhn: every second digit from the right is doubled. */
function isLuhn(luhnDigits: string): boolean {
  let luhnSum = 0;
  for (let i = 0; i < luhnDigits.length; i++) {
    const luhnDigit = Number(luhnDigits[luhnDigits.length - 1 - i]);
    const weighedDigit = i % 2 === 0 ? luhnDigit : luhnDigit * 2;
    luhnSum += weighedDigit > 9 ? weighedDigit - 9 : weighedDigit;
  }
  return luhnSum % 10 === 0;
}

/** Numbers that payment cards begin with, by their lengths. */
export function isIssued(cardDigits: string): boolean {
  const { length: cardLength } = cardDigits;
  if (cardDigits.startsWith('4')) return cardLength === 13 || cardLength === 16 || cardLength === 19;
  if (/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/.test(cardDigits)) return cardLength === 16;
  if (/^3[47]/.test(cardDigits)) return cardLength === 15;
  if (/^3(?:0[0-5]|[689])/.test(cardDigits)) return cardLength >= 14;
  return /^(?:35|6011|62|64[4-9]|65|50|5[6-8]|6[0-9])/.test(cardDigits) && cardLength >= 16;
}

const vinWeights = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
const vinValues = '0123456789.ABCDEFGH..JKLMN.P.R..STUVWXYZ';

/** ISO 3779, North America: the ninth place. */
function vinDigit(vin: string): string {
  const vinSum = Array.from(vin).reduce((total, vinLetter, i) => total + (vinValues.indexOf(vinLetter) % 10) * vinWeights[i]!, 0);
  return '0123456789X'[vinSum % 11]!;
}

function letterValue(identifierLetter: string): number {
  return identifierLetter.charCodeAt(0) - 55;
}

/** ISO 7064: letters are two digits. */
function leiRemainder97(leiText: string): number {
  let remainderOf97 = 0;
  for (const letter of leiText)
    remainderOf97 = /\d/.test(letter)
      ? (remainderOf97 * 10 + Number(letter)) % 97
      : (remainderOf97 * 100 + letterValue(letter)) % 97;
  return remainderOf97;
}

/** Issuer and number of a passport (ICAO 9303, TD3), where its four check digits hold. */
function passportOf(mrzLines: string): string | null {
  const secondMrzLine = mrzLines.slice(44);
  const hasMrzDigit = (text: string, digit: string): boolean => (digit === '<' && /^<*$/.test(text)) || mrzDigit(text) === digit;
  const compositeMrz = secondMrzLine.slice(0, 10) + secondMrzLine.slice(13, 20) + secondMrzLine.slice(21, 43);
  const areMrzDigitsRight =
    hasMrzDigit(secondMrzLine.slice(0, 9), secondMrzLine[9]!) &&
    hasMrzDigit(secondMrzLine.slice(13, 19), secondMrzLine[19]!) &&
    hasMrzDigit(secondMrzLine.slice(21, 27), secondMrzLine[27]!) &&
    hasMrzDigit(secondMrzLine.slice(28, 42), secondMrzLine[42]!) &&
    mrzDigit(compositeMrz) === secondMrzLine[43];
  return areMrzDigitsRight ? (mrzLines.slice(2, 5) + secondMrzLine.slice(0, 9)).replaceAll('<', '') : null;
}

function mrzDigit(mrzText: string): string {
  const mrzSum = Array.from(mrzText).reduce((total, mrzLetter, i) => {
    const mrzValue = mrzLetter === '<' ? 0 : /\d/.test(mrzLetter) ? Number(mrzLetter) : letterValue(mrzLetter);
    return total + mrzValue * [7, 3, 1][i % 3]!;
  }, 0);
  return String(mrzSum % 10);
}

/** Versions of addresses by base58check, and prefixes of those by bech32. */
const base58Versions: ReadonlySet<number> = new Set([0x00, 0x05, 0x30, 0x32, 0x1e, 0x16, 0x41]);
const segwitPrefixes: ReadonlySet<string> = new Set(['bc', 'tb', 'ltc']);

function walletForm(walletText: string): string | null {
  if (/^0x[\da-f]{40}$/i.test(walletText)) {
    const walletDigits = walletText.slice(2);
    const checksummedDigits = mixedCaseWallet(walletDigits.toLowerCase());
    const hasOneCase = walletDigits === walletDigits.toLowerCase() || walletDigits === walletDigits.toUpperCase();
    return hasOneCase || walletDigits === checksummedDigits ? `0x${checksummedDigits}` : null;
  }
  if (/^(?:bc|tb|ltc)1[a-z\d]{11,87}$/i.test(walletText)) return segwitForm(walletText);
  return /^[1-9A-HJ-NP-Za-km-z]{26,35}$/.test(walletText) && isBase58Wallet(walletText) ? walletText : null;
}

/** EIP-55: a hexadecimal letter is upper-case where the hash of the digits has its highest bit set. */
function mixedCaseWallet(walletDigits: string): string {
  const { keccak_256: keccak, utf8ToBytes } = walletHashes();
  const walletHash = keccak(utf8ToBytes(walletDigits));
  return Array.from(walletDigits)
    .map((walletDigit, i) => ((walletHash[i >> 1]! >> (i % 2 === 0 ? 4 : 0)) & 8 ? walletDigit.toUpperCase() : walletDigit))
    .join('');
}

/** BIP 173 and 350: version 0 is written in bech32, those from 1 on in bech32m. */
function segwitForm(walletText: string): string | null {
  const { bech32, bech32m } = walletBases();
  for (const segwitCoder of [bech32, bech32m]) {
    const decodedSegwit = segwitCoder.decodeUnsafe(walletText as `${string}1${string}`, 90);
    if (!decodedSegwit || !segwitPrefixes.has(decodedSegwit.prefix)) continue;
    const [segwitVersion = 32, ...segwitWords] = decodedSegwit.words;
    const segwitProgram = segwitCoder.fromWordsUnsafe(segwitWords);
    if (!segwitProgram || segwitProgram.length < 2 || segwitProgram.length > 40 || segwitVersion > 16) continue;
    if (
      segwitVersion === 0
        ? segwitCoder === bech32 && (segwitProgram.length === 20 || segwitProgram.length === 32)
        : segwitCoder === bech32m
    ) {
      return walletText.toLowerCase();
    }
  }
  return null;
}

function isBase58Wallet(walletText: string): boolean {
  const { base58check, sha256 } = walletBases();
  try {
    const walletPayload = base58check(sha256).decode(walletText);
    return walletPayload.length === 21 && base58Versions.has(walletPayload[0]!);
  } catch {
    return false;
  }
}

type Phones = typeof import('libphonenumber-js/max');

const require = createRequire(import.meta.url);

let phoneLibrary: Phones | undefined;
function phoneNumbers(): Phones {
  return (phoneLibrary ??= require('libphonenumber-js/max') as Phones);
}

function phoneCountryOf(region: string | undefined): Parameters<Phones['parsePhoneNumberFromString']>[1] {
  return region?.toUpperCase() as Parameters<Phones['parsePhoneNumberFromString']>[1];
}

/** Whether a text is a country whose phone numbers are known (ISO 3166 alpha-2). */
export function isRegion(text: string): boolean {
  return phoneNumbers().isSupportedCountry(text.toUpperCase());
}

type Accounts = typeof import('ibantools');
let bankAccountLibrary: Accounts | undefined;
function bankAccounts(): Accounts {
  return (bankAccountLibrary ??= require('ibantools') as Accounts);
}

type Addresses = typeof import('ipaddr.js');
let ipAddressLibrary: Addresses | undefined;
function ipAddresses(): Addresses {
  return (ipAddressLibrary ??= require('ipaddr.js') as Addresses);
}

type Bases = Pick<typeof import('@scure/base'), 'base58check' | 'bech32' | 'bech32m'> &
  Pick<typeof import('@noble/hashes/sha2.js'), 'sha256'>;
let walletBaseLibrary: Bases | undefined;
function walletBases(): Bases {
  if (walletBaseLibrary !== undefined) return walletBaseLibrary;
  const { base58check, bech32, bech32m } = require('@scure/base') as typeof import('@scure/base');
  const { sha256 } = require('@noble/hashes/sha2.js') as typeof import('@noble/hashes/sha2.js');
  return (walletBaseLibrary = { base58check, bech32, bech32m, sha256 });
}

type Hashes = Pick<typeof import('@noble/hashes/sha3.js'), 'keccak_256'> &
  Pick<typeof import('@noble/hashes/utils.js'), 'utf8ToBytes'>;
let walletHashLibrary: Hashes | undefined;
function walletHashes(): Hashes {
  if (walletHashLibrary !== undefined) return walletHashLibrary;
  const { keccak_256 } = require('@noble/hashes/sha3.js') as typeof import('@noble/hashes/sha3.js');
  const { utf8ToBytes } = require('@noble/hashes/utils.js') as typeof import('@noble/hashes/utils.js');
  return (walletHashLibrary = { keccak_256, utf8ToBytes });
}
