/**
 * Markdown and HTML of any bytes. What must hold: nothing but a ServiceError is thrown; blocks stand in their order in the text, none
 * is empty or begins or ends with a blank line; chunks are pieces of the text by their offsets, no longer than they may be.
 */
import { Parser } from 'htmlparser2';
import * as marked from 'marked';
import { assert } from '../../../src/errors.ts';
import { type Blocks, formatOf, htmlBlocks, markdownBlocks } from '../../../src/doors/rich-text/blocks.ts';
import { chunksOf } from '../../../src/doors/rich-text/chunks.ts';

export const name = 'documents';

const size = 120;

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return documents.map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  formatOf(bytes, 'a.md');
  const source = new TextDecoder('utf-8').decode(bytes).slice(0, 4_096);
  check(htmlBlocks(source, Parser), 0);
  check(markdownBlocks(source.replaceAll(/\r\n?/g, '\n'), marked), 40);
}

function check({ text, blocks }: Blocks, overlap: number): void {
  let end = 0;
  for (const block of blocks) {
    assert(block.start >= end && block.end > block.start && block.end <= text.length, 'blocks stand in their order');
    assert(text.slice(block.start, block.end).trim() !== '', 'a block says something');
    end = block.end;
  }
  const points = Array.from(text);
  for (const chunk of chunksOf(text, blocks, size, overlap)) {
    assert(points.slice(chunk.start, chunk.end).join('') === chunk.content, 'a chunk is a piece of the text');
    assert(chunk.content.length <= size, 'and no longer than it may be');
  }
}

const documents = [
  '# A\n\ntext *with* `code`\n\n## B\n\n- one\n- two\n  - three\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nlet a\n```\n',
  '---\ntitle: x\n---\nA\n===\n\n[x]: http://y "t"\n\n<div>\nhi\n</div>\n\n***\n\n    indented\n',
  '<!doctype html><html><head><title>T &amp; x</title><style>a{}</style></head><body><h1>A</h1><p>x<br>y<ul><li>1<li>2</ul><table><tr><td>a<td>b</table>',
  '<body><pre>  a\n   b</pre><script>"<p>"</script><div hidden><h2>no</h2></div><img alt="c"><svg><text>n</text></svg></h3><p>&#x41;&bogus;',
  'one sentence. Another one! And a third? \u{1F600} \u{1F469}\u200d\u{1F680} 日本語の文。もう一つ。\r\n\r\nwindows\rmac\n\n\n\tend ' +
    'x'.repeat(300),
  '<body><pre>  a\n   b</prne! And a third? \u{1F600}',
  '<'.repeat(200) + '>'.repeat(50) + '[['.repeat(50) + '*a'.repeat(100),
];
