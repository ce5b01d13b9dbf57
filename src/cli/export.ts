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

export async function exportRows(
  sql: string,
  format: OutputFormat,
  exportOptions: ExportOptions,
  version: string,
): Promise<void> {
  if ((format === 'arrow' || format === 'parquet') && exportOptions.output === undefined && process.stdout.isTTY) {
    throw new ConfigError(`--format ${format} is binary: name a file with --output, or redirect`);
  }
  const exportServer = remoteOf(exportOptions, process.env);
  if (exportServer) {
    const exportParameters = new URLSearchParams({ sql, format });
    for (const parameterName of ['purpose', 'branch'] as const)
      if (exportOptions[parameterName] !== undefined) exportParameters.set(parameterName, exportOptions[parameterName]);
    return writeExport(download(exportServer, `/export?${exportParameters.toString()}`), exportOptions.output);
  }
  const { operator, withService } = await import('./local-store.ts');
  const outputForm = outputForms[format];
  const writeRows = await outputForm.writer();
  return withService(exportOptions, version, async (service) => {
    const exportCaller = operator(exportOptions.organization ?? null, exportOptions.branch);
    const exportRequest = {
      action: 'export',
      purpose: exportOptions.purpose ?? null,
      correlationId: service.ids.next(),
    } as const;
    const exportedPieces = await service.gate.invoke(exportCaller, exportRequest, async (openInvocation) => {
      const exportAnswer = await service.planner.query(openInvocation, {
        sql,
        purpose: exportRequest.purpose,
        queriesOnly: true,
      });
      refuseLoss(exportAnswer, outputForm);
      return writeRows(exportAnswer, envelopeFields(exportAnswer));
    });
    await writeExport(exportedPieces, exportOptions.output);
  });
}

async function writeExport(
  exportedPieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  exportFile: string | undefined,
): Promise<void> {
  const exportStream = Readable.from(exportedPieces, { objectMode: false });
  if (exportFile === undefined) {
    try {
      await pipeline(exportStream, process.stdout, { end: false });
    } catch (error) {
      // The reader, `head` for one, has closed the pipe: it has enough.
      if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
    }
    return;
  }
  // A file under its own name is whole.
  const partialFile = `${exportFile}.part`;
  try {
    await pipeline(exportStream, createWriteStream(partialFile));
    await rename(partialFile, exportFile);
  } catch (error) {
    await rm(partialFile, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined && code.startsWith('E')) throw new ConfigError(`--output: ${message}`);
    throw error;
  }
}
