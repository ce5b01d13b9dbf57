/** `annals ingest`: files into a running server or a data directory, streamed, with what was refused listed. */
import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { systemClock } from '../clock.ts';
import { ConfigError } from '../errors.ts';
import { batchSizes, Ingest, type IngestReply } from '../doors/ingest/ingest-stream.ts';
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

const atomicBytesMax = 64 * 1024 * 1024;
const errorsShown = 10;

export async function ingestCommand(files: readonly string[], options: IngestOptions, version: string): Promise<number> {
  for (const file of files) {
    if (file !== '-' && statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
      throw new ConfigError(`${file}: no such file`);
  }
  if (options.key !== undefined && options.auto !== true) throw new ConfigError('--key needs --auto');
  const remote = remoteOf(options, process.env);
  return remote === null
    ? withService(options, version, (service) => eachFile(files, options, (file) => loadHere(service, file, options)))
    : eachFile(files, options, (file) => send(remote, file, options));
}

async function eachFile(
  files: readonly string[],
  options: IngestOptions,
  load: (file: string) => Promise<IngestReply>,
): Promise<number> {
  let rejected = 0;
  for (const file of files) {
    const reply = await load(file);
    rejected += reply.rejected;
    const believed = reply.system_from_last === null ? '' : `, believed from ${formatInstant(BigInt(reply.system_from_last))}`;
    process.stdout.write(
      `${file}: ${count(reply.accepted)} rows of ${reply.type} written, ${count(reply.rejected)} rejected${believed}\n`,
    );
    const shown = reply.errors.slice(0, errorsShown);
    const placeOf = await placesIn(file, shown, options);
    for (const { index, detail, code } of shown) process.stderr.write(`${file}: ${placeOf(index)}: ${detail} (${code})\n`);
    if (reply.rejected > errorsShown) process.stderr.write(`${file}: … ${count(reply.rejected - errorsShown)} more rejected\n`);
  }
  return rejected === 0 ? exitCode.ok : exitCode.findings;
}

/** Where a row stands: its line, or for a reader of standard input and of JSON arrays the how-manieth it is. */
async function placesIn(
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

async function loadHere(service: Service, file: string, options: IngestOptions): Promise<IngestReply> {
  const caller = operator(options.organization ?? null, options.branch);
  const asking = { action: 'ingest', purpose: options.purpose ?? null, correlationId: service.ids.next() } as const;
  return service.gate.invoke(caller, asking, async (invocation) => {
    invocation.describe({ objectType: options.type, rowCount: 0 });
    if (options.key !== undefined && invocation.snapshot().catalog.type(options.type) === undefined) {
      await invocation.submit({
        kind: 'register-type',
        name: options.type,
        properties: null,
        primaryKey: options.key,
        graphTriggers: [],
      });
    }
    const ingest = new Ingest(invocation, {
      type: options.type,
      atomic: options.atomic === true,
      sync: false,
      createType: options.auto === true,
      provenance: {
        source: file === '-' ? 'standard input' : file.slice(-1_024),
        method: 'ingest',
        confidence: 1,
        derivedFrom: null,
      },
    });
    const batches = readIngest(bytesOf(file), {
      definition: ingest.definition(),
      ...(options.columns === undefined ? {} : { columns: options.columns.split(',') }),
      ...(options.null === undefined ? {} : { nullText: options.null }),
      ...(options.atomic ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: atomicBytesMax } : batchSizes.stream),
    });
    return ingest.run(batches);
  });
}

async function send(remote: Remote, file: string, options: IngestOptions): Promise<IngestReply> {
  const route = options.auto ? '/ingest/auto' : '/ingest';
  const query = new URLSearchParams({ object_type: options.type });
  if (options.purpose !== undefined) query.set('purpose', options.purpose);
  if (options.branch !== undefined) query.set('branch', options.branch);
  if (options.atomic) query.set('atomic', 'true');
  if (options.columns !== undefined) query.set('columns', options.columns);
  if (options.null !== undefined) query.set('null_text', options.null);
  if (options.key !== undefined) {
    const on = options.branch === undefined ? '' : `?${new URLSearchParams({ branch: options.branch }).toString()}`;
    await request(remote, 'POST', `/types${on}`, [], JSON.stringify({ name: options.type, primary_key: options.key }));
  }
  const body = Readable.from(bytesOf(file));
  const members = ['accepted', 'rejected', 'errors', 'type'];
  return (await request(
    remote,
    'POST',
    `${route}?${query.toString()}`,
    members,
    body,
    'application/octet-stream',
  )) as IngestReply;
}

async function* bytesOf(file: string): AsyncGenerator<Uint8Array, void> {
  const progress = new Progress(`ingest ${file}`, systemClock);
  const total = file === '-' ? 0 : statSync(file).size;
  let done = 0;
  for await (const chunk of file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 256 * 1024 })) {
    const bytes = chunk as Buffer;
    progress.update((done += bytes.length), total, 'bytes');
    yield bytes;
  }
  progress.finish(done, 'bytes');
}
