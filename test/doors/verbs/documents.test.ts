/** Documents: what is read of each format, where its chunks stand, and what rests on them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksOf, formatOf } from '../../../src/doors/rich-text/blocks.ts';
import { chunksOf, readDocument } from '../../../src/doors/rich-text/chunks.ts';
import type { DocumentFormat } from '../../../src/doors/rich-text/rich-text.ts';
import { StoreWorld } from '../http/store-world.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (text: string, format: DocumentFormat | null = null, chunkSize = 100, overlap = 0) =>
  readDocument({ bytes: bytesOf(text), format, name: null, chunkSize, overlap });

/** A PDF of these pages, each of these lines. */
function pdfOf(pages: readonly (readonly string[])[], title = 'A small PDF'): Buffer {
  const objects: string[] = [];
  const add = (body: string): number => objects.push(body);
  add('<< /Type /Catalog /Pages 2 0 R >>');
  const kids = pages.map((_, i) => `${4 + i * 2} 0 R`).join(' ');
  add(`<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`);
  add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>');
  for (const lines of pages) {
    const content = `BT /F1 12 Tf 72 720 Td ${lines.map((line) => `(${line}) Tj 0 -20 Td`).join(' ')} ET`;
    const at = objects.length + 1;
    add(`<< /Type /Page /Parent 2 0 R /Contents ${at + 1} 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> >>`);
    add(`<< /Length ${content.length} >>\nstream\n${content}\nendstream`);
  }
  const info = add(`<< /Title (${title}) >>`);
  let text = '%PDF-1.4\n';
  const offsets = objects.map((body, i) => {
    const offset = text.length;
    text += `${i + 1} 0 obj\n${body}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const begin = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info ${info} 0 R >>\n`;
  return Buffer.from(`${text}startxref\n${begin}\n%%EOF`, 'latin1');
}

describe('reading', () => {
  test.each(['text', 'markdown'] as const)(
    'ends of lines of %s are LF, whichever they were, and offsets are of those',
    async (format) => {
      const { text, blocks } = await blocksOf(bytesOf('One\r\ntwo\r\n\r\nthree\rfour\n'), format);
      expect(text).toBe('One\ntwo\n\nthree\nfour\n');
      expect(blocks.map(({ start, end }) => text.slice(start, end))).toEqual(['One\ntwo', 'three\nfour']);
    },
  );

  test('formats are told from what is in a document, then from its name', () => {
    const told = (text: string, name: string | null = null): string => formatOf(bytesOf(text), name);
    expect(formatOf(pdfOf([['x']]), 'x.md')).toBe('pdf');
    expect([told('<!DOCTYPE html><p>x'), told('\ufeff <html lang="en">'), told('<!-- x --><body>')]).toEqual([
      'html',
      'html',
      'html',
    ]);
    expect([told('# x', 'a/b.md'), told('x', 'https://x.y/a.html?q=1'), told('x', 'x.md.txt'), told('# x')]).toEqual([
      'markdown',
      'html',
      'text',
      'text',
    ]);
  });

  test('Markdown: blocks under their headings, as they stand in the source', async () => {
    const source =
      '---\ntitle: x\n---\n# Tea\r\n\r\nGreen *tea* is hot.\n\n## Pots\n\n- iron\n- clay\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x]: http://y\n\n# Milk\n\n```js\nlet a\n```\n';
    const { title, text, blocks } = await blocksOf(bytesOf(source), 'markdown');
    expect(title).toBe('Tea');
    expect(blocks.map(({ start, end, heading }) => [heading, text.slice(start, end)])).toEqual([
      ['Tea', '# Tea'],
      ['Tea', 'Green *tea* is hot.'],
      ['Tea > Pots', '## Pots'],
      ['Tea > Pots', '- iron\n- clay'],
      ['Tea > Pots', '| a | b |\n|---|---|\n| 1 | 2 |'],
      ['Milk', '# Milk'],
      ['Milk', '```js\nlet a\n```'],
    ]);
  });

  test('Markdown: quotes and lists within each other, however deep, are one block of the text', async () => {
    for (const deep of [`${'>'.repeat(20_000)} x\ny`, `${'- '.repeat(20_000)}x`, `${'> - '.repeat(40)}x\nlazy\n===`]) {
      const { text, blocks } = await blocksOf(bytesOf(`# A\n\n${deep}\n\nend\n`), 'markdown');
      expect(blocks.map(({ start, end }) => text.slice(start, end))).toEqual(['# A', deep, 'end']);
    }
  });

  test('HTML: what a reader sees, without scripts, styles and what is hidden', async () => {
    const source =
      '<!doctype html><html><head><title>All of &amp; tea</title><style>p{}</style></head><body><h1>Tea <b>pots</b></h1>' +
      '<script>alert("<p>no</p>")</script><p>Green   tea\n is <i>hot</i>.<br>Really.</p><div hidden><p>secret</p></div>' +
      '<ul><li>iron<li>clay</ul><table><tr><th>a</th><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>' +
      '<h2>Code</h2><pre>  x\n    y</pre><p>5 &lt; 6 <img alt="a cup"></p>';
    const { title, text, blocks } = await blocksOf(bytesOf(source), 'html');
    expect(title).toBe('All of & tea');
    expect(blocks.map(({ start, end, heading }) => [heading, text.slice(start, end)])).toEqual([
      ['Tea pots', 'Tea pots'],
      ['Tea pots', 'Green tea is hot.\nReally.'],
      ['Tea pots', '- iron'],
      ['Tea pots', '- clay'],
      ['Tea pots', 'a | b'],
      ['Tea pots', '1 | 2'],
      ['Tea pots > Code', 'Code'],
      ['Tea pots > Code', '  x\n    y'],
      ['Tea pots > Code', '5 < 6 a cup'],
    ]);
    expect(text).not.toMatch(/alert|secret|p\{/);
  });

  test('PDF: its pages, its title; what is none, and what has no text, is refused', async () => {
    const made = await readDocument({
      bytes: pdfOf([['The kettle is blue.', 'It whistles.'], ['Second page.']]),
      format: null,
      name: null,
      chunkSize: 200,
      overlap: 0,
    });
    expect([made.format, made.title]).toEqual(['pdf', 'A small PDF']);
    expect(made.chunks.map(({ page, content }) => [page, content.replaceAll(/\s+/g, ' ')])).toEqual([
      [1, 'The kettle is blue. It whistles.'],
      [2, 'Second page.'],
    ]);
    await expect(read('%PDF-1.4 nonsense')).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
    await expect(
      readDocument({ bytes: pdfOf([['']]), format: 'pdf', name: null, chunkSize: 200, overlap: 0 }),
    ).rejects.toMatchObject({
      code: 'REL_UNPROCESSABLE',
    });
  });

  test('chunks are pieces of the text: offsets count characters, and every word is in one', async () => {
    const words = Array.from({ length: 400 }, (_, i) => (i % 4 === 0 ? `😀${i}.` : `Word${i}`));
    const text = `${words.slice(0, 200).join(' ')}\n\n${words.slice(200).join(' ')} ${'x'.repeat(150)}😀😀`;
    for (const overlap of [0, 40]) {
      const { chunks, length } = await read(text, 'text', 100, overlap);
      const points = Array.from(text);
      expect(length).toBe(points.length);
      for (const { content, start, end } of chunks) {
        expect(points.slice(start, end).join('')).toBe(content);
        expect([content.length <= 100, !/\p{Cs}/u.test(content)]).toEqual([true, true]);
      }
      const covered = new Set(chunks.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, i) => start + i)));
      expect(points.every((point, i) => covered.has(i) || /\s/.test(point))).toBe(true);
      const repeats = chunks.some(({ start }, i) => i > 0 && start < chunks[i - 1]!.end);
      expect(repeats).toBe(overlap > 0);
    }
    expect(() =>
      chunksOf(
        'a\n\n'.repeat(20_000),
        Array.from({ length: 20_000 }, (_, i) => block(i * 3)),
        1,
        0,
      ),
    ).toThrow(/more than 4000 chunks/);
  });

  test('what is no text is refused', async () => {
    await expect(
      readDocument({ bytes: Uint8Array.of(0xff, 0xfe, 0x41), format: 'text', name: null, chunkSize: 100, overlap: 0 }),
    ).rejects.toThrow(/not UTF-8/);
    await expect(read('a\0b', 'text')).rejects.toThrow(/NUL/);
  });
});

