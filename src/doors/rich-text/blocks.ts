/**
 * Documents as one text and the blocks in it: paragraphs, headings, lists, tables, code. For text and Markdown it is the text as
 * sent; for HTML and PDF it is the visible text, with an empty line between blocks.
 */
import type { Parser as HtmlParser } from 'htmlparser2';
import type * as Marked from 'marked';
import { ServiceError } from '../../errors.ts';
import type { DocumentFormat } from './rich-text.ts';

/** Places are of UTF-16 units here. */
export interface Block {
  readonly start: number;
  readonly end: number;
  readonly page: number | null;
  readonly heading: string | null;
}

export interface Blocks {
  readonly title: string | null;
  readonly text: string;
  readonly blocks: readonly Block[];
}

const charactersMax = 32 << 20;
const pagesMax = 5_000;
const between = '\n\n';

export async function blocksOf(bytes: Uint8Array, format: DocumentFormat): Promise<Blocks> {
  if (format === 'pdf') return pdfBlocks(bytes);
  // Either library is loaded when its first document comes.
  if (format === 'html') return htmlBlocks(textOf(bytes), (await import('htmlparser2')).Parser);
  const text = textOf(bytes).replaceAll(/\r\n?/g, '\n');
  if (format === 'text') return { title: null, text, blocks: paragraphs(text, 0, null, null) };
  return markdownBlocks(text, await import('marked'));
}

