/**
 * Documents as they are stored: JSON, and canonical Extended JSON where JSON alone loses the type. Whole numbers of 32 bits and fractions
 * stand bare; all else that is no text, list or object of JSON is an object of one `$` member. Members keep their order, and numbers
 * their digits. Reading and writing are steps, since a document may be long.
 */
import { ServiceError } from '../../../errors.ts';
import { allAtOnce, type Steps } from '../resumable-steps.ts';
import { doubleValue, isInt32 } from './document-numbers.ts';
import { asSpecial, Decimal, Double, isList, isObject, Special, type Stored, type StoredObject } from './document-values.ts';

const jsonValuesPerStep = 4_000;

const invalidJson = (): ServiceError => new ServiceError('REL_INVALID', 'this is no JSON');

/** Counts the work of a step; true: it did enough. */
export class Pace {
  #valuesLeftInStep = jsonValuesPerStep;

  spend(jsonValueCount = 1): boolean {
    this.#valuesLeftInStep -= jsonValueCount;
    if (this.#valuesLeftInStep > 0) return false;
    this.#valuesLeftInStep = jsonValuesPerStep;
    return true;
  }
}

type OpenJsonValue = { readonly list: Stored[] } | { readonly map: Map<string, Stored>; name: string };

/** Most levels of a stored document. Other doors may write deeper documents than the document door does. */
const jsonLevelsMax = 1_000;
const jsonNumber = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const jsonSpace = /[ \t\n\r]*/y;

const jsonChar = {
  quote: 34,
  comma: 44,
  colon: 58,
  listOpens: 91,
  listCloses: 93,
  objectOpens: 123,
  objectCloses: 125,
} as const;

class JsonReader {
  readonly #jsonText: string;
  #jsonOffset = 0;
  /** The first backslash at or behind the current position. */
  #nextEscape = -1;

  constructor(text: string) {
    this.#jsonText = text;
  }

