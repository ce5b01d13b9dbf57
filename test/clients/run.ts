/**
 * The programs that people have, against a server of their own: psql, pgbench, psycopg2, redis-cli, redis-py, pymongo, aws, s3cmd, rclone,
 * @aws-sdk/client-s3, clickhouse-client, clickhouse-driver, grpcio, knex, Sequelize, mongoose; SQLAlchemy, Django, pgjdbc, Drizzle and psycopg3 in transactions.
 *
 *   npm run clients                  what is installed; what is not, is told
 *   npm run clients -- --only aws    those of which door and name have that in them
 *   npm run clients -- --install     installs what is missing by apt, or by npm into a folder of this run, and fails where
 *                                    that fails
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { doors } from '../../src/doors/doors.ts';
import { freePort } from './free-port.ts';
import { type Client, clients, type Place } from './list.ts';
import { transactionClients } from './transactions.ts';
import { ServerProcess } from '../doors/http/server-process.ts';

const { values: options } = parseArgs({
  options: {
    install: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
const asked = [...clients, ...transactionClients].filter(({ name, door }) => `${door} ${name}`.includes(options.only));

const directory = mkdtempSync(join(tmpdir(), 'annals-clients-'));
const env = {
  PATH: process.env['PATH'],
  HOME: directory,
  LANG: 'C.UTF-8',
  NODE_PATH: [directory, join(import.meta.dirname, '../..')].map((each) => join(each, 'node_modules')).join(':'),
};

const found = (client: Client): boolean => spawnSync('sh', ['-c', client.probe], { stdio: 'ignore', env }).status === 0;

/** Exits where it fails. */
function install(packages: readonly string[], commands: readonly (readonly string[])[]): void {
  for (const [program, ...args] of packages.length === 0 ? [] : commands) {
    const more = { cwd: directory, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
    if (spawnSync(program!, [...args], { stdio: 'inherit', ...more }).status === 0) continue;
    console.error(`could not install ${packages.join(' ')}`);
    rmSync(directory, { recursive: true, force: true });
    process.exit(1);
  }
}

if (options.install) {
  const missing = asked.filter((client) => !found(client));
  const of = (registry: Client['registry']): string[] => [
    ...new Set(missing.filter((client) => client.registry === registry).flatMap((client) => client.package.split(' '))),
  ];
  const [debian, npm] = [of(undefined), of('npm')];
  install(debian, [
    ['apt-get', 'update', '-q'],
    ['apt-get', 'install', '-qy', '--no-install-recommends', ...debian],
  ]);
  install(npm, [['npm', 'install', '--no-save', '--no-audit', '--no-fund', '--prefix', directory, ...npm]]);
}

const secret = 'clients-secret';
const ports = Object.fromEntries(await Promise.all(doors.map(async ({ name }) => [name, await freePort()] as const)));
const settings = Object.fromEntries(
  doors.flatMap(({ name, port, built }) => (built && name !== 'http' ? [[port, String(ports[name])]] : [])),
);
const server = await ServerProcess.start(
  directory,
  { ...settings, SERVICE_BEARER_TOKEN: secret, SERVICE_OBJECT_SECRET_KEY: 'clients-object-secret' },
  'a token',
);
const built = new Set(doors.filter((door) => door.built).map(({ name }) => name));
let failures = 0;
try {
  for (const client of asked) {
    if (!built.has(client.door)) {
      console.log(`skipped  ${client.name}: this version has no ${client.door} door`);
      continue;
    }
    if (!found(client)) {
      console.log(`skipped  ${client.name}: not installed (${client.registry ?? 'apt-get'} install ${client.package})`);
      if (options.install) failures++;
      continue;
    }
    const place: Place = {
      port: ports[client.door]!,
      secret,
      objectSecret: 'clients-object-secret',
      token: server.token!,
      url: server.url,
      directory,
    };
    for (const { name, script, prints, seconds } of client.steps(place)) {
      const file = join(directory, 'step.sh');
      writeFileSync(file, script);
      const { status, stdout, stderr } = spawnSync('bash', ['-eu', file], {
        cwd: directory,
        encoding: 'utf8',
        timeout: (seconds ?? 300) * 1_000,
        env,
      });
      const good = status === 0 && prints.test(stdout);
      console.log(`${good ? 'passed ' : 'FAILED '}  ${client.name}: ${name}`);
      if (good) continue;
      failures++;
      console.log(`${stdout}${stderr}\n  expected ${String(prints)}, status ${status}`);
    }
  }
} finally {
  await server.signal('SIGTERM');
  rmSync(directory, { recursive: true, force: true });
}
console.log(failures === 0 ? 'all that ran passed' : `${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
