/** XML out, by nesting; and the two documents that clients send. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { s3Refusals } from './errors.ts';

/** An element's children: a value, elements in order, or nothing. A list repeats its element. */
export type Node = string | number | boolean | null | undefined | readonly (readonly [name: string, node: Node])[];

const s3Namespace = 'http://s3.amazonaws.com/doc/2006-03-01/';
const xmlParser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  processEntities: true,
  isArray: (elementName) => elementName === 'Object' || elementName === 'Part',
});
const xmlNestingMax = 8;
/** Most members of a listed element. */
const elementsPerItem = 8;

export function xmlDocument(rootName: string, rootNode: Node, inNamespace = true): string {
  const namespaceAttribute = inNamespace ? ` xmlns="${s3Namespace}"` : '';
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${rootName}${namespaceAttribute}>${xmlContent(rootNode)}</${rootName}>`;
}

function xmlContent(xmlNode: Node): string {
  if (xmlNode === null || xmlNode === undefined) return '';
  if (typeof xmlNode !== 'object') return escapeXml(String(xmlNode));
  return xmlNode
    .map(([elementName, childNode]) =>
      childNode === undefined ? '' : `<${elementName}>${xmlContent(childNode)}</${elementName}>`,
    )
    .join('');
}

const xmlEscapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#13;' };

/** XML 1.0 can't express most control characters: clients that list such keys use `encoding-type=url`. */
function escapeXml(unescapedText: string): string {
  return unescapedText
    .replaceAll(/[&<>"\r]/g, (escapedLetter) => xmlEscapes[escapedLetter]!)
    .replaceAll(/(?![\t\n\r])[\p{Cc}\ufffe\uffff]/gu, (escapedLetter) =>
      escapedLetter < ' ' || escapedLetter > '\u009f' ? '\ufffd' : escapedLetter,
    );
}

export interface Listed {
  readonly element: 'Object' | 'Part';
  readonly most: number;
  /** Says how many there may be. */
  readonly otherwise: string;
}

/**
 * The members of a document's root. Throws MalformedXML for another root, for none, for a document type, and for more elements
 * than allowed; that is checked before parsing, which blocks other requests.
 */
export function xmlMembers(xmlText: string, rootName: string, listedElements: Listed): Readonly<Record<string, unknown>> {
  if (/<!DOCTYPE|<!ENTITY/i.test(xmlText)) throw s3Refusals.malformedXml('a document type is not taken');
  // Tags can be counted in one pass, whatever stands in them, where none holds the beginning of another.
  if (/<[^>]*</.test(xmlText)) throw s3Refusals.malformedXml('it is not well-formed');
  let elementDepth = 0;
  let elementCount = 0;
  let listedCount = 0;
  for (const [elementTag, elementName] of xmlText.matchAll(/<\/?([A-Za-z][^\s/<>]*)(?:[\s/][^<>]*)?>/g)) {
    const isEndTag = elementTag.startsWith('</');
    elementDepth += isEndTag ? -1 : elementTag.endsWith('/>') ? 0 : 1;
    if (elementDepth > xmlNestingMax) throw s3Refusals.malformedXml('it is nested too deeply');
    if (isEndTag) continue;
    if (elementName === listedElements.element && ++listedCount > listedElements.most)
      throw s3Refusals.malformedXml(listedElements.otherwise);
    if (++elementCount > (listedElements.most + 1) * elementsPerItem) throw s3Refusals.malformedXml('it has too many elements');
  }
  if (XMLValidator.validate(xmlText) !== true) throw s3Refusals.malformedXml('it is not well-formed');
  const rootMembers = parseXml(xmlText)[rootName];
  if (typeof rootMembers === 'string' && rootMembers.trim() === '') return {};
  if (typeof rootMembers !== 'object' || rootMembers === null) throw s3Refusals.malformedXml(`<${rootName}> is expected`);
  return rootMembers as Readonly<Record<string, unknown>>;
}

/** The parser refuses some texts that the validator takes, such as `<A/`. */
function parseXml(xmlText: string): Readonly<Record<string, unknown>> {
  try {
    return xmlParser.parse(xmlText) as Readonly<Record<string, unknown>>;
  } catch {
    throw s3Refusals.malformedXml('it is not well-formed');
  }
}

/** A member that is a text; null where there is none. */
export function memberText(parsedMembers: Readonly<Record<string, unknown>>, memberName: string): string | null {
  const memberValue = Object.hasOwn(parsedMembers, memberName) ? parsedMembers[memberName] : undefined;
  if (memberValue === undefined) return null;
  if (typeof memberValue !== 'string') throw s3Refusals.malformedXml(`<${memberName}> holds a text, once`);
  return memberValue;
}
