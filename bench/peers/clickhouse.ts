/** ClickHouse's server as a peer, over HTTP, on the core of what is measured. Null where it is not installed. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { pinned, serverCore, start, stop } from '../processes.ts';

export class ClickHouse {
  readonly version: string;
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(version: string, port: number, child: ChildProcess) {
    this.version = version;
    this.port = port;
    this.#child = child;
  }

  /** `port` and the one above it are free. */
  static async start(parent: string, port: number): Promise<ClickHouse | null> {
    if (spawnSync('clickhouse-server', ['--help']).error !== undefined) return null;
    const directory = join(parent, 'clickhouse');
    mkdirSync(directory, { recursive: true });
    const users = join(directory, 'users.xml');
    writeFileSync(users, usersFile);
    const config = join(directory, 'config.xml');
    writeFileSync(config, configFile(directory, users, port));
    const child = start(pinned(serverCore, ['clickhouse-server', `--config-file=${config}`]), { cwd: directory });
    child.stdout!.resume();
    let said = '';
    child.stderr!.on('data', (bytes: Buffer) => (said += bytes.toString()));
    for (let tries = 0; ; tries++) {
      const version = await askColumnar(port, {}, 'SELECT version()', null).catch(() => null);
      if (version !== null) return new ClickHouse(version.trim(), port, child);
      if (child.exitCode !== null || tries === 600) throw new Error(`clickhouse-server did not start: ${said.slice(0, 1_000)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  ask(sql: string, body: Buffer | null = null): Promise<string> {
    return askColumnar(this.port, {}, sql, body);
  }

  stop(): Promise<void> {
    return stop(this.#child);
  }
}

/** The same of any server of the protocol: the text of the answer. */
export function askColumnar(
  port: number,
  headers: Readonly<Record<string, string>>,
  sql: string,
  body: Buffer | null,
): Promise<string> {
  const path = body === null ? '/' : `/?${new URLSearchParams({ query: sql }).toString()}`;
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers });
    sent.once('error', reject).once('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece)).once('error', reject);
      response.once('end', () => {
        const text = Buffer.concat(pieces).toString();
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${response.statusCode}: ${text.slice(0, 500)}`));
      });
    });
    sent.end(body ?? sql);
  });
}

const usersFile = `<?xml version="1.0"?>
<yandex><profiles><default></default></profiles><quotas><default></default></quotas><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>
`;

const configFile = (directory: string, users: string, port: number): string => `<?xml version="1.0"?>
<yandex><logger><level>error</level><log>${directory}/log</log><errorlog>${directory}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>${port}</http_port><tcp_port>${port + 1}</tcp_port>
<path>${directory}/data/</path><tmp_path>${directory}/tmp/</tmp_path><users_config>${users}</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>1073741824</mark_cache_size></yandex>
`;
