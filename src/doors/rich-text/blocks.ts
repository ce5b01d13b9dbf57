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

const documentCharactersMax = 32 << 20;
const pdfPagesMax = 5_000;
const blockSeparator = '\n\n';

export async function blocksOf(documentBytes: Uint8Array, documentFormat: DocumentFormat): Promise<Blocks> {
  if (documentFormat === 'pdf') return pdfBlocks(documentBytes);
  // Either library is loaded when its first document comes.
  if (documentFormat === 'html') return htmlBlocks(utf8TextOf(documentBytes), (await import('htmlparser2')).Parser);
  const documentText = utf8TextOf(documentBytes).replaceAll(/\r\n?/g, '\n');
  if (documentFormat === 'text') return { title: null, text: documentText, blocks: paragraphBlocks(documentText, 0, null, null) };
  return markdownBlocks(documentText, await import('marked'));
}

/** The bytes decide first: names are wrong more often. */
export function formatOf(documentBytes: Uint8Array, documentName: string | null): DocumentFormat {
  const documentStart = new TextDecoder('latin1').decode(documentBytes.subarray(0, 1_024));
  if (documentStart.startsWith('%PDF-')) return 'pdf';
  if (/^<(?:!doctype\s+html|html|head|body)\b/i.test(afterHtmlComments(documentStart))) return 'html';
  const fileExtension = /\.([a-z]+)$/i.exec(documentName?.split(/[?#]/, 1)[0] ?? '')?.[1]?.toLowerCase();
  if (fileExtension === 'md' || fileExtension === 'markdown') return 'markdown';
  return fileExtension === 'html' || fileExtension === 'htm' || fileExtension === 'xhtml' ? 'html' : 'text';
}

/** The text behind a byte order mark, an XML declaration and comments. Reads each character once. */
function afterHtmlComments(documentStart: string): string {
  let markupRest = documentStart.replace(/^ï»¿/, '').trimStart();
  if (markupRest.startsWith('<?xml')) markupRest = markupRest.slice(markupRest.indexOf('>') + 1).trimStart();
  while (markupRest.startsWith('<!--')) {
    const commentEnd = markupRest.indexOf('-->', 4);
    if (commentEnd < 0) return '';
    markupRest = markupRest.slice(commentEnd + 3).trimStart();
  }
  return markupRest;
}

function utf8TextOf(documentBytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(documentBytes);
  } catch {
    throw new ServiceError('REL_UNPROCESSABLE', 'the document is not UTF-8');
  }
}

/** The paragraphs between empty lines, trimmed. */
function paragraphBlocks(documentText: string, textOffset: number, pdfPage: number | null, headingText: string | null): Block[] {
  const paragraphBlocksFound: Block[] = [];
  for (const { 0: paragraphText, index: paragraphOffset } of documentText.matchAll(/\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*/g)) {
    paragraphBlocksFound.push({
      start: textOffset + paragraphOffset,
      end: textOffset + paragraphOffset + paragraphText.trimEnd().length,
      page: pdfPage,
      heading: headingText,
    });
  }
  return paragraphBlocksFound;
}

/** Headings that a block stands under, the outer ones first. */
class HeadingPath {
  readonly #openHeadings: { readonly depth: number; readonly text: string }[] = [];

  push(headingDepth: number, headingText: string): void {
    while (this.#openHeadings.length > 0 && this.#openHeadings.at(-1)!.depth >= headingDepth) this.#openHeadings.pop();
    if (headingText !== '') this.#openHeadings.push({ depth: headingDepth, text: headingText });
  }

  get path(): string | null {
    return this.#openHeadings.length === 0 ? null : this.#openHeadings.map(({ text: headingText }) => headingText).join(' > ');
  }
}

/** Most levels of nested quotes and lists, a quote counting twice. Each level reads its content once more. */
const markdownLevelsMax = 32;

/** `markdownText` has LF ends of lines. */
export function markdownBlocks(markdownText: string, markedLibrary: typeof Marked): Blocks {
  const frontMatter = /^---\n[^]*?\n---(?:\n|$)/.exec(markdownText)?.[0] ?? '';
  const headingPath = new HeadingPath();
  const markdownBlockList: Block[] = [];
  let documentTitle: string | null = null;
  let markdownOffset = frontMatter.length;
  for (const markdownToken of markdownTokens(markdownText.slice(frontMatter.length), markedLibrary)) {
    // The library leaves some text out of its tokens; it stands before them.
    const tokenStart = markdownText.indexOf(markdownToken.raw, markdownOffset);
    if (tokenStart < 0) continue;
    markdownOffset = tokenStart + markdownToken.raw.length;
    if (markdownToken.type === 'space' || markdownToken.type === 'def' || markdownToken.type === 'hr') continue;
    if (markdownToken.type === 'heading') {
      const { depth: headingDepth, text: headingText } = markdownToken as unknown as {
        readonly depth: number;
        readonly text: string;
      };
      headingPath.push(headingDepth, headingText.trim());
      documentTitle ??= headingText.trim();
    }
    const tokenContent = markdownToken.raw.trimEnd();
    const leadingBlanks = tokenContent.length - tokenContent.trimStart().length;
    if (tokenContent.length > leadingBlanks)
      markdownBlockList.push({
        start: tokenStart + leadingBlanks,
        end: tokenStart + tokenContent.length,
        page: null,
        heading: headingPath.path,
      });
  }
  return { title: documentTitle, text: markdownText, blocks: markdownBlockList };
}

/** The outermost blocks. Inline content is not tokenised. */
function markdownTokens(markdownSource: string, { Lexer, Tokenizer, getDefaults }: typeof Marked): readonly Marked.Token[] {
  const markdownTokenizer = new Tokenizer();
  const markdownLexer = new Lexer({ ...getDefaults(), tokenizer: markdownTokenizer });
  let nestingLevels = 0;
  const withDepthLimit = <T>(run: () => T, otherwise: T): T => {
    if (nestingLevels === markdownLevelsMax) return otherwise;
    nestingLevels++;
    const blockTokensWithin = run();
    nestingLevels--;
    return blockTokensWithin;
  };
  // Either calls the other, and quotes themselves.
  const readBlockTokens = markdownLexer.blockTokens.bind(markdownLexer);
  const readBlockquote = markdownTokenizer.blockquote.bind(markdownTokenizer);
  markdownLexer.blockTokens = ((innerMarkdown: string, innerTokens: Marked.Token[] = [], isClipped?: boolean): Marked.Token[] =>
    withDepthLimit(() => readBlockTokens(innerMarkdown, innerTokens, isClipped), innerTokens)) as typeof readBlockTokens;
  markdownTokenizer.blockquote = (innerMarkdown) => withDepthLimit(() => readBlockquote(innerMarkdown), undefined);
  return markdownLexer.blockTokens(markdownSource, []);
}

/** Elements whose texts are skipped. */
const unreadElements: ReadonlySet<string> = new Set('script style noscript template svg math iframe object head'.split(' '));
/** Elements that stand in a line; all others begin a block of their own. */
const inlineElements: ReadonlySet<string> = new Set(
  (
    'a abbr acronym b bdi bdo big button cite code data del dfn em font i img input ins kbd label mark meter output q rp rt ruby s samp ' +
    'select small span strike strong sub sup time tt u var wbr td th'
  ).split(' '),
);

/** Elements within each other: the parser looks through all that are open at each end of one. */
const htmlElementLevelsMax = 1_000;

export function htmlBlocks(htmlSource: string, Parser: typeof HtmlParser): Blocks {
  const headingPath = new HeadingPath();
  const htmlBlockList: Block[] = [];
  let htmlText = '';
  let titleText = '';
  let blockText = '';
  let hiddenDepth = 0;
  let elementDepth = 0;
  let isInTitle = false;
  let preDepth = 0;
  let tableCells = 0;
  const endBlock = (): void => {
    blockText = wellFormedText(blockText);
    const blockContent =
      preDepth > 0
        ? blockText.replace(/^\n+/, '').trimEnd()
        : blockText
            .replaceAll(/[^\S\n]+/g, ' ')
            .replaceAll(/ ?\n ?/g, '\n')
            .trim();
    blockText = '';
    if (blockContent === '') return;
    if (htmlText !== '') htmlText += blockSeparator;
    htmlBlockList.push({
      start: htmlText.length,
      end: htmlText.length + blockContent.length,
      page: null,
      heading: headingPath.path,
    });
    htmlText += blockContent;
  };
  const htmlParser = new Parser({
    onopentag(elementName, { alt: imageAlt, hidden: hiddenAttribute }) {
      if (++elementDepth > htmlElementLevelsMax)
        throw new ServiceError('REL_UNPROCESSABLE', `elements nest deeper than ${htmlElementLevelsMax} levels`);
      if (hiddenDepth > 0 || unreadElements.has(elementName) || hiddenAttribute !== undefined) {
        hiddenDepth++;
        if (elementName === 'title') isInTitle = true;
        return;
      }
      if (elementName === 'img' && imageAlt) blockText += imageAlt;
      if (elementName === 'br') blockText += '\n';
      else if (elementName === 'td' || elementName === 'th') blockText += tableCells++ > 0 ? ' | ' : '';
      else if (!inlineElements.has(elementName)) {
        endBlock();
        tableCells = 0;
        if (elementName === 'pre') preDepth++;
        if (elementName === 'li') blockText = '- ';
      }
    },
    ontext(elementText) {
      if (isInTitle) titleText += elementText;
      else if (hiddenDepth === 0) blockText += preDepth > 0 ? elementText : elementText.replaceAll(/\s+/g, ' ');
    },
    onclosetag(elementName) {
      elementDepth--;
      if (hiddenDepth > 0) {
        hiddenDepth--;
        isInTitle = false;
        return;
      }
      if (inlineElements.has(elementName) || elementName === 'br') return;
      const headingDepth = /^h([1-6])$/.exec(elementName)?.[1];
      if (headingDepth !== undefined)
        headingPath.push(Number(headingDepth), wellFormedText(blockText).replaceAll(/\s+/g, ' ').trim());
      endBlock();
      if (elementName === 'pre' && preDepth > 0) preDepth--;
    },
  });
  htmlParser.end(htmlSource);
  endBlock();
  return { title: wellFormedText(titleText).replaceAll(/\s+/g, ' ').trim() || null, text: htmlText, blocks: htmlBlockList };
}

async function pdfBlocks(pdfBytes: Uint8Array): Promise<Blocks> {
  const { getDocumentProxy, extractText, getMeta } = await import('unpdf');
  // The library takes the bytes over, and would print warnings to the console.
  const pdfDocument = await getDocumentProxy(new Uint8Array(pdfBytes), { verbosity: 0 }).catch((pdfError: unknown): never => {
    const isPdfLocked = pdfError instanceof Error && pdfError.name === 'PasswordException';
    throw new ServiceError('REL_UNPROCESSABLE', isPdfLocked ? 'the PDF needs a password' : 'the PDF cannot be read');
  });
  if (pdfDocument.numPages > pdfPagesMax) throw new ServiceError('REL_UNPROCESSABLE', `a PDF has at most ${pdfPagesMax} pages`);
  const { text: pdfPages } = await extractText(pdfDocument, { mergePages: false });
  const { info: pdfInfo } = await getMeta(pdfDocument).catch(() => ({ info: {} }));
  const pdfTitle: unknown = (pdfInfo as Readonly<Record<string, unknown>>)['Title'];
  let pdfText = '';
  const pdfBlockList: Block[] = [];
  for (const [i, pdfPage] of pdfPages.entries()) {
    // Signs without a meaning in Unicode come as NUL or as halves of pairs.
    const pageText = pdfPage
      .replaceAll('\0', '')
      .replaceAll(/\p{Cs}/gu, '\ufffd')
      .trim();
    if (pageText === '') continue;
    if (pdfText !== '') pdfText += blockSeparator;
    pdfBlockList.push(...paragraphBlocks(pageText, pdfText.length, i + 1, null));
    pdfText += pageText;
    if (pdfText.length > documentCharactersMax) break;
  }
  if (pdfText === '') throw new ServiceError('REL_UNPROCESSABLE', 'the PDF has no text: scanned pages are not supported');
  return {
    title: typeof pdfTitle === 'string' && pdfTitle.trim() !== '' ? pdfTitle.trim() : null,
    text: pdfText,
    blocks: pdfBlockList,
  };
}

/** The parser cuts a character in two where a tag is never closed. */
function wellFormedText(documentText: string): string {
  return documentText.replaceAll(/\p{Surrogate}/gu, '\ufffd');
}