const block = (start: number) => ({ start, end: start + 1, page: null, heading: null });

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

/** Whatever a reply holds. */
type Json = ReturnType<typeof JSON.parse>;

const call = async (name: string, given: object, headers = {}): Promise<{ status: number; json: Json }> => {
  const { status, json } = await world.call(
    'POST',
    '/mcp/tools/call',
    { name, arguments: { purpose: 'test', ...given } },
    headers,
  );
  return { status, json: json as Json };
};
const told = async (name: string, given: object, headers = {}): Promise<Json> => {
  const { status, json } = await call(name, given, headers);
  expect([name, status, json['detail'] ?? null]).toEqual([name, 200, null]);
  return json['content'][1].json;
};

describe('ingest_document', () => {
  const manual = '# Kettles\n\nThe kettle is blue.\n\n## Care\n\nDescale it in spring.';

  test('one DocumentSource, its chunks with offsets, found by search_knowledge, recall and justify', async () => {
    const made = await told('ingest_document', { content: manual, uri: 'manual.md', chunk_size: 100 });
    expect(made).toMatchObject({ format: 'markdown', title: 'Kettles', chunks: 2, length: manual.length, replaced: 0 });
    expect(
      await world.rows(
        `SELECT _pk, title, uri, format, length, content_hash FROM DocumentSource WHERE _pk = '${made.source_id}'`,
      ),
    ).toEqual([
      {
        _pk: made.source_id,
        title: 'Kettles',
        uri: 'manual.md',
        format: 'markdown',
        length: manual.length,
        content_hash: made.content_hash,
      },
    ]);
    const rows = await world.rows(
      `SELECT _pk, sequence, content, heading, start_offset, end_offset FROM DocumentChunk WHERE source_id = '${made.source_id}' ORDER BY sequence`,
    );
    expect(rows.map(({ _pk }) => _pk)).toEqual(made.chunk_ids);
    expect(rows.map((row) => [row['heading'], row['content']])).toEqual([
      ['Kettles', '# Kettles\n\nThe kettle is blue.'],
      ['Kettles > Care', '## Care\n\nDescale it in spring.'],
    ]);
    for (const row of rows) expect(manual.slice(row['start_offset'] as number, row['end_offset'] as number)).toBe(row['content']);
    const found = await told('search_knowledge', { query: 'descale spring', source_filter: made.source_id });
    expect(found['hits'][0]).toMatchObject({ type: 'DocumentChunk', row: { _pk: made.chunk_ids[1], heading: 'Kettles > Care' } });
    const { memories } = await told('recall', { query: 'when to descale', type: 'DocumentChunk' });
    expect(memories[0]).toMatchObject({ id: made.chunk_ids[1], fields: { heading: 'Kettles > Care' } });
    const { chain } = await told('justify', { id: made.chunk_ids[1] });
    expect(chain.map(({ kind }: Json) => kind).sort()).toEqual(['DocumentChunk', 'DocumentSource', 'ToolCall']);
  });

  test('the same source again is a new version; the earlier one is there as of before', async () => {
    const first = await told('ingest_document', {
      content: 'One.\n\nTwo.\n\nThree.',
      source_id: 'doc-1',
      chunk_size: 100,
      format: 'text',
    });
    expect(first['chunks']).toBe(1);
    const longer = await told('ingest_document', {
      content: `${'a '.repeat(49)}b.\n\n${'c '.repeat(49)}d.`,
      source_id: 'doc-1',
      chunk_size: 100,
    });
    expect([longer['chunks'], longer['replaced']]).toEqual([2, 0]);
    const last = await told('ingest_document', { content: 'Only this.', source_id: 'doc-1' });
    expect([last['chunks'], last['replaced']]).toEqual([1, 1]);
    const chunks = (at: string) => world.rows(`SELECT content FROM DocumentChunk AS OF ${at} WHERE source_id = 'doc-1'`);
    expect(await chunks('CURRENT')).toEqual([{ content: 'Only this.' }]);
    // Another path keeps its own document under that id.
    const other = { 'x-organization-id': 'acme' };
    expect((await told('ingest_document', { content: 'Theirs.', source_id: 'doc-1' }, other))['replaced']).toBe(0);
    expect(await chunks('CURRENT')).toEqual([{ content: 'Only this.' }]);
  });

  test('as many chunks as there may be are one append, and a longer version that follows, and a shorter one', async () => {
    const line = (i: number): string => `Line ${i} of a long book, padded so that it has a chunk of its own: ${'x'.repeat(40)}.`;
    const book = (lines: number): object => ({
      content: Array.from({ length: lines }, (_, i) => line(i)).join('\n\n'),
      source_id: 'book',
      chunk_size: 120,
    });
    expect((await told('ingest_document', book(4_000)))['chunks']).toBe(4_000);
    expect(await told('ingest_document', book(3))).toMatchObject({ chunks: 3, replaced: 3_997 });
    expect(await told('ingest_document', book(4_000))).toMatchObject({ chunks: 4_000, replaced: 0 });
    expect((await call('ingest_document', book(4_001))).status).toBe(422);
  });

  test('a PDF in base64, read in a thread; and what is malformed', async () => {
    const encoded = pdfOf([['The boiler is red.']]).toString('base64');
    expect(await told('ingest_document', { content_base64: encoded })).toMatchObject({
      format: 'pdf',
      title: 'A small PDF',
      chunks: 1,
    });
    const status = async (given: object): Promise<number> => (await call('ingest_document', given)).status;
    expect(await status({})).toBe(400);
    expect(await status({ content: 'x', content_base64: encoded })).toBe(400);
    expect(await status({ content_base64: '!' })).toBe(400);
    expect(await status({ content: 'x', format: 'docx' })).toBe(400);
    expect(await status({ content: 'x', overlap: 900 })).toBe(400);
    expect(await status({ content: '%PDF-1.4 nonsense' })).toBe(422);
    expect(await status({ content: ' \n ' })).toBe(422);
  });
});

