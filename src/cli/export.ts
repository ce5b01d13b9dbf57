/** `annals query --format csv|json|ndjson|arrow|parquet`: the rows as a file, to `--output` or to standard output. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ConfigError } from '../errors.ts';
import { envelopeFields } from '../doors/http/result-envelope.ts';
import { type OutputFormat, outputForms, refuseLoss } from '../planner/formats/output-format.ts';
import type { DirectoryOptions } from './local-store.ts';
import { download, remoteOf, type RemoteOptions } from './remote-server.ts';

export interface ExportOptions extends DirectoryOptions, RemoteOptions {
  readonly purpose?: string;
  readonly branch?: string;
  readonly output?: string;
}

export async function exportRows(sql: string, format: OutputFormat, options: ExportOptions, version: string): Promise<void> {
  if ((format === 'arrow' || format === 'parquet') && options.output === undefined && process.stdout.isTTY) {
    throw new ConfigError(`--format ${format} is binary: name a file with --output, or redirect`);
  }
  const remote = remoteOf(options, process.env);
  if (remote) {
    const parameters = new URLSearchParams({ sql, format });
    for (const name of ['purpose', 'branch'] as const) if (options[name] !== undefined) parameters.set(name, options[name]);
    return writeOut(download(remote, `/export?${parameters.toString()}`), options.output);
  }
  const { operator, withService } = await import('./local-store.ts');
  const form = outputForms[format];
  const write = await form.writer();
  return withService(options, version, async (service) => {
    const caller = operator(options.organization ?? null, options.branch);
    const invocation = { action: 'export', purpose: options.purpose ?? null, correlationId: service.ids.next() } as const;
    const pieces = await service.gate.invoke(caller, invocation, async (open) => {
      const answer = await service.planner.query(open, { sql, purpose: invocation.purpose, queriesOnly: true });
      refuseLoss(answer, form);
      return write(answer, envelopeFields(answer));
    });
    await writeOut(pieces, options.output);
  });
}

async function writeOut(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, output: string | undefined): Promise<void> {
  const source = Readable.from(pieces, { objectMode: false });
  if (output === undefined) {
    try {
      await pipeline(source, process.stdout, { end: false });
    } catch (error) {
      // The reader, `head` for one, has closed the pipe: it has enough.
      if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
    }
    return;
  }
  // A file under its own name is whole.
  const part = `${output}.part`;
  try {
    await pipeline(source, createWriteStream(part));
    await rename(part, output);
  } catch (error) {
    await rm(part, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined && code.startsWith('E')) throw new ConfigError(`--output: ${message}`);
    throw error;
  }
}
