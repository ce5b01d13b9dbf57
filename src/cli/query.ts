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

interface QueryReply {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly notices?: readonly string[];
  readonly plan?: readonly string[];
  readonly actual_rows?: number;
  readonly processing_time_ms?: number;
  readonly operators?: readonly Readonly<Record<string, unknown>>[];
}

export async function queryCommand(sql: string, queryOptions: QueryOptions, version: string): Promise<number> {
  const { format } = queryOptions;
  if (format !== 'table' && !isOutputFormat(format)) {
    throw new ConfigError(`--format: expected table, ${outputFormats.slice(0, -1).join(', ')} or ${outputFormats.at(-1)!}`);
  }
  if (format === 'table' && queryOptions.output !== undefined)
    throw new ConfigError('--output: a table is for reading; name another --format');
  if (format !== 'table' && (queryOptions.output !== undefined || (format !== 'json' && format !== 'ndjson'))) {
    const { exportRows } = await import('./export.ts');
    await exportRows(sql, format, queryOptions, version);
    return exitCode.ok;
  }
  const queryStartedMs = systemClock.monotonicMs();
  const queryServer = remoteOf(queryOptions, process.env);
  const queryReply = queryServer
    ? ((await request(
        queryServer,
        'POST',
        '/query',
        ['columns', 'rows'],
        JSON.stringify({ sql, purpose: queryOptions.purpose, branch: queryOptions.branch }),
      )) as QueryReply)
    : await queryDirectory(sql, queryOptions, version);
  printQueryReply(queryReply, queryOptions.format);
  for (const queryNotice of queryReply.notices ?? []) process.stderr.write(`annals: ${queryNotice}\n`);
  const queryMs = Math.round(systemClock.monotonicMs() - queryStartedMs);
  if (queryOptions.format === 'table' && process.stderr.isTTY)
    process.stderr.write(`${queryReply.rows.length} rows in ${queryMs} ms\n`);
  return exitCode.ok;
}

/** Modules that only a directory needs are loaded for one. */
async function queryDirectory(sql: string, queryOptions: QueryOptions, version: string): Promise<QueryReply> {
  const [{ operator, withService }, { writeNdjson }, { envelopeMembers }] = await Promise.all([
    import('./local-store.ts'),
    import('../planner/formats/json-rows.ts'),
    import('../doors/http/result-envelope.ts'),
  ]);
  return await withService(queryOptions, version, async (service) => {
    const queryCaller = operator(queryOptions.organization ?? null, queryOptions.branch);
    const queryRequest = { action: 'query', purpose: queryOptions.purpose ?? null, correlationId: service.ids.next() } as const;
    const queryAnswer = await service.gate.invoke(queryCaller, queryRequest, (openInvocation) =>
      service.planner.query(openInvocation, { sql, purpose: queryRequest.purpose }),
    );
    const answerLines = writeNdjson(queryAnswer).toString('utf8').split('\n').slice(0, -1);
    return {
      columns: queryAnswer.columns.map((answerColumn) => answerColumn.name),
      rows: answerLines.map((answerLine) => parseExactJson(answerLine) as Record<string, unknown>),
      ...(queryAnswer.notices !== undefined && { notices: queryAnswer.notices }),
      ...(queryAnswer.plan === null
        ? {}
        : (JSON.parse(`{${envelopeMembers(queryAnswer).slice(1)}}`) as Omit<QueryReply, 'columns' | 'rows'>)),
    };
  });
}

function printQueryReply(queryReply: QueryReply, outputFormat: string): void {
  if (queryReply.plan !== undefined) printQueryPlan(queryReply, outputFormat);
  else if (outputFormat === 'table') process.stdout.write(renderTable(queryReply.columns, queryReply.rows));
  else if (outputFormat === 'ndjson') for (const replyRow of queryReply.rows) process.stdout.write(`${exactJson(replyRow)}\n`);
  else process.stdout.write(`${exactJson(queryReply.rows)}\n`);
}

/** As text for a reader, as JSON for a program. */
function printQueryPlan({ plan, operators, actual_rows, processing_time_ms }: QueryReply, outputFormat: string): void {
  const planLines = plan ?? [];
  if (outputFormat === 'ndjson')
    for (const planOperator of operators ?? planLines.map((line) => ({ line })))
      process.stdout.write(`${exactJson(planOperator)}\n`);
  else if (outputFormat === 'json')
    process.stdout.write(`${exactJson({ plan: planLines, actual_rows, processing_time_ms, operators })}\n`);
  else {
    process.stdout.write(`${planLines.join('\n')}\n`);
    if (actual_rows !== undefined) process.stdout.write(`${actual_rows} rows in ${processing_time_ms} ms\n`);
  }
}