/** The bytes decide first: names are wrong more often. */
export function formatOf(bytes: Uint8Array, name: string | null): DocumentFormat {
  const begin = new TextDecoder('latin1').decode(bytes.subarray(0, 1_024));
  if (begin.startsWith('%PDF-')) return 'pdf';
  if (/^<(?:!doctype\s+html|html|head|body)\b/i.test(afterComments(begin))) return 'html';
  const ending = /\.([a-z]+)$/i.exec(name?.split(/[?#]/, 1)[0] ?? '')?.[1]?.toLowerCase();
  if (ending === 'md' || ending === 'markdown') return 'markdown';
  return ending === 'html' || ending === 'htm' || ending === 'xhtml' ? 'html' : 'text';
}

/** The text behind a byte order mark, an XML declaration and comments. Reads each character once. */
function afterComments(begin: string): string {
  let rest = begin.replace(/^ï»¿/, '').trimStart();
  if (rest.startsWith('<?xml')) rest = rest.slice(rest.indexOf('>') + 1).trimStart();
  while (rest.startsWith('<!--')) {
    const end = rest.indexOf('-->', 4);
    if (end < 0) return '';
    rest = rest.slice(end + 3).trimStart();
  }
  return rest;
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ServiceError('REL_UNPROCESSABLE', 'the document is not UTF-8');
  }
}

/** The paragraphs between empty lines, trimmed. */
function paragraphs(text: string, from: number, page: number | null, heading: string | null): Block[] {
  const blocks: Block[] = [];
  for (const { 0: paragraphText, index } of text.matchAll(/\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*/g)) {
    blocks.push({ start: from + index, end: from + index + paragraphText.trimEnd().length, page, heading });
  }
  return blocks;
}

/** Headings that a block stands under, the outer ones first. */
class Headings {
  readonly #open: { readonly depth: number; readonly text: string }[] = [];

  push(depth: number, text: string): void {
    while (this.#open.length > 0 && this.#open.at(-1)!.depth >= depth) this.#open.pop();
    if (text !== '') this.#open.push({ depth, text });
  }

  get path(): string | null {
    return this.#open.length === 0 ? null : this.#open.map(({ text }) => text).join(' > ');
  }
}

/** Most levels of nested quotes and lists, a quote counting twice. Each level reads its content once more. */
const levelsMax = 32;

/** `text` has LF ends of lines. */
export function markdownBlocks(text: string, marked: typeof Marked): Blocks {
  const matter = /^---\n[^]*?\n---(?:\n|$)/.exec(text)?.[0] ?? '';
  const headings = new Headings();
  const blocks: Block[] = [];
  let title: string | null = null;
  let at = matter.length;
  for (const token of markdownTokens(text.slice(matter.length), marked)) {
    // The library leaves some text out of its tokens; it stands before them.
    const start = text.indexOf(token.raw, at);
    if (start < 0) continue;
    at = start + token.raw.length;
    if (token.type === 'space' || token.type === 'def' || token.type === 'hr') continue;
    if (token.type === 'heading') {
      const { depth, text: said } = token as unknown as { readonly depth: number; readonly text: string };
      headings.push(depth, said.trim());
      title ??= said.trim();
    }
    const content = token.raw.trimEnd();
    const blanks = content.length - content.trimStart().length;
    if (content.length > blanks)
      blocks.push({ start: start + blanks, end: start + content.length, page: null, heading: headings.path });
  }
  return { title, text, blocks };
}

/** The outermost blocks. Inline content is not tokenised. */
function markdownTokens(source: string, { Lexer, Tokenizer, getDefaults }: typeof Marked): readonly Marked.Token[] {
  const tokenizer = new Tokenizer();
  const lexer = new Lexer({ ...getDefaults(), tokenizer });
  let levels = 0;
  const withDepthLimit = <T>(run: () => T, otherwise: T): T => {
    if (levels === levelsMax) return otherwise;
    levels++;
    const blockTokensWithin = run();
    levels--;
    return blockTokensWithin;
  };
  // Either calls the other, and quotes themselves.
  const blockTokens = lexer.blockTokens.bind(lexer);
  const blockquote = tokenizer.blockquote.bind(tokenizer);
  lexer.blockTokens = ((inner: string, tokens: Marked.Token[] = [], clipped?: boolean): Marked.Token[] =>
    withDepthLimit(() => blockTokens(inner, tokens, clipped), tokens)) as typeof blockTokens;
  tokenizer.blockquote = (inner) => withDepthLimit(() => blockquote(inner), undefined);
  return lexer.blockTokens(source, []);
}

/** Elements whose texts are skipped. */
const unread: ReadonlySet<string> = new Set('script style noscript template svg math iframe object head'.split(' '));
/** Elements that stand in a line; all others begin a block of their own. */
const inline: ReadonlySet<string> = new Set(
  (
    'a abbr acronym b bdi bdo big button cite code data del dfn em font i img input ins kbd label mark meter output q rp rt ruby s samp ' +
    'select small span strike strong sub sup time tt u var wbr td th'
  ).split(' '),
);

/** Elements within each other: the parser looks through all that are open at each end of one. */
const elementLevelsMax = 1_000;

export function htmlBlocks(source: string, Parser: typeof HtmlParser): Blocks {
  const headings = new Headings();
  const blocks: Block[] = [];
  let text = '';
  let title = '';
  let block = '';
  let hidden = 0;
  let level = 0;
  let isTitle = false;
  let pre = 0;
  let cells = 0;
  const end = (): void => {
    block = wellFormed(block);
    const said =
      pre > 0
        ? block.replace(/^\n+/, '').trimEnd()
        : block
            .replaceAll(/[^\S\n]+/g, ' ')
            .replaceAll(/ ?\n ?/g, '\n')
            .trim();
    block = '';
    if (said === '') return;
    if (text !== '') text += between;
    blocks.push({ start: text.length, end: text.length + said.length, page: null, heading: headings.path });
    text += said;
  };
  const parser = new Parser({
    onopentag(name, { alt, hidden: isHidden }) {
      if (++level > elementLevelsMax)
        throw new ServiceError('REL_UNPROCESSABLE', `elements nest deeper than ${elementLevelsMax} levels`);
      if (hidden > 0 || unread.has(name) || isHidden !== undefined) {
        hidden++;
        if (name === 'title') isTitle = true;
        return;
      }
      if (name === 'img' && alt) block += alt;
      if (name === 'br') block += '\n';
      else if (name === 'td' || name === 'th') block += cells++ > 0 ? ' | ' : '';
      else if (!inline.has(name)) {
        end();
        cells = 0;
        if (name === 'pre') pre++;
        if (name === 'li') block = '- ';
      }
    },
    ontext(data) {
      if (isTitle) title += data;
      else if (hidden === 0) block += pre > 0 ? data : data.replaceAll(/\s+/g, ' ');
    },
    onclosetag(name) {
      level--;
      if (hidden > 0) {
        hidden--;
        isTitle = false;
        return;
      }
      if (inline.has(name) || name === 'br') return;
      const depth = /^h([1-6])$/.exec(name)?.[1];
      if (depth !== undefined) headings.push(Number(depth), wellFormed(block).replaceAll(/\s+/g, ' ').trim());
      end();
      if (name === 'pre' && pre > 0) pre--;
    },
  });
  parser.end(source);
  end();
  return { title: wellFormed(title).replaceAll(/\s+/g, ' ').trim() || null, text, blocks };
}

async function pdfBlocks(bytes: Uint8Array): Promise<Blocks> {
  const { getDocumentProxy, extractText, getMeta } = await import('unpdf');
  // The library takes the bytes over, and would print warnings to the console.
  const pdf = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 }).catch((error: unknown): never => {
    const isLocked = error instanceof Error && error.name === 'PasswordException';
    throw new ServiceError('REL_UNPROCESSABLE', isLocked ? 'the PDF needs a password' : 'the PDF cannot be read');
  });
  if (pdf.numPages > pagesMax) throw new ServiceError('REL_UNPROCESSABLE', `a PDF has at most ${pagesMax} pages`);
  const { text: pages } = await extractText(pdf, { mergePages: false });
  const { info } = await getMeta(pdf).catch(() => ({ info: {} }));
  const named: unknown = (info as Readonly<Record<string, unknown>>)['Title'];
  let text = '';
  const blocks: Block[] = [];
  for (const [i, page] of pages.entries()) {
    // Signs without a meaning in Unicode come as NUL or as halves of pairs.
    const said = page
      .replaceAll('\0', '')
      .replaceAll(/\p{Cs}/gu, '\ufffd')
      .trim();
    if (said === '') continue;
    if (text !== '') text += between;
    blocks.push(...paragraphs(said, text.length, i + 1, null));
    text += said;
    if (text.length > charactersMax) break;
  }
  if (text === '') throw new ServiceError('REL_UNPROCESSABLE', 'the PDF has no text: scanned pages are not supported');
  return { title: typeof named === 'string' && named.trim() !== '' ? named.trim() : null, text, blocks };
}

/** The parser cuts a character in two where a tag is never closed. */
function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\ufffd');
}
