/** Data directories that several measures start from: each is loaded once in a run, by bulk ingest with every core open. */
import { cpSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AnnalsServer } from './annals-server.ts';
import { versions } from './workload.ts';

export interface DataSet {
  readonly type: 'Version';
  /** Versions in it. */
  readonly count: number;
  /** The same as NDJSON. */
  readonly inputBytes: number;
  readonly parent: string;
  readonly name: string;
  /** Version number `at`, at 80 % of the history, and its system instant as SQL writes it. */
  readonly at: number;
  readonly instant: string;
}

export class DataSets {
  readonly #directory: string;
  readonly #port: () => number;
  readonly #made = new Map<number, Promise<DataSet>>();

  constructor(directory: string, port: () => number) {
    this.#directory = directory;
    this.#port = port;
  }

  versions(count: number): Promise<DataSet> {
    let made = this.#made.get(count);
    if (made === undefined) this.#made.set(count, (made = this.#load(count)));
    return made;
  }

  /** A copy that a measure may change; without derived files it has nothing but its log to start from. */
  copy(set: DataSet, name: string, options: { readonly derived: boolean }): DataSet {
    const target = join(set.parent, name);
    rmSync(target, { recursive: true, force: true });
    cpSync(join(set.parent, set.name), target, {
      recursive: true,
      filter: (path) => basename(path) !== 'lock' && (options.derived || basename(path) !== 'projections'),
    });
    return { ...set, name };
  }

  async #load(count: number): Promise<DataSet> {
    const name = `versions-${count}`;
    // A version that is the only one of its key, so that its instant can be asked for.
    const at = Math.floor((count * 0.8) / 20) * 20;
    const server = await AnnalsServer.start(this.#directory, name, this.#port(), { cores: 'all' });
    try {
      await server.request('/types', JSON.stringify({ name: 'Version', properties: versions.properties, primary_key: 'id' }));
      const input = { bytes: 0 };
      const began = performance.now();
      await server.ingest('Version', versionLines(count, input), count);
      const seconds = (performance.now() - began) / 1000;
      const reply = await server.query(`SELECT system_from FROM Version WHERE _pk = '${versions.key(at)}'`);
      const instant = instantText(/"system_from":(\d+)/.exec(reply.text)![1]!);
      console.log(`  loaded ${count.toLocaleString('en')} versions in ${seconds.toFixed(1)} s, for all measures that need them`);
      return { type: 'Version', count, inputBytes: input.bytes, parent: this.#directory, name, at, instant };
    } finally {
      await server.stop();
    }
  }
}

/** Nanoseconds since 1970 as SQL writes an instant. */
export function instantText(nanoseconds: string): string {
  const seconds = new Date(Number(BigInt(nanoseconds) / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  return `${seconds}.${nanoseconds.slice(-9)}Z`;
}

function* versionLines(count: number, made: { bytes: number }): Generator<Buffer> {
  for (let i = 0; i < count; ) {
    let text = '';
    for (const end = Math.min(i + 5_000, count); i < end; i++) text += versions.json(i);
    made.bytes += text.length;
    yield Buffer.from(text);
  }
}
