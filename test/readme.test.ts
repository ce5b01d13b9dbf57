/**
 * README and the pages that it leads to are run as they are written, one after the other: their `sh` blocks in one shell, in
 * order, against a server that `npm start` started; a `text` block after one is what it must print, `…` standing for whatever
 * differs from run to run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { freePort } from './clients/free-port.ts';

interface Block {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly text: string;
}

const root = join(import.meta.dirname, '..');
/** In the order of the tour, as docs/http.md says it. */
const pages = [
  'README.md',
  ...[
    'http',
    'agents',
    'search',
    'languages',
    'graph',
    'sigma',
    'automation',
    'domain',
    'tenants',
    'proofs',
    'erasure',
    'backups',
    'objects',
    'keyvalue',
    'documents',
    'postgres',
  ].map((name) => `docs/${name}.md`),
];
/** By setting: what stands before the port, and the port that the pages name. Others on this machine may have it. */
const ports: Readonly<Record<string, readonly [form: string, documented: string]>> = {
  SERVICE_PORT: ['', '9090'],
  SERVICE_ADMIN_BIND: ['127.0.0.1:', '9091'],
  SERVICE_OBJECT_PORT: ['', '9191'],
  SERVICE_KV_PORT: ['', '6379'],
  SERVICE_DOCUMENT_PORT: ['', '27017'],
  SERVICE_RELATIONAL_PORT: ['', '5433'],
  SERVICE_COLUMNAR_HTTP_PORT: ['', '8123'],
  SERVICE_COLUMNAR_NATIVE_PORT: ['', '9000'],
  SERVICE_GRAPH_HTTP_PORT: ['', '7474'],
  SERVICE_GRAPH_BINARY_PORT: ['', '7687'],
  SERVICE_GRPC_PORT: ['', '50051'],
  SERVICE_FLIGHT_PORT: ['', '8815'],
};
/** Ports of the second server that some pages start. */
const secondPorts = ['9290', '9291'];

const directory = mkdtempSync(join(tmpdir(), 'annals-readme-'));
const dataDir = join(directory, 'data/service');
let server: ChildProcess | undefined;
let token = '';
const shellState: { token: string } = { token: '' };

afterAll(async () => {
  server?.kill('SIGKILL');
  if (server) await gone();
  rmSync(directory, { recursive: true, force: true });
});

test('every example of README and docs does and prints what they say', async () => {
  const taken = new Map<string, number>();
  for (const [, documented] of Object.values(ports)) taken.set(documented, await freePort());
  for (const documented of secondPorts) taken.set(documented, await freePort());
  const env = {
    ...process.env,
    ...Object.fromEntries(Object.entries(ports).map(([name, [form, documented]]) => [name, form + taken.get(documented)])),
    SERVICE_DATA_DIR: dataDir,
    SERVICE_RELATIONAL_ENABLE: 'false',
  };
  const localized = (text: string): string => {
    let local = text.replaceAll('SERVICE_PORT=9290', `SERVICE_PORT=${taken.get('9290')}`);
    for (const [documented, free] of taken) local = local.replaceAll(`127.0.0.1:${documented}`, `127.0.0.1:${free}`);
    return local
      .replaceAll("'127.0.0.1', port: 8815", `'127.0.0.1', port: ${taken.get('8815')}`)
      .replaceAll('/tmp/', `${directory}/`)
      .replaceAll('data/service/lock', join(dataDir, 'lock'));
  };
  const blocks = pages.flatMap((page) => {
    const found = readBlocks(page, readFileSync(join(root, page), 'utf8'));
    expect(found.length, `examples in ${page}`).toBeGreaterThan(1);
    return found;
  });
  const shell = new Shell(env);
  for (const [i, block] of blocks.entries()) {
    if (block.language !== 'sh') continue;
    if (block.text.trim() === 'npm start') {
      // The administrator's credential comes from the shell that the server is started from.
      const { output } = await shell.run('printf %s "${SERVICE_ADMIN_TOKEN-}"');
      const credential = output.trim();
      await startServer({ ...env, ...(credential === '' ? {} : { SERVICE_ADMIN_TOKEN: credential }) });
      await shell.run(`export TOKEN=${shellState.token}`);
      continue;
    }
    const { code, output } = await shell.run(localized(block.text));
    expect(code, `${block.page}:${block.line} ended with ${code}:\n${output}`).toBe(0);
    const expected = blocks[i + 1];
    if (expected?.language === 'text')
      expectPrinted(output, localized(expected.text).replaceAll('./data/service', dataDir), `${block.page}:${block.line}`);
    if (block.text.includes('kill -9')) await gone();
  }
  await shell.end();
}, 900_000);

