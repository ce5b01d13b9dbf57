/** `annals ingest`: files into a running server or a data directory, streamed, with what was refused listed. */
import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { systemClock } from '../clock.ts';
import { ConfigError } from '../errors.ts';
import { batchSizes, Ingest, type IngestReply } from '../doors/shared/ingest-stream.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import { readIngest } from '../planner/formats/ingest-reader.ts';
import type { Service } from '../service.ts';
import { exitCode } from './exit-codes.ts';
import { linesOf } from './file-lines.ts';
import { operator, withService, type DirectoryOptions } from './local-store.ts';
import { count, Progress } from './progress.ts';
import { remoteOf, request, type Remote, type RemoteOptions } from './remote-server.ts';

export interface IngestOptions extends DirectoryOptions, RemoteOptions {
  readonly type: string;
  readonly purpose?: string;
  readonly branch?: string;
  readonly auto?: boolean;
  readonly key?: string;
  readonly columns?: string;
  readonly null?: string;
  readonly atomic?: boolean;
}

const atomicIngestBytesMax = 64 * 1024 * 1024;
const ingestErrorsShown = 10;

export async function ingestCommand(
  ingestedFiles: readonly string[],
  ingestOptions: IngestOptions,
  version: string,
): Promise<number> {
  for (const ingestedFile of ingestedFiles) {
    if (ingestedFile !== '-' && statSync(ingestedFile, { throwIfNoEntry: false })?.isFile() !== true)
      throw new ConfigError(`${ingestedFile}: no such file`);
  }
  if (ingestOptions.key !== undefined && ingestOptions.auto !== true) throw new ConfigError('--key needs --auto');
  const ingestServer = remoteOf(ingestOptions, process.env);
  return ingestServer === null
    ? withService(ingestOptions, version, (service) =>
        ingestEachFile(ingestedFiles, ingestOptions, (file) => ingestIntoDirectory(service, file, ingestOptions)),
      )
    : ingestEachFile(ingestedFiles, ingestOptions, (file) => ingestOverHttp(ingestServer, file, ingestOptions));
}

async function ingestEachFile(
  ingestedFiles: readonly string[],
  ingestOptions: IngestOptions,
  ingestFile: (ingestedFile: string) => Promise<IngestReply>,
): Promise<number> {
  let rejectedRows = 0;
  for (const ingestedFile of ingestedFiles) {
    const ingestReply = await ingestFile(ingestedFile);
    rejectedRows += ingestReply.rejected;
    const believedText =
      ingestReply.system_from_last === null ? '' : `, believed from ${formatInstant(BigInt(ingestReply.system_from_last))}`;
    process.stdout.write(
      `${ingestedFile}: ${count(ingestReply.accepted)} rows of ${ingestReply.type} written, ${count(ingestReply.rejected)} rejected${believedText}\n`,
    );
    const shownErrors = ingestReply.errors.slice(0, ingestErrorsShown);
    const lineOfRow = await rowLines(ingestedFile, shownErrors, ingestOptions);
    for (const { index, detail, code } of shownErrors)
      process.stderr.write(`${ingestedFile}: ${lineOfRow(index)}: ${detail} (${code})\n`);
    if (ingestReply.rejected > ingestErrorsShown)
      process.stderr.write(`${ingestedFile}: … ${count(ingestReply.rejected - ingestErrorsShown)} more rejected\n`);
  }
  return rejectedRows === 0 ? exitCode.ok : exitCode.findings;
}

/** Where a row stands: its line, or for a reader of standard input and of JSON arrays the how-manieth it is. */
async function rowLines(
  file: string,
  errors: IngestReply['errors'],
  { columns }: IngestOptions,
): Promise<(index: number) => string> {
  const rows = errors.map(({ index }) => index);
  const lines = rows.length === 0 || file === '-' ? null : await linesOf(file, rows, columns === undefined);
  return (index) => {
    const line = lines?.get(index);
    return line === undefined ? `row ${index + 1} (the first is 1)` : `line ${line}`;
  };
}

