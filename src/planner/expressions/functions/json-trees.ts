/**
 * JSON as jsonb has it: members by name, of two by one name the last, in the order of the lengths of their names in bytes; numbers
 * keep all of their digits. What is made here is written as PostgreSQL writes jsonb.
 */
import { withoutTrailing } from '../../../log/values/trim-end.ts';
import { spend } from '../expression-cost.ts';
import { elements, member } from './json.ts';
import { checkLength, invalid, outOfRange } from './scalar-function.ts';

/** A number by its digits: no double holds them all. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Json = null | boolean | string | JsonNumber | Json[] | Map<string, Json>;

/** Nanoseconds that a character takes to be read. */
const jsonTreeReadCost = 20;
const jsonTreeLevelsMax = 1_000;

/** Throws REL_INVALID for text that is no JSON. */
export function readJson(text: string): Json {
  spend(text.length * jsonTreeReadCost);
  const jsonTreeReader = new JsonTreeReader(text);
  const jsonTree = jsonTreeReader.value(0);
  if (!jsonTreeReader.isAtEnd()) throw malformedJson();
  return jsonTree;
}

const malformedJson = (): Error => invalid('this text is no JSON', 'text-form');

const jsonSpace = /[ \t\n\r]*/y;
/** Without escapes; control characters must have one. */
const plainJsonString = /"([ !#-[\]-\u{10ffff}]*)"/uy;
const anyJsonString = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const jsonNumberForm = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const jsonWordForm = /true|false|null/y;

class JsonTreeReader {
  readonly #jsonText: string;
  #jsonOffset = 0;

  constructor(text: string) {
    this.#jsonText = text;
  }

  isAtEnd(): boolean {
    this.#matchAt(jsonSpace);
    return this.#jsonOffset === this.#jsonText.length;
  }

  value(jsonLevel: number): Json {
    if (jsonLevel > jsonTreeLevelsMax) throw invalid(`JSON of more than ${jsonTreeLevelsMax} levels is not taken apart`);
    this.#matchAt(jsonSpace);
    switch (this.#jsonText[this.#jsonOffset]) {
      case '{':
        return this.#readObject(jsonLevel);
      case '[':
        return this.#readList(jsonLevel);
      case '"':
        return this.#readString();
      case 't':
      case 'f':
      case 'n': {
        const match = this.#matchAt(jsonWordForm);
        if (match === null) throw malformedJson();
        return match[0] === 'null' ? null : match[0] === 'true';
      }
      default: {
        const match = this.#matchAt(jsonNumberForm);
        if (match === null) throw malformedJson();
        return new JsonNumber(writeOutDecimal(match[0]));
      }
    }
  }

