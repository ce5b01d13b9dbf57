/** `annals serve` as a process of its own, with none of the machine's settings and ports of the system's choice. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { anyPorts } from '../../any-ports.ts';

const root = join(import.meta.dirname, '../../..');

export interface Ended {
  readonly code: number | null;
  readonly said: string;
}

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ended>;
  #said = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve({ code, said: this.#said })));
  }

  /** A child that may refuse to start. */
  static spawn(directory: string, env: Readonly<Record<string, string>>): ServerProcess {
    const child = spawn(process.execPath, [join(root, 'bin/annals'), 'serve', '--data-dir', directory], {
      cwd: directory,
      env: {
        PATH: process.env['PATH'],
        HOME: directory,
        ...anyPorts,
        ...env,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return new ServerProcess(child);
  }

  /** Resolves once it serves, and has offered a token where it is to offer one. */
  static async start(
    directory: string,
    env: Readonly<Record<string, string>> = {},
    offers: 'a token' | 'nothing' = 'nothing',
  ): Promise<ServerProcess> {
    const server = ServerProcess.spawn(directory, env);
    const ended = server.#ended.then(({ code, said }) => {
      throw new Error(`ended with ${code}: ${said}`);
    });
    const serving = new Promise<void>((resolve) => {
      server.#child.stderr!.on('data', () => {
        if (offers === 'a token' ? server.token !== undefined : /wal sync/.test(server.said)) setTimeout(resolve, 300);
      });
    });
    await Promise.race([serving, ended]);
    ended.catch(() => undefined);
    return server;
  }

  /** All of its stderr so far. */
  get said(): string {
    return this.#said;
  }

  get url(): string {
    return /serves (https?:\S+),/.exec(this.#said)![1]!;
  }

  get adminUrl(): string {
    return /administration on (http:\S+)/.exec(this.#said)![1]!;
  }

  /** The token that a first start on free offers; undefined when it offered none. */
  get token(): string | undefined {
    return /export TOKEN=(ann_\S+)\n/.exec(this.#said)?.[1];
  }

  ended(): Promise<Ended> {
    return this.#ended;
  }

  signal(signal: NodeJS.Signals): Promise<Ended> {
    this.#child.kill(signal);
    return this.#ended;
  }
}

/** Directories of their own for the servers of one test file; `remove` when all are down. */
export class Directories {
  readonly #home = mkdtempSync(join(tmpdir(), 'annals-process-'));

  fresh(): string {
    return mkdtempSync(join(this.#home, 'data-'));
  }

  remove(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }
}
