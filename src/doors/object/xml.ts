/** XML out, by nesting; and the two documents that clients send. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { s3Refusals } from './errors.ts';

/** An element's children: a value, elements in order, or nothing. A list repeats its element. */
export type Node = string | number | boolean | null | undefined | readonly (readonly [name: string, node: Node])[];

const namespace = 'http://s3.amazonaws.com/doc/2006-03-01/';
const parser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  processEntities: true,
  isArray: (name) => name === 'Object' || name === 'Part',
});
const nestingMax = 8;
/** Most members of a listed element. */
const elementsOfEach = 8;

export function xmlDocument(name: string, node: Node, inNamespace = true): string {
  const attribute = inNamespace ? ` xmlns="${namespace}"` : '';
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${name}${attribute}>${content(node)}</${name}>`;
}

function content(node: Node): string {
  if (node === null || node === undefined) return '';
  if (typeof node !== 'object') return escapeXml(String(node));
  return node.map(([name, child]) => (child === undefined ? '' : `<${name}>${content(child)}</${name}>`)).join('');
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#13;' };

/** XML 1.0 can't express most control characters: clients that list such keys use `encoding-type=url`. */
function escapeXml(text: string): string {
  return text
    .replaceAll(/[&<>"\r]/g, (letter) => escapes[letter]!)
    .replaceAll(/(?![\t\n\r])[\p{Cc}\ufffe\uffff]/gu, (letter) => (letter < ' ' || letter > '\u009f' ? '\ufffd' : letter));
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
export function xmlMembers(text: string, root: string, listed: Listed): Readonly<Record<string, unknown>> {
  if (/<!DOCTYPE|<!ENTITY/i.test(text)) throw s3Refusals.malformedXml('a document type is not taken');
  // Tags can be counted in one pass, whatever stands in them, where none holds the beginning of another.
  if (/<[^>]*</.test(text)) throw s3Refusals.malformedXml('it is not well-formed');
  let depth = 0;
  let elements = 0;
  let count = 0;
  for (const [tag, name] of text.matchAll(/<\/?([A-Za-z][^\s/<>]*)(?:[\s/][^<>]*)?>/g)) {
    const isEnd = tag.startsWith('</');
    depth += isEnd ? -1 : tag.endsWith('/>') ? 0 : 1;
    if (depth > nestingMax) throw s3Refusals.malformedXml('it is nested too deeply');
    if (isEnd) continue;
    if (name === listed.element && ++count > listed.most) throw s3Refusals.malformedXml(listed.otherwise);
    if (++elements > (listed.most + 1) * elementsOfEach) throw s3Refusals.malformedXml('it has too many elements');
  }
  if (XMLValidator.validate(text) !== true) throw s3Refusals.malformedXml('it is not well-formed');
  const members = parseXml(text)[root];
  if (typeof members === 'string' && members.trim() === '') return {};
  if (typeof members !== 'object' || members === null) throw s3Refusals.malformedXml(`<${root}> is expected`);
  return members as Readonly<Record<string, unknown>>;
}

/** The parser refuses some texts that the validator takes, such as `<A/`. */
function parseXml(text: string): Readonly<Record<string, unknown>> {
  try {
    return parser.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    throw s3Refusals.malformedXml('it is not well-formed');
  }
}

/** A member that is a text; null where there is none. */
export function memberText(members: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  if (value === undefined) return null;
  if (typeof value !== 'string') throw s3Refusals.malformedXml(`<${name}> holds a text, once`);
  return value;
}
