/** `annals query`: one statement against a running server or a data directory, its rows as a table, as JSON or as a file. */
import { systemClock } from '../clock.ts';
import { ConfigError } from '../errors.ts';
import { exactJson } from '../doors/shared/write-exact-json.ts';
import { isOutputFormat, outputFormats } from '../planner/formats/output-format.ts';
import { parseExactJson } from '../doors/shared/read-exact-json.ts';
import { exitCode } from './exit-codes.ts';
import type { ExportOptions } from './export.ts';
import { remoteOf, request } from './remote-server.ts';
import { renderTable } from './text-table.ts';

export interface QueryOptions extends ExportOptions {
  readonly format: string;
}

interface Reply {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly notices?: readonly string[];
  readonly plan?: readonly string[];
  readonly actual_rows?: number;
  readonly processing_time_ms?: number;
  readonly operators?: readonly Readonly<Record<string, unknown>>[];
}

export async function queryCommand(sql: string, options: QueryOptions, version: string): Promise<number> {
  const { format } = options;
  if (format !== 'table' && !isOutputFormat(format)) {
    throw new ConfigError(`--format: expected table, ${outputFormats.slice(0, -1).join(', ')} or ${outputFormats.at(-1)!}`);
  }
  if (format === 'table' && options.output !== undefined)
    throw new ConfigError('--output: a table is for reading; name another --format');
  if (format !== 'table' && (options.output !== undefined || (format !== 'json' && format !== 'ndjson'))) {
    const { exportRows } = await import('./export.ts');
    await exportRows(sql, format, options, version);
    return exitCode.ok;
  }
  const startedMs = systemClock.monotonicMs();
  const remote = remoteOf(options, process.env);
  const reply = remote
    ? ((await request(
        remote,
        'POST',
        '/query',
        ['columns', 'rows'],
        JSON.stringify({ sql, purpose: options.purpose, branch: options.branch }),
      )) as Reply)
    : await askDirectory(sql, options, version);
  print(reply, options.format);
  for (const notice of reply.notices ?? []) process.stderr.write(`annals: ${notice}\n`);
  const ms = Math.round(systemClock.monotonicMs() - startedMs);
  if (options.format === 'table' && process.stderr.isTTY) process.stderr.write(`${reply.rows.length} rows in ${ms} ms\n`);
  return exitCode.ok;
}

/** Modules that only a directory needs are loaded for one. */
async function askDirectory(sql: string, options: QueryOptions, version: string): Promise<Reply> {
  const [{ operator, withService }, { writeNdjson }, { envelopeMembers }] = await Promise.all([
    import('./local-store.ts'),
    import('../planner/formats/json-rows.ts'),
    import('../doors/http/result-envelope.ts'),
  ]);
  return await withService(options, version, async (service) => {
    const caller = operator(options.organization ?? null, options.branch);
    const invocation = { action: 'query', purpose: options.purpose ?? null, correlationId: service.ids.next() } as const;
    const answer = await service.gate.invoke(caller, invocation, (open) =>
      service.planner.query(open, { sql, purpose: invocation.purpose }),
    );
    const lines = writeNdjson(answer).toString('utf8').split('\n').slice(0, -1);
    return {
      columns: answer.columns.map((column) => column.name),
      rows: lines.map((line) => parseExactJson(line) as Record<string, unknown>),
      ...(answer.notices !== undefined && { notices: answer.notices }),
      ...(answer.plan === null ? {} : (JSON.parse(`{${envelopeMembers(answer).slice(1)}}`) as Omit<Reply, 'columns' | 'rows'>)),
    };
  });
}

function print(reply: Reply, format: string): void {
  if (reply.plan !== undefined) printPlan(reply, format);
  else if (format === 'table') process.stdout.write(renderTable(reply.columns, reply.rows));
  else if (format === 'ndjson') for (const row of reply.rows) process.stdout.write(`${exactJson(row)}\n`);
  else process.stdout.write(`${exactJson(reply.rows)}\n`);
}

/** As text for a reader, as JSON for a program. */
function printPlan({ plan, operators, actual_rows, processing_time_ms }: Reply, format: string): void {
  const lines = plan ?? [];
  if (format === 'ndjson')
    for (const each of operators ?? lines.map((line) => ({ line }))) process.stdout.write(`${exactJson(each)}\n`);
  else if (format === 'json') process.stdout.write(`${exactJson({ plan: lines, actual_rows, processing_time_ms, operators })}\n`);
  else {
    process.stdout.write(`${lines.join('\n')}\n`);
    if (actual_rows !== undefined) process.stdout.write(`${actual_rows} rows in ${processing_time_ms} ms\n`);
  }
}
