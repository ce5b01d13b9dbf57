/** A PostgreSQL of its own, from Debian's package, on a free port and in a folder that goes with it. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../clients/free-port.ts';

const binaries = '/usr/lib/postgresql/15/bin';

export interface Peer {
  readonly port: number;
  stop(): void;
}

/** Null where the package is not installed. The user `raw` owns the database `annals`. */
export async function startPostgres(secret: string): Promise<Peer | null> {
  if (!existsSync(join(binaries, 'initdb'))) return null;
  const directory = mkdtempSync(join(tmpdir(), 'annals-postgres-'));
  const password = join(directory, 'password');
  const data = join(directory, 'data');
  writeFileSync(password, secret);
  chmodSync(directory, 0o777);
  chmodSync(password, 0o644);
  // PostgreSQL refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const run = (...command: readonly string[]): void => {
    const [program, ...list] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command;
    const { status, stderr } = spawnSync(program!, list, { encoding: 'utf8', env: { ...process.env, PGPASSWORD: secret } });
    if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}`);
  };
  const port = await freePort();
  const settings = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory} -c fsync=off -c timezone=UTC`;
  run(
    join(binaries, 'initdb'),
    '-D',
    data,
    '-A',
    'scram-sha-256',
    '-U',
    'raw',
    `--pwfile=${password}`,
    '--no-sync',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
  );
  run(join(binaries, 'pg_ctl'), '-D', data, '-w', '-o', settings, '-l', join(directory, 'log'), 'start');
  run(join(binaries, 'createdb'), '-h', '127.0.0.1', '-p', String(port), '-U', 'raw', 'annals');
  return {
    port,
    stop: () => {
      run(join(binaries, 'pg_ctl'), '-D', data, '-m', 'immediate', 'stop');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
