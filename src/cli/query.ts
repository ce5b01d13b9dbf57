/** `annals query`: one statement against a running server or a data directory, its rows as a table or as JSON. */
import { systemClock } from '../clock.ts';
import { ConfigError } from '../config.ts';
import { exactJson } from '../doors/http/exact-json.ts';
import { writeNdjson } from '../planner/formats/json-rows.ts';
import { parseExactJson } from './exact-json.ts';
import { exitCode } from './exit.ts';
import { operator, withService, type DirectoryOptions } from './local.ts';
import { remoteOf, request, type RemoteOptions } from './remote.ts';
import { renderTable } from './table.ts';

export interface QueryOptions extends DirectoryOptions, RemoteOptions {
  readonly purpose?: string;
  readonly branch?: string;
  readonly format: string;
}

interface Reply {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly plan?: readonly string[];
}

export async function queryCommand(sql: string, options: QueryOptions, version: string): Promise<number> {
  if (!['table', 'json', 'ndjson'].includes(options.format)) throw new ConfigError('--format: expected table, json or ndjson');
  const startedMs = systemClock.monotonicMs();
  const remote = remoteOf(options, process.env);
  const reply = remote
    ? ((await request(
        remote,
        'POST',
        '/query',
        JSON.stringify({ sql, purpose: options.purpose, branch: options.branch }),
      )) as Reply)
    : await askDirectory(sql, options, version);
  print(reply, options.format);
  const ms = Math.round(systemClock.monotonicMs() - startedMs);
  if (options.format === 'table' && process.stderr.isTTY) process.stderr.write(`${reply.rows.length} rows in ${ms} ms\n`);
  return exitCode.ok;
}

function askDirectory(sql: string, options: QueryOptions, version: string): Promise<Reply> {
  return withService(options, version, async (service) => {
    const caller = operator(options.organization ?? null, options.branch);
    const invocation = { action: 'query', purpose: options.purpose ?? null, correlationId: service.ids.next() } as const;
    const answer = await service.gate.invoke(caller, invocation, (open) =>
      service.planner.query(open, { sql, purpose: invocation.purpose }),
    );
    const lines = writeNdjson(answer).toString('utf8').split('\n').slice(0, -1);
    return {
      columns: answer.columns.map((column) => column.name),
      rows: lines.map((line) => parseExactJson(line) as Record<string, unknown>),
      ...(answer.plan === null ? {} : { plan: answer.plan.trimEnd().split('\n') }),
    };
  });
}

function print(reply: Reply, format: string): void {
  if (reply.plan !== undefined) process.stdout.write(`${reply.plan.join('\n')}\n`);
  else if (format === 'table') process.stdout.write(renderTable(reply.columns, reply.rows));
  else if (format === 'ndjson') for (const row of reply.rows) process.stdout.write(`${exactJson(row)}\n`);
  else process.stdout.write(`${exactJson(reply.rows)}\n`);
}
