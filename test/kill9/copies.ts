/**
 * What a kill leaves of a backup, or of a restore: something that is whole, or nothing that passes for it. Backups are taken, or
 * one is restored beside the store, again and again until the process is gone; then the commands say what is there.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface Killed {
  /** Of the store. */
  readonly data: string;
  /** For what else is made. */
  readonly home: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  run(args: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string };
  problem(what: string): void;
}

export interface Copying {
  /** Until the connection breaks. `begun`: what is to be killed is under way. */
  work(begun: () => void): Promise<void>;
  /** Once the process is gone. */
  check(): void;
  /** Once the next one has started. */
  started?(): Promise<void>;
  readonly figures: Readonly<Record<string, number>>;
}

interface Taken {
  readonly backup: string;
  readonly root: string;
}

export class Backups implements Copying {
  readonly figures = { backups: 0, backupsCut: 0 };
  readonly #killed: Killed;
  /** Said to be there, and not looked at yet. */
  #taken: Taken[] = [];

  constructor(killed: Killed) {
    this.#killed = killed;
  }

  async work(begun: () => void): Promise<void> {
    for (;;) {
      begun();
      const taken = await ask<Taken>(this.#killed, '/admin/backup', {});
      if (!taken) return;
      this.figures.backups++;
      this.#taken.push(taken);
      const left = this.#left();
      if (left.length > 0) this.#killed.problem(`${left.join(' ')} were left by a backup that was cut off, and not cleared`);
    }
  }

  check(): void {
    const { data, run, problem } = this.#killed;
    this.figures.backupsCut += this.#left().length;
    const listed = run(['backups', '--data-dir', data, '--json']);
    if (listed.status !== 0) return problem(`backups: ${listed.stdout}${listed.stderr}`);
    const { backups } = JSON.parse(listed.stdout) as { backups: Taken[] };
    const whole = new Map(backups.map(({ backup, root }) => [backup, root]));
    for (const { backup, root } of this.#taken)
      if (whole.get(backup) !== root) problem(`backup ${backup} is lost, or is of another root`);
    // The newest may be one that nobody was told of.
    for (const { backup } of backups.slice(-2)) {
      const drill = run(['restore', backup, '--data-dir', data, '--drill']);
      if (drill.status !== 0) problem(`drill of ${backup}: ${drill.stdout}${drill.stderr}`);
    }
    this.#taken = [];
    for (const { backup } of backups) rmSync(join(data, 'backups', backup), { recursive: true });
  }

  /** Directories without a document. */
  #left(): string[] {
    const home = join(this.#killed.data, 'backups');
    const names = existsSync(home) ? readdirSync(home) : [];
    return names.filter((name) => !existsSync(join(home, name, 'backup.json')));
  }
}

export class Restores implements Copying {
  readonly figures = { restores: 0, restoresCut: 0, restoresUntouched: 0 };
  readonly #killed: Killed;
  readonly #target: string;
  #of: Taken | null = null;

  constructor(killed: Killed) {
    this.#killed = killed;
    this.#target = join(killed.home, 'restored');
  }

  async work(begun: () => void): Promise<void> {
    this.#of = (await ask<Taken>(this.#killed, '/admin/backup', {})) ?? this.#of;
    if (!this.#of) return begun();
    // A restore is under way once there is something of it.
    const looking = setInterval(() => existsSync(this.#target) && begun(), 5);
    await this.#again(this.#of);
    clearInterval(looking);
    begun();
  }

  async #again({ backup, root }: Taken): Promise<void> {
    for (;;) {
      const body = { backup, target_dir: this.#target };
      const report = await ask<{ root: string; root_match: boolean }>(this.#killed, '/admin/restore', body);
      if (!report) return;
      this.figures.restores++;
      if (!report.root_match || report.root !== root) this.#killed.problem(`restored ${JSON.stringify(report)}`);
      rmSync(this.#target, { recursive: true });
    }
  }

  check(): void {
    const { data, run, problem } = this.#killed;
    if (!this.#of) return;
    const names = existsSync(this.#target) ? readdirSync(this.#target) : [];
    const cut = names.includes('.annals-restoring');
    if (cut) {
      this.figures.restoresCut++;
      const opened = run(['replay', '--data-dir', this.#target]);
      if (opened.status !== 3) problem(`half a restore was opened: ${opened.stdout}${opened.stderr}`);
    } else if (names.length === 0) this.figures.restoresUntouched++;
    if (cut || names.length === 0) {
      const again = run(['restore', this.#of.backup, '--data-dir', data, '--target', this.#target]);
      if (again.status !== 0) problem(`restored after a kill: ${again.stdout}${again.stderr}`);
    }
    const verified = run(['verify', '--data-dir', this.#target]);
    if (verified.status !== 0 || !verified.stdout.includes(this.#of.root))
      problem(`what was restored: ${verified.stdout}${verified.stderr}`);
    rmSync(this.#target, { recursive: true, force: true });
    rmSync(join(data, 'backups'), { recursive: true, force: true });
    this.#of = null;
  }
}

/** Null once the connection breaks; anything but success is a problem. */
async function ask<T>({ adminUrl, adminToken, problem }: Killed, path: string, body: object): Promise<T | null> {
  try {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
    const reply = await fetch(adminUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
    const said = (await reply.json()) as T;
    if (reply.status === 200) return said;
    problem(`${path}: ${reply.status} ${JSON.stringify(said)}`);
  } catch {
    // The process is gone.
  }
  return null;
}