  /** Next character that is no space; it is not taken. */
  peek(): number {
    let charCode = this.#jsonText.charCodeAt(this.#jsonOffset);
    if (charCode > 32) return charCode;
    jsonSpace.lastIndex = this.#jsonOffset;
    jsonSpace.test(this.#jsonText);
    this.#jsonOffset = jsonSpace.lastIndex;
    charCode = this.#jsonText.charCodeAt(this.#jsonOffset);
    return charCode;
  }

  take(code: number): boolean {
    if (this.peek() !== code) return false;
    this.#jsonOffset++;
    return true;
  }

  string(): string {
    if (!this.take(jsonChar.quote)) throw invalidJson();
    const stringStart = this.#jsonOffset;
    let stringEnd = this.#jsonText.indexOf('"', stringStart);
    let hasNoEscapes = true;
    for (
      let escapeOffset = this.#escapeOffset(stringStart);
      escapeOffset < stringEnd;
      escapeOffset = this.#escapeOffset(escapeOffset + 2)
    ) {
      hasNoEscapes = false;
      if (escapeOffset + 1 === stringEnd) stringEnd = this.#jsonText.indexOf('"', stringEnd + 1);
    }
    if (stringEnd < 0) throw invalidJson();
    this.#jsonOffset = stringEnd + 1;
    if (hasNoEscapes) return this.#jsonText.slice(stringStart, stringEnd);
    try {
      return JSON.parse(this.#jsonText.slice(stringStart - 1, stringEnd + 1)) as string;
    } catch {
      throw invalidJson();
    }
  }

  /** Place of the first backslash from there on; the text is searched for each once. */
  #escapeOffset(start: number): number {
    if (this.#nextEscape >= start) return this.#nextEscape;
    const escapeStart = this.#jsonText.indexOf('\\', start);
    this.#nextEscape = escapeStart < 0 ? Number.POSITIVE_INFINITY : escapeStart;
    return this.#nextEscape;
  }

  name(): string {
    const fieldName = this.string();
    if (!this.take(jsonChar.colon)) throw invalidJson();
    return fieldName;
  }

  /** A value that holds no others. */
  scalar(): Stored {
    const charCode = this.peek();
    if (charCode === jsonChar.quote) return this.string();
    for (const [jsonWord, scalarValue] of jsonWords) {
      if (this.#jsonText.startsWith(jsonWord, this.#jsonOffset)) {
        this.#jsonOffset += jsonWord.length;
        return scalarValue;
      }
    }
    jsonNumber.lastIndex = this.#jsonOffset;
    const numberMatch = jsonNumber.exec(this.#jsonText);
    if (numberMatch === null) throw invalidJson();
    const [text, fraction, exponent] = numberMatch;
    this.#jsonOffset += text.length;
    if (fraction !== undefined || exponent !== undefined) return doubleValue(Number(text));
    const value = Number(text);
    if (isInt32(value)) return value;
    if (Object.is(value, -0)) return value;
    const wholeNumber = BigInt(text);
    return wholeNumber === BigInt.asIntN(64, wholeNumber) ? wholeNumber : doubleValue(value);
  }
}

const jsonWords: readonly (readonly [string, Stored])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
];

export function* readSteps(text: string): Steps<Stored> {
  const jsonReader = new JsonReader(text);
  const readPace = new Pace();
  const openValues: OpenJsonValue[] = [];
  for (;;) {
    if (readPace.spend()) yield;
    let storedValue: Stored;
    const charCode = jsonReader.peek();
    if (charCode === jsonChar.objectOpens && jsonReader.take(charCode)) {
      if (openValues.length === jsonLevelsMax) throw invalidJson();
      if (!jsonReader.take(jsonChar.objectCloses)) {
        openValues.push({ map: new Map(), name: jsonReader.name() });
        continue;
      }
      storedValue = new Map();
    } else if (charCode === jsonChar.listOpens && jsonReader.take(charCode)) {
      if (openValues.length === jsonLevelsMax) throw invalidJson();
      if (!jsonReader.take(jsonChar.listCloses)) {
        openValues.push({ list: [] });
        continue;
      }
      storedValue = [];
    } else storedValue = jsonReader.scalar();
    for (;;) {
      const openValue = openValues.at(-1);
      if (openValue === undefined) {
        if (!Number.isNaN(jsonReader.peek())) throw invalidJson();
        return storedValue;
      }
      if ('list' in openValue) {
        openValue.list.push(storedValue);
        if (jsonReader.take(jsonChar.comma)) break;
        if (!jsonReader.take(jsonChar.listCloses)) throw invalidJson();
        storedValue = openValue.list;
      } else {
        openValue.map.set(openValue.name, storedValue);
        if (jsonReader.take(jsonChar.comma)) {
          openValue.name = jsonReader.name();
          break;
        }
        if (!jsonReader.take(jsonChar.objectCloses)) throw invalidJson();
        storedValue = unwrapExtended(openValue.map);
      }
      openValues.pop();
    }
  }
}

/** Throws a ServiceError for text that is not JSON. */
export const readText = (text: string): Stored => allAtOnce(readSteps(text));

/** Reads an Extended JSON wrapper as the value that it encodes. Objects that only resemble a wrapper stay objects. */
function unwrapExtended(object: StoredObject): Stored {
  if (object.size > 2) return object;
  const [[extendedName, extendedValue] = ['', null], secondField] = object;
  if (!extendedName.startsWith('$')) return object;
  if (secondField === undefined)
    return (Object.hasOwn(extendedReaders, extendedName) ? extendedReaders[extendedName]!(extendedValue) : null) ?? object;
  if (extendedName === '$code' && typeof extendedValue === 'string' && secondField[0] === '$scope' && isObject(secondField[1]))
    return new Special('$scope', { code: extendedValue, scope: secondField[1] });
  return object;
}

const isTextValue = (extendedValue: Stored | undefined): extendedValue is string => typeof extendedValue === 'string';
const wholeNumberOf = (extendedValue: Stored | undefined): bigint | null =>
  isTextValue(extendedValue) && /^-?\d{1,19}$/.test(extendedValue) ? BigInt(extendedValue) : null;
const fitting = (value: bigint | null, bits: number): bigint | null =>
  value !== null && value === BigInt.asIntN(bits, value) ? value : null;
const timestampPart = (extendedValue: Stored | undefined): bigint | null => {
  const isWhole = typeof extendedValue === 'bigint' || (typeof extendedValue === 'number' && isInt32(extendedValue));
  return isWhole && extendedValue >= 0 && extendedValue <= 0xffff_ffff ? BigInt(extendedValue) : null;
};
const onlyKey = <N extends '$minKey' | '$maxKey'>(keyName: N, extendedValue: Stored): Special | null =>
  extendedValue === 1 ? new Special(keyName, 1) : null;

/** Readers of wrappers, by name; null: the object only resembles one. */
const extendedReaders: Readonly<Record<string, (inner: Stored) => Stored | null>> = {
  $numberInt: (extendedValue) => {
    const int32 = fitting(wholeNumberOf(extendedValue), 32);
    return int32 === null ? null : Number(int32);
  },
  $numberLong: (extendedValue) => fitting(wholeNumberOf(extendedValue), 64),
  $numberDouble: (extendedValue) =>
    isTextValue(extendedValue) && (extendedValue === 'NaN' || !Number.isNaN(Number(extendedValue)))
      ? doubleValue(Number(extendedValue))
      : null,
  $numberDecimal: (extendedValue) => (isTextValue(extendedValue) ? Decimal.parse(extendedValue) : null),
  $oid: (extendedValue) =>
    isTextValue(extendedValue) && /^[0-9a-f]{24}$/.test(extendedValue) ? new Special('$oid', extendedValue) : null,
  $date: (extendedValue) => {
    if (isTextValue(extendedValue))
      return Number.isNaN(Date.parse(extendedValue)) ? null : new Special('$date', BigInt(Date.parse(extendedValue)));
    // A $numberLong within is read before its wrapper.
    return typeof extendedValue === 'bigint' ? new Special('$date', extendedValue) : null;
  },
  $timestamp: (extendedValue) => {
    if (!isObject(extendedValue)) return null;
    const [timestampSeconds, i] = [timestampPart(extendedValue.get('t')), timestampPart(extendedValue.get('i'))];
    return timestampSeconds === null || i === null || extendedValue.size !== 2
      ? null
      : new Special('$timestamp', (timestampSeconds << 32n) | i);
  },
  $binary: (extendedValue) => {
    if (!isObject(extendedValue)) return null;
    const [binaryBase64, subType] = [extendedValue.get('base64'), extendedValue.get('subType')];
    if (!isTextValue(binaryBase64) || !isTextValue(subType) || !/^[0-9a-f]{1,2}$/i.test(subType)) return null;
    return new Special('$binary', { bytes: Buffer.from(binaryBase64, 'base64'), type: Number.parseInt(subType, 16) });
  },
  $regularExpression: (extendedValue) => {
    if (!isObject(extendedValue)) return null;
    const [pattern, options] = [extendedValue.get('pattern'), extendedValue.get('options')];
    return isTextValue(pattern) && isTextValue(options) ? new Special('$regularExpression', { pattern, options }) : null;
  },
  $code: (extendedValue) => (isTextValue(extendedValue) ? new Special('$code', extendedValue) : null),
  $dbPointer: (extendedValue) => {
    if (!isObject(extendedValue)) return null;
    const dbPointerOid = asSpecial(extendedValue.get('$id'), '$oid');
    const dbPointerRef = extendedValue.get('$ref');
    return isTextValue(dbPointerRef) && dbPointerOid !== null && extendedValue.size === 2
      ? new Special('$dbPointer', { ref: dbPointerRef, oid: dbPointerOid })
      : null;
  },
  $symbol: (extendedValue) => (isTextValue(extendedValue) ? new Special('$symbol', extendedValue) : null),
  $undefined: (extendedValue) => (extendedValue === true ? new Special('$undefined', true) : null),
  $minKey: (inner) => onlyKey('$minKey', inner),
  $maxKey: (inner) => onlyKey('$maxKey', inner),
};

/** Names that stand for values of other types, and can't be those of members. */
export const wrapperNames: ReadonlySet<string> = new Set(Object.keys(extendedReaders));

function jsonNumberText(value: number): string {
  if (isInt32(value)) return String(value);
  if (Number.isFinite(value) && !Number.isInteger(value)) return String(value);
  return `{"$numberDouble":"${Object.is(value, -0) ? '-0.0' : doubleText(value)}"}`;
}

const doubleText = (value: number): string =>
  Number.isInteger(value) && !/e/.test(String(value)) ? `${value}.0` : String(value);

/** Characters of a text that are written as quickly as a value is. */
const charactersPerValue = 256;
/** A longer text is written in pieces. */
const jsonPieceCharacters = charactersPerValue * jsonValuesPerStep;

function* longStringSteps(longString: string): Steps<string> {
  let jsonText = '"';
  for (let pieceStart = 0, pieceEnd = 0; pieceStart < longString.length; pieceStart = pieceEnd) {
    if (pieceStart > 0) yield;
    pieceEnd = Math.min(pieceStart + jsonPieceCharacters, longString.length);
    // No character is cut in two.
    if (pieceEnd < longString.length && (longString.charCodeAt(pieceEnd - 1) & 0xfc00) === 0xd800) pieceEnd--;
    jsonText += JSON.stringify(longString.slice(pieceStart, pieceEnd)).slice(1, -1);
  }
  return `${jsonText}"`;
}

/** The text of a value that holds no others; undefined: it does. */
function jsonScalarText(storedValue: Stored): string | undefined {
  if (storedValue === null) return 'null';
  if (typeof storedValue === 'string') return JSON.stringify(storedValue);
  if (typeof storedValue === 'number') return jsonNumberText(storedValue);
  if (typeof storedValue === 'boolean') return String(storedValue);
  if (typeof storedValue === 'bigint') return `{"$numberLong":"${storedValue}"}`;
  if (storedValue instanceof Double) return `{"$numberDouble":"${doubleText(storedValue.value)}"}`;
  if (storedValue instanceof Decimal) return `{"$numberDecimal":"${storedValue.text}"}`;
  if (storedValue instanceof Special) return storedValue.is('$scope') ? undefined : extendedText(storedValue);
  return undefined;
}

function extendedText(specialValue: Special): string {
  if (specialValue.is('$date')) return `{"$date":{"$numberLong":"${specialValue.inner}"}}`;
  if (specialValue.is('$timestamp'))
    return `{"$timestamp":{"t":${specialValue.inner >> 32n},"i":${specialValue.inner & 0xffff_ffffn}}}`;
  if (specialValue.is('$binary')) {
    const base64 = Buffer.from(specialValue.inner.bytes).toString('base64');
    return `{"$binary":{"base64":"${base64}","subType":"${specialValue.inner.type.toString(16).padStart(2, '0')}"}}`;
  }
  if (specialValue.is('$dbPointer'))
    return `{"$dbPointer":{"$ref":${JSON.stringify(specialValue.inner.ref)},"$id":{"$oid":"${specialValue.inner.oid}"}}}`;
  if (specialValue.is('$regularExpression')) {
    const { pattern, options } = specialValue.inner;
    return `{"$regularExpression":{"pattern":${JSON.stringify(pattern)},"options":${JSON.stringify(options)}}}`;
  }
  return `{"${specialValue.name}":${JSON.stringify(specialValue.inner)}}`;
}

export function* textSteps(root: Stored): Steps<string> {
  const writePace = new Pace();
  const openContainers: {
    readonly members: Iterator<readonly [string | null, Stored]>;
    readonly end: string;
    isFirst: boolean;
  }[] = [];
  const jsonPieces = new JsonTextPieces();
  let jsonText = '';
  let storedValue = root;
  for (;;) {
    const isLongString = typeof storedValue === 'string' && storedValue.length > jsonPieceCharacters;
    const scalarJson = isLongString ? yield* longStringSteps(storedValue as string) : jsonScalarText(storedValue);
    if (writePace.spend(1 + (scalarJson?.length ?? 0) / charactersPerValue)) yield;
    if (scalarJson !== undefined) jsonText += scalarJson;
    else if (isList(storedValue)) {
      jsonText += '[';
      openContainers.push({ members: listMembers(storedValue), end: ']', isFirst: true });
    } else if (isObject(storedValue)) {
      const [firstField] = storedValue.keys();
      // A stored object of this shape would be read as a wrapped value.
      if (firstField !== undefined && wrapperNames.has(firstField))
        throw new ServiceError('REL_INVALID', `unknown operator: ${firstField}`);
      jsonText += '{';
      openContainers.push({ members: storedValue.entries(), end: '}', isFirst: true });
    } else {
      const { code, scope } = asSpecial(storedValue, '$scope')!;
      jsonText += `{"$code":${JSON.stringify(code)}`;
      openContainers.push({ members: [['$scope', scope] as const].values(), end: '}', isFirst: false });
    }
    for (;;) {
      if (jsonText.length > jsonPieceCharacters) {
        jsonPieces.add(jsonText);
        jsonText = '';
      }
      const openContainer = openContainers.at(-1);
      if (openContainer === undefined) return jsonPieces.join(jsonText);
      const nextMember = openContainer.members.next();
      if (nextMember.done !== true) {
        const [memberName, member] = nextMember.value;
        if (!openContainer.isFirst) jsonText += ',';
        openContainer.isFirst = false;
        if (memberName !== null) jsonText += `${JSON.stringify(memberName)}:`;
        storedValue = member;
        break;
      }
      jsonText += openContainer.end;
      openContainers.pop();
    }
  }
}

/**
 * Collects a long text from pieces. V8 keeps a concatenation as a tree until a character is read, and then flattens it in one go;
 * joining here flattens each piece by itself.
 */
class JsonTextPieces {
  readonly #jsonPieces: string[] = [];

  add(jsonPiece: string): void {
    jsonPiece.charCodeAt(0);
    this.#jsonPieces.push(jsonPiece);
  }

  join(lastPiece: string): string {
    if (this.#jsonPieces.length === 0) return lastPiece;
    this.add(lastPiece);
    return this.#jsonPieces.join('');
  }
}

function* listMembers(list: readonly Stored[]): Generator<readonly [null, Stored], undefined, undefined> {
  for (const listElement of list) yield [null, listElement];
  return undefined;
}

export const textOf = (value: Stored): string => allAtOnce(textSteps(value));
