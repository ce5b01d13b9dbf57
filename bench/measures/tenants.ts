/**
 * Many tenants with small tables of their own: how soon such a store is open, what a table and a definition take beside rows, and
 * whether one tenant's questions cost what they cost in a store that holds this tenant alone.
 */
import { type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { BenchContext } from '../context.ts';
import type { Asked, Filled, Weighed } from '../gate-tenants.ts';
import { mustRun, pinned, program, serverCore, start, stop } from '../processes.ts';
import { quotient, summary } from '../report.ts';

const cwd = fileURLToPath(new URL('../..', import.meta.url));
/** Answers that only warm up, and those that count. */
const warm = 10;
const rounds = 30;

/** Tenants, types of each, rows of each type. */
type Shape = readonly [tenants: number, types: number, rows: number];

export async function tenants({ report, directory, rows, repeats }: BenchContext): Promise<void> {
  const [many, types, each]: Shape = rows < 1_000_000 ? [40, 10, 200] : [200, 50, 1_000];
  const shapes = {
    crowd: [many, types, each],
    joined: [1, types, each * many],
    alone: [1, types, each],
    defined: [many, types, 0],
    empty: [0, 0, 0],
  } as const satisfies Record<string, Shape>;
  type Name = keyof typeof shapes;
  const command = (name: Name, what: 'fill' | 'weigh' | 'ask'): string[] => {
    const made = program('gate-tenants.ts', `${directory}/tenants-${name}`, ...shapes[name].map(String), what);
    return pinned(serverCore, [process.execPath, '--expose-gc', ...made]);
  };
  const answered = async (name: Name, what: 'fill' | 'weigh'): Promise<unknown> => {
    const { stdout } = await mustRun(command(name, what), { cwd });
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  };

  const captured: Partial<Record<Name, number>> = {};
  const weighed = {} as Record<Name, Weighed[]>;
  for (const name of Object.keys(shapes) as Name[]) {
    captured[name] = ((await answered(name, 'fill')) as Filled).captureMs;
    weighed[name] = [];
    for (let i = 0; i < repeats; i++) weighed[name].push((await answered(name, 'weigh')) as Weighed);
  }
  const of = `${many} tenants of ${types} types, ${each.toLocaleString('en')} rows each`;
  const inProcess = { better: 'smaller', product: 'annals, in process' } as const;
  const seconds = weighed.crowd.map((each) => each.seconds);
  report.add({ ...inProcess, measure: `open from a checkpoint, ${of}`, unit: 's', samples: seconds });
  const joined = weighed.joined.map((each) => each.seconds);
  report.add({ ...inProcess, measure: 'open from a checkpoint, the same rows of one tenant', unit: 's', samples: joined });
  report.add({ ...inProcess, measure: `capture of a checkpoint, ${of}`, unit: 'ms', samples: [captured.crowd!] });

  const beside = (one: Name, other: Name, count: number): number[] =>
    weighed[one].map(({ bytes }, i) => (bytes - weighed[other][i]!.bytes) / count);
  const table = beside('crowd', 'joined', (many - 1) * types);
  const definition = beside('defined', 'empty', many * types);
  report.add({ ...inProcess, measure: 'a small table, beyond its rows', unit: 'B', samples: table, note: 'definition included' });
  report.add({ ...inProcess, measure: 'a definition without rows', unit: 'B', samples: definition });
  report.figure('tenants.table', summary(table));
  report.figure('tenants.definition', summary(definition));

  const [crowd, alone] = [new Answering(command('crowd', 'ask')), new Answering(command('alone', 'ask'))];
  const found: Record<'crowd' | 'alone', Asked[]> = { crowd: [], alone: [] };
  try {
    for (let round = -warm; round < rounds; round++) {
      // Whoever is asked first takes turns too.
      const order = round % 2 === 0 ? (['crowd', 'alone'] as const) : (['alone', 'crowd'] as const);
      for (const name of order) {
        const asked = await (name === 'crowd' ? crowd : alone).next();
        if (round >= 0) found[name].push(asked);
      }
    }
  } finally {
    await Promise.all([crowd.stop(), alone.stop()]);
  }
  for (const [question, text] of [
    ['aggregate', 'aggregate over one type'],
    ['sweep', `aggregates over all ${types} types`],
    ['read', 'point read by key'],
  ] as const) {
    const [among, by] = [found.crowd.map((asked) => asked[question]), found.alone.map((asked) => asked[question])];
    report.add({
      ...inProcess,
      measure: text,
      product: `annals, a tenant among ${many}`,
      unit: 'ms',
      samples: among,
      note: 'CPU',
    });
    report.add({ ...inProcess, measure: text, product: 'annals, a tenant alone', unit: 'ms', samples: by, note: 'CPU' });
    report.figure(`tenants.${question}`, paired(among, by));
  }
}

/** Of ratios of pairs: what else the machine does meets both of a pair. */
function paired(ours: readonly number[], theirs: readonly number[]): ReturnType<typeof quotient> {
  return summary(ours.map((ms, i) => ms / theirs[i]!));
}

/** A process that answers one line with one line. */
class Answering {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(command: readonly string[]) {
    this.#child = start(command, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  async next(): Promise<Asked> {
    this.#child.stdin!.write('\n');
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the process of a store ended');
    return JSON.parse(value as string) as Asked;
  }

  async stop(): Promise<void> {
    await stop(this.#child);
  }
}
