/** Searches every byte that a store leaves: as it lies there, and as its own readers open it. */
import { DerivedFile } from '../../src/log/blobs/derived-file.ts';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import { branches, type ErasedStore, plants } from './erased-store.ts';
import { Haystack, type Needle } from './haystack.ts';

export interface Searched {
  /** As the bytes lie on the disk, in what was said, in metrics and receipts. */
  readonly raw: Haystack;
  /** As the log, derived files and queries give them, unpacked and unsealed. */
  readonly decoded: Haystack;
  readonly files: number;
  readonly entries: number;
}

/** Of a store that is open. */
export async function searched(store: ErasedStore, needles: readonly Needle[]): Promise<Searched> {
  const [raw, decoded] = [new Haystack(needles), new Haystack(needles)];
  const { service, disk } = store;
  await store.indexed();
  await service.store.log.seal();
  await service.store.checkpoints!.take();
  let files = 0;
  for (const path of await filesBelow(disk, '/')) {
    const bytes = (await disk.readFile(path))!;
    files++;
    raw.text('names of files', path);
    raw.search(path, bytes);
  }
  raw.text('stderr', store.said.join('\n'));
  raw.text('receipts', store.receipts.join('\n'));
  for (const receipt of store.receipts) raw.text('receipts', payloadsIn(receipt));
  for (const path of ['/metrics', '/metrics.json', '/status', '/config']) raw.text(path, (await store.call('GET', path)).text);

  let entries = 0;
  for await (const entry of service.store.log.read(0)) {
    entries++;
    searchEntry(decoded, entry);
  }
  await searchDerived(store, decoded);
  for (const branch of branches) decoded.text(`answers, ${branch}`, await store.exported(branch));
  decoded.text('rules, jobs and workflows', await store.automated());
  const graph = await store.asGraph();
  if (graph.split('nodeId').length < needles.length / plants.length / 2) throw new Error('the graph has the nodes of the others');
  decoded.text('the graph', graph);
  return { raw, decoded, files, entries };
}

/** Everything that a body holds, texts and bytes alike. */
function searchEntry(hay: Haystack, { body, context }: CommittedEntry): void {
  const where = `log, ${body.kind}`;
  hay.text(where, JSON.stringify(context));
  const seen = new Set<object>();
  const walk = (value: unknown): void => {
    if (typeof value === 'string') hay.text(where, value);
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    if (ArrayBuffer.isView(value)) {
      hay.search(where, new Uint8Array(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer));
      return;
    }
    if ('size' in value && 'text' in value && typeof value.text === 'function') {
      for (let code = 0; code < Number(value.size); code++)
        hay.text(where, String((value as { text(code: number): string }).text(code)));
      return;
    }
    for (const inner of Object.values(value)) walk(inner);
  };
  walk(body);
}

async function searchDerived(store: ErasedStore, hay: Haystack): Promise<void> {
  const { disk, service } = store;
  const directory = `${store.directory}/projections`;
  for (const name of await disk.list(directory)) {
    // One that is being written: the next search meets it under its name.
    if (name.endsWith('.new')) continue;
    const file = await DerivedFile.open({ disk, keyring: service.store.keyring, directory, logId: null }, name);
    if (file === undefined) continue;
    const kind = name.replace(/-.*/, '');
    const where = kind === 'index' ? whereIn(await file.read('head')) : `derived, ${kind}`;
    for (const chunk of file.chunks()) hay.search(where, await file.read(chunk));
    if (where.endsWith('graph')) for (const word of wordsIn(await file.read('index'))) hay.search(where, word);
    await file.close();
  }
}

/** What an index says of itself. */
function whereIn(head: Uint8Array): string {
  return `derived, index, ${(JSON.parse(Buffer.from(head).toString()) as { kind: string }).kind}`;
}

/**
 * Vectors in a graph, as the bytes of words that they were made of: each at length 1, and with a last component that was 127. So the
 * library writes: numbers of 8 bytes, from the third one on how many there are, bytes of each, where its label lies, and its vector.
 */
function* wordsIn(graph: Uint8Array): Generator<Uint8Array> {
  const head = new DataView(graph.buffer, graph.byteOffset);
  const [count, stride, end, start] = [16, 24, 32, 40].map((at) => Number(head.getBigUint64(at, true))) as [
    number,
    number,
    number,
    number,
  ];
  for (let i = 0; i < count; i++) {
    const at = graph.byteOffset + 96 + i * stride;
    const vector = new Float32Array(graph.buffer.slice(at + start, at + end) as ArrayBuffer);
    yield Uint8Array.from(vector, (component) => Math.round((component / vector.at(-1)!) * 127));
  }
}

/** What base64 hides in a reply. */
function payloadsIn(reply: string): string {
  const found = [...reply.matchAll(/"payload":\s*"([A-Za-z0-9+/=]+)"/g)].map(([, payload]) => payload!);
  return found.map((payload) => Buffer.from(payload, 'base64').toString('utf8')).join('\n');
}

async function filesBelow(disk: ErasedStore['disk'], directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory)) {
    const path = `${directory === '/' ? '' : directory}/${name}`;
    if ((await disk.size(path)) !== undefined) found.push(path);
    else found.push(...(await filesBelow(disk, path)));
  }
  return found;
}