/** Runs pieces of script in one bash, so that variables last. */
class Shell {
  readonly #bash: ChildProcess;
  #output = '';
  #wake: () => void = () => undefined;
  #exited: number | null = null;

  constructor(env: NodeJS.ProcessEnv) {
    this.#bash = spawn('bash', ['-eu', '-o', 'pipefail'], { cwd: root, env });
    for (const stream of [this.#bash.stdout!, this.#bash.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (stream === this.#bash.stdout || /annals:|error/i.test(text)) this.#output += text;
        this.#wake();
      });
    }
    this.#bash.on('exit', (code) => {
      this.#exited = code ?? 1;
      this.#wake();
    });
  }

  async run(script: string): Promise<{ code: number; output: string }> {
    this.#output = '';
    const mark = `--done-${Math.round(performance.now() * 1000)}--`;
    this.#bash.stdin!.write(`${script}\necho; echo '${mark}'\n`);
    while (!this.#output.includes(mark) && this.#exited === null) await new Promise<void>((resolve) => (this.#wake = resolve));
    return { code: this.#exited ?? 0, output: this.#output.replace(`\n${mark}\n`, '') };
  }

  /** Until it is gone: what it took counts then, and would be taken for the next file's. */
  async end(): Promise<void> {
    this.#bash.stdin!.end();
    while (this.#exited === null) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

function readBlocks(page: string, markdown: string): Block[] {
  const blocks: Block[] = [];
  for (const match of markdown.matchAll(/^```(\S+)([^\n]*)\n(.*?)^```$/gms)) {
    const [, language, flags, text] = match;
    if (flags!.includes('not-run')) continue;
    blocks.push({ page, language: language!, text: text!, line: markdown.slice(0, match.index).split('\n').length });
  }
  return blocks;
}

/** Every expected line occurs, in order; `…` matches anything. */
function expectPrinted(output: string, expected: string, place: string): void {
  const lines = output.split('\n').map((text) => text.trimEnd());
  let from = 0;
  for (const wanted of expected.trimEnd().split('\n')) {
    const pattern = new RegExp(
      `^${wanted
        .trimEnd()
        .split('…')
        .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        .join('.*')}$`,
    );
    const at = lines.findIndex((text, i) => i >= from && pattern.test(text));
    expect(at, `${place} should print ${JSON.stringify(wanted)}, printed:\n${output}`).toBeGreaterThanOrEqual(from);
    from = at + 1;
  }
}

async function startServer(env: NodeJS.ProcessEnv): Promise<void> {
  server = spawn(process.execPath, ['bin/annals', 'serve'], { cwd: root, env, stdio: ['ignore', 'inherit', 'pipe'] });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    server!.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (/serves http/.test(said) && (token !== '' || /export TOKEN=ann_\S+\s/.test(said))) resolve();
    });
    server!.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  token ||= /export TOKEN=(ann_\S+)/.exec(said)![1]!;
  shellState.token = token;
}

async function gone(): Promise<void> {
  if (server!.exitCode === null && server!.signalCode === null) await new Promise((resolve) => server!.once('exit', resolve));
}