  #readObject(jsonLevel: number): Json {
    this.#jsonOffset++;
    const objectMembers = new Map<string, Json>();
    if (this.#takesSign('}')) return objectMembers;
    do {
      this.#matchAt(jsonSpace);
      const memberName = this.#readString();
      if (!this.#takesSign(':')) throw malformedJson();
      objectMembers.set(memberName, this.value(jsonLevel + 1));
    } while (this.#takesSign(','));
    if (!this.#takesSign('}')) throw malformedJson();
    return objectMembers;
  }

  #readList(jsonLevel: number): Json {
    this.#jsonOffset++;
    const listElements: Json[] = [];
    if (this.#takesSign(']')) return listElements;
    do listElements.push(this.value(jsonLevel + 1));
    while (this.#takesSign(','));
    if (!this.#takesSign(']')) throw malformedJson();
    return listElements;
  }

  #readString(): string {
    const plainMatch = this.#matchAt(plainJsonString);
    if (plainMatch !== null) return plainMatch[1]!;
    const match = this.#matchAt(anyJsonString);
    if (match === null) throw malformedJson();
    const decodedString = JSON.parse(match[0]) as string;
    if (decodedString.includes('\0')) throw invalid('no text has the character 0', 'text-form');
    return decodedString;
  }

  #takesSign(jsonSign: string): boolean {
    this.#matchAt(jsonSpace);
    if (this.#jsonText[this.#jsonOffset] !== jsonSign) return false;
    this.#jsonOffset++;
    return true;
  }

  #matchAt(lexemePattern: RegExp): RegExpExecArray | null {
    lexemePattern.lastIndex = this.#jsonOffset;
    const match = lexemePattern.exec(this.#jsonText);
    if (match !== null) this.#jsonOffset = lexemePattern.lastIndex;
    return match;
  }
}

const jsonExponentMax = 1_000;

/** Without an exponent, and no minus before zero. */
function writeOutDecimal(text: string): string {
  const [mantissa = '', exponent] = text.toLowerCase().split('e');
  const [, minusSign = '', wholeDigits = '', fractionDigits = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(mantissa)!;
  let shownDecimal = mantissa.slice(minusSign.length);
  if (exponent !== undefined) {
    const exponentDigits = Number(exponent);
    if (Math.abs(exponentDigits) > jsonExponentMax)
      throw outOfRange(`a number of JSON has an exponent of at most ${jsonExponentMax}`);
    const pointIndex = wholeDigits.length + exponentDigits;
    const decimalDigits = `${'0'.repeat(Math.max(0, 1 - pointIndex))}${wholeDigits}${fractionDigits}`;
    const wholeDigitCount = Math.max(1, pointIndex);
    const fractionTail = decimalDigits.slice(wholeDigitCount);
    shownDecimal = `${decimalDigits
      .slice(0, wholeDigitCount)
      .padEnd(wholeDigitCount, '0')
      .replace(/^0+(?=\d)/, '')}${fractionTail === '' ? '' : `.${fractionTail}`}`;
  }
  return minusSign === '' || /^[0.]*$/.test(shownDecimal) ? shownDecimal : `-${shownDecimal}`;
}

/** As PostgreSQL writes jsonb: a space behind each comma and colon. */
export function jsonText(value: Json): string {
  return checkLength(jsonTreeText(value));
}

function jsonTreeText(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonTreeText).join(', ')}]`;
  if (value instanceof Map) {
    const memberTexts = inOrder(value).map(([name, memberTree]) => `${JSON.stringify(name)}: ${jsonTreeText(memberTree)}`);
    return `{${memberTexts.join(', ')}}`;
  }
  return JSON.stringify(value);
}

/** Members in the order of jsonb. */
export function inOrder(objectMembers: ReadonlyMap<string, Json>): [string, Json][] {
  if (objectMembers.size < 2) return [...objectMembers];
  return Array.from(objectMembers, (jsonMember) => ({ each: jsonMember, bytes: Buffer.from(jsonMember[0]) }))
    .sort(
      (leftMember, rightMember) =>
        leftMember.bytes.length - rightMember.bytes.length || Buffer.compare(leftMember.bytes, rightMember.bytes),
    )
    .map(({ each: jsonMember }) => jsonMember);
}

/** The text with a line for each member and element. */
export function prettyJson(value: Json): string {
  return checkLength(prettyTree(value, ''));
}

function prettyTree(value: Json, outerIndent: string): string {
  const innerIndent = `${outerIndent}    `;
  if (Array.isArray(value)) return indentedLines('[', ']', value, outerIndent, (childTree) => prettyTree(childTree, innerIndent));
  if (!(value instanceof Map)) return jsonTreeText(value);
  return indentedLines(
    '{',
    '}',
    inOrder(value),
    outerIndent,
    ([name, childTree]) => `${JSON.stringify(name)}: ${prettyTree(childTree, innerIndent)}`,
  );
}

function indentedLines<T>(
  openingSign: string,
  closingSign: string,
  childTrees: readonly T[],
  outerIndent: string,
  showChild: (childTree: T) => string,
): string {
  spend(childTrees.length * outerIndent.length);
  return `${openingSign}\n${childTrees.map((childTree) => `${outerIndent}    ${showChild(childTree)}`).join(',\n')}${childTrees.length > 0 ? '\n' : ''}${outerIndent}${closingSign}`;
}

export function isSameJson(leftTree: Json, rightTree: Json): boolean {
  if (leftTree instanceof JsonNumber && rightTree instanceof JsonNumber)
    return numberIdentity(leftTree) === numberIdentity(rightTree);
  if (Array.isArray(leftTree) && Array.isArray(rightTree))
    return leftTree.length === rightTree.length && leftTree.every((leftChild, i) => isSameJson(leftChild, rightTree[i]!));
  if (leftTree instanceof Map && rightTree instanceof Map)
    return (
      leftTree.size === rightTree.size &&
      [...leftTree].every(([name, leftChild]) => rightTree.has(name) && isSameJson(leftChild, rightTree.get(name)!))
    );
  return leftTree === rightTree;
}

/** 1.50 and 1.5 are one value. */
const numberIdentity = ({ text }: JsonNumber): string =>
  text.includes('.') ? withoutTrailing(withoutTrailing(text, '0'), '.') : text;

/** `a @> b`: all of b stands in a. An array holds a scalar of its own, but only at the top. */
export function containsJson(outerTree: Json, innerTree: Json): boolean {
  if (Array.isArray(outerTree) && !Array.isArray(innerTree))
    return !(innerTree instanceof Map) && hasElement(outerTree, innerTree);
  return containsTree(outerTree, innerTree);
}

function containsTree(outerTree: Json, innerTree: Json): boolean {
  if (Array.isArray(outerTree))
    return Array.isArray(innerTree) && innerTree.every((innerChild) => hasElement(outerTree, innerChild));
  if (outerTree instanceof Map)
    return (
      innerTree instanceof Map &&
      [...innerTree].every(([name, innerChild]) => outerTree.has(name) && containsTree(outerTree.get(name)!, innerChild))
    );
  return isSameJson(outerTree, innerTree);
}

const jsonCompareCost = 30;

function hasElement(list: readonly Json[], wantedTree: Json): boolean {
  spend(list.length * jsonCompareCost);
  return list.some((listElement) => containsTree(listElement, wantedTree));
}

/** Elements of an array of json, members of an object: the rows that functions of sets make of them. */
export function rowsOfList(listJson: string): string[] {
  spend(listJson.length * 5);
  if (!listJson.trimStart().startsWith('[')) throw invalid('elements of something that is no array of json');
  return [...elements(listJson)];
}

export function membersOf(objectJson: string): [string, string][] {
  const objectTree = readJson(objectJson);
  if (!(objectTree instanceof Map)) throw invalid('members of something that is no object of json');
  return [...objectTree.keys()].map((name) => [name, member(objectJson, name)!]);
}
