/**
 * `= ANY($1)` and `<> ALL($1)` as clients of Postgres send lists: each element becomes a parameter of its own, behind IN. No value
 * is pasted into the text, and lists of many lengths make few texts: a list is filled up to a power of two with its last element.
 */
import { ServiceError } from '../../errors.ts';
import { endOfQuoted } from '../../log/values/quoted-text.ts';
import { allAtOnce, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { typeNamed, wireOf } from '../../planner/system-catalogue/catalogue-types.ts';
import { utf8 } from '../shared/utf8.ts';
import type { BoundParameter } from './parameters.ts';
import { StatementTokens } from './statement-tokens.ts';

export interface Spread {
  /** The parameter's number, from 1. */
  readonly parameter: number;
  /** The offsets of `= ANY($1)` in the text. */
  readonly from: number;
  readonly to: number;
  readonly negated: boolean;
  /** The array type of a cast; 0: there is none that lists can have. */
  readonly stated: number;
}

const listElementsMax = 16_384;
const writtenElementsMax = 131_072;
const elementsPerStep = 4_096;

/** The element type of each array type. */
const arrayElementOids: Readonly<Record<number, number>> = {
  1000: 16,
  1003: 19,
  1005: 21,
  1007: 23,
  1009: 25,
  1015: 1043,
  1016: 20,
  1021: 700,
  1022: 701,
  1028: 26,
  1115: 1114,
  1182: 1082,
  1185: 1184,
  1231: 1700,
  2951: 2950,
};

export function* spreadsIn(anyStatement: string): Steps<readonly Spread[]> {
  if (!/\b(ANY|ALL|SOME)\s*\(\s*\$/i.test(anyStatement)) return [];
  const statementTokens = yield* StatementTokens.read(anyStatement);
  const spreads: Spread[] = [];
  while (statementTokens.next.kind !== 'end') {
    yield* statementTokens.pause();
    const { from } = statementTokens.next;
    const negated = statementTokens.skip('!=');
    if (!negated && !statementTokens.skip('=')) {
      statementTokens.take();
      continue;
    }
    const isQuantified = negated ? statementTokens.skip('ALL') : statementTokens.skip('ANY') || statementTokens.skip('SOME');
    if (!isQuantified || !statementTokens.skip('(') || statementTokens.next.kind !== 'parameter') continue;
    const parameter = Number(statementTokens.take().text);
    let statedArrayOid = 0;
    if (statementTokens.skip('::')) {
      const listTypeName = typeNamed(statementTokens.name('a type').toLowerCase());
      const { array: arrayOid } = listTypeName === null ? { array: 0 } : wireOf(listTypeName);
      statedArrayOid = arrayElementOids[arrayOid] === undefined ? 0 : arrayOid;
      statementTokens.expect('[', ']');
    }
    const to = statementTokens.next.from + ')'.length;
    statementTokens.expect(')');
    spreads.push({ parameter, from, to, negated, stated: statedArrayOid });
  }
  return spreads;
}

/** Rewrites lists given as texts, `= ANY('{a,b}')`, to `ARRAY['a', 'b']`. */
export function* withListsWritten(anyStatement: string): Steps<string> {
  if (!/\b(ANY|ALL|SOME)\s*\(\s*'\{/i.test(anyStatement)) return anyStatement;
  const statementTokens = yield* StatementTokens.read(anyStatement);
  let listsWritten = '';
  let copiedOffset = 0;
  while (statementTokens.next.kind !== 'end') {
    yield* statementTokens.pause();
    if (!(statementTokens.skip('ANY', '(') || statementTokens.skip('ALL', '(') || statementTokens.skip('SOME', '('))) {
      statementTokens.take();
      continue;
    }
    const listToken = statementTokens.next;
    if (listToken.kind !== 'text' || !/^\s*\{/.test(listToken.text)) continue;
    statementTokens.take();
    let listTypeName = '';
    if (statementTokens.skip('::')) {
      listTypeName = statementTokens.name('a type').toLowerCase();
      statementTokens.expect('[', ']');
    }
    const { from: listEnd } = statementTokens.next;
    // Names of catalogue objects are looked up in the catalogue.
    if (listTypeName.startsWith('reg')) continue;
    const isNumberList = /^(int|float|numeric|double|real|bigint|smallint)/.test(listTypeName);
    const writtenElements = (yield* textArrayElements(listToken.text, checkWrittenList)).map((listElement) =>
      listElement === null
        ? 'NULL'
        : isNumberList && elementNumeral.test(listElement.toString())
          ? listElement.toString()
          : `'${listElement.toString().replaceAll("'", "''")}'`,
    );
    listsWritten += `${anyStatement.slice(copiedOffset, listToken.from)}ARRAY[${writtenElements.join(', ')}]`;
    copiedOffset = listEnd;
  }
  return listsWritten + anyStatement.slice(copiedOffset);
}

/** A list in the text of a statement is as long as one of literals may be. */
function checkWrittenList(elementCount: number): void {
  if (elementCount > writtenElementsMax)
    throw new ServiceError('REL_TOO_LARGE', `a list in a statement has at most ${writtenElementsMax} elements`);
}

const elementNumeral = /^-?\d+(\.\d+)?$/;

/** The text for lists of these lengths; elements behind the first of each are numbered behind `parameterCount`. */
function writeSpreadLists(
  anyStatement: string,
  spreads: readonly Spread[],
  listLengths: ReadonlyMap<number, number>,
  parameterCount: number,
): string {
  const firstSpreadParameter = new Map<number, number>();
  let lastParameter = parameterCount;
  for (const [parameter, listLength] of listLengths) {
    firstSpreadParameter.set(parameter, lastParameter + 1);
    lastParameter += Math.max(0, listLength - 1);
  }
  let spreadStatement = '';
  let copiedOffset = 0;
  for (const { parameter, from: spreadStart, to: spreadEnd, negated: isNotIn } of spreads) {
    const length = listLengths.get(parameter)!;
    const moreParameters = Array.from(
      { length: Math.max(0, length - 1) },
      (_, i) => `, $${firstSpreadParameter.get(parameter)! + i}`,
    );
    // NULL takes any type, so the list takes that of the operand before it.
    const parameterList =
      length === 0 ? `SELECT NULL WHERE $${parameter} IS NULL AND FALSE` : `$${parameter}${moreParameters.join('')}`;
    spreadStatement += `${anyStatement.slice(copiedOffset, spreadStart)} ${isNotIn ? 'NOT IN' : 'IN'} (${parameterList})`;
    copiedOffset = spreadEnd;
  }
  return spreadStatement + anyStatement.slice(copiedOffset);
}

/** The text for a description: a list has one element. */
export function spreadOnce(text: string, spreads: readonly Spread[], oids: readonly number[]): { text: string; oids: number[] } {
  const listParameters = new Set(spreads.map(({ parameter }) => parameter));
  const spreadOids = oids.map((parameterOid, i) => (listParameters.has(i + 1) ? arrayElementOid(parameterOid) : parameterOid));
  return {
    text: writeSpreadLists(text, spreads, new Map([...listParameters].map((listParameter) => [listParameter, 1])), 0),
    oids: spreadOids,
  };
}

export function spreadBound(
  text: string,
  spreads: readonly Spread[],
  bound: BoundParameter,
): { text: string; bound: BoundParameter } {
  const { values, formats, oids, types } = bound;
  const formatOf = (i: number): number => (formats.length > 1 ? formats[i]! : (formats[0] ?? 0));
  const spreadParameters = values.map((value, i) => ({
    value,
    format: formatOf(i),
    oid: oids[i] ?? 0,
    type: types?.[i] ?? null,
  }));
  const listLengths = new Map<number, number>();
  for (const parameter of new Set(spreads.map((spreadParameter) => spreadParameter.parameter))) {
    const listParameter = spreadParameters[parameter - 1];
    if (listParameter === undefined) throw new ServiceError('REL_INVALID', `no value is bound to $${parameter}`);
    // Whether a cell is one of an unknown list is unknown: of no list it would be none, and behind <> ALL every one.
    const { elements, oid } =
      listParameter.value === null
        ? { elements: [null], oid: arrayElementOid(listParameter.oid) }
        : arrayElementsOf(listParameter.value, { ...listParameter, parameter });
    const paddedListLength = elements.length === 0 ? 0 : 2 ** Math.ceil(Math.log2(elements.length));
    listLengths.set(parameter, paddedListLength);
    const lastElement = elements.at(-1) ?? null;
    spreadParameters[parameter - 1] = { ...listParameter, value: elements[0] ?? null, oid };
    for (let i = 1; i < paddedListLength; i++)
      spreadParameters.push({ ...listParameter, value: i < elements.length ? elements[i]! : lastElement, oid });
  }
  return {
    text: writeSpreadLists(text, spreads, listLengths, values.length),
    bound: {
      values: spreadParameters.map(({ value }) => value),
      formats:
        spreadParameters.length > 1
          ? spreadParameters.map((spreadParameter) => spreadParameter.format)
          : [spreadParameters[0]?.format ?? 0],
      oids: spreadParameters.map(({ oid }) => oid),
      types:
        types === null || spreadParameters.some(({ type }) => type === null) ? null : spreadParameters.map(({ type }) => type!),
    },
  };
}

/** 0 where the client leaves the type open. */
function arrayElementOid(arrayOid: number): number {
  if (arrayOid === 0 || arrayOid === 705) return 0;
  const foundElementOid = arrayElementOids[arrayOid];
  if (foundElementOid === undefined)
    throw new ServiceError('REL_TYPE_MISMATCH', `a list behind ANY is an array, not the type of number ${arrayOid}`);
  return foundElementOid;
}

interface ArrayElements {
  readonly elements: readonly (Buffer | null)[];
  readonly oid: number;
}

/** Counted while they are read: of a list that is too long, no more is read. */
function arrayElementsOf(
  arrayBytes: Buffer,
  { format, oid, parameter }: { readonly format: number; readonly oid: number; readonly parameter: number },
): ArrayElements {
  const checkElementCount = (elementCount: number): void => {
    if (elementCount > listElementsMax)
      throw new ServiceError('REL_TOO_LARGE', `$${parameter} has more elements than a list has at most: ${listElementsMax}`);
  };
  if (format === 1) return binaryArrayElements(arrayBytes, checkElementCount);
  return { elements: allAtOnce(textArrayElements(utf8(arrayBytes), checkElementCount)), oid: arrayElementOid(oid) };
}

/** Dimensions, whether there are NULLs, type of the elements, length and first index of each dimension; then each with its length. */
function binaryArrayElements(arrayBytes: Buffer, onElementCount: (arrayElements: number) => void): ArrayElements {
  const malformedList = (): ServiceError => new ServiceError('REL_INVALID', 'the list of ANY must be an array of one dimension');
  if (arrayBytes.length < 12) throw malformedList();
  const arrayDimensions = arrayBytes.readInt32BE(0);
  const elementTypeOid = arrayBytes.readUInt32BE(8);
  if (arrayDimensions === 0) return { elements: [], oid: elementTypeOid };
  if (arrayDimensions !== 1 || arrayBytes.length < 20) throw malformedList();
  const elementCount = arrayBytes.readInt32BE(12);
  onElementCount(elementCount);
  const arrayElements: (Buffer | null)[] = [];
  let elementOffset = 20;
  for (let i = 0; i < elementCount; i++) {
    if (elementOffset + 4 > arrayBytes.length) throw malformedList();
    const elementBytes = arrayBytes.readInt32BE(elementOffset);
    elementOffset += 4;
    if (elementBytes >= 0 && elementOffset + elementBytes > arrayBytes.length) throw malformedList();
    arrayElements.push(elementBytes < 0 ? null : arrayBytes.subarray(elementOffset, elementOffset + elementBytes));
    elementOffset += Math.max(0, elementBytes);
  }
  return { elements: arrayElements, oid: elementTypeOid };
}

/** `{a,"b, c",NULL}` */
function* textArrayElements(arrayText: string, onElementCount: (arrayElements: number) => void): Steps<(Buffer | null)[]> {
  const arrayBody = /^\s*\{([^]*)\}\s*$/.exec(arrayText)?.[1];
  if (arrayBody === undefined) throw new ServiceError('REL_TYPE_MISMATCH', "a list behind ANY is written '{a,b}'");
  if (arrayBody.trim() === '') return [];
  const arrayElements: (Buffer | null)[] = [];
  for (let elementOffset = 0; ; elementOffset++) {
    onElementCount(arrayElements.length + 1);
    if (arrayElements.length % elementsPerStep === elementsPerStep - 1) yield;
    const elementStart = endOfMatch(arrayBlanks, arrayBody, elementOffset);
    const quotedElementEnd = arrayBody[elementStart] === '"' ? endOfQuoted(arrayBody, elementStart) : null;
    if (quotedElementEnd === null) {
      const plainElementEnd = endOfMatch(plainElement, arrayBody, elementStart);
      const plainElementText = arrayBody.slice(elementStart, plainElementEnd).trim();
      arrayElements.push(/^null$/i.test(plainElementText) ? null : Buffer.from(plainElementText));
      elementOffset = plainElementEnd;
    } else {
      arrayElements.push(Buffer.from(arrayBody.slice(elementStart + 1, quotedElementEnd - 1).replaceAll(/\\([^])/g, '$1')));
      elementOffset = endOfMatch(arrayBlanks, arrayBody, quotedElementEnd);
    }
    if (elementOffset === arrayBody.length) return arrayElements;
    if (arrayBody[elementOffset] !== ',') throw new ServiceError('REL_TYPE_MISMATCH', "a list behind ANY is written '{a,b}'");
  }
}

const arrayBlanks = /\s*/y;
const plainElement = /[^,{}"]*/y;

function endOfMatch(pattern: RegExp, arrayText: string, arrayOffset: number): number {
  pattern.lastIndex = arrayOffset;
  return arrayOffset + pattern.exec(arrayText)![0].length;
}
