/** An embedding model behind an endpoint as OpenAI's, of three meanings. Counts what it is asked, and is down when it is told to be. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Asked {
  readonly model: string;
  readonly input: string | readonly string[];
}

export class FakeModel {
  /** Every text that came, in order. */
  readonly texts: string[] = [];
  calls = 0;
  isDown = false;
  /** Refuses several texts at a time, as of rows. */
  refusesRows = false;
  /** Answers of rows wait for it. */
  held: Promise<void> | null = null;
  #server!: Server;

  async open(): Promise<this> {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        this.calls++;
        const { input, model } = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
        const isRows = typeof input !== 'string';
        if (this.isDown || (this.refusesRows && isRows) || (isRows && input.some((text) => text.includes('unspeakable'))))
          return void response.writeHead(503).end();
        const texts = isRows ? input : [input];
        this.texts.push(...texts);
        // Whatever order they come in.
        const data = texts.map((text, index) => ({ index, embedding: meaningOf(text, model) })).toReversed();
        const answer = (): void => void response.end(JSON.stringify({ data }));
        if (isRows && this.held) void this.held.then(answer);
        else answer();
      });
    });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get settings(): Record<string, string> {
    const { port } = this.#server.address() as AddressInfo;
    return { SERVICE_EMBED_URL: `http://127.0.0.1:${port}/v1/embeddings`, SERVICE_EMBED_MODEL: 'small' };
  }

  close(): void {
    this.#server.close();
  }
}

/** Directions of three meanings; `turned` has them in another order, `long` has one more number. */
function meaningOf(text: string, model: string): number[] {
  const of = (words: RegExp): number => (words.test(text) ? 1 : 0.01);
  const meaning = [of(/dog|puppy|hound/i), of(/boat|ship|vessel/i), of(/bread|loaf/i)];
  if (model === 'turned') return meaning.toReversed();
  return model === 'long' ? [...meaning, 0] : meaning;
}