describe('rag', () => {
  test('elements and answers; quarantine of a source hides its chunks and what was answered from them, from every search', async () => {
    const made = await told('rag_store_elements', {
      title: 'Vault',
      elements: [
        { type: 'Title', text: 'The vault manual' },
        { text: 'The vault code is 0000', page: 3, start_offset: 20, end_offset: 42, metadata: { filename: 'v.pdf' } },
        'The vault is heavy',
      ],
    });
    expect(
      await world.rows(
        `SELECT element_type, page, start_offset, metadata FROM DocumentChunk WHERE _pk = '${made['chunk_ids'][1]}'`,
      ),
    ).toEqual([{ element_type: null, page: 3, start_offset: 20, metadata: { filename: 'v.pdf' } }]);
    const sources = [made['chunk_ids'][1]];
    const answer = await told('rag_store_answer', {
      question: 'the vault code?',
      answer: 'It is 0000.',
      source_ids: sources,
      confidence: 0.7,
    });
    expect(answer).toMatchObject({ confidence: 0.7, source_ids: sources });
    expect(await world.rows(`SELECT content, memory_class, question FROM MemoryItem WHERE _pk = '${answer['id']}'`)).toEqual([
      { content: 'It is 0000.', memory_class: 'answer', question: 'the vault code?' },
    ]);
    expect((await call('rag_store_answer', { question: 'x', answer: 'y', source_ids: ['nothing'] })).status).toBe(400);
    const { derived } = await told('justify', { id: made['source_id'] });
    expect(derived.map(({ id }: Json) => id)).toEqual(expect.arrayContaining([...made['chunk_ids'], answer['id']]));

    const ids = async (): Promise<string[]> =>
      (await told('search_knowledge', { query: 'vault 0000', limit: 50 }))['hits'].map(({ row }: Json) => row['_pk']);
    const hybrid = async (): Promise<number> => {
      const { rows } = await told('hybrid_search', { query: 'the vault', entity_type: 'DocumentChunk' });
      return rows.filter(({ _pk }: Json) => made['chunk_ids'].includes(_pk)).length;
    };
    const before = await hybrid();
    expect(await ids()).toEqual(expect.arrayContaining([made['source_id'], ...made['chunk_ids'], answer['id']]));
    const hidden = said(
      await world.call('POST', `/memory/quarantine/${made['source_id']}`, { purpose: 'test', reason: 'forged' }),
    );
    expect(hidden.count).toBe(5);
    expect(await ids()).toEqual([]);
    expect([before, await hybrid()]).toEqual([3, 0]);
    expect((await told('recall', { query: 'vault code', class_filter: 'answer' }))['memories']).toEqual([]);
    said(await world.call('DELETE', `/memory/quarantine/${made['source_id']}?purpose=test`));
    expect(await ids()).toContain(answer['id']);
  });

  test('POST /rag/ingest answers 202 with a task that ends', async () => {
    const chunks = ['a first chunk of a lighthouse', { content: 'a second one', page: 2, embedding: [1, 0] }];
    const { status, json } = await world.call('POST', '/rag/ingest', {
      source_id: 'light',
      title: 'Lights',
      chunks,
      purpose: 'test',
    });
    expect([status, json]).toMatchObject([
      202,
      { source_id: 'light', chunks: 2, status_url: `/rag/ingest/${json['task_id'] as string}` },
    ]);
    const done = async (id: unknown): Promise<Json> => {
      for (;;) {
        const { json: task } = await world.call('GET', `/rag/ingest/${id as string}`);
        if (task['state'] === 'done' || task['state'] === 'failed') return task;
      }
    };
    expect(await done(json['task_id'])).toMatchObject({
      state: 'done',
      accepted: 2,
      reply: { type: 'DocumentChunk', ids: ['light#0', 'light#1'] },
    });
    expect(await world.rows("SELECT title FROM DocumentSource WHERE _pk = 'light'")).toEqual([{ title: 'Lights' }]);
    expect((await world.rows("SELECT _emb_content FROM DocumentChunk WHERE _pk = 'light#1'"))[0]!['_emb_content']).toEqual([
      1, 0,
    ]);
    const wrong = await world.call('POST', '/rag/ingest', { chunks: [{ content: 'x', start_offset: 5, end_offset: 1 }] });
    expect(await done(wrong.json['task_id'])).toMatchObject({
      state: 'failed',
      problem: { status: 400, instance: '/rag/ingest' },
    });
    expect((await world.call('POST', '/rag/ingest', {})).status).toBe(400);
    expect((await world.call('GET', '/rag/ingest/none')).status).toBe(404);
  });
});

/** The JSON text of a memory envelope. */
function said({ status, json, text }: { status: number; json: Json; text: string }): Json {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(json['content'][0].text);
}