async function ingestIntoDirectory(service: Service, ingestedFile: string, ingestOptions: IngestOptions): Promise<IngestReply> {
  const ingestCaller = operator(ingestOptions.organization ?? null, ingestOptions.branch);
  const ingestRequest = { action: 'ingest', purpose: ingestOptions.purpose ?? null, correlationId: service.ids.next() } as const;
  return service.gate.invoke(ingestCaller, ingestRequest, async (invocation) => {
    invocation.describe({ objectType: ingestOptions.type, rowCount: 0 });
    if (ingestOptions.key !== undefined && invocation.snapshot().catalog.type(ingestOptions.type) === undefined) {
      await invocation.submit({
        kind: 'register-type',
        name: ingestOptions.type,
        properties: null,
        primaryKey: ingestOptions.key,
        graphTriggers: [],
      });
    }
    const ingest = new Ingest(invocation, {
      type: ingestOptions.type,
      atomic: ingestOptions.atomic === true,
      sync: false,
      createType: ingestOptions.auto === true,
      provenance: {
        source: ingestedFile === '-' ? 'standard input' : ingestedFile.slice(-1_024),
        method: 'ingest',
        confidence: 1,
        derivedFrom: null,
      },
    });
    const ingestBatches = readIngest(readFileWithProgress(ingestedFile), {
      definition: ingest.definition(),
      ...(ingestOptions.columns === undefined ? {} : { columns: ingestOptions.columns.split(',') }),
      ...(ingestOptions.null === undefined ? {} : { nullText: ingestOptions.null }),
      ...(ingestOptions.atomic
        ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: atomicIngestBytesMax }
        : batchSizes.stream),
    });
    return ingest.run(ingestBatches);
  });
}

async function ingestOverHttp(ingestServer: Remote, ingestedFile: string, ingestOptions: IngestOptions): Promise<IngestReply> {
  const ingestRoute = ingestOptions.auto ? '/ingest/auto' : '/ingest';
  const ingestParameters = new URLSearchParams({ object_type: ingestOptions.type });
  if (ingestOptions.purpose !== undefined) ingestParameters.set('purpose', ingestOptions.purpose);
  if (ingestOptions.branch !== undefined) ingestParameters.set('branch', ingestOptions.branch);
  if (ingestOptions.atomic) ingestParameters.set('atomic', 'true');
  if (ingestOptions.columns !== undefined) ingestParameters.set('columns', ingestOptions.columns);
  if (ingestOptions.null !== undefined) ingestParameters.set('null_text', ingestOptions.null);
  if (ingestOptions.key !== undefined) {
    const branchParameter =
      ingestOptions.branch === undefined ? '' : `?${new URLSearchParams({ branch: ingestOptions.branch }).toString()}`;
    await request(
      ingestServer,
      'POST',
      `/types${branchParameter}`,
      [],
      JSON.stringify({ name: ingestOptions.type, primary_key: ingestOptions.key }),
    );
  }
  const ingestBody = Readable.from(readFileWithProgress(ingestedFile));
  const replyMembers = ['accepted', 'rejected', 'errors', 'type'];
  return (await request(
    ingestServer,
    'POST',
    `${ingestRoute}?${ingestParameters.toString()}`,
    replyMembers,
    ingestBody,
    'application/octet-stream',
  )) as IngestReply;
}

async function* readFileWithProgress(ingestedFile: string): AsyncGenerator<Uint8Array, void> {
  const ingestProgress = new Progress(`ingest ${ingestedFile}`, systemClock);
  const fileBytes = ingestedFile === '-' ? 0 : statSync(ingestedFile).size;
  let readBytes = 0;
  for await (const fileChunk of ingestedFile === '-'
    ? process.stdin
    : createReadStream(ingestedFile, { highWaterMark: 256 * 1024 })) {
    const chunkBytes = fileChunk as Buffer;
    ingestProgress.update((readBytes += chunkBytes.length), fileBytes, 'bytes');
    yield chunkBytes;
  }
  ingestProgress.finish(readBytes, 'bytes');
}
