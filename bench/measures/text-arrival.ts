/**
 * Texts that arrive while they are searched, 10,000 rows a second in batches of 1,000: until a batch is acknowledged, beside a type that
 * nobody searches, in turn; and from there until a search finds what came last.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { quotient, summary } from '../report.ts';
import { Texts } from './text.ts';

const batchRows = 1_000;
const everyMs = 100;
const batches = 100;
const rounds = 3;

export async function textArrival({ report, directory, port }: BenchContext): Promise<void> {
  const texts = new Texts();
  const server = await AnnalsServer.start(directory, 'text-arrival', port());
  const acknowledged: Record<string, number[]> = { Searched: [], Plain: [] };
  const found: number[] = [];
  let made = 0;
  const batch = async (type: string): Promise<string> => {
    // A word of letters: a number in it would be one of its own.
    const last = `zz${String(made).replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)]!)}`;
    const row = (k: number): string => `{"id":"d${made++}","text":"${texts.document()} ${k === batchRows - 1 ? last : ''}"}\n`;
    const lines = Array.from({ length: batchRows }, (_, k) => row(k)).join('');
    const began = performance.now();
    await server.ingest(type, lines, batchRows);
    acknowledged[type]!.push(performance.now() - began);
    return last;
  };
  const search = async (word: string): Promise<void> => {
    const began = performance.now();
    const { text } = await server.query(`SELECT id FROM Searched AS OF CURRENT WHERE MATCH(text, '${word}') LIMIT 2`);
    found.push(performance.now() - began);
    if (!text.includes('"row_count":1,')) throw new Error(`${word} is not found once: ${text.slice(0, 300)}`);
  };
  try {
    const properties = { id: 'string', text: 'string' };
    for (const name of Object.keys(acknowledged)) {
      await server.request('/types', JSON.stringify({ name, properties, primary_key: 'id' }));
      const last = await batch(name);
      if (name === 'Searched') await search(last);
    }
    for (let round = 0; round < rounds * 2; round++) {
      const type = round % 2 === 0 ? 'Searched' : 'Plain';
      const began = performance.now();
      for (let i = 0; i < batches; i++) {
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, began + i * everyMs - performance.now())));
        const last = await batch(type);
        if (type === 'Searched') await search(last);
      }
    }
  } finally {
    await server.stop();
  }
  const shape = { unit: 'ms', better: 'smaller' } as const;
  const measure = `a batch of ${batchRows.toLocaleString('en')} texts, 10,000 rows/s, until it is acknowledged`;
  report.add({ ...shape, measure, product: 'annals, searched', samples: acknowledged['Searched']! });
  report.add({ ...shape, measure, product: 'annals, not searched', samples: acknowledged['Plain']! });
  report.add({ ...shape, measure: 'from there until a search finds it', product: 'annals', samples: found });
  report.figure('text-arrival.acknowledged', quotient(acknowledged['Searched']!, acknowledged['Plain']!));
  found.sort((a, b) => a - b);
  report.figure('text-arrival.found', summary([found[Math.floor(found.length * 0.95)]!]));
}
